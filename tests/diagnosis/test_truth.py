"""From a truth document to tables: alias classes, roles, edges, and the oddities that are noted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import Truth
from faultbook.diagnosis.truth import INCIDENT_COLUMNS, NOTE_COLUMNS, Document, assemble, cause_sets, read_v1, read_v2
from faultbook.tables import Causes, Edges

MakeTruth = Callable[..., Truth]
ABC = "a* | n/Pod/a-.*\nb | n/Service/b\\b\nc | n/ConfigMap/=c"


def _notes(truth: Truth) -> dict[str, list[str]]:
    return truth.notes.groupby("check", sort=False)["found"].agg(list).to_dict()


def _read(payload: dict[str, Any]) -> Truth:
    document = Document("i", "test", "0")
    read_v1(payload, document)
    return assemble([document])


def test_a_v1_truth(make_truth: MakeTruth) -> None:
    truth = make_truth(
        ABC,
        alerts=[{"id": "x", "group_id": "b"}, {"id": "y", "group_id": "b"}],
        propagations=[{"source": "a", "target": "b", "condition": "slow", "effect": ""}],
    )
    assert truth.causes.drop(columns=["incident_id", "truth_sha256"]).astype(object).where(
        truth.causes.drop(columns=["incident_id", "truth_sha256"]).notna(), None
    ).to_dict("split")["data"] == [
        ["a", "Pod", "n", None, "a-.*", True, "a", "cause", 0],
        ["b", "Service", "n", None, "b\\b", False, "b", "alerting", 2],
        ["c", "ConfigMap", "n", "c", None, False, "c", "listed", 0],
    ]
    assert truth.edges.to_dict("records") == [
        {"incident_id": "i-1", "source": "a", "target": "b", "condition": "slow", "effect": ""}
    ]
    assert truth.incidents.to_dict("records") == [
        {"incident_id": "i-1", "source": "test", "truth_sha256": "0" * 64, "n_groups": 3, "n_cause_sets": 1}
    ]
    assert truth.notes.empty
    assert list(truth.notes.columns) == NOTE_COLUMNS
    assert list(truth.incidents.columns) == INCIDENT_COLUMNS


def test_no_document_is_empty_tables() -> None:
    truth = assemble([])
    assert list(truth.causes.columns) == list(Causes.to_schema().columns)
    assert list(truth.edges.columns) == list(Edges.to_schema().columns)
    assert truth.incidents.empty


@pytest.mark.parametrize("lists", list(itertools.permutations([["a", "b"], ["b", "c"], ["d", "e"], ["e"]])))
def test_alias_lists_are_closed_in_any_order(make_truth: MakeTruth, lists: tuple[list[str], ...]) -> None:
    groups = "\n".join(f"{name} | n/Pod/={name}" for name in "abcdef")
    truth = make_truth(groups, aliases=list(lists))
    assert truth.causes["cause_set"].tolist() == ["a", "a", "a", "d", "d", "f"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), max_size=5), st.randoms())
def test_alias_classes_do_not_depend_on_order(make_truth: MakeTruth, lists: list[list[str]], random: Any) -> None:
    groups = "\n".join(f"{name} | n/Pod/={name}" for name in "abcdef")
    shuffled = [random.sample(members, len(members)) for members in random.sample(lists, len(lists))]
    first, second = (make_truth(groups, aliases=given_lists).causes for given_lists in (lists, shuffled))
    assert first["cause_set"].tolist() == second["cause_set"].tolist()
    named = dict(zip(first["group_id"], first["cause_set"], strict=True))
    assert all(len({named[member] for member in members}) <= 1 for members in lists)


def test_overlapping_aliases_are_noted_and_dangling_ones_join_nothing(make_truth: MakeTruth) -> None:
    truth = make_truth(ABC, aliases=[["a", "b"], ["b", "gone"], ["c"]])
    assert truth.causes["cause_set"].tolist() == ["a", "a", "c"]
    assert _notes(truth) == {"overlapping aliases": ["b is in lists 0 and 1"], "dangling alias": ["gone"]}


def test_an_id_that_no_group_has_still_joins_two_lists(make_truth: MakeTruth) -> None:
    # transitive closure over ids, whether or not the id between them is listed
    truth = make_truth(ABC, aliases=[["a", "gone"], ["gone", "b"]])
    assert truth.causes["cause_set"].tolist() == ["a", "a", "c"]


def test_no_aliases_at_all(make_truth: MakeTruth) -> None:
    for rest in ({}, {"aliases": []}, {"aliases": None}, {"aliases": [[]]}, {"aliases": [["a"], ["b"]]}):
        assert make_truth(ABC, **rest).causes["cause_set"].tolist() == ["a", "b", "c"]


def test_a_repeated_group_id_keeps_the_first(payload: Callable[..., dict[str, Any]]) -> None:
    # Scenario-18
    truth = _read(payload("a* | n/Pod/=first\na | n/Service/=second\nb | n/Pod/=b"))
    assert truth.causes["name"].tolist() == ["first", "b"]
    assert truth.incidents["n_groups"].tolist() == [2]
    assert _notes(truth) == {"duplicate id": ["a"]}
    assert truth.notes["place"].tolist() == ["groups[1].id"]


def test_a_second_group_of_that_id_does_not_hide_a_cause(payload: Callable[..., dict[str, Any]]) -> None:
    # the first is kept; that the second was the root cause must at least be said louder than "info"
    truth = _read(payload("a | n/Pod/=first\na* | n/Service/=second\nb* | n/Pod/=b"))
    assert truth.notes["severity"].tolist() in (["warning"], ["error"])


def test_edges_that_dangle_loop_or_repeat_are_kept_and_noted(make_truth: MakeTruth) -> None:
    # reference 3.4: dangling in 31, 33, 91; self-loop in 40; duplicates in 1
    ends = [("a", "b"), ("a", "b"), ("b", "b"), ("gone", "b"), ("a", "lost")]
    truth = make_truth(ABC, propagations=[{"source": source, "target": target} for source, target in ends])
    assert list(zip(truth.edges["source"], truth.edges["target"], strict=True)) == ends
    assert _notes(truth) == {
        "duplicate edge": ["a → b"],
        "self-loop": ["b"],
        "dangling edge": ["gone", "lost"],
    }
    assert truth.causes["role"].tolist() == ["cause", "path", "listed"]


def test_an_edge_without_an_end_is_left_out_and_noted(make_truth: MakeTruth) -> None:
    truth = make_truth(ABC, propagations=[{"source": "a"}, {"source": None, "target": "b"}, {}])
    assert truth.edges.empty
    assert truth.notes["check"].tolist() == ["edge without an end"] * 3


def test_alerts_without_or_with_an_unknown_group(make_truth: MakeTruth) -> None:
    truth = make_truth(ABC, alerts=[{"id": "x"}, {"id": "y", "group_id": "gone"}, {"id": "z", "group_id": "c"}])
    assert truth.causes["n_alerts"].tolist() == [0, 0, 1]
    assert _notes(truth) == {"alert without group": ["x"], "dangling alert": ["gone"]}


def test_fault_ids_are_checked_but_not_scored(make_truth: MakeTruth) -> None:
    fault = [{"entity": {"group_id": "gone"}}, {"entity": {"group_id": "a"}}, {"entity": {"name": "x"}}, {}]
    truth = make_truth(ABC, fault=fault)
    assert _notes(truth) == {"dangling fault": ["gone"]}
    assert truth.causes["is_root_cause"].tolist() == [True, False, False]


def test_two_roots_are_two_cause_sets_and_an_alias_makes_them_one(make_truth: MakeTruth) -> None:
    groups = "a* | n/Pod/=a\nb* | n/Pod/=b"
    assert make_truth(groups).incidents["n_cause_sets"].tolist() == [2]
    assert make_truth(groups, aliases=[["a", "b"]]).incidents["n_cause_sets"].tolist() == [1]


@pytest.mark.parametrize("namespace", [None, "", " "])
def test_a_namespace_that_says_nothing_is_missing(payload: Callable[..., dict[str, Any]], namespace: object) -> None:
    given_truth = payload("a* | n/Pod/=a\nb | -/Namespace/=n\nc | -/Node/=n")
    given_truth["groups"][0]["namespace"] = namespace
    truth = _read(given_truth)
    assert truth.causes["namespace"].isna().all()
    assert truth.notes["place"].tolist() == ["groups[0].namespace"]  # namespaces and nodes have none


def test_a_backspace_is_a_word_boundary(payload: Callable[..., dict[str, Any]]) -> None:
    given_truth = payload("a* | n/Service/x")
    given_truth["groups"][0]["filter"] = ["frontend\b"]
    truth = _read(given_truth)
    assert truth.causes["pattern"].tolist() == [r"frontend\b"]
    assert _notes(truth) == {"backspace": ["frontend<backspace>"]}


@pytest.mark.parametrize("character", ["\0", "\x07", "\f", "\x1b", "\t"])
def test_another_control_character_in_a_filter_is_noted(payload: Callable[..., dict[str, Any]], character: str) -> None:
    # reference 3.4: "detect control char in filter, warn"; "\f" and "\t" too come from double quotes
    given_truth = payload("a* | n/Service/x")
    given_truth["groups"][0]["filter"] = [f"frontend{character}"]
    assert not _read(given_truth).notes.empty


@pytest.mark.parametrize(
    ("given_filter", "pattern"),
    [
        (["x-.*"], "x-.*"),
        ("x-.*", "x-.*"),  # reference 3.2: third parties accept a bare string
        (["a", "b"], "(?:a)|(?:b)"),
        ([], None),
        (None, None),
    ],
)
def test_filters(payload: Callable[..., dict[str, Any]], given_filter: object, pattern: str | None) -> None:
    given_truth = payload("a* | n/Service/=x")
    given_truth["groups"][0]["filter"] = given_filter
    found = _read(given_truth).causes["pattern"].iloc[0]
    assert (None if pd.isna(found) else found) == pattern


def test_several_filters_are_noted_and_each_counts(make_truth: MakeTruth, payload: Callable[..., Any]) -> None:
    from faultbook.diagnosis.patterns import compile_pattern

    given_truth = payload("a* | n/Service/x")
    given_truth["groups"][0]["filter"] = [r"frontend\b", "cart-.*"]
    truth = _read(given_truth)
    assert list(_notes(truth)) == ["several filters"]
    pattern = compile_pattern(truth.causes["pattern"].iloc[0])
    # each of them means what it would mean alone
    for workload in ("frontend", "cart"):
        assert pattern.anchored(f"{workload}-6d5f7c9b8d-x2x7k", workload)
        assert pattern.anchored(workload, workload)
    assert not pattern.anchored("valkey-cart", "valkey-cart")
    assert not pattern.anchored("cart-proxy-5d4f8f7b9c-zq8kp", "cart-proxy")


def test_a_group_that_nothing_can_match_is_noted(payload: Callable[..., dict[str, Any]]) -> None:
    given_truth = payload("a* | n/Service/=x")
    del given_truth["groups"][0]["name"]
    truth = _read(given_truth)
    assert truth.notes[["check", "severity"]].to_numpy().tolist() == [["no name or filter", "error"]]
    assert truth.incidents["n_cause_sets"].tolist() == [1]


@pytest.mark.parametrize("missing", ["id", "kind"])
def test_a_group_needs_an_id_and_a_kind(payload: Callable[..., dict[str, Any]], missing: str) -> None:
    given_truth = payload("a* | n/Service/=x\nb | n/Service/=y")
    del given_truth["groups"][1][missing]
    with pytest.raises(ValueError, match=rf"groups\[1\] has no {missing}"):
        _read(given_truth)


# ---- v2 -----------------------------------------------------------------------------------------------------------


def _entity(kind: str, name: str, **metadata: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def _read_v2(*entities: Any) -> Truth:
    document = Document("i", "test", "0")
    read_v2({"entities": list(entities)}, document)
    return assemble([document])


def test_each_entity_of_a_v2_truth_is_a_cause() -> None:
    # Scenario-102, reference 3.3 (8)
    truth = _read_v2(
        _entity("Deployment", "ad", namespace="otel-demo"),
        _entity("ResourceQuota", "strict-resource-quota", namespace="otel-demo"),
    )
    assert truth.causes["group_id"].tolist() == [
        "otel-demo/Deployment/ad",
        "otel-demo/ResourceQuota/strict-resource-quota",
    ]
    assert truth.causes["is_root_cause"].all()
    assert truth.causes["role"].tolist() == ["cause", "cause"]
    assert truth.incidents["n_cause_sets"].tolist() == [2]


def test_a_v2_entity_listed_twice_counts_once() -> None:
    # Scenarios 12 to 15
    truth = _read_v2(*[_entity("ConfigMap", "flagd-config", namespace="otel-demo")] * 2)
    assert truth.incidents["n_cause_sets"].tolist() == [1]
    assert _notes(truth) == {"duplicate entity": ["otel-demo/ConfigMap/flagd-config"]}


def test_no_v2_entity_is_no_cause() -> None:
    truth = _read_v2()
    assert truth.causes.empty
    assert truth.incidents[["incident_id", "n_cause_sets"]].to_numpy().tolist() == [["i", 0]]
    assert _notes(truth) == {"no cause": ["[]"]}


def test_a_cluster_scoped_v2_entity_has_no_namespace() -> None:
    truth = _read_v2(_entity("Namespace", "otel-demo"))
    assert truth.causes["group_id"].tolist() == ["Namespace/otel-demo"]
    assert truth.causes["namespace"].isna().all()


@pytest.mark.parametrize(
    "entity",
    [{}, {"kind": "Pod"}, {"kind": "Pod", "metadata": {}}, {"metadata": {"name": "x"}}, {"kind": "Pod", "metadata": 5}],
)
def test_a_v2_entity_needs_a_kind_and_a_name(entity: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"entities\[0\] has no kind or no metadata.name"):
        _read_v2(entity)


# ---- parts of a truth ---------------------------------------------------------------------------------------------


def test_one_incident_alone(shipped: Callable[[str], Truth]) -> None:
    truth = shipped("v1")
    one = truth.incident("scenario-52")
    for frame in (one.causes, one.edges, one.incidents):
        assert set(frame["incident_id"]) == {"scenario-52"}
        assert frame.index.tolist() == list(range(len(frame)))
    assert len(one.incidents) == 1
    assert truth.incident("no such").incidents.empty


def test_cause_sets_hold_the_victims_that_the_truth_puts_in_them(shipped: Callable[[str], Truth]) -> None:
    truth = shipped("v1")
    found = list(cause_sets(truth.causes))
    assert len(found) == truth.incidents["n_cause_sets"].sum()
    members = next(part for incident, _, part in found if incident == "scenario-1")
    assert {"load-generator-pod-1", "frontend-proxy-service-1"} <= set(members["group_id"])  # reference 6.4
