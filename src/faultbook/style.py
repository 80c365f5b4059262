"""One look for every figure: colours that colour-blind readers can tell apart, text taken literally, stable SVG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler

# Okabe and Ito (2008), "Color Universal Design": distinguishable with every common colour vision deficiency.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "grey": "#9AA0A6",
    "ink": "#24292F",
}
RC: Any = {
    "text.parse_math": False,  # a "$" in a log or a model name is a dollar sign, not the start of a formula
    "axes.prop_cycle": cycler(color=[c for name, c in COLOURS.items() if name not in ("ink", "grey", "yellow")]),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.axisbelow": True,
    "font.family": "DejaVu Sans",  # ships with matplotlib, so a figure has the same letters everywhere
    "font.size": 10,
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
    "legend.frameon": False,
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "svg.hashsalt": "faultbook",  # else every save gives its elements other ids
    "svg.fonttype": "path",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save figures in the house style; other figures stay as they are."""
    with mpl.rc_context(RC):
        yield


def use_style() -> None:
    """Set the house style for the rest of a notebook."""
    mpl.rcParams.update(RC)
