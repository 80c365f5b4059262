"""How well a ranking of steps agrees with the annotators' votes: nDCG as MP-Bench's code computes it, and variants.

The published code breaks ties by step order on both sides and grades a reference step by its place, not by its votes:
three steps with one vote each gain 7, 3 and 1. The variants show how much of a score that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from faultbook.errors import one_of

Relevance = Literal["reverse_rank", "votes"]
Gain = Literal["exp", "linear"]
Ties = Literal["by_step", "expected"]
Array = npt.NDArray[Any]

_MOST_VOTES = 2**31
_ROUNDING = 1e-12
_CHOICES = {"relevance": ("reverse_rank", "votes"), "gain": ("exp", "linear"), "ties": ("by_step", "expected")}


@dataclass(frozen=True, slots=True)
class Measure:
    """A variant of nDCG; `k` is None for the full list. Its name stands in every output.

    Raises
    ------
    ValueError
        If a choice is unknown or `k` is not a whole number of at least 1.
    """

    k: int | None = 5
    relevance: Relevance = "reverse_rank"
    gain: Gain = "exp"
    ties: Ties = "by_step"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(one_of(name, getattr(self, name), allowed))
        if isinstance(self.k, np.integer):
            object.__setattr__(self, "k", int(self.k))
        if self.k is not None and (type(self.k) is not int or self.k < 1):
            raise ValueError(f"k is {self.k!r}; give a whole number of at least 1, or None for the full list")

    @property
    def name(self) -> str:
        """Such as "nDCG@5, relevance reverse_rank, gain exp, ties by_step"."""
        depth = "full" if self.k is None else str(self.k)
        return f"nDCG@{depth}, relevance {self.relevance}, gain {self.gain}, ties {self.ties}"

    @property
    def column(self) -> str:
        """The column that holds it: "ndcg_at_5" or "ndcg_full"."""
        return "ndcg_full" if self.k is None else f"ndcg_at_{self.k}"


def ndcg(
    predicted: Sequence[int] | Mapping[int, int],
    reference_votes: Mapping[int, int],
    k: int | None = 5,
    *,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
    ties: Ties = "by_step",
) -> float:
    """Compute the nDCG of a ranking of steps against annotators' votes.

    Parameters
    ----------
    predicted : sequence of int, or mapping of int to int
        Steps, the most suspect first; or each step's votes over several samples. A step that stands twice counts at
        its first place; a step that no annotator flagged, in range or not, takes its place and gains nothing.
    reference_votes : mapping of int to int
        Step to the number of annotators who flagged it; steps with no vote may be left out.
    k : int or None
        How many places count; None for all.
    relevance : {"reverse_rank", "votes"}
        The grade of a reference step: n, n − 1, …, 1 down the ranking of the n flagged steps, as the published code has
        it, or its votes.
    gain : {"exp", "linear"}
        2^grade − 1, or the grade.
    ties : {"by_step", "expected"}
        Equal votes in step order on both sides, as the published code has it; or the exact expectation over all orders
        of equal votes, on both sides, each order equally likely.

    Returns
    -------
    float
        In [0, 1]; 0 for an empty prediction; NaN if no step has a vote, since there is nothing to find.

    Raises
    ------
    ValueError
        If a step or a number of votes is not a whole number, votes are negative, or a choice is unknown.

    Notes
    -----
    Both sides of the ratio are scaled by 2^−(highest grade), so that any number of steps fits into a float. Ties of the
    two sides are independent, so E[DCG] = Σ E[discount of the step] · E[gain of the step].

    References
    ----------
    In et al. (2026), MP-Bench, section 5, and `failure_attribution_evaluation_display.ipynb` of its repository at
    commit 23f61a0. Järvelin & Kekäläinen (2002), ACM TOIS 20, 422-446; McSherry & Najork (2008), ECIR, on tied scores.
    """
    measure = Measure(k, relevance, gain, ties)
    votes = {step: count for step, count in _whole(reference_votes).items() if count > 0}
    if not votes:
        return float("nan")
    listed = _whole(predicted) if isinstance(predicted, Mapping) else _as_votes(predicted)
    steps = sorted(set(votes) | {step for step, count in listed.items() if count > 0})
    zeros = np.zeros(len(steps), dtype=np.int64)
    gains, ideal = gains_of(zeros, np.array([votes.get(step, 0) for step in steps]), 1, measure)
    priority = np.array([listed.get(step, 0) for step in steps])
    return float(share_of_ideal(dcg(zeros, priority, gains, 1, measure), ideal)[0])


def random_ndcg(
    reference_votes: Mapping[int, int],
    n_steps: int,
    n_predicted: int | None = None,
    k: int | None = 5,
    *,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
) -> float:
    """Expect the nDCG of distinct steps drawn at random, in closed form.

    Parameters
    ----------
    reference_votes : mapping of int to int
        As in `ndcg`.
    n_steps : int
        Steps of the log.
    n_predicted : int, optional
        How many steps are drawn; all of them by default. The published baseline copies each model's own list length.
    k, relevance, gain
        As in `ndcg`; how ties are broken does not matter.

    Returns
    -------
    float
        (mean gain over all steps) × Σ_{i ≤ min(n_predicted, k, n_steps)} 1 / log2(i + 1) / IDCG; NaN if no step has a
        vote.

    Raises
    ------
    ValueError
        If a flagged step lies outside the log, or a number is not whole or too small.
    """
    measure = Measure(k, relevance, gain)
    votes = {step: count for step, count in _whole(reference_votes).items() if count > 0}
    drawn = n_steps if n_predicted is None else n_predicted
    for name, value, least in (("n_steps", n_steps, 1), ("n_predicted", drawn, 0)):
        if _whole_number(value, name) < least:
            raise ValueError(f"{name} is {value}; give at least {least}")
    outside = [step for step in votes if not 0 <= step < n_steps]
    if outside:
        raise ValueError(f"step {outside[0]} is flagged in a log of {n_steps} steps; give the right number of steps")
    if not votes:
        return float("nan")
    counts = np.array([votes[step] for step in sorted(votes)])
    gains, ideal = gains_of(np.zeros(len(counts), dtype=np.int64), counts, 1, measure)
    chance = expected_by_chance(
        np.array([gains.sum()]), ideal, np.array([float(n_steps)]), np.array([float(drawn)]), measure
    )
    return float(chance[0])


def adjusted_for_chance(value: Any, chance: Any) -> Any:
    """Rescale so that chance is 0 and the best is 1: (x − E) / (1 − E); missing where chance alone reaches 1."""
    room = np.where(np.asarray(chance, dtype=np.float64) < 1, 1 - np.asarray(chance, dtype=np.float64), np.nan)
    return (np.asarray(value, dtype=np.float64) - chance) / room


def gains_of(log: Array, votes: Array, n_logs: int, measure: Measure) -> tuple[Array, Array]:
    """The gain of each row and the ideal DCG of each log.

    Parameters
    ----------
    log : ndarray, shape (n,)
        The log of each row, 0 to n_logs − 1, in ascending order; rows of a log in step order.
    votes : ndarray, shape (n,)
        Annotators who flagged the step; a step without a vote gains nothing.
    n_logs : int
        Number of logs.
    measure : Measure
        What is computed.

    Returns
    -------
    (gains, ideal)
        Shapes (n,) and (n_logs,), scaled by a factor of the log that cancels in their ratio; ideal is 0 where no step
        has a vote.
    """
    order, place = _places(log, votes)
    n_flagged = np.bincount(log, weights=votes > 0, minlength=n_logs)
    graded = _graded(place, n_flagged[log[order]], votes[order], _highest(log, votes, n_logs)[log[order]], measure)
    graded[votes[order] <= 0] = 0.0
    ideal = np.bincount(log[order], weights=graded * discounts(place, measure.k), minlength=n_logs)
    if measure.ties == "expected":
        graded = _mean_within(graded, log[order], votes[order])
    gains = np.empty(len(log))
    gains[order] = graded
    return gains, ideal


def dcg(log: Array, priority: Array, gains: Array, n_logs: int, measure: Measure) -> Array:
    """The DCG of one ranking a log; rows as in `gains_of`, ranked by falling priority, left out where it is 0."""
    order, place = _places(log, priority)
    worth = discounts(place, measure.k)
    worth[priority[order] <= 0] = 0.0
    if measure.ties == "expected":
        worth = _mean_within(worth, log[order], priority[order])
    return np.bincount(log[order], weights=worth * gains[order], minlength=n_logs)


def share_of_ideal(value: Array, ideal: Array) -> Array:
    """DCG over ideal DCG: missing where nothing was flagged, and 1 where a mean over ties rounds to more than that."""
    shares: Array = np.divide(value, ideal, out=np.full(len(ideal), np.nan), where=ideal > 0)
    return np.minimum(shares, 1.0)


def expected_by_chance(total_gain: Array, ideal: Array, n_steps: Array, n_predicted: Array, measure: Measure) -> Array:
    """The closed form of `random_ndcg` for many logs; missing where the number of steps is, or nothing was flagged."""
    depth = np.fmin(n_predicted, n_steps)
    depth = depth if measure.k is None else np.fmin(depth, measure.k)
    known = np.isfinite(n_steps) & (n_steps > 0) & (ideal > 0)
    most = int(depth[known].max()) if known.any() else 0
    reach = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(most) + 2))])
    chance = np.full(len(ideal), np.nan)
    chance[known] = total_gain[known] / n_steps[known] * reach[depth[known].astype(np.int64)] / ideal[known]
    # where any list is a perfect one, rounding must leave no room that a score could be held against
    chance[chance > 1 - _ROUNDING] = 1.0
    return chance


def discounts(place: Array, k: int | None) -> Array:
    """1 / log2(place + 2) for 0-based places, 0 from place k on."""
    worth: Array = 1 / np.log2(place + 2)
    return worth if k is None else np.where(place < k, worth, 0.0)


def _places(log: Array, priority: Array) -> tuple[Array, Array]:
    """The rows by falling priority within each log, ties in the order of rows, and the 0-based place of each."""
    order = np.lexsort((-priority, log))  # stable, so that rows of a log keep their step order among equals
    _, starts = np.unique(log, return_index=True)
    sizes = np.diff(np.append(starts, len(log)))
    return order, np.arange(len(log)) - np.repeat(starts, sizes)


def _graded(place: Array, n_flagged: Array, votes: Array, highest: Array, measure: Measure) -> Array:
    if measure.relevance == "reverse_rank":
        return (
            np.exp2(-place) - np.exp2(-n_flagged) if measure.gain == "exp" else (n_flagged - place).astype(np.float64)
        )
    return np.exp2(votes - highest) - np.exp2(-highest) if measure.gain == "exp" else votes.astype(np.float64)


def _highest(log: Array, votes: Array, n_logs: int) -> Array:
    highest = np.zeros(n_logs)
    np.maximum.at(highest, log, votes)
    return highest


def _mean_within(values: Array, log: Array, priority: Array) -> Array:
    """The mean over rows of equal priority in a log; rows come ordered, so equals stand together."""
    new = np.ones(len(log), dtype=bool)
    new[1:] = (log[1:] != log[:-1]) | (priority[1:] != priority[:-1])
    group = np.cumsum(new) - 1
    means: Array = (np.bincount(group, weights=values) / np.bincount(group))[group]
    return means


def _as_votes(ranking: Sequence[int]) -> dict[int, int]:
    """A ranking as votes that fall from place to place."""
    steps = list(dict.fromkeys(_whole_number(step, "step") for step in ranking))
    return {step: len(steps) - place for place, step in enumerate(steps)}


def _whole(votes: Mapping[int, int]) -> dict[int, int]:
    numbers = {_whole_number(step, "step"): _whole_number(count, "votes") for step, count in votes.items()}
    wrong = [step for step, count in numbers.items() if not 0 <= count <= _MOST_VOTES]
    if wrong:
        raise ValueError(f"step {wrong[0]} has {numbers[wrong[0]]} votes; give 0 to {_MOST_VOTES}")
    return numbers


def _whole_number(value: Any, name: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} is {value!r}; give a whole number")
    return int(value)
