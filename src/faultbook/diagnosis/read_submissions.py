"""Read submissions: the JSON shapes of ITBench-AA, ITBench and its adapters, JSON lines, folders of runs, and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from faultbook.csvfile import located, read_text_table
from faultbook.diagnosis.entities import parse_entity
from faultbook.errors import DataError, one_of, short_repr, unreadable
from faultbook.problems import Problems
from faultbook.replies import Payload, parse_reply
from faultbook.tables import Runs, Submissions, typed
from faultbook.text import is_unicode

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
# incidents are called scenario-1, scenario_10 or 7; a model's name may hold "_" too
_FILE_NAME = re.compile(r"(?P<model>.+?)_(?P<incident>[^_]*[A-Za-z][^_]*(?:_\d+)?|[^_]+)_(?P<repeat>\d{1,9})")
_CAUSE_KEYS = ("contributing_factors", "root_causes", "entities")
# What a run may say of itself; only a truth makes it ungradeable.
_OWN_STATUSES = ("scored", "empty", "malformed", "timed_out", "missing")
_WRITE_ENTITY = "write namespace/Kind/name"
_MOST_DIGITS = 9
_MOST_TURNS = 10**9
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
        """One run a line; a JSON text may hold any other line separator of Unicode."""
        for number, line in enumerate(_read(file).split("\n"), start=1):
            if line.strip():
                self._run(line, file, number, {})

    def csv(self, file: Path) -> None:
        """One entity a row; a row without an entity is a run that submitted nothing."""
        try:
            table = read_text_table(file, required=_CSV_REQUIRED)
        except DataError as error:
            self._problems.add(error)
            return
        _refuse_answers(table.columns, file)
        runs: dict[tuple[str, str, str], list[tuple[int, dict[str, str]]]] = {}
        for line, row in located(table):
            repeat = row["repeat"].lstrip("0") or row["repeat"][:1]  # 0 and 00 are one repeat
            runs.setdefault((row["model"], row["incident_id"], repeat), []).append((line, row))
        for (model, incident_id, repeat), rows in runs.items():
            fields = {"model": model, "incident_id": incident_id, "repeat": repeat}
            first, row = rows[0]
            named = [(line, _csv_factor(row)) for line, row in rows if row["entity"]]
            self._take({**fields, "status": row.get("status") or None, _CAUSE_KEYS[0]: named}, file, first, {})

    def _run(self, text: str, file: Path, row: int | None, place: Mapping[str, Any]) -> None:
        payload, repaired = parse_reply(text, _is_answer)
        if repaired:
            problem = "not strict JSON" if payload is not None else "not JSON that names causes"
            mend = "read after repair; check it" if payload is not None else "submit one JSON object"
            self._problems.add(DataError(problem, file=file, row=row, mend=mend))
        unread = repaired and payload is None
        if isinstance(payload, Mapping):
            fields = dict(payload)
            for name in _CAUSE_KEYS[:2]:
                if name in fields:
                    value = fields[name]
                    fields[name] = [(row, factor) for factor in (value if isinstance(value, list) else [value])]
        else:
            fields = {_CAUSE_KEYS[0]: [(row, factor) for factor in payload]} if isinstance(payload, list) else {}
        self._take(fields, file, row, place, unread=unread)

    def _take(
        self, fields: Mapping[str, Any], file: Path, row: int | None, place: Mapping[str, Any], *, unread: bool = False
    ) -> None:
        """Take a run whose causes are given as (line, entity) pairs, or in the shape of ITBench."""
        _refuse_answers(fields, file, row)
        key = self._key(fields, file, row, place)
        if key is None:
            return
        if key in self._seen:
            problem = f"run {key} stands here and in {self._seen[key]}"
            self._problems.add(DataError(problem, file=file, row=row, mend="keep one of them"))
            return
        self._seen[key] = f"{file.name}" + (f", row {row}" if row else "")
        entities, n_bad = self._entities(_factors(fields, row), file)
        status = "scored" if entities else "malformed" if n_bad or not _is_submission(fields) else "empty"
        stated = fields.get("status")
        if stated is not None and stated not in _OWN_STATUSES:
            problem = one_of("status", short_repr(stated).strip("'"), _OWN_STATUSES)
            self._problems.add(DataError(problem, file=file, row=row, mend="what was submitted decides"))
        elif stated not in (None, "scored", "empty"):
            status = stated
        elif not _is_submission(fields) and not unread:
            problem = f"names no causes: none of {', '.join(_CAUSE_KEYS)} is a list"
            self._problems.add(DataError(problem, file=file, row=row, mend="an empty list says that there is none"))
        self.entities += [(*key, position, *entity) for position, entity in enumerate(entities)]
        turns = _number(fields.get("turns"), _MOST_TURNS)
        whole = turns if turns is not None and turns == int(turns) else None
        self.runs.append((*key, status, whole, _number(fields.get("cost"))))

    def _key(
        self, fields: Mapping[str, Any], file: Path, row: int | None, place: Mapping[str, Any]
    ) -> tuple[str, str, int] | None:
        """Whose run it is; where its own fields cannot be used, the name of its file still says so."""
        try:
            return _key({**place, **{name: value for name, value in fields.items() if value is not None}}, file)
        except ValueError as error:
            self._problems.add(DataError(str(error), file=file, row=row, mend="give model, incident_id and repeat"))
        return _key(place, file) if place.get("model") and str(place.get("repeat", 0)).isdigit() else None

    def _entities(self, factors: Iterator[tuple[int | None, Any]], file: Path) -> tuple[list[tuple[Any, ...]], int]:
        """(entity, namespace, kind, name, confidence, stage) of each factor, and how many could not be read."""
        rows, n_bad = [], 0
        for line, factor in factors:
            if isinstance(factor, Mapping):
                _refuse_answers(factor, file, line)
            try:
                rows.append(_entity(factor))
            except ValueError as error:
                n_bad += 1
                self._problems.add(DataError(str(error), file=file, row=line, mend=_WRITE_ENTITY))
        return rows, n_bad

    def _place(self, file: Path) -> dict[str, Any]:
        match = _FILE_NAME.fullmatch(file.stem)
        if match:
            return {"model": match["model"], "incident_id": match["incident"], "repeat": match["repeat"]}
        parts = file.relative_to(self._root).parts[:-1]
        return dict(zip(("model", "incident_id", "repeat"), parts, strict=False)) if len(parts) >= 2 else {}


def _is_answer(payload: Payload) -> bool:
    """Whether repaired JSON is a submission: a list, or an object that names causes."""
    return isinstance(payload, list) or any(name in payload for name in _CAUSE_KEYS)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise unreadable(error, file) from None


def _refuse_answers(fields: Any, file: Path, row: int | None = None) -> None:
    found = [name for name in ANSWER_FIELDS if name in fields]
    if found:
        problem = f"holds the answer ({', '.join(found)})"
        raise DataError(problem, file=file, row=row, mend="a submission is made without the truth; take it out")


def _key(fields: Mapping[str, Any], file: Path) -> tuple[str, str, int]:
    missing = [name for name in ("model", "incident_id") if not fields.get(name)]
    if missing:
        raise ValueError(f"no {' and no '.join(missing)}, neither as a field nor in the name '{file.name}'")
    for name in ("model", "incident_id"):
        value = fields[name]
        if isinstance(value, bool) or not isinstance(value, str | int) or not is_unicode(str(value)):
            raise ValueError(f"{name} is {short_repr(value)}, not text")
    given = fields.get("repeat", 0)
    repeat = str(given).strip() if isinstance(given, str) or type(given) is int else ""
    if not (repeat.isascii() and repeat.isdigit() and len(repeat) <= _MOST_DIGITS):
        shown = short_repr(given)
        raise ValueError(f"repeat is {shown if isinstance(given, str) else repr(shown)}, not a whole number")
    return str(fields["model"]), str(fields["incident_id"]), int(repeat)


def _is_submission(fields: Mapping[str, Any]) -> bool:
    """Whether a run names causes at all, were it none."""
    return any(name in fields for name in _CAUSE_KEYS[:2]) or isinstance(fields.get("entities"), list)


def _factors(fields: Mapping[str, Any], row: int | None) -> Iterator[tuple[int | None, Any]]:
    """The causes that a run names, whatever its shape, each with the line it stands in."""
    for name in _CAUSE_KEYS[:2]:
        if name in fields:
            yield from fields[name]
            return
    listed = fields.get("entities")
    for entity in listed if isinstance(listed, list) else ():
        # ITBench lists every entity and marks the causes; what is not marked is no answer
        marked = entity.get("contributing_factor", False) if isinstance(entity, Mapping) else None
        if marked is not False and marked is not None:
            yield row, entity if marked is True else _Unreadable("contributing_factor", marked)
        elif not isinstance(entity, Mapping):
            yield row, _Unreadable("an entity", entity)


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A part of an answer that is not of the type it must be."""

    what: str
    found: Any


