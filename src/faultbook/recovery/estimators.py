"""The three models behind the intervention rule: an error, success without and success with a refresh."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from faultbook.errors import DataError, FaultbookError, one_of, short_repr
from faultbook.stats.bootstrap import as_generator
from faultbook.stats.proportion import as_count
from faultbook.tables import FEATURE_PREFIX

KEY = ["task_id", "condition", "replicate", "delay"]
TARGETS = {"p_err": "is_error", "p0": "success_without", "p1": "success_with"}  # model to the column it estimates
OUT_OF_FOLD_COLUMNS = [*KEY, *TARGETS, *(f"fold_{model}" for model in TARGETS)]
NOTE_COLUMNS = ["model", "what", "reason"]

_PENALTIES = ("l2", "firth")
_LARGEST = 1e100  # the square of a feature must be a number
_AFTER = "it is known only after the decision"
_TRUTH = "it says what was done to the run, which a rule cannot know"
_KEYS = "it names the run, and says nothing that carries over to another"
_REFUSED = {
    **dict.fromkeys(("success", "success_without", "success_with", "factual_success", "tau", "outcome"), _AFTER),
    **dict.fromkeys(("ended_before", "reached", "n_actions"), _AFTER),
    "action": "it is the decision itself",
    **dict.fromkeys(("is_error", "condition"), _TRUTH),
    **dict.fromkeys(("task_id", "replicate", "prefix_hash", "cohort", "source"), _KEYS),
}

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Penalty = Literal["l2", "firth"]
Note = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A fitted model: p = 1 / (1 + exp(−(intercept + Σ coefficient (x − mean) / scale))).

    Coefficients are per standard deviation of the rows that the model was fitted on. A model that could not be fitted
    is its `base_rate`, the share of events, whatever the features; else `base_rate` is None.
    """

    name: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coefficient: tuple[float, ...]
    intercept: float
    base_rate: float | None
    n_rows: int
    n_events: int

    def log_odds(self, x: Floats) -> Floats:
        """Log odds of rows, shape (n, features), from the features alone (`base_rate` left aside)."""
        total = np.full(len(x), self.intercept)
        # Feature by feature, not as a matrix product: a row's sum must not depend on which rows stand beside it.
        with np.errstate(over="ignore", invalid="ignore"):  # what becomes of it is infinite or NaN, and held
            for column, (mean, scale, weight) in enumerate(zip(self.mean, self.scale, self.coefficient, strict=True)):
                total += weight * ((x[:, column] - mean) / scale)
        return total

    def probabilities(self, x: Floats) -> Floats:
        """Probabilities of rows, shape (n, features); NaN for a row that lacks a feature."""
        p = expit(self.log_odds(x)) if self.base_rate is None else np.full(len(x), self.base_rate)
        return np.where(np.isnan(x).any(axis=1), np.nan, p)


@dataclass(frozen=True, eq=False, slots=True)
class Estimators:
    """Three fitted models, how they were fitted, and what had to be done differently from what was asked.

    `low` and `high` are the least and the greatest value of each feature in the rows that were fitted. `data_sha256`
    names those rows whatever their order and the names of their tasks. `notes` has the columns model, what, reason.
    """

    p_err: LogisticModel
    p0: LogisticModel
    p1: LogisticModel
    features: tuple[str, ...]
    penalty: Penalty
    C: float | None  # of the ℓ2 penalty; None under Firth's
    n_folds: int
    seed: int | None  # None if a generator was given
    n_rows: int
    n_tasks: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    data_sha256: str
    notes: pd.DataFrame = field(repr=False)
    _out_of_fold: pd.DataFrame | None = field(default=None, repr=False)
    _fitted: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def models(self) -> dict[str, LogisticModel]:
        """The models by name: p_err, p0, p1."""
        return {"p_err": self.p_err, "p0": self.p0, "p1": self.p1}

    @property
    def out_of_fold(self) -> pd.DataFrame:
        """Each reached candidate by models that saw no row of its task: the key, p_err, p0, p1 and the fold in each.

        Raises
        ------
        FaultbookError
            If the models were loaded from a file, which holds no predictions.
        """
        if self._out_of_fold is None:
            raise FaultbookError("models from a file have no out-of-fold predictions; fit them on the candidates again")
        return self._out_of_fold.copy()

    @property
    def fitted(self) -> pd.DataFrame | None:
        """Each fitted candidate by the models that saw it: the key, p_err, p0, p1; None for models from a file."""
        return None if self._fitted is None else self._fitted.copy()

    def predict(self, candidates: pd.DataFrame, *, missing: Literal["refuse", "nan"] = "refuse") -> pd.DataFrame:
        """Estimate p_err, p0 and p1 of candidates with the models fitted on all rows.

        Parameters
        ----------
        candidates : DataFrame
            The features. Where a column `reached` is False there is nothing to decide, and all three are NaN.
        missing : {"refuse", "nan"}
            What to do with a reached row that lacks a feature: raise, or give NaN, on which the rule holds.

        Returns
        -------
        DataFrame
            p_err, p0 and p1 with the index of `candidates`. Rows of the fitted data are not predicted out of fold.

        Raises
        ------
        DataError
            If a feature is not there, no number, infinite or, unless ``missing="nan"``, missing.
        """
        if missing not in ("refuse", "nan"):
            raise FaultbookError(one_of("missing", missing, ("refuse", "nan")))
        reached = truths(candidates, "reached") if "reached" in candidates else np.ones(len(candidates), dtype=bool)
        x = np.full((len(candidates), len(self.features)), np.nan)
        x[reached] = feature_matrix(candidates[reached], self.features, missing=missing)
        return pd.DataFrame(
            {name: model.probabilities(x) for name, model in self.models.items()}, index=candidates.index
        )


