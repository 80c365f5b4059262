"""Where time went: nested, side by side, in threads, still open; totals that add up."""

from __future__ import annotations

import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.runtime.segments import Segments


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_the_rest_is_unexplained(clock: FakeClock) -> None:
    with Segments(clock) as segments:
        clock.now += 1
        with segments.measure("queue"):
            clock.now += 2
        with segments.measure("model"):
            clock.now += 4
        with segments.measure("model"):
            clock.now += 8
        clock.now += 16
    clock.now += 1000  # after the end
    found = segments.summary()
    assert found.seconds == {"queue": 2, "model": 12}
    assert found.times == {"queue": 1, "model": 2}
    assert (found.total, found.explained, found.unexplained, found.overlap) == (31, 14, 17, 0)
    assert found.still_open == ()


def test_what_is_nested_counts_for_both_and_is_explained_once(clock: FakeClock) -> None:
    segments = Segments(clock)
    with segments.measure("model"):
        clock.now += 1
        with segments.measure("tool"):
            clock.now += 2
        with segments.measure("model"):  # within itself
            clock.now += 4
    found = segments.summary()
    assert found.seconds == {"model": 7, "tool": 2}
    assert (found.explained, found.overlap, found.unexplained) == (7, 2, 0)


def test_side_by_side_in_threads(clock: FakeClock) -> None:
    segments = Segments(clock)
    opened, close = threading.Barrier(3), threading.Event()

    def call() -> None:
        with segments.measure("model"):
            opened.wait(60)
            close.wait(60)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    opened.wait(60)
    clock.now += 10
    assert segments.summary().still_open == ("model", "model")
    close.set()
    for thread in threads:
        thread.join()
    found = segments.summary()
    assert (found.seconds, found.times, found.overlap) == ({"model": 10}, {"model": 2}, 0)


def test_open_segments_count_up_to_now(clock: FakeClock) -> None:
    segments = Segments(clock)
    with segments.measure("tool"):
        clock.now += 3
        found = segments.summary()
        assert (found.seconds, found.still_open, found.total) == ({"tool": 3}, ("tool",), 3)
        segments.end()
        clock.now += 5
    segments.end()  # changes nothing any more
    found = segments.summary()
    assert (found.seconds, found.total, found.still_open) == ({"tool": 3}, 3, ())
    with segments.measure("late"):
        clock.now += 1
    assert segments.summary().seconds == {"tool": 3, "late": 0}


def test_a_block_that_fails_is_measured(clock: FakeClock) -> None:
    segments = Segments(clock)

    @segments.measure("tool")
    def fail() -> None:
        clock.now += 3
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert segments.summary().seconds == {"tool": 3}


def test_nothing_measured(clock: FakeClock) -> None:
    segments = Segments(clock)
    clock.now += 2
    found = segments.summary()
    assert (found.seconds, found.total, found.explained, found.unexplained) == ({}, 2, 0, 2)


def test_the_time_of_day_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = Segments()
    with segments.measure("tool"):
        monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= segments.summary().seconds["tool"] < 60


def test_the_record_is_plain(clock: FakeClock) -> None:
    segments = Segments(clock)
    with segments.measure("tool"):
        clock.now += 3
    record = segments.summary().record()
    assert json.loads(json.dumps(record)) == record
    assert record["seconds"] == {"tool": 3}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 20)), max_size=8))
def test_sums_hold_for_any_overlap(plan: list[tuple[str, int, int]]) -> None:
    clock = FakeClock()
    segments = Segments(clock)
    opened = []
    moments = sorted({moment for _, start, length in plan for moment in (start, start + length)})
    for moment in moments:
        clock.now = 100.0 + moment
        for name, start, length in plan:
            if start == moment:
                block = segments.measure(name)
                block.__enter__()
                opened.append((start + length, block))
        for end, block in opened:
            if end == moment:
                block.__exit__(None, None, None)
    found = segments.summary()
    covered = {
        name: {s for n, start, length in plan if n == name for s in range(start, start + length)} for name in "abc"
    }
    assert found.seconds == {name: len(covered[name]) for name in "abc" if any(n == name for n, _, _ in plan)}
    assert found.explained == len(set().union(*covered.values()))
    assert found.explained + found.unexplained == found.total == (moments[-1] if moments else 0)
    assert sum(found.seconds.values()) - found.overlap == found.explained
