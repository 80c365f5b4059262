"""One ledger of all requests of a workspace: who sent them, how they ended, and what they used, where that is known.

A request belongs to the run, trial and attempt that it was written with; nothing is attributed by when it happened.
Events are only added. The state of a request is that of its last event: started, then completed, denied or unsettled;
one that is unsettled may still be completed, and then both events stay. What was not metered is missing, never 0.

A ledger is an SQLite file in WAL mode. Each append is one transaction that waits for its turn, so processes may share a
ledger. With `durability="full"` (the default, `synchronous=FULL`) an append that has returned survives a loss of power;
with "normal" it survives the death of the process, and the last ones may be lost with the power.

An append that fails never breaks the run that it records. The run's evidence is then incomplete, for good: that is kept
in memory, in the ledger itself as soon as it can be written again, and at once in a file beside it,
`<ledger>.incomplete` (a JSON object a line). Room for that is reserved beforehand, in `<ledger>.reserve`: a full disk
is the likely reason.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self

from faultbook.errors import FaultbookError
from faultbook.runtime import ledger_queries
from faultbook.runtime.ledger_append import LedgerConflictError, append
from faultbook.runtime.ledger_events import (
    IDS,
    STATES,
    USAGE_STATUSES,
    Event,
    Usage,
    completed,
    denied,
    started,
    unsettled,
    written_id,
)
from faultbook.runtime.ledger_file import DURABILITIES, SCHEMA_VERSION, LedgerFile
from faultbook.runtime.ledger_gaps import Gaps

__all__ = [
    "DURABILITIES",
    "SCHEMA_VERSION",
    "STATES",
    "USAGE_STATUSES",
    "Event",
    "Evidence",
    "Ledger",
    "LedgerConflictError",
    "Usage",
    "completed",
    "denied",
    "started",
    "unsettled",
]

_P = ParamSpec("_P")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether all that a run gave to the ledger is on record, and why not."""

    complete: bool
    reason: str | None = None


def _appends(make: Callable[_P, Event]) -> Callable[Concatenate[Ledger, _P], None]:
    """The method of a ledger that adds the event that `make` makes."""

    def append(self: Ledger, /, *ids: _P.args, **fields: _P.kwargs) -> None:
        self.many([make(*ids, **fields)])

    append.__doc__ = f"Add the event {make.__name__!r}: see the function of that name."
    return append


