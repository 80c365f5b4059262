"""Tests on pairs: McNemar's exact test for one pair a task, the sign-flip test once a task has several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from faultbook.stats.bootstrap import Floats, as_generator, as_numbers, check_same_rows
from faultbook.stats.proportion import as_count

_MAX_ENUMERATED = 20  # nonzero tasks: 2**20 sign patterns
_MAX_STEPS = 2**32  # additions of one convolution: some seconds
_CELLS = 2**20  # random counts held at a time: 8 MiB
_ALIKE = 1e-12  # sums that differ by less, relative to the largest possible one, differ by rounding only


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pairs that succeeded on one side only, and the two-sided p of "both sides succeed equally often".

    With no such pair there is no test: `p` and `mid_p` are NaN and `test` is "no discordant pairs".
    """

    only_a: int
    only_b: int
    p: float
    mid_p: float
    test: str

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


@dataclass(frozen=True, slots=True)
class SignFlip:
    """The sum over `n` tasks (`n_nonzero` of them not 0) and its two-sided p under random signs of the task sums.

    `n_draws` is None for an exact p. If all task sums are 0 there is no test, and `p` is NaN.
    """

    statistic: float
    p: float
    n: int
    n_nonzero: int
    method: str
    n_draws: int | None

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def mcnemar_exact(only_a: int, only_b: int) -> McNemar:
    """Test the discordant pairs as McNemar did, by the exact binomial distribution.

    It is a test for independent pairs: if a task contributes several, use `sign_flip` on its sum.

    Parameters
    ----------
    only_a, only_b : int
        Number of pairs that succeeded under a alone and under b alone, such as rescues and harms. These are the two
        off-diagonal cells of the paired table, not the two numbers of successes.

    Returns
    -------
    McNemar
        `p` is the two-sided exact p. `mid_p` counts the observed split, and its mirror image, by half: less
        conservative, not guaranteed to keep the level.

    Raises
    ------
    ValueError
        If a count is not a whole number of at least 0.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157; mid-p: Fagerland, Lydersen & Laake (2013), BMC Medical Research
    Methodology 13, 91.
    """
    only_a, only_b = as_count("only_a", only_a), as_count("only_b", only_b)
    n, fewer = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return McNemar(only_a, only_b, math.nan, math.nan, "no discordant pairs")
    p = float(stats.binomtest(fewer, n, 0.5).pvalue)
    observed = float(stats.binom.pmf(fewer, n, 0.5))
    # An even split is its own mirror image and has its probability in p once; any other split has it twice.
    mid_p = p - (observed / 2 if only_a == only_b else observed)
    return McNemar(only_a, only_b, p, mid_p, "exact binomial")


def mcnemar_from_pairs(a: Iterable[Any], b: Iterable[Any]) -> McNemar:
    """Run McNemar's exact test on two columns of successes, paired by position.

    Parameters
    ----------
    a, b : iterable, shape (n,)
        0 or 1, or booleans; the i-th of `a` and of `b` are one pair. None may be missing.

    Returns
    -------
    McNemar
        As from `mcnemar_exact`.

    Raises
    ------
    ValueError
        If the lengths or the indexes differ, or a value is missing or neither 0 nor 1.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157.
    """
    check_same_rows(a, b, ("a", "b"))
    first, second = _successes(a, "a"), _successes(b, "b")
    if len(first) != len(second):
        raise ValueError(f"a has {len(first)} values and b {len(second)}; give the two sides of the same pairs")
    return mcnemar_exact(int((first & ~second).sum()), int((second & ~first).sum()))


