"""What margins and means leave open: sharp bounds where there is no point estimate."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from faultbook.stats.proportion import as_count

Exact = float | Fraction | Decimal

_SIMPLE = 10**6  # denominators of the fractions that a float is taken to stand for
_ROUNDING = Fraction(1, 2**50)  # a few units of the last binary digit of a mean near 1


def rescue_harm_bounds(success_without: float, success_with: float) -> pd.DataFrame:
    """Bound the rates of rescue and harm that two marginal success rates allow.

    **There is no point estimate.** The two rates fix the effect, rescue - harm, and nothing more: 60 % without and
    60 % with recovery may mean that nothing changed, or that 40 % of the tasks were rescued and 40 % harmed. Only
    paired branches show which. The product ``success_without * (1 - success_with)`` is the harm rate under
    independence, one point between the bounds with no better claim than the others.

    Parameters
    ----------
    success_without, success_with : float
        Success rates without and with the action, in [0, 1], over the same population.

    Returns
    -------
    pandas.DataFrame
        One row: rescue_low, rescue_high, harm_low, harm_high and effect (with - without), as rates. Every value
        between the bounds is attained by some joint distribution, but not every pair of a rescue and a harm rate:
        rescue - harm is always the effect.

    Raises
    ------
    ValueError
        If a rate is missing or not in [0, 1].

    References
    ----------
    Fréchet (1951), Annales de l'Université de Lyon A 14, 53-77, and Hoeffding (1940); as the "fraction negatively
    affected": max(0, p0 - p1) ≤ harm ≤ min(p0, 1 - p1).
    """
    without, with_ = _rate("success_without", success_without), _rate("success_with", success_with)
    return _frechet(without, with_, 1)


def rescue_harm_counts(successes_without: int, successes_with: int, n: int) -> pd.DataFrame:
    """Bound the numbers of rescues and harms that two numbers of successes among the same `n` tasks allow.

    As `rescue_harm_bounds`, in whole tasks; there is no point estimate here either.

    Parameters
    ----------
    successes_without, successes_with : int
        Number of successes without and with the action, 0 to `n`.
    n : int
        Number of tasks, the same on both sides, at least 1.

    Returns
    -------
    pandas.DataFrame
        One row of whole numbers: rescue_low, rescue_high, harm_low, harm_high and effect (with - without). Every
        whole number between the bounds is attained by some paired table.

    Raises
    ------
    ValueError
        If a number is not whole, `n` is 0, or there are more successes than tasks.

    References
    ----------
    Fréchet (1951), Annales de l'Université de Lyon A 14, 53-77.
    """
    without, with_ = as_count("successes_without", successes_without), as_count("successes_with", successes_with)
    n = _at_least_one("n", n)
    if max(without, with_) > n:
        raise ValueError(f"there are {without} and {with_} successes among {n} tasks; give numbers of at most n")
    return _frechet(without, with_, n).astype("int64")


def graded_mean_counts(
    mean_low: Exact, mean_high: Exact, n: int, n_repeats: int = 1, least_partial: Exact = 0.0
) -> pd.DataFrame:
    """Bound how many runs can be perfect, and how many above zero, given the mean of graded scores.

    **A mean of graded scores does not determine a number of incidents solved.** Where a score is 0, 1 or anything
    between (a precision of 1/2 or 1/3, say), a mean of .5 over 60 runs is 30 perfect runs among failures, or 60
    half-right runs and none perfect. "Solves half of the incidents" is one reading out of many; the bounds are
    what the mean alone says.

    Parameters
    ----------
    mean_low, mean_high : float, Fraction or Decimal
        The mean score lies between these, both included. The rounding interval of a printed mean is meant: .47
        printed with two digits is [.465, .475]. Up to half a unit beyond [0, 1] is accepted for that reason, and
        cut off. Floats are read as the decimal or simple fraction they stand for.
    n : int
        Number of incidents, at least 1.
    n_repeats : int
        Number of runs of each incident, at least 1; the mean is over all n * n_repeats runs.
    least_partial : float, Fraction or Decimal
        The least score that is neither 0 nor 1, in [0, 1). With 0, partial scores may be anything in the open
        interval (0, 1); with 1/4, say, anything in [1/4, 1).

    Returns
    -------
    pandas.DataFrame
        One row of whole numbers: runs, perfect_low, perfect_high, above_zero_low, above_zero_high. The bounds are
        sharp: each is attained by some set of scores with such a mean, in exact arithmetic. Bounds count runs, not
        incidents: which repeats belong together is not known.

    Raises
    ------
    ValueError
        If the interval is empty, in per cent, or holds no mean that scores of this kind can have; or if `n` or
        `n_repeats` is not a whole number of at least 1, or `least_partial` is not in [0, 1).

    Notes
    -----
    With P perfect and Q partial runs, the sum of scores can be anything in the open interval (P, P + Q), or in
    [P + Q * least_partial, P + Q) if `least_partial` is above 0, or is P itself if Q is 0. The bounds are over all
    (P, Q) for which that set meets [mean_low, mean_high] times the number of runs.
    """
    runs = _at_least_one("n", n) * _at_least_one("n_repeats", n_repeats)
    low, high = _mean_interval(mean_low, mean_high)
    least = _exact("least_partial", least_partial)
    if not 0 <= least < 1:
        raise ValueError(f"least_partial is {least_partial}; give the least partial score, in [0, 1)")
    options = {
        perfect: partial
        for perfect in range(math.floor(high * runs) + 1)
        if (partial := _partial_counts(perfect, runs, low * runs, high * runs, least)) is not None
    }
    if not options:
        raise ValueError(
            f"no {runs} scores of 0, 1 or in [{least_partial}, 1) have a mean in [{mean_low}, {mean_high}]; "
            "check the number of runs, or lower least_partial"
        )
    return pd.DataFrame(
        {
            "runs": [runs],
            "perfect_low": [min(options)],
            "perfect_high": [max(options)],
            "above_zero_low": [min(perfect + fewest for perfect, (fewest, _) in options.items())],
            "above_zero_high": [max(perfect + most for perfect, (_, most) in options.items())],
        }
    )


def _partial_counts(perfect: int, runs: int, low: Fraction, high: Fraction, least: Fraction) -> tuple[int, int] | None:
    """Find the fewest and the most partial runs beside `perfect` ones, for a sum of scores in [low, high]; or None."""
    # Partial scores stay below 1, so the sum stays below perfect + partial, which therefore must exceed low.
    fewest = max(1, math.floor(low - perfect) + 1)
    most = runs - perfect
    if least > 0:
        most = min(most, math.floor((high - perfect) / least))
    elif high <= perfect:  # even the smallest partial score would lift the sum above high
        most = 0
    counts = [0] if low <= perfect <= high else []
    if fewest <= most:
        counts += [fewest, most]
    return (min(counts), max(counts)) if counts else None


def _frechet(without: float, with_: float, whole: float) -> pd.DataFrame:
    """Bound the two off-diagonal cells of a 2x2 table with these margins and this total."""
    return pd.DataFrame(
        {
            "rescue_low": [max(0.0, with_ - without)],
            "rescue_high": [min(with_, whole - without)],
            "harm_low": [max(0.0, without - with_)],
            "harm_high": [min(without, whole - with_)],
            "effect": [with_ - without],
        }
    )


def _mean_interval(mean_low: Exact, mean_high: Exact) -> tuple[Fraction, Fraction]:
    low, high = _exact("mean_low", mean_low), _exact("mean_high", mean_high)
    if low > high:
        raise ValueError(f"mean_low is {mean_low} and mean_high {mean_high}; give the lower one first")
    half = Fraction(1, 2)
    if low < -half or high > 1 + half or high < 0 or low > 1:
        raise ValueError(
            f"the mean lies in [{mean_low}, {mean_high}], not in [0, 1]; give a mean score, per cent divided by 100"
        )
    return max(low, Fraction(0)), min(high, Fraction(1))


def _exact(name: str, value: Exact) -> Fraction:
    """Read a number as the fraction that was meant: .47 as 47/100 and 1/3 as 1/3, not as their nearest doubles."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        number = Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}; give a finite number") from None
    if not isinstance(value, float):
        return number
    # Fractions with denominators up to 10**6 lie at least 10**-12 apart, so at most one is within rounding error.
    simple = number.limit_denominator(_SIMPLE)
    return simple if abs(simple - number) <= _ROUNDING else Fraction(repr(float(value)))


def _rate(name: str, value: float) -> float:
    try:
        inside = 0 <= float(value) <= 1
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise ValueError(f"{name} is {value!r}; give a rate in [0, 1], per cent divided by 100")
    return float(value)


def _at_least_one(name: str, value: int) -> int:
    count = as_count(name, value)
    if count == 0:
        raise ValueError(f"{name} is 0; give at least 1")
    return count
