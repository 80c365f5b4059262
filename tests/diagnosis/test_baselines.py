"""Answers without an investigation: what each may know of the incident that it answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faultbook.diagnosis import Truth, baselines, read_truth, score
from faultbook.diagnosis.baselines import ALERTING, CONSTANT, EVERYTHING, FIRST_SOURCE, ORACLE, example_name
from faultbook.diagnosis.patterns import compile_pattern
from faultbook.diagnosis.truth import Document, assemble, read_v1

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"
MODELS = [CONSTANT, ALERTING, FIRST_SOURCE, EVERYTHING, ORACLE]


def truth(**incidents: dict[str, Any]) -> Truth:
    documents = []
    for name, payload in incidents.items():
        document = Document(name, "made up", "")
        read_v1(payload, document)
        documents.append(document)
    return assemble(documents)


def incident(cause: str, *others: str, **rest: Any) -> dict[str, Any]:
    groups = [{"id": f"{n}-1", "kind": "Pod", "name": n, "root_cause": n == cause} for n in (cause, *others)]
    return {"groups": groups, **rest}


def answers(given: Truth, model: str) -> dict[str, list[str]]:
    made = baselines(given)
    named = made.submissions[made.submissions["model"] == model]
    listed = {name: list(part["name"]) for name, part in named.groupby("incident_id", sort=False)}
    return {name: listed.get(name, []) for name in given.incidents["incident_id"]}


@cache
def shipped(version: str = "v1") -> Truth:
    return read_truth(INCIDENTS / f"itbench-{version}")


@cache
def shipped_scores(version: str = "v1") -> pd.DataFrame:
    made = baselines(shipped(version))
    return score(made.submissions, made.runs, shipped(version))


# ---- the constant answer ----------------------------------------------------------------------------------------


def test_an_incidents_own_cause_never_helps_it() -> None:
    two = truth(one=incident("a"), two=incident("b"))
    assert answers(two, CONSTANT) == {"one": ["b"], "two": ["a"]}
    made = baselines(two)
    scored = score(made.submissions, made.runs, two)
    assert scored.loc[scored["model"] == CONSTANT, "score"].tolist() == [0, 0]


def test_the_most_frequent_cause_elsewhere() -> None:
    five = truth(**{f"i{n}": incident(cause) for n, cause in enumerate("aabbb")})
    # an a sees one other a and three b; a b sees two a and two other b, and a tie goes to the name that is first
    assert answers(five, CONSTANT) == {"i0": ["b"], "i1": ["b"], "i2": ["a"], "i3": ["a"], "i4": ["a"]}


def test_a_tie_does_not_depend_on_the_order_of_incidents() -> None:
    listed = {"x": incident("a"), "y": incident("b"), "z": incident("c")}
    forth = answers(truth(**listed), CONSTANT)
    back = answers(truth(**dict(reversed(listed.items()))), CONSTANT)
    assert forth == back == {"x": ["b"], "y": ["a"], "z": ["a"]}


def test_a_single_incident_has_no_elsewhere() -> None:
    one = truth(only=incident("a"))
    assert answers(one, CONSTANT) == {"only": []}
    runs = baselines(one).runs
    assert runs.set_index("model").loc[CONSTANT, "status"] == "empty"


def test_the_constant_answer_on_the_public_incidents() -> None:
    # Counted in the converted file, not taken from its scores: flagd-config is the cause of most incidents, and
    # elsewhere it is the answer.
    named = pd.Series([names[0] for names in answers(shipped(), CONSTANT).values()])
    assert named.unique().tolist() == ["flagd-config"]
    causes = shipped().causes
    roots = causes[causes["is_root_cause"] & (causes["name"] == "flagd-config")]["incident_id"].nunique()
    scored = shipped_scores()
    hits = scored[(scored["model"] == CONSTANT) & (scored["recall"] > 0)]
    assert roots > 5
    assert set(causes[causes["is_root_cause"] & (causes["name"] == "flagd-config")]["incident_id"]) <= set(
        hits["incident_id"]
    )


# ---- the others -------------------------------------------------------------------------------------------------

SMALL = incident(
    "config",
    "api",
    "web",
    propagations=[{"source": "config-1", "target": "api-1"}, {"source": "api-1", "target": "web-1"}],
    alerts=[{"id": "A", "group_id": "web-1"}, {"id": "B", "group_id": "web-1"}, {"id": "C", "group_id": "api-1"}],
)


def test_what_each_names() -> None:
    small = truth(i=SMALL)
    assert {model: answers(small, model)["i"] for model in MODELS} == {
        CONSTANT: [],
        ALERTING: ["api", "web"],
        FIRST_SOURCE: ["config"],
        EVERYTHING: ["config", "api", "web"],
        ORACLE: ["config"],
    }


def test_everything_named_has_full_recall_and_little_precision() -> None:
    made = baselines(truth(i=SMALL))
    scored = score(made.submissions, made.runs, truth(i=SMALL)).set_index("model")["score"]
    assert scored[EVERYTHING] == pytest.approx(1 / 3)
    assert scored[ORACLE] == 1
    assert scored[ALERTING] == 0


def test_without_edges_or_alerts_the_answer_is_empty() -> None:
    runs = baselines(truth(i=incident("a"))).runs.set_index("model")["status"]
    assert runs[FIRST_SOURCE] == runs[ALERTING] == "empty"
    assert runs[ORACLE] == "scored"


def test_a_first_source_that_dangles_names_nothing() -> None:
    payload = incident("a", propagations=[{"source": "ghost-1", "target": "a-1"}, {"source": "a-1", "target": "a-1"}])
    assert answers(truth(i=payload), FIRST_SOURCE) == {"i": []}


def test_one_run_for_each_incident() -> None:
    runs = shipped_scores()
    assert runs.groupby("model", sort=False)["incident_id"].nunique().to_dict() == dict.fromkeys(MODELS, 61)


def test_an_incident_without_groups_has_runs_that_cannot_be_graded() -> None:
    document = Document("none", "made up", "")
    made = baselines(replace(assemble([document])))
    assert set(made.runs["status"]) == {"empty"}
    assert set(score(made.submissions, made.runs, assemble([document]))["status"]) == {"ungradeable"}


def test_a_found_entity_is_named_once() -> None:
    payload = {"groups": [{"id": i, "kind": "Pod", "name": "a", "root_cause": i == "x"} for i in "xyz"]}
    assert answers(truth(i=payload), EVERYTHING) == {"i": ["a"]}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_oracle_finds_every_cause_of_the_public_incidents(version: str) -> None:
    scored = shipped_scores(version)
    oracle = scored[(scored["model"] == ORACLE) & (scored["status"] != "ungradeable")]
    assert oracle.loc[oracle["score"] != 1, "incident_id"].tolist() == []
    assert set(scored.loc[scored["status"] == "ungradeable", "incident_id"]) == (
        {"scenario-37"} if version == "v2" else set()  # a false alarm: v2 lists no entity
    )


@pytest.mark.parametrize("incident_id", ["scenario-1", "scenario-38", "scenario_2"])
def test_only_the_oracle_looks_at_the_answer(incident_id: str) -> None:
    given = shipped()
    causes = given.causes.copy()
    own = causes["incident_id"] == incident_id
    rng = np.random.default_rng(0)
    for name in ("is_root_cause", "role"):
        causes.loc[own, name] = np.roll(causes.loc[own, name].to_numpy(), int(rng.integers(1, own.sum())))
    changed = replace(given, causes=causes)
    assert not causes.equals(given.causes)

    def told(source: Truth) -> pd.DataFrame:
        named = baselines(source).submissions
        return named[(named["incident_id"] == incident_id) & (named["model"] != ORACLE)].reset_index(drop=True)

    pd.testing.assert_frame_equal(told(changed), told(given))


# ---- names made from patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("frontend-.*", "frontend"),
        (r"cart\b", "cart"),
        (".*adservice", "adservice"),
        ("*.*", "hint"),
        ("^ad$", "ad"),
        ("otel-demo", "otel-demo"),
        ("(?:ad|cart)", None),
        (r"a\\b", None),
        # public v1, scenarios 14 and 5; the second is the name of a span, and a name can be made
        ("ad-.*_Ad_GetAds", "something"),
    ],
)
def test_a_name_is_made_or_none(pattern: str, name: str | None) -> None:
    made = example_name(None, pattern, "hint")
    if name == "something":
        assert made is not None
        assert compile_pattern(pattern).fullmatch(made)
    elif pattern != "(?:ad|cart)":
        assert made == name
    else:
        assert made in (None, "ad", "cart")


def test_an_exact_name_wins() -> None:
    assert example_name("real", "pattern-.*") == "real"
    assert example_name(None, None) is None
