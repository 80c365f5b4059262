"""Who owns a run: one process at a time, told by what cannot be used again, and nobody is ever sent a signal."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from faultbook.errors import DataError
from faultbook.journal_chain import JOURNAL, RUN_FINISHED
from faultbook.ownership import LEASE
from faultbook.processes import PROC, boot_id, pid_namespace, start_ticks
from faultbook.runtime import lease as module
from faultbook.runtime.journal import Journal
from faultbook.runtime.lease import RUN_LOCK, Lease, NotOwnedError, inspect, require_abandoned

pytestmark = pytest.mark.skipif(boot_id() is None or pid_namespace() is None, reason="no /proc here")

# An owner that says when it is one, and goes on until its input is closed; then it lets go of the run.
OWNER = """
    import sys
    from pathlib import Path
    from faultbook.runtime.lease import Lease
    with Lease(Path(sys.argv[1]), "run-1"):
        print("here", flush=True)
        sys.stdin.read()
"""


class Owner:
    """Another process that holds the run."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", textwrap.dedent(OWNER), str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "here\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run-1"
    run.mkdir()
    return run


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    Journal(folder, "run-1").append("run_started", kind="report")
    found = Owner(folder)
    yield found
    found.close()


def change(folder: Path, **changes: Any) -> None:
    lease = json.loads((folder / LEASE).read_text("utf-8")) | changes
    (folder / LEASE).write_text(json.dumps({name: value for name, value in lease.items() if value is not ...}), "utf-8")


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other threads do, however slow the machine is."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# ---- one owner at a time -------------------------------------------------------------------------------------------


def test_a_second_process_is_kept_out(folder: Path, owner: Owner) -> None:
    before = (folder / LEASE).read_bytes()
    with pytest.raises(NotOwnedError, match=f"another process owns this run; the owner, process {owner.process.pid}"):
        Lease(folder, "run-1").take()
    assert (folder / LEASE).read_bytes() == before
    found = inspect(folder)
    assert (found.state, found.pid, found.ended) == ("live", owner.process.pid, False)


def test_so_is_another_thread_or_part_of_the_same_process(folder: Path) -> None:
    with Lease(folder, "run-1"), pytest.raises(NotOwnedError, match=f"process {os.getpid()}, is there"):
        Lease(folder, "run-1").take()
    with Lease(folder, "run-1"):
        pass


def test_a_killed_owner_holds_nothing(folder: Path, owner: Owner) -> None:
    owner.kill()
    found = inspect(folder)
    assert (found.state, found.process_exists, found.ended) == ("dead", False, False)
    assert require_abandoned(folder).reason == found.reason
    with Lease(folder, "run-1"):
        assert inspect(folder).pid == os.getpid()
        assert inspect(folder).state == "live"


