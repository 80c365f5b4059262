"""The planned universe: arms × tasks × attempts, fixed before any trial is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faultbook.errors import DataError, FaultbookError
from faultbook.harness.files import Files
from faultbook.harness.formats import harbor, swe_bench, terminal_bench, trial_csv
from faultbook.harness.read import Paths, runs
from faultbook.problems import Problems
from faultbook.tables import Plan, Trials, typed

KEY = ["arm", "task_id", "attempt"]
# Formats that hold no number of an attempt, or one that counts within a run only.
_WITHOUT_ORDINAL = frozenset((harbor.FORMAT, terminal_bench.FORMAT, swe_bench.FORMAT))
OUTSIDE_COLUMNS = [*KEY, "state", "what", "source_path"]


def plan(
    source: Paths | None = None,
    *,
    trials: pd.DataFrame | None = None,
    arms: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    attempts: int = 1,
    arm: str | None = None,
    files: Files | None = None,
) -> pd.DataFrame:
    """State what was to be run.

    Parameters
    ----------
    source : path or sequence of paths, optional
        A CSV file with the columns arm, task_id and attempt; or runs of other tools, whose own configuration is read.
    trials : DataFrame, optional
        Table `Trials`, from which the plan is inferred if there is no source: every attempt that any arm has at a
        task, for every arm, whether it counts attempts from 0 or from 1. Tasks that no arm has started are not in it,
        and nobody can tell from such a plan that they exist.
    arms, tasks : sequence of str, optional
        The plan itself, as a product, with `attempts` each, counted from 1.
    attempts : int
        With `arms` and `tasks`: attempts at each task.
    arm : str, optional
        The name of the arm in a run's configuration, as given to `read_trials`.
    files : Files, optional
        Takes the digest of every file that is read.

    Returns
    -------
    DataFrame
        Table `Plan`; its column source says where it comes from: file, config, given or inferred.

    Raises
    ------
    FaultbookError
        If none of the three or more than one is given, nothing would be planned, or (DataError) the source cannot be
        read or holds no plan.
    """
    given = arms is not None or tasks is not None
    if (source is not None) + (trials is not None) + given != 1:
        raise FaultbookError("a plan comes from one thing: a source, trials to infer it from, or arms and tasks")
    if source is not None:
        return _read(source, arm, files or Files())
    if trials is not None:
        return _inferred(trials)
    if not arms or not tasks or attempts < 1:
        raise FaultbookError("a plan needs at least one arm, one task and one attempt")
    cells = [(name, task, attempt + 1) for name in arms for task in tasks for attempt in range(attempts)]
    if len(set(cells)) != len(cells):
        raise FaultbookError("a plan names each arm and each task once")
    return typed(_frame(cells, "given"), Plan)


@dataclass(frozen=True, slots=True)
class Held:
    """Trials held against a plan.

    Attributes
    ----------
    cells : DataFrame
        One row a planned trial: the columns of `Trials`, with the state "not_started" where there is no record;
        `verdict` (the outcome that counts: that of a finished trial whose verdict stands; else missing), `recorded`
        (that of any finished trial), and `disagree` (records of this trial contradict one another; it has no verdict).
    outside : DataFrame
        Trials that do not enter, and why: outside the plan, the same trial again, a file that cannot be read.
    repeats : DataFrame
        arm, attempts (planned at a task), tasks.
    """

    cells: pd.DataFrame
    outside: pd.DataFrame
    repeats: pd.DataFrame


def held(trials: pd.DataFrame, plan: pd.DataFrame) -> Held:
    """Hold trials against the plan: what is planned counts, whether it is on record or not, and nothing else does.

    Parameters
    ----------
    trials : DataFrame
        Table `Trials`.
    plan : DataFrame
        Table `Plan`.

    Returns
    -------
    Held
        Of several records of one trial one counts, if they agree on state, verdict and whether that stands; otherwise
        none does. It is the first in the order of their content: that of the rows decides nothing.

    Raises
    ------
    FaultbookError
        If the plan is empty.
    """
    trials, plan = Trials.validate(trials), Plan.validate(plan)
    if plan.empty:
        raise FaultbookError("the plan is empty: nothing was to be run, so nothing can be missing")
    planned = pd.MultiIndex.from_frame(plan[KEY])
    inside = pd.MultiIndex.from_frame(trials[KEY]).isin(planned)
    known = _by_content(trials[inside])
    again = known.duplicated(KEY).to_numpy()
    known = known.assign(disagree=_disagree(known))
    first = known[~again]
    cells = plan[KEY].merge(first, on=KEY, how="left")
    cells = cells.assign(
        state=cells["state"].fillna("not_started"),
        usage_status=cells["usage_status"].fillna("absent"),
        disagree=cells["disagree"].fillna(False).astype(bool),
    )
    counts = (cells["state"] == "finished") & ~cells["disagree"]
    recorded = cells["resolved"].where(counts)
    verdict = recorded.where(cells["reward_valid"].fillna(True).astype(bool))
    cells = cells.assign(recorded=recorded, verdict=verdict)
    outside = [_outside(trials[~inside], plan), _again(known, again)]
    return Held(cells, pd.concat(outside, ignore_index=True), _repeats(plan))


def arms_of(plan: pd.DataFrame) -> list[str]:
    """The arms of a plan, in their order there."""
    return [str(name) for name in plan["arm"].drop_duplicates()]


def two_arms(plan: pd.DataFrame, arms: Sequence[str] | None) -> tuple[str, str]:
    """The two arms that are compared: those named, or those of a plan that has two.

    Raises
    ------
    FaultbookError
        If a named arm is not planned, or the plan has more or fewer than two and none is named.
    """
    found = arms_of(plan)
    shown = ", ".join(f"'{name}'" for name in found[:10])
    if arms is None:
        if len(found) != 2:
            raise FaultbookError(f"the plan has {len(found)} arms ({shown}); name the two that are to be compared")
        return found[0], found[1]
    if len(arms) != 2 or arms[0] == arms[1]:
        raise FaultbookError(f"two different arms are compared; found {list(arms)}")
    unknown = [name for name in arms if name not in found]
    if unknown:
        raise FaultbookError(f"no arm '{unknown[0]}' in the plan; there are {shown}")
    return arms[0], arms[1]


def _read(source: Paths, arm: str | None, files: Files) -> pd.DataFrame:
    rows: list[pd.DataFrame] = []
    for run, module in runs(source):
        if module is trial_csv:
            files.digest(run)
            rows.append(trial_csv.read_plan_table(run, Problems(strict=True)))
            continue
        planned = module.planned(run, files, arm=arm)
        if planned is None:
            mend = "give a CSV file with arm, task_id and attempt, or infer it from the trials, which finds no task"
            raise DataError(f"a {module.FORMAT} run that does not say what was planned", file=run, mend=mend)
        rows.append(
            _frame([tuple(row[name] for name in KEY) for row in planned], "config").assign(format=module.FORMAT)
        )
    if not any(map(len, rows)):
        file = source if isinstance(source, (str, Path)) else None
        raise DataError("no trial is planned there", file=file, mend="name a plan with at least one trial")
    return typed(joined_plans(rows), Plan)


def held_two(
    trials: pd.DataFrame, planned: pd.DataFrame | None, arms: Sequence[str] | None
) -> tuple[Held, tuple[str, str]]:
    """Hold the trials of two arms against the plan, which is inferred if there is none; `held` and `two_arms` in one.

    Raises
    ------
    FaultbookError
        If there are not two arms to compare, or nothing is planned.
    """
    known = plan(trials=trials) if planned is None else planned
    chosen = two_arms(known, arms)
    found = held(trials, known)
    cells = found.cells[found.cells["arm"].isin(chosen)].reset_index(drop=True)
    return Held(cells, found.outside, found.repeats), chosen


def joined_plans(plans: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The plans of several runs as one.

    Where a format numbers no attempts, each run of an arm at a task plans a further attempt, as `read_trials` numbers
    the trials of all of them; elsewhere, and in CSV files, an attempt that is planned twice is one.
    """
    rows = pd.concat([plan.assign(counted=_is_counted(plan)) for plan in plans], ignore_index=True)
    counted = rows["counted"].to_numpy(dtype=bool)
    again = rows[counted].groupby(["arm", "task_id"], sort=False).cumcount() + 1
    rows = rows.assign(attempt=rows["attempt"].mask(counted, again.reindex(rows.index)).astype("int64"))
    return rows[[*KEY, "source"]].drop_duplicates(KEY).reset_index(drop=True)


