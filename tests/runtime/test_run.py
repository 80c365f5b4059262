"""A run from start to end: what is on record of it however it ends, and what a run that goes on from it does."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from faultbook.errors import DataError, Signalled
from faultbook.harness.files import Files
from faultbook.harness.formats import journal as reader
from faultbook.harness.read import read_trials
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, RUN_STARTED, TRIAL_FINISHED, TRIAL_STARTED
from faultbook.ownership import LEASE
from faultbook.processes import boot_id, pid_namespace
from faultbook.runtime import journal as journal_module
from faultbook.runtime.journal import Journal, records, verify
from faultbook.runtime.lease import NotOwnedError, inspect
from faultbook.runtime.run import ARTIFACT, RUNS, Run, attempts_of, failed
from faultbook.runtime.runs import close_abandoned, describe
from faultbook.runtime.termination import Observation

pytestmark = pytest.mark.skipif(boot_id() is None or pid_namespace() is None, reason="no /proc here")

PLAN = [{"arm": "a", "task_id": task, "attempt": 1} for task in ("t1", "t2", "t3")]


def told(run: Run | Path, event: str) -> list[dict[str, Any]]:
    folder = run if isinstance(run, Path) else run.folder
    return [line.data for line in records(folder) if line.event == event]


def end(run: Run | Path) -> dict[str, Any]:
    (found,) = told(run, RUN_FINISHED)
    return dict(found)


def ticking(step: float = 1.0) -> Callable[[], float]:
    """A clock that goes on by one step whenever it is looked at."""
    ticks = count()
    return lambda: next(ticks) * step


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """A disk that is full for the length of a block."""

    def refuse(file: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextlib.contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(journal_module.os, "write", refuse)
            yield

    return block


# ---- runs that come to their end -----------------------------------------------------------------------------------


def test_a_run_is_read_as_trials_by_the_harness(tmp_path: Path) -> None:
    """The files are the interface: nothing is imported from one to the other."""
    with Run.start(tmp_path, "report", plan=PLAN) as run:
        with run.trial("a", "t1") as trial:
            trial.resolved, trial.reward = True, 1.0
            trial.seconds |= {"setup": 0.5, "agent": 2.0}
            trial.usage |= {"input_tokens": 10, "output_tokens": 3, "requests": 1}
        with run.trial("a", "t2") as trial:
            trial.observation = failed(run.run_id, "it ran longer than its limit", budget_exhausted=True)
        with contextlib.suppress(ConnectionError), run.trial("a", "t3"):
            raise ConnectionError("connection reset by peer")
    assert reader.verify(run.folder, Files()).empty
    assert reader.planned(run.folder, Files()) == PLAN
    trials = read_trials(run.folder).set_index("task_id")
    assert list(trials.index) == ["t1", "t2", "t3"]
    assert set(trials["state"]) == {"finished"}
    assert set(trials["run_id"]) == {run.run_id}
    first, second = trials.loc["t1"], trials.loc["t2"]
    assert (first["resolved"], first["reward"], first["attempt"]) == (True, 1.0, 1)
    assert (first["setup_seconds"], first["agent_seconds"]) == (0.5, 2.0)
    assert (first["input_tokens"], first["output_tokens"], first["usage_status"]) == (10, 3, "reported")
    assert second["cause"] == "agent_budget_exhausted"
    assert trials.loc["t2":, "resolved"].isna().all()
    assert trials["source_version"].str.len().gt(0).all()


def test_a_run_is_live_while_it_goes_on_and_finished_then(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run:
        assert run.folder.parent == tmp_path / RUNS
        assert describe(run.folder)["state"] == "live"
        with run.trial("a", "t1"):
            found = describe(run.folder)
            assert (found["state"], found["trials"]["unfinished"]) == ("live", ["t1"])
    found = describe(run.folder)
    assert (found["state"], found["cause"], found["findings"]) == ("finished", "completed", 0)
    assert inspect(run.folder).ended
    assert end(run)["evidence"] == {"complete": True, "reason": None}


def test_the_start_says_what_is_run(tmp_path: Path) -> None:
    settings = {"limit": 5, "api_key": "sk-ant-api03-" + "Zk9" * 20}
    with Run.start(tmp_path, "report", plan=PLAN, command=["report", "--", "1"], settings=settings) as run:
        pass
    (start,) = told(run, RUN_STARTED)
    assert start.pop("source").keys() == {"commit", "dirty"}
    assert start == {
        "kind": "report",
        "plan": PLAN,
        "boot_id": boot_id(),
        "command": ["report", "--", "1"],
        "settings": {"limit": 5, "api_key": "[redacted: API key]"},
        "resumes": None,
    }


def test_ids_are_in_the_order_of_their_starts(tmp_path: Path) -> None:
    """Also within a second, and where the time of day is told with another offset."""
    begin = datetime(2026, 9, 8, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    ids = []
    for number in range(5):
        with Run.start(tmp_path, "r", now=lambda at=begin + timedelta(milliseconds=number): at) as run:
            ids.append(run.run_id)
    assert ids == sorted(ids)
    assert ids[0].startswith("20260907T230000.000000Z-r-")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyboardInterrupt(), "user_abort"),
        (SystemExit(), "completed"),
        (SystemExit(0), "completed"),
        (SystemExit(3), "unclassified"),
        (ValueError("bad"), "unclassified"),
        (GeneratorExit(), "unclassified"),
    ],
)
def test_whatever_ends_a_trial_ends_the_run_and_goes_on(tmp_path: Path, error: BaseException, kind: str) -> None:
    with pytest.raises(type(error)) as caught, Run.start(tmp_path, "report") as run, run.trial("a", "t1"):
        raise error
    assert caught.value is error
    (trial,) = told(run, TRIAL_FINISHED)
    assert trial["termination"]["kind"] == end(run)["termination"]["kind"] == kind
    assert trial["termination"]["source"] == "observed"
    assert trial["verdict"] == {"resolved": None, "reward": None}
    assert describe(run.folder)["state"] == ("finished" if kind == "completed" else "failed")
    assert verify(run.folder) == []


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_without_text_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(UnspeakableError), Run.start(tmp_path, "report") as run, run.trial("a", "t"):
        raise UnspeakableError
    assert "UnspeakableError" in end(run)["termination"]["message"]


def test_secrets_in_errors_and_names_are_in_no_file(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Zk9" * 20
    url = "https://somebody:hunter2-correct@example.org"
    with contextlib.suppress(RuntimeError), Run.start(tmp_path, "report", command=["--url", url]) as run:
        run.event("waiting", reason=f"Authorization: Bearer {key}")
        with run.trial(f"arm {key}", f"task {url}"):
            raise RuntimeError(f"refused {key} at {url}")
    content = b"".join(file.read_bytes() for file in run.folder.rglob("*") if file.is_file())
    assert b"[redacted: " in content
    assert key.encode() not in content
    assert b"hunter2" not in content


@pytest.mark.parametrize("resolved", [True, False, None])
def test_the_verdict_is_apart_from_how_it_ended(tmp_path: Path, resolved: bool | None) -> None:
    with Run.start(tmp_path, "report") as run:
        with run.trial("a", "t1") as trial:
            trial.resolved = resolved
        with contextlib.suppress(ValueError), run.trial("a", "t2") as trial:
            trial.resolved = resolved
            raise ValueError
    first, second = told(run, TRIAL_FINISHED)
    assert first["verdict"] == second["verdict"] == {"resolved": resolved, "reward": None}
    assert (first["termination"]["kind"], second["termination"]["kind"]) == ("completed", "unclassified")
    assert end(run)["termination"]["kind"] == "completed"  # a trial that failed is not a run that failed


def test_what_was_seen_of_an_end_stands_before_the_error(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run, contextlib.suppress(RuntimeError), run.trial("a", "t") as trial:
        trial.observation = Observation(run.run_id, signal="SIGTERM")
        raise RuntimeError("child died")
    (found,) = told(run, TRIAL_FINISHED)
    assert (found["termination"]["kind"], found["termination"]["signal"]) == ("process_signal", "SIGTERM")


def test_a_run_finishes_once(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run:
        run.finish(failed(run.run_id, "it failed"))
        first = run.termination
        threads = [threading.Thread(target=run.finish) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert run.termination is first
    assert end(run)["termination"]["kind"] == "unclassified"
    assert verify(run.folder) == []


def test_threads_that_finish_at_once_finish_it_once(tmp_path: Path) -> None:
    gate = threading.Barrier(4)
    with Run.start(tmp_path, "report") as run:

        def finish() -> None:
            gate.wait()
            run.finish()

        threads = [threading.Thread(target=finish) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert verify(run.folder) == []


def test_trials_side_by_side(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run:

        def one(number: int) -> None:
            with run.trial("a", f"t{number}") as trial:
                trial.reward = number / 10

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert verify(run.folder) == []
    assert {row["task_id"]: row["verdict"]["reward"] for row in told(run, TRIAL_FINISHED)} == {
        f"t{number}": number / 10 for number in range(8)
    }


# ---- clocks --------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_changes_no_seconds(tmp_path: Path) -> None:
    """The time of day goes back by an hour at every look; seconds are those of the other clock."""
    days = (datetime(2026, 9, 8, tzinfo=UTC) - timedelta(hours=number) for number in count())
    run = Run.start(tmp_path, "report", clock=ticking(), now=lambda: next(days), interval=3600)
    with run, run.segments.measure("model"), run.trial("a", "t1"):
        pass
    assert verify(run.folder) == []
    (trial,) = told(run, TRIAL_FINISHED)
    assert trial["seconds"]["total"] > 0
    time = end(run)["time"]
    assert time["total"] > 0
    assert time["explained"] + time["unexplained"] == pytest.approx(time["total"])
    lines = [line.record for line in records(run.folder) if line.record]
    assert describe(run.folder)["seconds"] == lines[-1]["monotonic"] - lines[0]["monotonic"] > 0
    assert [line["at"] for line in lines] == sorted((line["at"] for line in lines), reverse=True)


# ---- records that cannot be written --------------------------------------------------------------------------------


def test_work_goes_on_where_it_cannot_be_recorded(tmp_path: Path, full: Any) -> None:
    done = []
    with Run.start(tmp_path, "report") as run:
        with full(), run.trial("a", "t1"):
            done.append("t1")
        with run.trial("a", "t2"):
            done.append("t2")
    assert done == ["t1", "t2"]
    assert "No space left on device" in str(run.incomplete)
    evidence = end(run)["evidence"]
    assert evidence["complete"] is False
    assert "No space left on device" in evidence["reason"]
    found = describe(run.folder)
    assert found["evidence"] == {"complete": False, "reason": evidence["reason"]}
    assert found["trials"]["started"] == 1
    assert verify(run.folder) == []


def test_a_run_whose_end_cannot_be_recorded_says_so_itself(tmp_path: Path, full: Any) -> None:
    with Run.start(tmp_path, "report") as run, full():
        run.finish()
    assert run.incomplete is not None
    assert run.termination is not None
    assert [found["finding"] for found in verify(run.folder)] == ["run_unclosed"]


def test_a_run_that_cannot_be_started_leaves_no_owner(
    tmp_path: Path, full: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full(), pytest.raises(DataError, match="No space left on device"):
        Run.start(tmp_path, "report")
    with pytest.raises(DataError, match="no such file"):
        Run.start(tmp_path, "report", resumes=tmp_path / RUNS / "none")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be made"):
        Run.start(tmp_path / "file", "report")
    folder = tmp_path / "of-another"
    folder.mkdir()
    Journal(folder, "another").append(RUN_STARTED)
    with pytest.raises(DataError, match="the journal of another run"):
        Run(folder, "mine")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("heartbeat of")]


def test_files_are_recorded_by_digest(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "page.html").write_bytes(b"abc")
    (tmp_path / "elsewhere.csv").write_bytes(b"")
    with Run.start(tmp_path / "out", "report") as run:
        run.artifact(tmp_path / "out" / "page.html")
        run.artifact(tmp_path / "elsewhere.csv")
        run.artifact(tmp_path / "out" / "none.html")
        run.artifact(tmp_path)
    first, second = told(run, ARTIFACT)
    # SHA-256 of "abc": FIPS 180-2, appendix B.1.
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert first == {"path": "page.html", "sha256": abc, "bytes": 3}
    assert second["path"] == str(tmp_path / "elsewhere.csv")
    assert [row["path"] for row in told(run, "artifact_unreadable")] == ["none.html", tmp_path.name]


# ---- runs that are cut off -----------------------------------------------------------------------------------------

KILLED = """
    import sys
    from pathlib import Path
    from faultbook.runtime.run import Run
    with Run.start(Path(sys.argv[1]), "report", command=["report", "--", "1"]) as run:
        with run.trial("a", "t1") as trial:
            trial.resolved = True
        with run.trial("a", "t2"):
            print(run.folder, flush=True)
            sys.stdin.read()
