"""Values of documents that others wrote, taken as they are or as missing: a wrong type never becomes 0, False or ""."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from faultbook.text import plain

_MOST_TEXT = 300


def part(document: Any, *keys: str) -> Any:
    """The value below nested keys of a document, or None where one of them is not there."""
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def text(value: Any) -> str | None:
    """A text that is not blank, as one plain line; a finite number becomes its digits, anything else is missing."""
    if not isinstance(value, str) and number(value) is None:
        return None
    return " ".join(plain(value, most=_MOST_TEXT).split()) or None


def number(value: Any) -> float | None:
    """A finite number, or None; a truth value is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def amount(value: Any) -> float | None:
    """A finite number of at least 0, or None."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def count(value: Any) -> int | None:
    """A whole number of at least 0 that a table can hold, or None."""
    found = amount(value)
    return int(found) if found is not None and found == int(found) and found < 2**53 else None


def truth(value: Any) -> bool | None:
    """True or False, or None; 0 and 1 are numbers."""
    return value if isinstance(value, bool) else None


def stamp(value: Any) -> datetime | None:
    """A time in ISO form, or None. It is naive or has an offset, as it was written."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def seconds_between(start: Any, end: Any) -> tuple[float | None, str | None]:
    """Seconds from one ISO time to another, and why there are none where that needs saying.

    A naive time and one with an offset are of two clocks and are never subtracted; a negative span is no duration.
    """
    first, last = stamp(start), stamp(end)
    if first is None or last is None:
        return None, None
    if (first.utcoffset() is None) != (last.utcoffset() is None):
        return None, "a local time without offset stands beside one with offset: no duration"
    seconds = (last - first).total_seconds()
    return (seconds, None) if seconds >= 0 else (None, "it ends before it starts: no duration")
