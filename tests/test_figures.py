"""The parts that figures share: what they draw, measured on the axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from faultbook.figures import legend_above, rows_downwards, say_nothing, stacked_rows
from faultbook.style import COLOURS

pytestmark = pytest.mark.usefixtures("house_style")

WIDTHS = pd.DataFrame({"kept": [0.5, 0.0], "lost": [0.25, 0.04]})
PAINT = {"kept": COLOURS["blue"], "lost": COLOURS["orange"]}


def test_parts_are_stacked_from_left_to_right_in_their_rows() -> None:
    ax = plt.subplots()[1]
    stacked_rows(ax, WIDTHS, PAINT, light_text=("kept",), smallest=0.05, text="{:.2f}".format, height=0.5)
    bars = [(bar.get_x(), bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(bars, [(0, 0, 0.5), (0, 1, 0), (0.5, 0, 0.25), (0, 1, 0.04)], atol=1e-12)
    painted = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
    assert painted == [PAINT["kept"], PAINT["kept"], PAINT["lost"], PAINT["lost"]]


def test_a_part_says_its_size_in_its_middle_where_it_fits() -> None:
    ax = plt.subplots()[1]
    stacked_rows(ax, WIDTHS, PAINT, light_text=("kept",), smallest=0.05, text="{:.2f}".format, height=0.5)
    said = [(text.get_text(), text.get_position(), text.get_color()) for text in ax.texts]
    assert said == [("0.50", (0.25, 0), "white"), ("0.25", (0.625, 0), COLOURS["ink"])]


def test_rows_run_downwards_without_a_line() -> None:
    ax = plt.subplots()[1]
    ax.barh([0, 1], [1, 2])
    rows_downwards(ax)
    low, high = ax.get_ylim()
    assert low > high
    assert not ax.spines["left"].get_visible()


def test_a_legend_above_covers_nothing() -> None:
    figure, ax = plt.subplots()
    ax.plot([0, 1], label="a")
    legend_above(ax, ncols=2)
    figure.canvas.draw()
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1


def test_nothing_is_said() -> None:
    ax = say_nothing(plt.subplots()[1])
    assert [text.get_text() for text in ax.texts] == ["nothing to show in this data"]
    assert not ax.axison
