"""One task, many ends: the undisturbed run, then every condition, delay and action from the very same state.

The undisturbed (factual) run decides where the fork lies: the observation after 25 % of its actions (rounded up, at
least 2, which is the history that "stale2" needs) is the one that is disturbed. A task whose undisturbed run is over by
then is not prefix-feasible and gives no episode. The disturbed runs take the same steps up to there, for the agent has
the same seed. After d further actions, d ∈ {0, 1, 2, 4}, the run forks into one branch for each action, "none" twice:
replicate 0 is the run itself, going on as it would, so that it ends alike at every delay; replicate 1 starts from fresh
chance, and whatever differs between the two is noise, not recovery. World and agent are copied, and the state hash of
every branch is compared with that of the run it leaves.

Actions at the fork
    none : nothing. refresh : one query of the engine (``look``), which the agent reads. ablated_refresh : the same
    query, but the agent reads a fixed text. replan : the agent drops plans and notes; no query. A query is an action
    and counts towards the limit.

Limit
    Factual length + slack where the factual run succeeded; where it did not, the engine's action limit, which ended it.
    The slack of a task is the sum of two draws, each even from 0 to half the engine's `max_slack`, from the seed and
    the task's number. Without slack a query that teaches nothing costs the task (a harm); with ample slack every
    mistake is made good in time and nothing can be rescued. The limit is the same for all branches of a task, and the
    agent does not know it.

A run that is over before the fork (won, or at its limit) keeps its outcome for all actions and stays in the table.

Source: arXiv 2610.00372, protocol (second reading). The paper's runs had a fixed limit; drawing it is this project's
choice, so that both rescues and harms occur with an agent that never fails for want of ability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.conditions import (
    ABLATED_REFRESH,
    HIDDEN_TEXT,
    LEAST_FORK,
    NONE,
    REFRESH,
    REPLAN,
    shown,
)
from faultbook.recovery.simulate.features import FEATURES, Turn, features
from faultbook.recovery.simulate.protocol import Agent, Engine, Environment, Task
from faultbook.tables import ACTIONS, CONDITIONS, Episodes

FORK_SHARE = 0.25
DELAYS = (0, 1, 2, 4)
REPLICATES = 2  # of "none"
COLUMNS = (*Episodes.to_schema().columns, *FEATURES)
_OF_AGENT, _OF_SLACK, _OF_BRANCH = range(3)  # what a random stream is for

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskEpisodes:
    """What came of a task.

    Attributes
    ----------
    task_id : str
    feasible : bool
        Whether the undisturbed run was still going on after the fork; else there are no rows.
    factual_success : bool
    factual_actions : int
    fork : int
        The action whose observation is disturbed, from 1.
    limit : int
        Most actions of a branch.
    rows : list of dict
        The episodes with `COLUMNS`; "cohort" is left missing.
    """

    task_id: str
    feasible: bool
    factual_success: bool
    factual_actions: int
    fork: int
    limit: int
    rows: list[Row]


@dataclass(slots=True)
class _Run:
    """A run in progress: a world, an agent, and what both said so far."""

    environment: Environment
    agent: Agent
    opening: str
    observations: list[str]
    turns: list[Turn] = field(default_factory=list)
    won: bool = False

    @property
    def n_actions(self) -> int:
        return len(self.turns)

    def over(self, limit: int) -> bool:
        return self.won or self.n_actions >= limit

    def step(self, command: str, show: str | None = None, condition: str = "clean") -> None:
        """Carry out a command; the agent reads what came of it, what the condition makes of that, or a given text."""
        observation, self.won = self.environment.step(command)
        self.observations.append(observation)
        text = shown(condition, self.observations) if show is None else show
        self.turns.append(Turn(command, text))
        self.agent.observe(text)

    def play(self, limit: int) -> None:
        while not self.over(limit):
            self.step(self.agent.act())

    def branch(self, seed: int | None) -> _Run:
        world = self.environment.branch()
        return _Run(world, self.agent.copy(seed), self.opening, [*self.observations], [*self.turns], self.won)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is settled about a task before its branches are run."""

    engine: Engine
    task: Task
    index: int
    seed: int
    factual_success: bool
    fork: int
    limit: int

    def start(self) -> _Run:
        return _start(self.engine, self.task, self.index, self.seed)


