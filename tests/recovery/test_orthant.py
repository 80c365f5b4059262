"""The exact search for three thresholds, held against trying them all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.recovery import _grid, orthant
from faultbook.recovery._grid import Box, Grid, Ints, Thresholds, is_maximal, ranked
from faultbook.recovery.orthant import Maximum, Optimum, first_pass_terms, maximize

Rows = tuple[Ints, Ints, Ints, Ints]  # trajectory, points, gain, harm


def rows(trajectories: list[list[tuple[int, ...]]]) -> Rows:
    """Candidates as (a, b, c, gain, harm), by trajectory, in the order of time."""
    flat = [(number, *row) for number, candidates in enumerate(trajectories) for row in candidates]
    table = np.array(flat, dtype=np.int64).reshape(-1, 6)
    return table[:, 0], table[:, 1:4], table[:, 4], table[:, 5]


def attained(found: Rows, thresholds: tuple[int, ...], times: Ints | None = None) -> Optimum:
    """The rule itself, one candidate after the other."""
    trajectory, points, gain, harm = found
    sums, acted = [0, 0, 0], set()
    for row, number in enumerate(trajectory.tolist()):
        if number not in acted and (points[row] >= thresholds).all():
            acted.add(number)
            weight = 1 if times is None else int(times[number])
            sums = [a + weight * int(b) for a, b in zip(sums, (gain[row], harm[row], 1), strict=True)]
    return Optimum(*sums, thresholds)


def better(option: Optimum, best: Optimum) -> bool:
    """Gain, then fewer harms, then fewer interventions, then higher thresholds in the order of the axes."""
    if option.gain != best.gain:
        return option.gain > best.gain
    if option.harm != best.harm:
        return option.harm < best.harm
    if option.interventions != best.interventions:
        return option.interventions < best.interventions
    return best.thresholds is not None and option.thresholds is not None and option.thresholds > best.thresholds


def brute_force(found: Rows, most_harm: int, times: Ints | None = None) -> Optimum:
    best = Optimum(0, 0, 0, None)
    for thresholds in itertools.product(*(np.unique(column).tolist() for column in found[1].T)):
        option = attained(found, thresholds, times)
        if option.harm <= most_harm and better(option, best):
            best = option
    return best


def search(found: Rows, most_harm: int, times: Ints | None = None, **options: Any) -> Maximum:
    trajectory, points, _, _ = found

    def interventions(thresholds: Thresholds) -> int:
        acted = np.unique(trajectory[(points >= thresholds).all(axis=1)])
        return len(acted) if times is None else int(times[acted].sum())

    terms = first_pass_terms(*found)
    return maximize(terms, most_harm=most_harm, interventions=interventions, multiplicity=times, **options)


@pytest.fixture(params=["looked at whole", "cut into cells"])
def box_size(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small boxes exercise the bounds, which the defaults would leave to large inputs."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cut into cells":
            patch.setattr(orthant, "_LEAF", 1)
            patch.setattr(_grid, "_SPLITS", (2, 3))
        yield


VALUES = st.integers(0, 4)  # few, so that ties are the rule
WEIGHTS = st.sampled_from([(1, 0), (-1, 0), (0, 1), (0, 0), (1, 0)])  # disturbed, clean or without effect
CANDIDATE = st.tuples(VALUES, VALUES, VALUES, WEIGHTS).map(lambda row: (*row[:3], *row[3]))
TRAJECTORIES = st.lists(st.lists(CANDIDATE, max_size=4), max_size=20)
EVERY = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.usefixtures("box_size")
@EVERY
@given(TRAJECTORIES, st.integers(0, 3))
def test_the_search_finds_what_trying_all_finds(trajectories: list[list[tuple[int, ...]]], most_harm: int) -> None:
    found = rows(trajectories)
    result = search(found, most_harm)
    assert (result.exact, result.gap) == (True, 0)
    assert result.optima == (brute_force(found, most_harm),)


@pytest.mark.usefixtures("box_size")
@EVERY
@given(TRAJECTORIES, st.integers(0, 3), st.randoms(use_true_random=False))
def test_trajectories_may_count_several_times(
    trajectories: list[list[tuple[int, ...]]], most_harm: int, random: Any
) -> None:
    found = rows(trajectories)
    times = np.array([random.randint(0, 3) for _ in trajectories], dtype=np.int64)
    assert search(found, most_harm, times).optima == (brute_force(found, most_harm, times),)


@pytest.mark.usefixtures("box_size")
@EVERY
@given(TRAJECTORIES)
def test_every_limit_at_once_is_each_limit_alone(trajectories: list[list[tuple[int, ...]]]) -> None:
    found = rows(trajectories)
    at_once = search(found, 4, every_limit=True)
    assert at_once.exact
    assert at_once.optima == tuple(search(found, limit).optima[0] for limit in range(5))


@EVERY
@given(TRAJECTORIES, st.tuples(VALUES, VALUES, VALUES))
def test_the_sum_over_orthants_is_what_the_rule_attains(
    trajectories: list[list[tuple[int, ...]]], thresholds: Thresholds
) -> None:
    found = rows(trajectories)
    terms = first_pass_terms(*found)
    passes = (terms.points >= thresholds).all(axis=1)
    option = attained(found, thresholds)
    assert (int(terms.gain[passes].sum()), int(terms.harm[passes].sum())) == (option.gain, option.harm)


@pytest.mark.parametrize("seed", range(12))
def test_the_bounds_of_a_cell_hold_at_all_thresholds_in_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    weights = [(1, 0), (-1, 0), (0, 1), (0, 0)]
    found = [[(*rng.integers(0, 6, 3), *weights[rng.integers(4)]) for _ in range(3)] for _ in range(1 + seed % 6)]
    terms = first_pass_terms(*rows(found))
    values, index = ranked(terms.points)
    monkeypatch.setattr(_grid, "_SPLITS", (2, 2))
    grid = Grid(Box(terms.points, terms.gain, terms.harm, 3, 90), values, index)
    highest, least = grid.bounds()
    for cell in np.ndindex(*highest.shape):
        ranges = [range(grid.starts[axis][cell[axis]], grid.starts[axis][cell[axis] + 1]) for axis in range(3)]
        passes = [(index >= places).all(axis=1) for places in itertools.product(*ranges)]
        assert max(3 + terms.gain[passing].sum() for passing in passes) <= highest[cell]
        assert min(90 + terms.harm[passing].sum() for passing in passes) >= least[cell]


@pytest.mark.parametrize("n_candidates", [1, 3, 12])
@pytest.mark.usefixtures("box_size")
def test_many_candidates_a_trajectory(n_candidates: int) -> None:
    rng = np.random.default_rng(n_candidates)
    weights = [(1, 0), (-1, 0), (0, 1), (0, 0)]
    found = rows(
        [[(*rng.integers(0, 7, 3), *weights[rng.integers(4)]) for _ in range(n_candidates)] for _ in range(40)]
    )
    assert search(found, 2).optima == (brute_force(found, 2),)


def test_twenty_candidates_need_few_terms() -> None:
    # 2**20 − 1 products of indicators, of which almost all cancel
    rng = np.random.default_rng(0)
    found = rows([[(*rng.integers(0, 1000, 3), 1, 0) for _ in range(20)]])
    assert len(first_pass_terms(*found).points) < 400


# ---- ties --------------------------------------------------------------------------------------------------------


def test_of_equal_gains_the_one_with_fewer_harms_wins() -> None:
    # Low thresholds rescue both, high ones rescue one and cost nothing; the clean harm is on the way.
    found = rows([[(1, 1, 1, 1, 0)], [(3, 3, 3, 1, 0)], [(1, 1, 1, -1, 0)], [(2, 2, 2, 0, 1)]])
    assert search(found, 1).optima[0] == Optimum(1, 0, 1, (3, 3, 3))


def test_of_equal_harms_the_one_with_fewer_interventions_wins() -> None:
    # Each of two axes singles out one rescue from two harms; one of them lets pass what changes nothing, too.
    found = rows([[(9, 1, 0, 1, 0)], [(1, 9, 0, 1, 0)], [(1, 1, 0, -1, 0)], [(1, 1, 0, -1, 0)], [(9, 1, 0, 0, 0)]])
    assert search(found, 0).optima[0] == Optimum(1, 0, 1, (1, 9, 0))


def test_of_equal_interventions_the_higher_thresholds_win() -> None:
    found = rows([[(2, 3, 4, 1, 0)]])
    assert search(found, 0).optima[0].thresholds == (2, 3, 4)


def test_never_is_best_where_nothing_gains() -> None:
    found = rows([[(1, 1, 1, -1, 0)], [(2, 2, 2, 0, 0)], [(2, 2, 2, 0, 1)]])
    assert search(found, 5).optima == (Optimum(0, 0, 0, None),)
    assert search(rows([]), 5).optima == (Optimum(0, 0, 0, None),)


def test_a_later_candidate_acts_once_an_earlier_one_is_held() -> None:
    # Early harm, late rescue: the thresholds must hold the first and pass the second.
    found = rows([[(1, 9, 9, -1, 0), (2, 5, 5, 1, 0)]])
    assert search(found, 0).optima[0] == Optimum(1, 0, 1, (2, 5, 5))


def test_raising_a_threshold_may_add_harm() -> None:
    # An early intervention that changes nothing protects a clean run from a later one that harms it.
    found = rows([[(1, 0, 0, 0, 0), (2, 0, 0, 0, 1)], [(2, 0, 0, 1, 0)]])
    assert (attained(found, (1, 0, 0)).harm, attained(found, (2, 0, 0)).harm) == (0, 1)
    assert search(found, 0).optima[0] == Optimum(1, 0, 2, (1, 0, 0))


# ---- giving up ---------------------------------------------------------------------------------------------------


def noise(n: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    trajectory = np.repeat(np.arange(n // 3), 3)
    tau, is_clean = rng.integers(-1, 2, len(trajectory)), np.repeat(rng.random(n // 3) < 0.25, 3)
    points = rng.permuted(np.tile(np.arange(len(trajectory)), (3, 1)), axis=1).T
    return trajectory, points, np.where(is_clean, 0, tau), np.where(is_clean & (tau < 0), 1, 0)


def test_a_search_that_is_given_up_says_what_it_may_miss() -> None:
    found = noise(3_000)
    whole = search(found, 10)
    assert whole.exact
    for node_limit in (1, 2, 5, 20):
        part = search(found, 10, node_limit=node_limit)
        assert part.n_nodes <= node_limit
        assert part.optima[0].gain + part.gap >= whole.optima[0].gain
        assert not part.exact or part.optima == whole.optima
    assert not search(found, 10, node_limit=1).exact
    assert search(found, 10, node_limit=1).gap > 0


def test_a_frontier_that_is_given_up_says_what_it_may_miss() -> None:
    found = noise(3_000)
    whole, part = search(found, 6, every_limit=True), search(found, 6, every_limit=True, node_limit=3)
    assert whole.exact
    assert not part.exact
    for best, tried in zip(whole.optima, part.optima, strict=True):
        assert tried.gain <= best.gain <= tried.gain + part.gap


@pytest.mark.parametrize("kind", ["noise", "one value an axis", "one axis", "a diagonal", "against each other"])
def test_shapes_of_data_at_size(kind: str) -> None:
    trajectory, points, gain, harm = noise(6_000, seed=1)
    rank = points[:, 0]
    points = {
        "noise": points,
        "one value an axis": np.zeros_like(points),
        "one axis": np.column_stack([rank, 0 * rank, 0 * rank]),
        "a diagonal": np.column_stack([rank, rank, rank]),
        "against each other": np.column_stack([rank, rank[::-1], len(rank) - rank]),
    }[kind]
    result = search((trajectory, points, gain, harm), 20)
    assert result.exact
    best = result.optima[0]
    if best.thresholds is not None:
        assert best == attained((trajectory, points, gain, harm), best.thresholds)


def test_maximal_corners_have_no_other_above_them() -> None:
    at = np.random.default_rng(3).random((6, 7, 5)) < 0.2
    corners = np.argwhere(at)
    for corner in corners:
        above = (corners >= corner).all(axis=1) & (corners != corner).any(axis=1)
        assert bool(is_maximal(at)[tuple(corner)]) != bool(above.any())
    assert not is_maximal(at)[~at].any()
