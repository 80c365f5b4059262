"""Parts of a run's time, what happens when one is used up, and things that can be waited for."""

from __future__ import annotations

import concurrent.futures
import functools
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from faultbook.errors import FaultbookError

Segment = Literal["queue", "setup", "model", "tool", "verification", "cleanup"]
WORK: Final = ("queue", "setup", "model", "tool")
SEGMENTS: Final = (*WORK, "verification", "cleanup")


class DeadlineExceeded(FaultbookError):  # noqa: N818  # what happened, not a fault of anybody's
    """The time for a segment is used up.

    Parameters
    ----------
    segment : str
        Which of `SEGMENTS`.
    limit : float, optional
        The whole time limit, in seconds.
    kept : float
        Seconds of it that are kept for what comes after the segment.
    abandoned : tuple of str
        Names of functions that still run in threads nobody waits for any more.
    """

    def __init__(
        self, segment: str, limit: float | None = None, kept: float = 0.0, abandoned: tuple[str, ...] = ()
    ) -> None:
        self.segment, self.limit, self.kept, self.abandoned = segment, limit, kept, abandoned
        super().__init__(segment, limit, kept, abandoned)

    def __str__(self) -> str:
        kept = f", {self.kept:g} s of it kept for what comes after" if self.kept else ""
        limit = f" (limit {self.limit:g} s{kept})" if self.limit is not None else ""
        left = f"; left running in a thread: {', '.join(self.abandoned)}" if self.abandoned else ""
        return f"the time for {self.segment} is used up{limit}; allow more time{left}"


class AbandonedThread:
    """A function in a thread that nobody waits for any more; whatever it still returns or raises is dropped."""

    def __init__(self, name: str, segment: str) -> None:
        self.name, self.segment = name, segment
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._began = self._given_up = False

    @property
    def running(self) -> bool:
        """Whether it has still not ended."""
        return self._began and not self.ended.is_set()

    def begins(self) -> bool:
        """Whether it may begin now: a thread can come to it after all have gone."""
        with self._lock:
            self._began = not self._given_up
            return self._began

    def give_up(self) -> bool:
        """Stop waiting for it, and say whether it had begun."""
        with self._lock:
            self._given_up = True
            return self._began


class Waitable(Protocol):
    """What can be waited for as an `Event` or an owned `Child` can: True once it is over."""

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds and say whether it is over."""


def is_over(thing: Any, until: Callable[[], bool] | None, seconds: float) -> bool:
    """Wait at most `seconds` for a thing, and say whether it is over."""
    if until is not None:
        return until() or (thing.wait(seconds) and until())
    if isinstance(thing, concurrent.futures.Future):
        concurrent.futures.wait([thing], timeout=seconds)
        return thing.done()
    if isinstance(thing, subprocess.Popen):
        with suppress(subprocess.TimeoutExpired):
            thing.wait(timeout=seconds)
        return thing.returncode is not None
    if isinstance(thing, threading.Thread):
        thing.join(timeout=seconds)
        return not thing.is_alive()
    return bool(thing.wait(seconds))


def name_of(function: Callable[[], object]) -> str:
    """What a function is called, also one with some arguments given."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__))
