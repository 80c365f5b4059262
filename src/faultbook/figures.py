"""Parts that figures of several domains share; colours and fonts are in `faultbook.style`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faultbook.style import COLOURS

PALE = "#D0D4D9"  # what is left over: counted, but not the point


def say_nothing(ax: Axes, text: str = "nothing to show in this data") -> Axes:
    """Say that there is nothing to draw, instead of drawing empty axes."""
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()
    return ax


def rows_downwards(ax: Axes) -> None:
    """Named rows, the first one on top, without a line that they hang on."""
    ax.invert_yaxis()
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def legend_above(ax: Axes, **options: Any) -> None:
    """A legend in one line above the axes, where it covers nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), **options)


def stacked_rows(
    ax: Axes,
    widths: pd.DataFrame,
    colours: Mapping[str, str],
    *,
    light_text: Collection[str],
    smallest: float,
    text: Callable[[Any], str],
    height: float,
) -> None:
    """Stack one bar a row, with the size of each part in it.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    widths : DataFrame
        One row a bar, one column a part, from left to right; nothing missing.
    colours : mapping
        Part to colour.
    light_text : collection of str
        Parts on whose colour white is easier to read than ink.
    smallest : float
        Parts smaller than this get no text: it would not fit.
    text : callable
        A size as text.
    height : float
        Of a bar; rows are 1 apart.
    """
    left = np.zeros(len(widths))
    for name, column in widths.items():
        sizes = column.to_numpy()
        ax.barh(range(len(widths)), sizes, left=left, color=colours[str(name)], height=height, label=str(name))
        colour = "white" if name in light_text else COLOURS["ink"]
        for row, (start, size) in enumerate(zip(left, sizes, strict=True)):
            if size >= smallest:
                ax.text(start + size / 2, row, text(size), ha="center", va="center", color=colour)
        left = left + sizes
