"""Read submissions: the JSON shapes of ITBench-AA, ITBench and its adapters, JSON lines, folders of runs, and CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from faultbook.csvfile import read_text_table
from faultbook.diagnosis.entities import parse_entity
from faultbook.errors import DataError
from faultbook.problems import Problems
from faultbook.tables import RUN_STATUSES, Runs, Submissions, typed

# Columns that hold an answer never reach what reads submissions (they would make a prediction out of the truth).
ANSWER_FIELDS = (
    "is_root_cause",
    "root_cause",
    "cause_set",
    "groups",
    "ground_truth",
    "ground_truth_yaml",
    "truth_sha256",
)
_FILE_NAME = re.compile(r"(?P<model>.+)_(?P<incident>[^_]+(?:_\d+)?)_(?P<repeat>\d+)")
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
_STAGES = ("found", "suspected", "confirmed")
_CSV_REQUIRED = ("model", "incident_id", "repeat", "entity")


@dataclass(frozen=True, slots=True)
class SubmissionTables:
    """The tables `Submissions` and `Runs`."""

    submissions: pd.DataFrame
    runs: pd.DataFrame


@overload
def read_submissions(path: str | Path, strict: Literal[True] = True) -> SubmissionTables: ...
@overload
def read_submissions(path: str | Path, strict: Literal[False]) -> tuple[SubmissionTables, pd.DataFrame]: ...
def read_submissions(path: str | Path, strict: bool = True) -> SubmissionTables | tuple[SubmissionTables, pd.DataFrame]:
    """Read submissions and the runs they belong to.

    Parameters
    ----------
    path : path
        A JSON file with one run, JSON lines with one run a line, a CSV file with one entity a row, or a folder of them
        (subfolders included). A run names its entities in `contributing_factors[].name` (ITBench-AA), in `entities[]`
        with `contributing_factor: true` (ITBench), or in `root_causes[]`. Model, incident and repeat come from the
        fields `model`, `incident_id`, `repeat`, else from `MODEL_INCIDENT_REPEAT.json`, else from the folders
        `MODEL/INCIDENT/REPEAT/…`.
    strict : bool
        Raise at the first problem; otherwise note it and go on.

    Returns
    -------
    SubmissionTables, or (SubmissionTables, DataFrame)
        A file that cannot be read is a run with the status `malformed`, never a missing row. With `strict=False` also
        the located problems.

    Raises
    ------
    DataError
        If nothing is there; if a file holds an answer column; or (strict) at the first problem.
    """
    problems, path = Problems(strict), Path(path)
    files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.suffix in (".json", ".jsonl", ".csv"))
    if not files:
        raise DataError("no submissions here", file=path, mend="name a .json, .jsonl or .csv file, or a folder of them")
    reader = _Reader(path if path.is_dir() else path.parent, problems)
    for file in files:
        {".csv": reader.csv, ".jsonl": reader.lines}.get(file.suffix, reader.single)(file)
    tables = SubmissionTables(typed(reader.entities, Submissions), typed(reader.runs, Runs))
    return tables if strict else (tables, problems.frame())


class _Reader:
    """Collects rows of both tables."""

    def __init__(self, root: Path, problems: Problems) -> None:
        self._root, self._problems = root, problems
        self.entities: list[tuple[Any, ...]] = []
        self.runs: list[tuple[Any, ...]] = []
        self._seen: dict[tuple[str, str, int], str] = {}

    def single(self, file: Path) -> None:
        """One run a file."""
        self._run(_read(file), file, None, self._place(file))

    def lines(self, file: Path) -> None:
        """One run a line."""
        for number, line in enumerate(_read(file).splitlines(), start=1):
            if line.strip():
                self._run(line, file, number, {})

    def csv(self, file: Path) -> None:
        """One entity a row; a row without an entity is a run that submitted nothing."""
        table = read_text_table(file, required=_CSV_REQUIRED)
        _refuse_answers(table.columns, file)
        for key, part in table.groupby(["model", "incident_id", "repeat"], sort=False):
            first = int(part.index[0]) + 2
            rows = part.to_dict("records")
            named = {"model": key[0], "incident_id": key[1], "repeat": key[2], "status": rows[0].get("status") or None}
            factors = [
                {"name": row["entity"], "stage": row.get("stage") or None, "confidence": row.get("confidence") or None}
                for row in rows
                if row["entity"]
            ]
            self._take({**named, "contributing_factors": factors}, file, first, {}, repaired=False)

    def _run(self, text: str, file: Path, row: int | None, place: Mapping[str, Any]) -> None:
        payload, repaired = parse_reply(text)
        if repaired:
            problem = "not strict JSON" if payload is not None else "not JSON"
            mend = "read after repair; check it" if payload is not None else "submit one JSON object"
            self._problems.add(DataError(problem, file=file, row=row, mend=mend))
        self._take(payload, file, row, place, repaired=repaired)

    def _take(self, payload: Any, file: Path, row: int | None, place: Mapping[str, Any], *, repaired: bool) -> None:
        fields = payload if isinstance(payload, Mapping) else {}
        _refuse_answers(fields, file, row)
        try:
            key = _key({**place, **{name: v for name, v in fields.items() if v is not None}}, file)
        except ValueError as error:
            self._problems.add(DataError(str(error), file=file, row=row, mend="give model, incident_id and repeat"))
            return
        if key in self._seen:
            problem = f"run {key} stands here and in {self._seen[key]}"
            self._problems.add(DataError(problem, file=file, row=row, mend="keep one of them"))
            return
        self._seen[key] = f"{file.name}" + (f", row {row}" if row else "")
        status, factors = _factors(payload)
        entities, bad = _entities(factors)
        for problem in bad:
            self._problems.add(DataError(problem, file=file, row=row, mend="write namespace/Kind/name"))
        if status == "scored" and not entities:
            status = "malformed" if bad else "empty"
        if fields.get("status") in RUN_STATUSES:
            status = fields["status"]
        self.entities += [(*key, position, *entity) for position, entity in enumerate(entities)]
        self.runs.append((*key, status, _number(fields.get("turns")), _number(fields.get("cost"))))

    def _place(self, file: Path) -> dict[str, Any]:
        match = _FILE_NAME.fullmatch(file.stem)
        if match:
            return {"model": match["model"], "incident_id": match["incident"], "repeat": match["repeat"]}
        parts = file.relative_to(self._root).parts[:-1]
        return dict(zip(("model", "incident_id", "repeat"), parts, strict=False)) if len(parts) >= 2 else {}


def parse_reply(text: str) -> tuple[Any, bool]:
    """Parse a model's reply: strictly first; then what stands in a fence; then repaired. The flag says "not strict".

    Returns
    -------
    (payload, repaired)
        The payload is None if nothing could be read.
    """
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        pass
    for block in _FENCE.findall(text):
        try:
            return json.loads(block), True
        except (ValueError, RecursionError):
            continue
    from json_repair import repair_json

    fenced = _FENCE.findall(text)
    repaired = repair_json(fenced[0] if fenced else text, return_objects=True)
    return (repaired if isinstance(repaired, (dict, list)) and repaired else None), True


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig", errors="replace")


def _refuse_answers(fields: Any, file: Path, row: int | None = None) -> None:
    found = [name for name in ANSWER_FIELDS if name in fields]
    if found:
        problem = f"holds the answer ({', '.join(found)})"
        raise DataError(problem, file=file, row=row, mend="a submission is made without the truth; take it out")


def _key(fields: Mapping[str, Any], file: Path) -> tuple[str, str, int]:
    missing = [name for name in ("model", "incident_id") if not fields.get(name)]
    if missing:
        raise ValueError(f"no {' and no '.join(missing)}, neither as a field nor in the name '{file.name}'")
    repeat = str(fields.get("repeat", 0)).strip()
    if not (repeat.isascii() and repeat.isdigit()):
        raise ValueError(f"repeat is '{repeat}', not a whole number")
    return str(fields["model"]), str(fields["incident_id"]), int(repeat)


def _factors(payload: Any) -> tuple[str, list[Any]]:
    """The entities of a payload, whatever shape, and whether there was a submission at all."""
    if isinstance(payload, list):
        return "scored", payload
    if not isinstance(payload, Mapping):
        return "malformed", []
    for name in ("contributing_factors", "root_causes"):
        if name in payload:
            value = payload[name]
            return ("scored", value) if isinstance(value, list) else ("scored", [value])
    if isinstance(payload.get("entities"), list):
        causes = [e for e in payload["entities"] if isinstance(e, Mapping) and e.get("contributing_factor") is True]
        return "scored", causes
    return "malformed", []


def _entities(factors: list[Any]) -> tuple[list[tuple[Any, ...]], list[str]]:
    """(entity, namespace, kind, name, confidence, stage) of each factor, and what was wrong with the others."""
    rows, bad = [], []
    for factor in factors:
        try:
            rows.append(_entity(factor))
        except ValueError as error:
            bad.append(str(error))
    return rows, bad


def _entity(factor: Any) -> tuple[Any, ...]:
    if isinstance(factor, str):
        factor = {"name": factor}
    if not isinstance(factor, Mapping):
        raise ValueError(f"an entity is text or a mapping; found {type(factor).__name__}")
    name = factor.get("name") or factor.get("id") or factor.get("entity")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("an entity without a name")
    entity = parse_entity(name)
    namespace, kind = factor.get("namespace") or entity.namespace, factor.get("kind") or entity.kind
    stage = factor.get("stage") or "confirmed"
    if stage not in _STAGES:
        raise ValueError(f"stage is '{stage}', not one of {', '.join(_STAGES)}")
    text = "/".join(str(part) for part in (namespace, kind, entity.name) if part)
    return text, namespace, kind, entity.name, _number(factor.get("confidence")), stage


def _number(value: Any) -> float | None:
    """A finite number of at least 0, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
