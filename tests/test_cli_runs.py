"""`faultbook runs`: what it tells of our own runs to programs and to people, with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faultbook.cli import main
from faultbook.errors import FaultbookError
from faultbook.journal_chain import JOURNAL, RUN_FINISHED, RUN_STARTED, TRIAL_STARTED
from faultbook.ownership import LEASE
from faultbook.processes import boot_id, pid_namespace
from faultbook.runtime.journal import Journal, records
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.run import LEDGER, RUNS, Run, failed

pytestmark = pytest.mark.skipif(boot_id() is None or pid_namespace() is None, reason="no /proc here")

Invoke = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, in which the command is run."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "reports").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["runs", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def loaded(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (code, "")
    assert result.stdout.count("\n") == 1
    return dict(json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")))


def mistake(*arguments: object) -> str:
    """The one line of a mistake."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("faultbook: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.rstrip("\n")


def finished(place: Path, command: list[str] | None = None) -> Path:
    with Run.start(place, "report", plan=[{"arm": "a", "task_id": "t1", "attempt": 1}], command=command) as run:
        with run.trial("a", "t1"), run.segments.measure("tool"):
            pass
        (place / "page.html").write_text("x")
        run.artifact(place / "page.html")
    return run.folder


def abandoned(place: Path, command: list[str] | None = None) -> Path:
    """A run whose owner is gone: its record names a process that there cannot be."""
    run = Run.start(place, "report", command=command, interval=3600)
    run.event(TRIAL_STARTED, trial_id="x", arm="a", task_id="t1", attempt=1)
    run._lease.release()
    lease = json.loads((run.folder / LEASE).read_text("utf-8")) | {"pid": 4_194_305}
    (run.folder / LEASE).write_text(json.dumps(lease), "utf-8")
    return run.folder


# ---- list ----------------------------------------------------------------------------------------------------------


def test_list_without_runs(project: Path) -> None:
    assert invoke("list").stdout == "no runs here\n"
    assert loaded("list") == {"runs": [], "problems": []}


def test_list_shows_states_by_evidence(project: Path) -> None:
    made = [finished(project / "reports"), abandoned(project / "reports"), finished(project)]
    with Run.start(project / "reports", "report") as run:
        found = loaded("list")["runs"]
        assert {"run_id", "kind", "state", "cause", "started", "seconds"} <= set(found[0])
        assert [row["run_id"] for row in found] == [*(folder.name for folder in made), run.run_id]
        assert [row["state"] for row in found] == ["finished", "dead", "finished", "live"]
        assert [row["cause"] for row in found] == ["completed", None, "completed", None]
        run.finish(failed(run.run_id, "no space left"))
    assert [row["state"] for row in loaded("list")["runs"]][-1] == "failed"
    lines = invoke("list").stdout.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith(f"dead          {made[1].name}  report  20")
    assert lines[0].endswith("  completed")
    assert [row["run_id"] for row in loaded("list", "--in", project / "reports")["runs"]] == [
        *(folder.name for folder in made[:2]),
        run.run_id,
    ]


def test_list_outside_of_a_project_means_this_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise FaultbookError("no project")

    folder = finished(project)
    monkeypatch.setattr(sys.modules["faultbook.cli.runs"], "project_folder", none)
    assert [row["run_id"] for row in loaded("list")["runs"]] == [folder.name]


def test_a_run_that_cannot_be_read_hides_no_other(project: Path) -> None:
    folder, other = finished(project), finished(project)
    (folder / JOURNAL).rename(folder / "moved")
    (folder / JOURNAL).symlink_to(folder / "moved")
    result = invoke("list")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert other.name in result.stdout
    assert result.stderr.startswith(f"{folder.name}: ")
    found = loaded("list")
    assert [row["run_id"] for row in found["runs"]] == [other.name]
    assert [row["run_id"] for row in found["problems"]] == [folder.name]


def test_no_such_folder(project: Path) -> None:
    assert mistake("list", "--in", "nowhere") == "faultbook: --in nowhere: no such folder"


# ---- show ----------------------------------------------------------------------------------------------------------


def test_show(project: Path) -> None:
    folder = finished(project / "reports")
    with Ledger(folder.parent / LEDGER) as ledger:
        for request in ("1", "2", "3"):
            ledger.start(folder.name, "t", 1, request, model="m", operation="chat")
        ledger.complete(folder.name, "t", 1, "1", usage=Usage(10, 2))
    text = invoke("show", folder.name).stdout
    assert text.startswith(f"finished      {folder.name}  report  20")
    for part in (
        "\n  the run came to its end (completed): nothing runs any more\n",
        "\n  trials: 1 started of 1 planned, 1 finished\n    completed: 1\n",
        "\n  tool: 0.0",
        "\n  unexplained: ",
        "\n  requests: 1 metered, 2 not\n",
        "\n  files recorded: 1, missing or altered: 0\n",
    ):
        assert part in text
    assert text.endswith("\n  records: whole\n")
    found = loaded("show", folder.name)
    assert found["run_id"] == folder.name
    assert found["requests"]["metered"] == 1
    assert found["time"]["seconds"].keys() == {"tool"}


