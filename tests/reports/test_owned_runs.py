"""A report is an owned run: on record by evidence, told of once if it was cut off, gone on from where somebody asks."""

from __future__ import annotations

import functools
import json
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from small_project import LOOP, Command, Project, Running, Start, eventually, processes_writing_to, tree

from faultbook.harness import plan, read_trials
from faultbook.reports import run as reports
from faultbook.reports.layout import FAILED
from faultbook.runtime.admission import Admission
from faultbook.runtime.children import find_leftovers
from faultbook.runtime.journal import records
from faultbook.runtime.memory import Reading
from faultbook.runtime.run import RUNS
from faultbook.runtime.runs import describe, runs_in

SCARCE = Reading(host_available=2**20)
PLENTY = Reading(host_available=2**40)


def waits_for(file: Path, mark: Path) -> str:
    """A cell that says by a mark that it has begun, and ends once a file is there."""
    return (
        f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\n"
        f"while not pathlib.Path({str(file)!r}).exists():\n    time.sleep(0.02)\nprint('went')"
    )


def listed(command: Command, *more: str | Path) -> list[dict[str, Any]]:
    done = command("runs", "list", "--json", *more)
    found = json.loads(done.stdout)
    assert (done.code, found["problems"], done.stderr) == (0, [], "")
    return list(found["runs"])


def journal(out: Path, place: int = -1) -> list[dict[str, Any]]:
    """Records of one of the runs in a reports folder."""
    return [line.record for line in records(runs_in([out])[place]) if line.record is not None]


def told(out: Path, event: str, place: int = -1) -> list[Any]:
    return [record["data"] for record in journal(out, place) if record["event"] == event]


class Cut:
    """A report that was killed while its second notebook ran, the first being finished."""

    def __init__(self, project: Project, start: Start) -> None:
        self.project, self.go = project, project.folder / "go"
        mark = project.folder / "slow has begun"
        project.add("print('good')", name="1_good")
        project.add("print('begun')", waits_for(self.go, mark), name="2_slow")
        self.running: Running = start("report", "--jobs", "1", "--quiet")
        eventually(mark.exists, "the slow notebook")
        (self.folder,) = runs_in([project.out])
        self.kernels = [data["child"] for data in told(project.out, "kernel_started")]
        self.writing = {process.pid for process in processes_writing_to(project.out)}

    def kill(self) -> None:
        self.running.send(signal.SIGKILL)
        assert self.running.wait().code == -signal.SIGKILL

    def kernels_are_gone(self) -> bool:
        """By the identities on record, and by what really runs."""
        return find_leftovers(self.kernels) == [] and processes_writing_to(self.project.out) == []


@pytest.fixture
def cut(project: Project, start: Start) -> Cut:
    found = Cut(project, start)
    assert [child["pid"] for child in found.kernels][1:] == sorted(found.writing), (
        "the kernel is on record, by identity"
    )
    assert [child.pid for child in find_leftovers(found.kernels)] == sorted(found.writing)
    found.kill()
    return found


# ---- cut off, told of, gone on from ---------------------------------------------------------------------------------


