"""Figures of recovery are tested by what they draw: bars, points, lines and texts, not pixels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from faultbook.recovery import plot
from faultbook.recovery.effects import effects
from faultbook.recovery.rule import GATES, InterventionRule, decide_many
from faultbook.style import COLOURS

pytestmark = pytest.mark.usefixtures("house_style")

NOTHING = ["nothing to show in this data"]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def ticks(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def drawn(ax: Axes) -> Axes:
    ax.figure.canvas.draw()  # warnings are errors
    return ax


def segments(ax: Axes) -> list[list[list[float]]]:
    """The vertical lines of intervals, each as its two ends."""
    return [segment.tolist() for lines in ax.collections for segment in getattr(lines, "get_segments", list)()]


# ---- outcomes and effects -----------------------------------------------------------------------------------------


def cells(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """(condition, delay, rescues, harms, stable successes, stable failures, effect, low, high) each."""
    counts = ["rescues", "harms", "stable_successes", "stable_failures"]
    return pd.DataFrame(rows, columns=["condition", "delay", *counts, "effect_pp", "low", "high"])


# arXiv 2610.00372, 93 tasks with factual success: 2-step stale at delay 0 (17 rescues, 10 harms), clean (6 harms);
# how the stable pairs split is not published
STALE = ("stale2", 0, 17, 10, 40, 26, 7.53, -3.23, 18.28)
CLEAN = ("clean", 0, 0, 6, 87, 0, -6.45, -11.83, -2.15)


def test_outcomes_fill_the_width_of_their_cell() -> None:
    ax = drawn(plot.plot_outcomes(cells(STALE, CLEAN)))
    rows: dict[int, list[tuple[float, float, str]]] = {0: [], 1: []}
    for bar in ax.patches:
        place = (bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor()))
        rows[round(bar.get_y() + bar.get_height() / 2)].append(place)
    named = [to_hex(plot.OUTCOME_COLOURS[name]) for name in ("rescue", "stable success", "stable failure", "harm")]
    assert rows[0] == [(0, 17, named[0]), (17, 40, named[1]), (57, 26, named[2]), (83, 10, named[3])]
    assert rows[1] == [(0, 0, named[0]), (0, 87, named[1]), (87, 0, named[2]), (87, 6, named[3])]
    assert ticks(ax) == ["stale2, delay 0", "clean, delay 0"]
    assert sorted(texts(ax), key=int) == ["6", "10", "17", "26", "40", "87"]  # a count of 0 has no room and no text
    assert ax.get_xlim() == (0, 93)
    assert ax.yaxis_inverted()  # the first cell on top
    assert legend(ax) == ["rescue", "stable success", "stable failure", "harm"]


def test_effects_have_a_point_and_an_interval_each() -> None:
    later = ("stale2", 4, 9, 3, 50, 31, 6.45, -1.08, 13.98)
    ax = drawn(plot.plot_effects(cells(later, STALE, CLEAN)))
    stale, clean, zero = ax.lines
    assert stale.get_ydata().tolist() == [7.53, 6.45]  # in the order of delays, whatever that of the rows
    assert clean.get_ydata().tolist() == [-6.45]
    assert zero.get_ydata() == [0, 0]
    places = [*stale.get_xdata(), *clean.get_xdata()]
    assert [round(place) for place in places] == [0, 1, 0]
    assert len(set(places)) == 3  # conditions stand side by side
    found = [[low[1], high[1]] for low, high in segments(ax)]
    assert found == [[-3.23, 18.28], [-1.08, 13.98], [-11.83, -2.15]]
    assert [low[0] for low, _ in segments(ax)] == pytest.approx(places)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "4"]
    assert legend(ax) == ["stale2", "clean"]
    assert [stale.get_color(), clean.get_color()] == [COLOURS["vermilion"], COLOURS["blue"]]


def test_an_effect_without_interval_is_a_point() -> None:
    none, own = ("clean", 0, 0, 0, 9, 1, 0.0, None, None), ("own", 1, 1, 0, 0, 1, 50.0, 0, 100)
    ax = drawn(plot.plot_effects(cells(none, own)))
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[0.0], [50.0]]
    ((low, high),) = filter(None, segments(ax))
    assert (low[1], high[1], low[0]) == (0, 100, ax.lines[1].get_xdata()[0])
    assert ax.lines[1].get_color() == COLOURS["ink"]  # a condition of one's own


def test_effects_as_they_are_measured() -> None:
    outcomes = [(False, True), (False, True), (True, False), (True, True)]
    rows = [
        {"task_id": f"t{task}", "condition": condition, "delay": delay, "action": "refresh"}
        | {"success_without": without, "success_with": with_ if condition == "stale2" else without}
        for condition in ("clean", "stale2")
        for delay in (0, 2)
        for task, (without, with_) in enumerate(outcomes)
    ]
    table = effects(pd.DataFrame(rows), n_resamples=50)
    bars = drawn(plot.plot_outcomes(table)).patches
    assert sum(bar.get_width() for bar in bars) == 16
    points = drawn(plot.plot_effects(table)).lines
    assert [line.get_ydata().tolist() for line in points[:2]] == [[0, 0], [25, 25]]


# ---- the plane of p0 and p1 ---------------------------------------------------------------------------------------


def plane(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """(p0, p1, tau) each."""
    return pd.DataFrame(rows, columns=["p0", "p1", "tau"])


def curve(ax: Axes) -> tuple[Any, Any]:
    return np.asarray(ax.lines[0].get_xdata()), np.asarray(ax.lines[0].get_ydata())


# λ = 2: the least p1 at which refresh pays, p1 = 2 p0 / (1 + p0)
@pytest.mark.parametrize(
    ("p0", "p1"), [(0, 0), (0.5, 2 / 3), (0.6, 0.75), (0.7, 0.8235), (0.8, 0.8889), (0.9, 0.9474), (1, 1)]
)
def test_the_curve_of_the_utility_gate(p0: float, p1: float) -> None:
    assert np.interp(p0, *curve(plot.plot_plane(plane((0.2, 0.9, 1))))) == pytest.approx(p1, abs=1e-4)


@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0, 7.0])
def test_on_the_curve_the_two_scores_are_equal(penalty: float) -> None:
    p0, p1 = curve(plot.plot_plane(plane((0.2, 0.9, 1)), penalty))
    assert (1 - p0) * p1 - penalty * p0 * (1 - p1) == pytest.approx(np.zeros(len(p0)), abs=1e-12)


def test_a_harm_that_weighs_nothing_leaves_no_gate() -> None:
    ax = drawn(plot.plot_plane(plane((0.2, 0.9, 1)), 0.0))
    assert curve(ax)[1].tolist() == [0.0] * len(curve(ax)[0])


def test_candidates_stand_in_the_plane_by_what_came_of_them() -> None:
    rows = [(0.2, 0.9, 1), (0.3, 0.8, 1), (0.9, 0.2, -1), (0.5, 0.5, 0)]
    ax = drawn(plot.plot_plane(plane(*rows)))
    area, unchanged, rescues, harms = ax.collections
    assert [part.get_offsets().tolist() for part in (unchanged, rescues, harms)] == [
        [[0.5, 0.5]],
        [[0.2, 0.9], [0.3, 0.8]],
        [[0.9, 0.2]],
    ]
    assert legend(ax) == ["unchanged (1)", "rescue (2)", "harm (1)"]
    assert to_hex(rescues.get_facecolor()[0]) == to_hex(COLOURS["green"])
    assert to_hex(harms.get_facecolor()[0]) == to_hex(COLOURS["vermilion"])
    shaded = area.get_paths()[0]  # above the curve
    assert (shaded.contains_point((0.5, 0.75)), shaded.contains_point((0.5, 0.6))) == (True, False)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 1))


@pytest.mark.parametrize("missing", [float("nan"), None])
def test_a_candidate_without_a_place_is_not_counted(missing: float | None) -> None:
    frame = plane((missing, 0.9, 1), (0.3, missing, 1), (0.4, 0.8, 1))
    for given in (frame, frame.convert_dtypes()):
        assert legend(drawn(plot.plot_plane(given))) == ["unchanged (0)", "rescue (1)", "harm (0)"]


def test_a_plane_without_candidates_has_its_curve_and_says_that_there_is_none() -> None:
    ax = drawn(plot.plot_plane(plane()))
    assert legend(ax) == ["unchanged (0)", "rescue (0)", "harm (0)"]
    assert np.interp(0.5, *curve(ax)) == pytest.approx(2 / 3)


# ---- frontier -----------------------------------------------------------------------------------------------------

FRONTIER = pd.DataFrame({"clean_harms": [0, 1, 3], "gain": [4, 7, 8]})
POLICIES = pd.DataFrame({"policy": ["never", "CIR rule"], "clean_harms": [0.0, 1.0], "gain": [0.0, 6.0]})


def test_a_frontier_with_policies_beside_it() -> None:
    ax = drawn(plot.plot_frontier(FRONTIER, POLICIES, harms_allowed=1))
    best, never, rule = ax.lines
    assert (best.get_xdata().tolist(), best.get_ydata().tolist()) == ([0, 1, 3], [4, 7, 8])
    assert best.get_drawstyle() == "steps-post"  # a gain lasts until the next harm is allowed
    assert [mark.get_xydata().tolist() for mark in (never, rule)] == [[[0, 0]], [[1, 6]]]
    assert legend(ax) == ["allowed", "best thresholds", "never", "CIR rule"]
    (allowed,) = ax.patches
    assert (allowed.get_x(), allowed.get_width()) == (-0.5, 2)  # 0 and 1 harm


def test_policies_of_one_frontier_can_be_told_apart() -> None:
    many = pd.DataFrame({"policy": [f"p{i}" for i in range(12)], "clean_harms": range(12), "gain": 1.0})
    marks = drawn(plot.plot_frontier(FRONTIER, many)).lines[1:]
    assert len({(mark.get_marker(), mark.get_color()) for mark in marks}) == 12


def test_a_frontier_may_lack_either_part() -> None:
    assert legend(drawn(plot.plot_frontier(FRONTIER, POLICIES[:0]))) == ["best thresholds"]
    assert legend(drawn(plot.plot_frontier(FRONTIER[:0], POLICIES)))[-2:] == ["never", "CIR rule"]


# ---- calibration --------------------------------------------------------------------------------------------------


def bins(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """(model, predicted, observed, low, high, n) each."""
    return pd.DataFrame(rows, columns=["model", "predicted", "observed", "low", "high", "n"])


def test_a_calibration_curve_has_its_bins_counts_and_intervals() -> None:
    curves = bins(
        ("p_err", 0.1, 0.0, 0.0, 0.2, 24),
        ("p_err", 0.8, 0.9, 0.7, 1.0, 25),
        ("p0", 0.5, 0.4, 0.2, 0.6, 49),
    )
    ax = drawn(plot.plot_calibration(curves))
    diagonal, p_err, p0 = ax.lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert p_err.get_xydata().tolist() == [[0.1, 0.0], [0.8, 0.9]]
    assert p0.get_xydata().tolist() == [[0.5, 0.4]]
    assert segments(ax) == [[[0.1, 0], [0.1, 0.2]], [[0.8, 0.7], [0.8, 1]], [[0.5, 0.2], [0.5, 0.6]]]
    assert legend(ax) == ["p_err (24 to 25 a bin)", "p0 (49 a bin)"]
    assert p_err.get_color() != p0.get_color()


def test_more_models_than_colours() -> None:
    ax = drawn(plot.plot_calibration(bins(*[(f"m{i}", 0.5, 0.5, None, None, 9) for i in range(5)])))
    assert len(legend(ax)) == 5


# ---- gates --------------------------------------------------------------------------------------------------------


def test_each_gate_takes_its_share_from_what_is_left() -> None:
    ax = drawn(plot.plot_gates({"utility": 10, "error": 50, "delay": 25}, 15))  # in the rule's order
    bars = [(round(bar.get_x()), round(bar.get_width())) for bar in ax.patches]
    assert bars == [(0, 100), (75, 25), (25, 50), (15, 10), (0, 15)]
    assert ticks(ax) == ["candidates", "held: delay", "held: error", "held: utility", "pass"]
    assert texts(ax) == ["100", "25", "50", "10", "15"]
    assert ax.yaxis_inverted()


def test_the_gates_are_those_of_the_rule() -> None:
    assert plot.GATES == GATES
    rule = InterventionRule(failure_probability="complement_of_p0")
    p = np.array(
        [[0.1, 0.5, 0.9], [0.95, 0.5, 0.9], [0.95, 0.99, 1], [0.95, 0, 0], [0.95, np.nan, 0.5], [0.95, 0.9, 0.1]]
    )
    decided = decide_many(rule, 1, *p.T)
    held = decided["gate"].dropna().value_counts()
    ax = drawn(plot.plot_gates(held, int((decided["action"] == "refresh").sum())))
    assert ticks(ax) == [
        *("candidates", "held: error", "held: failure", "held: utility", "held: tie", "held: not evaluable", "pass")
    ]
    assert texts(ax) == ["6", "1", "1", "1", "1", "1", "1"]


def test_a_rule_that_never_acts_has_a_bar_of_no_width() -> None:
    ax = drawn(plot.plot_gates(pd.Series({"error": 3, "utility": 0}), 0))
    assert [bar.get_width() for bar in ax.patches] == [3, 3, 0]
    assert texts(ax) == ["3", "3", "0"]


# ---- all of them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.plot_outcomes(cells()),
        lambda: plot.plot_effects(cells()),
        lambda: plot.plot_frontier(FRONTIER[:0], POLICIES[:0]),
        lambda: plot.plot_frontier(FRONTIER[:0], POLICIES[:0], harms_allowed=1),
        lambda: plot.plot_calibration(bins()),
        lambda: plot.plot_gates({}, 0),
        lambda: plot.plot_gates(pd.Series(dtype="int64"), 0),
    ],
)
def test_nothing_to_draw_is_said(draw: Callable[[], Axes]) -> None:
    assert texts(drawn(draw())) == NOTHING


# would raise as mathematics
MONEY = "x_{$HOME$} $$"
DRAWN: list[tuple[Any, tuple[Any, ...]]] = [
    (plot.plot_outcomes, (cells((MONEY, 0, 1, 0, 2, 0, 33.3, 0.0, 100.0)),)),
    (plot.plot_effects, (cells((MONEY, 0, 1, 0, 2, 0, 33.3, 0.0, 100.0)),)),
    (plot.plot_plane, (plane((0.2, 0.9, 1)),)),
    (plot.plot_frontier, (FRONTIER, POLICIES.assign(policy=MONEY))),
    (plot.plot_calibration, (bins((MONEY, 0.5, 0.5, 0.4, 0.6, 9)),)),
    (plot.plot_gates, ({"error": 3}, 1)),
]


@pytest.mark.parametrize(("draw", "given"), DRAWN, ids=[draw.__name__ for draw, _ in DRAWN])
def test_every_figure_draws_into_the_axes_it_is_given_and_leaves_its_table(draw: Any, given: tuple[Any, ...]) -> None:
    _, ax = plt.subplots()
    before = copy.deepcopy(given)
    assert draw(*given, ax=ax) is ax
    drawn(ax)
    for part, was in zip(given, before, strict=True):
        if isinstance(part, pd.DataFrame):
            pd.testing.assert_frame_equal(part, was)


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    outcomes, curves, _, frontier, calibration, _ = (drawn(draw(*given)) for draw, given in DRAWN)
    assert ticks(outcomes) == [f"{MONEY}, delay 0"]
    assert legend(curves) == [MONEY]
    assert legend(frontier)[1:] == [MONEY, MONEY]
    assert legend(calibration) == [f"{MONEY} (9 a bin)"]


def test_the_frontier_runs_over_what_is_allowed_not_over_what_the_best_needs() -> None:
    frontier = pd.DataFrame({"allowed_harms": [0, 1, 2], "clean_harms": [0, 0, 0], "gain": [5, 5, 5]})
    ax = plot.plot_frontier(frontier, pd.DataFrame({"policy": ["never"], "clean_harms": [0], "gain": [0]}))
    line = next(line for line in ax.get_lines() if line.get_label() == "best thresholds")
    assert list(line.get_xdata()) == [0, 1, 2]
