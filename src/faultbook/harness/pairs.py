"""The same tasks under both arms: what is complete, what is not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faultbook.stats.paired import SignFlip, sign_flip

COLUMNS = [
    "task_id",
    "planned_a",
    "planned_b",
    "observed_a",
    "observed_b",
    "solved_a",
    "solved_b",
    "same_task",
    "complete",
    "outcome",
    "why",
]
OUTCOMES = ("both", "only_a", "only_b", "neither")
_TYPES = (
    {"task_id": "string", "same_task": "bool", "complete": "bool", "outcome": "string", "why": "string"}
    | dict.fromkeys(("planned_a", "planned_b", "observed_a", "observed_b"), "int64")
    | dict.fromkeys(("solved_a", "solved_b"), "int64")
)
_STATES = {
    "not_started": "not started",
    "unfinished": "unfinished",
    "unreadable": "unreadable",
    "finished": "no verdict",
}
_DRAWS = 100_000


def pair_table(cells: pd.DataFrame, arms: tuple[str, str], *, verdict: str = "verdict") -> pd.DataFrame:
    """Lay the two arms side by side.

    Parameters
    ----------
    cells : DataFrame
        Planned trials, from `held`.
    arms : (str, str)
        The two arms.
    verdict : {"verdict", "recorded"}
        Which outcome counts: verdicts that stand, or every recorded one.

    Returns
    -------
    DataFrame
        One row a task that is planned in both arms: planned attempts, observed outcomes and solved ones of each arm;
        `complete` if every planned attempt has an outcome and all were at the same task (its checksum, where it is on
        record: `same_task`); `outcome`, one of `OUTCOMES`, for a complete pair of one attempt each; `why` a pair
        is not complete.
    """
    cells = cells[cells["arm"].isin(arms)]
    counted = cells.assign(observed=cells[verdict].notna(), solved=cells[verdict].fillna(False).astype(bool))
    first, second = (_side(counted[counted["arm"] == arm]) for arm in arms)
    both = first.add_suffix("_a").join(second.add_suffix("_b"), how="inner")
    if both.empty:
        return pd.DataFrame(columns=COLUMNS).astype(_TYPES)
    both = both.assign(same_task=~both.index.isin(changed_tasks(cells)))
    full = (both["observed_a"] == both["planned_a"]) & (both["observed_b"] == both["planned_b"])
    both = both.assign(complete=full & both["same_task"], outcome=outcomes(both))
    reasons: list[Any] = [
        _reason(why_a, why_b, arms) if same else "the tasks differ (checksum)"
        for why_a, why_b, same in zip(both["why_a"], both["why_b"], both["same_task"], strict=True)
    ]
    table = both.assign(outcome=both["outcome"].where(both["complete"] & one_attempt(both)), why=reasons)
    return table.reset_index()[COLUMNS].astype(_TYPES)


def changed_tasks(cells: pd.DataFrame) -> list[str]:
    """Tasks that are not the same in all of their trials: their checksums differ."""
    checksums = cells.groupby("task_id")["task_checksum"].nunique()
    return [str(task) for task in checksums.index[checksums > 1]]


def one_attempt(pairs: pd.DataFrame) -> pd.Series[Any]:
    """Whether a task is planned once in each arm: only then are its two trials a pair."""
    return (pairs["planned_a"] == 1) & (pairs["planned_b"] == 1)


def outcomes(pairs: pd.DataFrame) -> pd.Series[Any]:
    """Who solved each task, whatever is missing counted as not solved: one of `OUTCOMES`."""
    first, second = pairs["solved_a"] > 0, pairs["solved_b"] > 0
    found = pd.Series("neither", index=pairs.index, dtype="string")
    return found.mask(first & second, "both").mask(first & ~second, "only_a").mask(second & ~first, "only_b")


def table_counts(pairs: pd.DataFrame) -> dict[str, int]:
    """The paired table of complete pairs: both, only_a, only_b and neither."""
    counts = pairs.loc[pairs["complete"], "outcome"].value_counts()
    return {name: int(counts.get(name, 0)) for name in OUTCOMES}


def axis_counts(cells: pd.DataFrame, arms: Sequence[str], axes: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    """For each axis, of how many planned pairs it is known on both sides, on one, on none.

    Parameters
    ----------
    cells : DataFrame
        Planned trials, from `held`.
    arms : sequence of str
        The two arms.
    axes : dict of str to Series
        Name of the axis to whether a planned trial has it.

    Returns
    -------
    DataFrame
        axis, pairs (planned), both, only_a, only_b, neither. A pair has it if all its planned attempts do.
    """
    rows: list[tuple[Any, ...]] = []
    for name, known in axes.items():
        full = side_by_side(known.astype(bool), cells, arms, "min").astype(bool)
        first, second = full[arms[0]], full[arms[1]]
        counts = [int(part.sum()) for part in (first & second, first & ~second, ~first & second, ~first & ~second)]
        rows.append((name, len(full), *counts))
    return pd.DataFrame(rows, columns=["axis", "pairs", "both", "only_a", "only_b", "neither"])


def side_by_side(values: pd.Series[Any], cells: pd.DataFrame, arms: Sequence[str], how: str) -> pd.DataFrame:
    """One row a task that is planned in all the arms, one column an arm: its planned trials' values put together.

    Parameters
    ----------
    values : Series
        A value for each planned trial; none missing.
    cells : DataFrame
        Planned trials, from `held`, with the index of the values.
    arms : sequence of str
        The arms, in the order of the columns.
    how : {"sum", "min", "size"}
        How the values of several attempts are put together.
    """
    here = {arm: cells["arm"] == arm for arm in arms}
    columns = {arm: values[rows].groupby(cells.loc[rows, "task_id"], sort=False).agg(how) for arm, rows in here.items()}
    return pd.DataFrame(columns).dropna()


def flipped(sums: pd.Series[Any] | np.ndarray[Any, Any]) -> SignFlip:
    """Sign-flip test over tasks: exact where that is in reach, else by 100,000 draws of a fixed seed."""
    try:
        return sign_flip(sums)
    except ValueError:
        return sign_flip(sums, n_draws=_DRAWS, seed=0)


def _side(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a task of an arm."""
    state = cells["state"].map(_STATES).mask(cells["disagree"], "contradictory records")
    void = cells["recorded"].notna() & ~cells["observed"]
    why = state.mask(void, "void verdict (" + cells["cause"].fillna("no cause") + ")").where(~cells["observed"])
    groups = cells.assign(why=why.astype("string")).groupby("task_id", sort=False)
    return pd.DataFrame(
        {
            "planned": groups.size(),
            "observed": groups["observed"].sum(),
            "solved": groups["solved"].sum(),
            "why": groups["why"].first(),
        }
    )


def _reason(why_a: Any, why_b: Any, arms: tuple[str, str]) -> str | None:
    parts = [f"{arm}: {why}" for arm, why in zip(arms, (why_a, why_b), strict=True) if pd.notna(why)]
    return "; ".join(parts) or None
