"""What a simulation needs of a world, of an agent and of the engine that makes both: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from faultbook.recovery.simulate.features import Vocabulary


class Environment(Protocol):
    """A world in which commands are text and so are their answers.

    `branch` gives an independent world in the same state: what happens in one never shows in the other. `close` gives
    back what the world holds (a loaded engine, say); a closed world is not used again.
    """

    @property
    def observation(self) -> str:
        """The text of the last `reset` or `step`."""

    @property
    def admissible_commands(self) -> Sequence[str]:
        """Commands that the world understands now, sorted. The agent does not get to see them."""

    def reset(self) -> str:
        """Start anew and return the opening text."""

    def step(self, command: str) -> tuple[str, bool]:
        """Carry out a command; return what it shows, and whether the task is won."""

    def state_hash(self) -> str:
        """A digest of the whole state: equal if and only if the states are, for all practical purposes."""

    def branch(self) -> Self:
        """An independent world in the same state."""

    def close(self) -> None:
        """Give back what the world holds."""


class Agent(Protocol):
    """Somebody who reads text and gives commands. Nothing but text reaches it, so a language model can take its place.

    After `start`, calls of `act` and `observe` alternate, but a recovery may let the agent `observe` an answer that it
    did not ask for, or `replan`, before it acts again.
    """

    def start(self, task_text: str, observation: str) -> None:
        """Begin a task with the opening text."""

    def act(self) -> str:
        """The next command."""

    def observe(self, text: str) -> None:
        """Read an answer, true or not."""

    def replan(self) -> None:
        """Drop plans and notes on what was done; nothing new is learnt of the world."""

    def copy(self, seed: int | None = None) -> Self:
        """An independent agent with the same beliefs; given a seed, all further chance comes from it."""


class Task(Protocol):
    """One thing to do. It can be sent to another process."""

    @property
    def task_id(self) -> str:
        """A name that no other task of the engine with the same seed has."""

    @property
    def text(self) -> str:
        """What the agent is told."""


class Engine(Protocol):
    """Where tasks, worlds and agents come from. It can be sent to another process: it holds settings, no worlds."""

    @property
    def name(self) -> str:
        """Short, as in ``--engine``."""

    @property
    def source(self) -> str:
        """What made an episode, as the column `source` says it: engine and agent."""

    @property
    def query(self) -> str:
        """The command of a refresh."""

    @property
    def action_limit(self) -> int:
        """Actions after which the undisturbed run ends, and that no run exceeds."""

    @property
    def max_slack(self) -> int:
        """Most actions that a run may take beyond the undisturbed one."""

    def settings(self) -> dict[str, str | int | float]:
        """Everything that decides what the episodes are, apart from seed and number of tasks."""

    def check(self) -> None:
        """Make sure that the engine can run here.

        Raises
        ------
        FaultbookError
            If it is not installed: which extra to install.
        """

    def task(self, index: int, seed: int) -> Task:
        """The task with this number, from 0; the same for the same seed, whatever tasks are made beside it."""

    def environment(self, task: Task) -> Environment:
        """A world for the task; call `reset` first."""

    def agent(self, task: Task, seed: int) -> Agent:
        """An agent for the task; a deterministic one ignores the seed but for habits that differ between tasks."""

    def vocabulary(self, task: Task) -> Vocabulary:
        """How texts of this task are read for features."""
