"""The exact distribution of a bootstrap's resampled sum: an n-fold convolution, so no simulation noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom


@dataclass(frozen=True, slots=True)
class SumDistribution:
    """The distribution of a resampled sum: `cumulative[i]` is P(sum <= first + i)."""

    first: int
    cumulative: NDArray[np.float64]

    def quantile(self, probability: float) -> int:
        """The least sum whose cumulative probability reaches `probability`."""
        # Rounding errors of the convolution are about 1e-15; a tie within 1e-12 counts as reached.
        return self.first + int(np.searchsorted(self.cumulative, probability - 1e-12))

    def bounds(self, level: float = 0.95) -> tuple[int, int]:
        """The percentile interval of the sum."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def up_to(self, total: int) -> float:
        """P(sum <= total)."""
        index = total - self.first
        return 0.0 if index < 0 else float(self.cumulative[min(index, self.cumulative.size - 1)])


def resampled_sum(unit_sums: dict[int, int], n: int) -> SumDistribution:
    """Exact bootstrap distribution of the sum when n units are resampled with replacement.

    Parameters
    ----------
    unit_sums : dict of int to int
        How many units carry each sum; the rest of the n units carry 0.
    n : int
        Number of units (tasks).

    Returns
    -------
    SumDistribution

    Raises
    ------
    ValueError
        If the units are more than n, or a count is negative.
    """
    others = n - sum(unit_sums.values())
    if n < 1 or others < 0 or min(unit_sums.values(), default=0) < 0:
        raise ValueError(f"{unit_sums} does not fit into {n} units; the counts must be at least 0 and sum to at most n")
    low, high = min([0, *unit_sums]), max([0, *unit_sums])
    single = np.zeros(high - low + 1)
    for total, count in (*unit_sums.items(), (0, others)):
        single[total - low] += count / n
    cumulative = np.minimum(np.cumsum(_convolution_power(single, n)), 1.0)
    return SumDistribution(n * low, cumulative)


def _convolution_power(probabilities: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """n-fold convolution by repeated squaring; every term is positive, so nothing cancels."""
    result, square = np.ones(1), probabilities
    while n:
        if n & 1:
            result = np.convolve(result, square)
        n >>= 1
        square = np.convolve(square, square) if n else square
    return result


def reach_probability(
    distribution: SumDistribution, low: int, high: int, *, n_resamples: int = 10_000, level: float = 0.95
) -> float:
    """Probability that a percentile bootstrap of `n_resamples` draws prints exactly the bounds `low` and `high`.

    A linearly interpolated percentile is taken to equal an integer only if both order statistics beside it do (they
    would have to jump by 40 counts at 10,000 draws for it to happen otherwise). The counts of
    draws below, at and above the two bounds are multinomial, so the joint probability is summed exactly over the
    number of draws up to `low`.

    Parameters
    ----------
    distribution : SumDistribution
        Of the resampled sum.
    low, high : int
        The printed bounds, in counts.
    n_resamples : int
        Number of bootstrap draws behind the printed bounds.
    level : float
        Confidence level of the printed interval.

    Returns
    -------
    float
    """
    if low > high:
        return 0.0
    low_first, low_last = _order_statistics((1 - level) / 2, n_resamples)
    high_first, high_last = _order_statistics((1 + level) / 2, n_resamples)
    below_low, up_to_low = distribution.up_to(low - 1), distribution.up_to(low)
    below_high, up_to_high = distribution.up_to(high - 1), distribution.up_to(high)
    # Beyond 12 standard deviations the binomial weight does not count (below 1e-7 even where it is most skewed).
    centre, reach = n_resamples * up_to_low, 12 * math.sqrt(n_resamples * up_to_low * (1 - up_to_low)) + 1
    draws = np.arange(max(0, math.floor(centre - reach)), min(n_resamples, math.ceil(centre + reach)) + 1)
    weight = binom.pmf(draws, n_resamples, up_to_low)
    # P(at most low_first draws below `low`, given that `draws` lie up to it)
    enough_low = np.where(draws > low_last, binom.cdf(low_first, draws, _share(below_low, up_to_low)), 0.0)
    if low == high:
        return float(np.sum(weight * enough_low * (draws > high_last)))
    rest = n_resamples - draws
    below, up_to = _share(below_high - up_to_low, 1 - up_to_low), _share(up_to_high - up_to_low, 1 - up_to_low)
    # P(below <= high_first and up_to > high_last): take away what reaches no further than high_last
    enough_high = binom.cdf(high_first - draws, rest, below) - _both_short(
        rest, high_first - draws, high_last - draws, below, up_to
    )
    return float(np.clip(np.sum(weight * enough_low * enough_high), 0.0, 1.0))


def _order_statistics(probability: float, n_draws: int) -> tuple[int, int]:
    """0-based order statistics that a linearly interpolated percentile lies between."""
    position = Fraction(n_draws - 1) * Fraction(probability).limit_denominator(10_000)
    return math.floor(position), math.ceil(position)


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0


def _both_short(
    n: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], below: float, up_to: float
) -> NDArray[np.float64]:
    """P(#below <= first and #up_to <= last) for nested events, #up_to >= #below, last - first in {0, 1}.

    All of {#up_to <= last} has #below <= last; only #below = #up_to = last with last = first + 1 is too many.
    """
    short = binom.cdf(last, n, up_to)
    if np.all(first == last):
        return np.asarray(short)
    too_many = binom.pmf(last, n, up_to) * np.power(_share(below, up_to), np.maximum(last, 0))
    return np.asarray(short - too_many)


