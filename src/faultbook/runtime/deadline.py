"""One deadline for every wait of a run, with time kept back for verification and for clean-up.

Work ends before the deadline by both reserves, verification by that of clean-up; clean-up is never cut short within its
own reserve, even if work overran the deadline. Time is that of a monotonic clock, so setting the time of day changes
nothing; it stands still while the machine sleeps.

A thread cannot be cancelled: nothing in Python interrupts it from outside. What runs in one must either ask `check`
now and then, or be waited for through `run_in_thread`, which stops waiting and says what it left running. Under asyncio
such a thread keeps the interpreter from exiting until it ends by itself (measured with anyio 4.16). What must really
end belongs in a child process.
"""

from __future__ import annotations

import concurrent.futures
import functools
import math
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, overload

import anyio
import anyio.to_thread

from faultbook.errors import one_of
from faultbook.runtime.loop_clock import LoopClock
from faultbook.runtime.waiting import (
    SEGMENTS,
    WORK,
    AbandonedThread,
    DeadlineExceeded,
    Segment,
    Waitable,
    is_over,
    name_of,
)

__all__ = ["SEGMENTS", "WORK", "AbandonedThread", "Deadline", "DeadlineExceeded", "Segment", "Waitable"]

Result = TypeVar("Result")

_TICK = 1e-6  # seconds that are no time: sums of clock readings are no more exact
_SLICE = 0.2  # seconds that a wait lasts at most before the clock is asked again


