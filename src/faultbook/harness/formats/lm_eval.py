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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faultbook import values
from faultbook.errors import DataError
from faultbook.harness import fields
from faultbook.harness.files import Files

FORMAT = "lm-eval"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]+)?"
_SAMPLES = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<date>{_DATE}))?\.jsonl", re.DOTALL)
_RESULTS = re.compile(rf"(?P<stem>.+)_(?P<date>{_DATE})\.json", re.DOTALL)
_UNSAFE = re.compile(r'["<>:/|\\?*\[\]]+')  # what the harness writes as "__" in a folder's name
_RECORD = "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash"
_KNOWN = frozenset(_RECORD.split())  # no metrics, where a record of an older version does not list those
_SAID = {"True": True, "False": False}  # what the harness writes of a truth value of NumPy's
_DEPTH = 2  # folders below the one named: <experiment>/<model>
_PEEK = 1 << 12
_LINK = "a symbolic link, not followed: name what it points to by itself"
_NO_SAMPLES = "results without samples: the harness writes them with --log_samples"


@dataclass(frozen=True, slots=True)
class _Run:
    """What the results file beside it says of a samples file."""

    arm: str
    date: str | None = None
    version: str | None = None
    higher_is_better: dict[str, Any] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    """The metric and filter that rewards are of, or why there are none."""

    metric: str | None
    filter: str | None
    note: str | None = None


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
    if not path.exists():
        raise DataError("no such file or folder", file=path)
    if not path.is_dir():
        yield from _samples(path, files, _runs(path.parent, files, arm), metric)
        return
    for folder in _folders(path):
        if folder.is_symlink() and folder != path:
            yield _row(_Run(arm or folder.name), folder, files, "unreadable", note=_LINK)
            continue
        try:
            yield from _model(folder, files, arm, metric)
        except OSError as error:
            why = f"the folder cannot be opened ({error.strerror})"
            yield _row(_Run(arm or folder.name), folder, files, "unreadable", note=why)


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
            yield _row(_of_date(runs, parts["date"]), file, files, "unreadable", note=_LINK)
        else:
            yield from _samples(file, files, runs, metric)
    for file in _listed(folder):
        parts = _RESULTS.fullmatch(file.name)
        if parts and parts["stem"] == "results" and parts["date"] not in dates:
            yield _row(_of_date(runs, parts["date"]), file, files, "unreadable", note=_NO_SAMPLES)


def _samples(path: Path, files: Files, runs: dict[str | None, _Run], metric: str | None) -> Iterator[dict[str, Any]]:
    parts = _SAMPLES.fullmatch(path.name)
    task, run = (parts["task"], _of_date(runs, parts["date"])) if parts else (path.stem, runs[None])
    try:
        filters, metrics = _survey(record for _, record in files.json_lines(path))
        if not filters:
            raise DataError("no line is a record" if path.stat().st_size else "empty file")
        choice = _chosen(filters, metrics, metric)
    except (DataError, OSError) as error:
        yield _row(run, path, files, "unreadable", note=error.problem if isinstance(error, DataError) else str(error))
        return
    row = _row(run, path, files, "unreadable")
    for number, record in files.json_lines(path):
        if isinstance(record, dict) and _identity(record) != (None, None):
            if values.text(record.get("filter")) == choice.filter:
                yield {**row, **_document(record, values.text(task) or FORMAT, run, choice)}
            continue
        why = record.problem if isinstance(record, DataError) else "a record without doc_id and doc_hash"
        yield {**row, "note": fields.joined_notes(run.note, f"line {number}: {why}")}


def _survey(records: Iterable[Any]) -> tuple[list[str | None], list[str]]:
    """Filters and metrics of the records of a file, in the order in which they are met."""
    filters: dict[str | None, None] = {}
    metrics: dict[str, None] = {}
    for record in records:
        if isinstance(record, dict) and _identity(record) != (None, None):
            filters.setdefault(values.text(record.get("filter")))
            listed = record.get("metrics")
            found = listed if isinstance(listed, list) else [name for name in record if name not in _KNOWN]
            metrics.update(dict.fromkeys(name for name in found if isinstance(name, str)))
    return list(filters), list(metrics)


def _chosen(filters: list[str | None], metrics: list[str], wanted: str | None) -> _Choice:
    """The metric and the filter that count. Without a decision, documents are those of the first filter."""
    name, _, under = (wanted or "").partition(",")
    shown = ", ".join(str(found) for found in filters)
    if under and under not in filters:
        return _Choice(None, filters[0], f"no filter '{under}' (there are: {shown})")
    if not under and len(filters) > 1:
        example = f"{name or (metrics[0] if metrics else 'metric')},{filters[0]}"
        return _Choice(None, filters[0], f"several filters ({shown}): name one with metric, such as '{example}'")
    chosen = under or filters[0]
    if name and name not in metrics:
        return _Choice(None, chosen, f"no metric '{name}' (there are: {', '.join(metrics) or 'none'})")
    sole = metrics[0] if len(metrics) == 1 else "reward" if "reward" in metrics else None
    if not name and sole is None:
        why = f"several rewards ({', '.join(metrics)}): name one with metric" if metrics else "no metric"
        return _Choice(None, chosen, why)
    return _Choice(name or sole, chosen)


