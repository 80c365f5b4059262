"""Moments at which a rule may act: what is known there, and what acting and not acting led to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
import pandas as pd

from faultbook.errors import DataError, FaultbookError, short_repr
from faultbook.problems import Problems
from faultbook.recovery._frames import KEY, as_episodes, branch_name, in_order, shown
from faultbook.recovery.pairs import NO_BRANCH, matched, pair, unpaired
from faultbook.tables import FEATURE_PREFIX, Candidates, typed

_TRAJECTORY = ["task_id", "condition", "replicate"]
_ALIKE = 1e-9  # relative difference of features that were written with fewer digits


@overload
def candidates(
    episodes: pd.DataFrame, action: str = "refresh", delays: Sequence[int] = (1, 2, 4), strict: Literal[True] = True
) -> pd.DataFrame: ...
@overload
def candidates(
    episodes: pd.DataFrame, action: str = "refresh", delays: Sequence[int] = (1, 2, 4), *, strict: Literal[False]
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def candidates(
    episodes: pd.DataFrame, action: str = "refresh", delays: Sequence[int] = (1, 2, 4), strict: bool = True
) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """List the moments at which a rule may take an action, with the features at each and both outcomes.

    Parameters
    ----------
    episodes : DataFrame
        Table `Episodes` with features `x_…`.
    action : str
        What a rule would do.
    delays : sequence of int
        The moments of each run, in actions after the observation that may be wrong.
    strict : bool
        Raise at the first problem; otherwise leave out the run, with all of its moments, and list it.

    Returns
    -------
    DataFrame, or (DataFrame, DataFrame)
        Table `Candidates`, then the features, sorted by task, condition, replicate and delay. `reached` is false where
        the run had ended before the moment; where that is not known, it counts as reached. With `strict=False` also
        the problems.

    Raises
    ------
    FaultbookError
        If the table cannot be used, or there is no such branch at one of the delays.
    DataError
        If strict, at the first pair that `pair` refuses, run that lacks a moment (a rule that takes the first moment
        that passes cannot be judged on it), or feature that differs between the two branches of a fork.

    Notes
    -----
    Features are taken from both branches, since either may lack them; what is known on both must agree, for it belongs
    to the past that they share. Those of a 'none' branch that serves every delay belong to no fork and are not used.

    References
    ----------
    arXiv 2610.00372: candidate times 1, 2, 4 in order, features known before the decision, at most one refresh.
    """
    moments, problems = _checked_delays(delays), Problems(strict)
    frame = as_episodes(episodes)
    frame = frame[(frame["action"] == "none") | ((frame["action"] == action) & frame["delay"].isin(moments))]
    _check_there(episodes, frame, action, moments)
    pairs, refused = (pair(frame), None) if strict else pair(frame, strict=False)
    frame = frame.drop_duplicates(KEY)
    table, features = _with_features(pairs, frame, problems)
    table = in_order(_complete(table, frame, moments, problems), [*_TRAJECTORY, "delay"])
    reached = ~table["ended_before"].fillna(False).astype("bool")
    named = table.assign(reached=reached, is_error=table["condition"] != "clean")
    result = pd.concat([typed(named, Candidates), table[features]], axis=1)
    return result if refused is None else (result, pd.concat([refused, problems.frame()], ignore_index=True))


def _checked_delays(delays: Sequence[int]) -> list[int]:
    moments = sorted(set(delays))
    if not moments or any(not pd.api.types.is_integer(delay) or delay < 0 for delay in delays):
        raise FaultbookError(f"delays is {short_repr(delays)}; give whole numbers of at least 0, such as (1, 2, 4)")
    return [int(delay) for delay in moments]


def _check_there(episodes: pd.DataFrame, frame: pd.DataFrame, action: str, delays: list[int]) -> None:
    """Refuse an action or a delay that the episodes do not have at all."""
    if action == "none":
        raise FaultbookError("action is 'none', which a rule cannot take; name what it would do, such as 'refresh'")
    missing = [delay for delay in delays if not ((frame["action"] == action) & (frame["delay"] == delay)).any()]
    if missing:
        here = episodes[episodes["action"] == action]
        found = f"delays {shown(here['delay'])}" if len(here) else f"actions {shown(episodes['action'])}"
        raise FaultbookError(
            f"no branch with the action {short_repr(action)} at delay {missing[0]} (there are {found})"
        )


def _with_features(pairs: pd.DataFrame, frame: pd.DataFrame, problems: Problems) -> tuple[pd.DataFrame, list[str]]:
    """The pairs with the features of their fork, without those whose branches do not agree; the names of these."""
    features = [str(name) for name in frame.columns if str(name).startswith(FEATURE_PREFIX)]
    with_, without, positions = matched(frame)
    own, other = with_[positions >= 0], without.iloc[positions[positions >= 0]]
    mine = own[features].to_numpy(dtype=np.float64)
    theirs = other[features].to_numpy(dtype=np.float64, copy=True)
    theirs[other["delay"].isna().to_numpy()] = np.nan  # of no fork
    known = own[KEY].assign(**dict(zip(features, np.where(np.isnan(mine), theirs, mine).T, strict=True)))
    alike = np.isnan(mine) | np.isnan(theirs) | np.isclose(mine, theirs, rtol=_ALIKE, atol=0)
    agreed = known.assign(agreed=alike.all(axis=1))
    for row in np.flatnonzero(~alike.all(axis=1)):
        column = int(np.flatnonzero(~alike[row])[0])
        values = f"{mine[row, column]:g} with the action, {theirs[row, column]:g} without"
        problem = f"a feature differs between the branches of one fork: {values}"
        mend = "record features at the fork, before the action"
        where = branch_name(own.iloc[row])
        problems.add(DataError(problem, row=where, column=features[column], mend=mend))
    table = pairs.merge(agreed, on=KEY, how="left", validate="1:1")
    return table[table["agreed"]].drop(columns="agreed"), features


def _complete(table: pd.DataFrame, frame: pd.DataFrame, delays: list[int], problems: Problems) -> pd.DataFrame:
    """The moments of runs that have all of them; a run that lacks one is reported, unless it was refused before."""
    branches = frame.loc[frame["action"] != "none", [*_TRAJECTORY, "delay"]]
    absent = unpaired(frame)
    absent = absent.loc[absent["reason"] == NO_BRANCH, ["task_id", "condition"]].drop_duplicates()
    never = ~_index(absent, ["task_id", "condition"]).isin(_index(branches, ["task_id", "condition"]))
    runs = pd.concat([branches[_TRAJECTORY].drop_duplicates(), absent[never].assign(replicate=0)], ignore_index=True)
    expected = runs.merge(pd.DataFrame({"delay": delays}), how="cross")
    columns = [*_TRAJECTORY, "delay"]
    for row in expected[~_index(expected, columns).isin(_index(branches, columns))].to_dict("records"):
        problem = f"task {short_repr(row['task_id'])}, condition {short_repr(row['condition'])}, replicate "
        problem += f"{row['replicate']} has no branch at delay {row['delay']}"
        mend = "run it (if the run had ended before, carry its outcome forward), or leave the task out"
        problems.add(DataError(problem, column="delay", mend=mend))
    lacking = expected[~_index(expected, columns).isin(_index(table, columns))]
    return table[~_index(table, _TRAJECTORY).isin(_index(lacking, _TRAJECTORY))]


def _index(frame: pd.DataFrame, columns: list[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(frame[columns])
