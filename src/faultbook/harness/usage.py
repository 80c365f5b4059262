"""Tokens, requests and cost of trials: totals over what was metered, with the share that was, and paired ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faultbook.harness.pairs import changed_tasks, side_by_side
from faultbook.harness.plan import KEY, held_two
from faultbook.stats.bootstrap import cluster_ratio
from faultbook.tables import USAGE_STATUSES

QUANTITIES = ("input_tokens", "output_tokens", "requests", "cost")
NO_COST_CLAIM = "tokens are not a cost: prices differ by model, by cache and by direction"
_ARM_COLUMNS = [
    "arm",
    "quantity",
    "finished",
    "metered",
    "share_metered",
    "total",
    "per_trial",
    *USAGE_STATUSES,
    "cache",
]
_PAIRED_COLUMNS = ["quantity", "pairs", "metered_pairs", "total_a", "total_b", "ratio", "low", "high", "method", "note"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What trials used.

    Attributes
    ----------
    arms : DataFrame
        One row an arm and quantity (input_tokens, output_tokens, requests, cost in USD as recorded): finished trials,
        those metered, their share; the total and the mean over metered trials alone (missing where there are none);
        finished trials by usage status; and whether input_tokens hold the cache: included, excluded, mixed, unknown.
    paired : DataFrame
        One row a quantity: planned pairs, pairs metered in both arms, totals over these, the ratio of a to b with its
        interval by resampling tasks, and a note where there is none.
    suspected : DataFrame
        arm, task_id, attempt, state, cause: trials that record zero tokens, which mostly means that nothing was
        metered. They enter no total.
    """

    arms: pd.DataFrame
    paired: pd.DataFrame
    suspected: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """The paired ratios."""
        return self.paired


def usage(
    trials: pd.DataFrame,
    planned: pd.DataFrame | None = None,
    *,
    arms: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> Usage:
    """Say what trials used, of how many that is known, and how the arms compare on pairs where both are metered.

    Parameters
    ----------
    trials, planned, arms, level
        As for `compare`.
    seed : int or numpy.random.Generator
        Of the intervals.

    Returns
    -------
    Usage
        A total is over metered trials alone, never over all; a trial whose tokens are reported for one direction only
        counts for that direction, one that is metered in part for neither. Ratios are of totals over the same pairs of
        finished trials at the same task; where one arm counts cached input and the other does not, there is none. It
        makes no claim on cost from tokens.

    Raises
    ------
    FaultbookError
        If there are not two arms to compare, or nothing is planned.
    """
    found, chosen = held_two(trials, planned, arms)
    cells = metered_only(found.cells)
    finished = cells[cells["state"] == "finished"]
    rows = [_of_arm(finished[finished["arm"] == arm], arm, name) for arm in chosen for name in QUANTITIES]
    types = dict.fromkeys(("finished", "metered", *USAGE_STATUSES), "int64")
    by_arm = pd.DataFrame(rows, columns=_ARM_COLUMNS).astype(types)
    paired = [_paired(cells, chosen, name, level, seed) for name in QUANTITIES]
    suspected = cells.loc[cells["usage_status"] == "zero_suspect", [*KEY, "state", "cause"]]
    return Usage(by_arm, pd.DataFrame(paired, columns=_PAIRED_COLUMNS), suspected.reset_index(drop=True))


def metered_only(cells: pd.DataFrame) -> pd.DataFrame:
    """Planned trials without quantities that are no total of the trial.

    Those are zeros that mean that nothing was metered, sums over some steps only, and what is on record of a trial
    that has not finished or whose records contradict one another.
    """
    status = cells["usage_status"]
    partial = (status == "partial") & cells["input_tokens"].notna() & cells["output_tokens"].notna()
    untold = (cells["state"] != "finished") | cells["disagree"]
    lacking = {
        name: untold | (status == "zero_suspect") & (cells[name].eq(0).fillna(False) | name.endswith("tokens"))
        for name in QUANTITIES
    }
    tokens = {name: lacking[name] | partial for name in ("input_tokens", "output_tokens")}
    return cells.assign(**{name: cells[name].mask(rows) for name, rows in (lacking | tokens).items()})


def _of_arm(finished: pd.DataFrame, arm: str, name: str) -> dict[str, Any]:
    values = finished[name].dropna()
    statuses = finished["usage_status"].value_counts()
    return {
        "arm": arm,
        "quantity": name,
        "finished": len(finished),
        "metered": len(values),
        "share_metered": len(values) / len(finished) if len(finished) else math.nan,
        "total": math.fsum(values) if len(values) else math.nan,
        "per_trial": math.fsum(values) / len(values) if len(values) else math.nan,
        **{status: int(statuses.get(status, 0)) for status in USAGE_STATUSES},
        "cache": _cache(finished.loc[finished["input_tokens"].notna(), "cache_included"]),
    }


def _cache(column: pd.Series[Any]) -> str:
    """Whether the input tokens of trials hold what was read from a cache."""
    kinds = set(column.dropna())
    if column.isna().any() or not len(column):
        return "unknown"
    return "mixed" if len(kinds) > 1 else ("included" if kinds.pop() else "excluded")


def paired_totals(cells: pd.DataFrame, arms: Sequence[str], name: str) -> pd.DataFrame:
    """Totals of a quantity by task, for the tasks of which every planned trial in both arms has it: columns a and b."""
    cells = cells[~cells["task_id"].isin(changed_tasks(cells))]
    known = side_by_side(cells[name].notna(), cells, arms, "min").astype(bool).all(axis=1)
    totals = side_by_side(cells[name].astype("Float64").fillna(0).astype(float), cells, arms, "sum")
    return totals[known].set_axis(["a", "b"], axis=1)


def _paired(
    cells: pd.DataFrame, arms: tuple[str, str], name: str, level: float, seed: int | np.random.Generator
) -> dict[str, Any]:
    pairs = len(side_by_side(cells["attempt"], cells, arms, "size"))
    totals = paired_totals(cells, arms, name)
    row: dict[str, Any] = dict.fromkeys(_PAIRED_COLUMNS, math.nan) | {"quantity": name, "method": "", "note": ""}
    row |= {"pairs": pairs, "metered_pairs": len(totals)}
    if totals.empty:
        return row | {"note": "metered in both arms of no pair"}
    row |= {"total_a": math.fsum(totals["a"]), "total_b": math.fsum(totals["b"])}
    if name == "input_tokens":
        counted = cells[cells["task_id"].isin(totals.index)]
        kinds = [_cache(counted.loc[counted["arm"] == arm, "cache_included"]) for arm in arms]
        if kinds[0] != kinds[1] or kinds[0] == "mixed":
            return row | {"note": f"cached input is {kinds[0]} in one arm and {kinds[1]} in the other: no ratio"}
        if kinds[0] == "unknown":
            row |= {"note": "whether cached input is counted is not known for both arms"}
    if row["total_b"] == 0:
        return row | {"note": "the second arm used none: no ratio"}
    if (totals["b"] == 0).any():
        # A resample of such tasks alone would have no ratio.
        why = "ratio of sums; no interval: the second arm used none at some task"
        return row | {"ratio": row["total_a"] / row["total_b"], "method": why}
    found = cluster_ratio(totals["a"], totals["b"], totals.index, level=level, seed=seed)
    return row | {"ratio": found.estimate, "low": found.low, "high": found.high, "method": found.method}
