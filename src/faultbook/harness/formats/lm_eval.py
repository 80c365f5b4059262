"""lm-evaluation-harness: `<model>/samples_<task>_<date>.jsonl` beside `<model>/results_<date>.json` (`lm-eval` 0.4).

What the format means, from the harness itself (`lm_eval/loggers/evaluation_tracker.py`, `evaluator.py`):

- A line of a samples file is a document under a filter, so a document stands there once for each filter. One row comes
  of each document: `metric` names metric and filter as the harness prints them, "exact_match,strict-match".
- `doc_id` counts documents by place; another version of the data may have another document there. The task is
  therefore "<task>/<doc_id>" and `task_checksum` the SHA-256 of the document, so that pairs that differ are found.
- Lines are appended: a run written twice under the same date stands there twice. Both rows come, with the same
  `trial_id` (task, document, hash, filter and date).
- The date is local, without offset, and is that of writing: it names the run, and nothing began then. Neither times nor
  tokens nor why an answer ended are on record.
- The model's folder has a name made safe for folders; `model_name` of the results file is the arm where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats._lm_eval_samples import Run, chosen, document_fields, is_record, survey
from faultbook.harness.formats._rows import (
    LINK_TO_NAME,
    check_exists,
    head,
    optional_document,
    row,
    subfolders,
    unopened,
)

FORMAT = "lm-eval"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]+)?"
_SAMPLES = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<date>{_DATE}))?\.jsonl", re.DOTALL)
_RESULTS = re.compile(rf"(?P<stem>.+)_(?P<date>{_DATE})\.json", re.DOTALL)
_UNSAFE = re.compile(r'["<>:/|\\?*\[\]]+')  # what the harness writes as "__" in a folder's name
_DEPTH = 2  # folders below the one named: <experiment>/<model>
_PEEK = 1 << 12
_NO_SAMPLES = "results without samples: the harness writes them with --log_samples"


def recognises(path: Path) -> bool:
    """Whether this looks like a samples file of lm-eval, or like a folder that holds some."""
    try:
        if not path.is_dir():
            return _is_samples(path)
        return any(_is_samples(file) for folder in _folders(path) for file in _listed(folder))
    except (OSError, ValueError):
        return False


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """Read the documents of samples files.

    Parameters
    ----------
    path : Path
        A samples file, a model's folder, or a folder with models' folders at most two levels below it.
    files : Files
        Reads, and keeps what was read.
    arm : str, optional
        Without it: the model's name in the results file of the same date, else the name of the model's folder.
    metric : str, optional
        "metric" or "metric,filter". Without it a sole metric counts, or one called "reward", under a sole filter.

    Yields
    ------
    dict
        One row of `Trials` for each document as often as it was written, and one for each line that is no record.

    Raises
    ------
    DataError
        If there is no such file or folder.
    """
    check_exists(path)
    if not path.is_dir():
        yield from _samples(path, files, _runs(path.parent, files, arm), metric)
        return
    for folder in _folders(path):
        if folder.is_symlink() and folder != path:
            yield _row(Run(arm or folder.name), folder, files, "unreadable", note=LINK_TO_NAME)
            continue
        try:
            yield from _model(folder, files, arm, metric)
        except OSError as error:
            yield _row(Run(arm or folder.name), folder, files, "unreadable", note=unopened(folder, error).why)


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[dict[str, Any]] | None:
    """None: results say how many documents were evaluated, not which."""
    return None


def _model(folder: Path, files: Files, arm: str | None, metric: str | None) -> Iterator[dict[str, Any]]:
    runs = _runs(folder, files, arm)
    dates = set()
    for file in _listed(folder):
        parts = _SAMPLES.fullmatch(file.name)
        if not parts or not (file.is_symlink() or _is_samples(file)):
            continue
        dates.add(parts["date"])
        if file.is_symlink():
            yield _row(_of_date(runs, parts["date"]), file, files, "unreadable", note=LINK_TO_NAME)
        else:
            yield from _samples(file, files, runs, metric)
    for file in _listed(folder):
        parts = _RESULTS.fullmatch(file.name)
        if parts and parts["stem"] == "results" and parts["date"] not in dates:
            yield _row(_of_date(runs, parts["date"]), file, files, "unreadable", note=_NO_SAMPLES)


def _samples(path: Path, files: Files, runs: dict[str | None, Run], metric: str | None) -> Iterator[dict[str, Any]]:
    parts = _SAMPLES.fullmatch(path.name)
    task, run = (parts["task"], _of_date(runs, parts["date"])) if parts else (path.stem, runs[None])
    try:
        filters, metrics = survey(record for _, record in files.json_lines(path))
        if not filters:
            raise DataError("no line is a record" if path.stat().st_size else "empty file")
        choice = chosen(filters, metrics, metric)
    except (DataError, OSError) as error:
        yield _row(run, path, files, "unreadable", note=error.problem if isinstance(error, DataError) else str(error))
        return
    for number, record in files.json_lines(path):
        if is_record(record):
            if values.text(record.get("filter")) == choice.filter:
                told = document_fields(record, values.text(task) or FORMAT, run, choice)
                yield {**_row(run, path, files, "finished"), **told}
            continue
        why = record.problem if isinstance(record, DataError) else "a record without doc_id and doc_hash"
        yield _row(run, path, files, "unreadable", note=f"line {number}: {why}")


def _row(run: Run, path: Path, files: Files, state: str, note: str | None = None) -> dict[str, Any]:
    who = {"arm": run.arm, "run_id": run.date, "source_version": run.version}
    return row(FORMAT, state, path, files, run.note, note, **who)


def _runs(folder: Path, files: Files, arm: str | None) -> dict[str | None, Run]:
    """Runs by their dates, from the results files of a folder; under None what is said of any other samples file."""
    runs: dict[str | None, Run] = {}
    name = values.text(folder.absolute().name) or FORMAT
    for path in _listed(folder):
        parts = _RESULTS.fullmatch(path.name)
        if parts:
            runs[parts["date"]] = _of_results(path, files, parts["date"])
    same = (run.arm for run in runs.values() if run.arm and _UNSAFE.sub("__", run.arm) == name)
    default = arm or next(same, name)
    runs = {date: replace(run, arm=arm or run.arm or default) for date, run in runs.items()}
    return {**runs, None: Run(default)}


def _of_results(path: Path, files: Files, date: str) -> Run:
    document, problem = optional_document(path, files)
    higher = values.part(document, "higher_is_better")
    return Run(
        arm=values.text(values.part(document, "model_name")) or "",
        date=date,
        version=values.text(values.part(document, "lm_eval_version")),
        higher_is_better=higher if isinstance(higher, dict) else {},
        note=problem,
    )


def _of_date(runs: dict[str | None, Run], date: str | None) -> Run:
    return runs[date] if date in runs else replace(runs[None], date=date)


def _folders(path: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """A folder and those below it, by name, without the hidden ones; links to folders come, and are not followed."""
    yield path
    try:
        children = [child for child in subfolders(path) if child.is_dir()] if depth else []
    except OSError:  # said by whoever lists the folder's files
        return
    for child in children:
        yield from (child,) if child.is_symlink() else _folders(child, depth - 1)


def _listed(folder: Path) -> list[Path]:
    """Files in a folder, and links that do not lead to folders, by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())


def _is_samples(path: Path) -> bool:
    parts = _SAMPLES.fullmatch(path.name)
    if not parts or not path.is_file():
        return False
    return bool(parts["date"]) or b'"doc_id"' in head(path, _PEEK)
