"""Runs as seen from outside: their state by evidence, what is missing of them, records that were tampered with."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, RUN_STARTED, TRIAL_FINISHED, TRIAL_STARTED
from faultbook.ownership import LEASE
from faultbook.processes import boot_id, pid_namespace
from faultbook.runtime.journal import TAIL_SET_ASIDE, Journal, records
from faultbook.runtime.lease import NotOwnedError
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.run import ARTIFACT, LEDGER, RUNS, Run, failed
from faultbook.runtime.runs import check, close_abandoned, command_of, describe, find_run, interrupted, runs_in

pytestmark = pytest.mark.skipif(boot_id() is None or pid_namespace() is None, reason="no /proc here")

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STATES = {"live", "finished", "failed", "dead", "indeterminate"}
KEYS = {
    *("run_id", "kind", "state", "reason", "cause", "started", "seconds", "resumes", "trials", "time", "requests"),
    *("artifacts", "evidence", "findings"),
}


def finished(place: Path, kind: str = "report") -> Path:
    with Run.start(place, kind, command=["report", "--", "1"]) as run, run.trial("a", "t1"):
        pass
    return run.folder


def abandoned(place: Path) -> Path:
    """A run whose owner is gone: this process left it, and its record names a process that there cannot be."""
    run = Run.start(place, "report", command=["report", "--", "1"], interval=3600)
    run.event(TRIAL_STARTED, trial_id="x", arm="a", task_id="t1", attempt=1)
    run._lease.release()
    change(run.folder, pid=4_194_305)
    return run.folder


def change(folder: Path, **changes: Any) -> None:
    lease = json.loads((folder / LEASE).read_text("utf-8")) | changes
    (folder / LEASE).write_text(json.dumps(lease), "utf-8")


def described(folder: Path) -> dict[str, Any]:
    found = describe(folder)
    assert set(found) == KEYS
    assert found["state"] in STATES
    json.dumps(found, allow_nan=False)
    return found


# ---- states --------------------------------------------------------------------------------------------------------


def test_states_are_those_of_the_evidence(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run:
        assert described(run.folder)["state"] == "live"
        run.finish(failed(run.run_id, "no space left"))
    assert (described(run.folder)["state"], described(run.folder)["cause"]) == ("failed", run.termination.kind)
    assert described(finished(tmp_path))["state"] == "finished"
    left = abandoned(tmp_path)
    assert (described(left)["state"], described(left)["cause"]) == ("dead", None)
    change(left, boot_id="another", host="another")
    assert described(left)["state"] == "indeterminate"
    (left / LEASE).unlink()
    assert described(left)["state"] == "indeterminate"
    (left / "state.json").write_text('{"state": "running"}')
    assert described(left)["state"] == "indeterminate"
    assert "state.json says 'running'" in described(left)["reason"]


def test_an_end_that_does_not_stand_is_none(tmp_path: Path) -> None:
    """A forged line says nothing, whether it has no digest or that of another record."""
    for forged in (b"{}", b'{"event": "run_finished", "data": {"termination": {"kind": "completed"}}}'):
        folder = abandoned(tmp_path)
        with (folder / JOURNAL).open("ab") as file:
            file.write(forged + b"\n")
        assert (described(folder)["state"], described(folder)["cause"]) == ("dead", None)
        assert described(folder)["findings"] > 0
        assert described(folder)["evidence"]["complete"] is False
    folder = finished(tmp_path)
    content = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(content.replace(b'"kind":"completed"', b'"kind":"user_abort"'))
    assert described(folder)["state"] == "live"  # this process, which owned it last, is there
    assert described(folder)["findings"] == 2


def test_a_description_in_full(tmp_path: Path) -> None:
    found = described(finished(tmp_path))
    assert found["kind"] == "report"
    assert found["started"].endswith("+00:00")
    assert found["seconds"] >= 0
    assert found["resumes"] is None
    assert found["trials"] == {
        "planned": None,
        "started": 1,
        "finished": 1,
        "unfinished": [],
        "causes": {"completed": 1},
    }
    assert found["time"]["total"] >= 0
    assert found["requests"] is None
    assert found["artifacts"] == {"recorded": 0, "missing": []}
    assert found["evidence"] == {"complete": True, "reason": None}
    assert found["findings"] == 0


def test_a_tail_that_was_set_aside_is_told_of(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b'{"half')
    assert described(folder)["evidence"]["complete"] is False
    close_abandoned(folder)
    assert check(folder) == []
    evidence = described(folder)["evidence"]
    assert evidence == {"complete": False, "reason": f"a broken tail of its journal is in {JOURNAL}.tail-1"}
    assert [line.event for line in records(folder)][-2:] == [TAIL_SET_ASIDE, RUN_FINISHED]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    with Ledger(tmp_path / RUNS / LEDGER) as ledger:
        ledger.start(folder.name, "t", 1, "r", model="m", operation="chat")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and "-shm" not in file.name}
    described(folder)
    check(folder)
    runs_in([tmp_path])
    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and "-shm" not in file.name}
    assert {file: after.get(file) for file in before} == before
    assert {file.name for file in set(after) - set(before)} <= {f"{LEDGER}-wal"}


# ---- requests and files --------------------------------------------------------------------------------------------


def test_requests_are_those_of_the_ledger(tmp_path: Path) -> None:
    folder, other = finished(tmp_path), finished(tmp_path)
    asked = {"model": "m", "operation": "chat"}
    with Ledger(tmp_path / RUNS / LEDGER) as ledger:
        for request in ("metered", "unmetered", "open"):
            ledger.start(folder.name, "t", 1, request, **asked)
        ledger.complete(folder.name, "t", 1, "metered", usage=Usage(10, 2))
        ledger.complete(folder.name, "t", 1, "unmetered")
    found = described(folder)["requests"]
    assert (found["requests"], found["metered"], found["unmetered"]) == (3, 1, 2)
    assert (found["started"], found["completed"], found["input_tokens"]) == (1, 2, 10)
    nothing = described(other)["requests"]
    assert (nothing["requests"], nothing["input_tokens"]) == (0, None)


def test_what_was_asked_and_not_answered_is_unsettled_and_kept(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    with Ledger(tmp_path / RUNS / LEDGER) as ledger:
        ledger.start(folder.name, "t", 1, "open", model="m", operation="chat")
    close_abandoned(folder)
    found = described(folder)["requests"]
    assert (found["requests"], found["unsettled"], found["unmetered"]) == (1, 1, 1)
    end = next(line.data for line in records(folder) if line.event == RUN_FINISHED)
    assert end["unsettled_requests"] == 1


def test_a_ledger_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    (tmp_path / RUNS / LEDGER).write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match=LEDGER):
        describe(folder)


def test_files_that_are_missing_or_altered(tmp_path: Path) -> None:
    names = ["kept.html", "altered.html", "missing.html", "pipe.html", "folder.html"]
    with Run.start(tmp_path, "report") as run:
        for name in names:
            (tmp_path / name).write_text(name)
            run.artifact(tmp_path / name)
    assert check(run.folder) == []
    (tmp_path / "altered.html").write_text("another")
    for name in names[2:]:
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "folder.html").mkdir()
    assert described(run.folder)["artifacts"] == {"recorded": 5, "missing": names[1:]}
    found = [(row["finding"], row["detail"]) for row in check(run.folder)]
    altered, *missing = names[1:]
    assert found == [("artifact_altered", altered), *(("artifact_missing", name) for name in missing)]
    assert described(run.folder)["findings"] == 0  # its records are whole all the same


def test_a_file_that_a_later_run_made_anew_is_as_that_one_says(tmp_path: Path) -> None:
    runs = []
    for number in range(2):
        (tmp_path / "page.html").write_text(f"{number}")
        with Run.start(tmp_path, "report") as run:
            run.artifact(tmp_path / "page.html")
        runs.append(run.folder)
    assert [check(folder) for folder in runs] == [[], []]
    (tmp_path / "page.html").write_text("altered")
    assert [[row["finding"] for row in check(folder)] for folder in runs] == [[], ["artifact_altered"]]


def test_a_file_that_is_made_twice_in_a_run_is_as_it_was_made_last(tmp_path: Path) -> None:
    with Run.start(tmp_path, "report") as run:
        for content in ("1", "2"):
            (tmp_path / "page.html").write_text(content)
            run.artifact(tmp_path / "page.html")
    assert described(run.folder)["artifacts"] == {"recorded": 1, "missing": []}


# ---- finding runs --------------------------------------------------------------------------------------------------


def test_runs_are_listed_from_the_oldest_on_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [finished(tmp_path, kind) for kind in ("z", "a", "m")]
    (tmp_path / RUNS / "empty").mkdir()
    (tmp_path / RUNS / "link").symlink_to(folders[0])
    (tmp_path / RUNS / "file").touch()
    assert runs_in([tmp_path]) == folders
    monkeypatch.chdir(tmp_path)
    assert runs_in([tmp_path, Path(), tmp_path / "none", folders[1]]) == folders
    assert runs_in([tmp_path / "none"]) == []


def test_a_run_is_found_by_its_id_its_beginning_or_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = finished(tmp_path), finished(tmp_path)
    (tmp_path / "page.html").write_text("x")
    for name in (folder.name, str(folder)):
        assert find_run(name, [tmp_path]) == folder
    unlike = next(n for n in range(len(folder.name)) if folder.name[n] != other.name[n])
    assert find_run(folder.name[: unlike + 1], [tmp_path]) == folder
    with pytest.raises(FaultbookError, match="begins the ids of 2 runs"):
        find_run(folder.name[:unlike], [tmp_path])
    with pytest.raises(FaultbookError, match=f"no run 'x' among 2 runs; the last one is {other.name}"):
        find_run("x", [tmp_path])
    for name in ("../../etc", "a\0b", "x" * 5000, "\udcff"):
        with pytest.raises(FaultbookError, match="no run"):
            find_run(name, [tmp_path])
    monkeypatch.chdir(folder)
    assert describe(find_run(".", []))["run_id"] == folder.name


@pytest.mark.parametrize("where", ["", ".."])
def test_files_are_found_from_within_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    (tmp_path / "page.html").write_text("x")
    with Run.start(tmp_path, "report") as run:
        run.artifact(tmp_path / "page.html")
    monkeypatch.chdir(run.folder / where)
    assert check(find_run(run.run_id if where else ".", [])) == []


# ---- going on ------------------------------------------------------------------------------------------------------


def test_the_command_of_a_run(tmp_path: Path) -> None:
    assert command_of(finished(tmp_path)) == ["report", "--", "1"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (None, "does not record how it was started"),
        ([], "does not record how it was started"),
        (["report", "--url", "https://u:hunter2-correct@example.org"], "held a secret, which is not on record"),
    ],
)
def test_a_command_that_cannot_be_repeated(tmp_path: Path, command: list[str] | None, problem: str) -> None:
    with Run.start(tmp_path, "report", command=command) as run:
        pass
    with pytest.raises(FaultbookError, match=problem):
        command_of(run.folder)


@pytest.mark.parametrize("command", ["rm -rf /", [1], ["report", None], {"a": 1}])
def test_a_command_that_is_none(tmp_path: Path, command: Any) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    Journal(folder, "run").append(RUN_STARTED, command=command)
    with pytest.raises(FaultbookError, match="does not record how it was started"):
        command_of(folder)


def test_an_altered_command_is_not_run(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    content = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(content.replace(b'["report","--","1"]', b'["report","--","2"]'))
    with pytest.raises(FaultbookError, match="does not record how it was started"):
        command_of(folder)


def test_what_was_cut_off_is_told_of_once(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    finished(tmp_path)
    with Run.start(tmp_path, "report"):
        (left,) = interrupted(tmp_path)
        assert (left["run_id"], left["state"], left["trials"]["unfinished"]) == (folder.name, "dead", ["t1"])
        assert interrupted(tmp_path) == []
    assert described(folder)["state"] == "dead"
    close_abandoned(folder, to_go_on=True)  # it can be gone on from all the same


def test_a_run_beyond_reading_holds_up_nobody(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    (folder / JOURNAL).write_bytes(b"\0" * 100)
    other = abandoned(tmp_path)
    assert [left["run_id"] for left in interrupted(tmp_path)] == [other.name]
    with pytest.raises(DataError, match="no record of this run can be read"):
        close_abandoned(folder)
    assert (folder / JOURNAL).read_bytes() == b"\0" * 100


def test_a_run_with_an_end_of_its_own_is_not_gone_on_from(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    with pytest.raises(NotOwnedError, match="came to its end"):
        close_abandoned(folder, to_go_on=True)


READ_ONLY = """
    import os, sys
    from pathlib import Path
    from faultbook.runtime.runs import close_abandoned, describe, interrupted
    place, folder = map(Path, sys.argv[1:])
    describe(folder)  # whatever Python loads late, it may not be allowed to load then
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    print(describe(folder)["state"], describe(folder)["requests"]["requests"], interrupted(place))
"""


def test_a_disk_that_is_read_only_can_be_looked_at() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        place = Path(made)
        folder = abandoned(place)
        with Ledger(place / RUNS / LEDGER) as ledger:
            ledger.start(folder.name, "t", 1, "r", model="m", operation="chat")
        paths = [place, *place.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", textwrap.dedent(READ_ONLY), str(place), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        for path in paths:
            path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "dead 1 []\n"


# ---- records that others wrote -------------------------------------------------------------------------------------

VALUES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["kind", "source", "complete", "seconds", "a"]), st.text(max_size=3), max_size=2),
)
NAMES = (
    *("kind", "plan", "command", "resumes", "termination", "time", "evidence", "path", "sha256", "file"),
    *("trial_id", "arm", "task_id", "attempt"),
)
EVENTS = (RUN_STARTED, TRIAL_STARTED, TRIAL_FINISHED, ARTIFACT, TAIL_SET_ASIDE, RUN_FINISHED, "note")


@QUICK
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(NAMES), VALUES)), max_size=6))
def test_verified_records_of_any_form_are_described(tmp_path: Path, story: list[tuple[str, dict[str, Any]]]) -> None:
    """Whoever writes a chain that verifies may still write anything into it."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path)) / RUNS / "run"
    folder.mkdir(parents=True)
    journal = Journal(folder, "run")
    for event, data in story or [("note", {})]:
        journal.append(event, **data)
    described(folder)
    check(folder)
    with contextlib.suppress(FaultbookError):
        command_of(folder)
    shutil.rmtree(folder.parent.parent)


