"""Score models against annotators: one planned set of logs for all, chance beside every value, nothing left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from faultbook.attribution.ndcg import Array, Gain, Measure, Relevance, Ties, adjusted_for_chance
from faultbook.attribution.tally import Reference, Samples, Scorer, attempted, reference
from faultbook.stats.bootstrap import cluster_ratio
from faultbook.stats.proportion import wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTHS = (5, 10, 20, 40, 80)  # upper ends of the length groups; what is longer makes one more
UNANSWERED = ("abstained", "truncated", "unparsable", "missing")


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of models on one set of logs.

    `models` has one row a model, `by_split` one a split and model, `by_length` one a group of log lengths and model;
    `per_log` one a model and log. `measures` names the two variants of nDCG that stand in the columns.
    """

    models: pd.DataFrame
    by_split: pd.DataFrame
    by_length: pd.DataFrame
    per_log: pd.DataFrame
    measures: tuple[str, str]

    def summary_frame(self) -> pd.DataFrame:
        """One row a model."""
        return self.models

    def plot(self, ax: Axes | None = None) -> Axes:
        """Scores with intervals and chance levels."""
        from faultbook.attribution.plot import plot_models

        return plot_models(self.by_split, ax=ax)


def score(
    predictions: pd.DataFrame,
    attempts: pd.DataFrame,
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    *,
    k: int = 5,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
    ties: Ties = "by_step",
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Scores:
    """Score the rankings of models against the annotators' votes.

    The planned set is every log in which somebody flagged a step; all models are judged on all of it. A model's
    ranking of a log comes from the votes of its samples, each step at most once a sample; a single list that is in
    order of priority (`attempts.ranked`) is its own ranking.

    Parameters
    ----------
    predictions, attempts, annotations : DataFrame
        Tables `Predictions`, `Attempts`, `Annotations`.
    logs : DataFrame, optional
        Table `Logs`; see `reference`.
    k, relevance, gain, ties
        Of the first measure, see `ndcg`; the second one is over the full list.
    level, n_resamples, seed
        Of the intervals, which resample questions (logs where no question is known).

    Returns
    -------
    Scores
        With the columns (for k = 5) `ndcg_at_5`: mean over all planned logs, an unanswered one counted as 0;
        `ndcg_at_5_answered`: over those the model answered, as the published code has it; `ndcg_at_5_common`: over
        those that every model answered; `low`, `high`; `chance`: as many distinct random steps as the model named,
        in closed form; `adjusted`: (mean − chance) / (1 − chance) over logs whose length is known; the same with
        `_full`; and the counts n_logs, n_questions, n_answered, n_common, n_abstained, n_truncated, n_unparsable,
        n_missing (logs), n_unreadable (items), n_without_failure, n_false_alarms and false_alarm_rate among the
        logs in which nobody flagged a step and the model replied.

    Raises
    ------
    FaultbookError
        If there is no annotation, no attempt on an annotated log, a log is unknown, or a prediction has no attempt.
    ValueError
        If a choice or k is wrong.
    """
    measures = (Measure(k, relevance, gain, ties), Measure(None, relevance, gain, ties))
    known = reference(annotations, logs)
    samples = attempted(predictions, attempts, known)
    scorers = [Scorer(known, measure) for measure in measures]
    parts = [_per_log(model, found, known, scorers) for model, found in samples.items()]
    per_log = pd.concat(parts, ignore_index=True)
    flagged = per_log["n_flagged"] > 0
    answered = per_log[flagged & (per_log["status"] == "answered")]
    n_models = answered.groupby("log_id", observed=True)["model"].size()
    per_log["in_common"] = per_log["log_id"].isin(n_models[n_models == len(samples)].index) & flagged
    unreadable = {model: found.n_unreadable for model, found in samples.items()}
    summarise = _Summary(per_log, [m.column for m in measures], unreadable, level, n_resamples, seed)
    lengths = _length_groups(per_log["n_steps"])
    return Scores(
        models=summarise.by([]),
        by_split=summarise.by(["split"]),
        by_length=summarise.by(["length"], per_log.assign(length=lengths)).reset_index(drop=True),
        per_log=per_log,
        measures=(measures[0].name, measures[1].name),
    )


def _per_log(model: str, found: Samples, known: Reference, scorers: Sequence[Scorer]) -> pd.DataFrame:
    ranking = found.ranking()
    n_predicted = np.bincount(found.log, weights=ranking > 0, minlength=len(known.logs))
    frame = known.logs.assign(n_predicted=n_predicted.astype(np.int64), status=log_status(found))
    frame.insert(0, "model", model)
    for scorer, end in zip(scorers, ("", "_full"), strict=True):
        frame[scorer.measure.column] = scorer.scores(found.log, ranking, scorer.gains(found.log, found.step))
        frame[f"chance{end}"] = scorer.chance(n_predicted)
        frame[f"adjusted{end}"] = adjusted_for_chance(frame[scorer.measure.column], frame[f"chance{end}"])
    replied = (found.status == "ok") | (found.status == "abstained")
    frame["replied"] = replied.any(axis=1) | found.answered  # what names a step has replied, whatever its status
    return frame


def log_status(found: Samples) -> Array:
    """Per log: "answered" if a sample names a step, else the first of abstained, truncated, unparsable, missing."""
    status = np.full(len(found.status), "missing", dtype=object)
    for name in reversed(UNANSWERED):
        status[(found.status == name).any(axis=1)] = name
    # what was marked "ok" and names no step has abstained
    status[(found.status == "ok").any(axis=1)] = "abstained"
    status[found.answered] = "answered"
    return status


class _Summary:
    """Means over logs with their intervals and counts."""

    def __init__(
        self,
        per_log: pd.DataFrame,
        columns: list[str],
        unreadable: dict[str, int],
        level: float,
        n_resamples: int,
        seed: int,
    ) -> None:
        self._per_log, self._columns, self._unreadable = per_log, columns, unreadable
        self._settings: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}

    def by(self, keys: list[str], per_log: pd.DataFrame | None = None) -> pd.DataFrame:
        """One row a model and value of the keys, all in order of first appearance (or of their categories)."""
        table = self._per_log if per_log is None else per_log
        rows = []
        for key, part in table.groupby([_in_order(table[name]) for name in (*keys, "model")], observed=True):
            names = dict(zip([*keys, "model"], key, strict=True))
            rows.append({"model": names.pop("model"), **names, **self._row(part)})
            if not keys:
                rows[-1]["n_unreadable"] = self._unreadable[str(rows[-1]["model"])]
        return pd.DataFrame(rows)

    def _row(self, part: pd.DataFrame) -> dict[str, Any]:
        clean, part = part[part["n_flagged"] == 0], part[part["n_flagged"] > 0]
        answered = part["status"] == "answered"
        row: dict[str, Any] = {}
        for column, end in zip(self._columns, ("", "_full"), strict=True):
            row |= self._mean(part, column, end)
            row[f"{column}_answered"] = part.loc[answered, column].mean()
            row[f"{column}_common"] = part.loc[part["in_common"], column].mean()
        row |= {"n_logs": len(part), "n_questions": part["cluster"].nunique(), "n_answered": int(answered.sum())}
        row["n_common"] = int(part["in_common"].sum())
        row |= {f"n_{name}": int((part["status"] == name).sum()) for name in UNANSWERED}
        return row | _false_alarms(clean, self._settings["level"])

    def _mean(self, part: pd.DataFrame, column: str, end: str) -> dict[str, float]:
        names = [column, *(f"{name}{end}" for name in ("low", "high", "chance", "adjusted"))]
        names += [f"adjusted{end}_low", f"adjusted{end}_high"]
        if part.empty:
            return dict.fromkeys(names, float("nan"))
        mean = cluster_ratio(part[column], np.ones(len(part)), part["cluster"], **self._settings)
        known = part[part[f"chance{end}"] < 1]
        values = [mean.estimate, mean.low, mean.high, part[f"chance{end}"].mean()]
        if known.empty:
            return dict(zip(names, [*values, *[float("nan")] * 3], strict=True))
        chance = known[f"chance{end}"]
        adjusted = cluster_ratio(known[column] - chance, 1 - chance, known["cluster"], **self._settings)
        return dict(zip(names, [*values, adjusted.estimate, adjusted.low, adjusted.high], strict=True))


