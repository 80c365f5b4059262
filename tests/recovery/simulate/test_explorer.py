"""The explorer of mazes: it maps what it reads, stale or not, and mends its map."""

from __future__ import annotations

import pytest

from faultbook.recovery.simulate.conditions import HIDDEN_TEXT, MISSING_TEXT
from faultbook.recovery.simulate.explorer import OPPOSITE, Explorer

MAZE = {  # a way of four rooms with dead ends, the coin in the last
    "Hall": {"north": "Attic", "east": "Pantry"},
    "Attic": {"south": "Hall", "west": "Loft"},
    "Pantry": {"west": "Hall", "north": "Cellar", "east": "Closet"},
    "Closet": {"west": "Pantry"},
    "Cellar": {"south": "Pantry", "north": "Vault"},
    "Vault": {"south": "Cellar"},
    "Loft": {"east": "Attic"},
}


class Walk:
    """Where an agent in the maze really is."""

    def __init__(self, room: str = "Hall") -> None:
        self.room = room

    def describe(self) -> str:
        exits = " ".join(f"There is an exit to the {way}." for way in MAZE[self.room])
        return f"-= {self.room} =-\nA room.\n{exits}{' There is a coin.' if self.room == 'Vault' else ''}"

    def do(self, command: str) -> tuple[str, bool]:
        if command == "look":
            return self.describe(), False
        if command == "take coin":
            return ("You take the coin.", True) if self.room == "Vault" else ("You can't see any such thing.", False)
        way = command.removeprefix("go ")
        if way not in MAZE[self.room]:
            return "You can't go that way.", False
        self.room = MAZE[self.room][way]
        return self.describe(), False


def explore(agent: Explorer, walk: Walk, limit: int = 60) -> int:
    """Play on, and return after how many actions the coin was taken."""
    for n in range(1, limit + 1):
        text, won = walk.do(agent.act())
        if won:
            return n
        agent.observe(text)
    pytest.fail("the coin was not found")


def test_the_maze_is_a_maze() -> None:
    assert all(MAZE[there][OPPOSITE[way]] == room for room, ways in MAZE.items() for way, there in ways.items())


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_the_coin_without_walking_in_circles(seed: int) -> None:
    agent, walk = Explorer(seed=seed), Walk()
    agent.start("", walk.describe())
    # every passage at most twice, then the grip
    assert explore(agent, walk) <= sum(map(len, MAZE.values())) + 1


@pytest.mark.parametrize("shown", [MISSING_TEXT, "stale"])
@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_coin_although_misled_once(seed: int, shown: str) -> None:
    agent, walk = Explorer(seed=seed), Walk()
    agent.start("", before := walk.describe())
    walk.do(agent.act())
    agent.observe(before if shown == "stale" else shown)
    explore(agent, walk)


def test_a_stale_room_is_believed_and_a_look_sets_it_right() -> None:
    agent, walk = Explorer(seed=1), Walk()
    agent.start("", before := walk.describe())
    walk.do(agent.act())
    agent.observe(before)
    assert agent.room == "Hall"
    hidden = agent.copy()
    agent.observe(walk.describe())
    assert agent.room == walk.room
    assert agent.passages == {}  # the passage from the hall to itself is struck out
    hidden.observe(HIDDEN_TEXT)
    assert hidden.room == "Hall"
    assert hidden.act() == "look"


def test_a_look_that_says_what_it_knows_changes_no_command() -> None:
    agent, walk = Explorer(seed=2), Walk()
    agent.start("", walk.describe())
    for _ in range(3):
        agent.observe(walk.do(agent.act())[0])
    other = agent.copy()
    other.observe(walk.describe())
    assert other.act() == agent.act()


def test_replan_throws_the_map_away() -> None:
    agent, walk = Explorer(seed=2), Walk()
    agent.start("", walk.describe())
    for _ in range(4):
        agent.observe(walk.do(agent.act())[0])
    agent.replan()
    assert agent.room == walk.room
    assert list(agent.exits) == [walk.room]
    assert agent.passages == {}
    explore(agent, walk)


def test_noise_comes_from_the_seed_of_the_copy() -> None:
    agent, walk = Explorer(noise=0.9, seed=0), Walk("Pantry")
    agent.start("", walk.describe())
    ways = [[agent.copy(seed=seed).act() for seed in range(20)] for _ in range(2)]
    assert ways[0] == ways[1]
    assert len(set(ways[0])) > 1
