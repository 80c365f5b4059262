"""Reports made by real kernels: whole or not at all, made again when and only when something changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_project import LOOP, READ_DATA, Command, Project, Start, eventually, processes_writing_to, results, tree

import faultbook
from faultbook.errors import FaultbookError
from faultbook.reports.layout import FAILED, LOCK, MANIFEST
from faultbook.reports.run import Result, as_json, make_jobs, verdict
from faultbook.runtime.run import RUNS
from faultbook.runtime.runs import describe, runs_in

FAIL_IF = """\
from faultbook.paths import data_folder
if "fail" in (data_folder() / "told.txt").read_text():
    raise ValueError("told to fail")
"""


def strict(text: str | bytes) -> Any:
    """Parse JSON as everyone else does: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"not strict JSON: {name}")

    return json.loads(text, parse_constant=refuse)


def assert_whole(folder: Path) -> None:
    """Every file is named in the manifest with its digest, and every name has its file."""
    files = tree(folder)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != MANIFEST}
    assert strict(files[MANIFEST])["files"] == digests


# ---- the verdict ----------------------------------------------------------------------------------------------------


def test_verdict_and_json() -> None:
    good, old, bad = (
        Result("1_a", "ran", 1.5, "1_a/1_a.html", None),
        Result("2_b", "unchanged", 0.0, "2_b/2_b.html", None),
        Result("3_c", "failed", 0.1, None, "why"),
    )
    assert [verdict(results) for results in ([], [good], [good, old], [good, bad], [bad])] == [0, 0, 0, 1, 1]
    assert as_json([good, bad]) == {
        "reports": [
            {"name": "1_a", "status": "ran", "seconds": 1.5, "html": "1_a/1_a.html", "error": None},
            {"name": "3_c", "status": "failed", "seconds": 0.1, "html": None, "error": "why"},
        ],
        "exit_code": 1,
    }


# ---- parameters of several notebooks --------------------------------------------------------------------------------


def test_each_report_gets_the_parameters_it_has(project: Project) -> None:
    project.add("1", name="1_a", parameters="n: int = 1\nseed: int = 0")
    project.add("1", name="2_b", parameters="seed: int = 7\ntext: str = ''")
    jobs = make_jobs(
        project.catalog(),
        data=project.data,
        lock=project.lock,
        given={"seed": 3, "text": "from a file"},
        texts={"n": "5", "text": "from the command line"},
    )
    assert [dict(job.inputs.parameters) for job in jobs] == [
        {"n": 5, "seed": 3},
        {"seed": 3, "text": "from the command line"},
    ]


def test_a_parameter_that_no_chosen_report_has(project: Project) -> None:
    project.add("1", name="1_a", parameters="n: int = 1")
    with pytest.raises(FaultbookError, match=r"no report to run has a parameter 'm'; there are: n$"):
        make_jobs(project.catalog(), data=project.data, lock=project.lock, given={"m": 1}, texts={})


# ---- run, unchanged, run again --------------------------------------------------------------------------------------

READ_MORE = """\
from faultbook.paths import data_folder
print((data_folder() / 'a.csv').read_text())
print(sorted(path.name for path in (data_folder() / 'logs').glob('*.csv')))
"""

CHANGES: dict[str, Callable[[Project], object]] = {
    "a data byte": lambda project: (project.data / "a.csv").write_text("x,y\n1,3\n"),
    "a new file in a folder that was listed": lambda project: (project.data / "logs" / "new.csv").touch(),
    "the removal of a data file": lambda project: (project.data / "logs" / "b.csv").unlink(),
    "the lock": lambda project: project.lock.write_text("numpy==2.4.7\n"),
    "the notebook": lambda project: project.add(READ_MORE, "1", parameters="n: int = 1"),
    "the page deleted": lambda project: (project.report() / "1_small.html").unlink(),
}


@pytest.fixture
def ran(project: Project) -> Project:
    """A project whose report was just made."""
    (project.data / "logs").mkdir()
    (project.data / "logs" / "b.csv").touch()
    project.add(READ_MORE, parameters="n: int = 1")
    assert project.status() == ["ran"]
    return project


