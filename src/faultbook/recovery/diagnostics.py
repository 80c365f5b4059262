"""What the three models can be trusted for: coefficients, calibration, folds and events."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from statsmodels.discrete.discrete_model import Logit
from statsmodels.tools.sm_exceptions import ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning

from faultbook.errors import FaultbookError
from faultbook.recovery.estimators import (
    KEY,
    TARGETS,
    Estimators,
    Floats,
    Truths,
    data_sha256,
    feature_matrix,
    reached_rows,
    truths,
)
from faultbook.recovery.separation import why_no_estimate, with_intercept
from faultbook.stats.bootstrap import cluster_ratio
from faultbook.stats.proportion import check_level, clopper_pearson

SUMMARY_COLUMNS = ["model", "feature", "coefficient", "se", "z", "p", "low", "high", "used", "n", "n_tasks", "note"]
CALIBRATION_COLUMNS = [
    *("model", "bin", "predicted", "predicted_low", "predicted_high"),
    *("observed", "low", "high", "n", "n_tasks", "events"),
]
BRIER_COLUMNS = [
    *("model", "brier", "low", "high", "base_rate", "brier_of_base_rate"),
    *("gain", "gain_low", "gain_high", "n", "n_tasks", "note"),
]
FOLD_COLUMNS = ["model", "fold", "n", "n_tasks", "n_events", "n_train", "n_train_events", "note"]
EVENT_COLUMNS = ["model", "n", "n_tasks", "n_events", "rarer", "rarer_tasks", "n_features", "tasks_per_feature", "note"]
_MOST_BINS = 5
_FEW_EVENTS = 10  # a feature, below which logistic coefficients are biased: Peduzzi et al. 1996


def summaries(estimators: Estimators, candidates: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Coefficients for reading: maximum likelihood without a penalty, errors clustered by task.

    They are not what `Estimators` predicts with, which stands beside them as `used`: an ℓ2 penalty shrinks
    coefficients, and leaves no honest error of its own.

    Parameters
    ----------
    estimators : Estimators
        The models; only features and `used` are taken from them.
    candidates : DataFrame
        The table `Candidates`; only rows with `reached` are used.
    level : float
        Confidence level.

    Returns
    -------
    DataFrame
        For each model one row for the intercept and one a feature: coefficient (log odds per standard deviation of
        the feature in these rows), se, z, p, low, high, used, n, n_tasks and note. What cannot be estimated is NaN,
        and `note` says why: one outcome only, a constant or collinear feature, separation, too few tasks.
    """
    level = check_level(level)
    rows = reached_rows(candidates)
    x, task = feature_matrix(rows, estimators.features), pd.factorize(rows["task_id"])[0]
    names = list(estimators.features)
    constant = [False, *(np.ptp(x, axis=0) == 0)]
    tables = []
    for model, target in TARGETS.items():
        fitted = estimators.models[model]
        used = [fitted.intercept, *fitted.coefficient] if fitted.base_rate is None else np.nan
        estimates, note = _maximum_likelihood(x, truths(rows, target), task, names, level)
        table = pd.DataFrame({"model": model, "feature": ["intercept", *names], "used": used, **estimates})
        table["note"] = np.where(constant, "constant: it has one value in all rows", note)
        tables.append(table)
    return pd.concat(tables, ignore_index=True).assign(n=len(rows), n_tasks=len(np.unique(task)))[SUMMARY_COLUMNS]


