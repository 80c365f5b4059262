"""What became of a prompt, decided once: after retries and continuations have ended, and before anybody shows it.

An attempt that ends is not the prompt's end: a failed request may be tried again, a tool may still run, a continuation
may wait. So what is open is counted, and the verdict is given when an end of the prompt is on record (`terminal`) and
nothing is open. Of several ends the first counts; a second one is a finding and changes nothing. Where no end is on
record, because a caller knows only attempts, the last attempt is looked at: an answer that failed or broke off, or an
end with a type (`Termination`) that is this prompt's own and not one that was there before.

The verdict decides the exit status, whatever is printed and in whatever form:

======================================================= ====
completed                                                0
failed or aborted                                        1
there was no prompt                                      2
a signal ended it                                        128 + its number: 129 for SIGHUP, 143 for SIGTERM
======================================================= ====

"completed" says that the work came to its own end. Whether the task was solved is a verifier's verdict, another thing
in another column; there is no field for it here.

Source: `prompt-settlement.ts` and `print-mode.ts` of the omk repository for what is counted and for the statuses. Two
things are otherwise. Ends are matched with starts by key, so the order in which parallel parts report does not matter
(a counter that is held at zero loses a start that arrives after its end). And a prompt of which nothing at all is known
has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from faultbook.errors import one_of
from faultbook.runtime.prompts import NO_PROMPT, Prompts, Signalled, ending_on_signals, run_prompts
from faultbook.runtime.termination import Clock, Observation, Termination, classify
from faultbook.runtime.verdict import ABORTS, Outcome, Verdict, verdict_on

__all__ = [
    "ABORTS",
    "EVENT_KINDS",
    "NO_PROMPT",
    "TERMINAL",
    "Event",
    "EventKind",
    "Outcome",
    "Prompts",
    "Settlement",
    "Signalled",
    "Unsettled",
    "Verdict",
    "ending_on_signals",
    "run_prompts",
    "settle",
]

EventKind = Literal[
    "attempt_started",
    "attempt_ended",
    "tool_started",
    "tool_ended",
    "child_started",
    "child_ended",
    "continuation_queued",
    "continuation_started",
    "continuation_dropped",
    "terminal",
]

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
TERMINAL: Final = "terminal"

_OPENING = {
    "attempt_started": "attempt",
    "tool_started": "tool",
    "child_started": "child",
    "continuation_queued": "continuation",
}
_CLOSING = {
    "attempt_ended": "attempt",
    "tool_ended": "tool",
    "child_ended": "child",
    "continuation_started": "continuation",
    "continuation_dropped": "continuation",
}


class Unsettled(RuntimeError):  # noqa: N818  # the state that was found
    """A verdict was asked for while parts of the work were still open."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that began or ended while a prompt was worked on.

    Attributes
    ----------
    kind : str
        One of `EVENT_KINDS`. What takes over is to be reported before that from which it takes over: the attempt of a
        continuation starts, then the continuation counts as started; a retry starts, or a continuation is queued, then
        the attempt before it ends.
    key : str
        Which one: an end belongs to the start with the same key.
    termination : Termination or None
        Of a terminal: why the prompt ended. Of an attempt's end: why that attempt did, if it is known.
    stop_reason, error : str or None
        Of an attempt's end: of the model's last answer.
    """

    kind: EventKind
    key: str = ""
    termination: Termination | None = None
    stop_reason: str | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in EVENT_KINDS:
            raise ValueError(one_of("kind", self.kind, EVENT_KINDS))
        if self.kind == TERMINAL and self.termination is None:
            raise ValueError("a terminal needs its termination")


@dataclass(slots=True)
class Settlement:
    """Collects the events of one prompt or run and gives its verdict, once.

    Parameters
    ----------
    run_id : str, optional
        The prompt's or run's own id: an attempt's termination that names another is not looked at.
    before : Termination, optional
        The termination that was on record before this prompt; it is not taken for this prompt's.
    """

    run_id: str | None = None
    before: Termination | None = None
    late: list[str] = field(default_factory=list, init=False)
    _open: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _terminals: list[Termination] = field(default_factory=list, init=False)
    _foreign: list[Termination] = field(default_factory=list, init=False)
    _last_started: str | None = field(default=None, init=False)
    _ends: dict[str, Event] = field(default_factory=dict, init=False)
    _verdict: Verdict | None = field(default=None, init=False)

    def add(self, event: Event) -> None:
        """Take note of an event. After the verdict it changes nothing and is listed in `late`."""
        if self._verdict is not None:
            self.late.append(f"{event.kind} after the verdict" + (f": {event.key}" if event.key else ""))
            return
        if event.termination is not None and event.kind == TERMINAL:
            (self._terminals if self._is_own(event.termination) else self._foreign).append(event.termination)
        elif event.kind in _OPENING:
            self._open[_OPENING[event.kind], event.key] += 1
        else:
            self._open[_CLOSING[event.kind], event.key] -= 1
        if event.kind == "attempt_started":
            self._last_started = event.key
        elif event.kind == "attempt_ended":
            self._ends.pop(event.key, None)
            self._ends[event.key] = event

    def still_open(self) -> list[tuple[str, str]]:
        """What has begun and not ended, as (what, key)."""
        return sorted(part for part, n in self._open.items() if n > 0)

    @property
    def is_settled(self) -> bool:
        """Whether the verdict has been given."""
        return self._verdict is not None

    def settle(self) -> Verdict:
        """Give the verdict; asked again, the same one.

        Raises
        ------
        Unsettled
            While anything is open.
        """
        if self._verdict is None:
            waiting = ", ".join(f"{what} '{key}' is open" for what, key in self.still_open())
            if waiting:
                raise Unsettled(f"no verdict yet: {waiting}")
            termination = self._terminals[0] if self._terminals else self._last_attempt()
            self._verdict = verdict_on(termination, self._findings())
        return self._verdict

    def _last_attempt(self) -> Termination:
        """Why the attempt ended that began last, or that ended last if no start is on record."""
        latest = next(reversed(self._ends.values()), Event("attempt_ended"))
        end = self._ends.get(self._last_started, latest) if self._last_started is not None else latest
        typed = end.termination if end.termination is not None and self._is_own(end.termination) else None
        stop_reason = end.stop_reason or ("error" if end.error else None)
        if typed is not None and (typed.kind != "completed" or stop_reason is None):
            return typed
        present = stop_reason is not None
        seen = Observation(self.run_id, assistant_present=present, stop_reason=stop_reason, error=end.error)
        return classify(seen, Clock())

    def _is_own(self, termination: Termination) -> bool:
        """Whether a termination is this prompt's; one without a moment may look like the one before it and be new."""
        if termination is self.before or (termination.at is not None and termination == self.before):
            return False
        return None in (termination.run_id, self.run_id) or termination.run_id == self.run_id

    def _findings(self) -> tuple[str, ...]:
        unmatched = sorted(part for part, n in self._open.items() if n < 0)
        found = [f"the end of {what} '{key}' without its start" for what, key in unmatched]
        if not self._terminals:
            found.append("no end of the prompt on record: judged by its last attempt")
        found += [f"an end of another run or prompt, which is not counted: {each.kind}" for each in self._foreign]
        found += [f"another end, which is not counted: {terminal.kind}" for terminal in self._terminals[1:]]
        return tuple(found)


def settle(events: Settlement | Iterable[Event]) -> Verdict:
    """The verdict on a prompt from all its events.

    Parameters
    ----------
    events : Settlement or iterable of Event

    Raises
    ------
    Unsettled
        If anything is open.
    """
    if isinstance(events, Settlement):
        return events.settle()
    collector = Settlement()
    for event in events:
        collector.add(event)
    return collector.settle()
