"""What counts stand behind printed numbers: published cells, brute force, and simulated bootstraps.

Sources of the golden values: "repository" is the public repository of arXiv 2610.00372 (intervals printed with their
counts), "second reading" is the second reading of arXiv 2610.00372. Bounds are in counts.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.stats.reconstruct import counts_from_percentage, mcnemar_from_margins, rescue_harm_from_interval
from faultbook.stats.resampling import reach_probability, resampled_sum, unit_sum_patterns

DENOMINATORS = (65, 67, 74, 75, 76, 89, 93, 100, 106, 300)


# ---- counts behind a percentage ---------------------------------------------------------------------------------


# arXiv 2610.00372 and its second reading: the percentages that exactly one count over one of its sample sizes gives.
@pytest.mark.parametrize(
    ("printed", "count", "n"),
    [
        ("70.33%", 211, 300),
        ("+1.67 pp", 5, 300),
        ("+7.53 pp", 7, 93),
        ("−6.45 pp", -6, 93),
        ("+13.98 pp", 13, 93),
        ("18.28", 17, 93),
        ("15.05", 14, 93),
        ("+11.83", 11, 93),
        ("+13.43 pp", 9, 67),
        ("+10.45 pp", 7, 67),
        ("+1.49 pp", 1, 67),
        ("−8.96", -6, 67),
        ("−5.97", -4, 67),
        ("−14.93", -10, 67),
        ("+3.08 pp", 2, 65),
        ("+6.60 pp", 7, 106),
        ("−3.77 pp", -4, 106),
        ("10.38", 11, 106),
        ("10.11", 9, 89),
        ("−4.49", -4, 89),
        ("8.99", 8, 89),
        ("14.61", 13, 89),
    ],
)
def test_percentages_with_one_answer(printed: str, count: int, n: int) -> None:
    assert counts_from_percentage(printed, DENOMINATORS) == [(count, n)]


# The intervention rates of arXiv 2610.00372, printed with one decimal over 300 episodes.
@pytest.mark.parametrize(("printed", "count"), [("16.3%", 49), ("12.7 %", 38), ("15.7 %", 47)])
def test_intervention_rates(printed: str, count: int) -> None:
    assert counts_from_percentage(printed, [300]) == [(count, 300)]


# arXiv 2610.00372: every k/75 is also 4k/300, so a set comes back.
@pytest.mark.parametrize(
    ("printed", "counts"),
    [
        ("73.33%", [(55, 75), (220, 300)]),
        ("+3.00 pp", [(3, 100), (9, 300)]),
        ("60.00%", [(39, 65), (45, 75), (60, 100), (180, 300)]),
        ("69.33%", [(52, 75), (208, 300)]),
        ("+9.33 pp", [(7, 75), (28, 300)]),
        ("81.33%", [(61, 75), (244, 300)]),
        ("68.00%", [(51, 75), (68, 100), (204, 300)]),
        ("72.00%", [(54, 75), (72, 100), (216, 300)]),
        ("+1.33", [(1, 75), (4, 300)]),
        ("+2.00 pp", [(2, 100), (6, 300)]),
        ("+1.00", [(1, 100), (3, 300)]),
        ("4.00", [(3, 75), (4, 100), (12, 300)]),
    ],
)
def test_percentages_with_several_answers(printed: str, counts: list[tuple[int, int]]) -> None:
    assert counts_from_percentage(printed, DENOMINATORS) == counts


def test_a_percentage_off_every_grid_has_no_answer() -> None:
    # The upper bound of "replanning only" in the second reading; 8/67 prints 11.94.
    assert counts_from_percentage("11.98", DENOMINATORS) == []
    assert counts_from_percentage("11.94", [67]) == [(8, 67)]


@pytest.mark.parametrize(
    ("printed", "n", "counts"),
    [
        ("12.5%", 8, [1]),
        ("12.4%", 8, []),
        ("12%", 8, [1]),  # 12.5 is a tie: rounded to even, or down
        ("13%", 8, [1]),  # and up
        ("−12", 8, [-1]),
        ("0%", 200, [0, 1]),  # 0.5 is a tie too
        ("1%", 200, [1, 2, 3]),
        ("100%", 3, [3]),
        ("100%", 1000, [995, 996, 997, 998, 999, 1000]),  # never more than all
        ("−100", 200, [-200, -199]),
        ("110%", 10, []),
        ("50", 1, []),
    ],
)
def test_ties_and_ends_of_the_range(printed: str, n: int, counts: list[int]) -> None:
    assert counts_from_percentage(printed, [n]) == [(k, n) for k in counts]


# "k has the printed sign": a zero printed with a sign tells the side from which it was rounded.
@pytest.mark.parametrize(
    ("printed", "counts"), [("0.0 pp", [0, 1]), ("+0.0 pp", [0, 1]), ("−0.0 pp", [-1, 0])], ids=["no sign", "+", "−"]
)
def test_zero_keeps_its_printed_sign(printed: str, counts: list[int]) -> None:
    assert counts_from_percentage(printed, [3000]) == [(k, 3000) for k in counts]


def test_answers_come_in_the_order_of_the_denominators() -> None:
    assert counts_from_percentage("50%", [4, 2, 100]) == [(2, 4), (1, 2), (50, 100)]
    assert counts_from_percentage("50%", []) == []
    assert counts_from_percentage("50%", iter([2, 4])) == [(1, 2), (2, 4)]


@pytest.mark.parametrize("n", [0, -1, -75])
def test_a_denominator_below_1_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=f"a denominator must be at least 1; found {n}"):
        counts_from_percentage("50%", [75, n])


@pytest.mark.parametrize("text", ["", "half", "1,5", "45–50"])
def test_counts_of_what_is_no_number_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a printed number"):
        counts_from_percentage(text, [75])


@settings(deadline=None)
@given(st.integers(-10_500, 10_500).filter(bool), st.integers(0, 2), st.integers(1, 400))
@example(125, 1, 8)
def test_counts_are_those_that_round_to_the_text(digits: int, decimals: int, n: int) -> None:
    sign = "−" if digits < 0 else ""
    text = f"{sign}{abs(digits) // 10**decimals}" + (f".{abs(digits) % 10**decimals:0{decimals}d}" if decimals else "")
    expected = []
    for k in range(-n, n + 1):
        scaled = Fraction(100 * k, n) * 10**decimals
        rounded_up, rounded_down = math.floor(scaled + Fraction(1, 2)), math.ceil(scaled - Fraction(1, 2))
        if digits in (rounded_up, rounded_down):
            expected.append((k, n))
    assert counts_from_percentage(text, [n]) == expected


# ---- the distribution of a resampled sum ------------------------------------------------------------------------


def brute_force_sums(unit_sums: dict[int, int], n: int) -> Counter[int]:
    """How often each sum occurs among all n**n ordered resamples."""
    units = [total for total, count in unit_sums.items() for _ in range(count)]
    units += [0] * (n - len(units))
    return Counter(sum(resample) for resample in itertools.product(units, repeat=n))


SMALL_UNIT_SUMS = st.dictionaries(st.integers(-3, 3).filter(bool), st.integers(0, 2), min_size=1, max_size=3).flatmap(
    lambda sums: st.tuples(st.just(sums), st.integers(max(1, sum(sums.values())), max(5, sum(sums.values()))))
)


@given(SMALL_UNIT_SUMS.filter(lambda drawn: drawn[1] <= 5))
@settings(deadline=None, max_examples=60)
def test_resampled_sum_is_the_distribution_of_all_resamples(drawn: tuple[dict[int, int], int]) -> None:
    unit_sums, n = drawn
    counted = brute_force_sums(unit_sums, n)
    distribution = resampled_sum(unit_sums, n)
    for total in range(-3 * n - 1, 3 * n + 2):
        expected = Fraction(sum(count for value, count in counted.items() if value <= total), n**n)
        assert distribution.up_to(total) == pytest.approx(float(expected), abs=1e-12)
    for probability in (Fraction(1, 40), Fraction(1, 10), Fraction(1, 2), Fraction(39, 40)):
        reached = [
            total
            for total in range(-3 * n, 3 * n + 1)
            if Fraction(sum(count for value, count in counted.items() if value <= total), n**n) >= probability
        ]
        assert distribution.quantile(float(probability)) == reached[0]


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 60), st.lists(st.floats(0.001, 0.999), min_size=2))
def test_quantiles_do_not_decrease(rescues: int, harms: int, others: int, probabilities: list[float]) -> None:
    n = max(1, rescues + harms + others)
    distribution = resampled_sum({1: rescues, -1: harms}, n)
    quantiles = [distribution.quantile(p) for p in sorted(probabilities)]
    assert quantiles == sorted(quantiles)
    assert all(-n <= quantile <= n for quantile in quantiles)


@given(SMALL_UNIT_SUMS.filter(lambda drawn: drawn[1] <= 5))
@settings(deadline=None, max_examples=40)
@example(({1: 1}, 2))
@example(({1: 1, -1: 1}, 3))
def test_a_tie_of_the_quantile_counts_as_reached(drawn: tuple[dict[int, int], int]) -> None:
    unit_sums, n = drawn
    distribution, so_far = resampled_sum(unit_sums, n), 0
    for total, count in sorted(brute_force_sums(unit_sums, n).items()):
        so_far += count
        assert distribution.quantile(so_far / n**n) == total  # P(sum <= total), which rounding may have put just below
        assert distribution.quantile((so_far - count / 2) / n**n) == total


def test_ten_thousand_units_keep_their_mean_and_spread() -> None:
    n, rescues, harms = 10_000, 900, 300
    distribution = resampled_sum({1: rescues, -1: harms}, n)
    sums = distribution.first + np.arange(distribution.cumulative.size)
    weights = np.diff(distribution.cumulative, prepend=0.0)
    variance = n * ((rescues + harms) / n - ((rescues - harms) / n) ** 2)
    assert float(weights @ sums) == pytest.approx(rescues - harms, abs=1e-6)
    assert float(weights @ (sums - 600) ** 2) == pytest.approx(variance, rel=1e-6)


def test_units_that_all_carry_0_give_0() -> None:
    for unit_sums in ({1: 0, -1: 0}, {}):
        distribution = resampled_sum(unit_sums, 75)
        assert (distribution.quantile(0.025), distribution.quantile(0.975)) == (0, 0)
        assert (distribution.up_to(-1), distribution.up_to(0)) == (0.0, 1.0)


def test_units_listed_with_sum_0_are_part_of_the_rest() -> None:
    listed, left_out = resampled_sum({0: 3, 1: 2}, 5), resampled_sum({1: 2}, 5)
    assert [listed.up_to(total) for total in range(6)] == pytest.approx([left_out.up_to(total) for total in range(6)])


@pytest.mark.parametrize(
    ("unit_sums", "n"),
    [({1: 3, -1: 3}, 5), ({1: 6}, 5), ({1: -1}, 5), ({1: 5, -1: -1}, 5), ({1: 0}, 0), ({1: 1}, -1), ({0: 9, 1: 1}, 5)],
)
def test_units_that_do_not_fit_are_refused(unit_sums: dict[int, int], n: int) -> None:
    with pytest.raises(ValueError, match=rf"does not fit into {n} units; the counts must be at least 0"):
        resampled_sum(unit_sums, n)


# ---- the sixteen intervals that the repository prints with their counts -----------------------------------------

# Repository of arXiv 2610.00372 (Qwen3-8B): cell, n, rescues, harms, printed bounds.
CALIBRATION = [
    ("refresh d0 stale", 73, 9, 3, (0, 13)),
    ("refresh d1 stale", 73, 8, 3, (-1, 12)),
    ("refresh d2 stale", 73, 9, 3, (0, 13)),
    ("refresh d4 stale", 73, 4, 3, (-4, 6)),
    ("replan d0 stale", 73, 6, 6, (-7, 7)),
    ("replan d1 stale", 73, 9, 7, (-6, 10)),
    ("replan d4 stale", 73, 3, 8, (-12, 1)),
    ("refresh d0 clean", 73, 0, 6, (-11, -2)),
    ("replan d0 clean", 73, 0, 14, (-21, -8)),
    ("refresh d2 clean", 73, 0, 2, (-5, 0)),
    ("refresh d1 clean", 73, 0, 4, (-8, -1)),
    ("stale d0 full", 59, 14, 1, (6, 20)),
    ("stale d4 full", 59, 10, 3, (0, 14)),
    ("clean d0 full", 59, 0, 5, (-10, -1)),
    ("clean d4 full", 59, 0, 1, (-3, 0)),
]


@pytest.mark.parametrize(("n", "rescues", "harms", "bounds"), [row[1:] for row in CALIBRATION], ids=lambda v: str(v))
def test_fifteen_of_sixteen_published_intervals_are_exact(
    n: int, rescues: int, harms: int, bounds: tuple[int, int]
) -> None:
    found = rescue_harm_from_interval(rescues - harms, n, *bounds).set_index(["rescues", "harms"])
    row = found.loc[(rescues, harms)]
    assert (row["low"], row["high"]) == bounds
    assert bool(row["exact"])
    assert row["reach_probability"] > 0.4


def test_the_sixteenth_is_a_monte_carlo_edge() -> None:
    # "replan d2 stale" of the repository prints [-7, 9] for 10 rescues and 9 harms of 73.
    found = rescue_harm_from_interval(1, 73, -7, 9).set_index(["rescues", "harms"])
    row = found.loc[(10, 9)]
    assert (row["low"], row["high"]) == (-8, 10)
    assert not bool(row["exact"])
    # About .42 for the lower times .39 for the upper bound; jointly a little less, as the bounds lean the same way.
    assert row["reach_probability"] == pytest.approx(0.16, abs=0.005)


# ---- the audit table: every effect with its bounds --------------------------------------------------------------


# Second reading of arXiv 2610.00372: effect/n and bounds as printed; every (rescues, harms) whose exact bounds these
# are, with the share of bootstraps of 10,000 draws that print them, as estimated there for each bound by itself.
@pytest.mark.parametrize(
    ("effect", "n", "bounds", "pairs"),
    [
        pytest.param(-6, 93, (-11, -2), {(0, 6): 1.0}, id="clean, d=0"),
        pytest.param(7, 93, (-3, 17), {(16, 9): 0.83, (17, 10): 0.998, (18, 11): 0.43}, id="2-step stale, d=0"),
        pytest.param(7, 75, (1, 13), {(9, 2): 0.62}, id="CIR, 2-step stale"),
        pytest.param(9, 67, (3, 15), {(10, 1): 0.95}, id="full refresh"),
        pytest.param(7, 67, (1, 14), {}, id="content-ablated refresh"),
        pytest.param(1, 67, (-6, 8), {(7, 6): 1.0}, id="replanning only, with 8/67 for the misprint"),
        pytest.param(2, 65, (-3, 7), {(4, 2): 0.99}, id="full minus ablated"),
        pytest.param(-4, 106, (-10, 1), {(2, 6): 0.97}, id="complete cohort, clean"),
        pytest.param(7, 106, (-3, 17), {(16, 9): 0.84, (17, 10): 0.996, (18, 11): 0.38}, id="complete cohort, stale"),
    ],
)
def test_the_only_counts_behind_a_published_interval(
    effect: int, n: int, bounds: tuple[int, int], pairs: dict[tuple[int, int], float]
) -> None:
    found = rescue_harm_from_interval(effect, n, *bounds)
    exact = found[found["exact"]]
    assert list(zip(exact["rescues"], exact["harms"], strict=True)) == list(pairs)
    # The two bounds are not independent, and an interpolated bound needs two order statistics: up to .025 less.
    assert list(exact["reach_probability"]) == pytest.approx(list(pairs.values()), abs=0.025)


def test_the_ablated_refresh_is_9_and_2_by_monte_carlo_noise() -> None:
    found = rescue_harm_from_interval(7, 67, 1, 14).set_index(["rescues", "harms"])
    assert tuple(found.loc[(9, 2), ["low", "high"]]) == (1, 13)
    # Second reading: .24 for (9, 2) and .006 for (10, 3), the next likely.
    assert found["reach_probability"].nlargest(2).to_dict() == {
        (9, 2): pytest.approx(0.22, abs=0.02),
        (10, 3): pytest.approx(0.006, abs=0.002),
    }


def test_delay_1_prints_another_interval_than_the_one_under_its_label() -> None:
    # Second reading: delay 1 has 15 rescues and 4 harms of 93 and would print [3, 19], not [-3, 17].
    found = rescue_harm_from_interval(11, 93, 3, 19)
    exact = found[found["exact"]]
    assert (15, 4) in set(zip(exact["rescues"], exact["harms"], strict=True))


def test_the_frame_of_rescue_harm_from_interval() -> None:
    found = rescue_harm_from_interval(-2, 7, -5, 1)
    assert list(found.columns) == ["rescues", "harms", "exact", "low", "high", "reach_probability"]
    assert list(zip(found["rescues"], found["harms"], strict=True)) == [(0, 2), (1, 3), (2, 4)]
    assert list(found.index) == [0, 1, 2]
    assert found["exact"].dtype == bool
    assert all(pd.api.types.is_integer_dtype(found[name]) for name in ("rescues", "harms", "low", "high"))


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(-n, n))), st.integers(-9, 9))
@settings(deadline=None, max_examples=40)
def test_every_feasible_pair_is_listed_once(drawn: tuple[int, int], low: int) -> None:
    n, effect = drawn
    found = rescue_harm_from_interval(effect, n, low, low + 4, 1000)
    pairs = [(r, h) for r in range(n + 1) for h in range(n + 1 - r) if r - h == effect]
    assert list(zip(found["rescues"], found["harms"], strict=True)) == pairs
    assert (found["exact"] == ((found["low"] == low) & (found["high"] == low + 4))).all()
    assert found["low"].le(found["high"]).all()
    assert found["reach_probability"].between(0, 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 7, 0, 9), r"an effect of 8 needs at least 8 tasks; n is 7"),
        ((-8, 7, -9, 0), r"an effect of -8 needs at least 8 tasks; n is 7"),
        ((1, 7, 3, 2), r"the lower bound 3 is above the upper bound 2"),
        ((0, 0, 0, 0), r"0 units"),
        ((0, -5, 0, 0), r"n is -5"),
    ],
)
def test_impossible_intervals_are_refused(arguments: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rescue_harm_from_interval(*arguments)


# ---- the probability that a finite bootstrap prints the bounds --------------------------------------------------


def simulated_reach(
    unit_sums: dict[int, int], n: int, bounds: tuple[int, int], n_resamples: int, n_bootstraps: int
) -> float:
    """Run percentile bootstraps over units as `core.py` of the repository does, and count those that print `bounds`."""
    rng = np.random.default_rng(20260926)
    totals = np.array([*unit_sums, 0])
    shares = np.array([*unit_sums.values(), n - sum(unit_sums.values())]) / n
    printed = 0
    for _ in range(n_bootstraps // 500):
        sums = rng.multinomial(n, shares, size=(500, n_resamples)) @ totals
        percentiles = np.percentile(sums, [2.5, 97.5], axis=1)
        printed += int(np.all(np.isclose(percentiles.T, bounds, atol=1e-9), axis=1).sum())
    return printed / n_bootstraps


@pytest.mark.parametrize(
    ("unit_sums", "n", "bounds", "n_resamples"),
    [
        # 999 * .025 lies between two order statistics, 1000 * .025 and 200 * .025 on one.
        pytest.param({1: 10, -1: 9}, 73, (-8, 10), 1000, id="replan d2 stale, exact"),
        pytest.param({1: 10, -1: 9}, 73, (-7, 9), 1000, id="replan d2 stale, printed"),
        pytest.param({1: 10, -1: 9}, 73, (-7, 9), 1001, id="on an order statistic"),
        pytest.param({1: 9, -1: 2}, 75, (1, 13), 1001, id="CIR, 2-step stale"),
        pytest.param({1: 9, -1: 2}, 75, (1, 13), 201, id="201 draws"),
        pytest.param({1: 9, -1: 2}, 75, (1, 13), 100, id="100 draws"),
        pytest.param({1: 4, -1: 4, -2: 1}, 75, (-9, 5), 1000, id="8B transfer, printed"),
        pytest.param({2: 1, 1: 9, -1: 2}, 75, (2, 17), 1000, id="CIR overall"),
        pytest.param({1: 1, -1: 1}, 12, (-2, 3), 1000, id="few tasks"),
        pytest.param({1: 1}, 400, (0, 3), 1000, id="lower bound at the end of the range"),
        pytest.param({1: 1, -1: 1}, 900, (0, 0), 60, id="no width, interpolated"),
        pytest.param({1: 1}, 40, (0, 0), 41, id="no width, on order statistics"),
    ],
)
def test_reach_is_the_share_of_simulated_bootstraps(
    unit_sums: dict[int, int], n: int, bounds: tuple[int, int], n_resamples: int
) -> None:
    n_bootstraps = 4000 if n_resamples >= 1000 else 8000
    reach = reach_probability(resampled_sum(unit_sums, n), *bounds, n_resamples=n_resamples)
    simulated = simulated_reach(unit_sums, n, bounds, n_resamples, n_bootstraps)
    error = math.sqrt(max(reach * (1 - reach), 1 / n_bootstraps) / n_bootstraps)
    assert abs(simulated - reach) <= 4 * error


@given(SMALL_UNIT_SUMS, st.sampled_from([41, 201, 1001]))
@settings(deadline=None, max_examples=20)
@example(({1: 2, -1: 1}, 5), 201)
def test_reach_of_all_bounds_sums_to_1_where_percentiles_are_order_statistics(
    drawn: tuple[dict[int, int], int], n_resamples: int
) -> None:
    unit_sums, n = drawn
    distribution = resampled_sum(unit_sums, n)
    span = range(-3 * n, 3 * n + 1)
    total = sum(
        reach_probability(distribution, low, high, n_resamples=n_resamples)
        for low in span
        for high in span
        if low <= high
    )
    assert total == pytest.approx(1.0, abs=1e-7)


@given(SMALL_UNIT_SUMS, st.integers(2, 300))
@settings(deadline=None, max_examples=20)
def test_reach_of_all_bounds_sums_to_at_most_1(drawn: tuple[dict[int, int], int], n_resamples: int) -> None:
    unit_sums, n = drawn
    distribution = resampled_sum(unit_sums, n)
    span = range(-3 * n, 3 * n + 1)
    reaches = [reach_probability(distribution, a, b, n_resamples=n_resamples) for a in span for b in span]
    assert all(0 <= reach <= 1 for reach in reaches)
    assert sum(reaches) <= 1 + 1e-9


@given(SMALL_UNIT_SUMS, st.integers(-6, 6), st.integers(0, 6), st.integers(2, 300))
@settings(deadline=None, max_examples=60)
def test_reach_does_not_depend_on_the_direction(
    drawn: tuple[dict[int, int], int], low: int, width: int, n_resamples: int
) -> None:
    unit_sums, n = drawn
    mirrored = resampled_sum({-total: count for total, count in unit_sums.items()}, n)
    reach = reach_probability(resampled_sum(unit_sums, n), low, low + width, n_resamples=n_resamples)
    assert reach == pytest.approx(reach_probability(mirrored, -low - width, -low, n_resamples=n_resamples), abs=1e-9)


def test_one_draw_is_printed_as_both_bounds() -> None:
    distribution = resampled_sum({1: 1}, 2)
    reaches = [reach_probability(distribution, total, total, n_resamples=1) for total in (0, 1, 2)]
    assert reaches == pytest.approx([0.25, 0.5, 0.25])
    assert reach_probability(distribution, 0, 1, n_resamples=1) == pytest.approx(0)


def brute_force_reach(unit_sums: dict[int, int], n: int, n_resamples: int) -> dict[tuple[Fraction, Fraction], Fraction]:
    """Probability of each pair of 2.5 % and 97.5 % percentiles, from all samples of draws.

    A percentile between two different order statistics is no count; that it may hit one by interpolating over a jump of
    many counts is left out, as in the function.
    """
    weights = {total: Fraction(count, n**n) for total, count in brute_force_sums(unit_sums, n).items()}
    reach: dict[tuple[Fraction, Fraction], Fraction] = Counter()
    for draws in itertools.combinations_with_replacement(sorted(weights), n_resamples):
        orders = math.factorial(n_resamples)
        for repeated in Counter(draws).values():
            orders //= math.factorial(repeated)
        bounds = []
        for probability in (Fraction(1, 40), Fraction(39, 40)):
            position = (n_resamples - 1) * probability
            below, above = draws[math.floor(position)], draws[math.ceil(position)]
            bounds.append(Fraction(below) if below == above else below + Fraction(1, 2))
        reach[bounds[0], bounds[1]] += orders * math.prod(weights[draw] for draw in draws)
    return reach


@given(SMALL_UNIT_SUMS.filter(lambda drawn: drawn[1] <= 3), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
@example(({1: 1}, 2), 5)  # both order statistics beside each bound
@example(({1: 1, -1: 1}, 3), 4)
@example(({2: 1, -1: 1}, 3), 5)
def test_reach_is_that_of_all_samples_of_a_few_draws(drawn: tuple[dict[int, int], int], n_resamples: int) -> None:
    unit_sums, n = drawn
    distribution = resampled_sum(unit_sums, n)
    expected = brute_force_reach(unit_sums, n, n_resamples)
    assert sum(expected.values()) == 1
    for low in range(-3 * n, 3 * n + 1):
        for high in range(low, 3 * n + 1):
            reach = reach_probability(distribution, low, high, n_resamples=n_resamples)
            assert reach == pytest.approx(float(expected[Fraction(low), Fraction(high)]), abs=1e-9)


def test_bounds_the_wrong_way_round_are_never_printed() -> None:
    assert reach_probability(resampled_sum({1: 9, -1: 2}, 75), 13, 1) == 0.0


def test_another_level_moves_the_bounds() -> None:
    found = rescue_harm_from_interval(7, 75, 2, 12, level=0.90).set_index(["rescues", "harms"])
    assert tuple(found.loc[(9, 2), ["low", "high"]]) == (2, 12)  # narrower than [1, 13] at 95 %
    assert found.loc[(9, 2), "reach_probability"] > 0.5
    wide = rescue_harm_from_interval(7, 75, 2, 12, level=0.95).set_index(["rescues", "harms"])
    assert wide.loc[(9, 2), "reach_probability"] < 0.01


# ---- tasks with several episodes --------------------------------------------------------------------------------

# arXiv 2610.00372 and its second reading: rescues and harms under clean, 1-step stale, 2-step stale and missing,
# 75 tasks each; 11 rescues and 2 harms over 300 episodes.
CIR_STRATA = [(0, 0), (1, 0), (9, 2), (1, 0)]


def exact_bounds(unit_sums: dict[int, int], n: int) -> tuple[int, int]:
    distribution = resampled_sum(unit_sums, n)
    return distribution.quantile(0.025), distribution.quantile(0.975)


def test_the_task_sums_behind_the_overall_interval() -> None:
    bounds = {
        tuple(sorted(pattern.items(), reverse=True)): exact_bounds(pattern, 75)
        for pattern in unit_sum_patterns(CIR_STRATA, 75)
    }
    assert bounds == {
        ((1, 9),): (4, 15),
        ((1, 10), (-1, 1)): (3, 15),
        ((2, 1), (1, 8), (-1, 1)): (3, 16),
        ((1, 11), (-1, 2)): (2, 16),
        ((2, 1), (1, 9), (-1, 2)): (2, 17),
        ((2, 2), (1, 7), (-1, 2)): (2, 17),
        ((3, 1), (1, 8), (-1, 2)): (1, 18),
    }


def test_independent_episodes_give_another_overall_interval() -> None:
    assert exact_bounds({1: 11, -1: 2}, 300) == (2, 16)


def test_the_transfer_to_8b_is_a_monte_carlo_edge() -> None:
    # Repository: task sums +1 four times, −1 four times, −2 once, and one +1−1; printed [-9, 5], exactly [-9, 4].
    unit_sums = {1: 4, -1: 4, -2: 1}
    assert exact_bounds(unit_sums, 75) == (-9, 4)
    distribution = resampled_sum(unit_sums, 75)
    # The lower bound is certain; .418 is the joint probability with interpolated bounds (.44 for the upper alone).
    assert reach_probability(distribution, -9, 5) == pytest.approx(0.418, abs=0.003)
    assert reach_probability(distribution, -9, 4) == pytest.approx(0.557, abs=0.003)


@pytest.mark.parametrize(
    ("overlap", "stale"),
    [((0, 0, 6), (16, 9)), ((0, 1, 5), (17, 10)), ((0, 2, 4), (18, 11)), ((0, 6, 0), (22, 15))],
)
def test_stale_minus_clean_comes_near_its_printed_interval(
    overlap: tuple[int, int, int], stale: tuple[int, int]
) -> None:
    # Second reading: 13 of 93, printed [2, 23]; the six clean harms fall on so many stale rescues, harms and others.
    on_rescues, on_harms, on_others = overlap
    pattern = {2: on_rescues, 1: stale[0] - on_rescues + on_others, -1: stale[1] - on_harms}
    pattern = {total: count for total, count in pattern.items() if count}
    assert pattern in unit_sum_patterns([stale, (6, 0)], 93)
    assert exact_bounds(pattern, 93) == (2, 24)
    assert reach_probability(resampled_sum(pattern, 93), 2, 23) == pytest.approx(0.183, abs=0.01)


def test_no_joint_pattern_gives_stale_minus_clean_exactly() -> None:
    patterns = [pattern for harms in range(7, 17) for pattern in unit_sum_patterns([(harms + 7, harms), (6, 0)], 93)]
    assert (2, 23) not in {exact_bounds(pattern, 93) for pattern in patterns}


STRATA = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=0, max_size=3)


@given(STRATA, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
@example([(1, 0), (0, 1)], 4)
def test_patterns_are_those_of_labelled_tasks(strata: list[tuple[int, int]], n: int) -> None:
    if any(rescues + harms > n for rescues, harms in strata):
        with pytest.raises(ValueError, match=rf"do not fit into {n} tasks"):
            unit_sum_patterns(strata, n)
        return
    outcomes = [
        set(itertools.permutations([1] * rescues + [-1] * harms + [0] * (n - rescues - harms)))
        for rescues, harms in strata
    ]
    expected = (
        {
            frozenset(Counter(total for total in map(sum, zip(*assigned, strict=True)) if total).items())
            for assigned in itertools.product(*outcomes)
        }
        if strata
        else {frozenset()}
    )
    found = unit_sum_patterns(strata, n)
    assert {frozenset(pattern.items()) for pattern in found} == expected
    assert len(found) == len(expected)


def test_patterns_come_in_a_stable_order() -> None:
    strata = [(2, 1), (1, 2), (3, 0)]
    assert unit_sum_patterns(strata, 9) == unit_sum_patterns(strata, 9)
    assert {frozenset(p.items()) for p in unit_sum_patterns(strata, 9)} == {
        frozenset(p.items()) for p in unit_sum_patterns(strata[::-1], 9)
    }


def test_every_pattern_can_be_resampled() -> None:
    # One rescue and one harm may fall on the same task, which then carries 0 like all others.
    together, apart = unit_sum_patterns([(1, 0), (0, 1)], 75)
    assert (together, apart) == ({}, {1: 1, -1: 1})
    low, high = exact_bounds(apart, 75)
    assert low < 0 < high
    assert exact_bounds(together, 75) == (0, 0)


@pytest.mark.parametrize("strata", [[(3, 3)], [(0, 0), (6, 0)], [(1, 1), (0, 6)]])
def test_strata_larger_than_the_tasks_are_refused(strata: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"\d rescues and \d harms do not fit into 5 tasks"):
        unit_sum_patterns(strata, 5)


@pytest.mark.parametrize("strata", [[(-1, 0)], [(2, -1)]])
def test_negative_strata_are_refused(strata: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        unit_sum_patterns(strata, 5)


def test_too_many_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 10 patterns; give fewer or smaller strata"):
        unit_sum_patterns([(5, 5), (5, 5)], 60, most=10)


def test_too_many_patterns_are_refused_before_they_are_listed() -> None:
    # Three conditions of 12 rescues and 12 harms, which a hostile table may print: no answer for hours is no refusal.
    code = "from faultbook.stats.resampling import unit_sum_patterns; unit_sum_patterns([(12, 12)] * 3, 75)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "ValueError: more than 10000 patterns" in ended.stderr


# ---- two success counts of the same pairs -----------------------------------------------------------------------


def test_margins_7_and_10_of_21() -> None:
    # Terminal-Bench document, observation table: OMK and Terminus-2 solved 7 and 10 of the same 21 pairs.
    found = mcnemar_from_margins(7, 10, 21)
    assert list(found.columns) == ["only_a", "only_b", "p"]
    assert list(found["only_a"]) == list(range(8))
    assert list(found["only_b"]) == list(range(3, 11))
    assert list(found["p"].round(3)) == [0.25, 0.375, 0.453, 0.508, 0.549, 0.581, 0.607, 0.629]


def test_margins_of_the_earlier_run_include_its_split() -> None:
    # Repository of the Terminal-Bench document: 13 and 14 of 24 tasks solved, 2 by A only and 3 by B only, p = 1.
    found = mcnemar_from_margins(13, 14, 24).set_index(["only_a", "only_b"])
    assert found.loc[(2, 3), "p"] == pytest.approx(1.0)


@settings(deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))))
def test_splits_are_all_those_that_the_margins_allow(margins: tuple[int, int, int]) -> None:
    a, b, n = margins
    tables = [
        (only_a, only_b)
        for both in range(n + 1)
        for only_a in range(n + 1)
        for only_b in range(n + 1)
        if both + only_a == a and both + only_b == b and both + only_a + only_b <= n
    ]
    found = mcnemar_from_margins(a, b, n)
    assert list(zip(found["only_a"], found["only_b"], strict=True)) == sorted(tables)
    undefined = (found["only_a"] + found["only_b"]) == 0
    assert found["p"].isna().equals(undefined.rename("p"))


def test_swapping_the_arms_mirrors_the_splits() -> None:
    found, swapped = mcnemar_from_margins(7, 10, 21), mcnemar_from_margins(10, 7, 21)
    assert list(found["p"]) == pytest.approx(list(swapped["p"]))
    assert list(found["only_a"]) == list(swapped["only_b"])


@pytest.mark.parametrize("margins", [(22, 10, 21), (7, 22, 21), (-1, 7, 21), (7, -1, 21), (0, 0, -1)])
def test_margins_outside_the_pairs_are_refused(margins: tuple[int, int, int]) -> None:
    message = rf"success counts {margins[0]} and {margins[1]} must lie between 0 and the {margins[2]} pairs"
    with pytest.raises(ValueError, match=message):
        mcnemar_from_margins(*margins)
