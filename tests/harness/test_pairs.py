"""The same tasks under both arms: complete or not, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.harness.pairs import (
    COLUMNS,
    OUTCOMES,
    axis_counts,
    changed_tasks,
    flipped,
    outcomes,
    pair_table,
    side_by_side,
    table_counts,
)
from faultbook.harness.plan import held, plan
from faultbook.stats.paired import sign_flip
from faultbook.tables import Plan, Trials, typed

ARMS = ("a", "b")


def trial(arm: str, task: str, resolved: bool | None = None, attempt: int = 1, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def cells(*rows: dict[str, Any], tasks: str = "t", attempts: int = 1) -> pd.DataFrame:
    planned = plan(arms=["a", "b", "c"], tasks=list(tasks), attempts=attempts)
    return held(typed(list(rows), Trials), planned).cells


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [(True, True, "both"), (True, False, "only_a"), (False, True, "only_b"), (False, False, "neither")],
)
def test_a_complete_pair(first: bool, second: bool, outcome: str) -> None:
    pairs = pair_table(cells(trial("a", "t", first), trial("b", "t", second), trial("c", "t", True)), ARMS)
    assert list(pairs.columns) == COLUMNS
    row = pairs.iloc[0]
    assert row["complete"]
    assert row["outcome"] == outcome
    assert pd.isna(row["why"])
    assert table_counts(pairs) == {name: int(name == outcome) for name in OUTCOMES}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (None, "b: not started"),
        ({"state": "unfinished"}, "b: unfinished"),
        ({"state": "unreadable"}, "b: unreadable"),
        ({"resolved": None}, "b: no verdict"),
        (
            {"resolved": True, "reward_valid": False, "cause": "provider_quota"},
            "b: void verdict (provider_quota)",
        ),
        ({"resolved": True, "reward_valid": False}, "b: void verdict (no cause)"),
    ],
)
def test_why_a_pair_is_not_complete(more: dict[str, Any] | None, why: str) -> None:
    rows = [trial("a", "t", True)] + ([] if more is None else [trial("b", "t") | more])
    pairs = pair_table(cells(*rows), ARMS)
    assert not pairs["complete"].any()
    assert pairs["why"].tolist() == [why]
    assert pairs["outcome"].isna().all()
    assert sum(table_counts(pairs).values()) == 0


def test_why_both_sides_lack_and_records_contradict() -> None:
    rows = [trial("a", "t", True), trial("a", "t", False), trial("b", "t", state="unfinished")]
    assert pair_table(cells(*rows), ARMS)["why"].tolist() == ["a: contradictory records; b: unfinished"]


def test_every_recorded_verdict() -> None:
    void = {"reward_valid": False, "cause": "sandbox"}
    table = cells(trial("a", "t", True), trial("b", "t", False, **void))
    assert pair_table(table, ARMS, verdict="recorded")["outcome"].tolist() == ["only_a"]
    assert not pair_table(table, ARMS)["complete"].any()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [("x", "x", True), ("x", "y", False), ("x", None, True), (None, None, True)],
)
def test_a_checksum_that_differs_is_no_pair(first: str | None, second: str | None, same: bool) -> None:
    rows = [trial("a", "t", True, task_checksum=first), trial("b", "t", True, task_checksum=second)]
    rows.append(trial("c", "t", True, task_checksum="of another arm"))
    pairs = pair_table(cells(*rows), ARMS)
    assert pairs["same_task"].tolist() == pairs["complete"].tolist() == [same]
    assert pairs["why"].tolist() == ([pd.NA] if same else ["the tasks differ (checksum)"])


@pytest.mark.parametrize("order", [1, -1])
def test_a_task_that_changes_between_attempts_is_no_pair(order: int) -> None:
    rows = [trial(arm, "t", True, k, task_checksum="x") for arm in ARMS for k in (1, 2)]
    rows[1]["task_checksum"] = "y"
    table = cells(*rows[::order], attempts=2)
    assert changed_tasks(table) == ["t"]
    assert not pair_table(table, ARMS)["complete"].any()


def test_several_attempts_are_complete_together() -> None:
    rows = [trial("a", "t", k == 1, k) for k in (1, 2)] + [trial("b", "t", True, 1)]
    row = pair_table(cells(*rows, attempts=2), ARMS).iloc[0]
    assert row[["planned_a", "planned_b", "observed_a", "observed_b", "solved_a", "solved_b"]].tolist() == [
        2, 2, 2, 1, 1, 1,
    ]  # fmt: skip
    assert not row["complete"]
    row = pair_table(cells(*rows, trial("b", "t", False, 2), attempts=2), ARMS).iloc[0]
    assert row["complete"]
    assert pd.isna(row["outcome"])  # attempts of two arms are no pairs


def test_a_task_planned_in_one_arm_only_is_no_pair() -> None:
    planned = typed(
        pd.DataFrame([("a", "t", 1), ("b", "u", 1)], columns=["arm", "task_id", "attempt"]).assign(source="file"), Plan
    )
    pairs = pair_table(held(typed([trial("a", "t", True)], Trials), planned).cells, ARMS)
    assert pairs.empty
    assert list(pairs.columns) == COLUMNS
    assert table_counts(pairs) == dict.fromkeys(OUTCOMES, 0)
    assert outcomes(pairs).empty


def test_axes_are_counted_apart() -> None:
    rows = [trial("a", task, True) for task in "tuv"] + [trial("b", task, True) for task in "t"]
    table = cells(*rows, trial("b", "u", None, cost=1.0), tasks="tuvw")
    counts = axis_counts(table, ARMS, {"outcome": table["verdict"].notna(), "cost": table["cost"].notna()})
    assert counts.values.tolist() == [["outcome", 4, 1, 2, 0, 1], ["cost", 4, 0, 0, 1, 3]]


def test_an_axis_needs_all_attempts() -> None:
    table = cells(*[trial(arm, "t", True, 1) for arm in ARMS], trial("a", "t", True, 2), attempts=2)
    counts = axis_counts(table, ARMS, {"outcome": table["verdict"].notna()})
    assert counts.iloc[0].tolist() == ["outcome", 1, 0, 1, 0, 0]


def test_side_by_side_keeps_the_arms_in_the_order_asked_for() -> None:
    table = cells(trial("a", "t", True), trial("a", "u", False), trial("b", "t", True), tasks="tu")
    values = table["verdict"].fillna(False).astype(int)
    assert side_by_side(values, table, ("b", "a"), "sum").reset_index().values.tolist() == [["t", 1, 1], ["u", 0, 0]]
    assert side_by_side(values[:0], table[:0], ARMS, "sum").empty


def test_a_test_that_cannot_be_exact_is_drawn_and_says_so() -> None:
    rng = np.random.default_rng(0)
    whole = pd.Series(rng.integers(-3, 4, 30))
    assert flipped(whole) == sign_flip(whole)
    huge = pd.Series((rng.integers(-3, 4, 30) * 10**12).astype(float) + np.arange(30))
    found = flipped(huge)
    assert found.method == "Monte Carlo"
    assert found == flipped(huge)
    assert found.p == flipped(-huge).p


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([True, False, None])] * 2), min_size=1, max_size=8))
def test_the_table_counts_the_pairs_that_both_arms_have(outcomes_of: list[tuple[bool | None, bool | None]]) -> None:
    tasks = "tuvwxyzs"[: len(outcomes_of)]
    rows = [
        trial(arm, task, result)
        for task, results in zip(tasks, outcomes_of, strict=True)
        for arm, result in zip(ARMS, results, strict=True)
        if result is not None
    ]
    pairs = pair_table(cells(*rows, tasks=tasks), ARMS)
    complete = [pair for pair in outcomes_of if None not in pair]
    assert pairs["complete"].sum() == len(complete)
    counts = {(True, True): "both", (True, False): "only_a", (False, True): "only_b", (False, False): "neither"}
    assert table_counts(pairs) == {name: sum(pair == key for pair in complete) for key, name in counts.items()}
    assert pairs["why"].notna().tolist() == (~pairs["complete"]).tolist()
