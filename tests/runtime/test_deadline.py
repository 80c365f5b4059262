"""One deadline: what ends when, on a clock that jumps, on real threads and processes, in and outside event loops."""

from __future__ import annotations

import concurrent.futures
import math
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import pytest
from trio.testing import MockClock

from faultbook.runtime.deadline import SEGMENTS, Deadline, DeadlineExceeded

LONG = 60.0  # a real wait that is never waited for to its end


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def on_jumping_clock(function: Callable[[], Awaitable[None]]) -> None:
    """Run on a clock that jumps to the next thing to do, so that no second of it is waited for."""
    anyio.run(function, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- arithmetic ----------------------------------------------------------------------------------------------------


def test_work_ends_before_verification_and_that_before_cleanup(clock: FakeClock) -> None:
    deadline = Deadline.after(900, reserve_verification=60, reserve_cleanup=30, clock=clock)
    assert {segment: deadline.remaining(segment) for segment in SEGMENTS} == {
        "queue": 810,
        "setup": 810,
        "model": 810,
        "tool": 810,
        "verification": 870,
        "cleanup": 900,
    }
    clock.now += 810
    assert [segment for segment in SEGMENTS if deadline.expired(segment)] == ["queue", "setup", "model", "tool"]
    clock.now += 60
    assert (deadline.remaining("verification"), deadline.remaining("cleanup")) == (0, 30)
    clock.now += 30
    assert deadline.expired("cleanup")


def test_a_negative_rest_is_none(clock: FakeClock) -> None:
    deadline = Deadline.after(1, clock=clock)
    clock.now += 100
    assert deadline.remaining("model") == 0


def test_cleanup_has_its_reserve_even_if_work_overran(clock: FakeClock) -> None:
    deadline = Deadline.after(900, reserve_cleanup=30, clock=clock)
    clock.now += 5000  # a thread that nobody could cancel
    assert deadline.remaining("cleanup") == 30
    clock.now += 10
    assert deadline.remaining("cleanup") == 20  # counted from the first question, once for all of clean-up
    clock.now += 20
    assert deadline.expired("cleanup")
    with pytest.raises(DeadlineExceeded, match="cleanup"):
        deadline.check("cleanup")


def test_asking_early_begins_nothing(clock: FakeClock) -> None:
    deadline = Deadline.after(900, reserve_cleanup=30, clock=clock)
    assert deadline.remaining("cleanup") == 900
    clock.now += 2000
    assert deadline.remaining("cleanup") == 30


def test_without_a_deadline_nothing_ends(clock: FakeClock) -> None:
    for deadline in (Deadline.after(None, reserve_cleanup=30, clock=clock), Deadline.after(math.inf, clock=clock)):
        clock.now += 1e12
        assert {deadline.remaining(segment) for segment in SEGMENTS} == {math.inf}
        for segment in SEGMENTS:
            deadline.check(segment)


@pytest.mark.parametrize("seconds", [0, 20])
def test_no_work_starts_without_time_but_cleanup_does(seconds: float, clock: FakeClock) -> None:
    deadline = Deadline.after(seconds, reserve_verification=10, reserve_cleanup=15, clock=clock)
    assert [deadline.expired(segment) for segment in ("queue", "model", "tool")] == [True] * 3
    assert deadline.expired("verification") is (seconds == 0)
    assert deadline.remaining("cleanup") == max(seconds, 15)


@pytest.mark.parametrize(
    "arguments",
    [
        {"seconds": -1},
        {"seconds": math.nan},
        {"seconds": 1, "reserve_cleanup": -1},
        {"seconds": 1, "reserve_verification": math.inf},
    ],
)
def test_seconds_must_make_sense(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Deadline.after(**arguments)


def test_an_unknown_segment_is_no_segment(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="'segment' must be one of 'queue'"):
        Deadline.after(9, clock=clock).remaining("clean-up")


def test_the_message_says_limit_and_reserve(clock: FakeClock) -> None:
    deadline = Deadline.after(900, reserve_verification=60, reserve_cleanup=30.5, clock=clock)
    clock.now += 1000
    with pytest.raises(DeadlineExceeded) as found:
        deadline.check("model")
    wanted = "the time for model is used up (limit 900 s, 90.5 s of it kept for what comes after); allow more time"
    assert (found.value.segment, str(found.value)) == ("model", wanted)
    copied = pickle.loads(pickle.dumps(found.value))  # noqa: S301  # our own bytes: it must come back from other processes
    assert (copied.segment, str(copied)) == ("model", wanted)
    assert not isinstance(found.value, OSError)  # which TimeoutError is, and `except OSError` would swallow it


def test_the_time_of_day_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline.after(LONG, reserve_cleanup=1)
    for day in (0.0, 4e9):
        monkeypatch.setattr(time, "time", lambda day=day: day)
        assert 0 < deadline.remaining("model") <= LONG - 1
    deadline.check("tool")


# ---- scopes --------------------------------------------------------------------------------------------------------


def test_900_seconds_pass_at_once() -> None:
    seen: dict[str, float] = {}

    async def run() -> None:
        start = anyio.current_time()
        deadline = Deadline.after(900, reserve_verification=60, reserve_cleanup=30)

        def note(name: str) -> None:
            seen[name] = anyio.current_time() - start

        with pytest.raises(DeadlineExceeded, match="model"):
            async with deadline.scope("model"):
                await anyio.sleep_forever()
        note("model")
        assert deadline.expired("tool")  # the question asked synchronously has the same answer
        assert deadline.remaining("verification") == pytest.approx(60, abs=0.5)
        with pytest.raises(DeadlineExceeded, match="verification"):
            async with deadline.scope("verification"):
                await anyio.sleep_forever()
        note("verification")
        with pytest.raises(DeadlineExceeded, match="cleanup"):
            async with deadline.scope("cleanup"):
                await anyio.sleep_forever()
        note("cleanup")

    began = time.monotonic()
    on_jumping_clock(run)
    # The injected clock is real and counts too, so ends may come early by what the test itself took.
    took = time.monotonic() - began
    assert seen == {
        name: pytest.approx(end, abs=took) for name, end in (("model", 810), ("verification", 870), ("cleanup", 900))
    }


def test_a_deadline_made_before_the_loop_goes_on_in_it() -> None:
    deadline = Deadline.after(900)

    async def run() -> None:
        await anyio.sleep(1000)  # nobody has asked before: the deadline meets this clock only now
        assert not deadline.expired("model")
        await anyio.sleep(899)
        assert not deadline.expired("model")
        await anyio.sleep(2)
        assert deadline.expired("model")

    on_jumping_clock(run)


def test_an_injected_clock_that_jumps_ends_work_in_a_loop_too(clock: FakeClock, backend: str) -> None:
    async def run() -> None:
        deadline = Deadline.after(900, clock=clock)
        clock.now += 901
        with pytest.raises(DeadlineExceeded):
            async with deadline.scope("model"):
                pytest.fail("nothing starts")

    anyio.run(run, backend=backend)


def test_the_tighter_scope_wins() -> None:
    async def run() -> None:
        start = anyio.current_time()
        short, long = Deadline.after(5), Deadline.after(900)
        with pytest.raises(DeadlineExceeded) as found:
            async with short.scope("tool"), long.scope("model"):
                await anyio.sleep_forever()
        assert found.value.segment == "tool"
        assert anyio.current_time() - start == pytest.approx(5, abs=0.5)
        with anyio.move_on_after(7) as outer:
            async with long.scope("model"):
                await anyio.sleep_forever()
        assert outer.cancelled_caught
        assert anyio.current_time() - start == pytest.approx(12, abs=0.5)

    on_jumping_clock(run)


def test_cleanup_is_shielded_from_what_ended_the_work() -> None:
    cleaned = []

    async def run() -> None:
        deadline = Deadline.after(900, reserve_cleanup=30)

        async def work() -> None:
            async with deadline.scope("model"):
                try:
                    await anyio.sleep_forever()
                finally:
                    async with deadline.scope("cleanup"):
                        await anyio.sleep(29)
                        cleaned.append("whole")

        with pytest.raises(DeadlineExceeded, match="model"):
            await work()
        with anyio.CancelScope() as outer:
            outer.cancel()
            async with deadline.scope("cleanup"):
                await anyio.sleep(0.1)
                cleaned.append("cancelled from outside")

    on_jumping_clock(run)
    assert cleaned == ["whole", "cancelled from outside"]


def test_a_deadline_of_0_starts_nothing_but_cleanup(backend: str) -> None:
    done = []

    async def run() -> None:
        deadline = Deadline.after(0, reserve_cleanup=LONG)
        for segment in ("queue", "model", "tool", "verification"):
            with pytest.raises(DeadlineExceeded, match=segment):
                async with deadline.scope(segment):
                    done.append(segment)
        with pytest.raises(DeadlineExceeded):
            await deadline.run_in_thread(lambda: done.append("thread"), "tool")
        async with deadline.scope("cleanup"):
            await anyio.sleep(0)
            done.append("cleanup")

    anyio.run(run, backend=backend)
    assert done == ["cleanup"]


def test_without_a_reserve_cleanup_ends_at_its_first_wait() -> None:
    done = []

    async def run() -> None:
        async with Deadline.after(0).scope("cleanup"):
            done.append("started")
            await anyio.sleep(1)
            done.append("waited")

    with pytest.raises(DeadlineExceeded, match="cleanup"):
        on_jumping_clock(run)
    assert done == ["started"]


def test_what_was_not_interrupted_is_done_however_late() -> None:
    async def run() -> None:
        deadline = Deadline.after(900)
        async with deadline.scope("model"):
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1000)

    on_jumping_clock(run)


def test_a_scope_cancelled_by_hand_is_not_a_deadline(backend: str) -> None:
    async def run() -> None:
        async with Deadline.after(LONG).scope("tool") as scope:
            scope.cancel()
            await anyio.sleep(LONG)

    anyio.run(run, backend=backend)


def test_an_error_inside_is_itself(backend: str) -> None:
    async def run() -> None:
        with pytest.raises(KeyError):
            async with Deadline.after(LONG).scope("tool"):
                raise KeyError

    anyio.run(run, backend=backend)


def test_partial_results_are_kept() -> None:
    kept = []

    async def run() -> None:
        async with Deadline.after(10.5).scope("model"):
            for number in range(100):
                await anyio.sleep(1)
                kept.append(number)

    with pytest.raises(DeadlineExceeded):
        on_jumping_clock(run)
    assert kept == list(range(10))


# ---- threads -------------------------------------------------------------------------------------------------------


def test_a_thread_gives_its_result(backend: str) -> None:
    deadline = Deadline.after(LONG)
    assert anyio.run(lambda: deadline.run_in_thread(lambda: 42, "tool"), backend=backend) == 42
    assert deadline.abandoned == ()


def test_a_thread_raises_its_own_error(backend: str) -> None:
    def broken() -> None:
        raise KeyError("own")

    deadline = Deadline.after(LONG)
    with pytest.raises(KeyError, match="own"):
        anyio.run(lambda: deadline.run_in_thread(broken, "tool"), backend=backend)
    assert deadline.abandoned == ()


def test_a_thread_that_cannot_be_cancelled_is_abandoned_and_named(backend: str) -> None:
    release, late = threading.Event(), []

    def stubborn() -> None:
        release.wait(LONG)
        late.append("ended by itself")

    async def run() -> None:
        deadline = Deadline.after(0.5)
        with pytest.raises(DeadlineExceeded, match=r"left running in a thread: .*stubborn") as found:
            await deadline.run_in_thread(stubborn, "tool")
        assert found.value.abandoned[0].endswith("stubborn")
        (thread,) = deadline.abandoned
        assert (thread.segment, thread.running, late) == ("tool", True, [])
        release.set()
        assert thread.ended.wait(LONG)
        assert (thread.running, late) == (False, ["ended by itself"])

    try:
        anyio.run(run, backend=backend)
    finally:
        release.set()


def test_a_thread_given_up_from_outside_is_noted_too(backend: str) -> None:
    release = threading.Event()

    began = threading.Event()

    async def run() -> None:
        deadline = Deadline.after(None)
        async with anyio.create_task_group() as group:
            group.start_soon(deadline.run_in_thread, lambda: (began.set(), release.wait(LONG)), "tool")
            while not began.is_set():
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()
        assert [thread.running for thread in deadline.abandoned] == [True]
        release.set()

    try:
        anyio.run(run, backend=backend)
    finally:
        release.set()


def test_what_never_began_is_not_abandoned_and_never_begins(backend: str) -> None:
    ran, release = [], threading.Event()

    async def run() -> None:
        limiter = anyio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, release.wait, LONG)
            while not limiter.borrowed_tokens:
                await anyio.sleep(0.001)
            deadline = Deadline.after(0.02)
            with pytest.raises(DeadlineExceeded) as found:
                await deadline.run_in_thread(lambda: ran.append("late"), "tool")
            assert (found.value.abandoned, deadline.abandoned) == ((), ())
            release.set()

    try:
        anyio.run(run, backend=backend)
    finally:
        release.set()
    assert ran == []


