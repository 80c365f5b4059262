"""Who runs a run: real owners that live, are stopped, are killed, or whose id belongs to somebody else."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.liveness import liveness, liveness_of
from faultbook.ownership import LEASE, STALE_INTERVALS
from faultbook.processes import PROC, boot_id, pid_namespace, start_ticks

pytestmark = pytest.mark.skipif(boot_id() is None or pid_namespace() is None, reason="no /proc here")

# An owner as there will be: it writes who it is, says so, and goes on until its input is closed.
OWNER = """
import json, os, sys, time
from faultbook.processes import boot_id, pid_namespace, start_ticks
pid = os.getpid()
lease = {"run_id": "run-1", "boot_id": boot_id(), "pid": pid, "pid_namespace": pid_namespace()}
lease |= {"start_ticks": start_ticks(pid), "heartbeat_monotonic": time.monotonic(), "interval_seconds": 5}
lease |= {"heartbeat_at": "2026-09-08T15:12:34+00:00"}
with open(sys.argv[1], "w") as file:
    json.dump(lease, file)
print("here", flush=True)
sys.stdin.read()
"""


class Owned:
    """A run with its owner."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / LEASE
        folder.mkdir()
        command = [sys.executable, "-c", OWNER, str(self.file)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "here\n"

    def change(self, **changes: Any) -> None:
        lease = json.loads(self.file.read_text("utf-8")) | changes
        self.file.write_text(json.dumps({key: value for key, value in lease.items() if value is not ...}), "utf-8")

    def journal(self, *events: str, run_id: str = "run-1") -> None:
        previous, lines = "0" * 64, []
        for seq, event in enumerate(events, start=1):
            record = {"seq": seq, "at": "2026-09-08T15:12:34+00:00", "monotonic": 1.0, "run_id": run_id, "event": event}
            record |= {"data": {"termination": {"kind": "completed"}}, "previous_sha256": previous}
            text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            previous = hashlib.sha256(text.encode()).hexdigest()
            lines.append(json.dumps({**record, "sha256": previous}) + "\n")
        (self.folder / "journal.jsonl").write_text("".join(lines), "utf-8")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Owned]:
    run = Owned(tmp_path / "run")
    yield run
    run.close()


# ---- owners that there are -----------------------------------------------------------------------------------------


def test_a_run_whose_owner_is_there_is_live(owned: Owned) -> None:
    owned.journal("run_started", "trial_started")
    found = liveness(owned.folder)
    assert (found.state, found.ended, found.run_id, found.pid) == ("live", False, "run-1", owned.process.pid)
    assert (found.same_boot, found.same_namespace, found.process_exists) == (True, True, True)
    assert found.found_start_ticks == found.start_ticks == start_ticks(owned.process.pid)
    assert found.heartbeat_age_seconds is not None
    assert 0 <= found.heartbeat_age_seconds < 60
    assert found.reason == f"the owner, process {found.pid}, is there; its last heartbeat is 0 s old"


@pytest.mark.parametrize("file", ["journal.jsonl", LEASE])
def test_a_file_of_a_run_stands_for_it(owned: Owned, file: str) -> None:
    owned.journal("run_started")
    assert liveness(owned.folder / file).state == "live"


def test_an_owner_that_was_killed_is_gone(owned: Owned) -> None:
    owned.journal("run_started")
    owned.kill()
    found = liveness(owned.folder)
    assert (found.state, found.process_exists, found.found_start_ticks) == ("dead", False, None)
    assert found.reason == f"the owner, process {found.pid}, is gone, and the run has no end on record"


def test_an_owner_that_nobody_has_taken_note_of_is_gone_too(owned: Owned) -> None:
    owned.process.kill()
    os.waitid(os.P_PID, owned.process.pid, os.WEXITED | os.WNOWAIT)
    assert (PROC / str(owned.process.pid)).exists()
    assert liveness(owned.folder).state == "dead"


def test_an_owner_that_ended_of_its_own_accord_is_gone(owned: Owned) -> None:
    owned.process.communicate()
    found = liveness(owned.folder)
    assert (found.state, found.ended) == ("dead", None)
    assert found.reason == f"the owner, process {found.pid}, is gone"


def test_a_stopped_owner_with_an_old_heartbeat_is_there(owned: Owned) -> None:
    owned.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, owned.process.pid, os.WSTOPPED | os.WNOWAIT)
    later = time.monotonic() + 3600
    found = liveness(owned.folder, monotonic=lambda: later)
    assert (found.state, found.heartbeat_is_old) == ("live", True)
    assert "but its last heartbeat is 3600 s old (due every 5 s): it may hang" in found.reason


@pytest.mark.parametrize(("age", "is_old"), [(5 * STALE_INTERVALS, False), (5 * STALE_INTERVALS + 1, True)])
def test_some_heartbeats_may_be_missed(owned: Owned, age: float, is_old: bool) -> None:
    owned.change(heartbeat_monotonic=1000.0)
    found = liveness(owned.folder, monotonic=lambda: 1000.0 + age)
    assert (found.heartbeat_age_seconds, found.heartbeat_is_old, found.state) == (age, is_old, "live")


