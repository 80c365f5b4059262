"""Identity of processes: on real ones where the system can show them, on a made-up /proc where it cannot."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from faultbook.processes import PROC, boot_id, pid_namespace, process_exists, start_ticks

linux = pytest.mark.skipif(not (PROC / "self" / "stat").exists(), reason="no /proc here")

# A line of /proc/<pid>/stat by proc(5); fields 20 (threads) and 22 (start) are what counts.
LINE = "{pid} ({name}) {state} 1 2 3 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 {threads} 0 {start} 1000 200"


def entry(proc: Path, pid: int, name: str = "python", state: str = "S", threads: int = 1, start: int = 4711) -> None:
    (proc / str(pid)).mkdir(parents=True)
    line = LINE.format(pid=pid, name=name, state=state, threads=threads, start=start)
    (proc / str(pid) / "stat").write_text(line, encoding="utf-8")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A process file system with a first process and nothing else."""
    entry(tmp_path / "proc", 1, "init", start=1)
    return tmp_path / "proc"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


# ---- real processes ------------------------------------------------------------------------------------------------


@linux
def test_a_child_is_there_until_it_is_killed(child: subprocess.Popen[bytes]) -> None:
    ticks = start_ticks(child.pid)
    assert ticks is not None
    assert process_exists(child.pid) is True
    assert start_ticks(child.pid) == ticks
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken note: a zombie
    assert (PROC / str(child.pid)).exists()
    assert (process_exists(child.pid), start_ticks(child.pid)) == (False, None)
    child.wait()
    assert (process_exists(child.pid), start_ticks(child.pid)) == (False, None)


@linux
def test_a_stopped_process_is_there(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert process_exists(child.pid) is True
    assert start_ticks(child.pid) is not None


@linux
def test_ticks_are_the_start_since_boot(child: subprocess.Popen[bytes]) -> None:
    ticks = start_ticks(child.pid)
    assert ticks is not None
    seconds = ticks / os.sysconf("SC_CLK_TCK")
    assert psutil.boot_time() + seconds == pytest.approx(psutil.Process(child.pid).create_time(), abs=2)
    own = start_ticks(os.getpid())
    assert own is not None
    assert own <= ticks


@linux
@pytest.mark.parametrize("name", ["a b", "x) S 1 (", ") R", "((", "tab\there"])
def test_a_name_may_hold_blanks_and_parentheses(name: str, child: subprocess.Popen[bytes]) -> None:
    before = start_ticks(os.getpid())
    old = Path("/proc/self/comm").read_text("utf-8").rstrip("\n")
    libc = ctypes.CDLL(None)
    try:
        libc.prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME of this thread
        assert f"({name})" in Path("/proc/thread-self/stat").read_text("utf-8")
        assert start_ticks(os.getpid()) == before
        assert process_exists(os.getpid()) is True
    finally:
        libc.prctl(15, old.encode(), 0, 0, 0)


@linux
def test_boot_and_namespace_are_the_same_for_a_child() -> None:
    script = "from faultbook.processes import boot_id, pid_namespace; print(boot_id(), pid_namespace())"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert found == [boot_id(), pid_namespace()]
    assert uuid.UUID(found[0])
    assert found[1].startswith("pid:[")


@linux
def test_nothing_is_signalled(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        pytest.fail(f"a signal: {arguments}")

    with monkeypatch.context() as patch:
        for name in ("kill", "killpg", "waitpid"):
            patch.setattr(os, name, refuse)
        assert process_exists(child.pid) is True
        assert process_exists(2**22 + 1) is False  # above the greatest id there can be
        assert start_ticks(child.pid) is not None
    assert child.poll() is None


# ---- a process file system as it could be --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a b", "x) S 1 (", ") R 1 1", "((", "", "é", "1 2 3 4 5 6 7 8 9"])
def test_fields_are_counted_behind_the_name(proc: Path, name: str) -> None:
    entry(proc, 42, name, start=123456789)
    assert start_ticks(42, proc=proc) == 123456789


@pytest.mark.parametrize(
    ("state", "threads", "there"), [("Z", 1, False), ("X", 0, False), ("Z", 3, True), ("T", 1, True)]
)
def test_what_has_ended_is_gone(proc: Path, state: str, threads: int, there: bool) -> None:
    entry(proc, 42, state=state, threads=threads)
    assert process_exists(42, proc=proc) is there
    assert (start_ticks(42, proc=proc) is not None) is there


@pytest.mark.parametrize("content", ["", "42", "42 (python", "42 (python) S", "42 (python) S " + "x " * 40, "\0" * 300])
def test_an_entry_of_another_form_tells_nothing(proc: Path, content: str) -> None:
    (proc / "42").mkdir()
    (proc / "42" / "stat").write_text(content, encoding="utf-8")
    assert (process_exists(42, proc=proc), start_ticks(42, proc=proc)) == (None, None)


def test_a_missing_entry_proves_nothing_where_entries_are_hidden(tmp_path: Path, proc: Path) -> None:
    assert process_exists(42, proc=proc) is False
    entry(tmp_path / "hidden", os.getpid())
    assert process_exists(42, proc=tmp_path / "hidden") is None
    assert process_exists(os.getpid(), proc=tmp_path / "hidden") is True


def test_an_entry_that_may_not_be_read_is_one(proc: Path) -> None:
    entry(proc, 42)
    (proc / "42" / "stat").chmod(0)
    if os.access(proc / "42" / "stat", os.R_OK):
        pytest.skip("this user may read everything")
    assert (process_exists(42, proc=proc), start_ticks(42, proc=proc)) == (True, None)


@pytest.mark.parametrize("pid", [0, -1])
def test_no_process_has_such_an_id(proc: Path, pid: int) -> None:
    assert (process_exists(pid, proc=proc), start_ticks(pid, proc=proc)) == (False, None)


def test_without_the_file_system_nothing_is_known(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert boot_id(proc=nowhere) is None
    assert pid_namespace(proc=nowhere) is None
    assert start_ticks(os.getpid(), proc=nowhere) is None
    assert process_exists(os.getpid(), proc=nowhere) is None


def test_an_empty_boot_id_is_none(proc: Path) -> None:
    (folder := proc / "sys" / "kernel" / "random").mkdir(parents=True)
    (folder / "boot_id").write_text("\n")
    assert boot_id(proc=proc) is None
    (folder / "boot_id").write_text("8d8e3e4e-0000-4000-8000-000000000001\n")
    assert boot_id(proc=proc) == "8d8e3e4e-0000-4000-8000-000000000001"


def test_ids_of_another_namespace_are_not_ours(proc: Path) -> None:
    (proc / "1" / "ns").mkdir()
    (proc / "1" / "ns" / "pid").symlink_to("pid:[4026531836]")
    (proc / "self").symlink_to("1")  # a mount that came from outside calls this process by another number
    assert pid_namespace(proc=proc) is None
    (proc / "self").unlink()
    (proc / str(os.getpid())).mkdir()
    (proc / "self").symlink_to(str(os.getpid()))
    assert pid_namespace(proc=proc) is None  # and a system without namespaces tells none
    (proc / str(os.getpid()) / "ns").mkdir()
    (proc / str(os.getpid()) / "ns" / "pid").symlink_to("pid:[4026531836]")
    assert pid_namespace(proc=proc) == "pid:[4026531836]"
