"""Leave to start one child: what it waited for, what its start took, and when it was given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from faultbook.runtime.memory import Reading

if TYPE_CHECKING:
    from faultbook.runtime.admission import Admission

State = Literal["waiting", "gave up", "admitted", "started", "ending", "done"]


class Owned(Protocol):
    """What a ticket can own: a `Child`, or anything that is ended in the same way."""

    def alive(self) -> bool:
        """Whether it still runs."""

    def terminate(self, seconds: float) -> object:
        """End it, by force after some seconds."""


class Ticket:
    """Leave to start one child, and what that took; use as a context manager, or call `done` in any case.

    Attributes
    ----------
    kind : str
        What is started, in the caller's words.
    number : int
        In order of asking, from 1.
    need_bytes : int or None
        Memory that it was said to need.
    state : str
        waiting, gave up, admitted, started, ending (by `reap_idle`) or done.
    reasons : list of str
        Why it had to wait, each once.
    although : str or None
        What spoke against starting, if it was admitted all the same because nothing of ours ran.
    before, after : Reading or None
        Memory when it was admitted, and when it had started.
    waited_seconds, startup_seconds, held_seconds : float or None
        From asking to admission, from there to `started`, from there to `done`.
    """

    def __init__(self, admission: Admission, kind: str, number: int, need_bytes: int | None, asked: float) -> None:
        self.kind, self.number, self.need_bytes = kind, number, need_bytes
        self.state: State = "waiting"
        self.reasons: list[str] = []
        self.although: str | None = None
        self.before: Reading | None = None
        self.after: Reading | None = None
        self.waited_seconds: float | None = None
        self.startup_seconds: float | None = None
        self.held_seconds: float | None = None
        self.reaped = False
        self.child: Owned | None = None
        self.since = asked  # the last change of state
        self.idle_since: float | None = None
        self.hindered: set[str] = set()  # sorts of reasons it has been given
        self._admission = admission

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def started(self, child: Owned | None = None) -> None:
        """Say that the child is ready for use; from now on what it needs shows in the pressure."""
        self._admission._started(self, child)

    def idle(self) -> None:
        """Say that the child has nothing to do, so that `reap_idle` may end it."""
        self._admission._idle(self)

    def busy(self) -> bool:
        """Say that the child is needed again. False if it was ended meanwhile: ask for another one."""
        return self._admission._busy(self)

    def done(self) -> None:
        """Give the place to the next; the child has ended, or was never started. Later calls change nothing."""
        self._admission._done(self)

    def record(self) -> dict[str, Any]:
        """What was measured, as plain values; what is not known is None."""
        names = ("kind", "number", "state", "need_bytes", "although", "reaped")
        seconds = ("waited_seconds", "startup_seconds", "held_seconds")
        plain = {name: getattr(self, name) for name in (*names, *seconds)}
        before, after = (None if found is None else found.record() for found in (self.before, self.after))
        return {**plain, "reasons": list(self.reasons), "before": before, "after": after}
