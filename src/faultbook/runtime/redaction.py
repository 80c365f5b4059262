"""Secrets taken out of whatever is about to be written to a file, with a word in their place that says what they were.

Rather too much than too little: what stands behind a name such as `password` goes whatever it looks like. What is no
secret stays though it looks random: digests, UUIDs, commits, numbers of tokens. Every search over a text is RE2's, on
bytes, and no long part of a text is searched again for each of its matches: the time is linear, whoever wrote the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from faultbook.runtime.redaction_names import KINDS, LIKELY, MARKER, WHATEVER, judged, meaning
from faultbook.runtime.redaction_text import redacted_text

__all__ = ["KINDS", "redacted", "redacted_text"]

_DEEPEST = 100  # levels of nesting; writers of JSON give up at about ten times that
_MOST_BITS = 10_000  # of an integer: longer ones Python does not write out


def redacted(value: Any) -> Any:
    """A copy of nested data that any writer of JSON takes, without the secrets that this module can tell.

    Mappings become dicts with text keys, lists, tuples and sets become lists, bytes become text, NaN becomes None, and
    any other object becomes its text. A cycle becomes "[cycle]"; what is nested deeper than 100 levels is not kept.
    Half of a surrogate pair becomes "?", so that the result can be written as UTF-8.

    Parameters
    ----------
    value : object
        Anything; it is not changed.

    Returns
    -------
    dict, list, str, int, float, bool or None
        Each secret is replaced by a text such as "[redacted: bearer token]". Doing it again changes nothing. Two keys
        of a mapping that become the same are told apart by a number.
    """
    return _Copy().of(value)


class _Copy:
    """One walk through nested data. A part that stands in several places is copied once."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._made: dict[int, tuple[Any, Any]] = {}  # with the original, so that its id is not given to another

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return redacted_text(value)
        if value is None or isinstance(value, (bool, int, float, Integral, Real)):
            return _number(value)
        if isinstance(value, (bytes, bytearray)):
            return redacted_text(bytes(value).decode("utf-8", "replace"))
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return self._container(value, depth)
        return redacted_text(_text(value))

    def _container(self, value: Any, depth: int) -> Any:
        if id(value) in self._made:
            return self._made[id(value)][1]
        if id(value) in self._open:
            return "[cycle]"
        if depth >= _DEEPEST:
            return "[nested too deeply]"
        self._open.add(id(value))
        made: Any
        try:
            made = self._mapping(value, depth + 1) if isinstance(value, Mapping) else self._list(list(value), depth + 1)
        except Exception:  # a container of somebody else's making
            made = f"[unreadable {type(value).__name__}]"
        self._open.discard(id(value))
        self._made[id(value)] = (value, made)
        return made

    def _mapping(self, mapping: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in mapping.items():
            name = _key(key)
            clean = first = redacted_text(name)
            number = 2
            while clean in made:
                clean, number = f"{first} ({number})", number + 1
            made[clean] = self._named(first, value, depth)
        for field in ("name", "key", "header"):  # {"name": "Authorization", "value": …}
            if "value" in mapping and isinstance(mapping.get(field), str):
                made["value"] = self._named(redacted_text(mapping[field]), mapping["value"], depth)
        return made

    def _list(self, items: list[Any], depth: int) -> list[Any]:
        if all(isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str) for item in items):
            pairs = [(redacted_text(name), value) for name, value in items]
            return [[name, self._named(name, value, depth)] for name, value in pairs]
        made: list[Any] = []
        for item in items:  # on a command line: --api-key VALUE
            option = made[-1] if made and isinstance(made[-1], str) and made[-1].startswith("-") else ""
            made.append(self._named(option, item, depth) if option else self.of(item, depth))
        return made

    def _named(self, name: str, value: Any, depth: int) -> Any:
        """What stands behind a name: gone if the name says so, else looked through."""
        kind, weight = meaning(name[-300:])
        if kind is None or value is None or isinstance(value, bool):
            return self.of(value, depth)
        if isinstance(value, str):
            content = value.encode("utf-8", "replace")
            secret = weight == WHATEVER or (weight == LIKELY and kind == "token") or judged(name.encode(), content)
            if value and secret and MARKER.fullmatch(content) is None:
                return f"[redacted: {kind}]"
        elif weight == WHATEVER and not (isinstance(value, (bytes, Mapping, list, tuple)) and not value):
            return f"[redacted: {kind}]"
        return self.of(value, depth)


def _number(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    try:
        if isinstance(value, Integral):
            whole = int(value)
            return whole if whole.bit_length() <= _MOST_BITS else f"[integer of {whole.bit_length()} bits]"
        number = float(value)
    except Exception:  # a number of somebody else's making, or too large
        return redacted_text(_text(value))
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return None if math.isnan(number) else number


def _key(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    return {None: "null", True: "true", False: "false"}[key] if key is None or isinstance(key, bool) else _text(key)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # somebody else's __str__
        return f"[unprintable {type(value).__name__}]"
