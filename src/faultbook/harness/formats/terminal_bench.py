"""Terminal-Bench 1: run folders `runs/<run>/<task>/<trial>/results.json` of the package `terminal-bench` (0.2).

What the format means, from the harness itself (`terminal_bench/harness/harness.py`, `models.py`):

- The file of a trial is the source of truth; the run's aggregate `results.json` is rebuilt from those files. Only a
  trial on which the harness itself failed is in the aggregate alone, and only such trials are read from it.
- A trial that succeeds has `failure_mode` "unset". `is_resolved` is null where the tests came to no verdict, although
  the aggregate's `n_unresolved` counts it.
- A trial resolved when its agent's time was up is normal: 239 of the 3,543 trials in the leaderboard's repository
  (commit 8e1925a3) are, so the verdict stands.
- For an agent that does not report its tokens 0 is written. A recorded 0 is therefore no measurement: the column is
  missing, and `usage_status` says "zero_suspect". Whether input includes what came from a cache is not on record.
- There is no number beside the verdict, so `reward` is missing, and `metric` has nothing to choose from.
- A trial's name is `<task>.<i>-of-<n>.<run>`, and i is the attempt; "1-of-1" counts nothing, so that repeats in runs
  of one attempt each are no records of one trial. Names of tasks may hold dots.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.harness.formats._rows import (
    LINK_TO_NAME,
    Skipped,
    check_exists,
    head,
    optional_document,
    row,
    subfolders,
    without_metrics,
)
from faultbook.harness.formats._terminal_bench_run import (
    LOCK,
    METADATA,
    RESULTS,
    TRIAL_NAME,
    Run,
    read_run,
    trial_folders,
)
from faultbook.taxonomy import Observation, classify

FORMAT = "terminal-bench"
_NO_FAILURE = ("unset", "none")
_FROM_AGGREGATE = "from the aggregate: the trial has no results.json of its own"
_PEEK = 1 << 16
_SPANS = {  # columns, and the stamps that they lie between; installing an agent is part of the agent's own span
    "total_seconds": ("trial_started_at", "trial_ended_at"),
    "setup_seconds": ("trial_started_at", "agent_started_at"),
    "agent_seconds": ("agent_started_at", "agent_ended_at"),
    "verifier_seconds": ("test_started_at", "test_ended_at"),
}


def recognises(path: Path) -> bool:
    """Whether this looks like a run folder of Terminal-Bench 1, or like the results.json of a run or trial of it."""
    try:
        if not path.is_dir():
            return path.name == RESULTS and _holds_verdicts(path)
        if (path / LOCK).is_file() or (path / METADATA).is_file() or _holds_verdicts(path / RESULTS):
            return True
        trials = (trial for task in subfolders(path) if not task.is_symlink() for trial in subfolders(task))
        return any(TRIAL_NAME.fullmatch(trial.name) and _holds_verdicts(trial / RESULTS) for trial in trials)
    except (OSError, ValueError):
        return False


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """Read the trials of a run.

    Parameters
    ----------
    path : Path
        A run folder, the folder or results.json of one trial, or the aggregate results.json of a run by itself.
    files : Files
        Reads, and keeps what was read.
    arm : str, optional
        Without it: "<agent> (<model>)" of the run's metadata or lock, else the name of the run's folder.
    metric : str, optional
        If one is named, each row's note says that it was not applied.

    Yields
    ------
    dict
        One row of `Trials` for each trial, by name; trials of the aggregate alone and unfinished ones come last.

    Raises
    ------
    DataError
        If there is no such file or folder.
    """
    check_exists(path)
    if path.is_dir() and TRIAL_NAME.fullmatch(path.absolute().name):
        path = path / RESULTS
    rows = _folder(path, files, arm) if path.is_dir() else _file(path, files, arm)
    yield from without_metrics(rows, "Terminal-Bench", metric)


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The run's own plan: each task that its metadata or its lock lists, as often as it was to be attempted.

    None for a single trial, and where only the number of tasks is on record. A name that begins with a dot is no task:
    the harness lists whatever lies in a dataset's folder, such as ".DS_Store".
    """
    run = read_run(path, files, arm) if path.is_dir() else None
    if run is None or not run.tasks or run.attempts is None:
        return None
    numbers = range(1, run.attempts + 1)
    return [{"arm": run.arm, "task_id": task, "attempt": number} for task in run.tasks for number in numbers]


