"""The course of one run: a world and an agent that take turns, and what the undisturbed run settles about its task.

Paired branches (`branches`) and runs that a harness would time (`trials`) are made of the same parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from faultbook.recovery.simulate.conditions import LEAST_FORK, shown
from faultbook.recovery.simulate.features import Turn
from faultbook.recovery.simulate.protocol import Agent, Engine, Environment, Task

FORK_SHARE = 0.25
OF_AGENT, OF_SLACK, OF_BRANCH = range(3)  # what a random stream is for


@dataclass(slots=True)
class Run:
    """A run in progress: a world, an agent, and what both said so far."""

    environment: Environment
    agent: Agent
    opening: str
    observations: list[str]
    turns: list[Turn] = field(default_factory=list)
    won: bool = False

    @property
    def n_actions(self) -> int:
        """Actions so far."""
        return len(self.turns)

    def over(self, limit: int) -> bool:
        """Whether it is won, or at its limit."""
        return self.won or self.n_actions >= limit

    def step(self, command: str, show: str | None = None, condition: str = "clean") -> None:
        """Carry out a command; the agent reads what came of it, what the condition makes of that, or a given text."""
        observation, self.won = self.environment.step(command)
        self.observations.append(observation)
        text = shown(condition, self.observations) if show is None else show
        self.turns.append(Turn(command, text))
        self.agent.observe(text)

    def play(self, limit: int) -> None:
        """Go on to the end."""
        while not self.over(limit):
            self.step(self.agent.act())

    def branch(self, seed: int | None) -> Run:
        """A copy of world and agent; with a seed, the agent's chance is fresh from here."""
        world = self.environment.branch()
        return Run(world, self.agent.copy(seed), self.opening, [*self.observations], [*self.turns], self.won)


@dataclass(frozen=True, slots=True)
class Settled:
    """What is settled about a task before anything is disturbed.

    Attributes
    ----------
    task : Task
    index : int
        Its number.
    factual_success : bool
        Whether the undisturbed run won.
    factual_actions : int
        How many actions it took.
    fork : int
        The action whose observation is disturbed, from 1.
    limit : int
        Most actions of a run of this task.
    """

    task: Task
    index: int
    factual_success: bool
    factual_actions: int
    fork: int
    limit: int

    @property
    def feasible(self) -> bool:
        """Whether the undisturbed run was still going on after the fork."""
        return self.factual_actions > self.fork


def settle(engine: Engine, index: int, seed: int) -> Settled:
    """Run a task undisturbed, and settle its fork and its limit (the rules are in `branches`)."""
    task = engine.task(index, seed)
    factual = start(engine, task, index, seed)
    factual.play(engine.action_limit)
    factual.environment.close()
    fork = max(LEAST_FORK, math.ceil(FORK_SHARE * factual.n_actions))
    slack = int(_rng(seed, index, OF_SLACK).integers(0, engine.max_slack // 2, 2, endpoint=True).sum())
    limit = factual.n_actions + slack if factual.won else engine.action_limit
    return Settled(task, index, factual.won, factual.n_actions, fork, limit)


def start(engine: Engine, task: Task, index: int, seed: int) -> Run:
    """A world of the task and the agent before it, which has read the task and the opening."""
    environment = engine.environment(task)
    opening = environment.reset()
    agent = engine.agent(task, stream_seed(seed, index, OF_AGENT))
    agent.start(task.text, opening)
    return Run(environment, agent, opening, [opening])


def _sequence(seed: int, index: int, purpose: int, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(index, purpose, *key))


def stream_seed(seed: int, index: int, purpose: int, *key: int) -> int:
    """The seed of a random stream of a task: what it is for, and which one of those."""
    return int(_sequence(seed, index, purpose, *key).generate_state(1, np.uint64)[0])


def _rng(seed: int, index: int, purpose: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(_sequence(seed, index, purpose, *key))
