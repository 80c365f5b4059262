"""Step numbers: what is one, what is none, and that a column is read as its cells are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.attribution.steps import parse_step, parse_text_steps


@pytest.mark.parametrize("value", ["3", 3, 3.0, "3.0", " 3 ", "03", "3.000", np.int64(3), np.float32(3), np.uint8(3)])
def test_a_step(value: object) -> None:
    # loongsuite-pilot PR 342: "1" was rejected and 1.5 accepted
    step = parse_step(value)
    assert step == 3
    assert type(step) is int
    assert parse_step(value, base=1) == 2


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.5, "step is 1.5, not a whole number"),
        ("1.5", "step is '1.5', not a whole number"),
        ("three", "step is 'three', not a whole number"),
        ("3 and 5", "step is '3 and 5', not a whole number"),
        ("", "step is '', not a whole number"),
        (None, "step is None, not a whole number"),
        (True, "step is True, not a whole number"),
        (False, "step is False, not a whole number"),
        (np.True_, "step is True, not a whole number"),
        (float("nan"), "step is nan, not a whole number"),
        (float("inf"), "step is inf, not a whole number"),
        (pd.NA, "step is <NA>, not a whole number"),
        ([3], r"step is \[3\], not a whole number"),
        ({"step": 3}, "step is {'step': 3}, not a whole number"),
        ("²", "step is '²', not a whole number"),
        ("٣", "step is '٣', not a whole number"),
        ("1e2", "step is '1e2', not a whole number"),
        ("0x3", "step is '0x3', not a whole number"),
        ("-0", "step is '-0', not a whole number"),
        (-1, "step is -1, but steps count from 0"),
        (-1.0, "step is -1.0, but steps count from 0"),
        ("-1", "step is '-1', but steps count from 0"),
        (10**400, "step is a number of 10 digits or more, beyond any log"),
        (-(10**400), "step is a number of 10 digits or more, but steps count from 0"),
        (1e300, r"step is 1e\+300, beyond any log"),
    ],
)
def test_no_step(value: object, found: str) -> None:
    with pytest.raises(ValueError, match=f"^{found}$"):
        parse_step(value)


def test_an_integer_that_python_refuses_to_write_out() -> None:
    with pytest.raises(ValueError, match=r"^step is a number of 10 digits or more, beyond any log$"):
        parse_step(10**5_000)


def test_the_first_step_is_the_base() -> None:
    assert parse_step(0) == 0
    assert parse_step("1", base=1) == 0
    with pytest.raises(ValueError, match=r"^step is 0, but steps count from 1$"):
        parse_step(0, base=1)


def test_messages_are_short() -> None:
    for value in ("9" * 10_000, ["x" * 10_000] * 100, {"a": {"b": "x" * 10_000}}):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            parse_step(value)
        assert len(str(caught.value)) < 500


CELLS = st.one_of(
    st.integers(-5, 10**12).map(str),
    st.floats(allow_nan=True).map(str),
    st.text("0123456789.-+ e²x\n", max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(CELLS, max_size=8))
@example(["3", "3.0", " 3", "3.5", "", "²", "-1", "1" * 9, "1" * 10])
def test_a_column_is_read_as_its_cells_are(cells: list[str]) -> None:
    steps, unreadable = parse_text_steps(pd.Series(cells, dtype=object))
    assert (steps.dtype, unreadable.dtype) == (np.int64, np.bool_)
    for cell, step, bad in zip(cells, steps, unreadable, strict=True):
        assert bad == (_parsed(cell) is None)
        if not bad:
            assert step == _parsed(cell)


def _parsed(cell: Any) -> int | None:
    try:
        return parse_step(cell)
    except ValueError:
        return None
