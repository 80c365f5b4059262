"""The lines of a run's journal: whether each is whole and follows the one before, and the story that they tell.

The format is described in `faultbook.harness.formats.journal`; a run's own writer (`faultbook.runtime.journal`) and its
reader share these lines.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faultbook.errors import DataError
from faultbook.jsonfile import parsed_json
from faultbook.values import amount, count, part, stamp, text, truth

JOURNAL = "journal.jsonl"
GENESIS = "0" * 64
RUN_STARTED, RUN_FINISHED = "run_started", "run_finished"
TRIAL_STARTED, TRIAL_FINISHED = "trial_started", "trial_finished"
FINDINGS = {
    "unreadable": "the journal cannot be read at all",
    "trailing_fragment": "behind the last complete line stands the beginning of another",
    "invalid_utf8": "a line is not UTF-8",
    "malformed_json": "a line is no JSON object",
    "schema": "a field of a record is missing or of another type",
    "sequence_gap": "numbers are left out: lines are lost",
    "sequence_regression": "a number comes again or is lower than the one before",
    "hash_mismatch": "a record is not what its digest was taken of",
    "chain_broken": "a record does not follow the one before it",
    "other_run": "a record of another run",
    "no_run_start": "the first record is no run_started",
    "duplicate_start": "a run or trial starts again",
    "duplicate_terminal": "a run or trial ends again",
    "trial_finished_without_start": "a trial ends that never started",
    "after_end": "a record behind the end of the run",
    "run_unclosed": "the run has no end on record",
}

Fault = tuple[str, str]
Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a journal.

    Attributes
    ----------
    number : int
        From 1.
    record : dict or None
        None where there is no JSON object.
    faults : tuple of (str, str)
        What is wrong with the line or with its place in the chain: a key of `FINDINGS`, and the details.
    """

    number: int
    record: dict[str, Any] | None
    faults: tuple[Fault, ...] = ()

    @property
    def event(self) -> str | None:
        """What the record tells of."""
        return text(part(self.record, "event"))

    @property
    def data(self) -> Any:
        """What it tells."""
        return part(self.record, "data")


# ---- lines and their chain ------------------------------------------------------------------------------------------


def digest(record: Mapping[str, Any]) -> str | None:
    """The digest that a record should carry; None if it holds what the canonical form cannot, such as NaN."""
    body = {name: value for name, value in record.items() if name != "sha256"}
    try:
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return None


def lines(content: bytes) -> Iterator[Line]:
    """Each line of a journal with what is wrong with it; one fault does not spread to the lines behind it."""
    previous, last = GENESIS, 0
    for place, raw in enumerate(io.BytesIO(content), start=1):
        if not raw.endswith(b"\n"):
            yield Line(place, None, (("trailing_fragment", f"{len(raw)} bytes without a newline"),))
            return
        record, faults = _parsed(raw)
        if record is not None:
            faults += _chain_faults(record, previous, last)
            previous = text(record.get("sha256")) or ""
            last = count(record.get("seq")) or last
        yield Line(place, record, tuple(faults))


def _parsed(raw: bytes) -> tuple[dict[str, Any] | None, list[Fault]]:
    faults: list[Fault] = []
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append(("invalid_utf8", f"{error.reason} at byte {error.start}"))
        line = raw.decode("utf-8", "replace")
    try:
        record = parsed_json(line, Path(JOURNAL))
    except DataError as error:
        return None, [*faults, ("malformed_json", error.problem)]
    return (record, faults) if isinstance(record, dict) else (None, [*faults, ("malformed_json", "not an object")])


def _chain_faults(record: dict[str, Any], previous: str, last: int) -> Iterator[Fault]:
    if wrong := _wrong_fields(record):
        yield "schema", ", ".join(wrong)
    seq = count(record.get("seq"))
    if seq is not None and seq != last + 1:
        yield "sequence_gap" if seq > last else "sequence_regression", f"{seq} after {last}"
    if record.get("sha256") != digest(record):
        yield "hash_mismatch", f"the record says {text(record.get('sha256'))}"
    if record.get("previous_sha256") != previous:
        yield "chain_broken", f"it names {text(record.get('previous_sha256'))} as the one before"


