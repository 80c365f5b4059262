"""The percentile bootstrap over clusters: resample what is independent (tasks, incidents), never single rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from faultbook.errors import one_of
from faultbook.stats.proportion import as_count, check_level

Weight = Literal["unit", "cluster"]
Floats = npt.NDArray[np.float64]

_WEIGHTS = ("unit", "cluster")
_CELLS = 2**20  # resampled counts held at a time: 8 MiB
_MANY_CLUSTERS = 5_000  # different ones, from which on a normal interval does
_ALIKE = 1e-12  # cluster means that differ by less, relative to their size, differ by rounding only


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` rows in `n_clusters` clusters and its percentile interval, in the units of the values.

    If `degenerate`, no resample can differ from the sample, the interval would have no width, and `low` and `high`
    are NaN: this is not certainty. For rates of events, `proportion.zero_event_upper_bound` gives an exact bound.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: int
    n_clusters: int
    method: str
    degenerate: bool

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def cluster_bootstrap(
    values: Iterable[Any],
    clusters: Iterable[Any],
    *,
    weight: Weight = "unit",
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator,
) -> Estimate:
    """Estimate a mean and its percentile interval by resampling whole clusters with replacement.

    Estimate and interval are of one and the same quantity. With ``weight="unit"`` that is the mean over rows: a
    resample's sum over its number of rows. With ``weight="cluster"`` it is the mean of the cluster means, as in the
    authors' analysis (mean effect per source task). The two differ if clusters differ in size.

    Parameters
    ----------
    values : iterable of float, shape (n,)
        Numbers or booleans, for instance effects of -1, 0 and +1. None may be missing: missing is not 0, so drop or
        fill it first, and say so.
    clusters : iterable, shape (n,)
        The cluster of each row: task_id, incident_id, question_id.
    weight : {"unit", "cluster"}
        What has equal weight: rows or clusters.
    level : float
        Confidence level, strictly between 0 and 1.
    n_resamples : int
        Number of resamples, at least 1.
    seed : int or numpy.random.Generator
        Source of randomness; the same seed gives the same interval, whatever the order of the rows.

    Returns
    -------
    Estimate
        With `degenerate` set and NaN bounds if there is one cluster only, if all cluster means are equal, or if the
        interval has no width at this level. Zero events in 75 tasks do not mean a rate of [0, 0]: the bound to
        report is ``proportion.zero_event_upper_bound(75)``.

    Raises
    ------
    ValueError
        If a value or cluster is missing, a value is infinite or no number, the lengths or the indexes of the two
        differ, there is no row, or a setting is out of its range.

    Notes
    -----
    Percentiles are interpolated linearly. Clusters with the same sum and size are interchangeable, so their counts
    are drawn together from one multinomial: the distribution is the same, and 93 tasks with effects of -1, 0 and +1
    need three counts a resample instead of 93.

    References
    ----------
    arXiv 2610.00372, section on inference (10,000 resamples of tasks, linearly interpolated percentiles), as in the
    authors' core.py; there the estimate is over episodes but the interval over tasks, here both are the same.
    Efron (1979), Annals of Statistics 7, 1-26.
    """
    if weight not in _WEIGHTS:
        raise ValueError(one_of("weight", weight, _WEIGHTS))
    level, n_resamples = check_level(level), as_count("n_resamples", n_resamples)
    if n_resamples == 0:
        raise ValueError("n_resamples is 0; give at least 1, usually 10000")
    rng = as_generator(seed)
    check_same_rows(values, clusters, ("values", "clusters"))
    numbers = as_numbers(values, "values")
    terms = _terms(numbers, _codes(clusters, len(numbers)), weight)
    estimate = float(terms[:, 0].sum() / terms[:, 1].sum())
    name = f"percentile bootstrap of {len(terms)} clusters, {weight} weight, {n_resamples} resamples"
    low, high, reason = _percentile_interval(terms, level, n_resamples, rng)
    method = f"{name}; degenerate, no interval: {reason}" if reason else name
    return Estimate(estimate, low, high, level, len(numbers), len(terms), method, bool(reason))


def cluster_ratio(
    numerators: Iterable[Any],
    denominators: Iterable[Any],
    clusters: Iterable[Any],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator,
) -> Estimate:
    """Estimate a ratio of two sums, such as a chance-adjusted mean, and its interval by resampling whole clusters.

    Parameters
    ----------
    numerators, denominators : iterable of float, shape (n,)
        Their sums are divided; every denominator must be positive.
    clusters : iterable, shape (n,)
        The cluster of each row.
    level, n_resamples, seed
        As in `cluster_bootstrap`.

    Returns
    -------
    Estimate
        As from `cluster_bootstrap`. Beyond 5,000 different clusters, where the bootstrap distribution is normal to
        the digits that anybody prints, the interval is the normal one with the linearised variance of clusters, and
        `method` says so: the cost of resampling grows with their number.

    Raises
    ------
    ValueError
        As `cluster_bootstrap`; or if a denominator is not positive.
    """
    level, n_resamples = check_level(level), as_count("n_resamples", n_resamples)
    rng = as_generator(seed)
    check_same_rows(numerators, denominators, ("numerators", "denominators"))
    check_same_rows(numerators, clusters, ("numerators", "clusters"))
    above, below = as_numbers(numerators, "numerators"), as_numbers(denominators, "denominators")
    if len(above) != len(below) or (below <= 0).any() or n_resamples == 0:
        raise ValueError("give as many denominators as numerators, all positive, and at least 1 resample")
    codes = _codes(clusters, len(above))
    terms = np.column_stack([_cluster_sums(above, codes), _cluster_sums(below, codes)])
    terms = terms[np.lexsort((terms[:, 1], terms[:, 0]))]
    estimate = float(terms[:, 0].sum() / terms[:, 1].sum())
    if not _all_alike(terms) and len(np.unique(terms, axis=0)) > _MANY_CLUSTERS:
        method = f"normal, linearised over {len(terms)} clusters"
        reach = float(stats.norm.ppf((1 + level) / 2)) * _linearised_error(terms, estimate)
        return Estimate(estimate, estimate - reach, estimate + reach, level, len(above), len(terms), method, False)
    method = f"percentile bootstrap of {len(terms)} clusters, ratio of sums, {n_resamples} resamples"
    low, high, reason = _percentile_interval(terms, level, n_resamples, rng)
    method = f"{method}; degenerate, no interval: {reason}" if reason else method
    return Estimate(estimate, low, high, level, len(above), len(terms), method, bool(reason))


def as_generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return the generator of a seed; a generator is used as it is, and moves on.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.random.Generator
        The generator.

    Raises
    ------
    ValueError
        If the seed is None or of another kind: a result without a seed cannot be repeated.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if not pd.api.types.is_integer(seed) or seed < 0:  # a bool is no integer here
        raise ValueError(f"seed is {seed!r}; give an int of at least 0 or a numpy.random.Generator")
    return np.random.default_rng(int(seed))


def as_numbers(values: Iterable[Any], name: str) -> Floats:
    """Read a column of finite numbers; booleans become 0 and 1.

    Parameters
    ----------
    values : iterable, shape (n,)
        Numbers or booleans, n at least 1.
    name : str
        What they are, for the error.

    Returns
    -------
    numpy.ndarray, shape (n,)
        Floats.

    Raises
    ------
    ValueError
        If there is no value, or one is missing, infinite or no number.
    """
    column = _column(values, name)
    if column.empty:
        raise ValueError(f"{name} is empty; give at least one row")
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(
            f"{name} has {missing} missing of {len(column)}; missing is not 0, so drop or fill them first, and say so"
        )
    column = column.infer_objects()
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):
        raise ValueError(f"{name} has the type '{column.dtype}', such as {column.iloc[0]!r}; give numbers or booleans")
    numbers: Floats = column.to_numpy(dtype=np.float64)
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        raise ValueError(f"{name} has {infinite} infinite of {len(numbers)}; give finite numbers")
    return numbers


def check_same_rows(first: object, second: object, names: tuple[str, str]) -> None:
    """Refuse two pandas columns whose indexes differ: pairing them by position would mix up rows.

    Parameters
    ----------
    first, second : object
        Two columns; whatever is no Series has no index and passes.
    names : tuple of str
        What they are, for the error.

    Raises
    ------
    ValueError
        If both are Series and their indexes differ.
    """
    if not (isinstance(first, pd.Series) and isinstance(second, pd.Series)):
        return
    if len(first) == len(second) and not first.index.equals(second.index):
        raise ValueError(
            f"{names[0]} and {names[1]} have different indexes; take both from one table, "
            "or pass .to_numpy() if their order is right"
        )


def _column(values: Iterable[Any], name: str) -> pd.Series[Any]:
    shape = np.shape(values) if isinstance(values, (np.ndarray, pd.DataFrame)) else (0,)
    if len(shape) != 1:
        raise ValueError(f"{name} has the shape {shape}; give one column")
    if isinstance(values, (pd.Series, np.ndarray)):
        return pd.Series(values)
    return pd.Series(list(values))


def _codes(clusters: Iterable[Any], n: int) -> npt.NDArray[np.intp]:
    column = _column(clusters, "clusters")
    if len(column) != n:
        raise ValueError(f"there are {n} values and {len(column)} clusters; give one cluster for each value")
    codes, _ = pd.factorize(column)
    missing = int((codes == -1).sum())
    if missing:
        raise ValueError(f"clusters has {missing} missing of {n}; name the cluster of each row, or drop the row")
    return codes


def _terms(numbers: Floats, codes: npt.NDArray[np.intp], weight: Weight) -> Floats:
    """One row a cluster, (numerator, denominator): every estimand here is a sum of the first over one of the second."""
    sums = _cluster_sums(numbers, codes)
    sizes = np.bincount(codes).astype(np.float64)
    terms = np.column_stack([sums, sizes] if weight == "unit" else [sums / sizes, np.ones_like(sizes)])
    return terms[np.lexsort((terms[:, 1], terms[:, 0]))]


def _cluster_sums(numbers: Floats, codes: npt.NDArray[np.intp]) -> Floats:
    # Float sums depend on the order of their terms; sorting makes the result independent of the order of the input.
    order = np.lexsort((numbers, codes))
    sums: Floats = np.bincount(codes[order], weights=numbers[order]).astype(np.float64)
    return sums


def _linearised_error(terms: Floats, ratio: float) -> float:
    """Standard error of a ratio of cluster sums."""
    residuals = terms[:, 0] - ratio * terms[:, 1]
    n = len(terms)
    return float(np.sqrt(n / (n - 1) * np.square(residuals).sum()) / terms[:, 1].sum())


def _all_alike(terms: Floats) -> bool:
    means = terms[:, 0] / terms[:, 1]
    return bool(np.ptp(means) <= _ALIKE * np.abs(means).max())


def _percentile_interval(
    terms: Floats, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float, str]:
    """Low, high and, if there is no interval, the reason why."""
    if len(terms) == 1:
        return np.nan, np.nan, "there is one cluster only"
    if _all_alike(terms):
        return np.nan, np.nan, "all cluster means are equal"
    low, high = np.quantile(_resample(terms, n_resamples, rng), [(1 - level) / 2, (1 + level) / 2], method="linear")
    if low == high:
        return np.nan, np.nan, "it has no width at this level"
    return float(low), float(high), ""


def _resample(terms: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    kinds, multiplicity = np.unique(terms, axis=0, return_counts=True)
    chunk = max(1, _CELLS // len(kinds))
    ratios = np.empty(n_resamples)
    for start in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - start)
        counts = rng.multinomial(len(terms), multiplicity / len(terms), size=size)
        totals = counts @ kinds
        ratios[start : start + size] = totals[:, 0] / totals[:, 1]
    return ratios
