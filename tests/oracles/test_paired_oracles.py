"""Our paired intervals, exact p, mid-p and power against evalstats and errorbars: equal on a grid, and where not, why.

Both are test oracles only, in an environment of their own (`make test-full`). They take two columns of outcomes; ours
takes the table.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faultbook.stats.missing import could_turn, difference_bounds
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.paired_difference import bonett_price, mean_difference, tango_score
from faultbook.stats.power import detectable_difference, pairs_needed

WHERE = "an oracle that is not among the dependencies; `make test-full` makes an environment with it"

evalstats = pytest.importorskip("evalstats", reason=WHERE)
resampling = pytest.importorskip("evalstats.core.resampling", reason=WHERE)
evalstats_tests = pytest.importorskip("evalstats.tests", reason=WHERE)
errorbars_compare = pytest.importorskip("errorbars.compare", reason=WHERE)
errorbars_power = pytest.importorskip("errorbars.power", reason=WHERE)

Table = tuple[int, int, int, int]

TABLES: list[Table] = [t for t in itertools.product([0, 1, 2, 3, 7, 21], repeat=4) if any(t)]
UNEVEN = [t for t in TABLES if t[1] != t[2]]
EVEN = [t for t in TABLES if t[1] == t[2] > 0]
GOLDEN: Table = (5, 2, 5, 9)


def columns(table: Table) -> tuple[Any, Any]:
    """The outcomes of a and of b of a table both/only a/only b/neither."""
    return np.repeat([1.0, 1, 0, 0], table), np.repeat([1.0, 0, 1, 0], table)


def frame(table: Table) -> pd.DataFrame:
    a, b = columns(table)
    items = [f"task {i}" for i in range(len(a))]
    return pd.DataFrame({"model": ["a"] * len(a) + ["b"] * len(b), "item": items * 2, "score": [*a, *b]})


# ---- what is equal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_bonett_price_is_equal(alpha: float) -> None:
    for table in TABLES:
        ours = bonett_price(*table, level=1 - alpha)
        assert [ours.low, ours.high] == pytest.approx(
            resampling.bonett_price_paired_ci(*columns(table), alpha), abs=1e-14
        ), table


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_tango_is_equal_to_the_quartic_without_correction(alpha: float) -> None:
    # evalstats solves the closed form of Chang et al. (2024), whose roots keep fewer digits; c = 0 is Tango's interval
    for table in TABLES:
        ours = tango_score(*table, level=1 - alpha)
        theirs = resampling.tango_scc_paired_ci(*columns(table), alpha, c=0.0)
        assert [ours.low, ours.high] == pytest.approx(theirs, abs=1e-6), table


def test_exact_p_is_equal_where_there_is_a_discordant_pair() -> None:
    for table in UNEVEN + EVEN:
        ours = mcnemar_exact(table[1], table[2]).p
        assert ours == pytest.approx(evalstats_tests._mcnemar_p(*columns(table)), rel=1e-12), table
        assert ours == pytest.approx(errorbars_compare.mcnemar_exact(*columns(table)).p_value, rel=1e-12), table


def test_mid_p_is_equal_where_the_split_is_uneven() -> None:
    for table in UNEVEN:
        ours = mcnemar_exact(table[1], table[2]).mid_p
        assert ours == pytest.approx(evalstats_tests._mcnemar_midp_p(*columns(table)), rel=1e-12), table


def test_t_interval_is_equal_where_differences_vary() -> None:
    rng = np.random.default_rng(2607)
    for n in (2, 3, 24, 400):
        a, b = rng.integers(0, 6, size=(2, n)) / 5
        a[0], b[0] = 1, a[1] - b[1]  # never all alike
        ours, theirs = mean_difference(a - b), errorbars_compare.paired_compare(a, b)
        assert [ours.estimate, ours.low, ours.high] == pytest.approx(
            [theirs.mean_diff, theirs.ci_low, theirs.ci_high], rel=1e-9
        )
        assert [ours.low, ours.high] == pytest.approx(resampling.t_interval_ci_1d(a - b, 0.05), rel=1e-9)


def test_what_evalstats_reports_of_21_pairs() -> None:
    found = evalstats.compare_models(evalstats.load_from(frame(GOLDEN))).to_dict()
    (pair,) = found["pairwise"]
    assert found["methods"]["pairwise_ci"]["code"] == "bonett_price"
    assert found["methods"]["p_values"]["test"]["code"] == "mcnemar_midp"
    ours = bonett_price(*GOLDEN)
    assert [ours.estimate, ours.low, ours.high] == pytest.approx([pair["diff"], pair["ci_low"], pair["ci_high"]])
    assert mcnemar_exact(2, 5).mid_p == pytest.approx(pair["p_value"])


# ---- what differs -----------------------------------------------------------------------------------------------


def test_evalstats_gives_every_even_split_a_mid_p_of_1() -> None:
    # An even split is its own mirror image. evalstats doubles a lower tail with half of it in, which is 1 whatever the
    # number of pairs; ours takes half of the observed probability off p, as Fagerland, Lydersen & Laake (2013) do.
    for table in EVEN:
        n = table[1] + table[2]
        assert evalstats_tests._mcnemar_midp_p(*columns(table)) == pytest.approx(1)
        assert mcnemar_exact(table[1], table[2]).mid_p == pytest.approx(1 - math.comb(n, n // 2) / 2**n / 2)


def test_without_a_discordant_pair_both_report_a_p_of_1() -> None:
    for table in [t for t in TABLES if t[1] == t[2] == 0]:
        assert evalstats_tests._mcnemar_p(*columns(table)) == evalstats_tests._mcnemar_midp_p(*columns(table)) == 1
        assert errorbars_compare.mcnemar_exact(*columns(table)).p_value == 1
        assert math.isnan(mcnemar_exact(0, 0).p)  # no test was made


def test_equal_differences_have_an_interval_without_width_in_both() -> None:
    a, b = np.ones(3), np.zeros(3)
    theirs = errorbars_compare.paired_compare(a, b)
    assert (theirs.ci_low, theirs.ci_high, theirs.p_value) == (1, 1, 1)  # certainty of 1, and no evidence against 0
    assert resampling.t_interval_ci_1d(a - b, 0.05) == (1, 1)
    ours = mean_difference(a - b)
    assert ours.degenerate
    assert math.isnan(ours.low)


def test_evalstats_has_no_result_for_an_interrupted_run() -> None:
    # one cell of 42 is missing: it refuses, or drops the pair; ours says what the cell could still change
    with pytest.raises(evalstats.errors.MissingCellsError):
        evalstats.compare_models(evalstats.load_from(frame(GOLDEN).drop(index=0)))
    bounds = difference_bounds(20, 6, 21, 21, 10, 21)
    assert (bounds.low, bounds.high) == pytest.approx((-4 / 21, -3 / 21))
    assert could_turn(bounds, -3 / 20) == "no"  # of the 20 complete pairs


def test_errorbars_power_is_that_of_a_normal_mean() -> None:
    # A variance of D/2 a side and no correlation make its variance of a difference D, that of pairs of which a share
    # of D is discordant. It needs fewer pairs than the exact test, and among few pairs names differences that cannot
    # be: .286 where only a quarter of the pairs differ at all. Ours has none to name there.
    for rate, difference in [(0.3, 0.1), (0.3, 0.05), (0.5, 0.1)]:
        ours = pairs_needed(rate, difference).n_pairs
        theirs = errorbars_power.questions_needed(difference, variance=rate / 2).n_questions
        assert ours is not None
        assert theirs < ours < 1.15 * theirs
    theirs = errorbars_power.minimum_detectable_effect(24, variance=0.25 / 2)
    assert theirs == pytest.approx(0.286, abs=5e-4)
    assert math.isnan(detectable_difference(24, 0.25).difference)
    many = errorbars_power.minimum_detectable_effect(5_000, variance=0.25 / 2)
    assert detectable_difference(5_000, 0.25).difference == pytest.approx(many, rel=0.02)