def _wrong_fields(record: dict[str, Any]) -> list[str]:
    at = stamp(record.get("at"))
    right = {
        "seq": bool(count(record.get("seq"))),
        "at": at is not None and at.utcoffset() is not None,
        "monotonic": amount(record.get("monotonic")) is not None,
        **{name: isinstance(record.get(name), str) for name in ("run_id", "event", "previous_sha256", "sha256")},
        "data": isinstance(record.get("data"), dict),
    }
    return [name for name, is_right in right.items() if not is_right]


# ---- the story that the lines tell ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """What is known of a run, line after line; only trials that are still going on are held."""

    run_id: str | None = None
    kind: str | None = None
    version: str | None = None
    end: str | None = None
    broken: str | None = None
    is_cut_off: bool = False
    n_records: int = 0
    open: dict[Key, dict[str, Any]] = field(default_factory=dict)
    ended: set[Key] = field(default_factory=set)

    def take(self, line: Line) -> Iterator[Fault]:
        """Go on by a line; what is wrong with its place in the story."""
        self._note_faults(line)
        if line.record is None:
            return
        yield from self._of_run(line)
        self.n_records += 1
        if line.event == RUN_STARTED and self.n_records == 1:
            self.kind, self.version = text(part(line.data, "kind")), version(line.data)
        elif line.event == RUN_FINISHED and self.end is None:
            self.end = text(part(line.data, "termination", "kind")) or "no cause on record"
        elif line.event in (TRIAL_STARTED, TRIAL_FINISHED):
            yield from self._of_trial(line.event, line.record)

    def _note_faults(self, line: Line) -> None:
        for name, _ in line.faults:
            if name == "trailing_fragment":
                self.is_cut_off = True
            elif name != "schema" and self.broken is None:  # a whole record of another form is verified all the same
                self.broken = f"line {line.number} of the journal: {FINDINGS[name]}"

    def _of_run(self, line: Line) -> Iterator[Fault]:
        run_id = text(part(line.record, "run_id"))
        if self.n_records == 0:
            self.run_id = run_id
            if line.event != RUN_STARTED:
                yield "no_run_start", f"it is {line.event}"
        elif line.event == RUN_STARTED:
            yield "duplicate_start", "run_started"
        if run_id != self.run_id:
            yield "other_run", f"{run_id} in the journal of {self.run_id}"
        if self.end is not None:
            yield ("duplicate_terminal", RUN_FINISHED) if line.event == RUN_FINISHED else ("after_end", str(line.event))

    def _of_trial(self, event: str, record: dict[str, Any]) -> Iterator[Fault]:
        key = trial_key(record)
        shown = ", ".join(str(name) for name in key[1:] if name is not None)
        if event == TRIAL_STARTED:
            if key in self.open or key in self.ended:
                yield "duplicate_start", shown
            self.open.setdefault(key, record)
        else:
            if key in self.ended:
                yield "duplicate_terminal", shown
            elif key not in self.open:
                yield "trial_finished_without_start", shown
            self.open.pop(key, None)
            self.ended.add(key)


def trial_key(record: Mapping[str, Any]) -> Key:
    """Which trial a record is of: its run and its id, or arm, task and attempt where it has no id."""
    run_id = text(record.get("run_id"))
    names = (text(part(record, "data", name)) for name in ("arm", "task_id", "attempt"))
    trial_id = text(part(record, "data", "trial_id"))
    return (run_id, trial_id) if trial_id is not None else (run_id, *names)


def version(data: Any) -> str | None:
    """The commit that a run_started names, with "+dirty" beside uncommitted changes."""
    commit = text(part(data, "source", "commit"))
    return f"{commit}+dirty" if commit and truth(part(data, "source", "dirty")) else commit
