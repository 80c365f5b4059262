"""Files on the way to a reader: found below a folder, decoded, parsed as JSON or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from faultbook.attribution.formats.assemble import natural
from faultbook.errors import DataError, unreadable
from faultbook.problems import Problems
from faultbook.text import is_unicode

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet", ".txt")


def files_below(path: Path, *, apart_from: Path | None = None) -> list[Path]:
    """The data files at a path, in natural order; names that begin with "_" or "." are not data.

    Raises
    ------
    DataError
        If there is nothing at the path.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise DataError("no such file or folder", file=shown(path))
    skipped = apart_from.resolve() if apart_from is not None else None
    found = [
        file
        for file in path.rglob("*")
        if file.suffix.casefold() in SUFFIXES
        and not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
        and file.is_file()
        and not (skipped is not None and skipped in file.resolve().parents)
    ]
    return sorted(found, key=lambda file: natural(file.relative_to(path).as_posix()))


def shown(file: Path) -> str:
    """A path as a message can hold it, whatever bytes its name is made of."""
    name = str(file)
    return name if is_unicode(name) else name.encode("utf-8", "backslashreplace").decode("utf-8")


def read_text(file: Path, *, errors: Literal["strict", "replace"] = "strict") -> str:
    """The text of a file; what is not UTF-8 may be replaced.

    Raises
    ------
    DataError
        If it cannot be read or is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig", errors=errors)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise DataError(problem, file=file, mend="save as UTF-8") from None
    except OSError as error:
        raise unreadable(error, file) from None


def json_values(text: str, file: Path, problems: Problems | None = None) -> Iterator[tuple[Any, int | None]]:
    """The JSON values of a file with their lines: one, or one a line in JSON lines.

    What is not JSON, or is nested deeper than the parser goes, is a problem.

    Raises
    ------
    DataError
        At the first problem if there is nothing to collect them.
    """
    # an empty file is no JSON, in lines neither
    by_line = file.suffix.casefold() == ".jsonl" and bool(text.strip())
    # a JSON text may hold any other line separator of Unicode
    for number, part in enumerate(text.split("\n") if by_line else [text], start=1):
        if by_line and not part.strip():
            continue
        row = number if by_line else None
        try:
            value = _parsed(part, file, row)
        except DataError as error:
            if problems is None:
                raise
            problems.add(error)
            continue
        yield value, row


def _parsed(text: str, file: Path, row: int | None) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise DataError("nested too deeply to be read", file=file, row=row) from None
    except ValueError as error:
        reason = str(error).split(";", 1)[0]  # Python's advice on long integers is for programmers
        raise DataError(f"not JSON ({reason})", file=file, row=row, mend="give one JSON value") from None
