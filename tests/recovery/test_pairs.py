"""Pairing branches: from the same fork only, every refusal named, nothing dropped in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.pairs import NO_BRANCH, NO_NONE, UNPAIRED_COLUMNS, pair, unpaired
from faultbook.tables import OUTCOMES, Pairs

Rows = list[dict[str, Any]]


def branch(action: str, success: bool, task: str = "t1", delay: int | None = 0, **more: Any) -> dict[str, Any]:
    return {"task_id": task, "condition": "stale2", "delay": delay, "action": action, "success": success, **more}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


def keys(table: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return list(table[list(columns)].itertuples(index=False, name=None))


# ---- what is paired -----------------------------------------------------------------------------------------------


def test_the_four_outcomes() -> None:
    cases = {(False, True): "rescue", (True, False): "harm", (True, True): "stable_success"}
    cases[False, False] = "stable_failure"
    rows = []
    for number, (without, with_) in enumerate(cases):
        rows += [branch("none", without, f"t{number}"), branch("refresh", with_, f"t{number}")]
    pairs = pair(frame(*rows))
    assert pairs["outcome"].tolist() == list(cases.values())
    assert pairs["tau"].tolist() == [1, -1, 0, 0]
    assert keys(pairs, "success_without", "success_with") == list(cases)
    assert set(OUTCOMES) == set(cases.values())
    Pairs.validate(pairs)


def test_each_action_is_paired_with_the_same_branch() -> None:
    pairs = pair(frame(branch("refresh", True), branch("none", False), branch("replan", False)))
    assert keys(pairs, "action", "success_without", "tau") == [("refresh", False, 1), ("replan", False, 0)]


def test_a_branch_of_the_delay_goes_before_one_that_serves_every_delay() -> None:
    rows = [branch("none", True, delay=None), branch("none", False, delay=1)]
    rows += [branch("refresh", True, delay=delay) for delay in (0, 1, 2)]
    assert keys(pair(frame(*rows)), "delay", "success_without") == [(0, True), (1, False), (2, True)]


def test_replicates_are_paired_with_their_own_or_with_the_first() -> None:
    rows = [branch("none", False, replicate=0), branch("none", True, replicate=1)]
    rows += [branch("refresh", True, replicate=replicate) for replicate in (0, 1, 2)]
    assert keys(pair(frame(*rows)), "replicate", "success_without") == [(0, False), (1, True), (2, False)]


def test_a_replicate_that_serves_every_delay_goes_before_the_first_of_the_delay() -> None:
    rows = [branch("none", False, delay=1, replicate=0), branch("none", True, delay=None, replicate=1)]
    rows += [branch("refresh", True, delay=1, replicate=1)]
    assert keys(pair(frame(*rows)), "success_without") == [(True,)]


def test_further_branches_without_an_action_make_no_pair() -> None:
    rows = [branch("none", False, replicate=replicate) for replicate in range(3)]
    assert pair(frame(*rows)).empty
    assert len(pair(frame(*rows, branch("refresh", True)))) == 1


def test_names_of_ones_own() -> None:
    rows = [branch("none", False, condition="stale3"), branch("rollback", True, condition="stale3")]
    assert keys(pair(frame(*rows)), "condition", "action") == [("stale3", "rollback")]


def test_facts_come_from_either_branch() -> None:
    rows = [
        branch("none", False, cohort="fit", source=None, factual_success=True, ended_before=False, prefix_hash="a"),
        branch("refresh", True, cohort=None, source="engine", factual_success=None, ended_before=None, prefix_hash="a"),
    ]
    row = pair(frame(*rows)).iloc[0]
    assert (row["cohort"], row["source"], row["factual_success"], row["ended_before"]) == ("fit", "engine", True, False)
    assert row["prefix_hash"] == "a"


def test_what_nobody_knows_is_missing() -> None:
    row = pair(frame(branch("none", False), branch("refresh", True))).iloc[0]
    assert row[["cohort", "source", "factual_success", "ended_before", "prefix_hash"]].isna().all()


def test_a_prefix_known_of_one_branch_only_is_not_verified() -> None:
    row = pair(frame(branch("none", False), branch("refresh", True, prefix_hash="a"))).iloc[0]
    assert row["prefix_hash"] is pd.NA


def test_an_end_known_to_a_branch_of_every_delay_says_nothing_of_one() -> None:
    rows = [branch("none", False, delay=None, ended_before=True), branch("refresh", True, ended_before=None)]
    assert pair(frame(*rows))["ended_before"].iloc[0] is pd.NA


def test_a_run_that_had_ended_stays_in() -> None:
    rows = [branch("none", True, ended_before=True), branch("refresh", True, ended_before=True)]
    row = pair(frame(*rows)).iloc[0]
    assert (row["outcome"], row["ended_before"]) == ("stable_success", True)


# ---- what is refused ----------------------------------------------------------------------------------------------

GOOD: Rows = [branch("none", False, "t0", prefix_hash="x"), branch("refresh", True, "t0", prefix_hash="x")]


def refused(*rows: dict[str, Any], kept: int = 1) -> str:
    """The one problem that these rows have, from both ways of pairing."""
    episodes = frame(*GOOD, *rows)
    with pytest.raises(DataError) as strict:
        pair(episodes)
    pairs, problems = pair(episodes, strict=False)
    assert len(pairs) == kept
    assert len(problems) == 1
    assert problems["problem"].iloc[0] == strict.value.problem
    assert problems["row"].iloc[0] == str(strict.value.row)
    message = str(strict.value)
    assert "\n" not in message
    return message


def test_prefixes_that_differ() -> None:
    message = refused(
        branch("none", False, delay=4, prefix_hash="abc"), branch("refresh", True, delay=4, prefix_hash="def")
    )
    for part in ("'t1'", "'stale2'", "delay 4", "'refresh'", "'def' with the action", "'abc' without"):
        assert part in message


def test_a_prefix_of_a_branch_that_serves_every_delay() -> None:
    message = refused(branch("none", False, delay=None, prefix_hash="abc"), branch("refresh", True, prefix_hash="def"))
    assert "give the 'none' branch its delay" in message


@pytest.mark.parametrize(
    ("column", "without", "with_"),
    [
        ("ended_before", True, False),
        ("source", "alfworld", "textworld"),
        ("cohort", "fit", "evaluation"),
        ("factual_success", True, False),
    ],
)
def test_facts_of_the_past_that_differ(column: str, without: Any, with_: Any) -> None:
    message = refused(branch("none", True, **{column: without}), branch("refresh", True, **{column: with_}))
    assert f"column '{column}'" in message


def test_an_outcome_that_changed_after_the_end() -> None:
    message = refused(branch("none", True, ended_before=True), branch("refresh", False, ended_before=True))
    assert "had ended before the fork, yet its outcome differs" in message


def test_a_pair_is_reported_once_however_much_differs() -> None:
    refused(
        branch("none", True, prefix_hash="a", source="s", ended_before=True),
        branch("refresh", False, prefix_hash="b", source="r", ended_before=False),
    )


def test_a_branch_without_another() -> None:
    assert NO_NONE in refused(branch("refresh", True))
    assert NO_NONE in refused(branch("none", True, delay=1), branch("refresh", True, delay=2))


def test_a_branch_that_stands_twice() -> None:
    assert "stands twice" in refused(branch("none", True), branch("none", False), branch("refresh", True), kept=2)
    assert "stands twice" in refused(branch("none", True), branch("refresh", False), branch("refresh", True), kept=2)
    rows = [branch("none", True, delay=None), branch("none", True, delay=None), branch("refresh", True)]
    assert "every delay" in refused(*rows, kept=2)


def test_the_first_of_two_alike_is_kept() -> None:
    rows = [branch("none", False), branch("refresh", True), branch("refresh", False)]
    pairs, _ = pair(frame(*rows), strict=False)
    assert pairs["success_with"].tolist() == [True]


def test_each_problem_is_listed() -> None:
    rows = [branch("refresh", True, f"u{k}") for k in range(5)]
    pairs, problems = pair(frame(*GOOD, *rows), strict=False)
    assert len(pairs) == 1
    assert problems["row"].str.contains("task 'u").sum() == 5


def test_hostile_names_are_made_safe_to_show() -> None:
    message = refused(branch("refresh", True, "\x1b[31mred\n" + "x" * 10_000))
    assert "\x1b" not in message
    assert len(message) < 600


@pytest.mark.parametrize("column", ["task_id", "condition", "delay", "action", "success"])
def test_a_column_that_is_missing(column: str) -> None:
    with pytest.raises(FaultbookError, match=f"columns missing: {column}"):
        pair(frame(*GOOD).drop(columns=column))


def test_a_delay_is_missing_for_an_action() -> None:
    with pytest.raises(FaultbookError, match=r"1 branches have no delay .first: task 't1'"):
        pair(frame(*GOOD, branch("refresh", True, delay=None)))


@pytest.mark.parametrize(
    ("column", "value"), [("success", None), ("success", "yes"), ("replicate", -1), ("delay", -1), ("delay", 1.5)]
)
def test_values_that_cannot_be_used(column: str, value: Any) -> None:
    with pytest.raises(FaultbookError, match=column):
        pair(frame(*GOOD, {**branch("none", True, replicate=0), column: value}))


# ---- missing arms -------------------------------------------------------------------------------------------------


def test_missing_arms_are_listed() -> None:
    rows = []
    for task in ("t1", "t2", "t3"):
        rows += [branch("none", True, task, delay=None)]
        rows += [branch(action, True, task, delay) for action in ("refresh", "replan") for delay in (0, 4)]
    lacking = [row for row in rows if (row["task_id"], row["action"], row["delay"]) != ("t2", "replan", 4)]
    lacking = [row for row in lacking if (row["task_id"], row["action"]) != ("t3", "none")]
    listed = unpaired(frame(*lacking))
    assert list(listed.columns) == UNPAIRED_COLUMNS
    assert keys(listed, "task_id", "delay", "action", "reason") == [
        ("t2", 4, "replan", NO_BRANCH),
        ("t3", 0, "refresh", NO_NONE),
        ("t3", 0, "replan", NO_NONE),
        ("t3", 4, "refresh", NO_NONE),
        ("t3", 4, "replan", NO_NONE),
    ]
    assert listed["replicate"].isna().tolist() == [True, False, False, False, False]


def test_nothing_is_missing() -> None:
    assert unpaired(frame(*GOOD)).empty


def test_a_cohort_is_expected_to_have_its_own_arms_only() -> None:
    rows = [branch("none", True, "t1", cohort="fit"), branch("refresh", True, "t1", cohort="fit")]
    rows += [branch("none", True, "t2", 4, cohort="evaluation"), branch("replan", True, "t2", 4, cohort="evaluation")]
    assert unpaired(frame(*rows)).empty
    rows += [branch("none", True, "t3", cohort="fit")]
    assert keys(unpaired(frame(*rows)), "task_id", "delay", "action") == [("t3", 0, "refresh")]


def test_tasks_without_an_arm_are_in_no_pair() -> None:
    # 67 tasks have a full refresh, 66 an ablated one: that is no error, but it is listed
    rows = [branch("none", True, f"t{k}") for k in range(67)] + [branch("refresh", True, f"t{k}") for k in range(67)]
    rows += [branch("ablated_refresh", True, f"t{k}") for k in range(66)]
    assert pair(frame(*rows))["action"].value_counts().to_dict() == {"refresh": 67, "ablated_refresh": 66}
    assert keys(unpaired(frame(*rows)), "task_id", "action") == [("t66", "ablated_refresh")]


# ---- properties ---------------------------------------------------------------------------------------------------

BRANCHES = st.lists(
    st.fixed_dictionaries(
        {
            "task_id": st.sampled_from(["t1", "t2"]),
            "condition": st.sampled_from(["clean", "stale2"]),
            "delay": st.sampled_from([0, 1, None]),
            "action": st.sampled_from(["none", "none", "refresh", "replan"]),
            "success": st.booleans(),
            "replicate": st.integers(0, 2),
            "prefix_hash": st.sampled_from(["a", "b", None]),
            "ended_before": st.sampled_from([True, False, None]),
        }
    ),
    min_size=1,
    max_size=20,
).map(lambda rows: [row | ({"delay": 0} if row["action"] != "none" and row["delay"] is None else {}) for row in rows])


@settings(max_examples=8, deadline=None)
@given(BRANCHES)
def test_every_branch_with_an_action_is_a_pair_or_a_problem(rows: Rows) -> None:
    episodes = frame(*rows)
    pairs, problems = pair(episodes, strict=False)
    n_doubled = int(episodes.duplicated(["task_id", "condition", "delay", "action", "replicate"]).sum())
    n_actions = int(
        (episodes.drop_duplicates(["task_id", "condition", "delay", "action", "replicate"])["action"] != "none").sum()
    )
    assert len(pairs) + len(problems) == n_actions + n_doubled
    if problems.empty:
        pd.testing.assert_frame_equal(pair(episodes), pairs)
    else:
        with pytest.raises(DataError):
            pair(episodes)
    ended = pairs["ended_before"].fillna(False)
    assert (pairs.loc[ended, "tau"] == 0).all()


@settings(max_examples=8, deadline=None)
@given(BRANCHES)
def test_against_a_search_through_all_branches(rows: Rows) -> None:
    episodes = frame(*rows).drop_duplicates(["task_id", "condition", "delay", "action", "replicate"])
    pairs, _ = pair(episodes, strict=False)
    none = {
        (row["task_id"], row["condition"], None if pd.isna(row["delay"]) else row["delay"], row["replicate"]): row
        for row in episodes[episodes["action"] == "none"].to_dict("records")
    }
    for row in pairs.to_dict("records"):
        places = [(d, r) for r in (row["replicate"], 0) for d in (row["delay"], None)]
        found = next(
            none[row["task_id"], row["condition"], *p] for p in places if (row["task_id"], row["condition"], *p) in none
        )
        assert row["success_without"] == found["success"]


@settings(max_examples=15, deadline=None)
@given(BRANCHES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_count(rows: Rows, random: Any) -> None:
    unique = frame(*rows).drop_duplicates(["task_id", "condition", "delay", "action", "replicate"])
    order = list(range(len(unique)))
    random.shuffle(order)
    key = ["task_id", "condition", "delay", "action", "replicate"]
    one, other = pair(unique, strict=False)[0], pair(unique.iloc[order], strict=False)[0]
    pd.testing.assert_frame_equal(
        one.sort_values(key, ignore_index=True), other.sort_values(key, ignore_index=True), check_dtype=True
    )
    pd.testing.assert_frame_equal(unpaired(unique), unpaired(unique.iloc[order]))


def test_a_hundred_thousand_pairs() -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    fork = {
        "task_id": np.char.add("task ", (np.arange(n) // 8).astype(str)),
        "condition": np.array(["clean", "stale2"])[np.arange(n) % 2],
        "delay": np.arange(n) // 2 % 4,
        "prefix_hash": np.arange(n).astype(str),
    }
    without = pd.DataFrame({**fork, "action": "none", "success": rng.random(n) < 0.5})
    with_ = pd.DataFrame({**fork, "action": "refresh", "success": rng.random(n) < 0.5})
    episodes = pd.concat([with_, without.sample(frac=1, random_state=0)], ignore_index=True)
    pairs = pair(episodes)
    assert len(pairs) == n
    assert pairs["success_without"].to_numpy().tolist() == without["success"].tolist()
    assert unpaired(episodes).empty
