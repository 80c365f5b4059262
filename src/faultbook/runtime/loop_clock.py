"""One clock for synchronous code and event loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel


class LoopClock:
    """Outside an event loop a given clock; inside one the later of that clock and the loop's own.

    Both are counted from their first meeting. Where both are real they agree; where one jumps, it takes the other
    along.

    Parameters
    ----------
    clock : callable
        Seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def now(self) -> float:
        """Seconds, as the given clock counts them."""
        here = self._clock()
        try:
            there = anyio.current_time()
        except RuntimeError:  # no loop runs in this thread
            return here
        meetings = _met_in_this_loop()
        apart = meetings[self] = min(meetings.get(self, math.inf), there - here)
        return there - apart


# By how much the clock of the running loop is ahead of each given clock.
_Meetings = WeakKeyDictionary[LoopClock, float]
_MEETINGS: anyio.lowlevel.RunVar[_Meetings] = anyio.lowlevel.RunVar("faultbook clocks")


def _met_in_this_loop() -> _Meetings:
    found = _MEETINGS.get(None)
    if found is None:
        _MEETINGS.set(found := WeakKeyDictionary())
    return found