def test_a_thread_that_asks_ends_itself(backend: str) -> None:
    def polite(deadline: Deadline) -> None:
        while True:
            deadline.check("tool")
            time.sleep(0.001)

    async def run() -> None:
        deadline = Deadline.after(0.05)
        with pytest.raises(DeadlineExceeded, match="tool"):
            await anyio.to_thread.run_sync(polite, deadline)

    anyio.run(run, backend=backend)


# ---- synchronous waits ---------------------------------------------------------------------------------------------


def test_waiting_for_a_future() -> None:
    deadline = Deadline.after(LONG)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert deadline.wait(pool.submit(lambda: 42), "tool") == 42
        failed = pool.submit(lambda: {}["own"])
        with pytest.raises(KeyError):
            deadline.wait(failed, "tool")


def test_a_timeout_inside_a_future_is_its_own() -> None:
    def broken() -> None:
        raise TimeoutError("own")

    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(TimeoutError, match="own"):
        Deadline.after(LONG).wait(pool.submit(broken), "tool")


def test_waiting_for_a_process_ends_with_the_time_not_with_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with pytest.raises(DeadlineExceeded, match="tool"):
            Deadline.after(0.05).wait(process, "tool")
        assert process.poll() is None
        process.communicate(b"\n")
        assert Deadline.after(0).wait(process, "tool") == 0  # what is over counts, however late


