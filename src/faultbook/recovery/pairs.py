"""Pairs of branches that share their past: with an action, and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import DataError, short_repr
from faultbook.problems import Problems
from faultbook.recovery._frames import KEY, as_episodes, branch_name, in_order, outcomes
from faultbook.tables import Pairs, typed

Mask = npt.NDArray[np.bool_]

UNPAIRED_COLUMNS = [*KEY, "reason"]
NO_NONE = "no 'none' branch to compare with"
NO_BRANCH = "no branch with this action, which other tasks have at this condition and delay"

_SHARED = {  # what both branches of a pair have in common, since it lies before the fork
    "prefix_hash": "the state that they start from",
    "ended_before": "whether the run had ended before the fork",
    "source": "what made the run",
    "cohort": "their cohort",
    "factual_success": "the outcome of the undisturbed run",
}
_ANY_DELAY = -1  # stands for the missing delay of a 'none' branch that serves every delay


@overload
def pair(episodes: pd.DataFrame, strict: Literal[True] = True) -> pd.DataFrame: ...
@overload
def pair(episodes: pd.DataFrame, strict: Literal[False]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def pair(episodes: pd.DataFrame, strict: bool = True) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """Put each branch with an action beside the branch without, from the same fork.

    Parameters
    ----------
    episodes : DataFrame
        Table `Episodes`; task_id, condition, delay, action and success suffice.
    strict : bool
        Raise at the first pair that is refused; otherwise leave it out and list it.

    Returns
    -------
    DataFrame, or (DataFrame, DataFrame)
        Table `Pairs`, in the order of the branches with an action. A run that had ended before the fork stays in, with
        the outcome that it carries forward. `prefix_hash` is missing where it is not known of both branches: such a
        pair starts from one state by assertion only. With `strict=False` also the problems, whose `row` names the pair.

    Raises
    ------
    FaultbookError
        If the table cannot be used.
    DataError
        If strict, at the first branch that stands there twice, that has no 'none' branch to compare with, or that
        contradicts it: another prefix_hash, source, cohort or factual_success; ended before the fork on one branch
        only; or an outcome that changed although the run had ended before the fork.

    Notes
    -----
    The branch without an action has the same task, condition, delay and replicate. Where there is none, the one with a
    missing delay serves; where that replicate has none, replicate 0 does, in the same order. Tasks that lack an arm
    altogether have no row here: see `unpaired`.

    References
    ----------
    arXiv 2610.00372: τ = Y(e, d, m) − Y(e, 0); a task that ended before the delay stays in the denominator.
    """
    problems = Problems(strict)
    frame = _once(as_episodes(episodes), problems)
    with_, without, positions = matched(frame)
    for row in _rows(with_[positions < 0]):
        problems.add(DataError(NO_NONE, row=branch_name(row), column="action", mend="run it, or leave the task out"))
    found = positions >= 0
    with_, without = (part.reset_index(drop=True) for part in (with_[found], without.iloc[positions[found]]))
    refused = _refused(with_, without, problems)
    pairs = typed(_joined(with_, without)[~refused], Pairs).reset_index(drop=True)
    return pairs if strict else (pairs, problems.frame())


def unpaired(episodes: pd.DataFrame) -> pd.DataFrame:
    """List the arms that are missing: branches without anything to compare with, and tasks without an action.

    Parameters
    ----------
    episodes : DataFrame
        Table `Episodes`.

    Returns
    -------
    DataFrame
        task_id, condition, delay, action, replicate and reason, one row a gap. A task is expected to have each action
        at each delay that any task of its cohort has under the same condition; its replicate is missing here where
        the whole arm is. A task that was not run under a condition at all is not expected there.
    """
    frame = as_episodes(episodes).drop_duplicates(KEY)
    with_, _, positions = matched(frame)
    alone = with_.loc[positions < 0, KEY].assign(reason=NO_NONE)
    arm = ["task_id", "condition", "delay", "action"]
    place = frame["cohort"].fillna("")  # tasks of one cohort were to be run alike
    cells = with_[["condition", "delay", "action"]].assign(place=place[with_.index]).drop_duplicates()
    tasks = frame[["task_id", "condition"]].assign(place=place).drop_duplicates()
    expected = tasks.merge(cells, on=["condition", "place"])[arm].drop_duplicates()
    there = pd.MultiIndex.from_frame(with_[arm])
    gaps = expected[~pd.MultiIndex.from_frame(expected).isin(there)].assign(reason=NO_BRANCH)
    listed = pd.concat([alone, gaps], ignore_index=True).reindex(columns=UNPAIRED_COLUMNS)
    whole = {"delay": "Int64", "replicate": "Int64"}
    return in_order(listed.astype({**dict.fromkeys(UNPAIRED_COLUMNS, "string[pyarrow]"), **whole}), KEY)


def _once(frame: pd.DataFrame, problems: Problems) -> pd.DataFrame:
    again = frame.duplicated(KEY)
    for row in _rows(frame[again]):
        mend = "keep one of them, or number the replicates"
        problems.add(DataError("the branch stands twice", row=branch_name(row), column="replicate", mend=mend))
    return frame[~again]


def matched(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, npt.NDArray[np.intp]]:
    """Branches with an action, branches without, and the position of the latter for each of the former, or −1.

    Of a table from `as_episodes` in which each branch stands once.
    """
    run = frame.groupby(["task_id", "condition"], sort=False).ngroup()
    delay = frame["delay"].astype("Int64").fillna(_ANY_DELAY).astype("int64")
    keys = pd.DataFrame({"run": run, "delay": delay, "replicate": frame["replicate"]}, index=frame.index)
    is_none = (frame["action"] == "none").to_numpy(dtype=bool)
    there, wanted = pd.MultiIndex.from_frame(keys[is_none]), keys[~is_none]
    positions = np.full(len(wanted), -1, dtype=np.intp)
    for other in ({}, {"delay": _ANY_DELAY}, {"replicate": 0}, {"delay": _ANY_DELAY, "replicate": 0}):
        still = positions < 0
        positions[still] = there.get_indexer(pd.MultiIndex.from_frame(wanted[still].assign(**other)))
    return frame[~is_none], frame[is_none], positions


def _refused(with_: pd.DataFrame, without: pd.DataFrame, problems: Problems) -> Mask:
    """Where the two branches cannot be of one and the same past; each pair is reported once."""
    refused = np.zeros(len(with_), dtype=bool)
    for column, what in _SHARED.items():
        differ = _differ(with_, without, column) & ~refused
        for row, other in zip(_rows(with_[differ], column), _rows(without[differ], column), strict=True):
            values = f"{short_repr(row[column])} with the action, {short_repr(other[column])} without"
            mend = "fork both branches from one run"
            if pd.isna(other["delay"]):
                mend += ", and give the 'none' branch its delay"
            problem = f"the branches differ in {what}: {values}"
            problems.add(DataError(problem, row=branch_name(row), column=column, mend=mend))
        refused |= differ
    ended = _ended_before(with_, without).fillna(False).to_numpy(dtype=bool)
    changed = ended & (with_["success"] != without["success"]).to_numpy(dtype=bool) & ~refused
    for row in _rows(with_[changed]):
        problem = "the run had ended before the fork, yet its outcome differs from the one without the action"
        mend = "carry the outcome forward, or correct ended_before"
        problems.add(DataError(problem, row=branch_name(row), column="success", mend=mend))
    return refused | changed


def _differ(with_: pd.DataFrame, without: pd.DataFrame, column: str) -> Mask:
    """Where both branches state something of their past, and not the same."""
    differ = (with_[column] != without[column]).fillna(False).to_numpy(dtype=bool)
    if column == "ended_before":  # a branch that serves every delay cannot know
        differ &= without["delay"].notna().to_numpy()
    return differ


def _ended_before(with_: pd.DataFrame, without: pd.DataFrame) -> pd.Series[Any]:
    known: pd.Series[Any] = with_["ended_before"].fillna(without["ended_before"].where(without["delay"].notna()))
    return known


def _joined(with_: pd.DataFrame, without: pd.DataFrame) -> pd.DataFrame:
    success_with, success_without = with_["success"].to_numpy(dtype=bool), without["success"].to_numpy(dtype=bool)
    shared = {name: with_[name].fillna(without[name]) for name in ("source", "cohort", "factual_success")}
    return with_[KEY].assign(
        success_without=success_without,
        success_with=success_with,
        outcome=outcomes(success_without, success_with),
        tau=success_with.astype(np.int64) - success_without,
        **shared,
        ended_before=_ended_before(with_, without),
        prefix_hash=with_["prefix_hash"].where(without["prefix_hash"].notna()),
    )


def _rows(frame: pd.DataFrame, *columns: str) -> Iterator[dict[str, Any]]:
    for row in frame[[*KEY, *columns]].to_dict("records"):
        yield {str(name): value for name, value in row.items()}
