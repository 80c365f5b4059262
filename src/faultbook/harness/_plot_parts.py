"""Parts that the figures of a harness comparison share: names that fit, tiles and legends."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from faultbook.figures import legend_above
from faultbook.style import COLOURS
from faultbook.text import plain

GRID = "#E5E8EB"
LONGEST = 28  # characters of a name in a figure
_ACROSS = 48  # characters of a tile's text across a mosaic


def shown_name(value: object) -> str:
    """A name in one line, its middle left out if it is long: arms named after paths differ at their ends."""
    name = " ".join(plain(value, most=10_000).split())
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2 - 1]}…{name[-LONGEST // 2 :]}"


def legend_of(ax: Axes, entries: list[tuple[str, str, str]], **options: Any) -> None:
    """A legend of patches above the axes: of each its label, colour and hatch."""
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=COLOURS["grey"] if colour == "white" else "white", label=label)
        for label, colour, hatch in entries
    ]
    legend_above(ax, handles=handles, ncols=min(3, len(handles)), fontsize=8.5, columnspacing=1.2, **options)


def draw_tile(ax: Axes, tile: Rectangle, name: str, count: int, *, light: bool) -> list[Rectangle]:
    """Draw a tile with its name and count in it; a tile too small for its name is handed back, for the legend."""
    ax.add_patch(tile)
    fits = tile.get_width() * _ACROSS > max(len(name), len(str(count))) and tile.get_height() > 0.1
    tile.set_label(f"{name} ({count})")
    if fits or (tile.get_width() * _ACROSS > len(str(count)) and tile.get_height() > 0.05):
        behind = {"boxstyle": "square,pad=0.3", "facecolor": "white", "edgecolor": "none"} if tile.get_hatch() else None
        x, y = tile.get_center()
        text, colour = f"{name}\n{count}" if fits else str(count), "white" if light else COLOURS["ink"]
        ax.text(x, y, text, ha="center", va="center", color=colour, fontsize=9, bbox=behind)
    return [] if fits else [tile]
