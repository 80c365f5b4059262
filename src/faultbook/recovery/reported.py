"""What counts of rescues and harms printed effects allow, from the printed numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.reconstruct import rescue_harm_candidates

_LEAST_REACH = 0.05  # counts from which a bootstrap would print the bounds less often are left out
COLUMNS = [
    "row",
    "effect_pp",
    "low_pp",
    "high_pp",
    "n",
    "net",
    "rescues",
    "harms",
    "reach",
    "mcnemar",
    "others",
    "note",
]
_TYPES = dict.fromkeys(("net", "rescues", "harms"), "Int64") | {"n": "int64", "others": "string", "note": "string"}


def reconstruct_effects(reported: pd.DataFrame, n_tasks: Mapping[str, int]) -> pd.DataFrame:
    """Find the rescues and harms behind printed effects with their intervals.

    Parameters
    ----------
    reported : DataFrame
        Printed cells with row, column ("effect" or "change", "low", "high") and value in percentage points.
    n_tasks : mapping of str to int
        The number of tasks behind each row; rows that are not named are left out.

    Returns
    -------
    DataFrame
        One row a printed effect of branches with an action against branches without, one pair a task: row, effect_pp,
        low_pp, high_pp, n, net (rescues less harms); rescues, harms and reach of the most probable counts (how
        probably a bootstrap of 10,000 draws prints just these bounds); mcnemar (exact p of those counts), others
        (further counts that print them at least once in twenty times), note, which says why something is missing.

    Raises
    ------
    FaultbookError
        If a named row has no printed effect, or prints two that differ; or if a number of tasks is below 1.
    """
    cells = reported.assign(column=reported["column"].replace("change", "effect")).dropna(subset="value")
    rows = []
    for name, n in n_tasks.items():
        if n < 1:
            raise FaultbookError(f"row '{name}' is of {n} tasks; give a number of at least 1")
        here = cells[cells["row"] == name]
        value, low, high = (_printed(here, name, column) for column in ("effect", "low", "high"))
        if math.isnan(value):
            known = ", ".join(dict.fromkeys(reported["row"])) or "none"
            raise FaultbookError(f"no printed effect in row '{name}'; the rows are {known}")
        cell = {"row": name, "effect_pp": value, "low_pp": low, "high_pp": high, "n": n}
        rows.append(cell | _counts(value, low, high, n))
    return pd.DataFrame(rows, columns=COLUMNS).astype(_TYPES)


def _printed(cells: pd.DataFrame, row: str, column: str) -> float:
    """The number in a column of a row, NaN if there is none; a number may stand there again, but not another one."""
    values = [float(value) for value in cells.loc[cells["column"] == column, "value"].unique()]
    if len(values) > 1:
        both = " and ".join(f"{value:g}" for value in values[:2])
        raise FaultbookError(f"row '{row}' prints {both} as {column}; select one source, or one table")
    return values[0] if values else math.nan


def _counts(effect: float, low: float, high: float, n: int) -> dict[str, object]:
    net = _on_grid(effect, n)
    if net is None or abs(net) > n:
        return {"note": f"{effect:g} is no number of {n} tasks"}
    if math.isnan(low + high):
        return {"net": net, "note": "no interval printed"}
    bounds = [_on_grid(bound, n) for bound in (low, high)]
    off = [f"{value:g}" for value, count in zip((low, high), bounds, strict=True) if count is None]
    # a bound that is off the grid is taken as the nearest number of tasks, and said to be off
    first, last = (
        round(value * n / 100) if count is None else count for value, count in zip((low, high), bounds, strict=True)
    )
    found = rescue_harm_candidates(net, n, [(first, last)])
    likely = found[found["reach_probability"] >= _LEAST_REACH].sort_values("reach_probability", ascending=False)
    note = f"{' and '.join(off)} {'is no number' if len(off) == 1 else 'are no numbers'} of {n} tasks" if off else ""
    if likely.empty:
        return {"net": net, "note": "; ".join(filter(None, [note, "no counts print these bounds"]))}
    best = likely.iloc[0]
    others = [f"{row.rescues}/{row.harms}" for row in likely.iloc[1:].itertuples()]
    return {
        "net": net,
        "rescues": int(best["rescues"]),
        "harms": int(best["harms"]),
        "reach": float(best["reach_probability"]),
        "mcnemar": mcnemar_exact(int(best["rescues"]), int(best["harms"])).p,
        "others": ", ".join(others),
        "note": note,
    }


def _on_grid(percentage_points: float, n: int) -> int | None:
    """The number of n tasks that prints as this, to two decimals."""
    count = round(percentage_points * n / 100)
    return count if abs(100 * count / n - percentage_points) < 0.0051 else None
