"""The same submissions under other judges: what moves, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from faultbook.diagnosis import POLICIES, Policy, Sensitivity, Truth, baselines, read_truth, score, sensitivity
from faultbook.diagnosis.sensitivity import align
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.errors import FaultbookError
from faultbook.style import figure_style
from faultbook.tables import Runs, Submissions, typed

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}), figure_style():
        yield
    plt.close("all")


def truth(**causes: str) -> Truth:
    """Incidents with one cause each and a Service that is none; "_" in a keyword stays."""
    documents = []
    for name, cause in causes.items():
        document = Document(name, "made up", "")
        listed = [{"id": n, "kind": "Pod", "name": n, "root_cause": n in cause.split()} for n in (*cause.split(), "x")]
        read_v1({"groups": listed if cause else [{"id": "x", "kind": "Pod", "name": "x"}]}, document)
        documents.append(document)
    return assemble(documents)


def tables(answers: dict[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = [
        ("m", incident, 0, position, name, None, "Pod", name, None, "confirmed")
        for incident, names in answers.items()
        for position, name in enumerate(names.split())
    ]
    return typed(rows, Submissions), typed([("m", incident, 0, "scored", None, None) for incident in answers], Runs)


@cache
def public() -> tuple[Truth, Any, Sensitivity]:
    first, second = (read_truth(INCIDENTS / f"itbench-{version}") for version in ("v1", "v2"))
    made = baselines(first)
    return first, made, sensitivity(made.submissions, made.runs, {"v1": first, "v2": second})


def test_the_reference_has_change_zero() -> None:
    _, _, result = public()
    reference = result.summary[(result.summary["truth"] == "v1") & (result.summary["policy"] == "itbench-aa")]
    assert reference["change_pp"].tolist() == [0] * 5
    changes = result.changes
    assert changes[(changes["truth"] == "v1") & (changes["policy"] == "itbench-aa")].empty


def test_every_setting_has_a_row_for_every_model() -> None:
    _, _, result = public()
    settings = result.summary.groupby(["truth", "policy"], sort=False).size()
    assert settings.index.tolist() == [(version, policy) for version in ("v1", "v2") for policy in POLICIES]
    assert set(settings) == {5}
    assert result.summary_frame() is result.summary


def test_changes_are_the_differences_of_the_means() -> None:
    _, _, result = public()
    summary = result.summary
    reference = summary[(summary["truth"] == "v1") & (summary["policy"] == "itbench-aa")].set_index("model")["score"]
    expected = 100 * (summary["score"] - summary["model"].map(reference))
    assert summary["change_pp"].tolist() == pytest.approx(expected.tolist())


def test_changes_are_exactly_the_runs_that_moved_each_with_a_reason() -> None:
    first, made, result = public()
    keys = ["model", "incident_id", "repeat"]
    before = score(made.submissions, made.runs, first).set_index(keys)["score"].astype(float)
    for policy in POLICIES:
        after = score(made.submissions, made.runs, first, policy).set_index(keys)["score"].astype(float)
        moved = set(before.index[(before - after).abs() > 1e-9])
        listed = result.changes[(result.changes["truth"] == "v1") & (result.changes["policy"] == policy)]
        assert set(listed[keys].itertuples(index=False, name=None)) == moved
        assert len(listed) == len(moved)
    assert (result.changes["why"].str.len() > 0).all()


def test_the_four_published_conventions() -> None:
    # root-cause.md, 2.4: truth {svc-a ~ pod-a-1}, {db}; svc-a, pod-a-1, db, x gives 0.667, 0.75, 0.50 and F1 0.857
    document = Document("i", "made up", "")
    groups = [
        {"id": "svc-a", "kind": "Service", "name": "svc-a", "root_cause": True},
        {"id": "pod-a-1", "kind": "Pod", "name": "pod-a-1"},
        {"id": "db", "kind": "Pod", "name": "db", "root_cause": True},
    ]
    read_v1({"groups": groups, "aliases": [["svc-a", "pod-a-1"]]}, document)
    kinds = {"svc-a": "Service", "pod-a-1": "Pod", "db": "Pod", "x": "Pod"}
    rows = [
        ("m", "i", 0, position, name, None, kind, name, None, "confirmed")
        for position, (name, kind) in enumerate(kinds.items())
    ]
    runs = typed([("m", "i", 0, "scored", None, None)], Runs)
    result = sensitivity(typed(rows, Submissions), runs, assemble([document]))
    scores = result.summary.set_index("policy")["score"]
    assert scores["itbench-aa"] == pytest.approx(2 / 3)
    assert scores["starharness"] == pytest.approx(3 / 4)
    assert scores["harbor-adapter"] == pytest.approx(1 / 2)
    assert scores["ibm"] == pytest.approx(2 * 0.75 / 1.75)
    reasons = result.changes.set_index("policy")["why"]
    assert reasons["starharness"] == "true positives 2 → 3"
    assert reasons["harbor-adapter"] == "false positives 1 → 2"


def test_another_formula_is_a_reason() -> None:
    result = sensitivity(*tables({"i": "a x"}), truth(i="a"), ["itbench-aa", "ibm"])
    assert result.changes["why"].tolist() == ["another formula"]
    assert result.summary["change_pp"].tolist() == pytest.approx([0, 100 * (2 / 3 - 1 / 2)])


def test_ids_are_aligned() -> None:
    result = sensitivity(
        *tables({"scenario-12": "a"}), {"one": truth(**{"scenario-12": "a"}), "two": truth(Scenario_12="b")}, ["ibm"]
    )
    assert result.summary["score"].tolist() == [1, 0]
    assert result.changes[["truth", "incident_id", "reference", "score"]].values.tolist() == [
        ["two", "scenario-12", 1, 0]
    ]
    assert result.changes["why"].tolist() == ["found 1 → 0, true positives 1 → 0, false positives 0 → 1"]


def test_incidents_that_the_reference_does_not_have_are_left_out() -> None:
    aligned = align(truth(a="x1", b="x2"), truth(b="y"))
    assert aligned.incidents["incident_id"].tolist() == ["b"]
    assert set(aligned.causes["incident_id"]) == {"b"}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_truth_aligned_with_itself_is_itself(version: str) -> None:
    given = read_truth(INCIDENTS / f"itbench-{version}")
    aligned = align(given, given)
    for name in ("causes", "edges", "incidents", "notes"):
        pd.testing.assert_frame_equal(getattr(aligned, name), getattr(given, name), check_dtype=False)


def test_every_public_incident_is_found_in_the_other_version() -> None:
    # root-cause.md, 3.1: the v1 files of scenarios 61 and 62 call themselves scenario-110 and scenario-116
    first, second = (read_truth(INCIDENTS / f"itbench-{version}") for version in ("v1", "v2"))
    found = set(align(second, first).incidents["incident_id"])
    assert set(first.incidents["incident_id"]) - found == set()


def test_an_id_that_fits_exactly_keeps_its_place() -> None:
    two = truth(**{"db_1": "a", "db-1": "b"})
    assert align(two, two).incidents["incident_id"].tolist() == ["db_1", "db-1"]
    result = sensitivity(*tables({"db_1": "a", "db-1": "b"}), two, ["itbench-aa"])
    assert result.summary["score"].tolist() == [1]
    assert result.summary["n_incidents"].tolist() == [2]


def test_an_incident_that_another_truth_cannot_grade() -> None:
    result = sensitivity(
        *tables({"i": "a", "j": "b"}), {"one": truth(i="a", j="b"), "two": truth(i="", j="b")}, ["itbench-aa"]
    )
    assert result.summary[["n_incidents", "n_runs"]].values.tolist() == [[2, 2], [1, 1]]
    assert result.changes[["incident_id", "why"]].values.tolist() == [["i", "status scored → ungradeable"]]
    assert pd.isna(result.changes["score"].iloc[0])


def test_missing_runs_are_no_news() -> None:
    submissions, runs = tables({"i": "a"})
    result = sensitivity(submissions, runs, truth(i="a", j="b"))
    assert result.changes.empty
    assert set(result.summary["n_runs"]) == {2}


def test_policies_of_ones_own() -> None:
    search = Policy("search", matching="search")
    result = sensitivity(*tables({"i": "a"}), truth(i="a"), [search, "ibm"])
    assert result.summary["policy"].tolist() == ["search", "ibm"]


def test_two_policies_of_one_name_are_refused_or_kept_apart() -> None:
    loose = replace(POLICIES["itbench-aa"], deployment_is_pod=False)
    try:
        result = sensitivity(*tables({"i": "a"}), truth(i="a"), ["itbench-aa", loose])
    except FaultbookError:
        return
    assert len(result.summary) == 2


@pytest.mark.parametrize(("truths", "policies"), [({}, ["ibm"]), (None, [])])
def test_nothing_to_score_by_is_a_users_mistake(truths: Any, policies: list[str]) -> None:
    with pytest.raises(FaultbookError):
        sensitivity(*tables({"i": "a"}), truth(i="a") if truths is None else truths, policies)


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(FaultbookError, match=r"'policy' must be one of .*'ibm'; found 'aa'"):
        sensitivity(*tables({"i": "a"}), truth(i="a"), ["aa"])


def test_the_plot_has_a_mark_for_every_setting() -> None:
    _, _, result = public()
    _, ax = plt.subplots()
    assert result.plot(ax=ax) is ax
    assert len(ax.lines) == len(result.summary)
    assert sorted(line.get_xdata()[0] for line in ax.lines) == pytest.approx(sorted(result.summary["score"]))
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [*POLICIES, "truth v1", "truth v2"]
