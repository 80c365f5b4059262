"""Figures of failure attribution: a table in, an `Axes` out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from faultbook.figures import PALE, legend_above, rows_downwards, say_nothing
from faultbook.style import COLOURS

if TYPE_CHECKING:
    from faultbook.attribution.ceiling import Ceiling
    from faultbook.attribution.ensembles import Ensembles

PALETTE = [COLOURS[name] for name in ("blue", "vermilion", "green", "purple", "orange", "sky")]
_GRID = "#E5E8EB"
_MEASURE = re.compile(r"ndcg_(at_\d+|full)")


def plot_log(
    annotations: pd.DataFrame,
    predictions: pd.DataFrame,
    log_id: str,
    n_steps: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One log as a strip of steps: what each annotator flagged, and how each model ranks the steps.

    Parameters
    ----------
    annotations, predictions : DataFrame
        Tables `Annotations` and `Predictions`. Models are ranked by the votes of their samples, ties by step; darker
        is higher, and the rank stands in the cell.
    log_id : str
        The log.
    n_steps : int, optional
        Its length; by default up to the last step that anybody judged or named.
    ax : Axes, optional
        Where to draw.
    """
    judged = annotations[annotations["log_id"] == log_id]
    named = predictions[predictions["log_id"] == log_id]
    annotators, models = list(dict.fromkeys(judged["annotator"])), list(dict.fromkeys(named["model"]))
    last = int(max(judged["step"].max() if len(judged) else -1, named["step"].max() if len(named) else -1)) + 1
    n_steps = last if n_steps is None else n_steps
    rows = annotators + models
    width = min(13.0, 2.6 + 0.27 * n_steps)
    ax = ax or plt.subplots(figsize=(max(width, 5.5), 1.1 + 0.36 * len(rows)))[1]
    if not rows or n_steps < 1:
        return say_nothing(ax, "nobody judged this log")
    for row, annotator in enumerate(annotators):
        flagged = judged.loc[(judged["annotator"] == annotator) & judged["is_failure"], "step"]
        _strip(ax, row, n_steps)
        ax.scatter(flagged, [row] * len(flagged), marker="s", s=95, color=COLOURS["vermilion"], zorder=3)
    for row, model in enumerate(models, start=len(annotators)):
        _strip(ax, row, n_steps)
        _ranks(ax, row, named[named["model"] == model], n_steps)
    ax.axhline(len(annotators) - 0.5, color=COLOURS["ink"], linewidth=0.8)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlim(-0.6, n_steps - 0.4)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    rows_downwards(ax)
    ax.set_xlabel("step")
    ax.set_title(log_id, pad=26)
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=8, color=COLOURS["vermilion"], label="flagged"),
        Patch(color=COLOURS["blue"], label="named by the model, with its rank"),
    ]
    legend_above(ax, handles=handles, ncols=2)
    return ax


