"""TRAIL: errors that experts located in spans of OpenTelemetry traces.

Source: Deshpande et al. (2025), arXiv 2505.08638; data set PatronusAI/TRAIL (gated, not to be shared again). A log's
steps are its spans, a span before its children, in the order in which they are written, counted from 0. Errors name
spans by id, so that without the trace nobody knows their steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultbook.attribution.formats.collect import Collector, Review, judge
from faultbook.attribution.formats.parquet import rows_of
from faultbook.attribution.formats.values import as_name, as_text, folders_above, read_history
from faultbook.errors import short_repr

NAME = "trail"
INDEX_BASE = 0
ANNOTATOR = "expert"
COLUMNS = ("trace", "labels")
LOOKED_FOR = "labels (an object with errors and scores) or a trace (an object with spans)"

_LABELS = "processed_annotations_"
_BESIDE = "put the trace beside, as GAIA/ID.json or 'SWE Bench/ID.json'"

Trace = list[dict[str, Any]]


def recognises(payload: object, file: Path) -> bool:
    """Whether a JSON value is a trace or the labels of one."""
    if not isinstance(payload, dict):
        return False
    return isinstance(payload.get("spans"), list) or ("errors" in payload and _is_labels(payload, file))


def read(payload: Mapping[str, Any], file: Path, row: int | None, collector: Collector) -> None:
    """Read a trace, or the labels of one; the trace is looked up beside the folder of labels."""
    split = split_of(folders_above(file)[0])
    log_id = f"{split}/{file.stem}"
    if isinstance(payload.get("spans"), list):
        _trace(payload, log_id, split, file, row, collector)
        return
    beside = _find_trace(file, split)
    trace = _trace(beside, log_id, split, file, row, collector) if beside is not None else None
    if trace is None:
        collector.log(log_id, split, NAME, file)
    _labels(payload, trace, log_id, file, row, collector)


def read_parquet(file: Path, collector: Collector) -> None:
    """Read a parquet file whose columns hold trace and labels as JSON text.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    split = split_of(file.stem.partition("-00")[0])
    for number, row in rows_of(file, COLUMNS):
        trace, labels = (_parsed(row.get(column), file, number, column, collector) for column in COLUMNS)
        if labels is None:
            continue
        given = (labels.get("trace_id"), trace.get("trace_id") if trace else None)
        named = next((name for name in given if isinstance(name, str) and name.strip()), number)
        try:
            log_id = f"{split}/{as_name(named, 'trace_id')}"
        except ValueError as error:
            collector.problem(str(error), file, number, "trace")
            continue
        spans = _trace(trace, log_id, split, file, number, collector) if trace else None
        if spans is None:
            collector.log(log_id, split, NAME, file)
        _labels(labels, spans, log_id, file, number, collector)


def split_of(folder: str) -> str:
    """The split that a folder or file is called after: "gaia", "swe-bench", or its own name."""
    name = folder.casefold().removeprefix(_LABELS).replace(" ", "-").replace("_", "-")
    return name if name in ("gaia", "swe-bench") else folder or "all"


def _is_labels(payload: Mapping[str, Any], file: Path) -> bool:
    errors = payload["errors"]
    located = isinstance(errors, list) and any(isinstance(error, dict) and "location" in error for error in errors)
    return located or "scores" in payload or folders_above(file)[0].startswith(_LABELS)


def _find_trace(labels: Path, split: str) -> Mapping[str, Any] | None:
    """The trace of the same name in a folder of the same split, beside the labels or in `data` there."""
    base = labels.absolute().parent.parent
    for folder in (base, base / "data"):
        try:
            inside = sorted(entry for entry in folder.iterdir() if entry.is_dir())
        except OSError:
            continue
        for entry in inside:
            if split_of(entry.name) == split and not entry.name.startswith(_LABELS):
                payload = _loaded(entry / labels.name)
                if payload is not None:
                    return payload
    return None


def _loaded(file: Path) -> Mapping[str, Any] | None:
    try:
        payload = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) and isinstance(payload.get("spans"), list) else None


def _parsed(text: object, file: Path, row: int, column: str, collector: Collector) -> dict[str, Any] | None:
    try:
        payload = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        payload = None
    if isinstance(payload, dict):
        return payload
    collector.problem(f"{short_repr(text)} is not a JSON object", file, row, column)
    return None


def spans_of(trace: Mapping[str, Any]) -> Trace:
    """The spans of a trace, each before its children, in the order in which they are written."""
    spans: Trace = []
    waiting = [trace.get("spans")]  # a stack of its own: traces may nest deeper than Python calls
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, list):
            waiting += reversed(entry)
            continue
        span = entry if isinstance(entry, dict) else {}
        spans.append(span)
        if isinstance(span.get("child_spans"), list):
            waiting.append(span["child_spans"])
    return spans


def _trace(
    payload: Mapping[str, Any], log_id: str, split: str, file: Path, row: int | None, collector: Collector
) -> Trace | None:
    """Take a trace as a log; returns its spans, None if it has none."""
    spans = spans_of(payload)
    turns = [
        {"role": span.get("span_name"), "content": {key: span[key] for key in span if key != "child_spans"}}
        for span in spans
    ]
    history = read_history(turns, ("role",), lambda text, part: collector.problem(text, file, row, part), "spans")
    collector.log(log_id, split, NAME, file, history=history)
    return spans or None


def _labels(
    payload: Mapping[str, Any], trace: Trace | None, log_id: str, file: Path, row: int | None, collector: Collector
) -> None:
    review = collector.review(log_id, ANNOTATOR, file, row)
    errors = payload.get("errors")
    if review is None:
        return
    if not isinstance(errors, list):
        review.spoilt = True
        collector.problem(f"errors is {short_repr(errors)}, not a list", file, row, "errors")
    elif errors and trace is None:
        review.spoilt = True
        collector.problem("errors in spans of a trace that is not here", file, row, "errors", _BESIDE)
    elif errors:
        places = _places(trace or [])
        for number, error in enumerate(errors):
            _error(error, places, f"errors[{number}]", review, collector)


def _places(trace: Trace) -> dict[str, int]:
    """The step of each span id, the first if it stands twice."""
    places: dict[str, int] = {}
    for step, span in enumerate(trace):
        if isinstance(span.get("span_id"), str):
            places.setdefault(span["span_id"], step)
    return places


def _error(error: object, places: Mapping[str, int], column: str, review: Review, collector: Collector) -> None:
    location = error.get("location") if isinstance(error, dict) else None
    step = places.get(location.strip()) if isinstance(location, str) else None
    if step is None or not isinstance(error, dict):
        review.spoilt = True  # it is an error of some step, and nobody knows which
        found = short_repr(location if isinstance(error, dict) else error)
        text = f"location {found} is no span of the trace"
        collector.problem(text, review.file, review.row, f"{column}.location", "name a span_id of the trace")
        return
    reason = as_text(error.get("description")) or as_text(error.get("evidence"))
    judge(review, step, True, reason=reason, category=as_text(error.get("category")), row=review.row)
