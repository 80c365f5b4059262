"""Requests of a ledger as OpenTelemetry spans: names as the conventions have them, and nothing that is not known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.runtime.ledger import Ledger, Usage
from faultbook.runtime.ledger_export import CONVENTIONS, to_otel, write_otel


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    with Ledger(tmp_path / "ledger.sqlite", durability="normal") as ledger:
        for name in ("whole", "absent", "zero", "part", "denied", "failed", "unsettled", "open"):
            ledger.start("run", "t", 1, name, model="m", operation="chat", provider="p", conversation_id="c")
        usage = Usage(10, 2, cache_read_tokens=3, cache_creation_tokens=1, reasoning_tokens=0, cache_included=True)
        ledger.complete(
            "run", "t", 1, "whole", usage=usage, finish_reasons=["stop"], response_model="m-1", response_id="r"
        )
        ledger.complete("run", "t", 1, "absent")
        ledger.complete("run", "t", 1, "zero", usage=Usage(0, 0))
        ledger.complete("run", "t", 1, "part", usage=Usage(10, 1, is_final=False))
        ledger.deny("run", "t", 1, "denied", denial={"kind": "contract-violation"})
        ledger.complete("run", "t", 1, "failed", error_type="500")
        ledger.unsettle("run", "t", 1, "unsettled", reason="lost")
        return [*ledger.requests()]


def test_a_metered_request_has_the_names_of_the_conventions(rows: list[dict[str, Any]]) -> None:
    span = next(to_otel(rows))
    assert span["attributes"] == {
        # opentelemetry-semantic-conventions 0.66b2
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "p",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": "r",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.conversation.id": "c",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 0,  # reported as 0, beside what is not 0
        "faultbook.run.id": "run",
        "faultbook.trial.id": "t",
        "faultbook.attempt": 1,
        "faultbook.request.id": "whole",
        "faultbook.state": "completed",
        "faultbook.settled_late": False,
        "faultbook.omitted_tool_images": 0,
        "faultbook.usage.status": "reported",
        "faultbook.usage.cache_included": True,
    }
    assert (span["schema_url"], span["name"], span["kind"], span["status"]) == (CONVENTIONS, "chat m", "CLIENT", "OK")
    assert (len(span["trace_id"]), len(span["span_id"])) == (32, 16)
    assert span["end_time"] >= span["start_time"]


def test_what_is_not_known_is_left_out_and_never_0(rows: list[dict[str, Any]]) -> None:
    spans = {span["attributes"]["faultbook.request.id"]: span for span in to_otel(rows)}
    for name in ("absent", "zero", "part", "denied", "failed", "unsettled", "open"):
        assert not [key for key in spans[name]["attributes"] if key.startswith("gen_ai.usage.")]
    assert spans["part"]["attributes"]["faultbook.usage.partial.output_tokens"] == 1
    assert {name: span["status"] for name, span in spans.items()} == {
        **dict.fromkeys(("whole", "absent", "zero", "part"), "OK"),
        **dict.fromkeys(("denied", "failed"), "ERROR"),
        **dict.fromkeys(("unsettled", "open"), "UNSET"),
    }
    assert spans["denied"]["attributes"]["error.type"] == "contract-violation"
    assert spans["failed"]["attributes"]["error.type"] == "500"
    assert "error.type" not in spans["unsettled"]["attributes"]
    assert "end_time" not in spans["open"]
    assert len({span["span_id"] for span in spans.values()}) == len(rows)
    assert len({span["trace_id"] for span in spans.values()}) == 1


def test_spans_are_written_as_lines(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    target = tmp_path / "spans.jsonl"
    assert write_otel(rows, target) == len(rows)
    assert [json.loads(line) for line in target.read_text("utf-8").splitlines()] == [*to_otel(rows)]
    assert sorted(tmp_path.glob("tmp*")) == []


def test_a_row_that_fails_leaves_the_old_file_and_no_other(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    target = tmp_path / "spans.jsonl"
    target.write_text("old")
    with pytest.raises(AttributeError):
        write_otel([*rows, None], target)
    assert target.read_text() == "old"
    assert sorted(tmp_path.glob("tmp*")) == []
    with pytest.raises(DataError, match="cannot be written"):
        write_otel(rows, tmp_path / "no" / "such.jsonl")


def test_foreign_rows_are_written_without_secrets(tmp_path: Path) -> None:
    target = tmp_path / "spans.jsonl"
    write_otel([{"run_id": "r", "model": "sk-ant-api03-aB3dE6gH9jK2mN5pQ8sT", "attempt": math.nan}], target)
    assert "aB3dE6gH9jK2mN5pQ8sT" not in target.read_text()
    assert "NaN" not in target.read_text()


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["run_id", "model", "usage_status", "input_tokens", "state", "finish_reasons", "error_type"]),
        st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["reported", "partial", "completed"]),
    )
)
def test_any_row_becomes_a_span(row: dict[str, Any]) -> None:
    (span,) = to_otel([row])
    assert None not in span["attributes"].values()
    assert ("gen_ai.usage.input_tokens" in span["attributes"]) == (
        row.get("usage_status") == "reported" and row.get("input_tokens") is not None
    )
