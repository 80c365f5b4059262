"""Reasoning scores: what a judge thinks of a model's reasons, by step and by log, with and without a charge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.formats.documents import files_below
from faultbook.attribution.judge_files import HIGHEST, LOWEST, JudgeFiles
from faultbook.attribution.judgements import judgements, whole_steps
from faultbook.errors import DataError, FaultbookError
from faultbook.problems import Problems
from faultbook.stats.bootstrap import Estimate, cluster_bootstrap
from faultbook.tables import REASONING_PARTS, Reasoning, typed

COVERAGE_COLUMNS = ["log_id", "model", "n_matched", "n_missed", "n_spurious"]
SUMMARY_COLUMNS = [
    *("model", "part"),
    *("by_step", "by_step_low", "by_step_high", "by_log", "by_log_low", "by_log_high"),
    *("n_steps", "n_logs", "n_missing"),
    *("charged_by_step", "charged_by_step_low", "charged_by_step_high"),
    *("charged_by_log", "charged_by_log_low", "charged_by_log_high"),
    *("n_missed", "n_spurious", "n_charged_logs", "n_unjudged"),
]
_COUNTS = [name for name in SUMMARY_COLUMNS if name.startswith("n_")]
_Bootstrap = Callable[..., Estimate]


@dataclass(frozen=True, slots=True)
class ReasoningTables:
    """Scores of reasons, and how many steps they leave out.

    Attributes
    ----------
    scores : DataFrame
        Table `Reasoning`: log_id, model, step, part, score (1 to 10, missing where none was given).
    coverage : DataFrame or None
        log_id, model, n_matched (steps that annotators and model both name), n_missed (annotators only), n_spurious
        (model only). None where the source does not tell; `reasoning_coverage` counts it from annotations and
        predictions.
    """

    scores: pd.DataFrame
    coverage: pd.DataFrame | None


@overload
def read_reasoning(path: str | Path, strict: Literal[True] = True, *, model: str | None = None) -> ReasoningTables: ...
@overload
def read_reasoning(
    path: str | Path, strict: Literal[False], *, model: str | None = None
) -> tuple[ReasoningTables, pd.DataFrame]: ...
def read_reasoning(
    path: str | Path, strict: bool = True, *, model: str | None = None
) -> ReasoningTables | tuple[ReasoningTables, pd.DataFrame]:
    """Read a judge's scores of reasons.

    Parameters
    ----------
    path : path
        A CSV file (log_id, model, step, part, score), a file of MP-Bench's judge, or a folder of such files: "split/id"
        is the log; the model is the folder two above `unified_…`, else the first folder below `path`.
    strict : bool
        Raise at the first problem; otherwise note it and go on.
    model : str, optional
        The model, where no folder names it.

    Returns
    -------
    ReasoningTables, or (ReasoningTables, DataFrame)
        With `strict=False` also the located problems. What is a score, and what is not: see `judge_files`.

    Raises
    ------
    DataError
        If nothing is there, or (strict) at the first problem.
    """
    path, problems = Path(path), Problems(strict)
    is_folder = path.is_dir()
    kinds = (".json",) if is_folder else (".json", ".csv")
    files = [file for file in files_below(path) if file.suffix.casefold() in kinds]
    if not files:
        raise DataError("no file of a judge here", file=path, mend="name a folder of .json files, or one .csv file")
    reader = JudgeFiles(path if is_folder else path.parent, model, problems)
    is_csv = [file.suffix.casefold() == ".csv" for file in files]
    for file, csv in zip(files, is_csv, strict=True):
        try:
            (reader.csv if csv else reader.json)(file)
        except DataError as error:
            problems.add(error)
    coverage = None if all(is_csv) else _coverage(pd.DataFrame(reader.coverage, columns=COVERAGE_COLUMNS))
    tables = ReasoningTables(typed(reader.scores, Reasoning), coverage)
    return tables if strict else (tables, problems.frame())


def reasoning_coverage(annotations: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Count, for each log that was judged and each model, the steps that both sides name and that only one does.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`: steps that at least one annotator flags.
    predictions : DataFrame
        Table `Predictions`: steps that at least one of the model's samples names. Filter the samples first if the judge
        saw only some of them.

    Returns
    -------
    DataFrame
        log_id, model, n_matched, n_missed, n_spurious; also where a model names nothing. Logs without any flagged or
        named step have zeros.
    """
    known = judgements(annotations)
    flagged = np.column_stack([known.log, known.step])[known.votes > 0]
    logs = pd.Index(known.logs)
    models = list(dict.fromkeys(predictions["model"]))
    place = logs.get_indexer(pd.Index(predictions["log_id"].to_numpy(dtype=object)))
    steps = whole_steps(predictions["step"]) if len(predictions) else np.zeros(0, dtype=np.int64)
    n_flagged = np.bincount(flagged[:, 0], minlength=len(logs))
    frames = []
    for model in models:
        is_its = (predictions["model"] == model).to_numpy(dtype=bool) & (place >= 0)
        named = np.unique(np.column_stack([place[is_its], steps[is_its]]), axis=0)
        is_flagged = _pairs(named).isin(_pairs(flagged))
        n_matched = np.bincount(named[is_flagged, 0], minlength=len(logs))
        n_named = np.bincount(named[:, 0], minlength=len(logs))
        counts = {"n_matched": n_matched, "n_missed": n_flagged - n_matched, "n_spurious": n_named - n_matched}
        frames.append(pd.DataFrame({"log_id": known.logs, "model": model, **counts}))
    return _coverage(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COVERAGE_COLUMNS))