def test_what_is_unchanged_is_not_run_again(ran: Project) -> None:
    before = tree(ran.out)
    told = len(ran.progress.cells)
    (result,) = ran.run()
    assert result == Result("1_small", "unchanged", 0.0, "1_small/1_small.html", None)
    assert len(ran.progress.cells) == told, "no cell ran"
    assert ran.progress.results[-1] == result
    assert {name: content for name, content in tree(ran.out).items() if name != "index.html"} == {
        name: content for name, content in before.items() if name != "index.html"
    }
    (ran.data / "unread.csv").write_text("x")
    (ran.data / "logs" / "b.csv").write_text("listed, not read")
    (ran.notebooks / "notes.txt").write_text("x")
    assert ran.status() == ["unchanged"]


@pytest.mark.slow
def test_one_change_at_a_time_makes_it_run_again(ran: Project) -> None:
    for change, make in CHANGES.items():
        make(ran)
        assert ran.status() == ["ran"], change
        assert ran.status() == ["unchanged"], f"after {change}"
        assert_whole(ran.report())
    assert ran.status(given={"n": 2}) == ["ran"]
    assert ran.manifest()["parameters"] == {"n": 2}
    assert ran.status(texts={"n": "2"}) == ["unchanged"]
    assert ran.status(force=True) == ["ran"], "the default again, and forced"
    assert ran.status() == ["unchanged"]


def test_another_data_folder(ran: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ran.data, other)
    every = ran.catalog()
    ran.folder.joinpath("data").rename(tmp_path / "gone")
    jobs = make_jobs(every, data=other, lock=ran.lock, given={}, texts={})
    from faultbook.reports.run import run_reports

    (result,) = run_reports(jobs, every, ran.out, progress=ran.progress)
    assert result.status == "unchanged", "the same data elsewhere are the same data"
    (other / "a.csv").write_text("other\n")
    (result,) = run_reports(jobs, every, ran.out, progress=ran.progress)
    assert result.status == "ran"
    assert "other" in ran.printed()


def test_data_behind_a_link_count(project: Project, tmp_path: Path) -> None:
    """As git-annex and DVC lay data out."""
    store = tmp_path / "store"
    store.write_text("x\n")
    (project.data / "a.csv").unlink()
    (project.data / "a.csv").symlink_to(store)
    project.add(READ_DATA)
    assert project.status() == ["ran"]
    store.write_text("y\n")
    assert project.status() == ["ran"]
    assert project.printed().startswith("y")


def test_every_way_of_reading_is_seen_and_writing_is_not(project: Project) -> None:
    for name in ("b.csv", "c.csv", "logs/d.csv"):
        (project.data / name).parent.mkdir(exist_ok=True)
        (project.data / name).write_text("x\n1\n")
    project.add(
        "import tempfile\nimport pandas as pd\nfrom faultbook.paths import data_folder\ndata = data_folder()",
        "open(data / 'a.csv').read()\npd.read_csv(data / 'b.csv')\n[p.read_text() for p in data.glob('logs/*.csv')]",
        "(data / 'written.csv').write_text('x')\ntempfile.TemporaryFile().write(b'x')",
        "with tempfile.NamedTemporaryFile('w+') as file:\n    file.write('x')\n    file.seek(0)\n    file.read()",
    )
    assert project.status() == ["ran"]
    manifest = project.manifest()
    assert manifest["data"] == {
        name: hashlib.sha256((project.data / name).read_bytes()).hexdigest()
        for name in ("a.csv", "b.csv", "logs/d.csv")
    }
    assert set(manifest["listings"]) == {"logs"}
    assert project.status() == ["unchanged"], "what it wrote itself is no input"


# ---- what a report holds --------------------------------------------------------------------------------------------

EVERYTHING = """\
import os, sys, tempfile, warnings
from pathlib import Path
import pandas as pd
import matplotlib.pyplot as plt
import faultbook
from faultbook.paths import data_folder
from faultbook.reports.show import show_figure, show_table, summarise
"""
TELLING = """\
warnings.warn("a warning names the file of its cell")
print(data_folder(), Path.cwd(), sys.prefix, sys.base_prefix, Path.home(), tempfile.gettempdir())
print(os.environ["FAULTBOOK_DATA"], faultbook.__file__)
data_folder()
"""
SHOWING = """\
frame = pd.read_csv(data_folder() / "a.csv")
show_table(frame, "table", "A table")
summarise(rows=len(frame))
figure, axes = plt.subplots()
axes.plot(frame["x"])
axes.set_title("$$ x_{$HOME$}")
show_figure(figure, "figure", "A line")
{"b", "a", "c"}
"""


