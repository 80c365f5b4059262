"""ALFWorld's engine: remembering changes nothing, replay is exact, and paired branches run on it."""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.recovery.simulate import alfworld
from faultbook.recovery.simulate.alfworld import AlfworldEngine, AlfworldEnvironment
from faultbook.recovery.simulate.branches import run_task
from faultbook.recovery.simulate.features import FEATURES
from faultbook.recovery.simulate.household import KINDS, HouseholdTask, make_household_task, pddl_problem

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the engine's own imports
    pytest.importorskip("fast_downward", reason="the extra [alfworld] is not installed")
    textworld = pytest.importorskip("textworld", reason="the extra [alfworld] is not installed")
    from textworld.envs.pddl import PddlEnv, logic, textgen
pytest.importorskip("alfworld.info", reason="the extra [alfworld] is not installed")


SHORT = 18  # a task of seed 0 that takes 8 actions undisturbed
RECORDED = Path(__file__).resolve().parents[2] / "data" / "episodes" / "alfworld-scripted.parquet"


def one_of_each_kind() -> list[HouseholdTask]:
    tasks = [make_household_task(index, 7) for index in range(40)]
    return [next(task for task in tasks if task.kind == kind) for kind in KINDS]


def state(game: Any) -> tuple[str, list[str], bool, list[str]]:
    """What a state of the stock engine says, in the terms of our environment."""
    return game.feedback, game.admissible_commands, game.won, sorted(map(str, game["_facts"]))


def walk(task: HouseholdTask, n: int, seed: int) -> tuple[list[str], list[Any]]:
    """Random commands, a wrong one now and then, and what the stock engine makes of them."""
    domain, grammar = alfworld._texts()
    game = PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True))
    grammar = grammar.replace("UNKNOWN GOAL", task.text)
    game.load({"pddl_domain": domain, "grammar": grammar, "pddl_problem": pddl_problem(task)})
    for entity in game._entity_infos.values():
        entity.name = entity.id.replace("_", " ")
    rng, commands, states = random.Random(seed), [], [state(now := game.reset())]
    for _ in range(n):
        commands.append(rng.choice([*now.admissible_commands, "take moon 1 from shelf 1"]))
        now, _, _ = game.step(commands[-1])
        states.append(state(now))
    return commands, states


@pytest.fixture
def _stock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's modules as they are without us."""
    assert hasattr(logic.fast_downward.pddl2sas, "cache_info"), "our own translator is in place, and is taken out here"
    stock = sys.modules["fast_downward"]
    monkeypatch.setattr(logic, "fast_downward", stock)
    for name, original in _ORIGINALS.items():
        monkeypatch.setattr(textgen, name, original)


_ORIGINALS = {name: getattr(textgen, name) for name in ("Rule", "_parse_and_convert", "copy_context")}
alfworld._logic()


@pytest.fixture(scope="module")
def task() -> HouseholdTask:
    return one_of_each_kind()[1]


@pytest.mark.parametrize("task", one_of_each_kind(), ids=KINDS)
def test_remembering_changes_no_word_and_no_fact(task: HouseholdTask, request: pytest.FixtureRequest) -> None:
    ours, found = AlfworldEnvironment(task), []
    request.getfixturevalue("_stock")
    commands, stock = walk(task, 15, seed=KINDS.index(task.kind))
    request.getfixturevalue("monkeypatch").undo()
    text, won = ours.reset(), False
    for command in [*commands, None]:
        found.append((text, ours.admissible_commands, won, sorted(map(str, ours._state["_facts"]))))
        if command is not None:
            text, won = ours.step(command)
    assert found == stock
    ours.close()