def fit(
    candidates: pd.DataFrame,
    *,
    features: Sequence[str] | None = None,
    C: float = 0.1,  # noqa: N803  # the name that scikit-learn and the paper give it
    n_folds: int = 5,
    penalty: Penalty = "l2",
    seed: int | np.random.Generator = 0,
) -> Estimators:
    """Fit p_err (an error), p0 (success without) and p1 (success with a refresh) on the candidates that were reached.

    Each is a logistic model on standardised features. Beside the models on all rows, every row is predicted by models
    that saw no row of its task: thresholds are to be chosen on those.

    Parameters
    ----------
    candidates : DataFrame
        The table `Candidates`; only rows with `reached` are used.
    features : sequence of str, optional
        Columns `x_…`, and `delay` if wanted; all columns `x_…` unless given.
    C : float
        Inverse strength of the ℓ2 penalty on standardised coefficients; small is strong. It also limits how extreme
        a probability can get: see `diagnostics.reachable`.
    n_folds : int
        Folds of tasks, at least 2. There are never more than tasks, nor than tasks that show the rarer outcome.
    penalty : {"l2", "firth"}
        "firth" is Firth's, for separated or rare outcomes; it needs the extra `firth` and leaves C aside.
    seed : int or numpy.random.Generator
        Decides on the folds.

    Returns
    -------
    Estimators
        Neither the order of rows nor the names of tasks changes them (among tasks that are alike in every value,
        names decide which is in which fold). Where all rows, or all training rows of a fold, have one outcome, the
        base rate stands for the model, and `notes` says so.

    Raises
    ------
    DataError
        If a column is missing, a feature is known only after the decision, or a value is missing or not finite.
    FaultbookError
        If a setting is out of its range, no candidate was reached, there is one task only, features are collinear
        under Firth's penalty, or its package is not installed.

    References
    ----------
    arXiv 2610.00372: three ℓ2-penalised logistic models, C = .1, thresholds on 5-fold out-of-fold predictions. Folds
    there are not described; here all rows of a task are together, and stratified by the model's own outcome.
    Firth (1993), Biometrika 80, 27-38.
    """
    chosen = _features(candidates, features)
    settings = _Settings(*_checked_settings(C, n_folds, penalty), int(as_generator(seed).integers(2**31)))
    rows = _canonical(candidates, chosen)
    notes = _notes_on_data(candidates, chosen, rows.x)
    fitted = {name: _fit_one(name, rows.x, rows.y[name], settings, "", notes) for name in TARGETS}
    in_sample = rows.key.assign(**{name: model.probabilities(rows.x) for name, model in fitted.items()})
    out_of_fold = rows.key.copy()
    for name in TARGETS:
        out_of_fold[name], out_of_fold[f"fold_{name}"] = _predict_out_of_fold(name, rows, settings, notes)
    return Estimators(
        **fitted,
        features=chosen,
        penalty=penalty,
        C=None if penalty == "firth" else settings.C,
        n_folds=settings.n_folds,
        seed=None if isinstance(seed, np.random.Generator) else int(seed),
        n_rows=len(rows.x),
        n_tasks=int(rows.task[-1]) + 1,
        low=tuple(rows.x.min(axis=0).tolist()),
        high=tuple(rows.x.max(axis=0).tolist()),
        data_sha256=rows.sha256,
        notes=pd.DataFrame(notes, columns=NOTE_COLUMNS, dtype="string"),
        _out_of_fold=out_of_fold.sort_values(KEY, ignore_index=True)[OUT_OF_FOLD_COLUMNS],
        _fitted=in_sample.sort_values(KEY, ignore_index=True),
    )