def _is_counted(plan: pd.DataFrame) -> bool:
    """Whether the trials of this run are numbered only once all runs are read.

    Terminal-Bench numbers the attempts within a run, but a run of one attempt at each task says nothing.
    """
    formats = set(plan["format"]) if "format" in plan else set()
    once = bool((plan["attempt"] == 1).all())
    return formats <= _WITHOUT_ORDINAL and bool(formats) and (once or terminal_bench.FORMAT not in formats)


def _inferred(trials: pd.DataFrame) -> pd.DataFrame:
    known = Trials.validate(trials).dropna(subset="task_id")
    if known.empty:
        raise FaultbookError("no plan can be inferred: there is no trial of a known task")
    return typed(every_attempt(known, list(known["arm"].drop_duplicates())).assign(source="inferred"), Plan)


def every_attempt(tried: pd.DataFrame, arms: Sequence[str]) -> pd.DataFrame:
    """Every attempt that any arm has at a task, for each of some arms.

    Parameters
    ----------
    tried : DataFrame
        arm, task_id and attempt, none missing.
    arms : sequence of str
        Those that get all of them.

    Returns
    -------
    DataFrame
        arm, task_id, attempt, each once. An arm that has an attempt 0 anywhere counts from 0, any other from 1, so
        that the first attempt of one arm is the first of another.
    """
    first = tried.groupby("arm")["attempt"].min().clip(upper=1)
    counted = tried.assign(attempt=tried["attempt"] - tried["arm"].map(first).astype("int64"))
    cells = pd.DataFrame({"arm": list(arms)}).merge(counted[KEY[1:]].drop_duplicates(), how="cross")
    return cells.assign(attempt=cells["attempt"] + cells["arm"].map(first).fillna(1).astype("int64"))


