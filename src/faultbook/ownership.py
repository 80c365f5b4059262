"""Whether somebody still runs a run: by who its owner is, never by what a state file says.

The owner of a run writes `lease.json` into the run's folder, beside its journal (`faultbook.journal_chain`),
and puts a new one in its place (never writes into it) at every heartbeat:

    run_id, boot_id, pid, pid_namespace, start_ticks : which process it is (`faultbook.processes`)
    heartbeat_monotonic, heartbeat_at, interval_seconds : when it last said so, and how often it means to
    host : optional; the machine's name

=============================================================== ===============
what is found                                                    state
=============================================================== ===============
the journal's last record is the run's end                       dead; `ended`
no lease, or one that cannot be read, is not whole, or is of
another run                                                      indeterminate
another boot, and the lease names another host                   indeterminate
another boot                                                     dead
the namespace of process ids is another one, or not known        indeterminate
no process of that id                                            dead
a process of that id that started at other ticks                 dead
a process of that id whose start cannot be read                  indeterminate
the same process                                                 live
=============================================================== ===============

"dead" says that no process runs the run; `ended` tells a run that came to its end from one that was cut short. An old
heartbeat makes no run dead: its owner is there, and may hang or be stopped, which the reason says. Ages are differences
of the monotonic clock, which counts from a machine's start, so they are only taken within one boot. Nothing here sends
a signal.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from faultbook.errors import DataError
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, digest
from faultbook.jsonfile import load_json, parsed_json
from faultbook.processes import PROC, boot_id, pid_namespace, process_exists, start_ticks
from faultbook.values import amount, count, number, part, text

State = Literal["live", "dead", "indeterminate"]

LEASE = "lease.json"
STALE_INTERVALS = 3  # heartbeats that an owner may miss before its reason says that it is silent
_REQUIRED = ("run_id", "boot_id", "pid", "start_ticks")
_STATE_KEYS = ("state", "status")
_NO_OWNER = "no owner record"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whether a process that runs a run is there, and what that rests on; None where something was not looked at.

    Attributes
    ----------
    run : str
        The run, as the caller named it.
    state : str
        "live" or "dead" where that is certain, else "indeterminate".
    reason : str
        Why, in a sentence.
    ended : bool or None
        Whether the run's journal ends with the run's own end; None without a journal that can be read.
    run_id, pid, start_ticks, heartbeat_at : optional
        Of the owner, as it wrote them.
    same_boot, same_namespace, process_exists : bool or None
        Whether it is of this boot and this namespace of process ids, and whether a process has its id.
    found_start_ticks : int or None
        When that process started, in clock ticks since boot.
    heartbeat_age_seconds : float or None
        Since the last heartbeat; only within one boot.
    heartbeat_is_old : bool or None
        Whether that is more than `STALE_INTERVALS` of the lease's intervals.
    """

    run: str
    state: State
    reason: str
    ended: bool | None = None
    run_id: str | None = None
    pid: int | None = None
    start_ticks: int | None = None
    heartbeat_at: str | None = None
    same_boot: bool | None = None
    same_namespace: bool | None = None
    process_exists: bool | None = None
    found_start_ticks: int | None = None
    heartbeat_age_seconds: float | None = None
    heartbeat_is_old: bool | None = None


def ownership(run: str | Path, *, proc: Path = PROC, monotonic: Callable[[], float] = time.monotonic) -> Ownership:
    """Find out whether a run still goes on.

    Parameters
    ----------
    run : path
        A run's folder, or a file of a run.
    proc : path
        Where the process file system is mounted.
    monotonic : callable
        The system's monotonic clock, in seconds.

    Returns
    -------
    Ownership

    Raises
    ------
    DataError
        If there is no such path.
    """
    path = Path(run)
    if not path.exists():
        raise DataError("no such file or folder", file=path)
    folder = path.parent if path.name in (JOURNAL, LEASE) else path
    last = _last_record(folder)
    known: dict[str, Any] = {"run": str(run), "ended": None if last is None else last.get("event") == RUN_FINISHED}
    if last is not None and known["ended"]:
        kind = text(part(last, "data", "termination", "kind")) or "no cause on record"
        return Ownership(**known, state="dead", reason=f"the run came to its end ({kind}): nothing runs any more")
    lease, problem = _lease(folder)
    if lease is None:
        return Ownership(**known, state="indeterminate", reason=problem)
    known |= {"run_id": lease["run_id"], "pid": lease["pid"], "start_ticks": lease["start_ticks"]}
    known |= {"heartbeat_at": text(lease.get("heartbeat_at"))}
    if last is not None and text(last.get("run_id")) != lease["run_id"]:
        reason = f"the owner record is of run {lease['run_id']}, the journal of run {text(last.get('run_id'))}"
        return Ownership(**known, state="indeterminate", reason=reason)
    return _of_owner(lease, known, proc, monotonic)


