"""Paired differences: published intervals, a score interval by brute force, and exact antisymmetry."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.paired_difference import PairedDifference, bonett_price, mean_difference, tango_score
from faultbook.stats.resampling import reach_probability, resampled_sum

TABLES = st.tuples(*[st.integers(0, 40)] * 4).filter(any)
LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
BINARY = pytest.mark.parametrize("method", [bonett_price, tango_score])
# multiples of 1/12 are what a few attempts a task give; the others stand for rewards
DIFFERENCES = st.lists(st.one_of(st.integers(-12, 12).map(lambda i: i / 12), st.floats(-1, 1)), min_size=1, max_size=30)

Method = Callable[..., PairedDifference]


def bounds(result: PairedDifference) -> list[float]:
    return [result.low, result.high]


# Complete response before and after consolidation therapy (Cavo et al. 2012), table 59/6/16/80: the intervals and
# p-values that the R package contingencytables prints for it, that of Fagerland, Lydersen & Laake (2017),
# Statistical Analysis of Contingency Tables, ch. 8.
def test_intervals_of_a_textbook_table() -> None:
    table = (59, 6, 16, 80)
    assert bonett_price(*table).estimate == pytest.approx(-0.0621, abs=5e-5)
    assert bounds(bonett_price(*table)) == pytest.approx([-0.1195, -0.0032], abs=5e-5)
    assert bounds(tango_score(*table)) == pytest.approx([-0.1240, -0.0054], abs=5e-5)
    assert mcnemar_exact(6, 16).p == pytest.approx(0.052479, abs=5e-7)
    assert mcnemar_exact(6, 16).mid_p == pytest.approx(0.034690, abs=5e-7)


# 7 against 10 of 21 with an assumed split of 5/2/5/9: measured with evalstats 0.3.3 (interval, mid-p) and
# statsmodels 0.15 (exact p).
def test_interval_of_21_pairs() -> None:
    result = bonett_price(5, 2, 5, 9)
    assert result.estimate == -3 / 21
    assert bounds(result) == pytest.approx([-0.380, 0.120], abs=5e-4)
    assert (result.n, result.level, result.degenerate) == (21, 0.95, False)
    assert mcnemar_exact(2, 5).p == pytest.approx(0.453, abs=5e-4)
    assert mcnemar_exact(2, 5).mid_p == pytest.approx(0.289, abs=5e-4)


# A paired run of 24 tasks, 13 against 14 solved, table 11/2/3/8, with exact McNemar p = 1 and a task bootstrap of
# [-20.83, +12.50] pp: the ROADMAP of the public repository dmae97/omk.
def test_a_published_paired_run_of_24_tasks() -> None:
    assert mcnemar_exact(2, 3).p == 1
    differences = [0] * 11 + [1] * 2 + [-1] * 3 + [0] * 8
    for seed in (1, 2, 3):
        found = cluster_bootstrap(differences, range(24), seed=seed)
        assert [100 * found.low, 100 * found.high] == pytest.approx([-20.83, 12.50], abs=5e-3)
    # The bounds are those of the exact distribution; 10,000 draws miss them for 3 seeds of 100.
    exact = resampled_sum({1: 2, -1: 3}, 24)
    assert exact.bounds() == (-5, 3)
    assert reach_probability(exact, -5, 3) == pytest.approx(0.97, abs=5e-3)
    for interval in (bonett_price(11, 2, 3, 8), tango_score(11, 2, 3, 8), mean_difference(differences)):
        assert interval.estimate == pytest.approx(-1 / 24, rel=1e-15)
        assert bounds(interval) == pytest.approx([-0.24, 0.16], abs=0.02)


def score(a: int, b: int, n: int, difference: float) -> float:
    """Tango's statistic, with the likeliest table found on a grid that is refined until it stands still."""
    low, high = max(0.0, -difference), (1 - difference) / 2

    def likelihood(rate: float) -> float:
        cells = [(a, rate + difference), (b, rate), (n - a - b, 1 - 2 * rate - difference)]
        if any(count and p <= 0 for count, p in cells):
            return -math.inf
        return math.fsum(count * math.log(p) for count, p in cells if count)

    for _ in range(40):
        grid = np.linspace(low, high, 11)
        best = int(np.argmax([likelihood(float(rate)) for rate in grid]))
        low, high = float(grid[max(0, best - 1)]), float(grid[min(10, best + 1)])
    rate = (low + high) / 2
    return float((a - b - n * difference) / math.sqrt(n * (2 * rate + difference * (1 - difference))))


