"""AgentRx: failures that experts found in trajectories, one of them the root cause.

Source: microsoft/AgentRx (arXiv 2602.02475). Steps count from 1: the turns carry "index": 1, 2, …
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultbook.attribution.formats.collect import Collector, Row, judge
from faultbook.attribution.formats.values import History, Report, as_agent, as_name, as_text, read_history
from faultbook.attribution.steps import parse_step
from faultbook.errors import short_repr

NAME = "agentrx"
INDEX_BASE = 1
EXPERT, ROOT_CAUSE = "expert", "root cause"
LOOKED_FOR = "an object with trajectory_id and failures, or a list of them"

# Whole trajectories, then what may be their beginning only.
_TURNS = ("traj", "trajectory", "trajectory_snippet")

Failure = tuple[str | None, int, dict[str, str | None]]  # id, step, and what is said of it


def recognises(payload: object, file: Path) -> bool:
    """Whether a JSON value is a record of AgentRx, or a list of records."""
    if isinstance(payload, list):
        return any(recognises(item, file) for item in payload if isinstance(item, dict))
    return isinstance(payload, dict) and "trajectory_id" in payload and "failures" in payload


def read(payload: Any, file: Path, row: int | None, collector: Collector) -> None:
    """Read records; the split is the name of their file."""
    if not isinstance(payload, list):
        _record(payload, file, row, collector)
        return
    for number, record in enumerate(payload):
        place = f"item {number}"
        if isinstance(record, dict):
            _record(record, file, place, collector)
        else:
            collector.problem(f"{short_repr(record)} is not a record", file, place, mend=f"give {LOOKED_FOR}")


def _record(record: Mapping[str, Any], file: Path, row: Row, collector: Collector) -> None:
    def report(problem: str, column: str) -> None:
        collector.problem(problem, file, row, column)

    try:
        log_id = f"{file.stem}/{as_name(record.get('trajectory_id'), 'trajectory_id')}"
    except ValueError as error:
        report(str(error), "trajectory_id")
        return
    listed = record.get("failures")
    if not isinstance(listed, list):
        report(f"failures is {short_repr(listed)}, not a list", "failures")
    items = listed if isinstance(listed, list) else []
    read_items = [_failure(item, f"failures[{place}]", report) for place, item in enumerate(items)]
    failures = [failure for failure in read_items if failure is not None]
    history = _history(record, failures, report)
    collector.log(log_id, file.stem, NAME, file, history=history)
    complete = isinstance(listed, list) and len(failures) == len(items)
    _review(EXPERT, failures, complete, log_id, file, row, collector)
    root_cause = record.get("root_cause")
    if root_cause is not None:
        chosen = _root_cause(root_cause, failures, report)
        _review(ROOT_CAUSE, chosen, bool(chosen), log_id, file, row, collector)


def _failure(item: object, column: str, report: Report) -> Failure | None:
    if not isinstance(item, dict):
        report(f"a failure is {short_repr(item)}, not an object", column)
        return None
    try:
        step = parse_step(item.get("step_number"), base=INDEX_BASE)
    except ValueError as error:
        report(str(error), f"{column}.step_number")
        return None
    said = {
        "agent": as_agent(item.get("failed_agent"), report, f"{column}.failed_agent"),
        "reason": as_text(item.get("step_reason")) or as_text(item.get("category_reason")),
        "category": as_text(item.get("failure_category")),
    }
    return as_text(item.get("failure_id")), step, said


def _root_cause(given: object, failures: list[Failure], report: Report) -> list[Failure]:
    """The failure that is called the root cause, by its id."""
    wanted = as_text(given.get("failure_id")) if isinstance(given, dict) else None
    chosen = [failure for failure in failures if failure[0] is not None and failure[0] == wanted]
    if not chosen:
        report(f"the root cause {short_repr(given)} is none of the failures", "root_cause")
    return chosen


def _review(
    annotator: str,
    failures: list[Failure],
    complete: bool,
    log_id: str,
    file: Path,
    row: Row,
    collector: Collector,
) -> None:
    review = collector.review(log_id, annotator, file, row)
    if review is None:
        return
    review.spoilt = not complete
    for _, step, said in failures:
        judge(review, step, True, row=row, **said)


def _history(record: Mapping[str, Any], failures: list[Failure], report: Report) -> History | None:
    """The turns of a record if it has them all: numbered from 1 on and, in a snippet, at least to the last failure."""
    column = next((name for name in _TURNS if isinstance(record.get(name), list) and record[name]), None)
    if column is None:
        return None
    turns = record[column]
    numbers = [turn.get("index") if isinstance(turn, dict) else None for turn in turns]
    whole = all(number in (None, place) for place, number in enumerate(numbers, start=INDEX_BASE))
    beyond = any(step >= len(turns) for _, step, _ in failures)
    if column == _TURNS[-1] and (beyond or not whole):
        return None
    if not whole:
        report("the indexes of the turns do not run 1, 2, …, so that labels cannot be placed", f"{column}.index")
        return None
    return read_history(turns, ("role", "name"), report, column)
