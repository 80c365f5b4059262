"""What counts can stand behind printed numbers: sets of possible answers, never one guess.

The interval functions invert the percentile bootstrap over tasks exactly (`stats.resampling`). Noise enters where it
belongs: the printed bounds came from a finite number of draws, and `reach_probability` says how likely such a run
prints them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from faultbook.printed import parse_printed
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.resampling import reach_probability, resampled_sum


def counts_from_percentage(printed: str, denominators: Iterable[int]) -> list[tuple[int, int]]:
    """Every (k, n) whose percentage 100 k/n rounds to the printed text at its printed precision.

    Parameters
    ----------
    printed : str
        A percentage or a difference in percentage points as printed: "70.33%", "+7.53 pp", "−6.45", "47".
    denominators : iterable of int
        The denominators to try, each above 0.

    Returns
    -------
    list of (int, int)
        In the order of `denominators`, then by k; k has the printed sign and lies in [−n, n]. Empty if no count
        fits: the number is then off every grid. A tie may have been rounded either way, so both are admitted.

    Raises
    ------
    ValueError
        If the text is no number or a denominator is below 1.
    """
    number = parse_printed(printed)
    found: list[tuple[int, int]] = []
    for n in denominators:
        if n < 1:
            raise ValueError(f"a denominator must be at least 1; found {n}")
        first, last = math.ceil(number.low * n / 100), math.floor(number.high * n / 100)
        if number.number.is_signed():  # "−0.0" too: the sign was printed
            last = min(last, 0)
        else:
            first = max(first, 0)
        found += [(k, n) for k in range(max(first, -n), min(last, n) + 1)]
    return found


def rescue_harm_from_interval(
    effect: int, n: int, low: int, high: int, n_resamples: int = 10_000, *, level: float = 0.95
) -> pd.DataFrame:
    """Every (rescues, harms) that an effect allows, with the exact percentile-bootstrap bounds of each.

    Parameters
    ----------
    effect : int
        Rescues minus harms, in counts (7 for +7.53 pp of 93).
    n : int
        Number of tasks.
    low, high : int
        The printed bounds in counts.
    n_resamples : int
        Bootstrap draws behind the printed bounds.
    level : float
        Confidence level of the printed interval.

    Returns
    -------
    DataFrame
        One row per feasible pair (rescues − harms = effect, rescues + harms <= n), with columns rescues, harms,
        exact (the exact bounds equal the printed ones), low, high (the exact bounds, in counts) and
        reach_probability (that a bootstrap of `n_resamples` draws prints exactly the given bounds).

    Raises
    ------
    ValueError
        If |effect| > n or low > high.

    Notes
    -----
    Percentile bootstrap over tasks of τ with linearly interpolated percentiles, as in the public code of
    arXiv 2610.00372 (`core.py`): it reproduces 15 of the 16 intervals of that repository exactly; the sixteenth
    (10 rescues, 9 harms of 73) is printed [−7, 9] where the exact bounds are [−8, 10], a Monte-Carlo edge.
    """
    if low > high:
        raise ValueError(f"the lower bound {low} is above the upper bound {high}")
    return rescue_harm_candidates(effect, n, [(low, high)], n_resamples, level=level)


def rescue_harm_candidates(
    effect: int, n: int, bounds: Sequence[tuple[int, int]], n_resamples: int = 10_000, *, level: float = 0.95
) -> pd.DataFrame:
    """As `rescue_harm_from_interval`, where the printed bounds may stand for several pairs of counts.

    Parameters
    ----------
    bounds : sequence of (low, high)
        Every pair of counts that rounds to the printed bounds; `exact` says whether the exact bounds are one of them,
        and `reach_probability` is that of all of them together.
    """
    if abs(effect) > n:
        raise ValueError(f"an effect of {effect} needs at least {abs(effect)} tasks; n is {n}")
    wanted, rows = set(bounds), []
    for harms in range(max(0, -effect), (n - effect) // 2 + 1):
        rescues = effect + harms
        sums = resampled_sum({1: rescues, -1: harms}, n)
        exact = sums.bounds(level)
        reach = sum(reach_probability(sums, *pair, n_resamples=n_resamples, level=level) for pair in bounds)
        rows.append((rescues, harms, exact in wanted, *exact, float(reach)))
    return pd.DataFrame(rows, columns=["rescues", "harms", "exact", "low", "high", "reach_probability"])


def mcnemar_from_margins(successes_a: int, successes_b: int, n: int) -> pd.DataFrame:
    """Exact two-sided McNemar p for every discordant split that two success counts of the same n pairs allow.

    Parameters
    ----------
    successes_a, successes_b : int
        Pairs solved by each arm.
    n : int
        Number of pairs.

    Returns
    -------
    DataFrame
        Columns only_a, only_b (pairs that only one arm solved) and p; NaN where no pair is discordant.

    Raises
    ------
    ValueError
        If a success count is outside [0, n].
    """
    if not (0 <= successes_a <= n and 0 <= successes_b <= n):
        raise ValueError(f"success counts {successes_a} and {successes_b} must lie between 0 and the {n} pairs")
    least = max(0, successes_a - successes_b)
    most = min(successes_a, n - successes_b)
    splits = [(only_a, only_a + successes_b - successes_a) for only_a in range(least, most + 1)]
    rows = [(only_a, only_b, mcnemar_exact(only_a, only_b).p) for only_a, only_b in splits]
    return pd.DataFrame(rows, columns=["only_a", "only_b", "p"])
