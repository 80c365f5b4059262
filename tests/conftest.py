"""What tests of several domains share."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from faultbook.style import figure_style


@pytest.fixture
def house_style() -> Iterator[None]:
    """Draw in the house style, without a screen, and close every figure."""
    with mpl.rc_context({"backend": "agg"}), figure_style():
        yield
    plt.close("all")
