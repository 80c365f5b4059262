"""TextWorld's coin games: mazes compiled here, offline, and played on the Z-machine, which can be copied exactly.

A game is a maze of the challenge "coin collector" with dead ends (levels 105 to 114: 5 to 14 rooms on the way). Its
opening text tells the whole way, and its status line the room; both are cut off, so that the agent has to explore.

A branch is `textworld.Environment.copy`, a save-state of the interpreter underneath.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.explorer import Explorer
from faultbook.recovery.simulate.extras import engine_module, package_versions
from faultbook.recovery.simulate.features import Vocabulary

EXTRA = "sim"
_LEAST_LEVEL, _LEVELS = 105, 10
_VOCABULARY = Vocabulary(
    no_op=r"^You can't ",
    expected=((r"go \w+", r"-= .+ =-"), (r"look", r"-= .+ =-"), (r"take (.+)", r"You (?:pick up|take) the {0}")),
    milestones=(r"\bcoin\b",),
)


@dataclass(frozen=True, slots=True)
class CoinGame:
    """One maze.

    Attributes
    ----------
    level : int
        As the challenge counts: 105 is 5 rooms with dead ends.
    game_seed : int
        Of the maze.
    """

    task_id: str
    level: int
    game_seed: int
    text: str = field(default="find the coin and take it", init=False)


class TextworldEnvironment:
    """A maze on the Z-machine.

    Parameters
    ----------
    task : CoinGame
        Which maze. It is compiled (about 1.5 s) unless it is the last one that was.
    """

    def __init__(self, task: CoinGame) -> None:
        self.task = task
        self._compiled = _compiled(task)  # held, for its file must stay: a copy reads it again
        self._game = self._compiled.open()
        self._state: Any = None

    @property
    def observation(self) -> str:
        """The text of the last `reset` or `step`."""
        return _readable(str(self._state.feedback))

    @property
    def admissible_commands(self) -> list[str]:
        """Commands that the game understands now, sorted."""
        return sorted(self._state.admissible_commands)

    def reset(self) -> str:
        """Start anew and return the first room's description."""
        self._state = self._game.reset()
        return self.observation

    def step(self, command: str) -> tuple[str, bool]:
        """Carry out a command."""
        self._state, _, _ = self._game.step(command)
        return self.observation, bool(self._state.won)

    def state_hash(self) -> str:
        """SHA-256 of the sorted facts of the world and the number of moves, the first 32 hexadecimal digits."""
        facts = [*sorted(str(fact) for fact in self._state["_facts"]), f"moves {self._state.moves}"]
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]

    def branch(self) -> Self:
        """An exact copy."""
        other = copy.copy(self)
        with _without_known_warnings():
            other._game = self._game.copy()
        other._state = other._game.state
        return other

    def close(self) -> None:
        """Close the interpreter."""
        game, self._game, self._state = self._game, None, None
        if game is not None:
            game.close()


@dataclass(frozen=True, slots=True)
class TextworldEngine:
    """Coin games on TextWorld's Z-machine with the scripted explorer.

    Parameters
    ----------
    noise : float
        How often the agent takes any way instead of the one it chose, in [0, 1); 0 makes it deterministic.
    """

    noise: float = 0.0
    name: str = field(default="textworld", init=False)
    query: str = field(default="look", init=False)
    action_limit: int = field(default=50, init=False)
    max_slack: int = field(default=8, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 1:
            raise FaultbookError(f"noise is {self.noise}; give at least 0 and less than 1")

    @property
    def source(self) -> str:
        """What made an episode."""
        return "textworld engine, scripted explorer" + (f" with noise {self.noise:g}" if self.noise else "")

    def settings(self) -> dict[str, str | int | float]:
        """What decides the episodes, apart from seed and number of tasks."""
        limits = {"action_limit": self.action_limit, "max_slack": self.max_slack}
        versions = package_versions("textworld", "jericho")
        return {"engine": self.name, "query": self.query, "noise": self.noise, **limits, **versions}

    def check(self) -> None:
        """Make sure that textworld is installed."""
        engine_module("textworld", EXTRA)

    def task(self, index: int, seed: int) -> CoinGame:
        """Maze number `index`."""
        name = f"coin-{seed}-{index:05d}"
        drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
        return CoinGame(name, _LEAST_LEVEL + drawn % _LEVELS, drawn // _LEVELS % 2**30)

    def environment(self, task: Any) -> TextworldEnvironment:
        """A world for the task."""
        return TextworldEnvironment(task)

    def agent(self, task: Any, seed: int) -> Explorer:
        """The scripted explorer; it knows nothing of the maze but what it is told."""
        return Explorer(noise=self.noise, seed=seed)

    def vocabulary(self, task: Any) -> Vocabulary:
        """How the games' texts are read."""
        return _VOCABULARY


def _readable(text: str) -> str:
    """What a game says, without banner, told way and status line, in one paragraph for each of its own."""
    text = text.partition("\n>")[0]
    _, mark, room = text.partition("-= ")
    return re.sub(r"\s*\n\s*", "\n", (mark + room if mark else text).strip())


class _Compiled:
    """A compiled maze: its folder goes when nobody holds this any longer."""

    def __init__(self, task: CoinGame) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faultbook-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        textworld = engine_module("textworld", EXTRA)
        challenge = engine_module("textworld.challenges", EXTRA).coin_collector
        options = textworld.GameOptions()
        options.seeds, options.path = task.game_seed, str(self._folder / "game.z8")
        with _without_known_warnings():
            game = challenge.make({"level": task.level}, options)
            engine_module("textworld.generator", EXTRA).compile_game(game, options)

    def open(self) -> Any:
        textworld = engine_module("textworld", EXTRA)
        infos = textworld.EnvInfos(won=True, moves=True, admissible_commands=True, facts=True)
        with _without_known_warnings():
            return textworld.start(str(self._folder / "game.z8"), infos)


@contextmanager
def _without_known_warnings() -> Iterator[None]:
    """Pass over what the engine says of every game of this kind, and what is no fault of it."""
    with warnings.catch_warnings():
        # of two rooms of one name the second gets an adjective
        warnings.simplefilter("ignore", engine_module("textworld", EXTRA).GenerationWarning)
        # the interpreter keeps no score of its own for games that it does not know; TextWorld does
        warnings.simplefilter("ignore", engine_module("jericho.jericho", EXTRA).UnsupportedGameWarning)
        yield


@functools.lru_cache(maxsize=1)
def _compiled(task: CoinGame) -> _Compiled:
    return _Compiled(task)
