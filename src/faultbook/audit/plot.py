"""Figures of an audit: a table in, an `Axes` out."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from faultbook.audit.cells import STATUSES
from faultbook.figures import PALE, legend_above, rows_downwards, say_nothing, stacked_rows
from faultbook.style import COLOURS

STATUS_COLOURS = {
    "inconsistent": COLOURS["vermilion"],
    "ambiguous": COLOURS["orange"],
    "consistent": COLOURS["sky"],
    "recomputed": COLOURS["blue"],
    "quoted": PALE,
}
_NOTHING = "no such numbers in this data"
_ORDER = ("recomputed", "consistent", "ambiguous", "inconsistent", "quoted")


def plot_status(counts: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Stacked bars: how many printed numbers of each document have which status.

    Parameters
    ----------
    counts : DataFrame
        From `status_counts`.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.2 + 0.62 * len(counts)))[1]
    if counts.empty:
        return say_nothing(ax, _NOTHING)
    total = counts[list(STATUSES)].sum(axis=1).to_numpy()
    stacked_rows(
        ax,
        counts[list(_ORDER)],
        STATUS_COLOURS,
        light_text=("recomputed", "inconsistent"),
        smallest=0.028 * total.max(),
        text=str,
        height=0.68,
    )
    ax.set_yticks(range(len(counts)), counts["document"])
    for row, item in enumerate(counts.to_dict("records")):
        doubts = [f"{item[status]} {status}" for status in ("inconsistent", "ambiguous") if item[status]]
        ax.text(total[row] + 0.012 * total.max(), row, ", ".join(doubts), va="center", fontsize=9)
    ax.set_xlim(0, 1.3 * total.max())
    rows_downwards(ax)
    ax.set_xlabel("printed numbers")
    legend_above(ax, ncols=5, columnspacing=1.4, handlelength=1.2)
    return ax


def plot_intervals(intervals: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Printed intervals (bars) beside the exact bounds of the counts behind them (ticks).

    Parameters
    ----------
    intervals : DataFrame
        From `printed_intervals`, in percentage points.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.3 + 0.42 * len(intervals)))[1]
    if intervals.empty:
        return say_nothing(ax, _NOTHING)
    for row, item in enumerate(intervals.to_dict("records")):
        off = abs(item["low"] - item["exact_low"]) > 0.006 or abs(item["high"] - item["exact_high"]) > 0.006
        colour = COLOURS["vermilion"] if off else COLOURS["blue"]
        ax.plot([item["low"], item["high"]], [row, row], color=colour, linewidth=5, alpha=0.45, solid_capstyle="butt")
        ax.plot(item["effect"], row, "o", color=colour, markersize=5)
        ax.plot([item["exact_low"], item["exact_high"]], [row, row], "|", color=COLOURS["ink"], markersize=13, mew=1.6)
        if off:
            exact = f"[{item['exact_low']:.2f}, {item['exact_high']:.2f}] exact"
            text = f"[{item['low']:.2f}, {item['high']:.2f}] printed, {exact}"
            ax.text(
                (item["low"] + item["high"]) / 2,
                row - 0.3,
                text.replace("-", "−"),
                ha="center",
                va="bottom",
                fontsize=8,
            )
    ax.set_yticks(
        range(len(intervals)),
        [f"{label}, n = {n}" for label, n in zip(intervals["label"], intervals["n"], strict=True)],
    )
    rows_downwards(ax)
    ax.axvline(0, color=COLOURS["grey"], linewidth=1, zorder=0)
    ax.set_xlabel("change of the success rate with recovery (percentage points)")
    handles = [
        Line2D([], [], color=COLOURS["blue"], linewidth=5, alpha=0.45, label="printed interval"),
        Line2D([], [], color=COLOURS["ink"], marker="|", linestyle="", markersize=12, mew=1.6, label="exact bounds"),
        Line2D([], [], color=COLOURS["vermilion"], linewidth=5, alpha=0.45, label="printed and exact differ"),
    ]
    legend_above(ax, handles=handles, ncols=3, columnspacing=1.6)
    return ax


def plot_splits(splits: pd.DataFrame, level: float = 0.05, ax: Axes | None = None) -> Axes:
    """The exact McNemar p of every discordant split, beside the level.

    Parameters
    ----------
    splits : DataFrame
        From `margin_splits`.
    level : float
        Level below which a difference counts as detected.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(8, 3.4))[1]
    if splits.empty:
        return say_nothing(ax, _NOTHING)
    labels = [f"{a} : {b}" for a, b in zip(splits["only_a"], splits["only_b"], strict=True)]
    detected = splits["p"] < level
    ax.bar(labels, splits["p"], color=np.where(detected, COLOURS["vermilion"], COLOURS["sky"]), width=0.62)
    for index, p in enumerate(splits["p"]):
        ax.text(index, p + 0.012, f"{p:.3f}", ha="center", va="bottom", fontsize=9)
    ax.axhline(level, color=COLOURS["vermilion"], linewidth=1.6)
    ax.annotate(
        f"{level:g}", (1.005, level), xycoords=("axes fraction", "data"), va="center", color=COLOURS["vermilion"]
    )
    ax.set_ylim(0, max(0.75, splits["p"].max() * 1.15))
    ax.set_xlabel("pairs that only the first : only the second arm solved")
    ax.set_ylabel("exact two-sided p")
    return ax


