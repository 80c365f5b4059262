"""Trials of the scripted agent: timed, interleaved, cut short, and the same again whenever they are run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from faultbook.cli import main
from faultbook.errors import DataError, FaultbookError
from faultbook.harness import plan, read_trials
from faultbook.recovery.read import read_episodes
from faultbook.recovery.simulate.branches import DELAYS, run_task
from faultbook.recovery.simulate.trials import COLUMNS, PLAN_COLUMNS, record_trials
from faultbook.tables import ACTIONS, CONDITIONS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "data" / "trials" / "alfworld-scripted-interrupted.csv"
EPISODES = ROOT / "data" / "episodes" / "alfworld-scripted.parquet"
TINY_WORLD = ROOT / "tests" / "recovery" / "simulate"
MEASURED = ["total_seconds", "setup_seconds", "agent_seconds", "verifier_seconds", "started_at", "source_version"]
ARMS = ["scripted", "scripted+refresh"]

needs_alfworld = pytest.mark.skipif(
    importlib.util.find_spec("alfworld") is None or importlib.util.find_spec("fast_downward") is None,
    reason="the extra [alfworld] is not installed",
)

Make = Callable[..., Any]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes an engine whose world is a row of boxes."""
    monkeypatch.syspath_prepend(TINY_WORLD)
    from tiny_world import TinyEngine

    return TinyEngine


def table(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, keep_default_na=False, dtype=str)


class Ticks:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self._seconds = itertools.count(100.0)

    def __call__(self) -> float:
        return next(self._seconds)


# ---- the recorded run ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> pd.DataFrame:
    trials, problems = read_trials(RECORDED, strict=False)
    assert problems.empty
    return trials


def test_the_recorded_run_was_cut_short_in_the_middle_of_a_trial(recorded: pd.DataFrame) -> None:
    universe = plan(RECORDED.with_name("alfworld-scripted-interrupted-plan.csv"))
    assert universe.groupby("arm")["task_id"].nunique().to_dict() == dict.fromkeys(ARMS, 24)
    counts = recorded.groupby(["arm", "state"]).size().to_dict()
    assert counts == {(ARMS[0], "finished"): 21, (ARMS[0], "unfinished"): 1, (ARMS[1], "finished"): 22}
    key = ["arm", "task_id", "attempt"]
    assert recorded[key].values.tolist() == universe[key].values.tolist()[: len(recorded)]  # in the order of the plan
    cut = recorded.iloc[-1]
    assert cut["state"] == "unfinished"
    assert cut[["resolved", "cause", "total_seconds", "setup_seconds"]].isna().all()


def test_recorded_verdicts_are_those_of_the_recorded_episodes(recorded: pd.DataFrame) -> None:
    episodes = read_episodes(EPISODES)
    one_later = episodes[(episodes["condition"] == "stale2") & (episodes["delay"] == 1) & (episodes["replicate"] == 0)]
    ends = one_later.set_index(["task_id", "action"])["success"]
    finished = recorded[recorded["state"] == "finished"]
    for row in finished.itertuples():
        action = str(row.arm).partition("+")[2] or "none"
        assert bool(row.resolved) == ends[row.task_id, action], row.task_id
        assert row.cause == ("completed" if row.resolved else "agent_budget_exhausted")
    pairs = finished.pivot_table(index="task_id", columns="arm", values="resolved", aggfunc="first").dropna()
    cells = pairs[ARMS].astype(bool).value_counts().to_dict()
    assert cells == {(True, True): 3, (True, False): 2, (False, True): 7, (False, False): 9}  # as data/README.md says


def test_recorded_seconds_leave_nothing_out(recorded: pd.DataFrame) -> None:
    finished = recorded[recorded["state"] == "finished"]
    parts = finished[["setup_seconds", "agent_seconds", "verifier_seconds"]]
    assert (parts > 0).all(axis=None)
    assert (finished["total_seconds"] - parts.sum(axis=1) > -1e-5).all()
    assert finished["started_at"].is_monotonic_increasing
    assert recorded["started_at"].str.endswith("+00:00").all()


def test_the_recorded_run_says_what_it_is(recorded: pd.DataFrame) -> None:
    assert recorded["note"].str.contains("scripted agent, no language model; stale2 at action").all()
    assert set(recorded["usage_status"]) == {"absent"}
    assert recorded[["input_tokens", "output_tokens", "requests", "cost"]].isna().all(axis=None)
    assert recorded["source_version"].str.fullmatch(r"[0-9a-f]{40}\+(dirty|clean)").all()
    assert "/" not in RECORDED.read_text("utf-8")  # no path of anybody's machine


