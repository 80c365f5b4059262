"""Printed cells as ranges: a printed number stands for every value that rounds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pandas as pd

from faultbook.printed import PrintedNumber, parse_printed, unit_scale

Status = Literal["inconsistent", "recomputed", "ambiguous", "consistent", "quoted"]
# Where several relations bear on one cell, the first of these wins: a contradiction outweighs all, then a number
# that was derived anew, then the warning that several answers fit.
STATUSES: tuple[Status, ...] = ("inconsistent", "recomputed", "ambiguous", "consistent", "quoted")


@dataclass(frozen=True, slots=True)
class Range:
    """A closed range of values, in printed units."""

    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        """The centre of the range."""
        return (self.low + self.high) / 2

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Range) -> Range:
        return Range(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Range) -> Range:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Range(min(corners), max(corners))

    def __truediv__(self, other: Range) -> Range:
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("the divisor may be 0")
        return self * Range(1 / other.high, 1 / other.low)

    def meets(self, other: Range) -> bool:
        """Whether some value lies in both."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed number with what the audit needs of its row."""

    id: str
    table: str  # "source/table"
    row: str
    column: str
    number: PrintedNumber
    unit: str
    kind: str
    n: int | None
    qualifier: str = ""

    @property
    def range(self) -> Range:
        """What the digits may stand for; counts and settings are exact unless printed as "about" and the like."""
        if self.kind in ("count", "setting") and self.unit != "%" and not self.qualifier:
            return Range(Fraction(self.number.number), Fraction(self.number.number))
        return Range(self.number.low, self.number.high)

    @property
    def table_range(self) -> Range:
        """The range in table units, in which 2 % and 0.02 are the same."""
        scale = unit_scale(self.unit)
        return Range(self.range.low * scale, self.range.high * scale)

    def table_value(self, printed_units: Fraction | float) -> float:
        """Printed units to the units of the `value` column."""
        return float(Fraction(printed_units) * unit_scale(self.unit))

    def write(self, printed_units: Fraction | float) -> str:
        """Write a value the way this cell is printed."""
        return self.number.like(printed_units)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one relation says about one cell."""

    cell: str
    status: Status
    reason: str
    relation: str
    recomputed: float | None = None
    against: tuple[str, ...] = ()


class MissingCellError(LookupError):
    """A relation names a cell that the table does not hold."""


class Cells(Mapping[str, Cell]):
    """All printed numbers of a `reported` table by id; labels and dashes are not numbers and are left out."""

    def __init__(self, reported: pd.DataFrame) -> None:
        numbers = reported[reported["value"].notna()]
        self._cells = {
            row["id"]: Cell(
                row["id"],
                f"{row['source']}/{row['table']}",
                row["row"],
                row["column"],
                parse_printed(row["printed"]),
                row["unit"],
                row["kind"],
                None if pd.isna(row["n"]) else int(row["n"]),
                row["qualifier"],
            )
            for row in numbers.to_dict("records")
        }

    def __getitem__(self, cell_id: str) -> Cell:
        try:
            return self._cells[cell_id]
        except KeyError:
            raise MissingCellError(cell_id) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, cell_id: object) -> bool:
        return cell_id in self._cells

    def of_table(self, table: str) -> list[Cell]:
        """The cells of one "source/table", in printed order."""
        return [cell for cell in self._cells.values() if cell.table == table]

    def range(self, term: str | int | float) -> Range:
        """The range of a cell, or of a plain number (exact)."""
        if isinstance(term, str):
            return self[term].range
        exact = Fraction(str(term))
        return Range(exact, exact)

    def whole(self, term: str | int | float) -> int:
        """A term that must be a whole number (a count, a denominator)."""
        value = Fraction(self[term].number.number) if isinstance(term, str) else Fraction(str(term))
        if value.denominator != 1:
            raise ValueError(f"'{term}' must be a whole number; found {float(value):g}")
        return int(value)

    def denominator(self, term: str | int | float) -> int:
        """A whole term of at least 1."""
        n = self.whole(term)
        if n < 1:
            raise ValueError(f"'{term}': a denominator must be at least 1; found {n}")
        return n

    def write(self, term: str | int | float) -> str:
        """The printed text of a cell, or the plain number in full."""
        return self[term].number.text if isinstance(term, str) else f"{term:,}"


def named(terms: Iterable[str | int | float], besides: str = "") -> tuple[str, ...]:
    """The cells among the terms, without `besides`: what a verdict stands against."""
    return tuple(dict.fromkeys(term for term in terms if isinstance(term, str) and term != besides))
