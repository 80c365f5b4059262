"""A scripted agent for TextWorld's coin games: it draws a map from what it reads, and walks to what it has not seen.

Like the household agent it believes what it reads. A stale room description puts it in a room that it is not in, and
the passage it just took goes on its map as leading there. Where a passage that it read of turns out to be a wall it
tries again, as often as the household agent would, and only then looks around. Reading that it is not where it took
itself to be, it strikes out what it drew lately.
"""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Iterator
from typing import Self

import numpy as np

from faultbook.recovery.simulate.agent import draw_tries

OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
_LATELY = 3  # passages that are struck out when the map proves wrong
_ROOM = re.compile(r"-= (.+?) =-(.*)", re.DOTALL)
_DIRECTION = re.compile(r"\b(north|south|east|west)\b")
_NO_WAY = "You can't go that way"
_NOT_HERE = "You can't see any such thing"


class Explorer:
    """The scripted agent of the coin games.

    Parameters
    ----------
    noise : float
        Probability, at each command, of a step in any direction that it read of here.
    seed : int
        Of its character: which directions it prefers, how often it tries; and of its noise.
    """

    def __init__(self, noise: float = 0.0, seed: int = 0) -> None:
        self._noise, self._rng = noise, np.random.default_rng(seed)
        self._preference = [list(OPPOSITE)[place] for place in self._rng.permutation(len(OPPOSITE))]
        self._tries = draw_tries(self._rng)
        self._forget()
        self.room: str | None = None
        self._answering = ""  # the command whose answer is due
        self._failures = 0
        self._look = False

    def _forget(self) -> None:
        self.exits: dict[str, list[str]] = {}
        self.passages: dict[tuple[str, str], str | None] = {}  # None: a wall
        self._drawn: list[tuple[str, str]] = []
        self._coin: set[str] = set()

    def start(self, task_text: str, observation: str) -> None:
        """Begin a game with the first room's description."""
        self.observe(observation)

    def copy(self, seed: int | None = None) -> Self:
        """An independent agent with the same beliefs."""
        other = copy.deepcopy(self)
        if seed is not None:
            other._rng = np.random.default_rng(seed)
        return other

    def replan(self) -> None:
        """Throw the map away but for the room it takes itself to be in."""
        here = self.exits.get(self.room or "", [])
        self._forget()
        if self.room:
            self.exits[self.room] = here

    def observe(self, text: str) -> None:
        """Believe what a text says; of a text that says nothing it learns that it must look."""
        command, self._answering = self._answering, ""
        if room := _ROOM.search(text):
            self._in_room(command, room[1], room[2])
        elif _NO_WAY in text:
            self._failures += 1
            if self._failures >= self._tries and self.room:
                self._look = True
                self.passages[self.room, command.removeprefix("go ")] = None
        elif _NOT_HERE in text:
            self._coin.discard(self.room or "")
            self._look = True
        elif command != "take coin":
            self._look = True

    def _in_room(self, command: str, room: str, description: str) -> None:
        direction = command.removeprefix("go ")
        stepped = command == f"go {direction}"
        if (stepped and self._failures) or (not stepped and room != self.room):
            self._strike_out()
        elif stepped and self.room:
            self._draw(self.room, direction, room)
            self._draw(room, OPPOSITE[direction], self.room)
        self.room, self._failures, self._look = room, 0, False
        self.exits[room] = [way for way in self._preference if way in set(_DIRECTION.findall(description))]
        if re.search(r"\bcoin\b", description):
            self._coin.add(room)

    def _draw(self, here: str, direction: str, there: str) -> None:
        self.passages[here, direction] = there
        self._drawn.append((here, direction))

    def _strike_out(self) -> None:
        for passage in self._drawn[-2 * _LATELY :]:
            self.passages.pop(passage, None)
        self._drawn.clear()
        self.passages = {passage: there for passage, there in self.passages.items() if there is not None}

    def act(self) -> str:
        """The next command."""
        self._answering = self._choose()
        ways = self.exits.get(self.room or "", [])
        if ways and self._noise and self._rng.random() < self._noise:
            self._answering = f"go {ways[self._rng.integers(len(ways))]}"
        return self._answering

    def _choose(self) -> str:
        if self._look or self.room is None:
            self._look = False
            return "look"
        if self.room in self._coin:
            return "take coin"
        for way, room in self._reachable(self.room):
            if room in self._coin or any((room, exit_) not in self.passages for exit_ in self.exits.get(room, [])):
                return f"go {way or self._untried(room)}"
        here = self.exits[self.room]
        self._forget()
        self.exits[self.room] = here
        return f"go {here[0]}" if here else "look"

    def _untried(self, room: str) -> str:
        return next(way for way in self.exits[room] if (room, way) not in self.passages)

    def _reachable(self, start: str) -> Iterator[tuple[str, str]]:
        """Rooms on the map, nearest first, each with the first step towards it ("" for the room itself)."""
        waiting, known = deque([("", start)]), {start}
        while waiting:
            first, room = waiting.popleft()
            yield first, room
            for way in self.exits.get(room, []):
                there = self.passages.get((room, way))
                if there and there not in known:
                    known.add(there)
                    waiting.append((first or way, there))