def _false_alarms(clean: pd.DataFrame, level: float) -> dict[str, Any]:
    """What a model names in logs in which nobody flagged a step."""
    replied = int(clean["replied"].sum())
    alarms = int((clean["status"] == "answered").sum())
    row: dict[str, Any] = {"n_without_failure": len(clean), "n_replied_without_failure": replied}
    row["n_false_alarms"] = alarms
    bounds = wilson(alarms, replied, level) if replied else None
    row["false_alarm_rate"] = bounds.estimate if bounds else float("nan")
    row["false_alarm_low"] = bounds.low if bounds else float("nan")
    row["false_alarm_high"] = bounds.high if bounds else float("nan")
    return row


def _in_order(column: pd.Series) -> pd.Series:
    """A column whose values sort as they first appear, or as its categories do."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return column.astype(pd.CategoricalDtype(list(column.unique())))


def _length_groups(n_steps: pd.Series) -> pd.Categorical:
    """The group of lengths of each log, such as "6–10"."""
    starts = [1, *(end + 1 for end in LENGTHS)]
    labels = [f"{start}–{end}" for start, end in zip(starts, LENGTHS, strict=False)] + [f"{starts[-1]} or more"]
    known = pd.cut(n_steps, [0, *LENGTHS, np.inf], labels=labels)
    return pd.Categorical(known.astype(object).fillna("unknown"), [*labels, "unknown"], ordered=True)
