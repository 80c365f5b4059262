"""kill -9 at any moment leaves the old report or the new one, and the next run clears up."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_project import GENEROUS, Project, Running, Start, eventually, processes_writing_to, tree

from faultbook.reports.layout import LOCK, MANIFEST
from faultbook.runtime.run import RUNS
from faultbook.runtime.runs import describe, runs_in

WRITE = """\
import os
from pathlib import Path
from faultbook.paths import data_folder
word = (data_folder() / "a.csv").read_text()
for number in range(300):
    (Path(os.environ["FAULTBOOK_OUTPUT"]) / f"{number}.txt").write_text(word)
print(word)
"""


@pytest.fixture
def old(project: Project) -> Project:
    """A good report of yesterday's data; today's are others, so that the next run makes another report."""
    project.add(WRITE)
    (project.data / "a.csv").write_text("OLD")
    assert project.status() == ["ran"]
    (project.data / "a.csv").write_text("NEW")
    return project


def words(files: dict[str, bytes]) -> set[str]:
    """Which of the two runs the files are from, told by their content and not by the manifest."""
    found = {content.decode() for name, content in files.items() if name.endswith(".txt")}
    page = files["1_small.html"].decode()
    assert f"{max(found)}\n</pre>" in page
    return found


def assert_old_or_new(project: Project) -> str:
    """The report folder is whole and of one piece; the front page is whole or absent."""
    files = tree(project.report())
    manifest = json.loads(files.pop(MANIFEST))
    assert manifest["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert len(files) == 302
    (word,) = words(files)
    assert word in ("OLD", "NEW")
    assert manifest["data"]["a.csv"] == hashlib.sha256(word.encode()).hexdigest()
    index = project.out / "index.html"
    if index.exists():
        page = index.read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert page.rstrip().endswith("</html>")
    return word


def assert_cleared(project: Project) -> None:
    """After a normal run nothing tells of the killed ones."""
    assert project.status() in (["ran"], ["unchanged"])
    assert assert_old_or_new(project) == "NEW"
    assert project.leftovers() == []
    assert sorted(path.name for path in project.out.iterdir()) == [LOCK, RUNS, "1_small", "index.html"]
    for folder in runs_in([project.out]):
        found = describe(folder)
        assert (found["state"], found["findings"]) in {("finished", 0), ("dead", 0)}, "each has its end on record"


def kill_at(project: Project, running: Running, moment: str, fraction: float, seconds: float) -> None:
    """Kill the process: so far into its run, or as soon as something of the publishing is to be seen."""
    if moment == "during the run":
        time.sleep(fraction * seconds)
    elif moment == "when it has begun":
        soon(lambda: list(project.out.glob(".building-*")) or ended(running))
        time.sleep(fraction * seconds)
    elif moment == "when the page is written":
        soon(lambda: list(project.out.glob(".building-*/1_small.html")) or ended(running))
    elif moment == "when the manifest is written":
        soon(lambda: list(project.out.glob(f".building-*/{MANIFEST}")) or ended(running))
    elif moment == "when the new one is in place":
        soon(lambda: b"NEW" in (project.report() / "0.txt").read_bytes() or ended(running))
    running.send(signal.SIGKILL)


def soon(condition: Callable[[], Any]) -> None:
    """Publishing takes a moment only: look often."""
    eventually(condition, "the moment to kill", pause=0.0005)


def ended(running: Running) -> bool:
    return "index" in running.read("stdout")


def make_old_again(project: Project, kept: dict[str, bytes]) -> None:
    for name, content in kept.items():
        (project.report() / name).write_bytes(content)


MOMENTS = [
    *["during the run"] * 2,
    *["when it has begun"] * 2,
    "when the page is written",
    *["when the manifest is written"] * 2,
    "when the new one is in place",
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_kill_at_any_moment(old: Project, start: Start, seed: int) -> None:
    chance = random.Random(seed)
    kept = tree(old.report())
    begun = time.monotonic()
    assert start("report", "--force").wait().code == 0
    seconds = time.monotonic() - begun
    make_old_again(old, kept)
    for moment in chance.sample(MOMENTS, len(MOMENTS)):
        running = start("report", "--force")
        kill_at(old, running, moment, chance.random(), seconds)
        running.wait()
        left = assert_old_or_new(old)
        eventually(lambda: processes_writing_to(old.out) == [], "the end of the killed run's kernels")
        if left == "NEW":
            make_old_again(old, kept)
    assert_cleared(old)


@pytest.mark.slow
def test_kills_of_the_installed_command(old: Project) -> None:
    """As it is typed, from its first import on."""
    chance = random.Random(3)
    command = [str(Path(sys.executable).parent / "faultbook"), "report", "--force", "--quiet"]
    begun = time.monotonic()
    subprocess.run(command, cwd=old.folder, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    (old.data / "a.csv").write_text("OLD")
    assert old.status() == ["ran"]
    (old.data / "a.csv").write_text("NEW")
    for number in range(4):
        running = subprocess.Popen(command, cwd=old.folder, stdout=subprocess.DEVNULL)
        time.sleep(seconds * (number + chance.random()) / 4)
        running.kill()
        running.wait(GENEROUS)
        assert_old_or_new(old)
    eventually(lambda: processes_writing_to(old.out) == [], "the end of the killed runs' kernels")
    assert_cleared(old)


@pytest.mark.slow
def test_a_kill_before_there_was_any_report(project: Project, start: Start) -> None:
    project.add(WRITE)
    (project.data / "a.csv").write_text("NEW")
    for moment in ("when the page is written", "when the manifest is written"):
        running = start("report")
        kill_at(project, running, moment, 0, 0)
        running.wait()
        if project.report().exists():
            assert_old_or_new(project)
    assert_cleared(project)


def test_a_kernel_does_not_outlive_a_killed_run(project: Project, start: Start) -> None:
    """Not even one in the middle of an endless cell."""
    mark = project.folder / "looping"
    project.add(f"open({str(mark)!r}, 'w')\nwhile True:\n    pass")
    running = start("report")
    eventually(mark.exists, "the loop")
    assert processes_writing_to(project.out)
    running.send(signal.SIGKILL)
    running.wait()
    eventually(lambda: processes_writing_to(project.out) == [], "the end of the kernel")


def test_the_lock_of_a_killed_run_is_free(old: Project, start: Start) -> None:
    running = start("report")
    eventually(lambda: list(old.out.glob(".building-*")), "a folder in the making")
    running.send(signal.SIGKILL)
    running.wait()
    assert old.status() == ["ran"]
    assert not old.progress.waited.is_set()
