"""Columns of CSV files, read at once; a cell that cannot be read is reported with its line and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.formats.collect import Collector
from faultbook.attribution.steps import parse_step, parse_text_steps

Mask = npt.NDArray[np.bool_]

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def report_cells(
    rows: pd.DataFrame, column: str, what: Callable[[str], str], file: Path, collector: Collector, mend: str | None
) -> None:
    """Report the cells of a column, each with its line."""
    for line, cell in zip(rows.index, rows[column], strict=True):
        collector.problem(what(cell), file, int(line), column, mend)


def whole_numbers(
    table: pd.DataFrame, column: str, file: Path, collector: Collector, *, report: bool = True
) -> tuple[npt.NDArray[np.int64], Mask]:
    """The whole numbers of a column, and where there is one; what is none is reported."""
    numbers, unreadable = parse_text_steps(table[column])
    if report:
        report_cells(table[unreadable], column, lambda cell: _why_not(cell, column), file, collector, _WHOLE)
    return numbers, ~unreadable


_WHOLE = "give a whole number, counted from 0"


def booleans(table: pd.DataFrame, column: str, file: Path, collector: Collector) -> tuple[Mask, Mask]:
    """The booleans of a column, and where there is one; what is none is reported."""
    values = table[column].str.casefold().map(_BOOLEANS)
    told = values.notna().to_numpy()
    report_cells(
        table[~told],
        column,
        lambda cell: f"{column} is '{cell[:80]}', not a boolean",
        file,
        collector,
        "write true, false, 1 or 0",
    )
    return values.where(told, False).to_numpy(dtype=bool), told


def kept(rows: pd.DataFrame, key: list[str], file: Path, collector: Collector) -> pd.DataFrame:
    """The rows without those that repeat the key of an earlier one, which are reported."""
    again = rows.duplicated(key).to_numpy()
    for values in rows.loc[again, key].itertuples(name=None):
        named: list[Any] = [f"{column} '{value}'" for column, value in zip(key, values[1:], strict=True)]
        collector.problem(f"{', '.join(named)} stands twice", file, int(values[0]), key[-1], "keep one of them")
    return rows[~again]


def placed(rows: pd.DataFrame, file: Path) -> pd.DataFrame:
    """The rows with their file and line as columns."""
    files: list[Any] = [file] * len(rows)
    return rows.assign(file=files, row=rows.index)


def _why_not(cell: str, column: str) -> str:
    try:
        parse_step(cell)
    except ValueError as error:
        return str(error).replace("step", column, 1)
    return f"{column} is '{cell[:80]}', not a whole number"
