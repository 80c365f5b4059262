"""Patterns that come from truth files, matched in linear time: RE2 on bounded lengths, never `re`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Literal

import re2

from faultbook.text import is_unicode

MOST_NAME = 512  # Kubernetes names have at most 253 characters
MOST_PATTERN = 1_000
# "frontend", "frontend\b", "frontend-.*", "frontend.*", "productpage-v1-*": a literal stem and how it may go on
_STEM = re.compile(r"\^?(?P<stem>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?P<rest>\\b|-?\.\*|-?\*)?\$?")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern.

    `stem` is its literal part, or None; `prefix` says that the stem goes on without a hyphen ("ratings-v*", a glob's
    habit). `fallback` says how a pattern that RE2 cannot take is read: as a shell-style glob, or literally.
    `alternatives` are the patterns of a truth that gives several; any of them matches.
    """

    text: str
    stem: str | None
    expression: Any
    fallback: Literal["", "glob", "literal"]
    prefix: bool = False
    alternatives: tuple[Pattern, ...] = ()

    def search(self, name: str) -> bool:
        """Whether the pattern is found anywhere in the name."""
        if self.alternatives:
            return any(pattern.search(name) for pattern in self.alternatives)
        return self._takes(name) and self.expression.search(name) is not None

    def fullmatch(self, name: str) -> bool:
        """Whether the whole name matches."""
        if self.alternatives:
            return any(pattern.fullmatch(name) for pattern in self.alternatives)
        return self._takes(name) and self.expression.fullmatch(name) is not None

    def anchored(self, name: str, workload: str) -> bool:
        """Whether the name, or the workload it belongs to, is the stem; without a stem, matches in full."""
        if self.alternatives:
            return any(pattern.anchored(name, workload) for pattern in self.alternatives)
        if self.stem is not None:
            return self.stem in (name, workload) or (self.prefix and workload.startswith(self.stem))
        return self.fullmatch(name) or self.fullmatch(workload)

    def _takes(self, name: str) -> bool:
        return self.expression is not None and len(name) <= MOST_NAME and is_unicode(name)


def any_of(texts: list[str]) -> str:
    """One pattern text for several; `compile_pattern` reads each of them as it would alone."""
    return texts[0] if len(texts) == 1 else "|".join(f"(?:{text})" for text in texts)


@functools.lru_cache(maxsize=50_000)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern from a truth file; one that RE2 refuses is read as a glob if it can be one, else literally."""
    if not is_unicode(text):
        return Pattern(text, None, None, "literal")
    alternatives = _alternatives(text)
    if alternatives:
        fallback: Literal["", "glob"] = "glob" if any(pattern.fallback for pattern in alternatives) else ""
        return Pattern(text, None, None, fallback, alternatives=alternatives)
    match = _STEM.fullmatch(text)
    stem = match["stem"] if match else None
    if len(text) <= MOST_PATTERN:
        try:
            prefix = match is not None and match["rest"] == "*"
            return Pattern(text, stem, re2.compile(text, _options()), "", prefix)
        except re2.error:
            pass
        if re.fullmatch(r"[A-Za-z0-9.*?-]+", text):
            return Pattern(text, None, re2.compile(_glob(text), _options()), "glob")
    return Pattern(text, None, re2.compile(re2.escape(text[:MOST_PATTERN]), _options()), "literal")


def _alternatives(text: str) -> tuple[Pattern, ...]:
    """The patterns that `any_of` joined, or none."""
    if not (text.startswith("(?:") and text.endswith(")") and ")|(?:" in text):
        return ()
    patterns = tuple(compile_pattern(part) for part in text[3:-1].split(")|(?:"))
    return () if any(pattern.fallback == "literal" for pattern in patterns) else patterns


def _glob(text: str) -> str:
    """A shell-style glob as RE2; "*.*" means "anything", a file-name habit in which the dot is not required."""
    wild = {"*": ".*", "?": "."}
    parts = re.split(r"([*?])", text.replace("*.*", "*"))
    return "(?s)" + "".join(wild.get(part) or re2.escape(part) for part in parts)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    return options
