"""Requests of a ledger in the words of OpenTelemetry, so that other tools can read them.

Names of attributes are those of the semantic conventions for generative AI, schema 1.44 (package
opentelemetry-semantic-conventions 0.66b2), whose status is "development": `CONVENTIONS` is written with each span. What
is not known is left out. What the conventions have no name for stands under `faultbook.`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from faultbook.atomic import whole_file
from faultbook.errors import DataError
from faultbook.runtime.redaction import redacted

CONVENTIONS = "https://opentelemetry.io/schemas/1.44.0"
FORMAT_VERSION = 1

_PLAIN = {
    "gen_ai.operation.name": "operation",
    "gen_ai.provider.name": "provider",
    "gen_ai.request.model": "model",
    "gen_ai.response.model": "response_model",
    "gen_ai.response.id": "response_id",
    "gen_ai.response.finish_reasons": "finish_reasons",
    "gen_ai.conversation.id": "conversation_id",
    "error.type": "error_type",
    "faultbook.run.id": "run_id",
    "faultbook.trial.id": "trial_id",
    "faultbook.attempt": "attempt",
    "faultbook.request.id": "request_id",
    "faultbook.state": "state",
    "faultbook.settled_late": "settled_late",
    "faultbook.unsettled.reason": "reason",
    "faultbook.omitted_tool_images": "omitted_tool_images",
    "faultbook.usage.status": "usage_status",
    "faultbook.usage.cache_included": "cache_included",
}
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read.input_tokens": "cache_read_tokens",
    "cache_creation.input_tokens": "cache_creation_tokens",
    "reasoning.output_tokens": "reasoning_tokens",
}


def to_otel(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One span a request, as plain data.

    Tokens stand under `gen_ai.usage.` only where a request is metered ("reported"): a reader adds these up. What is
    reported in part, such as the count in the midst of an answer, stands under `faultbook.usage.partial.`; suspect
    zeros are left out. Token counts are as reported: `faultbook.usage.cache_included` says whether the input holds
    what was read from a cache.

    Parameters
    ----------
    rows : iterable of mappings
        As `faultbook.runtime.ledger.Ledger.requests` yields them.

    Yields
    ------
    dict
        `schema_url`, `format_version`, `trace_id` (32 hexadecimal digits, one a run), `span_id` (16), `name`, `kind`,
        `start_time` and `end_time` (ISO, UTC; left out if not known), `status` ("OK", "ERROR", or "UNSET" where the end
        is not known) and `attributes`.
    """
    return (_span(row) for row in rows)


def write_otel(rows: Iterable[Mapping[str, Any]], path: str | Path) -> int:
    """Write one span a line as JSON. The file is there as a whole or not at all.

    Returns
    -------
    int
        How many spans.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    target, spans = Path(path), 0
    try:
        with whole_file(target) as file:
            for span in to_otel(rows):
                line = json.dumps(redacted(span), ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
                file.write(line.encode())
                spans += 1
    except OSError as error:
        raise DataError(f"cannot be written ({error.strerror})", file=target) from None
    return spans


def _span(row: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: row[column] for name, column in _PLAIN.items() if row.get(column) is not None}
    operation, model = row.get("operation"), row.get("model")
    times = {"start_time": row.get("started_at"), "end_time": row.get("ended_at")}
    return {
        "schema_url": CONVENTIONS,
        "format_version": FORMAT_VERSION,
        "trace_id": _digest(row.get("run_id"))[:32],
        "span_id": _digest(*(row.get(name) for name in ("run_id", "trial_id", "attempt", "request_id")))[:16],
        "name": " ".join(str(part) for part in (operation, model) if part) or "request",
        "kind": "CLIENT",
        **{name: time for name, time in times.items() if time is not None},
        "status": _status(row),
        "attributes": {**known, **_usage(row)},
    }


def _usage(row: Mapping[str, Any]) -> dict[str, int]:
    beginnings = {"reported": "gen_ai.usage.", "partial": "faultbook.usage.partial."}
    beginning = beginnings.get(str(row.get("usage_status")))
    if beginning is None:
        return {}
    return {f"{beginning}{name}": row[column] for name, column in _USAGE.items() if row.get(column) is not None}


def _status(row: Mapping[str, Any]) -> str:
    if row.get("error_type") is not None:
        return "ERROR"
    return "OK" if row.get("state") == "completed" else "UNSET"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()
