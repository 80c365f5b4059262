"""SWE-bench: run reports `<model>.<run>.json`, and instances' `logs/run_evaluation/<run>/<model>/<id>/report.json`.

What the format means, from the harness itself (`swebench/harness/reporting.py`, `grading.py`, `run_evaluation.py`):

- A trial is an instance of the dataset: the agent's patch, judged afterwards. Neither tokens nor times nor an id of the
  trial are on record, nor how the agent ended. "/" in a model's name is written "__"; that cannot be undone, so the
  arm is the name as written.
- `empty_patch_ids`: the agent handed in nothing, which resolves nothing: a verdict. `incomplete_ids`: no prediction,
  so the trial is unfinished.
- `error_ids`: the evaluation wrote no report, because the patch did not apply, the tests took too long or a container
  failed. Which of these is not on record: finished, without a verdict. An instance that is in `completed_ids` too has
  a report, but an empty or half-written one: unreadable.
- The run report states what an instance's own report says; where both are at hand the instance's own counts, and the
  run report tells of instances without one.
- Failures of the infrastructure are a classification that the harness gives as advice; the verdict stays as recorded.
- Reports of before schema 2 that list resolved instances alone leave open which of the rest were judged: unreadable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files
from faultbook.taxonomy import Observation, classify

FORMAT = "swe-bench"
_REPORT, _LOG = "report.json", "run_instance.log"
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
_RUNS = ("run_evaluation", "evaluation")  # the folder of runs, which changed its name between versions
_DEPTH = 2  # from the folder of runs down to their models' folders
_PEEK = 1 << 12
_LINK = "a symbolic link, not followed: name what it points to by itself"


@dataclass(frozen=True, slots=True)
class _Run:
    """Whose instances they are, of which run."""

    arm: str
    run_id: str | None


def recognises(path: Path) -> bool:
    """Whether this looks like a run report or an instance's report of SWE-bench, or like a folder that holds some."""
    try:
        if not path.is_dir():
            return path.suffix == ".json" and (_is_run_report(path) or _is_instance_report(path))
        if _run_reports(path) or _is_instance_report(path / _REPORT):
            return True
        return any(
            _is_instance_report(instance / _REPORT) or (instance / _LOG).is_file()
            for folder in _models(path)
            if not isinstance(folder, DataError)
            for instance in _subfolders(folder)
        )
    except (OSError, ValueError):
        return False


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """Read the instances of a run.

    Parameters
    ----------
    path : Path
        A run report, an instance's report or folder, the folder in which the harness was started (with `logs` in it),
        or one with instances' folders at most three levels below it.
    files : Files
        Reads, and keeps what was read.
    arm : str, optional
        Without it: the model's name as the folder or the run report's name has it, "/" written "__".
    metric : str, optional
        The format has a verdict only; if one is named, each row's note says that it was not applied.

    Yields
    ------
    dict
        One row of `Trials` for each instance of each run.

    Raises
    ------
    DataError
        If there is no such file or folder.
    """
    if not path.exists():
        raise DataError("no such file or folder", file=path)
    unused = f"SWE-bench records a verdict and no metrics: '{metric}' is not applied" if metric else None
    for row in _folder(path, files, arm) if path.is_dir() else _file(path, files, arm):
        yield {**row, "note": fields.joined_notes(row["note"], unused)}


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The dataset that was evaluated: each instance once, as the lists of the run reports name it.

    A prediction that is submitted for an instance outside the dataset is in no list but `submitted_ids`, and not in
    the plan. None where some run has no run report, and where a report lists fewer than its `total_instances`.
    """
    found = [(path, arm)] if path.is_file() and not _is_instance_report(path) else []
    if path.is_dir():
        reports = _run_reports(path)
        models = (folder for folder in _models(path) if not isinstance(folder, DataError))
        if any(_stem(folder) not in reports for folder in models) or any(map(Path.is_symlink, reports.values())):
            return None
        found = [(report, arm) for report in reports.values()]
    rows: list[dict[str, Any]] = []
    for report, name in found:
        try:
            document = files.read_json(report)
        except DataError:
            return None
        ids = [instance for instance, lists in _membership(document).items() if lists != {"submitted"}]
        if not ids or (values.count(values.part(document, "total_instances")) or 0) > len(ids):
            return None
        rows += [{"arm": _run_of_report(report, name).arm, "task_id": instance, "attempt": 1} for instance in ids]
    return rows or None


def _folder(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    if _is_instance(path):
        yield _instance(path, files, _run_of_folder(path.absolute().parent, arm))
        return
    reports = _run_reports(path)
    for folder in _models(path):
        if isinstance(folder, DataError):
            place = Path(str(folder.file))
            yield _row(_run_of_folder(place, arm), "unreadable", place, files, None, folder.problem)
            continue
        report = reports.pop(_stem(folder), path / f"{_stem(folder)}.json")  # which may be too torn to be recognised
        rows = _run_report(report, files, arm, inside=True) if os.path.lexists(report) else ()
        told = {row["task_id"]: row for row in rows}
        for instance in _subfolders(folder):
            own = _instance(instance, files, _run_of_folder(folder, arm), inside=True)
            other = told.pop(own["task_id"], None)
            yield other if other is not None and own["state"] == "unfinished" else own
        yield from told.values()
    for report in reports.values():
        yield from _run_report(report, files, arm, inside=True)


def _file(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    if path.name == _REPORT and not _is_run_report(path):
        yield _instance(path.parent, files, _run_of_folder(path.absolute().parent.parent, arm))
    else:
        yield from _run_report(path, files, arm)


def _instance(folder: Path, files: Files, run: _Run, *, inside: bool = False) -> dict[str, Any]:
    """The row of an instance's folder; links count only `inside` what the caller named."""
    task, report = folder.absolute().name, folder / _REPORT
    link = next((path for path in (folder, report) if inside and path.is_symlink()), None)
    if link:
        return _row(run, "unreadable", link, files, task, _LINK)
    if not os.path.lexists(report):
        return _row(run, "unfinished", folder, files, task, f"no {_REPORT} in the instance's folder")
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


