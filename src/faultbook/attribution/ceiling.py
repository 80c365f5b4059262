"""How well one annotator agrees with the others, by the measure of models, and models on the same targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from faultbook.attribution.ndcg import Gain, Measure, Relevance, Ties
from faultbook.attribution.tally import Reference, Samples, Scorer, attempted, counted, reference, samples_by_model
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import cluster_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HUMAN = "one annotator"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One annotator against the others, and models against the same votes.

    `table` has one row for the mean annotator and one a model and kind of ranking (one sample, all samples);
    `annotators` one row a held-out annotator; `per_target` one row a target (a log without one annotator).
    """

    table: pd.DataFrame
    annotators: pd.DataFrame
    per_target: pd.DataFrame
    measure: str

    def summary_frame(self) -> pd.DataFrame:
        """The table of the mean annotator and the models."""
        return self.table

    def plot(self, ax: Axes | None = None) -> Axes:
        """Models and the human band."""
        from faultbook.attribution.plot import plot_ceiling

        return plot_ceiling(self, ax=ax)


def human_ceiling(
    annotations: pd.DataFrame,
    predictions: pd.DataFrame | None = None,
    attempts: pd.DataFrame | None = None,
    logs: pd.DataFrame | None = None,
    *,
    k: int | None = 5,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
    ties: Ties = "by_step",
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Ceiling:
    """Hold each annotator out and score what they flagged against the votes of the others.

    The votes of two are an easier or harder target than those of three, so models are scored against the very same
    targets: with one sample (the mean over their samples; what one annotator gave, too, is one list), and with all.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`, with at least two annotators a log.
    predictions, attempts : DataFrame, optional
        Tables `Predictions` and `Attempts`; without them only the annotators are scored.
    logs : DataFrame, optional
        Table `Logs`; see `tally.reference`.
    k, relevance, gain, ties
        See `ndcg`. An annotator's list has no order, so their steps tie.
    level, n_resamples, seed
        Of the intervals, which resample questions.

    Returns
    -------
    Ceiling
        `table` and `annotators`: who, kind {human, model}, samples {one, all}, the nDCG with low and high, chance,
        adjusted, n_targets, n_logs, n_questions, n_empty (targets for which nothing was named: they count as 0), and
        for models `minus_human` with its bounds, paired on targets.

    Raises
    ------
    FaultbookError
        If no log has two annotators, only one of `predictions` and `attempts` is given, or no model attempted an
        annotated log.
    """
    if (predictions is None) != (attempts is None):
        raise FaultbookError("predictions and attempts go together")
    measure = Measure(k, relevance, gain, ties)
    per_target = pd.concat(_targets(annotations, predictions, attempts, logs, measure), ignore_index=True)
    if predictions is not None and attempts is not None:
        attempted(predictions, attempts, reference(annotations, logs))
    settings: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    human = per_target[per_target["kind"] == "human"]
    rows = [{"who": HUMAN, "kind": "human", "samples": "one"} | _row(human, measure.column, settings)]
    for (who, samples), part in per_target[per_target["kind"] == "model"].groupby(["who", "samples"], sort=False):
        gap = part.merge(human, on=["held_out", "log_id"], suffixes=("", "_human"), validate="one_to_one")
        less = gap[measure.column] - gap[f"{measure.column}_human"]
        estimate = cluster_ratio(less, np.ones(len(gap)), gap["cluster"], **settings)
        row = {"who": who, "kind": "model", "samples": samples} | _row(part, measure.column, settings)
        row |= {"minus_human": estimate.estimate, "minus_low": estimate.low, "minus_high": estimate.high}
        rows.append(row)
    each = [
        {"who": who, "kind": "human", "samples": "one"} | _row(part, measure.column, settings)
        for who, part in human.groupby("held_out", sort=False)
    ]
    return Ceiling(pd.DataFrame(rows), pd.DataFrame(each), per_target, measure.name)


def _targets(
    annotations: pd.DataFrame,
    predictions: pd.DataFrame | None,
    attempts: pd.DataFrame | None,
    logs: pd.DataFrame | None,
    measure: Measure,
) -> list[pd.DataFrame]:
    """Scores of everybody against the votes without one annotator; only targets in which a vote is left."""
    parts = []
    for held_out in dict.fromkeys(annotations["annotator"]):
        own = annotations[annotations["annotator"] == held_out]
        rest = annotations[(annotations["annotator"] != held_out) & annotations["log_id"].isin(own["log_id"])]
        if rest.empty:
            continue
        known = reference(rest, logs if logs is not None else _lengths(annotations))
        scorer = Scorer(known, measure)
        rankings = [_own(own, known, scorer)]
        if predictions is not None and attempts is not None:
            for model, found in samples_by_model(predictions, attempts, known).items():
                rankings += _of_model(model, found, known, scorer)
        target = known.logs["n_flagged"].to_numpy() > 0
        parts += [ranking[target].assign(held_out=held_out) for ranking in rankings]
    if not parts:
        raise FaultbookError("no log has two annotators; a human ceiling needs one to hold against the others")
    return parts


def _own(own: pd.DataFrame, known: Reference, scorer: Scorer) -> pd.DataFrame:
    """What the annotator who is held out flagged."""
    flagged = own[own["is_failure"]]
    code = known.codes(flagged["log_id"])
    at = code >= 0
    log, step, votes = counted(code[at], flagged["step"].to_numpy(dtype=np.int64)[at])
    n_named = np.bincount(log, minlength=len(known.logs))
    return _frame(HUMAN, "human", "one", known, scorer, scorer.scores(log, votes, scorer.gains(log, step)), n_named)


def _of_model(model: str, found: Samples, known: Reference, scorer: Scorer) -> Iterator[pd.DataFrame]:
    """A model with one sample, on average over its samples, and with all of them."""
    gains = scorer.gains(found.log, found.step)
    each, named = [], []
    n_samples = found.names.shape[1]
    for chosen in ([number] for number in range(n_samples)):
        ranking = found.ranking(chosen)
        each.append(scorer.scores(found.log, ranking, gains))
        named.append(np.bincount(found.log, weights=ranking > 0, minlength=len(known.logs)))
    yield _frame(model, "model", "one", known, scorer, np.mean(each, axis=0), np.mean(named, axis=0), named)
    if n_samples > 1:
        ranking = found.ranking()
        n_named = np.bincount(found.log, weights=ranking > 0, minlength=len(known.logs))
        yield _frame(model, "model", "all", known, scorer, scorer.scores(found.log, ranking, gains), n_named)


def _frame(
    who: str,
    kind: str,
    samples: str,
    known: Reference,
    scorer: Scorer,
    scores: Any,
    n_named: Any,
    each_named: list[Any] | None = None,
) -> pd.DataFrame:
    chance = [scorer.chance(named) for named in (each_named if each_named is not None else [n_named])]
    return known.logs[["log_id", "split", "cluster"]].assign(
        who=who,
        kind=kind,
        samples=samples,
        n_named=n_named,
        chance=np.mean(chance, axis=0),
        **{scorer.measure.column: scores},
    )


def _lengths(annotations: pd.DataFrame) -> pd.DataFrame:
    """Logs as everybody together shows them: without one annotator a log is not shorter."""
    return reference(annotations).logs.rename(columns={"cluster": "question_id"})


def _row(part: pd.DataFrame, column: str, settings: dict[str, Any]) -> dict[str, Any]:
    names = (column, "low", "high", "chance", "adjusted")
    counts = {"n_targets": len(part), "n_logs": part["log_id"].nunique(), "n_questions": part["cluster"].nunique()}
    counts["n_empty"] = int((part["n_named"] == 0).sum())
    if part.empty:
        return dict.fromkeys(names, float("nan")) | counts
    mean = cluster_ratio(part[column], np.ones(len(part)), part["cluster"], **settings)
    known = part[part["chance"] < 1]
    room = (1 - known["chance"]).sum()
    adjusted = (known[column] - known["chance"]).sum() / room if room > 0 else float("nan")
    return dict(zip(names, (mean.estimate, mean.low, mean.high, part["chance"].mean(), adjusted), strict=True)) | counts
