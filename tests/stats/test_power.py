"""Power of McNemar's exact test: every table by enumeration, simulation, and the saw-tooth."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.power import (
    PairedPower,
    detectable_difference,
    fewest_discordant,
    mcnemar_power,
    pairs_needed,
)

ALPHAS = st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.125, 0.3, 0.9])


def exact_p(a: int, b: int) -> Fraction:
    """McNemar's p in whole numbers; 1 without a discordant pair, so never below alpha."""
    n = a + b
    ways = 2 * sum(math.comb(n, k) for k in range(min(a, b) + 1))
    return min(Fraction(1), Fraction(ways, 2**n))


def brute_force(n: int, rate: float, difference: float, alpha: float) -> float:
    """Sum the probabilities of all tables with p < alpha."""
    rate_a, rate_b = (rate + difference) / 2, (rate - difference) / 2
    return math.fsum(
        math.comb(n, a) * math.comb(n - a, b) * rate_a**a * rate_b**b * (1 - rate) ** (n - a - b)
        for a, b in itertools.product(range(n + 1), repeat=2)
        if a + b <= n and exact_p(a, b) < Fraction(alpha)
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 26), st.floats(0, 1), st.floats(-1, 1), ALPHAS)
def test_power_is_brute_force(n: int, rate: float, share: float, alpha: float) -> None:
    found = mcnemar_power(n, rate, share * rate, alpha)
    assert found == pytest.approx(brute_force(n, rate, share * rate, alpha), rel=1e-9, abs=1e-14)
    assert found == mcnemar_power(n, rate, -share * rate, alpha)
    assert 0 <= found <= 1


# A level that a p can hit exactly (2/2^5 and 2·7/2^6 are dyadic): equal is not below.
def test_p_equal_to_alpha_does_not_reject() -> None:
    for alpha, n in [(2 / 32, 5), (14 / 64, 6), (2 / 2**300, 300)]:
        assert mcnemar_power(n, 1, 1, alpha) == (1 if exact_p(0, n) < Fraction(alpha) else 0)
        assert mcnemar_power(n, 1, 1, math.nextafter(alpha, 1)) == 1
    assert mcnemar_power(6, 1, 2 / 3, 14 / 64) < mcnemar_power(6, 1, 2 / 3, math.nextafter(14 / 64, 1))


def test_critical_splits_are_those_of_the_test() -> None:
    # With a rate of 1 all n pairs are discordant; the power jumps where another split rejects.
    for n, alpha in itertools.product([5, 6, 40, 300], [0.01, 0.05]):
        largest = max((k for k in range(n // 2 + 1) if mcnemar_exact(k, n - k).p < alpha), default=-1)
        for share in (0.5, 0.6, 0.9):
            expected = stats.binom.cdf(largest, n, share) + stats.binom.cdf(largest, n, 1 - share)
            assert mcnemar_power(n, 1, 2 * share - 1, alpha) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_power_is_what_simulation_finds() -> None:
    rng = np.random.default_rng(20260926)
    n, rate, difference, draws = 89, 0.3, 0.15, 20_000
    cells = rng.multinomial(n, [(rate + difference) / 2, (rate - difference) / 2, 1 - rate], size=draws)
    tables, counts = np.unique(cells[:, :2], axis=0, return_counts=True)
    rejected = [mcnemar_exact(int(a), int(b)).p < 0.05 for a, b in tables]
    found = mcnemar_power(n, rate, difference)
    assert counts[rejected].sum() / draws == pytest.approx(found, abs=4 * math.sqrt(found * (1 - found) / draws))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 400), st.floats(0.01, 1), ALPHAS)
def test_power_rises_with_the_difference_and_the_size_keeps_the_level(n: int, rate: float, alpha: float) -> None:
    powers = [mcnemar_power(n, rate, share * rate, alpha) for share in (0, 0.2, 0.5, 0.8, 1)]
    assert powers[0] < alpha
    assert all(x <= y + 1e-12 for x, y in itertools.pairwise(powers))


def test_no_pair_detects_nothing() -> None:
    assert mcnemar_power(0, 0.3, 0.2) == mcnemar_power(24, 0, 0) == 0
    assert mcnemar_power(24, 1e-307, 1e-307) == 0
    assert pairs_needed(1e-307, 1e-307).n_pairs is None
    for result in (detectable_difference(0, 0.3), detectable_difference(24, 0), detectable_difference(24, 1e-307)):
        assert math.isnan(result.difference)
        assert result.power == 0


# Paired runs of 24 tasks such as 11/2/3/8: with 5 discordant pairs no split reaches p < .05, and with this rate of
# them not even a difference of the whole rate is detected four times in five.
def test_24_pairs_with_few_discordant_ones() -> None:
    result = detectable_difference(24, 5 / 24)
    assert math.isnan(result.difference)
    assert result.power == pytest.approx(float(stats.binom.sf(5, 24, 5 / 24)), rel=1e-12)
    assert "not detectable: even a difference of 0.208333, the discordant rate, has a power of 0.383" in result.method
    assert (result.n_pairs, result.wanted, result.alpha) == (24, 0.8, 0.05)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 300), st.floats(0.01, 1), st.sampled_from([0.1, 0.5, 0.8, 0.95]), ALPHAS)
