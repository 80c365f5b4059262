"""Candidates: complete runs only, features of the fork that both branches share, outcomes beside them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.candidates import candidates
from faultbook.tables import Candidates

Rows = list[dict[str, Any]]


def run(task: str = "t1", condition: str = "stale2", delays: tuple[int, ...] = (1, 2, 4), **more: Any) -> Rows:
    """Both branches at each delay, with features of the fork."""
    rows = []
    for delay in delays:
        fork = {"task_id": task, "condition": condition, "delay": delay, "x_delay": delay / 4, "x_noop": 0.5, **more}
        rows += [fork | {"action": "none", "success": False}, fork | {"action": "refresh", "success": delay == 2}]
    return rows


def listed(rows: Rows, **options: Any) -> pd.DataFrame:
    return candidates(pd.DataFrame(rows), **options)


def problem(rows: Rows, **options: Any) -> str:
    """The one problem of the run t1, from both ways; the run t0 beside it stays."""
    rows = [*run("t0"), *rows]
    with pytest.raises(DataError) as strict:
        listed(rows, **options)
    table, problems = candidates(pd.DataFrame(rows), **options, strict=False)
    assert table["task_id"].unique().tolist() == ["t0"]
    assert problems["problem"].iloc[0] == strict.value.problem
    assert len(problems) == 1
    return str(strict.value)


def test_the_moments_of_two_runs() -> None:
    table = listed(run("t2", "clean") + run("t1"))
    Candidates.validate(table[list(Candidates.to_schema().columns)])
    assert list(table.columns) == [*Candidates.to_schema().columns, "x_delay", "x_noop"]
    assert table[["task_id", "condition", "delay"]].to_numpy().tolist() == [
        ["t1", "stale2", 1],
        ["t1", "stale2", 2],
        ["t1", "stale2", 4],
        ["t2", "clean", 1],
        ["t2", "clean", 2],
        ["t2", "clean", 4],
    ]
    assert table["is_error"].tolist() == [True] * 3 + [False] * 3
    assert table["tau"].tolist() == [0, 1, 0] * 2
    assert table["success_without"].tolist() == [False] * 6
    assert table["x_delay"].tolist() == [0.25, 0.5, 1] * 2
    assert table["reached"].all()


def test_a_moment_after_the_end_is_not_reached() -> None:
    rows = [row | {"ended_before": row["delay"] == 4} for row in run()]
    assert listed(rows)["reached"].tolist() == [True, True, False]


def test_other_actions_and_delays_are_left_alone() -> None:
    rows = run(delays=(0, 1, 2, 4)) + [row | {"action": "replan"} for row in run() if row["action"] == "refresh"]
    assert listed(rows)["delay"].tolist() == [1, 2, 4]
    assert listed(rows, delays=(0,))["delay"].tolist() == [0]
    assert listed(rows, action="replan", delays=[4, 1])["delay"].tolist() == [1, 4]
    assert listed([row | {"x_noop": 0.7} if row["action"] == "replan" else row for row in rows])["x_noop"].eq(0.5).all()


def test_replicates_are_runs_of_their_own() -> None:
    rows = run() + [row | {"replicate": 1} for row in run() if row["action"] == "refresh"]
    assert listed(rows)[["replicate", "delay"]].to_numpy().tolist() == [[0, 1], [0, 2], [0, 4], [1, 1], [1, 2], [1, 4]]


# ---- features -----------------------------------------------------------------------------------------------------


def test_features_come_from_either_branch() -> None:
    rows = [
        {name: value for name, value in row.items() if row["action"] == "refresh" or name[:2] != "x_"} for row in run()
    ]
    assert listed(rows)["x_delay"].tolist() == [0.25, 0.5, 1]
    rows = [
        {name: value for name, value in row.items() if row["action"] == "none" or name[:2] != "x_"} for row in run()
    ]
    assert listed(rows)["x_delay"].tolist() == [0.25, 0.5, 1]


def test_one_feature_alone_is_taken() -> None:
    table = listed([{name: value for name, value in row.items() if name != "x_noop"} for row in run()])
    assert [name for name in table if name.startswith("x_")] == ["x_delay"]


def test_a_feature_that_nobody_knows_is_missing() -> None:
    assert listed([row | {"x_noop": None} for row in run()])["x_noop"].isna().all()
    assert [
        name for name in listed([{k: v for k, v in row.items() if k[:2] != "x_"} for row in run()]) if name[:2] == "x_"
    ] == []


def test_features_of_a_branch_that_serves_every_delay_belong_to_no_fork() -> None:
    none = {"task_id": "t1", "condition": "stale2", "delay": None, "action": "none", "success": False, "x_delay": 99.0}
    table = listed([none, *(row for row in run() if row["action"] == "refresh")])
    assert table["x_delay"].tolist() == [0.25, 0.5, 1]


def test_features_that_differ_at_one_fork() -> None:
    rows = [row | {"x_noop": 0.9} if (row["action"], row["delay"]) == ("refresh", 2) else row for row in run()]
    message = problem(rows)
    for part in ("'t1'", "delay 2", "column 'x_noop'", "0.9 with the action, 0.5 without", "before the action"):
        assert part in message


def test_features_written_with_fewer_digits_are_the_same() -> None:
    rows = [row | {"x_noop": 1 / 3 if row["action"] == "none" else 0.333333333333} for row in run()]
    assert len(listed(rows)) == 3
    assert listed(rows)["x_noop"].iloc[0] == pytest.approx(1 / 3)


def test_a_feature_of_another_type() -> None:
    with pytest.raises(FaultbookError, match="'x_noop' is of another type; give numbers"):
        listed([row | {"x_noop": "low"} for row in run()])


# ---- what cannot be judged ----------------------------------------------------------------------------------------


def test_a_run_that_lacks_a_moment() -> None:
    message = problem([row for row in run() if (row["action"], row["delay"]) != ("refresh", 2)])
    for part in ("'t1'", "'stale2'", "no branch at delay 2", "carry its outcome forward"):
        assert part in message


def test_a_run_that_has_no_moment_at_all() -> None:
    rows = run("t0") + [row for row in run() if row["action"] == "none"]
    with pytest.raises(DataError, match="task 't1', condition 'stale2', replicate 0 has no branch at delay 1"):
        listed(rows)
    table, problems = candidates(pd.DataFrame(rows), strict=False)
    assert (len(table), len(problems)) == (3, 3)


def test_a_replicate_that_lacks_a_moment() -> None:
    extra = [row | {"replicate": 1} for row in run() if row["action"] == "refresh" and row["delay"] != 4]
    with pytest.raises(DataError, match="replicate 1 has no branch at delay 4"):
        listed([*run(), *extra])
    table, _ = candidates(pd.DataFrame([*run(), *extra]), strict=False)
    assert table["replicate"].tolist() == [0, 0, 0]


def test_a_pair_that_is_refused_takes_its_run_along() -> None:
    rows = [row | {"prefix_hash": f"{row['action']}" if row["delay"] == 2 else "same"} for row in run()]
    assert "the branches differ in the state that they start from" in problem(rows)


def test_a_run_that_cannot_be_paired() -> None:
    assert "no 'none' branch" in problem([row for row in run() if (row["action"], row["delay"]) != ("none", 2)])


def test_controls_need_no_moments() -> None:
    rows = run() + [row | {"replicate": 5} for row in run() if row["action"] == "none"]
    assert len(listed(rows)) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"action": "replan"},
            r"no branch with the action 'replan' at delay 1 \(there are actions 'none', 'refresh'\)",
        ),
        ({"delays": (1, 3)}, r"'refresh' at delay 3 \(there are delays 1, 2, 4\)"),
        ({"action": "none"}, "a rule cannot take"),
        ({"delays": ()}, "give whole numbers"),
        ({"delays": (-1,)}, "give whole numbers"),
        ({"delays": (1.5,)}, "give whole numbers"),
        ({"delays": ("1",)}, "give whole numbers"),
    ],
)
def test_actions_and_delays_that_are_not_there(options: dict[str, Any], said: str) -> None:
    with pytest.raises(FaultbookError, match=said):
        listed(run(), **options)


def test_the_order_of_rows_does_not_count() -> None:
    rows = run("t10", "clean") + run("t9") + run("t9", "clean", ended_before=False)
    pd.testing.assert_frame_equal(listed(rows), listed(rows[::-1]))
    assert not math.isnan(listed(rows)["x_noop"].sum())


def test_features_that_may_be_missing_in_any_type() -> None:
    frame = pd.DataFrame(run())
    whole, flags = pd.array([1, None] * 3, dtype="Int64"), pd.array([None, True] * 3, dtype="boolean")
    table = candidates(frame.assign(x_whole=whole, x_flag=flags, x_object=[None, 2] * 3))
    assert table[["x_whole", "x_flag", "x_object"]].to_numpy().tolist() == [[1, 1, 2]] * 3