# ---- what is written -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", CONDITIONS)
def test_verdicts_are_those_of_paired_branches(tmp_path: Path, tiny: Make, condition: str) -> None:
    engine = tiny(short=True)
    episodes = [run_task(engine, index, 0) for index in range(9)]
    rows = pd.DataFrame([row for each in episodes if each.feasible for row in each.rows])
    rows = rows[(rows["condition"] == condition) & (rows["replicate"] == 0)]
    ends = rows.set_index(["task_id", "delay", "action"])["success"]
    for delay in DELAYS:
        made = record_trials(engine, 7, 0, tmp_path / str(delay), condition=condition, delay=delay, actions=ACTIONS)
        found = table(made.trials)
        assert len(found) == 7 * len(ACTIONS)
        for row in found.itertuples():
            action = str(row.arm).partition("+")[2] or "none"
            assert row.resolved == str(bool(ends[row.task_id, delay, action])), (row.task_id, delay, action)


def test_arms_take_turns_in_coming_first(tmp_path: Path, tiny: Make) -> None:
    made = record_trials(tiny(), 4, 0, tmp_path)
    assert (made.n_planned, made.n_finished, made.n_unfinished) == (8, 8, 0)
    assert made.trials.name == "tiny-scripted.csv"
    found = table(made.trials)
    assert found["arm"].tolist() == [*ARMS, *reversed(ARMS)] * 2
    assert found["task_id"].tolist() == [f"tiny-0-{n}" for n in range(4) for _ in ARMS]
    planned = table(made.plan)
    assert list(planned.columns) == PLAN_COLUMNS
    assert planned.equals(found[PLAN_COLUMNS])


def test_tasks_that_do_not_reach_the_fork_are_in_no_plan(tmp_path: Path, tiny: Make) -> None:
    made = record_trials(tiny(short=True), 3, 0, tmp_path)
    assert set(table(made.plan)["task_id"]) == {"tiny-0-1", "tiny-0-2", "tiny-0-3"}  # number 0 is over at once


def test_the_table_is_one_that_the_reader_takes(tmp_path: Path, tiny: Make) -> None:
    made = record_trials(tiny(), 3, 0, tmp_path, stop_after=4)
    trials, problems = read_trials(made.trials, strict=False)
    assert problems.empty
    assert trials["state"].tolist() == ["finished"] * 4 + ["unfinished"]
    assert list(table(made.trials).columns) == COLUMNS
    assert trials["reward_valid"].tolist()[:4] == [True] * 4


@pytest.mark.parametrize("stop_after", range(8))
def test_a_run_is_stopped_in_the_middle_of_a_trial(tmp_path: Path, tiny: Make, stop_after: int) -> None:
    whole = table(record_trials(tiny(), 4, 0, tmp_path / "whole").trials)
    made = record_trials(tiny(), 4, 0, tmp_path, stop_after=stop_after)
    assert (made.n_planned, made.n_finished, made.n_unfinished) == (8, stop_after, 1)
    assert made.trials.name == "tiny-scripted-interrupted.csv"
    found = table(made.trials)
    assert found["state"].tolist() == ["finished"] * stop_after + ["unfinished"]
    same = found.drop(columns=MEASURED)
    assert same[:stop_after].equals(whole.drop(columns=MEASURED)[:stop_after])
    assert set(found.iloc[-1][["resolved", "reward_valid", "cause", "cause_source", "total_seconds"]]) == {""}
    assert len(table(made.plan)) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == [made.plan.name, made.trials.name, "whole"]


def test_seconds_of_each_part(tmp_path: Path, tiny: Make) -> None:
    found = read_trials(record_trials(tiny(), 2, 0, tmp_path, clock=Ticks()).trials)
    for name, seconds in {"setup": 1, "agent": 1, "verifier": 1, "total": 4}.items():
        assert found[f"{name}_seconds"].eq(seconds).all()


def test_a_run_is_stopped_after_a_time(tmp_path: Path, tiny: Make) -> None:
    made = record_trials(tiny(), 4, 0, tmp_path, stop_after_seconds=30, clock=Ticks())
    assert 0 < made.n_finished < 8
    assert made.n_unfinished == 1
    again = record_trials(tiny(), 4, 0, tmp_path / "again", stop_after_seconds=30, clock=Ticks())
    assert again.n_finished == made.n_finished


def test_a_time_that_is_long_enough_stops_nothing(tmp_path: Path, tiny: Make) -> None:
    made = record_trials(tiny(), 2, 0, tmp_path, stop_after_seconds=1e6)
    assert (made.n_finished, made.n_unfinished) == (4, 0)


def test_the_same_settings_give_the_same_but_for_times(tmp_path: Path, tiny: Make) -> None:
    one, other = (table(record_trials(tiny(noise=0.3), 4, 5, tmp_path / name).trials) for name in ("one", "other"))
    assert one.drop(columns=MEASURED).equals(other.drop(columns=MEASURED))
    assert table(record_trials(tiny(noise=0.3), 4, 6, tmp_path / "third").trials)["task_id"].iloc[0] == "tiny-6-0"