def _folder(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    run = read_run(path, files, arm)
    seen: set[tuple[str | None, str | None]] = set()
    without: dict[tuple[str | None, str | None], Path] = {}
    for trial in trial_folders(path):
        if isinstance(trial, Skipped):
            yield _row(run, "unreadable", trial.path, files, note=trial.why)
        elif trial.is_symlink() or os.path.lexists(trial / RESULTS):
            seen.add(_names(trial))
            yield _own(trial, files, run, trial.name if trial.parent == path else trial.parent.name)
        else:
            without[_names(trial)] = trial
    for told, names in _aggregate(path / RESULTS, files, run, seen):
        without.pop(names, None)
        yield told
    why = f"{METADATA} has no end_time: the run was interrupted, or goes on" if run.interrupted else None
    for trial in without.values():
        note = fields.joined_notes(f"no {RESULTS} in the trial's folder", why)
        yield _row(run, "unfinished", trial, files, task=trial.parent.name, name=trial.name, note=note)


def _file(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    beside, above = path.parent, path.parents if len(path.parents) > 2 else path.absolute().parents
    try:
        document = files.read_json(path)
    except DataError as error:
        document = error
    if isinstance(values.part(document, "results"), list):
        yield from (told for told, _ in _aggregate(path, files, read_run(beside, files, arm), set()))
        return
    folder = above[2] if len(above) > 2 and any((above[2] / name).exists() for name in (METADATA, LOCK)) else beside
    trial = beside.absolute() if TRIAL_NAME.fullmatch(beside.absolute().name) else None
    name = TRIAL_NAME.fullmatch(values.text(values.part(document, "trial_name")) or (trial.name if trial else ""))
    run = read_run(folder, files, arm or (name["run"] if name and folder == beside else None))
    if isinstance(document, DataError):
        state, names = "unreadable" if os.path.lexists(path) else "unfinished", _names(trial)
        yield _row(run, state, path, files, task=names[0], name=names[1], note=document.problem)
    else:
        yield _trial(document, run, files, path, *_names(trial))


def _own(trial: Path, files: Files, run: Run, task: str) -> dict[str, Any]:
    path = trial / RESULTS
    if trial.is_symlink() or path.is_symlink():
        link = trial if trial.is_symlink() else path
        return _row(run, "unreadable", link, files, task=task, name=trial.name, note=LINK_TO_NAME)
    try:
        return _trial(files.read_json(path), run, files, path, *_names(trial))
    except DataError as error:
        return _row(run, "unreadable", path, files, task=task, name=trial.name, note=error.problem)


def _names(trial: Path | None) -> tuple[str | None, str | None]:
    """The names of task and trial that a trial's folder has."""
    return (trial.parent.name, trial.name) if trial else (None, None)


def _trial(
    document: Any, run: Run, files: Files, path: Path, task: str | None, name: str | None, note: str | None = None
) -> dict[str, Any]:
    """The row of a trial's record; `task` and `name` are those of its folder."""
    name = values.text(values.part(document, "trial_name")) or name
    parts = TRIAL_NAME.fullmatch(name or "")
    task = values.text(values.part(document, "task_id")) or task or (parts["task"] if parts else None)
    if not isinstance(document, dict) or not task:
        return _row(run, "unreadable", path, files, task=task, name=name, note="not the record of a trial of a task")
    resolved, failure = values.truth(document.get("is_resolved")), values.text(document.get("failure_mode"))
    spans = {column: values.seconds_between(*map(document.get, ends)) for column, ends in _SPANS.items()}
    notes = [
        note,
        "is_resolved is neither true, false nor null" if document.get("is_resolved") not in (None, resolved) else None,
        "no verdict, although no failure is named" if resolved is None and failure in _NO_FAILURE else None,
        *(why for _, why in spans.values()),
    ]
    started = document.get("trial_started_at")
    return {
        **_row(run, "finished", path, files, task=task, name=name, note=fields.joined_notes(*notes)),
        **_tokens(document),
        **(fields.cause_fields(classify([Observation(FORMAT, failure)]), resolved, None) if failure else {}),
        **{column: seconds for column, (seconds, _) in spans.items()},
        "resolved": resolved,
        "exception_type": None if failure in _NO_FAILURE else failure,
        "started_at": started.strip() if isinstance(started, str) and values.stamp(started) else None,
        "trial_id": values.text(document.get("id")) or values.text(document.get("uuid")) or name,
    }


def _tokens(document: dict[str, Any]) -> dict[str, Any]:
    given = values.count(document.get("total_input_tokens")), values.count(document.get("total_output_tokens"))
    status = fields.usage_status(*given, zero_means_nothing=True)
    if status == "zero_suspect":
        given = given[0] or None, given[1] or None
    return {"input_tokens": given[0], "output_tokens": given[1], "usage_status": status}


def _aggregate(
    path: Path, files: Files, run: Run, seen: set[tuple[str | None, str | None]]
) -> Iterator[tuple[dict[str, Any], tuple[str | None, str | None]]]:
    """The rows of the aggregate's trials that have no file of their own, each with the names of task and trial."""
    document, problem = optional_document(path, files)
    results = values.part(document, "results")
    if problem or (document is not None and not isinstance(results, list)):
        why = f"{problem or f'{path.name}: no list of results'}; trials that only the aggregate holds are lost"
        yield _row(run, "unreadable", path, files, note=why), (None, None)
        return
    for result in results or ():
        name = values.text(values.part(result, "trial_name"))
        told = _trial(result, run, files, path, None, name, _FROM_AGGREGATE)
        names = told["task_id"], name
        if name is None or names not in seen:
            yield told, names


def _row(
    run: Run,
    state: str,
    path: Path,
    files: Files,
    *,
    note: str | None,
    task: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    parts = TRIAL_NAME.fullmatch(name or "")
    attempt, of = (int(parts["attempt"]), int(parts["of"])) if parts else (0, 0)
    ordinal = {"attempt": attempt} if 1 <= attempt <= of and of > 1 else {}
    who = {"arm": run.arm, "task_id": values.text(task), "run_id": run.run_id, "source_version": run.version}
    return row(FORMAT, state, path, files, run.note, note, **who, **ordinal)


def _holds_verdicts(path: Path) -> bool:
    return b'"is_resolved"' in head(path, _PEEK)
