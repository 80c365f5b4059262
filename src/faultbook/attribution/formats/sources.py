"""Logs that raw annotations point to, looked up in a local folder: JSON logs and console logs.

A `log_source` is an address on GitHub. Nothing is fetched: a copy of the repository, or of any part of it, is searched
for the longest end of the address that exists there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from faultbook.attribution.formats.values import History, read_history
from faultbook.errors import short_repr

_START = "SCENARIO.PY STARTING !#!#"
_TURN = re.compile(r"-{10} (.+?) -{10}")
_BRANCHES = ("tree", "blob")


@dataclass(frozen=True, slots=True)
class Source:
    """A log and the question that it is about, as far as they are known."""

    history: History | None
    question: object


def find_source(address: object, folder: Path) -> Source:
    """Look up and read the log that an annotation points to.

    Parameters
    ----------
    address : object
        The `log_source`.
    folder : Path
        The local folder.

    Returns
    -------
    Source
        Its history, and its question: from the log itself, or from `prompt.txt` beside a console log.

    Raises
    ------
    ValueError
        If the address is none, leads out of the folder, or nothing that can be read is there, in one sentence.
    """
    file = _locate(address, folder)
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise ValueError(f"the log {file} cannot be read ({error.strerror})") from None
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return _console_source(text, file)
    if not isinstance(payload, dict):
        raise ValueError(f"the log {file} is no object with a history")
    return Source(_history(payload.get("history"), file, ("name", "role")), payload.get("question"))


def parse_console_log(text: str) -> list[dict[str, Any]]:
    """Split a console log into turns: objects with `role` and `content`.

    The log begins after a line "SCENARIO.PY STARTING !#!#". A turn begins at a line that holds its speaker between two
    runs of exactly ten dashes; a line of an answer that looks just like that begins a false turn, and no reader can
    tell.
    """
    _, started, rest = text.partition(_START)
    turns: list[tuple[str, list[str]]] = []
    for line in (rest if started else text).splitlines():
        match = _TURN.fullmatch(line.strip())
        if match:
            turns.append((match[1].strip(), []))
        elif turns:
            turns[-1][1].append(line)
    return [{"role": role, "content": "\n".join(lines).strip()} for role, lines in turns]


def _console_source(text: str, file: Path) -> Source:
    history = _history(parse_console_log(text), file, ("role",))
    prompt = file.with_name("prompt.txt")
    try:
        question = prompt.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        question = None
    return Source(history, question)


def _history(turns: object, file: Path, speaker_keys: tuple[str, ...]) -> History:
    found: list[str] = []
    history = read_history(turns, speaker_keys, lambda problem, _: found.append(problem))
    if history is None or found:
        raise ValueError(f"the log {file}: {found[0] if found else 'no step in it'}")
    return history


def _locate(address: object, folder: Path) -> Path:
    """The file that the longest end of an address names below the folder."""
    if not isinstance(address, str) or not address.strip():
        raise ValueError(f"log_source is {short_repr(address)}, not an address")
    try:
        path = urlsplit(address.strip()).path
    except ValueError:
        raise ValueError(f"log_source is {short_repr(address)}, not an address") from None
    parts = [unquote(part) for part in path.split("/") if part]
    if any(part in (".", "..") or set(part) & set("/\\\0") for part in parts):
        raise ValueError(f"log_source {short_repr(address)} leads out of the folder of sources")
    if len(parts) > 4 and parts[2] in _BRANCHES:
        parts = parts[4:]  # after owner, repository, "tree" and branch
    root = folder.resolve()
    for start in range(len(parts)):
        file = root.joinpath(*parts[start:])
        try:
            if file.is_file() and file.resolve().is_relative_to(root):
                return file
        except (OSError, ValueError):  # a name that no system takes
            continue
    raise ValueError(f"no file of log_source {short_repr(address)} is below {folder}")
