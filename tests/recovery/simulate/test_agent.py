"""The household agent: it does the task, believes what it reads, and mends its beliefs when it reads better."""

from __future__ import annotations

import pytest

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.agent import ScriptedAgent
from faultbook.recovery.simulate.beliefs import Beliefs
from faultbook.recovery.simulate.conditions import HIDDEN_TEXT, MISSING_TEXT

PLACES = ("cabinet 1", "cabinet 2", "drawer 1", "fridge 1", "microwave 1", "shelf 1", "shelf 2")
OPENING = (
    "You are in the middle of a room. Looking quickly around you, you see "
    + ", ".join(f"a {place}" for place in PLACES)
    + ".\n\nYour task is to: put a mug 9 times."
)


def started(task: str = "put a mug in shelf", seed: int = 0, noise: float = 0.0) -> ScriptedAgent:
    agent = ScriptedAgent(noise=noise, seed=seed)
    agent.start(task, OPENING)
    return agent


def stubborn(agent: ScriptedAgent) -> bool:
    return agent._tries > 2


def seeds_of(is_stubborn: bool, n: int = 4) -> list[int]:
    return [seed for seed in range(60) if stubborn(started(seed=seed)) == is_stubborn][:n]


def test_it_carries_a_task_through() -> None:
    agent = started("put a hot mug in drawer")
    place = agent.act().removeprefix("go to ")
    assert place in PLACES
    agent.observe(f"You arrive at {place}. The {place} is closed.")
    assert agent.act() == f"open {place}"
    agent.observe(f"You open the {place}. The {place} is open. In it, you see a cup 1, and a mug 2.")
    assert agent.act() == f"take mug 2 from {place}"
    agent.observe(f"You pick up the mug 2 from the {place}.")
    assert agent.act() == "go to microwave 1"
    agent.observe("You arrive at microwave 1. The microwave 1 is closed.")
    assert agent.act() == "heat mug 2 with microwave 1"
    agent.observe("You heat the mug 2 using the microwave 1.")
    assert agent.act() == "go to drawer 1"
    agent.observe("You arrive at drawer 1. The drawer 1 is closed.")
    assert agent.act() == "open drawer 1"
    agent.observe("You open the drawer 1. The drawer 1 is open. In it, you see nothing.")
    assert agent.act() == "move mug 2 to drawer 1"


def test_it_searches_every_place_once() -> None:
    agent, visited = started(seed=3), []
    while len(visited) < len(PLACES):
        command = agent.act()
        if command.startswith("open "):  # a place it misjudges
            agent.observe("Nothing happens.")
            continue
        place = command.removeprefix("go to ")
        visited.append(place)
        agent.observe(f"You arrive at {place}. On the {place}, you see nothing.")
    assert sorted(visited) == sorted(PLACES)
    assert agent.act() in {f"open {place}" for place in PLACES} | {"inventory"}  # none left: it starts over


def test_it_believes_a_stale_place() -> None:
    agent = started()
    place = agent.act().removeprefix("go to ")
    other = next(name for name in PLACES if name != place)
    agent.observe(f"You arrive at {other}. On the {other}, you see a mug 1.")
    assert agent.beliefs.at == other
    assert agent.act() in {f"take mug 1 from {other}", f"open {other}"}


def misled(seed: int) -> tuple[ScriptedAgent, str]:
    """An agent that is at a place it went to, but was shown the opening text, and its place."""
    agent = started(seed=seed)
    place = agent.act().removeprefix("go to ")
    agent.observe(OPENING.partition("\n")[0])
    assert agent.beliefs.at is None
    return agent, place


@pytest.mark.parametrize("seed", seeds_of(is_stubborn=True))
def test_a_stubborn_one_stays_misled_for_long(seed: int) -> None:
    agent, place = misled(seed)
    for _ in range(4):
        assert agent.act() == f"go to {place}"
        agent.observe("Nothing happens.")
    assert agent.act() == f"go to {place}"


@pytest.mark.parametrize("seed", seeds_of(is_stubborn=False))
def test_the_others_give_up_soon(seed: int) -> None:
    agent, place = misled(seed)
    for _ in range(2):
        agent.act()
        agent.observe("Nothing happens.")
    assert agent.act() != f"go to {place}"
    assert place in agent.beliefs.given_up or agent._tries == 1


