"""What is missing from a comparison, and whether it is missing from both arms alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faultbook.harness.causes import infrastructure
from faultbook.harness.pairs import flipped, side_by_side
from faultbook.harness.plan import Held

ARM_COLUMNS = [
    "arm",
    "planned",
    "not_started",
    "unfinished",
    "unreadable",
    "finished",
    "without_verdict",
    "verdict_void",
    "observed",
    "infrastructure_failures",
]
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Attrition:
    """Missing outcomes by arm, and the test that both arms lose tasks alike.

    Attributes
    ----------
    arms : DataFrame
        One row an arm: planned trials by state; of the finished ones `without_verdict` and `verdict_void` (a verdict
        beside a cause that is not the arm's doing); `observed`, the outcomes that count; and
        `infrastructure_failures`, trials that a provider, an environment, a verifier or an operator ended.
    lost_in_a, lost_in_b : int
        Tasks with fewer observed outcomes in this arm than in the other.
    p : float
        Two-sided sign-flip test over tasks of "either arm loses a task's outcome as easily"; for one attempt a
        task that is McNemar's exact test. NaN where no task differs.
    test : str
        What was tested, or why nothing was.
    flags : tuple of str
        What a reader must know before any comparison; empty if nothing.
    """

    arms: pd.DataFrame
    lost_in_a: int
    lost_in_b: int
    p: float
    test: str
    flags: tuple[str, ...]

    def summary_frame(self) -> pd.DataFrame:
        """The table by arm."""
        return self.arms


def attrition(found: Held, arms: tuple[str, str]) -> Attrition:
    """Count what is missing by arm, and flag what is missing on one side only.

    Parameters
    ----------
    found : Held
        From `held`.
    arms : (str, str)
        The two arms.

    Returns
    -------
    Attrition
        A flag names failures of the infrastructure in one arm only, and a loss of outcomes that is lopsided (p below
        0.05): in both cases the pairs that are left are not a fair sample of the planned ones.
    """
    cells = found.cells.assign(infrastructure=infrastructure(found.cells))
    table = pd.DataFrame([_of_arm(cells[cells["arm"] == arm], arm) for arm in arms], columns=ARM_COLUMNS)
    table = table.astype({"arm": "string"} | dict.fromkeys(ARM_COLUMNS[1:], "int64"))
    losses = observed_losses(cells, arms)
    test = flipped(losses) if len(losses) else None
    p = math.nan if test is None else test.p
    flags = [*_one_sided(cells, arms), *_lopsided(losses, p, arms)]
    method = "no task is planned in both arms" if test is None else f"sign flip over tasks, {test.method}"
    return Attrition(table, int((losses > 0).sum()), int((losses < 0).sum()), p, method, tuple(flags))


def observed_losses(cells: pd.DataFrame, arms: tuple[str, str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each task planned in both arms, outcomes observed in the second less those in the first, at equal plans."""
    observed = side_by_side(cells["verdict"].notna().astype(int), cells, arms, "sum")
    planned = side_by_side(cells["attempt"], cells, arms, "size")
    alike = planned[arms[0]] == planned[arms[1]]
    differences: np.ndarray[Any, np.dtype[np.int64]] = (observed[arms[1]] - observed[arms[0]])[alike].to_numpy(np.int64)
    return differences


def _of_arm(cells: pd.DataFrame, arm: str) -> dict[str, Any]:
    states = cells["state"].value_counts()
    finished = cells[cells["state"] == "finished"]
    observed = int(cells["verdict"].notna().sum())
    void = int((finished["recorded"].notna() & finished["verdict"].isna()).sum())
    return {
        "arm": arm,
        "planned": len(cells),
        **{name: int(states.get(name, 0)) for name in ("not_started", "unfinished", "unreadable", "finished")},
        "without_verdict": len(finished) - observed - void,
        "verdict_void": void,
        "observed": observed,
        "infrastructure_failures": int(cells["infrastructure"].sum()),
    }


def _one_sided(cells: pd.DataFrame, arms: tuple[str, str]) -> list[str]:
    """Failures that are not the arm's own doing, where only one arm has them."""
    failed = {arm: cells[(cells["arm"] == arm) & cells["infrastructure"]] for arm in arms}
    flags = []
    for arm, other in (arms, arms[::-1]):
        if len(failed[arm]) and not len(failed[other]):
            kinds = failed[arm]["cause"].value_counts()
            named = ", ".join(f"{cause} {n}" for cause, n in kinds.items())
            flags.append(f"failures of the infrastructure in '{arm}' only: {len(failed[arm])} ({named})")
    return flags


def _lopsided(losses: np.ndarray[Any, np.dtype[np.int64]], p: float, arms: tuple[str, str]) -> list[str]:
    if not p < _LEVEL:
        return []
    worse = arms[0] if losses.sum() > 0 else arms[1]
    return [f"outcomes are missing more often in '{worse}' (p {p:.2g}): the pairs left are not a fair sample"]
