"""Many tasks, one file: the same bytes whatever the jobs, and however often the run is cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tiny_world import TinyEngine

from faultbook.cli import main
from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.read import read_episodes
from faultbook.recovery.simulate.branches import COLUMNS
from faultbook.recovery.simulate.engines import engine_named
from faultbook.recovery.simulate.extras import engine_folder, engine_module
from faultbook.recovery.simulate.parts import SUFFIX
from faultbook.recovery.simulate.run import Simulation, simulate
from faultbook.runtime.run import RUNS

TASKS = 9
GENEROUS = 120  # seconds; only so that a broken run does not hang the suite


def tiny(out: Path, tasks: int = TASKS, seed: int = 0, engine: TinyEngine | None = None, **more: Any) -> Simulation:
    return simulate(engine or TinyEngine(noise=0.2, short=True), tasks, seed, out, **more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What an undisturbed run in one process writes."""
    out = tmp_path_factory.mktemp("whole") / "episodes.parquet"
    tiny(out)
    return out.read_bytes()


def test_the_file_holds_the_table(tmp_path: Path) -> None:
    result = tiny(out := tmp_path / "new" / "episodes.parquet", n_fit=5)
    assert (result.out, result.n_tasks, result.n_infeasible) == (out, TASKS, 2)  # numbers 0 and 7 are over at once
    episodes = read_episodes(out)
    assert tuple(episodes.columns) == COLUMNS
    assert len(episodes) == TASKS * 80
    cohorts = episodes.groupby("task_id", sort=False)["cohort"].first()
    assert cohorts.index.to_list() == [f"tiny-0-{index}" for index in (1, 2, 3, 4, 5, 6, 8, 9, 10)]
    assert cohorts.to_list() == ["fit"] * 5 + ["evaluation"] * 4
    assert set(episodes["source"]) == {"tiny world, tiny agent"}
    assert result.n_factual_successes == episodes.groupby("task_id")["factual_success"].first().sum()
    assert sorted(path.name for path in out.parent.iterdir()) == [out.name]


def test_types_are_as_in_the_table(whole: bytes, tmp_path: Path) -> None:
    (file := tmp_path / "a.parquet").write_bytes(whole)
    types = {name: str(dtype) for name, dtype in pd.read_parquet(file).dtypes.items()}
    assert {types[name] for name in ("delay", "replicate", "n_actions")} == {"int64"}
    assert {types[name] for name in ("success", "factual_success", "ended_before")} == {"bool"}
    assert {types[name] for name in types if name.startswith("x_")} == {"float64"}
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


def test_by_default_cohorts_are_those_of_the_paper(tmp_path: Path) -> None:
    tiny(out := tmp_path / "a.parquet", tasks=18)
    fit = read_episodes(out).groupby("task_id")["cohort"].first().eq("fit").sum()
    assert fit == 10  # 93 of 168, of 18 tasks


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_number_of_jobs_changes_no_byte(whole: bytes, tmp_path: Path, jobs: int) -> None:
    tiny(out := tmp_path / "a.parquet", jobs=jobs)
    assert out.read_bytes() == whole


def test_another_seed_gives_other_episodes(whole: bytes, tmp_path: Path) -> None:
    tiny(out := tmp_path / "a.parquet", seed=1)
    (other := tmp_path / "b.parquet").write_bytes(whole)
    ours, theirs = (read_episodes(file)["n_actions"].to_list() for file in (out, other))
    assert ours != theirs


