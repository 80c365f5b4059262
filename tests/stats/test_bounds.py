"""Bounds: sharp by brute force over every joint table and every multiset of scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.printed import parse_printed
from faultbook.stats.bounds import graded_mean_counts, rescue_harm_bounds, rescue_harm_counts

CELLS = ["rescue_low", "rescue_high", "harm_low", "harm_high", "effect"]
GRADED = ["runs", "perfect_low", "perfect_high", "above_zero_low", "above_zero_high"]
TABLES = st.lists(st.integers(0, 30), min_size=4, max_size=4).filter(any)


def one_row(frame: pd.DataFrame, columns: list[str]) -> list[Any]:
    assert list(frame.columns) == columns
    assert len(frame) == 1
    return [frame[column].item() for column in columns]


def paired_tables(n: int) -> Iterator[tuple[int, int, int, int]]:
    """All (rescue, harm, stable success, stable failure) that add up to n."""
    for rescue, harm, success in itertools.product(range(n + 1), repeat=3):
        if rescue + harm + success <= n:
            yield rescue, harm, success, n - rescue - harm - success


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_counts_are_sharp_over_all_paired_tables(n: int) -> None:
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for rescue, harm, success, _ in paired_tables(n):
        found.setdefault((harm + success, rescue + success), []).append((rescue, harm))
    assert len(found) == (n + 1) ** 2
    for (without, with_), cells in found.items():
        rescues, harms = {r for r, _ in cells}, {h for _, h in cells}
        expected = [min(rescues), max(rescues), min(harms), max(harms), with_ - without]
        assert one_row(rescue_harm_counts(without, with_, n), CELLS) == expected
        assert len(rescues) == max(rescues) - min(rescues) + 1  # every whole number between is attained


@given(TABLES)
def test_bounds_contain_every_joint_table_with_these_margins(table: list[int]) -> None:
    n = sum(table)
    rescue, harm, success, _ = (cell / n for cell in table)
    without, with_ = harm + success, rescue + success
    without, with_ = min(without, 1.0), min(with_, 1.0)  # three rounded shares may add up to 1 + 2e-16
    rescue_low, rescue_high, harm_low, harm_high, effect = one_row(rescue_harm_bounds(without, with_), CELLS)
    assert rescue_low - 1e-12 <= rescue <= rescue_high + 1e-12
    assert harm_low - 1e-12 <= harm <= harm_high + 1e-12
    assert effect == pytest.approx(rescue - harm, abs=1e-12)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_every_rate_between_the_bounds_is_attained(without: float, with_: float, share: float) -> None:
    rescue_low, rescue_high, harm_low, harm_high, effect = one_row(rescue_harm_bounds(without, with_), CELLS)
    assert 0 <= rescue_low <= rescue_high <= 1
    assert 0 <= harm_low <= harm_high <= 1
    harm = harm_low + share * (harm_high - harm_low)
    table = [harm + effect, harm, without - harm, 1 - without - (harm + effect)]
    assert min(table) >= -1e-12
    assert sum(table) == pytest.approx(1)
    independent = without * (1 - with_)  # the product score is one point between the bounds
    assert harm_low - 1e-12 <= independent <= harm_high + 1e-12


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_counts_and_rates_agree(without: int, with_: int, n: int) -> None:
    without, with_ = min(without, n), min(with_, n)
    counts = np.array(one_row(rescue_harm_counts(without, with_, n), CELLS))
    assert one_row(rescue_harm_bounds(without / n, with_ / n), CELLS) == pytest.approx(list(counts / n), abs=1e-12)


# Two-step stale, delay 0 of arXiv 2610.00372 (CIR cell): 45 of 75 without, 52 with; observed are 9 rescues, 2 harms.
def test_margins_of_a_published_cell() -> None:
    assert one_row(rescue_harm_counts(45, 52, 75), CELLS) == [7, 30, 0, 23, 7]


def test_kinds_of_the_columns() -> None:
    assert (rescue_harm_counts(0, 0, 1).dtypes == "int64").all()
    assert (rescue_harm_bounds(0, 0).dtypes == "float64").all()
    assert (graded_mean_counts(0, 1, 3).dtypes == "int64").all()


@pytest.mark.parametrize("rate", [-0.1, 1.1, 61, float("nan"), None, pd.NA, "x"])
def test_rates_outside_the_unit_interval_are_refused(rate: Any) -> None:
    with pytest.raises(ValueError, match=r"success_without is .*; give a rate in \[0, 1\]"):
        rescue_harm_bounds(rate, 0.5)
    with pytest.raises(ValueError, match="success_with is"):
        rescue_harm_bounds(0.5, rate)


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="76 and 3 successes among 75 tasks"):
        rescue_harm_counts(76, 3, 75)
    with pytest.raises(ValueError, match="n is 0; give at least 1"):
        rescue_harm_counts(0, 0, 0)
    with pytest.raises(ValueError, match=r"successes_with is 0\.5"):
        rescue_harm_counts(0, 0.5, 1)


def attained(runs: int, low: Fraction, high: Fraction, partial: list[Fraction]) -> list[tuple[int, int]]:
    """(perfect, above zero) of every multiset of scores from {0, 1} and `partial` whose mean lies in [low, high]."""
    scores = [Fraction(0), *partial, Fraction(1)]
    return [
        (sum(s == 1 for s in chosen), sum(s > 0 for s in chosen))
        for chosen in itertools.combinations_with_replacement(scores, runs)
        if low * runs <= sum(chosen) <= high * runs
    ]


def intervals(runs: int, steps: int) -> Iterator[tuple[Fraction, Fraction]]:
    """All intervals of means whose sums are multiples of 1/steps."""
    for low, high in itertools.combinations_with_replacement(range(runs * steps + 1), 2):
        yield Fraction(low, runs * steps), Fraction(high, runs * steps)


# A grid of eighths attains every multiple of 1/2 strictly between P and P + Q for Q <= 4 partial runs (and every
# multiple of 1/8 in [P + Q/4, P + Q - 1/2] from 1/4 on), so for intervals of halves the free partial scores of the
# bounds can do no more than the grid, and the bounds must equal the brute force.
@pytest.mark.parametrize("runs", [1, 2, 3, 4])
@pytest.mark.parametrize("least", [Fraction(0), Fraction(1, 4), Fraction(1, 2)])
def test_graded_bounds_equal_brute_force(runs: int, least: Fraction) -> None:
    partial = [Fraction(i, 8) for i in range(1, 8) if Fraction(i, 8) >= least]
    for low, high in intervals(runs, 2):
        found = attained(runs, low, high, partial)
        if not found:
            with pytest.raises(ValueError, match=r"no \d scores of 0, 1 or in"):
                graded_mean_counts(low, high, runs, least_partial=least)
            continue
        perfect, above = {p for p, _ in found}, {a for _, a in found}
        expected = [runs, min(perfect), max(perfect), min(above), max(above)]
        assert one_row(graded_mean_counts(low, high, runs, least_partial=least), GRADED) == expected


# Scores that graders give: the bounds must hold them all, whatever the grid.
@pytest.mark.parametrize("partial", [[Fraction(1, 3), Fraction(1, 2)], [Fraction(1, 2), Fraction(2, 3)], []])
@pytest.mark.parametrize("runs", [1, 3, 5])
def test_graded_bounds_contain_every_set_of_scores(runs: int, partial: list[Fraction]) -> None:
    for low, high in intervals(runs, 6):
        found = attained(runs, low, high, partial)
        if not found:
            continue
        for least in {Fraction(0), min(partial, default=Fraction(1, 2))}:
            _, p_low, p_high, a_low, a_high = one_row(graded_mean_counts(low, high, runs, least_partial=least), GRADED)
            assert all(p_low <= p <= p_high and a_low <= a <= a_high for p, a in found)


@settings(deadline=None)
@given(st.lists(st.fractions(0, 1, max_denominator=12), min_size=1, max_size=40), st.fractions(0, 1, max_denominator=9))
def test_graded_bounds_contain_the_scores_behind_a_mean(scores: list[Fraction], margin: Fraction) -> None:
    mean, least = sum(scores, Fraction(0)) / len(scores), min((s for s in scores if 0 < s < 1), default=Fraction(0))
    perfect, above = sum(s == 1 for s in scores), sum(s > 0 for s in scores)
    free = Fraction(0)
    for low, high, lower in [(mean, mean, least), (mean, mean, free), (mean - margin / 2, mean + margin / 2, least)]:
        _, p_low, p_high, a_low, a_high = one_row(
            graded_mean_counts(low, high, len(scores), least_partial=lower), GRADED
        )
        assert 0 <= p_low <= perfect <= p_high <= len(scores)
        assert 0 <= a_low <= above <= a_high <= len(scores)
        assert p_low <= a_low
        assert p_high <= a_high


def test_the_ends_of_the_open_interval_are_not_attained() -> None:
    # Sum 2 of 4: two perfect alone, or partial runs with a sum of 2 - P, which takes at least 3 - P of them.
    assert one_row(graded_mean_counts(0.5, 0.5, 4), GRADED) == [4, 0, 2, 2, 4]
    # Sum 3 of 4: four partial runs, or three perfect; two perfect and one partial stay below 3.
    assert one_row(graded_mean_counts(0.75, 0.75, 4), GRADED) == [4, 0, 3, 3, 4]
    # Means of 0 and 1 leave no choice.
    assert one_row(graded_mean_counts(0, 0, 4), GRADED) == [4, 0, 0, 0, 0]
    assert one_row(graded_mean_counts(1, 1, 4), GRADED) == [4, 4, 4, 4, 4]
    # Anything above 0 can be spread over all runs.
    assert one_row(graded_mean_counts(0.01, 0.01, 4), GRADED) == [4, 0, 0, 1, 4]


def test_repeats_multiply_the_runs() -> None:
    assert one_row(graded_mean_counts(0.5, 0.5, 20, n_repeats=3), GRADED) == [60, 0, 30, 30, 60]
    assert graded_mean_counts(0.4, 0.6, 20, 3).equals(graded_mean_counts(0.4, 0.6, 60))


def test_a_printed_mean_can_be_given_as_its_rounding_interval() -> None:
    printed = parse_printed("47.2%")
    row = one_row(graded_mean_counts(printed.low / 100, printed.high / 100, 59, 3), GRADED)
    # 177 runs: the sum lies in [83.4555, 83.6325], so no whole number of perfect runs alone makes this mean.
    assert row == [177, 0, 83, 84, 177]
    zero = parse_printed("0%")
    assert one_row(graded_mean_counts(zero.low / 100, zero.high / 100, 10), GRADED) == [10, 0, 0, 0, 10]
    one = parse_printed("1")
    assert one_row(graded_mean_counts(one.low, one.high, 4), GRADED) == [4, 0, 4, 2, 4]


@pytest.mark.parametrize("n", [3, 7, 49, 100, 177, 300])
def test_floats_are_read_as_the_fractions_they_stand_for(n: int) -> None:
    for k in range(n + 1):
        assert one_row(graded_mean_counts(k / n, k / n, n), GRADED)[2] == k
    assert one_row(graded_mean_counts(sum([0.1] * 3), 0.1 + 0.2, 10), GRADED)[2] == 3


@pytest.mark.parametrize("half", [0.5, Fraction(1, 2), Decimal("0.5"), np.float64(0.5), np.float32(0.5)])
def test_exact_kinds_of_numbers(half: Any) -> None:
    assert graded_mean_counts(half, half, 4).equals(graded_mean_counts(0.5, 0.5, 4))


@pytest.mark.parametrize(
    ("low", "high", "options", "message"),
    [
        (0.6, 0.4, {}, "give the lower one first"),
        (46.5, 47.5, {}, "per cent divided by 100"),
        (0.3, 47.5, {}, "per cent divided by 100"),
        (-3, 0.5, {}, "per cent divided by 100"),
        (-0.2, -0.1, {}, "per cent divided by 100"),
        (1.1, 1.2, {}, "per cent divided by 100"),
        (float("nan"), 0.5, {}, "mean_low is nan; give a finite number"),
        (0.5, float("inf"), {}, "mean_high is inf; give a finite number"),
        (None, 0.5, {}, "mean_low is None"),
        (pd.NA, 0.5, {}, "mean_low is <NA>"),
        (0.4, 0.6, {"n": 0}, "n is 0; give at least 1"),
        (0.4, 0.6, {"n": 2.5}, r"n is 2\.5"),
        (0.4, 0.6, {"n_repeats": 0}, "n_repeats is 0"),
        (0.4, 0.6, {"least_partial": 1}, "least_partial is 1; give the least partial score"),
        (0.4, 0.6, {"least_partial": -0.1}, r"least_partial is -0\.1"),
        (0.01, 0.02, {"least_partial": 0.25}, "no 4 scores of 0, 1 or in"),
    ],
)
def test_means_that_cannot_be_are_refused(low: Any, high: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graded_mean_counts(low, high, **({"n": 4} | options))