@pytest.mark.parametrize("last", [None, "soon", ..., float("nan"), 1e12])
def test_a_heartbeat_of_no_known_age(owned: Owned, last: Any) -> None:
    owned.change(heartbeat_monotonic=last)
    found = liveness(owned.folder)
    assert (found.state, found.heartbeat_age_seconds, found.heartbeat_is_old) == ("live", None, None)
    assert found.reason.endswith("the age of its last heartbeat is not known")


def test_a_used_id_is_not_the_owner(owned: Owned) -> None:
    ticks = start_ticks(owned.process.pid)
    assert ticks is not None
    owned.change(start_ticks=ticks - 100)  # its owner had this id a second earlier
    found = liveness(owned.folder)
    assert (found.state, found.process_exists, found.found_start_ticks) == ("dead", True, ticks)
    assert found.reason == f"the owner is gone: process {found.pid} is another one now, of another start"
    assert owned.process.poll() is None


def test_after_a_reboot_every_owner_is_gone(owned: Owned) -> None:
    owned.change(boot_id="00000000-0000-4000-8000-000000000000")  # though a process has its id, started at its tick
    found = liveness(owned.folder)
    assert (found.state, found.same_boot) == ("dead", False)
    assert (found.process_exists, found.heartbeat_age_seconds) == (None, None)  # of another boot's clock: not looked at
    assert found.reason == "the machine was started anew: the owner is gone"


@pytest.mark.parametrize(("host", "state"), [("elsewhere", "indeterminate"), (platform.node(), "dead"), (None, "dead")])
def test_another_boot_may_be_that_of_another_machine(owned: Owned, host: str | None, state: str) -> None:
    owned.change(boot_id="00000000-0000-4000-8000-000000000000", host=host)
    found = liveness(owned.folder)
    assert found.state == state
    assert ("on another machine (elsewhere)" in found.reason) == (host == "elsewhere")


@pytest.mark.parametrize(("namespace", "same"), [("pid:[1]", False), (None, None), (..., None), (["pid:[1]"], None)])
def test_an_id_of_another_namespace_tells_nothing(owned: Owned, namespace: Any, same: bool | None) -> None:
    owned.change(pid_namespace=namespace)
    for _ in range(2):
        found = liveness(owned.folder)
        assert (found.state, found.same_namespace, found.process_exists) == ("indeterminate", same, None)
        assert ("another one" if same is False else "not known") in found.reason
        owned.kill()  # and neither does its absence


def test_without_proc_nothing_can_be_said(owned: Owned, tmp_path: Path) -> None:
    found = liveness(owned.folder, proc=tmp_path / "none")
    assert (found.state, found.reason) == ("indeterminate", "this system does not tell its boot")


def test_a_process_that_may_be_hidden(owned: Owned, tmp_path: Path) -> None:
    own = tmp_path / "proc" / str(os.getpid())
    (own / "ns").mkdir(parents=True)
    (own / "ns" / "pid").symlink_to(pid_namespace() or "")
    (tmp_path / "proc" / "self").symlink_to(own.name)
    (tmp_path / "proc" / "sys").symlink_to("/proc/sys")
    found = liveness(owned.folder, proc=tmp_path / "proc")
    assert (found.state, found.process_exists) == ("indeterminate", None)
    assert found.reason == f"process {found.pid} is not to be seen, and may be hidden"
    (tmp_path / "proc" / "1").mkdir()
    assert liveness(owned.folder, proc=tmp_path / "proc").state == "dead"


def test_nothing_is_ever_signalled(owned: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        pytest.fail(f"a signal: {arguments}")

    with monkeypatch.context() as patch:
        for name in ("kill", "killpg"):
            patch.setattr(os, name, refuse)
        for changes in ({}, {"start_ticks": 1}, {"boot_id": "b"}, {"pid_namespace": "pid:[1]"}):
            owned.change(**changes)
            liveness(owned.folder)
    assert owned.process.poll() is None


# ---- ends ----------------------------------------------------------------------------------------------------------


def test_a_run_that_came_to_its_end_is_run_by_nobody(owned: Owned) -> None:
    owned.journal("run_started", "run_finished")  # its owner may well do something else now
    found = liveness(owned.folder)
    assert (found.state, found.ended) == ("dead", True)
    assert found.reason == "the run came to its end (completed): nothing runs any more"


def test_an_end_needs_no_lease(owned: Owned) -> None:
    owned.journal("run_started", "run_finished")
    owned.file.unlink()
    assert liveness(owned.folder).ended is True


@pytest.mark.parametrize("damage", ["altered", "cut off", "not the last"])
def test_an_end_that_does_not_stand_is_none(owned: Owned, damage: str) -> None:
    owned.journal("run_started", "run_finished", *(["trial_started"] if damage == "not the last" else []))
    journal = owned.folder / "journal.jsonl"
    text = journal.read_text("utf-8")
    if damage == "altered":
        journal.write_text(text.replace('"monotonic": 1.0', '"monotonic": 2.0'), "utf-8")
    elif damage == "cut off":
        journal.write_text(text[:-1], "utf-8")
    found = liveness(owned.folder)
    assert found.state == "live"
    assert found.ended is (None if damage == "altered" else False)


def test_a_lease_of_another_run_tells_nothing_of_this_one(owned: Owned) -> None:
    owned.journal("run_started", run_id="run-2")
    found = liveness(owned.folder)
    assert found.state == "indeterminate"
    assert found.reason == "the owner record is of run run-1, the journal of run run-2"


# ---- no owner ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the owner record cannot be read: empty file"),
        (b'{"run_id": "run-1", "pi', "the owner record cannot be read: not a JSON document"),
        (b"\xff\xfe", "the owner record cannot be read: not a JSON document"),
        (b"[]", "the owner record is not whole: it lacks run_id, boot_id, pid, start_ticks"),
        (b'{"run_id": "r", "boot_id": "b", "pid": 0, "start_ticks": 4}', "the owner record is not whole: it lacks pid"),
        (b'{"run_id": "r", "boot_id": "b", "pid": true, "start_ticks": 4}', "it lacks pid"),
        (b'{"run_id": "r", "boot_id": 1.5e300, "pid": 7, "start_ticks": -4}', "it lacks start_ticks"),
    ],
)
def test_a_lease_that_cannot_be_read(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / LEASE).write_bytes(content)
    found = liveness(tmp_path)
    assert found.state == "indeterminate"
    assert reason in found.reason


