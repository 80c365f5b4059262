"""Record a run of two or more policies on the same tasks, trial by trial, as a harness would: timed, and cut short.

An arm is the scripted agent with one action at the fork, under one condition and delay (`branches` says what these
are): "scripted" takes none, "scripted+refresh" takes a refresh, and so on. A trial is an arm's attempt at a task. The
plan is written down before the first trial. Tasks come one after the other and all arms take each; which arm comes
first changes from task to task, for what one arm loads, the next one finds loaded.

Seconds of a trial, by the monotonic clock
    setup : the engine loads the task and shows its opening. agent : steps, its own and the engine's. verifier : a
    second world of the same task is brought through the same commands and asked whether the goal is reached. total :
    from the start of the setup to the close of the worlds; what the three leave of it is not explained.

The run can be stopped on purpose, as if it were cut off: in the middle of a trial, which stays unfinished, while later
ones are never started. A trial stands in the table from the moment it starts, and each new table takes the place of
the old one whole, so a run that is interrupted or killed leaves the same.

No language model is called, so there are no requests and no tokens. Apart from times, the same settings give the same
table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.atomic import write_whole
from faultbook.errors import DataError, FaultbookError, one_of
from faultbook.recovery.simulate.conditions import ABLATED_REFRESH, HIDDEN_TEXT, NONE, REFRESH, REPLAN
from faultbook.recovery.simulate.course import Run, Settled, settle, start
from faultbook.recovery.simulate.engines import engine_named
from faultbook.recovery.simulate.protocol import Engine
from faultbook.revision import running_revision
from faultbook.tables import ACTIONS, CONDITIONS
from faultbook.taxonomy import cause

PLAN_COLUMNS = ["arm", "task_id", "attempt"]
COLUMNS = [
    *(*PLAN_COLUMNS, "state", "resolved", "reward_valid", "cause", "cause_source"),
    *("total_seconds", "setup_seconds", "agent_seconds", "verifier_seconds", "usage_status", "started_at"),
    *("source_format", "source_version", "note"),
]
_AGENT = "scripted"
_MOST_TRIED = 10  # tasks tried for each one asked for, before the engine is blamed
_DIGITS = 6  # of seconds

Progress = Callable[[int, int], None]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded.

    Attributes
    ----------
    trials, plan : path
        CSV files: columns `COLUMNS` of the table `Trials`, and arm, task_id, attempt.
    n_planned, n_finished, n_unfinished : int
        Trials.
    """

    trials: Path
    plan: Path
    n_planned: int
    n_finished: int
    n_unfinished: int


class _Stop(Exception):  # noqa: N818  # it is none of an error
    """The run is stopped on purpose."""


