"""Read ground truths: YAML and JSON of every published shape, JSON lines, folders of them, and our own CSV form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from faultbook.csvfile import located, read_text_table
from faultbook.diagnosis.truth import NOTE_COLUMNS, Document, Truth, as_text, assemble, read_v1, read_v2, set_roles
from faultbook.errors import DataError
from faultbook.problems import Problems
from faultbook.yamlfile import load_yaml, parse_yaml

TRUTH_STEMS = ("ground_truth", "groundtruth", "groundtruth_v1", "ground_truths", "gt")
_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
_CAUSE_REQUIRED = ("incident_id", "group_id", "kind", "is_root_cause")
_EDGE_COLUMNS = ("incident_id", "source", "target")
_MOST_DIGITS = 9


@overload
def read_truth(path: str | Path, strict: Literal[True] = True) -> Truth: ...
@overload
def read_truth(path: str | Path, strict: Literal[False]) -> tuple[Truth, pd.DataFrame]: ...
def read_truth(path: str | Path, strict: bool = True) -> Truth | tuple[Truth, pd.DataFrame]:
    """Read ground truths.

    Parameters
    ----------
    path : path
        A file, or a folder. Shapes: flat v1 (`groups`, `aliases`, `alerts`, `propagations`), v1 and v2 wrapped in
        `spec`, a list of them, JSON lines whose rows hold YAML text (`ground_truth_yaml`), and CSV (`causes.csv`,
        optional `edges.csv`, `incidents.csv`, `notes.csv`). In a folder every such file counts; in its subfolders only
        files that are called ground_truth, groundtruth, gt and the like.
    strict : bool
        Raise at the first problem; otherwise leave out what cannot be read and say so.

    Returns
    -------
    Truth, or (Truth, DataFrame)
        With `strict=False` also the located problems: file, row, column, problem, mend.

    Raises
    ------
    DataError
        If nothing is there, or (strict) with file, row and field of the first problem. Oddities that can be handled
        are not problems; they are in `Truth.notes`.
    """
    problems = Problems(strict)
    path = Path(path)
    if (path / "causes.csv").is_file():
        truth = _read_csv(path / "causes.csv", problems)
    elif path.suffix == ".csv":
        truth = _read_csv(path, problems)
    else:
        truth = assemble(_unique(_documents(path, problems), problems))
    return truth if strict else (truth, problems.frame())


def truth_files(path: Path) -> list[Path]:
    """The truth files that `read_truth` reads at a path, in order."""
    if path.is_file():
        return [path]
    beside = [file for file in sorted(path.glob("*")) if file.suffix.casefold() in _SUFFIXES and file.is_file()]
    below = [file for file in sorted(path.rglob("*")) if file.parent != path and is_truth_file(file)]
    return beside + below


def is_truth_file(path: Path) -> bool:
    """Whether a file is called what truth files are called."""
    return path.suffix.casefold() in _SUFFIXES and path.stem.casefold() in TRUTH_STEMS


def _documents(path: Path, problems: Problems) -> Iterator[tuple[Path, int | None, Document]]:
    """Each document with the file and line it stands in."""
    files = truth_files(path)
    if not files:
        raise DataError(
            "no ground truth here", file=path, mend="name a .yaml, .json, .jsonl or causes.csv, or a folder"
        )
    for file in files:
        stem = file.parent.name if is_truth_file(file) else file.stem
        try:
            items = list(_items(file, problems))
        except DataError as error:
            problems.add(error)
            continue
        for position, (payload, digest, row) in enumerate(items):
            fallback = stem if len(items) == 1 else f"{stem}-{position}"
            try:
                yield file, row, _document(payload, digest, fallback, file.name)
            except ValueError as error:
                problems.add(DataError(str(error), file=file, row=row, mend="write it as in ITBench's ground truths"))


def _items(file: Path, problems: Problems) -> Iterator[tuple[Any, str, int | None]]:
    """(payload, SHA-256 of its text, line) of each incident in a file."""
    if not file.is_file():
        raise DataError("no such file", file=file)
    if file.suffix.casefold() == ".jsonl":
        # a JSON text may hold any other line separator of Unicode
        for number, line in enumerate(file.read_text(encoding="utf-8-sig", errors="replace").split("\n"), start=1):
            if line.strip():
                try:
                    yield *_line(line.strip(), file, number, problems), number
                except DataError as error:
                    problems.add(error)
        return
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    payload = _parse(lambda unique: load_yaml(file, unique_keys=unique), problems)
    for item in payload if isinstance(payload, list) else [payload]:
        yield item, digest, None


def _parse(load: Callable[[bool], Any], problems: Problems) -> Any:
    """YAML (which JSON is, too); a key that stands twice is a problem, and leniently the last one counts."""
    try:
        return load(True)
    except DataError as error:
        first = error
    try:
        payload = load(False)
    except DataError:
        raise first from None
    problems.add(first)
    return payload


def _line(line: str, file: Path, number: int, problems: Problems) -> tuple[Any, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON ({error})", file=file, row=number) from None
    if not isinstance(row, Mapping):
        raise DataError("not a JSON object", file=file, row=number)
    text = row.get("ground_truth_yaml")
    if not isinstance(text, str):
        return row, hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()
    payload = _parse(lambda unique: parse_yaml(text, file, row=number, unique_keys=unique), problems)
    name = row.get("scenario_id") or row.get("id_aa")
    if isinstance(payload, dict) and name is not None:
        payload.setdefault("id", str(name))
    return payload, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _document(payload: Any, digest: str, fallback: str, source: str) -> Document:
    if not isinstance(payload, Mapping):
        raise ValueError(f"a truth is a mapping; found {type(payload).__name__}")
    metadata = payload.get("metadata")
    named = as_text(metadata.get("name"), "metadata.name") if isinstance(metadata, Mapping) else None
    document = Document(named or as_text(payload.get("id"), "id") or fallback, source, digest)
    if named and fallback.replace("_", "-").casefold() not in (named.casefold(), ""):
        document.note("name disagrees", "info", "metadata.name", f"{named} in {fallback}", "the name counts")
    spec = payload.get("spec")
    body = spec if isinstance(spec, Mapping) else payload
    if "entities" in body and "groups" not in body:
        read_v2(body, document)
    elif "groups" in body:
        read_v1(body, document)
        if not any(group["is_root_cause"] for group in document.groups):
            document.note("no cause", "error", "groups", "no root_cause: true", "the incident is ungradeable")
    else:
        raise ValueError("neither 'groups' (v1) nor 'entities' (v2)")
    return document


def _unique(documents: Iterator[tuple[Path, int | None, Document]], problems: Problems) -> Iterator[Document]:
    seen: dict[str, str] = {}
    for file, row, document in documents:
        if document.incident_id in seen:
            problem = f"incident '{document.incident_id}' stands here and in {seen[document.incident_id]}"
            problems.add(DataError(problem, file=file, row=row, mend="keep one of them in this folder"))
            continue
        seen[document.incident_id] = document.source
        yield document


def _read_csv(file: Path, problems: Problems) -> Truth:
    causes = read_text_table(file, required=_CAUSE_REQUIRED)
    documents: dict[str, Document] = {}
    incidents = file.with_name("incidents.csv")
    if incidents.is_file():
        for _, row in located(read_text_table(incidents, required=("incident_id",))):
            documents[row["incident_id"]] = Document(
                row["incident_id"], row.get("source", ""), row.get("truth_sha256", "")
            )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for number, row in located(causes):
        try:
            group = _csv_group(row, digest)
        except ValueError as error:
            problems.add(DataError(str(error), file=file, row=number))
            continue
        found = documents.setdefault(group["incident_id"], Document(group["incident_id"], file.name, digest))
        if any(other["group_id"] == group["group_id"] for other in found.groups):
            problems.add(DataError(f"group '{group['group_id']}' stands twice", file=file, row=number))
            continue
        found.groups.append(group)
    _csv_edges(file.with_name("edges.csv"), documents, problems)
    notes = file.with_name("notes.csv")
    if notes.is_file():
        for _, row in located(read_text_table(notes, required=tuple(NOTE_COLUMNS))):
            if row["incident_id"] in documents:
                documents[row["incident_id"]].notes.append({name: row[name] for name in NOTE_COLUMNS})
    for document in documents.values():
        _note_unmatchable(document)
        set_roles(document.groups, document.edges)
    return assemble(documents.values())


def _note_unmatchable(document: Document) -> None:
    """Note groups with neither name nor pattern, unless the notes that came along do so already."""
    noted = {note["found"] for note in document.notes if note["check"] == "no name or filter"}
    for group in document.groups:
        if not (group["name"] or group["pattern"] or group["group_id"] in noted):
            place = f"group {group['group_id']}"
            document.note("no name or filter", "error", place, group["group_id"], "nothing can match it")


def _csv_group(row: Mapping[str, str], digest: str) -> dict[str, Any]:
    for name in ("incident_id", "group_id", "kind"):
        if not row[name]:
            raise ValueError(f"'{name}' is empty")
    root = row["is_root_cause"].casefold()
    if root not in ("true", "false", "1", "0", "yes", "no", ""):
        raise ValueError(f"is_root_cause is '{row['is_root_cause']}'; write true or false")
    alerts = row.get("n_alerts", "") or "0"
    if not (alerts.isascii() and alerts.isdigit() and len(alerts) <= _MOST_DIGITS):
        raise ValueError(f"n_alerts is '{alerts}'; write a whole number")
    optional = {name: row.get(name) or None for name in ("namespace", "name", "pattern")}
    return {
        "incident_id": row["incident_id"],
        "group_id": row["group_id"],
        "kind": row["kind"],
        **optional,
        "is_root_cause": root in ("true", "1", "yes"),
        "cause_set": row.get("cause_set") or row["group_id"],
        "role": "listed",
        "n_alerts": int(alerts),
        "truth_sha256": row.get("truth_sha256") or digest,
    }


def _csv_edges(file: Path, documents: Mapping[str, Document], problems: Problems) -> None:
    if not file.is_file():
        return
    for number, row in located(read_text_table(file, required=_EDGE_COLUMNS)):
        document = documents.get(row["incident_id"])
        if document is None:
            problem = f"no incident '{row['incident_id']}' in causes.csv"
            problems.add(DataError(problem, file=file, row=number, column="incident_id"))
            continue
        texts = {name: row.get(name, "") for name in ("condition", "effect")}
        document.edges.append({name: row[name] for name in _EDGE_COLUMNS} | texts)
