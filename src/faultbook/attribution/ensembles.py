"""What other models bring: every combination at one number of samples, and how much samples disagree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from faultbook.attribution.draws import (
    Draw,
    OverDraws,
    check_at_least_one,
    judged_only,
    mean_over_logs,
    over_draws,
    shared_draws,
)
from faultbook.attribution.ndcg import Array, Gain, Measure, Relevance, Ties
from faultbook.attribution.tally import Reference, Samples, Scorer, attempted, counted
from faultbook.stats.bootstrap import as_generator, cluster_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISAGREEMENT_COLUMNS = ["model_a", "model_b", "kind", "disagreement", "low", "high", "n_logs", "n_pairs"]


@dataclass(frozen=True, slots=True)
class Ensembles:
    """Every combination of models at one number of samples in all, and how much their samples disagree.

    `combinations` has one row a combination, single models included; `disagreement` one row a pair of models, or a
    model with itself.
    """

    combinations: pd.DataFrame
    disagreement: pd.DataFrame
    budget: int
    measure: str

    def summary_frame(self) -> pd.DataFrame:
        """One row a combination."""
        return self.combinations

    def plot(self, ax: Axes | None = None) -> Axes:
        """Single models and pairs as a heat map."""
        from faultbook.attribution.plot import plot_ensembles

        return plot_ensembles(self, ax=ax)


def ensembles(
    predictions: pd.DataFrame,
    attempts: pd.DataFrame,
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    *,
    budget: int | None = None,
    most_models: int = 4,
    k: int | None = 5,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
    ties: Ties = "by_step",
    most_draws: int = 200,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> Ensembles:
    """Score every combination of models, all with the same number of samples.

    A combination of three models with a sample of each costs three samples; one model with three samples is what it
    must be held against. The budget is split as evenly as it goes, and scores are averaged over draws of samples (and
    over which models give one more).

    Parameters
    ----------
    predictions, attempts, annotations, logs : DataFrame
        As for `score`.
    budget : int, optional
        Samples of each combination; by default as many as every model has.
    most_models : int
        Largest combination.
    k, relevance, gain, ties
        See `ndcg`.
    most_draws : int
        All draws are used if there are no more than this, else as many different ones, drawn at random.
    level, n_resamples, seed
        Of the draws and of the intervals, which resample questions.

    Returns
    -------
    Ensembles
        `combinations`: combination, n_models, the nDCG, low, high, chance, adjusted with its bounds, best_member,
        over_best (difference to that member with as many samples) with over_best_low and over_best_high, paired by
        log, n_draws, n_logs, note. A combination whose models have too few samples has a note and no score. The best
        member is chosen on the same logs, so over_best is, if anything, too low.

    Raises
    ------
    FaultbookError
        As `score`; or if nobody flagged a step, or `budget`, `most_models` or `most_draws` is below 1.
    """
    measure, rng = Measure(k, relevance, gain, ties), as_generator(seed)
    settings = {"level": level, "n_resamples": n_resamples, "seed": seed}
    known = judged_only(annotations, logs)
    scorer, found = Scorer(known, measure), attempted(predictions, attempts, known)
    sizes = {model: samples.names.shape[1] for model, samples in found.items()}
    budget = min(sizes.values()) if budget is None else budget
    for name, value in (("budget", budget), ("most_models", most_models), ("most_draws", most_draws)):
        check_at_least_one(name, value)
    together = _Together(found, scorer)
    results: dict[tuple[str, ...], OverDraws] = {}
    rows = []
    for n in range(1, min(most_models, len(found), budget) + 1):
        for names in itertools.combinations(found, n):
            row: dict[str, Any] = {"combination": " + ".join(names), "n_models": n}
            most = -(-budget // n)
            short = [f"{name} has {sizes[name]}" for name in names if sizes[name] < most]
            if short:
                rows.append(row | {"note": f"needs {most} samples of a model; {', '.join(short)}"})
                continue
            draws, weights = shared_draws([sizes[name] for name in names], budget, most_draws, rng)
            rankings = together.rankings(names, draws)
            results[names] = over_draws(rankings, weights, together.log, together.gains, known, scorer)
            row |= results[names].row(measure.column, known, settings) | _over_best(names, results, known, settings)
            rows.append(row | {"n_draws": len(draws), "note": ""})
    columns = ["combination", "n_models", measure.column, "low", "high", "chance", "adjusted", "adjusted_low"]
    columns += ["adjusted_high", "best_member", "over_best", "over_best_low", "over_best_high", "n_draws", "n_logs"]
    frame = pd.DataFrame(rows, columns=[*columns, "note"])
    return Ensembles(frame, _disagreement(together, known, settings), budget, measure.name)


def _over_best(
    names: tuple[str, ...],
    results: dict[tuple[str, ...], OverDraws],
    known: Reference,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """What a combination adds to the best of its members that has as many samples."""
    members = [(name,) for name in names if (name,) in results]
    if len(names) == 1 or len(members) < len(names):
        return {}
    best = max(members, key=lambda member: results[member].mean)
    estimate = mean_over_logs(results[names].per_log - results[best].per_log, known, settings)
    bounds = {"over_best_low": estimate.low, "over_best_high": estimate.high}
    return {"best_member": best[0], "over_best": estimate.estimate, **bounds}


class _Together:
    """What the samples of all models name, on common rows."""

    def __init__(self, found: dict[str, Samples], scorer: Scorer) -> None:
        log = np.concatenate([samples.log for samples in found.values()])
        step = np.concatenate([samples.step for samples in found.values()])
        self.log, self.step, _ = counted(log, step)
        self.gains = scorer.gains(self.log, self.step)
        self.status = {model: samples.status for model, samples in found.items()}
        rows = pd.MultiIndex.from_arrays([self.log, self.step])
        self.names: dict[str, Array] = {}
        self._alone: dict[str, Array] = {}
        for model, samples in found.items():
            n_samples = samples.names.shape[1]
            alone = np.zeros((len(self.log), n_samples), dtype=np.int64)
            at = rows.get_indexer(pd.MultiIndex.from_arrays([samples.log, samples.step]))
            alone[at] = np.column_stack([samples.ranking([number]) for number in range(n_samples)])
            self._alone[model], self.names[model] = alone, alone > 0

    def rankings(self, models: Sequence[str], draws: Sequence[Draw]) -> Iterator[Array]:
        """The votes of each draw, or the ranking of the one sample that it has."""
        for draw in draws:
            parts = [self._alone[model][:, list(chosen)] for model, chosen in zip(models, draw, strict=True)]
            drawn = np.concatenate(parts, axis=1)
            yield drawn[:, 0] if drawn.shape[1] == 1 else (drawn > 0).sum(axis=1)


def _disagreement(together: _Together, known: Reference, settings: dict[str, Any]) -> pd.DataFrame:
    """1 − Jaccard of what two samples name, of one model or of two, over logs where either names a step."""
    rows = []
    for a, b in itertools.combinations_with_replacement(together.names, 2):
        first, second = together.names[a], together.names[b]
        pairs = [(i, j) for i in range(first.shape[1]) for j in range(second.shape[1]) if a != b or i < j]
        total, counts = np.zeros(len(known.logs)), np.zeros(len(known.logs))
        for i, j in pairs:
            either = np.bincount(together.log, weights=first[:, i] | second[:, j], minlength=len(known.logs))
            both = np.bincount(together.log, weights=first[:, i] & second[:, j], minlength=len(known.logs))
            replied = _replied(together.status[a][:, i]) & _replied(together.status[b][:, j]) & (either > 0)
            total[replied] += 1 - both[replied] / either[replied]
            counts += replied
        row: dict[str, Any] = {"model_a": a, "model_b": b, "kind": "within" if a == b else "between"}
        row |= {"n_logs": int((counts > 0).sum()), "n_pairs": len(pairs)}
        if row["n_logs"]:
            seen = counts > 0
            clusters = known.logs.loc[seen, "cluster"].to_numpy()
            estimate = cluster_ratio(total[seen], counts[seen], clusters, **settings)
            row |= {"disagreement": estimate.estimate, "low": estimate.low, "high": estimate.high}
        rows.append(row)
    return pd.DataFrame(rows, columns=DISAGREEMENT_COLUMNS)


def _replied(status: Array) -> Array:
    return np.isin(status.astype(str), ("ok", "abstained"))
