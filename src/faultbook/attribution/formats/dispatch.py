"""Hands each file to the reader of its format, which its content tells, not its suffix alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultbook.attribution.formats import agentracer, agentrx, mp_bench, mp_bench_results, tidy, trail, who_and_when
from faultbook.attribution.formats.collect import Collector
from faultbook.attribution.formats.documents import json_values, read_text, shown
from faultbook.attribution.formats.parquet import columns_of
from faultbook.errors import DataError, short_repr
from faultbook.text import is_unicode


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """How JSON values of a format are known and read; `read` takes value, file, line and collector."""

    name: str
    recognises: Callable[[Any, Path], bool]
    read: Callable[[Any, Path, int | None, Collector], None]
    looked_for: str


# The first that recognises a value reads it: a result is a copy of an annotated log, which may be one of Who&When.
JSON_FORMATS = (
    JsonFormat(
        mp_bench_results.RESULTS, mp_bench_results.recognises, mp_bench_results.read, mp_bench_results.LOOKED_FOR
    ),
    JsonFormat(mp_bench.RAW, mp_bench.recognises_raw, mp_bench.read_raw, mp_bench.LOOKED_FOR_RAW),
    JsonFormat(who_and_when.NAME, who_and_when.recognises, who_and_when.read, who_and_when.LOOKED_FOR),
    JsonFormat(mp_bench.NORMALISED, mp_bench.recognises, mp_bench.read, mp_bench.LOOKED_FOR),
    JsonFormat(agentrx.NAME, agentrx.recognises, agentrx.read, agentrx.LOOKED_FOR),
    JsonFormat(trail.NAME, trail.recognises, trail.read, trail.LOOKED_FOR),
    JsonFormat(
        mp_bench_results.LEADERBOARD,
        mp_bench_results.recognises_leaderboard,
        mp_bench_results.read_leaderboard,
        mp_bench_results.LOOKED_FOR_LEADERBOARD,
    ),
)
_PARQUET = f"{agentracer.LOOKED_FOR}; parquet with the columns trace and labels"


def read_files(files: Sequence[Path], wanted: str, collector: Collector, *, named: Collection[Path]) -> None:
    """Read files into a collector, CSV files last.

    Parameters
    ----------
    files : sequence of Path
        The files in order.
    wanted : str
        The one format that they may have, or "auto".
    collector : Collector
        Takes what they hold, and their problems.
    named : collection of Path
        The files that the user named: they must be of some format, where a folder may hold others.
    """
    tables: list[Path] = []
    for file in files:
        try:
            if not is_unicode(str(file)):
                raise DataError("a name that is not UTF-8", file=shown(file), mend="rename it")
            suffix = file.suffix.casefold()
            if suffix == ".csv":
                _expect(wanted, tidy.NAME, file)
                tables.append(file)
            elif suffix == ".parquet":
                _parquet(file, wanted, collector)
            elif suffix in (".json", ".jsonl"):
                _json(file, wanted, collector, named=file in named)
            elif mp_bench_results.place_of(file) is not None:
                _text(file, wanted, collector)
            elif file in named:
                mend = "name a .json, .jsonl, .csv or .parquet file, or a folder"
                raise DataError("no file of logs", file=shown(file), mend=mend)
        except DataError as error:
            collector.problems.add(error)
    tidy.read(tables, collector)


def _expect(wanted: str, found: str, file: Path, row: int | None = None) -> None:
    if wanted not in ("auto", found):
        raise DataError(f"this is {found}, not {wanted}", file=file, row=row, mend="name its format, or none")


def _json(file: Path, wanted: str, collector: Collector, *, named: bool) -> None:
    if mp_bench_results.place_of(file) is not None and file.suffix.casefold() == ".json":
        _result(file, wanted, collector)
        return
    for value, row in json_values(read_text(file), file, collector.problems):
        if mp_bench_results.is_companion(value, file) and not named:
            continue
        try:
            _value(value, file, row, wanted, collector)
        except DataError as error:
            collector.problems.add(error)


def _value(value: Any, file: Path, row: int | None, wanted: str, collector: Collector) -> None:
    found = _recognised(value, file)
    if found is None and wanted == mp_bench_results.LEADERBOARD and isinstance(value, dict):
        mp_bench_results.read_leaderboard(value, file, row, collector)
        return
    if found is None:
        looked_for = "; ".join(f"{known.name}: {known.looked_for}" for known in JSON_FORMATS if _fits(wanted, known))
        raise DataError("no format that is known here", file=file, row=row, mend=f"looked for {looked_for or wanted}")
    _expect(wanted, found.name, file, row)
    found.read(value, file, row, collector)


def _recognised(value: Any, file: Path) -> JsonFormat | None:
    return next((known for known in JSON_FORMATS if known.recognises(value, file)), None)


def _fits(wanted: str, known: JsonFormat) -> bool:
    return wanted in ("auto", known.name)


def _result(file: Path, wanted: str, collector: Collector) -> None:
    """A file where results lie: the log with the reply, or the reply alone, be it broken or cut off."""
    try:
        ((value, _),) = json_values(read_text(file), file)
    except DataError:
        _text(file, wanted, collector)
        return
    found = _recognised(value, file)
    if found is not None:
        _expect(wanted, found.name, file)
        found.read(value, file, None, collector)
    else:
        _expect(wanted, mp_bench_results.RESULTS, file)
        mp_bench_results.read(value, file, None, collector)


def _text(file: Path, wanted: str, collector: Collector) -> None:
    """A reply as text; a byte that is no UTF-8 spoils a character, not the reply."""
    _expect(wanted, mp_bench_results.RESULTS, file)
    mp_bench_results.read_reply(read_text(file, errors="replace"), file, collector)


def _parquet(file: Path, wanted: str, collector: Collector) -> None:
    columns = columns_of(file)
    found = trail.NAME if set(columns).issuperset(trail.COLUMNS) else agentracer.format_of(columns, file)
    if found is None:
        raise DataError(
            f"no format that is known here (columns {short_repr(columns)})", file=file, mend=f"looked for {_PARQUET}"
        )
    _expect(wanted, found, file)
    if found == trail.NAME:
        trail.read_parquet(file, collector)
    else:
        agentracer.read(file, found, collector)
