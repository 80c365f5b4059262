"""Read CSV that people wrote: every cell as text, every fault of the file in one line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from faultbook.errors import DataError, unreadable

_MEND = "quote cells that hold a comma"


def read_text_table(file: str | Path, *, required: tuple[str, ...] = ()) -> pd.DataFrame:
    """Read a CSV file with all cells as stripped text; an empty cell is "".

    Returns
    -------
    DataFrame
        Its index holds the line of the file on which each row ends (the header is line 1).

    Raises
    ------
    DataError
        If the file cannot be read, is not UTF-8, not a CSV table, has a row longer or shorter than its header or a
        column twice, or lacks a required column.
    """
    rows, lines = _rows(Path(file))
    if not rows:
        raise DataError("not a CSV table (it is empty)", file=file, mend=_MEND)
    header = rows[0]
    doubled = sorted({name for name in header if header.count(name) > 1})
    missing = [name for name in required if name not in header]
    if doubled or missing:
        parts = ([f"columns twice: {doubled}"] if doubled else []) + (
            [f"columns missing: {missing}"] if missing else []
        )
        raise DataError(f"{', '.join(parts)} (found {header})", file=file, row=1)
    for row, line in zip(rows[1:], lines[1:], strict=True):
        if len(row) != len(header):
            problem = f"{len(row)} cells where the header has {len(header)}"
            raise DataError(problem, file=file, row=line, mend=_MEND)
    return pd.DataFrame(rows[1:], columns=header, index=pd.Index(lines[1:], name="line"), dtype=object)


def located(table: pd.DataFrame) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row of a table from `read_text_table` with its line of the file."""
    for line, row in zip(table.index, table.to_dict("records"), strict=True):
        yield int(line), {str(name): cell for name, cell in row.items()}


def _rows(file: Path) -> tuple[list[list[str]], list[int]]:
    """The rows that are not blank, their cells stripped, and the line each ends on."""
    rows, lines = [], []
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            for row in reader:
                if row:
                    rows.append([cell.strip() for cell in row])
                    lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise DataError(problem, file=file, mend="save as UTF-8") from None
    except csv.Error as error:
        raise DataError(f"not a CSV table ({error})", file=file, mend=_MEND) from None
    except OSError as error:
        raise unreadable(error, file) from None
    return rows, lines
