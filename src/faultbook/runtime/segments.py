"""Where the time of a run went: seconds by segment, what several segments shared, and the rest that nobody explains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

_Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TimeBySegment:
    """Seconds of a run, taken apart; `explained` + `unexplained` = `total`.

    Parameters
    ----------
    seconds : dict
        By name of the segment: time during which at least one of that name was open. Two model calls side by side of
        10 s each are 10 s.
    times : dict
        By name: how often one was opened.
    total : float
        From the start of the measurement to its end, or to now.
    explained : float
        Time during which any segment was open, each second once.
    overlap : float
        By how much `seconds` add up to more than `explained`: a tool inside a model call counts for both.
    unexplained : float
        Time with no segment open.
    still_open : tuple of str
        Names of segments that had not ended; they count up to the end of the measurement, or to now.
    """

    seconds: dict[str, float]
    times: dict[str, int]
    total: float
    explained: float
    overlap: float
    unexplained: float
    still_open: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "still_open": list(self.still_open)}


class Segments:
    """Measures segments of a run: nested, side by side, in several threads. It starts when it is made.

    As a context manager it ends with its block. Any name may be a segment: queue, setup, model, tool, verification,
    cleanup and whatever else there is.

    Parameters
    ----------
    clock : callable
        Seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._start = clock()
        self._end: float | None = None
        self._open: dict[object, tuple[str, float]] = {}
        self._closed: dict[str, list[_Interval]] = {}
        self._times: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the time of a block for a segment, however the block ends."""
        opened = object()
        with self._lock:
            self._open[opened] = (name, self._clock())
            self._times[name] = self._times.get(name, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                _, began = self._open.pop(opened)
                self._closed.setdefault(name, []).append((began, self._clock()))

    def end(self) -> None:
        """Fix the end of the measurement; what comes later does not count. Later calls change nothing."""
        with self._lock:
            if self._end is None:
                self._end = self._clock()

    def summary(self) -> TimeBySegment:
        """The seconds so far."""
        with self._lock:
            now = self._clock() if self._end is None else self._end
            found = {name: [*self._closed.get(name, ()), *self._opened(name, now)] for name in self._times}
            still_open = tuple(name for name, _ in self._open.values())
            times = dict(self._times)
        within = {name: [(start, min(end, now)) for start, end in found[name] if start <= now] for name in found}
        seconds = {name: _covered(intervals) for name, intervals in within.items()}
        explained = _covered(interval for intervals in within.values() for interval in intervals)
        total = now - self._start
        return TimeBySegment(
            seconds=seconds,
            times=times,
            total=total,
            explained=explained,
            overlap=max(0.0, sum(seconds.values()) - explained),
            unexplained=max(0.0, total - explained),
            still_open=still_open,
        )

    def _opened(self, name: str, now: float) -> list[_Interval]:
        return [(began, now) for other, began in self._open.values() if other == name]


def _covered(intervals: Iterable[_Interval]) -> float:
    """The length of the union of intervals."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