def test_show_what_is_missing(project: Path) -> None:
    folder = abandoned(project / "reports")
    journal = Journal(folder, folder.name)
    journal.append("artifact", path="gone.html", sha256="x")
    with (folder / JOURNAL).open("ab") as file:
        file.write(b"half")
    text = invoke("show", folder).stdout
    assert "\n    unfinished: t1\n" in text
    assert "\n  files recorded: 1, missing or altered: 1\n    gone.html\n" in text
    assert text.endswith("\n  records: incomplete (see verify)\n")
    assert "requests" not in text


@pytest.mark.parametrize("command", ["show", "verify", "resume"])
def test_a_run_that_is_not_there(project: Path, command: str) -> None:
    assert mistake(command, "x") == "faultbook: no run 'x' among 0 runs"
    one, two = finished(project), finished(project)
    same = one.name[: next(n for n in range(len(one.name)) if one.name[n] != two.name[n])]
    assert mistake(command, same) == f"faultbook: '{same}' begins the ids of 2 runs; give more of it"
    assert mistake(command, "x").endswith(f"among 2 runs; the last one is {two.name}")
    assert mistake(command, "x", "--in", "nowhere") == "faultbook: no run 'x' among 0 runs"
    assert mistake(command, "x" * 5000)
    assert mistake(command, "a\nb\x1b[31m") == f"faultbook: no run 'a b' among 2 runs; the last one is {two.name}"
    assert "Missing argument" in mistake(command)


def test_a_run_can_be_named_by_its_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = finished(project)
    for name in (folder, folder.relative_to(project)):
        assert loaded("show", name)["run_id"] == folder.name
    monkeypatch.chdir(folder)
    assert loaded("show", ".")["run_id"] == folder.name
    assert invoke("verify", ".").exit_code == 0


# ---- verify --------------------------------------------------------------------------------------------------------


def test_verify_a_whole_run(project: Path) -> None:
    folder = finished(project)
    assert invoke("verify", folder.name).stdout == "nothing is wrong with its records\n"
    assert invoke("verify", folder.name).exit_code == 0
    assert loaded("verify", folder.name) == {"run_id": folder.name, "findings": []}


def test_verify_names_every_fault_and_exits_with_1(project: Path) -> None:
    folder = finished(project)
    (project / "page.html").write_text("y")
    content = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(content.replace(b'"task_id":"t1","attempt":1}', b'"task_id":"t1","attempt":2}', 1))
    result = invoke("verify", folder.name)
    assert (result.exit_code, result.stderr) == (1, "")
    first, last = result.stdout.splitlines()
    assert first.startswith("line 1: a record is not what its digest was taken of (")
    assert last == "a recorded file is altered (page.html)"
    found = loaded("verify", folder.name, code=1)["findings"]
    assert [(row["line"], row["finding"]) for row in found] == [(1, "hash_mismatch"), (None, "artifact_altered")]


def test_a_run_without_an_end_is_a_finding(project: Path) -> None:
    folder = abandoned(project)
    result = invoke("verify", folder.name)
    assert (result.exit_code, result.stdout) == (1, "the run has no end on record\n")


# ---- names and records that mean harm ------------------------------------------------------------------------------


def test_hostile_names_are_printed_plain(project: Path) -> None:
    name = "20260908-\x1b[31mred\x07\nfinished      forged\u202e"
    folder = project / RUNS / name
    folder.mkdir(parents=True)
    journal = Journal(folder, "run")
    journal.append(RUN_STARTED, kind="\x1b]0;title\x07k\nk", plan=[])
    journal.append(TRIAL_STARTED, trial_id="x", task_id="t\n  records: whole")
    journal.append("artifact", path="p\n\x1b[2Jp", sha256="")
    journal.append(RUN_FINISHED, termination={"kind": "a\nb"}, time={"seconds": {"s\ns": 1.0, "t": "x"}})
    for arguments in (("list",), ("show", folder), ("verify", folder)):
        result = invoke(*arguments)
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(result.output)
        assert not [line for line in result.output.splitlines() if line.startswith(("finished", "forged", "p", "k"))]
    assert invoke("list").stdout.count("\n") == 1
    assert "\n    unfinished: t records: whole\n" in invoke("show", folder).stdout
    assert "\n  s s: 1.000 s\n" in invoke("show", folder).stdout
    assert loaded("list")["runs"][0]["run_id"] == name


def test_names_that_are_no_text(project: Path) -> None:
    folder = project / RUNS / os.fsdecode(b"run-\xff")
    folder.mkdir(parents=True)
    Journal(folder, "run").append(RUN_STARTED, kind="report")
    assert "run-" in invoke("list").stdout
    assert loaded("list")["runs"][0]["run_id"] == "run-\udcff"
    assert invoke("show", folder).exit_code == 0
    assert loaded("verify", folder, code=1)["run_id"] == "run-\udcff"
    assert "how it was started" in mistake("resume", folder)


