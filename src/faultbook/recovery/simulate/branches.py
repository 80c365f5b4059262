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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.conditions import ABLATED_REFRESH, HIDDEN_TEXT, NONE, REFRESH, REPLAN
from faultbook.recovery.simulate.course import OF_BRANCH, Run, Settled, settle, start, stream_seed
from faultbook.recovery.simulate.features import FEATURES, features
from faultbook.recovery.simulate.protocol import Engine
from faultbook.tables import ACTIONS, CONDITIONS, Episodes

DELAYS = (0, 1, 2, 4)
REPLICATES = 2  # of "none"
COLUMNS = (*Episodes.to_schema().columns, *FEATURES)

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


@dataclass(frozen=True, slots=True)
class _Plan:
    """A task whose branches are run."""

    engine: Engine
    seed: int
    settled: Settled

    def start(self) -> Run:
        return start(self.engine, self.settled.task, self.settled.index, self.seed)


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
    found = settle(engine, index, seed)
    plan = _Plan(engine, seed, found)
    rows = [row for condition in CONDITIONS for row in _of_condition(plan, condition)] if found.feasible else []
    actions = found.factual_actions
    return TaskEpisodes(
        found.task.task_id, found.feasible, found.factual_success, actions, found.fork, found.limit, rows
    )


def _of_condition(plan: _Plan, condition: str) -> Iterator[Row]:
    """Run up to the last fork, and branch at each on the way."""
    trunk = plan.start()
    while trunk.n_actions < plan.settled.fork - 1:
        trunk.step(trunk.agent.act())
    trunk.step(trunk.agent.act(), condition=condition)
    for delay in DELAYS:
        while trunk.n_actions < plan.settled.fork + delay and not trunk.over(plan.settled.limit):
            trunk.step(trunk.agent.act())
        yield from _of_fork(plan, trunk, condition, delay)
    trunk.environment.close()


def _of_fork(plan: _Plan, trunk: Run, condition: str, delay: int) -> Iterator[Row]:
    ended = trunk.over(plan.settled.limit)
    state = trunk.environment.state_hash()
    known = features(trunk.opening, trunk.turns, plan.engine.vocabulary(plan.settled.task))
    key = (CONDITIONS.index(condition), delay)
    for number, (action, replicate) in enumerate(_branches()):
        won, n_actions = trunk.won, trunk.n_actions
        if not ended:
            itself = action == NONE and replicate == 0
            seed = None if itself else stream_seed(plan.seed, plan.settled.index, OF_BRANCH, *key, number)
            won, n_actions = _end_of_branch(plan, trunk, state, action, seed)
        yield {
            "task_id": plan.settled.task.task_id,
            "condition": condition,
            "delay": delay,
            "action": action,
            "replicate": replicate,
            "success": won,
            "cohort": None,
            "source": plan.engine.source,
            "factual_success": plan.settled.factual_success,
            "ended_before": ended,
            "prefix_hash": state,
            "n_actions": n_actions,
            **known,
        }


def _branches() -> Iterator[tuple[str, int]]:
    for action in ACTIONS:
        yield from ((action, replicate) for replicate in range(REPLICATES if action == NONE else 1))


def _end_of_branch(plan: _Plan, trunk: Run, state: str, action: str, seed: int | None) -> tuple[bool, int]:
    """Fork, act, and play to the end: whether it was won, and after how many actions."""
    branch = trunk.branch(seed)
    found = branch.environment.state_hash()
    if found != state:
        starts = f"a branch after {trunk.n_actions} actions starts in state {found}, the run it leaves is in {state}"
        raise FaultbookError(
            f"task {plan.settled.task.task_id}: {starts}; the engine '{plan.engine.name}' does not branch exactly, so "
            "nothing is recorded"
        )
    if action in (REFRESH, ABLATED_REFRESH):
        branch.step(plan.engine.query, show=HIDDEN_TEXT if action == ABLATED_REFRESH else None)
    elif action == REPLAN:
        branch.agent.replan()
    branch.play(plan.settled.limit)
    branch.environment.close()
    return branch.won, branch.n_actions
