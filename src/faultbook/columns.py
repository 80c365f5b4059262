"""The columns of one file that people wrote: every cell read by one rule, text or typed value."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import DataError, one_of, short_repr
from faultbook.problems import Problems
from faultbook.text import is_unicode, plain

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_WHOLE = re.compile(r"[0-9]+(?:\.0+)?")  # tools that write CSV make floats of integers
_BOOLEANS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
# How tools write a missing number; never looked for in names, where 'none' and 'missing' mean something.
_MISSING = ("", "na", "n/a", "nan", "<na>", "null", "none")
_LONGEST_NAME = 500
_WANTED = {
    "text": "a name",
    "whole": "a whole number",
    "boolean": "a boolean",
    "feature": "a finite number",
    "amount": "a number of at least 0",
}
_MENDS = {
    "text": "write a short text",
    "whole": "write a whole number, counted from 0",
    "boolean": "write true, false, 1 or 0",
    "feature": "write a finite number, or nothing where it is not known",
    "amount": "write a number of at least 0, or nothing where it is not known",
}


class Columns:
    """Reads the columns of one table, and reports each cell that cannot be read with its row.

    Parameters
    ----------
    raw : DataFrame
        Cells as text ("" is missing) or typed values; the index holds the rows of the file.
    file : path
        For the reports.
    problems : Problems
        Takes them.
    """

    def __init__(self, raw: pd.DataFrame, file: Path, problems: Problems) -> None:
        self._raw, self._file, self._problems = raw, file, problems
        self.usable: Mask = np.ones(len(raw), dtype=bool)

    def text(self, name: str, *, required: bool = False) -> pd.Series[Any]:
        """A column of names; ids that are whole numbers are written out."""
        return self._read(name, _as_text, "text", required).astype("string[pyarrow]")

    def whole(self, name: str, *, required: bool = False, digits: int = 9) -> pd.Series[Any]:
        """A column of whole numbers of at least 0; if `required`, a row with a cell that cannot be read is left out."""
        parse = partial(_as_whole, digits=digits)
        return self._read(name, parse, "whole", required, may_miss=True).astype("Int64")

    def boolean(self, name: str, *, required: bool = False) -> pd.Series[Any]:
        """A column of booleans."""
        return self._read(name, _as_boolean, "boolean", required).astype("boolean")

    def among(self, name: str, allowed: tuple[str, ...], *, required: bool = False) -> pd.Series[Any]:
        """A column of names out of some; another one is reported, and missing."""
        found = self.text(name, required=required)
        other = (found.notna() & ~found.isin(allowed)).to_numpy(dtype=bool)
        for row in self._raw.index[other]:
            problem = one_of(name, short_repr(self._raw.loc[row, name]).strip("'"), allowed)
            self._problems.add(DataError(problem, file=self._file, row=int(str(row)), column=name))
        if required:
            self.usable &= ~other
        return found.where(~other)

    def amount(self, name: str) -> Floats:
        """A column of finite numbers of at least 0, NaN where missing or where there is no such column."""
        if name not in self._raw:
            return np.full(len(self._raw), np.nan)
        numbers = self.feature(name)
        wrong = (numbers < 0) | self._raw[name].map(_is_truth).to_numpy(dtype=bool)
        self._report(name, wrong, "amount")
        return np.where(wrong, np.nan, numbers)

    def feature(self, name: str) -> Floats:
        """A column of finite numbers, NaN where missing; booleans are 0 and 1."""
        column = self._raw[name]
        numbers = _numbers(column)
        doubtful = ~np.isfinite(numbers) & column.notna().to_numpy(dtype=bool)
        codes, distinct = _factorized(column[doubtful])
        read = [_as_missing_or_boolean(value) for value in distinct]
        numbers[doubtful] = np.array([np.nan if value is None else value for value in read])[codes]
        wrong = np.zeros(len(column), dtype=bool)
        wrong[doubtful] = np.isinf(numbers[doubtful])
        self._report(name, wrong, "feature")
        return np.where(wrong, np.nan, numbers)

    def leave_out(self, name: str, rows: Mask, problem: str, mend: str) -> None:
        """Report rows that cannot be used for one and the same reason; rows already left out are passed over."""
        for row in self._raw.index[rows & self.usable]:
            self._problems.add(DataError(problem, file=self._file, row=row, column=name, mend=mend))
        self.usable &= ~rows

    def _read(
        self, name: str, parse: Callable[[Any], Any], kind: str, required: bool, may_miss: bool = False
    ) -> pd.Series[Any]:
        """The values of a column, with <NA> for missing cells and for those that cannot be read, which are reported."""
        column = self._raw[name] if name in self._raw else pd.Series(pd.NA, index=self._raw.index, dtype=object)
        codes, distinct = _factorized(column)
        values, wrong = np.full(len(distinct) + 1, None, dtype=object), np.zeros(len(distinct) + 1, dtype=bool)
        for place, value in enumerate(distinct):
            try:
                values[place] = parse(value)
            except ValueError:
                wrong[place] = True
        unreadable = wrong[codes]  # the code of a missing cell is −1: the last place
        self._report(name, unreadable, kind)
        found = pd.Series(values[codes], index=self._raw.index, dtype=object, name=name)
        if required:
            missing = found.isna().to_numpy() & ~unreadable
            self.usable &= ~unreadable
            if not may_miss:
                self.leave_out(name, missing, f"no {name}", _MENDS[kind])
        return found

    def _report(self, name: str, rows: Mask, kind: str) -> None:
        if not rows.any():
            return
        shown = plain(name)  # of features, anything
        for row, cell in self._raw.loc[rows, name].items():
            problem = f"{shown} is {short_repr(cell)}, not {_WANTED[kind]}"
            self._problems.add(DataError(problem, file=self._file, row=int(str(row)), column=shown, mend=_MENDS[kind]))


def _factorized(column: pd.Series[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Codes and distinct values as Python's own; the code of a missing value is −1."""
    codes, distinct = pd.factorize(column)
    return codes, list(distinct.tolist())


def _numbers(column: pd.Series[Any]) -> Floats:
    """The numbers of a column, NaN for what is none."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return np.array(numbers, dtype=np.float64)


def _is_missing(value: Any) -> bool:
    return (isinstance(value, str) and value.strip().casefold() in _MISSING) or (
        isinstance(value, float) and np.isnan(value)
    )


def _is_truth(value: Any) -> bool:
    return str(value).strip().casefold() in ("true", "false")


def _as_text(value: Any) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or len(text) > _LONGEST_NAME or not is_unicode(text):
        raise ValueError
    return text.strip() or None


def _as_whole(value: Any, digits: int) -> int | None:
    if _is_missing(value):
        return None
    if isinstance(value, bool):
        raise ValueError
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    whole = text.partition(".")[0]
    if not _WHOLE.fullmatch(text) or len(whole) > digits:
        raise ValueError
    return int(whole)


def _as_boolean(value: Any) -> bool | None:
    if _is_missing(value):
        return None
    text = str(value).strip().casefold()
    if text not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[text]


def _as_missing_or_boolean(value: Any) -> float | None:
    """What is no finite number: None if it says that it is missing, 0 or 1 if it is a boolean, else infinity."""
    if _is_missing(value):
        return None
    return {"true": 1.0, "false": 0.0}.get(str(value).strip().casefold(), np.inf)
