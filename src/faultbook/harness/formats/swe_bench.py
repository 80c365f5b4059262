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
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats._rows import Skipped, check_exists, subfolders, without_metrics
from faultbook.harness.formats._swe_bench_places import (
    FORMAT,
    LOG,
    REPORT,
    is_instance,
    is_instance_report,
    is_run_report,
    models,
    run_of_folder,
    run_of_report,
    run_reports,
    stem,
)
from faultbook.harness.formats._swe_bench_reports import instance_row, membership, report_rows, skipped_row

__all__ = ["FORMAT", "planned", "read", "recognises"]


def recognises(path: Path) -> bool:
    """Whether this looks like a run report or an instance's report of SWE-bench, or like a folder that holds some."""
    try:
        if not path.is_dir():
            return path.suffix == ".json" and (is_run_report(path) or is_instance_report(path))
        if run_reports(path) or is_instance_report(path / REPORT):
            return True
        return any(
            is_instance_report(instance / REPORT) or (instance / LOG).is_file()
            for folder in models(path)
            if not isinstance(folder, Skipped)
            for instance in subfolders(folder)
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
    check_exists(path)
    rows = _folder(path, files, arm) if path.is_dir() else _file(path, files, arm)
    yield from without_metrics(rows, "SWE-bench", metric)


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """The dataset that was evaluated: each instance once, as the lists of the run reports name it.

    A prediction that is submitted for an instance outside the dataset is in no list but `submitted_ids`, and not in
    the plan. None where some run has no run report, and where a report lists fewer than its `total_instances`.
    """
    found = [(path, arm)] if path.is_file() and not is_instance_report(path) else []
    if path.is_dir():
        reports = run_reports(path)
        named = (folder for folder in models(path) if not isinstance(folder, Skipped))
        if any(stem(folder) not in reports for folder in named) or any(map(Path.is_symlink, reports.values())):
            return None
        found = [(report, arm) for report in reports.values()]
    rows: list[dict[str, Any]] = []
    for report, name in found:
        try:
            document = files.read_json(report)
        except DataError:
            return None
        ids = [instance for instance, lists in membership(document).items() if lists != {"submitted"}]
        if not ids or (values.count(values.part(document, "total_instances")) or 0) > len(ids):
            return None
        rows += [{"arm": run_of_report(report, name).arm, "task_id": instance, "attempt": 1} for instance in ids]
    return rows or None


def _folder(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    if is_instance(path):
        yield instance_row(path, files, run_of_folder(path.absolute().parent, arm))
        return
    reports = run_reports(path)
    for folder in models(path):
        if isinstance(folder, Skipped):
            yield skipped_row(folder, files, run_of_folder(folder.path, arm))
            continue
        report = reports.pop(stem(folder), path / f"{stem(folder)}.json")  # which may be too torn to be recognised
        rows = report_rows(report, files, arm, inside=True) if os.path.lexists(report) else ()
        told = {row["task_id"]: row for row in rows}
        for instance in subfolders(folder):
            own = instance_row(instance, files, run_of_folder(folder, arm), inside=True)
            other = told.pop(own["task_id"], None)
            yield other if other is not None and own["state"] == "unfinished" else own
        yield from told.values()
    for report in reports.values():
        yield from report_rows(report, files, arm, inside=True)


def _file(path: Path, files: Files, arm: str | None) -> Iterator[dict[str, Any]]:
    if path.name == REPORT and not is_run_report(path):
        yield instance_row(path.parent, files, run_of_folder(path.absolute().parent.parent, arm))
    else:
        yield from report_rows(path, files, arm)
