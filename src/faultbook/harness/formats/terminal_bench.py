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
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.taxonomy import Observation, classify

FORMAT = "terminal-bench"
_RESULTS, _METADATA, _LOCK = "results.json", "run_metadata.json", "tb.lock"
_NAME = re.compile(r"(?P<task>.+)\.(?P<attempt>[0-9]{1,6})-of-(?P<of>[0-9]{1,6})\.(?P<run>.+)", re.DOTALL)
_SIGNS = (_RESULTS, "sessions", "panes", "agent-logs")  # what a trial's folder holds
_NO_FAILURE = ("unset", "none")
_LINK = "a symbolic link, not followed: name what it points to by itself"
_FROM_AGGREGATE = "from the aggregate: the trial has no results.json of its own"
_PEEK = 1 << 16
_MOST_ATTEMPTS = 10_000  # a number above is damaged
_SPANS = {  # columns, and the stamps that they lie between; installing an agent is part of the agent's own span
    "total_seconds": ("trial_started_at", "trial_ended_at"),
    "setup_seconds": ("trial_started_at", "agent_started_at"),
    "agent_seconds": ("agent_started_at", "agent_ended_at"),
    "verifier_seconds": ("test_started_at", "test_ended_at"),
}


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run's own files say of all its trials."""

    arm: str
    run_id: str | None
    version: str | None
    tasks: tuple[str, ...]
    attempts: int | None
    interrupted: bool
    note: str | None


def recognises(path: Path) -> bool:
    """Whether this looks like a run folder of Terminal-Bench 1, or like the results.json of a run or trial of it."""
    try:
        if not path.is_dir():
            return path.name == _RESULTS and _holds_verdicts(path)
        if (path / _LOCK).is_file() or (path / _METADATA).is_file() or _holds_verdicts(path / _RESULTS):
            return True
        trials = (trial for task in _subfolders(path) if not task.is_symlink() for trial in _subfolders(task))
        return any(_NAME.fullmatch(trial.name) and _holds_verdicts(trial / _RESULTS) for trial in trials)
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
    if not path.exists():
        raise DataError("no such file or folder", file=path)
    unused = f"Terminal-Bench records a verdict and no metrics: '{metric}' is not applied" if metric else None
    if path.is_dir() and _NAME.fullmatch(path.absolute().name):
        path = path / _RESULTS
    for row in _folder(path, files, arm) if path.is_dir() else _file(path, files, arm):
        yield {**row, "note": fields.joined_notes(row["note"], unused)}


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The run's own plan: each task that its metadata or its lock lists, as often as it was to be attempted.

    None for a single trial, and where only the number of tasks is on record. A name that begins with a dot is no task:
    the harness lists whatever lies in a dataset's folder, such as ".DS_Store".
    """
    run = _run(path, files, arm) if path.is_dir() else None
    if run is None or not run.tasks or run.attempts is None:
        return None
    numbers = range(1, run.attempts + 1)
    return [{"arm": run.arm, "task_id": task, "attempt": number} for task in run.tasks for number in numbers]


def _folder(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    run = _run(path, files, arm)
    seen: set[tuple[str | None, str | None]] = set()
    without: dict[tuple[str | None, str | None], Path] = {}
    for trial in _trial_folders(path):
        if isinstance(trial, DataError):
            yield _row(run, "unreadable", Path(str(trial.file)), files, note=trial.problem)
        elif trial.is_symlink() or os.path.lexists(trial / _RESULTS):
            seen.add(_names(trial))
            yield _own(trial, files, run, trial.name if trial.parent == path else trial.parent.name)
        else:
            without[_names(trial)] = trial
    for row, names in _aggregate(path / _RESULTS, files, run, seen):
        without.pop(names, None)
        yield row
    why = f"{_METADATA} has no end_time: the run was interrupted, or goes on" if run.interrupted else None
    for trial in without.values():
        note = fields.joined_notes(f"no {_RESULTS} in the trial's folder", why)
        yield _row(run, "unfinished", trial, files, task=trial.parent.name, name=trial.name, note=note)


def _file(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    beside, above = path.parent, path.parents if len(path.parents) > 2 else path.absolute().parents
    try:
        document = files.read_json(path)
    except DataError as error:
        document = error
    if isinstance(values.part(document, "results"), list):
        yield from (row for row, _ in _aggregate(path, files, _run(beside, files, arm), set()))
        return
    folder = above[2] if len(above) > 2 and any((above[2] / name).exists() for name in (_METADATA, _LOCK)) else beside
    trial = beside.absolute() if _NAME.fullmatch(beside.absolute().name) else None
    name = _NAME.fullmatch(values.text(values.part(document, "trial_name")) or (trial.name if trial else ""))
    run = _run(folder, files, arm or (name["run"] if name and folder == beside else None))
    if isinstance(document, DataError):
        state, names = "unreadable" if os.path.lexists(path) else "unfinished", _names(trial)
        yield _row(run, state, path, files, task=names[0], name=names[1], note=document.problem)
    else:
        yield _trial(document, run, files, path, *_names(trial))


def _run(folder: Path, files: Files, arm: str | None) -> _Run:
    (metadata, first), (lock, second) = (_optional(folder / name, files) for name in (_METADATA, _LOCK))
    agent = values.text(values.part(metadata, "agent_name")) or values.text(values.part(lock, "agent", "name"))
    model = values.text(values.part(metadata, "model_name")) or values.text(values.part(lock, "agent", "model_name"))
    name = values.text(folder.absolute().name) or "run"
    run_id = values.text(values.part(metadata, "run_id")) or values.text(values.part(lock, "local_config", "run_id"))
    listed = (values.part(metadata, "task_ids"), values.part(lock, "dataset", "task_ids"))
    tasks = (values.text(task) for tasks in listed if isinstance(tasks, list) for task in tasks)
    wanted = (values.part(metadata, "n_attempts"), values.part(lock, "run_config", "n_attempts"))
    attempts = [number for number in map(values.count, wanted) if number is not None and 0 < number <= _MOST_ATTEMPTS]
    return _Run(
        arm=arm or (f"{agent} ({model})" if agent and model else agent or name),
        run_id=run_id or name,
        version=values.text(values.part(lock, "harness", "version")),
        tasks=tuple(dict.fromkeys(task for task in tasks if task and not task.startswith("."))),
        attempts=max(attempts, default=None),
        interrupted=isinstance(metadata, dict) and metadata.get("end_time", "") is None,
        note=fields.joined_notes(first, second),
    )


def _optional(path: Path, files: Files) -> tuple[Any, str | None]:
    """A document that may be missing, and what is wrong with it."""
    if path.is_symlink():
        return None, f"{path.name} is {_LINK}"
    if not path.exists():
        return None, None
    try:
        return files.read_json(path), None
    except DataError as error:
        return None, f"{path.name}: {error.problem}"


def _own(trial: Path, files: Files, run: _Run, task: str) -> dict[str, Any]:
    path = trial / _RESULTS
    if trial.is_symlink() or path.is_symlink():
        link = trial if trial.is_symlink() else path
        return _row(run, "unreadable", link, files, task=task, name=trial.name, note=_LINK)
    try:
        return _trial(files.read_json(path), run, files, path, *_names(trial))
    except DataError as error:
        return _row(run, "unreadable", path, files, task=task, name=trial.name, note=error.problem)


def _names(trial: Path | None) -> tuple[str | None, str | None]:
    """The names of task and trial that a trial's folder has."""
    return (trial.parent.name, trial.name) if trial else (None, None)