def unit_sum_patterns(strata: list[tuple[int, int]], n: int, *, most: int = 10_000) -> list[dict[int, int]]:
    """Every way in which rescues and harms of several strata can fall on the same tasks.

    Parameters
    ----------
    strata : list of (rescues, harms)
        One entry per stratum (condition); within a stratum a task appears once.
    n : int
        Number of tasks, all present in every stratum.
    most : int
        Refuse to list more patterns than this.

    Returns
    -------
    list of dict
        Each maps a non-zero task sum to the number of tasks that carry it; sorted, so the order is stable.

    Raises
    ------
    ValueError
        If a stratum does not fit into n tasks or there are more than `most` patterns.
    """
    patterns: set[tuple[tuple[int, int], ...]] = {((0, n),)}
    for rescues, harms in strata:
        if rescues < 0 or harms < 0:
            raise ValueError(f"{rescues} rescues and {harms} harms; both must be at least 0")
        if rescues + harms > n:
            raise ValueError(f"{rescues} rescues and {harms} harms do not fit into {n} tasks")
        following: set[tuple[tuple[int, int], ...]] = set()
        for before in patterns:
            for after in _spread(dict(before), rescues, harms):
                following.add(after)
                if len(following) > most:
                    raise ValueError(f"more than {most} patterns; give fewer or smaller strata")
        patterns = following
    listed = [{total: count for total, count in pattern if total != 0} for pattern in patterns]
    return sorted(listed, key=lambda pattern: sorted(pattern.items(), reverse=True))


def _spread(groups: dict[int, int], rescues: int, harms: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Add `rescues` times +1 and `harms` times −1 to different tasks of groups that carry equal sums."""
    totals = sorted(groups)

    def place(index: int, rescues_left: int, harms_left: int, after: dict[int, int]) -> Iterator[dict[int, int]]:
        if index == len(totals):
            if rescues_left == harms_left == 0:
                yield after
            return
        total, size = totals[index], groups[totals[index]]
        for up in range(min(size, rescues_left) + 1):
            for down in range(min(size - up, harms_left) + 1):
                moved = dict(after)
                for target, count in ((total + 1, up), (total - 1, down), (total, size - up - down)):
                    moved[target] = moved.get(target, 0) + count
                yield from place(index + 1, rescues_left - up, harms_left - down, moved)

    for after in place(0, rescues, harms, {}):
        yield tuple(sorted((total, count) for total, count in after.items() if count))
