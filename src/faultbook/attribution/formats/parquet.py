"""Rows of parquet files, read with pyarrow from a file that Python opened; other engines lose nested columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from faultbook.errors import DataError
from faultbook.parquetfile import opened_parquet

_ROWS_AT_A_TIME = 64  # a history may hold a megabyte


def columns_of(file: Path) -> list[str]:
    """The names of the columns.

    Raises
    ------
    DataError
        If it cannot be read or is no parquet file.
    """
    return next(_opened(file, None))


def rows_of(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row with its number, counted from 0, as an object with those of the columns that are there.

    Raises
    ------
    DataError
        If it cannot be read or is no parquet file.
    """
    yield from enumerate(_opened(file, columns))


def check_histories(file: Path, column: str = "history") -> None:
    """Refuse a file in which every history is empty.

    Raises
    ------
    DataError
        If there are rows and no history with a step in it.
    """
    n_rows = 0
    for _, row in rows_of(file, [column]):
        if row.get(column):
            return
        n_rows += 1
    if n_rows:
        problem = f"all {n_rows} histories are empty: fastparquet loses nested columns, and writes them out empty"
        raise DataError(problem, file=file, column=column, mend="take the original file, or write it with pyarrow")


def _opened(file: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The names of all columns, or else the rows."""
    with opened_parquet(file, mend="download it again") as content:
        names = content.schema_arrow.names
        if columns is None:
            yield names
            return
        there = [name for name in columns if name in names]
        for batch in content.iter_batches(_ROWS_AT_A_TIME, columns=there):
            yield from batch.to_pylist()
