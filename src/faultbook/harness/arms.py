"""Several runs read as the arms of one comparison, with the plan that they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from faultbook.errors import DataError
from faultbook.harness.compare import Comparison
from faultbook.harness.files import Files, shown
from faultbook.harness.formats import trial_csv
from faultbook.harness.plan import KEY, every_attempt, joined_plans, plan
from faultbook.harness.read import read_trials, runs
from faultbook.problems import PROBLEM_COLUMNS
from faultbook.tables import Plan, Trials, typed
from faultbook.values import text


@dataclass(frozen=True, slots=True)
class Arms:
    """Trials of the arms of a comparison, their plan, and what could not be read.

    Attributes
    ----------
    trials : DataFrame
        Table `Trials`.
    plan : DataFrame
        Table `Plan`.
    problems : DataFrame
        file, row, column, problem, mend.
    files : Files
        What was read.
    """

    trials: pd.DataFrame
    plan: pd.DataFrame
    problems: pd.DataFrame
    files: Files


def read_arms(paths: Sequence[str | Path], *, planned: str | Path | None = None, metric: str | None = None) -> Arms:
    """Read runs as arms.

    Parameters
    ----------
    paths : sequence of path
        Runs of one arm each, or files that hold several. A run that two of them name or hold is read once. Where two
        paths hold trials of one and the same name, each arm is called after its path.
    planned : path, optional
        A CSV file with the columns arm, task_id and attempt. If left out, each run's own configuration is the plan;
        for an arm whose run records none, it is inferred: every task of any arm. In either case the arms stand in the
        order of the paths that hold them.
    metric : str, optional
        As for `read_trials`.

    Returns
    -------
    Arms

    Raises
    ------
    DataError
        If a path does not exist or holds no trials of a known format, or the plan cannot be read.
    """
    files = Files()
    given = _given(paths)
    if not given:
        raise DataError("no run is named", mend="name the runs, or files of trials, that are to be compared")
    read = {path: read_trials(own, metric=metric, strict=False, files=files) for path, own in given.items()}
    names = _names({path: set(part["arm"]) for path, (part, _) in read.items()})
    parts = [part.assign(arm=names[path] or part["arm"]) for path, (part, _) in read.items()]
    trials = typed(pd.concat(parts, ignore_index=True), Trials)
    problems = pd.concat([found for _, found in read.values()], ignore_index=True)
    found = plan(planned, files=files) if planned is not None else _own_plan(given, names, trials, files)
    return Arms(trials, _in_order(found, parts), problems, files)


def _given(paths: Sequence[str | Path]) -> dict[Path, list[Path]]:
    """The runs of each path; those that a path before it names or holds are not its own, and it may have none."""
    seen: set[Path] = set()
    found: dict[Path, list[Path]] = {}
    for path in map(Path, paths):
        own = [run for run, _ in runs(path) if run.resolve() not in seen]
        seen |= {run.resolve() for run in own}
        if own:
            found[path] = own
    return found


def _names(arms: dict[Path, set[str]]) -> dict[Path, str | None]:
    """A name for the one arm of each path, where the runs' own names would be mixed up; else None."""
    given = list(arms)
    mixed = [path for path in given if len(arms[path]) == 1 and any(arms[path] == arms[o] for o in given if o != path)]
    places = {path: path if path.name else path.resolve() for path in mixed}  # "." has no name of its own
    short = {path: text(place.stem if place.is_file() else place.name) for path, place in places.items()}
    others = {name for path in given if path not in short for name in arms[path]}
    unique = len({*short.values(), *others} - {None}) == len(short) + len(others)
    return {path: (short[path] if unique else shown(path)) if path in short else None for path in given}


def _in_order(plan: pd.DataFrame, parts: list[pd.DataFrame]) -> pd.DataFrame:
    """A plan with its arms in the order of the paths that hold them; those that none holds come last."""
    first: dict[str, int] = {}
    for place, part in enumerate(parts):
        for arm in set(part["arm"]):
            first.setdefault(arm, place)
    order = plan["arm"].map(first).fillna(len(parts)).sort_values(kind="stable").index
    return plan.loc[order].reset_index(drop=True)


def _own_plan(
    given: dict[Path, list[Path]], names: dict[Path, str | None], trials: pd.DataFrame, files: Files
) -> pd.DataFrame:
    """What the runs' configurations plan; for other arms every task of any arm."""
    planned = [
        pd.DataFrame(rows).assign(source="config", format=module.FORMAT)
        for path, own in given.items()
        for run, module in runs(own)
        if module is not trial_csv and (rows := module.planned(run, files, arm=names[path]))
    ]
    if not planned:
        return plan(trials=trials)
    known = joined_plans(planned)
    others = [arm for arm in trials["arm"].drop_duplicates() if arm not in set(known["arm"])]
    inferred = every_attempt(pd.concat([known[KEY], trials[KEY]]).dropna(), others).assign(source="inferred")
    return typed(pd.concat([known, inferred], ignore_index=True), Plan)


def problems_of(comparison: Comparison, problems: pd.DataFrame) -> pd.DataFrame:
    """What could not be read, and the trials that do not enter a comparison, as one table of problems."""
    outside = comparison.outside
    said = [
        f"attempt {attempt} of '{arm}' at '{task}' does not enter: {what}" if pd.notna(task) else f"'{arm}': {what}"
        for arm, task, attempt, what in zip(*(outside[name] for name in (*KEY, "what")), strict=True)
    ]
    rows = pd.DataFrame({"file": outside["source_path"], "problem": said}).reindex(columns=PROBLEM_COLUMNS)
    return pd.concat([problems, rows.astype("string").fillna("")], ignore_index=True)
