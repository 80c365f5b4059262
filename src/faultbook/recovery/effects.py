"""What an action does to runs: rescue and harm by condition and delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._frames import BY, CELL, as_pairs, check_columns, in_order, shown
from faultbook.recovery._tasks import Sampling, Tasks, paired_difference
from faultbook.stats.bounds import rescue_harm_bounds, rescue_harm_counts
from faultbook.tables import OUTCOMES

EFFECT_COLUMNS = [
    *("n_tasks", "n_pairs", "rescues", "harms", "stable_successes", "stable_failures"),
    *("success_without", "success_with", "effect_pp", "low", "high"),
    *("mcnemar_exact", "sign_flip_p", "test", "rescue_rate", "harm_rate", "harm_upper"),
    *("n_ended_before", "effect_of_reached_pp"),
]
COHORTS = ("factual success only", "with failures")
NO_POINT_ESTIMATE = (
    "no point estimate exists: the two success rates fix the effect (rescue − harm), not rescue and harm; "
    "only paired branches show them"
)
FIXED_BY_MARGINS = "with one of the two success rates at 0 or 1 nothing is left open"

_COUNTS = ("n_tasks", "n_pairs", "rescues", "harms", "stable_successes", "stable_failures")


def effects(
    pairs: pd.DataFrame,
    by: str | Sequence[str] = CELL,
    *,
    pooled: str | Sequence[str] = (),
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Measure what an action does in each cell of pairs.

    Parameters
    ----------
    pairs : DataFrame
        Table `Pairs`; task_id, condition, delay, action, success_without and success_with suffice.
    by : str or sequence of str
        Columns that make a cell: among condition, delay, action, replicate, cohort, source, factual_success and
        ended_before.
    pooled : str or sequence of str
        Which of condition, delay and action are pooled on purpose. Without it, a cell that would hold several of them
        is an error: effects of different delays and conditions do not belong into one number by accident.
    level : float
        Confidence level, of the interval and of `harm_upper`.
    n_resamples, seed : int
        Of the percentile bootstrap, which resamples tasks.

    Returns
    -------
    DataFrame
        One row a cell, in the order of `by`: these columns, then

        n_tasks, n_pairs : int
            A task has several pairs if there are replicates, or if something is pooled.
        rescues, harms, stable_successes, stable_failures : int
            Numbers of pairs.
        success_without, success_with, rescue_rate, harm_rate : float
            Rates in [0, 1]: means over tasks of the task's own mean.
        effect_pp, low, high : float
            The mean of τ, likewise over task means, and its percentile interval, all in percentage points; effect_pp
            is 100 (success_with − success_without) = 100 (rescue_rate − harm_rate). Bounds are missing where no
            resample can differ: that is not certainty, see `harm_upper`.
        mcnemar_exact : float
            Two-sided p, missing if there is no discordant pair or some task has several pairs.
        sign_flip_p : float
            Two-sided p over task means, exact where that is within reach, missing unless some task has several pairs.
        test : str
            Which of the two there is: "exact McNemar" or "sign flip over tasks"; "no discordant pairs" or "no task
            with a net effect" where there is none.
        harm_upper : float
            Exact one-sided upper bound (Clopper–Pearson) of the harm rate, from the number of tasks with any harm.
        n_ended_before : int
            Pairs whose run had ended before the fork: they stay in, with τ = 0. Missing unless it is known of each.
        effect_of_reached_pp : float
            The effect among the other pairs; missing likewise, or if there is none.

    Raises
    ------
    FaultbookError
        If the table cannot be used, `by` or `pooled` names another column, or a cell would be pooled silently.

    References
    ----------
    arXiv 2610.00372: τ = R − H; inference as in the authors' core.py (mean effect per task, tasks resampled, linearly
    interpolated percentiles), with estimate and interval of one estimand. Exact bound: Clopper & Pearson (1934).
    """
    columns, pooled = _listed(by), _listed(pooled)
    check_columns(columns, BY, "by names")
    check_columns(pooled, CELL, "pooled names")
    frame, sampling = as_pairs(pairs), Sampling(level, n_resamples, seed)
    rows = []
    for key, cell in _cells(frame, columns):
        for name in CELL:
            if name not in columns and name not in pooled and cell[name].nunique() > 1:
                raise FaultbookError(
                    f"this would pool several values of {name} ({shown(cell[name])}); add '{name}' to by, "
                    f"select one of them, or ask for it with pooled=('{name}',)"
                )
        rows.append(key | _effect(cell, sampling))
    table = pd.DataFrame(rows, columns=[*columns, *EFFECT_COLUMNS])
    types = {name: str(frame[name].dtype) for name in columns} | dict.fromkeys(_COUNTS, "int64")
    types |= {"test": "string[pyarrow]", "n_ended_before": "Int64"}
    return table.astype({name: types.get(name, "float64") for name in table.columns})


