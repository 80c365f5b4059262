"""What SWE-bench's run reports and instances' reports say of a trial, as rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.harness.formats._rows import LINK_TO_NAME, Skipped, row
from faultbook.harness.formats._swe_bench_places import FORMAT, REPORT, Run, run_of_report
from faultbook.taxonomy import Observation, classify

_LISTS = {  # what a run report's lists say of an instance
    "resolved": "resolved_ids",
    "unresolved": "unresolved_ids",
    "empty_patch": "empty_patch_ids",
    "error": "error_ids",
    "infra_failure": "infra_failure_ids",
    "ambiguous_failure": "ambiguous_failure_ids",
    "completed": "completed_ids",
    "incomplete": "incomplete_ids",
    "submitted": "submitted_ids",
}
_ADVICE = ("infra_failure", "ambiguous_failure")
_FAILURES = (*_ADVICE, "error", "patch_not_applied", "empty_patch")


def instance_row(folder: Path, files: Files, run: Run, *, inside: bool = False) -> dict[str, Any]:
    """The row of an instance's folder; links count only `inside` what the caller named."""
    task, report = folder.absolute().name, folder / REPORT
    link = next((path for path in (folder, report) if inside and path.is_symlink()), None)
    if link:
        return _row(run, "unreadable", link, files, task, LINK_TO_NAME)
    if not os.path.lexists(report):
        return _row(run, "unfinished", folder, files, task, f"no {REPORT} in the instance's folder")
    try:
        task, entry = _entry(files.read_json(report), task)
    except DataError as error:
        return _row(run, "unreadable", report, files, task, error.problem)
    resolved = values.truth(entry.get("resolved"))
    names = [_patch(entry) or ("resolved" if resolved else "unresolved" if resolved is False else "")]
    names += ["infra_failure"] if values.truth(entry.get("infra_failure")) else []
    reason = values.text(entry.get("infra_failure_reason"))
    odd = None if resolved is not None else "resolved is neither true nor false: no verdict"
    return _judged(_row(run, "finished", report, files, task, odd), resolved, [name for name in names if name], reason)


def _entry(document: Any, task: str) -> tuple[str, dict[str, Any]]:
    """An instance's name and report: under its name, under the only name there is, or by itself."""
    if isinstance(document, dict):
        name = next(iter(document)) if task not in document and len(document) == 1 else task
        if isinstance(document.get(name), dict):
            return name, document[name]
        if "resolved" in document:
            return values.text(document.get("instance_id")) or task, document
    raise DataError("not the report of an instance")


def _patch(entry: dict[str, Any]) -> str | None:
    if values.truth(entry.get("patch_is_None")) or values.truth(entry.get("patch_exists")) is False:
        return "empty_patch"
    applied, resolved = values.truth(entry.get("patch_successfully_applied")), values.truth(entry.get("resolved"))
    return "patch_not_applied" if applied is False and not resolved else None


def report_rows(path: Path, files: Files, arm: str | None, *, inside: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of a run report; links count only `inside` what the caller named."""
    run = run_of_report(path, arm)
    if inside and path.is_symlink():
        yield _row(run, "unreadable", path, files, None, LINK_TO_NAME)
        return
    try:
        document = files.read_json(path)
    except DataError as error:
        yield _row(run, "unreadable", path, files, None, error.problem)
        return
    if not _tells_verdicts(document):
        why = "no run report that lists both resolved_ids and what else was judged (unresolved_ids or completed_ids)"
        yield _row(run, "unreadable", path, files, None, why)
        return
    reasons = values.part(document, "failure_reasons")
    for instance, lists in membership(document).items():
        state, resolved, note = _state(lists)
        told = _row(run, state, path, files, instance, note)
        names = [name for name in ("resolved", "unresolved", *_FAILURES) if name in lists]
        reason = values.text(values.part(reasons, instance))
        yield _judged(told, resolved, names, reason) if state == "finished" else told


def _state(lists: set[str]) -> tuple[str, bool | None, str | None]:
    """State, verdict and note that follow from the lists in which an instance stands."""
    verdicts = {True for _ in lists & {"resolved"}} | {False for _ in lists & {"unresolved", "empty_patch"}}
    if len(verdicts) == 1:
        return "finished", verdicts.pop(), None
    if verdicts:
        return "finished", None, "listed as resolved and as unresolved: no verdict"
    if {"error", "completed"} <= lists:
        return "unreadable", None, f"its {REPORT} is empty, half written or without a verdict, by the run report"
    if lists & {"error", *_ADVICE, "completed"}:
        return "finished", None, "evaluated without a verdict, by the run report"
    if "incomplete" in lists:
        return "unfinished", None, "no prediction was submitted"
    return "unfinished", None, "submitted, but in none of the lists of what was evaluated"


def _judged(told: dict[str, Any], resolved: bool | None, names: list[str], reason: str | None) -> dict[str, Any]:
    """A finished row, with its verdict and with what the names that the harness gives to its end stand for."""
    ends = [Observation(FORMAT, name, reason if name in (*_ADVICE, "error") else None) for name in names]
    advice = [f"{name}, by the harness's advice: the verdict stays as recorded" for name in names if name in _ADVICE]
    return {
        **told,
        **(fields.cause_fields(classify(ends), resolved, None) if ends else {}),
        "resolved": resolved,
        "exception_type": next((name for name in _FAILURES if name in names), None),
        "note": fields.joined_notes(told["note"], *advice, reason and f"reason given: {reason}"),
    }


def _tells_verdicts(document: Any) -> bool:
    lists = [isinstance(values.part(document, _LISTS[name]), list) for name in ("resolved", "unresolved", "completed")]
    return lists[0] and any(lists[1:])


def membership(document: Any) -> dict[str, set[str]]:
    """The lists in which each instance of a run report stands, by our names of them."""
    found: dict[str, set[str]] = {}
    for name, key in _LISTS.items():
        ids = values.part(document, key)
        for instance in ids if isinstance(ids, list) else ():
            if isinstance(instance, str) and (task := values.text(instance)):
                found.setdefault(task, set()).add(name)
    if not isinstance(values.part(document, _LISTS["unresolved"]), list):  # of before that list: what was judged else
        for lists in found.values():
            if "completed" in lists and not lists & {"resolved", "error", "empty_patch"}:
                lists.add("unresolved")
    return found


def skipped_row(folder: Skipped, files: Files, run: Run) -> dict[str, Any]:
    """The row of a model's folder that is not looked into."""
    return _row(run, "unreadable", folder.path, files, None, folder.why)


def _row(run: Run, state: str, path: Path, files: Files, task: str | None, note: str | None) -> dict[str, Any]:
    return row(FORMAT, state, path, files, note, arm=run.arm, task_id=values.text(task), run_id=run.run_id)
