"""Which groups of a truth an entity stands for."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import POLICIES, Policy, Truth
from faultbook.diagnosis.entities import parse_entity
from faultbook.diagnosis.match import IncidentTruth, largest_matching, truths_by_incident

MakeTruth = Callable[..., Truth]
AA = POLICIES["itbench-aa"]
WIDE = Policy("wide", workload_family=True)
SERVICE = Policy("service", service_is_workload=True)


@pytest.fixture(scope="session")
def meets(make_truth: MakeTruth) -> Callable[..., bool]:
    """Whether an entity stands for the one group of a truth."""

    def run(group: str, entity: str, policy: Policy = AA) -> bool:
        return bool(IncidentTruth(make_truth(f"g* | {group}").causes, policy).matches(parse_entity(entity)))

    return run


Meets = Callable[..., bool]


@pytest.mark.parametrize(
    ("group", "entity", "wanted"),
    [
        # reference 3.4: which name a real pattern means
        (r"otel-demo/Service/ad\b", "otel-demo/Service/ad", True),
        (r"otel-demo/Service/ad\b", "otel-demo/Service/load-generator", False),
        ("otel-demo/Pod/ad-.*", "otel-demo/Pod/load-generator-6d5f7c9b8d-x2x7k", False),
        ("otel-demo/Pod/ad-.*", "otel-demo/Pod/ad-6d5f7c9b8d-x2x7k", True),
        (r"otel-demo/Service/frontend\b", "otel-demo/Service/frontend-proxy", False),
        ("otel-demo/Pod/frontend-.*", "otel-demo/Pod/frontend-proxy-5d4f8f7b9c-zq8kp", False),
        ("otel-demo/Pod/frontend-.*", "otel-demo/Pod/frontend-proxy", False),
        ("otel-demo/Pod/frontend-.*", "otel-demo/Pod/frontend-5d4f8f7b9c-zq8kp", True),
        ("otel-demo/Pod/frontend-proxy-.*", "otel-demo/Pod/frontend-proxy-5d4f8f7b9c-zq8kp", True),
        ("otel-demo/Pod/frontend-proxy-.*", "otel-demo/Pod/frontend-5d4f8f7b9c-zq8kp", False),
        (r"otel-demo/Service/cart\b", "otel-demo/Service/valkey-cart", False),
        ("otel-demo/Pod/cart-.*", "otel-demo/Pod/valkey-cart-5d4f8f7b9c-zq8kp", False),
        (r"otel-demo/Service/flagd\b", "otel-demo/ConfigMap/flagd-config", False),
        ("otel-demo/ConfigMap/=flagd-config", "otel-demo/ConfigMap/flagd-config", True),
        ("otel-demo/ConfigMap/=flagd-config", "otel-demo/ConfigMap/flagd-config-2", False),
        ("otel-demo/ConfigMap/=a.b", "otel-demo/ConfigMap/axb", False),  # a name is no pattern
        ("otel-demo/HorizontalPodAutoscaler/*.*", "otel-demo/HorizontalPodAutoscaler/ad", True),
        ("otel-demo/HorizontalPodAutoscaler/*.*", "otel-demo/Deployment/ad", False),
        ("otel-demo/Service/.checkout", "otel-demo/Service/checkout", False),
        # key fact 9: Deployment filters `product-catalog-.*` and `checkout-.*`
        ("otel-demo/Deployment/checkout-.*", "otel-demo/Deployment/checkout", True),
        # reference 2.4: a bare hash never matches
        ("otel-demo/Pod/checkout-.*", "67cbd7fe98a0776a", False),
    ],
)
def test_names(meets: Meets, group: str, entity: str, wanted: bool) -> None:
    assert meets(group, entity) is wanted


@pytest.mark.parametrize(
    ("group", "entity", "aa", "wide", "service"),
    [
        ("n/Deployment/=ad", "n/Pod/ad-6d5f7c9b8d-x2x7k", True, True, True),
        ("n/Deployment/=ad", "n/Pod/ad", True, True, True),
        ("n/Pod/ad-.*", "n/Deployment/ad", True, True, True),
        ("n/Deployment/=kafka", "n/Pod/kafka-0", True, True, True),
        ("n/Deployment/=agent", "n/Pod/agent-x8k2v", True, True, True),
        ("n/Deployment/=frontend", "n/Pod/frontend-proxy", False, False, False),
        ("n/Deployment/=load-generator", "n/Pod/load-generator-service", False, False, False),
        ("n/Deployment/=ad", "n/ReplicaSet/ad-6d5f7c9b8d", False, True, False),
        ("n/ReplicaSet/ad-.*", "n/Pod/ad-6d5f7c9b8d-x2x7k", False, True, False),
        ("n/StatefulSet/=kafka", "n/Pod/kafka-0", False, True, False),
        ("n/DaemonSet/=agent", "n/Pod/agent-x8k2v", False, True, False),
        ("n/Deployment/=ad", "n/Rollout/ad", False, True, False),
        ("n/Deployment/=ad", "n/Service/ad", False, False, True),
        ("n/Service/=ad", "n/Pod/ad-6d5f7c9b8d-x2x7k", False, False, True),
        ("n/Deployment/=ad", "n/ConfigMap/ad", False, False, False),
        ("n/Service/=ad", "n/ServiceOperation/ad", False, False, False),
    ],
)
def test_workloads(meets: Meets, group: str, entity: str, aa: bool, wide: bool, service: bool) -> None:
    # reference 2.4: AA has only Deployment ≡ Pod; a Service stands for a pod only through an alias list
    assert meets(group, entity) is aa
    assert meets(group, entity, WIDE) is wide
    assert meets(group, entity, SERVICE) is service


def test_a_deployment_is_no_pod_if_the_policy_says_so(meets: Meets) -> None:
    apart = Policy("apart", deployment_is_pod=False)
    assert not meets("n/Deployment/=ad", "n/Pod/ad-6d5f7c9b8d-x2x7k", apart)
    assert meets("n/Pod/=ad", "n/Pod/ad-6d5f7c9b8d-x2x7k", apart)


@pytest.mark.parametrize("kind", ["NetworkChaos", "StressChaos", "JVMChaos", "PodChaos", "HttpChaos", "IOChaos"])
def test_a_schedule_is_what_it_spawns_both_ways(meets: Meets, kind: str) -> None:
    # reference 2.4: a chaos-mesh Schedule matches the spawned resource of any kind
    for group, entity in itertools.permutations(["Schedule", kind]):
        assert meets(f"chaos-mesh/{group}/.*-delay", f"chaos-mesh/{entity}/otel-delay")
        assert not meets(f"chaos-mesh/{group}/.*-delay", f"chaos-mesh/{entity}/otel-loss")
        assert not meets(f"chaos-mesh/{group}/.*-delay", f"otel-demo/{entity}/otel-delay")
        strict = Policy("strict", schedule_is_chaos=False)
        assert not meets(f"chaos-mesh/{group}/.*-delay", f"chaos-mesh/{entity}/otel-delay", strict)


def test_two_kinds_of_chaos_are_two_things(meets: Meets) -> None:
    assert not meets("chaos-mesh/NetworkChaos/=x", "chaos-mesh/PodChaos/x")
    assert not meets("chaos-mesh/Schedule/=x", "chaos-mesh/Deployment/x")


@pytest.mark.parametrize(("group", "entity"), [("HttpChaos", "HTTPChaos"), ("HTTPChaos", "httpchaos"), ("Pod", "pod")])
def test_letter_case_of_a_kind(meets: Meets, group: str, entity: str) -> None:
    assert meets(f"n/{group}/=x", f"n/{entity}/x")
    assert not meets(f"n/{group}/=x", f"n/{entity}/x", Policy("exact", fold_kinds=False))


@pytest.mark.parametrize(
    ("group", "entity", "rest"),
    [
        ("Pod", "DEPLOYMENT", {}),
        ("Pod", "POD", {"workload_family": True}),
        ("Pod", "SERVICE", {"service_is_workload": True}),
        ("Schedule", "SCHEDULE", {}),
        ("HttpChaos", "SCHEDULE", {}),
    ],
)
def test_letter_case_counts_in_equivalences_too(meets: Meets, group: str, entity: str, rest: dict[str, bool]) -> None:
    # "fold_kinds: letter case of kinds does not count"; switched off, it counts everywhere
    assert not meets(f"n/{group}/=x", f"n/{entity}/x", Policy("exact", fold_kinds=False, **rest))


@pytest.mark.parametrize(
    ("group", "entity", "lenient", "strict"),
    [
        ("otel-demo/Pod/=x", "otel-demo/Pod/x", True, True),
        ("otel-demo/Pod/=x", "book-info/Pod/x", False, False),
        ("otel-demo/Pod/=x", "Pod/x", True, False),
        ("otel-demo/Pod/=x", "x", True, False),
        ("-/Pod/=x", "Pod/x", True, True),
        ("-/Pod/=x", "otel-demo/Pod/x", True, True),  # reference 3.4: without a namespace the gate is skipped
        ("-/Namespace/otel-demo", "cluster/Namespace/otel-demo", True, True),
        ("-/Namespace/otel-demo", "Namespace/otel-demo", True, True),
        ("-/Namespace/otel-demo", "otel-demo/Namespace/otel-demo", True, True),
        ("otel-demo/Namespace/=otel-demo", "cluster/Namespace/otel-demo", True, False),
    ],
)
def test_namespaces(meets: Meets, group: str, entity: str, lenient: bool, strict: bool) -> None:
    assert meets(group, entity) is lenient
    assert meets(group, entity, Policy("strict", namespace="strict")) is strict


def test_a_kind_left_out_matches_any(meets: Meets) -> None:
    assert meets("otel-demo/ConfigMap/=flagd-config", "flagd-config")
    assert meets("otel-demo/Pod/ad-.*", "ad-6d5f7c9b8d-x2x7k")  # its workload by the truth's kind


@pytest.mark.parametrize("matching", ["search", "fullmatch"])
def test_other_matchings_are_for_comparison(meets: Meets, matching: str) -> None:
    policy = Policy("own", matching=matching)
    by_search = matching == "search"
    # key facts 8 and 9
    assert meets("n/Pod/ad-.*", "n/Pod/load-generator-6d5f7c9b8d-x2x7k", policy) is by_search
    assert meets(r"n/Service/frontend\b", "n/Service/frontend-proxy", policy) is by_search
    assert meets("n/Pod/frontend-.*", "n/Pod/frontend-proxy-5d4f8f7b9c-zq8kp", policy)
    assert not meets("n/Deployment/product-catalog-.*", "n/Deployment/product-catalog", policy)
    assert meets("n/ConfigMap/=flagd-config", "n/ConfigMap/flagd-config", policy)


def test_a_group_without_name_or_filter_is_met_by_nothing(make_truth: MakeTruth) -> None:
    truth = make_truth("g* | n/Pod/=x").causes.assign(name=None)
    for policy in [*POLICIES.values(), Policy("s", matching="search")]:
        assert not IncidentTruth(truth, policy).matches(parse_entity("n/Pod/x"))


def test_a_very_long_name_meets_nothing(meets: Meets) -> None:
    for policy in (AA, Policy("s", matching="search"), Policy("f", matching="fullmatch")):
        assert not meets("n/Pod/.*", "n/Pod/" + "a" * 10_000, policy)
        assert not meets("n/Pod/=" + "a" * 10_000, "n/Pod/" + "a" * 10_000, policy)


def test_alias_closure_and_its_absence(make_truth: MakeTruth) -> None:
    causes = make_truth("a* | n/Service/=a\nb | n/Pod/=b\nc* | n/Pod/=c", aliases=[["a", "b"]]).causes
    closed, plain = IncidentTruth(causes, AA), IncidentTruth(causes, Policy("plain", alias_closure=False))
    assert closed.root_sets == ["a", "c"]
    assert closed.root_hits(parse_entity("n/Pod/b")) == ["a"]
    assert plain.root_sets == ["a", "c"]
    assert plain.root_hits(parse_entity("n/Pod/b")) == []


def test_groups_come_in_the_order_of_the_truth(make_truth: MakeTruth) -> None:
    truth = IncidentTruth(make_truth("b | n/Pod/x-.*\na* | n/Pod/=x\nz | n/Pod/=y").causes, AA)
    entity = parse_entity("n/Pod/x")
    assert [group.group_id for group in truth.matches(entity)] == ["b", "a"]
    assert [group.group_id for group in truth.matches(entity)] == ["b", "a"]  # remembered
    assert truth.root_hits(entity) == ["a"]


def test_incidents_are_prepared_one_by_one(make_truth: MakeTruth) -> None:
    truth = make_truth("a* | n/Pod/=x", "first")
    assert list(truths_by_incident(truth.causes, AA)) == ["first"]
    assert truths_by_incident(truth.causes.head(0), AA) == {}


@pytest.mark.parametrize(
    ("hits", "found"),
    [
        ([], 0),
        ([[]], 0),
        ([["a"]], 1),
        ([["a"], ["a"]], 1),
        ([["a", "b"]], 1),  # one entity stands for one cause
        ([["a", "b"], ["a"]], 2),
        ([["a"], ["a", "b"]], 2),
        ([["a", "b"], ["a"], ["b", "c"]], 3),
        ([["a", "b", "c"], ["a"], ["a"]], 2),
    ],
)
def test_the_largest_matching(hits: list[list[str]], found: int) -> None:
    assert len(largest_matching(hits)) == found


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), unique=True), max_size=4))
def test_the_matching_is_the_largest_by_brute_force(hits: list[list[str]]) -> None:
    found = largest_matching(hits)
    assert all(name in hits[position] for name, position in found.items())
    assert len(set(found.values())) == len(found)
    choices = itertools.product(*[[*sets, None] for sets in hits])
    best = max(len(set(c) - {None}) for c in choices if len(set(c) - {None}) == len([x for x in c if x]))
    assert len(found) == best
