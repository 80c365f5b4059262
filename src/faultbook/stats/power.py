"""What a paired comparison could have detected: exact power of McNemar's exact test, and the pairs that it needs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from faultbook.stats.bootstrap import Floats
from faultbook.stats.proportion import as_count

_METHOD = "exact power of the two-sided exact McNemar test"
_MOST_PAIRS = 50_000  # exact critical values of so many take a second; a normal approximation does beyond
_NEGLIGIBLE = 1e-20  # probability of a number of discordant pairs; all that are smaller add up to less than 1e-15
_HALVINGS = 50  # of the range of a difference: 1e-15 of it
_TIE = 1e-12  # by which rounding may lift a difference above the rate that bounds it


@dataclass(frozen=True, slots=True)
class PairedPower:
    """`n_pairs` pairs detect a true `difference` with a probability of `power`, where at least `wanted` was asked for.

    If nothing reaches that, what was asked for is missing (`difference` is NaN, or `n_pairs` None) and `method` says
    why.
    """

    n_pairs: int | None
    discordant_rate: float
    difference: float
    power: float
    wanted: float
    alpha: float
    method: str

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def mcnemar_power(n_pairs: int, discordant_rate: float, difference: float, alpha: float = 0.05) -> float:
    """Compute the power of the two-sided exact McNemar test before the number of discordant pairs is known.

    Exact: over every number of discordant pairs, its binomial probability times the probability that the test finds
    p < alpha on so many.

    Parameters
    ----------
    n_pairs : int
        Number of independent pairs, concordant ones included: one a task. At most 50,000.
    discordant_rate : float
        Probability that just one side of a pair succeeds, in [0, 1].
    difference : float
        True difference of the two success rates, at most `discordant_rate` in size.
    alpha : float
        Significance level, strictly between 0 and 1; the test rejects if p < alpha, not if p equals it.

    Returns
    -------
    float
        Probability of p < alpha, in [0, 1]. At a difference of 0, the size of the test, which is below alpha.

    Raises
    ------
    ValueError
        If `n_pairs` is not a whole number or above 50,000, or a rate or the difference is out of its range.

    References
    ----------
    Schork & Williams (1980), Communications in Statistics - Simulation and Computation 9, 349-357; Duffy (1984),
    Biometrics 40, 1005-1015.
    """
    n, rate, alpha = _pairs(n_pairs), _rate(discordant_rate), _inside("alpha", alpha, ".05")
    return _Design(n, rate, alpha).power(_size(difference, rate))


def detectable_difference(n_pairs: int, discordant_rate: float, power: float = 0.8, alpha: float = 0.05) -> PairedPower:
    """Find the smallest difference, in size, that so many pairs detect with a given probability.

    Parameters
    ----------
    n_pairs, discordant_rate, alpha
        As in `mcnemar_power`.
    power : float
        The probability wanted, strictly between 0 and 1.

    Returns
    -------
    PairedPower
        `difference` is exact to about 1e-15 and errs upwards, so that its power is not below the one wanted. NaN if
        even the largest one, `discordant_rate` itself with all discordant pairs to one side, is detected less often
        (`power` says how often): too few pairs are discordant for the test, see `fewest_discordant`.

    Raises
    ------
    ValueError
        As `mcnemar_power`, or if `power` is not in (0, 1).

    References
    ----------
    As `mcnemar_power`, solved for the difference, in whose size power rises.
    """
    n, rate, alpha = _pairs(n_pairs), _rate(discordant_rate), _inside("alpha", alpha, ".05")
    wanted, design = _inside("power", power, ".8"), _Design(n, rate, alpha)
    best = design.power(rate)
    if best < wanted:
        reason = f"not detectable: even a difference of {rate:g}, the discordant rate, has a power of {best:.3g}"
        return PairedPower(n, rate, math.nan, best, wanted, alpha, f"{_METHOD}; {reason}")
    too_small, enough = 0.0, 0.0 if design.power(0.0) >= wanted else rate
    for _ in range(_HALVINGS):
        middle = (too_small + enough) / 2
        too_small, enough = (too_small, middle) if design.power(middle) >= wanted else (middle, enough)
    return PairedPower(n, rate, enough, design.power(enough), wanted, alpha, _METHOD)


def pairs_needed(
    discordant_rate: float, difference: float, power: float = 0.8, alpha: float = 0.05, most: int = 10_000
) -> PairedPower:
    """Find the number of pairs from which on a difference is detected with a given probability.

    Exact power is saw-toothed in the number of pairs: where one more pair leaves the critical split as it is, power
    falls. So the first number that reaches the power wanted may be followed by larger ones that do not. The answer is
    the smallest n for which no number from n to 2 n falls below.

    Parameters
    ----------
    discordant_rate, alpha
        As in `mcnemar_power`.
    difference : float
        True difference, not 0 and at most `discordant_rate` in size.
    power : float
        The probability wanted, strictly between 0 and 1.
    most : int
        Give up beyond so many pairs; 1 to 25,000.

    Returns
    -------
    PairedPower
        `n_pairs` counts all pairs, concordant ones included; None, and a `power` of NaN, if more than `most` are
        needed.

    Raises
    ------
    ValueError
        If the difference is 0, or an argument is out of its range.

    References
    ----------
    As `mcnemar_power`, solved for the number of pairs; on the saw-tooth: Chernick & Liu (2002), The American
    Statistician 56, 149-155.
    """
    rate, alpha, wanted = _rate(discordant_rate), _inside("alpha", alpha, ".05"), _inside("power", power, ".8")
    size, most = _size(difference, rate), as_count("most", most)
    if size == 0:
        raise ValueError("difference is 0; no number of pairs detects that, give the smallest one that matters")
    if not 1 <= most <= _MOST_PAIRS // 2:
        raise ValueError(f"most is {most}; give 1 to {_MOST_PAIRS // 2} pairs")
    reach = 1
    while reach < 2 * most:
        reach = min(2 * reach, 2 * most)
        curve = _power_curve(reach, rate, size, alpha)
        n = _first_lasting(curve >= wanted)
        if n is not None:
            return PairedPower(n, rate, float(difference), float(curve[n]), wanted, alpha, _METHOD)
    reason = f"not found: more than {most} pairs are needed"
    return PairedPower(None, rate, float(difference), math.nan, wanted, alpha, f"{_METHOD}; {reason}")


def fewest_discordant(alpha: float = 0.05) -> int:
    """Find the fewest discordant pairs on which the two-sided exact McNemar test can find p < alpha: 6 at .05.

    With fewer, p is at least alpha even if all of them favour one side, so the comparison could not have found
    anything.

    Parameters
    ----------
    alpha : float
        Significance level, strictly between 0 and 1.

    Returns
    -------
    int
        The smallest m with ``2 * 2**-m < alpha``.

    Raises
    ------
    ValueError
        If `alpha` is not in (0, 1).

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157, by the exact binomial distribution.
    """
    mantissa, exponent = math.frexp(_inside("alpha", alpha, ".05"))
    # alpha lies in [2**(exponent - 1), 2**exponent); at its lower end 2**(1 - m) is alpha itself, which is not below.
    return 2 - exponent + (mantissa == 0.5)


class _Design:
    """Numbers of discordant pairs that are likely among n pairs, their probabilities, and when the test rejects."""

    def __init__(self, n: int, rate: float, alpha: float) -> None:
        numbers = np.arange(n + 1)
        # scipy's binomial overflows near the smallest double; at so low a rate no two pairs are discordant.
        probabilities = stats.binom.pmf(numbers, n, rate if rate > _NEGLIGIBLE else 0.0)
        likely = probabilities > _NEGLIGIBLE
        self.rate = rate
        self.numbers, self.probabilities = numbers[likely], probabilities[likely]
        self.critical = _critical_splits(n, alpha)[likely]

    def power(self, size: float) -> float:
        rejected = _rejection(self.critical, self.numbers, self.rate, size)
        return min(1.0, math.fsum(self.probabilities * rejected))


def _rejection(critical: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], rate: float, size: float) -> Floats:
    """Probability of rejection given the number of discordant pairs: both tails, up to the critical split."""
    share = (1 + size / rate) / 2 if rate > 0 else 0.5  # of the discordant pairs that favour the better side
    tails = stats.binom.cdf(critical, numbers, share) + stats.binom.cdf(critical, numbers, 1 - share)
    return np.where(critical >= 0, tails, 0.0)


def _critical_splits(n: int, alpha: float) -> npt.NDArray[np.int64]:
    """For 0 to n discordant pairs, the largest number on the rarer side with p < alpha; -1 where there is none.

    One more pair raises it by 0 or 1, so all follow from one another in whole numbers, without rounding.
    """
    numerator, denominator = alpha.as_integer_ratio()
    shift = denominator.bit_length()  # p < alpha is tail * 2**shift < numerator * 2**pairs
    critical = np.empty(n + 1, dtype=np.int64)
    # The number of sequences with at most k on one side, with just k, and with just k + 1.
    k, tail, here, above = -1, 0, 0, 1
    for pairs in range(n + 1):
        if (tail + above) << shift < numerator << pairs:
            k, tail, here, above = k + 1, tail + above, above, above * (pairs - k - 1) // (k + 2)
        critical[pairs] = k
        tail, here, above = 2 * tail - here, here * (pairs + 1) // (pairs + 1 - k), above + here
    return critical


def _power_curve(n: int, rate: float, size: float, alpha: float) -> Floats:
    """Power of 0 to n pairs. A pair is discordant or not, so that of j more pairs is a mixture of two of j - 1 more."""
    power = _rejection(_critical_splits(n, alpha), np.arange(n + 1), rate, size)
    curve = np.empty(n + 1)
    for pairs in range(n + 1):
        curve[pairs] = power[0]
        power = (1 - rate) * power[:-1] + rate * power[1:]
    return curve


def _first_lasting(reached: npt.NDArray[np.bool_]) -> int | None:
    """The smallest n with `reached` from n to 2 n, as far as that is known."""
    failures = np.flatnonzero(~reached)
    n = np.arange((len(reached) - 1) // 2 + 1)
    following = np.append(failures, len(reached))[np.searchsorted(failures, n)]  # the next failure at or after n
    lasting = np.flatnonzero(following > 2 * n)
    return int(lasting[0]) if lasting.size else None


def _pairs(n_pairs: int) -> int:
    n = as_count("n_pairs", n_pairs)
    if n > _MOST_PAIRS:
        raise ValueError(f"n_pairs is {n}; give at most {_MOST_PAIRS}, a normal approximation does for more")
    return n


def _rate(value: float) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"discordant_rate is {value!r}; give a rate in [0, 1], per cent divided by 100")
    return number


def _size(difference: float, rate: float) -> float:
    """Size of a difference, which the rate of discordant pairs bounds."""
    size = abs(_number(difference))
    if not size <= rate * (1 + _TIE):
        raise ValueError(
            f"difference is {difference!r} and discordant_rate {rate:g}; give a difference of rates in [-1, 1], no "
            "larger than the rate of pairs in which the two sides differ"
        )
    return min(size, rate)


def _inside(name: str, value: float, example: str) -> float:
    number = _number(value)
    if not 0 < number < 1:
        raise ValueError(f"{name} is {value!r}; give a number strictly between 0 and 1, such as {example}")
    return number


def _number(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