def test_progress_counts_up_to_the_tasks(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    tiny(tmp_path / "a.parquet", progress=lambda done, total: seen.append((done, total)))
    done = [number for number, _ in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, TASKS)
    assert {total for _, total in seen} == {TASKS}


def test_each_task_that_is_run_is_told_and_none_that_is_there(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 4:
            raise Stop

    told: list[tuple[int, bool]] = []
    with pytest.raises(Stop):
        tiny(out := tmp_path / "a.parquet", progress=stop, on_task=lambda *which: told.append(which))
    assert told == [(0, False), *((index, True) for index in (1, 2, 3, 4))]
    tiny(out, on_task=lambda *which: told.append(which))
    assert [index for index, _ in told] == list(range(11))
    assert [index for index, feasible in told if not feasible] == [0, 7]


# ---- interruption ------------------------------------------------------------------------------------------------


class Stop(Exception):  # noqa: N818  # it is no error
    """Somebody presses Ctrl-C."""


def begun(folder: Path) -> list[int]:
    return sorted(int(path.name.partition("-")[0]) for path in folder.iterdir())


@pytest.mark.parametrize("after", [0, 1, 4, 8])
def test_a_run_goes_on_where_it_was_stopped(whole: bytes, tmp_path: Path, after: int) -> None:
    def stop(done: int, total: int) -> None:
        if done == after:
            raise Stop

    (log := tmp_path / "log").mkdir()
    engine = TinyEngine(noise=0.2, short=True, log=str(log))
    with pytest.raises(Stop):
        tiny(out := tmp_path / "a.parquet", engine=engine, progress=stop)
    assert not out.exists()
    tiny(out, engine=engine)
    assert out.read_bytes() == whole
    assert begun(log) == list(range(11))  # no task was begun twice


def test_a_finished_run_is_left_as_it_is(whole: bytes, tmp_path: Path) -> None:
    (out := tmp_path / "a.parquet").write_bytes(whole)
    (left := tmp_path / f"a.parquet{SUFFIX}").mkdir()  # killed after the file was in place, before the parts were gone
    (log := tmp_path / "log").mkdir()
    result = tiny(out, engine=TinyEngine(noise=0.2, short=True, log=str(log)))
    assert (result.n_tasks, result.n_infeasible) == (TASKS, None)
    assert begun(log) == []
    assert not left.exists()


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tiny_world import TinyEngine
from faultbook.recovery.simulate.run import simulate
simulate(TinyEngine(noise=0.2, short=True, pause=0.05), int(sys.argv[3]), 0, sys.argv[2], jobs=int(sys.argv[4]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "parts"), [(1, 1), (1, 6), (2, 3)])
def test_kill_9_loses_no_finished_task(whole: bytes, tmp_path: Path, jobs: int, parts: int) -> None:
    out = tmp_path / "a.parquet"
    folder = tmp_path / f"a.parquet{SUFFIX}"
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(out), str(TASKS), str(jobs)]
    running = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + GENEROUS
    while len(list(folder.glob("task-*.json"))) < parts and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(GENEROUS)
    survived = {path.name: path.read_bytes() for path in folder.glob("task-*.json")} if folder.exists() else {}
    assert all(json.loads(content) for content in survived.values())  # whole, each of them
    (log := tmp_path / "log").mkdir()
    tiny(out, engine=TinyEngine(noise=0.2, short=True, log=str(log)), jobs=jobs)
    assert out.read_bytes() == whole
    assert len(begun(log)) == (11 - len(survived) if running.returncode else 0)
    assert not folder.exists()


# ---- as a run of its own -----------------------------------------------------------------------------------------

OWNED = """
import sys
sys.path.insert(0, sys.argv[1])
from tiny_world import TinyEngine
from faultbook.cli import main
from faultbook.recovery.simulate import run
pause = float(sys.argv[2])
run.engine_named = lambda name, noise: TinyEngine(noise=noise, short=True, pause=pause)
sys.argv = ["faultbook", *sys.argv[3:]]
main()
"""


def asked_for(out: Path, jobs: int = 1) -> list[str]:
    command = ["recovery", "simulate", "--engine", "textworld", "--noise", "0.2", "--tasks", str(TASKS)]
    return [*command, "--jobs", str(jobs), "--out", str(out)]


def runs_listed(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        CliRunner().invoke(main, ["runs", "list", "--json", "--in", str(place)]).stdout
    )["runs"]
    return found


def journal_of(run: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    lines = (place / RUNS / run["run_id"] / "journal.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_simulation_is_an_owned_run(whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "faultbook.recovery.simulate.run.engine_named", lambda name, noise: TinyEngine(noise=noise, short=True)
    )
    result = CliRunner().invoke(main, asked_for(out := tmp_path / "a.parquet"))
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == whole, "the records change no byte of it"
    (run,) = runs_listed(tmp_path)
    assert (run["kind"], run["state"], run["cause"]) == ("simulate", "finished", "completed")
    assert run["artifacts"] == {"recorded": 1, "missing": []}
    done = [record["data"] for record in journal_of(run, tmp_path) if record["event"] == "task_done"]
    assert done == [{"index": index, "feasible": index not in (0, 7)} for index in range(11)]


def test_a_simulation_that_cannot_be_run_is_failed_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "faultbook.recovery.simulate.run.engine_named", lambda name, noise: TinyEngine(noise=noise, action_limit=2)
    )
    result = CliRunner().invoke(main, asked_for(tmp_path / "a.parquet"))
    assert result.exit_code == 2
    assert "go on long enough to be forked" in result.stderr
    (run,) = runs_listed(tmp_path)
    assert (run["state"], run["trials"]["finished"]) == ("failed", 1)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_simulation_is_dead_and_gone_on_from_to_the_same_bytes(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    out, folder = tmp_path / "a.parquet", tmp_path / f"a.parquet{SUFFIX}"
    command = [sys.executable, "-c", OWNED, str(Path(__file__).parent), "0.1", *asked_for(out, jobs)]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + GENEROUS
    while len(list(folder.glob("task-*.json"))) < 4:
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.005)
    workers = psutil.Process(running.pid).children(recursive=True)
    assert [run["state"] for run in runs_listed(tmp_path)] == ["live"]
    running.kill()
    running.wait(GENEROUS)
    (dead,) = runs_listed(tmp_path)
    assert (dead["state"], dead["cause"], dead["trials"]["unfinished"]) == ("dead", None, ["a.parquet"])
    assert psutil.wait_procs(workers, GENEROUS)[1] == [], "what it had started ends by itself"
    kept = sorted(folder.glob("task-*.json"))

    monkeypatch.setattr(
        "faultbook.recovery.simulate.run.engine_named", lambda name, noise: TinyEngine(noise=noise, short=True)
    )
    result = CliRunner().invoke(main, ["runs", "resume", dead["run_id"], "--in", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == whole
    dead, again = runs_listed(tmp_path)
    assert (dead["state"], dead["cause"]) == ("dead", "process_crash")
    assert (again["state"], again["resumes"]) == ("finished", dead["run_id"])
    records = journal_of(again, tmp_path)
    assert [record["data"]["attempt"] for record in records if record["event"] == "trial_started"] == [2]
    done = {record["data"]["index"] for record in records if record["event"] == "task_done"}
    assert done == set(range(11)) - {int(path.stem.partition("-")[2]) for path in kept}, "nothing is run twice"


def test_two_runs_do_not_write_to_one_place(tmp_path: Path) -> None:
    def another(done: int, total: int) -> None:
        with pytest.raises(FaultbookError, match="another run is writing here"):
            tiny(tmp_path / "a.parquet")

    tiny(tmp_path / "a.parquet", tasks=2, progress=another)


# ---- what is there already ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "name"), [({"seed": 1}, "seed"), ({"tasks": 8}, "tasks"), ({"n_fit": 1}, "n_fit")])
def test_a_file_of_other_settings_is_kept(whole: bytes, tmp_path: Path, change: dict[str, Any], name: str) -> None:
    (out := tmp_path / "a.parquet").write_bytes(whole)
    with pytest.raises(DataError, match=rf"a.parquet: comes from other settings \('{name}|'n_fit' is"):
        tiny(out, **change)
    assert out.read_bytes() == whole


def test_parts_of_other_settings_are_kept(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise Stop

    with pytest.raises(Stop):
        tiny(out := tmp_path / "a.parquet", progress=stop)
    with pytest.raises(DataError, match=r"\.parts: comes from other settings \('noise' is 0.2 there, 0.1 now\)"):
        tiny(out, engine=TinyEngine(noise=0.1, short=True))
    tiny(out)


@pytest.mark.parametrize("content", [b"", b"something else", b"PAR1 nonsense PAR1"])
def test_a_file_of_something_else_is_kept(tmp_path: Path, content: bytes) -> None:
    (out := tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match="was not made by a simulation"):
        tiny(out)
    assert out.read_bytes() == content


def test_a_table_of_ones_own_is_kept(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(out := tmp_path / "a.parquet")
    with pytest.raises(DataError, match="was not made by a simulation"):
        tiny(out)


@pytest.mark.parametrize(
    ("name", "content"), [("task-000001.json", "{"), ("task-000001.json", "[1]"), ("settings.json", "{")]
)
def test_a_damaged_part_is_named(tmp_path: Path, name: str, content: str) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        tiny(out := tmp_path / "a.parquet", progress=stop)
    (tmp_path / f"a.parquet{SUFFIX}" / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: is (damaged|not JSON); "):
        tiny(out)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        tiny(tmp_path / "file" / "a.parquet")


# ---- what cannot be run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 0}, "tasks is 0; give at least 1"),
        ({"seed": -1}, "seed is -1; give at least 0"),
        ({"jobs": 0}, "jobs is 0; give at least 1"),
        ({"n_fit": -1}, "n_fit is -1; give at least 0"),
        ({"n_fit": 10}, "n_fit is 10 of 9 tasks; give at most 9"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, change: dict[str, int], message: str) -> None:
    with pytest.raises(FaultbookError, match=message):
        tiny(tmp_path / "a.parquet", **change)
    assert list(tmp_path.iterdir()) == []


def test_an_engine_without_feasible_tasks_is_given_up(tmp_path: Path) -> None:
    engine = TinyEngine(action_limit=2)
    with pytest.raises(FaultbookError, match="only 0 of 20 tasks of the engine 'tiny' go on long enough"):
        tiny(tmp_path / "a.parquet", tasks=2, engine=engine)


@pytest.mark.parametrize("noise", [-0.1, 1.0, float("nan")])
def test_noise_out_of_range_is_refused(noise: float) -> None:
    for name in ("alfworld", "textworld"):
        with pytest.raises(FaultbookError, match="noise is"):
            engine_named(name, noise)


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FaultbookError, match="'engine' must be one of 'alfworld' or 'textworld'; found 'webshop'"):
        simulate("webshop", 1, 0, tmp_path / "a.parquet")


def test_engines_are_not_imported_before_they_are_asked_for() -> None:
    script = "import sys, faultbook.recovery.simulate.run; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"textworld", "alfworld", "fast_downward", "jericho"} & set(found)
    assert "faultbook.recovery.simulate.alfworld" in found


def test_a_missing_engine_names_the_extra() -> None:
    for find in (engine_module, engine_folder):
        with pytest.raises(FaultbookError, match=r"'no_such_engine'.*pip install 'faultbook\[sim\]'"):
            find("no_such_engine", "sim")
