"""Binomial proportions: intervals, exact upper bounds for rare events, and the sample size that a limit needs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

# A bound that equals the limit in exact arithmetic may land a few units of the last digit above it in floating point.
_TIE = 1e-12
_LARGEST_N = 10**12


@dataclass(frozen=True, slots=True)
class Proportion:
    """`k` events in `n` trials: the rate `estimate` = k/n and its two-sided interval, all in [0, 1]."""

    k: int
    n: int
    estimate: float
    low: float
    high: float
    level: float
    method: str

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def wilson(k: int, n: int, level: float = 0.95) -> Proportion:
    """Compute Wilson's score interval of k/n: good average coverage, also at small n, but no guarantee.

    Parameters
    ----------
    k : int
        Number of events, 0 to `n`.
    n : int
        Number of independent trials, at least 1.
    level : float
        Two-sided confidence level, strictly between 0 and 1.

    Returns
    -------
    Proportion
        Rate and interval, in [0, 1].

    Raises
    ------
    ValueError
        If `n` is 0, `k` is not in 0 to `n`, either is not a whole number, or `level` is not in (0, 1).

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    """
    return _interval(k, n, level, "wilson", "Wilson score")


def clopper_pearson(k: int, n: int, level: float = 0.95) -> Proportion:
    """Compute the exact interval of Clopper and Pearson of k/n: coverage is at least `level` whatever the true rate.

    Parameters
    ----------
    k : int
        Number of events, 0 to `n`.
    n : int
        Number of independent trials, at least 1.
    level : float
        Two-sided confidence level, strictly between 0 and 1.

    Returns
    -------
    Proportion
        Rate and interval, in [0, 1].

    Raises
    ------
    ValueError
        If `n` is 0, `k` is not in 0 to `n`, either is not a whole number, or `level` is not in (0, 1).

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26, 404-413.
    """
    return _interval(k, n, level, "beta", "Clopper-Pearson exact")


def zero_event_upper_bound(n: int, level: float = 0.95, sides: int = 1) -> float:
    """Compute the exact upper bound of a rate of which no event was seen in `n` trials.

    It is ``1 - alpha**(1/n)``, with ``alpha = 1 - level`` for one side and half of that for two. "No harm in 75
    tasks" is thus compatible with a harm rate of 3.92 % (one side) or 4.80 % (two sides).

    Parameters
    ----------
    n : int
        Number of independent trials, at least 1.
    level : float
        Confidence level, strictly between 0 and 1.
    sides : {1, 2}
        1: an upper bound alone. 2: the upper end of a two-sided interval.

    Returns
    -------
    float
        The bound, in (0, 1).

    Raises
    ------
    ValueError
        If `n` is not a whole number of at least 1, `level` is not in (0, 1), or `sides` is neither 1 nor 2.

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26, 404-413, with no event.
    """
    n = _trials(n)
    return -math.expm1(math.log(_tail(level, sides)) / n)


def event_upper_bound(k: int, n: int, level: float = 0.95, sides: int = 1) -> float:
    """Compute the exact upper bound (Clopper-Pearson) of a rate of which `k` events were seen in `n` trials.

    Parameters
    ----------
    k : int
        Number of events, 0 to `n`.
    n : int
        Number of independent trials, at least 1.
    level : float
        Confidence level, strictly between 0 and 1.
    sides : {1, 2}
        1: an upper bound alone. 2: the upper end of a two-sided interval.

    Returns
    -------
    float
        The bound, in (0, 1]; 1 if every trial was an event.

    Raises
    ------
    ValueError
        If `n` is 0, `k` is not in 0 to `n`, `level` is not in (0, 1), or `sides` is neither 1 nor 2.

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26, 404-413.
    """
    k, n = _events_of_trials(k, n)
    if k == 0:
        return zero_event_upper_bound(n, level, sides)
    tail = _tail(level, sides)
    return 1.0 if k == n else float(stats.beta.isf(tail, k + 1, n - k))


def n_to_certify(limit: float, events: int = 0, level: float = 0.95, sides: int = 1) -> int:
    """Find the least number of trials whose exact upper bound, with `events` events in them, is at most `limit`.

    A harm limit of 2 % cannot be shown on fewer than 149 tasks (one side; 183 for two), even if nothing goes wrong.

    Parameters
    ----------
    limit : float
        The rate to be certified, strictly between 0 and 1 (.02 is 2 %).
    events : int
        Number of events that are expected or allowed.
    level : float
        Confidence level, strictly between 0 and 1.
    sides : {1, 2}
        1: an upper bound alone. 2: the upper end of a two-sided interval.

    Returns
    -------
    int
        The number of trials.

    Raises
    ------
    ValueError
        If `limit` or `level` is not in (0, 1), `events` is not a whole number of at least 0, `sides` is neither 1
        nor 2, or more than 10**12 trials would be needed.

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26, 404-413, solved for n.
    """
    limit = _inside("limit", limit, ".02 for 2 %")
    events = as_count("events", events)

    def certified(n: int) -> bool:
        return event_upper_bound(events, n, level, sides) <= limit * (1 + _TIE)

    # The bound falls as n grows, so double up to a sufficient n, then bisect: insufficient < answer <= sufficient.
    insufficient, sufficient = events, events + 1
    while not certified(sufficient):
        insufficient, sufficient = sufficient, 2 * sufficient
        if sufficient > _LARGEST_N:
            raise ValueError(f"limit is {limit}; more than 10**12 trials would be needed, give a larger limit")
    while sufficient - insufficient > 1:
        middle = (insufficient + sufficient) // 2
        insufficient, sufficient = (insufficient, middle) if certified(middle) else (middle, sufficient)
    return sufficient


def as_count(name: str, value: object) -> int:
    """Read `value` as a whole number of at least 0; whole floats such as 75.0 (a pandas sum) are read as 75.

    Parameters
    ----------
    name : str
        What the number is, for the error.
    value : int or float
        The number.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError
        If it is missing, not a number, not whole or negative.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, (str, bytes)) or pd.api.types.is_bool(value) or not number.is_integer() or number < 0:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 0")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_level(level: float) -> float:
    """Return a confidence level that lies strictly between 0 and 1.

    Parameters
    ----------
    level : float
        The level; .95 is 95 %.

    Returns
    -------
    float
        The level.

    Raises
    ------
    ValueError
        If it does not lie strictly between 0 and 1.
    """
    return _inside("level", level, ".95 for 95 %")


