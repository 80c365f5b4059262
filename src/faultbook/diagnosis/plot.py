"""Figures of root-cause scoring: a table in, an `Axes` out."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from faultbook.diagnosis.graph import Propagation
from faultbook.diagnosis.truth import Truth
from faultbook.figures import PALE, legend_above, rows_downwards, say_nothing, stacked_rows
from faultbook.style import COLOURS

ROLE_COLOURS = {
    "cause": COLOURS["vermilion"],
    "alerting": COLOURS["orange"],
    "path": COLOURS["sky"],
    "listed": PALE,
}


def plot_rule(illustration: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The rule on made-up submissions; the title says that they are.

    Parameters
    ----------
    illustration : DataFrame
        From `rule_illustration`: submission, score.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(7, 3.2))[1]
    if illustration.empty:
        return say_nothing(ax)
    bars = ax.bar(illustration["submission"], illustration["score"], color=COLOURS["blue"], width=0.6)
    for bar, value in zip(bars, illustration["score"], strict=True):
        ax.text(bar.get_x() + bar.get_width() / 2, value + 0.02, f"{value:.2f}", ha="center")
    ax.set_ylim(0, 1.15)
    ax.set_ylabel("score of the run")
    ax.set_xlabel("submitted entities (truth: A and B)")
    ax.set_title("Synthetic illustration of the rule, no model's result")
    return ax


def plot_losses(summary: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Where each model's score went: what it kept, and what omission and over-diagnosis cost.

    Parameters
    ----------
    summary : DataFrame
        From `summarize`.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 1.4 + 0.55 * len(summary)))[1]
    if summary.empty:
        return say_nothing(ax)
    parts = {"score": COLOURS["blue"], "over_diagnosis_loss": COLOURS["orange"], "omission_loss": PALE}
    widths = summary[list(parts)].astype("float64").fillna(0.0)
    stacked_rows(ax, widths, parts, light_text=("score",), smallest=0.06, text="{:.2f}".format, height=0.62)
    _interval(ax, summary)
    several = summary["policy"].nunique() > 1
    labels = [f"{m} · {p}" if several else m for m, p in zip(summary["model"], summary["policy"], strict=True)]
    ax.set_yticks(range(len(summary)), labels)
    rows_downwards(ax)
    ax.set_xlim(0, 1.001)
    ax.set_xlabel("share of all runs' possible score")
    handles: list[Patch | Line2D] = [
        Patch(color=colour, label=name.replace("_", " ")) for name, colour in parts.items()
    ]
    handles.append(Line2D([], [], color=COLOURS["ink"], linewidth=2, label="interval of the score"))
    legend_above(ax, handles=handles, ncols=4, columnspacing=1.2)
    return ax


def plot_incident(truth: Truth, incident_id: str, submitted: tuple[str, ...] = (), ax: Axes | None = None) -> Axes:
    """An incident's propagation graph, from its causes (left) to what they lead to.

    Parameters
    ----------
    truth : Truth
        Ground truths.
    incident_id : str
        The incident.
    submitted : tuple of str
        Group ids that a submission stands for; they get a heavy border.
    ax : Axes, optional
        Where to draw.
    """
    part = truth.incident(incident_id)
    graph = Propagation(part.causes, part.edges)
    layers = _layers(graph, list(dict.fromkeys(part.causes["cause_set"])))
    tallest = max(map(len, layers), default=1)
    ax = ax or plt.subplots(figsize=(2.9 * max(len(layers), 2), 0.9 + 0.52 * tallest))[1]
    if part.causes.empty:
        return say_nothing(ax)
    place = {
        name: (column, (tallest - len(layer)) / 2 + row)
        for column, layer in enumerate(layers)
        for row, name in enumerate(layer)
    }
    for source, target in zip(part.edges["source"], part.edges["target"], strict=True):
        tail, head = graph.set_of.get(source), graph.set_of.get(target)
        if tail is not None and head is not None and tail != head:
            arrow = {"arrowstyle": "-|>", "color": COLOURS["grey"], "shrinkA": 0, "shrinkB": 0, "linewidth": 1.1}
            # from the right side of one box to the left of the next
            side = 0.33 if place[head][0] > place[tail][0] else 0.0
            start, end = (place[tail][0] + side, place[tail][1]), (place[head][0] - side, place[head][1])
            ax.annotate("", end, start, arrowprops=arrow, zorder=0)
    for name, members in part.causes.groupby("cause_set", sort=False):
        _box(ax, place[str(name)], members, submitted)
    ax.set_xlim(-0.55, max(len(layers) - 0.45, 1))
    ax.set_ylim(tallest - 0.4, -0.7)
    ax.set_axis_off()
    ax.set_title(f"{incident_id}: from cause to alert")
    handles = [Patch(color=colour, label=role) for role, colour in ROLE_COLOURS.items()]
    ax.legend(handles=handles, ncols=4, loc="lower left", bbox_to_anchor=(0, -0.12))
    return ax


def plot_turns(launch: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Published mean turns and scores of a few models: different models, so no experiment.

    Parameters
    ----------
    launch : DataFrame
        row (model), turns, score (rate).
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(7, 3.8))[1]
    if launch.empty:
        return say_nothing(ax)
    ax.plot(launch["turns"], 100 * launch["score"], "o", color=COLOURS["blue"], markersize=8)
    for row in launch.to_dict("records"):
        ax.annotate(
            row["row"], (row["turns"], 100 * row["score"]), xytext=(8, 6), textcoords="offset points", fontsize=9
        )
    ax.set_xlim(0, 110)
    ax.set_ylim(0, 60)
    ax.set_xlabel("mean turns of a run (limit 100)")
    ax.set_ylabel("launch score (%)")
    ax.set_title("Not an experiment: other models, other settings")
    return ax


def plot_sensitivity(summary: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """One strip a model: its score under every policy (colour) and truth (mark).

    Parameters
    ----------
    summary : DataFrame
        From `sensitivity`: truth, policy, model, score.
    ax : Axes, optional
        Where to draw.
    """
    models = list(dict.fromkeys(summary["model"])) if not summary.empty else []
    ax = ax or plt.subplots(figsize=(9, 1.5 + 0.55 * max(len(models), 1)))[1]
    if summary.empty:
        return say_nothing(ax)
    policies, truths = (list(dict.fromkeys(summary[name])) for name in ("policy", "truth"))
    palette = [COLOURS[name] for name in ("blue", "vermilion", "green", "purple", "orange", "sky")]
    colours = {policy: palette[index % len(palette)] for index, policy in enumerate(policies)}
    marks = {truth: "oDs^v"[index % 5] for index, truth in enumerate(truths)}
    for item in summary.to_dict("records"):
        shift = 0.14 * (policies.index(item["policy"]) - (len(policies) - 1) / 2)
        ax.plot(
            item["score"],
            models.index(item["model"]) + shift,
            marks[item["truth"]],
            color=colours[item["policy"]],
            markersize=7,
            alpha=0.9,
            clip_on=False,
        )
    ax.set_yticks(range(len(models)), models)
    rows_downwards(ax)
    ax.set_xlim(0, 1)
    ax.set_xlabel("score")
    ax.grid(axis="x", color="#E5E8EB")
    handles = [Line2D([], [], color=colours[p], marker="o", linestyle="", label=p) for p in policies]
    handles += [Line2D([], [], color=COLOURS["ink"], marker=marks[t], linestyle="", label=f"truth {t}") for t in truths]
    legend_above(ax, handles=handles, ncols=min(len(handles), 6), columnspacing=1.2)
    return ax


def plot_review(summary: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How many points each of the two final questions leaves open."""
    ax = ax or plt.subplots(figsize=(7, 2))[1]
    if summary.empty:
        return say_nothing(ax, "nothing left open")
    counts = summary["question"].value_counts()
    ax.barh(list(counts.index), counts.to_numpy(), color=COLOURS["orange"], height=0.5)
    ax.set_xlabel("points left open")
    return ax


