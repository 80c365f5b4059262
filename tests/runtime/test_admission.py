"""Who may start: with made-up readings and clocks, in real threads, with real children."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import pytest

from faultbook.runtime.admission import MIB, Admission, Ticket
from faultbook.runtime.children import Child
from faultbook.runtime.deadline import Deadline, DeadlineExceeded
from faultbook.runtime.memory import Reading, Stall

LONG = 60.0
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Machine:
    """Memory as a test wants it."""

    def __init__(self, free: int | None = 10_000 * MIB, stalled: float | None = 0.0) -> None:
        self.free, self.stalled = free, stalled

    def __call__(self) -> Reading:
        some = None if self.stalled is None else Stall(self.stalled, 0.0, 0.0, 0)
        return Reading(host_some=some, host_available=self.free)


class Fake:
    """A child that is no process."""

    def __init__(self, error: Exception | None = None) -> None:
        self.lives, self.ended, self.error = True, 0, error

    def alive(self) -> bool:
        return self.lives

    def terminate(self, seconds: float) -> None:
        self.lives, self.ended = False, self.ended + 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


class Asking(threading.Thread):
    """Asks for leave in a thread of its own; `waits` is set when it has been told why it has to wait."""

    def __init__(self, admission: Admission, need_bytes: int | None = None, deadline: Deadline | None = None) -> None:
        super().__init__(daemon=True)
        self.waits, self.told = threading.Event(), []
        self.ticket: Ticket | None = None
        self.error: BaseException | None = None
        self._ask = lambda: admission.admit("kernel", need_bytes=need_bytes, deadline=deadline, on_wait=self._tell)
        self.start()

    def _tell(self, reason: str) -> None:
        self.told.append(reason)
        self.waits.set()

    def run(self) -> None:
        try:
            self.ticket = self._ask()
        except BaseException as error:
            self.error = error


# ---- waiting -------------------------------------------------------------------------------------------------------


def test_what_fits_starts_at_once_and_is_measured(clock: FakeClock, machine: Machine) -> None:
    admission = Admission(clock=clock, read=machine)
    told: list[str] = []
    with admission.admit("kernel", need_bytes=100 * MIB, on_wait=told.append) as ticket:
        assert (ticket.state, admission.running()) == ("admitted", 1)
        clock.now += 2.5
        machine.free, machine.stalled = 9_000 * MIB, 4.0
        ticket.started()
        clock.now += 60
    assert (told, admission.running()) == ([], 0)
    (record,) = admission.records()
    assert json.loads(json.dumps(record)) == record
    assert (record["kind"], record["number"], record["state"]) == ("kernel", 1, "done")
    assert (record["waited_seconds"], record["startup_seconds"], record["held_seconds"]) == (0, 2.5, 60)
    assert (record["although"], record["reasons"], record["reaped"], record["need_bytes"]) == (
        None,
        [],
        False,
        100 * MIB,
    )
    assert record["before"]["host_available"] == 10_000 * MIB
    assert record["after"]["host_available"] == 9_000 * MIB
    assert record["after"]["host_some"]["avg10"] == 4.0


def test_a_start_waits_for_memory_and_comes_late_rather_than_failing(clock: FakeClock, machine: Machine) -> None:
    admission = Admission(clock=clock, read=machine, keep_free=100 * MIB)
    first = admission.admit("kernel")
    first.started()
    machine.free = 250 * MIB
    asking = Asking(admission, need_bytes=200 * MIB)
    assert asking.waits.wait(LONG)
    assert asking.told == ["250 MiB of memory are free, and 300 MiB are needed"]
    clock.now += 7
    machine.stalled = 25.0
    until(lambda: len(admission.records()[1]["reasons"]) == 2)
    machine.free, machine.stalled = 300 * MIB, 10.0  # the limit itself is allowed
    asking.join(LONG)
    assert asking.ticket is not None
    assert asking.told == asking.ticket.reasons[:1]  # told once; what came later is recorded
    assert asking.ticket.reasons[1] == "tasks waited for memory 25 % of the last 10 s, above 10 %"
    assert (asking.ticket.waited_seconds, asking.ticket.although) == (7, None)


def test_what_has_not_started_yet_keeps_its_memory(machine: Machine) -> None:
    machine.free = 1000 * MIB
    admission = Admission(read=machine, keep_free=0)
    first = admission.admit("kernel", need_bytes=600 * MIB)
    asking = Asking(admission, need_bytes=600 * MIB)
    assert asking.waits.wait(LONG)
    assert asking.told == ["1,000 MiB of memory are free, and 1,200 MiB are needed"]
    first.started()  # it has what it needs: now the reading counts
    asking.join(LONG)
    assert asking.ticket is not None


def test_places_are_counted(machine: Machine) -> None:
    admission = Admission(at_once=2, read=machine)
    first, _ = admission.admit("kernel"), admission.admit("tool server")
    asking = Asking(admission)
    assert asking.waits.wait(LONG)
    assert asking.told == ["2 of 2 places are taken"]
    first.done()
    first.done()  # gives back one place, not two
    asking.join(LONG)
    assert (asking.ticket is not None, admission.running()) == (True, 2)


def test_at_least_one_must_be_able_to_run() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Admission(at_once=0)


@pytest.mark.parametrize(("free", "stalled"), [(0, 0.0), (10_000 * MIB, 99.0), (0, None)])
def test_nobody_starves_the_first_runs_whatever_the_pressure(free: int, stalled: float | None) -> None:
    admission = Admission(read=Machine(free, stalled))
    ticket = admission.admit("kernel", deadline=Deadline.after(LONG))
    assert ticket.although is not None
    assert ticket.although.endswith("but nothing else of this run is running")
    assert ticket.record()["although"] == ticket.although
    asking = Asking(admission)
    assert asking.waits.wait(LONG)
    ticket.done()
    asking.join(LONG)  # and so does each after it, one by one
    assert asking.ticket is not None
    assert asking.ticket.although is not None


def test_more_than_the_machine_has_runs_alone(machine: Machine) -> None:
    ticket = Admission(read=machine).admit("kernel", need_bytes=10**15)
    assert ticket.although is not None


def test_where_nothing_is_known_of_memory_nothing_waits() -> None:
    admission = Admission(read=Machine(None, None))
    tickets = [admission.admit("kernel", need_bytes=10**15) for _ in range(5)]
    assert [ticket.although for ticket in tickets] == [None] * 5
    assert tickets[0].record()["before"] == {}


def test_a_dead_child_holds_no_place(machine: Machine) -> None:
    admission = Admission(at_once=1, read=machine)
    child = Fake()
    admission.admit("kernel").started(child)
    asking = Asking(admission)
    assert asking.waits.wait(LONG)
    child.lives = False  # nobody says so
    asking.join(LONG)
    assert asking.ticket is not None


# ---- deadlines -----------------------------------------------------------------------------------------------------


def test_a_deadline_ends_the_wait_and_the_line_goes_on(machine: Machine) -> None:
    admission = Admission(at_once=1, read=machine)
    first = admission.admit("kernel")
    early = FakeClock()
    impatient = Asking(admission, deadline=Deadline.after(900, clock=early))
    assert impatient.waits.wait(LONG)
    patient = Asking(admission)
    assert patient.waits.wait(LONG)
    assert patient.told == ["1 asked before it"]
    early.now += 901
    impatient.join(LONG)
    assert isinstance(impatient.error, DeadlineExceeded)
    assert impatient.error.segment == "queue"
    first.done()
    patient.join(LONG)
    assert patient.ticket is not None
    records = admission.records()
    assert [record["state"] for record in records] == ["done", "gave up", "admitted"]
    assert records[1]["reasons"] == ["1 of 1 places are taken"]
    assert records[1]["waited_seconds"] >= 0


def test_a_deadline_of_0_admits_nothing(machine: Machine) -> None:
    admission = Admission(read=machine)
    with pytest.raises(DeadlineExceeded, match="queue"):
        admission.admit("kernel", deadline=Deadline.after(0))
    assert admission.running() == 0
    assert admission.admit("kernel").state == "admitted"


def test_a_listener_that_fails_leaves_the_line(machine: Machine) -> None:
    admission = Admission(at_once=1, read=machine)
    first = admission.admit("kernel")

    def fail(reason: str) -> None:
        raise KeyError(reason)

    with pytest.raises(KeyError):
        admission.admit("kernel", on_wait=fail)
    first.done()
    assert admission.admit("kernel").state == "admitted"


def test_a_listener_may_look(machine: Machine) -> None:
    admission = Admission(at_once=1, read=machine)
    first = admission.admit("kernel")
    seen = []

    def look(reason: str) -> None:
        seen.append((reason, admission.running(), len(admission.records())))
        first.done()

    admission.admit("kernel", on_wait=look)
    assert seen == [("1 of 1 places are taken", 1, 2)]


# ---- order ---------------------------------------------------------------------------------------------------------


def test_first_come_first_served_even_if_a_later_one_would_fit(machine: Machine) -> None:
    machine.free = 500 * MIB
    admission = Admission(read=machine, keep_free=0)
    first = admission.admit("kernel")
    first.started()
    asking = []
    for need in (900, 1, 1):
        asking.append(Asking(admission, need_bytes=need * MIB))
        assert asking[-1].waits.wait(LONG)
    assert [one.told[0] for one in asking[1:]] == ["1 asked before it", "2 asked before it"]
    machine.free = 1000 * MIB
    for one in asking:
        one.join(LONG)
    numbers = [one.ticket.number for one in asking if one.ticket is not None]
    assert numbers == [2, 3, 4]


def test_many_threads_never_take_more_places_than_there_are(machine: Machine) -> None:
    admission = Admission(at_once=3, read=machine)
    lock, inside, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(5):
            with admission.admit("worker") as ticket:
                with lock:
                    inside += 1
                    most = max(most, inside)
                ticket.started()
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert (inside, admission.running()) == (0, 0)
    assert 1 <= most <= 3
    records = admission.records()
    assert [record["number"] for record in records] == list(range(1, 61))
    assert {record["state"] for record in records} == {"done"}


# ---- idle children -------------------------------------------------------------------------------------------------


def test_only_own_children_that_have_been_idle_for_long_are_ended(clock: FakeClock, machine: Machine) -> None:
    admission = Admission(clock=clock, read=machine)
    children = {name: Fake() for name in ("old", "young", "busy", "never idle")}
    tickets = {name: admission.admit(name) for name in children}
    for name, child in children.items():
        tickets[name].started(child)
    tickets["old"].idle()
    tickets["busy"].idle()
    clock.now += 100
    tickets["young"].idle()
    assert tickets["busy"].busy()
    waiting_for_its_child = admission.admit("not started")
    waiting_for_its_child.idle()
    clock.now += 100
    ended = admission.reap_idle(150)
    assert [record["kind"] for record in ended] == ["old"]
    assert (ended[0]["reaped"], ended[0]["state"]) == (True, "done")
    assert [name for name, child in children.items() if child.ended] == ["old"]
    assert not tickets["old"].busy()  # whoever wanted it asks for another one
    assert admission.running() == 4
    assert admission.reap_idle(150) == []


def test_a_child_that_cannot_be_ended_does_not_keep_the_others(clock: FakeClock, machine: Machine) -> None:
    admission = Admission(clock=clock, read=machine)
    children = [Fake(OSError("stuck")), Fake()]
    for child in children:
        ticket = admission.admit("kernel")
        ticket.started(child)
        ticket.idle()
    with pytest.raises(OSError, match="stuck"):
        admission.reap_idle(0)
    assert [record["kind"] for record in admission.reap_idle(0)] == ["kernel"]
    assert [child.ended for child in children] == [1, 1]


def test_a_ticket_starts_once(machine: Machine) -> None:
    ticket = Admission(read=machine).admit("kernel")
    ticket.started()
    with pytest.raises(ValueError, match="'started' cannot start"):
        ticket.started()
    ticket.done()
    with pytest.raises(ValueError, match="'done' cannot start"):
        ticket.started()


def test_a_place_that_is_not_used(clock: FakeClock, machine: Machine) -> None:
    admission = Admission(clock=clock, read=machine)
    with pytest.raises(KeyError), admission.admit("kernel"):
        raise KeyError
    (record,) = admission.records()
    assert (record["state"], record["startup_seconds"], record["held_seconds"]) == ("done", None, None)
    assert record["after"] is None


def test_real_children_on_this_machine() -> None:
    """Two kinds of places: one child ends by itself and one is reaped; memory is read as it is."""
    admission = Admission(at_once=2, most_stalled=100.0, keep_free=0)
    with Child.start(SLEEP) as stranger:
        own = Child.start(SLEEP)
        ticket = admission.admit("worker", need_bytes=1)
        ticket.started(own)
        short = admission.admit("worker")
        ended = Child.start(["/bin/true"])
        short.started(ended)
        assert ended.wait(LONG)
        assert admission.running() == 1
        ticket.idle()
        assert [record["number"] for record in admission.reap_idle(0, grace=LONG)] == [1]
        assert (own.alive(), own.signal, stranger.alive()) == (False, "SIGTERM", True)
    assert ticket.before is not None
    assert ticket.before.sources


def test_the_time_of_day_does_not_count(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    admission = Admission(read=machine)
    ticket = admission.admit("kernel")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    ticket.started()
    assert ticket.startup_seconds is not None
    assert 0 <= ticket.startup_seconds < LONG