def calibration(
    estimators: Estimators,
    candidates: pd.DataFrame,
    *,
    out_of_fold: bool = True,
    n_bins: int = 5,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Predicted against observed shares, in few bins of about equal size.

    Parameters
    ----------
    estimators, candidates
        The models and the table `Candidates`, on which they were fitted if `out_of_fold`.
    out_of_fold : bool
        Judge each row by models that saw no row of its task; False takes the models as they are, for other data.
    n_bins : int
        Quantile bins, 1 to 5; equal predictions share a bin, so there may be fewer.
    level : float
        Confidence level.
    n_resamples, seed
        Of the interval, which resamples the tasks of a bin; where all its rows agree, it is the exact one
        (Clopper–Pearson) of as many tasks.

    Returns
    -------
    DataFrame
        model, bin (from 0), predicted (mean), predicted_low, predicted_high, observed (share), low, high, n, n_tasks
        and events.

    Raises
    ------
    FaultbookError
        If `n_bins` is not 1 to 5, or the models were not fitted on these candidates (`out_of_fold`).
    """
    if n_bins not in range(1, _MOST_BINS + 1):
        raise FaultbookError(f"n_bins is {n_bins}; give 1 to {_MOST_BINS}: more leave too few rows in each")
    rows = _judged(estimators, candidates, out_of_fold)
    found: list[dict[str, object]] = []
    for model in TARGETS:
        p, event = rows[model].to_numpy(), rows[f"is_{model}"].to_numpy()
        inner = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1]))
        groups = rows.groupby(np.searchsorted(inner, p, side="left"), sort=True).indices
        for number, places in enumerate(groups.values()):
            tasks, events_here = rows["task_id"].iloc[places], int(event[places].sum())
            low, high = _share_interval(event[places], tasks, level, n_resamples, seed)
            found.append(
                {"model": model, "bin": number, "predicted": p[places].mean()}
                | {"predicted_low": p[places].min(), "predicted_high": p[places].max()}
                | {"observed": events_here / len(places), "low": low, "high": high, "n": len(places)}
                | {"events": events_here, "n_tasks": tasks.nunique()}
            )
    return pd.DataFrame(found, columns=CALIBRATION_COLUMNS)


def _share_interval(
    event: Truths, tasks: pd.Series, level: float, n_resamples: int, seed: int | np.random.Generator
) -> tuple[float, float]:
    """An interval of the share of rows with the event, whose rows come in tasks."""
    n_tasks = tasks.nunique()
    if event.all() or not event.any():
        exact = clopper_pearson(n_tasks if event.any() else 0, n_tasks, level)
        return exact.low, exact.high
    ones = np.ones(len(event))
    found = cluster_ratio(event, ones, tasks.to_numpy(), level=level, n_resamples=n_resamples, seed=seed)
    return found.low, found.high


def brier(
    estimators: Estimators,
    candidates: pd.DataFrame,
    *,
    out_of_fold: bool = True,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Brier scores, the mean squared error of probabilities, beside that of the base rate.

    Parameters
    ----------
    estimators, candidates, out_of_fold
        As in `calibration`.
    level, n_resamples, seed
        Of the percentile bootstrap over tasks.

    Returns
    -------
    DataFrame
        One row a model: brier (0 is best) with low and high; base_rate, the share of events in these rows, and
        brier_of_base_rate, of predicting it everywhere; gain (what the model is better by; below 0 it is worse than
        no model) with gain_low and gain_high; n, n_tasks, note. A bound is NaN where tasks do not differ; beyond
        5,000 tasks intervals are normal ones (see `stats.bootstrap.cluster_ratio`).

    References
    ----------
    Brier (1950), Monthly Weather Review 78, 1-3.
    """
    rows = _judged(estimators, candidates, out_of_fold)
    settings: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "seed": seed}
    found = []
    for model in TARGETS:
        event = rows[f"is_{model}"].to_numpy(dtype=np.float64)
        rate = float(event.mean())
        error = np.square(event - rows[model].to_numpy())
        tasks, ones = rows["task_id"].to_numpy(), np.ones(len(rows))
        score = cluster_ratio(error, ones, tasks, **settings)
        gain = cluster_ratio(np.square(event - rate) - error, ones, tasks, **settings)
        note = "one outcome only: the base rate cannot be bettered" if rate in (0, 1) else ""
        found.append(
            {"model": model, "brier": score.estimate, "low": score.low, "high": score.high, "base_rate": rate}
            | {"brier_of_base_rate": rate * (1 - rate), "gain": gain.estimate}
            | {"gain_low": gain.low, "gain_high": gain.high, "n": score.n, "n_tasks": score.n_clusters, "note": note}
        )
    return pd.DataFrame(found, columns=BRIER_COLUMNS)


def folds(estimators: Estimators, candidates: pd.DataFrame) -> pd.DataFrame:
    """Events in each fold, and folds whose training rows have one outcome only.

    Returns
    -------
    DataFrame
        model, fold, n, n_tasks and n_events of the fold; n_train and n_train_events of the rows that its model was
        fitted on; note.
    """
    rows = _judged(estimators, candidates, out_of_fold=True)
    found = []
    for model in TARGETS:
        events = rows[f"is_{model}"]
        for fold, part in rows.groupby(f"fold_{model}", sort=True):
            n_events, n_train = int(part[f"is_{model}"].sum()), len(rows) - len(part)
            training = int(events.sum()) - n_events
            note = "its training rows have one outcome: the base rate stands in" if training in (0, n_train) else ""
            sizes = (len(part), part["task_id"].nunique(), n_events, n_train, training)
            found.append((model, int(str(fold)), *sizes, note))
    return pd.DataFrame(found, columns=FOLD_COLUMNS)


