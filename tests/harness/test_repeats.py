"""pass@k of several attempts: over all planned tasks, or not at all."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pandas as pd
import pytest

from faultbook.errors import FaultbookError
from faultbook.harness.plan import plan
from faultbook.harness.repeats import pass_at_k
from faultbook.tables import Trials, typed


def trial(arm: str, task: str, resolved: bool | None = None, attempt: int = 1, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def table(**tasks: str) -> list[dict[str, Any]]:
    """Trials of arm a: one letter an attempt, 1 solved, 0 not, ? without a verdict."""
    verdicts = {"1": True, "0": False, "?": None}
    return [trial("a", task, verdicts[letter], k) for task, side in tasks.items() for k, letter in enumerate(side, 1)]


def estimates(rows: list[dict[str, Any]], *k: int, **settings: Any) -> dict[int, dict[str, Any]]:
    found = pass_at_k(typed(rows, Trials), k=k, **settings)
    return found[found["arm"] == "a"].set_index("k").to_dict("index")


def test_it_is_the_share_of_subsets_with_a_success() -> None:
    sides = {"t": "11000", "u": "00000", "v": "11110"}
    found = estimates(table(**sides), 1, 2, 3, 5)
    for k, row in found.items():
        shares = [sum("1" in one for one in combinations(side, k)) / math.comb(5, k) for side in sides.values()]
        assert row["estimate"] == pytest.approx(sum(shares) / 3)
        assert (row["n_tasks"], row["n_lacking"]) == (3, 0)
        assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1
    assert found[1]["estimate"] == pytest.approx(6 / 15)


@pytest.mark.parametrize("broken", ["1?", "1"])
def test_with_fewer_scored_attempts_than_k_it_is_not_estimable(broken: str) -> None:
    # One library returns 1.0 here (inspect_ai, pull request 3911).
    found = estimates(table(t="11", u=broken), 1, 2)
    assert found[1]["estimate"] == 1.0
    assert math.isnan(found[2]["estimate"])
    assert found[2]["n_lacking"] == 1
    assert found[2]["method"] == "not estimable: 1 of 2 tasks have fewer than 2 scored attempts"


def test_a_planned_task_that_never_ran_lacks_attempts() -> None:
    planned = plan(arms=["a", "b"], tasks=["t", "never"], attempts=2)
    found = pass_at_k(typed(table(t="11"), Trials), planned, k=(1,))
    assert found["arm"].tolist() == ["a", "b"]
    assert found["estimate"].isna().all()
    assert found["n_lacking"].tolist() == [1, 2]


def test_void_verdicts_and_contradictory_records_are_no_scored_attempts() -> None:
    rows = [*table(t="11"), trial("a", "t", False, 1)]
    assert estimates(rows, 2)[2]["n_lacking"] == 1
    rows = table(t="11")
    rows[0] |= {"cause": "sandbox", "reward_valid": False}
    assert estimates(rows, 2)[2]["n_lacking"] == 1
    assert estimates(rows, 1)[1]["estimate"] == 1


def test_attempts_beyond_the_plan_do_not_count() -> None:
    rows = table(t="0011")
    assert estimates(rows, 1)[1]["estimate"] == 0.5
    assert estimates(rows, 1, planned=plan(arms=["a"], tasks=["t"], attempts=2))[1]["estimate"] == 0.0


def test_one_task_has_no_interval() -> None:
    row = estimates(table(t="10"), 1)[1]
    assert row["estimate"] == 0.5
    assert math.isnan(row["low"])
    assert "there is one task only" in row["method"]


def test_no_k_is_no_row() -> None:
    found = pass_at_k(typed(table(t="10"), Trials), k=())
    assert found.empty
    expected = ["arm", "k", "estimate", "low", "high", "level", "n_tasks", "n_lacking", "method"]
    assert list(found.columns) == list(pass_at_k(typed(table(t="10"), Trials)).columns) == expected


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_what_is_no_k(k: Any) -> None:
    with pytest.raises(ValueError, match="k is"):
        pass_at_k(typed(table(t="10"), Trials), k=(k,))


def test_nothing_planned() -> None:
    with pytest.raises(FaultbookError, match="no plan can be inferred"):
        pass_at_k(typed([], Trials))


def test_the_order_of_rows_changes_nothing() -> None:
    rows = table(t="110", u="010", v="000")
    frame = typed(rows, Trials)
    pd.testing.assert_frame_equal(pass_at_k(frame, k=(1, 2)), pass_at_k(frame[::-1].reset_index(drop=True), k=(1, 2)))