@pytest.mark.parametrize(
    "time", [7, "x", [], {}, {"seconds": 3}, {"seconds": {"a": None, "b": -1}, "unexplained": "x"}]
)
@pytest.mark.parametrize("evidence", [None, "x", {"complete": "yes", "reason": ["x"]}])
def test_records_of_another_form_are_shown(project: Path, time: Any, evidence: Any) -> None:
    folder = project / RUNS / "run"
    folder.mkdir(parents=True)
    journal = Journal(folder, "run")
    journal.append(RUN_STARTED, kind=["x"], plan={}, resumes=7)
    journal.append(RUN_FINISHED, termination=time, time=time, evidence=evidence)
    assert invoke("show", folder).exit_code == 0
    assert loaded("show", folder)["run_id"] == "run"
    assert invoke("list").exit_code == 0


@pytest.mark.parametrize("content", [b"", b"\0" * 50, b"[1]\n", b'{"event": "run_started"}\n', b"\xff\n{"])
def test_garbage_is_shown_as_such(project: Path, content: bytes) -> None:
    folder = project / RUNS / "run"
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_bytes(content)
    assert loaded("list")["runs"][0]["state"] == "indeterminate"
    assert invoke("show", "run").exit_code == 0
    assert invoke("verify", "run").exit_code == 1
    assert mistake("resume", "run")


# ---- resume --------------------------------------------------------------------------------------------------------


def test_resume_closes_the_run_and_starts_the_same_again(project: Path) -> None:
    folder = abandoned(project, ["runs", "list", "--in", str(project)])
    result = invoke("resume", folder.name)
    assert result.exit_code == 0
    assert result.stderr == f"{folder.name} is closed; going on: faultbook runs list --in {project}\n"
    assert result.stdout.startswith(f"dead          {folder.name}  report")
    assert "process_crash" in result.stdout
    assert [line.event for line in records(folder)][-1] == RUN_FINISHED
    assert invoke("resume", folder.name).exit_code == 0  # nothing has begun to go on from it
    with Run.start(project, "report", resumes=folder) as run:
        pass
    assert f"the run {run.run_id} went on from it already" in mistake("resume", folder.name)


def test_resume_with_json_asks_the_command_for_it(project: Path) -> None:
    folder = abandoned(project, ["runs", "list", "--in", str(project)])
    result = invoke("resume", folder.name, "--json")
    assert result.exit_code == 0
    assert [row["run_id"] for row in json.loads(result.stdout)["runs"]] == [folder.name]
    other = abandoned(project, ["recovery", "simulate", "--out", "x"])
    before = (other / JOURNAL).read_bytes()
    assert "'recovery simulate', which goes on, prints no JSON" in mistake("resume", other.name, "--json")
    assert (other / JOURNAL).read_bytes() == before


def test_the_exit_code_is_that_of_what_goes_on(project: Path) -> None:
    folder = abandoned(project, ["runs", "show", "nothing"])
    result = invoke("resume", folder.name)
    assert result.exit_code == 2
    assert result.stderr.endswith("faultbook: no run 'nothing' among 1 runs; the last one is " + folder.name + "\n")


def test_what_cannot_be_resumed(project: Path) -> None:
    command = ["runs", "list"]
    assert "came to its end" in mistake("resume", finished(project, command).name)
    assert "does not record how it was started" in mistake("resume", abandoned(project).name)
    secret = abandoned(project, ["report", "--url", "https://u:hunter2-correct@example.org"])
    assert "held a secret" in mistake("resume", secret.name)
    with Run.start(project, "report", command=command) as run:
        assert "only a run whose owner is certainly gone can be resumed" in mistake("resume", run.run_id)
        before = (run.folder / JOURNAL).read_bytes()
    assert (run.folder / JOURNAL).read_bytes().startswith(before)


KILLED = """
    import sys
    from pathlib import Path
    from faultbook.runtime.run import Run
    with Run.start(Path("reports"), "report", command=["runs", "list"]) as run, run.trial("a", "t1"):
        print(run.run_id, flush=True)
        sys.stdin.read()
"""


def test_a_run_that_is_killed_as_the_command_sees_it(project: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert loaded("show", name)["state"] == "live"
        assert f"the owner, process {process.pid}, is there" in mistake("resume", name)
        process.send_signal(signal.SIGKILL)
        process.wait()
    found = loaded("show", name)
    assert (found["state"], found["cause"], found["trials"]["unfinished"]) == ("dead", None, ["t1"])
    program = [sys.executable, "-c", "from faultbook.cli import main; main()", "runs", "resume", name]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "process_crash" in done.stdout
    assert loaded("verify", name)["findings"] == []