@pytest.mark.parametrize(
    ("a", "b", "n"), [(0, 0, 3), (0, 0, 24), (1, 0, 1), (2, 0, 24), (0, 4, 9), (2, 5, 21), (3, 2, 5), (6, 16, 161)]
)
def test_the_score_is_at_its_limit_at_both_bounds(a: int, b: int, n: int) -> None:
    result = tango_score(0, a, b, n - a - b)
    z = float(stats.norm.isf(0.025))
    for bound, expected in ((result.low, z), (result.high, -z)):
        if abs(bound) < 1:
            assert score(a, b, n, bound) == pytest.approx(expected, rel=1e-6)


@settings(deadline=None)
@given(TABLES, LEVELS)
def test_nothing_inside_is_refused_and_nothing_outside_kept(table: tuple[int, int, int, int], level: float) -> None:
    _, a, b, _ = table
    n, z = sum(table), float(stats.norm.isf((1 - level) / 2))
    result = tango_score(*table, level=level)
    grid = np.linspace(-1, 1, 401)[1:-1]
    distance = np.abs(grid - result.estimate) > 1e-9
    outside = (grid < result.low - 1e-9) | (grid > result.high + 1e-9)
    near = np.abs(grid - result.low) < 1e-6
    near |= np.abs(grid - result.high) < 1e-6
    # the closed form of the likeliest table: Tango (1998)
    linear = -a - b + (2 * n - a + b) * grid
    rate = (np.sqrt(np.maximum(linear**2 + 8 * n * b * grid * (1 - grid), 0)) - linear) / (4 * n)
    variance = n * (2 * rate + grid * (1 - grid))
    refused = (a - b - n * grid) ** 2 > z**2 * np.maximum(variance, 0)
    assert np.array_equal((refused & distance)[~near], outside[~near])


@BINARY
@given(TABLES, LEVELS)
def test_binary_intervals_always_have_a_width(method: Method, table: tuple[int, int, int, int], level: float) -> None:
    result = method(*table, level=level)
    assert -1 <= result.low <= result.estimate <= result.high <= 1
    assert result.high - result.low > 0.01
    assert not result.degenerate
    assert (result.n, result.estimate) == (sum(table), (table[1] - table[2]) / sum(table))


@BINARY
@given(TABLES, LEVELS)
def test_swapping_arms_changes_signs_only(method: Method, table: tuple[int, int, int, int], level: float) -> None:
    both, only_a, only_b, neither = table
    found, swapped = method(*table, level=level), method(both, only_b, only_a, neither, level=level)
    assert (swapped.estimate, swapped.low, swapped.high) == (-found.estimate, -found.high, -found.low)
    assert method(neither, only_a, only_b, both, level=level) == found  # concordant pairs of either kind are alike


@BINARY
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_bounds_end_at_1(method: Method, n: int) -> None:
    assert (method(0, n, 0, 0).high, method(0, 0, n, 0).low) == (1, -1)
    assert -1 < method(0, n, 0, 0).low < 1


@BINARY
def test_a_higher_level_is_wider(method: Method) -> None:
    for table in [(5, 2, 5, 9), (0, 0, 0, 3), (0, 3, 0, 0)]:
        results = [method(*table, level=level) for level in (0.5, 0.8, 0.95, 0.999, 1 - 1e-16)]
        for narrow, wide in itertools.pairwise(results):
            assert wide.low <= narrow.low
            assert narrow.high <= wide.high


# Coverage by enumeration of all tables: the adjusted Wald interval keeps its level on average, the score interval too.
@BINARY
def test_coverage(method: Method) -> None:
    n, rates = 24, [(0.1, 0.1), (0.2, 0.1), (0.3, 0.1), (0.3, 0.3), (0.05, 0.02), (0.5, 0.1)]
    held = []
    for rate_a, rate_b in rates:
        tables = [(a, b) for a, b in itertools.product(range(n + 1), repeat=2) if a + b <= n]
        weights = stats.multinomial.pmf(
            [[a, b, n - a - b] for a, b in tables], n, [rate_a, rate_b, 1 - rate_a - rate_b]
        )
        found = [method(0, a, b, n - a - b) for a, b in tables]
        held.append(sum(w for w, r in zip(weights, found, strict=True) if r.low <= rate_a - rate_b <= r.high))
    assert min(held) > 0.92
    assert np.mean(held) > 0.945