@pytest.mark.parametrize("seed", [*seeds_of(is_stubborn=True, n=2), *seeds_of(is_stubborn=False, n=2)])
def test_a_refresh_sets_it_right(seed: int) -> None:
    agent, place = misled(seed)
    agent.observe(f"You are facing the {place}. Next to it, you see nothing.")
    assert agent.beliefs.at == place
    assert agent.act() == f"examine {place}"
    agent.observe(f"On the {place}, you see a mug 1.")
    assert f"take mug 1 from {place}" in {agent.act(), agent.act()}  # it may misjudge the place first


def test_a_refresh_that_says_what_it_knows_changes_no_command() -> None:
    one, other = started(), started()
    for agent in (one, other):
        place = agent.act().removeprefix("go to ")
        agent.observe(f"You arrive at {place}. The {place} is closed.")
    other.observe(f"You are facing the {place}. Next to it, you see nothing.")
    assert other.act() == one.act()


def test_a_hidden_answer_is_passed_over() -> None:
    (agent, place), (other, _) = misled(seed := seeds_of(is_stubborn=True)[0]), misled(seed)
    agent.observe(HIDDEN_TEXT)
    assert agent.beliefs == other.beliefs
    assert agent.act() == other.act() == f"go to {place}"


def test_a_hidden_answer_while_nothing_works_makes_it_look_closer() -> None:
    agent, place = misled(seeds_of(is_stubborn=True)[0])
    agent.act()
    agent.observe("Nothing happens.")
    agent.observe(HIDDEN_TEXT)
    assert agent.act() == f"examine {place}"  # it supposes that it went where it meant to go


def test_of_a_missing_text_it_supposes_the_best() -> None:
    agent = started("put a clean mug in shelf")
    place = agent.act().removeprefix("go to ")
    agent.observe(MISSING_TEXT)
    assert agent.act() == f"examine {place}"
    agent.observe(f"The {place} is closed.")
    assert agent.act() == f"open {place}"
    agent.observe(MISSING_TEXT)
    assert agent.act() == f"examine {place}"
    agent.observe(f"The {place} is open. In it, you see a mug 1.")
    assert agent.act() == f"take mug 1 from {place}"
    agent.observe(MISSING_TEXT)
    assert agent.act() == "look"  # it carries the mug; this kitchen has no sink basin to clean it in


def test_after_grips_in_vain_it_looks_into_its_hands() -> None:
    agent = started(seed=seeds_of(is_stubborn=False)[0])
    agent.observe("The fridge 1 is open. In it, you see a mug 1.")
    for _ in range(agent._tries):
        assert agent.act() == "take mug 1 from fridge 1"
        agent.observe("Nothing happens.")
    assert agent.act() == "inventory"
    agent.observe("You are carrying: a mug 1.")
    assert agent.act() == "go to shelf 1" or agent.act() == "go to shelf 2"


def test_replan_forgets_all_but_what_it_holds() -> None:
    agent = started()
    order = list(agent._places)
    for place in PLACES[:3]:
        agent.observe(f"On the {place}, you see nothing.")
    agent.observe("You pick up the mug 1 from the fridge 1.")
    agent.replan()
    assert agent.beliefs == Beliefs(held="mug 1", treated=True)
    assert agent._places == order


def test_a_copy_goes_its_own_way() -> None:
    agent = started(noise=0.5)
    twin, other = agent.copy(), agent.copy(seed=7)
    assert [twin.act() for _ in range(20)] == [agent.act() for _ in range(20)]
    assert [other.act() for _ in range(20)] != [started(noise=0.5).act() for _ in range(20)]
    other.observe("On the fridge 1, you see a mug 1.")
    assert "fridge 1" not in agent.beliefs.seen


def test_without_noise_the_seed_of_a_copy_makes_no_difference() -> None:
    agent = started()
    one, other = agent.copy(seed=1), agent.copy(seed=2)
    for _ in range(10):
        command = one.act()
        assert other.act() == command
        place = " ".join(command.split()[-2:])
        for each in (one, other):
            each.observe(f"You arrive at {place}. On the {place}, you see nothing.")


def test_a_task_it_cannot_read_is_refused() -> None:
    with pytest.raises(FaultbookError, match="does not understand the task 'examine the alarm clock'"):
        started("examine the alarm clock")
