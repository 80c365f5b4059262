"""What more samples of a model bring: the average over all subsets instead of the luck of one draw."""

from __future__ import annotations

import math

import pandas as pd

from faultbook.attribution.draws import check_at_least_one, judged_only, over_draws, some_draws
from faultbook.attribution.ndcg import Gain, Measure, Relevance, Ties
from faultbook.attribution.tally import Scorer, attempted
from faultbook.stats.bootstrap import as_generator


def n_scaling(
    predictions: pd.DataFrame,
    attempts: pd.DataFrame,
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    *,
    k: int | None = 5,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
    ties: Ties = "by_step",
    most_subsets: int = 200,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Score models on n of their N samples, for every n, averaged over subsets.

    Parameters
    ----------
    predictions, attempts, annotations, logs : DataFrame
        As for `score`.
    k, relevance, gain, ties
        See `ndcg`.
    most_subsets : int
        All subsets of a size are used if there are no more than this, else as many different ones, drawn at random.
    level, n_resamples, seed
        Of the draw of subsets and of the intervals, which resample questions.

    Returns
    -------
    DataFrame
        One row a model and n: model, n_samples, the nDCG (mean over subsets and planned logs; nothing named counts as
        0), low, high, chance, adjusted with its bounds, `spread` (standard deviation of the mean score over subsets:
        how far one draw may lie from their average; missing for a single subset), n_subsets, all_subsets (whether
        that is all), n_logs, measure. More samples name more steps, so chance rises with n too: read `adjusted`.
        Subsets overlap, so the spread shrinks towards N whatever the model does.

    Raises
    ------
    FaultbookError
        As `score`; or if nobody flagged a step, or `most_subsets` is below 1.
    """
    check_at_least_one("most_subsets", most_subsets)
    measure, rng = Measure(k, relevance, gain, ties), as_generator(seed)
    settings = {"level": level, "n_resamples": n_resamples, "seed": seed}
    known = judged_only(annotations, logs)
    scorer, rows = Scorer(known, measure), []
    for model, found in attempted(predictions, attempts, known).items():
        gains, n_all = scorer.gains(found.log, found.step), found.names.shape[1]
        for n in range(1, n_all + 1):
            draws = [draw[0] for draw in some_draws([n_all], [n], most_subsets, rng)]
            rankings = (found.ranking(list(chosen)) for chosen in draws)
            result = over_draws(rankings, [1 / len(draws)] * len(draws), found.log, gains, known, scorer)
            row = {"model": model, "n_samples": n} | result.row(measure.column, known, settings)
            row |= {"spread": result.spread, "n_subsets": len(draws)}
            rows.append(row | {"all_subsets": len(draws) == math.comb(n_all, n), "measure": measure.name})
    return pd.DataFrame(rows)