class Deadline:
    """A point of time handed to every wait; make one with `Deadline.after`.

    One object serves synchronous code and event loops: outside a loop the given clock counts, inside one the later of
    that clock and the loop's own, both counted from their first meeting. Where both are real they agree; where one
    jumps (in a test), it takes the other along.

    Parameters
    ----------
    end : float
        Time of `clock` at which all is over; infinite for no deadline.
    limit : float, optional
        Seconds that were allowed, for messages.
    reserve_verification, reserve_cleanup : float
        Seconds kept back.
    clock : callable
        Seconds that never run backwards.
    """

    def __init__(
        self,
        end: float,
        *,
        limit: float | None,
        reserve_verification: float,
        reserve_cleanup: float,
        clock: Callable[[], float],
    ) -> None:
        self.limit, self.reserve_verification, self.reserve_cleanup = limit, reserve_verification, reserve_cleanup
        self._end, self._clock = end, LoopClock(clock)
        self._cleanup_began = math.inf
        self._abandoned: list[AbandonedThread] = []
        self._clock.now()  # meets the clock of the loop it is made in

    @classmethod
    def after(
        cls,
        seconds: float | None,
        *,
        reserve_verification: float = 0.0,
        reserve_cleanup: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> Deadline:
        """Make a deadline `seconds` from now.

        Parameters
        ----------
        seconds : float or None
            None for no deadline. With 0, or with less than the reserves, no work starts; clean-up still runs.
        reserve_verification, reserve_cleanup : float
            Seconds of it kept for these, at least 0. Without a reserve clean-up starts all the same, and ends at its
            first wait after the deadline.
        clock : callable
            Seconds that never run backwards.

        Returns
        -------
        Deadline
            Shared as it is by everything that waits on behalf of the run.

        Raises
        ------
        ValueError
            If a number of seconds is negative or not a number.
        """
        allowed = math.inf if seconds is None else seconds
        for number in (allowed, reserve_verification, reserve_cleanup):
            if not number >= 0:
                raise ValueError(f"seconds must be 0 or more; found {number}")
        if math.isinf(reserve_verification + reserve_cleanup):
            raise ValueError("what is reserved must be finite")
        return cls(
            clock() + allowed,
            limit=None if math.isinf(allowed) else allowed,
            reserve_verification=reserve_verification,
            reserve_cleanup=reserve_cleanup,
            clock=clock,
        )

    def remaining(self, segment: Segment) -> float:
        """Seconds left for a segment, at least 0; infinite without a deadline.

        Whoever asks for clean-up's time after clean-up's reserve has begun thereby begins it: the reserve is counted
        from the first such question, once for all clean-up of the run, so that it neither shrinks because work overran
        the deadline nor grows with every part that cleans up.
        """
        return max(0.0, self._left(segment))

    def expired(self, segment: Segment) -> bool:
        """Whether no time is left for a segment; asks as `remaining` does."""
        return self._left(segment) < _TICK

    def check(self, segment: Segment) -> None:
        """Raise `DeadlineExceeded` if no time is left for a segment; asks as `remaining` does."""
        if self.expired(segment):
            raise self._exceeded(segment)

    @property
    def abandoned(self) -> tuple[AbandonedThread, ...]:
        """What `run_in_thread` stopped waiting for, in order."""
        return tuple(self._abandoned)

    @overload
    def wait(self, thing: concurrent.futures.Future[Result], segment: Segment) -> Result: ...
    @overload
    def wait(self, thing: subprocess.Popen[Any], segment: Segment) -> int: ...
    @overload
    def wait(self, thing: threading.Condition, segment: Segment, *, until: Callable[[], bool]) -> None: ...
    @overload
    def wait(self, thing: threading.Thread | Waitable, segment: Segment) -> None: ...

    def wait(self, thing: Any, segment: Segment, *, until: Callable[[], bool] | None = None) -> Any:
        """Wait in synchronous code until a thing is over or the segment's time is used up.

        Parameters
        ----------
        thing : future, Popen, Condition, Thread, Event or Child
            A process is waited for, never ended; a condition must be held, as for its own `wait`.
        segment : str
            On whose time.
        until : callable
            For a condition only: what is waited for. A notification without a state to look at can be missed.

        Returns
        -------
        object
            A future's result, a process's return code, else None. What is over already counts, however late it is.

        Raises
        ------
        DeadlineExceeded
            When the time is used up first.
        """
        if isinstance(thing, threading.Condition) == (until is None):
            raise ValueError("'until' belongs to a condition, and a condition needs it")
        over = functools.partial(is_over, thing, until)
        while not over(min(self.remaining(segment), _SLICE)):
            self.check(segment)
        if isinstance(thing, concurrent.futures.Future):
            return thing.result()
        return thing.returncode if isinstance(thing, subprocess.Popen) else None

    @asynccontextmanager
    async def scope(self, segment: Segment) -> AsyncIterator[anyio.CancelScope]:
        """Give what is awaited inside the segment's time and no more.

        Scopes nest, and the tighter one wins. That of clean-up is shielded from every scope around it and bounded by
        its own time alone; it always starts.

        Yields
        ------
        CancelScope
            The scope, to look at.

        Raises
        ------
        DeadlineExceeded
            Before anything starts if no time is left (never for clean-up), and when the time is used up inside. A body
            that ends without having been interrupted is done, however late.
        """
        if segment != "cleanup":
            self.check(segment)
        end = anyio.current_time() + self._left(segment)
        with anyio.CancelScope(deadline=end, shield=segment == "cleanup") as scope:
            yield scope
        if scope.cancelled_caught and anyio.current_time() >= scope.deadline:
            raise self._exceeded(segment)

    async def run_in_thread(self, function: Callable[[], Result], segment: Segment) -> Result:
        """Run a function in a thread and stop waiting for it when the segment's time is used up.

        The thread itself goes on: it is kept in `abandoned` and named in the exception.

        Raises
        ------
        DeadlineExceeded
            When the time is used up, or was before.
        """
        thread = AbandonedThread(name_of(function), segment)

        def run() -> Result:
            if not thread.begins():
                raise self._exceeded(segment)  # to nobody
            try:
                return function()
            finally:
                thread.ended.set()

        async def waited() -> Result:
            try:
                return await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
            except anyio.get_cancelled_exc_class():
                if thread.give_up():
                    self._abandoned.append(thread)
                raise

        try:
            async with self.scope(segment):
                result = await waited()
        except DeadlineExceeded:
            if thread in self._abandoned:
                raise self._exceeded(segment, (thread.name,)) from None
            raise
        return result

    def _left(self, segment: Segment) -> float:
        now = self._clock.now()
        if segment in WORK:
            return self._end - self.reserve_verification - self.reserve_cleanup - now
        if segment == "verification":
            return self._end - self.reserve_cleanup - now
        if segment != "cleanup":
            raise ValueError(one_of("segment", segment, SEGMENTS))
        if now >= self._end - self.reserve_cleanup:
            self._cleanup_began = min(self._cleanup_began, now)
        promised = self._cleanup_began + self.reserve_cleanup if math.isfinite(self._cleanup_began) else -math.inf
        return max(self._end, promised) - now

    def _exceeded(self, segment: Segment, abandoned: tuple[str, ...] = ()) -> DeadlineExceeded:
        after = {"verification": self.reserve_cleanup, "cleanup": 0.0}
        kept = after.get(segment, self.reserve_verification + self.reserve_cleanup)
        return DeadlineExceeded(segment, self.limit, kept, abandoned)