def test_a_killed_report_is_dead_on_record_and_told_of_once(cut: Cut, command: Command) -> None:
    project = cut.project
    (left,) = listed(command)
    assert (left["run_id"], left["kind"], left["state"], left["cause"]) == (cut.folder.name, "report", "dead", None)
    assert (left["trials"]["planned"], left["trials"]["finished"]) == (2, 1)
    assert left["trials"]["unfinished"] == ["2_slow"]
    assert left["evidence"] == {"complete": True, "reason": None}
    eventually(cut.kernels_are_gone, "the end of the killed run's kernel")
    trials = read_trials(cut.folder)
    assert trials[["task_id", "attempt", "state"]].to_numpy().tolist() == [
        ["1_good", 1, "finished"],
        ["2_slow", 1, "unfinished"],
    ]
    kept = tree(project.report("1_good"))

    cut.go.touch()
    done = command("report")
    assert done.code == 0
    assert (
        f"interrupted: run {cut.folder.name} was cut off; 1 finished reports are kept, unfinished: 2_slow\n"
        in done.stderr
    )
    assert [line.split()[:2] for line in done.stdout.splitlines()][:2] == [["unchanged", "1_good"], ["ran", "2_slow"]]
    assert tree(project.report("1_good")) == kept
    old, new = listed(command)
    assert (old["state"], old["cause"], old["trials"]["unfinished"]) == ("dead", "process_crash", ["2_slow"])
    assert journal(project.out, 0)[-1]["data"]["termination"]["source"] == "inferred_on_resume"
    assert (new["state"], new["cause"], new["trials"]["planned"]) == ("finished", "completed", 1)
    for run in (old, new):
        verified = command("runs", "verify", run["run_id"])
        assert (verified.code, verified.stdout) == (0, "nothing is wrong with its records\n")
    manifest = project.manifest("2_slow")["run"]
    assert manifest["run_id"] == new["run_id"]
    assert manifest["trial_id"] == told(project.out, "trial_started")[0]["trial_id"]
    assert (project.out / manifest["journal"]).samefile(runs_in([project.out])[-1] / "journal.jsonl")

    before = tree(project.out / RUNS)
    again = command("report")
    assert (again.code, again.stderr) == (0, ""), "told once"
    assert tree(project.out / RUNS) == before, "what is unchanged makes no run"


@pytest.mark.slow
@pytest.mark.parametrize("was_told", [False, True])
def test_a_killed_report_is_gone_on_from_as_the_next_attempt(
    cut: Cut, command: Command, tmp_path: Path, was_told: bool
) -> None:
    project = cut.project
    if was_told:
        told_of = json.loads(command("report", "1", "--json").stdout)
        assert told_of["interrupted"] == [{"run_id": cut.folder.name, "finished": 1, "unfinished": ["2_slow"]}]
        assert [report["status"] for report in told_of["reports"]] == ["unchanged"]
        assert len(runs_in([project.out])) == 1
    cut.go.touch()
    (tmp_path / "elsewhere").mkdir()
    done = command("runs", "resume", cut.folder, cwd=tmp_path / "elsewhere")
    assert done.code == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()][:2] == [["unchanged", "1_good"], ["ran", "2_slow"]]
    assert "interrupted:" not in done.stderr
    old, new = listed(command)
    assert (old["state"], old["cause"]) == ("dead", "process_crash")
    assert (new["state"], new["resumes"]) == ("finished", cut.folder.name)
    folder = runs_in([project.out])[-1]
    assert plan(folder)[["task_id", "attempt"]].to_numpy().tolist() == [["2_slow", 2]]
    (trial,) = read_trials(folder).to_dict("records")
    assert (trial["arm"], trial["task_id"], trial["attempt"], trial["state"]) == ("report", "2_slow", 2, "finished")
    assert trial["cause"] == "completed"
    assert "went on from it already" in command("runs", "resume", cut.folder.name).error
    assert len(runs_in([project.out])) == 2


def test_what_was_cut_off_in_the_making_of_the_first_record_is_no_obstacle(project: Project, command: Command) -> None:
    project.add("print('a')")
    folder = project.out / RUNS / "20260909T120000Z-report-00000000"
    folder.mkdir(parents=True)
    shutil.copytree(folder, folder.with_name("20260909T120001Z-report-00000000"))
    (folder / "journal.jsonl").write_text('{"seq": 1, "at"')
    done = command("report", "--quiet")
    assert (done.code, done.stderr) == (0, "")
    assert [run["state"] for run in listed(command)] == ["indeterminate", "finished"]


