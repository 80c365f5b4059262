"""One notebook in one real kernel: the verdict is right whatever the notebook does, and nothing is left running."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from small_project import GENEROUS, LOOP, eventually, make_notebook, processes_writing_to

from faultbook.reports.execute import NotebookRun, Outcome
from faultbook.reports.layout import OUTPUT_VARIABLE


@pytest.fixture
def building(tmp_path: Path) -> Path:
    place = tmp_path / "building"
    place.mkdir()
    return place


@pytest.fixture
def new_run(tmp_path: Path, building: Path) -> Callable[..., NotebookRun]:
    def make(notebook: nbformat.NotebookNode, **changed: Any) -> NotebookRun:
        options = {
            "folder": tmp_path,
            "building": building,
            "environment": {OUTPUT_VARIABLE: str(building)},
            "limit": GENEROUS,
        }
        return NotebookRun(notebook, **{**options, **changed})

    return make


@pytest.fixture
def execute(new_run: Callable[..., NotebookRun], building: Path) -> Callable[..., Outcome]:
    """Run cells; afterwards nothing of the kernel may be left, whatever came of it."""

    def run(*cells: str, **options: Any) -> Outcome:
        outcome = ended(new_run(make_notebook(*cells), **options))
        assert_nothing_left(options.get("building", building))
        return outcome

    return run


def ended(run: NotebookRun) -> Outcome:
    """The outcome of a run in a thread, as reports are run; one that never ends is a failure and not a hang."""
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(run.execute({})), daemon=True)
    thread.start()
    thread.join(GENEROUS)
    assert found, "the run did not end"
    return found[0]


def assert_nothing_left(building: Path) -> None:
    # A kill is carried out by the system soon, not at once; a process still there after the deadline is a leftover.
    eventually(lambda: processes_writing_to(building.parent) == [], "the end of the kernel's processes")
    eventually(lambda: zombies() == [], "the reaping of the kernel")
    assert [path.name for path in building.iterdir() if path.name.startswith(".k-")] == []


def zombies() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


def outputs(outcome: Outcome) -> list[nbformat.NotebookNode]:
    return [output for cell in outcome.notebook.cells for output in cell.get("outputs", [])]


def printed(outcome: Outcome) -> str:
    return "".join(output.text for output in outputs(outcome) if output.get("name") == "stdout")


def test_a_good_notebook(execute: Callable[..., Outcome]) -> None:
    outcome = execute("x = 6 * 7\nprint(x)", "x + 1")
    assert outcome.error is None
    assert printed(outcome) == "42\n"
    assert [output.data["text/plain"] for output in outputs(outcome) if "data" in output] == ["43"]
    assert outcome.seconds > 0


def test_a_notebook_of_words_only(execute: Callable[..., Outcome]) -> None:
    assert execute().error is None


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')", "ValueError: two"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(:", "SyntaxError"),
        ("assert False, '\\x1b[31mred\\x1b[0m'", "AssertionError: red"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise SystemExit", "SystemExit"),
        ("input('name? ')", "StdinNotImplementedError"),
    ],
)
def test_a_cell_that_fails_or_leaves_is_a_failure(execute: Callable[..., Outcome], cell: str, error: str) -> None:
    outcome = execute("print('before')", cell, "print('after')")
    assert outcome.error is not None
    assert error in outcome.error
    assert "\x1b" not in outcome.error
    assert printed(outcome) == "before\n"


@pytest.mark.parametrize(
    "cell",
    [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(600)",
        "import ctypes\nctypes.string_at(0)",
    ],
    ids=["exit", "SIGKILL", "SIGTERM", "segfault"],
)
def test_a_kernel_that_dies_is_a_failure(execute: Callable[..., Outcome], cell: str) -> None:
    outcome = execute("print('before')", cell, "print('after')")
    assert outcome.error is not None
    assert "Kernel died" in outcome.error
    assert printed(outcome) == "before\n"


def test_a_kernel_that_dies_in_the_last_cell_is_a_failure(execute: Callable[..., Outcome]) -> None:
    assert execute("print('before')", "import os\nos._exit(0)").error is not None


def test_an_expected_exception_is_still_a_failure(new_run: Callable[..., NotebookRun]) -> None:
    """A report of which a cell raised is no report, whatever its tags say."""
    notebook = make_notebook("1 / 0", "print('after')")
    notebook.cells[1].metadata["tags"] = ["raises-exception"]
    outcome = new_run(notebook).execute({})
    assert outcome.error is not None
    assert "ZeroDivisionError" in outcome.error


def test_an_endless_loop_meets_its_limit(execute: Callable[..., Outcome]) -> None:
    outcome = execute("print('before')", LOOP, "print('after')", limit=2.5)
    assert outcome.error == "ran longer than its limit of 2.5 s"
    assert "after" not in printed(outcome)
    assert outcome.seconds >= 2.5


def test_a_loop_that_catches_everything_meets_its_limit(execute: Callable[..., Outcome]) -> None:
    stubborn = (
        "import signal, time\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, signal.SIG_IGN)\n"
        "while True:\n    try:\n        time.sleep(0.05)\n    except BaseException:\n        pass"
    )
    assert execute(stubborn, limit=3).error == "ran longer than its limit of 3 s"


def test_a_limit_that_is_over_before_the_kernel_is_up(execute: Callable[..., Outcome]) -> None:
    outcome = execute("print('before')", LOOP, limit=0.01)
    assert outcome.error == "ran longer than its limit of 0.01 s"


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("ending", ["", LOOP, "1 / 0", "import os\nos._exit(0)"], ids=["good", "stop", "raise", "dead"])
def test_a_child_of_the_kernel_does_not_outlive_it(
    new_run: Callable[..., NotebookRun], building: Path, tmp_path: Path, ending: str
) -> None:
    note = tmp_path / "child"
    child = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {LOOP!r}])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))"
    )
    stopper = threading.Timer(0.3, lambda: run.stop("enough"))
    run = new_run(
        make_notebook(child, ending), on_cell=lambda index, total: index == 3 and ending == LOOP and stopper.start()
    )
    try:
        outcome = ended(run)
        assert (outcome.error is None) == (ending == "")
        assert_nothing_left(building)
        pid = int(note.read_text())
        eventually(lambda: is_gone(pid), "the end of the child")
    finally:
        if note.exists() and not is_gone(int(note.read_text())):
            os.kill(int(note.read_text()), signal.SIGKILL)


def test_asking_the_kernel_to_exit_is_a_failure_unless_every_cell_ran(execute: Callable[..., Outcome]) -> None:
    """`exit()` takes effect a moment later: the next cells may or may not run."""
    outcome = execute("exit()", "print('after')")
    assert (outcome.error is None) == (printed(outcome) == "after\n")


def test_stopping_from_another_thread(new_run: Callable[..., NotebookRun], building: Path) -> None:
    looping = threading.Event()
    run = new_run(make_notebook("print(1)", LOOP), on_cell=lambda index, total: index == 3 and looping.set())
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(run.execute({})))
    thread.start()
    assert looping.wait(GENEROUS)
    run.stop("interrupted")
    run.stop("twice")
    thread.join(GENEROUS)
    assert [outcome.error for outcome in found] == ["interrupted"]
    assert_nothing_left(building)


def test_stopping_before_it_began(new_run: Callable[..., NotebookRun], building: Path, tmp_path: Path) -> None:
    run = new_run(make_notebook(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    run.stop("interrupted")
    assert run.execute({}).error == "interrupted"
    assert not (tmp_path / "ran").exists()
    assert_nothing_left(building)


def test_every_cell_is_told(new_run: Callable[..., NotebookRun]) -> None:
    told: list[tuple[int, int]] = []
    new_run(make_notebook("a = 1", "b = 2"), on_cell=lambda *which: told.append(which)).execute({})
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_two_at_a_time(tmp_path: Path, new_run: Callable[..., NotebookRun]) -> None:
    """Each waits until it sees the other's file: they end only if they really run at the same time."""
    meet = (
        "import pathlib, time\npathlib.Path('{}').touch()\nwhile not pathlib.Path('{}').exists():\n    time.sleep(0.01)"
    )
    found: dict[str, Outcome] = {}

    def one(own: str, other: str) -> None:
        place = tmp_path / f"building-{own}"
        place.mkdir()
        run = new_run(make_notebook(f"who = '{own}'", meet.format(own, other), "print(who)"), building=place)
        found[own] = run.execute({})

    threads = [threading.Thread(target=one, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GENEROUS)
    assert {own: (outcome.error, printed(outcome)) for own, outcome in found.items()} == {
        "a": (None, "a\n"),
        "b": (None, "b\n"),
    }
    assert processes_writing_to(tmp_path) == []


def open_loops() -> list[asyncio.BaseEventLoop]:
    return [thing for thing in gc.get_objects() if isinstance(thing, asyncio.BaseEventLoop) and not thing.is_closed()]


def test_a_run_in_a_thread_closes_its_event_loop(new_run: Callable[..., NotebookRun]) -> None:
    """Else each leaves three open files to the garbage collector, which complains with a ResourceWarning."""
    before = open_loops()
    thread = threading.Thread(target=new_run(make_notebook("1")).execute, args=({},))
    thread.start()
    thread.join(GENEROUS)
    assert [loop for loop in open_loops() if loop not in before] == []


def test_parameters_arrive_after_the_cell_that_declares_them(new_run: Callable[..., NotebookRun]) -> None:
    notebook = make_notebook("print(n, text)", parameters="n: int = 1\ntext: str = 'a'")
    assert printed(new_run(notebook).execute({"n": 2, "text": "{n}"})) == "2 {n}\n"


def test_the_kernel_starts_in_the_folder_with_the_environment_given(
    execute: Callable[..., Outcome], tmp_path: Path, building: Path
) -> None:
    outcome = execute(
        "import os, sys\nprint(os.getcwd())\nprint(os.environ['A_VARIABLE'])\nprint(sys.executable)",
        environment={"A_VARIABLE": "a = {b}", OUTPUT_VARIABLE: str(building)},
    )
    assert printed(outcome).splitlines() == [str(tmp_path), "a = {b}", sys.executable]
    assert "A_VARIABLE" not in os.environ


def test_a_kernelspec_of_the_user_does_not_stand_in_for_ours(
    execute: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (tmp_path / "data", tmp_path / "path"):
        spec = place / "kernels" / "python3"
        spec.mkdir(parents=True)
        argv = '["/bin/false", "{connection_file}"]'
        (spec / "kernel.json").write_text(f'{{"argv": {argv}, "display_name": "Other", "language": "python"}}')
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "path"))
    assert printed(execute("print('ours')")) == "ours\n"


