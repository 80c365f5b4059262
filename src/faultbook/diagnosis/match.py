"""Which groups of a ground truth a submitted entity stands for, under a policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from faultbook.diagnosis.entities import CHAOS_KINDS, WORKLOAD_KINDS, Entity, workload
from faultbook.diagnosis.patterns import MOST_NAME, Pattern, compile_pattern
from faultbook.diagnosis.policy import Policy

_WORKLOADS_AS_WRITTEN = frozenset(
    ["Deployment", "Pod", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Rollout", "Service", "Schedule"]
)


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a truth, ready for matching."""

    group_id: str
    cause_set: str
    is_root_cause: bool
    kind: str
    namespace: str | None
    name: str | None
    pattern: Pattern | None


class IncidentTruth:
    """The truth of one incident under one policy."""

    def __init__(self, causes: pd.DataFrame, policy: Policy) -> None:
        self._policy = policy
        self.groups = [_group(row, policy) for row in causes.to_dict("records")]
        roots = {group.cause_set for group in self.groups if group.is_root_cause}
        self.root_sets = [s for s in dict.fromkeys(group.cause_set for group in self.groups) if s in roots]
        self._known: dict[Entity, tuple[Group, ...]] = {}

    def matches(self, entity: Entity) -> tuple[Group, ...]:
        """The groups that the entity stands for, in the order of the truth."""
        if entity not in self._known:
            self._known[entity] = tuple(group for group in self.groups if self._matches(entity, group))
        return self._known[entity]

    def root_hits(self, entity: Entity) -> list[str]:
        """The root cause sets that the entity hits."""
        roots = set(self.root_sets)
        return list(dict.fromkeys(group.cause_set for group in self.matches(entity) if group.cause_set in roots))

    def _matches(self, entity: Entity, group: Group) -> bool:
        if len(entity.name) > MOST_NAME or not self._namespace_fits(entity, group):
            return False
        return self._kind_fits(entity.kind, group.kind) and self._name_fits(entity, group)

    def _namespace_fits(self, entity: Entity, group: Group) -> bool:
        if group.namespace is None:
            return True  # the truth does not say, or a cluster-scoped entity has none
        if entity.namespace is None:
            return self._policy.namespace == "lenient"
        return entity.namespace == group.namespace

    def _kind_fits(self, submitted: str | None, truth: str) -> bool:
        if submitted is None:
            return True
        pair = {self._written(submitted), self._written(truth)}
        if submitted == truth or (self._policy.fold_kinds and len(pair) == 1):
            return True
        family = WORKLOAD_KINDS | ({"service"} if self._policy.service_is_workload else set())
        if self._policy.schedule_is_chaos and "schedule" in pair and pair - {"schedule"} <= CHAOS_KINDS:
            return True
        if self._policy.deployment_is_pod and pair == {"deployment", "pod"}:
            return True
        if self._policy.workload_family and pair <= family:
            return True
        return self._policy.service_is_workload and pair in ({"service", "deployment"}, {"service", "pod"})

    def _written(self, kind: str) -> str:
        """A kind in small letters; where letter case counts, only if it is written as Kubernetes writes it."""
        folded = kind.casefold()
        as_it_should = kind in _WORKLOADS_AS_WRITTEN or (kind.endswith("Chaos") and folded in CHAOS_KINDS)
        return folded if self._policy.fold_kinds or as_it_should else f"'{kind}'"

    def _name_fits(self, entity: Entity, group: Group) -> bool:
        owner = workload(entity.name, entity.kind or group.kind)
        if group.name is not None:
            return group.name in (entity.name, owner)
        if group.pattern is None:
            return False
        if self._policy.matching == "search":
            return group.pattern.search(entity.name)
        if self._policy.matching == "fullmatch":
            return group.pattern.fullmatch(entity.name)
        return group.pattern.anchored(entity.name, owner)


def truths_by_incident(causes: pd.DataFrame, policy: Policy) -> dict[str, IncidentTruth]:
    """Prepare every incident of a truth for matching."""
    return {str(name): IncidentTruth(part, policy) for name, part in causes.groupby("incident_id", sort=False)}


def claims(entities: Iterable[Entity], truth: IncidentTruth) -> dict[str, int]:
    """The root sets that a submission finds, each with the position of the entity that stands for it.

    An object named twice stands for one cause only, even where two roots share a pattern.
    """
    seen: set[Entity] = set()
    hits = []
    for entity in entities:
        hits.append([] if entity.folded() in seen else truth.root_hits(entity))
        seen.add(entity.folded())
    return largest_matching(hits)


def largest_matching(hits: Iterable[Iterable[str]]) -> dict[str, int]:
    """Give as many root sets as possible a submitted entity of their own: set → position of the entity.

    One entity stands for one cause, however many patterns it meets, and the order of a submission must not decide
    (Kuhn's augmenting paths; the numbers are tiny).
    """
    wanted = [list(sets) for sets in hits]
    owner: dict[str, int] = {}

    def place(position: int, tried: set[str]) -> bool:
        for name in wanted[position]:
            if name not in tried:
                tried.add(name)
                if name not in owner or place(owner[name], tried):
                    owner[name] = position
                    return True
        return False

    for position in range(len(wanted)):
        place(position, set())
    return owner


def _group(row: dict[Any, Any], policy: Policy) -> Group:
    name, pattern = _optional(row["name"]), _optional(row["pattern"])
    return Group(
        group_id=row["group_id"],
        cause_set=row["cause_set"] if policy.alias_closure else row["group_id"],
        is_root_cause=bool(row["is_root_cause"]),
        kind=row["kind"],
        namespace=_optional(row["namespace"]),
        name=name,
        pattern=compile_pattern(pattern) if pattern is not None else None,
    )


def _optional(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)