def _run_report(path: Path, files: Files, arm: str | None, *, inside: bool = False) -> Iterator[dict[str, Any]]:
    run = _run_of_report(path, arm)
    if inside and path.is_symlink():
        yield _row(run, "unreadable", path, files, None, _LINK)
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
    for instance, lists in _membership(document).items():
        state, resolved, note = _state(lists)
        row = _row(run, state, path, files, instance, note)
        names = [name for name in ("resolved", "unresolved", *_FAILURES) if name in lists]
        yield _judged(row, resolved, names, values.text(values.part(reasons, instance))) if state == "finished" else row


def _state(lists: set[str]) -> tuple[str, bool | None, str | None]:
    """State, verdict and note that follow from the lists in which an instance stands."""
    verdicts = {True for _ in lists & {"resolved"}} | {False for _ in lists & {"unresolved", "empty_patch"}}
    if len(verdicts) == 1:
        return "finished", verdicts.pop(), None
    if verdicts:
        return "finished", None, "listed as resolved and as unresolved: no verdict"
    if {"error", "completed"} <= lists:
        return "unreadable", None, f"its {_REPORT} is empty, half written or without a verdict, by the run report"
    if lists & {"error", *_ADVICE, "completed"}:
        return "finished", None, "evaluated without a verdict, by the run report"
    if "incomplete" in lists:
        return "unfinished", None, "no prediction was submitted"
    return "unfinished", None, "submitted, but in none of the lists of what was evaluated"