"""


def killed(place: Path, how: signal.Signals = signal.SIGKILL) -> Path:
    """The folder of a run that was killed in the midst of its second trial."""
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(place)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert describe(folder)["state"] == "live"
        with pytest.raises(NotOwnedError):
            close_abandoned(folder)
        process.send_signal(how)
        process.wait()
    return folder


def test_a_run_that_was_killed_is_dead_whatever_it_said(tmp_path: Path) -> None:
    folder = killed(tmp_path)
    found = describe(folder)
    assert (found["state"], found["cause"], found["findings"]) == ("dead", None, 0)
    assert found["trials"] == {
        "planned": None,
        "started": 2,
        "finished": 1,
        "unfinished": ["t2"],
        "causes": {"completed": 1},
    }
    states = read_trials(folder).set_index("task_id")["state"]
    assert dict(states) == {"t1": "finished", "t2": "unfinished"}


def test_a_run_that_was_interrupted_tells_so_itself(tmp_path: Path) -> None:
    folder = killed(tmp_path, signal.SIGINT)
    found = describe(folder)
    assert (found["state"], found["cause"]) == ("failed", "user_abort")
    assert found["trials"]["causes"] == {"completed": 1, "user_abort": 1}
    with pytest.raises(NotOwnedError, match="came to its end"):
        close_abandoned(folder)


def test_a_run_that_goes_on_makes_new_attempts_and_keeps_what_there_was(tmp_path: Path) -> None:
    old = killed(tmp_path)
    before = (old / JOURNAL).read_bytes()
    close_abandoned(old, to_go_on=True)
    assert (old / JOURNAL).read_bytes().startswith(before)
    assert end(old)["termination"]["kind"] == "process_crash"
    assert end(old)["termination"]["source"] == "inferred_on_resume"
    found = describe(old)
    assert (found["state"], found["cause"]) == ("dead", "process_crash")
    assert found["evidence"] == {"complete": True, "reason": None}
    assert verify(old) == []
    with Run.start(tmp_path, "report", plan=PLAN, resumes=old) as run:
        for task in ("t1", "t2", "t3"):
            with run.trial("a", task):
                pass
    assert [(row["task_id"], row["attempt"]) for row in told(run, TRIAL_STARTED)] == [("t1", 2), ("t2", 2), ("t3", 1)]
    (start,) = told(run, RUN_STARTED)
    assert start["resumes"] == old.name
    assert [row["attempt"] for row in start["plan"]] == [2, 2, 1]
    both = read_trials([old, run.folder])
    assert both.groupby("task_id")["attempt"].apply(sorted).to_dict() == {"t1": [1, 2], "t2": [1, 2], "t3": [1]}
    assert both.set_index(["task_id", "attempt"]).loc[("t2", 1), "state"] == "unfinished"


def test_a_run_is_gone_on_from_once(tmp_path: Path) -> None:
    old = killed(tmp_path)
    close_abandoned(old, to_go_on=True)
    close_abandoned(old, to_go_on=True)  # nobody has begun yet
    assert len(told(old, RUN_FINISHED)) == 1
    with Run.start(tmp_path, "report", resumes=old) as run:
        pass
    with pytest.raises(NotOwnedError, match=f"the run {run.run_id} went on from it already"):
        close_abandoned(old, to_go_on=True)
    with pytest.raises(NotOwnedError):
        close_abandoned(old)
    assert verify(old) == []


def test_two_that_close_a_run_at_once_close_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has found that the owner is gone when the other closes the run; it finds that out before it writes."""
    from faultbook.runtime import runs

    old, real = killed(tmp_path), runs.require_abandoned

    def overtaken(folder: Path) -> Any:
        found = real(folder)
        monkeypatch.setattr(runs, "require_abandoned", real)
        close_abandoned(folder)
        return found

    monkeypatch.setattr(runs, "require_abandoned", overtaken)
    with pytest.raises(NotOwnedError, match="another process has just closed it"):
        close_abandoned(old)
    assert verify(old) == []


