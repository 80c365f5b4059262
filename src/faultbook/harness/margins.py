"""What a comparison says of which only the numbers of solved tasks are published."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.harness.compare import Bounds
from faultbook.stats.missing import could_turn, difference_bounds
from faultbook.stats.paired_difference import bonett_price
from faultbook.stats.reconstruct import mcnemar_from_margins


@dataclass(frozen=True, slots=True)
class Margins:
    """Everything that numbers of solved tasks of the same pairs allow. Differences are a less b, in pp.

    Attributes
    ----------
    splits : DataFrame
        One row a paired table that has these margins: both, only_a, only_b, neither, p (McNemar, exact; NaN without a
        discordant pair), low and high of the interval of Bonett and Price.
    difference : float
        Fixed by the margins.
    least_p, most_p : float
        Of the splits; NaN if none has a discordant pair.
    bounds : Bounds
        Over every completion of the plan, where one was given.
    statement : str
        What can be said, and what cannot.
    """

    splits: pd.DataFrame
    difference: float
    least_p: float
    most_p: float
    bounds: Bounds
    statement: str

    def summary_frame(self) -> pd.DataFrame:
        """The possible tables."""
        return self.splits


def from_margins(
    solved_a: int,
    solved_b: int,
    pairs: int,
    *,
    planned: int | None = None,
    finished_a: int | None = None,
    finished_b: int | None = None,
    alpha: float = 0.05,
) -> Margins:
    """Say what follows from "a solved so many, b so many, of the same pairs", and what does not.

    Parameters
    ----------
    solved_a, solved_b : int
        Of the complete pairs.
    pairs : int
        Complete pairs.
    planned : int, optional
        Planned pairs; `pairs` if left out.
    finished_a, finished_b : int, optional
        Finished trials of each arm; those beyond the pairs have an outcome that is not published, so it may be either.
        They only enter the check that the numbers fit one another.
    alpha : float
        Level of the test that the statement speaks of.

    Returns
    -------
    Margins

    Raises
    ------
    FaultbookError
        If the numbers contradict one another.
    """
    total = pairs if planned is None else planned
    finished = [pairs if number is None else number for number in (finished_a, finished_b)]
    if pairs < 1 or not all(0 <= solved <= pairs for solved in (solved_a, solved_b)):
        raise FaultbookError(f"of {pairs} pairs, {solved_a} and {solved_b} solved cannot be")
    # Trials that finished in one arm only are at different tasks.
    if not all(pairs <= number for number in finished) or sum(finished) - pairs > total:
        raise FaultbookError(
            f"{finished[0]} and {finished[1]} finished of {total} planned, with {pairs} pairs, cannot be"
        )
    splits = mcnemar_from_margins(solved_a, solved_b, pairs)
    splits.insert(0, "both", solved_a - splits["only_a"])
    splits.insert(3, "neither", pairs - splits[["both", "only_a", "only_b"]].sum(axis=1))
    intervals = [
        bonett_price(*(int(row[name]) for name in ("both", "only_a", "only_b", "neither")))
        for row in splits.to_dict("records")
    ]
    splits = splits.assign(low=[100 * found.low for found in intervals], high=[100 * found.high for found in intervals])
    difference = 100 * (solved_a - solved_b) / pairs
    found = difference_bounds(pairs, solved_a, total, pairs, solved_b, total)
    bounds = Bounds(100 * found.low, 100 * found.high, could_turn(found, difference))
    least, most = float(splits["p"].min()), float(splits["p"].max())
    return Margins(splits, difference, least, most, bounds, _statement(splits, alpha))


def _statement(splits: pd.DataFrame, alpha: float) -> str:
    reached = int((splits["p"] < alpha).sum())
    if not reached:
        verdict = f"no difference is detected at {alpha:g}, whichever split is the true one"
    elif reached == len(splits):
        verdict = f"a difference is detected at {alpha:g}, whichever split is the true one"
    else:
        verdict = f"whether a difference is detected at {alpha:g} depends on the split, which is not published"
    if len(splits) == 1:
        return f"{verdict}; the margins allow one table only"
    return f"{verdict}; a single p cannot be stated, {len(splits)} tables fit the margins"