def plot_solved_ranges(ranges: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How many runs a mean of graded scores leaves possible: perfect ones, and ones above zero.

    Parameters
    ----------
    ranges : DataFrame
        From `solved_ranges`.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.4 + 0.5 * len(ranges)))[1]
    if ranges.empty:
        return say_nothing(ax, _NOTHING)
    for row, item in enumerate(ranges.to_dict("records")):
        for key, colour, shift in (("perfect", COLOURS["blue"], -0.16), ("above_zero", COLOURS["orange"], 0.16)):
            low, high = item[f"{key}_low"], item[f"{key}_high"]
            ax.barh(row + shift, high - low, left=low, height=0.28, color=colour)
            ax.text(high + 1.5, row + shift, f"{low} to {high}", va="center", fontsize=8.5)
    ax.set_yticks(
        range(len(ranges)),
        [f"{row}: {text.rstrip(' %')} %" for row, text in zip(ranges["row"], ranges["printed"], strict=True)],
    )
    rows_downwards(ax)
    ax.set_xlim(0, ranges["runs"].max() * 1.14)
    ax.set_xlabel(f"runs, of {ranges['runs'].max()}")
    handles = [
        Patch(color=COLOURS["blue"], label="runs that may be perfect"),
        Patch(color=COLOURS["orange"], label="runs that may score above 0"),
    ]
    legend_above(ax, handles=handles, ncols=2)
    return ax


def plot_contradictions(pairs: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Pairs of printed numbers for one quantity: two dots joined by a line, each pair on its own row.

    Parameters
    ----------
    pairs : DataFrame
        From `contradictions`; the values of a pair are shown relative to the first one.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.3 + 0.46 * len(pairs)))[1]
    if pairs.empty:
        return say_nothing(ax, _NOTHING)
    change = 100 * (pairs["other_value"] / pairs["value"] - 1)
    for row, (item, percent) in enumerate(zip(pairs.to_dict("records"), change, strict=True)):
        ax.plot([0, percent], [row, row], color=COLOURS["grey"], linewidth=1.4, zorder=1)
        ax.plot(0, row, "o", color=COLOURS["blue"], markersize=7)
        ax.plot(percent, row, "D", color=COLOURS["vermilion"], markersize=6.5)
        side = "left" if percent >= 0 else "right"
        ax.annotate(
            f"{item['printed']} → {item['other_printed']}",
            (percent, row),
            xytext=(9 if side == "left" else -9, 0),
            textcoords="offset points",
            va="center",
            ha=side,
            fontsize=8.5,
        )
    ax.set_yticks(range(len(pairs)), [_short(cell) for cell in pairs["cell"]], fontsize=8.5)
    rows_downwards(ax)
    ax.margins(x=0.28)
    ax.axvline(0, color=COLOURS["grey"], linewidth=0.8, zorder=0)
    ax.set_xlabel("contradicting number relative to the first (%)")
    handles = [
        Line2D([], [], color=COLOURS["blue"], marker="o", linestyle="", markersize=7, label="printed number"),
        Line2D([], [], color=COLOURS["vermilion"], marker="D", linestyle="", markersize=6.5, label="printed elsewhere"),
    ]
    legend_above(ax, handles=handles, ncols=2)
    return ax


def _short(cell: str) -> str:
    _, table, row, column = cell.split("/", 3)
    return f"{row}, {column}  ({table})"
