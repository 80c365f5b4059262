"""The rows of the trials in a journal; the format is defined in `journal`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faultbook.errors import DataError
from faultbook.harness.fields import cause_fields, joined_notes, usage_status
from faultbook.harness.formats._rows import unmetered
from faultbook.journal_chain import FINDINGS, Story
from faultbook.taxonomy import Observation, classify
from faultbook.values import amount, count, number, part, text, truth

FORMAT = "journal"
_NOTED = ("duplicate_terminal", "trial_finished_without_start", "other_run")  # in the row of a trial's end
_SECONDS = ("setup", "agent", "verifier", "total")
_COUNTS = ("input_tokens", "cache_tokens", "output_tokens", "requests")

Row = dict[str, Any]


@dataclass(slots=True)
class Names:
    """The names of arms: as recorded, or the one that is given to the run's only arm."""

    journal: Path
    arm: str | None
    recorded: set[str] = field(default_factory=set)

    def given(self, recorded: str) -> str:
        """The name of an arm that the journal records."""
        self.recorded.add(recorded)
        if self.arm is not None and len(self.recorded) > 1:
            problem = f"holds arms {', '.join(sorted(self.recorded))}, which cannot all be called '{self.arm}'"
            raise DataError(problem, file=self.journal, mend="leave the arm's name out")
        return self.arm or recorded


def _identity(record: dict[str, Any], start: dict[str, Any] | None, story: Story, names: Names) -> Row:
    """Who ran what, of the record itself, else of the trial's start; a run without arms is one of its own kind."""
    found = {name: text(part(record, "data", name)) or text(part(start, "data", name)) for name in ("arm", "task_id")}
    attempt = count(part(record, "data", "attempt")) or count(part(start, "data", "attempt"))
    run_id = text(record.get("run_id"))
    arm = names.given(found["arm"] or story.kind or run_id or names.journal.resolve().parent.name or FORMAT)
    row = {"arm": arm, "task_id": found["task_id"], "run_id": run_id, "source_version": story.version}
    row |= {"trial_id": text(part(record, "data", "trial_id"))}
    return row | ({"attempt": attempt} if attempt else {})


def finished_row(
    record: dict[str, Any], start: dict[str, Any] | None, faults: list[str], story: Story, names: Names
) -> Row:
    """The row of a trial's end; `start` is the record of its start, `faults` what is wrong with that of its end."""
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


def unfinished_row(start: dict[str, Any], story: Story, names: Names) -> Row:
    """The row of a trial that has a start and no end."""
    notes = [
        f"the run ended before it did ({story.end})" if story.end else None,
        f"no end on record, but one may be lost ({story.broken})" if story.broken else None,
        "the journal's last line is cut off" if story.is_cut_off else None,
    ]
    row = _identity(start, None, story, names)
    return {**row, **unmetered("unfinished", *notes), "started_at": text(start.get("at"))}


def unreadable_row(journal: Path, arm: str | None, problem: str) -> Row:
    """The row of a journal that holds nothing that can be read."""
    name = arm or journal.resolve().parent.name or FORMAT
    return {"arm": name, **unmetered("unreadable", problem), "source_format": FORMAT, "source_path": str(journal)}
