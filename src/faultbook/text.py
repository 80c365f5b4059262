"""Text that came from somewhere else, made safe to show: no markup, no control characters, no endless lines."""

from __future__ import annotations

import html
import re
import unicodedata

_ANSI = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
# Bidirectional overrides and isolates can make a name read as another one.
_BIDI = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; JSON, YAML and command lines can hold half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def plain(value: object, *, most: int = 500) -> str:
    """Turn a value into plain text: terminal sequences, control and bidirectional characters removed, length capped.

    Parameters
    ----------
    value : object
        Anything; `str(value)` is used.
    most : int
        Longest text; what is cut off is counted in brackets.
    """
    text = _ANSI.sub("", str(value)).translate(_BIDI)
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Co"))
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most} more characters]"


def escaped(value: object, *, most: int = 500) -> str:
    """`plain`, then escaped for HTML, quotes included."""
    return html.escape(plain(value, most=most), quote=True)