@pytest.fixture(scope="module")
def twice(
    tmp_path_factory: pytest.TempPathFactory, _own_jupyter: None
) -> tuple[Project, dict[str, bytes], dict[str, bytes]]:
    """A report of everything, made twice."""
    project = Project(tmp_path_factory.mktemp("twice") / "project")
    project.add(
        EVERYTHING, "from faultbook.style import use_style\nuse_style()", TELLING, SHOWING, parameters="seed: int = 5"
    )
    made = []
    for _ in range(2):
        (result,) = project.run(force=True)
        assert result.error is None
        made.append(tree(project.report()))
    return project, made[0], made[1]


def test_a_report_holds_all_its_files(twice: Any) -> None:
    project, _, files = twice
    assert sorted(files) == [
        *("1_small.html", "1_small.ipynb", "figures/figure.png", "figures/figure.svg"),
        *("manifest.json", "summary.json", "tables/table.csv"),
    ]
    assert_whole(project.report())
    assert sorted(path.name for path in project.out.iterdir()) == [LOCK, RUNS, "1_small", "index.html"]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_digest_is_right(twice: Any) -> None:
    project, _, _ = twice
    manifest = project.manifest()
    assert manifest["data"] == {"a.csv": digest(project.data / "a.csv")}
    assert manifest["listings"] == {}
    assert manifest["notebook"] == {"name": "1_small.ipynb", "sha256": digest(project.notebooks / "1_small.ipynb")}
    assert manifest["lock"] == {"name": "requirements.lock", "sha256": digest(project.lock)}
    assert (manifest["name"], manifest["title"], manifest["seed"]) == ("1_small", "Small", 5)
    assert manifest["versions"]["faultbook"] == faultbook.__version__
    assert manifest["timing"]["seconds"] > 0


def test_two_runs_give_the_same_bytes(twice: Any) -> None:
    _, first, second = twice
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name] and name != MANIFEST] == []
    one, two = strict(first[MANIFEST]), strict(second[MANIFEST])
    assert {key for key in one if one[key] != two[key]} <= {"timing", "run"}


