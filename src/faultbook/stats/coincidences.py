"""Coefficients of agreement as functions of counts that add up over units and clusters, and their bootstrap.

A table of two raters and a coincidence matrix are sums over units. A cluster bootstrap therefore resamples a few counts
a cluster instead of rows, and every function here takes counts of any leading shape: one log, all logs, all resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from faultbook.stats.bootstrap import Estimate, Floats, as_generator
from faultbook.stats.proportion import as_count, check_level

_CELLS = 2**20  # resampled counts held at a time: 8 MiB
_ALIKE = 1e-12  # statistics that differ by less differ by rounding only


def raw_of_counts(equal: Any, pairs: Any) -> Floats:
    """The share `equal` / `pairs`; NaN where there is no pair."""
    return _ratio(equal, pairs)


def positive_of_counts(both: Any, one: Any) -> Floats:
    """2 `both` / (2 `both` + `one`), from pairs with two positive ratings and with one; NaN where there is neither."""
    both, one = np.asarray(both, dtype=np.float64), np.asarray(one, dtype=np.float64)
    return _ratio(2 * both, 2 * both + one)


def jaccard_of_counts(both: Any, one: Any) -> Floats:
    """`both` / (`both` + `one`), from pairs with two positive ratings and with one; NaN where there is neither."""
    both, one = np.asarray(both, dtype=np.float64), np.asarray(one, dtype=np.float64)
    return _ratio(both, both + one)


def kappa_of_tables(tables: Any) -> Floats:
    """Cohen's κ of tables of two raters, shape (…, k, k) → (…); NaN where both have one and the same value only."""
    table = np.asarray(tables, dtype=np.float64)
    rows, columns, n = table.sum(axis=-1), table.sum(axis=-2), table.sum(axis=(-1, -2))
    differing = n - np.trace(table, axis1=-2, axis2=-1)
    expected = (rows * (n[..., None] - columns)).sum(axis=-1)
    return 1 - _ratio(n * differing, expected)


def coincidences_of_binary(positive: Any, rated: Any) -> Floats:
    """Coincidence matrices of units with `positive` of `rated` ratings, shape (units,) → (units, 2, 2).

    The first row and column is the negative value. A unit with fewer than two ratings has a matrix of zeros. Matrices
    of units add up.
    """
    yes, all_ = np.asarray(positive, dtype=np.float64), np.asarray(rated, dtype=np.float64)
    no = all_ - yes
    others = np.where(all_ > 1, all_ - 1, np.inf)
    cells = [no * (no - 1) / others, no * yes / others, no * yes / others, yes * (yes - 1) / others]
    return np.stack(cells, axis=-1).reshape(*yes.shape, 2, 2)


def alpha_of_coincidences(coincidences: Any) -> Floats:
    """Krippendorff's nominal α of coincidence matrices, shape (…, k, k) → (…); NaN where there is one value only."""
    n, differing, expected = _disagreement(coincidences)
    return 1 - _ratio((n - 1) * differing, expected)


def fleiss_of_coincidences(coincidences: Any) -> Floats:
    """Fleiss' κ of coincidence matrices, shape (…, k, k) → (…), if every unit in them has equally many ratings."""
    n, differing, expected = _disagreement(coincidences)
    return 1 - _ratio(n * differing, expected)


def bootstrap_counts(
    counts: Any,
    statistic: Callable[[Floats], Floats],
    *,
    n: int,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator,
) -> Estimate:
    """Estimate a function of summed counts and its percentile interval by resampling whole clusters.

    Parameters
    ----------
    counts : array, shape (clusters, k)
        What each cluster adds to the counts; a row of zeros is a cluster too.
    statistic : callable
        Takes sums of shape (…, k) and gives values of shape (…), NaN where the statistic is undefined.
    n : int
        Number of units behind the counts; it is reported, no more.
    level : float
        Confidence level, strictly between 0 and 1.
    n_resamples : int
        Number of resamples, at least 1.
    seed : int or numpy.random.Generator
        Source of randomness; the same seed gives the same interval, whatever the order of the clusters.

    Returns
    -------
    Estimate
        Percentiles of the resamples in which the statistic is defined; `method` says how many are not. `degenerate`,
        with NaN bounds, if the sample's own statistic is undefined, there is one cluster only, or the interval has no
        width.

    Raises
    ------
    ValueError
        If `counts` is not two-dimensional, or a setting is out of its range.

    Notes
    -----
    Clusters with the same counts are interchangeable and drawn together from one multinomial, as in
    `bootstrap.cluster_bootstrap`.
    """
    level, n_resamples = check_level(level), as_count("n_resamples", n_resamples)
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"counts has the shape {table.shape}; give one row a cluster")
    if n_resamples == 0:
        raise ValueError("n_resamples is 0; give at least 1, usually 2000")
    rng = as_generator(seed)
    kinds, multiplicity = np.unique(table, axis=0, return_counts=True)
    # summed by kind, so that the order of the clusters cannot show in the last digit
    estimate = float(statistic(multiplicity @ kinds)) if len(table) else math.nan
    name = f"percentile bootstrap of {len(table)} clusters, {n_resamples} resamples"
    if math.isnan(estimate) or len(table) == 1:
        reason = "the statistic is undefined" if math.isnan(estimate) else "there is one cluster only"
        low, high = math.nan, math.nan
    else:
        values = _resampled(kinds, multiplicity, statistic, n_resamples, rng)
        defined = values[~np.isnan(values)]
        low, high, reason = _percentiles(defined, level)
        name += f", {n_resamples - len(defined)} undefined" if len(defined) < n_resamples else ""
    method = f"{name}; degenerate, no interval: {reason}" if reason else name
    return Estimate(estimate, low, high, level, as_count("n", n), len(table), method, bool(reason))


def _resampled(
    kinds: Floats,
    multiplicity: npt.NDArray[np.intp],
    statistic: Callable[[Floats], Floats],
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    n_clusters = int(multiplicity.sum())
    chunk = max(1, _CELLS // len(kinds))
    values = np.empty(n_resamples)
    for start in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - start)
        drawn = rng.multinomial(n_clusters, multiplicity / n_clusters, size=size)
        values[start : start + size] = statistic(drawn @ kinds)
    return values


def _percentiles(values: Floats, level: float) -> tuple[float, float, str]:
    """Low, high and, if there is no interval, the reason why."""
    if not len(values):
        return math.nan, math.nan, "no resample defines the statistic"
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="linear")
    if high - low <= _ALIKE:
        return math.nan, math.nan, "it has no width at this level"
    return float(low), float(high), ""


def _ratio(part: Any, whole: Any) -> Floats:
    part, whole = np.broadcast_arrays(np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64))
    ratio: Floats = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return ratio


def _disagreement(coincidences: Any) -> tuple[Floats, Floats, Floats]:
    """Number of ratings, coincidences of unequal ones, and what chance would make of them times that number."""
    matrix = np.asarray(coincidences, dtype=np.float64)
    sizes = matrix.sum(axis=-1)
    n = sizes.sum(axis=-1)
    differing = n - np.trace(matrix, axis1=-2, axis2=-1)
    # n_c (n − n_c) instead of n² − Σ n_c²: rare values keep their digits
    others = (matrix.sum(axis=-2)[..., None, :] * (1 - np.eye(matrix.shape[-1]))).sum(axis=-1)
    return n, differing, (sizes * others).sum(axis=-1)
