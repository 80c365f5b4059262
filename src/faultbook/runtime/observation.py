"""What was observed of a run and when, for telling why it ended: readings, not clocks that run."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol, get_args

from faultbook.errors import one_of, short_repr
from faultbook.runtime.redaction import redacted_text

SideEffects = Literal["none", "possible", "confirmed"]
SIDE_EFFECTS: tuple[SideEffects, ...] = get_args(SideEffects)  # from the least to the most


@dataclass(frozen=True, slots=True)
class Clock:
    """Readings of the clocks, not clocks that run: so that the same observation always gives the same end.

    Attributes
    ----------
    started : float or None
        The monotonic clock at the run's start, in seconds.
    utc : datetime or None
        The time of day at its end, with an offset.
    """

    started: float | None = None
    utc: datetime | None = None

    def __post_init__(self) -> None:
        if self.utc is not None and not is_canonical(_utc_or_none(self.utc)):
            raise ValueError("'utc' must be a time of day with its offset from UTC")


class Seen(Protocol):
    """Something observed in some run: which, when by the monotonic clock in seconds, and one sentence about it."""

    @property
    def run_id(self) -> str | None: ...  # noqa: D102
    @property
    def at(self) -> float | None: ...  # noqa: D102
    @property
    def reason(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ToolTimeout:
    """A tool that did not answer in time.

    Attributes
    ----------
    run_id, at
        As in `Seen`.
    tool : str
    execution_started : bool or None
        Whether the tool had begun, so that it may have changed something; None if that is not known.
    """

    run_id: str | None
    at: float | None = None
    tool: str = ""
    execution_started: bool | None = None

    @property
    def reason(self) -> str:
        """One sentence about it."""
        return f"the tool '{self.tool}' did not answer in time" if self.tool else "a tool did not answer in time"


@dataclass(frozen=True, slots=True)
class Observation:
    """What the runtime saw of one run. It is made anew for every run, so nothing is carried over but by mistake.

    Attributes
    ----------
    run_id : str or None
    budget_exhausted : bool
        Whether the runtime ended the run because time, turns, tokens or money were used up.
    tool_timeouts : tuple of ToolTimeout
        Those that ended the run. One that the model was told of, and went on from, ended nothing.
    denials : tuple of Seen
        Such as `faultbook.runtime.contract.Denial`, stamped.
    user_abort : bool
    signal : str or None
        Name of a signal that the runtime received, or that a process of its own was ended by, such as "SIGTERM".
    error_kind : str or None
        A name of the runtime's own for the error that ended the run: a cause, or a name under `runtime` in the
        taxonomy's data file, such as "compaction.failed". Other names are read like texts.
    assistant_present : bool
        Whether the run has a last answer of the model. A request that failed counts as one, with stop reason "error".
    stop_reason : str or None
        Of that answer; "aborted" and "error" have a meaning here.
    error : str or None
        Text of the error.
    side_effects : {"none", "possible", "confirmed"}
        What is known of changes that the run made outside its own records.
    tools_ran : bool or None
        Whether any tool had begun; None if that is not known.
    found_on_resume : bool
        Whether the run was found without an end, and its owner gone: then all of this is read from its records.
    """

    run_id: str | None
    budget_exhausted: bool = False
    tool_timeouts: tuple[ToolTimeout, ...] = ()
    denials: tuple[Seen, ...] = ()
    user_abort: bool = False
    signal: str | None = None
    error_kind: str | None = None
    assistant_present: bool = False
    stop_reason: str | None = None
    error: str | None = None
    side_effects: SideEffects = "none"
    tools_ran: bool | None = None
    found_on_resume: bool = False

    def __post_init__(self) -> None:
        if self.side_effects not in SIDE_EFFECTS:
            raise ValueError(one_of("side_effects", self.side_effects, SIDE_EFFECTS))
        check_signal(self.signal)


def canonical_utc(moment: datetime) -> str:
    """A moment as records hold it: UTC, with offset and microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def check_signal(name: object) -> None:
    """Raise ValueError if something is given that is no name of a signal."""
    if name is not None and (not isinstance(name, str) or name not in signals.Signals.__members__):
        raise ValueError(f"{shown(name)} is no name of a signal")


def shown(value: object) -> str:
    """A value as a message may quote it: short, and without credentials."""
    return redacted_text(short_repr(value))


def is_canonical(text: object) -> bool:
    """Whether a moment is written as records hold it."""
    try:
        return isinstance(text, str) and _utc_or_none(datetime.fromisoformat(text)) == text
    except ValueError:
        return False


def _utc_or_none(moment: datetime) -> str | None:
    """A moment as records hold it; None if it has no offset, or is outside what can be written in UTC."""
    try:
        return None if moment.tzinfo is None else canonical_utc(moment)
    except (ValueError, OverflowError):
        return None
