"""A small project to make reports in, and the real command in real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from faultbook.reports import run
from faultbook.reports.catalog import Report, catalog, select
from faultbook.reports.layout import OUTPUT_VARIABLE
from faultbook.runtime.run import RUNS

GENEROUS = 60.0  # seconds; a deadline that only a hang can pass, never a verdict about speed
READ_DATA = "from faultbook.paths import data_folder\nprint((data_folder() / 'a.csv').read_text())"
LOOP = "import time\nwhile True:\n    time.sleep(0.05)"


def make_notebook(*cells: str, parameters: str = "", title: str = "Small", first: str = "") -> nbformat.NotebookNode:
    """A notebook: a heading, a cell before the parameters, the parameters, then code cells; ids are always the same."""
    made = [new_markdown_cell(f"# {title}", id="title")]
    if first:
        made.append(new_code_cell(first, id="first"))
    if parameters:
        made.append(new_code_cell(parameters, id="parameters", metadata={"tags": ["parameters"]}))
    made += [new_code_cell(source, id=f"code-{number}") for number, source in enumerate(cells)]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=made, metadata={"kernelspec": kernelspec, "language_info": {"name": "python"}})


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def results(out: Path) -> dict[str, bytes]:
    """Every file of a reports folder with its content, without the records of the runs that made them."""
    return {name: content for name, content in tree(out).items() if not name.startswith(f"{RUNS}{os.sep}")}


def eventually(condition: Callable[[], Any], what: str = "this", *, pause: float = 0.01) -> Any:
    """Wait until the condition holds; fail only after a time that nothing but a hang takes."""
    begun = time.monotonic()
    while time.monotonic() - begun < GENEROUS:
        if found := condition():
            return found
        time.sleep(pause)
    raise AssertionError(f"{what} did not come about")


def processes_writing_to(out: Path) -> list[psutil.Process]:
    """Kernels, and what they started, of reports in the making in `out`; dead ones that nobody reaped do not count.

    Only processes of this environment's Python are looked at: what else runs on this machine is not our business.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.cmdline()[:1] != [sys.executable]:
                continue
            writes_to = process.environ().get(OUTPUT_VARIABLE, "")
            if writes_to.startswith(f"{out.resolve()}{os.sep}") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


class Recorder:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.cells: list[tuple[str, int, int]] = []
        self.results: list[run.Result] = []
        self.waited = threading.Event()
        self.left: list[Mapping[str, Any]] = []

    def cell(self, name: str, index: int, total: int) -> None:
        self.cells.append((name, index, total))

    def done(self, result: run.Result) -> None:
        self.results.append(result)

    def waiting(self, out: Path) -> None:
        self.waited.set()

    def interrupted(self, left: Mapping[str, Any]) -> None:
        self.left.append(left)


@dataclass
class Project:
    """A project folder: notebooks/, data/, requirements.lock; reports go to `out`."""

    folder: Path
    out: Path = field(init=False)
    progress: Recorder = field(init=False, default_factory=Recorder)

    def __post_init__(self) -> None:
        self.out = self.folder / "reports"
        for name in ("notebooks", "data"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "pyproject.toml").write_text("")
        self.lock.write_text("numpy==2.4.6\n")
        (self.data / "a.csv").write_text("x,y\n1,2\n")

    @property
    def notebooks(self) -> Path:
        return self.folder / "notebooks"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def lock(self) -> Path:
        return self.folder / "requirements.lock"

    def add(self, *cells: str, name: str = "1_small", **made: str) -> Path:
        """Write a notebook; see `make_notebook`."""
        return self.write(make_notebook(*cells, **made), name)

    def write(self, notebook: nbformat.NotebookNode, name: str = "1_small") -> Path:
        path = self.notebooks / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    def catalog(self) -> list[Report]:
        return catalog(self.notebooks)

    def run(
        self,
        *names: str,
        given: Mapping[str, Any] | None = None,
        texts: Mapping[str, str] | None = None,
        **options: Any,
    ) -> list[run.Result]:
        """Run reports in this process (kernels are processes of their own)."""
        every = self.catalog()
        jobs = run.make_jobs(select(every, names), data=self.data, lock=self.lock, given=given or {}, texts=texts or {})
        return run.run_reports(jobs, every, self.out, progress=self.progress, **options)

    def status(self, *names: str, **options: Any) -> list[str]:
        return [result.status for result in self.run(*names, **options)]

    def report(self, name: str = "1_small") -> Path:
        return self.out / name

    def executed(self, name: str = "1_small") -> nbformat.NotebookNode:
        return nbformat.read(self.report(name) / f"{name}.ipynb", as_version=4)

    def printed(self, name: str = "1_small") -> str:
        """What the cells of a finished report wrote to stdout."""
        outputs = [output for cell in self.executed(name).cells for output in cell.get("outputs", [])]
        return "".join(output.text for output in outputs if output.get("name") == "stdout")

    def manifest(self, name: str = "1_small") -> Any:
        return json.loads((self.report(name) / "manifest.json").read_text(encoding="utf-8"))

    def leftovers(self) -> list[str]:
        """What only a run that is under way may have in the reports folder."""
        patterns = (".building-*", ".k-*", ".index-*", ".*.old")
        return sorted(str(path.relative_to(self.out)) for pattern in patterns for path in self.out.rglob(pattern))


