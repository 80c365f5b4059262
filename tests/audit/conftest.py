"""Small tables of printed numbers, and the real ones of the repository."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.audit import audit, evaluate, read_relations, read_reported
from faultbook.tables import Reported

REPORTED = Path(__file__).resolve().parents[2] / "data" / "reported"
MakeTable = Callable[[str], pd.DataFrame]
Judge = Callable[..., pd.DataFrame]


def _make_table(cells: str) -> pd.DataFrame:
    """Build a `Reported` table from lines "row/column | printed | unit | kind | n"; the id is doc/t/row/column.

    A name of three parts names its table too. Unit and kind may be left out: a pure number, a score.
    """
    rows = []
    for line in filter(None, map(str.strip, cells.splitlines())):
        name, printed, unit, kind, n, *_ = [*(part.strip() for part in line.split("|")), "", "", ""]
        table, row, column = ("t/" + name if name.count("/") == 1 else name).split("/")
        numeric = kind != "label" and any(character in "0123456789" for character in printed)
        rows.append(
            {
                "source": "doc",
                "table": table,
                "row": row,
                "column": column,
                "printed": printed,
                "value": 1.0 if numeric else None,  # the audit reads the printed text; a value only says "a number"
                "unit": unit or "1",
                "n": int(n) if n else None,
                "kind": kind or "score",
                "document": "doc",
                "section": "",
                "qualifier": "",
                "note": "",
                "id": f"doc/{table}/{row}/{column}",
            }
        )
    frame = pd.DataFrame(rows, columns=list(Reported.to_schema().columns))
    text = {name: "str" for name in frame.columns if name not in ("value", "n")}
    return Reported.validate(frame.astype({**text, "value": "float64", "n": "Int64"}))


@pytest.fixture(scope="session")
def make_table() -> MakeTable:
    return _make_table


@pytest.fixture
def write_relations(tmp_path: Path) -> Callable[..., Path]:
    def write(*relations: dict[str, Any]) -> Path:
        file = tmp_path / "relations.yaml"
        file.write_text(json.dumps({"relations": relations}), encoding="utf-8")  # JSON is YAML
        return file

    return write


@pytest.fixture
def judge(write_relations: Callable[..., Path]) -> Judge:
    """Audit a small table under some relations; the verdicts by "row/column" (or "table/row/column")."""

    def run(cells: str, /, *relations: dict[str, Any], **one: Any) -> pd.DataFrame:
        listed = [*relations, *([one] if one else [])]
        named = [{"id": f"relation-{number}", **relation} for number, relation in enumerate(listed, 1)]
        verdicts = audit(_make_table(cells), write_relations(*named))
        return verdicts.set_index(verdicts["id"].str.removeprefix("doc/").str.removeprefix("t/"))

    return run


@pytest.fixture
def find(write_relations: Callable[..., Path]) -> Callable[..., dict[str, Any]]:
    """Evaluate one relation alone; its findings by the id of the cell, before any of them is outweighed."""

    def run(cells: str, /, **relation: Any) -> dict[str, Any]:
        findings = evaluate(_make_table(cells), write_relations({"id": "relation-1", **relation}))
        return {finding.cell: finding for finding in findings}

    return run


@pytest.fixture(scope="session")
def real_reported() -> pd.DataFrame:
    return read_reported(REPORTED)


@pytest.fixture(scope="session")
def real_relations() -> list[Any]:
    return list(read_relations(REPORTED / "relations.yaml"))


@pytest.fixture(scope="session")
def real_audit(real_reported: pd.DataFrame) -> pd.DataFrame:
    return audit(real_reported).set_index("id", drop=False)
