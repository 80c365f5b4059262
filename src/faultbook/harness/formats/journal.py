"""Our own runs: the journal that a run keeps of itself, read as a file. This text is the definition of the format.

A run has a folder of its own with `journal.jsonl`, and `lease.json` beside it, which says who runs it
(`faultbook.harness.liveness`).

A line
    One JSON object in UTF-8 that ends with a newline; what stands behind the last newline is a fragment of a record
    and never read as one. Lines are only ever added. Keys: `seq` (1, 2, …), `at` (time of day, ISO with offset, UTC),
    `monotonic` (seconds of the system's monotonic clock, comparable within one boot), `run_id`, `event`, `data` (an
    object), `previous_sha256` (that of the line before, 64 zeros in the first) and `sha256`.
The digest
    SHA-256 over the UTF-8 of the record without `sha256` as JSON with sorted keys, separators "," and ":", letters as
    they are (not escaped), numbers as Python's `json` writes them, neither NaN nor Infinity.
Events and their data
    run_started : kind, plan (list of {arm, task_id, attempt}, or null), source ({commit, dirty}), boot_id
    trial_started : trial_id, arm, task_id, attempt
    trial_finished : trial_id, arm, task_id, attempt, verdict {resolved, reward}, termination {kind, retryable, source,
    side_effects}, seconds {setup, agent, verifier, total}, usage {input_tokens, cache_tokens, cache_included,
    output_tokens, requests, cost}
    run_finished : termination
    Others are passed over. run_started stands once and first, run_finished once and last. Attempts count from 1, a
    retry is an attempt and a trial of its own. Anything not known is null or left out. `termination.kind` is a cause
    of `faultbook.taxonomy` or one of its names of the runtime's; `termination.source` is "observed", or
    "inferred_on_resume" where a later run concludes what became of this one.

Reading trusts what is complete and verified, from the first line up to the first that is not. Trials behind that are
read as well, with a note. A trial that started and has no end is unfinished, whatever became of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.errors import DataError
from faultbook.harness.fields import cause_fields, joined_notes, usage_status
from faultbook.harness.files import Files, changed
from faultbook.journal_chain import (
    FINDINGS,
    JOURNAL,
    RUN_STARTED,
    TRIAL_FINISHED,
    Story,
    lines,
    trial_key,
)
from faultbook.taxonomy import Observation, classify
from faultbook.values import amount, count, number, part, text, truth

FORMAT = "journal"
COLUMNS = ["file", "line", "seq", "finding", "detail"]
_NOTED = ("duplicate_terminal", "trial_finished_without_start", "other_run")  # in the row of a trial's end
_FIRST_LINE = 1 << 20  # bytes of it that are looked at: a plan of thousands of trials fits
_SECONDS = ("setup", "agent", "verifier", "total")
_COUNTS = ("input_tokens", "cache_tokens", "output_tokens", "requests")

Row = dict[str, Any]


def recognises(path: Path) -> bool:
    """Whether a path is a run's folder or its journal."""
    journal = _journal(path)
    try:
        if journal.name != JOURNAL or not journal.is_file():
            return False
        with journal.open("rb") as opened:
            line = opened.readline(_FIRST_LINE)
    except (OSError, ValueError):
        return False
    return b'"previous_sha256"' in line or not line.strip(b"\0 \t\r\n") or len(line) == _FIRST_LINE


def read(path: Path, files: Files, *, arm: str | None = None, metric: str | None = None) -> Iterator[Row]:
    """Read the trials of a run, those that ended in the order of their ends, then those that did not.

    Parameters
    ----------
    path : path
        The run's folder, or its journal.
    files : Files
        Reads it.
    arm : str, optional
        A name for the run's only arm, instead of the recorded one.
    metric : str, optional
        Not used: a trial has one verdict.

    Yields
    ------
    dict
        Columns of the table `Trials`. `source_version` is the commit, with "+dirty" where it alone does not give the
        program that ran.

    Raises
    ------
    DataError
        If the journal changed since it was read before, or holds several arms and they are to have one name.
    """
    journal = _journal(path)
    content, problem = _content(path, files)
    if content is None:
        yield _unreadable(journal, arm, problem)
        return
    source = {"source_format": FORMAT, "source_path": str(journal), "source_sha256": files.sha256(journal)}
    story, names, n_rows = Story(), _Names(journal, arm), 0
    for line in lines(content):
        start = story.open.get(trial_key(line.record)) if line.record is not None else None
        faults = [name for name, _ in story.take(line)]
        if line.event == TRIAL_FINISHED and line.record is not None:
            n_rows += 1
            yield _finished(line.record, start, faults, story, names) | source
    for start in story.open.values():
        n_rows += 1
        yield _unfinished(start, story, names) | source
    if n_rows == 0 and (story.broken is not None or story.n_records == 0):
        yield _unreadable(journal, arm, story.broken or "it holds no complete line") | source


