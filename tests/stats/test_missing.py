"""Bounds of a difference with unfinished trials: every completion by enumeration, and what may not narrow them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.stats.missing import DifferenceBounds, could_turn, difference_bounds, task_mean_bounds

NAMES = ("known_a", "successes_a", "planned_a", "known_b", "successes_b", "planned_b")
Arm = tuple[int, int, int]  # known, successes, planned


def arms(most: int) -> st.SearchStrategy[Arm]:
    return st.tuples(*[st.integers(0, most)] * 3).map(sorted).map(lambda x: (x[1], x[0], max(x[2], 1)))


def rates(arm: Arm) -> Iterator[Fraction]:
    """The rates of an arm over every completion of its unfinished trials."""
    known, successes, planned = arm
    for rest in itertools.product([0, 1], repeat=planned - known):
        yield Fraction(successes + sum(rest), planned)


def of_tasks(tasks: list[tuple[Arm, Arm]]) -> DifferenceBounds:
    return task_mean_bounds(*zip(*[(*a, *b) for a, b in tasks], strict=True))


def ends(bounds: DifferenceBounds) -> tuple[float, float]:
    return bounds.low, bounds.high


@settings(deadline=None)
@given(arms(5), arms(5))
def test_bounds_are_the_extremes_over_every_completion(a: Arm, b: Arm) -> None:
    found = {x - y for x, y in itertools.product(rates(a), rates(b))}
    bounds = difference_bounds(*a, *b)
    assert ends(bounds) == (float(min(found)), float(max(found)))
    assert (bounds.low_a, bounds.high_a) == (float(min(rates(a))), float(max(rates(a))))
    assert (bounds.low_b, bounds.high_b) == (float(min(rates(b))), float(max(rates(b))))
    assert (bounds.unfinished_a, bounds.unfinished_b) == (a[2] - a[0], b[2] - b[0])
    assert bounds.n_tasks is None


@settings(deadline=None)
@given(st.lists(st.tuples(arms(2), arms(2)), min_size=1, max_size=3))
def test_task_means_are_the_extremes_over_every_completion(tasks: list[tuple[Arm, Arm]]) -> None:
    of_each = [{x - y for x, y in itertools.product(rates(a), rates(b))} for a, b in tasks]
    found = {sum(chosen, Fraction(0)) / len(tasks) for chosen in itertools.product(*of_each)}
    bounds = of_tasks(tasks)
    assert ends(bounds) == (float(min(found)), float(max(found)))
    assert bounds.n_tasks == len(tasks)
    assert bounds.planned_a == sum(a[2] for a, _ in tasks)
    assert bounds.unfinished_b == sum(b[2] - b[0] for _, b in tasks)
    for difference in (0.25, -0.25, 0.0):
        assert could_turn(bounds, difference) == answer(found, difference)


def answer(completions: set[Fraction], difference: float) -> str:
    """What `could_turn` should say, from the list of all completions."""
    if difference == 0:
        return "yes" if any(completions) else "no"
    signed = [x if difference > 0 else -x for x in completions]
    return "yes" if min(signed) < 0 else "it could level it" if min(signed) == 0 else "no"


@given(arms(30), arms(30), st.sampled_from(["a", "b"]))
def test_an_unfinished_trial_more_never_narrows(a: Arm, b: Arm, arm: str) -> None:
    known, successes, planned = a if arm == "a" else b
    more = (known, successes, planned + 1)
    before, after = difference_bounds(*a, *b), difference_bounds(*(more if arm == "a" else a),
                                                                 *(more if arm == "b" else b))  # fmt: skip
    assert after.low <= before.low
    assert before.high <= after.high
    if successes < known:  # a known failure weighs less in the best case of the arm, a known success in the worst one
        assert after.high > before.high if arm == "a" else after.low < before.low
    if successes > 0:
        assert after.low < before.low if arm == "a" else after.high > before.high


@settings(deadline=None)
@given(st.lists(st.tuples(arms(4), arms(4)), min_size=1, max_size=8), st.integers(1, 4), st.data())
def test_an_unfinished_attempt_or_task_more_never_narrows(
    tasks: list[tuple[Arm, Arm]], planned: int, data: st.DataObject
) -> None:
    before = of_tasks(tasks)
    at = data.draw(st.integers(0, len(tasks) - 1))
    (known, successes, n), other = tasks[at]
    attempt = [*tasks[:at], ((known, successes, n + 1), other), *tasks[at + 1 :]]
    task = [*tasks, ((0, 0, planned), (0, 0, planned))]
    for longer in (attempt, task):
        after = of_tasks(longer)
        assert after.low <= before.low
        assert before.high <= after.high


@given(arms(30), arms(30))
def test_an_outcome_more_never_widens(a: Arm, b: Arm) -> None:
    known, successes, planned = a
    if known == planned:
        return
    before = difference_bounds(*a, *b)
    for outcome in (0, 1):
        after = difference_bounds(known + 1, successes + outcome, planned, *b)
        assert before.low <= after.low <= after.high <= before.high


@settings(deadline=None)
@given(st.lists(st.tuples(arms(9), arms(9)), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_swapping_arms_flips_and_order_does_not_matter(tasks: list[tuple[Arm, Arm]], random: Any) -> None:
    bounds = of_tasks(tasks)
    swapped = of_tasks([(b, a) for a, b in random.sample(tasks, len(tasks))])
    assert ends(swapped) == (-bounds.high, -bounds.low)
    assert (swapped.low_a, swapped.high_a, swapped.unfinished_a) == (bounds.low_b, bounds.high_b, bounds.unfinished_b)
    for difference in (0.5, -0.5, 0.0):
        assert could_turn(swapped, -difference) == could_turn(bounds, difference)
    a, b = tasks[0]
    assert ends(difference_bounds(*b, *a)) == tuple(-x for x in reversed(ends(difference_bounds(*a, *b))))


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 50), st.integers(1, 50))
def test_with_nothing_missing_there_is_one_difference(s_a: int, n_a: int, s_b: int, n_b: int) -> None:
    s_a, s_b = min(s_a, n_a), min(s_b, n_b)
    bounds = difference_bounds(n_a, s_a, n_a, n_b, s_b, n_b)
    assert bounds.low == bounds.high == float(Fraction(s_a, n_a) - Fraction(s_b, n_b))
    if bounds.low:
        assert could_turn(bounds, bounds.low) == "no"


@settings(deadline=None)
@given(st.lists(st.tuples(arms(4), arms(4)), min_size=1, max_size=8))
def test_one_attempt_a_task_or_equally_many_are_counts(tasks: list[tuple[Arm, Arm]]) -> None:
    # equal weights of tasks and of trials are the same where every task has as many planned trials
    alike = [((a[0], a[1], 4), (b[0], b[1], 4)) for a, b in tasks]
    totals = [sum(column) for column in zip(*[(*a, *b) for a, b in alike], strict=True)]
    assert ends(of_tasks(alike)) == ends(difference_bounds(*totals))


# An interrupted run of 24 planned tasks as its public description counts it (seed of this domain): 21 complete pairs
# with 7 solved by A and 10 by B, and one more outcome of B that is not told.
def test_an_interrupted_run() -> None:
    a = (21, 7, 24)
    failed, solved = (difference_bounds(*a, 22, successes, 24) for successes in (10, 11))
    assert ends(failed) == (-5 / 24, 0)
    assert ends(solved) == (-6 / 24, -1 / 24)
    assert (failed.low_a, failed.high_a, failed.low_b, failed.high_b) == (7 / 24, 10 / 24, 10 / 24, 12 / 24)
    assert could_turn(failed, (7 - 10) / 21) == "it could level it"
    assert could_turn(solved, (7 - 10) / 21) == "no"
    # An outcome that is not told is an unfinished one: the bounds are those of either reading together.
    untold = difference_bounds(*a, 21, 10, 24)
    assert ends(untold) == (solved.low, failed.high)
    assert could_turn(untold, (7 - 10) / 21) == "it could level it"
    assert could_turn(difference_bounds(20, 7, 24, 22, 10, 24), -3 / 20) == "yes"


def test_one_trial_of_many_decides() -> None:
    answers = [
        could_turn(difference_bounds(1_000, 501, 1_000, known, 500, 1_000), 0.001) for known in (1_000, 999, 998)
    ]
    assert answers == ["no", "it could level it", "yes"]


def test_a_task_absent_from_both_arms_counts() -> None:
    finished, absent = ((2, 2, 2), (2, 0, 2)), ((0, 0, 2), (0, 0, 2))
    assert ends(of_tasks([finished])) == (1, 1)
    assert ends(of_tasks([finished, absent])) == (0, 1)
    assert could_turn(of_tasks([finished, absent]), 1) == "it could level it"
    assert could_turn(of_tasks([finished, absent, absent]), 1) == "yes"


def test_tasks_weigh_alike_whatever_their_attempts() -> None:
    tasks = [((1, 1, 1), (1, 0, 1)), ((9, 0, 9), (9, 9, 9))]
    assert ends(of_tasks(tasks)) == (0, 0)
    assert of_tasks(tasks).planned_a == 10


def test_a_difference_of_rounding_is_none() -> None:
    level = difference_bounds(2, 1, 2, 4, 2, 4)
    assert ends(level) == (0, 0)
    assert could_turn(level, 1 / 3 + 1 / 3 + 1 / 3 - 1 + 1e-17) == "no"
    assert could_turn(difference_bounds(2, 1, 2, 3, 1, 4), -1e-17) == "yes"


@pytest.mark.parametrize("difference", [float("nan"), None, pd.NA, float("inf"), "x"])
def test_without_a_difference_there_is_nothing_to_turn(difference: Any) -> None:
    with pytest.raises(ValueError, match=r"difference is .*; give a finite difference"):
        could_turn(difference_bounds(1, 1, 2, 1, 0, 2), difference)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 4, 5, 1, 1, 1), "successes_a, known_a and planned_a{} are 4, 3 and 5; give no more successes"),
        ((1, 1, 1, 6, 4, 5), "successes_b, known_b and planned_b{} are 4, 6 and 5"),
        ((0, 0, 0, 1, 1, 1), "planned_a{} is 0; a rate of no trials is undefined"),
        ((1, 1, 1, 1, 1, -1), "planned_b{} is -1; give a whole number"),
        ((1, 0.5, 1, 1, 1, 1), r"successes_a{} is 0\.5"),
        ((1, 1, 1, None, 1, 1), "known_b{} is None"),
        ((1, pd.NA, 1, 1, 1, 1), "successes_a{} is <NA>"),
        ((1, 1, float("inf"), 1, 1, 1), "planned_a{} is inf"),
    ],
)
def test_counts_that_do_not_fit_are_refused(numbers: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message.format("")):
        difference_bounds(*numbers)
    with pytest.raises(ValueError, match=message.format(" at position 1")):
        task_mean_bounds(*([1, number] for number in numbers))


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no task"):
        task_mean_bounds([], [], [], [], [], [])
    with pytest.raises(ValueError, match="there are 1 known_a, 2 successes_a, 1 planned_a"):
        task_mean_bounds([1], [1, 1], [1], [1], [1], [1])
    one, other = pd.Series([1, 1], index=["x", "y"]), pd.Series([1, 1], index=["y", "x"])
    with pytest.raises(ValueError, match="known_a and planned_b have different indexes"):
        task_mean_bounds(one, one, one, one, one, other)


def test_columns_of_a_table_are_accepted() -> None:
    frame = pd.DataFrame({name: [2.0, 1.0] for name in NAMES})
    bounds = task_mean_bounds(*(frame[name].astype("Int64") for name in NAMES))
    assert bounds == task_mean_bounds(*(frame[name] for name in NAMES))
    assert bounds.low == bounds.high == 0


def test_one_row_summaries_and_frozen_results() -> None:
    bounds = difference_bounds(21, 7, 24, 22, 10, 24)
    frame = bounds.summary_frame()
    assert list(frame.columns) == [field.name for field in dataclasses.fields(DifferenceBounds)]
    assert len(frame) == 1
    assert math.isclose(frame["low"].item(), -5 / 24)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bounds.low = 0.0
