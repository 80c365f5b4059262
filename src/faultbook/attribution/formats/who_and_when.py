"""Who&When: one JSON file a log with one label, in both subsets and all key variants, and its parquet files.

Source: Zhang et al. (2025), https://github.com/ag2ai/Agents_Failure_Attribution (MIT). Steps count from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultbook.attribution.formats.collect import Collector, judge
from faultbook.attribution.formats.values import as_agent, as_text, folders_above, read_history, split_name
from faultbook.attribution.steps import parse_step

NAME = "who-and-when"
INDEX_BASE = 0
SUBSETS = ("algorithm-generated", "hand-crafted")
ANNOTATOR = "label"
# The first release wrote "groundtruth" and "question_id"; the repository renamed them from June 2025 on.
FIRST, RENAMED, PARQUET = "first", "2025-06 or later", "parquet"
_FIRST_KEYS = ("groundtruth", "question_id")
_LABEL_KEYS = ("mistake_step", "mistake_agent", "mistake_reason")
LOOKED_FOR = "an object with history, mistake_step and mistake_agent"


def recognises(payload: object, file: Path) -> bool:
    """Whether a JSON value is a log of Who&When."""
    return isinstance(payload, dict) and any(key in payload for key in _LABEL_KEYS)


def subset_of(file: Path) -> str:
    """The subset that the nearest folder above a file names, else the name of its own folder."""
    above = [split_name(folder) for folder in folders_above(file)]
    return next((name for name in above if name in SUBSETS), above[0])


def read(payload: Mapping[str, Any], file: Path, row: int | None, collector: Collector) -> None:
    """Read one JSON file; the subset is that of its folder, its id the name of the file."""
    release = FIRST if any(key in payload for key in _FIRST_KEYS) else RENAMED
    number = file.stem if row is None else f"{file.stem}-{row}"
    read_record(payload, subset_of(file), number, release, file, collector, row=row)


def read_record(
    record: Mapping[str, Any],
    split: str,
    number: str,
    release: str | None,
    file: Path,
    collector: Collector,
    *,
    row: int | None = None,
    source: str = NAME,
) -> None:
    """Read one log with one label, whatever file it stood in.

    Algorithm-generated logs name the speaker in `name` and a chat role in `role`; hand-crafted ones have the role only.
    """

    def report(problem: str, column: str) -> None:
        collector.problem(problem, file, row, column)

    log_id = f"{split}/{number}"
    history = read_history(record.get("history"), ("name", "role"), report)
    collector.log(log_id, split, source, file, history=history, question=record.get("question"), release=release)
    review = collector.review(log_id, ANNOTATOR, file, row)
    if review is None:
        return
    try:
        step = parse_step(record.get("mistake_step"), base=INDEX_BASE)
    except ValueError as error:
        review.spoilt = True  # it flagged a step, and nobody knows which
        collector.problem(str(error), file, row, "mistake_step", "write the number of the step, counted from 0")
        return
    agent = as_agent(record.get("mistake_agent"), report, "mistake_agent")
    judge(review, step, True, agent=agent, reason=as_text(record.get("mistake_reason")), row=row)
