"""One look for every figure."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import is_color_like

from faultbook.style import COLOURS, RC, figure_style, use_style


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


def test_colours_are_colours_and_differ() -> None:
    assert all(is_color_like(colour) and re.fullmatch(r"#[0-9A-F]{6}", colour) for colour in COLOURS.values())
    assert len(set(COLOURS.values())) == len(COLOURS)
    cycle = RC["axes.prop_cycle"].by_key()["color"]
    assert len(cycle) == len(set(cycle)) == 6


def test_every_setting_is_known_to_matplotlib() -> None:
    assert set(RC) <= set(mpl.rcParams)


def test_the_style_holds_inside_and_not_outside() -> None:
    mpl.rcdefaults()
    before = dict(mpl.rcParams)
    with figure_style():
        assert mpl.rcParams["text.parse_math"] is False
        assert mpl.rcParams["axes.spines.top"] is False
    assert dict(mpl.rcParams) == before


def test_the_style_is_put_back_after_an_error() -> None:
    mpl.rcdefaults()
    with pytest.raises(ZeroDivisionError), figure_style():
        raise ZeroDivisionError
    assert mpl.rcParams["text.parse_math"] is True


def test_use_style_sets_it_for_the_rest() -> None:
    mpl.rcdefaults()
    use_style()
    assert {name: mpl.rcParams[name] for name in RC if name != "font.family"} == {
        name: value for name, value in RC.items() if name != "font.family"
    }


@pytest.mark.parametrize("text", ["$$", "x_{$HOME$}", r"a $\frac{ b$", "cost $5 and $6", "^_{}\\"])
def test_text_is_taken_literally(text: str) -> None:
    with figure_style():
        figure, axes = plt.subplots()
        axes.set(title=text, xlabel=text, ylabel=text)
        axes.plot([0, 1], label=text)
        axes.legend()
        figure.savefig(io.BytesIO())
        assert not axes.title.get_parse_math()


def test_an_svg_is_the_same_each_time_and_brings_its_letters() -> None:
    pictures = []
    with figure_style():
        for _ in range(2):
            figure, axes = plt.subplots()
            axes.set_title("Title")
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            pictures.append(stream.getvalue())
    assert pictures[0] == pictures[1]
    assert "<text" not in pictures[0]