@QUICK
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["event", "at", "run_id", "seq", "monotonic", "data"]), VALUES), max_size=4
    )
)
def test_records_of_any_form_are_described(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path)) / RUNS / "run"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    described(folder)
    check(folder)
    assert interrupted(folder.parent.parent) == []
    shutil.rmtree(folder.parent.parent)


PLACES = st.floats(0, 1, exclude_max=True)


@QUICK
@given(st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=3, unique=True), PLACES)
def test_a_damaged_run_is_described(tmp_path: Path, flips: list[tuple[float, int]], kept: float) -> None:
    folder = finished(Path(tempfile.mkdtemp(dir=tmp_path)))
    content = bytearray((folder / JOURNAL).read_bytes())
    for place, bit in flips:
        content[int(place * len(content))] ^= 1 << bit
    (folder / JOURNAL).write_bytes(content if kept > 0.5 else content[: int(2 * kept * len(content))])
    described(folder)
    check(folder)


@pytest.mark.parametrize("path", ["a\0b", "/dev/zero", "../../../etc/passwd", "x" * 5000, "", "\udcff", ["x"], 7])
def test_a_hostile_name_of_a_file_is_missing_or_passed_over(tmp_path: Path, path: Any) -> None:
    folder = tmp_path / RUNS / "run"
    folder.mkdir(parents=True)
    Journal(folder, "run").append(ARTIFACT, path=path, sha256="x")
    found = described(folder)["artifacts"]
    assert found["recorded"] == len(found["missing"]) == isinstance(path, str)