def planned(path: Path, files: Files, *, arm: str | None = None) -> list[Row] | None:
    """The plan of a run as it was written down at its start: arm, task_id, attempt.

    None if there is none, or it is not whole: it counts only if its record is verified and every trial in it is named.

    Raises
    ------
    DataError
        As `read`.
    """
    content, _ = _content(path, files)
    first = next(lines(content), None) if content is not None else None
    plan = part(first.data, "plan") if first is not None and first.event == RUN_STARTED and not first.faults else None
    if not isinstance(plan, list) or not plan:
        return None
    names, rows = _Names(_journal(path), arm), []
    for trial in plan:
        row = {"arm": text(part(trial, "arm")), "task_id": text(part(trial, "task_id"))}
        attempt = count(part(trial, "attempt"))
        if not all(row.values()) or not attempt:
            return None
        rows.append({**row, "arm": names.given(str(row["arm"])), "attempt": attempt})
    return rows


def verify(path: Path, files: Files) -> pd.DataFrame:
    """Everything that is wrong with a journal.

    Parameters
    ----------
    path : path
        The run's folder, or its journal.
    files : Files
        Reads it.

    Returns
    -------
    DataFrame
        file, line (from 1; missing where the whole file is meant), seq, finding (a key of `FINDINGS`) and detail, in
        the order of the lines; no row if nothing is wrong.

    Raises
    ------
    DataError
        If the journal changed since it was read before.
    """
    content, problem = _content(path, files)
    rows: list[tuple[int | None, int | None, str, str]] = []
    if content is None:
        rows.append((None, None, "unreadable", problem))
    else:
        story, seq = Story(), None
        for line in lines(content):
            seq = count(part(line.record, "seq"))
            rows += [(line.number, seq, *fault) for fault in (*line.faults, *story.take(line))]
        if story.end is None:
            rows.append((None, None, "run_unclosed", f"{len(story.open)} trials were going on"))
    frame = pd.DataFrame(rows, columns=COLUMNS[1:]).assign(file=str(_journal(path)))[COLUMNS]
    return frame.astype({"file": "str", "line": "Int64", "seq": "Int64", "finding": "str", "detail": "str"})


def _journal(path: Path) -> Path:
    return path if path.is_file() else path / JOURNAL


def _content(path: Path, files: Files) -> tuple[bytes | None, str]:
    """The journal, or why it cannot be read."""
    journal = _journal(path)
    if journal != path and journal.is_symlink():
        return None, f"{JOURNAL} is a symbolic link, which is not followed"
    try:
        content = files.read_bytes(journal)
    except DataError as error:
        if error.problem == changed(journal).problem:
            raise
        return None, error.problem
    return (content, "") if content.strip(b"\0 \t\r\n") else (None, "empty file")


# ---- rows -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """The names of arms: as recorded, or the one that is given to the run's only arm."""

    journal: Path
    arm: str | None
    recorded: set[str] = field(default_factory=set)

    def given(self, recorded: str) -> str:
        self.recorded.add(recorded)
        if self.arm is not None and len(self.recorded) > 1:
            problem = f"holds arms {', '.join(sorted(self.recorded))}, which cannot all be called '{self.arm}'"
            raise DataError(problem, file=self.journal, mend="leave the arm's name out")
        return self.arm or recorded


