"""pass@k: the probability that at least one of k attempts at a task succeeds, from n ≥ k attempts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import pandas as pd

from faultbook.stats.bootstrap import check_same_rows
from faultbook.stats.paired_difference import mean_difference
from faultbook.stats.proportion import as_count, check_level


@dataclass(frozen=True, slots=True)
class MeanPassAtK:
    """Mean pass@k over `n_tasks` tasks and its t interval over tasks, in [0, 1].

    If `n_lacking` tasks have fewer than k scored attempts, the mean is not estimable and NaN: leaving these tasks
    out, or counting them as passed, would be a mean over other tasks. If `degenerate`, there is no interval; `method`
    says why.
    """

    k: int
    estimate: float
    low: float
    high: float
    level: float
    n_tasks: int
    n_lacking: int
    method: str
    degenerate: bool

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def pass_at_k(successes: int, attempts: int, k: int) -> float:
    """Estimate without bias the probability that at least one of `k` attempts at a task succeeds.

    It is the share of all subsets of `k` attempts that hold a success, ``1 - C(n - c, k) / C(n, k)``. The plug-in
    ``1 - (1 - c/n)**k`` is biased downwards.

    Parameters
    ----------
    successes : int
        Number of successful attempts, c.
    attempts : int
        Number of scored attempts, n; those without a score are no attempts here.
    k : int
        At least 1.

    Returns
    -------
    float
        In [0, 1]; NaN, not estimable, if there are fewer than `k` scored attempts, also if all of them succeeded.

    Raises
    ------
    ValueError
        If a number is not whole, `k` is 0, or there are more successes than attempts.

    References
    ----------
    Chen et al. (2021), arXiv 2107.03374, section 2.1, eq. 1.
    """
    successes, attempts, k = as_count("successes", successes), as_count("attempts", attempts), _at_least_one(k)
    if successes > attempts:
        raise ValueError(f"there are {successes} successes in {attempts} attempts; give successes first, then attempts")
    if attempts < k:
        return math.nan
    # Whole numbers, divided once: the nearest double, also where 1 minus a product would lose its digits.
    ways = math.comb(attempts, k)
    return float(Fraction(ways - math.comb(attempts - successes, k), ways))


def mean_pass_at_k(successes: Iterable[Any], attempts: Iterable[Any], k: int, level: float = 0.95) -> MeanPassAtK:
    """Estimate mean pass@k over tasks, if every task has at least `k` scored attempts.

    Parameters
    ----------
    successes, attempts : iterable of int, shape (n_tasks,)
        Numbers of successful and of scored attempts of each task, by position. A planned task without a scored
        attempt belongs in here with 0 attempts.
    k : int
        At least 1.
    level : float
        Two-sided confidence level, strictly between 0 and 1.

    Returns
    -------
    MeanPassAtK
        With NaN for estimate and bounds, and "not estimable" in `method`, if a task lacks attempts. The interval is
        Student's over tasks, cut off at 0 and 1; NaN if there is one task or all have the same pass@k.

    Raises
    ------
    ValueError
        As `pass_at_k`; or if there is no task, a number is missing, lengths or indexes differ, or `level` is not in
        (0, 1).

    References
    ----------
    Chen et al. (2021), arXiv 2107.03374, section 2.1, eq. 1: the expectation over problems.
    """
    k, level = _at_least_one(k), check_level(level)
    check_same_rows(successes, attempts, ("successes", "attempts"))
    of_tasks, tried = list(successes), list(attempts)
    if len(of_tasks) != len(tried):
        raise ValueError(f"there are {len(of_tasks)} successes and {len(tried)} attempts; give both for each task")
    if not tried:
        raise ValueError("there is no task; a mean over no tasks is undefined, give at least one task")
    values = [pass_at_k(c, n, k) for c, n in zip(of_tasks, tried, strict=True)]
    lacking = sum(math.isnan(value) for value in values)
    if lacking:
        method = f"not estimable: {lacking} of {len(values)} tasks have fewer than {k} scored attempts"
        return MeanPassAtK(k, math.nan, math.nan, math.nan, level, len(values), lacking, method, True)
    mean = mean_difference(values, level)
    # A t interval may reach beyond what a rate can be; NaN bounds pass through.
    low = max(mean.low, 0.0)
    high = min(mean.high, 1.0)
    method = f"unbiased pass@{k}, {mean.method}"
    return MeanPassAtK(k, mean.estimate, low, high, level, len(values), 0, method, mean.degenerate)


def _at_least_one(k: int) -> int:
    k = as_count("k", k)
    if k == 0:
        raise ValueError("k is 0; give at least 1 attempt")
    return k