@dataclass(frozen=True)
class Done:
    """A command that ended: exit code (negative: by that signal), and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line on stderr of a refused command."""
        assert self.code == 2, f"exit code {self.code}: {self.stderr}"
        assert self.stderr.endswith("\n"), self.stderr
        assert len(self.stderr.splitlines()) == 1, self.stderr
        assert self.stdout == ""
        return self.stderr.rstrip("\n")


# The command, imported once. Every call is a process of its own that runs `faultbook.cli.main` to its end, exit
# handlers included; only the two seconds of importing papermill are shared.
_SERVER = """
import gc, json, os, sys, time
from faultbook.cli import main
from faultbook.reports import catalog, parameters, run

gc.freeze()  # what was imported is never garbage: every call ends half a second sooner
for line in iter(sys.stdin.readline, ""):
    asked = json.loads(line)
    if "wait" in asked:
        begun, pid = time.monotonic(), 0
        while not pid and time.monotonic() - begun < asked["seconds"]:
            pid, status = os.waitpid(asked["wait"], os.WNOHANG)
            time.sleep(0 if pid else 0.005)
        print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
        continue
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        for number, name in enumerate([os.devnull, asked["stdout"], asked["stderr"]]):
            opened = os.open(name, os.O_RDWR | os.O_CREAT)
            os.dup2(opened, number)
            os.close(opened)
        sys.argv = ["faultbook", *asked["arguments"]]
        sys.exit(main())
    print(pid, flush=True)
"""


@dataclass
class Running:
    """A command that was started."""

    pid: int
    place: Path
    server: Server

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Done:
        code = self.server.ask({"wait": self.pid, "seconds": GENEROUS})
        if code is None:
            os.killpg(self.pid, signal.SIGKILL)
            raise AssertionError(f"did not end: {self.read('stderr')}")
        return Done(code, self.read("stdout"), self.read("stderr"))

    def read(self, name: str) -> str:
        """What it wrote so far."""
        file = self.place / name  # not there if it was killed before it began
        return file.read_text(encoding="utf-8") if file.exists() else ""


class Server:
    """Starts commands; see `_SERVER`."""

    def __init__(self, place: Path) -> None:
        self._place, self._number = place, 0
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, "-c", _SERVER], text=True, **pipes)

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, arguments: Sequence[str | Path], cwd: Path, environment: Mapping[str, str]) -> Running:
        self._number += 1
        place = self._place / str(self._number)
        place.mkdir()
        asked = {
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd),
            "environment": {**os.environ, **environment},
            "stdout": str(place / "stdout"),
            "stderr": str(place / "stderr"),
        }
        return Running(self.ask(asked), place, self)

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(GENEROUS)
        self._process.stdout.close()


Start = Callable[..., Running]  # arguments of the command -> the process, under way
Command = Callable[..., Done]  # arguments of the command -> what came of it