def test_attempts_are_counted_through_all_runs_before(tmp_path: Path) -> None:
    """The second run was cut off before it came to the second task, which the first had started."""
    with Run.start(tmp_path, "report") as first:
        for task in ("t1", "t2"):
            with first.trial("a", task):
                pass
    with Run.start(tmp_path, "report", resumes=first.folder) as second, second.trial("a", "t1"):
        pass
    with Run.start(tmp_path, "report", resumes=second.folder) as third:
        for task in ("t1", "t2"):
            with third.trial("a", task):
                pass
    assert [(row["task_id"], row["attempt"]) for row in told(third, TRIAL_STARTED)] == [("t1", 3), ("t2", 2)]
    assert attempts_of(third.folder) == {("a", "t1"): 3, ("a", "t2"): 2}


@pytest.mark.parametrize("name", ["run-1", "..", ".", "/", "../x", "x" * 5000, "gone", 7, ["x"], None])
def test_what_a_run_says_that_it_went_on_from_is_believed_only_if_it_is_there(tmp_path: Path, name: Any) -> None:
    folder = tmp_path / "run-1"
    folder.mkdir()
    journal = Journal(folder, "run-1")
    journal.append(RUN_STARTED, resumes=name)
    for attempt in (1, "2", None, -3, True, 2.0, [4]):
        journal.append(TRIAL_STARTED, arm="a", task_id="t", attempt=attempt)
    journal.append(TRIAL_STARTED)
    assert attempts_of(folder) == {("a", "t"): 2}