def plot_shares(shares: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """By how many annotators flagged steps are flagged: the distribution of consensus.

    Parameters
    ----------
    shares : DataFrame
        source (who prints or computed it), flagged_by, share, and low and high where there is an interval.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(7.5, 3.4))[1]
    if shares.empty:
        return say_nothing(ax)
    sources, groups = (list(dict.fromkeys(shares[name])) for name in ("source", "flagged_by"))
    height = 0.8 / len(sources)
    for number, source in enumerate(sources):
        for item in shares[shares["source"] == source].to_dict("records"):
            row = groups.index(item["flagged_by"]) + (number - (len(sources) - 1) / 2) * height
            colour = PALETTE[number % len(PALETTE)]
            ax.barh(row, 100 * item["share"], height * 0.9, color=colour, label=source if not row % 1 else None)
            if pd.notna(item.get("low")):
                ax.plot([100 * item["low"], 100 * item["high"]], [row, row], color=COLOURS["ink"], linewidth=1.5)
            end = 100 * (item["high"] if pd.notna(item.get("high")) else item["share"])
            ax.text(end + 0.8, row, f"{100 * item['share']:.1f}", va="center", fontsize=9)
    ax.set_yticks(range(len(groups)), [f"flagged by {group}" for group in groups])
    rows_downwards(ax)
    ax.set_xlim(0, 100)
    ax.set_xlabel("share of the steps that anybody flagged (%)")
    legend_above(ax, handles=[Patch(color=PALETTE[n % len(PALETTE)], label=s) for n, s in enumerate(sources)], ncols=2)
    return ax


def plot_models(by_split: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Each model's score with its interval, and beside it what as many random steps would score.

    Parameters
    ----------
    by_split : DataFrame
        `Scores.by_split`, or `Scores.models`.
    ax : Axes, optional
        Where to draw.
    """
    models = list(dict.fromkeys(by_split["model"])) if not by_split.empty else []
    splits = list(dict.fromkeys(by_split["split"])) if "split" in by_split else ["all"]
    ax = ax or plt.subplots(figsize=(9, 1.5 + 0.32 * len(models) * (len(splits) + 0.6)))[1]
    if by_split.empty:
        return say_nothing(ax)
    column = measure_column(by_split)
    colours = {split: PALETTE[number % len(PALETTE)] for number, split in enumerate(splits)}
    for item in by_split.to_dict("records"):
        split = item.get("split", "all")
        row = models.index(item["model"]) + (splits.index(split) - (len(splits) - 1) / 2) * 0.26
        _point(ax, item[column], item["low"], item["high"], row, colours[split])
        ax.plot(item["chance"], row, "|", color=colours[split], markersize=12, markeredgewidth=2)
    _named_rows(ax, models, column)
    handles = [Line2D([], [], color=colours[s], marker="o", linestyle="", label=s) for s in splits]
    handles.append(Line2D([], [], color=COLOURS["ink"], marker="|", linestyle="", markersize=11, label="chance"))
    legend_above(ax, handles=handles, ncols=len(handles))
    return ax


def plot_ceiling(ceiling: Ceiling, ax: Axes | None = None) -> Axes:
    """Models and one annotator against the same votes of the other annotators, with chance levels and the human band.

    Parameters
    ----------
    ceiling : Ceiling
        From `human_ceiling`.
    ax : Axes, optional
        Where to draw.
    """
    table = ceiling.table
    models = list(dict.fromkeys(table.loc[table["kind"] == "model", "who"]))
    ax = ax or plt.subplots(figsize=(9, 1.7 + 0.55 * (len(models) + 1)))[1]
    column = measure_column(table)
    human = table[table["kind"] == "human"].iloc[0]
    if pd.isna(human[column]):
        return say_nothing(ax)
    if pd.notna(human["low"]):
        ax.axvspan(human["low"], human["high"], color=PALE, zorder=0)
    ax.axvline(human[column], color=COLOURS["ink"], linewidth=1.2, zorder=1)
    rows = [human["who"], *models]
    colours = {"one": COLOURS["sky"], "all": COLOURS["blue"]}
    for item in table.to_dict("records"):
        is_model = item["kind"] == "model"
        row = rows.index(item["who"]) + (0.13 if item["samples"] == "all" else -0.13) * is_model
        colour = colours[item["samples"]] if is_model else COLOURS["ink"]
        _point(ax, item[column], item["low"], item["high"], row, colour)
        ax.plot(item["chance"], row, "|", color=colour, markersize=10, markeredgewidth=2)
    _named_rows(ax, rows, column)
    handles = [
        Line2D([], [], color=c, marker="o", linestyle="", label=f"{s} sample{'s' * (s == 'all')}")
        for s, c in colours.items()
    ]
    handles.append(Line2D([], [], color=COLOURS["ink"], marker="|", linestyle="", markersize=11, label="chance"))
    legend_above(ax, handles=[*handles, Patch(color=PALE, label="one annotator, interval")], ncols=4, columnspacing=1.2)
    return ax


def plot_lengths(by_length: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Scores against log length, and what chance alone gives (dashed); baselines are grey.

    Parameters
    ----------
    by_length : DataFrame
        `Scores.by_length`.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(9, 4.2))[1]
    known = by_length[by_length["n_logs"] > 0] if not by_length.empty else by_length
    if known.empty:
        return say_nothing(ax)
    column, groups = measure_column(known), [str(group) for group in dict.fromkeys(known["length"])]
    counts = known.drop_duplicates("length").set_index("length")["n_logs"]
    colours = _colours(known["model"])
    for number, (model, part) in enumerate(known.groupby("model", sort=False)):
        colour = colours[str(model)]
        place = np.array([groups.index(str(group)) for group in part["length"]]) + 0.06 * (number % 7 - 3)
        ax.plot(place, part["chance"], "--", color=PALE, linewidth=1.1, zorder=0)
        ax.plot(place, part[column], "o-", color=colour, label=str(model), linewidth=1.5, clip_on=False)
        ax.vlines(place, part["low"], part["high"], color=colour, linewidth=1.5)
    ax.set_xticks(
        range(len(groups)), [f"{group}\n{counts[group]} log{'s' * int(counts[group] != 1)}" for group in groups]
    )
    ax.set_ylim(0, 1)
    ax.set_xlabel("steps of the log")
    ax.set_ylabel(measure_label(column))
    ax.grid(axis="y", color=_GRID)
    handles, _ = ax.get_legend_handles_labels()
    handles.append(Line2D([], [], color=PALE, linestyle="--", label="chance of each"))
    legend_above(ax, handles=handles, ncols=3, columnspacing=1.2)
    return ax


def plot_scaling(scaling: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Scores with n samples, averaged over all subsets of that size, and the chance level of lists that long.

    Parameters
    ----------
    scaling : DataFrame
        From `n_scaling`.
    ax : Axes, optional
        Where to draw.
    """
    ax = ax or plt.subplots(figsize=(8, 4.2))[1]
    if scaling.empty:
        return say_nothing(ax)
    column = measure_column(scaling)
    for number, (model, part) in enumerate(scaling.groupby("model", sort=False)):
        colour = PALETTE[number % len(PALETTE)]
        ax.plot(part["n_samples"], part[column], "o-", color=colour, label=str(model))
        ax.fill_between(part["n_samples"], part["low"], part["high"], color=colour, alpha=0.12, linewidth=0)
        ax.plot(part["n_samples"], part["chance"], "--", color=colour, linewidth=1.1)
    ax.set_xlabel("samples of the model (mean over all subsets)")
    ax.set_ylabel(measure_label(column))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1)
    ax.grid(axis="y", color=_GRID)
    handles, _ = ax.get_legend_handles_labels()
    handles.append(Line2D([], [], color=COLOURS["ink"], linestyle="--", label="chance"))
    legend_above(ax, handles=handles, ncols=3, columnspacing=1.2)
    return ax


def plot_ensembles(result: Ensembles, ax: Axes | None = None) -> Axes:
    """Single models (diagonal) and pairs of models at the same number of samples, as a heat map.

    Parameters
    ----------
    result : Ensembles
        From `ensembles`.
    ax : Axes, optional
        Where to draw.
    """
    small = result.combinations[result.combinations["n_models"] <= 2]
    models = list(small.loc[small["n_models"] == 1, "combination"])
    size = 2.4 + 0.95 * max(len(models), 1)
    ax = ax or plt.subplots(figsize=(size + 1.6, size))[1]
    column = measure_column(small)
    if small[column].isna().all():
        return say_nothing(ax)
    pairs = {(a, b): f"{a} + {b}" for n, a in enumerate(models) for b in models[n + 1 :]}
    values = small.set_index("combination")[column]
    grid = pd.DataFrame(np.nan, index=models, columns=models)
    for model in models:
        grid.loc[model, model] = values[model]
    for (a, b), name in pairs.items():
        if name in values:
            grid.loc[b, a] = values[name]
    sns.heatmap(
        grid,
        annot=True,
        fmt=".3f",
        cmap="Blues",
        ax=ax,
        square=True,
        linewidths=1.5,
        cbar_kws={"label": measure_label(column)},
    )
    ax.tick_params(length=0)
    ax.set_xticklabels(models, rotation=30, ha="right")
    ax.set_yticklabels(models, rotation=0)
    ax.set_title(f"{result.budget} samples in all: one model, or two that share them")
    return ax


def measure_column(frame: pd.DataFrame) -> str:
    """The first column that holds a score: "ndcg_at_5", "ndcg_full"."""
    return next(str(name) for name in frame.columns if _MEASURE.fullmatch(str(name)))


def measure_label(column: str) -> str:
    """A column of scores as text: "nDCG@5"."""
    return "nDCG, full list" if column == "ndcg_full" else f"nDCG@{column.removeprefix('ndcg_at_')}"


def _colours(models: pd.Series) -> dict[str, str]:
    """A colour for each model; baselines are grey."""
    names = list(dict.fromkeys(models))
    own = [name for name in names if not name.startswith("baseline:")]
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(own)}
    greys = ("#5F666D", COLOURS["grey"], "#B9BEC4")
    baselines = [name for name in names if name not in colours]
    return colours | {name: greys[number % len(greys)] for number, name in enumerate(baselines)}


def _strip(ax: Axes, row: int, n_steps: int) -> None:
    ax.barh(row, n_steps, 0.7, left=-0.5, color="#F2F4F6", zorder=0)


def _ranks(ax: Axes, row: int, named: pd.DataFrame, n_steps: int) -> None:
    """The steps that a model names, the darker the higher their rank."""
    votes = named.drop_duplicates(["sample", "step"])["step"].value_counts()
    ranked = sorted(votes.index, key=lambda step: (-votes[step], step))
    for place, step in enumerate(ranked):
        if step >= n_steps:
            continue
        strength = max(0.12, 1 - place / 6)
        ax.barh(row, 0.86, 0.62, left=step - 0.43, color=COLOURS["blue"], alpha=strength, zorder=2)
        colour = "white" if strength > 0.45 else COLOURS["ink"]
        ax.text(step, row, str(place + 1), ha="center", va="center", fontsize=7.5, color=colour, zorder=4)


def _point(ax: Axes, value: float, low: float, high: float, row: float, colour: str) -> None:
    if np.isfinite([low, high]).all():
        ax.plot([low, high], [row, row], color=colour, linewidth=2)
    ax.plot(value, row, "o", color=colour, markersize=6)


def _named_rows(ax: Axes, rows: list[str], column: str) -> None:
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    rows_downwards(ax)
    ax.set_xlim(0, 1)
    ax.set_xlabel(measure_label(column))
    ax.grid(axis="x", color=_GRID)