def test_the_folder_in_the_making_is_not_told(project: Project) -> None:
    """Its name is another one each time."""
    project.add("import os\nprint('kept in', os.environ['FAULTBOOK_OUTPUT'])")
    pages = []
    for _ in range(2):
        assert project.status(force=True) == ["ran"]
        pages.append((project.report() / "1_small.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert ".building-" not in pages[0]


@pytest.mark.parametrize(
    "place",
    ["the project", "the data", "Python", "the base of Python", "home", "temporary files", "the package"],
)
def test_no_place_of_this_machine_is_told(twice: Any, place: str) -> None:
    project, _, files = twice
    path = {
        "the project": project.folder,
        "the data": project.data,
        "Python": Path(sys.prefix),
        "the base of Python": Path(sys.base_prefix),
        "home": Path.home() / "x",
        "temporary files": Path(tempfile.gettempdir()) / "x",
        "the package": Path(faultbook.__file__).parent,
    }[place]
    told = str(path).removesuffix("x").encode()
    assert [name for name, content in files.items() if told in content] == []
    assert told not in (project.out / "index.html").read_bytes()


def test_files_are_strict_json_without_papermill(twice: Any) -> None:
    _, _, files = twice
    for name in ("1_small.ipynb", "manifest.json", "summary.json"):
        strict(files[name])
    assert b"papermill" not in files["1_small.ipynb"]
    assert b"iopub" not in files["1_small.ipynb"]


def test_a_report_is_for_others_to_read(twice: Any) -> None:
    project, _, _ = twice
    for path in project.report().rglob("*"):
        assert path.stat().st_mode & (0o555 if path.is_dir() else 0o444) == (0o555 if path.is_dir() else 0o444), path


# ---- failure --------------------------------------------------------------------------------------------------------


def test_a_failure_leaves_the_last_good_report_and_the_next_success_clears_it(project: Project) -> None:
    told = project.data / "told.txt"
    told.write_text("go on")
    project.add("print('first')", FAIL_IF, "print('last')")
    assert project.status() == ["ran"]
    good = tree(project.report())
    told.write_text("fail")
    (result,) = project.run()
    assert result.status == "failed"
    assert result.error is not None
    assert "ValueError: told to fail" in result.error
    assert result.html == "failed/1_small/1_small.html"
    assert tree(project.report()) == good
    partial = tree(project.out / FAILED / "1_small")
    assert sorted(partial) == ["1_small.html", "1_small.ipynb", "error.json"]
    assert b"first" in partial["1_small.html"]
    assert b"told to fail" in partial["1_small.html"]
    error = strict(partial["error.json"])
    assert (error["name"], error["error"]) == ("1_small", result.error)
    index = (project.out / "index.html").read_text(encoding="utf-8")
    assert "told to fail" in index
    assert 'href="1_small/1_small.html"' in index
    assert 'href="failed/1_small/1_small.html"' in index
    assert project.status() == ["failed"], "a failure is never taken for done"
    told.write_text("go on again")
    assert project.status() == ["ran"]
    assert not (project.out / FAILED / "1_small").exists()
    assert "told to fail" not in (project.out / "index.html").read_text(encoding="utf-8")
    assert project.leftovers() == []


def test_good_again_without_a_run_is_good(project: Project) -> None:
    """The input that made it fail is gone: the old report is current, and the failure is history."""
    told = project.data / "told.txt"
    told.write_text("go on")
    project.add(FAIL_IF)
    assert project.status() == ["ran"]
    told.write_text("fail")
    assert project.status() == ["failed"]
    told.write_text("go on")
    assert project.status() == ["unchanged"]
    index = (project.out / "index.html").read_text(encoding="utf-8")
    assert "last run failed" not in index


def test_places_in_an_error_are_not_told(project: Project) -> None:
    project.add("from faultbook.paths import data_folder\ndata_folder('absent')")
    (result,) = project.run()
    assert result.error is not None
    assert "<data>/absent: no data folder 'absent'" in result.error
    for name, content in tree(project.out / FAILED).items():
        for place in (project.folder, sys.prefix, sys.base_prefix, Path(faultbook.__file__).parents[2]):
            assert str(place).encode() not in content, name


def test_one_failure_does_not_take_the_others_with_it(project: Project) -> None:
    project.add("print('a')", name="1_a")
    project.add("import os\nos._exit(0)", name="2_b")
    project.add("print('c')", name="3_c")
    assert project.status() == ["ran", "failed", "ran"]
    assert [result.name for result in project.progress.results].count("2_b") == 1
    assert project.status() == ["unchanged", "failed", "unchanged"]
    assert project.leftovers() == []
    assert processes_writing_to(project.out) == []


def test_output_that_cannot_be_written_fails_one_report(project: Project) -> None:
    """A notebook that takes its own output folder away."""
    project.add("import os, shutil\nshutil.rmtree(os.environ['FAULTBOOK_OUTPUT'])", name="1_a")
    project.add("print('b')", name="2_b")
    first, second = project.run()
    assert (first.status, second.status) == ("failed", "ran")
    assert first.error is not None
    assert "could not be written" in first.error
    assert project.leftovers() == []


# ---- folders of any name --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["a 길 é 🦊 {braces} {0} {{x}}", "-$HOME %s & <b>'\"#?*", "long-" + "x" * 200],
    ids=["unicode and braces", "shell", "long"],
)
def test_out_folders_of_any_name(project: Project, tmp_path: Path, name: str) -> None:
    project.out = tmp_path / name / "out"
    project.add(READ_DATA, "import os\nopen(os.environ['FAULTBOOK_OUTPUT'] + '/own.txt', 'w').write('x')")
    (result,) = project.run()
    assert (result.status, result.error) == ("ran", None)
    assert_whole(project.report())
    assert (project.report() / "own.txt").exists()
    assert project.status() == ["unchanged"]
    assert project.leftovers() == []


def test_projects_of_any_name(tmp_path: Path) -> None:
    project = Project(tmp_path / "a project {x} 길")
    project.add(READ_DATA)
    assert project.status() == ["ran"]
    assert "1,2" in project.printed()


def test_relative_folders(project: Project, command: Command) -> None:
    """As everyone types them."""
    project.add(
        READ_DATA,
        "import os\nfrom pathlib import Path\n(Path(os.environ['FAULTBOOK_OUTPUT']) / 'kept.csv').write_text('a\\n')",
        "print('See example.org. Or not.')",
    )
    project.out = project.folder / "own" / "reports"
    done = command("report", "--out", "own/reports", "--notebooks", "notebooks", "--data", "data", "--quiet")
    assert done.code == 0, done.stdout
    assert (project.report() / "kept.csv").exists()
    assert "See example.org. Or not." in (project.report() / "1_small.html").read_text(encoding="utf-8")
    assert "1,2" in project.printed()
    again = command("report", "--out", "reports", "--notebooks", ".", cwd=project.notebooks)
    assert again.code == 0, again.stdout
    page = project.notebooks / "reports" / "1_small" / "1_small.html"
    assert "See example.org. Or not." in page.read_text(encoding="utf-8")


def test_an_out_folder_that_may_not_be_written(project: Project, command: Command) -> None:
    project.add("1")
    project.out.mkdir()
    project.out.chmod(0o555)
    if os.access(project.out, os.W_OK):
        pytest.skip("whoever runs this may write anywhere")
    try:
        assert "reports cannot be written to" in command("report").error
    finally:
        project.out.chmod(0o755)


@pytest.mark.parametrize("out", ["data/a.csv", "data/a.csv/below", "/dev/null/below", "/proc/below"])
def test_an_out_folder_that_cannot_be_made(project: Project, command: Command, out: str) -> None:
    project.add("1")
    assert out.split("/")[-1] in command("report", "--out", out).error


# ---- the real command -----------------------------------------------------------------------------------------------


def test_text_and_json_say_the_same(project: Project, command: Command) -> None:
    project.add("print('a')", name="1_a")
    project.add("1 / 0", name="2_b")
    text = command("report")
    assert text.code == 1
    lines = [line.split(None, 2) for line in text.stdout.splitlines()]
    assert [line[:2] for line in lines] == [
        ["ran", "1_a"],
        ["failed", "2_b"],
        ["index", str(project.out / "index.html")],
    ]
    assert "ZeroDivisionError: division by zero" in lines[1][2]
    assert str(project.out / "1_a" / "1_a.html") in lines[0][2]
    done = command("report", "--json")
    found = strict(done.stdout)
    assert done.code == found["exit_code"] == 1
    assert [(item["name"], item["status"]) for item in found["reports"]] == [("1_a", "unchanged"), ("2_b", "failed")]
    assert set(found["reports"][0]) == {"name", "status", "seconds", "html", "error"}
    assert found["reports"][1]["error"] in text.stdout
    one = command("report", "1", "--json")
    assert (one.code, strict(one.stdout)["exit_code"], one.stderr) == (0, 0, "")


def test_an_error_of_many_lines_is_told_in_one(project: Project, command: Command) -> None:
    project.add("raise ValueError('\\n'.join('line %d' % number for number in range(40)))")
    done = command("report", "--quiet")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["failed", "index"]
    assert "ValueError: line 0" in done.stdout


def test_force_and_quiet(project: Project, command: Command) -> None:
    project.add("print('a')")
    first = command("report", "--quiet")
    assert (first.code, first.stderr) == (0, "")
    assert command("report", "--quiet").stdout.startswith("unchanged")
    forced = command("report", "--force")
    assert forced.stdout.startswith("ran")
    assert "1_small cell 1/2" in forced.stderr


def test_a_limit(project: Project, command: Command) -> None:
    project.add(LOOP)
    done = command("report", "--limit", "2", "--json")
    assert done.code == 1
    assert strict(done.stdout)["reports"][0]["error"] == "ran longer than its limit of 2 s"
    assert processes_writing_to(project.out) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_ends_kernels_and_keeps_reports(project: Project, start: Start, number: int) -> None:
    mark = project.folder / "looping"
    project.add("print('good')", name="1_a")
    assert project.status() == ["ran"]
    before = results(project.out)
    for name in ("1_a", "2_b", "3_c"):
        project.add(f"open({str(mark) + name!r}, 'w')\n{LOOP}", name=name)
    running = start("report", "--quiet", "--jobs", "2")
    eventually(lambda: all(Path(f"{mark}{name}").exists() for name in ("1_a", "2_b")), "two endless notebooks")
    running.send(number)
    done = running.wait()
    assert (done.code, done.stdout) == (130, "")
    assert "faultbook: interrupted; finished reports are kept, the others stay as they were\n" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    eventually(lambda: processes_writing_to(project.out) == [], "the end of the kernels")
    assert not Path(f"{mark}3_c").exists(), "what had not begun was not begun"
    assert results(project.out) == before
    assert project.leftovers() == []
    of_run = describe(runs_in([project.out])[-1])
    assert (of_run["state"], of_run["cause"]) == ("failed", "user_abort")
    assert of_run["trials"]["causes"] == {"user_abort": 2}
    assert of_run["trials"]["unfinished"] == []


def test_an_interrupt_between_reports_keeps_what_is_finished(project: Project, start: Start) -> None:
    mark = project.folder / "looping"
    project.add("print('finished')", name="1_a")
    project.add(f"open({str(mark)!r}, 'w')\n{LOOP}", name="2_b")
    running = start("report", "--jobs", "1")
    eventually(mark.exists, "the second notebook")
    running.send(signal.SIGINT)
    assert running.wait().code == 130
    assert_whole(project.report("1_a"))
    assert not project.report("2_b").exists()
    assert project.status("1") == ["unchanged"]


def opened_for_writing(pipe: Path) -> int | None:
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody reads it yet
        return None


def test_an_interrupt_while_inputs_are_compared(project: Project, start: Start) -> None:
    """Digests of large data take their time; here a pipe that nobody writes to takes for ever."""
    project.add("print('a')", name="1_a")
    project.add(READ_DATA, name="2_b")
    assert project.status() == ["ran", "ran"]
    project.add("print('another')", name="1_a")
    before = tree(project.out)
    (project.data / "a.csv").unlink()
    os.mkfifo(project.data / "a.csv")
    running = start("report", "--quiet")
    # A pipe can be opened for writing at once only while somebody reads it; held open, it ends nobody's reading.
    pipe = eventually(lambda: opened_for_writing(project.data / "a.csv"), "the comparison of the second one's inputs")
    try:
        running.send(signal.SIGINT)
        assert running.wait().code == 130
    finally:
        os.close(pipe)
    assert tree(project.out) == before, "nothing was begun, so there is no run either"


def test_two_commands_on_one_folder_take_turns(project: Project, start: Start) -> None:
    go = project.folder / "go"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.02)\nprint('went')"
    project.add(wait)
    first = start("report", "--json", "--force")
    eventually(lambda: processes_writing_to(project.out), "the first one's kernel")
    second = start("report", "--force")
    eventually(lambda: "waiting" in second.read("stderr"), "the second one's waiting")
    kernels = {process.pid for process in processes_writing_to(project.out)}
    go.touch()
    done, waited = first.wait(), second.wait()
    assert (done.code, waited.code) == (0, 0)
    assert waited.stderr.startswith(f"waiting for another run that holds {project.out}\n")
    assert waited.stdout.startswith("ran")
    assert len(kernels) == 1, "one at a time"
    assert_whole(project.report())
    assert project.leftovers() == []


def test_commands_on_two_folders_do_not_wait(project: Project, start: Start, tmp_path: Path) -> None:
    project.add(READ_DATA)
    commands = [start("report", "--out", tmp_path / name) for name in ("a", "b")]
    assert [running.wait().code for running in commands] == [0, 0]
    for name in ("a", "b"):
        assert_whole(tmp_path / name / "1_small")


def test_a_folder_of_notebooks_in_a_project_of_its_own(project: Project, command: Command, tmp_path: Path) -> None:
    project.add(READ_DATA)
    done = command("report", "--notebooks", project.notebooks, "--json", "--data", project.data, cwd=tmp_path)
    assert done.code == 0, done.stdout + done.stderr
    assert strict(done.stdout)["reports"][0]["status"] == "ran"
    assert_whole(project.report())


def test_the_installed_command(project: Project) -> None:
    """Once as it is typed: a fresh interpreter, its own imports, its own exit code."""
    project.add(READ_DATA)
    command = [str(Path(sys.executable).parent / "faultbook"), "report"]
    first = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    assert re.match(r"ran +1_small +\d+\.\d s +\S+/1_small\.html\nindex +\S+/index\.html\n$", first.stdout)
