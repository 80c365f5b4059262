"""Proportions: golden values, exact coverage, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faultbook.stats.proportion import (
    as_count,
    check_level,
    clopper_pearson,
    event_upper_bound,
    n_to_certify,
    wilson,
    zero_event_upper_bound,
)

LEVELS = st.floats(0.5, 0.999)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(st.integers(1, 500))
    return draw(st.integers(0, n)), n


# Newcombe (1998), Statistics in Medicine 17, 857-872, table I: methods 3 (Wilson) and 5 (Clopper-Pearson), 95 %.
@pytest.mark.parametrize(
    ("k", "n", "score", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_intervals_match_newcombe(k: int, n: int, score: tuple[float, float], exact: tuple[float, float]) -> None:
    assert (wilson(k, n).low, wilson(k, n).high) == pytest.approx(score, abs=5e-5)
    assert (clopper_pearson(k, n).low, clopper_pearson(k, n).high) == pytest.approx(exact, abs=5e-5)


# No event in the 75 clean evaluation tasks, the 93 primary ones and the 106 of the complete cohort of
# arXiv 2610.00372; the paper prints the two-sided 4.80 % of the first.
@pytest.mark.parametrize(
    ("n", "one_sided", "two_sided"), [(75, 0.0392, 0.047995), (93, 0.0317, 0.0389), (106, 0.0279, 0.0342)]
)
def test_zero_event_bound(n: int, one_sided: float, two_sided: float) -> None:
    assert zero_event_upper_bound(n) == pytest.approx(one_sided, abs=5e-5)
    assert zero_event_upper_bound(n, sides=2) == pytest.approx(two_sided, abs=5e-5 if n > 75 else 5e-7)
    assert zero_event_upper_bound(n, sides=2) == pytest.approx(clopper_pearson(0, n).high, rel=1e-12)


# (1 - .02)**n <= .05 and <= .025, solved for n: log(.05) / log(.98) = 148.3, log(.025) / log(.98) = 182.6.
def test_trials_that_a_harm_limit_of_two_per_cent_needs() -> None:
    assert n_to_certify(0.02) == 149
    assert n_to_certify(0.02, sides=2) == 183


# (1 - limit)**n = 1 - level exactly in decimals; in floating point the bound of the third is .9500000000000005.
@pytest.mark.parametrize(("limit", "level", "n"), [(0.9, 0.9, 1), (0.5, 0.9375, 4), (0.95, 0.9975, 2), (0.1, 0.1, 1)])
def test_a_bound_that_equals_the_limit_certifies(limit: float, level: float, n: int) -> None:
    assert n_to_certify(limit, level=level) == n


@settings(deadline=None)
@given(st.floats(0.001, 0.95), st.integers(0, 20), LEVELS, st.sampled_from([1, 2]))
def test_certified_n_is_the_least(limit: float, events: int, level: float, sides: int) -> None:
    n = n_to_certify(limit, events, level, sides)
    assert event_upper_bound(events, n, level, sides) <= limit * (1 + 1e-11)
    if n > max(events, 1):
        assert event_upper_bound(events, n - 1, level, sides) > limit


@settings(deadline=None)
@given(counts(), LEVELS)
def test_intervals_cover_the_estimate_and_mirror(count: tuple[int, int], level: float) -> None:
    k, n = count
    for interval in (wilson, clopper_pearson):
        result, mirror = interval(k, n, level), interval(n - k, n, level)
        assert 0 <= result.low <= result.estimate == k / n <= result.high <= 1
        assert result.low < result.high
        assert (result.low, result.high) == pytest.approx((1 - mirror.high, 1 - mirror.low), abs=1e-9)
        assert (result.low == 0) >= (k == 0)
        assert (result.high == 1) >= (k == n)


@settings(deadline=None)
@given(counts(), LEVELS, st.sampled_from([1, 2]))
def test_upper_bound_is_where_the_tail_is_used_up(count: tuple[int, int], level: float, sides: int) -> None:
    k, n = count
    bound = event_upper_bound(k, n, level, sides)
    if k == n:
        assert bound == 1
    else:
        assert stats.binom.cdf(k, n, bound) == pytest.approx((1 - level) / sides, rel=1e-6)
    if sides == 2:
        assert bound == pytest.approx(clopper_pearson(k, n, level).high, rel=1e-9)


# statsmodels 0.15 returns 3e-17 and .9999999999999999 here.
@pytest.mark.parametrize("n", [7, 9, 14])
def test_wilson_reaches_both_ends(n: int) -> None:
    assert wilson(0, n).low == 0
    assert wilson(n, n).high == 1


def test_clopper_pearson_keeps_its_level_everywhere() -> None:
    n, level = 12, 0.9
    intervals = [clopper_pearson(k, n, level) for k in range(n + 1)]
    for rate in np.linspace(0.001, 0.999, 499):
        mass = stats.binom.pmf(np.arange(n + 1), n, rate)
        assert sum(m for m, i in zip(mass, intervals, strict=True) if i.low <= rate <= i.high) >= level - 1e-12


def test_results_are_frozen_and_become_one_row() -> None:
    result = wilson(3, 10)
    assert list(result.summary_frame()) == ["k", "n", "estimate", "low", "high", "level", "method"]
    assert len(result.summary_frame()) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.k = 4


def test_whole_floats_and_numpy_integers_are_counts() -> None:
    assert wilson(np.int64(3), np.float64(10.0)) == wilson(3, 10)
    assert isinstance(as_count("n", np.float64(10.0)), int)
    assert as_count("n", 10**18 + 1) == 10**18 + 1


@pytest.mark.parametrize(
    "value", [-1, 2.5, float("nan"), float("inf"), None, pd.NA, "3", b"3", True, np.True_, [3], 1j]
)
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"k is .*; give a whole number of at least 0"):
        wilson(value, 10)


def test_no_trials_are_refused() -> None:
    calls = (
        lambda: wilson(0, 0),
        lambda: clopper_pearson(0, 0),
        lambda: zero_event_upper_bound(0),
        lambda: event_upper_bound(0, 0),
    )
    for call in calls:
        with pytest.raises(ValueError, match="n is 0; a proportion of no trials is undefined"):
            call()


def test_more_events_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="k is 75 and n is 2; give events first"):
        clopper_pearson(75, 2)
    with pytest.raises(ValueError, match="k is 3 and n is 2"):
        event_upper_bound(3, 2)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, float("nan"), "high", None, pd.NA])
def test_levels_outside_the_open_unit_interval_are_refused(level: Any) -> None:
    for call in (lambda: wilson(1, 2, level), lambda: zero_event_upper_bound(2, level), lambda: check_level(level)):
        with pytest.raises(ValueError, match=r"level is .*; give a number strictly between 0 and 1"):
            call()


@pytest.mark.parametrize("sides", [0, 3, "one", None])
def test_sides_are_one_or_two(sides: Any) -> None:
    with pytest.raises(ValueError, match=r"sides is .*; give 1"):
        zero_event_upper_bound(10, sides=sides)


@pytest.mark.parametrize("limit", [0, 1, 2, -0.02, float("nan"), None])
def test_limits_outside_the_open_unit_interval_are_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"limit is .*; give a number strictly between 0 and 1"):
        n_to_certify(limit)


def test_a_limit_out_of_reach_is_refused() -> None:
    for events in (0, 3):
        with pytest.raises(ValueError, match=r"more than 10\*\*12 trials would be needed"):
            n_to_certify(1e-15, events)
