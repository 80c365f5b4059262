"""What happens to a request: it starts, and is completed, denied or left unsettled; each an event that a ledger keeps.

An event holds no secrets: whatever is given is cleaned when it is made. What was not metered is missing, never 0.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from faultbook.processes import boot_id
from faultbook.runtime.redaction import redacted, redacted_text

STATES = ("started", "completed", "denied", "unsettled")
USAGE_STATUSES = ("reported", "absent", "zero_suspect", "partial")

IDS = ("run_id", "trial_id", "attempt", "request_id")
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
USAGE = (*COUNTS, "cache_included", "cost_usd", "usage_status")
FIELDS = (
    *("model", "operation", "provider", "conversation_id", "omitted_tool_images"),
    *(*USAGE, "finish_reasons", "response_model", "response_id", "error_type", "denial", "reason", "detail"),
)
JSON_FIELDS = ("finish_reasons", "denial", "detail")
COLUMNS = (*IDS, "event", "at", "monotonic", "boot", *FIELDS)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request used, as its provider reports it. What is not reported is None.

    Attributes
    ----------
    input_tokens, output_tokens : int or None
    cache_read_tokens, cache_creation_tokens, reasoning_tokens : int or None
    cache_included : bool or None
        Whether `input_tokens` holds what was read from a cache.
    cost_usd : float or None
        As reported, in US dollars.
    is_final : bool
        False for a number from the midst of an answer, which is no total.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_included: bool | None = None
    cost_usd: float | None = None
    is_final: bool = True

    def __post_init__(self) -> None:
        for name in COUNTS:
            _count(name, getattr(self, name))
        cost = self.cost_usd
        if cost is not None and (isinstance(cost, bool) or not math.isfinite(cost) or cost < 0):
            raise ValueError(f"cost_usd must be a finite number of at least 0 or None; found {cost!r}")

    @property
    def status(self) -> str:
        """How far it is metered: one of `USAGE_STATUSES`. Two zeros are suspect: no model answers without a token."""
        given = [tokens for tokens in (self.input_tokens, self.output_tokens) if tokens is not None]
        if not given:
            return "absent"
        if not any(given):
            return "zero_suspect"
        return "reported" if len(given) == 2 and self.is_final else "partial"


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a request, without secrets, and when; made by `started`, `completed`, `denied`, `unsettled`."""

    ids: tuple[str, str, int, str]
    kind: str
    fields: Mapping[str, Any]
    at: str = field(default_factory=lambda: now())
    monotonic: float = field(default_factory=time.monotonic)

    @property
    def payload(self) -> tuple[Any, ...]:
        """What a second delivery must agree in: all but the times."""
        return tuple(self.fields.get(name) for name in FIELDS)

    @property
    def row(self) -> tuple[Any, ...]:
        """Values of all columns."""
        return (*self.ids, self.kind, self.at, self.monotonic, _boot(), *self.payload)


def started(
    run_id: str,
    trial_id: str,
    attempt: int,
    request_id: str,
    *,
    model: str,
    operation: str,
    provider: str | None = None,
    conversation_id: str | None = None,
    omitted_tool_images: int = 0,
    detail: Mapping[str, Any] | None = None,
) -> Event:
    """A request is about to be sent.

    Parameters
    ----------
    run_id, trial_id, request_id : str
        Not empty.
    attempt : int
        Which attempt at the trial, at least 0.
    model, operation, provider, conversation_id : str
        Which model is asked, to do what ("chat", "embeddings", …), where, and as part of which conversation.
    omitted_tool_images : int
        Images of tools that were left out of this request.
    detail : mapping, optional
        Anything else.

    Raises
    ------
    ValueError
        If an id is empty or a number is none; so do the others.
    """
    return _event(
        *("started", run_id, trial_id, attempt, request_id),
        model=model,
        operation=operation,
        provider=provider,
        conversation_id=conversation_id,
        omitted_tool_images=_count("omitted_tool_images", omitted_tool_images),
        detail=detail,
    )


def completed(
    run_id: str,
    trial_id: str,
    attempt: int,
    request_id: str,
    *,
    usage: Usage | None = None,
    finish_reasons: Iterable[str] | None = None,
    response_model: str | None = None,
    response_id: str | None = None,
    error_type: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Event:
    """An answer has come to its end; with `error_type`, as an error of the provider.

    `usage=None` says that nothing was reported. A request that is unsettled may be completed late.
    """
    metered = usage or Usage()
    return _event(
        *("completed", run_id, trial_id, attempt, request_id),
        **{name: getattr(metered, name) for name in USAGE if name != "usage_status"},
        usage_status=metered.status,
        finish_reasons=None if finish_reasons is None else [*finish_reasons],
        response_model=response_model,
        response_id=response_id,
        error_type=error_type,
        detail=detail,
    )


def denied(run_id: str, trial_id: str, attempt: int, request_id: str, *, denial: object) -> Event:
    """A request was not let through, and so not sent. `denial` is a text, a mapping, or an event with `as_dict`."""
    if hasattr(denial, "as_dict"):
        denial = denial.as_dict()
    elif dataclasses.is_dataclass(denial) and not isinstance(denial, type):
        denial = dataclasses.asdict(denial)
    kind = denial.get("kind") or denial.get("rule") if isinstance(denial, Mapping) else None
    return _event("denied", run_id, trial_id, attempt, request_id, denial=denial, error_type=str(kind or "denied"))


def unsettled(
    run_id: str, trial_id: str, attempt: int, request_id: str, *, reason: str = "it did not end while it was watched"
) -> Event:
    """It will not be known any more, or not yet, how a request ended."""
    return _event("unsettled", run_id, trial_id, attempt, request_id, reason=reason)


def _event(kind: str, run_id: str, trial_id: str, attempt: int, request_id: str, **fields: Any) -> Event:
    count = _count("attempt", attempt)
    if count is None:
        raise ValueError("attempt must be a whole number; found None")
    ids = (written_id("run_id", run_id), written_id("trial_id", trial_id), count, written_id("request_id", request_id))
    clean = {name: value if isinstance(value, (int, float)) else redacted(value) for name, value in fields.items()}
    for name in JSON_FIELDS:
        if clean.get(name) is not None:
            clean[name] = json.dumps(clean[name], sort_keys=True, ensure_ascii=False, allow_nan=False)
    return Event(ids, kind, clean)


def written_id(name: str, value: object) -> str:
    """An id as it is written; one that holds a secret stays one of its own by the digest of what it was."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a text that is not empty; found {value!r}")
    clean = redacted_text(value)
    return clean if clean == value else f"{clean}#{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:12]}"


def _count(name: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63):
        return value
    raise ValueError(f"{name} must be a whole number of at least 0; found {value!r}")


def now() -> str:
    """The time of day as a ledger holds it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@cache
def _boot() -> str | None:
    return boot_id()