def test_an_owner_that_is_stopped_holds_it_still(folder: Path, owner: Owner) -> None:
    owner.process.send_signal(signal.SIGSTOP)
    until(lambda: (PROC / str(owner.process.pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T")
    change(folder, heartbeat_monotonic=time.monotonic() - 1000)
    found = inspect(folder)
    assert (found.state, found.heartbeat_is_old) == ("live", True)
    assert "it may hang" in found.reason
    with pytest.raises(NotOwnedError):
        Lease(folder, "run-1").take()
    with pytest.raises(NotOwnedError):
        require_abandoned(folder)


def test_whoever_takes_over_cannot_be_overtaken_by_the_lock_alone(folder: Path, owner: Owner) -> None:
    """An owner whose record says that it is gone, but which still holds the lock, is not gone."""
    change(folder, start_ticks=1)
    assert inspect(folder).state == "dead"
    with pytest.raises(NotOwnedError):
        require_abandoned(folder)


def test_a_lease_can_be_let_go_of_by_another_thread_and_taken_again(folder: Path) -> None:
    lease = Lease(folder, "run-1").take()
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    with Lease(folder, "run-1"):
        pass
    lease = Lease(folder, "run-1", interval=0.005)
    with lease:
        pass
    with lease:
        first = (folder / LEASE).read_bytes()
        until(lambda: (folder / LEASE).read_bytes() != first)  # its heart beats again


def test_a_fault_within_the_block_lets_go_too(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), Lease(folder, "run-1"):
        raise ZeroDivisionError
    with Lease(folder, "run-1"):
        pass
    assert threading.active_count() == 1 or not [t for t in threading.enumerate() if "run-1" in t.name]


# ---- the record ----------------------------------------------------------------------------------------------------


def test_the_record_says_which_process(folder: Path) -> None:
    moment = datetime(2026, 9, 8, 15, 12, 34, 5, tzinfo=UTC)
    with Lease(folder, "run-1", interval=7, now=lambda: moment):
        record = json.loads((folder / LEASE).read_text("utf-8"))
    age = time.monotonic() - record.pop("heartbeat_monotonic")
    assert age >= 0
    assert record.pop("host")
    assert record == {
        "run_id": "run-1",
        "boot_id": boot_id(),
        "pid": os.getpid(),
        "pid_namespace": pid_namespace(),
        "start_ticks": start_ticks(os.getpid()),
        "heartbeat_at": "2026-09-08T15:12:34.000005+00:00",
        "interval_seconds": 7,
    }
    assert {file.name for file in folder.iterdir()} <= {LEASE, RUN_LOCK}


def test_the_heartbeat_is_renewed_and_never_half_written(folder: Path) -> None:
    seen: set[float] = set()

    def look() -> bool:
        seen.add(json.loads((folder / LEASE).read_text("utf-8"))["heartbeat_monotonic"])  # whole at any moment
        return len(seen) >= 5

    with Lease(folder, "run-1", interval=0.001):
        until(look)
    last = (folder / LEASE).read_bytes()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("heartbeat of run-1")]
    assert (folder / LEASE).read_bytes() == last


def test_a_heartbeat_that_cannot_be_written_breaks_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Lease(folder, "run-1") as lease:
        before = (folder / LEASE).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(module.os, "fsync", full)
            lease.beat()
        assert lease.problem == "No space left on device"
        assert (folder / LEASE).read_bytes() == before
        assert {file.name for file in folder.iterdir()} <= {LEASE, RUN_LOCK}
        assert inspect(folder).state == "live"
        lease.beat()
        assert lease.problem is None
        assert (folder / LEASE).read_bytes() != before


def test_a_folder_that_is_taken_away_breaks_nothing(folder: Path) -> None:
    lease = Lease(folder, "run-1", interval=0.001).take()
    shutil.rmtree(folder)
    until(lambda: lease.problem is not None)
    lease.release()


def test_no_owner_without_a_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", full)
        with pytest.raises(NotOwnedError, match=r"owner record cannot be written \(No space left on device\)"):
            Lease(folder, "run-1").take()
    assert not (folder / LEASE).exists()
    with Lease(folder, "run-1"):  # and the lock is free
        pass


def test_a_folder_that_is_not_there_has_no_owner(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        inspect(tmp_path / "none")


READ_ONLY = """
    import os, sys
    from pathlib import Path
    from faultbook.runtime.lease import Lease, NotOwnedError, inspect, require_abandoned
    inspect(Path(sys.argv[1]))  # whatever Python loads late, it may not be allowed to load then
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    for call in (require_abandoned, lambda folder: Lease(folder, "run-1").take()):
        try:
            call(Path(sys.argv[1]))
        except NotOwnedError as error:
            print(error)
"""


def test_a_run_that_cannot_be_locked_is_not_taken() -> None:
    """Its owner is gone, but the folder cannot be written: that is said, and is no fault of the program."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made) / "run-1"
        folder.mkdir()
        owner = Owner(folder)
        owner.close()
        (folder / RUN_LOCK).unlink(missing_ok=True)
        Path(made).chmod(0o755)
        folder.chmod(0o555)
        command = [sys.executable, "-c", textwrap.dedent(READ_ONLY), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "cannot be locked (Permission denied)" in first
    assert "cannot be locked (Permission denied)" in second


def test_a_lock_that_is_a_link_does_no_harm(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (folder / RUN_LOCK).symlink_to(victim)
    with pytest.raises(NotOwnedError, match="cannot be locked"):
        Lease(folder, "run-1").take()
    assert victim.read_bytes() == b"precious"
    assert stat.S_IMODE(victim.stat().st_mode) != 0


# ---- whose it is ---------------------------------------------------------------------------------------------------

GONE = [
    ({"start_ticks": 1}, "is another one now, of another start"),  # the id was given to another process
    ({"boot_id": "another"}, "the machine was started anew"),
    ({"pid": 4_194_305}, "is gone"),  # beyond the most that Linux gives (proc(5), pid_max)
]
UNCLEAR = [
    ({"boot_id": "another", "host": "another"}, "the owner is on another machine (another)"),
    ({"pid_namespace": "pid:[1]"}, "namespace of process ids is another one"),
    ({"pid_namespace": ...}, "namespace of process ids is not known"),
    ({"run_id": "run-2"}, "the owner record is of run run-2, the journal of run run-1"),
    ({"pid": ...}, "the owner record is not whole: it lacks pid"),
    ({"start_ticks": "12"}, "the owner record is not whole: it lacks start_ticks"),
    ({"boot_id": None}, "the owner record is not whole: it lacks boot_id"),
]


@pytest.fixture
def left(folder: Path) -> Path:
    """A run that this very process owned last, so that only what is changed makes its owner another one."""
    Journal(folder, "run-1").append("run_started", kind="report")
    with Lease(folder, "run-1"):
        pass
    return folder


@pytest.mark.parametrize(("changes", "reason"), GONE)
def test_an_owner_that_is_certainly_gone(left: Path, changes: dict[str, Any], reason: str) -> None:
    change(left, **changes)
    found = inspect(left)
    assert found.state == "dead"
    assert reason in found.reason
    assert found.reason.endswith("and the run has no end on record")
    assert require_abandoned(left).reason == found.reason


@pytest.mark.parametrize(("changes", "reason"), UNCLEAR)
def test_an_owner_of_whom_nobody_can_tell(left: Path, changes: dict[str, Any], reason: str) -> None:
    change(left, **changes)
    found = inspect(left)
    assert found.state == "indeterminate"
    assert reason in found.reason
    with pytest.raises(NotOwnedError, match="only a run whose owner is certainly gone can be resumed"):
        require_abandoned(left)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\0"])
def test_without_a_record_nobody_can_tell(left: Path, content: bytes | None) -> None:
    if content is None:
        (left / LEASE).unlink()
    else:
        (left / LEASE).write_bytes(content)
    assert inspect(left).state == "indeterminate"
    with pytest.raises(NotOwnedError):
        require_abandoned(left)


def test_a_live_run_is_not_abandoned(folder: Path, owner: Owner) -> None:
    with pytest.raises(NotOwnedError, match=f"the owner, process {owner.process.pid}, is there"):
        require_abandoned(folder)


def test_a_run_that_came_to_its_end_is_not_abandoned(folder: Path, owner: Owner) -> None:
    owner.kill()
    Journal(folder, "run-1").append(RUN_FINISHED, termination={"kind": "completed"})
    found = inspect(folder)
    assert (found.state, found.ended) == ("dead", True)
    with pytest.raises(NotOwnedError, match="the run came to its end"):
        require_abandoned(folder)


def test_an_end_whose_digest_is_wrong_is_none(folder: Path, owner: Owner) -> None:
    Journal(folder, "run-1").append(RUN_FINISHED, termination={"kind": "completed"})
    file = folder / JOURNAL
    file.write_bytes(file.read_bytes().replace(b"completed", b"Completed"))
    assert inspect(folder).state == "live"


def test_a_run_without_journal_has_an_owner_all_the_same(folder: Path) -> None:
    with Lease(folder, "run-1"):
        found = inspect(folder)
    assert (found.state, found.ended) == ("live", None)


def test_nobody_is_ever_sent_a_signal(folder: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError(f"a signal was sent: {arguments}")

    with monkeypatch.context() as patch:
        for name in ("kill", "killpg"):
            patch.setattr(os, name, refuse)
        patch.setattr(signal, "pidfd_send_signal", refuse)
        for changes in ({}, *(changes for changes, _ in (*GONE, *UNCLEAR))):
            before = (folder / LEASE).read_bytes()
            change(folder, **changes)
            inspect(folder)
            with pytest.raises(NotOwnedError):
                require_abandoned(folder)
            with pytest.raises(NotOwnedError):
                Lease(folder, "run-1").take()
            (folder / LEASE).write_bytes(before)
    assert owner.process.poll() is None
