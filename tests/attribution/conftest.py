"""Small tables of logs, annotations and predictions, from compact dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.tables import Annotations, Attempts, Logs, Predictions

ROOT = Path(__file__).resolve().parents[2]

Flagged = Mapping[str, Sequence[Sequence[int]]]
Listed = Mapping[str, Mapping[str, Sequence[Sequence[int] | str | None]]]
Tables = tuple[pd.DataFrame, pd.DataFrame]


@functools.cache
def _types(model: type[Any]) -> dict[str, str]:
    return {name: str(column.dtype) for name, column in model.to_schema().columns.items()}


def _table(rows: list[dict[str, Any]], model: type[Any]) -> pd.DataFrame:
    """A table of the model, not validated (properties make thousands of them)."""
    types = _types(model)
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _make_annotations(flagged: Flagged, n_steps: int | Mapping[str, int] = 8) -> pd.DataFrame:
    """Per log, what each annotator flags. Everybody judges steps 0 to n_steps − 1, and whatever else they flag."""
    rows = []
    for log_id, lists in flagged.items():
        n = n_steps if isinstance(n_steps, int) else n_steps[log_id]
        for number, steps in enumerate(lists):
            for step in sorted({*range(n), *steps}):
                row = {"log_id": log_id, "step": step, "annotator": f"annotator {number + 1}"}
                rows.append(row | {"is_failure": step in steps})
    return _table(rows, Annotations)


def _make_predictions(listed: Listed, *, ranked: bool = False) -> Tables:
    """Per model and log, the samples: what each lists, or the status of one that lists nothing; None was not drawn."""
    named: list[dict[str, Any]] = []
    tried: list[dict[str, Any]] = []
    for model, logs in listed.items():
        for log_id, samples in logs.items():
            for number, steps in enumerate(samples):
                if steps is None:
                    continue
                row = {"log_id": log_id, "model": model, "sample": number}
                status = steps if isinstance(steps, str) else "ok" if len(steps) else "abstained"
                tried.append(row | {"status": status, "ranked": ranked, "n_unreadable": 0})
                if not isinstance(steps, str):
                    named += [row | {"position": place, "step": step} for place, step in enumerate(steps)]
    return _table(named, Predictions), _table(tried, Attempts)


def _make_logs(lengths: Mapping[str, int | None], questions: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Per log, its number of steps (None if unknown); its question, if it has one; its split stands before the "/"."""
    rows = [
        {
            "log_id": log_id,
            "split": log_id.rpartition("/")[0] or "all",
            "n_steps": pd.NA if n is None else n,
            "question_id": (questions or {}).get(log_id),
            "source": "made up",
        }
        for log_id, n in lengths.items()
    ]
    return _table(rows, Logs)


@pytest.fixture(scope="session")
def make_annotations() -> Callable[..., pd.DataFrame]:
    return _make_annotations


@pytest.fixture(scope="session")
def make_predictions() -> Callable[..., Tables]:
    return _make_predictions


@pytest.fixture(scope="session")
def make_logs() -> Callable[..., pd.DataFrame]:
    return _make_logs


@pytest.fixture(scope="session")
def golden_file() -> Path:
    """Values of the published notebook's own functions on synthetic cases, where they are at hand."""
    file = ROOT.parent / "shared" / "golden" / "ndcg_mpbench_notebook.json"
    if not file.exists():
        pytest.skip("the values of the published notebook are not at hand")
    return file