def test_names_that_hold_a_secret_are_counted_all_the_same(tmp_path: Path) -> None:
    task = "https://user:hunter2-correct@example.org/task"
    with Run.start(tmp_path, "report") as first, first.trial("a", task):
        pass
    plan = [{"arm": "a", "task_id": task, "attempt": 1}]
    with Run.start(tmp_path, "report", plan=plan, resumes=first.folder) as second, second.trial("a", task) as trial:
        assert trial.attempt == 2
    (start,) = told(second, RUN_STARTED)
    assert start["plan"][0]["attempt"] == 2


def test_after_a_restart_of_the_machine_a_run_is_dead_and_its_seconds_its_own(tmp_path: Path) -> None:
    """The clock starts anew with the machine: who closes the run then measures nothing of it."""
    with contextlib.suppress(ZeroDivisionError):
        run = Run.start(tmp_path, "report", clock=ticking(), interval=3600)
        with run.trial("a", "t1"):
            pass
        run._lease.release()  # as it stands after the owner was killed
        raise ZeroDivisionError
    lease = json.loads((run.folder / LEASE).read_text("utf-8")) | {"boot_id": "another"}
    (run.folder / LEASE).write_text(json.dumps(lease), "utf-8")
    before = describe(run.folder)
    assert before["state"] == "dead"
    close_abandoned(run.folder)
    after = describe(run.folder)
    assert after["state"] == "dead"
    assert after["seconds"] == before["seconds"] is not None


def test_a_run_that_a_signal_ends_says_which(tmp_path: Path) -> None:
    with pytest.raises(Signalled), Run.start(tmp_path, "ours") as run, run.trial("a", "t"):
        raise Signalled("SIGTERM")
    found = describe(run.folder)
    assert (found["state"], found["cause"]) == ("failed", "process_signal")
    assert found["trials"]["causes"] == {"process_signal": 1}
