"""Write logs as CSV files that `read_logs` reads back: all tables in a folder, or one label a log without any text."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pandas as pd

from faultbook.attribution.formats.tidy import steps_file
from faultbook.attribution.formats.who_and_when import ANNOTATOR
from faultbook.attribution.read import LogTables
from faultbook.errors import DataError, FaultbookError

FILES = ("logs.csv", "steps.csv", "annotations.csv", "predictions.csv", "attempts.csv")
LABEL_COLUMNS = (
    *("log_id", "subset", "n_steps", "mistake_step", "mistake_agent"),
    *("question_sha256", "history_sha256", "release"),
)
_LABEL_NAMES = {
    "split": "subset",
    "step": "mistake_step",
    "agent": "mistake_agent",
    "question_id": "question_sha256",
    "content_sha256": "history_sha256",
}


def write_logs(tables: LogTables, folder: str | Path) -> list[Path]:
    """Write logs.csv, steps.csv, annotations.csv, predictions.csv and attempts.csv into a folder.

    `read_logs` reads the same tables back, reasons included. Anomalies are not written: they are found again.

    Parameters
    ----------
    tables : LogTables
        From `read_logs`.
    folder : path
        A folder that holds none of these files; it is made if it is not there.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    FaultbookError
        If the folder is a file or cannot be written to, or one of the files is there already: raw data are not
        overwritten. Nothing is left half written.
    """
    folder = Path(folder)
    frames = (tables.logs, tables.steps, tables.annotations, tables.predictions, tables.attempts)
    return _write(folder, dict(zip(FILES, frames, strict=True)))


def write_labels(tables: LogTables, file: str | Path) -> list[Path]:
    """Write one label a log, and beside it who speaks at each step: facts only, no text of any log.

    `read_logs` reads back the same tables but for the reasons, as logs of Who&When.

    Parameters
    ----------
    tables : LogTables
        Logs that have one label each, by the annotator "label": Who&When, AgenTracer.
    file : path
        The file of labels, 'x-labels.csv'; the speakers go into 'x-steps.csv'.

    Returns
    -------
    list of Path
        The two files.

    Raises
    ------
    FaultbookError
        If a log has several labels or another annotator, the file is no CSV file by its name, one of the two is there
        already, or they cannot be written. Nothing is left half written.
    """
    file = Path(file)
    if file.suffix != ".csv" or file == steps_file(file):
        raise FaultbookError(f"{file} is no name for labels; name a file 'x-labels.csv'")
    labels, steps = _labels(tables), tables.steps[["log_id", "step", "role"]]
    return _write(file.parent, {file.name: labels, steps_file(file).name: steps})


def _labels(tables: LogTables) -> pd.DataFrame:
    others = tables.annotations[tables.annotations["annotator"] != ANNOTATOR]
    flagged = tables.annotations[tables.annotations["is_failure"]]
    again = flagged[flagged.duplicated("log_id")]
    for odd, what in ((others, f"another annotator than '{ANNOTATOR}'"), (again, "more than one label")):
        if len(odd):
            problem = f"log '{odd['log_id'].iloc[0]}' has {what}"
            raise DataError(problem, mend="write_logs writes any number of them")
    named = flagged[["log_id", "step", "agent"]].astype({"step": "Int64"})
    rows = tables.logs.merge(named, "left", "log_id").rename(columns=_LABEL_NAMES)
    return rows[list(LABEL_COLUMNS)]


def _write(folder: Path, frames: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write all files or none: they are made in a folder of their own and moved when they are complete."""
    if folder.exists() and not folder.is_dir():
        raise FaultbookError(f"{folder} is a file; name a folder")
    there = [name for name in frames if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise FaultbookError(f"{folder} already holds {', '.join(there)}; name another folder or file")
    moved: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as made:
            for name, frame in frames.items():
                _to_csv(frame, Path(made) / name)
            for name in frames:
                (Path(made) / name).replace(folder / name)
                moved.append(folder / name)
    except OSError as error:
        for file in moved:
            file.unlink(missing_ok=True)
        raise FaultbookError(f"{folder} cannot be written to ({error.strerror})") from None
    return moved


def _to_csv(frame: pd.DataFrame, file: Path) -> None:
    # a lone carriage return ends a line for readers of CSV, and is not quoted of itself
    returns = any(frame[column].astype("string").str.contains("\r", regex=False).any() for column in frame)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    frame.to_csv(file, index=False, lineterminator="\n", quoting=quoting)
