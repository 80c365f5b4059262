"""MP-Bench annotations, raw (one file an annotator, the log elsewhere) and normalised (joined with the log).

Source: In et al. (2026), arXiv 2603.25001; the shapes are those of build_annotated_from_log_source.py in
yeonjun-in/MP-Bench. Both lie at ANNOTATOR/SPLIT/ID.json. Steps count from 0 and are written as text. A step without an
annotation is not flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultbook.attribution.formats.collect import Collector, Review, judge
from faultbook.attribution.formats.sources import Source, find_source
from faultbook.attribution.formats.values import as_text, folders_above, read_history, split_name
from faultbook.attribution.steps import parse_step
from faultbook.errors import short_repr

RAW, NORMALISED = "mp-bench-raw", "mp-bench"
INDEX_BASE = 0
LOOKED_FOR_RAW = "an object with log_source and annotation"
LOOKED_FOR = "an object with history, whose steps have fail_annotation"

_FLAGS = {"0": False, "1": True}


def recognises_raw(payload: object, file: Path) -> bool:
    """Whether a JSON value holds the annotations of one annotator alone."""
    return isinstance(payload, dict) and ("annotation" in payload or "log_source" in payload)


def recognises(payload: object, file: Path) -> bool:
    """Whether a JSON value is a log with the annotations of one annotator."""
    if not isinstance(payload, dict) or "history" not in payload:
        return False
    turns = payload["history"]
    # a log without any annotation is none that nobody flagged: it may be a source that lies among the data
    return isinstance(turns, list) and any(isinstance(turn, dict) and "fail_annotation" in turn for turn in turns)


def place_of(file: Path) -> tuple[str, str]:
    """(annotator, split) by the names of the two folders above a file."""
    above = folders_above(file)
    return (above[1] if len(above) > 1 else "") or "1", split_name(above[0])


def read_raw(payload: Mapping[str, Any], file: Path, row: int | None, collector: Collector) -> None:
    """Read the annotations of one annotator; the log is looked up below `collector.sources`, if there is one."""
    annotator, split = place_of(file)
    log_id = f"{split}/{file.stem}"
    source = Source(None, None)
    if collector.sources is not None:
        try:
            source = find_source(payload.get("log_source"), collector.sources)
        except ValueError as error:
            collector.problem(str(error), file, row, "log_source", "put the log below the folder of sources")
    collector.log(log_id, split, RAW, file, history=source.history, question=source.question)
    review = collector.review(log_id, annotator, file, row)
    if review is None:
        return
    items = payload.get("annotation")
    if not isinstance(items, list):
        review.spoilt = True
        collector.problem(f"annotation is {short_repr(items)}, not a list", file, row, "annotation")
        return
    for place, item in enumerate(items):
        _annotation(item, f"annotation[{place}]", review, collector)


def read(payload: Mapping[str, Any], file: Path, row: int | None, collector: Collector) -> None:
    """Read a log with the annotations of one annotator."""
    annotator, split = place_of(file)
    log_id = f"{split}/{file.stem}"

    def report(problem: str, column: str) -> None:
        collector.problem(problem, file, row, column)

    history = read_history(payload.get("history"), ("role", "name"), report)
    collector.log(log_id, split, NORMALISED, file, history=history, question=payload.get("question"))
    review = collector.review(log_id, annotator, file, row)
    if review is None or history is None:
        return
    for place, turn in enumerate(payload["history"]):
        column = f"history[{place}]"
        if isinstance(turn, dict):
            _check_place(turn, place, column, review, collector)
            _remark(turn, place, column, review, collector, absent=False)


def _annotation(item: object, column: str, review: Review, collector: Collector) -> None:
    """Take one entry of a raw file; where it cannot be read, what it would have flagged is unknown."""
    if not isinstance(item, dict):
        review.spoilt = True
        collector.problem(f"an annotation is {short_repr(item)}, not an object", review.file, review.row, column)
        return
    try:
        step = parse_step(item.get("step"), base=INDEX_BASE)
    except ValueError as error:
        review.spoilt = True
        collector.problem(str(error), review.file, review.row, f"{column}.step", "write the number of the step")
        return
    if step in review.judgements:
        text = f"step {step} is annotated twice"
        collector.problem(text, review.file, review.row, f"{column}.step", "keep one; here they are taken together")
    _remark(item, step, column, review, collector, absent=None)


def _remark(
    item: Mapping[str, Any], step: int, column: str, review: Review, collector: Collector, *, absent: bool | None
) -> None:
    """Take one judgement; `absent` is what a missing flag means."""
    flag = _flag(item.get("fail_annotation")) if "fail_annotation" in item or absent is None else absent
    if flag is None:
        found = short_repr(item.get("fail_annotation"))
        text = f"fail_annotation is {found}, not '0' or '1'"
        collector.problem(text, review.file, review.row, f"{column}.fail_annotation", "write '1' for a failure")
        review.unread.add(step)
        return
    texts = {name: as_text(item.get(key)) for name, key in _TEXTS.items()}
    judge(review, step, flag, row=review.row, **texts)


_TEXTS = {"reason": "fail_reason", "ideal_action": "ideal_action", "category": "fail_category"}


def _flag(value: object) -> bool | None:
    if isinstance(value, str):
        return _FLAGS.get(value.strip())
    return bool(value) if type(value) is int and value in (0, 1) else None


def _check_place(turn: Mapping[str, Any], place: int, column: str, review: Review, collector: Collector) -> None:
    """The number that a step gives itself must be its place: labels and predictions mean places."""
    if turn.get("step") is None:
        return
    try:
        stated: int | None = parse_step(turn["step"], base=INDEX_BASE)
    except ValueError as error:
        stated = None
        text = str(error)
    else:
        text = f"step is {stated}, but its place in the history is {place}"
    if stated != place:
        collector.problem(text, review.file, review.row, f"{column}.step", "the place counts; number steps from 0 on")
