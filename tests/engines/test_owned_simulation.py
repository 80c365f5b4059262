"""`faultbook recovery simulate` on a real engine: killed, told as dead, gone on from to the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import psutil
import pytest

from faultbook.harness import read_trials
from faultbook.runtime.journal import records
from faultbook.runtime.run import RUNS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the engine's own imports
    pytest.importorskip("textworld", reason="the extra [sim] is not installed")

GENEROUS = 600  # seconds; only so that a broken run does not hang the suite
FAULTBOOK = str(Path(sys.executable).with_name("faultbook"))


def simulation(out: Path) -> list[str]:
    return [
        FAULTBOOK,
        *["recovery", "simulate", "--engine", "textworld", "--tasks", "2", "--jobs", "2", "--out"],
        str(out),
    ]


def runs(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [FAULTBOOK, "runs", *arguments, "--in", str(place)]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=GENEROUS)


def listed(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(runs(place, "list", "--json").stdout)["runs"]
    return found


def test_a_killed_simulation_goes_on_to_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    (place := tmp_path / "killed").mkdir()
    out, undisturbed = place / "a.parquet", tmp_path / "undisturbed" / "a.parquet"
    running = subprocess.Popen(simulation(out), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + GENEROUS
    while not list(place.glob("a.parquet.parts/task-*.json")):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    workers = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait(GENEROUS)
    assert not out.exists()
    (dead,) = listed(place)
    assert (dead["kind"], dead["state"], dead["trials"]["unfinished"]) == ("simulate", "dead", ["a.parquet"])
    assert psutil.wait_procs(workers, GENEROUS)[1] == [], "what it had started ends by itself"

    resumed = runs(place, "resume", dead["run_id"])
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.splitlines() == [str(out)]
    again = listed(place)[-1]
    assert (again["state"], again["resumes"], again["artifacts"]["missing"]) == ("finished", dead["run_id"], [])
    assert runs(place, "verify", again["run_id"]).returncode == 0
    (trial,) = read_trials(place / RUNS / again["run_id"]).to_dict("records")
    assert (trial["task_id"], trial["attempt"], trial["cause"]) == ("a.parquet", 2, "completed")
    started = [line for line in records(place / RUNS / again["run_id"]) if line.event == "task_done"]
    assert len(started) < 2, "what was finished is not run again"

    subprocess.run(simulation(undisturbed), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert out.read_bytes() == undisturbed.read_bytes()
