"""What could not be recorded in a ledger: kept in memory, told in a file beside it, and written into it when it can be.

Room for that file is reserved beforehand: a full disk is the likely reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from faultbook.runtime.ledger_events import now
from faultbook.runtime.redaction import redacted_text

_ROOM = 4096  # bytes kept free for saying what could not be recorded


class Gaps:
    """Runs of which something is not on record.

    Parameters
    ----------
    ledger : path
        The file of the ledger, beside which they are told.

    Attributes
    ----------
    reasons : dict of str
        The first reason for each run, as known to this process.
    """

    def __init__(self, ledger: Path) -> None:
        self.reasons: dict[str, str] = {}
        self._untold_file: set[str] = set()
        self._untold_ledger: set[str] = set()
        self._ledger = ledger

    def add(self, runs: Iterable[str], reason: str) -> None:
        """Take note that something of these runs was not recorded, and tell it."""
        for run in dict.fromkeys(runs):
            if run not in self.reasons:
                self.reasons[run] = redacted_text(reason)
                self._untold_file.add(run)
                self._untold_ledger.add(run)
        self.tell()

    def of(self, run: str) -> list[str]:
        """What this process and the file beside the ledger know of a run."""
        reasons = [self.reasons[run]] if run in self.reasons else []
        return reasons + [reason for of, reason in _told(self._beside("incomplete")) if of in (run, None)]

    def tell(self) -> None:
        """Say in the file beside the ledger what is not in it; what cannot be said yet is said with the next event."""
        for run in sorted(self._untold_file):
            line = json.dumps({"run_id": run, "at": now(), "reason": self.reasons[run]}, ensure_ascii=False)
            try:
                _tell(self._beside("incomplete"), self._beside("reserve"), line)
            except OSError:
                return
            self._untold_file.discard(run)

    def write(self, db: sqlite3.Connection) -> None:
        """Write into the ledger what it does not hold yet, within the transaction that is open."""
        untold = [(run, now(), self.reasons[run]) for run in sorted(self._untold_ledger)]
        db.executemany("INSERT INTO gaps (run_id, at, reason) VALUES (?, ?, ?)", untold)

    def written(self) -> None:
        """Take note that the transaction has succeeded."""
        self._untold_ledger.clear()
        self.tell()

    def reserve(self) -> None:
        """Keep room for what may have to be told."""
        reserve = self._beside("reserve")
        if not reserve.exists():
            with reserve.open("xb") as file:
                file.write(b"\n" * _ROOM)
                os.fsync(file.fileno())

    def _beside(self, ending: str) -> Path:
        return self._ledger.with_name(f"{self._ledger.name}.{ending}")


def _tell(incomplete: Path, reserve: Path, line: str) -> None:
    """Add a line to a file that has room for it already: the reserve becomes that file, also where the disk is full."""
    with contextlib.suppress(OSError):  # it is there, or there is no reserve
        os.link(reserve, incomplete)
        reserve.unlink()
    with os.fdopen(os.open(incomplete, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = len(file.read().rstrip(b"\n"))
        os.pwrite(file.fileno(), (b"\n" if end else b"") + line.encode("utf-8", "replace") + b"\n", end)
        os.fsync(file.fileno())


def _told(incomplete: Path) -> list[tuple[str | None, str]]:
    """Runs and reasons in the file beside the ledger; no run where a line cannot be read: it may be of any."""
    try:
        content = incomplete.read_text("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        return [(None, f"{incomplete.name} cannot be read: {error.strerror}")]
    found: list[tuple[str | None, str]] = []
    for line in filter(str.strip, content.splitlines()):
        try:
            entry = json.loads(line)
            found.append((str(entry["run_id"]), str(entry["reason"])))
        except (ValueError, KeyError, TypeError):
            found.append((None, f"{incomplete.name} has a line that cannot be read"))
    return found