def test_below_a_level_of_78_per_cent_the_adjusted_interval_can_miss_the_estimate() -> None:
    # as its docstring says; (only_a - only_b)/n = 1, but the centre is 1/3
    result = bonett_price(0, 1, 0, 0, level=0.7)
    assert result.high < result.estimate
    assert bonett_price(0, 1, 0, 0, level=0.78).high == result.estimate


@BINARY
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ((0, 0, 0, 0), "there is no pair; a difference over no pairs is undefined"),
        ((1, -1, 0, 0), "only_a is -1; give a whole number of at least 0"),
        ((1, 0, 0.5, 0), r"only_b is 0\.5"),
        ((None, 0, 1, 0), "both is None"),
        ((1, 0, 1, float("nan")), "neither is nan"),
        ((1, True, 1, 0), "only_a is True"),
        ((1, "2", 1, 0), "only_a is '2'"),
    ],
)
def test_tables_that_are_none_are_refused(method: Method, table: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(*table)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, None, float("nan")])
def test_levels_outside_the_unit_interval_are_refused(level: Any) -> None:
    for run in (lambda: bonett_price(1, 1, 1, 1, level), lambda: tango_score(1, 1, 1, 1, level),
                lambda: mean_difference([1, 2], level)):  # fmt: skip
        with pytest.raises(ValueError, match="level is"):
            run()


# Student (1908), his first example: ten additional hours of sleep by one drug over another, mean 1.58, s 1.23 (n − 1).
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


def test_mean_difference_golden() -> None:
    result = mean_difference(SLEEP)
    theirs = stats.ttest_1samp(SLEEP, 0).confidence_interval(0.95)
    assert result.estimate == pytest.approx(1.58)
    assert bounds(result) == pytest.approx([0.70, 2.46], abs=5e-3)
    assert bounds(result) == pytest.approx([theirs.low, theirs.high], rel=1e-12)
    assert (result.n, result.method, result.degenerate) == (10, "t over 10 tasks", False)


@settings(deadline=None)
@given(DIFFERENCES, LEVELS, st.randoms(use_true_random=False))
def test_mean_difference_is_exactly_antisymmetric_in_any_order(values: list[float], level: float, random: Any) -> None:
    found = mean_difference(values, level)
    swapped = mean_difference([-x for x in random.sample(values, len(values))], level)
    assert swapped.estimate == -found.estimate
    assert swapped.degenerate == found.degenerate
    if found.degenerate:
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert max(values) - min(values) <= 1e-9
    else:
        assert (swapped.low, swapped.high) == (-found.high, -found.low)
        theirs = stats.ttest_1samp(values, 0).confidence_interval(level)
        assert bounds(found) == pytest.approx([theirs.low, theirs.high], rel=1e-6, abs=1e-12)


def test_without_spread_there_is_no_interval() -> None:
    for values, reason in [([0.5], "one task only"), ([0, 0, 0], "all differences are equal"),
                           ([0.1 + 0.2, 0.3], "all differences are equal")]:  # fmt: skip
        result = mean_difference(values)
        assert result.degenerate
        assert math.isnan(result.low)
        assert math.isnan(result.high)
        assert reason in result.method


def test_tiny_and_huge_differences_keep_their_width() -> None:
    # squares of these would be 0 or infinite
    for scale in (1e-300, 1e-200, 1e99):
        result = mean_difference([scale * x for x in SLEEP])
        assert [x / scale for x in bounds(result)] == pytest.approx(bounds(mean_difference(SLEEP)), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "differences is empty"),
        ([1, None], "differences has 1 missing of 2; missing is not 0"),
        ([1, float("inf")], "differences has 1 infinite of 2"),
        (["a"], "differences has the type"),
        ([1, -1e101], r"differences has 1e\+101 in it"),
        (np.zeros((2, 2)), "differences has the shape"),
    ],
)
def test_differences_that_are_none_are_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mean_difference(values)


def test_nullable_columns_without_missing_are_accepted() -> None:
    assert mean_difference(pd.Series([0.5, 0.25], dtype="Float64")).estimate == 0.375


def test_one_row_summaries_and_frozen_results() -> None:
    frame = bonett_price(5, 2, 5, 9).summary_frame()
    assert list(frame.columns) == ["estimate", "low", "high", "level", "n", "method", "degenerate"]
    assert frame["n"].item() == 21
    with pytest.raises(dataclasses.FrozenInstanceError):
        bonett_price(5, 2, 5, 9).low = 0.0
