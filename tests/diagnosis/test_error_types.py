"""Each error has one label, and the labelled false positives are those that the score counts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import POLICIES, SubmissionTables, Truth, baselines, error_types, read_truth, score
from faultbook.diagnosis.error_types import ERROR_COLUMNS, LABELS
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.tables import Runs, Submissions, typed

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"
EVERY = replace(POLICIES["itbench-aa"], repeated_false_positives="every")


def group(name: str, kind: str = "Service", namespace: str = "shop", **rest: Any) -> dict[str, Any]:
    return {"id": f"{name}-id", "kind": kind, "namespace": namespace, "name": name, **rest}


# config → api → web (alerts); chaos → config, gate → config; net: chaos off the path; cost: alerts off the path
GROUPS = [
    group("config", "ConfigMap", root_cause=True),
    group("twin", "Secret"),
    group("api"),
    group("web"),
    group("gate"),
    group("storm", "NetworkChaos", "chaos-mesh"),
    group("net", "PodChaos", "chaos-mesh"),
    group("cost"),
    group("idle"),
]
PROPAGATIONS = [("config", "api"), ("api", "web"), ("gate", "config"), ("storm", "config")]
ALERTS = ["web", "cost", "gate"]


def truth(
    groups: list[dict[str, Any]] | None = None,
    edges: list[tuple[str, str]] | None = None,
    alerts: list[str] | None = None,
    aliases: list[list[str]] | None = None,
) -> Truth:
    document = Document("i", "made up", "")
    chosen = PROPAGATIONS if edges is None else edges
    payload = {
        "groups": GROUPS if groups is None else groups,
        "aliases": [["config-id", "twin-id"]] if aliases is None else aliases,
        "propagations": [{"source": f"{s}-id", "target": f"{t}-id"} for s, t in chosen],
        "alerts": [{"id": "A", "group_id": f"{name}-id"} for name in (ALERTS if alerts is None else alerts)],
    }
    read_v1(payload, document)
    return assemble([document])


def tables(entities: list[str], status: str = "scored", stages: list[str] | None = None) -> tuple[Any, Any]:
    """A run that submits "namespace/Kind/name" entities; "Kind/name" and "name" leave parts out."""
    rows = []
    for position, text in enumerate(entities):
        namespace, kind, name = [None, None, *text.split("/")][-3:]
        stage = stages[position] if stages else "confirmed"
        rows.append(("m", "i", 0, position, text, namespace, kind, name, None, stage))
    return typed(rows, Submissions), typed([("m", "i", 0, status, None, None)], Runs)


def labels(*entities: str, policy: Any = "itbench-aa", **given: Any) -> dict[str, str]:
    frame = error_types(*tables(list(entities)), truth(**given), policy)
    wrong = frame[frame["error"] == "false positive"]
    return dict(zip(wrong["entity"], wrong["label"], strict=True))


CAUSE = "shop/ConfigMap/config"


@pytest.mark.parametrize(
    ("entity", "label"),
    [
        ("shop/Secret/twin", "duplicate of a found cause"),
        ("shop/Service/api", "downstream symptom"),
        ("shop/Service/web", "downstream symptom"),  # alerts too; downstream comes first
        ("shop/Service/gate", "upstream on the path"),  # alerts too
        ("chaos-mesh/NetworkChaos/storm", "upstream on the path"),  # a mechanism too
        ("chaos-mesh/PodChaos/net", "fault-injection mechanism"),
        ("chaos-mesh/StressChaos/elsewhere", "fault-injection mechanism"),  # not in the truth
        ("shop/Workflow/elsewhere", "fault-injection mechanism"),
        ("chaos-mesh/Deployment/chaos-controller-manager", "fault-injection mechanism"),
        ("shop/Service/cost", "alerting entity"),
        ("shop/Service/idle", "in the truth but off the path"),
        ("shop/Service/elsewhere", "not in the truth"),
        ("other/Service/api", "not in the truth"),
    ],
)
def test_each_label(entity: str, label: str) -> None:
    assert labels(CAUSE, entity) == {entity: label}


def test_every_label_is_reached_above() -> None:
    entities = [
        *(CAUSE, "shop/Secret/twin", "shop/Service/api", "shop/Service/gate", "chaos-mesh/PodChaos/net"),
        *("shop/Service/cost", "shop/Service/idle", "shop/Service/elsewhere"),
    ]
    assert tuple(labels(*entities).values()) == LABELS


def test_on_a_loop_downstream_comes_before_upstream() -> None:
    edges = [("config", "api"), ("api", "config")]
    assert labels(CAUSE, "shop/Service/api", edges=edges) == {"shop/Service/api": "downstream symptom"}


def test_a_mechanism_is_known_by_the_group_that_it_stands_for() -> None:
    # the submission leaves out namespace and kind; the truth says that "net" is a PodChaos
    assert labels(CAUSE, "net") == {"net": "fault-injection mechanism"}


def test_a_chaos_resource_that_is_the_cause_is_no_error() -> None:
    groups = [group("storm", "NetworkChaos", "chaos-mesh", root_cause=True), group("api")]
    given = {"groups": groups, "edges": [("storm", "api")], "alerts": ["api"], "aliases": []}
    assert labels("chaos-mesh/NetworkChaos/storm", **given) == {}
    assert labels("chaos-mesh/Schedule/storm", **given) == {}  # what spawned it is the same entity
    assert labels("chaos-mesh/NetworkChaos/storm", "chaos-mesh/NetworkChaos/other", **given) == {
        "chaos-mesh/NetworkChaos/other": "fault-injection mechanism"
    }


def test_a_duplicate_is_one_only_of_a_cause_that_was_found() -> None:
    frame = error_types(*tables(["shop/Secret/twin"]), truth())
    assert frame.empty  # the alias alone finds the cause


def test_omissions_have_their_cause_set() -> None:
    groups = [
        group("config", "ConfigMap", root_cause=True),
        group("twin", "Secret"),
        group("quota", "ResourceQuota", root_cause=True),
        group("api"),
    ]
    frame = error_types(*tables(["shop/Service/api"]), truth(groups=groups, edges=[("config", "api")], alerts=[]))
    assert frame[["error", "label", "cause_set"]].values.tolist() == [
        ["false positive", "downstream symptom", "api-id"],
        ["omission", "omission", "config-id"],
        ["omission", "omission", "quota-id"],
    ]
    omitted = frame[frame["error"] == "omission"]
    assert omitted[["position", "entity"]].isna().all(axis=None)


def test_an_empty_answer_omits_every_cause() -> None:
    frame = error_types(*tables([], status="empty"), truth())
    assert frame["cause_set"].tolist() == ["config-id"]


@pytest.mark.parametrize("status", ["malformed", "timed_out", "missing", "ungradeable"])
def test_a_run_without_an_answer_has_no_errors(status: str) -> None:
    frame = error_types(*tables([], status=status), truth())
    assert frame.empty
    assert list(frame.columns) == ERROR_COLUMNS


def test_an_incident_without_a_cause_has_no_errors() -> None:
    groups = [group("api")]
    assert error_types(*tables(["shop/Service/api"]), truth(groups=groups, edges=[], alerts=[], aliases=[])).empty


def test_only_what_is_confirmed_can_be_wrong() -> None:
    frame = error_types(*tables(["shop/Service/api", CAUSE], stages=["suspected", "confirmed"]), truth())
    assert frame.empty


def test_the_position_is_that_of_the_submission() -> None:
    stages = ["found", "suspected", "confirmed", "confirmed"]
    entities = ["shop/Service/idle", "shop/Service/cost", CAUSE, "shop/Service/api"]
    frame = error_types(*tables(entities, stages=stages), truth())
    assert frame[["position", "entity"]].values.tolist() == [[3, "shop/Service/api"]]


def test_the_policy_stands_in_every_row() -> None:
    frame = error_types(*tables([CAUSE, "shop/Service/api"]), truth(), "ibm")
    assert frame["policy"].tolist() == ["ibm"]


NAMES = [
    *(CAUSE, "shop/Secret/twin", "shop/Service/api", "shop/Service/web", "shop/Service/gate", "shop/Service/cost"),
    *("chaos-mesh/PodChaos/net", "shop/Service/elsewhere", "Service/api", "config", "net"),
]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(NAMES), max_size=8))
def test_there_are_as_many_labels_as_false_positives(entities: list[str]) -> None:
    given_tables = tables(entities, status="scored" if entities else "empty")
    frame = error_types(*given_tables, truth(), EVERY)
    wrong = frame[frame["error"] == "false positive"]
    row = score(*given_tables, truth(), EVERY).iloc[0]
    duplicates = wrong["label"] == LABELS[0]
    assert (~duplicates).sum() == row["fp"]
    assert len(wrong) == row["n_submitted"] - row["n_found"]
    assert (frame["error"] == "omission").sum() == row["n_causes"] - row["n_found"]
    assert set(wrong["label"]) <= set(LABELS)
    # where a further hit is a false positive, duplicates count as well
    harbor = replace(EVERY, repeated_hits="extra_is_fp")
    assert len(wrong) == score(*given_tables, truth(), harbor).iloc[0]["fp"]


@cache
def shipped() -> tuple[Truth, SubmissionTables]:
    known = read_truth(INCIDENTS / "itbench-v1")
    return known, baselines(known)


@pytest.mark.parametrize("policy", ["itbench-aa", "harbor-adapter"])
def test_the_counts_agree_on_the_public_incidents(policy: str) -> None:
    known, made = shipped()
    chosen = replace(POLICIES[policy], repeated_false_positives="every", repeated_hits="extra_is_fp")
    wrong = error_types(made.submissions, made.runs, known, chosen)
    labelled = wrong[wrong["error"] == "false positive"].groupby(["model", "incident_id"]).size()
    scored = score(made.submissions, made.runs, known, chosen).set_index(["model", "incident_id"])["fp"]
    pd.testing.assert_series_equal(
        labelled.astype("Int64"), scored[scored > 0].sort_index(), check_names=False, check_index_type=False
    )


def test_the_oracle_makes_no_error() -> None:
    known, made = shipped()
    wrong = error_types(made.submissions, made.runs, known)
    assert "baseline: oracle" not in set(wrong["model"])
