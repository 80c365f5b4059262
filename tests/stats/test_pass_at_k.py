"""pass@k: the share of all subsets by enumeration, and what is not estimable."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.stats.paired_difference import mean_difference
from faultbook.stats.pass_at_k import mean_pass_at_k, pass_at_k


@pytest.mark.parametrize("attempts", range(8))
def test_share_of_subsets_with_a_success(attempts: int) -> None:
    for successes, k in itertools.product(range(attempts + 1), range(1, attempts + 1)):
        outcomes = [i < successes for i in range(attempts)]
        subsets = list(itertools.combinations(outcomes, k))
        assert pass_at_k(successes, attempts, k) == sum(map(any, subsets)) / len(subsets)


# Unbiased: Chen et al. (2021), arXiv 2107.03374, appendix A. Over all numbers of successes of n attempts that succeed
# with probability p, the mean is exactly 1 − (1 − p)^k.
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 3), (5, 5), (12, 4)])
def test_unbiased(n: int, k: int) -> None:
    for p in (0.1, 0.5, 0.9):
        mean = math.fsum(math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(c, n, k) for c in range(n + 1))
        assert mean == pytest.approx(1 - (1 - p) ** k, rel=1e-12)


# inspect_ai, pull request 3911: pass@k of fewer than k scored epochs came out as 1.0.
@pytest.mark.parametrize(("successes", "attempts", "k"), [(0, 0, 1), (1, 1, 2), (4, 4, 5), (0, 3, 5), (3, 3, 10**6)])
def test_fewer_than_k_attempts_are_not_estimable(successes: int, attempts: int, k: int) -> None:
    assert math.isnan(pass_at_k(successes, attempts, k))


@settings(deadline=None)
@given(st.integers(1, 300), st.data())
def test_nearest_double_in_range_and_monotone(attempts: int, data: st.DataObject) -> None:
    successes, k = data.draw(st.integers(0, attempts)), data.draw(st.integers(1, attempts))
    found = pass_at_k(successes, attempts, k)
    missed = Fraction(1)
    for i in range(k):
        missed *= Fraction(max(attempts - successes - i, 0), attempts - i)
    assert found == float(1 - missed)
    assert 0 <= found <= 1
    assert (found == 0) == (successes == 0)
    assert pass_at_k(successes, attempts, 1) == successes / attempts
    if successes < attempts:
        assert pass_at_k(successes + 1, attempts, k) >= found
    if k < attempts:
        assert pass_at_k(successes, attempts, k + 1) >= found


def test_a_rare_success_keeps_its_digits() -> None:
    # 1 of 10^6 attempts, pass@2 = 2/10^6: 1 minus a product would have lost ten digits
    assert pass_at_k(1, 10**6, 2) == 2e-6
    assert pass_at_k(500, 1_000, 100) == 1.0  # the nearest double


def test_mean_over_tasks() -> None:
    result = mean_pass_at_k([0, 1, 2, 4], [4, 4, 5, 4], 2)
    values = [0, 3 / 6, 7 / 10, 1]
    assert result.estimate == pytest.approx(np.mean(values), rel=1e-15)
    by_tasks = mean_difference(values)
    assert (result.low, result.high) == (max(by_tasks.low, 0), min(by_tasks.high, 1))
    assert (result.k, result.n_tasks, result.n_lacking, result.degenerate) == (2, 4, 0, False)
    assert result.method == "unbiased pass@2, t over 4 tasks"
    frame = result.summary_frame()
    assert list(frame.columns) == ["k", "estimate", "low", "high", "level", "n_tasks", "n_lacking", "method",
                                   "degenerate"]  # fmt: skip


def test_one_task_without_k_attempts_leaves_no_mean() -> None:
    result = mean_pass_at_k([3, 3, 0, 2], [5, 3, 0, 2], 3)
    assert math.isnan(result.estimate)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert (result.n_tasks, result.n_lacking, result.degenerate) == (4, 2, True)
    assert result.method == "not estimable: 2 of 4 tasks have fewer than 3 scored attempts"
    assert mean_pass_at_k([3, 3], [5, 3], 3).n_lacking == 0


def test_without_spread_there_is_no_interval() -> None:
    for successes, attempts in [([2], [4]), ([4, 4, 4], [4, 4, 4]), ([0, 0], [5, 9])]:
        result = mean_pass_at_k(successes, attempts, 2)
        assert result.degenerate
        assert math.isnan(result.low)
        assert math.isnan(result.high)
        assert result.estimate == pass_at_k(successes[0], attempts[0], 2)
        assert "degenerate, no interval" in result.method


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20), st.integers(1, 5))
def test_mean_in_any_order(tasks: list[tuple[int, int]], k: int) -> None:
    pairs = [(min(t), max(t)) for t in tasks]
    result = mean_pass_at_k([c for c, _ in pairs], [n for _, n in pairs], k)
    turned = mean_pass_at_k([c for c, _ in pairs[::-1]], [n for _, n in pairs[::-1]], k)
    assert result.n_lacking == turned.n_lacking == sum(n < k for _, n in pairs)
    if result.n_lacking:
        assert math.isnan(result.estimate)
        return
    assert (result.estimate, result.degenerate) == (turned.estimate, turned.degenerate)
    exact = sum(Fraction(pass_at_k(c, n, k)) for c, n in pairs) / len(pairs)
    assert result.estimate == pytest.approx(float(exact), rel=1e-14)
    if not result.degenerate:
        assert 0 <= result.low <= result.estimate <= result.high <= 1


@pytest.mark.parametrize(
    ("successes", "attempts", "k", "message"),
    [
        (3, 2, 1, "there are 3 successes in 2 attempts; give successes first"),
        (0, 2, 0, "k is 0; give at least 1 attempt"),
        (0, 2, 1.5, r"k is 1\.5"),
        (-1, 2, 1, "successes is -1"),
        (0, None, 1, "attempts is None"),
        (pd.NA, 2, 1, "successes is <NA>"),
        (True, 2, 1, "successes is True"),
    ],
)
def test_counts_that_are_none_are_refused(successes: Any, attempts: Any, k: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_at_k(successes, attempts, k)
    with pytest.raises(ValueError, match=message):
        mean_pass_at_k([1, successes], [1, attempts], k)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no task"):
        mean_pass_at_k([], [], 1)
    with pytest.raises(ValueError, match="there are 1 successes and 2 attempts"):
        mean_pass_at_k([1], [1, 2], 1)
    with pytest.raises(ValueError, match="different indexes"):
        mean_pass_at_k(pd.Series([1, 1], index=["x", "y"]), pd.Series([1, 2], index=["y", "x"]), 1)
    with pytest.raises(ValueError, match="level is 95"):
        mean_pass_at_k([1], [2], 1, level=95)