def by_cohort(pairs: pd.DataFrame, by: str | Sequence[str] = CELL, **settings: Any) -> pd.DataFrame:
    """Measure effects on tasks whose undisturbed run succeeded, and on all tasks, side by side.

    A cohort of successes alone cannot show that failing runs are rescued.

    Parameters
    ----------
    pairs : DataFrame
        Table `Pairs` with factual_success.
    by : str or sequence of str
        As in `effects`.
    **settings
        Passed on to `effects`: pooled, level, n_resamples, seed.

    Returns
    -------
    DataFrame
        As from `effects`, after `by` a column `tasks` ("factual success only" or "with failures"), and the two rows of
        a cell one below the other; `n_unknown` counts the tasks of which factual_success is not known. These are in
        the second row of a cell only.

    Raises
    ------
    FaultbookError
        If factual_success is known of no pair, or as `effects`.

    References
    ----------
    arXiv 2610.00372: the primary cohort has 106 tasks, 93 of them with factual success.
    """
    columns, frame = _listed(by), as_pairs(pairs)
    if "factual_success" in columns:
        raise FaultbookError("by names 'factual_success', which is what the cohorts differ in; leave it out")
    if frame["factual_success"].isna().all():
        raise FaultbookError("no pair says whether the undisturbed run of its task succeeded; give factual_success")
    unknown = frame.assign(task_id=frame["task_id"].where(frame["factual_success"].isna()))
    n_unknown = {tuple(key.values()): cell["task_id"].nunique() for key, cell in _cells(unknown, columns)}
    parts = []
    for name, part in zip(COHORTS, (frame[frame["factual_success"].fillna(False)], frame), strict=True):
        table = effects(part, columns, **settings)
        keys = table[columns].itertuples(index=False, name=None)
        counts = [n_unknown[key] for key in keys] if name == COHORTS[1] else 0
        table.insert(len(columns), "tasks", pd.Series(name, index=table.index, dtype="string[pyarrow]"))
        parts.append(table.assign(n_unknown=pd.Series(counts, index=table.index, dtype="int64")))
    return in_order(pd.concat(parts, ignore_index=True), [*columns, "tasks"])


def bounds(success_without: float, success_with: float, n: int | None = None) -> pd.DataFrame:
    """Bound rescue and harm where only two success rates are known: ordinary A/B logs, without pairs.

    Parameters
    ----------
    success_without, success_with : float
        Success rates in [0, 1] without and with the action, over the same population; with `n` numbers of successes.
    n : int, optional
        Number of tasks, the same on both sides.

    Returns
    -------
    DataFrame
        One row: rescue_low, rescue_high, harm_low, harm_high, effect (rates, or numbers of tasks with `n`), n and note,
        which says that there is no point estimate. Both ends of a range can be attained, but rescue − harm is always
        the effect.

    Raises
    ------
    FaultbookError
        If a rate is not in [0, 1], or a number is not whole or above `n`.

    References
    ----------
    Fréchet (1951): max(0, p0 − p1) ≤ harm ≤ min(p0, 1 − p1); see `faultbook.stats.bounds`.
    """
    try:
        if n is None:
            found = rescue_harm_bounds(success_without, success_with)
        else:
            found = rescue_harm_counts(success_without, success_with, n)  # type: ignore[arg-type]  # checked there
    except ValueError as error:
        raise FaultbookError(str(error)) from None
    fixed = found["rescue_low"].iloc[0] == found["rescue_high"].iloc[0]
    note = FIXED_BY_MARGINS if fixed else NO_POINT_ESTIMATE
    return found.assign(n=pd.Series([pd.NA if n is None else int(n)], dtype="Int64"), note=note)


def _listed(names: str | Sequence[str]) -> list[str]:
    return list(dict.fromkeys([names] if isinstance(names, str) else names))


def _cells(frame: pd.DataFrame, columns: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Each cell with its values, in the domain's order."""
    ordered = in_order(frame, columns)
    groups = ordered.groupby(columns, dropna=False, sort=False) if columns and len(ordered) else [((), ordered)]
    for _, cell in groups:
        if len(cell):
            yield {name: cell[name].iloc[0] for name in columns}, cell


def _effect(cell: pd.DataFrame, sampling: Sampling) -> dict[str, Any]:
    tasks = Tasks(cell["task_id"])
    without, with_ = cell["success_without"].to_numpy(dtype=bool), cell["success_with"].to_numpy(dtype=bool)
    of = {name: (cell["outcome"] == name).to_numpy(dtype=bool) for name in OUTCOMES}
    counts = [int(of[name].sum()) for name in OUTCOMES]
    ended = cell["ended_before"]
    known = bool(ended.notna().all())
    reached = ~ended.to_numpy(dtype=bool) if known else np.zeros(len(cell), dtype=bool)
    row = asdict(paired_difference(without, with_, tasks, sampling))
    row |= dict(zip(("rescues", "harms", "stable_successes", "stable_failures"), counts, strict=True))
    row |= {"success_without": tasks.mean(without), "success_with": tasks.mean(with_)}
    row |= {"rescue_rate": tasks.mean(of["rescue"]), "harm_rate": tasks.mean(of["harm"])}
    row |= {"harm_upper": tasks.upper_bound(of["harm"], sampling.level)}
    among = Tasks(cell["task_id"][reached]).mean(cell["tau"][reached])
    return row | {"n_ended_before": int((~reached).sum()) if known else pd.NA, "effect_of_reached_pp": 100 * among}
