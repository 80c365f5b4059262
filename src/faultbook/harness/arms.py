"""Several runs read as the arms of one comparison, with the plan that they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from faultbook.errors import DataError
from faultbook.harness.compare import Comparison
from faultbook.harness.files import Files
from faultbook.harness.formats import trial_csv
from faultbook.harness.plan import KEY, plan
from faultbook.harness.read import read_trials, runs
from faultbook.problems import PROBLEM_COLUMNS
from faultbook.tables import Plan, Trials, typed


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
        Runs of one arm each, or files that hold several. One path given twice is read once. Where two paths hold
        trials of one and the same name, each arm is called after its path.
    planned : path, optional
        A CSV file with the columns arm, task_id and attempt. If left out, each run's own configuration is the plan;
        for an arm whose run records none, it is inferred: every task of any arm.
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
    given = list({Path(path).resolve(): Path(path) for path in paths}.values())
    if not given:
        raise DataError("no run is named", mend="name the runs, or files of trials, that are to be compared")
    read = {path: read_trials(path, metric=metric, strict=False, files=files) for path in given}
    names = _names({path: set(part["arm"]) for path, (part, _) in read.items()})
    parts = [part.assign(arm=names[path] or part["arm"]) for path, (part, _) in read.items()]
    trials = typed(pd.concat(parts, ignore_index=True), Trials)
    problems = pd.concat([found for _, found in read.values()], ignore_index=True)
    if planned is not None:
        return Arms(trials, plan(planned, files=files), problems, files)
    return Arms(trials, _own_plan(given, names, trials, files), problems, files)


def _names(arms: dict[Path, set[str]]) -> dict[Path, str | None]:
    """A name for the one arm of each path, where the runs' own names would be mixed up; else None."""
    given = list(arms)
    mixed = [path for path in given if len(arms[path]) == 1 and any(arms[path] == arms[o] for o in given if o != path)]
    short = {path: path.stem if path.is_file() else path.name for path in mixed}
    unique = len(set(short.values())) == len(short)
    return {path: (short[path] if unique else str(path)) if path in short else None for path in given}


def _own_plan(given: list[Path], names: dict[Path, str | None], trials: pd.DataFrame, files: Files) -> pd.DataFrame:
    """What the runs' configurations plan; for other arms every task of any arm."""
    rows = [
        {**row, "source": "config"}
        for path in given
        for run, module in runs(path)
        if module is not trial_csv
        for row in module.planned(run, files, arm=names[path]) or []
    ]
    if not rows:
        return plan(trials=trials)
    known = pd.DataFrame(rows, columns=[*KEY, "source"]).drop_duplicates(KEY)
    others = [arm for arm in trials["arm"].drop_duplicates() if arm not in set(known["arm"])]
    tried = pd.concat([known[KEY], trials[KEY]]).dropna().drop_duplicates(["task_id", "attempt"])
    inferred = pd.DataFrame({"arm": others}).merge(tried[["task_id", "attempt"]], how="cross").assign(source="inferred")
    return typed(pd.concat([known, inferred], ignore_index=True), Plan)


def problems_of(comparison: Comparison, problems: pd.DataFrame) -> pd.DataFrame:
    """What could not be read, and the trials that do not enter a comparison, as one table of problems."""
    outside = comparison.outside
    said = [
        f"attempt {attempt} of '{arm}' at '{task}' does not enter: {what}" if pd.notna(task) else f"'{arm}': {what}"
        for arm, task, attempt, what in zip(*(outside[name] for name in (*KEY, "what")), strict=True)
    ]
    rows = pd.DataFrame({"file": outside["source_path"], "problem": said}).reindex(columns=PROBLEM_COLUMNS)
    return pd.concat([problems, rows.fillna("").astype("string")], ignore_index=True)
