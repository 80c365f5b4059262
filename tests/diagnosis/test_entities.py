"""Names as people write them, and the workload that a generated name belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.diagnosis.entities import CHAOS_KINDS, Entity, parse_entity, workload

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("otel-demo/Deployment/checkout", Entity("otel-demo", "Deployment", "checkout")),
        ("Deployment/checkout", Entity(None, "Deployment", "checkout")),
        ("checkout", Entity(None, None, "checkout")),
        (" otel-demo / Pod / ad ", Entity("otel-demo", "Pod", "ad")),
        ("cluster/Node/worker-node-1", Entity(None, "Node", "worker-node-1")),  # reference 2.3: cluster-scoped
        ("_cluster/Namespace/otel-demo", Entity(None, "Namespace", "otel-demo")),
        ("Cluster/Node/n", Entity(None, "Node", "n")),
        ("-/Node/n", Entity(None, "Node", "n")),
        ("/Pod/ad", Entity(None, "Pod", "ad")),
        ("otel-demo//ad", Entity("otel-demo", None, "ad")),
        ("//ad", Entity(None, None, "ad")),
    ],
)
def test_a_name_has_up_to_three_parts(text: str, entity: Entity) -> None:
    assert parse_entity(text) == entity


@pytest.mark.parametrize("text", ["", " ", "/", "a/b/", "a/b/ ", "a/b/c/d", "apps/v1/Deployment/ad"])
def test_other_texts_are_refused_with_the_form_to_use(text: str) -> None:
    with pytest.raises(ValueError, match="is not namespace/Kind/name"):
        parse_entity(text)


@settings(deadline=None)
@given(namespace=NAMES.filter(lambda name: name != "-"), kind=NAMES, name=NAMES)
def test_parsing_takes_apart_what_was_joined(namespace: str, kind: str, name: str) -> None:
    found = parse_entity(f"{namespace}/{kind}/{name}")
    assert found == Entity(None if namespace == "cluster" else namespace, kind, name)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_an_entity_or_a_value_error(text: str) -> None:
    try:
        assert parse_entity(text).name
    except ValueError as error:
        assert "namespace/Kind/name" in str(error)  # noqa: PT017


# Suffixes as Kubernetes generates them: pod-template hash and five letters of its alphabet for a Deployment's pods, an
# ordinal for a StatefulSet's, five letters for a DaemonSet's.
@pytest.mark.parametrize(
    ("name", "kind", "owner"),
    [
        ("checkout-6d5f7c9b8d-x2x7k", "Pod", "checkout"),
        ("checkout-6d5f7c9b8d-x2x7k", "pod", "checkout"),
        ("frontend-proxy-5d4f8f7b9c-zq8kp", "Pod", "frontend-proxy"),
        ("productpage-v1-54bb874995-8vlkw", "Pod", "productpage-v1"),
        ("coredns-76f75df5-mtwwd", "Pod", "coredns"),  # a hash of eight
        ("kafka-0", "Pod", "kafka"),
        ("opensearch-cluster-master-12", "Pod", "opensearch-cluster-master"),
        ("otel-collector-agent-x8k2v", "Pod", "otel-collector-agent"),
        ("checkout-6d5f7c9b8d", "ReplicaSet", "checkout"),
        ("checkout-6d5f7c9b8d", "REPLICASET", "checkout"),
    ],
)
def test_generated_suffixes_come_off(name: str, kind: str, owner: str) -> None:
    assert workload(name, kind) == owner


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("frontend-proxy", "Pod"),  # "proxy" has a vowel and a y, which Kubernetes never draws
        ("load-generator-service", "Pod"),
        ("load-generator", "Pod"),
        ("valkey-cart", "Pod"),
        ("product-catalog", "Pod"),
        ("flagd-config", "Pod"),
        ("checkout", "Pod"),
        ("checkout-abcde", "Pod"),  # vowels
        ("checkout-6d5f7c9b8d", "Deployment"),
        ("checkout-6d5f7c9b8d-x2x7k", "Deployment"),
        ("checkout-6d5f7c9b8d-x2x7k", "Service"),
        ("checkout-6d5f7c9b8d-x2x7k", None),
        ("kafka-0", "Service"),
        ("kafka-0", "StatefulSet"),
        ("frontend-proxy", "ReplicaSet"),
        ("-x2x7k", "Pod"),
        ("x2x7k", "Pod"),
        ("67cbd7fe98a0776a", "Pod"),  # reference 2.4: a bare hash belongs to nothing
        ("", "Pod"),
    ],
)
def test_names_that_merely_look_generated_stay(name: str, kind: str | None) -> None:
    assert workload(name, kind) == name


@settings(deadline=None)
@given(name=st.text(max_size=60), kind=st.sampled_from(["Pod", "ReplicaSet", "Deployment", "Service", None]))
def test_a_workload_is_a_beginning_of_the_name(name: str, kind: str | None) -> None:
    assert name.startswith(workload(name, kind))


def test_the_chaos_kinds_of_the_public_truths_are_known() -> None:
    # reference 3.2: kinds measured in the repository's truth files; HttpChaos is their spelling of HTTPChaos
    written = ["NetworkChaos", "StressChaos", "JVMChaos", "PodChaos", "HttpChaos", "HTTPChaos", "IOChaos"]
    assert {kind.casefold() for kind in written} <= CHAOS_KINDS
    assert "schedule" not in CHAOS_KINDS