def test_start_files_of_the_user_do_not_run_in_the_kernel(
    execute: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a report depends on who made it, and no digest would tell."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-mine.py").write_text("mine = 'of the user'")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    assert printed(execute("print('mine' in globals())")) == "False\n"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}, "language_info": {"name": "R"}},
    ],
)
def test_the_kernel_that_a_notebook_names_does_not_matter(
    new_run: Callable[..., NotebookRun], metadata: dict[str, Any]
) -> None:
    notebook = make_notebook("print(n + 1)", parameters="n: int = 1")
    notebook.metadata = nbformat.from_dict(metadata)
    outcome = new_run(notebook).execute({"n": 41})
    assert outcome.error is None
    assert printed(outcome) == "42\n"


@pytest.mark.parametrize("module", ["zmq", "fnmatch", "faultbook"])
def test_a_file_beside_a_notebook_does_not_stand_in_for_a_module_of_the_kernel(
    execute: Callable[..., Outcome], tmp_path: Path, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise SystemExit('the {module} beside the notebook')")
    assert printed(execute("print('up')")) == "up\n"


def test_what_an_earlier_papermill_left_is_replaced(new_run: Callable[..., NotebookRun]) -> None:
    """A notebook committed after a failed run has an injected cell, error banners and outputs."""
    notebook = make_notebook("print(n)", parameters="n: int = 1")
    injected = nbformat.v4.new_code_cell("n = 7", metadata={"tags": ["injected-parameters"]})
    banner = nbformat.v4.new_markdown_cell("<span>failed</span>", metadata={"tags": ["papermill-error-cell-tag"]})
    notebook.cells[2:2] = [injected]
    notebook.cells.insert(0, banner)
    old = nbformat.v4.new_output("error", ename="E", evalue="old", traceback=[])
    notebook.cells[-1].outputs, notebook.cells[-1].execution_count = [old], 9
    outcome = new_run(notebook).execute({"n": 2})
    assert outcome.error is None
    assert printed(outcome) == "2\n"
    assert [cell.source for cell in outcome.notebook.cells].count("<span>failed</span>") == 0


@pytest.mark.parametrize("letters", [150, 30])
def test_a_long_path_does_not_break_the_socket(
    new_run: Callable[..., NotebookRun], monkeypatch: pytest.MonkeyPatch, letters: int
) -> None:
    """The address of a socket has at most 107 bytes; a letter may take three."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as short:  # so that only the name counts
        monkeypatch.setattr(tempfile, "tempdir", short)
        place = Path(short) / ("m" * letters if letters > 100 else "길" * letters)
        place.mkdir()
        outcome = new_run(make_notebook("print('up')"), building=place).execute({})
        assert (outcome.error, printed(outcome)) == (None, "up\n")
        assert list(place.iterdir()) == []
        assert list(Path(short).iterdir()) == [place]