def _trial(
    document: Any, run: _Run, files: Files, path: Path, task: str | None, name: str | None, note: str | None = None
) -> dict[str, Any]:
    """The row of a trial's record; `task` and `name` are those of its folder."""
    name = values.text(values.part(document, "trial_name")) or name
    parts = _NAME.fullmatch(name or "")
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
    path: Path, files: Files, run: _Run, seen: set[tuple[str | None, str | None]]
) -> Iterator[tuple[dict[str, Any], tuple[str | None, str | None]]]:
    """The rows of the aggregate's trials that have no file of their own, each with the names of task and trial."""
    document, problem = _optional(path, files)
    results = values.part(document, "results")
    if problem or (document is not None and not isinstance(results, list)):
        why = f"{problem or f'{path.name}: no list of results'}; trials that only the aggregate holds are lost"
        yield _row(run, "unreadable", path, files, note=why), (None, None)
        return
    for result in results or ():
        name = values.text(values.part(result, "trial_name"))
        row = _trial(result, run, files, path, None, name, _FROM_AGGREGATE)
        names = row["task_id"], name
        if name is None or names not in seen:
            yield row, names


def _row(
    run: _Run,
    state: str,
    path: Path,
    files: Files,
    *,
    note: str | None,
    task: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    parts = _NAME.fullmatch(name or "")
    attempt, of = (int(parts["attempt"]), int(parts["of"])) if parts else (0, 0)
    try:
        digest: str | None = files.sha256(path)
    except KeyError:  # not read
        digest = None
    return {
        "arm": run.arm,
        "task_id": values.text(task),
        "state": state,
        **({"attempt": attempt} if 1 <= attempt <= of and of > 1 else {}),
        "usage_status": "absent",
        "run_id": run.run_id,
        "source_format": FORMAT,
        "source_version": run.version,
        "source_path": str(path).encode("utf-8", errors="replace").decode("utf-8"),  # a file's name may be no text
        "source_sha256": digest,
        "note": fields.joined_notes(run.note, note),
    }


def _trial_folders(path: Path) -> Iterator[Path | DataError]:
    """Folders of trials in the order of their names; a task's folder that is a link or does not open comes itself."""
    for task in _opened(path):
        if isinstance(task, DataError) or task.is_symlink():
            yield task
            continue
        for trial in _opened(task):
            if isinstance(trial, DataError) or trial.is_symlink() or _is_trial(trial):
                yield trial


def _is_trial(folder: Path) -> bool:
    return bool(_NAME.fullmatch(folder.name)) or any(os.path.lexists(folder / sign) for sign in _SIGNS)


def _opened(path: Path) -> list[Path | DataError]:
    try:
        return [*_subfolders(path)]
    except OSError as error:
        return [DataError(f"the folder cannot be opened ({error.strerror})", file=path)]


def _subfolders(path: Path) -> list[Path]:
    """Folders in a folder, and links to folders or to nothing, by name; not the hidden ones."""
    with os.scandir(path) as entries:
        found = [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
    return sorted(entry for entry in found if entry.is_dir() or (entry.is_symlink() and not entry.exists()))


def _holds_verdicts(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"is_resolved"' in file.read(_PEEK)
