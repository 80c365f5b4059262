"""Patterns that come from truth files, matched in linear time: RE2 on bounded lengths, never `re`."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass
from typing import Any, Literal

import re2

MOST_NAME = 512  # Kubernetes names have at most 253 characters
MOST_PATTERN = 1_000
# "frontend", "frontend\b", "frontend-.*", "frontend.*", "productpage-v1-*": a literal stem and how it may go on
_STEM = re.compile(r"\^?(?P<stem>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?P<rest>\\b|-?\.\*|-?\*)?\$?")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern.

    `stem` is its literal part, or None; `prefix` says that the stem goes on without a hyphen ("ratings-v*", a glob's
    habit). `fallback` says how a pattern that RE2 cannot take is read: as a shell-style
    glob, or literally.
    """

    text: str
    stem: str | None
    expression: Any
    fallback: Literal["", "glob", "literal"]
    prefix: bool = False

    def search(self, name: str) -> bool:
        """Whether the pattern is found anywhere in the name."""
        return len(name) <= MOST_NAME and self.expression.search(name) is not None

    def fullmatch(self, name: str) -> bool:
        """Whether the whole name matches."""
        return len(name) <= MOST_NAME and self.expression.fullmatch(name) is not None

    def anchored(self, name: str, workload: str) -> bool:
        """Whether the name, or the workload it belongs to, is the stem; without a stem, matches in full."""
        if self.stem is not None:
            return self.stem in (name, workload) or (self.prefix and workload.startswith(self.stem))
        return self.fullmatch(name) or self.fullmatch(workload)


@functools.lru_cache(maxsize=50_000)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern from a truth file; one that RE2 refuses is read as a glob if it can be one, else literally."""
    match = _STEM.fullmatch(text)
    stem = match["stem"] if match else None
    if len(text) <= MOST_PATTERN:
        try:
            prefix = match is not None and match["rest"] == "*"
            return Pattern(text, stem, re2.compile(text, _options()), "", prefix)
        except re2.error:
            pass
        if re.fullmatch(r"[A-Za-z0-9.*?-]+", text):
            # "*.*" means "anything": a file-name habit; the dot is not required
            glob = fnmatch.translate(text.replace("*.*", "*"))
            body = glob.removeprefix("(?s:").removesuffix(r")\z").removesuffix(r")\Z")
            return Pattern(text, None, re2.compile(f"(?s){body}", _options()), "glob")
    return Pattern(text, None, re2.compile(re2.escape(text[:MOST_PATTERN]), _options()), "literal")


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    return options
