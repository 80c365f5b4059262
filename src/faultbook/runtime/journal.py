"""The journal of a run: append-only, fsynced, chained by digests. What was written stays; what is broken is set aside.

The form of a line is that of `faultbook.journal_chain`, where a reader finds it too.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faultbook.errors import DataError, unreadable
from faultbook.journal_chain import FINDINGS, GENESIS, JOURNAL, RUN_STARTED, Line, Story, digest, lines
from faultbook.runtime.redaction import redacted

Clock = Callable[[], float]
Now = Callable[[], datetime]
Finding = dict[str, Any]

TAIL_SET_ASIDE = "tail_set_aside"
_DEEPEST = 100  # levels of nesting; `redacted` keeps no more


def utc_now() -> datetime:
    """The time of day, with offset."""
    return datetime.now(UTC)


class Journal:
    """Writes the journal of one run. Threads may share it; processes may not: the run's lease keeps others out.

    Parameters
    ----------
    folder : path
        The run's folder; it exists. Its `journal.jsonl` is made, or gone on with.
    run_id : str
        The run.
    clock, now : callable
        Monotonic seconds, and the time of day with offset.

    Raises
    ------
    DataError
        If the file cannot be read or written, or is the journal of another run.

    Notes
    -----
    A journal that is gone on with and does not end with a whole, verified record keeps what it has up to there; the
    rest is moved, byte by byte, to `journal.jsonl.tail-<n>` beside it, and the next record says so. Every record is on
    disk (fsync) before `append` returns. Secrets are taken out of data before they are written.
    """

    def __init__(self, folder: Path, run_id: str, *, clock: Clock = time.monotonic, now: Now = utc_now) -> None:
        self.path = folder / JOURNAL
        self._run_id, self._clock, self._now = run_id, clock, now
        self._lock = threading.Lock()
        self._seq, self._previous, self._size = 0, GENESIS, 0
        self._go_on()

    def append(self, event: str, **data: Any) -> dict[str, Any]:
        """Add a record, and have it on disk.

        Parameters
        ----------
        event : str
            What happened.
        **data
            Plain values (JSON); NaN and Infinity are null, for a reader could not tell them from text.

        Returns
        -------
        dict
            The record as written.

        Raises
        ------
        DataError
            If it cannot be written: the journal is as it was before, and can be tried again.
        """
        with self._lock:
            self._catch_up()
            return self._append(event, data)

    def _append(self, event: str, data: dict[str, Any]) -> dict[str, Any]:
        record = {
            "seq": self._seq + 1,
            "at": self._now().isoformat(timespec="microseconds"),
            "monotonic": self._clock(),
            "run_id": self._run_id,
            "event": redacted(event),
            "data": redacted(_finite(data)),
            "previous_sha256": self._previous,
        }
        sha256 = digest(record)
        if sha256 is None:
            raise DataError(f"the data of a record '{event}' is no JSON", file=self.path, mend="give plain values")
        record["sha256"] = sha256
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._write(line)
        self._seq, self._previous, self._size = record["seq"], sha256, self._size + len(line)
        return record

    def _catch_up(self) -> None:
        """Go on behind what is in the file, if an interrupt came between writing a record and taking note of it."""
        try:
            size = self.path.lstat().st_size
        except FileNotFoundError:
            size = 0
        except OSError as error:
            raise _unwritten(error, self.path) from None
        if size < self._size:
            problem = f"has {size} bytes left of the {self._size} that were written"
            raise DataError(problem, file=self.path, mend="look at what writes into this folder")
        if size > self._size:
            self._go_on()

    def _go_on(self) -> None:
        tail = self._take_up()
        if tail is not None:
            self._append(TAIL_SET_ASIDE, tail)

    def _write(self, line: bytes) -> None:
        is_new, flags = self._size == 0, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            file = os.open(self.path, flags | (os.O_CREAT if is_new else 0), 0o644)
        except OSError as error:
            raise _unwritten(error, self.path) from None
        try:
            written = 0
            while written < len(line):
                written += os.write(file, line[written:])
            os.fsync(file)
            if is_new:
                _sync_folder(self.path.parent)
        except BaseException as error:
            # Only what this very call left half written is taken back; nothing that was whole is ever cut off.
            with contextlib.suppress(OSError):  # then it is set aside by the next call
                os.ftruncate(file, self._size)
            if isinstance(error, OSError):
                raise _unwritten(error, self.path) from None
            raise
        finally:
            os.close(file)

    def _take_up(self) -> dict[str, Any] | None:
        """Go on behind the last whole, verified record; what stands behind it is moved aside, and described."""
        if not os.path.lexists(self.path):
            return None
        content = _content(self.path)
        good, self._seq, self._previous = 0, 0, GENESIS
        for line in lines(content):
            if line.record is None or line.faults:
                break
            if line.record["run_id"] != self._run_id:
                mend = "give every run a folder of its own"
                raise DataError(f"the journal of another run ({line.record['run_id']})", file=self.path, mend=mend)
            good = content.index(b"\n", good) + 1
            self._seq, self._previous = line.record["seq"], line.record["sha256"]
        self._size = good
        if good == len(content):
            return None
        aside = _set_aside(self.path, content[good:])
        _cut(self.path, good)
        return {"bytes": len(content) - good, "file": aside.name}


def verify(path: Path) -> list[Finding]:
    """Everything that is wrong with a journal.

    Parameters
    ----------
    path : path
        A run's folder, or its journal.

    Returns
    -------
    list of dict
        line (from 1; None of the whole), finding (a key of `journal_chain.FINDINGS`), meaning, detail.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    file = path / JOURNAL if path.is_dir() else path
    story, found = Story(), []
    for line in lines(_content(file)):
        for name, detail in (*line.faults, *story.take(line)):
            found.append(_finding(line.number, name, detail))
    if story.end is None:
        found.append(_finding(None, "run_unclosed", ""))
    return found