def sign_flip(
    task_sums: Iterable[Any], *, n_draws: int | None = None, seed: int | np.random.Generator | None = None
) -> SignFlip:
    """Test whether task sums have mean zero by flipping the sign of whole tasks, two-sided.

    Under the null hypothesis each task's sum is as likely to have the other sign, independently of the other tasks.
    p is the share of sign patterns whose total is at least as far from 0 as the observed one.

    Parameters
    ----------
    task_sums : iterable of float, shape (n,)
        One number a task: the sum (or mean) of its effects, such as rescues minus harms. None may be missing.
    n_draws : int, optional
        Number of random sign patterns. If None, p is exact: by convolution for whole numbers, otherwise by
        enumeration of the signs of at most 20 nonzero tasks.
    seed : int or numpy.random.Generator, optional
        Source of randomness, required with `n_draws` and unused without.

    Returns
    -------
    SignFlip
        `statistic` is the sum over tasks. A random p is (count + 1) / (n_draws + 1), so never 0.

    Raises
    ------
    ValueError
        If a sum is missing, infinite or no number, there is no task, an exact p is out of reach, or `n_draws` is
        given without a seed.

    References
    ----------
    arXiv 2610.00372, section on inference (100,000 draws, two-sided), as in the authors' core.py; the exact p is
    what those draws converge to. Fisher (1935), The Design of Experiments, section 21.
    """
    sums = as_numbers(task_sums, "task_sums")
    draws = None if n_draws is None else as_count("n_draws", n_draws)
    if draws == 0:
        raise ValueError("n_draws is 0; give at least 1, usually 100000, or None for an exact p")
    if draws is not None and seed is None:
        raise ValueError(f"n_draws is {draws} without a seed; give seed, so that p can be repeated")
    # Only the sizes matter, since every sign is flipped; sorted, so that the order of the tasks does not.
    sizes = np.sort(np.abs(sums[sums != 0]))
    total = math.fsum(sums)
    if sizes.size == 0:
        return SignFlip(total, math.nan, len(sums), 0, "no nonzero task sums", None)
    if draws is None or seed is None:
        p, method = _exact_p(sizes, abs(total))
    else:
        p, method = _random_p(sizes, abs(total), draws, as_generator(seed)), "Monte Carlo"
    return SignFlip(total, p, len(sums), len(sizes), method, draws)


def _successes(values: Iterable[Any], name: str) -> npt.NDArray[np.bool_]:
    numbers = as_numbers(values, name)
    other = numbers[(numbers != 0) & (numbers != 1)]
    if other.size:
        raise ValueError(
            f"{name} has {other.size} of {len(numbers)} values that are neither 0 nor 1, such as {other[0]:g}; "
            "set a threshold for success first"
        )
    successes: npt.NDArray[np.bool_] = numbers == 1
    return successes


def _exact_p(sizes: Floats, distance: float) -> tuple[float, str]:
    if np.all(sizes == np.floor(sizes)):
        whole = [int(size) for size in sizes]
        unit = math.gcd(*whole)
        steps = [size // unit for size in whole]
        if len(steps) * sum(steps) <= _MAX_STEPS:
            return _convolved_p(steps, int(distance) // unit), "exact, by convolution"
    if len(sizes) <= _MAX_ENUMERATED:
        return _enumerated_p(sizes, distance), "exact, by enumeration"
    raise ValueError(
        f"task_sums has {len(sizes)} nonzero values that are not whole or too large for an exact p "
        f"(at most {_MAX_ENUMERATED} such tasks); give n_draws, such as 100000, and a seed"
    )


def _convolved_p(steps: list[int], distance: int) -> float:
    """Exact p of whole task sums, from the distribution of the sum of those that keep a positive sign."""
    largest = sum(steps)
    mass = np.zeros(largest + 1)
    mass[0] = 1.0
    reach = 0
    for step in steps:
        mass[: reach + 1] /= 2
        # The two ranges may overlap; numpy adds as if they did not.
        mass[step : step + reach + 1] += mass[: reach + 1]
        reach += step
    totals = 2 * np.arange(largest + 1) - largest
    return min(1.0, float(mass[np.abs(totals) >= distance].sum()))


def _enumerated_p(sizes: Floats, distance: float) -> float:
    """Exact p over all sign patterns; the last sign is held at +, since a pattern and its mirror image count alike."""
    totals = sizes[-1:]
    for size in sizes[:-1]:
        totals = np.concatenate([totals + size, totals - size])
    return float(np.mean(np.abs(totals) >= _threshold(sizes, distance)))


def _random_p(sizes: Floats, distance: float, n_draws: int, rng: np.random.Generator) -> float:
    """Monte Carlo p; tasks of equal size are interchangeable, so only how many of them are positive is drawn."""
    kinds, multiplicity = np.unique(sizes, return_counts=True)
    threshold = _threshold(sizes, distance)
    chunk = max(1, _CELLS // len(kinds))
    count = 0
    for start in range(0, n_draws, chunk):
        positive = rng.binomial(multiplicity, 0.5, size=(min(chunk, n_draws - start), len(kinds)))
        totals = (2 * positive - multiplicity) @ kinds
        count += int((np.abs(totals) >= threshold).sum())
    return (count + 1) / (n_draws + 1)


def _threshold(sizes: Floats, distance: float) -> float:
    """Return the observed distance, less what rounding may take from an equal one."""
    return distance - _ALIKE * float(sizes.sum())
