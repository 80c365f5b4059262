"""TextWorld's coin games: copies are exact, the way is not told, and paired branches run on them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator

import pandas as pd
import pytest

from faultbook.recovery.simulate.branches import run_task
from faultbook.recovery.simulate.textworld import TextworldEngine, TextworldEnvironment

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the engine's own imports
    pytest.importorskip("textworld", reason="the extra [sim] is not installed")


@pytest.fixture(scope="module")
def world() -> Iterator[TextworldEnvironment]:
    engine = TextworldEngine()
    world = engine.environment(engine.task(0, 0))
    yield world
    world.close()


def test_the_way_and_the_room_are_not_told(world: TextworldEnvironment) -> None:
    text = world.reset()
    assert text.startswith("-= ")
    assert "coin" not in text
    assert ">" not in text
    assert text.count("-=") == 1


def test_copies_are_exact(world: TextworldEnvironment) -> None:
    rng = random.Random(1)
    world.reset()
    for _ in range(4):
        for _ in range(3):
            world.step(rng.choice(world.admissible_commands))
        branch = world.branch()
        assert (branch.state_hash(), branch.observation) == (world.state_hash(), world.observation)
        before = world.state_hash()
        commands = [rng.choice([*branch.admissible_commands, "go up", "take coin"]) for _ in range(6)]
        there = [(*branch.step(command), branch.state_hash(), branch.admissible_commands) for command in commands]
        assert world.state_hash() == before
        here = [(*world.step(command), world.state_hash(), world.admissible_commands) for command in commands]
        assert here == there
        branch.close()


def test_states_differ_by_place_and_by_moves(world: TextworldEnvironment) -> None:
    world.reset()
    hashes = [world.state_hash()]
    for _ in range(2):
        world.step("look")
        hashes.append(world.state_hash())
    assert len(set(hashes)) == 3


def test_a_task_and_all_its_branches() -> None:
    engine = TextworldEngine()
    episodes = run_task(engine, 0, 0)  # raises where a fork's hashes differ
    assert episodes.feasible
    assert episodes.factual_success
    table = pd.DataFrame(episodes.rows)
    assert len(table) == 80
    assert table.loc[table["delay"] == 0, "prefix_hash"].nunique() == 1
    none = table[table["action"] == "none"]
    assert none.groupby(["condition", "delay"])["success"].nunique().eq(1).all()  # the agent is deterministic
    assert none.loc[none["condition"] == "clean", "n_actions"].eq(episodes.factual_actions).all()
    assert set(table["source"]) == {engine.source}


def test_tasks_are_mazes_of_their_own() -> None:
    tasks = [TextworldEngine().task(index, 0) for index in range(30)]
    assert len({(task.level, task.game_seed) for task in tasks}) == 30
    assert {task.level for task in tasks} <= set(range(105, 115))
    assert TextworldEngine().task(3, 1) != TextworldEngine().task(3, 0)
