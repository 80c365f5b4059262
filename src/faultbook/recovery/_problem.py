"""Candidates as whole numbers for the exact search, and what thresholds among them would do."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery._grid import Thresholds
from faultbook.recovery._trajectories import Floats, Ints, Mask, Trajectories
from faultbook.recovery.orthant import Maximum, Optimum, Terms, first_pass_terms, maximize


@dataclass(frozen=True, eq=False, slots=True)
class Scale:
    """The ranks of candidates on one score, and for each rank the threshold that it and higher ones pass."""

    rank: Ints
    threshold: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Problem:
    """Candidates that may pass, sorted by trajectory and delay: one entry a candidate in code, points, gain and harm.

    `is_clean` and `task` have one entry a trajectory, `thresholds` one array an axis.
    """

    code: Ints
    points: Ints
    gain: Ints
    harm: Ints
    is_clean: Mask
    task: Ints
    thresholds: tuple[Floats, Floats, Floats]
    terms: Terms

    def solve(
        self, most_harm: int, times: Ints | None = None, *, node_limit: int, every_limit: bool = False
    ) -> Maximum:
        """Find the best thresholds, with each trajectory counted so many times (once, if not given)."""
        return maximize(
            self.terms,
            most_harm=most_harm,
            interventions=lambda ranks: self.outcome(ranks, times).interventions,
            multiplicity=times,
            every_limit=every_limit,
            node_limit=node_limit,
        )

    def harms_allowed(self, harm_limit: float, times: Ints | None = None) -> int:
        """How many clean harms a limit allows, which is a rate over all clean trajectories."""
        n_clean = int(self.is_clean.sum() if times is None else times[self.is_clean].sum())
        return int(Fraction(repr(float(harm_limit))) * n_clean)  # as a decimal: .29 of 100 is 29, not 28.99…

    def outcome(self, ranks: Thresholds | None, times: Ints | None = None) -> Optimum:
        """Gain, clean harms and interventions at thresholds, given as ranks."""
        if ranks is None:
            return Optimum(0, 0, 0, None)
        passes = np.ones(len(self.points), dtype=bool)
        for column, least in zip(self.points.T, ranks, strict=True):
            passes &= column >= least
        passing = np.flatnonzero(passes)
        acts = passing[np.diff(self.code[passing], prepend=-1) != 0]
        weight = np.ones(len(acts), dtype=np.int64) if times is None else times[self.code[acts]]
        return Optimum(
            int((self.gain[acts] * weight).sum()), int((self.harm[acts] * weight).sum()), int(weight.sum()), ranks
        )

    def values(self, ranks: Thresholds | None) -> tuple[float, ...]:
        """Thresholds in the units of the scores; NaN where nothing passes."""
        if ranks is None:
            return (np.nan,) * 3
        return tuple(float(known[rank]) for known, rank in zip(self.thresholds, ranks, strict=True))


def scaled(values: Floats, rounding: float = 0.0) -> Scale:
    """Rank a score.

    Parameters
    ----------
    values : array, shape (n,)
        The score of each candidate.
    rounding : float
        Of a gate that asks for at least the threshold: 0, and thresholds are the values. Of a gate that asks for more
        than the threshold, up to rounding: values closer than this are one rank, and thresholds lie just below it, but
        never halfway to the next rank or farther.
    """
    distinct, index = np.unique(values, return_inverse=True)
    gap = np.diff(distinct, prepend=-np.inf)
    new = gap > rounding
    below = np.minimum(gap[new] / 2, 1e3 * rounding)
    return Scale((np.cumsum(new) - 1)[index], distinct[new] - below)


def make_problem(known: Trajectories, tau: Ints, usable: Mask, scales: tuple[Scale, Scale, Scale]) -> Problem:
    """Put candidates into the form of the search.

    Parameters
    ----------
    known : Trajectories
        Of the candidates.
    tau : array, shape (n,)
        The effect of acting on each candidate.
    usable : array of bool, shape (n,)
        Which candidates may pass at all.
    scales : 3 of Scale
        Of the usable candidates alone, in their own order.
    """
    order = known.order[usable[known.order]]
    points = np.zeros((len(usable), 3), dtype=np.int64)
    points[usable] = np.column_stack([scale.rank for scale in scales])
    code, points = known.code[order], points[order]
    is_error = known.is_error[code]
    gain = np.where(is_error, tau[order], 0)
    harm = np.where(is_error, 0, tau[order] < 0).astype(np.int64)
    first, second, third = (scale.threshold for scale in scales)
    terms = first_pass_terms(code, points, gain, harm)
    return Problem(code, points, gain, harm, ~known.is_error, known.task, (first, second, third), terms)


def checked_limit(harm_limit: float) -> float:
    """Return a clean harm rate in [0, 1).

    Raises
    ------
    FaultbookError
        If it is none.
    """
    if isinstance(harm_limit, (bool, str)) or not 0 <= harm_limit < 1:
        raise FaultbookError(f"harm_limit is {harm_limit!r}; give a rate in [0, 1), such as .02 for 2 %")
    return float(harm_limit)


def check_kinds(known: Trajectories) -> None:
    """Refuse candidates without clean or without disturbed trajectories: a rule is chosen by what it does to both.

    Raises
    ------
    DataError
        If either is missing.
    """
    if known.is_error.all():
        mend = "add the clean condition: without it, harm to runs that nothing was wrong with is not seen"
        raise DataError("candidates: no trajectory is clean", mend=mend)
    if not known.is_error.any():
        raise DataError("candidates: every trajectory is clean, and there is nothing to gain", mend="add the others")
