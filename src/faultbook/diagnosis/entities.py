"""Kubernetes entities as people write them: "namespace/Kind/name", with the workload that a pod's name belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kinds whose spelling differs between tools; Chaos Mesh itself writes HTTPChaos.
_CLUSTER_SCOPED = frozenset({"cluster", "_cluster", "-"})
CHAOS_KINDS = frozenset(
    f"{name}chaos"
    for name in (
        "network",
        "stress",
        "jvm",
        "http",
        "pod",
        "io",
        "time",
        "dns",
        "kernel",
        "block",
        "aws",
        "gcp",
        "azure",
    )
)
MECHANISM_KINDS = CHAOS_KINDS | {"schedule", "workflow"}
WORKLOAD_KINDS = frozenset({"deployment", "pod", "replicaset", "statefulset", "daemonset", "job", "cronjob", "rollout"})
# Kubernetes draws the letters of generated suffixes from this alphabet (no vowels, no 0, 1, 3).
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_DEPLOYMENT_POD = re.compile(rf"(.+)-{_SAFE}{{8,10}}-{_SAFE}{{5}}")
_REPLICA_SET = re.compile(rf"(.+)-{_SAFE}{{8,10}}")
_DAEMON_POD = re.compile(rf"(.+)-{_SAFE}{{5}}")
_STATEFUL_POD = re.compile(r"(.+)-\d{1,4}")


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity; `namespace` and `kind` are None where the writer left them out."""

    namespace: str | None
    kind: str | None
    name: str

    def folded(self) -> Entity:
        """The same entity whatever the letter case of its kind: what tells two objects apart."""
        return Entity(self.namespace, self.kind.casefold() if self.kind else None, self.name)


def parse_entity(text: str) -> Entity:
    """Parse "namespace/Kind/name", "Kind/name" or "name"; a cluster-scoped entity has "cluster" for its namespace.

    Raises
    ------
    ValueError
        If there is no name, or more than three parts.
    """
    parts = [part.strip() for part in text.strip().split("/")]
    if len(parts) > 3 or not parts[-1]:
        raise ValueError(f"'{text}' is not namespace/Kind/name")
    namespace, kind, name = [None, None, *parts][-3:]
    if namespace is not None and namespace.casefold() in _CLUSTER_SCOPED:
        namespace = None
    return Entity(namespace or None, kind or None, str(name))


def workload(name: str, kind: str | None) -> str:
    """The workload that a generated name belongs to: "checkout" for the pod "checkout-6d5f7c9b8d-x2x7k".

    Only suffixes that Kubernetes itself generates are taken off, by the rules of the kind; other names stay.
    """
    folded = (kind or "").casefold()
    rules = {"pod": (_DEPLOYMENT_POD, _STATEFUL_POD, _DAEMON_POD), "replicaset": (_REPLICA_SET,)}.get(folded, ())
    for rule in rules:
        match = rule.fullmatch(name)
        if match:
            return match[1]
    return name
