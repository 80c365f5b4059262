"""The A/A control: flips, their direction, exact bounds, and what they make of rescue and harm."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.recovery.effects import effects
from faultbook.recovery.noise import (
    EVERY_DELAY,
    FLIP_COLUMNS,
    NO_CONTROL,
    NOISE_COLUMNS,
    THIS_CELL,
    expected_noise,
    flip_rate,
)
from faultbook.recovery.pairs import pair


def control(
    outcomes: list[tuple[bool, ...]], condition: str = "stale2", delay: int | None = 0, first: int = 0
) -> pd.DataFrame:
    """Branches without an action: for each task the outcome of every replicate."""
    rows = [
        (f"task {first + k}", condition, delay, "none", replicate, success)
        for k, replicates in enumerate(outcomes)
        for replicate, success in enumerate(replicates)
    ]
    return pd.DataFrame(rows, columns=["task_id", "condition", "delay", "action", "replicate", "success"])


def only(episodes: pd.DataFrame) -> pd.Series:
    table = flip_rate(episodes)
    assert list(table.columns) == FLIP_COLUMNS
    assert len(table) == 1
    return table.iloc[0]


def test_flips_and_their_direction() -> None:
    row = only(control([(True, True)] * 90 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 7))
    assert (row["n_tasks"], row["n"], row["flips"], row["to_success"], row["to_failure"]) == (100, 100, 3, 1, 2)
    assert row["rate"] == pytest.approx(0.03)
    # Clopper-Pearson of 3 in 100: [.62 %, 8.52 %]
    assert (row["low"], row["high"]) == (pytest.approx(0.0062, abs=5e-5), pytest.approx(0.0852, abs=5e-5))
    assert row["method"] == "Clopper-Pearson exact"
    assert (row["to_success_rate"], row["to_failure_rate"]) == (pytest.approx(0.01), pytest.approx(0.02))
    assert row["to_success_upper"] == pytest.approx(0.0466, abs=5e-5)  # one-sided, 1 in 100


def test_no_flip_is_a_bound_and_no_zero() -> None:
    row = only(control([(True, True)] * 60 + [(False, False)] * 15))
    assert (row["flips"], row["rate"], row["low"]) == (0, 0, 0)
    assert row["high"] == pytest.approx(0.047995, abs=5e-7)  # 0 of 75, two-sided
    assert row["to_failure_upper"] == row["to_success_upper"] == pytest.approx(1 - 0.05 ** (1 / 75))


def test_several_further_replicates_are_not_independent() -> None:
    row = only(control([(True, True, True, True)] * 20))
    assert (row["n_tasks"], row["n"]) == (20, 60)
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 20))
    flipping = only(control([(True, True, True)] * 20 + [(True, False, False)] * 5))
    assert (flipping["flips"], flipping["rate"]) == (10, pytest.approx(0.2))
    assert "bootstrap" in flipping["method"]
    assert flipping["low"] < 0.2 < flipping["high"]


def test_cells_are_kept_apart() -> None:
    parts = [control([(True, False)] * 3, "clean"), control([(True, True)] * 4), control([(False, True)] * 5, delay=4)]
    table = flip_rate(pd.concat(parts))
    assert table[["condition", "delay", "n", "flips"]].to_numpy().tolist() == [
        ["clean", 0, 3, 3],
        ["stale2", 0, 4, 0],
        ["stale2", 4, 5, 5],
    ]


def test_the_first_replicate_is_the_lowest_and_actions_do_not_count() -> None:
    episodes = control([(True, False)]).assign(replicate=[7, 3])
    action = episodes.assign(action="refresh")
    row = only(pd.concat([episodes, action]))
    assert (row["n"], row["to_success"], row["to_failure"]) == (1, 1, 0)


def test_no_control() -> None:
    assert flip_rate(control([(True,), (False,)])).empty
    assert list(flip_rate(control([])).columns) == FLIP_COLUMNS


def with_action(episodes: pd.DataFrame, successes: list[bool], delay: int = 0) -> pd.DataFrame:
    first = episodes[episodes["replicate"] == 0]
    acted = first.assign(action="refresh", success=successes, delay=delay)
    return effects(pair(pd.concat([episodes, acted])), n_resamples=50)


def test_what_flips_alone_would_give() -> None:
    episodes = control([(True, True)] * 90 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 7)
    measured = with_action(episodes, [True] * 93 + [False] * 7)
    table = expected_noise(measured, flip_rate(episodes))
    assert list(table.columns) == ["condition", "delay", "action", "n_pairs", "rescues", "harms", *NOISE_COLUMNS]
    row = table.iloc[0]
    assert (row["rescues"], row["harms"]) == (1, 0)
    assert (row["expected_rescues"], row["expected_harms"]) == (pytest.approx(1), pytest.approx(2))
    assert row["expected_rescues_upper"] == pytest.approx(4.66, abs=5e-3)
    assert (row["flips"], row["n_control"], row["basis"]) == (3, 100, THIS_CELL)


def test_no_flip_leaves_some_rescues_and_harms_open() -> None:
    episodes = control([(True, True)] * 75)
    row = expected_noise(with_action(episodes, [True] * 75), flip_rate(episodes)).iloc[0]
    assert (row["expected_harms"], row["flips"]) == (0, 0)
    assert row["expected_harms_upper"] == pytest.approx(75 * 0.03916, abs=1e-3)


def test_a_control_for_every_delay_serves_each() -> None:
    episodes = control([(True, True)] * 3 + [(True, False)], delay=None)
    row = expected_noise(with_action(episodes, [True] * 4, delay=4), flip_rate(episodes)).iloc[0]
    assert (row["basis"], row["expected_harms"]) == (EVERY_DELAY, pytest.approx(1))


def test_a_cell_without_a_control_has_no_number() -> None:
    measured = with_action(control([(True,)] * 4), [True] * 4)
    other = flip_rate(control([(True, True)] * 4, "clean"))
    for flips in (other, flip_rate(control([]))):
        row = expected_noise(measured, flips).iloc[0]
        assert row["basis"] == NO_CONTROL
        assert row[NOISE_COLUMNS[:-1]].isna().all()


def test_pooled_effects_have_no_noise_of_their_own() -> None:
    measured = with_action(control([(True,)] * 4), [True] * 4).drop(columns="delay")
    with pytest.raises(FaultbookError, match="columns missing: delay; noise differs by condition and delay"):
        expected_noise(measured, flip_rate(control([])))


RUNS = st.lists(st.lists(st.booleans(), min_size=1, max_size=4).map(tuple), min_size=1, max_size=15)


@settings(max_examples=10, deadline=None)
@given(RUNS, st.randoms(use_true_random=False))
def test_the_parts_fit_together(outcomes: list[tuple[bool, ...]], random: Any) -> None:
    episodes = control(outcomes)
    table = flip_rate(episodes, n_resamples=50)
    order = list(range(len(episodes)))
    random.shuffle(order)
    pd.testing.assert_frame_equal(table, flip_rate(episodes.iloc[order], n_resamples=50))
    assert table["n"].sum() == sum(len(replicates) - 1 for replicates in outcomes)
    for row in table.to_dict("records"):
        assert row["flips"] == row["to_success"] + row["to_failure"]
        assert row["rate"] == pytest.approx(row["to_success_rate"] + row["to_failure_rate"])
        assert row["to_success_rate"] <= row["to_success_upper"] <= 1
