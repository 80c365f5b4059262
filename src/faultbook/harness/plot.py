"""Figures of a harness comparison: a table in, an `Axes` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from faultbook.figures import PALE, legend_above, rows_downwards, say_nothing, stacked_rows
from faultbook.harness._plot_parts import GRID, LONGEST, draw_tile, legend_of, shown_name
from faultbook.harness._plot_universe import CELLS, cell_kinds, plot_universe
from faultbook.harness.compare import Comparison
from faultbook.harness.timing import PHASES
from faultbook.style import COLOURS
from faultbook.taxonomy import causes

__all__ = [
    "CELLS",
    "OUTCOME_COLOURS",
    "OWNER_COLOURS",
    "PHASE_COLOURS",
    "cell_kinds",
    "plot_causes",
    "plot_difference",
    "plot_mosaic",
    "plot_pairwise",
    "plot_time",
    "plot_universe",
]

OUTCOME_COLOURS = {
    "both": COLOURS["green"],
    "only_a": COLOURS["blue"],
    "only_b": COLOURS["orange"],
    "neither": PALE,
}
PHASE_COLOURS = {
    "setup": COLOURS["sky"],
    "agent": COLOURS["blue"],
    "verifier": COLOURS["green"],
    "unexplained": PALE,
}
OWNER_COLOURS = {
    "agent": COLOURS["blue"],
    "harness": COLOURS["purple"],
    "provider": COLOURS["vermilion"],
    "environment": COLOURS["orange"],
    "verifier": COLOURS["green"],
    "operator": COLOURS["sky"],
    "unknown": COLOURS["grey"],
    "none on record": PALE,
}
_DECADES = 3  # an axis of more has ticks at powers of ten only


def plot_mosaic(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Complete pairs by outcome, and the pairs that are not complete beside them: areas are numbers of pairs."""
    ax = ax or plt.subplots(figsize=(5.6, 4.4))[1]
    table = comparison.table
    if table is None or not comparison.pairs:
        return say_nothing(ax, "no pairs of one attempt each")
    complete, lost = comparison.complete_pairs, comparison.pairs - comparison.complete_pairs
    first, second = shown_name(comparison.arm_a), shown_name(comparison.arm_b)
    names = {"both": "both", "only_a": f"only {first}", "only_b": f"only {second}", "neither": "neither"}
    left, unnamed = 0.0, []
    for upper, lower in (("both", "only_a"), ("only_b", "neither")):
        size = table[upper] + table[lower]
        width, bottom = size / comparison.pairs, 1.0
        for name in (upper, lower):
            height = table[name] / size if size else 0.0
            bottom -= height
            if table[name]:
                tile = Rectangle((left, bottom), width, height, facecolor=OUTCOME_COLOURS[name], edgecolor="white")
                unnamed += draw_tile(ax, tile, names[name], table[name], light=name in ("both", "only_a"))
        left += width
    if lost:
        tile = Rectangle((left, 0), 1 - left, 1, facecolor="white", hatch="///", edgecolor=COLOURS["grey"])
        unnamed += draw_tile(ax, tile, "incomplete", lost, light=False)
    solved = f"{first}: {table['both'] + table['only_a']} of {complete} complete pairs solved"
    ax.text(0, 1.02, f"{solved}\n{second}: {table['both'] + table['only_b']} of {complete}", va="bottom", fontsize=9)
    if unnamed:
        ax.legend(handles=unnamed, loc="upper left", bbox_to_anchor=(0, 0), fontsize=9)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_axis_off()
    return ax


