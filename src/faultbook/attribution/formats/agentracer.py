"""Parquet files with a label a log: TracerTraj of AgenTracer, and the parquet files of Who&When.

Sources: bingreeky/AgenTracer; the data set card Kevin355/Who_and_When. Steps count from 0; a label is text where the
turns' own `step` is a number. Logs have no id there but the number of their row.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from faultbook.attribution.formats import who_and_when
from faultbook.attribution.formats.collect import Collector
from faultbook.attribution.formats.parquet import check_histories, rows_of
from faultbook.attribution.formats.values import split_name
from faultbook.attribution.steps import parse_step

NAME = "agentracer"
INDEX_BASE = who_and_when.INDEX_BASE
LOOKED_FOR = "parquet with the columns history and mistake_step"

_COLUMNS = ("question", "history", "mistake_agent", "mistake_step", "mistake_reason")
_OF_WHO_AND_WHEN = ("is_correct", "is_corrected")


def format_of(columns: Iterable[str], file: Path) -> str | None:
    """The format of a parquet file with these columns: "agentracer", "who-and-when" or None."""
    there = set(columns)
    if not there.issuperset(("history", "mistake_step")):
        return None
    named = split_name(file.stem) in who_and_when.SUBSETS
    return who_and_when.NAME if named or there.intersection(_OF_WHO_AND_WHEN) else NAME


def read(file: Path, source: str, collector: Collector) -> None:
    """Read every row as a log.

    Raises
    ------
    DataError
        If the file cannot be read, or all its histories are empty.
    """
    check_histories(file)
    split = split_name(file.stem)
    is_release = source == who_and_when.NAME
    for number, record in rows_of(file, _COLUMNS):
        # the rows of Who&When's parquet files are not numbered like its JSON files
        name = f"row-{number}" if is_release else str(number)
        release = who_and_when.PARQUET if is_release else None
        who_and_when.read_record(record, split, name, release, file, collector, row=number, source=source)
        _check_places(record.get("history"), file, number, collector)


def _check_places(turns: Any, file: Path, row: int, collector: Collector) -> None:
    """The number that a turn gives itself must be its place, for that is what labels mean."""
    for place, turn in enumerate(turns if isinstance(turns, list) else ()):
        stated = turn.get("step") if isinstance(turn, dict) else None
        if stated is None:
            continue
        try:
            agrees = parse_step(stated, base=INDEX_BASE) == place
        except ValueError:
            agrees = False
        if not agrees:
            text = f"step is {stated}, but its place in the history is {place}"
            collector.problem(text, file, row, f"history[{place}].step", "the place counts; number steps from 0 on")
