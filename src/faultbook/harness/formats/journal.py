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
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.errors import DataError
from faultbook.harness.files import Files, changed
from faultbook.harness.formats._journal_rows import FORMAT, Names, Row, finished_row, unfinished_row, unreadable_row
from faultbook.harness.formats._rows import LINK
from faultbook.harness.requests import LEDGER, read_requests, usage_by_trial
from faultbook.journal_chain import JOURNAL, RUN_STARTED, TRIAL_FINISHED, Story, lines, trial_key
from faultbook.values import count, part, text

__all__ = ["COLUMNS", "FORMAT", "planned", "read", "recognises", "verify"]

COLUMNS = ["file", "line", "seq", "finding", "detail"]
Used = dict[tuple[Any, Any], dict[str, Any]]  # columns of usage by trial_id and attempt
_FIRST_LINE = 1 << 20  # bytes of it that are looked at: a plan of thousands of trials fits


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
        Columns of the table `Trials`. What a trial used is what its end says; where that says nothing, the sum of its
        requests in `ledger.sqlite` beside the folders of runs, if there is one. `source_version` is the commit, with
        "+dirty" where it alone does not give the program that ran.

    Raises
    ------
    DataError
        If the journal changed since it was read before, or holds several arms and they are to have one name.
    """
    requests: dict[str, Used] = {}
    for row in _trials(path, files, arm):
        run_id = row.get("run_id")
        if run_id is not None and row.get("usage_status") == "absent" and row.get("requests") is None:
            if run_id not in requests:
                requests[run_id] = _requests(_journal(path).absolute().parent.parent / LEDGER, run_id, files)
            row |= requests[run_id].get((row.get("trial_id"), row.get("attempt")), {})
        yield row


def _requests(ledger: Path, run_id: str, files: Files) -> Used:
    """What the ledger beside the runs says that trials used; nothing where there is none that can be read."""
    try:
        return dict(usage_by_trial(read_requests(ledger, run_id, files=files))) if ledger.is_file() else {}
    except DataError:
        return {}


def _trials(path: Path, files: Files, arm: str | None) -> Iterator[Row]:
    journal = _journal(path)
    content, problem = _content(path, files)
    if content is None:
        yield unreadable_row(journal, arm, problem)
        return
    source = {"source_format": FORMAT, "source_path": str(journal), "source_sha256": files.sha256(journal)}
    story, names, n_rows = Story(), Names(journal, arm), 0
    for line in lines(content):
        start = story.open.get(trial_key(line.record)) if line.record is not None else None
        faults = [name for name, _ in story.take(line)]
        if line.event == TRIAL_FINISHED and line.record is not None:
            n_rows += 1
            yield finished_row(line.record, start, faults, story, names) | source
    for start in story.open.values():
        n_rows += 1
        yield unfinished_row(start, story, names) | source
    if n_rows == 0 and (story.broken is not None or story.n_records == 0):
        yield unreadable_row(journal, arm, story.broken or "it holds no complete line") | source


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
    names, rows = Names(_journal(path), arm), []
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
        return None, f"{JOURNAL} is {LINK}"
    try:
        content = files.read_bytes(journal)
    except DataError as error:
        if error.problem == changed(journal).problem:
            raise
        return None, error.problem
    return (content, "") if content.strip(b"\0 \t\r\n") else (None, "empty file")
