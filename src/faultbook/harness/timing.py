"""Time of trials by phase, and what no phase explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from faultbook.harness.plan import KEY, held_two

PHASES = ("setup_seconds", "agent_seconds", "verifier_seconds")
_ARM_COLUMNS = ["arm", "finished", "timed", "phase", "seconds", "per_trial", "share", "known_in"]
_ROUNDING = 1e-6  # of times that were read as text


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time of trials went.

    Attributes
    ----------
    trials : DataFrame
        One row a planned trial that has a total: arm, task_id, attempt, state, cause, total_seconds, the phases,
        `unexplained_seconds`, and `note`.
    arms : DataFrame
        One row an arm and phase (setup, agent, verifier, unexplained): finished trials, those timed (with a total),
        seconds in all and per timed trial, share of the total, and of how many timed trials the phase is known.
    """

    trials: pd.DataFrame
    arms: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """The table by arm and phase."""
        return self.arms


def timing(trials: pd.DataFrame, planned: pd.DataFrame | None = None, *, arms: Sequence[str] | None = None) -> Timing:
    """Split the time of trials into phases; what is left of the total is its own column.

    Parameters
    ----------
    trials, planned, arms
        As for `compare`.

    Returns
    -------
    Timing
        The unexplained rest is the total less the phases that are known; a phase that is not known is in it, and
        nothing else is said of what it holds. Missing where no phase is known, or where the phases overlap (they sum
        to more than the total).

    Raises
    ------
    FaultbookError
        If there are not two arms to compare, or nothing is planned.
    """
    found, chosen = held_two(trials, planned, arms)
    cells = found.cells
    timed = _with_rest(cells[cells["total_seconds"].notna()])
    columns = [*KEY, "state", "cause", "total_seconds", *PHASES, "unexplained_seconds", "note"]
    rows = [row for arm in chosen for row in _of_arm(cells[cells["arm"] == arm], timed[timed["arm"] == arm], arm)]
    types = dict.fromkeys(("finished", "timed", "known_in"), "int64")
    return Timing(timed[columns].reset_index(drop=True), pd.DataFrame(rows, columns=_ARM_COLUMNS).astype(types))


def _with_rest(timed: pd.DataFrame) -> pd.DataFrame:
    known = timed[list(PHASES)]
    rest = timed["total_seconds"] - known.sum(axis=1)
    overlap = rest < -_ROUNDING
    rest = rest.clip(lower=0).mask(overlap | known.isna().all(axis=1)).astype("Float64")
    note = pd.Series(pd.NA, index=timed.index, dtype="string")
    note = note.mask(overlap, "the phases overlap: they sum to more than the total")
    return timed.assign(unexplained_seconds=rest, note=note.mask(known.isna().all(axis=1), "no phase is known"))


def _of_arm(cells: pd.DataFrame, timed: pd.DataFrame, arm: str) -> list[dict[str, Any]]:
    total = math.fsum(timed["total_seconds"])
    rows = []
    for name in (*PHASES, "unexplained_seconds"):
        values = timed[name].dropna()
        seconds = math.fsum(values) if len(values) else math.nan
        rows.append(
            {
                "arm": arm,
                "finished": int((cells["state"] == "finished").sum()),
                "timed": len(timed),
                "phase": name.removesuffix("_seconds"),
                "seconds": seconds,
                "per_trial": seconds / len(timed) if len(timed) else math.nan,
                "share": seconds / total if total > 0 else math.nan,
                "known_in": len(values),
            }
        )
    return rows
