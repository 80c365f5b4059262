"""What is missing from either arm: counted by state, tested task by task, and flagged where it is one-sided."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from faultbook.harness.attrition import ARM_COLUMNS, Attrition, attrition, observed_losses
from faultbook.harness.plan import held, plan
from faultbook.tables import Plan, Trials, typed

ARMS = ("a", "b")
VOID = {"cause": "provider_quota", "reward_valid": False}


def trial(arm: str, task: str, resolved: bool | None = None, attempt: int = 1, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def found(*rows: dict[str, Any], tasks: int = 1, attempts: int = 1, arms: tuple[str, str] = ARMS) -> Attrition:
    planned = plan(arms=["a", "b", "c"], tasks=[f"t{i}" for i in range(tasks)], attempts=attempts)
    return attrition(held(typed(list(rows), Trials), planned), arms)


def test_every_planned_trial_is_in_one_column() -> None:
    rows = [
        trial("a", "t0", True),
        trial("a", "t1", None),
        trial("a", "t2", True, **VOID),
        trial("a", "t3", state="unfinished"),
        trial("a", "t4", state="unreadable"),
        trial("a", "t5", False, cause="agent_budget_exhausted", reward_valid=True),
        trial("a", "t6", True),
        trial("a", "t6", False),  # contradicts the one before
        trial("c", "t0", True),
    ]
    table = found(*rows, tasks=8).arms
    assert list(table.columns) == ARM_COLUMNS
    assert table["arm"].tolist() == ["a", "b"]
    first, second = table.to_dict("records")
    assert first == {
        "arm": "a",
        "planned": 8,
        "not_started": 1,
        "unfinished": 1,
        "unreadable": 1,
        "finished": 5,
        "without_verdict": 2,
        "verdict_void": 1,
        "observed": 2,
        "infrastructure_failures": 1,
    }
    assert second["not_started"] == second["planned"] == 8
    for row in (first, second):
        assert sum(row[name] for name in ("not_started", "unfinished", "unreadable", "finished")) == row["planned"]
        assert sum(row[name] for name in ("without_verdict", "verdict_void", "observed")) == row["finished"]


def test_nothing_missing_is_nothing_to_test() -> None:
    result = found(trial("a", "t0", True), trial("b", "t0", False))
    assert (result.lost_in_a, result.lost_in_b, result.flags) == (0, 0, ())
    assert math.isnan(result.p)
    assert result.test == "sign flip over tasks, no nonzero task sums"
    assert result.summary_frame() is result.arms


@pytest.mark.parametrize(("lost_a", "lost_b"), [(0, 1), (3, 0), (1, 4), (2, 2), (6, 0)])
def test_with_one_attempt_it_is_mcnemar_s_test(lost_a: int, lost_b: int) -> None:
    rows = [trial("b", f"t{i}", True) for i in range(lost_a)]
    rows += [trial("a", f"t{lost_a + i}", False) for i in range(lost_b)]
    result = found(*rows, tasks=lost_a + lost_b + 2)  # two tasks are absent from both arms
    assert (result.lost_in_a, result.lost_in_b) == (lost_a, lost_b)
    assert result.p == pytest.approx(stats.binomtest(lost_a, lost_a + lost_b, 0.5).pvalue)
    assert result.test == "sign flip over tasks, exact, by convolution"
    swapped = found(*rows, tasks=lost_a + lost_b + 2, arms=("b", "a"))
    assert (swapped.lost_in_a, swapped.lost_in_b, swapped.p) == (lost_b, lost_a, result.p)


@pytest.mark.parametrize("loser", ["a", "b"])
def test_a_lopsided_loss_is_flagged(loser: str) -> None:
    rows = [trial("b" if loser == "a" else "a", f"t{i}", True) for i in range(6)]  # two-sided p = 2/64
    result = found(*rows, tasks=6)
    assert result.flags == (
        f"outcomes are missing more often in '{loser}' (p 0.031): the pairs left are not a fair sample",
    )
    assert found(*rows[:5], tasks=5).flags == ()  # p = 2/32


def test_failures_of_the_infrastructure_in_one_arm_are_flagged_whatever_p_is() -> None:
    rows = [trial("a", "t0", True, **VOID), trial("a", "t1", None, cause="sandbox"), trial("b", "t0", True)]
    rows.append(trial("a", "t2", state="unfinished", cause="provider_quota"))
    result = found(*rows, tasks=3)
    assert result.flags == ("failures of the infrastructure in 'a' only: 3 (provider_quota 2, sandbox 1)",)
    assert result.arms["infrastructure_failures"].tolist() == [3, 0]


def test_failures_in_both_arms_and_the_arms_own_causes_are_not() -> None:
    both = [trial("a", "t0", True, **VOID), trial("b", "t1", None, cause="user_abort")]
    assert found(*both, tasks=2).flags == ()
    own = [trial("a", "t0", None, cause=name) for name in ("agent_budget_exhausted",)]
    own += [trial("a", "t1", None, cause="unclassified"), trial("a", "t2", None, cause="process_crash")]
    assert found(*own, tasks=3).flags == ()


def test_repeats_are_losses_of_a_task() -> None:
    rows = [trial("a", "t0", True, k) for k in (1, 2, 3)] + [trial("b", "t0", True, 1)]
    rows += [trial("b", "t1", True, k) for k in (1, 2)] + [trial("a", "t1", True, 3)]
    result = found(*rows, tasks=2, attempts=3)
    assert (result.lost_in_a, result.lost_in_b) == (1, 1)
    assert result.p == 1.0  # losses −2 and +1: at least as far from 0 as −1 are all four patterns of signs


def test_tasks_of_unequal_plans_are_not_tested() -> None:
    rows = [("a", "t", 1), ("b", "t", 1), ("b", "t", 2), ("a", "u", 1), ("b", "u", 1), ("a", "v", 1)]
    planned = typed(pd.DataFrame(rows, columns=["arm", "task_id", "attempt"]).assign(source="file"), Plan)
    cells = held(typed([trial("b", "t", True), trial("b", "u", True)], Trials), planned)
    assert observed_losses(cells.cells, ARMS).tolist() == [1]
    assert attrition(cells, ARMS).lost_in_a == 1


def test_no_task_in_both_arms() -> None:
    rows = [("a", "t", 1), ("b", "u", 1)]
    planned = typed(pd.DataFrame(rows, columns=["arm", "task_id", "attempt"]).assign(source="file"), Plan)
    result = attrition(held(typed([trial("a", "t", True)], Trials), planned), ARMS)
    assert (result.lost_in_a, result.lost_in_b) == (0, 0)
    assert math.isnan(result.p)
    assert result.test == "no task is planned in both arms"
    assert result.arms["planned"].tolist() == [1, 1]