# ---- two at a time --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_report_waits_and_the_first_is_live(project: Project, start: Start, command: Command) -> None:
    go, mark = project.folder / "go", project.folder / "begun"
    project.add(waits_for(go, mark))
    first = start("report", "--quiet")
    eventually(mark.exists, "the notebook")
    second = start("report", "--force")
    eventually(lambda: "waiting" in second.read("stderr"), "the second one's waiting")
    (live,) = listed(command)
    assert (live["state"], live["trials"]["unfinished"]) == ("live", ["1_small"])
    refused = command("runs", "resume", live["run_id"]).error
    assert "only a run whose owner is certainly gone can be resumed" in refused
    go.touch()
    done, waited = first.wait(), second.wait()
    assert (done.code, waited.code) == (0, 0)
    assert "interrupted:" not in waited.stderr
    assert [run["state"] for run in listed(command)] == ["finished", "finished"]
    assert project.manifest()["run"]["run_id"] == runs_in([project.out])[-1].name


# ---- how a run ends -------------------------------------------------------------------------------------------------


def test_a_limit_is_a_budget_and_what_there_was_is_kept(project: Project, command: Command) -> None:
    mark, page = project.folder / "looping", project.out / FAILED / "1_small" / "1_small.html"
    project.add("print('partial')", f"open({str(mark)!r}, 'w')\n{LOOP}")
    for limit in (2, 10, 50):  # a slow machine may not get to the loop at once
        done = command("report", "--time-limit", limit, "--json")
        (result,) = json.loads(done.stdout)["reports"]
        assert (done.code, result["status"], result["error"]) == (
            1,
            "failed",
            f"ran longer than its limit of {limit} s",
        )
        assert (project.out / result["html"]).samefile(page)
        if mark.exists():
            break
    assert "partial\n</pre>" in page.read_text(encoding="utf-8")
    found = listed(command)[-1]
    assert (found["state"], found["cause"]) == ("failed", "agent_budget_exhausted")
    assert found["trials"]["causes"] == {"agent_budget_exhausted": 1}
    (end,) = told(project.out, "trial_finished")
    assert end["termination"]["retryable"] is False
    assert end["seconds"]["total"] >= end["seconds"]["agent"] > 0
    assert found["time"]["seconds"]["tool"] >= end["seconds"]["agent"]
    assert processes_writing_to(project.out) == []


def test_a_failure_is_on_record_with_what_it_said(project: Project, command: Command) -> None:
    project.add("print('good')", name="1_a")
    project.add("raise ValueError('no such column')", name="2_b")
    done = command("report", "--quiet")
    assert done.code == 1
    (found,) = listed(command)
    assert found["state"] == "failed"
    assert found["trials"]["causes"] == {"completed": 1, "unclassified": 1}
    assert found["artifacts"] == {"recorded": 1, "missing": []}
    ends = {end["task_id"]: end for end in told(project.out, "trial_finished")}
    assert "ValueError: no such column" in ends["2_b"]["termination"]["message"]
    assert "2_b: " in told(project.out, "run_finished")[0]["termination"]["message"]
    shown = command("runs", "show", found["run_id"])
    assert f"failed        {found['run_id']}  report" in shown.stdout
    assert "trials: 2 started of 2 planned, 2 finished" in shown.stdout
    trials = read_trials(runs_in([project.out])[0]).set_index("task_id")
    assert trials["state"].to_dict() == {"1_a": "finished", "2_b": "finished"}
    assert trials["cause"].to_dict() == {"1_a": "completed", "2_b": "unclassified"}
    assert trials["resolved"].isna().all(), "a notebook that ran through is no verdict of a verifier's"
    ended = told(project.out, "kernel_ended")
    assert all(data["admission"]["kind"] == "kernel" and data["admission"]["before"] for data in ended)
    (project.report("1_a") / "manifest.json").write_text("{}")
    verified = command("runs", "verify", found["run_id"], "--json")
    assert verified.code == 1
    assert [item["finding"] for item in json.loads(verified.stdout)["findings"]] == ["artifact_altered"]


# ---- memory ---------------------------------------------------------------------------------------------------------


