"""JSON that others wrote: NaN and Infinity are let through, as Python's own writer lets them; any fault is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faultbook.errors import DataError, unreadable


def parsed_json(text: str, file: Path, row: int | None = None) -> Any:
    """A JSON document, or a DataError that says where it stops being one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"not a JSON document ({error.msg} at character {error.pos} of {len(text)})"
        raise DataError(problem, file=file, row=row) from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or brackets nested too deep
        raise DataError(f"not a JSON document that can be read ({str(error)[:100]})", file=file, row=row) from None


def load_json(path: Path) -> Any:
    """The JSON document in a file; bytes that are not UTF-8 become replacement characters.

    Raises
    ------
    DataError
        If it cannot be read, is empty, or is no JSON, such as one that was half written.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(error, path) from None
    return document(content.decode("utf-8-sig", errors="replace"), path)


def document(text: str, file: Path) -> Any:
    """As `parsed_json`, for a whole file, which may not be blank."""
    if not text.strip("\0 \t\r\n"):
        raise DataError("empty file", file=file)
    return parsed_json(text, file)
