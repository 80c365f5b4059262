"""Secrets taken out of one text, with a word in their place that says what they were."""

from __future__ import annotations

import re
from typing import Any

from faultbook.runtime.redaction_names import KINDS, MARKER, RANDOM, judged, meaning
from faultbook.runtime.redaction_rules import Judge, any_rule, private_key, rules

# While a text is worked on, one byte stands for each marker: a byte that UTF-8 never uses, so that no rule looks at
# what a marker says, nor across it.
_SIGNS = dict(zip(KINDS, (bytes([byte]) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))), strict=True))
_SIGN = re.compile(rb"[\xc0\xc1\xf5-\xff]")
_BY_SIGN = {sign: f"[redacted: {kind}]".encode() for kind, sign in _SIGNS.items()}
_MOST_PASSES = 5  # taking one secret out may lay another one bare, but hardly twice
_SHORTEST = 5  # bytes: no secret together with what tells it apart is shorter
_OPENING = re.compile(rb"b?\\*(?:\"\"\"|'''|[\"'`])")
_CHUNK = re.compile(rb"[&,;:=][^\s\"'`<>&,;:=\xc0\xc1\xf5-\xff]*")
_NEXT_NAME = re.compile(rb"[&,;]+[\w.\-\[\]%]{1,60}[\"']?[=:]")
_KEY_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n"
_KEY_BODY = re.compile(rb"[A-Za-z0-9+/=\s\\:,\-]*")


def redacted_text(text: str) -> str:
    """`redacted` for one text."""
    content = str.encode(text, "utf-8", "replace")
    if len(content) < _SHORTEST or not (concerned := any_rule().Match(content)):
        return content.decode("utf-8")
    content = MARKER.sub(lambda found: _SIGNS[found[1].decode()], content)
    for _ in range(_MOST_PASSES):
        before = content
        for place in sorted(concerned):
            content = _taken_out(content, *rules()[place])
        if content == before or not (concerned := any_rule().Match(content)):
            break
    return _SIGN.sub(lambda found: _BY_SIGN[found[0]], content).decode("utf-8", "replace")


def _taken_out(content: bytes, pattern: Any, judge: Judge) -> bytes:
    """Replace the last group of each match if it is a secret by its judge; the first of two groups is its name.

    The search goes on within a value that is none, and behind one that is.
    """
    if judge is private_key:
        return _without_private_keys(content, pattern)
    pieces, done, at = [], 0, 0
    while (found := pattern.search(content, at)) is not None:
        start, end = found.span(pattern.groups)
        at = start if start > found.start() else end
        name = found[1] if pattern.groups > 1 else b""
        if judge is judged:
            start, end = _bounds(content, start, end, name)
        kind = judge(name, content[start:end])
        if kind is not None:
            pieces += [content[done:start], _SIGNS[kind]]
            done = at = end
    return b"".join([*pieces, content[done:]]) if pieces else content


def _bounds(content: bytes, start: int, end: int, name: bytes) -> tuple[int, int]:
    """Where a value within quotes begins, and where one without them ends: before the name of another value."""
    opening = _OPENING.match(content, start, end)
    if opening is not None:
        return opening.end(), end
    if meaning(name[-300:].decode("utf-8", "replace"))[1] > RANDOM:
        while (chunk := _CHUNK.match(content, end)) is not None and _NEXT_NAME.match(content, end) is None:
            end = chunk.end()
    return start, max(start + 1, start + len(content[start:end].rstrip(b")]},.;")))


def _without_private_keys(content: bytes, fence: Any) -> bytes:
    """Blocks of private keys gone, also where the text ends within one or begins within one."""
    pieces, done, begun = [], 0, None
    marks = [*fence.finditer(content)]
    for mark, follows in zip(marks, [*marks, None][1:], strict=True):
        if mark[1] == b"END":
            start = begun if begun is not None else done + len(content[done : mark.start()].rstrip(_KEY_LETTERS))
            begun, end = None, mark.end()
        elif follows is not None and follows[1] == b"END":
            begun = mark.start()
            continue
        else:
            body = _KEY_BODY.match(content, mark.end(), follows.start() if follows else len(content))
            start, end = mark.start(), body.end() if body else mark.end()
        pieces += [content[done:start], _SIGNS["private key"]]
        done = end
    return b"".join([*pieces, content[done:]])
