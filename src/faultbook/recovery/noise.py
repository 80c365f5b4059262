"""The A/A control: how often a run without any action ends otherwise when it is repeated, and what that makes of τ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._frames import KEY, as_episodes, in_order
from faultbook.recovery._tasks import Sampling, Tasks
from faultbook.stats.proportion import clopper_pearson, zero_event_upper_bound

FLIP_COLUMNS = [
    *("condition", "delay", "n_tasks", "n", "flips", "to_success", "to_failure", "rate", "low", "high"),
    *("to_success_rate", "to_success_upper", "to_failure_rate", "to_failure_upper", "method"),
]
NOISE_COLUMNS = [
    *("expected_rescues", "expected_rescues_upper", "expected_harms", "expected_harms_upper"),
    *("flips", "n_control", "basis"),
]
NO_CONTROL = "no A/A control of this cell"
EVERY_DELAY = "A/A control of the condition, for every delay"
THIS_CELL = "A/A control of this cell"

_RUN = ["task_id", "condition", "delay"]


def flip_rate(
    episodes: pd.DataFrame,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Measure how often branches without an action end otherwise when they are repeated from the same fork.

    Parameters
    ----------
    episodes : DataFrame
        Table `Episodes`. Each further replicate of a 'none' branch is compared with the first (the lowest number).
    level : float
        Confidence level.
    n_resamples, seed
        Of the bootstrap over tasks that is used where a task has several further replicates.

    Returns
    -------
    DataFrame
        One row a condition and delay that has such replicates (a missing delay: branches that serve every delay):

        n_tasks, n : int
            Tasks, and comparisons.
        flips, to_success, to_failure : int
            Comparisons in which the outcome differs, and in which direction: to_success failed first.
        rate, low, high : float
            Share of flips (mean of task means) and its two-sided interval: Clopper–Pearson where each task has one
            comparison, else a percentile bootstrap over tasks, and the exact bound where there is no flip at all.
        to_success_rate, to_failure_rate : float
            Its two parts.
        to_success_upper, to_failure_upper : float
            Exact one-sided upper bounds, from the number of tasks with such a flip.
        method : str
            How low and high were made.

        No row at all means that there is no control, not that there is no noise.

    Raises
    ------
    FaultbookError
        If the table cannot be used.

    Notes
    -----
    Decoding at temperature 0 is not deterministic where requests are batched (vLLM issues 5898, 23138): the rate has to
    be measured. The directions are kept apart because they differ where tasks were chosen for a first run that
    succeeded: there only flips to failure can be seen.
    """
    sampling = Sampling(level, n_resamples, seed)
    rows = [_flips(condition, delay, part, sampling) for condition, delay, part in _controls(as_episodes(episodes))]
    frame = pd.DataFrame(rows, columns=FLIP_COLUMNS)
    types = dict.fromkeys(("condition", "method"), "string[pyarrow]") | {"delay": "Int64"}
    types |= dict.fromkeys(("n_tasks", "n", "flips", "to_success", "to_failure"), "int64")
    return frame.astype({name: types.get(name, "float64") for name in FLIP_COLUMNS})


