"""Runs looked at from outside: what state they are in by evidence, what they did, and what is missing of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from faultbook.errors import DataError, FaultbookError
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, RUN_STARTED, TRIAL_FINISHED, TRIAL_STARTED, Line, trial_key
from faultbook.runtime.journal import TAIL_SET_ASIDE, Finding, Journal, records, verify
from faultbook.runtime.lease import Lease, NotOwnedError, inspect, require_abandoned
from faultbook.runtime.ledger import Ledger
from faultbook.runtime.run import ARTIFACT, LEDGER, RUNS
from faultbook.runtime.termination import Clock, Observation, classify
from faultbook.values import amount, part, text, truth

State = Literal["live", "finished", "failed", "dead", "indeterminate"]

_DOUBTS = {"schema", "invalid_utf8", "hash_mismatch"}


def runs_in(places: Iterable[Path]) -> list[Path]:
    """The folders of all runs of some folders of results, the oldest first; a run's own folder stands for itself."""
    found: dict[Path, None] = {}
    for place in places:
        inside = [folder for folder in (place / RUNS).glob("*") if not folder.is_symlink()]
        found.update({folder.resolve(): None for folder in (place, *inside) if _is_run(folder)})
    return sorted(found, key=lambda folder: folder.name)


def find_run(name: str, places: Iterable[Path]) -> Path:
    """The folder of a run, by its id, the beginning of it, or its path.

    Raises
    ------
    FaultbookError
        If there is none, or more than one.
    """
    path = Path(name)
    if _is_run(path):
        return path.resolve()
    known = runs_in(places)
    fitting = [folder for folder in known if folder.name == name] or [f for f in known if f.name.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise FaultbookError(f"'{name}' begins the ids of {len(fitting)} runs; give more of it")
    last = f"; the last one is {known[-1].name}" if known else ""
    raise FaultbookError(f"no run '{name}' among {len(known)} runs{last}")


def describe(folder: Path) -> dict[str, Any]:
    """A run in plain values.

    Returns
    -------
    dict
        run_id, kind, state (by evidence: "finished" and "failed" where the run's own end is on record; else "live",
        "dead" or "indeterminate" by its owner), reason, cause (missing where no end is on record), started (UTC),
        seconds (up to its last own record; missing without two), resumes, trials (planned, started, finished,
        unfinished, by cause), time (seconds by segment, as the run measured them), requests (metered and unmetered,
        from the ledger), artifacts (recorded, missing), evidence (whether its records are whole), findings.
    """
    lines = records(folder)
    start, end = _first(lines, RUN_STARTED), _first(lines, RUN_FINISHED)
    owner = inspect(folder)
    termination = text(_part(end, "termination", "kind"))
    state: State = owner.state
    if end is not None:
        state = "finished" if termination == "completed" else "failed"
        if _is_inferred(end):
            state = "dead"
    artifacts = _artifacts(folder, lines)
    wrong = verify(folder)
    evidence = _evidence(end, lines)
    return {
        "run_id": folder.name,
        "kind": text(_part(start, "kind")),
        "state": state,
        "reason": owner.reason,
        "cause": termination,
        "started": None if start is None or start.record is None else start.record["at"],
        "seconds": _seconds(lines),
        "resumes": text(_part(start, "resumes")),
        "trials": _trials(start, lines),
        "time": _part(end, "time"),
        "requests": _requests(folder),
        "artifacts": {"recorded": len(artifacts), "missing": [name for name, fault in artifacts.items() if fault]},
        "evidence": {**evidence, "complete": evidence["complete"] and not _breaks(wrong)},
        "findings": len(_breaks(wrong)),
    }


def check(folder: Path) -> list[Finding]:
    """Everything that is wrong with a run's records: its journal, and the files that it says it made."""
    found = verify(folder)
    for name, fault in _artifacts(folder, records(folder)).items():
        if fault:
            finding = {"line": None, "finding": f"artifact_{fault}", "meaning": f"a recorded file is {fault}"}
            found.append({**finding, "detail": name})
    return found


def command_of(folder: Path) -> list[str]:
    """The arguments that start the same run again.

    Raises
    ------
    FaultbookError
        If the run records none, or not in full because a secret was taken out of them.
    """
    command = _part(_first(records(folder), RUN_STARTED), "command")
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command) or not command:
        raise FaultbookError(f"{folder}: the run does not record how it was started; start it anew yourself")
    if any("[redacted" in part for part in command):
        raise FaultbookError(f"{folder}: its command held a secret, which is not on record; start it anew yourself")
    return command


def close_abandoned(folder: Path, *, to_go_on: bool = False) -> None:
    """Close the records of a run whose owner is certainly gone.

    Nothing is thrown away: a broken tail of its journal is set aside, its open requests stay in the ledger as
    unsettled, and its end is on record as inferred.

    Parameters
    ----------
    folder : path
        The run's folder.
    to_go_on : bool
        Whether another run is to go on from it, as a new attempt: then it may be closed like this already, but no
        other run may have gone on from it.

    Raises
    ------
    NotOwnedError
        If its owner lives, nobody can tell, it came to its own end, or another run went on from it.
    """
    if to_go_on:
        later = [run.name for run in runs_in([folder.parent.parent]) if _resumes(run) == folder.name]
        if later:
            raise NotOwnedError(f"{folder.name}: the run {later[0]} went on from it already")
        if _is_inferred(_first(records(folder), RUN_FINISHED)):
            return
    require_abandoned(folder)
    run_id = _run_id(folder)
    with Lease(folder, run_id):
        if inspect(folder).ended:
            raise NotOwnedError(f"{folder.name}: another process has just closed it")
        ledger = folder.parent / LEDGER
        unsettled = _settle(ledger, run_id) if ledger.is_file() else 0
        end = classify(Observation(run_id, found_on_resume=True), Clock())
        journal = Journal(folder, run_id)
        journal.append(RUN_FINISHED, termination=end.as_dict(), unsettled_requests=unsettled)


