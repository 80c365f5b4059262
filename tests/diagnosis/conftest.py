"""Small truths and submissions, and the real ones of the repository."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.diagnosis import Policy, Truth, read_truth, score
from faultbook.diagnosis.entities import parse_entity
from faultbook.diagnosis.truth import INCIDENT_COLUMNS, NOTE_COLUMNS, Document, read_v1
from faultbook.tables import Causes, Edges, Runs, Submissions

ROOT = Path(__file__).resolve().parents[2]
INCIDENTS = ROOT / "data" / "incidents"
PUBLIC = ROOT.parent / "shared" / "data" / "itbench"

Tables = tuple[pd.DataFrame, pd.DataFrame]


def _payload(groups: str, **rest: Any) -> dict[str, Any]:
    """A v1 truth from lines "id* | namespace/Kind/pattern": the star marks a root cause, "=" before a name is exact.

    A namespace "-" is left out.
    """
    rows = []
    for line in filter(None, map(str.strip, groups.splitlines())):
        group_id, place = (part.strip() for part in line.split("|", 1))
        namespace, kind, text = place.split("/", 2)
        row: dict[str, Any] = {"id": group_id.rstrip("*"), "kind": kind}
        if namespace != "-":
            row["namespace"] = namespace
        row |= {"name": text[1:]} if text.startswith("=") else {"filter": [text]}
        rows.append(row | ({"root_cause": True} if group_id.endswith("*") else {}))
    return {"groups": rows, **rest}


def _make_truth(groups: str, incident_id: str = "i-1", **rest: Any) -> Truth:
    document = Document(incident_id, "test", "0" * 64)
    read_v1(_payload(groups, **rest), document)
    incidents = pd.DataFrame(
        [
            (
                incident_id,
                "test",
                "0" * 64,
                len(document.groups),
                len({g["cause_set"] for g in document.groups if g["is_root_cause"]}),
            )
        ],
        columns=INCIDENT_COLUMNS,
    )
    notes = pd.DataFrame(document.notes, columns=NOTE_COLUMNS).astype("string")
    return Truth(_plain(document.groups, Causes), _plain(document.edges, Edges), incidents, notes)


def _make_runs(*submitted: Sequence[str], incident_id: str = "i-1", status: str = "scored") -> Tables:
    """The tables of one model's runs on one incident: one list of "namespace/Kind/name" a repeat."""
    rows = []
    for repeat, names in enumerate(submitted):
        for position, text in enumerate(names):
            entity = parse_entity(text)
            place = (entity.namespace, entity.kind, entity.name)
            rows.append(("m", incident_id, repeat, position, text, *place, None, "confirmed"))
    runs = [("m", incident_id, repeat, status, None, None) for repeat in range(len(submitted))]
    return _plain(rows, Submissions), _plain(runs, Runs)


@functools.cache
def _types(model: type[Any]) -> dict[str, str]:
    return {name: str(column.dtype) for name, column in model.to_schema().columns.items()}


def _plain(rows: list[Any], model: type[Any]) -> pd.DataFrame:
    """A table of the model, not validated (properties make thousands of them)."""
    types = _types(model)
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _grade(truth: Truth, *submitted: Sequence[str], policy: str | Policy = "itbench-aa") -> list[dict[str, Any]]:
    return score(*_make_runs(*submitted), truth, policy).sort_values("repeat").to_dict("records")


@pytest.fixture(scope="session")
def payload() -> Callable[..., dict[str, Any]]:
    return _payload


@pytest.fixture(scope="session")
def make_truth() -> Callable[..., Truth]:
    return _make_truth


@pytest.fixture(scope="session")
def make_runs() -> Callable[..., Tables]:
    return _make_runs


@pytest.fixture(scope="session")
def grade() -> Callable[..., list[dict[str, Any]]]:
    """Score one model's runs on one incident; one dict a repeat, in order."""
    return _grade


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text, bytes or something that becomes JSON to a file of a fresh folder."""

    def run(name: str, content: Any) -> Path:
        file = tmp_path / "given" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return file

    return run


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Truth]:
    """The truths that the repository ships: "v1" or "v2"."""
    read = {version: read_truth(INCIDENTS / f"itbench-{version}") for version in ("v1", "v2")}
    return read.__getitem__


@pytest.fixture(scope="session")
def public() -> Callable[[str], Truth]:
    """The public truth files that the shipped ones were made of, read strictly."""
    read: dict[str, Truth] = {}

    def run(version: str) -> Truth:
        if not (PUBLIC / version).is_dir():
            pytest.skip("the public ITBench files are not beside this repository")
        if version not in read:
            read[version] = read_truth(PUBLIC / version)
        return read[version]

    return run
