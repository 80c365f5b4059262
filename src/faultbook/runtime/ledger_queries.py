"""What a ledger's file tells: its requests, their totals, and which events of a run are missing from it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from faultbook.runtime.ledger_events import COUNTS, JSON_FIELDS, STATES, USAGE_STATUSES


def requests(db: sqlite3.Connection, run_id: str | None) -> Iterator[dict[str, Any]]:
    """All requests, or those of a run, in the order in which they started; see `Ledger.requests`."""
    where, values = _of(run_id)
    db.row_factory = sqlite3.Row
    for row in db.execute(f"SELECT * FROM requests {where} ORDER BY seq", values):  # noqa: S608
        found = dict(row)
        found.update({name: json.loads(found[name]) for name in JSON_FIELDS if found[name] is not None})
        for name in ("settled_late", "has_start", "cache_included"):
            found[name] = None if found[name] is None else bool(found[name])
        yield found


def totals(db: sqlite3.Connection, run_id: str | None) -> dict[str, Any]:
    """Counts of requests by state, and sums over those that are metered; see `Ledger.totals`."""
    states = ", ".join(f"COUNT(*) FILTER (WHERE state = '{state}') AS {state}" for state in STATES)
    statuses = ", ".join(f"COUNT(*) FILTER (WHERE usage_status = '{status}')" for status in USAGE_STATUSES)
    sums = ", ".join(f"SUM({name}) FILTER (WHERE usage_status = 'reported')" for name in (*COUNTS, "cost_usd"))
    where, values = _of(run_id)
    row = db.execute(
        f"SELECT COUNT(*), {states}, {statuses}, COALESCE(SUM(settled_late), 0), "  # noqa: S608
        f"COALESCE(SUM(omitted_tool_images), 0), {sums} FROM requests {where}",
        values,
    ).fetchone()
    names = ("requests", *STATES, *USAGE_STATUSES, "settled_late", "omitted_tool_images", *COUNTS, "cost_usd")
    found = dict(zip(names, row, strict=True))
    metered = found.pop("reported")
    del found["absent"]
    return {**found, "metered": metered, "unmetered": found["requests"] - found["denied"] - metered}


def gaps(db: sqlite3.Connection, run_id: str) -> list[str]:
    """Why the record of a run is incomplete, as far as the ledger itself tells."""
    reasons = [row[0] for row in db.execute("SELECT reason FROM gaps WHERE run_id = ? ORDER BY seq", (run_id,))]
    query = "SELECT COUNT(*) FROM requests WHERE run_id = ? AND NOT has_start"
    (orphans,) = db.execute(query, (run_id,)).fetchone()
    return [*reasons, f"{orphans} requests ended without a start on record"] if orphans else reasons


def _of(run_id: str | None) -> tuple[str, tuple[str, ...]]:
    return ("WHERE run_id = ?", (run_id,)) if run_id is not None else ("", ())
