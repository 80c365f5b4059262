"""Who may start: kernels, tool servers and workers of this run wait until there is memory for them, and none starves.

Requests are served in the order in which they came. A start may come late, and a deadline may end the wait, but it
never fails for want of memory: if nothing of ours runs, waiting for ourselves would be waiting for ever, so the first
in line starts whatever the pressure, and its ticket says so. Only what was admitted here is ever ended here.

Several processes that each have an admission do not see each other's tickets; they meet in the pressure they read.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from faultbook.runtime.deadline import Deadline
from faultbook.runtime.memory import Reading, pressure
from faultbook.runtime.tickets import Owned, State, Ticket

__all__ = ["KEEP_FREE", "MIB", "MOST_STALLED", "Admission", "Owned", "State", "Ticket"]

MIB: Final = 2**20
KEEP_FREE: Final = 256 * MIB
# Tasks that wait for memory a tenth of the time slow each other down, long before the kernel kills any of them. The
# limit is ours; systemd-oomd, which ends processes, acts at 60 (oomd.conf(5), DefaultMemoryPressureLimit).
MOST_STALLED: Final = 10.0

_RUNNING: Final = ("admitted", "started", "ending")


class Admission:
    """Lets children start when there is memory for them; safe for threads.

    Parameters
    ----------
    at_once : int, optional
        How many may run at the same time, at least 1.
    keep_free : int
        Bytes that must be left after a start.
    most_stalled : float
        Percent of the last ten seconds in which some task may have waited for memory, of the machine or our own group.
    clock : callable
        Seconds that never run backwards.
    read : callable
        Says how scarce memory is.
    """

    def __init__(
        self,
        *,
        at_once: int | None = None,
        keep_free: int = KEEP_FREE,
        most_stalled: float = MOST_STALLED,
        clock: Callable[[], float] = time.monotonic,
        read: Callable[[], Reading] = pressure,
    ) -> None:
        if at_once is not None and at_once < 1:
            raise ValueError(f"at least one must be able to run; found {at_once}")
        self._at_once, self._keep_free, self._most_stalled = at_once, keep_free, most_stalled
        self._clock, self._read = clock, read
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._tickets: list[Ticket] = []
        self._line: list[Ticket] = []

    def admit(
        self,
        kind: str,
        *,
        need_bytes: int | None = None,
        deadline: Deadline | None = None,
        on_wait: Callable[[str], object] | None = None,
    ) -> Ticket:
        """Wait for leave to start a child.

        Parameters
        ----------
        kind : str
            What is to be started.
        need_bytes : int, optional
            Memory that it is going to need; kept for it until it has started.
        deadline : Deadline, optional
            Its time for the queue ends the wait.
        on_wait : callable
            Told the reason, once, if there is a wait.

        Returns
        -------
        Ticket
            To be given back with `done`.

        Raises
        ------
        DeadlineExceeded
            When the time for the queue is used up; with none at all nothing is admitted.
        """
        limit = Deadline.after(None) if deadline is None else deadline
        with self._changed:
            ticket = Ticket(self, kind, next(self._numbers), need_bytes, self._clock())
            self._tickets.append(ticket)
            self._line.append(ticket)
        try:
            limit.check("queue")
            with self._changed:
                admitted = self._try(ticket)
            if not admitted:
                if on_wait is not None:
                    on_wait(ticket.reasons[0])
                with self._changed:
                    limit.wait(self._changed, "queue", until=lambda: not limit.expired("queue") and self._try(ticket))
        except BaseException:
            self._give_up(ticket)
            raise
        return ticket

    def running(self) -> int:
        """How many children hold a place: those whose process has ended do not, even if nobody said so."""
        with self._changed:
            return len(self._running())

    def records(self) -> list[dict[str, Any]]:
        """What was measured of every request so far, in order of asking, as plain values for a journal."""
        with self._changed:
            return [ticket.record() for ticket in self._tickets]

    def reap_idle(self, older_than: float, *, grace: float = 5.0) -> list[dict[str, Any]]:
        """End children of ours that have been idle for long.

        Parameters
        ----------
        older_than : float
            Seconds since `Ticket.idle`; a child that was never called idle is not touched.
        grace : float
            Seconds between the request to end and force.

        Returns
        -------
        list of dict
            The records of those that were ended.
        """
        with self._changed:
            tickets = list(self._tickets)
        ended = []
        for ticket in tickets:
            child = self._claimed(ticket, older_than)
            if child is None:
                continue
            try:
                child.terminate(grace)
            finally:
                self._done(ticket)
            ended.append(ticket.record())
        return ended

    def _claimed(self, ticket: Ticket, older_than: float) -> Owned | None:
        """Take a child that has been idle for long, so that nobody takes it up again; None if it has not."""
        with self._changed:
            if ticket.state != "started" or ticket.idle_since is None or ticket.child is None:
                return None
            if self._clock() - ticket.idle_since < older_than:
                return None
            ticket.state, ticket.reaped = "ending", True
            return ticket.child

    def _try(self, ticket: Ticket) -> bool:
        """Admit a ticket if it is its turn and nothing is in its way; the lock is held."""
        ahead = self._line.index(ticket)
        running = self._running()
        if ahead:
            return _must_wait(ticket, "queue", f"{ahead} asked before it")
        if self._at_once is not None and len(running) >= self._at_once:
            return _must_wait(ticket, "places", f"{len(running)} of {self._at_once} places are taken")
        reading = self._read()
        hindrance = self._hindrance(ticket, reading, running)
        if hindrance is not None and running:
            return _must_wait(ticket, *hindrance)
        ticket.although = None if hindrance is None else f"{hindrance[1]}, but nothing else of this run is running"
        self._line.remove(ticket)
        now = self._clock()
        ticket.state, ticket.before = "admitted", reading
        ticket.waited_seconds, ticket.since = now - ticket.since, now
        self._changed.notify_all()
        return True

    def _hindrance(self, ticket: Ticket, reading: Reading, running: list[Ticket]) -> tuple[str, str] | None:
        """What speaks against a start: a key, and a sentence with the numbers."""
        stalled, room = reading.some_avg10, reading.room
        if stalled is not None and stalled > self._most_stalled:
            return "stalls", f"tasks waited for memory {stalled:g} % of the last 10 s, above {self._most_stalled:g} %"
        if room is None:
            return None
        promised = sum(other.need_bytes or 0 for other in running if other.state == "admitted")
        wanted = (ticket.need_bytes or 0) + self._keep_free + promised
        if room < wanted:
            return "room", f"{_mib(room)} of memory are free, and {_mib(wanted)} are needed"
        return None

    def _running(self) -> list[Ticket]:
        held = (ticket for ticket in self._tickets if ticket.state in _RUNNING)
        return [ticket for ticket in held if ticket.child is None or ticket.child.alive()]

    def _give_up(self, ticket: Ticket) -> None:
        with self._changed:
            if ticket in self._line:
                self._line.remove(ticket)
            now = self._clock()
            ticket.state, ticket.waited_seconds, ticket.since = "gave up", now - ticket.since, now
            self._changed.notify_all()

    def _started(self, ticket: Ticket, child: Owned | None) -> None:
        reading = self._read()
        with self._changed:
            if ticket.state != "admitted":
                raise ValueError(f"a ticket that is '{ticket.state}' cannot start")
            now = self._clock()
            ticket.state, ticket.after, ticket.child = "started", reading, child
            ticket.startup_seconds, ticket.since = now - ticket.since, now
            self._changed.notify_all()

    def _idle(self, ticket: Ticket) -> None:
        with self._changed:
            ticket.idle_since = self._clock()

    def _busy(self, ticket: Ticket) -> bool:
        with self._changed:
            ticket.idle_since = None
            return ticket.state in ("admitted", "started")

    def _done(self, ticket: Ticket) -> None:
        with self._changed:
            if ticket.state in ("done", "gave up"):
                return
            if ticket.state != "admitted":
                ticket.held_seconds = self._clock() - ticket.since
            ticket.state = "done"
            self._changed.notify_all()


def _must_wait(ticket: Ticket, key: str, reason: str) -> bool:
    """Write a reason down, one of each sort: the numbers in it change with every look."""
    if key not in ticket.hindered:
        ticket.hindered.add(key)
        ticket.reasons.append(reason)
    return False


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"