def expected_noise(effects: pd.DataFrame, flips: pd.DataFrame) -> pd.DataFrame:
    """Say how many rescues and harms of each cell chance flips alone would give.

    Parameters
    ----------
    effects : DataFrame
        From `faultbook.recovery.effects`, by condition and delay at least.
    flips : DataFrame
        From `flip_rate`.

    Returns
    -------
    DataFrame
        The columns of the cell (what stands before n_tasks), n_pairs, rescues and harms of `effects`, then

        expected_rescues, expected_harms : float
            n_pairs times the rate of flips to success, and to failure.
        expected_rescues_upper, expected_harms_upper : float
            n_pairs times their exact upper bounds; with no flip seen, this is what cannot be excluded.
        flips, n_control : int
            Flips and comparisons of the control.
        basis : str
            Which control it is; where there is none, the numbers are missing.

    Raises
    ------
    FaultbookError
        If `effects` is not by condition and delay, or one of the tables lacks a column.
    """
    wanted = ["condition", "delay", "n_tasks", "n_pairs", "rescues", "harms"]
    for name, table, needed in (("effects", effects, wanted), ("flips", flips, FLIP_COLUMNS)):
        missing = [column for column in needed if column not in table]
        if missing:
            raise FaultbookError(f"{name}: columns missing: {', '.join(missing)}; noise differs by condition and delay")
    columns = list(effects.columns[: list(effects.columns).index("n_tasks")])
    control = {(row["condition"], _known(row["delay"])): row for row in flips.to_dict("records")}
    rows = [_noise(row, control) for row in effects.to_dict("records")]
    noise = pd.DataFrame(rows, columns=NOISE_COLUMNS, index=effects.index)
    types = {"flips": "Int64", "n_control": "Int64", "basis": "string[pyarrow]"}
    noise = noise.astype({name: types.get(name, "float64") for name in NOISE_COLUMNS})
    return pd.concat([effects[[*columns, "n_pairs", "rescues", "harms"]], noise], axis=1)


def _controls(episodes: pd.DataFrame) -> Iterator[tuple[Any, Any, pd.DataFrame]]:
    """Comparisons of each condition and delay: task_id, whether it succeeded first, and whether again."""
    none = in_order(episodes[(episodes["action"] == "none").fillna(False)].drop_duplicates(KEY), ["condition", *KEY])
    run = none.groupby(_RUN, dropna=False, sort=False)
    first = run["success"].transform("first")
    again = none.assign(first=first)[run.cumcount() > 0]
    for (condition, delay), part in again.groupby(["condition", "delay"], dropna=False, sort=False):
        yield condition, delay, part


def _flips(condition: Any, delay: Any, part: pd.DataFrame, sampling: Sampling) -> dict[str, Any]:
    tasks = Tasks(part["task_id"])
    first, again = part["first"].to_numpy(dtype=bool), part["success"].to_numpy(dtype=bool)
    flipped = first != again
    row = {"condition": condition, "delay": delay, "n_tasks": tasks.n, "n": len(part), "flips": int(flipped.sum())}
    row |= dict(zip(("rate", "low", "high", "method"), _rate(flipped, tasks, sampling), strict=True))
    for name, events in (("to_success", ~first & again), ("to_failure", first & ~again)):
        row |= {name: int(events.sum()), f"{name}_rate": tasks.mean(events)}
        row |= {f"{name}_upper": tasks.upper_bound(events, sampling.level)}
    return row


def _rate(flipped: Any, tasks: Tasks, sampling: Sampling) -> tuple[float, float, float, str]:
    if not tasks.several:
        found = clopper_pearson(int(flipped.sum()), len(flipped), sampling.level)
        return found.estimate, found.low, found.high, found.method
    if not flipped.any():
        upper = zero_event_upper_bound(tasks.n, sampling.level, sides=2)
        return 0.0, 0.0, upper, f"Clopper-Pearson exact, no flip in {tasks.n} tasks"
    estimate = sampling.mean(flipped, tasks.codes)
    return estimate.estimate, estimate.low, estimate.high, estimate.method


def _noise(row: dict[Any, Any], control: dict[tuple[Any, Any], dict[Any, Any]]) -> dict[str, Any]:
    for delay, basis in ((_known(row["delay"]), THIS_CELL), (None, EVERY_DELAY)):
        found = control.get((row["condition"], delay))
        if found is not None:
            parts = {"expected_rescues": "to_success_rate", "expected_rescues_upper": "to_success_upper"}
            parts |= {"expected_harms": "to_failure_rate", "expected_harms_upper": "to_failure_upper"}
            noise = {name: row["n_pairs"] * found[rate] for name, rate in parts.items()}
            return noise | {"flips": found["flips"], "n_control": found["n"], "basis": basis}
    return {"basis": NO_CONTROL}


def _known(delay: Any) -> int | None:
    return None if pd.isna(delay) else int(delay)