def record_trials(
    engine: str | Engine,
    tasks: int,
    seed: int,
    out: str | Path,
    *,
    condition: str = "stale2",
    delay: int = 0,
    actions: Sequence[str] = (NONE, REFRESH),
    noise: float = 0.0,
    stop_after: int | None = None,
    stop_after_seconds: float | None = None,
    progress: Progress | None = None,
    clock: Clock = time.monotonic,
) -> Recording:
    """Run each arm once on each task, and write down the plan and the trials.

    Parameters
    ----------
    engine : str or Engine
        "alfworld", "textworld", or an engine of one's own (then `noise` is the engine's own affair).
    tasks : int
        Tasks wanted, at least 1: the first ones, in the order of their numbers, that go on long enough to be forked.
    seed : int
        Source of all randomness, at least 0.
    out : path
        The folder to write into; the names of the files say that the agent is scripted, and whether the run is to be
        interrupted.
    condition, delay : str, int
        What the agent is shown at the fork, and after how many actions more the arms differ.
    actions : sequence of str
        One arm for each of these `faultbook.tables.ACTIONS`.
    noise : float
        How often the agent does something else than it would, in [0, 1).
    stop_after : int, optional
        Stop after so many trials, at the fork of the next one.
    stop_after_seconds : float, optional
        Stop once so many seconds have passed since the first trial began, wherever that is.
    progress : callable, optional
        Called with the number of trials finished and planned, whenever one is.
    clock : callable
        Seconds of a clock that never goes back.

    Returns
    -------
    Recording

    Raises
    ------
    FaultbookError
        If a parameter is out of its range, the engine is not installed, too few tasks reach the fork, or a verifier's
        world does not end where the agent's did.
    DataError
        If the files are there already, or cannot be written.
    """
    chosen = engine_named(engine, noise) if isinstance(engine, str) else engine
    _check({"tasks": (tasks, 1), "seed": (seed, 0), "stop_after": (stop_after, 0), "delay": (delay, 0)})
    _check({"stop_after_seconds": (stop_after_seconds, 0)})
    _check_names(condition, actions)
    if stop_after is not None and stop_after >= tasks * len(actions):
        raise FaultbookError(f"stop_after is {stop_after} of {tasks * len(actions)} trials; give less")
    chosen.check()
    name = f"{chosen.name}-{_AGENT}" + ("-interrupted" if (stop_after, stop_after_seconds) != (None, None) else "")
    files = Path(out) / f"{name}.csv", Path(out) / f"{name}-plan.csv"
    for file in files:
        if file.exists():
            raise DataError("is there already", file=file, mend="choose another folder, or remove what is there")
    settled = list(_settle(chosen, tasks, seed))
    run = _Recorder(chosen, seed, condition, delay, clock, stop_after, stop_after_seconds)
    order = [(place, action) for place in range(tasks) for action in _turned(actions, place)]
    cells = [(_arm(action), settled[place].task.task_id, 1) for place, action in order]
    _write(pd.DataFrame(cells, columns=PLAN_COLUMNS), files[1])
    for rows in run.trials([(settled[place], action) for place, action in order]):
        _write(pd.DataFrame(rows, columns=COLUMNS), files[0])
        n_finished = sum(row["state"] == "finished" for row in rows)
        if progress is not None and n_finished == len(rows):
            progress(n_finished, len(cells))
    return Recording(*files, len(cells), n_finished, len(rows) - n_finished)


def _check(numbers: dict[str, tuple[float | None, int]]) -> None:
    for name, (number, least) in numbers.items():
        if number is not None and not number >= least:
            raise FaultbookError(f"{name} is {number}; give at least {least}")


def _check_names(condition: str, actions: Sequence[str]) -> None:
    if condition not in CONDITIONS:
        raise FaultbookError(one_of("condition", condition, CONDITIONS))
    for action in actions:
        if action not in ACTIONS:
            raise FaultbookError(one_of("arms", action, ACTIONS))
    if len(actions) < 2 or len(set(actions)) != len(actions):
        raise FaultbookError(f"arms are '{', '.join(actions)}'; name at least two actions, each once")


def _arm(action: str) -> str:
    return _AGENT if action == NONE else f"{_AGENT}+{action}"


def _turned(actions: Sequence[str], place: int) -> list[str]:
    """The arms in the order in which they take a task: none of them is always the one that finds things loaded."""
    first = place % len(actions)
    return [*actions[first:], *actions[:first]]


def _settle(engine: Engine, wanted: int, seed: int) -> Iterator[Settled]:
    """The first tasks whose undisturbed run goes on beyond its fork; fork and limit as for paired branches."""
    found = 0
    for index in range(_MOST_TRIED * wanted):
        settled = settle(engine, index, seed)
        if settled.feasible:
            found += 1
            yield settled
        if found == wanted:
            return
    tried = f"only {found} of {_MOST_TRIED * wanted} tasks of the engine '{engine.name}'"
    raise FaultbookError(f"{tried} go on long enough to be forked; choose another seed or engine")