def _identity(record: dict[str, Any], start: dict[str, Any] | None, story: Story, names: _Names) -> Row:
    """Who ran what, of the record itself, else of the trial's start; a run without arms is one of its own kind."""
    found = {name: text(part(record, "data", name)) or text(part(start, "data", name)) for name in ("arm", "task_id")}
    attempt = count(part(record, "data", "attempt")) or count(part(start, "data", "attempt"))
    run_id = text(record.get("run_id"))
    arm = names.given(found["arm"] or story.kind or run_id or names.journal.resolve().parent.name or FORMAT)
    row = {"arm": arm, "task_id": found["task_id"], "run_id": run_id, "source_version": story.version}
    row |= {"trial_id": text(part(record, "data", "trial_id"))}
    return row | ({"attempt": attempt} if attempt else {})


def _finished(
    record: dict[str, Any], start: dict[str, Any] | None, faults: list[str], story: Story, names: _Names
) -> Row:
    data = part(record, "data")
    verdict, doubt = _verdict(part(data, "verdict"))
    usage = {name: count(part(data, "usage", name)) for name in _COUNTS}
    ending, silence = _ending(part(data, "termination"), verdict)
    notes = [FINDINGS[name] for name in faults if name in _NOTED]
    if start is not None and any(_differ(record, start, name) for name in ("arm", "task_id", "attempt")):
        notes.append("its start names another arm, task or attempt")
    identity = _identity(record, start, story, names)
    if identity["task_id"] is None:
        notes.append("no task on record")
    behind = f"not verified ({story.broken})" if story.broken else None
    return {
        **identity,
        "state": "finished",
        **verdict,
        **ending,
        **{f"{name}_seconds": amount(part(data, "seconds", name)) for name in _SECONDS},
        **usage,
        "cache_included": truth(part(data, "usage", "cache_included")),
        "cost": amount(part(data, "usage", "cost")),
        "usage_status": usage_status(usage["input_tokens"], usage["output_tokens"]),
        "started_at": text(part(start, "at")),
        "note": joined_notes(doubt, silence, *notes, behind),
    }


def _differ(record: dict[str, Any], start: dict[str, Any], name: str) -> bool:
    one, other = (part(each, "data", name) for each in (record, start))
    return one is not None and other is not None and bool(one != other)


def _verdict(verdict: Any) -> tuple[Row, str | None]:
    """What the verifier said, and what is odd about it."""
    resolved, reward = truth(part(verdict, "resolved")), number(part(verdict, "reward"))
    odd = None
    if reward is not None and not 0 <= reward <= 1:
        odd = f"reward {reward:g} is outside [0, 1]"
    elif resolved is None and reward is not None:
        resolved = reward == 1
    elif reward is not None and resolved != (reward == 1) and reward in (0, 1):
        odd = f"resolved is {resolved} beside a reward of {reward:g}"
    return {"resolved": resolved, "reward": reward}, odd


def _ending(termination: Any, verdict: Row) -> tuple[Row, str | None]:
    """Why the trial ended; nothing is concluded where nothing is on record."""
    kind = text(part(termination, "kind"))
    if kind is None:
        return {}, "no cause of its end on record"
    found = classify([Observation(vocabulary="runtime", name=kind)])
    told = text(part(termination, "source")) in (None, "observed")
    if not told or truth(part(termination, "read_from_text")):
        found = replace(found, source="inferred")
    name = None if found.cause.name == "completed" else kind
    return {**cause_fields(found, verdict["resolved"], verdict["reward"]), "exception_type": name}, None


def _unfinished(start: dict[str, Any], story: Story, names: _Names) -> Row:
    notes = [
        f"the run ended before it did ({story.end})" if story.end else None,
        f"no end on record, but one may be lost ({story.broken})" if story.broken else None,
        "the journal's last line is cut off" if story.is_cut_off else None,
    ]
    row = _identity(start, None, story, names)
    return {
        **row,
        "state": "unfinished",
        "usage_status": "absent",
        "started_at": text(start.get("at")),
        "note": joined_notes(*notes),
    }


def _unreadable(journal: Path, arm: str | None, problem: str) -> Row:
    row = {"arm": arm or journal.resolve().parent.name or FORMAT, "state": "unreadable", "usage_status": "absent"}
    return {**row, "note": problem, "source_format": FORMAT, "source_path": str(journal)}