def test_a_lease_cut_anywhere_is_no_owner(owned: Owned) -> None:
    content = owned.file.read_bytes()
    for end in range(len(content)):
        owned.file.write_bytes(content[:end])
        assert liveness(owned.folder).state == "indeterminate"


def test_a_lease_that_is_a_link_is_not_followed(owned: Owned, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    (other / LEASE).symlink_to(owned.file)
    assert liveness(other).reason == f"{LEASE} is a symbolic link, which is not followed"
    (tmp_path / "named").symlink_to(owned.folder)
    assert liveness(tmp_path / "named").state == "live"


def test_a_state_file_that_says_running_is_not_running(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"state": "running", "pid": 1}', "utf-8")
    found = liveness(tmp_path)
    assert found.state == "indeterminate"
    assert found.reason == "no owner record: state.json says 'running', but not which process runs it"


@pytest.mark.parametrize("content", [b"", b"[1]", b"{}", b'{"state": ["running"]}', b"\0"])
def test_other_state_files_say_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.json").write_bytes(content)
    assert liveness(tmp_path).reason == "no owner record"


def test_other_formats_hold_no_owner(tmp_path: Path) -> None:
    job = {"started_at": "2026-09-08T15:12:34", "finished_at": None, "stats": {"n_running_trials": 4}}
    (tmp_path / "result.json").write_text(json.dumps(job), "utf-8")
    (tmp_path / "config.json").write_text("{}", "utf-8")
    (tmp_path / "log.eval").write_bytes(b"PK")
    for run in (tmp_path, tmp_path / "log.eval"):
        found = liveness(run)
        assert (found.state, found.reason, found.ended) == ("indeterminate", "no owner record", None)


def test_nothing_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        liveness(tmp_path / "none")


# ---- tables --------------------------------------------------------------------------------------------------------


def test_a_row_says_all_of_it(owned: Owned) -> None:
    found = liveness(owned.folder)
    frame = found.summary_frame()
    assert len(frame) == 1
    assert list(frame.columns) == list(type(found).__dataclass_fields__)
    assert frame["pid"].item() == owned.process.pid
    assert frame["ended"].isna().all()
    assert frame.notna().sum().sum() == 13


def test_runs_side_by_side(owned: Owned, tmp_path: Path) -> None:
    owned.journal("run_started")
    (tmp_path / "trials.csv").write_text("arm,task_id,attempt,state,resolved\n", "utf-8")
    frame = liveness_of([tmp_path / "trials.csv", owned.folder])
    assert frame["state"].tolist() == ["indeterminate", "live"]
    assert frame["reason"].iloc[0] == "no owner record"
    assert frame["run"].tolist() == [str(tmp_path / "trials.csv"), str(owned.folder)]
    assert {str(frame[name].dtype) for name in ("pid", "start_ticks")} == {"Int64"}
    assert isinstance(frame, pd.DataFrame)


# ---- anything at all -----------------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = ("run_id", "boot_id", "pid", "pid_namespace", "start_ticks", "heartbeat_monotonic", "interval_seconds", "host")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lease=st.dictionaries(st.sampled_from(keys), scalars | st.lists(scalars, max_size=2)), is_ours=st.booleans())
def test_no_lease_of_chance_is_live(tmp_path: Path, lease: dict[str, Any], is_ours: bool) -> None:
    if is_ours:
        lease |= {"boot_id": boot_id(), "pid_namespace": pid_namespace()}
    (tmp_path / LEASE).write_text(json.dumps(lease), "utf-8")
    found = liveness(tmp_path)
    assert found.state in ("dead", "indeterminate")
    found.summary_frame()
