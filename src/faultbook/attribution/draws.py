"""Scores averaged over draws of samples: all subsets, or many different ones, instead of the luck of one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faultbook.attribution.ndcg import Array
from faultbook.attribution.tally import Reference, Scorer, reference
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import Estimate, cluster_ratio

Draw = tuple[tuple[int, ...], ...]  # of each model, which of its samples


def judged_only(annotations: pd.DataFrame, logs: pd.DataFrame | None) -> Reference:
    """`tally.reference`, if there is something to rank against."""
    known = reference(annotations, logs)
    if not len(known.log):
        raise FaultbookError("nobody flagged a step; there is nothing to rank against")
    return known


def some_draws(sizes: Sequence[int], taken: Sequence[int], most: int, rng: np.random.Generator) -> list[Draw]:
    """Ways to take `taken` of `sizes` samples: all of them, or `most` different ones at random, in a fixed order."""
    if math.prod(math.comb(size, n) for size, n in zip(sizes, taken, strict=True)) <= most:
        ways = (itertools.combinations(range(size), n) for size, n in zip(sizes, taken, strict=True))
        return list(itertools.product(*ways))
    drawn: set[Draw] = set()
    while len(drawn) < most:
        parts = (rng.choice(size, n, replace=False) for size, n in zip(sizes, taken, strict=True))
        drawn.add(tuple(tuple(sorted(int(number) for number in part)) for part in parts))
    return sorted(drawn)


def shared_draws(
    sizes: Sequence[int], budget: int, most: int, rng: np.random.Generator
) -> tuple[list[Draw], list[float]]:
    """Draws of `budget` samples in all, as evenly as it goes, and the weight of each.

    Each choice of who gives one more has the same weight, however many draws it has.
    """
    base, extra = divmod(budget, len(sizes))
    choices = list(itertools.combinations(range(len(sizes)), extra))
    draws: list[Draw] = []
    weights: list[float] = []
    for more in choices:
        taken = [base + (number in more) for number in range(len(sizes))]
        found = some_draws(sizes, taken, max(1, most // len(choices)), rng)
        draws += found
        weights += [1 / (len(choices) * len(found))] * len(found)
    return draws, weights


def check_at_least_one(name: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise FaultbookError(f"{name} is {value!r}; give a whole number of at least 1")


@dataclass(frozen=True, slots=True)
class OverDraws:
    """Scores and chance levels per log, averaged over draws, and the mean score of each draw."""

    per_log: Array
    chance: Array
    means: list[float]

    @property
    def mean(self) -> float:
        """The mean score over logs."""
        return float(np.nanmean(self.per_log))

    @property
    def spread(self) -> float:
        """Standard deviation of the mean score over draws; NaN for a single one."""
        return float(np.std(self.means)) if len(self.means) > 1 else float("nan")

    def row(self, column: str, known: Reference, settings: dict[str, Any]) -> dict[str, Any]:
        """The mean, what chance would score, and the mean rescaled between chance and 1."""
        estimate = mean_over_logs(self.per_log, known, settings)
        row: dict[str, Any] = {column: estimate.estimate, "low": estimate.low, "high": estimate.high}
        row |= dict.fromkeys(("chance", "adjusted", "adjusted_low", "adjusted_high"), float("nan"))
        row["chance"] = float(np.nanmean(self.chance)) if not np.isnan(self.chance).all() else float("nan")
        usable = ~np.isnan(self.per_log) & (self.chance < 1)
        if usable.any():
            above, room = (self.per_log - self.chance)[usable], (1 - self.chance)[usable]
            adjusted = cluster_ratio(above, room, known.logs.loc[usable, "cluster"].to_numpy(), **settings)
            row |= {"adjusted": adjusted.estimate, "adjusted_low": adjusted.low, "adjusted_high": adjusted.high}
        return row | {"n_logs": estimate.n}


def over_draws(
    rankings: Iterable[Array], weights: Sequence[float], log: Array, gains: Array, known: Reference, scorer: Scorer
) -> OverDraws:
    """Score each ranking (one priority a row of `log`, see `ndcg.dcg`) and average over them; weights add up to 1."""
    scores, chance = np.zeros(len(known.logs)), np.zeros(len(known.logs))
    means: list[float] = []
    for ranking, weight in zip(rankings, weights, strict=True):
        drawn = scorer.scores(log, ranking, gains)
        scores += weight * drawn
        chance += weight * scorer.chance(np.bincount(log, weights=ranking > 0, minlength=len(known.logs)))
        means.append(float(np.nanmean(drawn)))
    return OverDraws(scores, chance, means)


def mean_over_logs(per_log: Array, known: Reference, settings: dict[str, Any]) -> Estimate:
    """The mean over logs with a flagged step; its interval resamples questions."""
    judged = ~np.isnan(per_log)
    clusters = known.logs.loc[judged, "cluster"].to_numpy()
    return cluster_ratio(per_log[judged], np.ones(int(judged.sum())), clusters, **settings)
