"""Figures of recovery: a table in, an `Axes` out."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faultbook.figures import PALE, legend_above, rows_downwards, say_nothing, stacked_rows
from faultbook.style import COLOURS

OUTCOME_COLOURS = {
    "rescue": COLOURS["green"],
    "harm": COLOURS["vermilion"],
    "stable success": "#BFD7EA",
    "stable failure": PALE,
}
CONDITION_COLOURS = {
    "clean": COLOURS["blue"],
    "stale1": COLOURS["orange"],
    "stale2": COLOURS["vermilion"],
    "missing": COLOURS["purple"],
}
GATES = ("delay", "error", "failure", "utility", "tie", "not evaluable")
_GRID = "#E5E8EB"


def plot_outcomes(effects: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How the pairs of each cell end: rescued, harmed, or the same either way.

    Parameters
    ----------
    effects : DataFrame
        From `effects`, of one action: condition, delay and the four counts.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.3 + 0.36 * max(len(effects), 1)))[1]
    if effects.empty:
        return say_nothing(ax)
    columns = {
        "rescue": "rescues",
        "stable success": "stable_successes",
        "stable failure": "stable_failures",
        "harm": "harms",
    }
    counts = pd.DataFrame({name: effects[column].to_numpy() for name, column in columns.items()})
    widest = float(counts.sum(axis=1).max())
    stacked_rows(
        ax,
        counts,
        OUTCOME_COLOURS,
        light_text=("rescue", "harm"),
        smallest=0.018 * widest,
        text="{:.0f}".format,
        height=0.72,
    )
    names = [
        f"{condition}, delay {delay}" for condition, delay in zip(effects["condition"], effects["delay"], strict=True)
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set_xlim(0, widest)
    ax.set_xlabel("pairs")
    rows_downwards(ax)
    legend_above(ax, ncols=4, columnspacing=1.2)
    return ax


def plot_effects(effects: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The mean effect with its interval, by delay and condition.

    Parameters
    ----------
    effects : DataFrame
        From `effects`, of one action.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(8, 4.2))[1]
    if effects.empty:
        return say_nothing(ax)
    delays = sorted(effects["delay"].unique())
    conditions = list(dict.fromkeys(effects["condition"]))
    for number, condition in enumerate(conditions):
        part = effects[effects["condition"] == condition].sort_values("delay")
        colour = CONDITION_COLOURS.get(condition, COLOURS["ink"])
        place = np.array([delays.index(delay) for delay in part["delay"]]) + 0.09 * (number - (len(conditions) - 1) / 2)
        ax.vlines(place, part["low"].astype("float64"), part["high"].astype("float64"), color=colour, linewidth=2)
        ax.plot(place, part["effect_pp"], "o-", color=colour, linewidth=1, label=condition)
    ax.axhline(0, color=COLOURS["ink"], linewidth=0.8)
    ax.set_xticks(range(len(delays)), delays)
    ax.set_xlabel("delay (actions between the disturbed observation and the recovery)")
    ax.set_ylabel("mean effect (pp)")
    ax.grid(axis="y", color=_GRID)
    legend_above(ax, ncols=4)
    return ax


def plot_plane(candidates: pd.DataFrame, harm_penalty: float = 2.0, ax: Axes | None = None) -> Axes:
    """Where the utility gate runs between the two success estimates, and what came of the candidates.

    Parameters
    ----------
    candidates : DataFrame
        p0, p1 and tau of each candidate; one without p0 or p1 has no place here, and is not counted either.
    harm_penalty : float
        λ ≥ 0 of the curve p1 = λ p0 / (1 − p0 + λ p0), where rescue score and weighted harm score are equal.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(6.4, 6))[1]
    grid = np.linspace(0, 1, 201)
    weighted = harm_penalty * grid
    # with λ = 0 a harm weighs nothing: the curve is the axis, and at p0 = 1 the formula is 0/0
    curve = np.divide(weighted, 1 - grid + weighted, out=np.zeros_like(grid), where=weighted > 0)
    ax.fill_between(grid, curve, 1, color="#EAF4EF", zorder=0)
    ax.plot(grid, curve, color=COLOURS["ink"], linewidth=1.4)
    ax.text(0.03, 0.97, "above the curve: the rule may act", va="top", fontsize=9)
    kinds = {0: ("unchanged", PALE, 14), 1: ("rescue", COLOURS["green"], 26), -1: ("harm", COLOURS["vermilion"], 26)}
    placed = candidates.dropna(subset=["p0", "p1"])
    for tau, (name, colour, size) in kinds.items():
        part = placed[placed["tau"] == tau]
        ax.scatter(part["p0"], part["p1"], s=size, color=colour, label=f"{name} ({len(part)})", linewidths=0)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("p0: estimated success without recovery")
    ax.set_ylabel("p1: estimated success with recovery")
    legend_above(ax, ncols=3)
    return ax


