"""Signs that an answer reached what was to find it: truth-only ids, truth files beside the evidence, reads of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import re2

from faultbook.diagnosis.read_truth import is_truth_file
from faultbook.diagnosis.truth import Truth
from faultbook.errors import FaultbookError
from faultbook.text import plain

Leak = tuple[str, str, str, str, str]
LEAK_COLUMNS = ["kind", "severity", "place", "found", "advice"]
# RE2: a transcript's line may be a megabyte of anything
_READS = re2.compile(r"(?i)(?:ground_?truths?(?:_v1)?|\bgt)\.(?:ya?ml|jsonl?)|\bcauses\.csv")
_PATH = re.compile(r"[\w./~-]{0,120}$")
_MOST_BYTES = 50_000_000


def leaks(
    submissions: pd.DataFrame | None = None,
    truth: Truth | None = None,
    *,
    evidence: str | Path | None = None,
    transcripts: str | Path | None = None,
) -> pd.DataFrame:
    """Look for answers that leaked.

    Parameters
    ----------
    submissions, truth : optional
        Entities that carry an id of the truth file ("load-generator-pod-1"): such ids exist nowhere in the cluster.
        A name that is also the group's real name is no sign.
    evidence : path, optional
        A folder given to agents: truth files in it, whatever the folder.
    transcripts : path, optional
        A transcript or a folder of them (text or JSON): lines that name a truth file.

    Returns
    -------
    DataFrame
        kind ("truth-only id", "truth beside evidence", "transcript names a truth file", "transcript not read"),
        severity, place, found, advice. Empty if nothing was found, which is no proof that nothing leaked.

    Raises
    ------
    FaultbookError
        If a place to look at does not exist: nothing found there would read as clean.
    """
    for place in (evidence, transcripts):
        if place is not None and not Path(place).exists():
            raise FaultbookError(f"{place}: no such file or folder; nothing was looked at")
    found: list[Leak] = []
    if submissions is not None and truth is not None:
        found += _truth_ids(submissions, truth)
    if evidence is not None:
        found += _beside(Path(evidence))
    if transcripts is not None:
        found += _transcripts(Path(transcripts))
    return pd.DataFrame(found, columns=LEAK_COLUMNS).astype("string")


def _truth_ids(submissions: pd.DataFrame, truth: Truth) -> Iterator[Leak]:
    secret: dict[str, set[str]] = {}
    real: dict[str, set[str]] = {}
    for row in truth.causes.to_dict("records"):
        secret.setdefault(row["incident_id"], set()).add(row["group_id"])
        names = {value for value in (row["name"], row["pattern"]) if not pd.isna(value)}
        real.setdefault(row["incident_id"], set()).update(names)
    for row in submissions.to_dict("records"):
        known = secret.get(row["incident_id"], set()) - real.get(row["incident_id"], set())
        if row["name"] in known and re.search(r"-\d+$", row["name"]):
            place = f"{row['model']}, {row['incident_id']}, repeat {row['repeat']}, position {row['position']}"
            advice = "may be an id of the truth file; check what the agent could read"
            yield "truth-only id", "warning", place, row["name"], advice


def _beside(path: Path) -> Iterator[Leak]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        place = _place(file, path)
        if is_truth_file(file):
            yield "truth beside evidence", "error", place, file.name, "take it out before an agent sees the folder"
        elif file.suffix.casefold() in (".jsonl", ".csv") and (sign := _sign_of_truth(file)):
            yield "truth beside evidence", "error", place, f"rows with {sign}", "take it out"


def _sign_of_truth(file: Path) -> str:
    """The field by which a table or JSON lines are known to hold the answer, or nothing."""
    if file.stat().st_size > _MOST_BYTES:
        return ""
    wanted = "is_root_cause" if file.suffix.casefold() == ".csv" else "ground_truth_yaml"
    with file.open(encoding="utf-8", errors="replace") as lines:
        if file.suffix.casefold() == ".csv":
            return wanted if wanted in next(lines, "") else ""
        return wanted if any(f'"{wanted}"' in line for line in lines) else ""


def _transcripts(path: Path) -> Iterator[Leak]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        if file.stat().st_size > _MOST_BYTES:
            yield "transcript not read", "info", _place(file, path), f"{file.stat().st_size} bytes", "split it"
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                match = _READS.search(line)
                if match:
                    before = _PATH.search(line[max(0, match.start() - 120) : match.start()])
                    text = (before[0] if before else "") + match[0]
                    advice = "see whether the file was read, and what followed"
                    place = f"{_place(file, path)}, line {number}"
                    yield "transcript names a truth file", "warning", place, plain(text, most=200), advice


def _place(file: Path, root: Path) -> str:
    return file.name if file == root else file.relative_to(root).as_posix()