def scarce_until(enough: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    read = lambda: PLENTY if enough.is_set() else SCARCE  # noqa: E731
    monkeypatch.setattr(reports, "Admission", functools.partial(Admission, read=read))


def waiting(project: Project) -> list[Any]:
    return told(project.out, "waiting") if runs_in([project.out]) else []


@pytest.mark.parametrize("more_comes", [True, False])
def test_a_kernel_waits_for_memory_and_starts_late(
    project: Project, monkeypatch: pytest.MonkeyPatch, more_comes: bool
) -> None:
    """Once there is memory, while the first one still runs; or else when the first one has ended."""
    go, met, enough = project.folder / "go", project.folder / "met", threading.Event()
    for name, other in (("1_a", met if more_comes else go), ("2_b", go)):
        project.add(waits_for(other, met if name == "2_b" else project.folder / "unused"), name=name)
    scarce_until(enough, monkeypatch)

    def release() -> None:
        eventually(lambda: waiting(project), "the second one's wait")
        go.touch()
        if more_comes:
            enough.set()

    releasing = threading.Thread(target=release)
    releasing.start()
    assert project.status(workers=2) == ["ran", "ran"]
    releasing.join()
    (wait,) = waiting(project)
    assert wait["reason"] == "1 MiB of memory are free, and 256 MiB are needed"
    by_task = {data["trial_id"].partition(".")[0]: data["admission"] for data in told(project.out, "kernel_ended")}
    late, first = by_task.pop(wait["task_id"]), by_task.popitem()[1]
    assert (late["reasons"], first["reasons"]) == ([wait["reason"]], [])
    assert late["waited_seconds"] > first["waited_seconds"]
    assert "nothing else of this run is running" in first["although"]
    assert (late["although"] is None) == more_comes
    assert describe(runs_in([project.out])[0])["time"]["seconds"]["queue"] > 0


def test_waiting_for_memory_counts_for_the_limit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    scarce_until(threading.Event(), monkeypatch)
    for name in ("1_a", "2_b"):
        project.add(LOOP, name=name)
    first, second = project.run(workers=2, limit=2)
    for result in (first, second):
        assert result.status == "failed"
        assert result.error is not None
        assert result.error.startswith("ran longer than its limit of 2 s")
        assert (project.out / FAILED / result.name / f"{result.name}.html").is_file()
    (end,) = told(project.out, "run_finished")
    assert end["termination"]["kind"] == "agent_budget_exhausted"
    assert processes_writing_to(project.out) == []
    assert project.leftovers() == []


# ---- secrets --------------------------------------------------------------------------------------------------------


def test_records_of_a_run_hold_no_secret_while_the_report_holds_what_it_was_given(
    project: Project, command: Command
) -> None:
    """Parameters and output are the user's own, and a report says what it was made from; records are told to others."""
    key = "sk-ant-" + "api03-Zm9vYmFyQmF6UXV4MTIzNDU2Nzg5MA"  # in two parts, so that no scanner takes it for one
    address = "https://reader:" + "hunter2hunter2@db.example.org/x"
    project.add("raise ValueError(note + ' ' + address)", name="1_a", parameters="note: str = ''\naddress: str = ''")
    project.add("print(len(note))", name="2_b", parameters="note: str = ''")
    done = command("report", "--json", "-p", f"note={key}", "-p", f"address={address}")
    assert [item["status"] for item in json.loads(done.stdout)["reports"]] == ["failed", "ran"]
    written = tree(project.out / RUNS)
    for secret in (key, "hunter2hunter2"):
        assert [name for name, content in written.items() if secret.encode() in content] == []
    assert project.manifest("2_b")["parameters"]["note"] == key, "else it could not be told to be unchanged"
    assert command("report", "2", "-p", f"note={key}").stdout.startswith("unchanged")
    assert "held a secret, which is not on record" in command("runs", "resume", runs_in([project.out])[0].name).error