def run_task(engine: Engine, index: int, seed: int) -> TaskEpisodes:
    """Run a task undisturbed, then under every condition, delay and action.

    Parameters
    ----------
    engine : Engine
        Where task, worlds and agent come from.
    index : int
        The task's number.
    seed : int
        Source of all randomness: the same seed and number give the same rows, whatever else is run.

    Returns
    -------
    TaskEpisodes
        4 conditions × 4 delays × 5 branches = 80 rows, or none.

    Raises
    ------
    FaultbookError
        If a branch does not start in the state it was forked from: the engine cannot be relied on.
    """
    task = engine.task(index, seed)
    factual = _start(engine, task, index, seed)
    factual.play(engine.action_limit)
    factual.environment.close()
    fork = max(LEAST_FORK, math.ceil(FORK_SHARE * factual.n_actions))
    slack = int(_rng(seed, index, _OF_SLACK).integers(0, engine.max_slack // 2, 2, endpoint=True).sum())
    limit = factual.n_actions + slack if factual.won else engine.action_limit
    feasible = factual.n_actions > fork
    plan = _Plan(engine, task, index, seed, factual.won, fork, limit)
    rows = [row for condition in CONDITIONS for row in _of_condition(plan, condition)] if feasible else []
    return TaskEpisodes(task.task_id, feasible, factual.won, factual.n_actions, fork, limit, rows)


def _of_condition(plan: _Plan, condition: str) -> Iterator[Row]:
    """Run up to the last fork, and branch at each on the way."""
    trunk = plan.start()
    while trunk.n_actions < plan.fork - 1:
        trunk.step(trunk.agent.act())
    trunk.step(trunk.agent.act(), condition=condition)
    for delay in DELAYS:
        while trunk.n_actions < plan.fork + delay and not trunk.over(plan.limit):
            trunk.step(trunk.agent.act())
        yield from _of_fork(plan, trunk, condition, delay)
    trunk.environment.close()


def _of_fork(plan: _Plan, trunk: _Run, condition: str, delay: int) -> Iterator[Row]:
    ended = trunk.over(plan.limit)
    state = trunk.environment.state_hash()
    known = features(trunk.opening, trunk.turns, plan.engine.vocabulary(plan.task))
    key = (CONDITIONS.index(condition), delay)
    for number, (action, replicate) in enumerate(_branches()):
        won, n_actions = trunk.won, trunk.n_actions
        if not ended:
            itself = action == NONE and replicate == 0
            seed = None if itself else _seed(plan.seed, plan.index, _OF_BRANCH, *key, number)
            won, n_actions = _end_of_branch(plan, trunk, state, action, seed)
        yield {
            "task_id": plan.task.task_id,
            "condition": condition,
            "delay": delay,
            "action": action,
            "replicate": replicate,
            "success": won,
            "cohort": None,
            "source": plan.engine.source,
            "factual_success": plan.factual_success,
            "ended_before": ended,
            "prefix_hash": state,
            "n_actions": n_actions,
            **known,
        }


def _branches() -> Iterator[tuple[str, int]]:
    for action in ACTIONS:
        yield from ((action, replicate) for replicate in range(REPLICATES if action == NONE else 1))


def _end_of_branch(plan: _Plan, trunk: _Run, state: str, action: str, seed: int | None) -> tuple[bool, int]:
    """Fork, act, and play to the end: whether it was won, and after how many actions."""
    branch = trunk.branch(seed)
    found = branch.environment.state_hash()
    if found != state:
        raise FaultbookError(
            f"task {plan.task.task_id}: a branch after {trunk.n_actions} actions starts in state {found}, the run it "
            f"leaves is in {state}; the engine '{plan.engine.name}' does not branch exactly, so nothing is recorded"
        )
    if action in (REFRESH, ABLATED_REFRESH):
        branch.step(plan.engine.query, show=HIDDEN_TEXT if action == ABLATED_REFRESH else None)
    elif action == REPLAN:
        branch.agent.replan()
    branch.play(plan.limit)
    branch.environment.close()
    return branch.won, branch.n_actions


def _start(engine: Engine, task: Task, index: int, seed: int) -> _Run:
    environment = engine.environment(task)
    opening = environment.reset()
    agent = engine.agent(task, _seed(seed, index, _OF_AGENT))
    agent.start(task.text, opening)
    return _Run(environment, agent, opening, [opening])


def _sequence(seed: int, index: int, purpose: int, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(index, purpose, *key))


def _seed(seed: int, index: int, purpose: int, *key: int) -> int:
    return int(_sequence(seed, index, purpose, *key).generate_state(1, np.uint64)[0])


def _rng(seed: int, index: int, purpose: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(_sequence(seed, index, purpose, *key))