def _of_owner(lease: dict[str, Any], known: dict[str, Any], proc: Path, monotonic: Callable[[], float]) -> Ownership:
    """Judge by who the owner is: boot, then namespace, then process."""
    here = boot_id(proc=proc)
    known["same_boot"] = None if here is None else here == lease["boot_id"]
    if here is None:
        return Ownership(**known, state="indeterminate", reason="this system does not tell its boot")
    if not known["same_boot"]:
        return _of_other_boot(lease, known)
    known |= _heartbeat(lease, monotonic)
    theirs, ours = text(lease.get("pid_namespace")), pid_namespace(proc=proc)
    known["same_namespace"] = None if theirs is None or ours is None else theirs == ours
    if not known["same_namespace"]:
        what = "not known" if known["same_namespace"] is None else "another one"
        reason = (
            f"the owner's namespace of process ids is {what}, so its id says nothing here; {_silence(known, lease)}"
        )
        return Ownership(**known, state="indeterminate", reason=reason)
    return _of_process(lease, known, proc)


def _of_other_boot(lease: dict[str, Any], known: dict[str, Any]) -> Ownership:
    host = text(lease.get("host"))
    if host is not None and host != platform.node():
        reason = f"the owner is on another machine ({host}), whose processes cannot be seen from here"
        return Ownership(**known, state="indeterminate", reason=reason)
    return Ownership(**known, state="dead", reason=f"the machine was started anew: the owner is gone{_cut(known)}")


def _of_process(lease: dict[str, Any], known: dict[str, Any], proc: Path) -> Ownership:
    pid, ticks = lease["pid"], start_ticks(lease["pid"], proc=proc)
    known["found_start_ticks"] = ticks
    known["process_exists"] = exists = True if ticks is not None else process_exists(pid, proc=proc)
    if exists is False:
        return Ownership(**known, state="dead", reason=f"the owner, process {pid}, is gone{_cut(known)}")
    if ticks is None:
        what = "there, but its start cannot be read" if exists else "not to be seen, and may be hidden"
        return Ownership(**known, state="indeterminate", reason=f"process {pid} is {what}")
    if ticks != lease["start_ticks"]:
        reason = f"the owner is gone: process {pid} is another one now, of another start{_cut(known)}"
        return Ownership(**known, state="dead", reason=reason)
    return Ownership(**known, state="live", reason=f"the owner, process {pid}, is there; {_silence(known, lease)}")


def _cut(known: dict[str, Any]) -> str:
    return ", and the run has no end on record" if known["ended"] is False else ""


def _heartbeat(lease: dict[str, Any], monotonic: Callable[[], float]) -> dict[str, Any]:
    """The age of the last heartbeat, of the same boot."""
    last, interval = number(lease.get("heartbeat_monotonic")), amount(lease.get("interval_seconds"))
    age = None if last is None else monotonic() - last
    if age is None or age < 0:  # a clock of another machine's or namespace's
        return {}
    return {"heartbeat_age_seconds": age, "heartbeat_is_old": age > STALE_INTERVALS * interval if interval else None}


def _silence(known: dict[str, Any], lease: dict[str, Any]) -> str:
    age = known.get("heartbeat_age_seconds")
    if age is None:
        return "the age of its last heartbeat is not known"
    if known.get("heartbeat_is_old"):
        return f"but its last heartbeat is {age:.0f} s old (due every {lease['interval_seconds']:g} s): it may hang"
    return f"its last heartbeat is {age:.0f} s old"


def _lease(folder: Path) -> tuple[dict[str, Any] | None, str]:
    """The owner record with the fields that tell a process, or why there is none."""
    file = folder / LEASE
    if file.is_symlink():
        return None, f"{LEASE} is a symbolic link, which is not followed"
    if not file.exists():
        return None, _without_owner(folder)
    try:
        found = load_json(file)
    except DataError as error:
        return None, f"the owner record cannot be read: {error.problem}"
    lease = dict(found) if isinstance(found, dict) else {}
    lease |= {name: text(lease.get(name)) for name in ("run_id", "boot_id")}
    lease |= {"pid": count(lease.get("pid")) or None, "start_ticks": count(lease.get("start_ticks"))}
    lacking = [name for name in _REQUIRED if lease[name] is None]
    return (None, f"the owner record is not whole: it lacks {', '.join(lacking)}") if lacking else (lease, "")


def _without_owner(folder: Path) -> str:
    """Why nothing can be said; a file that says "running" is a claim, and whoever made it may be gone."""
    try:
        said = load_json(folder / "state.json")
    except DataError:
        return _NO_OWNER
    state = next((text(part(said, key)) for key in _STATE_KEYS if text(part(said, key))), None)
    return _NO_OWNER if state is None else f"{_NO_OWNER}: state.json says '{state}', but not which process runs it"


def _last_record(folder: Path) -> dict[str, Any] | None:
    """The last complete record of the journal, if it is what its digest was taken of."""
    try:
        content = (folder / JOURNAL).read_bytes()
    except OSError:
        return None
    last = content[: content.rfind(b"\n") + 1].rstrip(b"\n").rpartition(b"\n")[2]
    try:
        record = parsed_json(last.decode("utf-8"), folder / JOURNAL)
    except (DataError, UnicodeDecodeError):
        return None
    whole = isinstance(record, dict) and record.get("sha256") is not None and record["sha256"] == digest(record)
    return record if whole else None