def test_detectable_difference_is_the_smallest(n: int, rate: float, wanted: float, alpha: float) -> None:
    result = detectable_difference(n, rate, wanted, alpha)
    if math.isnan(result.difference):
        assert result.power == mcnemar_power(n, rate, rate, alpha) < wanted
        return
    assert 0 <= result.difference <= rate
    assert result.power >= wanted
    assert result.power == mcnemar_power(n, rate, result.difference, alpha)
    smaller = result.difference - 1e-9 * rate
    assert smaller <= 0 or mcnemar_power(n, rate, smaller, alpha) < wanted


# Normal approximation for many pairs: Miettinen (1968), Biometrics 24, 339-352, n D = (z_a √D + z_b √(D − d²))²/d²
# in pairs n; the exact test needs a few more.
@pytest.mark.parametrize(("rate", "difference"), [(0.3, 0.1), (0.3, 0.05), (0.1, 0.05), (0.5, 0.1)])
def test_pairs_needed_are_near_the_normal_approximation(rate: float, difference: float) -> None:
    z_alpha, z_beta = stats.norm.isf([0.025, 0.2])
    normal = (z_alpha * math.sqrt(rate) + z_beta * math.sqrt(rate - difference**2)) ** 2 / difference**2
    result = pairs_needed(rate, difference)
    assert result.n_pairs is not None
    assert normal < result.n_pairs < 1.1 * normal + 2 / difference


@pytest.mark.parametrize(
    ("rate", "difference", "power", "alpha"),
    [(0.3, 0.3, 0.8, 0.05), (1, 0.5, 0.8, 0.05), (1, -0.4, 0.9, 0.01), (0.9, 0.6, 0.5, 0.1), (0.5, 0.5, 0.999, 0.05),
     (1, 1, 0.8, 0.05), (1, 0.3, 0.02, 0.05)],
)  # fmt: skip
def test_pairs_needed_by_trying_all(rate: float, difference: float, power: float, alpha: float) -> None:
    result = pairs_needed(rate, difference, power, alpha)
    n = result.n_pairs
    assert n is not None
    reached = [mcnemar_power(i, rate, difference, alpha) >= power for i in range(2 * n + 1)]
    assert all(reached[n:])
    assert not any(all(reached[i : 2 * i + 1]) for i in range(n))
    assert result.power == pytest.approx(mcnemar_power(n, rate, difference, alpha), rel=1e-12)


def test_the_first_number_that_reaches_the_power_is_not_the_answer() -> None:
    # where every pair is discordant the saw-tooth is undamped
    n = pairs_needed(1, 0.4).n_pairs
    assert n is not None
    powers = [mcnemar_power(i, 1, 0.4) for i in range(n + 1)]
    first = next(i for i, power in enumerate(powers) if power >= 0.8)
    assert first < n
    assert powers[n - 1] < 0.8
    assert min(powers[first:n]) < 0.8 <= powers[n]