def test_a_branch_is_where_its_world_is_and_then_goes_its_own_way(task: HouseholdTask) -> None:
    world, rng = AlfworldEnvironment(task), random.Random(3)
    world.reset()
    for _ in range(12):
        world.step(rng.choice(world.admissible_commands))
    branch = world.branch()
    assert (branch.state_hash(), branch.observation) == (world.state_hash(), world.observation)
    assert branch.admissible_commands == world.admissible_commands
    before, here = world.state_hash(), world.observation
    commands = [rng.choice(branch.admissible_commands) for _ in range(3)]
    there = [branch.step(command) for command in commands]
    assert (world.state_hash(), world.observation) == (before, here)
    assert [world.step(command) for command in commands] == there
    assert world.state_hash() == branch.state_hash()
    for each in (world, branch):
        each.close()


def test_the_hash_tells_states_apart_and_look_is_no_change_of_place(task: HouseholdTask) -> None:
    world = AlfworldEnvironment(task)
    world.reset()
    hashes = [world.state_hash()]
    cabinet = next(name for name in task.receptacles if name.startswith("cabinet"))
    for command in (f"go to {cabinet}", f"open {cabinet}", f"close {cabinet}"):
        world.step(command)
        hashes.append(world.state_hash())
    assert len(set(hashes)) == len(hashes)
    world.step("sing")  # not understood: nothing happens
    assert world.state_hash() == hashes[-1]
    assert world.observation == "Nothing happens."
    world.close()


def test_look_tells_the_place_but_not_what_is_in_it(task: HouseholdTask) -> None:
    world = AlfworldEnvironment(task)
    world.reset()
    thing, place = task.objects[0]
    world.step(f"go to {place}")
    world.step(f"open {place}")
    assert world.step("look") == (f"You are facing the {place}. Next to it, you see nothing.", False)
    assert thing in world.step(f"examine {place}")[0]
    world.close()


def test_the_translator_leaves_the_command_line_alone(task: HouseholdTask) -> None:
    before = sys.argv
    AlfworldEnvironment(make_household_task(99, 99)).close()
    assert sys.argv is before


def test_closed_engines_are_used_again() -> None:
    worlds = [AlfworldEnvironment(make_household_task(index, 5)) for index in range(alfworld._SPARE_ENGINES + 1)]
    for world in worlds:
        world.close()
    assert len(alfworld._spare) <= alfworld._SPARE_ENGINES
    spare = {id(engine) for _, engine in alfworld._spare}
    world = AlfworldEnvironment(make_household_task(50, 5))
    assert id(world._engine) in spare
    assert make_household_task(50, 5).text in world.reset()
    world.close()


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_task_and_all_its_branches(noise: float) -> None:
    engine = AlfworldEngine(noise=noise)
    episodes = run_task(engine, SHORT, 0)  # raises where a fork's hashes differ
    assert episodes.feasible
    table = pd.DataFrame(episodes.rows)
    assert len(table) == 80
    at_once = table[table["delay"] == 0]
    assert at_once["prefix_hash"].nunique() == 1  # conditions do not touch the world
    assert table[list(FEATURES)].notna().all(axis=None)
    assert set(table["source"]) == {engine.source}
    if not noise:
        assert run_task(engine, SHORT, 0) == episodes
        clean = table[(table["condition"] == "clean") & (table["action"] == "none")]
        assert set(clean["n_actions"]) == {episodes.factual_actions}
        assert clean["success"].eq(episodes.factual_success).all()


def test_settings_name_the_versions() -> None:
    settings = AlfworldEngine().settings()
    assert settings["alfworld"]
    assert settings["textworld"] == textworld.__version__


def test_the_recorded_episodes_are_what_the_engine_gives() -> None:
    recorded = pd.read_parquet(RECORDED)
    again = pd.DataFrame(run_task(AlfworldEngine(), SHORT, 0).rows)
    kept = recorded[recorded["task_id"] == again["task_id"].iloc[0]]
    key = ["condition", "delay", "action", "replicate"]
    columns = [*key, "success", "ended_before", "prefix_hash", "n_actions", *FEATURES]
    one, other = (frame[columns].sort_values(key, ignore_index=True) for frame in (kept, again))
    assert len(one) == 80
    pd.testing.assert_frame_equal(one, other, check_dtype=False)