def _inside(name: str, value: float, example: str) -> float:
    try:
        inside = 0 < float(value) < 1
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise ValueError(f"{name} is {value!r}; give a number strictly between 0 and 1, such as {example}")
    return float(value)


def _interval(k: int, n: int, level: float, method: str, name: str) -> Proportion:
    k, n = _events_of_trials(k, n)
    level = check_level(level)
    low, high = proportion_confint(k, n, alpha=1 - level, method=method)
    # Both methods reach 0 and 1 exactly here; floating point may leave 1e-18 instead.
    low, high = 0.0 if k == 0 else float(low), 1.0 if k == n else float(high)
    return Proportion(k, n, k / n, low, high, level, name)


def _trials(n: int) -> int:
    n = as_count("n", n)
    if n == 0:
        raise ValueError("n is 0; a proportion of no trials is undefined, give at least one trial")
    return n


def _events_of_trials(k: int, n: int) -> tuple[int, int]:
    k, n = as_count("k", k), _trials(n)
    if k > n:
        raise ValueError(f"k is {k} and n is {n}; give events first, then trials, with no more events than trials")
    return k, n


def _tail(level: float, sides: int) -> float:
    """Return the probability that the upper bound leaves outside."""
    if sides not in (1, 2):
        raise ValueError(f"sides is {sides!r}; give 1 for an upper bound alone, 2 for the end of a two-sided interval")
    return (1 - check_level(level)) / sides
