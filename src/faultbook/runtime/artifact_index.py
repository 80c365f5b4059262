"""The index of artifacts: who put in what, for how long and for whom, one JSON object a line; lines are only added."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from faultbook.errors import one_of
from faultbook.runtime.artifact_folder import ArtifactFolder, opened
from faultbook.runtime.references import PERMISSIONS, ArtifactError, Reference
from faultbook.text import plain

INDEX = "index.jsonl"

_PUTS = ("put", "again", "mended")


def note(folder: ArtifactFolder, root: int, line: Mapping[str, Any]) -> None:
    """Add a line, all of it or nothing.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    entry = {**line, "at": datetime.now(UTC).isoformat(timespec="microseconds")}
    text = json.dumps(entry, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace") + b"\n"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    index = os.open(INDEX, flags, 0o644, dir_fd=root)
    try:
        fcntl.flock(index, fcntl.LOCK_EX)
        end = os.fstat(index).st_size
        if end and os.pread(index, 1, end - 1) != b"\n":
            text = b"\n" + text  # the line before was cut off: it stays as it is, for `verify` to find
        try:
            rest, at = memoryview(text), end
            while rest:
                written = os.pwrite(index, rest, at)
                rest, at = rest[written:], at + written
            folder.sync(index)
        except OSError:
            os.ftruncate(index, end)
            raise
    finally:
        os.close(index)


def read(folder: ArtifactFolder, root: int) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    """Lines in order, and the numbers of those that cannot be read, with the reason.

    Raises
    ------
    ArtifactError
        If the index as a whole cannot be read.
    """
    try:
        file = opened(INDEX, root)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise folder.unusable(error) from None
    lines, broken = [], []
    with file:
        for number, content in enumerate(file, start=1):
            try:
                lines.append(_line(content))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArtifactError) as error:
                broken.append((number, f"it cannot be read: {plain(error, most=100)}"))
    return lines, broken


def modes(lines: list[dict[str, Any]]) -> dict[str, int]:
    """What should be there, each with the narrowest mode that was asked for."""
    found: dict[str, int] = {}
    for line in lines:
        if line["event"] == "collected":
            found.pop(line["sha256"], None)
        elif line["event"] in _PUTS:
            found[line["sha256"]] = found.get(line["sha256"], 0o777) & PERMISSIONS[line["permission"]]
    return found


def holders(lines: list[dict[str, Any]]) -> set[str]:
    """Digests that a run which is not released, or a wish to keep, still holds."""
    kept: set[str] = set()
    runs: dict[str | None, set[str]] = {}
    for line in lines:
        if line["event"] == "released":
            runs.pop(line.get("run_id"), None)
        elif line["event"] in _PUTS and line["lifetime"] == "keep":
            kept.add(line["sha256"])
        elif line["event"] in _PUTS:
            runs.setdefault(line.get("run_id"), set()).add(line["sha256"])
    return kept.union(*runs.values())


def _line(content: bytes) -> dict[str, Any]:
    """A line of the index, if it is one."""
    line = json.loads(content)
    if line["event"] in _PUTS:
        Reference.from_dict(line)
    elif line["event"] == "collected":
        Reference(line["sha256"], 0)
    elif line["event"] != "released":
        raise ValueError(one_of("event", line["event"], (*_PUTS, "collected", "released")))
    return dict(line)