def _csv_factor(row: Mapping[str, str]) -> dict[str, Any]:
    given = {"stage": row.get("stage") or None, "confidence": row.get("confidence") or None}
    return {"name": row["entity"], **given}


def _entity(factor: Any) -> tuple[Any, ...]:
    if isinstance(factor, _Unreadable):
        raise ValueError(f"{factor.what} is {short_repr(factor.found)}")
    if isinstance(factor, str):
        factor = {"name": factor}
    if not isinstance(factor, Mapping):
        raise ValueError(f"an entity is text or a mapping; found {type(factor).__name__}")
    name = factor.get("name") or factor.get("id") or factor.get("entity")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("an entity without a name")
    entity = parse_entity(name)
    parts = {"namespace": factor.get("namespace"), "kind": factor.get("kind")}
    for part, value in {**parts, "name": name}.items():
        if not isinstance(value, str | None) or (value is not None and not is_unicode(value)):
            raise ValueError(f"{part} is {short_repr(value)}, not text")
    namespace, kind = parts["namespace"] or entity.namespace, parts["kind"] or entity.kind
    stage = factor.get("stage") or "confirmed"
    if stage not in _STAGES:
        raise ValueError(one_of("stage", short_repr(stage).strip("'"), _STAGES))
    text = "/".join(part for part in (namespace, kind, entity.name) if part)
    return text, namespace, kind, entity.name, _number(factor.get("confidence"), 1), stage


def _number(value: Any, most: float = 1e300) -> float | None:
    """A number from 0 to `most`, or None: what cannot be read is missing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number <= most else None
