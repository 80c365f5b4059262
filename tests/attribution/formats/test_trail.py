"""TRAIL: spans as steps, errors located in them, and what happens without the trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultbook.attribution.formats.trail import spans_of
from faultbook.attribution.read import read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]


def _span(number: int, *children: Any) -> dict[str, Any]:
    return {"span_id": f"s{number}", "span_name": f"name {number}", "child_spans": list(children)}


TRACE = {"trace_id": "t1", "spans": [_span(0, _span(1, _span(2)), _span(3)), _span(4)]}
ERRORS = [
    {"category": "Goal Deviation", "location": "s3", "evidence": "e", "description": "d", "impact": "HIGH"},
    {"category": "Formatting Errors", "location": "s1", "evidence": "only evidence", "description": ""},
    {"category": "Language-only", "location": "s3", "description": "d2"},
    {"category": "Goal Deviation", "location": "s3", "description": "d"},
]
LABELS = {"errors": ERRORS, "scores": [{"overall": 3}]}
FLAGGED = [(1, "only evidence", "Formatting Errors"), (3, "d\nd2", "Goal Deviation; Language-only")]


def _flagged(tables: Any, rows: Rows) -> list[tuple[Any, ...]]:
    return rows(tables.annotations[tables.annotations["is_failure"]], "step", "reason", "category")


@pytest.mark.parametrize(
    ("traces", "labels", "split"),
    [
        ("GAIA", "processed_annotations_gaia", "gaia"),
        ("data/GAIA", "processed_annotations_gaia", "gaia"),
        ("SWE Bench", "processed_annotations_swe_bench", "swe-bench"),
        ("data/SWE Bench", "processed_annotations_swe_bench", "swe-bench"),
    ],
)
def test_labels_with_the_trace_beside(write: Write, rows: Rows, traces: str, labels: str, split: str) -> None:
    write(f"{traces}/t1.json", TRACE)
    write(f"{labels}/_meta_summary.json", {"not": "data"})
    file = write(f"{labels}/t1.json", LABELS)
    for path in (file, file.parents[1]):
        tables = read_logs(path)
        assert rows(tables.logs, "log_id", "split", "n_steps") == [(f"{split}/t1", split, 5)]
        assert rows(tables.steps, "step", "agent") == [(step, f"name {step}") for step in range(5)]
        assert len(tables.annotations) == 5
        assert _flagged(tables, rows) == FLAGGED
        assert tables.annotations["annotator"].unique().tolist() == ["expert"]


def test_errors_without_the_trace_are_a_problem(write: Write) -> None:
    file = write("processed_annotations_gaia/t1.json", LABELS)
    with pytest.raises(DataError, match="errors in spans of a trace that is not here; put the trace beside"):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert tables.logs["n_steps"].isna().tolist() == [True]
    assert tables.annotations.empty
    assert len(problems) == 1


def test_a_trace_without_errors_is_judged(write: Write, rows: Rows) -> None:
    write("GAIA/t1.json", TRACE)
    folder = write("processed_annotations_gaia/t1.json", {"errors": [], "scores": []}).parents[1]
    assert rows(read_logs(folder).annotations, "is_failure") == [(False,)] * 5


def test_a_trace_without_labels_is_a_log(write: Write) -> None:
    tables = read_logs(write("GAIA/t1.json", TRACE))
    assert tables.logs["n_steps"].tolist() == [5]
    assert tables.annotations.empty


@pytest.mark.parametrize(
    "error", [{"location": "s9"}, {"location": None}, {"location": 3}, {}, "s1", None, {"location": ["s1"]}]
)
def test_an_error_of_no_span_is_located(write: Write, rows: Rows, error: Any) -> None:
    write("GAIA/t1.json", TRACE)
    file = write("processed_annotations_gaia/t1.json", {"errors": [error, *ERRORS], "scores": []})
    with pytest.raises(DataError, match="is no span of the trace; name a span_id") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "errors[0].location")
    tables, problems = read_logs(file, strict=False)
    assert _flagged(tables, rows) == FLAGGED
    assert len(tables.annotations) == 2  # the error may be of any other step
    assert len(problems) == 1


@pytest.mark.parametrize("errors", [None, {}, "x", 5])
def test_errors_that_are_no_list(write: Write, errors: Any) -> None:
    tables, problems = read_logs(
        write("processed_annotations_gaia/t1.json", {"errors": errors, "scores": []}), strict=False
    )
    assert tables.annotations.empty
    assert problems["column"].tolist() == ["errors"]


def test_spans_come_before_their_children_as_written() -> None:
    assert [span["span_id"] for span in spans_of(TRACE)] == ["s0", "s1", "s2", "s3", "s4"]


def test_traces_may_nest_deeper_than_python_calls() -> None:
    nested: dict[str, Any] = _span(50_000)
    for number in reversed(range(50_000)):
        nested = _span(number, nested)
    spans = spans_of({"spans": [nested]})
    assert [span["span_id"] for span in spans] == [f"s{number}" for number in range(50_001)]
    while nested["child_spans"]:  # taken apart, for Python frees nested objects by calling, too
        nested = nested["child_spans"].pop()


@pytest.mark.parametrize("spans", [[], [None], ["x", 5], [[]], [{"child_spans": {}}], [{"span_name": 5.5}]])
def test_odd_spans_are_no_crash(write: Write, spans: Any) -> None:
    write("GAIA/t1.json", {"trace_id": "t1", "spans": spans})
    tables, problems = read_logs(write("processed_annotations_gaia/t1.json", LABELS).parents[1], strict=False)
    assert len(tables.logs) == 1
    assert not problems.empty


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"spans": 5}', b"[]", b'{"spans":[' * 50_000])
def test_a_broken_trace_is_as_if_not_there(write: Write, content: bytes) -> None:
    write("GAIA/t1.json", content)
    tables, problems = read_logs(write("processed_annotations_gaia/t1.json", LABELS), strict=False)
    assert tables.annotations.empty
    assert "put the trace beside" in problems["mend"][0]


# ---- parquet -------------------------------------------------------------------------------------------------------


def test_parquet(write_parquet: Write, rows: Rows) -> None:
    given = [
        {"trace": json.dumps(TRACE), "labels": json.dumps({**LABELS, "trace_id": "t1"})},
        {"trace": json.dumps({**TRACE, "trace_id": "t2"}), "labels": json.dumps({"errors": [], "scores": []})},
    ]
    tables = read_logs(write_parquet("data/swe_bench-00000-of-00001.parquet", given))
    assert rows(tables.logs, "log_id", "split", "n_steps") == [
        ("swe-bench/t1", "swe-bench", 5),
        ("swe-bench/t2", "swe-bench", 5),
    ]
    assert _flagged(tables, rows) == FLAGGED
    assert len(tables.annotations) == 10


@pytest.mark.parametrize(
    ("trace", "labels", "n_logs"),
    [
        (None, json.dumps(LABELS), 1),
        ("{", json.dumps(LABELS), 1),
        ("[]", json.dumps(LABELS), 1),
        (json.dumps(TRACE), "{", 0),
        (json.dumps(TRACE), None, 0),
        ("[" * 50_000, json.dumps(LABELS), 1),
        (json.dumps({**TRACE, "trace_id": "\ud800"}), json.dumps(LABELS), 0),
        (json.dumps({**TRACE, "trace_id": None}), json.dumps(LABELS), 1),
    ],
)
def test_broken_columns_are_located(write_parquet: Write, trace: str | None, labels: str | None, n_logs: int) -> None:
    file = write_parquet("gaia.parquet", [{"trace": trace, "labels": labels}, {"trace": "{}", "labels": "{}"}])
    tables, problems = read_logs(file, strict=False)
    assert len(tables.logs) == n_logs + 1  # the second row, named by its number
    assert set(problems["file"]) == {str(file)}