def records(path: Path) -> list[Line]:
    """Every line of a journal, with what is wrong with it.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    return list(lines(_content(path / JOURNAL if path.is_dir() else path)))


def is_started(found: list[Line]) -> bool:
    """Whether a journal begins as one does."""
    return bool(found) and found[0].event == RUN_STARTED


def _finding(line: int | None, name: str, detail: str) -> Finding:
    return {"line": line, "finding": name, "meaning": FINDINGS[name], "detail": detail}


def _content(path: Path) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):  # a pipe or device may never come to its end
                raise DataError("no regular file", file=path, mend="take it away")
            with os.fdopen(file, "rb", closefd=False) as opened:
                return opened.read()
        finally:
            os.close(file)
    except OSError as error:
        raise unreadable(error, path) from None


def _set_aside(path: Path, tail: bytes) -> Path:
    for number in range(1, 10_000):
        aside = path.with_name(f"{path.name}.tail-{number}")
        try:
            with aside.open("xb") as file:
                file.write(tail)
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(path.parent)
        except FileExistsError:
            continue
        except OSError as error:
            aside.unlink(missing_ok=True)  # half of it would look like all of it
            raise _unwritten(error, aside) from None
        return aside
    raise DataError("holds thousands of broken tails", file=path.parent, mend="look at what writes into this folder")


def _cut(path: Path, size: int) -> None:
    """End the journal behind its last good record, once the rest is safe elsewhere."""
    try:
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritten(error, path) from None


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on disk too."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _finite(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Numbers that are none become missing, before anything makes texts of them; cycles are left to `redacted`."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if id(value) in within or len(within) > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {name: _finite(part, (*within, id(value))) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part, (*within, id(value))) for part in value]
    return value


def _unwritten(error: OSError, path: Path) -> DataError:
    return DataError(f"cannot be written ({error.strerror})", file=path, mend="make room, or allow writing there")
