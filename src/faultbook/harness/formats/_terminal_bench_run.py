"""A run's folder of Terminal-Bench 1: what it says of all its trials, and which of the folders in it are trials."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultbook import values
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.harness.formats._rows import Skipped, named_arm, optional_document, subfolders, unopened

METADATA, LOCK, RESULTS = "run_metadata.json", "tb.lock", "results.json"
TRIAL_NAME = re.compile(r"(?P<task>.+)\.(?P<attempt>[0-9]{1,6})-of-(?P<of>[0-9]{1,6})\.(?P<run>.+)", re.DOTALL)
_SIGNS = (RESULTS, "sessions", "panes", "agent-logs")  # what a trial's folder holds
_MOST_ATTEMPTS = 10_000  # a number above is damaged


@dataclass(frozen=True, slots=True)
class Run:
    """What a run's own files say of all its trials."""

    arm: str
    run_id: str | None
    version: str | None
    tasks: tuple[str, ...]
    attempts: int | None
    interrupted: bool
    note: str | None


def read_run(folder: Path, files: Files, arm: str | None) -> Run:
    """Read what a run's folder has of itself; without an arm of the caller's it is "<agent> (<model>)"."""
    (metadata, first), (lock, second) = (optional_document(folder / name, files) for name in (METADATA, LOCK))
    agent = values.text(values.part(metadata, "agent_name")) or values.text(values.part(lock, "agent", "name"))
    model = values.text(values.part(metadata, "model_name")) or values.text(values.part(lock, "agent", "model_name"))
    name = values.text(folder.absolute().name) or "run"
    run_id = values.text(values.part(metadata, "run_id")) or values.text(values.part(lock, "local_config", "run_id"))
    listed = (values.part(metadata, "task_ids"), values.part(lock, "dataset", "task_ids"))
    tasks = (values.text(task) for tasks in listed if isinstance(tasks, list) for task in tasks)
    wanted = (values.part(metadata, "n_attempts"), values.part(lock, "run_config", "n_attempts"))
    attempts = [number for number in map(values.count, wanted) if number is not None and 0 < number <= _MOST_ATTEMPTS]
    return Run(
        arm=arm or named_arm(agent, model) or name,
        run_id=run_id or name,
        version=values.text(values.part(lock, "harness", "version")),
        tasks=tuple(dict.fromkeys(task for task in tasks if task and not task.startswith("."))),
        attempts=max(attempts, default=None),
        interrupted=isinstance(metadata, dict) and metadata.get("end_time", "") is None,
        note=fields.joined_notes(first, second),
    )


def trial_folders(path: Path) -> Iterator[Path | Skipped]:
    """Folders of trials in the order of their names; a task's folder that is a link comes itself."""
    for task in _opened(path):
        if isinstance(task, Skipped) or task.is_symlink():
            yield task
            continue
        for trial in _opened(task):
            if isinstance(trial, Skipped) or trial.is_symlink() or _is_trial(trial):
                yield trial


def _opened(path: Path) -> list[Path | Skipped]:
    try:
        return [*subfolders(path)]
    except OSError as error:
        return [unopened(path, error)]


def _is_trial(folder: Path) -> bool:
    return bool(TRIAL_NAME.fullmatch(folder.name)) or any(os.path.lexists(folder / sign) for sign in _SIGNS)