def events(candidates: pd.DataFrame, features: Sequence[str]) -> pd.DataFrame:
    """How many events there are for each feature that a model weighs.

    Returns
    -------
    DataFrame
        One row a model: n, n_tasks, n_events, rarer (rows with the rarer outcome), rarer_tasks (tasks with such a
        row: rows of a task are not independent), n_features (those that vary), tasks_per_feature (rarer_tasks a
        feature) and note.

    References
    ----------
    Peduzzi et al. (1996), Journal of Clinical Epidemiology 49, 1373-1379: at least 10 events a feature.
    """
    rows = reached_rows(candidates)
    n_features = int((np.ptp(feature_matrix(rows, features), axis=0) > 0).sum()) if len(rows) else 0
    found = []
    for model, target in TARGETS.items():
        y = truths(rows, target)
        rarer = y if 2 * y.sum() <= len(y) else ~y
        tasks = rows["task_id"][rarer].nunique()
        ratio = tasks / n_features if n_features else np.nan
        few = f"fewer than {_FEW_EVENTS} tasks with the rarer outcome a feature: use few features and a strong penalty"
        note = few if ratio < _FEW_EVENTS else ""
        counts = (len(y), rows["task_id"].nunique(), int(y.sum()), int(rarer.sum()), tasks, n_features)
        found.append((model, *counts, ratio, note))
    return pd.DataFrame(found, columns=EVENT_COLUMNS)


def _judged(estimators: Estimators, candidates: pd.DataFrame, out_of_fold: bool) -> pd.DataFrame:
    """Reached rows with predictions (p_err, …), what came of them (is_p_err, …) and, out of fold, the folds."""
    rows = reached_rows(candidates)
    if rows.empty:
        raise FaultbookError("no candidate was reached; there is nothing to judge the models on")
    if out_of_fold:
        predictions = estimators.out_of_fold
        if data_sha256(candidates, estimators.features) != estimators.data_sha256:
            raise FaultbookError("the models were not fitted on these candidates; judge them with out_of_fold=False")
        judged = rows[KEY].merge(predictions, on=KEY, how="left", validate="one_to_one")
        if judged["p0"].isna().any():
            raise FaultbookError("tasks have other names than when the models were fitted; fit them again")
    else:
        judged = rows[KEY].join(estimators.predict(rows)).reset_index(drop=True)
    return judged.assign(**{f"is_{model}": truths(rows, target) for model, target in TARGETS.items()})


def _maximum_likelihood(
    x: Floats, y: Truths, task: npt.NDArray[np.intp], names: list[str], level: float
) -> tuple[dict[str, Floats], str]:
    """Estimates of the intercept and each feature, NaN where there are none, and the reason or a caution."""
    varies = np.ptp(x, axis=0) > 0
    estimates = {name: np.full(1 + len(names), np.nan) for name in ("coefficient", "se", "z", "p", "low", "high")}
    why = why_no_estimate(x[:, varies], y, [name for name, kept in zip(names, varies, strict=True) if kept])
    if why:
        return estimates, why
    design = with_intercept(x[:, varies])
    with warnings.catch_warnings():
        # narrowly: any other warning still shows
        for category in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning):
            warnings.simplefilter("ignore", category)
        few = len(np.unique(task)) <= design.shape[1]
        cluster = {} if few else {"cov_type": "cluster", "cov_kwds": {"groups": task}}
        fitted = Logit(y.astype(np.float64), design).fit(disp=0, maxiter=200, **cluster)
    if not fitted.mle_retvals["converged"]:
        return estimates, "the likelihood has no maximum that could be found"
    places = np.concatenate([[True], varies])
    estimates["coefficient"][places] = fitted.params
    if few:
        return estimates, f"no errors: {len(np.unique(task))} tasks for {design.shape[1]} coefficients"
    reach = stats.norm.ppf((1 + level) / 2) * fitted.bse
    found = {"se": fitted.bse, "z": fitted.tvalues, "p": fitted.pvalues}
    for name, values in (found | {"low": fitted.params - reach, "high": fitted.params + reach}).items():
        estimates[name][places] = values
    return estimates, ""
