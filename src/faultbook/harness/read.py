"""Read trials, whatever harness left them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from faultbook.errors import DataError, one_of, unreadable
from faultbook.harness.files import Files, shown
from faultbook.harness.formats import harbor, inspect_log, journal, lm_eval, swe_bench, terminal_bench, trial_csv
from faultbook.problems import Problems
from faultbook.tables import Trials, typed

Paths = str | Path | Sequence[str | Path]

_MODULES: tuple[Any, ...] = (trial_csv, journal, harbor, terminal_bench, inspect_log, swe_bench, lm_eval)
FORMATS = tuple(module.FORMAT for module in _MODULES)
_DEPTH = 2  # folders below the named one in which runs are looked for


@overload
def read_trials(
    path: Paths,
    format: str = ...,
    *,
    arm: str | None = ...,
    metric: str | None = ...,
    strict: Literal[True] = ...,
    files: Files | None = ...,
) -> pd.DataFrame: ...
@overload
def read_trials(
    path: Paths,
    format: str = ...,
    *,
    arm: str | None = ...,
    metric: str | None = ...,
    strict: Literal[False],
    files: Files | None = ...,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def read_trials(
    path: Paths,
    format: str = "auto",  # noqa: A002  # as in the other domains
    *,
    arm: str | None = None,
    metric: str | None = None,
    strict: bool = True,
    files: Files | None = None,
) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """Read trials of one run or several.

    Parameters
    ----------
    path : path or sequence of paths
        A run: a Harbor job, a Terminal-Bench run, an Inspect log (`.eval` or `.json`), a SWE-bench report, samples of
        lm-evaluation-harness, a run of our own runtime, a CSV table (`arm, task_id, attempt, state, resolved` and
        whatever else of the table `Trials`); or a folder of runs, up to two levels down.
    format : str
        One of `FORMATS`; "auto" recognises it. What is not of the format named is passed over in a folder of runs.
    arm : str, optional
        The arm of every trial here; otherwise what the format has for it (the agent, the model, the column arm).
    metric : str, optional
        Which of several rewards, scores or metrics is the verdict.
    strict : bool
        Raise at the first fault of a CSV table; otherwise note it and go on. Files of other tools raise in neither
        case: a result that cannot be read is a trial with the state "unreadable".
    files : Files, optional
        Takes the digest of every file that is read.

    Returns
    -------
    DataFrame, or (DataFrame, DataFrame)
        Table `Trials`; with `strict=False` also the problems: file, row, column, problem, mend. What is not on record
        is missing; trials that were planned and never started are not here (`plan`, `held`). Where a format holds no
        ordinal, `attempt` counts the trials of a task in the order of their start: a name, no more.

    Raises
    ------
    DataError
        If nothing is there or its format is not known, or (strict) at the first problem of a CSV table.
    """
    if format not in ("auto", *FORMATS):
        raise DataError(one_of("format", format, ("auto", *FORMATS)))
    problems, files = Problems(strict), files or Files()
    tables, rows = [], []
    for run, module in runs(path, format):
        if module is trial_csv:
            tables.append(trial_csv.read_trial_table(run, files, problems, arm=arm))
        else:
            rows += [_complete(row, module.FORMAT) for row in module.read(run, files, arm=arm, metric=metric)]
    if rows or not tables:
        tables.append(typed(numbered(rows), Trials))
    trials = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    return trials if strict else (trials, problems.frame())


def runs(path: Paths, name: str = "auto") -> list[tuple[Path, Any]]:
    """The runs at some paths, each with the module that reads it.

    Raises
    ------
    DataError
        If a path does not exist, or holds nothing that is recognised.
    """
    given = [Path(path)] if isinstance(path, (str, Path)) else [Path(one) for one in path]
    found: dict[tuple[Path, str], tuple[Path, Any]] = {}
    for one in given:
        for run, module in _runs_at(one, name):
            found.setdefault((run.resolve(), module.FORMAT), (run, module))
    return list(found.values())


def _runs_at(path: Path, name: str) -> list[tuple[Path, Any]]:
    try:
        found = _runs_below(path, name) if path.exists() else None
    except OSError as error:
        raise unreadable(error, shown(error.filename or path)) from None
    if found is None:
        raise DataError("no such file or folder", file=shown(path))
    if not found and name != "auto":  # the caller knows what it is
        return [(path, next(module for module in _MODULES if name == module.FORMAT))]
    if not found:
        mend = f"name a run, or say its format: {', '.join(FORMATS)}"
        raise DataError("no trials of a known format here", file=shown(path), mend=mend)
    return found


def _runs_below(path: Path, name: str) -> list[tuple[Path, Any]]:
    """The runs of the first level that has any: the path itself, what is in it, or what is in that."""
    level = [path]
    for _ in range(_DEPTH + 1):
        known = [(one, module) for one in level if (module := _format_of(one, name)) is not None]
        if known:
            return known
        folders = [one for one in level if one.is_dir() and (one == path or not one.is_symlink())]
        level = [child for folder in folders for child in sorted(folder.iterdir())]
    return []


def _format_of(path: Path, name: str) -> Any | None:
    modules = (module for module in _MODULES if name in ("auto", module.FORMAT))
    return next((module for module in modules if module.recognises(path)), None)


def _complete(row: dict[str, Any], name: str) -> dict[str, Any]:
    source = {"source_path": shown(row["source_path"])} if row.get("source_path") else {}
    return {"source_format": name, "usage_status": "absent", **row, **source}


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the trials of an arm at a task that have no ordinal one each, in the order of their start.

    Two records of one and the same trial get the same number, so that they are found to be that. Numbers that other
    trials of the task have already are passed over.
    """
    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["arm"], row.get("task_id")), []).append(row)
    for trials in groups.values():
        taken = {row["attempt"] for row in trials if row.get("attempt") is not None}
        free = (number for number in range(1, len(trials) + len(taken) + 1) if number not in taken)
        names: dict[str, int] = {}
        for row in sorted((row for row in trials if row.get("attempt") is None), key=_order):
            identity = row.get("trial_id") or f"{row.get('source_path')} {id(row)}"
            if identity not in names:
                names[identity] = next(free)
            row["attempt"] = names[identity]
    return rows


def _order(row: dict[str, Any]) -> tuple[bool, str, str, str]:
    """By start, where it is known; then by the trial's own name and place, which is stable, if nothing else."""
    start = row.get("started_at")
    return start is None, start or "", row.get("trial_id") or "", row.get("source_path") or ""
