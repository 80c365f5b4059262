"""The figure of the planned universe: what became of each planned trial, cell by cell."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from faultbook.figures import rows_downwards, say_nothing
from faultbook.harness._plot_parts import legend_of, shown_name
from faultbook.harness.plan import KEY, arms_of
from faultbook.style import COLOURS
from faultbook.taxonomy import causes

# What may stand in a cell of the planned universe: colour, hatch.
CELLS: dict[str, tuple[str, str]] = {
    "solved": (COLOURS["green"], ""),
    "not solved, ended by itself": (COLOURS["vermilion"], ""),
    "not solved, budget used up": (COLOURS["orange"], ""),
    "not solved, harness failed": (COLOURS["purple"], ""),
    "not solved, cause not known": ("#F3C9B5", ""),
    "not solved, ended from outside": (COLOURS["yellow"], ""),
    "ended from outside, no verdict that counts": (COLOURS["sky"], ""),
    "finished without a verdict": (COLOURS["grey"], ""),
    "records contradict": (COLOURS["grey"], "xxx"),
    "unreadable": ("white", "xxx"),
    "unfinished": ("white", "///"),
    "not started": ("white", ""),
}
_MOST_NAMES = 60  # tasks whose names are still legible below a row of cells


def plot_universe(cells: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The planned universe: one cell a planned trial, coloured by its state and cause.

    Parameters
    ----------
    cells : DataFrame
        From `held`.
    ax : Axes, optional
        Where to draw.
    """
    if cells.empty:
        return say_nothing(ax or plt.subplots(figsize=(6, 2))[1])
    tasks, rows = list(dict.fromkeys(cells["task_id"])), _rows(cells)
    ax = ax or plt.subplots(figsize=(max(6.5, min(15, 0.36 * len(tasks) + 2)), 1.9 + 0.42 * len(rows)))[1]
    kinds = cell_kinds(cells)
    place = {task: column for column, task in enumerate(tasks)}
    for kind, task, arm, attempt in zip(kinds, cells["task_id"], cells["arm"], cells["attempt"], strict=True):
        colour, hatch = CELLS[kind]
        corner = (place[task] - 0.45, rows[arm, attempt] - 0.42)
        edge = COLOURS["grey"] if colour == "white" else "white"
        ax.add_patch(Rectangle(corner, 0.9, 0.84, facecolor=colour, hatch=hatch, edgecolor=edge, linewidth=0.8))
    ax.set_xlim(-0.6, len(tasks) - 0.4)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    several = cells["attempt"].nunique() > 1
    ax.set_yticks(
        range(len(rows)), [f"{shown_name(arm)}, {attempt}" if several else shown_name(arm) for arm, attempt in rows]
    )
    if len(tasks) <= _MOST_NAMES:
        ax.set_xticks(range(len(tasks)), [shown_name(task) for task in tasks], rotation=90, fontsize=8)
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{len(tasks)} planned tasks")
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    rows_downwards(ax)
    counts = kinds.value_counts()
    legend_of(ax, [(f"{kind} ({counts[kind]})", *style) for kind, style in CELLS.items() if kind in counts])
    return ax


def cell_kinds(cells: pd.DataFrame) -> pd.Series[Any]:
    """What each planned trial is in the figure: a key of `CELLS`."""
    known = causes()
    owner = cells["cause"].map({name: cause.owner for name, cause in known.items()})
    failed = cells["verdict"].notna() & ~cells["verdict"].fillna(True).astype(bool)
    finished = cells["state"] == "finished"
    choices = {
        "records contradict": cells["disagree"],
        "not started": cells["state"] == "not_started",
        "unfinished": cells["state"] == "unfinished",
        "unreadable": cells["state"] == "unreadable",
        "solved": cells["verdict"].fillna(False).astype(bool),
        "not solved, budget used up": failed & (cells["cause"] == "agent_budget_exhausted"),
        "not solved, ended by itself": failed & (owner == "agent"),
        "not solved, harness failed": failed & (owner == "harness"),
        "not solved, cause not known": failed & (owner.isna() | (owner == "unknown")),
        "not solved, ended from outside": failed,
        "ended from outside, no verdict that counts": finished & owner.notna() & ~owner.isin(["agent", "harness"]),
    }
    masks = [mask.fillna(False).to_numpy(dtype=bool) for mask in choices.values()]
    return pd.Series(np.select(masks, list(choices), "finished without a verdict"), index=cells.index, dtype="string")


def _rows(cells: pd.DataFrame) -> dict[tuple[str, int], int]:
    """The row of each arm and attempt: arms in their order, attempts below one another."""
    pairs = cells[KEY].drop_duplicates(["arm", "attempt"])
    order = sorted(
        zip(pairs["arm"], pairs["attempt"], strict=True), key=lambda pair: (arms_of(cells).index(pair[0]), pair[1])
    )
    return {pair: row for row, pair in enumerate(order)}
