"""Write ground truths and submissions as tidy CSV files that `read_truth` and `read_submissions` read back."""

from __future__ import annotations

from pathlib import Path

from faultbook.diagnosis.truth import Truth
from faultbook.errors import FaultbookError

FILES = ("causes.csv", "edges.csv", "incidents.csv", "notes.csv")


def write_truth(truth: Truth, folder: str | Path) -> list[Path]:
    """Write causes.csv, edges.csv, incidents.csv and notes.csv into a folder; facts only, no free text of alerts.

    Raises
    ------
    FaultbookError
        If one of the files is there already: raw data are not overwritten.
    """
    folder = Path(folder)
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise FaultbookError(f"{folder} already holds {', '.join(there)}; name an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    edges = truth.edges.assign(condition="", effect="")  # sentences of the source stay with the source
    frames = (truth.causes, edges, truth.incidents, truth.notes)
    written = []
    for name, frame in zip(FILES, frames, strict=True):
        frame.to_csv(folder / name, index=False, lineterminator="\n")
        written.append(folder / name)
    return written
