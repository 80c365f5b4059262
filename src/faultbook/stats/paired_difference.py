"""Differences of two arms on the same tasks, with intervals: two binary outcomes a pair, or one number a task."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from scipy import stats

from faultbook.stats.bootstrap import as_numbers
from faultbook.stats.proportion import as_count, check_level

_ALIKE = 1e-12  # differences that vary by less, relative to the largest one, vary by rounding only
_LARGEST = 1e100  # of a difference: far beyond any score, and far from where sums overflow
_HALVINGS = 60  # of an interval of at most 2: below the last digit of a double


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A mean difference a − b over `n` pairs or tasks and its two-sided interval, in the units of the differences.

    If `degenerate`, the data hold no spread to build an interval from, and `low` and `high` are NaN: this is not
    certainty. `method` says what was computed and, if there is no interval, why.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: int
    method: str
    degenerate: bool

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def bonett_price(both: int, only_a: int, only_b: int, neither: int, level: float = 0.95) -> PairedDifference:
    """Compute the adjusted Wald interval of Bonett and Price for the difference of two paired success rates.

    One pair, of either kind, is added to the discordant ones before Wald's formula. The interval has a width for
    every table, also without a discordant pair. Swapping the arms changes signs and nothing else, to the last digit.

    Parameters
    ----------
    both, only_a, only_b, neither : int
        The paired table: number of pairs that succeeded under both, under a alone, under b alone, and under neither.
        At least one pair in all, one a task.
    level : float
        Two-sided confidence level, strictly between 0 and 1.

    Returns
    -------
    PairedDifference
        ``(only_a - only_b) / n``, unadjusted, in [-1, 1], and the interval, cut off at -1 and 1. The interval lies
        around the adjusted difference ``(only_a - only_b) / (n + 2)``; below a level of .78 it can miss the estimate
        in tables with a few pairs, all discordant.

    Raises
    ------
    ValueError
        If a count is not a whole number of at least 0, there is no pair, or `level` is not in (0, 1).

    References
    ----------
    Bonett & Price (2012), Journal of Educational and Behavioral Statistics 37, 479-488; recommended by Fagerland,
    Lydersen & Laake (2014), Statistics in Medicine 33, 2850-2875.
    """
    a, b, n = _discordant(both, only_a, only_b, neither)
    z, total = _z(level), n + 2
    centre = (a - b) / total
    reach = z * math.sqrt((total * (a + b + 2) - (a - b) ** 2) / total**3)
    low, high = max(-1.0, centre - reach), min(1.0, centre + reach)
    return PairedDifference((a - b) / n, low, high, float(level), n, "Bonett-Price adjusted Wald", False)


def tango_score(both: int, only_a: int, only_b: int, neither: int, level: float = 0.95) -> PairedDifference:
    """Compute Tango's score interval for the difference of two paired success rates.

    All differences that the score test does not refuse. It always has a width and always holds the estimate, but is
    somewhat too narrow in small samples. Swapping the arms changes signs and nothing else, to the last digit.

    Parameters
    ----------
    both, only_a, only_b, neither, level
        As in `bonett_price`.

    Returns
    -------
    PairedDifference
        ``(only_a - only_b) / n`` and its interval, in [-1, 1]; a bound is the estimate itself only at -1 and 1.

    Raises
    ------
    ValueError
        As `bonett_price`.

    References
    ----------
    Tango (1998), Statistics in Medicine 17, 891-908. Where every pair is discordant in one direction the
    statistic is 0/0 at the end of the range, which then is the bound: Yang, Sun & Hardin (2013), Statistics in
    Medicine 32, 1336-1342.
    """
    a, b, n = _discordant(both, only_a, only_b, neither)
    z = _z(level)
    # The lower bound is the mirrored upper bound of the swapped table, so both are antisymmetric by construction.
    low, high = -_tango_upper(b, a, n, z), _tango_upper(a, b, n, z)
    return PairedDifference((a - b) / n, low, high, float(level), n, "Tango score", False)


def mean_difference(differences: Iterable[Any], level: float = 0.95) -> PairedDifference:
    """Compute the mean of one difference a task and its t interval over tasks.

    For tasks with several attempts: a difference is the task's mean under a minus its mean under b, so that tasks
    have equal weight and are the units of resampling. The result depends neither on the order of the tasks nor, but
    for its sign, on that of the arms, to the last digit.

    Parameters
    ----------
    differences : iterable of float, shape (n,)
        One number a task; none may be missing.
    level : float
        Two-sided confidence level, strictly between 0 and 1.

    Returns
    -------
    PairedDifference
        In the units of the differences; the bounds are not cut off at what a difference can be. With one task, or
        if all differences are equal, `degenerate` is set and the bounds are NaN.

    Raises
    ------
    ValueError
        If a difference is missing, infinite, no number or beyond 1e100, there is none, or `level` is not in (0, 1).

    References
    ----------
    Student (1908), Biometrika 6, 1-25; as paired differences of clustered evaluations: arXiv 2411.00640.
    """
    tail = (1 - check_level(level)) / 2
    numbers = [float(x) for x in as_numbers(differences, "differences")]
    largest, n = max(abs(x) for x in numbers), len(numbers)
    if largest > _LARGEST:
        raise ValueError(f"differences has {largest:g} in it; give differences of success rates or rewards")
    # Correctly rounded sums do not depend on the order of their terms.
    mean = math.fsum(numbers) / n
    method = f"t over {n} tasks"
    reason = "there is one task only" if n == 1 else "all differences are equal"
    if max(numbers) - min(numbers) <= _ALIKE * largest:
        method = f"{method}; degenerate, no interval: {reason}"
        return PairedDifference(mean, math.nan, math.nan, float(level), n, method, True)
    # hypot neither overflows nor underflows, where a sum of squares would.
    spread = math.hypot(*sorted(abs(x - mean) for x in numbers))
    reach = float(stats.t.isf(tail, n - 1)) * spread / math.sqrt(n * (n - 1))
    return PairedDifference(mean, mean - reach, mean + reach, float(level), n, method, False)


def _discordant(both: int, only_a: int, only_b: int, neither: int) -> tuple[int, int, int]:
    """Pairs that succeeded under a alone, under b alone, and all pairs."""
    a, b = as_count("only_a", only_a), as_count("only_b", only_b)
    n = as_count("both", both) + a + b + as_count("neither", neither)
    if n == 0:
        raise ValueError("there is no pair; a difference over no pairs is undefined, give at least one pair")
    return a, b, n


def _z(level: float) -> float:
    return float(stats.norm.isf((1 - check_level(level)) / 2))


def _tango_upper(a: int, b: int, n: int, z: float) -> float:
    """The difference above the observed one whose score statistic is −z, by bisection: the statistic falls."""
    inside, outside = (a - b) / n, 1.0
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        variance = n * (2 * _rate_of_b(a, b, n, middle) + middle * (1 - middle))
        if n * middle - (a - b) <= z * math.sqrt(max(variance, 0.0)):
            inside = middle
        else:
            outside = middle
    return inside


def _rate_of_b(a: int, b: int, n: int, difference: float) -> float:
    """The likeliest rate of pairs that succeed under b alone, if the true difference is `difference`."""
    linear = (2 * n - a + b) * difference - a - b
    product = b * difference * (1 - difference)
    root = math.sqrt(max(linear**2 + 8 * n * product, 0.0))
    # Where the two nearly cancel, the rate is too small to matter beside the difference.
    return (root - linear) / (4 * n)