def _frame(cells: Sequence[tuple[Any, ...]], source: str) -> pd.DataFrame:
    frame = pd.DataFrame(cells, columns=KEY)
    return frame.drop_duplicates().assign(source=source)


def _by_content(known: pd.DataFrame) -> pd.DataFrame:
    """Trials with their records in the order of what they say, where there are several of one."""
    several = known.duplicated(KEY, keep=False).to_numpy()
    if not several.any():
        return known
    texts = known[several].astype("string").fillna("").reset_index(drop=True)
    order = texts.sort_values(list(texts.columns)).index
    return pd.concat([known[~several], known[several].iloc[order]])


def _disagree(known: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether a trial's records contradict one another in state, in verdict, or in whether it stands."""
    verdict = known["resolved"].astype("string").fillna("?") + known["reward_valid"].fillna(True).astype("string")
    said = known.assign(said=known["state"] + verdict)
    return (said.groupby(KEY)["said"].transform("nunique") > 1).to_numpy(dtype=bool)


def _outside(trials: pd.DataFrame, plan: pd.DataFrame) -> pd.DataFrame:
    """Trials that are not planned, and what of them is not."""
    arms, pairs = set(plan["arm"]), pd.MultiIndex.from_frame(plan[["arm", "task_id"]])
    tasked = pd.MultiIndex.from_frame(trials[["arm", "task_id"]]).isin(pairs)
    what = np.select(
        [trials["task_id"].isna(), ~trials["arm"].isin(arms), ~tasked],
        ["a file that cannot be read", "the arm is not planned", "the task is not planned for this arm"],
        "the attempt is not planned",
    )
    return trials.assign(what=what)[OUTSIDE_COLUMNS].astype({"what": "string"})


def _again(known: pd.DataFrame, again: np.ndarray[Any, np.dtype[np.bool_]]) -> pd.DataFrame:
    """Further records of trials that are there already."""
    further = known[again]
    there = known[~again].set_index(KEY).reindex(pd.MultiIndex.from_frame(further[KEY])).reset_index()
    further = further.reset_index(drop=True)
    alike = [name for name in known.columns if name not in ("source_path", "note", "disagree")]
    same = further["trial_id"].eq(there["trial_id"]).fillna(False).astype(bool)
    same |= further[alike].astype("string").fillna("").eq(there[alike].astype("string").fillna("")).all(axis=1)
    what = np.select(
        [further["disagree"].to_numpy(dtype=bool), same.to_numpy(dtype=bool)],
        ["another record of the trial, which contradicts the first", "the same trial again"],
        "another record of the trial, which agrees with the first",
    )
    return further.assign(what=what)[OUTSIDE_COLUMNS].astype({"what": "string"})


def _repeats(plan: pd.DataFrame) -> pd.DataFrame:
    sizes = plan.groupby(["arm", "task_id"], sort=False).size().rename("attempts").reset_index()
    found = sizes.groupby(["arm", "attempts"], sort=False).size().rename("tasks").reset_index()
    return found.astype({"arm": "string", "attempts": "int64", "tasks": "int64"})