@dataclass(slots=True)
class _Recorder:
    """Runs trials in order, and stops where it is told to."""

    engine: Engine
    seed: int
    condition: str
    delay: int
    clock: Clock
    stop_after: int | None
    stop_after_seconds: float | None
    began: float = 0.0
    n_finished: int = 0

    def trials(self, order: Sequence[tuple[Settled, str]]) -> Iterator[list[dict[str, Any]]]:
        """The rows so far, whenever a trial starts or ends."""
        rows: list[dict[str, Any]] = []
        version = running_revision().text
        self.began = self.clock()
        for settled, action in order:
            row = {"arm": _arm(action), "task_id": settled.task.task_id, "attempt": 1, "state": "unfinished"}
            row |= {"usage_status": "absent", "source_format": "csv", "source_version": version}
            row |= {"started_at": datetime.now(UTC).isoformat(timespec="milliseconds")}
            row |= {"note": self._note(settled, action)}
            rows.append(row)
            yield rows
            try:
                row |= self.trial(settled, action)
            except _Stop:
                return
            self.n_finished += 1
            yield rows

    def trial(self, settled: Settled, action: str) -> dict[str, Any]:
        """One trial: what came of it, and its seconds."""
        began = self.clock()
        run = start(self.engine, settled.task, settled.index, self.seed)
        ready = self.clock()
        try:
            self._play(run, settled, action)
            played = self.clock()
            resolved = self._verified(run, settled)
            verified = self.clock()
        finally:
            run.environment.close()
        end = self.clock()
        found = cause("completed" if resolved else "agent_budget_exhausted")  # nothing else ends a run of this agent
        spans = {"total": end - began, "setup": ready - began, "agent": played - ready, "verifier": verified - played}
        row = {"state": "finished", "resolved": resolved, "reward_valid": found.verdict_stands}
        row |= {"cause": found.name, "cause_source": "observed"}
        return row | {f"{name}_seconds": round(seconds, _DIGITS) for name, seconds in spans.items()}

    def _note(self, settled: Settled, action: str) -> str:
        when = "at once" if self.delay == 0 else f"{self.delay} action{'s' if self.delay > 1 else ''} later"
        what = "no recovery" if action == NONE else f"{action} {when}"
        return f"{self.engine.source}, no language model; {self.condition} at action {settled.fork}, {what}"

    def _play(self, run: Run, settled: Settled, action: str) -> None:
        while not run.over(settled.limit):
            disturbed = run.n_actions == settled.fork - 1
            run.step(run.agent.act(), condition=self.condition if disturbed else "clean")
            if run.n_actions == settled.fork and self.n_finished == self.stop_after:
                raise _Stop
            if self.stop_after_seconds is not None and self.clock() - self.began >= self.stop_after_seconds:
                raise _Stop
            if run.n_actions == settled.fork + self.delay and not run.over(settled.limit):
                self._act(run, action)

    def _act(self, run: Run, action: str) -> None:
        """What the arm does, once, where paired branches would leave one another."""
        if action in (REFRESH, ABLATED_REFRESH):
            run.step(self.engine.query, show=HIDDEN_TEXT if action == ABLATED_REFRESH else None)
        elif action == REPLAN:
            run.agent.replan()

    def _verified(self, run: Run, settled: Settled) -> bool:
        """Whether the commands of a run reach the goal in a world that the agent never touched."""
        world, reached = self.engine.environment(settled.task), False
        world.reset()
        for turn in run.turns:
            _, reached = world.step(turn.command)
        same = world.state_hash() == run.environment.state_hash()
        world.close()
        if reached != run.won or not same:
            found = f"task {settled.task.task_id}: the same commands lead to two ends"
            raise FaultbookError(
                f"{found}; the engine '{self.engine.name}' does not repeat exactly, so this stops here"
            )
        return reached


def _write(frame: pd.DataFrame, file: Path) -> None:
    """Put a whole table in a file's place."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, frame.to_csv(index=False, lineterminator="\n").encode(), mode=0o644)
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror})", file=file) from None
