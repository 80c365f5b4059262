"""Write synthetic logs as files: in the raw shape of MP-Bench, and as compact CSV of our own form."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.attribution.read import LogTables
from faultbook.errors import FaultbookError

# What judges say is no table of logs; `read_logs` leaves out what begins with "_".
JUDGES = "_judges"
_ADDRESS = "https://github.com/example/synthetic-logs/tree/main"
_COMPACT = {
    "logs": ["log_id", "split", "n_steps", "question_id", "source"],
    "steps": ["log_id", "step", "role"],
    "annotations": ["log_id", "step", "annotator", "is_failure", "agent", "reason", "ideal_action"],
    "reviews": ["log_id", "annotator"],
    "predictions": ["log_id", "model", "sample", "step", "agent"],
    "attempts": ["log_id", "model", "sample", "status"],
}


def write_mp_bench(tables: LogTables, folder: str | Path, sources: str | Path | None = None) -> list[Path]:
    """Write annotations in the raw shape of MP-Bench: ANNOTATOR/SPLIT/ID.json, all numbers as text.

    Parameters
    ----------
    tables : LogTables
        From `synthetic`. An annotator has a file for each log of which they judged a step, and only flagged steps stand
        in it.
    folder : path
        A folder that holds no annotations yet.
    sources : path, optional
        A folder for the logs that the annotations point to, with "synthetic" for the text of each step.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    FaultbookError
        If a file is there already, or the name of a log or annotator leads out of the folder.
    """
    files: dict[Path, str] = {}
    for key, rows in tables.annotations.groupby(["log_id", "annotator"], sort=False):
        log_id, annotator = (_safe(str(name)) for name in key)
        flagged = rows[rows["is_failure"]].astype(object)
        listed = [_raw_step(row) for row in flagged.where(flagged.notna(), "").to_dict("records")]
        payload = {"log_source": f"{_ADDRESS}/{log_id}.json", "annotation": listed}
        files[Path(folder) / annotator / f"{log_id}.json"] = _json(payload)
    for name, rows in tables.steps.groupby("log_id", sort=False) if sources is not None else ():
        history = [{"content": "synthetic", "role": role} for role in rows["role"]]
        payload = {"question": f"synthetic question of {name!s}", "history": history}
        files[Path(sources or "") / f"{_safe(str(name))}.json"] = _json(payload)
    return _write(files)


def write_compact(
    tables: LogTables, folder: str | Path, verdicts: pd.DataFrame, people: pd.DataFrame, scores: pd.DataFrame
) -> list[Path]:
    """Write logs as CSV without what `read_logs` can fill in, and what judges say in the folder `_judges` below.

    annotations.csv lists flagged steps and reviews.csv who went through which log, predictions.csv has no positions,
    and attempts.csv lists only samples that name no step.

    Parameters
    ----------
    tables : LogTables
        From `synthetic`: every annotator judged every step of a log, and no category is given.
    folder : path
        A folder that holds none of the files.
    verdicts, people, scores : DataFrame
        For `_judges/verdicts.csv`, `_judges/people-verdicts.csv` and `_judges/reasoning.csv`.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    FaultbookError
        If one of the files is there already.
    """
    annotations, attempts = tables.annotations, tables.attempts
    frames = {
        "logs": tables.logs,
        "steps": tables.steps,
        "annotations": annotations[annotations["is_failure"]],
        "reviews": annotations.drop_duplicates(["log_id", "annotator"]),
        "predictions": tables.predictions,
        "attempts": attempts[attempts["status"] != "ok"],
    }
    files = {Path(folder) / f"{name}.csv": _csv(frame[_COMPACT[name]]) for name, frame in frames.items()}
    judged = {"verdicts": verdicts, "people-verdicts": people, "reasoning": scores.astype({"score": "Int64"})}
    files |= {Path(folder) / JUDGES / f"{name}.csv": _csv(frame) for name, frame in judged.items()}
    return _write(files)


def _raw_step(row: Mapping[Hashable, Any]) -> dict[str, str]:
    texts = {"fail_category": row["category"], "fail_reason": row["reason"], "ideal_action": row["ideal_action"]}
    return {"step": str(row["step"]), "fail_annotation": "1", **texts}


def _safe(name: str) -> str:
    """A name that stays below the folder it is joined to."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise FaultbookError(f"'{name}' cannot be the name of a file; rename it")
    return name


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, indent=1) + "\n"


def _csv(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _write(files: Mapping[Path, str]) -> list[Path]:
    there = [file for file in files if file.exists()]
    if there:
        raise FaultbookError(f"{there[0]} is there already; name an empty folder")
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return list(files)