def _interval(ax: Axes, summary: pd.DataFrame) -> None:
    for row, item in enumerate(summary.to_dict("records")):
        if not (pd.isna(item["low"]) or pd.isna(item["high"])):
            ax.plot([item["low"], item["high"]], [row + 0.4, row + 0.4], color=COLOURS["ink"], linewidth=2)


def _layers(graph: Propagation, sets: list[str]) -> list[list[str]]:
    """Causes first, then what they lead to by the number of edges; what no cause leads to starts one place later."""
    depth: dict[str, int] = {}
    _spread(graph, sorted(graph.roots), 0, depth)
    for name in sets:
        if name not in depth and not any(name in graph.after(other) for other in sets if other not in depth):
            _spread(graph, [name], 1, depth)
    _spread(graph, [name for name in sets if name not in depth], 1, depth)  # only circles are left
    layers: dict[int, list[str]] = {}
    for name in sets:
        layers.setdefault(depth[name], []).append(name)
    return [layers[key] for key in sorted(layers)]


def _spread(graph: Propagation, start: list[str], level: int, depth: dict[str, int]) -> None:
    frontier = dict.fromkeys(start)
    while frontier:
        depth.update((name, level) for name in frontier if name not in depth)
        level += 1
        frontier = dict.fromkeys(near for name in frontier for near in sorted(graph.after(name)) if near not in depth)


def _box(ax: Axes, at: tuple[float, float], members: pd.DataFrame, submitted: tuple[str, ...]) -> None:
    role = min(members["role"], key=list(ROLE_COLOURS).index)
    chosen = bool(set(members["group_id"]) & set(submitted))
    names = list(members["group_id"])
    text = names[0] if len(names) == 1 else f"{names[0]}\n+ {len(names) - 1} alias{'es' * (len(names) > 2)}"
    frame = {
        "boxstyle": "round,pad=0.35",
        "facecolor": ROLE_COLOURS[role],
        "edgecolor": COLOURS["ink"] if chosen else "none",
        "linewidth": 2.5 if chosen else 0,
        "alpha": 0.92,
    }
    ax.text(*at, text, ha="center", va="center", fontsize=7.5, bbox=frame)
