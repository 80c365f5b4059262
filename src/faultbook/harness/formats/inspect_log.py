"""Logs of Inspect AI: a `.eval` or `.json` file, or a folder of them. Needs the extra `[inspect]`.

A sample's epoch is a trial. The arm is the model, behind the solver if the run named one: "react (openai/gpt-5)". A
task is "task/sample": sample identifiers are often 1, 2, 3 in every task.

A sample that ended in an error is a trial without a verdict; Inspect leaves it out of its own metrics. A log that was
never closed may be of a run that broke off or of one that still runs, which the file does not tell: the samples it
holds are finished. What a running Inspect still keeps in its buffer under the home folder is not looked at.
`working_time` is in no column: it counts model calls, tools and scorers alike.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultbook.harness.fields import cause_fields, joined_notes
from faultbook.harness.files import Files
from faultbook.harness.formats._inspect_fields import ends, usage_fields, verdict
from faultbook.harness.formats._inspect_source import Log, Refused, Sample, inspect_log_module, open_log
from faultbook.harness.formats._rows import UNKNOWN_ARM, head, named_arm, unmetered
from faultbook.taxonomy import classify
from faultbook.values import amount, count, part, seconds_between, text

FORMAT = "inspect"
_PEEK = 4096
_START = re.compile(rb'"status"\s*:\s*"(?:started|success|cancelled|error)"\s*,\s*"eval"\s*:\s*\{')
_LOG_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d.*\.json|.*\.eval", re.IGNORECASE)
_NO_MODEL = "none/none"
_LINK = "a symbolic link inside the folder, which is not followed; name what it points to"
_INVALID = "invalidated"


def recognises(path: Path) -> bool:
    """Whether a path is an Inspect log, or a folder with one at its top; looks at names, and at starts of `.json`."""
    try:
        return any(map(_is_log, path.iterdir())) if path.is_dir() else _is_log(path)
    except OSError:
        return False


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """Read the samples of a log, or of every log in a folder.

    Parameters
    ----------
    path : path
        A log, or a folder, which is searched through.
    files : Files
        Takes the digest of each log.
    arm : str, optional
        The arm of all rows.
    metric : str, optional
        Name of the scorer, or "scorer.entry" for one that gives several values.

    Yields
    ------
    dict
        Columns of the table `Trials`. A log or sample that Inspect cannot read is a row with state "unreadable".

    Raises
    ------
    FaultbookError
        If inspect-ai is not installed.
    """
    inspect_log_module()
    for place in _logs(path):
        found = _opened(place, path, files)
        if isinstance(found, Refused):
            yield _unreadable(found, arm or UNKNOWN_ARM, place, None)
            continue
        name = arm or _arm(found.header)
        for sample in found.samples:
            if isinstance(sample, Refused):
                yield _unreadable(sample, name, place, found)
            else:
                yield _trial(sample, found, metric) | {"arm": name} | _source(place, found)


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The trials that the logs were to hold: their samples × epochs, each once; None if no log says so.

    Raises
    ------
    FaultbookError
        If inspect-ai is not installed.
    """
    inspect_log_module()
    rows: dict[tuple[str, str, int], None] = {}
    for place in _logs(path):
        log = _opened(place, path, files)
        if isinstance(log, Log):
            samples, epochs = log.header.eval.dataset.sample_ids or [], log.header.eval.config.epochs or 1
            name = arm or _arm(log.header)
            tasks = [_task(log.header, sample) for sample in samples]
            rows |= {(name, task, epoch): None for task in tasks if task for epoch in range(1, epochs + 1)}
    return [dict(zip(("arm", "task_id", "attempt"), row, strict=True)) for row in rows] or None


def _is_log(path: Path) -> bool:
    if path.suffix.casefold() == ".eval":
        return path.is_file()
    return path.suffix.casefold() == ".json" and _START.search(head(path, _PEEK)) is not None


def _logs(path: Path) -> Iterator[Path]:
    """The log, or those in a folder: what is named like one, or begins like one. Links come, but are not followed."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*links, *names]):
            place = Path(folder) / name
            if name in links or _LOG_NAME.fullmatch(name) or (not place.is_symlink() and recognises(place)):
                yield place


def _opened(place: Path, path: Path, files: Files) -> Log | Refused:
    """A log; links inside the folder that the caller named are not followed."""
    return Refused(_LINK) if place != path and place.is_symlink() else open_log(place, files)


def _trial(sample: Sample, log: Log, metric: str | None) -> dict[str, Any]:
    summary, spec = sample.summary, log.header.eval
    found = verdict(summary.scores, log.scorers, metric)
    observations, own_name = ends(summary, found.reason)
    seconds, why_none = amount(summary.total_time), None
    if seconds is None:
        seconds, why_none = seconds_between(summary.started_at, summary.completed_at)
    cause = cause_fields(classify(observations), found.resolved, found.reward)
    invalid = _invalidation(sample, log)
    if invalid and cause["reward_valid"] is not None:
        cause["reward_valid"] = False
    return {
        "task_id": _task(log.header, summary.id),
        **({} if count(summary.epoch) is None else {"attempt": summary.epoch}),
        "state": "finished",
        "resolved": found.resolved,
        "reward": found.reward,
        "reward_key": found.key,
        **cause,
        "exception_type": own_name,
        "total_seconds": seconds,
        **usage_fields(summary.model_usage, text(part(spec.packages, "inspect_ai"))),
        "started_at": text(summary.started_at),
        "trial_id": text(summary.uuid),
        "note": joined_notes(found.note, invalid, text(summary.limit_reason), *_run_notes(summary, log), why_none),
    }


def _invalidation(sample: Sample, log: Log) -> str | None:
    if sample.invalidated is not None:
        return f"{_INVALID}: {sample.invalidated}" if sample.invalidated else _INVALID
    return "its whole log is marked as invalidated" if log.wholly_invalidated else None


def _run_notes(summary: Any, log: Log) -> Iterator[str]:
    if summary.retries:
        yield f"earlier tries that ended in an error: {summary.retries}"
    status, error = log.header.status, log.header.error
    if status == "started":
        yield "its log was not closed: the run broke off or still runs"
    elif status != "success":
        yield f"its run ended as '{status}'" + (f": {text(error.message)}" if error is not None else "")


def _unreadable(refused: Refused, arm: str, path: Path, log: Log | None) -> dict[str, Any]:
    row: dict[str, Any] = {"arm": arm, **unmetered("unreadable", refused.why)}
    if log is not None and refused.sample_id is not None:
        row["task_id"] = _task(log.header, refused.sample_id)
    if refused.epoch is not None:
        row["attempt"] = refused.epoch
    if log is not None:
        return row | _source(path, log)
    return row | {"source_format": FORMAT, "source_path": str(path), "source_sha256": refused.sha256}


def _source(path: Path, log: Log) -> dict[str, Any]:
    spec = log.header.eval
    return {
        "run_id": text(spec.run_id),
        "source_format": FORMAT,
        "source_version": text(part(spec.packages, "inspect_ai")),
        "source_path": str(path),
        "source_sha256": log.sha256,
    }


def _arm(header: Any) -> str:
    spec = header.eval
    model = None if spec.model == _NO_MODEL else text(spec.model)
    solver = text(spec.solver)
    return named_arm(solver, model) or model or text(spec.task) or FORMAT


def _task(header: Any, sample: Any) -> str | None:
    task, name = text(header.eval.task), text(sample)
    return f"{task}/{name}" if task and name else name