def plot_difference(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """The difference in pp under each estimand with its interval, and the bounds over every completion of the plan."""
    ax = ax or plt.subplots(figsize=(8.2, 2.9))[1]
    shown = comparison.estimands.dropna(subset="difference").reset_index(drop=True)
    if shown.empty:
        return say_nothing(ax, "no complete pair")
    bounds, main = comparison.bounds, comparison.estimands["estimand"].iloc[0]
    place = len(shown)
    ax.axvline(0, color=COLOURS["ink"], linewidth=0.8)
    # With an edge, since bounds that nothing is missing from have no width.
    ax.barh(place, bounds.high - bounds.low, left=bounds.low, height=0.34, color=PALE, edgecolor=COLOURS["grey"])
    over = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    text = f"{bounds.low:+.1f} to {bounds.high:+.1f}"
    right: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
    ax.annotate(text, (bounds.high, place), bbox=over, **right)
    for row, values in enumerate(shown.to_dict("records")):
        colour = COLOURS["blue"] if values["estimand"] == main else COLOURS["grey"]
        ax.plot([values["low"], values["high"]], [row, row], color=colour, linewidth=2.2)
        ax.plot(values["difference"], row, "o", color=colour, markersize=7)
        end = np.nanmax([values["high"], values["difference"]])
        ax.annotate(f"{values['difference']:+.1f}", (end, row), **right)
    names = [f"{name} ({pairs})" for name, pairs in zip(shown["estimand"], shown["pairs"], strict=True)]
    ax.set_yticks(range(place + 1), [*names, f"every completion of the plan ({comparison.pairs})"])
    ax.set_xlabel(f"{shown_name(comparison.arm_a)} less {shown_name(comparison.arm_b)} (pp)")
    ax.margins(x=0.14)
    ax.set_ylim(-0.5, place + 0.5)
    ax.grid(axis="x", color=GRID)
    rows_downwards(ax)
    return ax


def plot_causes(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Trials by primary cause and arm, coloured by whose doing the cause is; those without one come last.

    Parameters
    ----------
    table : DataFrame
        From `cause_table`.
    ax : Axes, optional
        Where to draw.
    """
    if table.empty:
        return say_nothing(ax or plt.subplots(figsize=(6, 2))[1])
    states = table["state"].str.replace("_", " ").replace("finished", "finished, cause not on record")
    named = table.assign(name=table["cause"].fillna(states))
    order = [*(name for name in causes() if name in set(named["name"])), *_without_cause(named)]
    arms = list(dict.fromkeys(named["arm"]))
    ax = ax or plt.subplots(figsize=(8, 1.4 + 0.3 * len(order) * len(arms)))[1]
    owners = named.groupby("name")["owner"].first()
    height = 0.8 / len(arms)
    for number, arm in enumerate(arms):
        counts = named[named["arm"] == arm].groupby("name")["trials"].sum().reindex(order, fill_value=0)
        for row, name in enumerate(order):
            place = row + (number - (len(arms) - 1) / 2) * height
            owner = owners[name] if pd.notna(owners[name]) else "none on record"
            ax.barh(place, counts[name], height=height * 0.9, color=OWNER_COLOURS[owner])
            ax.text(counts[name], place, f" {counts[name]}  {shown_name(arm)}", va="center", fontsize=8)
    ax.set_yticks(range(len(order)), order)
    ax.set_xlabel("trials")
    ax.margins(x=0.2)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    rows_downwards(ax)
    present = [owner if pd.notna(owner) else "none on record" for owner in owners]
    entries = [(owner, colour, "") for owner, colour in OWNER_COLOURS.items() if owner in present]
    legend_of(ax, entries, title="whose doing", alignment="left")
    return ax


def _without_cause(named: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(named["name"]) if name not in causes()]


def plot_pairwise(
    cells: pd.DataFrame, arms: Sequence[str], quantity: str = "input_tokens", ax: Axes | None = None
) -> Axes:
    """A quantity of both arms by task, on logarithmic axes; tasks where one side is not metered lie at the margin.

    Parameters
    ----------
    cells : DataFrame
        From `held`, without suspect zeros (`usage.metered_only`).
    arms : sequence of str
        The arms of the horizontal and the vertical axis.
    quantity : str
        A column of `Trials` that is above 0, such as input_tokens or total_seconds.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(5.4, 5))[1]
    points = cells[cells["arm"].isin(arms)].pivot_table(
        index=["task_id", "attempt"], columns="arm", values=quantity, aggfunc="first", dropna=False
    )
    points = points.reindex(columns=list(arms)).astype("float64")
    points = points.where(points > 0)
    values = points.to_numpy()
    if not np.isfinite(values).any():
        return say_nothing(ax, f"no {quantity.replace('_', ' ')} on record")
    low, high = np.nanmin(values) / 1.6, np.nanmax(values) * 1.6
    margin = low / 1.5
    both = points.dropna()
    ax.plot(both[arms[0]], both[arms[1]], "o", color=COLOURS["blue"], alpha=0.8, label=f"both ({len(both)})")
    for axis, arm in enumerate(arms):
        alone = points[points[arm].notna() & points[arms[1 - axis]].isna()][arm]
        xy = (alone, [margin] * len(alone)) if axis == 0 else ([margin] * len(alone), alone)
        if len(alone):
            label = f"only {shown_name(arm)} ({len(alone)})"
            ax.plot(*xy, "|" if axis == 0 else "_", color=COLOURS["vermilion"], markersize=10, label=label)
    ax.plot([low, high], [low, high], color=COLOURS["grey"], linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlim=(margin / 1.2, high), ylim=(margin / 1.2, high))
    name = quantity.replace("_", " ")
    ax.set(xlabel=f"{name}, {shown_name(arms[0])}", ylabel=f"{name}, {shown_name(arms[1])}")
    for one in (ax.xaxis, ax.yaxis):  # in plain numbers: the house style takes "$10^5$" literally
        one.set_major_locator(LogLocator(subs=(1,) if high / margin > 10**_DECADES else (1, 2, 5)))
        one.set_major_formatter(EngFormatter(sep=""))
        one.set_minor_formatter(NullFormatter())
    ax.grid(color=GRID)
    legend_above(ax, ncols=1 if max(len(str(arm)) for arm in arms) > LONGEST // 2 else 3)
    return ax


def plot_time(arms: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Seconds per timed trial by phase and arm, with what no phase explains.

    Parameters
    ----------
    arms : DataFrame
        `arms` from `timing`.
    ax : Axes, optional
        Where to draw.
    """
    names = [*(phase.removesuffix("_seconds") for phase in PHASES), "unexplained"]
    order = list(dict.fromkeys(arms["arm"]))
    ax = ax or plt.subplots(figsize=(8, 1.5 + 0.5 * max(len(order), 1)))[1]
    widths = arms.pivot_table(index="arm", columns="phase", values="per_trial", sort=False, dropna=False)
    widths = widths.reindex(index=order, columns=names).astype("float64")
    if not widths.notna().to_numpy().any():
        return say_nothing(ax, "no times on record")
    longest = float(widths.sum(axis=1).max())
    stacked_rows(
        ax,
        widths.fillna(0).reset_index(drop=True),
        PHASE_COLOURS,
        light_text=("agent", "verifier"),
        smallest=0.06 * longest,
        text="{:.3g}".format,
        height=0.6,
    )
    timed = arms.groupby("arm", sort=False)["timed"].first()
    ax.set_yticks(range(len(order)), [f"{shown_name(arm)} ({timed[arm]})" for arm in order])
    ax.set_xlabel("seconds per timed trial")
    rows_downwards(ax)
    legend_above(ax, ncols=4)
    return ax