def plot_frontier(
    frontier: pd.DataFrame, policies: pd.DataFrame, harms_allowed: int | None = None, ax: Axes | None = None
) -> Axes:
    """The best gain for every number of clean harms, with policies beside it.

    Parameters
    ----------
    frontier : DataFrame
        allowed_harms (or clean_harms) and gain: the best that thresholds can reach on these data.
    policies : DataFrame
        policy, clean_harms and gain (rescues less harms under disturbed conditions).
    harms_allowed : int, optional
        The limit that was set.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(8, 4.4))[1]
    if frontier.empty and policies.empty:
        return say_nothing(ax)
    if harms_allowed is not None:
        ax.axvspan(-0.5, harms_allowed + 0.5, color="#EEF1F4", zorder=0, label="allowed")
    reach = frontier["allowed_harms"] if "allowed_harms" in frontier else frontier["clean_harms"]
    ax.step(reach, frontier["gain"], where="post", color=COLOURS["blue"], linewidth=1.8, label="best thresholds")
    marks = "osD^vPX*p"
    colours = [COLOURS[name] for name in ("ink", "green", "orange", "sky", "purple", "grey", "vermilion")]
    for number, item in enumerate(policies.to_dict("records")):
        ax.plot(
            item["clean_harms"],
            item["gain"],
            marks[number % len(marks)],
            color=colours[number % len(colours)],
            markersize=8,
            linestyle="",
            label=item["policy"],
        )
    ax.set_xlabel("clean runs turned from success to failure")
    ax.set_ylabel("rescues less harms, disturbed runs")
    ax.grid(color=_GRID)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax


def plot_calibration(curves: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Predicted against observed, in few bins with their counts and intervals.

    Parameters
    ----------
    curves : DataFrame
        model, predicted, observed, low, high, n.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(6.4, 6))[1]
    if curves.empty:
        return say_nothing(ax)
    ax.plot([0, 1], [0, 1], color=COLOURS["grey"], linewidth=1)
    colours = dict(
        zip(dict.fromkeys(curves["model"]), (COLOURS["vermilion"], COLOURS["blue"], COLOURS["green"]), strict=False)
    )
    for model, part in curves.groupby("model", sort=False):
        colour = colours.get(str(model), COLOURS["ink"])
        least, most = part["n"].min(), part["n"].max()
        counts = f"{least}" if least == most else f"{least} to {most}"
        ax.vlines(part["predicted"], part["low"], part["high"], color=colour, linewidth=1.5)
        ax.plot(part["predicted"], part["observed"], "o-", color=colour, label=f"{model} ({counts} a bin)")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.set_xlabel("predicted, out of fold")
    ax.set_ylabel("observed share")
    legend_above(ax, ncols=1)
    return ax


def plot_gates(held: Mapping[str, int] | pd.Series, acted: int, ax: Axes | None = None) -> Axes:
    """What each gate holds back, from all candidates down to those that pass (of a run, the rule acts on the first).

    Parameters
    ----------
    held : mapping
        Gate to the number of candidates that it held.
    acted : int
        Candidates that passed.
    ax : Axes, optional
        Where to draw.
    """
    gates = [gate for gate in GATES if held.get(gate, 0)]
    ax = ax or plt.subplots(figsize=(8.5, 1.2 + 0.42 * (len(gates) + 2)))[1]
    total = int(sum(held[gate] for gate in gates)) + acted
    if not total:
        return say_nothing(ax)
    left = total
    rows = [("candidates", 0, total, COLOURS["sky"])]
    for gate in gates:
        left -= int(held[gate])
        rows.append((f"held: {gate}", left, int(held[gate]), PALE))
    rows.append(("pass", 0, acted, COLOURS["green"]))
    for row, (_, start, width, colour) in enumerate(rows):
        ax.barh(row, width, left=start, color=colour, height=0.66)
        ax.text(start + width + 0.01 * total, row, str(width), va="center", fontsize=9)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set_xlim(0, 1.08 * total)
    ax.set_xlabel("candidate moments")
    rows_downwards(ax)
    return ax
