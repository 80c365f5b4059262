"""Ratios of sums over clusters: exact resamples, the mean as a special case, and the normal limit."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.stats.bootstrap import cluster_bootstrap, cluster_ratio

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 5), st.sampled_from("abcdefg")), min_size=1, max_size=25)


def ratio(rows: list[Any], **options: Any) -> Any:
    above, below, clusters = ([row[i] for row in rows] for i in range(3))
    return cluster_ratio(above, below, clusters, **{"n_resamples": 200, "seed": 7} | options)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.floats(0.01, 0.99))
def test_it_is_the_ratio_of_sums_and_stays_among_the_clusters(rows: Any, level: float) -> None:
    result = ratio(rows, level=level)
    assert result.estimate == pytest.approx(sum(r[0] for r in rows) / sum(r[1] for r in rows), abs=1e-12)
    assert (result.n, result.n_clusters, result.level) == (len(rows), len({r[2] for r in rows}), level)
    each = [sum(r[0] for r in rows if r[2] == c) / sum(r[1] for r in rows if r[2] == c) for c in {r[2] for r in rows}]
    if result.degenerate:
        assert math.isnan(result.low)
        assert math.isnan(result.high)
        assert "degenerate, no interval: " in result.method
    else:
        assert min(each) - 1e-12 <= result.low < result.high <= max(each) + 1e-12
    if max(each) - min(each) < 1e-15:
        assert result.degenerate


@settings(deadline=None, max_examples=40)
@given(ROWS)
def test_with_equal_denominators_it_is_the_mean(rows: Any) -> None:
    ones = [(above, 1, cluster) for above, _, cluster in rows]
    mean = cluster_bootstrap([r[0] for r in ones], [r[2] for r in ones], n_resamples=200, seed=7)
    result = ratio(ones)
    assert (result.estimate, result.low, result.high) == pytest.approx(
        (mean.estimate, mean.low, mean.high), nan_ok=True
    )
    halves = ratio([(above, 0.5, cluster) for above, _, cluster in rows])
    assert (halves.estimate, halves.low, halves.high) == pytest.approx(
        tuple(2 * x for x in (mean.estimate, mean.low, mean.high)), nan_ok=True
    )


@settings(deadline=None, max_examples=40)
@given(ROWS, st.randoms(use_true_random=False))
def test_row_order_and_cluster_names_do_not_matter(rows: Any, random: Any) -> None:
    thirds = [(above / 3, below / 7, cluster) for above, below, cluster in rows]
    names = dict(zip("abcdefg", random.sample("tuvwxyz", 7), strict=True))
    other = [(above, below, names[cluster]) for above, below, cluster in random.sample(thirds, len(thirds))]
    pd.testing.assert_frame_equal(ratio(thirds).summary_frame(), ratio(other).summary_frame(), check_exact=True)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_quantiles_agree_with_all_resamples(level: float) -> None:
    terms = [(1.5, 2.0), (0.2, 1.0), (-0.4, 0.5), (2.0, 2.5)]
    resamples = itertools.product(terms, repeat=4)
    exact = np.sort([sum(t for t, _ in r) / sum(s for _, s in r) for r in resamples])
    rows = [(a / 2, b / 2, i) for i, (a, b) in enumerate(terms) for _ in range(2)]
    result = ratio(rows, level=level, n_resamples=40_000)
    for found, probability in ((result.low, (1 - level) / 2), (result.high, (1 + level) / 2)):
        # five standard errors of an empirical distribution function at 40,000 draws are at most .0125
        below, above = np.quantile(exact, np.clip([probability - 0.0125, probability + 0.0125], 0, 1))
        assert below - 1e-9 <= found <= above + 1e-9


def test_an_adjusted_mean_is_no_mean_of_adjusted_values() -> None:
    # scores .5 and .5 at chance levels 0 and .5: (mean − chance) / (1 − chance) = .25 / .75, not (.5 + 0) / 2
    assert ratio([(0.5, 1.0, "a"), (0.0, 0.5, "b")]).estimate == pytest.approx(1 / 3)


# ---- many clusters ----------------------------------------------------------------------------------------------


def many(n: int) -> list[tuple[float, float, int]]:
    rng = np.random.default_rng(11)
    below = rng.uniform(0.5, 1.5, n)
    return list(zip(below * rng.normal(0.4, 0.3, n), below, range(n), strict=True))


def test_beyond_5000_different_clusters_the_interval_is_normal() -> None:
    boot, normal = ratio(many(5_000), n_resamples=1_000), ratio(many(5_001))
    assert boot.method == "percentile bootstrap of 5000 clusters, ratio of sums, 1000 resamples"
    assert normal.method == "normal, linearised over 5001 clusters"
    assert (normal.n_clusters, normal.degenerate) == (5_001, False)
    width = [result.high - result.low for result in (boot, normal)]
    assert width[0] == pytest.approx(width[1], rel=0.1)
    assert (normal.low + normal.high) / 2 == pytest.approx(normal.estimate)
    # by hand: residuals around the ratio, n / (n − 1), over the sum of denominators
    above, below = (np.array([row[i] for row in many(5_001)]) for i in (0, 1))
    error = math.sqrt(5_001 / 5_000 * ((above - normal.estimate * below) ** 2).sum()) / below.sum()
    assert normal.high - normal.estimate == pytest.approx(1.959964 * error, rel=1e-6)
    narrow = ratio(many(5_001), level=0.5)
    assert narrow.high - narrow.estimate == pytest.approx(0.6744898 * error, rel=1e-6)


def test_it_counts_different_clusters_not_rows() -> None:
    rows = [(n % 2, 1, n) for n in range(6_000)]  # two kinds of clusters: cheap to resample
    assert ratio(rows).method.startswith("percentile bootstrap of 6000 clusters")
    joined = [(above, below, n // 2) for above, below, n in many(6_000)]
    assert ratio(joined, n_resamples=20).method.startswith("percentile bootstrap of 3000 clusters")


@pytest.mark.parametrize("n", [50, 6_001])
def test_clusters_of_one_ratio_are_not_certainty_however_many(n: int) -> None:
    result = ratio([(0.25 * size, size, size) for size in range(1, n + 1)])
    assert (result.estimate, result.degenerate) == (0.25, True)
    assert math.isnan(result.low)
    assert "all cluster means are equal" in result.method


# ---- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [], []), "numerators is empty"),
        (([1], [], "a"), "denominators is empty"),
        (([1, 2], [1], "ab"), "as many denominators as numerators"),
        (([1, 2], [1, 0], "ab"), "all positive"),
        (([1, 2], [1, -1], "ab"), "all positive"),
        (([1, 2], [1, 1], "a"), "there are 2 values and 1 clusters"),
        (([1, None], [1, 1], "ab"), "numerators has 1 missing of 2"),
        (([1, 1], [1, float("nan")], "ab"), "denominators has 1 missing of 2"),
        (([1, 1], [1, 1], ["a", None]), "clusters has 1 missing of 2"),
        (([1, float("inf")], [1, 1], "ab"), "numerators has 1 infinite of 2"),
        ((["1", "2"], [1, 1], "ab"), "numerators has the type"),
        (
            (pd.Series([1, 0]), pd.Series([1, 1], index=[1, 0]), "ab"),
            "numerators and denominators have different indexes",
        ),
        (
            (pd.Series([1, 0]), np.ones(2), pd.Series(["a", "b"], index=[1, 0])),
            "numerators and clusters have different indexes",
        ),
    ],
)
def test_unusable_columns_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cluster_ratio(*given, seed=1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"level": 95}, "level is 95; give a number strictly between 0 and 1"),
        ({"n_resamples": 0}, "at least 1 resample"),
        ({"n_resamples": 10.5}, r"n_resamples is 10\.5"),
        ({"seed": None}, "seed is None; give an int"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ratio([(1, 1, "a"), (0, 1, "b")], **setting)