def _document(record: dict[str, Any], task: str, run: _Run, choice: _Choice) -> dict[str, Any]:
    document, digest = _identity(record)
    task_id = f"{task}/{document or (digest or '')[:12]}"
    reward, resolved, odd = _verdict(record, choice.metric) if choice.metric else (None, None, None)
    if choice.metric and values.part(run.higher_is_better, task, choice.metric) is False:
        resolved, odd = None, f"lower is better for '{choice.metric}': no verdict follows from it"
    key = ",".join(part for part in (choice.metric, choice.filter) if part)
    return {
        "task_id": task_id,
        "state": "finished",
        "resolved": resolved,
        "reward": reward,
        "reward_key": key if choice.metric else None,
        "trial_id": " ".join(part for part in (task_id, (digest or "")[:12], choice.filter, run.date) if part),
        "task_checksum": digest,
        "note": fields.joined_notes(run.note, choice.note, odd),
    }


def _identity(record: dict[str, Any]) -> tuple[str | None, str | None]:
    return values.text(record.get("doc_id")), values.text(record.get("doc_hash"))


def _verdict(record: dict[str, Any], metric: str) -> tuple[float | None, bool | None, str | None]:
    """Reward, verdict, and what is odd about them. A truth value is a verdict without a number."""
    value = record.get(metric)
    if isinstance(value, (bool, str)):
        said = value if isinstance(value, bool) else _SAID.get(value)
        return None, said, None if said is not None else f"'{metric}' is a text"
    reward = values.number(value)
    if reward is None:
        return None, None, f"no number for '{metric}'"
    if not 0 <= reward <= 1:
        return reward, None, f"'{metric}' is outside [0, 1]: no verdict follows from it"
    return reward, reward == 1, None


def _row(run: _Run, path: Path, files: Files, state: str, note: str | None = None) -> dict[str, Any]:
    try:
        digest: str | None = files.sha256(path)
    except KeyError:  # not read
        digest = None
    return {
        "arm": run.arm,
        "state": state,
        "usage_status": "absent",
        "run_id": run.date,
        "source_format": FORMAT,
        "source_version": run.version,
        "source_path": str(path).encode("utf-8", errors="replace").decode("utf-8"),  # a file's name may be no text
        "source_sha256": digest,
        "note": fields.joined_notes(run.note, note),
    }


def _runs(folder: Path, files: Files, arm: str | None) -> dict[str | None, _Run]:
    """Runs by their dates, from the results files of a folder; under None what is said of any other samples file."""
    runs: dict[str | None, _Run] = {}
    name = values.text(folder.absolute().name) or FORMAT
    for path in _listed(folder):
        parts = _RESULTS.fullmatch(path.name)
        if parts:
            runs[parts["date"]] = _of_results(path, files, parts["date"])
    same = (run.arm for run in runs.values() if run.arm and _UNSAFE.sub("__", run.arm) == name)
    default = arm or next(same, name)
    runs = {date: replace(run, arm=arm or run.arm or default) for date, run in runs.items()}
    return {**runs, None: _Run(default)}


def _of_results(path: Path, files: Files, date: str) -> _Run:
    if path.is_symlink():
        return _Run("", date, note=f"{path.name} is {_LINK}")
    try:
        document = files.read_json(path)
    except DataError as error:
        return _Run("", date, note=f"{path.name}: {error.problem}")
    higher = values.part(document, "higher_is_better")
    return _Run(
        arm=values.text(values.part(document, "model_name")) or "",
        date=date,
        version=values.text(values.part(document, "lm_eval_version")),
        higher_is_better=higher if isinstance(higher, dict) else {},
    )


def _of_date(runs: dict[str | None, _Run], date: str | None) -> _Run:
    return runs[date] if date in runs else replace(runs[None], date=date)


def _folders(path: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """A folder and those below it, by name, without the hidden ones; links to folders come, and are not followed."""
    yield path
    try:
        children = sorted(path.iterdir()) if depth else []
    except OSError:  # said by whoever lists the folder's files
        return
    for child in children:
        if child.is_dir() and not child.name.startswith("."):
            yield from (child,) if child.is_symlink() else _folders(child, depth - 1)


def _listed(folder: Path) -> list[Path]:
    """Files in a folder, and links that do not lead to folders, by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())


def _is_samples(path: Path) -> bool:
    parts = _SAMPLES.fullmatch(path.name)
    if not parts or not path.is_file():
        return False
    if parts["date"]:
        return True
    with path.open("rb") as file:
        return b'"doc_id"' in file.read(_PEEK)
