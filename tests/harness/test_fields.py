from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.harness import fields
from faultbook.tables import USAGE_STATUSES
from faultbook.taxonomy import Observation, causes, classify


@pytest.mark.parametrize(
    ("tokens", "status", "strict"),
    [
        ((None, None), "absent", "absent"),
        ((0, 0), "zero_suspect", "zero_suspect"),
        ((0, None), "zero_suspect", "zero_suspect"),
        ((None, 0), "zero_suspect", "zero_suspect"),
        ((0, 5), "reported", "zero_suspect"),
        ((5, 0), "reported", "reported"),
        ((5, None), "partial", "partial"),
        ((None, 5), "partial", "partial"),
        ((5, 5), "reported", "reported"),
    ],
)
def test_how_far_tokens_are_metered(tokens: tuple[int | None, int | None], status: str, strict: str) -> None:
    assert fields.usage_status(*tokens) == status
    assert fields.usage_status(*tokens, zero_means_nothing=True) == strict
    assert {status, strict} <= set(USAGE_STATUSES)


@pytest.mark.parametrize("name", list(causes()))
def test_columns_that_follow_from_a_cause(name: str) -> None:
    found = classify([Observation("runtime", name)])
    one = causes()[name]
    with_verdict = fields.cause_fields(found, True, None)
    assert with_verdict["cause"] == name
    assert with_verdict["reward_valid"] is one.verdict_stands
    assert fields.cause_fields(found, None, 0.0)["reward_valid"] is one.verdict_stands
    assert fields.cause_fields(found, False, None)["reward_valid"] is one.verdict_stands
    assert fields.cause_fields(found, None, None)["reward_valid"] is None
    assert with_verdict["other_causes"] is None


def test_further_causes_are_named() -> None:
    found = classify([Observation("harbor", "AgentTimeoutError"), Observation("harbor", "VerifierTimeoutError")])
    assert fields.cause_fields(found, None, None)["other_causes"] == "verifier_failed"


def test_notes_stand_once() -> None:
    assert fields.joined_notes("a", None, "b", "", "a") == "a; b"
    assert fields.joined_notes(None, "") is None
    assert fields.joined_notes() is None


@given(st.integers(0) | st.none(), st.integers(0) | st.none())
def test_nothing_metered_is_absent_and_nothing_else_is(count: int | None, more: int | None) -> None:
    assert (fields.usage_status(count, more) == "absent") == (count is None and more is None)
