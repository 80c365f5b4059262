"""What tests of several domains share."""

from __future__ import annotations

import os
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip slow tests in a quick run."""
    if os.environ.get("FAULTBOOK_ALL_TESTS"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: set FAULTBOOK_ALL_TESTS=1, as .ci/run does"))
