"""Two arms on the same pairs: the published numbers, sharp bounds, and what may not change a result."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.harness.compare import ESTIMANDS, Comparison, compare
from faultbook.harness.plan import plan
from faultbook.tables import Plan, Trials, typed

KEY = ["arm", "task_id", "attempt"]
CHECK = settings(max_examples=10, deadline=None)


def trial(arm: str, task: str | None, resolved: bool | None = None, attempt: int = 1, **more: Any) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": resolved}
    return row | {"usage_status": "absent", "source_format": "csv"} | more


def trials(*rows: dict[str, Any]) -> pd.DataFrame:
    return typed(list(rows), Trials)


def planned(rows: Iterable[tuple[str, str, int]]) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), columns=KEY).assign(source="file"), Plan)


def split(both: int, only_a: int, only_b: int, neither: int) -> list[dict[str, Any]]:
    """Trials of two arms with this paired table, one attempt a task."""
    pairs = [(True, True)] * both + [(True, False)] * only_a + [(False, True)] * only_b + [(False, False)] * neither
    return [trial(arm, f"t{i}", result) for i, pair in enumerate(pairs) for arm, result in zip("ab", pair, strict=True)]


def numbers(found: Comparison) -> dict[str, Any]:
    """Everything that an estimate says, with NaN equal to itself."""
    names = ("complete_pairs", "table", "rate_a", "rate_b", "difference", "low", "high", "method", "mcnemar_exact")
    names = (*names, "mcnemar_mid_p", "sign_flip", "test")
    values = {name: getattr(found, name) for name in names}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


# ---- published numbers


def test_the_published_run_of_21_pairs() -> None:
    # An assumed split of the published 7 and 10 of 21 (reference, section 3.2): difference, interval of Bonett and
    # Price and mid-p as another package gives them, the exact p as statsmodels gives it.
    found = compare(trials(*split(5, 2, 5, 9)))
    assert found.table == {"both": 5, "only_a": 2, "only_b": 5, "neither": 9}
    assert (found.pairs, found.complete_pairs) == (21, 21)
    assert (round(found.rate_a * 21), round(found.rate_b * 21)) == (7, 10)
    assert round(found.difference, 1) == -14.3
    assert [round(found.low, 1), round(found.high, 1)] == [-38.0, 12.0]
    assert found.method == "Bonett-Price adjusted Wald"
    assert round(found.mcnemar_exact, 3) == 0.453
    assert round(found.mcnemar_mid_p, 3) == 0.289
    assert found.test == "McNemar, exact binomial"
    assert math.isnan(found.sign_flip)
    assert found.bounds.low == found.bounds.high == pytest.approx(found.difference)
    assert found.bounds.could_turn == "no"
    assert found.plan_source == "inferred"
    assert found.attrition.flags == ()


def test_the_published_run_of_24_pairs() -> None:
    # The first paired run of the repository: 13 and 14 of 24, exact p = 1 (reference, section 1.1).
    found = compare(trials(*split(11, 2, 3, 8)))
    assert found.mcnemar_exact == 1.0
    assert (round(found.rate_a * 24), round(found.rate_b * 24)) == (13, 14)
    assert found.difference == pytest.approx(-100 / 24)


def test_three_tasks_that_never_started_leave_the_estimate_and_open_the_bounds() -> None:
    # 24 planned, of which 21 are pairs: −25.0 to 0.0 pp, since b solved 3 more and 3 are open in either arm.
    tasks = [f"t{i}" for i in range(24)]
    found = compare(trials(*split(5, 2, 5, 9)), plan(arms=["a", "b"], tasks=tasks))
    alone = compare(trials(*split(5, 2, 5, 9)))
    assert numbers(found) == numbers(alone)
    assert (found.pairs, found.complete_pairs) == (24, 21)
    assert found.bounds.low == pytest.approx(-25.0)
    assert found.bounds.high == 0.0
    assert found.bounds.could_turn == "it could level it"
    assert found.pair_table["why"].dropna().tolist() == ["a: not started; b: not started"] * 3


# ---- bounds


def completions(cells: list[tuple[str, str, bool | None]]) -> tuple[Fraction, Fraction]:
    """The lowest and highest difference of mean task rates over every way the missing outcomes may come out."""
    tasks = sorted({task for _, task, _ in cells})
    found = []
    free = [i for i, (_, _, result) in enumerate(cells) if result is None]
    for ends in itertools.product((False, True), repeat=len(free)):
        results = [result for _, _, result in cells]
        for i, end in zip(free, ends, strict=True):
            results[i] = end
        total = Fraction(0)
        for arm, sign in (("a", 1), ("b", -1)):
            for task in tasks:
                own = [r for (one, t, _), r in zip(cells, results, strict=True) if (one, t) == (arm, task)]
                total += sign * Fraction(sum(map(bool, own)), len(own))
        found.append(total / len(tasks))
    return min(found), max(found)


OUTCOMES = st.sampled_from([True, False, None])


@CHECK
@given(
    st.lists(
        st.tuples(st.lists(OUTCOMES, min_size=1, max_size=3), st.lists(OUTCOMES, min_size=1, max_size=2)),
        min_size=1,
        max_size=3,
    )
)
def test_bounds_are_those_of_every_completion(tasks: list[tuple[list[bool | None], list[bool | None]]]) -> None:
    cells = [
        (arm, f"t{i}", result) for i, sides in enumerate(tasks) for arm, side in zip("ab", sides, strict=True)
        for result in side
    ]  # fmt: skip
    counted: dict[tuple[str, str], int] = {}
    rows, plan_rows = [], []
    for arm, task, result in cells:
        counted[arm, task] = attempt = counted.get((arm, task), 0) + 1
        plan_rows.append((arm, task, attempt))
        if result is not None:
            rows.append(trial(arm, task, result, attempt))
    found = compare(trials(*rows), planned(plan_rows))
    low, high = completions(cells)
    assert found.bounds.low == pytest.approx(float(100 * low), abs=1e-9)
    assert found.bounds.high == pytest.approx(float(100 * high), abs=1e-9)
    if found.complete_pairs:
        turned = low < 0 if found.difference > 1e-9 else high > 0 if found.difference < -1e-9 else bool(low or high)
        assert (found.bounds.could_turn == "yes") == turned


def test_bounds_where_the_two_arms_had_different_tasks_under_one_name() -> None:
    rows = [*split(1, 0, 0, 0), *[trial(arm, "x", arm == "a", task_checksum=arm) for arm in "ab"]]
    found = compare(trials(*rows))
    assert found.complete_pairs == 1
    assert (found.bounds.low, found.bounds.high) == (-50.0, 50.0)  # nothing is known of the planned task


# ---- what changes nothing, and what changes signs only

RESULTS = st.sampled_from([True, True, False, False, None, "unfinished", "void", "absent"])
SINGLE = st.lists(st.tuples(RESULTS, RESULTS), min_size=1, max_size=7).map(
    lambda pairs: [(f"t{i}", [a], [b]) for i, (a, b) in enumerate(pairs)]
)
SEVERAL = st.lists(
    st.tuples(st.lists(RESULTS, min_size=1, max_size=3), st.lists(RESULTS, min_size=1, max_size=3)),
    min_size=1,
    max_size=5,
).map(lambda pairs: [(f"t{i}", *pair) for i, pair in enumerate(pairs)])
RUNS = st.one_of(SINGLE, SEVERAL)


def run(
    tasks: list[tuple[str, list[Any], list[Any]]], arms: str = "ab"
) -> tuple[list[dict[str, Any]], list[tuple[str, str, int]]]:
    """Trials and plan: a result is a verdict, None, unfinished, void or absent."""
    rows, plan_rows = [], []
    for task, *sides in tasks:
        for arm, side in zip(arms, sides, strict=True):
            for attempt, result in enumerate(side, start=1):
                plan_rows.append((arm, task, attempt))
                if result == "unfinished":
                    rows.append(trial(arm, task, None, attempt, state="unfinished"))
                elif result == "void":
                    rows.append(trial(arm, task, True, attempt, cause="provider_quota", reward_valid=False))
                elif result != "absent":
                    rows.append(trial(arm, task, result, attempt))
    return rows, plan_rows


@CHECK
@given(RUNS, st.lists(st.sampled_from(["unfinished", "absent", "void", None]), min_size=2, max_size=2))
def test_an_unfinished_trial_widens_the_bounds_and_changes_no_estimate(tasks: Any, more: list[Any]) -> None:
    rows, plan_rows = run(tasks)
    before = compare(trials(*rows), planned(plan_rows))
    new_rows, new_plan = run([("new", more[:1], more[1:])])
    after = compare(trials(*rows, *new_rows), planned([*plan_rows, *new_plan]))
    single = before.table is not None
    assert numbers(after) == numbers(before)
    assert after.bounds.low <= before.bounds.low
    assert after.bounds.high >= before.bounds.high
    assert after.bounds.high - after.bounds.low > before.bounds.high - before.bounds.low or before.bounds.low == -100
    assert (after.table is not None) == single
    assert after.pairs == before.pairs + 1


@CHECK
@given(SEVERAL, st.data())
def test_a_further_planned_attempt_widens_the_bounds_too(tasks: Any, data: st.DataObject) -> None:
    rows, plan_rows = run(tasks)
    before = compare(trials(*rows), planned(plan_rows))
    place = data.draw(st.integers(0, len(tasks) - 1))
    tasks[place][1].append("absent")
    after = compare(trials(*rows), planned(run(tasks)[1]))
    assert after.bounds.low <= before.bounds.low
    assert after.bounds.high >= before.bounds.high
    assert after.complete_pairs <= before.complete_pairs  # that task is not complete any more


@CHECK
@given(RUNS)
def test_swapping_the_arms_changes_signs_and_nothing_else(tasks: Any) -> None:
    rows, plan_rows = run(tasks)
    one = compare(trials(*rows), planned(plan_rows), arms=["a", "b"])
    other = compare(trials(*rows), planned(plan_rows), arms=["b", "a"])
    same = ("complete_pairs", "pairs", "mcnemar_exact", "mcnemar_mid_p", "sign_flip", "test", "method")
    for name in same:
        assert getattr(one, name) == getattr(other, name) or math.isnan(getattr(one, name))
    pairs = [(one.difference, other.difference), (one.low, other.high), (one.high, other.low)]
    pairs += [(one.bounds.low, other.bounds.high), (one.bounds.high, other.bounds.low)]
    for mine, theirs in pairs:
        assert mine == -theirs or (math.isnan(mine) and math.isnan(theirs))
    assert one.rate_a == other.rate_b or math.isnan(one.rate_a)
    assert one.bounds.could_turn == other.bounds.could_turn
    assert one.attrition.lost_in_a == other.attrition.lost_in_b
    assert one.attrition.p == other.attrition.p or math.isnan(one.attrition.p)


@CHECK
@given(RUNS)
def test_a_trial_outside_the_plan_never_enters(tasks: Any) -> None:
    rows, plan_rows = run(tasks)
    before = compare(trials(*rows), planned(plan_rows))
    strangers = [trial("c", "t0", True), trial("a", "elsewhere", True), trial("b", "t0", True, 99)]
    strangers += [trial("a", None, state="unreadable")]
    after = compare(trials(*strangers, *rows), planned(plan_rows))
    assert numbers(after) == numbers(before)
    assert after.bounds == before.bounds
    pd.testing.assert_frame_equal(after.pair_table, before.pair_table)
    pd.testing.assert_frame_equal(after.denominators, before.denominators)
    pd.testing.assert_frame_equal(after.attrition.arms, before.attrition.arms)
    assert len(after.outside) == len(before.outside) + 4


@CHECK
@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_tasks_change_nothing(tasks: Any, rng: random.Random) -> None:
    rows, plan_rows = run(tasks)
    doubled = [*rows, *rng.sample(rows, len(rows) // 2)]
    before = compare(trials(*doubled), planned(plan_rows), arms=["a", "b"])
    name = {task: f"z{place}" for (task, _, _), place in zip(tasks, rng.sample(range(99), len(tasks)), strict=True)}
    shuffled = [row | {"task_id": name[row["task_id"]]} for row in rng.sample(doubled, len(doubled))]
    plan_rows = [(arm, name[task], attempt) for arm, task, attempt in rng.sample(plan_rows, len(plan_rows))]
    after = compare(trials(*shuffled), planned(plan_rows), arms=["a", "b"])
    assert numbers(after) == numbers(before)
    assert after.bounds == before.bounds
    pd.testing.assert_frame_equal(after.estimands, before.estimands)
    pd.testing.assert_frame_equal(after.denominators, before.denominators)
    pd.testing.assert_frame_equal(after.attrition.arms, before.attrition.arms)
    assert replace(after.attrition, arms=before.attrition.arms, p=0.0) == replace(before.attrition, p=0.0)


# ---- verdicts that stand


def test_void_verdicts_count_in_the_second_estimand_only() -> None:
    void = {"reward_valid": False, "cause": "provider_quota"}
    rows = [*split(2, 0, 0, 2), trial("a", "x", True), trial("b", "x", False, **void)]
    found = compare(trials(*rows))
    assert found.complete_pairs == 4
    assert found.difference == 0
    assert found.estimands["estimand"].tolist() == list(ESTIMANDS)
    assert found.estimands["pairs"].tolist() == [4, 5, 5]
    assert found.estimands["difference"].tolist() == [0, 20, 20]
    assert found.pair_table["why"].dropna().tolist() == ["b: void verdict (provider_quota)"]
    assert found.bounds.low == 0
    assert found.bounds.high == 20
    assert found.attrition.flags == ("failures of the infrastructure in 'b' only: 1 (provider_quota 1)",)


def test_a_resolved_timeout_of_the_agent_stays() -> None:
    timeout = {"cause": "agent_budget_exhausted", "reward_valid": True, "exception_type": "AgentTimeoutError"}
    found = compare(trials(trial("a", "t", True, **timeout), trial("b", "t", False)))
    assert found.table == {"both": 0, "only_a": 1, "only_b": 0, "neither": 0}


def test_what_is_missing_counts_as_failed_in_the_third_estimand_only() -> None:
    found = compare(trials(*split(1, 0, 0, 0), trial("a", "x", True), trial("b", "y", True)))
    assert found.complete_pairs == 1
    assert found.estimands["pairs"].tolist() == [1, 1, 3]
    assert found.estimands[["rate_a", "rate_b"]].values.tolist()[-1] == [2 / 3, 2 / 3]
    assert found.estimands["test"].tolist()[-1] == "McNemar, exact binomial"


def test_a_void_success_counts_as_leaderboards_count_it_in_the_third_estimand() -> None:
    void = {"reward_valid": False, "cause": "provider_quota"}
    found = compare(trials(*split(0, 0, 0, 1), trial("a", "x", True, **void)))
    assert found.estimands["pairs"].tolist() == [1, 1, 2]
    assert found.estimands["rate_a"].tolist() == [0, 0, 0.5]


def test_records_that_contradict_one_another_are_no_pair() -> None:
    rows = [*split(1, 1, 0, 0), trial("a", "t0", False)]
    found = compare(trials(*rows))
    assert found.complete_pairs == 1
    assert found.pair_table["why"].dropna().tolist() == ["a: contradictory records"]
    assert len(found.outside) == 1


def test_a_checksum_that_differs_is_no_pair() -> None:
    rows = [trial(arm, "t", True, task_checksum=arm) for arm in "ab"]
    found = compare(trials(*rows))
    assert found.complete_pairs == 0
    assert math.isnan(found.difference)
    assert found.test == "no complete pair"
    assert (found.bounds.low, found.bounds.high, found.bounds.could_turn) == (-100.0, 100.0, "")


# ---- several attempts


def repeats(**tasks: tuple[str, str]) -> list[dict[str, Any]]:
    """Trials of "110" style outcomes: one letter an attempt, 1 solved, 0 not."""
    return [
        trial(arm, task, letter == "1", attempt)
        for task, sides in tasks.items()
        for arm, side in zip("ab", sides, strict=True)
        for attempt, letter in enumerate(side, start=1)
    ]


def test_repeats_are_means_of_tasks() -> None:
    # Shares 2/3, 0, 1 against 1/3, 1/3, 1: mean difference 0, by hand.
    found = compare(trials(*repeats(t=("110", "100"), u=("000", "010"), v=("111", "111"))))
    assert found.table is None
    assert math.isnan(found.mcnemar_exact)
    assert math.isnan(found.mcnemar_mid_p)
    assert found.difference == pytest.approx(0.0)
    assert (found.rate_a, found.rate_b) == (pytest.approx(5 / 9), pytest.approx(5 / 9))
    assert found.method == "t over 3 tasks"
    assert found.sign_flip == 1.0
    assert found.test == "sign flip over tasks, exact, by convolution"
    assert found.bounds.low == found.bounds.high == 0


def test_repeats_of_unequal_number_weigh_tasks_equally() -> None:
    # 1/2 − 1/3 and 1 − 0, by hand: (1/6 + 1)/2; signs: all four patterns, two as extreme.
    rows = repeats(t=("10", "100"), u=("1", "0"))
    own = planned({(row["arm"], row["task_id"], row["attempt"]) for row in rows})
    found = compare(trials(*rows), own, arms=["a", "b"])
    assert found.difference == pytest.approx(100 * 7 / 12)
    assert found.sign_flip == 0.5
    assert found.complete_pairs == 2
    # Inferred, the plan has the third attempt for a as well, and that task is not complete.
    assert compare(trials(*rows)).complete_pairs == 1


def test_a_missing_attempt_makes_its_task_incomplete_and_opens_the_bounds() -> None:
    rows = repeats(t=("11", "00"), u=("10", "10"))[:-1]
    found = compare(trials(*rows))
    assert found.complete_pairs == 1
    assert found.difference == 100.0
    assert (found.bounds.low, found.bounds.high) == (25.0, 50.0)
    assert math.isnan(found.low)
    assert "degenerate, no interval: there is one task only" in found.method


def test_many_different_numbers_of_attempts_have_a_p_all_the_same() -> None:
    # The least common multiple of the attempts is too large for whole numbers.
    rng = random.Random(0)
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
    tasks = {f"t{i}": tuple("".join(rng.choice("01") for _ in range(primes[i % 11])) for _ in "ab") for i in range(33)}
    found = compare(trials(*repeats(**tasks)))
    assert found.test == "sign flip over tasks, Monte Carlo"
    assert 0 < found.sign_flip <= 1
    assert found.sign_flip == compare(trials(*repeats(**tasks)), arms=["b", "a"]).sign_flip


# ---- ends of the range


@pytest.mark.parametrize(
    ("table", "difference", "test"),
    [
        ((1, 0, 0, 0), 0.0, "no discordant pairs"),
        ((0, 0, 0, 9), 0.0, "no discordant pairs"),
        ((9, 0, 0, 0), 0.0, "no discordant pairs"),
        ((0, 1, 0, 0), 100.0, "McNemar, exact binomial"),
        ((0, 9, 0, 0), 100.0, "McNemar, exact binomial"),
        ((0, 0, 9, 0), -100.0, "McNemar, exact binomial"),
    ],
)
def test_none_and_all(table: tuple[int, int, int, int], difference: float, test: str) -> None:
    found = compare(trials(*split(*table)))
    assert found.difference == difference
    assert found.test == test
    assert math.isnan(found.mcnemar_exact) == (test == "no discordant pairs")
    assert -100 <= found.low < found.high <= 100
    assert found.low <= difference <= found.high or abs(difference) == 100


def test_no_complete_pair() -> None:
    found = compare(trials(trial("a", "t", True), trial("b", "u", False)))
    assert (found.pairs, found.complete_pairs) == (2, 0)
    assert found.table == dict.fromkeys(("both", "only_a", "only_b", "neither"), 0)
    for name in ("rate_a", "rate_b", "difference", "low", "high", "mcnemar_exact", "mcnemar_mid_p", "sign_flip"):
        assert math.isnan(getattr(found, name))
    assert (found.bounds.low, found.bounds.high, found.bounds.could_turn) == (0.0, 100.0, "")


def test_no_task_in_common() -> None:
    found = compare(trials(trial("a", "t", True), trial("b", "u", True)), planned([("a", "t", 1), ("b", "u", 1)]))
    assert (found.pairs, found.complete_pairs) == (0, 0)
    assert math.isnan(found.difference)
    assert math.isnan(found.bounds.low)
    assert found.bounds.could_turn == ""
    assert found.pair_table.empty
    assert found.attrition.test == "no task is planned in both arms"
    assert found.summary_frame().shape[0] == 1


def test_an_arm_that_never_ran() -> None:
    found = compare(trials(trial("a", "t", True)), plan(arms=["a", "b"], tasks=["t", "u"]))
    assert found.complete_pairs == 0
    assert (found.bounds.low, found.bounds.high) == (-50.0, 100.0)
    assert found.attrition.arms["not_started"].tolist() == [1, 2]


def test_three_arms_are_compared_two_by_two() -> None:
    rows = [trial(arm, task, arm != "b") for arm in "abc" for task in "tu"]
    with pytest.raises(FaultbookError, match=r"the plan has 3 arms \('a', 'b', 'c'\); name the two"):
        compare(trials(*rows))
    found = compare(trials(*rows), arms=("c", "b"))
    assert (found.arm_a, found.arm_b, found.difference) == ("c", "b", 100.0)
    assert found.attrition.arms["arm"].tolist() == ["c", "b"]
    alone = compare(trials(*[row for row in rows if row["arm"] != "a"]), arms=("c", "b"))
    assert numbers(found) == numbers(alone)
    with pytest.raises(FaultbookError, match="no arm 'd' in the plan; there are 'a', 'b', 'c'"):
        compare(trials(*rows), arms=("a", "d"))


def test_attempts_that_count_from_0() -> None:
    rows = [row | {"attempt": 0} for row in split(5, 2, 5, 9)]
    assert numbers(compare(trials(*rows))) == numbers(compare(trials(*split(5, 2, 5, 9))))
    mixed = [row | {"attempt": int(row["arm"] == "a")} for row in rows]
    assert numbers(compare(trials(*mixed))) == numbers(compare(trials(*rows)))


def test_one_arm_or_none_is_no_comparison() -> None:
    with pytest.raises(FaultbookError, match="the plan has 1 arms"):
        compare(trials(trial("a", "t", True)))
    with pytest.raises(FaultbookError, match="no plan can be inferred"):
        compare(trials())


# ---- what is known of how many


def test_denominators_are_counted_apart() -> None:
    metered = {"input_tokens": 5, "output_tokens": 5, "usage_status": "reported"}
    rows = [
        trial("a", "t", True, **metered, total_seconds=1.0),
        trial("b", "t", True, **metered),
        trial("a", "u", True, total_seconds=1.0),
        trial("b", "u", None, **metered, total_seconds=0.0),
    ]
    found = compare(trials(*rows), plan(arms=["a", "b"], tasks=["t", "u", "v"])).denominators
    assert found.values.tolist() == [["outcome", 3, 1, 1, 0, 1], ["usage", 3, 1, 0, 1, 1], ["time", 3, 1, 1, 0, 1]]


def test_the_level_goes_to_every_interval() -> None:
    rows = trials(*split(5, 2, 5, 9))
    narrow, wide = compare(rows, level=0.5), compare(rows, level=0.99)
    assert (narrow.level, wide.level) == (0.5, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.estimands["low"].tolist() == [wide.low] * 3


def test_the_summary_has_the_numbers_in_one_row() -> None:
    found = compare(trials(*split(5, 2, 5, 9)))
    row = found.summary_frame().iloc[0]
    assert row["difference"] == found.difference
    assert row["bounds_could_turn"] == found.bounds.could_turn
    assert row["complete_pairs"] == 21


@pytest.mark.usefixtures("house_style")
def test_it_is_drawn() -> None:
    _, ax = plt.subplots()
    assert compare(trials(*split(5, 2, 5, 9))).plot(ax) is ax