def _judged(row: dict[str, Any], resolved: bool | None, names: list[str], reason: str | None) -> dict[str, Any]:
    """A finished row, with its verdict and with what the names that the harness gives to its end stand for."""
    told = [Observation(FORMAT, name, reason if name in (*_ADVICE, "error") else None) for name in names]
    advice = [f"{name}, by the harness's advice: the verdict stays as recorded" for name in names if name in _ADVICE]
    return {
        **row,
        **(fields.cause_fields(classify(told), resolved, None) if told else {}),
        "resolved": resolved,
        "exception_type": next((name for name in _FAILURES if name in names), None),
        "note": fields.joined_notes(row["note"], *advice, reason and f"reason given: {reason}"),
    }


def _tells_verdicts(document: Any) -> bool:
    lists = [isinstance(values.part(document, _LISTS[name]), list) for name in ("resolved", "unresolved", "completed")]
    return lists[0] and any(lists[1:])


def _membership(document: Any) -> dict[str, set[str]]:
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


def _row(run: _Run, state: str, path: Path, files: Files, task: str | None, note: str | None) -> dict[str, Any]:
    try:
        digest: str | None = files.sha256(path)
    except KeyError:  # not read
        digest = None
    return {
        "arm": run.arm,
        "task_id": values.text(task),
        "state": state,
        "usage_status": "absent",
        "run_id": run.run_id,
        "source_format": FORMAT,
        "source_path": str(path).encode("utf-8", errors="replace").decode("utf-8"),  # a file's name may be no text
        "source_sha256": digest,
        "note": note,
    }


def _run_of_report(path: Path, arm: str | None) -> _Run:
    model, _, run = path.stem.rpartition(".")  # a model's name may hold dots
    return _Run(arm or values.text(model) or values.text(path.stem) or FORMAT, values.text(run if model else None))


def _run_of_folder(model: Path, arm: str | None) -> _Run:
    run = model.absolute().parent
    name = values.text(run.name) if run.parent.name in _RUNS else None
    return _Run(arm or values.text(model.absolute().name) or FORMAT, name)


def _stem(model: Path) -> str:
    """The name that the run report of a model's folder has, without its suffix."""
    return f"{model.absolute().name}.{model.absolute().parent.name}"


def _run_reports(folder: Path) -> dict[str, Path]:
    """Run reports that lie in a folder, by their stems."""
    return {path.stem: path for path in sorted(folder.glob("*.json")) if _is_run_report(path)}


def _models(path: Path) -> Iterator[Path | DataError]:
    """Models' folders below a folder, or in `logs` where that is beside the run reports."""
    bases = (base for base in (path / "logs", path) if not base.is_symlink() or base == path)
    roots = [base / runs for base in bases for runs in _RUNS if os.path.lexists(base / runs)]
    for root in roots or [path]:
        yield from (DataError(_LINK, file=root),) if root.is_symlink() and root != path else _below(root, _DEPTH)


def _below(folder: Path, depth: int) -> Iterator[Path | DataError]:
    """Folders that hold folders of instances; links and folders that do not open come as errors."""
    try:
        below = _subfolders(folder)
        if any(not child.is_symlink() and _is_instance(child) for child in below):
            yield folder
            return
    except OSError as error:
        yield DataError(f"the folder cannot be opened ({error.strerror})", file=folder)
        return
    for child in below if depth else ():
        if child.is_symlink():
            yield DataError(_LINK, file=child)
        else:
            yield from _below(child, depth - 1)


def _subfolders(path: Path) -> list[Path]:
    """Folders in a folder, and links to folders or to nothing, by name; not the hidden ones."""
    with os.scandir(path) as entries:
        found = [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
    return sorted(entry for entry in found if entry.is_dir() or (entry.is_symlink() and not entry.exists()))


def _is_instance(folder: Path) -> bool:
    return os.path.lexists(folder / _REPORT) or (folder / _LOG).is_file()


def _is_run_report(path: Path) -> bool:
    head = _head(path)
    return b'"resolved_ids"' in head or (b'"total_instances"' in head and b'"resolved_instances"' in head)


def _is_instance_report(path: Path) -> bool:
    head = _head(path)
    return any(key in head for key in (b'"patch_is_None"', b'"patch_exists"', b'"patch_successfully_applied"'))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_PEEK)
    except OSError:
        return b""
