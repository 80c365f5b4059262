"""Rules fitted on the runs of one source or cohort and judged on those of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery.calibrate import calibrate
from faultbook.recovery.detectors import standard_policies
from faultbook.recovery.estimators import fit
from faultbook.recovery.evaluate import TABLE_COLUMNS, evaluate
from faultbook.recovery.policies import Policy
from faultbook.recovery.rule import FailureProbability

TRANSFER_COLUMNS = ["fitted_on", "judged_on", "judged_as", "n_tasks_shared", *TABLE_COLUMNS]
SAME, OTHER = "the same runs, predicted out of fold; thresholds were chosen on them", "other runs"


class Fitted(NamedTuple):
    """Policies chosen on some candidates, with predictions for those (out of fold) and for any others."""

    policies: list[Policy]
    out_of_fold: pd.DataFrame
    predict: Callable[[pd.DataFrame], pd.DataFrame]


def fit_policies(
    candidates: pd.DataFrame,
    *,
    failure_probability: FailureProbability | None = None,
    harm_limit: float = 0.02,
    harm_penalty: float = 2.0,
    min_delay: int = 1,
    seed: int = 0,
    **settings: Any,
) -> Fitted:
    """Fit the three models, calibrate the rule, and choose everything that it is compared with.

    Parameters
    ----------
    candidates : DataFrame
        Table `Candidates` with features.
    failure_probability, harm_limit, harm_penalty, min_delay
        As in `calibrate`.
    seed : int
        Decides on the folds, and on the draw of the random policy.
    **settings
        Of `estimators.fit`: features, C, n_folds, penalty.

    Returns
    -------
    Fitted
        For other candidates, one that lacks a feature gets no prediction, on which the rule holds.
    """
    models = fit(candidates, seed=seed, **settings)
    known = models.out_of_fold
    calibration = calibrate(
        candidates,
        known,
        harm_limit=harm_limit,
        harm_penalty=harm_penalty,
        min_delay=min_delay,
        failure_probability=failure_probability,
        n_bootstraps=0,
    )
    policies = standard_policies(calibration, candidates, known, seed=seed)
    return Fitted(policies, known, lambda others: models.predict(others, missing="nan"))


def transfer(
    fit_on: Mapping[str, pd.DataFrame],
    judged_on: Mapping[str, pd.DataFrame],
    make: Callable[[pd.DataFrame], Fitted],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Fit on each of some data sets, and judge on each of some others.

    Parameters
    ----------
    fit_on, judged_on : mapping of str to DataFrame
        Tables `Candidates` by name: of engines, agents or cohorts.
    make : callable
        Makes policies of candidates: ``partial(fit_policies, failure_probability="complement_of_p0")``.
    level, n_resamples, seed
        As in `evaluate`.

    Returns
    -------
    DataFrame
        The rows of `evaluate` for every pair of data sets, after fitted_on, judged_on, judged_as ("other runs", or that
        they are the same runs: there predictions are out of fold, but the thresholds have seen the outcomes) and
        n_tasks_shared (tasks that are in both: other runs of a task that was fitted on are no new tasks).

    Raises
    ------
    FaultbookError
        If there is nothing to fit on or to judge on, or as `make` and `evaluate`.

    References
    ----------
    arXiv 2610.00372, transfer: the rule fitted on Qwen3-14B has 5 rescues and 7 harms on Qwen3-8B, by the authors'
    repository.
    """
    if not fit_on or not judged_on:
        raise FaultbookError("no data set to fit on or none to judge on; give at least one of each, by name")
    parts = []
    for fitted_name, known in fit_on.items():
        fitted = make(known)
        for name, others in judged_on.items():
            same = others.equals(known)
            predictions = fitted.out_of_fold if same else fitted.predict(others)
            found = evaluate(
                fitted.policies, others, predictions, level=level, n_resamples=n_resamples, seed=seed
            ).table
            shared = len(set(known["task_id"]) & set(others["task_id"]))
            labels = {"fitted_on": fitted_name, "judged_on": name, "judged_as": SAME if same else OTHER}
            parts.append(found.assign(**labels, n_tasks_shared=shared))
    text = dict.fromkeys(("fitted_on", "judged_on", "judged_as"), "string")
    return pd.concat(parts, ignore_index=True)[TRANSFER_COLUMNS].astype(text)
