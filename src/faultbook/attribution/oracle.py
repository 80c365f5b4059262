"""Single-oracle scores, as Who&When has them: one label a log, exact equality, and the chance level of each number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.compare import require_columns
from faultbook.attribution.guesses import chances
from faultbook.attribution.labels import (
    TOLERANCES,
    check_labels,
    mean_or_missing,
    plain_names,
    question_codes,
    rate_estimate,
    tolerance_names,
)
from faultbook.attribution.tally import check_attempts
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import Floats

SCORE_COLUMNS = [
    *("model", "split", "measure", "rate", "low", "high", "chance"),
    *("n_logs", "n_questions", "n_samples", "n_unanswered", "rate_of_answered"),
]
_SAMPLE = ["log_id", "model", "sample"]


def oracle_scores(
    predictions: pd.DataFrame,
    attempts: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    steps: pd.DataFrame | None = None,
    tolerance: Sequence[int] = TOLERANCES,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Score the first answer of each sample against the one label.

    Parameters
    ----------
    predictions, attempts : DataFrame
        Tables `Predictions` and `Attempts`. The item with the lowest position is a sample's answer; a sample whose
        status is not "ok" has none. Attempts on logs without a label are left out.
    labels : DataFrame
        From `oracle_labels`. Every log is expected of every model, as often as the model has samples in the split.
    steps : DataFrame, optional
        Table `Steps`, for the chance level of the agent.
    tolerance : sequence of int
        Distances from the labelled step that still count as right; each gives a measure.
    level, n_resamples, seed
        Of the percentile bootstrap over questions (a log without a known question is one of its own).

    Returns
    -------
    DataFrame
        One row a model, split and measure ("step", "step ±1", …, "agent"). `rate` is the mean over logs, each log the
        mean over its samples, and what was not answered is wrong; `rate_of_answered` leaves it out. `n_unanswered`
        counts answers that are owed (n_logs × n_samples) and not there, for "agent" also those that name no agent.
        `chance` is what a uniform guess scores on the same logs (`random_accuracy`), missing where that is unknown.
        The agent's rate is missing if the model answers and never names one. Bounds are missing where every question
        has the same mean.

    Raises
    ------
    FaultbookError
        If a column is missing, a label stands twice, no attempt is on a labelled log, a sample stands twice, or a
        prediction has no attempt.

    Notes
    -----
    Who&When (arXiv 2505.00212), section on metrics: agent-level and step-level accuracy. Its code compares texts by
    containment, see `substring_accuracy`; here steps are equal as integers and agents as whole names.
    """
    check_labels(labels)
    chance = chances(labels, steps, tolerance_names(tolerance))
    answers = _answers(predictions, attempts, labels)
    measures = _measures(answers, labels, tolerance_names(tolerance))
    clusters, there = question_codes(labels), answers["step"].notna().to_numpy()
    rows: list[dict[str, Any]] = []
    for model in dict.fromkeys(attempts["model"]):
        for split in dict.fromkeys(labels["split"]):
            here = ((answers["model"] == model) & (answers["split"] == split)).to_numpy()
            n_samples = max(1, answers.loc[here, "sample"].nunique())
            for name, (right, answered, scored) in measures.items():
                kept = scored & (labels["split"] == split).to_numpy()
                found = _Tally(answers["row"].to_numpy()[here], right[here], answered[here], kept, n_samples)
                row = {"model": model, "split": split, "measure": name, "chance": chance.get((split, name), np.nan)}
                unasked = name == "agent" and there[here].any() and not answered[here].any()
                rows.append(row | found.summary(clusters, unasked, level, n_resamples, seed))
    return pd.DataFrame(rows, columns=SCORE_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Tally:
    """The answers of one model in one split: the row of the label each belongs to, and what came of it."""

    row: npt.NDArray[np.intp]
    right: npt.NDArray[np.bool_]
    answered: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]  # which labels count
    n_samples: int

    def summary(
        self, clusters: npt.NDArray[np.intp], unasked: bool, level: float, n_resamples: int, seed: int
    ) -> dict[str, Any]:
        n_right, n_answered = self._per_log(self.right), self._per_log(self.answered)
        at = n_answered > 0
        row: dict[str, Any] = {"n_logs": len(n_right), "n_questions": len(np.unique(clusters[self.kept]))}
        row |= {"n_samples": self.n_samples, "n_unanswered": int(len(n_right) * self.n_samples - n_answered.sum())}
        row["rate_of_answered"] = mean_or_missing(n_right[at] / n_answered[at])
        if unasked:
            return row | dict.fromkeys(("rate", "low", "high"), np.nan)
        return row | rate_estimate(n_right / self.n_samples, clusters[self.kept], level, n_resamples, seed)

    def _per_log(self, which: npt.NDArray[np.bool_]) -> Floats:
        counts = np.bincount(self.row, weights=which, minlength=len(self.kept))
        return counts[self.kept].astype(np.float64)


def _measures(
    answers: pd.DataFrame, labels: pd.DataFrame, tolerances: Mapping[int, str]
) -> dict[str, tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """Per measure, which answers are right, which are there, and which labels count."""
    row = answers["row"].to_numpy()
    distance = np.abs(answers["step"].to_numpy() - labels["mistake_step"].to_numpy(dtype=np.float64)[row])
    there, named = answers["step"].notna().to_numpy(), answers["agent"].notna().to_numpy()
    everywhere, labelled = np.ones(len(labels), dtype=bool), labels["mistake_agent"].notna().to_numpy()
    wanted = plain_names(labels["mistake_agent"])[row]
    alike = named & labelled[row] & (answers["agent"].to_numpy(dtype=object) == wanted)
    measures = {name: (distance <= most, there, everywhere) for most, name in tolerances.items()}
    return measures | {"agent": (alike, named, labelled)}


def _answers(predictions: pd.DataFrame, attempts: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """One row an attempt on a labelled log: row (of the label), split, model, sample, and the answer, if any."""
    require_columns(predictions, [*_SAMPLE, "position", "step", "agent"], "predictions")
    require_columns(attempts, [*_SAMPLE, "status"], "attempts")
    doubled = attempts[attempts.duplicated(_SAMPLE)]
    if len(doubled):
        raise FaultbookError(
            f"attempts: {len(doubled)} stand twice (first: {_first_sample(doubled)}); keep one of each"
        )
    check_attempts(predictions, attempts)
    first = predictions.sort_values("position", kind="stable").drop_duplicates(_SAMPLE)
    answers = attempts[[*_SAMPLE, "status"]].merge(first[[*_SAMPLE, "step", "agent"]], on=_SAMPLE, how="left")
    answers["row"] = pd.Index(labels["log_id"]).get_indexer(answers["log_id"])
    answers = answers[answers["row"] >= 0].reset_index(drop=True)
    if answers.empty:
        raise FaultbookError("no attempt on a labelled log; check that both name logs alike, as in 'hand-crafted/12'")
    answered = answers["status"] == "ok"
    answers["split"] = labels["split"].to_numpy()[answers["row"]]
    answers["step"] = answers["step"].astype("Float64").where(answered).to_numpy(dtype=np.float64, na_value=np.nan)
    answers["agent"] = plain_names(answers["agent"].where(answered))
    return answers


def _first_sample(samples: pd.DataFrame) -> str:
    first = samples.iloc[0]
    return f"{first['model']}, {first['log_id']}, sample {first['sample']}"
