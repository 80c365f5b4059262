"""One sentence per error: what was found, where, and what would mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultbook.errors import DataError, FaultbookError, ParameterError, one_of


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ({}, "empty"),
        ({"file": "a.csv"}, "a.csv: empty"),
        ({"file": Path("data") / "a.csv", "row": 3}, "data/a.csv, row 3: empty"),
        ({"file": "a.csv", "row": 3, "column": "unit"}, "a.csv, row 3, column 'unit': empty"),
        ({"row": "relation 2", "column": "cells"}, "row relation 2, column 'cells': empty"),
        ({"column": "unit", "mend": "write 's'"}, "column 'unit': empty; write 's'"),
        ({"mend": "fill it"}, "empty; fill it"),
        ({"file": "a.csv", "row": 0}, "a.csv, row 0: empty"),
    ],
)
def test_sentence_names_the_places_that_are_known(places: dict[str, object], sentence: str) -> None:
    assert str(DataError("empty", **places)) == sentence


def test_sentence_is_one_line_whatever_the_problem_holds() -> None:
    error = DataError("two\nlines\r\n and\ta tab", file="odd\nname.csv", mend="a\n\nb")
    assert str(error) == "odd name.csv: two lines and a tab; a b"


def test_parts_stay_readable_for_programs() -> None:
    error = DataError("empty", file="a.csv", row=3, column="unit", mend="fill it")
    assert (error.problem, error.file, error.row, error.column, error.mend) == ("empty", "a.csv", 3, "unit", "fill it")


@pytest.mark.parametrize("kind", [DataError, ParameterError])
def test_every_error_of_the_input_can_be_caught_as_one(kind: type[FaultbookError]) -> None:
    with pytest.raises(FaultbookError, match=r"^bad$"):
        raise kind("bad")


def test_errors_of_the_input_are_no_value_errors() -> None:
    # `audit` turns ValueErrors into DataErrors; were a DataError one, its place would be lost on the way.
    assert not issubclass(DataError, ValueError)


@pytest.mark.parametrize(
    ("allowed", "sentence"),
    [
        (["a"], "'kind' must be 'a'; found 'x'"),
        (["a", "b"], "'kind' must be one of 'a' or 'b'; found 'x'"),
        (("a", "b", "c"), "'kind' must be one of 'a', 'b' or 'c'; found 'x'"),
    ],
)
def test_one_of_lists_the_choices(allowed: list[str], sentence: str) -> None:
    assert one_of("kind", "x", allowed) == sentence
