"""What the scores of a model say together: the mean with its interval, and where the rest of it was lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests

from faultbook.diagnosis.policy import POLICIES
from faultbook.diagnosis.score import SUBMITTED
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import Estimate, cluster_bootstrap
from faultbook.stats.paired import sign_flip

SUMMARY_COLUMNS = [
    *("model", "policy", "score", "low", "high", "score_of_scored"),
    *("full_recall_rate", "precision_given_full_recall"),
    *("omission_loss", "omission_low", "omission_high"),
    *("over_diagnosis_loss", "over_diagnosis_low", "over_diagnosis_high"),
    *("n_incidents", "n_runs", "n_unscored", "n_ungradeable"),
]
COMPARISON_COLUMNS = [
    *("model_a", "model_b", "n_incidents", "difference_pp", "low_pp", "high_pp", "p", "p_holm", "separable"),
]


def summarize(scores: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Summarise the runs of each model.

    Parameters
    ----------
    scores : DataFrame
        From `score`, under one policy.
    level : float
        Confidence level.
    n_resamples, seed : int
        Of the percentile bootstrap, which resamples incidents and keeps their repeats inside.

    Returns
    -------
    DataFrame
        One row a model. `score` S is the mean over all gradeable runs, unscored ones counted as 0; `score_of_scored`
        leaves those out. With R the `full_recall_rate` and P̄ the `precision_given_full_recall`, S = R P̄, so that
        1 − S = (1 − R) + R (1 − P̄) exactly: `omission_loss` and `over_diagnosis_loss`. Both are missing under a policy
        that does not score precision at full recall.

    Notes
    -----
    A bound is missing where every resample gives the same value; see `stats.proportion.zero_event_upper_bound`.
    """
    rows = []
    for (model, policy), part in scores.groupby(["model", "policy"], sort=False):
        runs = part[part["status"] != "ungradeable"]
        unscored = ~runs["status"].isin(SUBMITTED)
        values = counted_scores(runs)
        row = {"model": model, "policy": policy, "n_incidents": runs["incident_id"].nunique(), "n_runs": len(runs)}
        row |= {"n_unscored": int(unscored.sum()), "n_ungradeable": len(part) - len(runs)}
        if len(runs):
            bootstrap = partial(cluster_bootstrap, level=level, n_resamples=n_resamples, seed=seed)
            estimate = bootstrap(values, runs["incident_id"])
            row |= {"score": estimate.estimate, "low": estimate.low, "high": estimate.high}
            row["score_of_scored"] = values[~unscored].mean()
            if _scoring(runs, str(policy)) == {"precision_at_full_recall"}:
                row |= _losses(runs, values, bootstrap)
        rows.append(row)
    return pd.DataFrame(rows, columns=SUMMARY_COLUMNS)


def counted_scores(runs: pd.DataFrame) -> pd.Series:
    """The score of each run as a number; a run without a submission counts as 0.

    Raises
    ------
    FaultbookError
        If a run that has a submission has no score: it is not 0, it is missing.
    """
    submitted = runs["status"].isin(SUBMITTED)
    lost = runs[submitted & runs["score"].isna()]
    if len(lost):
        first = lost.iloc[0]
        where = f"{first['model']}, {first['incident_id']}, repeat {first['repeat']}"
        raise FaultbookError(f"{len(lost)} scored runs have no score (first: {where}); score them again")
    return runs["score"].astype("float64").where(submitted, 0.0)


def _scoring(runs: pd.DataFrame, policy: str) -> set[str]:
    """What the scores are made of; tables of other origin may only name a policy that is known here."""
    if "scoring" in runs and runs["scoring"].notna().all():
        return set(runs["scoring"])
    return {POLICIES[policy].scoring} if policy in POLICIES else set()


def _losses(runs: pd.DataFrame, values: pd.Series, bootstrap: Callable[..., Estimate]) -> dict[str, float]:
    full = runs["recall"].astype("float64").fillna(0.0) == 1
    omitted = (~full).astype("float64")
    named_too_much = (1 - values).where(full, 0.0)
    omission, excess = (bootstrap(lost, runs["incident_id"]) for lost in (omitted, named_too_much))
    return {
        "full_recall_rate": float(full.mean()),
        "precision_given_full_recall": float(values[full].mean()),
        "omission_loss": omission.estimate,
        "omission_low": omission.low,
        "omission_high": omission.high,
        "over_diagnosis_loss": excess.estimate,
        "over_diagnosis_low": excess.low,
        "over_diagnosis_high": excess.high,
    }


def compare(
    scores: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 10_000, n_flips: int = 100_000, seed: int = 0
) -> pd.DataFrame:
    """Compare models on the incidents that they have in common.

    Parameters
    ----------
    scores : DataFrame
        From `score`, under one policy.
    level : float
        Confidence level; two models are separable if the Holm-adjusted p is below 1 − level.
    n_resamples, n_flips, seed : int
        Of the bootstrap over incidents and of the sign-flip test on incident means.

    Returns
    -------
    DataFrame
        One row a pair: model_a, model_b, n_incidents, difference_pp (a − b, percentage points), low_pp, high_pp, p,
        p_holm, separable. Unscored runs count as 0.

    Raises
    ------
    FaultbookError
        If the scores are of several policies.
    """
    policies = list(dict.fromkeys(scores["policy"]))
    if len(policies) > 1:
        raise FaultbookError(f"scores of several policies ({', '.join(policies)}); compare them one policy at a time")
    gradeable = scores[scores["status"] != "ungradeable"]
    values = gradeable.assign(value=counted_scores(gradeable))
    means = values.pivot_table(index="incident_id", columns="model", values="value", aggfunc="mean", sort=False)
    rows = [_pair(means, a, b, level, n_resamples, n_flips, seed) for a, b in itertools.combinations(means.columns, 2)]
    frame = pd.DataFrame(rows, columns=COMPARISON_COLUMNS)
    tested = frame["p"].notna()
    if tested.any():
        frame.loc[tested, "p_holm"] = multipletests(frame.loc[tested, "p"], method="holm")[1]
    frame["separable"] = frame["p_holm"].astype("float64") < 1 - level
    return frame


def _pair(
    means: pd.DataFrame, a: str, b: str, level: float, n_resamples: int, n_flips: int, seed: int
) -> dict[str, object]:
    difference = (means[a] - means[b]).dropna()
    difference = difference.where(difference.abs() > 1e-12, 0.0)  # means of the same values in another order
    row: dict[str, object] = {"model_a": a, "model_b": b, "n_incidents": len(difference)}
    if difference.empty:
        return row
    estimate = cluster_bootstrap(
        difference, np.arange(len(difference)), level=level, n_resamples=n_resamples, seed=seed
    )
    p = sign_flip(difference, n_draws=n_flips, seed=seed).p if difference.any() else float("nan")
    bounds = {"difference_pp": estimate.estimate, "low_pp": estimate.low, "high_pp": estimate.high}
    return row | {name: 100 * value for name, value in bounds.items()} | {"p": p}