@pytest.mark.parametrize("n", [3_000, 50_000])
def test_many_pairs(n: int) -> None:
    rate, result = 0.3, detectable_difference(n, 0.3)
    normal = (1.959964 + 0.841621) * math.sqrt(rate / n)
    assert result.difference == pytest.approx(normal, rel=0.02)
    assert result.difference > normal * math.sqrt(1 - result.difference**2 / rate)


def test_more_pairs_than_the_most() -> None:
    result = pairs_needed(0.3, 0.02, most=1_000)
    assert result.n_pairs is None
    assert math.isnan(result.power)
    assert result.method.endswith("not found: more than 1000 pairs are needed")
    n = pairs_needed(0.3, 0.1).n_pairs
    assert n is not None
    assert pairs_needed(0.3, 0.1, most=n).n_pairs == n
    assert pairs_needed(0.3, 0.1, most=n - 1).n_pairs is None


@pytest.mark.parametrize(("alpha", "fewest"), [(0.05, 6), (0.01, 8), (0.1, 5), (1 / 16, 6), (0.5, 3), (0.99, 2)])
def test_fewest_discordant(alpha: float, fewest: int) -> None:
    assert fewest_discordant(alpha) == fewest
    assert mcnemar_exact(0, fewest).p < alpha <= mcnemar_exact(0, fewest - 1).p


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_fewest_discordant_is_the_fewest(alpha: float) -> None:
    fewest = fewest_discordant(alpha)
    assert Fraction(2, 2**fewest) < Fraction(alpha) <= Fraction(2, 2 ** (fewest - 1))
    if fewest <= 60:
        assert mcnemar_power(fewest, 1, 1, alpha) == 1
        assert mcnemar_power(fewest - 1, 1, 1, alpha) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0.3, 0.1), "n_pairs is -1; give a whole number"),
        ((2.5, 0.3, 0.1), r"n_pairs is 2\.5"),
        ((50_001, 0.3, 0.1), "n_pairs is 50001; give at most 50000"),
        ((24, 30, 0.1), r"discordant_rate is 30; give a rate in \[0, 1\], per cent divided by 100"),
        ((24, float("nan"), 0.1), "discordant_rate is nan"),
        ((24, None, 0.1), "discordant_rate is None"),
        ((24, 0.3, 0.31), r"difference is 0\.31 and discordant_rate 0\.3; give a difference of rates"),
        ((24, 0.3, float("nan")), "difference is nan"),
        ((24, 0.3, "x"), "difference is 'x'"),
        ((24, 0.3, 0.1, 5), "alpha is 5; give a number strictly between 0 and 1"),
        ((24, 0.3, 0.1, 0), "alpha is 0"),
    ],
)
def test_designs_that_cannot_be_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mcnemar_power(*arguments)


def test_further_arguments_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"power is 80; give a number strictly between 0 and 1, such as \.8"):
        detectable_difference(24, 0.3, 80)
    with pytest.raises(ValueError, match="difference is 0; no number of pairs detects that"):
        pairs_needed(0.3, 0)
    with pytest.raises(ValueError, match="most is 25001; give 1 to 25000 pairs"):
        pairs_needed(0.3, 0.1, most=25_001)
    with pytest.raises(ValueError, match="alpha is 1"):
        fewest_discordant(1)


def test_rounding_does_not_lift_a_difference_above_its_bound() -> None:
    assert mcnemar_power(30, 0.3, 0.1 + 0.2) == mcnemar_power(30, 0.3, 0.3)


def test_one_row_summaries_and_frozen_results() -> None:
    result = detectable_difference(89, 0.3)
    assert list(result.summary_frame().columns) == [field.name for field in dataclasses.fields(PairedPower)]
    assert len(pairs_needed(0.3, 0.1).summary_frame()) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.power = 0.0