# ---- interrupts ----------------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_what_there_was(tmp_path: Path, tiny: Make) -> None:
    def interrupt(done: int, planned: int) -> None:
        assert planned == 8
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_trials(tiny(), 4, 0, tmp_path, progress=interrupt)
    assert table(tmp_path / "tiny-scripted.csv")["state"].tolist() == ["finished"] * 3
    assert len(table(tmp_path / "tiny-scripted-plan.csv")) == 8


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_its_last_trial_unfinished(tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(TINY_WORLD)!r})
from tiny_world import TinyEngine, TinyWorld
from faultbook.recovery.simulate.trials import record_trials

class Fatal(TinyWorld):
    worlds = 0
    def __init__(self, task, pause=0.0):
        super().__init__(task, pause)
        Fatal.worlds += 1
        if Fatal.worlds == 8:  # three undisturbed runs, and two for each trial
            os.kill(os.getpid(), signal.SIGKILL)

record_trials(TinyEngine(world=Fatal), 3, 0, {str(tmp_path)!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    assert table(tmp_path / "tiny-scripted.csv")["state"].tolist() == ["finished", "finished", "unfinished"]


# ---- what cannot be recorded ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 0}, "tasks is 0; give at least 1"),
        ({"seed": -1}, "seed is -1; give at least 0"),
        ({"delay": -1}, "delay is -1; give at least 0"),
        ({"stop_after": -1}, "stop_after is -1; give at least 0"),
        ({"stop_after": 4}, "stop_after is 4 of 4 trials; give less"),
        ({"stop_after_seconds": float("nan")}, "stop_after_seconds is nan; give at least 0"),
        ({"condition": "stale3"}, "'condition' must be one of .* found 'stale3'"),
        ({"actions": ("none", "pray")}, "'arms' must be one of .* found 'pray'"),
        ({"actions": ("none",)}, "arms are 'none'; name at least two actions, each once"),
        ({"actions": ("none", "none")}, "arms are 'none, none'; name at least two actions, each once"),
    ],
)
def test_parameters_out_of_range_are_refused(tmp_path: Path, tiny: Make, change: dict[str, Any], message: str) -> None:
    given = {"tasks": 2, "seed": 0} | change
    with pytest.raises(FaultbookError, match=message):
        record_trials(tiny(), out=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tiny-scripted.csv", "tiny-scripted-plan.csv"])
def test_what_is_there_is_kept(tmp_path: Path, tiny: Make, name: str) -> None:
    (tmp_path / name).write_text("mine", "utf-8")
    with pytest.raises(DataError, match="is there already; choose another folder"):
        record_trials(tiny(), 2, 0, tmp_path)
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, tiny: Make) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"):
        record_trials(tiny(), 2, 0, tmp_path / "file")


def test_an_engine_without_feasible_tasks_is_given_up(tmp_path: Path, tiny: Make) -> None:
    with pytest.raises(FaultbookError, match="only 0 of 20 tasks of the engine 'tiny' go on long enough"):
        record_trials(tiny(action_limit=2), 2, 0, tmp_path)


def test_a_world_that_does_not_repeat_is_not_recorded(tmp_path: Path, tiny: Make) -> None:
    from tiny_world import TinyWorld

    class Fickle(TinyWorld):
        worlds = 0

        def __init__(self, task: Any, pause: float = 0.0) -> None:
            super().__init__(task, pause)
            Fickle.worlds += 1
            self.number = Fickle.worlds

        def step(self, command: str) -> tuple[str, bool]:
            text, won = super().step(command)
            return text, won and self.number != 6  # the world of the second trial's verifier

    with pytest.raises(FaultbookError, match="the same commands lead to two ends; the engine 'tiny' does not repeat"):
        record_trials(tiny(world=Fickle), 2, 0, tmp_path, condition="clean")
    assert table(tmp_path / "tiny-scripted.csv")["state"].tolist() == ["finished", "unfinished"]


# ---- the command and the engine ------------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["recovery", "trials", "--engine", "alfworld", *map(str, arguments)])


@pytest.mark.parametrize(
    "wrong", [("--condition", "stale3"), ("--arms", "none"), ("--arms", "none, pray"), ("--stop-after", 48)]
)
def test_the_command_refuses_in_a_line(tmp_path: Path, wrong: tuple[object, ...]) -> None:
    result = run("--out", tmp_path, *wrong)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("faultbook: ")
    assert list(tmp_path.iterdir()) == []


@needs_alfworld
def test_the_recorded_trials_are_what_the_engine_gives(tmp_path: Path) -> None:
    result = run("--tasks", 4, "--delay", 1, "--stop-after", 7, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        str(tmp_path / "alfworld-scripted-interrupted.csv"),
        str(tmp_path / "alfworld-scripted-interrupted-plan.csv"),
    ]
    assert "7 of 8 trials finished, 1 unfinished" in result.stderr
    again, before = (table(folder / RECORDED.name).drop(columns=MEASURED) for folder in (tmp_path, RECORDED.parent))
    assert again[:7].equals(before[:7])
    assert again.iloc[7][PLAN_COLUMNS].equals(before.iloc[7][PLAN_COLUMNS])
    assert again["resolved"].nunique() == 3  # true, false and nothing
