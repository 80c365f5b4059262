"""Trials and plans as CSV tables: the form for data of one's own.

A file of trials needs only the columns arm, task_id, attempt, state and resolved; every other column of the table
`Trials` is optional, and further columns are left out. A plan needs arm, task_id and attempt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.columns import Columns
from faultbook.csvfile import read_text_table
from faultbook.errors import DataError
from faultbook.harness.fields import usage_status
from faultbook.harness.files import Files, shown
from faultbook.problems import Problems
from faultbook.tables import CAUSE_SOURCES, TRIAL_STATES, USAGE_STATUSES, Plan, Trials, typed
from faultbook.taxonomy import causes

FORMAT = "csv"
REQUIRED = ("arm", "task_id", "attempt", "state", "resolved")
PLAN_REQUIRED = ("arm", "task_id", "attempt")

_SECONDS = ("total_seconds", "setup_seconds", "agent_seconds", "verifier_seconds")
_COUNTS = ("input_tokens", "cache_tokens", "output_tokens", "requests")
_TEXTS = (
    "reward_key",
    "other_causes",
    "exception_type",
    "started_at",
    "trial_id",
    "run_id",
    "task_checksum",
    "source_version",
    "note",
)


def recognises(path: Path) -> bool:
    """Whether a path is a file that is named like a CSV table."""
    return path.suffix.casefold() == ".csv" and path.is_file()


def read_trial_table(path: Path, files: Files, problems: Problems, *, arm: str | None = None) -> pd.DataFrame:
    """Read a CSV file of trials.

    Parameters
    ----------
    path : path
        The file.
    files : Files
        Takes its digest.
    problems : Problems
        Takes located problems. A row whose arm, task, attempt or state cannot be read is left out; any other cell
        that cannot be read is missing.
    arm : str, optional
        The arm of all rows: for a file without that column, or of one arm, which it renames.

    Returns
    -------
    DataFrame
        Table `Trials`.
    """
    digest = files.digest(path)
    required = tuple(name for name in REQUIRED if name != "arm" or arm is None)
    raw = _with_arm(read_text_table(path, required=required), path, arm)
    cells = Columns(raw, path, problems)
    parts = _key(cells)
    parts["state"] = cells.among("state", TRIAL_STATES, required=True)
    parts["resolved"] = cells.boolean("resolved")
    parts["reward"] = pd.array(cells.feature("reward"), dtype="Float64") if "reward" in raw else pd.NA
    parts["cause"] = cells.among("cause", tuple(causes()))
    parts["cause_source"] = cells.among("cause_source", CAUSE_SOURCES)
    parts |= {name: pd.array(cells.amount(name), dtype="Float64") for name in (*_SECONDS, "cost")}
    parts |= {name: cells.whole(name, digits=15) for name in _COUNTS}
    parts |= {name: cells.text(name) for name in _TEXTS}
    parts |= {name: cells.boolean(name) for name in ("reward_valid", "cache_included")}
    parts["usage_status"] = cells.among("usage_status", USAGE_STATUSES)
    frame = pd.DataFrame(parts, index=raw.index)[cells.usable]
    frame = _metered(_verdicts(frame, path, problems), path, problems)
    frame = frame.assign(source_format=FORMAT, source_path=shown(path), source_sha256=digest)
    return typed(_derived(frame).reset_index(drop=True), Trials)


def read_plan_table(path: Path, problems: Problems) -> pd.DataFrame:
    """Read a CSV file of planned trials; a trial that stands there twice is reported and planned once.

    Returns
    -------
    DataFrame
        Table `Plan`.
    """
    raw = read_text_table(path, required=PLAN_REQUIRED)
    cells = Columns(raw, path, problems)
    parts = _key(cells)
    frame = pd.DataFrame(parts, index=raw.index)[cells.usable]
    key = list(PLAN_REQUIRED)
    for row, planned in frame[frame.duplicated(key)].iterrows():
        problem = f"attempt {planned['attempt']} of '{planned['arm']}' at '{planned['task_id']}' is planned already"
        problems.add(DataError(problem, file=path, row=int(str(row)), mend="keep one of the rows"))
    return typed(frame.drop_duplicates(key).assign(source="file").reset_index(drop=True), Plan)


def _key(cells: Columns) -> dict[str, Any]:
    """Which trial a row is of; rows without an attempt are left out."""
    key: dict[str, Any] = {name: cells.text(name, required=True) for name in ("arm", "task_id")}
    key["attempt"] = cells.whole("attempt", required=True)
    missing = key["attempt"].isna().to_numpy(dtype=bool)
    cells.leave_out("attempt", missing, "no attempt", "number the attempts at a task")
    return key


def _with_arm(raw: pd.DataFrame, path: Path, arm: str | None) -> pd.DataFrame:
    if arm is None:
        return raw
    found = sorted(set(raw["arm"])) if "arm" in raw else []
    if len(found) > 1:
        problem = f"holds {len(found)} arms ({', '.join(found[:5])}), which cannot all be called '{arm}'"
        raise DataError(problem, file=path, column="arm", mend="leave the arm's name out")
    return raw.assign(arm=arm)


def _verdicts(frame: pd.DataFrame, path: Path, problems: Problems) -> pd.DataFrame:
    """Verdicts of finished trials only, and only where resolved and reward say the same; others are reported."""
    early = (frame["state"] != "finished") & (frame["resolved"].notna() | frame["reward"].notna())
    for row, trial in frame[early].iterrows():
        mend = "write the state finished, or leave resolved and reward empty"
        problem = f"a trial that is not finished has no verdict; this one is {trial['state']}"
        problems.add(DataError(problem, file=path, row=int(str(row)), column="resolved", mend=mend))
    other = frame["reward"].eq(1).where(frame["reward"].isin((0, 1))) != frame["resolved"]
    twofold = ~early & other.fillna(False).astype(bool)
    for row, trial in frame[twofold].iterrows():
        problem = f"resolved is {str(trial['resolved']).lower()} beside a reward of {trial['reward']:g}"
        mend = "keep the one that the verifier said"
        problems.add(DataError(problem, file=path, row=int(str(row)), column="resolved", mend=mend))
    void = early | twofold
    return frame.assign(resolved=frame["resolved"].mask(void), reward=frame["reward"].mask(void))


def _metered(frame: pd.DataFrame, path: Path, problems: Problems) -> pd.DataFrame:
    """The usage status that the file gives; "reported" beside a missing number is reported, and missing."""
    wrong = (frame["usage_status"] == "reported") & frame[["input_tokens", "output_tokens"]].isna().any(axis=1)
    for row in frame.index[wrong.fillna(False).astype(bool)]:
        problem = "usage_status is reported, but input_tokens or output_tokens is empty"
        mend = "leave usage_status empty: it follows from the tokens"
        problems.add(DataError(problem, file=path, row=int(str(row)), column="usage_status", mend=mend))
    return frame.assign(usage_status=frame["usage_status"].mask(wrong.fillna(False).astype(bool)))


def _derived(frame: pd.DataFrame) -> pd.DataFrame:
    """What follows from other columns, where the file does not say it."""
    known = frame["cause"].notna()
    rules = {name: one.verdict_stands for name, one in causes().items()}
    stands = pd.Series([rules.get(name) for name in frame["cause"]], index=frame.index, dtype="boolean")
    verdict = frame["resolved"].notna() | frame["reward"].notna()
    valid = stands.where(known, True).where(verdict)
    tokens = zip(frame["input_tokens"], frame["output_tokens"], strict=True)
    status = pd.Series([usage_status(*_plain(pair)) for pair in tokens], index=frame.index, dtype="string")
    status = status.mask((status == "reported") & (frame["state"] != "finished"), "partial")  # it went on, or may have
    return frame.assign(
        reward_valid=frame["reward_valid"].fillna(valid).where(verdict),
        cause_source=frame["cause_source"].fillna("observed").where(known),
        usage_status=frame["usage_status"].fillna(status),
    )


def _plain(pair: tuple[Any, Any]) -> tuple[int | None, int | None]:
    first, second = (None if pd.isna(value) else int(value) for value in pair)
    return first, second
