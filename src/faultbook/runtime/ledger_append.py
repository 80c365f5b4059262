"""How an event is added to what a ledger holds of its request: once, in a possible order, and without contradiction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from faultbook.errors import DataError
from faultbook.runtime.ledger_events import COLUMNS, FIELDS, Event


class LedgerConflictError(DataError):
    """An event that contradicts what is on record: a changed payload, or an end of what has ended. Nothing changed."""


def append(db: sqlite3.Connection, event: Event, *, ledger: Path, may_lack_start: Callable[[str], bool]) -> None:
    """Add an event; one that is on record with the same payload is passed over.

    Parameters
    ----------
    db : sqlite3.Connection
        With a transaction open.
    event : Event
    ledger : path
        For messages.
    may_lack_start : callable
        Whether events of a run are known to be missing, so that a start may be among them.

    Raises
    ------
    LedgerConflictError
        If the event contradicts what is on record.
    """
    held = {
        row[0]: tuple(row[1:])
        for row in db.execute(
            f"SELECT event, {', '.join(FIELDS)} FROM events "  # noqa: S608  # names of this module
            "WHERE run_id = ? AND trial_id = ? AND attempt = ? AND request_id = ?",
            event.ids,
        )
    }
    if event.kind in held:
        changed = [name for name, a, b in zip(FIELDS, held[event.kind], event.payload, strict=True) if a != b]
        if changed:
            raise _conflict(ledger, event, f"it stands as '{event.kind}' with another {', '.join(changed)}")
        return
    ends = [kind for kind in held if kind in ("completed", "denied") or (event.kind == "denied" and kind != "started")]
    if ends and event.kind != "started":
        raise _conflict(ledger, event, f"it has ended as '{ends[0]}' and cannot be '{event.kind}'")
    if event.kind != "started" and "started" not in held and not may_lack_start(event.ids[0]):
        raise _conflict(ledger, event, f"it is '{event.kind}' without a start on record")
    db.execute(
        f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",  # noqa: S608
        event.row,
    )


def _conflict(ledger: Path, event: Event, problem: str) -> LedgerConflictError:
    run, trial, attempt, request = event.ids
    where = f"request '{request}' of run '{run}', trial '{trial}', attempt {attempt}"
    return LedgerConflictError(f"{where}: {problem}", file=ledger, mend="send another request under another id")
