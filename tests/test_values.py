"""Values of other tools' documents: as they are or missing, and never made up."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook import values

NAIVE, UTC, EAST = "2026-07-01T10:00:00", "2026-07-01T10:00:00Z", "2026-07-01T12:00:00+02:00"
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**400),
    st.floats(),
    st.text(max_size=6),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.binary(max_size=3),
)


def test_parts_of_documents() -> None:
    document = {"a": {"b": [1]}, "n": None}
    assert values.part(document, "a", "b") == [1]
    assert values.part(document, "a", "c") is None
    assert values.part(document, "a", "b", "c") is None
    assert values.part(document, "n", "x") is None
    assert values.part([1], "a") is None
    assert values.part(document) is document


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (" a\n\tb ", "a b"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("", None),
        ("  \n", None),
        (7, "7"),
        (0, "0"),
        (1.5, "1.5"),
        (True, None),
        (False, None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        pytest.param(10**5000, None, id="5001 digits"),
        ("\ud800", None),
        ("a\ud800b", "ab"),
        (["x"], None),
        (b"x", None),
    ],
)
def test_texts(value: Any, text: str | None) -> None:
    assert values.text(value) == text


def test_a_long_text_is_cut() -> None:
    assert len(values.text("x" * 10_000) or "") < 400


@pytest.mark.parametrize(
    ("value", "number", "amount", "count"),
    [
        (0, 0, 0, 0),
        (3, 3, 3, 3),
        (3.0, 3, 3, 3),
        (3.5, 3.5, 3.5, None),
        (-1, -1, None, None),
        (-0.0, 0, 0, 0),
        (2**53 - 1, 2**53 - 1, 2**53 - 1, 2**53 - 1),
        (2**53, 2**53, 2**53, None),
        pytest.param(10**400, None, None, None, id="401 digits"),
        (math.nan, None, None, None),
        (-math.inf, None, None, None),
        (True, None, None, None),
        (False, None, None, None),
        ("3", None, None, None),
        (None, None, None, None),
        ([], None, None, None),
    ],
)
def test_numbers(value: Any, number: float | None, amount: float | None, count: int | None) -> None:
    assert values.number(value) == number
    assert values.amount(value) == amount
    assert values.count(value) == count


@pytest.mark.parametrize(("value", "truth"), [(True, True), (False, False), (1, None), (0, None), ("true", None)])
def test_truths(value: Any, truth: bool | None) -> None:
    assert values.truth(value) is truth


@pytest.mark.parametrize("value", [None, "", "yesterday", 1_780_000_000, "2026-13-01T00:00:00", "10:00", UTC + "x", []])
def test_what_is_no_time_is_missing(value: Any) -> None:
    assert values.stamp(value) is None
    assert values.seconds_between(value, UTC) == (None, None)
    assert values.seconds_between(UTC, value) == (None, None)


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        (UTC, "2026-07-01T10:00:01.5Z", 1.5),
        (UTC, EAST, 0.0),
        (EAST, "2026-07-01T10:00:00.000001+00:00", 1e-6),
        (NAIVE, "2026-07-01T10:01:00", 60.0),
        (f" {UTC}\n", "2026-07-01T09:00:10-01:00", 10.0),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-12:00", 26 * 3600.0),
    ],
)
def test_durations(start: str, end: str, seconds: float) -> None:
    assert values.seconds_between(start, end) == (seconds, None)


@pytest.mark.parametrize(("start", "end"), [(NAIVE, UTC), (UTC, NAIVE), (NAIVE, EAST)])
def test_two_clocks_are_not_subtracted(start: str, end: str) -> None:
    seconds, note = values.seconds_between(start, end)
    assert seconds is None
    assert "a local time without offset stands beside one with offset" in (note or "")


def test_a_reversed_span_is_no_duration() -> None:
    assert values.seconds_between("2026-07-01T10:00:00.000001Z", UTC) == (None, "it ends before it starts: no duration")


@settings(max_examples=100, deadline=None)
@given(VALUES, VALUES)
def test_nothing_is_made_up(value: Any, other: Any) -> None:
    if (text := values.text(value)) is not None:
        assert isinstance(value, (str, int, float))
        assert not isinstance(value, bool)
        assert text.strip()
        assert "\n" not in text
        text.encode()
    for found in (values.number(value), values.amount(value), values.count(value)):
        assert found is None or (found == float(value) and math.isfinite(found))
    assert values.truth(value) in (None, value)
    assert values.stamp(value) is None or isinstance(values.stamp(value), datetime)
    seconds, _ = values.seconds_between(value, other)
    assert seconds is None or seconds >= 0


@settings(max_examples=60, deadline=None)
@given(st.datetimes(), st.datetimes(), st.timezones() | st.none())
def test_durations_of_any_times_of_one_kind(start: datetime, end: datetime, zone: Any) -> None:
    first, last = (time.replace(tzinfo=zone).isoformat() for time in (start, end))
    seconds, note = values.seconds_between(first, last)
    assert (seconds is None) == (note == "it ends before it starts: no duration")
    back, _ = values.seconds_between(last, first)
    assert seconds is not None or back is not None
