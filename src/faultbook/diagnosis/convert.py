"""Write ground truths and submissions as tidy CSV files that `read_truth` and `read_submissions` read back."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

from faultbook.diagnosis.truth import Truth
from faultbook.errors import FaultbookError

FILES = ("causes.csv", "edges.csv", "incidents.csv", "notes.csv")


def write_truth(truth: Truth, folder: str | Path) -> list[Path]:
    """Write causes.csv, edges.csv, incidents.csv and notes.csv into a folder; facts only, no free text of alerts.

    Raises
    ------
    FaultbookError
        If the folder is a file, or one of the files is there already: raw data are not overwritten.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FaultbookError(f"{folder} is a file; name an empty folder")
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise FaultbookError(f"{folder} already holds {', '.join(there)}; name an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    edges = truth.edges.assign(condition="", effect="")  # sentences of the source stay with the source
    frames = (truth.causes, edges, truth.incidents, truth.notes)
    written = []
    for name, frame in zip(FILES, frames, strict=True):
        # a lone carriage return ends a line for readers of CSV, and is not quoted of itself
        returns = any(frame[column].astype("string").str.contains("\r", regex=False).any() for column in frame)
        quoting: Literal[0, 1] = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        frame.to_csv(folder / name, index=False, lineterminator="\n", quoting=quoting)
        written.append(folder / name)
    return written
