"""Values of other tools' documents, taken as they are or as missing: a wrong type never becomes 0, False or ""."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from faultbook.taxonomy import Classification
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


def usage_status(input_tokens: int | None, output_tokens: int | None, *, zero_means_nothing: bool = False) -> str:
    """How far the tokens of a trial are metered: reported, absent, zero_suspect or partial.

    `zero_means_nothing` for formats that write 0 where nothing was metered; two zeros are suspect in any format,
    since no model answers without a token.
    """
    given = [tokens for tokens in (input_tokens, output_tokens) if tokens is not None]
    if not given:
        return "absent"
    if not any(given) or (zero_means_nothing and input_tokens == 0):
        return "zero_suspect"
    return "reported" if len(given) == 2 else "partial"


def cause_fields(found: Classification, resolved: bool | None, reward: float | None) -> dict[str, Any]:
    """The columns of a trial that follow from why it ended, and whether its verdict stands beside that."""
    verdict = resolved is not None or reward is not None
    return {
        "cause": found.cause.name,
        "cause_source": found.source,
        "other_causes": "; ".join(found.others) or None,
        "reward_valid": found.cause.verdict_stands if verdict else None,
    }


def joined_notes(*notes: str | None) -> str | None:
    """Notes as one text, each once."""
    return "; ".join(dict.fromkeys(note for note in notes if note)) or None
