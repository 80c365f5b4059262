"""Small files in the published formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

Rows = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text, bytes or something that becomes JSON to a file below a fresh folder `given`."""

    def run(name: str, content: Any) -> Path:
        file = tmp_path / "given" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return file

    return run


@pytest.fixture
def write_parquet(tmp_path: Path) -> Callable[..., Path]:
    """Write rows to a parquet file."""

    def run(name: str, rows: list[dict[str, Any]]) -> Path:
        file = tmp_path / "given" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.Table.from_pylist(rows), file)
        return file

    return run


@pytest.fixture(scope="session")
def rows() -> Rows:
    """The rows of a table as tuples of the columns asked for; what is missing is None."""

    def run(table: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
        plain = table[list(columns)].astype(object).where(table[list(columns)].notna(), None)
        return list(plain.itertuples(index=False, name=None))

    return run
