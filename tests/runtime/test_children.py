"""Owned processes, all real: who is ended, who is never touched, and what is found after the owner was killed."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client import KernelManager

from faultbook.errors import DataError
from faultbook.processes import PROC, boot_id, start_ticks
from faultbook.runtime.children import Child, Identity, find_leftovers
from faultbook.runtime.deadline import Deadline, DeadlineExceeded

pytestmark = pytest.mark.skipif(not (PROC / "self" / "stat").exists(), reason="no /proc here")

LONG = 60.0  # seconds that are never waited for to their end
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def stray() -> Iterator[list[Identity]]:
    """Processes that a test may leave; each was started by it."""
    known: list[Identity] = []
    yield known
    for identity in known:
        identity.send(signal.SIGKILL)


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, f"not within {LONG} s: {what}"
        time.sleep(0.005)


def gone(pid: int) -> bool:
    return start_ticks(pid) is None


def numbers(file: Path, count: int) -> list[int]:
    """The process ids that a child has written to a file, once there are so many."""
    until(lambda: file.exists() and len(file.read_text("utf-8").split()) >= count, f"{count} lines in {file.name}")
    return [int(word) for word in file.read_text("utf-8").split()]


def parent_of(children: list[str], *, tail: str = "time.sleep(600)") -> str:
    """A program that starts children, each given as arguments of Popen, writes their ids, and goes on."""
    starts = "\n".join(f"print(subprocess.Popen({child}).pid, flush=True)" for child in children)
    return f"import signal, subprocess, sys, time\n{starts}\n{tail}"


# ---- one child -----------------------------------------------------------------------------------------------------


def test_a_child_leads_a_session_and_is_told_by_identity() -> None:
    with Child.start(SLEEP) as child:
        assert os.getpgid(child.pid) == os.getsid(child.pid) == child.pid
        assert child.identity == Identity.of(child.pid)
        assert (child.identity.boot_id, child.identity.start_ticks) == (boot_id(), start_ticks(child.pid))
        assert (child.alive(), child.exit_status, child.signal) == (True, None, None)
    assert gone(child.pid)
    assert (child.alive(), child.signal) == (False, "SIGTERM")
    assert not psutil.pid_exists(child.pid)  # and reaped


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_status_is_kept_and_the_child_reaped(status: int) -> None:
    child = Child.start([sys.executable, "-c", f"raise SystemExit({status})"])
    assert child.wait(LONG)
    assert (child.exit_status, child.signal, child.alive()) == (status, None, False)
    assert not psutil.pid_exists(child.pid)
    ending = child.terminate()
    assert (ending.exit_status, ending.asked, ending.forced) == (status, False, False)
    assert ending.refused == "it has ended, and nothing is left of its group"


def test_a_child_that_crashes_shows_its_signal() -> None:
    child = Child.start([sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"], stderr=subprocess.DEVNULL)
    assert child.wait(LONG)
    assert (child.exit_status, child.signal) == (None, "SIGSEGV")


def test_a_child_that_ends_at_once_is_still_ours() -> None:
    child = Child.start(["/bin/true"])
    assert child.wait(LONG)
    assert child.exit_status == 0
    assert find_leftovers([child.record()]) == []


def test_waiting_is_bounded() -> None:
    with Child.start(SLEEP) as child:
        assert not child.wait(0.01)
        with pytest.raises(DeadlineExceeded, match="tool"):
            Deadline.after(0.02).wait(child, "tool")
        assert child.alive()


def test_a_child_that_ignores_sigterm_is_killed_and_what_it_wrote_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    child = Child.start([sys.executable, "-c", DEAF], stdout=output)
    until(lambda: output.exists() and output.read_text("utf-8"), "ready")
    ending = child.terminate(0.1)
    assert (ending.exit_status, ending.signal, ending.asked, ending.forced) == (None, "SIGKILL", True, True)
    assert (ending.left_behind, ending.refused) == ((), None)
    assert ending.seconds >= 0.1
    assert output.read_text("utf-8") == "ready\n"
    assert not psutil.pid_exists(child.pid)


def test_a_child_that_obeys_is_not_forced_and_may_say_how_it_ended(tmp_path: Path) -> None:
    polite = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print(1, flush=True); time.sleep(600)"
    )
    child = Child.start([sys.executable, "-c", polite], stdout=tmp_path / "out.txt")
    until(lambda: (tmp_path / "out.txt").read_text("utf-8"), "ready")
    ending = child.terminate(LONG)
    assert (ending.exit_status, ending.signal, ending.asked, ending.forced) == (7, None, True, False)


def test_a_stopped_child_is_ended() -> None:
    child = Child.start(SLEEP)
    os.kill(child.pid, signal.SIGSTOP)
    assert child.alive()
    assert child.terminate(0.05).left_behind == ()
    assert gone(child.pid)


def test_pipes_can_be_read_after_the_end() -> None:
    child = Child.start([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    assert child.popen is not None
    assert child.popen.stdout is not None
    with child.popen.stdout as pipe:
        assert pipe.readline() == b"ready\n"
        child.terminate(0)
        assert pipe.read() == b""


def test_environment_and_folder_are_passed_on(tmp_path: Path) -> None:
    code = "import os; print(os.environ['WHAT'], os.getcwd())"
    child = Child.start([sys.executable, "-c", code], env={"WHAT": "yes"}, cwd=tmp_path, stdout=tmp_path / "out.txt")
    assert child.wait(LONG)
    assert (tmp_path / "out.txt").read_text("utf-8").split() == ["yes", str(tmp_path.resolve())]


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        Child.start(["/no/such/program"])


def test_ending_twice_ends_once() -> None:
    child = Child.start(SLEEP)
    assert child.terminate().asked
    again = child.terminate()
    assert (again.asked, again.signal) == (False, "SIGTERM")


def test_somebody_else_may_reap_it() -> None:
    child = Child.start(["/bin/true"])
    os.waitpid(child.pid, 0)
    assert not child.alive()
    assert child.terminate().asked is False
    assert child.popen is not None
    child.popen.wait()  # subprocess learns of it too


# ---- what a child started ------------------------------------------------------------------------------------------


def test_grandchildren_in_the_group_end_too(tmp_path: Path, stray: list[Identity]) -> None:
    code = parent_of(["[sys.executable, '-c', 'import time; time.sleep(600)']"] * 2)
    child = Child.start([sys.executable, "-c", code], stdout=tmp_path / "pids")
    pids = numbers(tmp_path / "pids", 2)
    stray += map(Identity.of, pids)
    ending = child.terminate(LONG)
    assert (ending.forced, ending.left_behind, ending.detached) == (False, (), ())
    assert all(gone(pid) for pid in pids)


def test_a_deaf_grandchild_outlives_its_parent_but_not_its_group(tmp_path: Path, stray: list[Identity]) -> None:
    code = parent_of([f"[sys.executable, '-c', {DEAF!r}]"])
    child = Child.start([sys.executable, "-c", code], stdout=tmp_path / "pids")
    until(lambda: "ready" in (tmp_path / "pids").read_text("utf-8"), "the grandchild is deaf")
    pid = int((tmp_path / "pids").read_text("utf-8").replace("ready", "").split()[0])
    stray.append(Identity.of(pid))
    ending = child.terminate(0.2)
    assert (ending.signal, ending.forced, ending.left_behind) == ("SIGTERM", True, ())
    assert gone(pid)


def test_the_group_is_ended_after_its_leader_has_ended(tmp_path: Path, stray: list[Identity]) -> None:
    code = parent_of(["[sys.executable, '-c', 'import time; time.sleep(600)']"], tail="raise SystemExit(4)")
    child = Child.start([sys.executable, "-c", code], stdout=tmp_path / "pids")
    pids = numbers(tmp_path / "pids", 1)
    stray += map(Identity.of, pids)
    assert child.wait(LONG)
    assert child.exit_status == 4
    assert psutil.pid_exists(child.pid)  # its id is kept from being used again while the group lives
    assert not gone(pids[0])
    ending = child.terminate(LONG)
    assert (ending.exit_status, ending.asked, ending.left_behind) == (4, True, ())
    assert gone(pids[0])
    assert not psutil.pid_exists(child.pid)


@pytest.mark.parametrize("deaf", [False, True])
def test_grandchildren_that_left_the_group_are_ended_one_by_one(
    tmp_path: Path, stray: list[Identity], deaf: bool
) -> None:
    what = DEAF if deaf else "print('ready', flush=True); import time; time.sleep(600)"
    code = parent_of([f"[sys.executable, '-c', {what!r}], start_new_session=True, stdout=sys.stderr"])
    child = Child.start([sys.executable, "-c", code], stdout=tmp_path / "pids", stderr=tmp_path / "err")
    pids = numbers(tmp_path / "pids", 1)
    stray += map(Identity.of, pids)
    until(lambda: (tmp_path / "err").read_text("utf-8"), "ready")
    assert os.getsid(pids[0]) != child.pid
    ending = child.terminate(0.2 if deaf else LONG)
    assert [identity.pid for identity in ending.detached] == pids
    assert (ending.forced, ending.left_behind) == (deaf, ())
    assert gone(pids[0])


def test_a_daemon_that_was_let_go_before_is_not_known(tmp_path: Path, stray: list[Identity]) -> None:
    code = parent_of(["[sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True"], tail="")
    child = Child.start([sys.executable, "-c", code], stdout=tmp_path / "pids")
    pids = numbers(tmp_path / "pids", 1)
    stray += map(Identity.of, pids)
    assert child.wait(LONG)
    assert child.terminate().asked is False
    assert not gone(pids[0])


def test_what_does_not_go_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faultbook.runtime.children._AFTER_KILL", 0.05)
    with Child.start(SLEEP) as child:
        with (
            monkeypatch.context() as patch
        ):  # as a process that the kernel holds in a call, or that is not ours to signal
            patch.setattr(os, "killpg", lambda *_: None)
            ending = child.terminate(0)
        assert (ending.left_behind, ending.signal) == ((child.identity,), None)
        assert child.terminate().left_behind == ()  # a second call tries again
    assert child.signal == "SIGTERM"


# ---- never another process -----------------------------------------------------------------------------------------


def reused(record: dict[str, object]) -> dict[str, object]:
    """The record of a process that had this id before the one that has it now."""
    assert isinstance(record["start_ticks"], int)
    return {**record, "start_ticks": record["start_ticks"] - 100}


def test_a_reused_id_is_never_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    with Child.start(SLEEP) as stranger:
        known = Child.from_record(reused(stranger.record()))
        with monkeypatch.context() as patch:
            for name in ("kill", "killpg"):
                patch.setattr(os, name, lambda *sent: pytest.fail(f"a signal: {sent}"))
            patch.setattr(signal, "pidfd_send_signal", lambda *sent: pytest.fail(f"a signal: {sent}"))
            ending = known.terminate(0)
            assert not known.identity.send(signal.SIGTERM)
        assert ending.refused == f"it has ended: process {stranger.pid} is another one now"
        assert (ending.asked, ending.forced) == (False, False)
        assert (known.alive(), stranger.alive()) == (False, True)


def test_a_child_of_our_own_whose_identity_does_not_match_is_not_signalled() -> None:
    with Child.start(SLEEP) as child:
        real = child.identity
        assert real.start_ticks is not None
        child.identity = dataclasses.replace(real, start_ticks=real.start_ticks + 1)
        assert child.terminate(0).refused is not None
        assert child.alive()
        child.identity = real


@pytest.mark.parametrize(
    ("change", "lives"),
    [
        ({"boot_id": "00000000-0000-4000-8000-000000000000"}, False),  # the machine was started anew
        ({"boot_id": None}, None),
        ({"start_ticks": None}, None),
        ({"pid_namespace": "pid:[1]"}, None),  # a record from another container: the same number means another one
    ],
)
def test_what_cannot_be_proved_is_not_signalled(change: dict[str, object], lives: bool | None) -> None:
    with Child.start(SLEEP) as child:
        record = {**child.record(), **change}
        known = Child.from_record(record)
        assert known.identity.lives() is lives
        ending = known.terminate(0)
        assert (ending.asked, ending.refused is not None) == (False, True)
        assert find_leftovers([record]) == []
        assert child.alive()


def test_this_process_and_what_runs_it_are_not_ended() -> None:
    for pid in (os.getpid(), os.getppid()):
        if pid > 1:
            assert Child.adopt(pid).terminate(0).refused == "this process is one of its own"


@pytest.mark.parametrize("pid", [1, 0, -1])
def test_no_run_owns_such_an_id(pid: int) -> None:
    with pytest.raises(DataError, match="could own"):
        Child(Identity(pid, 1, None, None))


@pytest.mark.parametrize(
    "record",
    [{}, {"pid": "12"}, {"pid": True}, {"pid": 12, "start_ticks": "x"}, {"pid": 12, "boot_id": 3}, {"pid": 1.0}],
)
def test_a_record_of_another_form_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(DataError, match="not the record of a child process"):
        find_leftovers([record])


# ---- processes of others, and of owners that are no more -----------------------------------------------------------


def test_an_adopted_process_is_ended_with_its_group_and_reaped_by_its_own_library(
    tmp_path: Path, stray: list[Identity]
) -> None:
    code = parent_of([f"[sys.executable, '-c', {DEAF!r}], stdout=sys.stderr"])
    with (tmp_path / "pids").open("wb") as out, (tmp_path / "err").open("wb") as err:
        theirs = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=out, stderr=err)
    pids = numbers(tmp_path / "pids", 1)
    stray += map(Identity.of, pids)
    until(lambda: (tmp_path / "err").read_text("utf-8"), "the grandchild is deaf")
    child = Child.adopt(theirs.pid)
    assert child.alive()
    ending = child.terminate(0.2)
    assert (ending.asked, ending.forced, ending.left_behind, ending.exit_status) == (True, True, (), None)
    assert theirs.wait(LONG) == -signal.SIGTERM  # their status is still theirs to read
    assert gone(pids[0])
    assert not child.alive()


def test_an_adopted_process_of_our_own_group_is_ended_alone() -> None:
    with subprocess.Popen(SLEEP) as theirs, subprocess.Popen(SLEEP) as other:
        assert os.getpgid(theirs.pid) == os.getpgrp()
        ending = Child.adopt(theirs.pid).terminate(LONG)
        assert (ending.asked, ending.left_behind) == (True, ())
        assert theirs.wait(LONG) == -signal.SIGTERM
        assert other.poll() is None
        other.kill()


def test_what_is_not_there_cannot_be_adopted() -> None:
    with pytest.raises(ProcessLookupError):
        Child.adopt(2**22 + 1)


def test_a_kernel_is_adopted() -> None:
    manager = KernelManager()
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child = Child.adopt(manager.provisioner.pid, program="ipykernel")
        assert child.alive()
        assert child.record()["program"] == "ipykernel"
        assert child.terminate(LONG).left_behind == ()
        assert not child.alive()
        until(lambda: not manager.is_alive(), "its manager notices")
    finally:
        manager.shutdown_kernel(now=True)


OWNER = textwrap.dedent("""
    import json, pathlib, sys, time
    from faultbook.runtime.children import Child
    child = Child.start([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path(sys.argv[1]).write_text(json.dumps(child.record()) + "\\n")
    time.sleep(600)
""")


def orphaned(file: Path) -> dict[str, object]:
    """The record of a child whose owner was killed."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(file)])
    try:
        until(lambda: file.exists() and file.read_text("utf-8").endswith("\n"), "the record")
    finally:
        owner.kill()
        owner.wait()
    return dict(json.loads(file.read_text("utf-8")))


def test_a_child_of_a_killed_owner_lives_and_is_found(tmp_path: Path) -> None:
    record = orphaned(tmp_path / "record.json")
    gone_before = Child.start(["/bin/true"])
    gone_before.wait(LONG)
    found = find_leftovers([gone_before.record(), record, reused(record)])
    assert [child.record() for child in found] == [record]
    assert found[0].alive()
    ending = found[0].terminate(LONG)
    assert (ending.asked, ending.left_behind, ending.exit_status, ending.signal) == (True, (), None, None)
    assert gone(found[0].pid)
    assert find_leftovers([record]) == []


def test_owner_and_child_both_killed_leave_nothing(tmp_path: Path) -> None:
    record = orphaned(tmp_path / "record.json")
    assert isinstance(record["pid"], int)
    os.kill(record["pid"], signal.SIGKILL)
    until(lambda: gone(int(str(record["pid"]))), "it is gone")
    assert find_leftovers([record]) == []


def test_records_hold_no_arguments() -> None:
    with Child.start([*SLEEP, "--api-key=sk-planted"]) as child:
        assert json.loads(json.dumps(child.record())) == child.record()
        assert "planted" not in json.dumps(child.record())


def test_the_record_of_an_ending_is_plain() -> None:
    child = Child.start(SLEEP)
    record = child.terminate().record()
    assert json.loads(json.dumps(record)) == record
    assert record["signal"] == "SIGTERM"


def test_clocks_of_the_day_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    with Child.start(SLEEP) as child:
        record = child.record()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        monkeypatch.setattr(psutil, "boot_time", lambda: 12345.0)
        assert child.identity.lives() is True
        assert len(find_leftovers([record])) == 1
