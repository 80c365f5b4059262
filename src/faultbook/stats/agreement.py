"""Agreement of raters on nominal values: raw, positive, Jaccard, Cohen's and Fleiss' κ, Krippendorff's α."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.stats.bootstrap import Floats
from faultbook.stats.coincidences import (
    alpha_of_coincidences,
    fleiss_of_coincidences,
    jaccard_of_counts,
    kappa_of_tables,
    positive_of_counts,
    raw_of_counts,
)

NO_VARIATION = "undefined (no variation)"
NO_PAIR = "undefined (no unit with two ratings)"

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """A statistic of agreement over the `n_units` units that at least two of `n_raters` raters rated.

    `undefined` says why `value` is NaN, and is empty where it is a number.
    """

    statistic: str
    value: float
    n_units: int
    n_raters: int
    undefined: str

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def raw_agreement(ratings: Any) -> RaterAgreement:
    """Compute the share of pairs of ratings of one unit that are equal.

    It says little where one value is rare: raters who flag 5 % at random agree on 90 %.

    Parameters
    ----------
    ratings : array or DataFrame, shape (units, raters)
        Any hashable values; None, NaN, <NA> and masked cells are missing.

    Returns
    -------
    RaterAgreement
        All pairs of raters pooled, so a unit counts by its pairs.

    Raises
    ------
    ValueError
        If `ratings` is not two-dimensional or holds a value that cannot be hashed.
    """
    codes, values = _coded(ratings)
    sizes = _category_counts(codes, len(values))
    rated = sizes.sum(axis=1)
    value = raw_of_counts((sizes * (sizes - 1)).sum(), (rated * (rated - 1)).sum())
    return _result("raw agreement", value, codes)


def positive_agreement(ratings: Any, positive: Any = True) -> RaterAgreement:
    """Compute positive specific agreement: the Dice coefficient of what two raters call positive, pairs pooled.

    Parameters
    ----------
    ratings : array or DataFrame, shape (units, raters)
        Any hashable values; None, NaN, <NA> and masked cells are missing.
    positive : object
        The value that is positive; every other one is negative. True equals 1.

    Returns
    -------
    RaterAgreement
        Undefined if no unit with two ratings has a positive one.

    Raises
    ------
    ValueError
        If `ratings` is not two-dimensional or holds a value that cannot be hashed.

    References
    ----------
    Dice (1945), Ecology 26, 297-302; Cicchetti & Feinstein (1990), Journal of Clinical Epidemiology 43, 551-558.
    """
    codes = _binary(ratings, positive)
    both, one = _positive_pairs(codes)
    return _result("positive agreement", positive_of_counts(both, one), codes)


def jaccard(ratings: Any, positive: Any = True) -> RaterAgreement:
    """Compute the Jaccard index of the sets that two raters call positive, pairs pooled.

    Parameters
    ----------
    ratings : array or DataFrame, shape (units, raters)
        Any hashable values; None, NaN, <NA> and masked cells are missing.
    positive : object
        The value that is positive; every other one is negative. True equals 1.

    Returns
    -------
    RaterAgreement
        Undefined if no unit with two ratings has a positive one.

    Raises
    ------
    ValueError
        If `ratings` is not two-dimensional or holds a value that cannot be hashed.
    """
    codes = _binary(ratings, positive)
    both, one = _positive_pairs(codes)
    return _result("jaccard", jaccard_of_counts(both, one), codes)


def cohen_kappa(first: Iterable[Any], second: Iterable[Any]) -> RaterAgreement:
    """Compute Cohen's κ of two raters with nominal values.

    Parameters
    ----------
    first, second : iterable, shape (units,)
        Any hashable values. Units where either is missing are left out; `n_units` counts the others.

    Returns
    -------
    RaterAgreement
        Undefined if both raters give one and the same value throughout.

    Raises
    ------
    ValueError
        If the lengths differ or a value cannot be hashed.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37-46.
    """
    columns = list(first), list(second)
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"first has {len(columns[0])} ratings and second {len(columns[1])}; give both of each unit")
    codes, values = _coded(_objects([[a, b] for a, b in zip(*columns, strict=True)], 2))
    rated = codes[(codes >= 0).all(axis=1)]
    k = max(len(values), 1)
    table = np.bincount(rated[:, 0] * k + rated[:, 1], minlength=k * k).reshape(k, k)
    return _result("Cohen's kappa", kappa_of_tables(table), codes)


def fleiss_kappa(ratings: Any) -> RaterAgreement:
    """Compute Fleiss' κ of complete ratings with nominal values.

    Parameters
    ----------
    ratings : array or DataFrame, shape (units, raters)
        Any hashable values, none missing, from at least two raters.

    Returns
    -------
    RaterAgreement
        Undefined if there is one value only.

    Raises
    ------
    ValueError
        If a rating is missing, there are fewer than two raters, `ratings` is not two-dimensional or holds a value that
        cannot be hashed.

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76, 378-382.
    """
    codes, values = _coded(ratings)
    if codes.shape[1] < 2:
        raise ValueError(f"ratings has {codes.shape[1]} columns; give one for each of at least two raters")
    missing = int((codes < 0).sum())
    if missing:
        raise ValueError(
            f"ratings has {missing} missing of {codes.size}; Fleiss' kappa needs complete ratings, "
            "krippendorff_alpha takes missing ones"
        )
    return _result("Fleiss' kappa", fleiss_of_coincidences(_coincidences(codes, len(values))), codes)


def krippendorff_alpha(ratings: Any) -> RaterAgreement:
    """Compute Krippendorff's α for nominal values; ratings may be missing.

    For complete ratings of N units by r raters, α = 1 − (1 − κ)(N r − 1)/(N r) with Fleiss' κ.

    Parameters
    ----------
    ratings : array or DataFrame, shape (units, raters)
        Any hashable values; None, NaN, <NA> and masked cells are missing. Units with fewer than two ratings do not
        count.

    Returns
    -------
    RaterAgreement
        Undefined if the units that count have one value only.

    Raises
    ------
    ValueError
        If `ratings` is not two-dimensional or holds a value that cannot be hashed.

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C (nominal data with missing values).
    """
    codes, values = _coded(ratings)
    return _result("Krippendorff's alpha", alpha_of_coincidences(_coincidences(codes, len(values))), codes)


def _coincidences(codes: Codes, n_values: int) -> Floats:
    sizes = _category_counts(codes, n_values)
    rated = sizes.sum(axis=1)
    weights = np.where(rated > 1, 1 / np.maximum(rated - 1, 1), 0.0)
    return sizes.T @ (sizes * weights[:, None]) - np.diag((sizes * weights[:, None]).sum(axis=0))


def _category_counts(codes: Codes, n_values: int) -> Floats:
    """How often each unit has each value, shape (units, values)."""
    sizes = np.zeros((len(codes), max(n_values, 1)))
    for column in codes.T:
        there = column >= 0
        sizes[np.flatnonzero(there), column[there]] += 1
    return sizes


def _positive_pairs(codes: Codes) -> tuple[float, float]:
    """Pairs of ratings of one unit that are both positive, and of which one is; codes are 0, 1, and −1 for missing."""
    yes, no = (codes == 1).sum(axis=1), (codes == 0).sum(axis=1)
    return float((yes * (yes - 1)).sum() / 2), float((yes * no).sum())


def _binary(ratings: Any, positive: Any) -> Codes:
    codes, values = _coded(ratings)
    is_positive = np.array([bool(value == positive) for value in values] or [False], dtype=np.intp)
    return np.where(codes >= 0, is_positive[codes], -1)


def _coded(ratings: Any) -> tuple[Codes, list[Any]]:
    """Each rating as the number of its value, −1 where it is missing, and the values."""
    cells = _cells(ratings)
    try:
        codes, values = pd.factorize(cells.ravel())
    except TypeError:
        raise ValueError("ratings has a value that cannot be hashed; give numbers, texts or tuples") from None
    return codes.reshape(cells.shape), list(values)


def _cells(ratings: Any) -> npt.NDArray[Any]:
    if isinstance(ratings, pd.DataFrame):
        cells: npt.NDArray[Any] = ratings.to_numpy(dtype=object)
    elif isinstance(ratings, np.ma.MaskedArray):
        cells = np.array(ratings.data, dtype=object)
        cells[np.ma.getmaskarray(ratings)] = None
    elif isinstance(ratings, np.ndarray):
        cells = ratings
    else:
        rows = [list(row) for row in ratings]
        cells = _objects(rows, len(rows[0]) if rows else 0)
    if cells.ndim != 2:
        raise ValueError(f"ratings has the shape {cells.shape}; give one row a unit and one column a rater")
    return cells


def _objects(rows: list[list[Any]], width: int) -> npt.NDArray[Any]:
    """Rows as an array of objects: numpy alone would turn NaN beside text into the text "nan", and unpack tuples."""
    cells = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"row {place} of ratings has {len(row)} cells, the first has {width}; give one a rater")
        for column, value in enumerate(row):
            cells[place, column] = value
    return cells


def _result(statistic: str, value: Any, codes: Codes) -> RaterAgreement:
    n_units = int(((codes >= 0).sum(axis=1) > 1).sum())
    number = float(value)
    reason = (NO_VARIATION if n_units else NO_PAIR) if math.isnan(number) else ""
    return RaterAgreement(statistic, number, n_units, codes.shape[1], reason)
