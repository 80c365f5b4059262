"""What is shown instead of an observation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.recovery.simulate.conditions import LEAST_FORK, MISSING_TEXT, shown
from faultbook.tables import CONDITIONS

TEXTS = ["opening", "first", "second", "third"]


@pytest.mark.parametrize(
    ("condition", "text"), [("clean", "third"), ("stale1", "second"), ("stale2", "first"), ("missing", MISSING_TEXT)]
)
def test_each_condition_shows_its_text(condition: str, text: str) -> None:
    assert shown(condition, TEXTS) == text


def test_the_opening_text_is_history_too() -> None:
    assert shown("stale2", TEXTS[: LEAST_FORK + 1]) == "opening"


@pytest.mark.parametrize(("condition", "n"), [("stale2", 2), ("stale1", 1), ("clean", 0)])
def test_too_little_history_is_refused(condition: str, n: int) -> None:
    with pytest.raises(ValueError, match=f"'{condition}' needs"):
        shown(condition, TEXTS[:n])


def test_an_unknown_condition_is_named() -> None:
    with pytest.raises(ValueError, match=r"'condition' must be one of 'clean'.*found 'stale3'"):
        shown("stale3", TEXTS)


@given(st.lists(st.text(), min_size=3), st.sampled_from(CONDITIONS))
def test_history_is_never_changed(texts: list[str], condition: str) -> None:
    before = list(texts)
    shown(condition, texts)
    assert texts == before
