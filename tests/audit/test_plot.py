"""Figures are tested by what they draw: bars, points and texts, not pixels."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes

from faultbook.audit import plot
from faultbook.audit.cells import STATUSES

pytestmark = pytest.mark.usefixtures("house_style")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_status_bars_have_the_lengths_of_the_counts() -> None:
    counts = pd.DataFrame(
        {
            "document": ["a", "b"],
            "inconsistent": [3, 0],
            "recomputed": [10, 4],
            "ambiguous": [0, 2],
            "consistent": [5, 1],
            "quoted": [7, 0],
        }
    )
    ax = plot.plot_status(counts)
    widths = sorted(bar.get_width() for bar in ax.patches)
    assert widths == sorted(float(n) for n in counts[list(STATUSES)].to_numpy().ravel())
    assert "3 inconsistent" in texts(ax)
    assert "2 ambiguous" in texts(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def interval(label: str, high: float, exact_high: float) -> dict[str, object]:
    return {
        "label": label,
        "n": 67,
        "effect": 1.49,
        "low": -8.96,
        "high": high,
        "exact_low": -8.955,
        "exact_high": exact_high,
    }


def test_an_interval_that_differs_says_both_bounds() -> None:
    ax = plot.plot_intervals(pd.DataFrame([interval("fits", 11.94, 11.9403), interval("does not", 11.98, 11.9403)]))
    assert texts(ax) == ["[−8.96, 11.98] printed, [−8.96, 11.94] exact"]
    colours = [line.get_color() for line in ax.lines if line.get_linewidth() == 5]
    assert len(set(colours)) == 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fits, n = 67", "does not, n = 67"]


def test_splits_are_bars_with_their_p_and_the_level() -> None:
    ax = plot.plot_splits(pd.DataFrame({"only_a": [0, 1], "only_b": [6, 7], "p": [0.03125, 0.0703125]}))
    assert [bar.get_height() for bar in ax.patches] == [0.03125, 0.0703125]
    assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor()  # the first is below the level
    assert {"0.031", "0.070", "0.05"} <= set(texts(ax))


def test_solved_ranges_span_what_is_possible() -> None:
    ranges = pd.DataFrame(
        {
            "row": ["m"],
            "printed": ["47%"],
            "runs": [177],
            "perfect_low": [0],
            "perfect_high": [84],
            "above_zero_low": [83],
            "above_zero_high": [177],
        }
    )
    ax = plot.plot_solved_ranges(ranges)
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0, 84), (83, 94)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["m: 47 %"]


def test_contradictions_join_two_printed_numbers() -> None:
    pairs = pd.DataFrame(
        {
            "cell": ["d/t/row/col/umn"],
            "printed": ["8.00"],
            "value": [8.0],
            "other_printed": ["8.16"],
            "other_value": [8.16],
        }
    )
    ax = plot.plot_contradictions(pairs)
    assert texts(ax) == ["8.00 → 8.16"]
    assert ax.lines[0].get_xdata()[1] == pytest.approx(2.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["row, col/umn  (t)"]


@pytest.mark.parametrize(
    "draw", [plot.plot_intervals, plot.plot_splits, plot.plot_solved_ranges, plot.plot_contradictions]
)
def test_nothing_to_draw_is_said(draw: object) -> None:
    ax = draw(pd.DataFrame())
    assert texts(ax) == ["no such numbers in this data"]


def test_every_figure_draws_into_the_axes_it_is_given() -> None:
    _, ax = plt.subplots()
    assert plot.plot_splits(pd.DataFrame({"only_a": [0], "only_b": [1], "p": [1.0]}), ax=ax) is ax


def test_a_dollar_in_a_label_is_a_dollar() -> None:
    ax = plot.plot_intervals(pd.DataFrame([interval("x_{$HOME$} $$", 1, 1)]))
    ax.figure.canvas.draw()  # mathematics would raise here


def test_an_audit_of_no_document_is_said() -> None:
    ax = plot.plot_status(pd.DataFrame(columns=["document", *STATUSES]))
    assert texts(ax) == ["no such numbers in this data"]
