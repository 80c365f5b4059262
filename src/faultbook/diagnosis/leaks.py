"""Signs that an answer reached what was to find it: truth-only ids, truth files beside the evidence, reads of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from faultbook.diagnosis.read_truth import is_truth_file
from faultbook.diagnosis.truth import Truth
from faultbook.text import plain

LEAK_COLUMNS = ["kind", "severity", "place", "found", "advice"]
_READS = re.compile(r"[\w./~-]*(?:ground_?truth(?:_v1)?|ground_truths|\bgt)\.(?:ya?ml|jsonl?)", re.IGNORECASE)
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
        kind ("truth-only id", "truth beside evidence", "transcript names a truth file"), severity, place, found,
        advice. Empty if nothing was found, which is no proof that nothing leaked.
    """
    found: list[tuple[str, str, str, str, str]] = []
    if submissions is not None and truth is not None:
        found += _truth_ids(submissions, truth)
    if evidence is not None:
        found += _beside(Path(evidence))
    if transcripts is not None:
        found += _transcripts(Path(transcripts))
    return pd.DataFrame(found, columns=LEAK_COLUMNS).astype("string")


def _truth_ids(submissions: pd.DataFrame, truth: Truth) -> Iterator[tuple[str, str, str, str, str]]:
    secret: dict[str, set[str]] = {}
    for row in truth.causes.to_dict("records"):
        real = "" if pd.isna(row["name"]) else row["name"]
        looks_real = real == row["group_id"] or row["pattern"] == row["group_id"]
        if not looks_real:
            secret.setdefault(row["incident_id"], set()).add(row["group_id"])
    for row in submissions.to_dict("records"):
        if row["name"] in secret.get(row["incident_id"], ()) and re.search(r"-\d+$", row["name"]):
            place = f"{row['model']}, {row['incident_id']}, repeat {row['repeat']}, position {row['position']}"
            advice = "an id of the truth file; check what the agent could read"
            yield "truth-only id", "warning", place, row["name"], advice


def _beside(folder: Path) -> Iterator[tuple[str, str, str, str, str]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and is_truth_file(file):
            place = file.relative_to(folder).as_posix()
            yield "truth beside evidence", "error", place, file.name, "take it out before an agent sees the folder"
        elif file.suffix == ".jsonl" and file.is_file() and _holds_truth(file):
            place = file.relative_to(folder).as_posix()
            yield "truth beside evidence", "error", place, "rows with ground_truth_yaml", "take it out"


def _holds_truth(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as lines:
        try:
            first = json.loads(next(lines, "null"))
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and "ground_truth_yaml" in first


def _transcripts(path: Path) -> Iterator[tuple[str, str, str, str, str]]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        if file.stat().st_size > _MOST_BYTES:
            yield "transcript not read", "info", file.name, f"{file.stat().st_size} bytes", "split it"
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                match = _READS.search(line)
                if match:
                    place = f"{file.name}, line {number}"
                    advice = "see whether the file was read, and what followed"
                    yield "transcript names a truth file", "warning", place, plain(match[0], most=200), advice