def check_feature_names(features: Sequence[str], *, file: str | None = None) -> None:
    """Refuse features that a rule could not know when it decides, by name and with the reason.

    Raises
    ------
    DataError
        If a feature is an outcome, a key or anything but `delay` or a column `x_…`, or is named twice.
    """
    for name in features:
        plain = name.removeprefix(FEATURE_PREFIX)
        if plain in _REFUSED:
            raise DataError(
                f"not a feature: {_REFUSED[plain]}", file=file, column=name, mend="leave it out of the features"
            )
        if plain == name and name != "delay":
            mend = f"rename it '{FEATURE_PREFIX}{name}' if it is known before the decision"
            raise DataError("not a feature: it is neither 'delay' nor 'x_…'", file=file, column=name, mend=mend)
    doubled = sorted({name for name in features if list(features).count(name) > 1})
    if doubled:
        raise DataError("named twice among the features", file=file, column=doubled[0])


def feature_matrix(
    candidates: pd.DataFrame, features: Sequence[str], *, missing: Literal["refuse", "nan"] = "refuse"
) -> Floats:
    """The features as floats, shape (n, features); 0 and 1 for booleans.

    Raises
    ------
    DataError
        If a feature is not there, no number, not finite or too large to be squared, or missing (unless "nan").
    """
    matrix = np.empty((len(candidates), len(features)))
    for place, name in enumerate(features):
        if name not in candidates:
            raise DataError("no such feature among the candidates", column=name, mend="record it, or fit without it")
        column = candidates[name]
        if not (pd.api.types.is_numeric_dtype(column.dtype) or column.isna().all()) or column.dtype.kind == "c":
            raise DataError(f"not numbers but '{column.dtype}'", column=name, mend="give numbers or booleans")
        matrix[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        lost = np.isnan(matrix[:, place])
        wrong = (lost if missing == "refuse" else np.zeros_like(lost)) | (np.abs(matrix[:, place]) > _LARGEST)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            problem = "a feature is missing" if lost[row] else f"a feature is {matrix[row, place]:g}"
            mend = "missing is not 0: leave out the feature or the row, and say so" if lost[row] else "scale it"
            raise DataError(problem, row=place_of(candidates, row), column=name, mend=mend)
    return matrix + 0.0  # -0.0 becomes 0.0


def place_of(candidates: pd.DataFrame, row: int) -> str:
    """Which candidate a row is, for a message: its key where it has one, else its label."""
    if not set(KEY) <= set(candidates):
        return str(candidates.index[row])
    task, condition, replicate, delay = candidates[KEY].iloc[row]
    return f"task {task}, {condition}, replicate {replicate}, delay {delay}"


def truths(candidates: pd.DataFrame, name: str) -> Truths:
    """A column of booleans.

    Raises
    ------
    DataError
        If one is missing or anything else.
    """
    column = candidates[name]
    wrong = (column.isna() | ~column.isin([True, False])).to_numpy(dtype=bool)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        value = column.iloc[row]
        problem = "missing" if pd.isna(value) else f"found {short_repr(value)}"
        raise DataError(problem, row=place_of(candidates, row), column=name, mend="give true or false")
    return column.to_numpy(dtype=bool)


def reached_rows(candidates: pd.DataFrame) -> pd.DataFrame:
    """The candidates that were reached.

    Raises
    ------
    DataError
        If a column of the key or a target is not there or has a missing value, or a candidate stands twice.
    """
    for name in (*KEY, "reached", *TARGETS.values()):
        if name not in candidates:
            raise DataError(f"no column '{name}' among the candidates", mend="make them with `candidates`")
    reached = candidates[truths(candidates, "reached")]
    for name in KEY:
        if reached[name].isna().any():
            raise DataError("missing", row=str(reached.index[reached[name].isna()][0]), column=name)
    doubled = reached.duplicated(KEY).to_numpy()
    if doubled.any():
        raise DataError("the candidate stands twice", row=place_of(reached, int(np.flatnonzero(doubled)[0])))
    return reached


def data_sha256(candidates: pd.DataFrame, features: Sequence[str]) -> str:
    """SHA-256 of what models with these features see of the candidates; order and names of tasks do not count."""
    return _canonical(candidates, tuple(features)).sha256


@dataclass(frozen=True, slots=True)
class _Settings:
    C: float
    n_folds: int
    penalty: Penalty
    seed: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """Reached candidates, tasks in an order that depends on their values alone; `task` counts them from 0."""

    key: pd.DataFrame
    x: Floats
    y: dict[str, Truths]
    task: npt.NDArray[np.intp]
    sha256: str


def _features(candidates: pd.DataFrame, features: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(features, str):
        raise FaultbookError(f"features is '{features}'; give a list of columns")
    given = [name for name in candidates if str(name).startswith(FEATURE_PREFIX)] if features is None else features
    chosen = tuple(str(name) for name in given)
    if not chosen:
        raise FaultbookError("no feature; name at least one column 'x_…' that is known before the decision")
    check_feature_names(chosen)
    return chosen


def _checked_settings(c: object, n_folds: object, penalty: object) -> tuple[float, int, Penalty]:
    if penalty not in _PENALTIES:
        raise FaultbookError(one_of("penalty", penalty, _PENALTIES))
    if isinstance(c, bool) or not isinstance(c, (int, float, np.number)) or not 0 < float(c) < np.inf:
        raise FaultbookError(f"C is {short_repr(c)}; give a positive number, such as 0.1")
    try:
        folds = as_count("n_folds", n_folds)
    except ValueError as error:
        raise FaultbookError(str(error)) from None
    if folds < 2:
        raise FaultbookError(f"n_folds is {folds}; give at least 2: a fold is predicted from the others")
    return float(c), folds, "firth" if penalty == "firth" else "l2"


def _canonical(candidates: pd.DataFrame, features: tuple[str, ...]) -> _Rows:
    """Sort rows so that nothing depends on their order, nor on the names of tasks unless tasks are wholly alike."""
    reached = reached_rows(candidates).sort_values(
        KEY, key=lambda column: column.astype(str) if column.name in ("task_id", "condition") else column
    )
    if reached.empty:
        raise FaultbookError("no candidate was reached; there is nothing to fit")
    x = feature_matrix(reached, features)
    y = {model: truths(reached, column) for model, column in TARGETS.items()}
    blocks, _ = pd.factorize(reached["task_id"])
    starts = np.flatnonzero(np.diff(blocks)) + 1
    if not len(starts):
        raise FaultbookError("there is one task only, and no other to test its predictions on; give more")
    numbers = np.column_stack([reached[["replicate", "delay"]].to_numpy(dtype=np.float64), *y.values(), x])
    parts = zip(np.split(numbers, starts), np.split(reached["condition"].astype(str), starts), strict=True)
    digests = [_sha256([*words, values.astype("<f8").tobytes().hex()]) for values, words in parts]
    rank = np.empty(len(digests), dtype=np.intp)
    rank[np.argsort(digests, kind="stable")] = np.arange(len(digests))
    order = np.argsort(rank[blocks], kind="stable")
    return _Rows(
        key=reached[KEY].iloc[order].reset_index(drop=True),
        x=x[order],
        y={model: values[order] for model, values in y.items()},
        task=rank[blocks][order],
        sha256=_sha256([*features, *sorted(digests)]),
    )


def _sha256(words: list[str]) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def _notes_on_data(candidates: pd.DataFrame, features: tuple[str, ...], x: Floats) -> list[Note]:
    notes = []
    for name in ("cohort", "source"):
        found = sorted(candidates[name].dropna().astype(str).unique()) if name in candidates else []
        if len(found) > 1:
            notes.append(("", f"several in column '{name}'", f"fitted on {', '.join(found)} together"))
    constant = np.array(features, dtype=object)[np.ptp(x, axis=0) == 0]
    why = "its one value tells nothing, and its coefficient is 0"
    return notes + [("", f"constant feature {name}", why) for name in constant]


def _fit_one(name: str, x: Floats, y: Truths, settings: _Settings, where: str, notes: list[Note]) -> LogisticModel:
    """Fit one model; where that cannot be, its base rate, with a note."""
    varies = np.ptp(x, axis=0) > 0
    width, events = x.shape[1], int(y.sum())
    zeros, ones = (0.0,) * width, (1.0,) * width
    rate = LogisticModel(name, zeros, ones, zeros, 0.0, events / len(y), len(y), events)
    reason = _why_no_model(name, x[:, varies], y, settings)
    if reason == "features are collinear" and not where:
        raise FaultbookError("features are collinear, which Firth's penalty cannot fit; leave some out, or use 'l2'")
    if reason:
        notes.append((name, f"base rate {events}/{len(y)}{where}", reason))
        return rate
    mean, scale, weight = np.zeros(width), np.ones(width), np.zeros(width)
    pipeline = Pipeline([("scale", StandardScaler()), ("model", _estimator(settings))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(x[:, varies], y)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        notes.append((name, f"not converged{where}", " ".join(str(warning.message).split())[:200]))
    scaler, fitted = pipeline["scale"], pipeline["model"]
    mean[varies], scale[varies], weight[varies] = scaler.mean_, scaler.scale_, np.ravel(fitted.coef_)
    intercept = float(np.ravel(fitted.intercept_)[0])
    return LogisticModel(
        name, tuple(mean.tolist()), tuple(scale.tolist()), tuple(weight.tolist()), intercept, None, len(y), events
    )


def _why_no_model(name: str, x: Floats, y: Truths, settings: _Settings) -> str:
    if y.all() or not y.any():
        return f"{TARGETS[name]} is {bool(y[0])} in every row"
    if not x.shape[1]:
        return "no feature varies"
    return "features are collinear" if settings.penalty == "firth" and _collinear(x) else ""


def _collinear(x: Floats) -> bool:
    design = np.column_stack([np.ones(len(x)), StandardScaler().fit_transform(x)])
    return bool(np.linalg.matrix_rank(design) < design.shape[1])


def _predict_out_of_fold(
    name: str, rows: _Rows, settings: _Settings, notes: list[Note]
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Predict each row by a model of the other folds; return predictions and folds."""
    y = rows.y[name]
    fold = _folds(name, rows, settings, notes)
    p = np.full(len(y), np.nan)
    for number in np.unique(fold):
        test = fold == number
        model = _fit_one(name, rows.x[~test], y[~test], settings, f", fold {number}", notes)
        p[test] = model.probabilities(rows.x[test])
    return p, fold


def _folds(name: str, rows: _Rows, settings: _Settings, notes: list[Note]) -> npt.NDArray[np.intp]:
    """The fold of each row: all rows of a task in one, the model's outcome spread as evenly as tasks allow."""
    y, n_tasks = rows.y[name], int(rows.task[-1]) + 1
    rarer = min(len(np.unique(rows.task[y == outcome])) for outcome in (True, False))
    n_folds = min(settings.n_folds, n_tasks, rarer if rarer > 1 else n_tasks)
    if n_folds < settings.n_folds:
        few = f"{n_tasks} tasks" if n_folds == n_tasks else f"{rarer} tasks that have the rarer {TARGETS[name]}"
        notes.append((name, f"{n_folds} folds, not {settings.n_folds}", f"there are only {few}"))
    # an outcome that one task alone has cannot be spread
    spread = y if rarer > 1 else np.zeros_like(y)
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=settings.seed)
    fold = np.zeros(len(y), dtype=np.intp)
    for number, (_, test) in enumerate(splitter.split(rows.x, spread, rows.task)):
        fold[test] = number
    return fold


def _estimator(settings: _Settings) -> Any:
    if settings.penalty == "l2":
        # exact to rounding, so that neither a start nor the order of columns shows in the digits
        return LogisticRegression(C=settings.C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    try:
        firth = import_module("firthmodels")
    except ImportError:
        raise FaultbookError("Firth's penalty needs a package that is not installed: faultbook[firth]") from None
    return firth.FirthLogisticRegression(backend="numpy", max_iter=1000, gtol=1e-8, xtol=1e-8)
