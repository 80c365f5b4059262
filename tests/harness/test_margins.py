"""What published margins allow, and what they do not."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.harness.margins import from_margins


def test_the_published_7_and_10_of_21() -> None:
    # Section 3.3 of the reference: every split of 7 and 10 of 21, and its exact p.
    found = from_margins(7, 10, 21)
    assert list(found.splits.columns) == ["both", "only_a", "only_b", "neither", "p", "low", "high"]
    assert found.splits[["only_a", "only_b"]].values.tolist() == [[n, n + 3] for n in range(8)]
    assert found.splits["p"].round(3).tolist() == [0.25, 0.375, 0.453, 0.508, 0.549, 0.581, 0.607, 0.629]
    assert (found.splits[["both", "only_a", "only_b", "neither"]].sum(axis=1) == 21).all()
    assert (round(found.least_p, 3), round(found.most_p, 3)) == (0.25, 0.629)
    assert round(found.difference, 1) == -14.3
    assert found.statement == (
        "no difference is detected at 0.05, whichever split is the true one; a single p cannot be stated, "
        "8 tables fit the margins"
    )
    # The split of section 3.2 has the interval of Bonett and Price given there.
    split = found.splits[found.splits["only_a"] == 2].iloc[0]
    assert [round(split["low"], 1), round(split["high"], 1)] == [-38.0, 12.0]
    assert found.bounds.low == found.bounds.high == pytest.approx(found.difference)
    assert found.summary_frame() is found.splits


def extremes(solved_a: int, solved_b: int, pairs: int, planned: int) -> tuple[Fraction, Fraction]:
    """The least and the greatest difference over every way the open outcomes of either arm may come out."""
    ends = [
        Fraction(solved_a + sum(first) - solved_b - sum(second), planned)
        for first in itertools.product((0, 1), repeat=planned - pairs)
        for second in itertools.product((0, 1), repeat=planned - pairs)
    ]
    return min(ends), max(ends)


def test_the_24_planned_tasks_of_the_published_run() -> None:
    # 21 and 22 finished of 24: b has one more, whose outcome is not published, so it is open like the others.
    found = from_margins(7, 10, 21, planned=24, finished_a=21, finished_b=22)
    assert extremes(7, 10, 21, 24) == (Fraction(-1, 4), Fraction(0))
    assert (found.bounds.low, found.bounds.high) == (-25.0, 0.0)
    assert found.bounds.could_turn == "it could level it"
    assert found.bounds == from_margins(7, 10, 21, planned=24).bounds


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2), st.data())
def test_bounds_are_those_of_every_completion(pairs: int, missing: int, data: st.DataObject) -> None:
    solved = [data.draw(st.integers(0, pairs)) for _ in range(2)]
    found = from_margins(*solved, pairs, planned=pairs + missing)
    low, high = extremes(*solved, pairs, pairs + missing)
    assert found.bounds.low == pytest.approx(float(100 * low))
    assert found.bounds.high == pytest.approx(float(100 * high))
    swapped = from_margins(*solved[::-1], pairs, planned=pairs + missing)
    assert (swapped.bounds.low, swapped.bounds.high) == (-found.bounds.high, -found.bounds.low)
    assert swapped.difference == -found.difference
    assert len(swapped.splits) == len(found.splits)
    assert swapped.most_p == found.most_p or math.isnan(found.most_p)
    tables = found.splits[["both", "only_a", "only_b", "neither"]]
    assert (tables >= 0).all(axis=None)
    assert (tables["both"] + tables["only_a"] == solved[0]).all()
    assert (tables["both"] + tables["only_b"] == solved[1]).all()


@pytest.mark.parametrize(
    ("solved", "pairs", "alpha", "verdict", "tables"),
    [
        ((0, 0), 5, 0.05, "no difference is detected at 0.05, whichever split is the true one", 1),
        ((5, 5), 5, 0.05, "no difference is detected at 0.05, whichever split is the true one", 1),
        ((7, 10), 21, 0.2, "no difference is detected at 0.2, whichever split is the true one", 8),
        ((0, 10), 10, 0.05, "a difference is detected at 0.05, whichever split is the true one", 1),
        ((1, 19), 20, 0.05, "a difference is detected at 0.05, whichever split is the true one", 2),
        # 0 and 9 have p = 2/2**9 = .0039, 1 and 10 have 24/2**11 = .0117.
        ((1, 10), 20, 0.05, "a difference is detected at 0.05, whichever split is the true one", 2),
        ((1, 10), 20, 0.01, "whether a difference is detected at 0.01 depends on the split, which is not published", 2),
        ((1, 10), 20, 0.001, "no difference is detected at 0.001, whichever split is the true one", 2),
    ],
)
def test_what_can_be_stated(solved: tuple[int, int], pairs: int, alpha: float, verdict: str, tables: int) -> None:
    rest = f"a single p cannot be stated, {tables} tables fit the margins"
    expected = f"{verdict}; {'the margins allow one table only' if tables == 1 else rest}"
    assert from_margins(*solved, pairs, alpha=alpha).statement == expected
    assert from_margins(*solved[::-1], pairs, alpha=alpha).statement == expected


def test_without_a_discordant_pair_there_is_no_p() -> None:
    found = from_margins(5, 5, 5)
    assert found.splits["p"].isna().all()
    assert math.isnan(found.least_p)
    assert math.isnan(found.most_p)
    assert found.difference == 0
    assert found.bounds.could_turn == "no"
    some = from_margins(2, 2, 4)
    assert some.splits["p"].isna().tolist() == [True, False, False]
    assert (some.least_p, some.most_p) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("numbers", "more"),
    [
        ((8, 3, 7), {}),
        ((3, 8, 7), {}),
        ((-1, 3, 7), {}),
        ((0, 0, 0), {}),
        ((7, 10, 21), {"planned": 20}),
        ((7, 10, 21), {"planned": 24, "finished_a": 20}),
        ((7, 10, 21), {"planned": 24, "finished_b": 25}),
        ((7, 10, 21), {"finished_b": 22}),
        # 22 and 23 finished of 24 share at least 21 tasks, and 24 and 24 share all of them.
        ((7, 10, 21), {"planned": 24, "finished_a": 24, "finished_b": 24}),
        ((7, 10, 21), {"planned": 24, "finished_a": 23, "finished_b": 23}),
    ],
)
def test_numbers_that_contradict_one_another_are_refused(numbers: tuple[int, int, int], more: dict[str, Any]) -> None:
    with pytest.raises(FaultbookError, match="cannot be"):
        from_margins(*numbers, **more)


@pytest.mark.parametrize(("first", "second"), [(21, 24), (22, 23), (24, 21), (21, 21)])
def test_numbers_that_may_be(first: int, second: int) -> None:
    found = from_margins(7, 10, 21, planned=24, finished_a=first, finished_b=second)
    assert (found.bounds.low, found.bounds.high) == (-25.0, 0.0)