def interrupted(place: Path) -> list[dict[str, Any]]:
    """Runs of a folder of results that were cut off and not told of yet; they are closed by this.

    Returns
    -------
    list of dict
        As `describe`, of the run as it was found.
    """
    found = []
    for folder in runs_in([place]):
        try:
            owner = inspect(folder)
            if owner.state == "dead" and not owner.ended:
                left = describe(folder)
                close_abandoned(folder)
                found.append(left)
        except (DataError, NotOwnedError):  # somebody else is at it, or its records are beyond reading
            continue
    return found


def _resumes(folder: Path) -> str | None:
    try:
        found = _part(_first(records(folder), RUN_STARTED), "resumes")
    except DataError:
        return None
    return found if isinstance(found, str) else None


def _run_id(folder: Path) -> str:
    found = next((line.record["run_id"] for line in records(folder) if line.record and not line.faults), None)
    if not isinstance(found, str):
        raise DataError("no record of this run can be read", file=folder / JOURNAL)
    return found


def _settle(ledger: Path, run_id: str) -> int:
    with Ledger(ledger) as opened:
        return opened.settle_open(run_id)


def _is_run(folder: Path) -> bool:
    try:
        return (folder / JOURNAL).is_file()
    except OSError:  # a name that is too long, or a folder that others may not enter
        return False


def _first(lines: list[Line], event: str) -> Line | None:
    """The first record of an event that is what its digest was taken of: on others nothing is built."""
    return next(
        (line for line in lines if line.event == event and not _DOUBTS & {name for name, _ in line.faults}), None
    )


def _is_inferred(end: Line | None) -> bool:
    return bool(_part(end, "termination", "source") == "inferred_on_resume")


def _evidence(end: Line | None, lines: list[Line]) -> dict[str, Any]:
    """Whether a run, or who closed it, says that something is not on record."""
    is_complete = truth(_part(end, "evidence", "complete"))
    aside = [text(_part(line, "file")) or "?" for line in lines if line.event == TAIL_SET_ASIDE]
    reasons = [
        text(_part(end, "evidence", "reason")),
        *(f"a broken tail of its journal is in {name}" for name in aside),
    ]
    if is_complete is None:
        is_complete = end is None or _is_inferred(end)
    return {"complete": is_complete and not aside, "reason": "; ".join(filter(None, reasons)) or None}


def _part(line: Line | None, *keys: str) -> Any:
    return None if line is None else part(line.data, *keys)


def _seconds(lines: list[Line]) -> float | None:
    # What stands behind these, another process wrote: later, and maybe after a restart of the machine.
    own = takewhile(lambda line: line.event != TAIL_SET_ASIDE and not _is_inferred(line), lines)
    times = [time for line in own if (time := amount(part(line.record, "monotonic"))) is not None]
    if len(times) < 2 or times[-1] < times[0]:
        return None
    return round(times[-1] - times[0], 3)


def _trials(start: Line | None, lines: list[Line]) -> dict[str, Any]:
    plan = _part(start, "plan")
    started = {trial_key(line.record) for line in lines if line.event == TRIAL_STARTED and line.record}
    ends = {trial_key(line.record): line for line in lines if line.event == TRIAL_FINISHED and line.record}
    causes: dict[str, int] = {}
    for line in ends.values():
        kind = text(_part(line, "termination", "kind")) or "not on record"
        causes[kind] = causes.get(kind, 0) + 1
    unfinished = [line for line in lines if line.event == TRIAL_STARTED and line.record]
    names = [text(_part(line, "task_id")) or "?" for line in unfinished if trial_key(line.record or {}) not in ends]
    return {
        "planned": len(plan) if isinstance(plan, list) else None,
        "started": len(started),
        "finished": len(ends),
        "unfinished": names,
        "causes": dict(sorted(causes.items())),
    }


def _requests(folder: Path) -> dict[str, Any] | None:
    """Requests of a run in its ledger; None where there is no ledger."""
    file = folder.parent / LEDGER
    if not file.is_file():
        return None
    with Ledger(file, read_only=True) as ledger:
        return dict(ledger.totals(folder.name))


def _artifacts(folder: Path, lines: list[Line]) -> dict[str, str | None]:
    """Each file that the run says it made last under a name: None if it is there as recorded, else what is wrong."""
    place, found = folder.parent.parent, dict[str, str | None]()
    for line in lines:
        if line.event == ARTIFACT and isinstance(name := _part(line, "path"), str):
            found[name] = _fault(place / name, _part(line, "sha256"))
    if any(found.values()):
        # What a later run made anew under the same name is as that run says: here it is no fault.
        later = [run for run in runs_in([place]) if run.name > folder.name]
        anew = [_part(line, "path") for run in later for line in _lines(run) if line.event == ARTIFACT]
        found = {name: None if name in anew else fault for name, fault in found.items()}
    return found


def _lines(folder: Path) -> list[Line]:
    try:
        return records(folder)
    except DataError:
        return []


def _fault(file: Path, sha256: Any) -> str | None:
    try:
        if not file.is_file():  # a pipe or device may never come to its end
            return "missing"
        with file.open("rb") as opened:
            return None if hashlib.file_digest(opened, "sha256").hexdigest() == sha256 else "altered"
    except OSError:
        return "missing"


def _breaks(findings: list[Finding]) -> list[Finding]:
    """Findings that put the records in doubt: a run without an end is no fault of its records."""
    return [finding for finding in findings if finding["finding"] != "run_unclosed"]
