"""Requests of our own runs, from the ledger beside them, read as a file: an SQLite database with a view `requests`."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from faultbook.errors import DataError, unreadable
from faultbook.harness.fields import usage_status
from faultbook.harness.files import Files
from faultbook.tables import Requests, typed

LEDGER = "ledger.sqlite"  # in the folder that holds the folders of runs
_NAMES = {
    "cache_tokens": "cache_read_tokens",
    "cost": "cost_usd",
    "started": "started_at",
    "ended": "ended_at",
}
_COUNTS = ("input_tokens", "cache_tokens", "output_tokens")


def read_requests(path: str | Path, run_id: str | None = None, *, files: Files | None = None) -> pd.DataFrame:
    """Read requests from a ledger.

    Parameters
    ----------
    path : path
        A ledger, or a folder with `ledger.sqlite` in it.
    run_id : str, optional
        Only those of this run.
    files : Files, optional
        Takes the digest of the ledger.

    Returns
    -------
    DataFrame
        Table `Requests`, in the order in which they started. Nothing is attributed by when it happened: a request
        belongs to the run, trial and attempt that it was written with.

    Raises
    ------
    DataError
        If there is no ledger, or it cannot be read.
    """
    file = Path(path) / LEDGER if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise DataError("no ledger of requests here", file=file)
    if files is not None:
        files.digest(file)
    columns = [_NAMES.get(name, name) for name in Requests.to_schema().columns]
    where, values = ("WHERE run_id = ?", (run_id,)) if run_id is not None else ("", ())
    query = f"SELECT {', '.join(columns)} FROM requests {where} ORDER BY seq"  # noqa: S608  # names of this module
    # Without a log beside it nobody writes: then nothing need be made beside it either, not even to read it.
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True)) as database:
            rows = database.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise DataError(f"not a ledger that can be read ({error})", file=file) from None
    except OSError as error:
        raise unreadable(error, file) from None
    frame = pd.DataFrame(rows, columns=list(Requests.to_schema().columns))
    cached = frame["cache_included"].map({0: False, 1: True})
    return typed(frame.assign(usage_status=frame["usage_status"].fillna("absent"), cache_included=cached), Requests)


def usage_by_trial(requests: pd.DataFrame) -> dict[tuple[str, int], dict[str, Any]]:
    """What each trial used: the columns of `Trials` that follow from its requests, by trial_id and attempt.

    Denied requests were not sent. A sum is one only if every request that was sent has the number; otherwise it is a
    sum over some, and the status is "partial".
    """
    sent = requests[requests["state"] != "denied"]
    return {
        (str(trial), int(str(attempt))): _used(group)
        for (trial, attempt), group in sent.groupby(["trial_id", "attempt"], sort=False)
    }


def _used(sent: pd.DataFrame) -> dict[str, Any]:
    metered = sent[sent["usage_status"].isin(["reported", "partial"])]
    sums: dict[str, Any] = {name: _sum(metered[name]) for name in _COUNTS}
    status = usage_status(sums["input_tokens"], sums["output_tokens"])
    if status == "reported" and not (sent["usage_status"] == "reported").all():
        status = "partial"
    if status == "absent" and (sent["usage_status"] == "zero_suspect").any():
        status = "zero_suspect"
    kinds = set(metered["cache_included"].dropna())
    costs = sent["cost"].dropna()
    return {
        **{name: None if value is None else int(value) for name, value in sums.items()},
        "cache_included": kinds.pop() if len(kinds) == 1 and metered["cache_included"].notna().all() else None,
        "requests": len(sent),
        "cost": math.fsum(costs) if len(costs) == len(sent) else None,
        "usage_status": status,
    }


def _sum(column: pd.Series[Any]) -> float | None:
    known = column.dropna()
    return float(known.sum()) if len(known) else None