def test_waiting_for_a_condition_needs_to_know_what_for() -> None:
    changed, state = threading.Condition(), []

    def change() -> None:
        with changed:
            state.append(1)
            changed.notify_all()

    thread = threading.Thread(target=change)
    with changed:
        thread.start()
        Deadline.after(LONG).wait(changed, "queue", until=lambda: bool(state))
        with pytest.raises(DeadlineExceeded, match="queue"):
            Deadline.after(0.02).wait(changed, "queue", until=lambda: len(state) > 1)
        with pytest.raises(ValueError, match="until"):
            Deadline.after(LONG).wait(changed, "queue")
    Deadline.after(LONG).wait(thread, "queue")
    assert not thread.is_alive()


def test_waiting_for_an_event_and_a_thread() -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait, args=(LONG,))
    thread.start()
    for thing in (event, thread):
        with pytest.raises(DeadlineExceeded):
            Deadline.after(0.01).wait(thing, "tool")
    event.set()
    for thing in (event, thread):
        Deadline.after(LONG).wait(thing, "tool")


def test_a_wait_follows_the_injected_clock(clock: FakeClock) -> None:
    deadline = Deadline.after(900, clock=clock)
    threading.Timer(0.05, lambda: setattr(clock, "now", 2000.0)).start()
    with pytest.raises(DeadlineExceeded, match="tool"):
        deadline.wait(threading.Event(), "tool")  # without looking at the clock again this would wait for 900 s


def test_waiting_without_a_deadline() -> None:
    event = threading.Event()
    threading.Timer(0.02, event.set).start()
    Deadline.after(None).wait(event, "tool")
