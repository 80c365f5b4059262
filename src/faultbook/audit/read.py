"""Read printed numbers: CSV files of one table each, checked against their own digits."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from faultbook.csvfile import located, read_text_table
from faultbook.errors import DataError, one_of
from faultbook.printed import parse_printed, unit_scale
from faultbook.tables import KINDS, QUALIFIERS, REPORTED_OPTIONAL, REPORTED_REQUIRED, Reported

DASHES = ("—", "–", "-", "n/a")  # how documents print that there is no number
COLUMN_ORDER = list(Reported.to_schema().columns)


def read_reported(path: str | Path) -> pd.DataFrame:
    """Read the `reported` table from one CSV file, or from every `*.csv` of a folder in name order.

    Parameters
    ----------
    path : path
        A CSV file or a folder of them. Columns: source, table, row, column, printed, unit, kind; optional
        value (else parsed from `printed`), n, document (else the source), section, qualifier, note.

    Returns
    -------
    DataFrame
        The `Reported` table. `attrs["folder"]` names the folder, so that `audit` finds its relations.

    Raises
    ------
    DataError
        With file, row and column: an unknown or missing column, a cell that is not a number, a value that
        its own printed text contradicts, a cell that stands twice.
    """
    path = Path(path)
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise DataError("no CSV file of printed numbers here", file=path, mend="name a CSV file or a folder of them")
    seen: dict[str, str] = {}
    frame = pd.concat([_read_file(file, seen) for file in files], ignore_index=True)
    frame.attrs["folder"] = str(path if path.is_dir() else path.parent)
    return Reported.validate(frame)


def _read_file(file: Path, seen: dict[str, str]) -> pd.DataFrame:
    frame = read_text_table(file)
    unknown = [name for name in frame.columns if name not in (*REPORTED_REQUIRED, *REPORTED_OPTIONAL)]
    missing = [name for name in REPORTED_REQUIRED if name not in frame.columns]
    if unknown or missing:
        raise DataError(
            f"columns missing: {missing}, unknown: {unknown} (found {list(frame.columns)})",
            file=file,
            row=1,
            mend=f"needed are {', '.join(REPORTED_REQUIRED)}; optional {', '.join(REPORTED_OPTIONAL)}",
        )
    for name in REPORTED_OPTIONAL:
        if name not in frame.columns:
            frame[name] = ""
    frame["document"] = frame["document"].where(frame["document"] != "", frame["source"])
    frame["id"] = frame["source"] + "/" + frame["table"] + "/" + frame["row"] + "/" + frame["column"]
    cells = list(located(frame))
    for row, cell in cells:
        _check_cell(cell, file, row, seen)
    values = [_value(cell, file, row) for row, cell in cells]
    denominators = [int(n) if n else pd.NA for n in frame["n"]]
    text = frame.drop(columns=["value", "n"]).astype("str")
    typed = text.assign(value=pd.array(values, dtype="float64"), n=pd.array(denominators, dtype="Int64"))
    return typed[COLUMN_ORDER]


def _check_cell(cell: dict[str, str], file: Path, row: int, seen: dict[str, str]) -> None:
    for name in REPORTED_REQUIRED:
        if not cell[name]:
            raise DataError("empty", file=file, row=row, column=name, mend="every printed cell needs one")
    for name, allowed in (("kind", KINDS), ("qualifier", ("", *QUALIFIERS))):
        if cell[name] not in allowed:
            raise DataError(one_of(name, cell[name], allowed), file=file, row=row, column=name)
    if cell["n"] and not (cell["n"].isascii() and cell["n"].isdigit() and 0 < int(cell["n"]) < 10**15):
        problem = f"'{cell['n']}' is not a denominator"
        raise DataError(problem, file=file, row=row, column="n", mend="write a whole number above 0, or leave it empty")
    if cell["id"] in seen:
        problem = f"cell '{cell['id']}' stands here and in {seen[cell['id']]}"
        raise DataError(problem, file=file, row=row, mend="give one of them another row or column label")
    seen[cell["id"]] = f"{file.name}, row {row}"


def _value(cell: dict[str, str], file: Path, row: int) -> float:
    """The number in table units; NaN for a label and for a cell that prints a dash."""
    if cell["kind"] == "label" and _is_number(cell["printed"]):
        problem = f"'{cell['printed']}' is a number, not a label"
        raise DataError(problem, file=file, row=row, column="kind", mend=f"write one of {', '.join(KINDS[:-1])}")
    if cell["kind"] == "label" or cell["printed"] in DASHES:
        if cell["value"]:
            problem = f"value '{cell['value']}' for '{cell['printed']}', which prints no number"
            raise DataError(problem, file=file, row=row, column="value", mend="leave it empty")
        return float("nan")
    try:
        printed = parse_printed(cell["printed"])
    except ValueError as error:
        raise DataError(
            str(error), file=file, row=row, column="printed", mend="print one number a row, or a dash"
        ) from None
    if printed.unit and printed.unit != cell["unit"]:
        problem = f"unit '{cell['unit']}' for '{cell['printed']}'"
        raise DataError(problem, file=file, row=row, column="unit", mend=f"write '{printed.unit}'")
    parsed = float(printed.number * unit_scale(cell["unit"]).numerator / unit_scale(cell["unit"]).denominator)
    if cell["value"]:
        _check_value(cell, parsed, file, row)
    return parsed


def _is_number(text: str) -> bool:
    try:
        parse_printed(text)
    except ValueError:
        return False
    return True


def _check_value(cell: dict[str, str], parsed: float, file: Path, row: int) -> None:
    try:
        same = abs(float(cell["value"]) - parsed) <= 1e-12 * max(1.0, abs(parsed))
    except ValueError:
        same = False
    if not same:
        unit = "" if cell["printed"].endswith(cell["unit"]) or cell["unit"] == "1" else f" {cell['unit']}"
        problem = f"value '{cell['value']}' but '{cell['printed']}'{unit} is {parsed:.10g}"
        raise DataError(problem, file=file, row=row, column="value", mend="correct one of them, or leave value empty")
