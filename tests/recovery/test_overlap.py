"""Contrasts of two cells and overlaps of actions: published differences, joint counts, tasks that are lost."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.recovery.overlap import NO_COMMON_TASK, Overlap, contrast, overlap
from faultbook.stats.resampling import resampled_sum
from faultbook.tables import OUTCOMES

SUCCESSES = {"rescue": (False, True), "harm": (True, False), "stable_success": (True, True)}
SUCCESSES["stable_failure"] = (False, False)
COLUMNS = ["task_id", "condition", "delay", "action", "replicate", "success_without", "success_with"]


def cell(outcomes: list[str], condition: str = "stale2", delay: int = 0, action: str = "refresh") -> pd.DataFrame:
    """One pair a task, in this order; "" is a task that lacks the arm."""
    rows = [
        (f"task {k}", condition, delay, action, 0, *SUCCESSES[outcome]) for k, outcome in enumerate(outcomes) if outcome
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


STALE = {"condition": "stale2", "delay": 0, "action": "refresh"}
CLEAN = {"condition": "clean", "delay": 0, "action": "refresh"}

# ---- contrasts ----------------------------------------------------------------------------------------------------


def test_stale_minus_clean() -> None:
    # arXiv 2610.00372, d = 0, n = 93: +13.98 pp [2.15, 24.73] = 13/93 [2, 23]. One joint pattern that fits: of six
    # clean harms one is a stale harm too, with 17 rescues and 10 harms under stale in all; exact bounds [2, 24].
    stale = ["harm"] + ["stable_success"] * 5 + ["rescue"] * 17 + ["harm"] * 9 + ["stable_failure"] * 61
    clean = ["harm"] * 6 + ["stable_success"] * 87
    found = contrast(pd.concat([cell(stale), cell(clean, "clean")]), STALE, CLEAN)
    assert found.n_tasks == 93
    assert found.difference_pp == pytest.approx(100 * 13 / 93)
    assert (found.effect_a_pp, found.effect_b_pp) == (pytest.approx(700 / 93), pytest.approx(-600 / 93))
    assert resampled_sum({1: 22, -1: 9}, 93).bounds() == (2, 24)
    assert abs(found.low * 0.93 - 2) < 1 + 1e-9
    assert abs(found.high * 0.93 - 24) < 1 + 1e-9
    assert found.joint.loc["harm", "harm"] == 1
    assert found.joint.loc["stable_success", "harm"] == 5
    assert found.joint.loc["rescue", "stable_success"] == 17
    assert found.joint.to_numpy().sum() == 93
    assert found.lost.empty
    # 31 tasks differ by one each, 22 up and 9 down: the exact binomial p, 2 P(X <= 9) of 31 at 1/2
    assert found.sign_flip_p == pytest.approx(2 * sum(math.comb(31, k) for k in range(10)) / 2**31)
    summary = found.summary_frame().iloc[0]
    assert (summary["n_tasks"], summary["n_lost"]) == (93, 0)


def test_two_margins_do_not_make_a_difference() -> None:
    # the same rescues and harms in both cells, laid over each other in two ways
    alike = contrast(
        pd.concat([cell(["rescue", "harm", "stable_success"]), cell(["rescue", "harm", "stable_success"], "clean")]),
        STALE,
        CLEAN,
    )
    crossed = contrast(
        pd.concat([cell(["rescue", "harm", "stable_success"]), cell(["harm", "rescue", "stable_success"], "clean")]),
        STALE,
        CLEAN,
    )
    assert alike.difference_pp == crossed.difference_pp == 0
    assert math.isnan(alike.low)
    assert alike.test == "no task with a net effect"
    assert crossed.low < 0 < crossed.high
    assert crossed.test == "sign flip over tasks"


def test_lost_tasks_are_named() -> None:
    pairs = pd.concat([cell(["rescue", "", "harm", "rescue"]), cell(["harm", "harm", "harm", ""], "clean")])
    found = contrast(pairs, STALE, CLEAN)
    assert found.n_tasks == 2
    assert list(found.lost.itertuples(index=False, name=None)) == [("task 1", "a"), ("task 3", "b")]
    assert found.effect_a_pp == 0  # of the common tasks


def test_no_task_in_common() -> None:
    found = contrast(pd.concat([cell(["rescue", ""]), cell(["", "harm"], "clean")]), STALE, CLEAN)
    assert (found.n_tasks, found.test, len(found.lost)) == (0, NO_COMMON_TASK, 2)
    assert math.isnan(found.difference_pp)
    assert found.joint.to_numpy().sum() == 0


def test_task_means_of_uneven_replicates() -> None:
    rows = [("t", "stale2", 0, "refresh", r, *SUCCESSES["rescue" if r == 0 else "stable_failure"]) for r in range(3)]
    rows += [("t", "clean", 0, "refresh", 0, *SUCCESSES["harm"])]
    rows += [("u", c, 0, "refresh", 0, *SUCCESSES["stable_success"]) for c in ("stale2", "clean")]
    found = contrast(pd.DataFrame(rows, columns=COLUMNS), STALE, CLEAN)
    assert found.difference_pp == pytest.approx(100 * (1 / 3 + 1) / 2)
    assert found.joint.to_numpy().sum() == 2  # replicates 1 and 2 have no counterpart


def test_one_replicate_against_another() -> None:
    pairs = pd.concat([cell(["rescue", "harm"]), cell(["rescue", "rescue"]).assign(replicate=1)])
    found = contrast(pairs, {"replicate": 0}, {"replicate": 1})
    assert found.joint.loc["harm", "rescue"] == 1
    assert found.joint.to_numpy().sum() == 2


def test_cells_may_be_told_by_any_column() -> None:
    pairs = cell(["rescue", "harm", "rescue"]).assign(cohort=["fit", "fit", "evaluation"])
    found = contrast(pairs, {"cohort": "fit"}, {"cohort": "evaluation"})
    assert (found.n_tasks, len(found.lost)) == (0, 3)


@pytest.mark.parametrize(
    ("a", "said"),
    [
        ({"condition": "stale2"}, r"a holds several values of delay \(0, 4\); select one"),
        ({"condition": "stale9"}, r"a: no pair with condition 'stale9' \(found 'clean', 'stale2'\)"),
        ({"condition": "clean", "delay": 4}, r"a: no pair with delay 4 beside its other values \(found 0\)"),
        ({"condition": 2}, "no pair with condition 2"),
        ({"delay": "0"}, "no pair with delay '0'"),
        ({"delay": None}, "no pair with delay None"),
        ({"delay": [0, 1]}, "no pair with delay"),
        ({"outcome": "rescue"}, "a selects by 'outcome'; give columns among condition"),
        ({}, "a holds several values of condition"),
    ],
)
def test_cells_that_are_none(a: dict[str, Any], said: str) -> None:
    pairs = pd.concat([cell(["rescue"]), cell(["rescue"], delay=4), cell(["harm"], "clean")])
    with pytest.raises(FaultbookError, match=said):
        contrast(pairs, a, CLEAN)


OUTCOME_LISTS = st.lists(st.sampled_from([*OUTCOMES, ""]), min_size=1, max_size=12)


@settings(max_examples=8, deadline=None)
@given(OUTCOME_LISTS, OUTCOME_LISTS)
def test_swapping_the_cells_turns_the_contrast(first: list[str], second: list[str]) -> None:
    pairs = pd.concat([cell([*first, "rescue"]), cell([*second, "harm"], "clean")])
    one, other = (contrast(pairs, *cells, n_resamples=100) for cells in ((STALE, CLEAN), (CLEAN, STALE)))
    assert one.difference_pp == pytest.approx(-other.difference_pp, nan_ok=True)
    assert one.sign_flip_p == pytest.approx(other.sign_flip_p, nan_ok=True)
    assert one.joint.to_numpy().tolist() == other.joint.to_numpy().T.tolist()
    assert one.n_tasks + len(one.lost) == pairs["task_id"].nunique()
    if one.n_tasks:
        assert one.difference_pp == pytest.approx(one.effect_a_pp - one.effect_b_pp, abs=1e-9)


# ---- overlaps -----------------------------------------------------------------------------------------------------


def variants() -> pd.DataFrame:
    """Full and content-ablated refresh as published: 10R/1H and 9R/2H of 67 and 66 tasks, 65 of them common."""
    full = ["rescue"] * 8 + ["rescue"] * 2 + ["stable_failure"] + ["stable_success"] * 2 + ["harm"]
    ablated = ["rescue"] * 8 + ["stable_failure"] * 2 + ["rescue"] + ["harm"] * 2 + ["stable_success"]
    full += ["stable_success"] * 51 + ["stable_success", "stable_failure", ""]
    ablated += ["stable_success"] * 51 + ["", "", "stable_success"]
    return pd.concat([cell(full, delay=4, action="refresh"), cell(ablated, delay=4, action="ablated_refresh")])


def published() -> Overlap:
    return overlap(variants(), ["refresh", "ablated_refresh"], condition="stale2", delay=4)


def test_the_overlap_of_two_variants() -> None:
    # arXiv 2610.00372, appendix: 59 of 65 tasks agree; 8 rescues in common, 2 and 1 alone; +3.08 pp [-4.62, 10.77] =
    # 2/65 [-3, 7], which is four tasks better and two worse (exact McNemar p .6875).
    found = published()
    row = found.differences.iloc[0]
    assert (row["n_tasks"], row["n_agree"], row["n_disagree"]) == (65, 59, 6)
    assert (row["both_rescue"], row["rescue_only_a"], row["rescue_only_b"]) == (8, 2, 1)
    assert (row["both_harm"], row["harm_only_a"], row["harm_only_b"]) == (0, 1, 2)
    assert (row["only_a"], row["only_b"]) == (4, 2)
    assert row["difference_pp"] == pytest.approx(3.08, abs=5e-3)
    assert abs(row["low"] * 0.65 + 3) < 1 + 1e-9
    assert abs(row["high"] * 0.65 - 7) < 1 + 1e-9
    assert row["mcnemar_exact"] == pytest.approx(0.6875)
    assert row["test"] == "exact McNemar"
    pd.testing.assert_frame_equal(found.summary_frame(), found.differences)


def test_which_tasks_they_rescue() -> None:
    found = published()
    assert found.rescues[["actions", "n_actions", "n"]].to_numpy().tolist() == [
        ["refresh", 1, 2],
        ["ablated_refresh", 1, 1],
        ["refresh + ablated_refresh", 2, 8],
    ]
    assert found.rescues["task_ids"].iloc[0] == ["task 8", "task 9"]
    assert found.rescues["task_ids"].iloc[1] == ["task 10"]
    assert found.harms["n"].tolist() == [1, 2, 0]
    assert found.harms["task_ids"].tolist() == [["task 13"], ["task 11", "task 12"], []]


def test_tasks_that_lack_an_arm_are_named() -> None:
    found = published()
    assert len(found.outcomes) == 65
    assert found.lost.to_numpy().tolist() == [
        ["task 65", 0, "ablated_refresh"],
        ["task 66", 0, "ablated_refresh"],
        ["task 67", 0, "refresh"],
    ]


def test_three_actions() -> None:
    parts = [
        cell(["rescue", "rescue", "harm", "stable_failure"], action="refresh"),
        cell(["rescue", "stable_failure", "harm", "stable_failure"], action="ablated_refresh"),
        cell(["rescue", "stable_failure", "stable_success", "rescue"], action="replan"),
        cell(["harm"] * 4, action="refresh", condition="clean"),
    ]
    found = overlap(pd.concat(parts), ["refresh", "ablated_refresh", "replan"], condition="stale2", delay=0)
    rescues = dict(zip(found.rescues["actions"], found.rescues["n"], strict=True))
    assert rescues == {
        "refresh": 1,
        "ablated_refresh": 0,
        "replan": 1,
        "refresh + ablated_refresh": 0,
        "refresh + replan": 0,
        "ablated_refresh + replan": 0,
        "refresh + ablated_refresh + replan": 1,
    }
    assert found.harms.loc[found.harms["n"] > 0, "actions"].tolist() == ["refresh + ablated_refresh"]
    assert found.differences[["action_a", "action_b"]].to_numpy().tolist() == [
        ["refresh", "ablated_refresh"],
        ["refresh", "replan"],
        ["ablated_refresh", "replan"],
    ]
    assert list(found.outcomes.columns) == ["task_id", "replicate", "refresh", "ablated_refresh", "replan"]


def test_replicates_are_laid_over_each_other_one_by_one() -> None:
    parts = [
        cell(["rescue", "harm"], action=action).assign(replicate=r) for action in ("refresh", "replan") for r in (0, 1)
    ]
    found = overlap(pd.concat(parts[:3]), ["refresh", "replan"], condition="stale2", delay=0)
    row = found.differences.iloc[0]
    assert (row["n_tasks"], row["n_pairs"], row["test"]) == (2, 2, "no discordant pairs")
    assert found.lost.to_numpy().tolist() == [["task 0", 1, "replan"], ["task 1", 1, "replan"]]
    whole = overlap(pd.concat(parts), ["refresh", "replan"], condition="stale2", delay=0)
    assert whole.differences[["n_tasks", "n_pairs"]].to_numpy().tolist() == [[2, 4]]


def test_no_task_has_all_arms() -> None:
    pairs = pd.concat([cell(["rescue", ""]), cell(["", "rescue"], action="replan")])
    found = overlap(pairs, ["refresh", "replan"], condition="stale2", delay=0)
    assert (len(found.outcomes), len(found.lost)) == (0, 2)
    row = found.differences.iloc[0]
    assert row["n_tasks"] == 0
    assert math.isnan(row["difference_pp"])


@pytest.mark.parametrize("actions", [["refresh"], [], ["refresh", "refresh"], "refresh", list("abcdefg")])
def test_what_is_no_set_of_actions(actions: Any) -> None:
    with pytest.raises(FaultbookError, match="two to 6 different actions"):
        overlap(variants(), actions, condition="stale2", delay=4)


def test_what_is_not_there() -> None:
    with pytest.raises(FaultbookError, match="no pair with condition 'clean'"):
        overlap(variants(), ["refresh", "ablated_refresh"], condition="clean", delay=4)
    with pytest.raises(
        FaultbookError, match=r"delay 4: no pair with action 'replan' .found 'refresh', 'ablated_refresh'"
    ):
        overlap(variants(), ["refresh", "replan"], condition="stale2", delay=4)


@settings(max_examples=6, deadline=None)
@given(OUTCOME_LISTS, OUTCOME_LISTS)
def test_the_counts_fit_together(first: list[str], second: list[str]) -> None:
    pairs = pd.concat([cell([*first, "rescue"]), cell([*second, "harm"], action="replan")])
    found = overlap(pairs, ["refresh", "replan"], condition="stale2", delay=0, n_resamples=50)
    row = found.differences.iloc[0]
    assert row["n_agree"] + row["n_disagree"] == row["n_pairs"] == len(found.outcomes)
    assert row["n_disagree"] == row["only_a"] + row["only_b"]
    for table, name in ((found.rescues, "rescue"), (found.harms, "harm")):
        assert table["n"].tolist() == [row[f"{name}_only_a"], row[f"{name}_only_b"], row[f"both_{name}"]]
        assert [len(ids) for ids in table["task_ids"]] == table["n"].tolist()
    assert len(found.outcomes) + found.lost["task_id"].nunique() == pairs["task_id"].nunique()