class Ledger:
    """The ledger of a workspace, opened for adding to it; for threads and processes alike.

    Parameters
    ----------
    path : path
        The file; it is made if there is none.
    patience : float
        Seconds that an append waits for others before it counts as failed.
    durability : str
        "full" or "normal"; see the module.
    read_only : bool
        Whether it is only to be read: nothing is made or changed then.

    Attributes
    ----------
    notes : list of str
        What a reader of the evidence should know, such as that WAL is not to be had here.

    Raises
    ------
    DataError
        If the file is no ledger, one of a later version, corrupt, or not to be opened.
    """

    def __init__(
        self, path: str | Path, *, patience: float = 5.0, durability: str = "full", read_only: bool = False
    ) -> None:
        self.path = Path(path)
        self._file = LedgerFile(self.path, patience=patience, durability=durability, read_only=read_only)
        self.notes = self._file.notes
        self._lock = threading.RLock()
        self._gaps = Gaps(self.path)
        self._left_behind: list[sqlite3.Connection] = []
        self._identity: tuple[int, int] | None = None
        self._process = os.getpid()
        self._open()

    # ---- adding ----------------------------------------------------------------------------------------------------

    start = _appends(started)
    complete = _appends(completed)
    deny = _appends(denied)
    unsettle = _appends(unsettled)

    def many(self, events: Iterable[Event]) -> None:
        """Add events in one transaction: all of them, or none. What is on record with the same payload is passed over.

        Raises
        ------
        LedgerConflictError
            If an event contradicts what is on record.
        """
        batch = [*events]
        self._write([event.ids[0] for event in batch], lambda db: self._append_all(db, batch))

    def settle_open(self, run_id: str, *, reason: str = "the run ended before it did") -> int:
        """Mark what a run has started and not ended as unsettled.

        Returns
        -------
        int
            How many these are; 0 as well if it could not be written, which `evidence` says.
        """
        run = written_id("run_id", run_id)

        def settle(db: sqlite3.Connection) -> int:
            query = f"SELECT {', '.join(IDS)} FROM requests WHERE run_id = ? AND state = 'started'"  # noqa: S608
            return self._append_all(
                db, [unsettled(*ids, reason=reason) for ids in db.execute(query, (run,)).fetchall()]
            )

        return self._write([run], settle)

    def _append_all(self, db: sqlite3.Connection, events: list[Event]) -> int:
        for event in events:
            append(db, event, ledger=self.path, may_lack_start=lambda run: bool(self._reasons(db, run)))
        return len(events)

    def _write(self, runs: list[str], change: Callable[[sqlite3.Connection], int]) -> int:
        """What `change` returns, in one transaction; or 0, and a gap in the evidence of these runs."""
        if self._file.read_only:
            raise ValueError(f"the ledger {self.path} was opened for reading only")
        with self._alone():
            try:
                return self._transaction(change)
            except LedgerConflictError:
                raise
            except (sqlite3.Error, OSError, FaultbookError) as error:
                self._gaps.add(runs, f"events were not recorded: {error}")
                return 0

    def _transaction(self, change: Callable[[sqlite3.Connection], int]) -> int:
        if self._identity is None or self._identity != self._file.identity():
            raise OSError("the ledger was moved or replaced while it was in use")
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            self._gaps.write(db)
            done = change(db)
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise
        self._gaps.written()
        return done

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time. In a process that was forked, a connection of its own: none outlives a fork."""
        if os.getpid() != self._process:
            self._lock = threading.RLock()
            self._left_behind.append(self._db)  # closing it here would tamper with the other process's
            self._process = os.getpid()
            self._identity = None
        with self._lock:
            if self._identity is None:
                with contextlib.suppress(FaultbookError):
                    self._open()
            yield

    # ---- evidence --------------------------------------------------------------------------------------------------

    def evidence(self, run_id: str) -> Evidence:
        """Whether everything that a run gave to this ledger is on record, by all that is known here of what is not."""
        run = written_id("run_id", run_id)
        with self._alone():
            self._gaps.tell()
            try:
                with contextlib.closing(self._file.reader()) as db:
                    reasons = self._reasons(db, run)
            except (sqlite3.Error, FaultbookError) as error:
                reasons = [*self._reasons(None, run), f"the ledger cannot be read: {error}"]
        return Evidence(not reasons, "; ".join(reasons) or None)

    def _reasons(self, db: sqlite3.Connection | None, run: str) -> list[str]:
        reasons = self._gaps.of(run)
        if db is not None:
            reasons += ledger_queries.gaps(db, run)
        return [*dict.fromkeys(reasons)]

    # ---- reading ---------------------------------------------------------------------------------------------------

    def requests(self, run_id: str | None = None) -> Iterator[dict[str, Any]]:
        """All requests, or those of a run, in the order in which they started.

        Yields
        ------
        dict
            `run_id`, `trial_id`, `attempt`, `request_id`, `state`, `settled_late`, `has_start`, `started_at`,
            `ended_at` (UTC), `seconds` (by the monotonic clock; None across a restart of the machine), and what the
            events said. `usage_status` is None where no answer came to its end.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        run = None if run_id is None else written_id("run_id", run_id)
        with contextlib.closing(self._file.reader()) as db, self._file.readable():
            yield from ledger_queries.requests(db, run)

    def totals(self, run_id: str | None = None) -> dict[str, Any]:
        """Counts of requests by state, and sums over those that are metered.

        Returns
        -------
        dict
            `requests`; `started`, `completed`, `denied`, `unsettled`; `metered` and `unmetered` (all that was sent and
            is not metered: `metered + unmetered + denied = requests`), `partial` and `zero_suspect` among these; sums
            of tokens and `cost_usd` over the metered ones that have the number, or None if none has; and over all,
            `settled_late` and `omitted_tool_images`.
        """
        run = None if run_id is None else written_id("run_id", run_id)
        with contextlib.closing(self._file.reader()) as db, self._file.readable():
            return ledger_queries.totals(db, run)

    def verify(self) -> list[str]:
        """What is wrong with the file itself, by SQLite's own check; nothing if it is sound."""
        try:
            with contextlib.closing(self._file.reader()) as db:
                found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        except (sqlite3.Error, FaultbookError) as error:
            return [str(error)]
        return [finding for finding in found if finding != "ok"]

    # ---- opening and closing ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._gaps.tell()
            if os.getpid() == self._process:
                self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def journal_mode(self) -> str:
        """How SQLite keeps what is not yet in the file: "wal", or "delete" where WAL is not to be had."""
        return str(self._db.execute("PRAGMA journal_mode").fetchone()[0])

    def _open(self) -> None:
        with self._file.readable():
            self._db = self._file.connect()
            try:
                self._file.prepare(self._db)
            except BaseException:
                self._db.close()
                raise
        self._identity = self._file.identity()
        if not self._file.read_only:
            with contextlib.suppress(OSError):
                self._gaps.reserve()
