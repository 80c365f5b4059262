"""Columns of tables that people wrote: names out of some, amounts, and numbers of many digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.columns import Columns
from faultbook.errors import DataError
from faultbook.problems import Problems

FILE = Path("cells.csv")
COLOURS = ("red", "green")


def columns(*cells: Any, strict: bool = False, name: str = "c") -> tuple[Columns, Problems]:
    problems = Problems(strict)
    lines = pd.RangeIndex(2, 2 + len(cells))
    raw = pd.DataFrame({name: pd.Series(list(cells), index=lines, dtype=object)})
    return Columns(raw, FILE, problems), problems


def test_a_name_out_of_some_is_kept_and_another_is_missing_and_located() -> None:
    read, problems = columns("red", "blue", "", " green ")
    found = read.among("c", COLOURS)
    assert found.astype(object).where(found.notna(), None).tolist() == ["red", None, None, "green"]
    assert read.usable.all()
    (problem,) = problems.frame().to_dict("records")
    assert (problem["row"], problem["column"]) == ("3", "c")
    assert problem["problem"] == "'c' must be one of 'red' or 'green'; found 'blue'"


def test_a_row_that_needs_one_of_the_names_is_left_out_without_it() -> None:
    read, problems = columns("red", "blue", "", "Red", "green")
    read.among("c", COLOURS, required=True)
    assert read.usable.tolist() == [True, False, False, False, True]
    assert problems.frame()["row"].tolist() == ["4", "3", "5"]


def test_strict_raises_at_the_first_other_name() -> None:
    read, _ = columns("red", "x\ny\x1b[31m'", strict=True)
    with pytest.raises(DataError, match="row 3") as error:
        read.among("c", COLOURS)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_name_that_is_too_long_is_one_problem() -> None:
    read, problems = columns("r" * 501)
    assert read.among("c", COLOURS).isna().all()
    assert len(problems.frame()) == 1


def test_of_a_column_that_is_not_there_everything_is_missing() -> None:
    read, problems = columns("red")
    assert read.among("other", COLOURS).isna().all()
    assert np.isnan(read.amount("other")).all()
    assert problems.frame().empty


@pytest.mark.parametrize(("cell", "number"), [("0", 0.0), ("1.5", 1.5), (" 2e3 ", 2000.0), ("-0", 0.0), (7, 7.0)])
def test_amounts(cell: Any, number: float) -> None:
    read, problems = columns(cell)
    assert read.amount("c").tolist() == [number]
    assert problems.frame().empty


@pytest.mark.parametrize("cell", ["", "nan", "NA", "null", "None", None, np.nan, pd.NA])
def test_missing_amounts_are_no_problem_and_no_zero(cell: Any) -> None:
    read, problems = columns(cell)
    assert np.isnan(read.amount("c")).all()
    assert problems.frame().empty


@pytest.mark.parametrize(
    "cell",
    ["-1", "-1e-300", "inf", "-inf", "1e999", "true", "False", " TRUE ", "1,5", "1_000", "5s", "٣", "0x10", True],
)
def test_what_is_no_amount_is_missing_and_located_once(cell: Any) -> None:
    read, problems = columns("1", cell)
    found = read.amount("c")
    assert found[0] == 1
    assert np.isnan(found[1])
    assert problems.frame()["row"].tolist() == ["3"]


def test_a_feature_may_be_a_boolean() -> None:
    read, problems = columns("true", "false", "0.5")
    assert read.feature("c").tolist() == [1.0, 0.0, 0.5]
    assert problems.frame().empty


@pytest.mark.parametrize(("digits", "ok"), [(9, False), (10, True), (15, True)])
def test_whole_numbers_have_as_many_digits_as_the_column_allows(digits: int, ok: bool) -> None:
    read, problems = columns("9999999999")
    assert read.whole("c", digits=digits).isna().tolist() == [not ok]
    assert problems.frame().empty == ok


def test_the_longest_whole_number_is_exact() -> None:
    read, _ = columns("999999999999999", "123456789012345.0")
    assert read.whole("c", digits=15).tolist() == [999_999_999_999_999, 123_456_789_012_345]


CELLS = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "red", "green", "true", "1", "-1", "nan", "inf", "\x00", "'", '"', "\ud800", "1e5", "9" * 16]
        ),
        st.text(max_size=4),
        st.floats(),
        st.integers(-5, 2**70),
        st.booleans(),
        st.none(),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(CELLS)
def test_whatever_a_cell_holds_it_is_read_or_located(cells: list[Any]) -> None:
    read, problems = columns(*cells)
    names, amounts, wholes = read.among("c", COLOURS), read.amount("c"), read.whole("c")
    assert set(names.dropna()) <= set(COLOURS)
    assert not (amounts < 0).any()
    assert not np.isinf(amounts).any()
    assert not (wholes.dropna() < 0).any()
    assert len(names) == len(amounts) == len(wholes) == len(cells)
    for problem in problems.frame().to_dict("records"):
        assert 2 <= int(problem["row"]) < 2 + len(cells)
        assert "\n" not in problem["problem"]
