"""Simulate many tasks and write their episodes to one file: in parallel, resumable, the same whatever the jobs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed

from faultbook.errors import FaultbookError
from faultbook.recovery.simulate.branches import DELAYS, run_task
from faultbook.recovery.simulate.course import FORK_SHARE
from faultbook.recovery.simulate.engines import engine_named
from faultbook.recovery.simulate.parts import Parts
from faultbook.recovery.simulate.protocol import Engine

FIT, EVALUATION = "fit", "evaluation"
RULES = 1  # goes up when the same settings give other episodes: a run does not resume what an older version began
_MOST_TRIED = 10  # tasks tried for each one asked for, before the engine is blamed
_LOOK = 0.5  # seconds between two looks of a worker at whether its owner is there

Progress = Callable[[int, int], None]
OnTask = Callable[[int, bool], None]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulation wrote.

    Attributes
    ----------
    out : path
        The parquet file: the columns of `faultbook.tables.Episodes`, then the features.
    n_tasks : int
        Prefix-feasible tasks in it.
    n_infeasible : int or None
        Tasks that were tried on the way and are not prefix-feasible; not in the file. None if the file was there
        already.
    n_factual_successes : int or None
        Tasks in it whose undisturbed run succeeded; None likewise.
    """

    out: Path
    n_tasks: int
    n_infeasible: int | None
    n_factual_successes: int | None


def simulate(
    engine: str | Engine,
    tasks: int,
    seed: int,
    out: str | Path,
    *,
    n_fit: int | None = None,
    noise: float = 0.0,
    jobs: int = 1,
    progress: Progress | None = None,
    on_task: OnTask | None = None,
) -> Simulation:
    """Run tasks on an engine and write the episodes of all their branches.

    Tasks are tried in the order of their numbers until enough are prefix-feasible, so which tasks are in the file does
    not depend on `jobs`, nor on how often the run was interrupted. Run again with the same settings, it goes on where
    it was stopped.

    Parameters
    ----------
    engine : str or Engine
        "alfworld", "textworld", or an engine of one's own (then `noise` is the engine's own affair).
    tasks : int
        Prefix-feasible tasks wanted, at least 1.
    seed : int
        Source of all randomness, at least 0: tasks, agents, slack, noise.
    out : path
        The parquet file to write. `<out>.parts/` beside it holds finished tasks meanwhile.
    n_fit : int, optional
        How many of the tasks, the first ones, get the cohort "fit"; the others get "evaluation". By default 93 in 168,
        as in the paper, rounded.
    noise : float
        How often the agent does something else than it would, in [0, 1).
    jobs : int
        Processes to use, at least 1. A process holds one task at a time.
    progress : callable, optional
        Called with the number of feasible tasks done and the number wanted, whenever one is done.
    on_task : callable, optional
        Called with a task's number, and whether it is prefix-feasible, whenever one has been run, in this process.

    Returns
    -------
    Simulation

    Raises
    ------
    FaultbookError
        If a number is out of its range, the engine is not installed or does not branch exactly, the output or its
        parts come from other settings, or too few tasks are prefix-feasible.
    """
    chosen = engine_named(engine, noise) if isinstance(engine, str) else engine
    n_fit = round(tasks * 93 / 168) if n_fit is None else n_fit
    _check({"tasks": (tasks, 1), "seed": (seed, 0), "jobs": (jobs, 1), "n_fit": (n_fit, 0)})
    if n_fit > tasks:
        raise FaultbookError(f"n_fit is {n_fit} of {tasks} tasks; give at most {tasks}")
    chosen.check()
    protocol = {"rules": RULES, "fork_share": FORK_SHARE, "delays": list(DELAYS)}
    parts = Parts(Path(out), {**chosen.settings(), **protocol, "tasks": tasks, "n_fit": n_fit, "seed": seed})
    if parts.is_complete():
        parts.remove()
        return Simulation(parts.out, tasks, None, None)
    with parts.held():
        tried = _run_all(chosen, parts, tasks, seed, jobs, progress, on_task)
        feasible = [index for index, is_feasible in tried.items() if is_feasible][:tasks]
        parts.join(feasible, [FIT if place < n_fit else EVALUATION for place in range(tasks)])
        factual = sum(parts.load(index).factual_success for index in feasible)
        result = Simulation(parts.out, tasks, feasible[-1] + 1 - tasks, factual)
    parts.remove()
    return result


def _check(numbers: dict[str, tuple[int, int]]) -> None:
    for name, (number, least) in numbers.items():
        if number < least:
            raise FaultbookError(f"{name} is {number}; give at least {least}")


def _run_all(
    engine: Engine,
    parts: Parts,
    wanted: int,
    seed: int,
    jobs: int,
    progress: Progress | None,
    on_task: OnTask | None,
) -> dict[int, bool]:
    """Make sure that enough tasks have a part; whether each task tried is feasible, in the order of their numbers."""
    tried: dict[int, bool] = {}
    while (missing := wanted - sum(tried.values())) > 0:
        if len(tried) >= _MOST_TRIED * wanted:
            found = f"only {sum(tried.values())} of {len(tried)} tasks of the engine '{engine.name}'"
            raise FaultbookError(f"{found} go on long enough to be forked; choose another seed or engine")
        # As many as are missing at least: no task is run that a run with another number of jobs would not run.
        batch = range(len(tried), len(tried) + missing)
        done = {index: parts.load(index).feasible for index in batch if parts.has(index)}
        so_far = sum(tried.values()) + sum(done.values())
        if progress is not None:
            progress(so_far, wanted)
        todo = [index for index in batch if index not in done]
        for index, feasible in _run(engine, parts, todo, seed, jobs):
            done[index] = feasible
            if on_task is not None:
                on_task(index, feasible)
            so_far += feasible
            if progress is not None and feasible:
                progress(so_far, wanted)
        tried |= dict(sorted(done.items()))
    return tried


def _run(engine: Engine, parts: Parts, indices: list[int], seed: int, jobs: int) -> Iterator[tuple[int, bool]]:
    if jobs == 1 or len(indices) < 2:
        yield from (_finish(engine, parts, index, seed) for index in indices)
        return
    workers = Parallel(
        n_jobs=jobs,
        backend="loky",
        return_as="generator_unordered",
        pre_dispatch=jobs,
        batch_size=1,
        initializer=_end_with,
        initargs=(os.getpid(),),
    )
    yield from workers(delayed(_finish)(engine, parts, index, seed) for index in indices)


def _end_with(owner: int) -> None:
    """In a worker: end soon after the process that started it, which a kill keeps from ending its workers itself."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="watch of the owner", daemon=True).start()


def _finish(engine: Engine, parts: Parts, index: int, seed: int) -> tuple[int, bool]:
    """Run a task and write its part, in whatever process."""
    episodes = run_task(engine, index, seed)
    parts.save(index, episodes)
    return index, episodes.feasible
