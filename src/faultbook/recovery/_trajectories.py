"""Candidates by the run that they belong to, and probabilities beside them: checked, so that no pair goes missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import DataError
from faultbook.recovery._frames import in_order
from faultbook.recovery.estimators import KEY, TARGETS, truths
from faultbook.recovery.rule import TRAJECTORY

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PROBABILITIES = tuple(TARGETS)  # p_err, p0, p1

_MOST_NAMED = 5
_OUTCOMES = ["is_error", "success_without"]


@dataclass(frozen=True, eq=False, slots=True)
class Trajectories:
    """Runs of a task under a condition, each with its candidates; their order does not depend on that of the rows.

    `code` says to which of the n trajectories each candidate belongs, `order` sorts candidates by trajectory and delay.
    `table` has task_id, condition, replicate, is_error and success_without of each trajectory, `task` a number for its
    task.
    """

    code: Ints
    order: Ints
    table: pd.DataFrame
    task: Ints

    @property
    def n(self) -> int:
        """The number of trajectories."""
        return len(self.table)

    @property
    def n_tasks(self) -> int:
        """The number of tasks."""
        return int(self.task.max(initial=-1)) + 1

    @property
    def is_error(self) -> Mask:
        """Whether the condition of each trajectory disturbed an observation."""
        return self.table["is_error"].to_numpy(dtype=bool)

    def sums(self, values: Any) -> Floats:
        """Sums of a column of the candidates, by trajectory."""
        totals = np.bincount(self.code, weights=np.asarray(values, dtype=np.float64), minlength=self.n)
        return totals.astype(np.float64)


def trajectories_of(candidates: pd.DataFrame) -> Trajectories:
    """Check candidates, and put each to its trajectory.

    Parameters
    ----------
    candidates : DataFrame
        Table `Candidates`. A run that ended before any candidate has its rows too, with `reached` False.

    Returns
    -------
    Trajectories

    Raises
    ------
    DataError
        If a column or a value is missing, there is no row, a candidate stands twice, a trajectory lacks a delay that
        others have, its condition or its outcome without recovery changes from delay to delay, or tau is not the
        difference of the two outcomes.
    """
    lacking = [name for name in (*KEY, "reached", *_OUTCOMES, "success_with", "tau") if name not in candidates]
    if lacking:
        raise DataError(f"candidates: no column {', '.join(lacking)}", mend="make them with candidates()")
    if candidates.empty:
        raise DataError("candidates: no rows", mend="give at least one trajectory")
    for name in ("replicate", "delay", "tau"):
        if not pd.api.types.is_numeric_dtype(candidates[name].dtype):
            raise DataError(f"candidates: type '{candidates[name].dtype}'", column=name, mend="give whole numbers")
    key = candidates[KEY].reset_index(drop=True)
    _refuse(key, key.isna().any(axis=1), "candidates: the key is incomplete", "name task, condition, replicate, delay")
    _refuse(key, key.duplicated(), "candidates: a moment stands twice", "keep one of each")
    without, with_ = truths(candidates, "success_without"), truths(candidates, "success_with")
    truths(candidates, "reached")
    tau = candidates["tau"].to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = pd.Series(tau != with_.astype(int) - without)
    _refuse(key, wrong, "candidates: tau is not success_with − success_without", "make them with candidates()")
    first = in_order(key[TRAJECTORY].drop_duplicates(), TRAJECTORY)
    code = key[TRAJECTORY].merge(first.assign(code=np.arange(len(first))), on=TRAJECTORY, how="left")["code"].to_numpy()
    order = np.lexsort((key["delay"].to_numpy(), code))
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    _check_delays(key, code, first)
    for name, values in zip(_OUTCOMES, (truths(candidates, "is_error"), without), strict=True):
        first[name] = values[order][starts]
        changed = pd.Series(values != first[name].to_numpy()[code])
        problem = f"candidates: {name} is not the same at every delay of a trajectory"
        _refuse(key, changed, problem, "a run has one condition, and one outcome without recovery")
    return Trajectories(code.astype(np.int64), order, first, pd.factorize(first["task_id"], sort=True)[0])


def aligned(
    candidates: pd.DataFrame, probabilities: pd.DataFrame | None, names: Sequence[str] = PROBABILITIES
) -> pd.DataFrame:
    """The probabilities of each candidate.

    Parameters
    ----------
    candidates : DataFrame
        Table `Candidates`.
    probabilities : DataFrame
        Either with the key (task_id, condition, replicate, delay), as `Estimators.out_of_fold`, or with the index of
        `candidates`, as `Estimators.predict` gives them. Further rows and columns are left aside.
    names : sequence of str
        The columns.

    Returns
    -------
    DataFrame
        Those columns as floats, with the index of `candidates`; NaN where a run was over, or a value is missing.

    Raises
    ------
    DataError
        If there are no probabilities, a column is missing or holds no numbers, a candidate stands twice in them, or a
        candidate that was reached has no row there.
    """
    if probabilities is None:
        raise DataError(f"no probabilities, and {', '.join(names)} are asked for", mend="give them, out of fold")
    lacking = [name for name in names if name not in probabilities]
    if lacking:
        raise DataError(f"probabilities: no column {', '.join(lacking)}", mend=f"give {', '.join(names)}")
    numbers = _as_floats(probabilities, names)
    key = candidates[KEY].reset_index(drop=True)
    if set(KEY) <= set(probabilities):
        given = probabilities[KEY].reset_index(drop=True)
        _refuse(given, given.duplicated(), "probabilities: a candidate stands twice", "give one row a candidate")
        place = key.merge(given.assign(place=np.arange(len(given))), on=KEY, how="left")["place"]
        lost = place.isna() & candidates["reached"].to_numpy(dtype=bool)
        _refuse(key, lost, "probabilities: a candidate that was reached has none", "predict it, NaN where that fails")
        unknown = np.full((1, len(names)), np.nan)  # the last row: where place is −1
        numbers = np.concatenate([numbers, unknown])[place.fillna(-1).to_numpy(dtype=np.intp)]
    elif not probabilities.index.equals(candidates.index):
        raise DataError("probabilities have neither the key nor the index of the candidates", mend="give one of them")
    return pd.DataFrame(numbers, columns=list(names), index=candidates.index)


def _as_floats(frame: pd.DataFrame, names: Sequence[str]) -> Floats:
    columns = []
    for name in names:
        if not (pd.api.types.is_numeric_dtype(frame[name].dtype) or frame[name].isna().all()):
            raise DataError(f"not numbers but '{frame[name].dtype}'", column=name, mend="give probabilities in [0, 1]")
        columns.append(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))
    return np.column_stack(columns)


def _check_delays(key: pd.DataFrame, code: Ints, first: pd.DataFrame) -> None:
    """Refuse a trajectory that lacks a delay: a lost pair is not a run that had ended."""
    place, delays = pd.factorize(key["delay"], sort=True)
    present = np.zeros((len(first), len(delays)), dtype=bool)
    present[code, place] = True
    trajectory, delay = np.nonzero(~present)
    lost = first.iloc[trajectory].assign(delay=np.asarray(delays)[delay]).reset_index(drop=True)
    mend = "add them, or leave the trajectories out; of a run that had ended, give the row with reached False"
    _refuse(lost, pd.Series(True, index=lost.index), "candidates: pairs are missing", mend)


def _refuse(key: pd.DataFrame, wrong: pd.Series[Any], problem: str, mend: str) -> None:
    found = key[wrong.to_numpy(dtype=bool)]
    if found.empty:
        return
    named = [f"{row.task_id}/{row.condition}/{row.replicate} at {row.delay}" for row in found.itertuples()]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    raise DataError(f"{problem}: {', '.join(named[:_MOST_NAMED])}{more}", mend=mend)