def _pairs(rows: npt.NDArray[np.int64]) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([rows[:, 0], rows[:, 1]])


def summarize_reasoning(
    scores: pd.DataFrame,
    coverage: pd.DataFrame | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Average the scores of each model and part.

    Parameters
    ----------
    scores : DataFrame
        Table `Reasoning`.
    coverage : DataFrame, optional
        log_id, model, n_matched, n_missed, n_spurious; needed for the charged means.
    level : float
        Confidence level.
    n_resamples, seed : int
        Of the percentile bootstrap, which resamples whole logs.

    Returns
    -------
    DataFrame
        One row a model and part. `by_step` is the mean over steps, as published, and `by_log` the mean of the logs'
        means, each with bounds; both over the n_steps scores in n_logs logs that were given, without the n_missing that
        were not. `charged_by_step` and `charged_by_log` count each of the n_missed and n_spurious steps as 1, the
        lowest score of the scale, over n_charged_logs logs: a step that a model does not name, or names alone, has no
        reason that could be any good. n_unjudged counts matched steps without a row. The charged columns are missing
        without a coverage, or where it is incomplete.

    Raises
    ------
    FaultbookError
        If a score is outside 1 to 10, a part is unknown, or scores and coverage contradict each other.
    ValueError
        If a setting is out of its range.

    Notes
    -----
    MP-Bench (arXiv 2603.25001), section 5: scores from 1 to 10. The published evaluation averages over steps, and its
    judge sees only steps that both sides name, so that missed and spurious steps cost nothing.
    """
    _check_scores(scores)
    bootstrap = partial(cluster_bootstrap, level=level, n_resamples=n_resamples, seed=seed)
    models = list(dict.fromkeys([*scores["model"], *([] if coverage is None else coverage["model"])]))
    rows: list[dict[str, Any]] = []
    for model in models:
        own = scores[scores["model"] == model]
        extra = None if coverage is None else _of_model(coverage, own, str(model))
        means = {part: _means(own[own["part"] == part], extra, bootstrap) for part in REASONING_PARTS}
        rows += [{"model": model, "part": part, **mean} for part, mean in means.items()]
    frame = pd.DataFrame(rows, columns=SUMMARY_COLUMNS)
    numbers = [name for name in SUMMARY_COLUMNS[2:] if name not in _COUNTS]
    return frame.astype(dict.fromkeys(numbers, "float64") | dict.fromkeys(_COUNTS, "Int64"))


def _means(part: pd.DataFrame, extra: pd.DataFrame | None, bootstrap: _Bootstrap) -> dict[str, Any]:
    given = part[part["score"].notna()]
    values, logs = given["score"].to_numpy(dtype=np.float64), given["log_id"].to_numpy(dtype=object)
    row: dict[str, Any] = {"n_steps": len(given), "n_logs": len(set(logs)), "n_missing": len(part) - len(given)}
    row |= _estimates(values, logs, bootstrap, "")
    if extra is None:
        return row
    row["n_unjudged"] = extra["n_matched"].sum(skipna=False) - len(part)
    only = extra["n_missed"] + extra["n_spurious"]
    if only.isna().any():
        return row
    row |= {"n_missed": extra["n_missed"].sum(), "n_spurious": extra["n_spurious"].sum()}
    charged = np.repeat(extra["log_id"].to_numpy(dtype=object), only.to_numpy(dtype=np.int64))
    all_values = np.concatenate([values, np.full(len(charged), float(LOWEST))])
    all_logs = np.concatenate([logs, charged])
    row["n_charged_logs"] = len(set(all_logs))
    return row | _estimates(all_values, all_logs, bootstrap, "charged_")


def _estimates(values: Any, logs: Any, bootstrap: _Bootstrap, prefix: str) -> dict[str, float]:
    if not len(values):
        return {}
    row: dict[str, float] = {}
    for name, weight in (("by_step", "unit"), ("by_log", "cluster")):
        e = bootstrap(values, logs, weight=weight)
        row |= {f"{prefix}{name}": e.estimate, f"{prefix}{name}_low": e.low, f"{prefix}{name}_high": e.high}
    return row


def _of_model(coverage: pd.DataFrame, scores: pd.DataFrame, model: str) -> pd.DataFrame:
    """The coverage of a model, if it goes with its scores."""
    own = _coverage(coverage[coverage["model"] == model])
    judged = scores.drop_duplicates(["log_id", "step"]).groupby("log_id", sort=False).size().rename("n_judged")
    both = judged.reset_index().merge(own, on="log_id", how="left")
    lost = both[both["model"].isna()]
    if len(lost):
        problem = f"coverage has no row for {len(lost)} logs of {model} (first: {lost['log_id'].iloc[0]})"
        raise FaultbookError(f"{problem}; give one for every log that has scores, or no coverage")
    more = both[(both["n_judged"] > both["n_matched"]).fillna(False)]
    if len(more):
        first = more.iloc[0]
        problem = f"{first['n_judged']} steps of {model} have scores in {first['log_id']}"
        raise FaultbookError(f"{problem}, where coverage counts {first['n_matched']} matched; count the same steps")
    return own


def _coverage(frame: pd.DataFrame) -> pd.DataFrame:
    lost = [name for name in COVERAGE_COLUMNS if name not in frame]
    if lost:
        raise FaultbookError(f"coverage without {', '.join(lost)}; give {', '.join(COVERAGE_COLUMNS)}")
    typed_frame = frame[COVERAGE_COLUMNS].astype({"log_id": "str", "model": "str"})
    counts = dict.fromkeys(COVERAGE_COLUMNS[2:], "Int64")
    typed_frame = typed_frame.astype(counts).reset_index(drop=True)
    twice = typed_frame[typed_frame.duplicated(["log_id", "model"])]
    if len(twice):
        first = twice.iloc[0]
        raise FaultbookError(f"coverage has {first['log_id']} of {first['model']} twice; keep one of them")
    return typed_frame


def _check_scores(scores: pd.DataFrame) -> None:
    lost = [name for name in Reasoning.to_schema().columns if name not in scores]
    if lost:
        raise FaultbookError(f"scores without {', '.join(lost)}; give a table with the columns of Reasoning")
    given = scores["score"].dropna()
    if not pd.api.types.is_numeric_dtype(given) or pd.api.types.is_bool_dtype(given):
        if len(given):
            raise FaultbookError(f"score holds {given.iloc[0]!r}; give numbers from {LOWEST} to {HIGHEST}")
        return
    outside = given[(given < LOWEST) | (given > HIGHEST)]
    if len(outside):
        raise FaultbookError(f"{len(outside)} scores lie outside {LOWEST} to {HIGHEST} (first: {outside.iloc[0]})")
    unknown = [part for part in dict.fromkeys(scores["part"]) if part not in REASONING_PARTS]
    if unknown:
        raise FaultbookError(f"part '{unknown[0]}' is unknown; parts are {', '.join(REASONING_PARTS)}")
