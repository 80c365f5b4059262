"""Tables and figures of a notebook: every text escaped, missing shown as missing, and a file of each in a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from faultbook.reports import show
from faultbook.reports.layout import OUTPUT_VARIABLE
from faultbook.reports.page import safe_html
from faultbook.reports.show import show_figure, show_table, slug, summarise, table_html
from faultbook.style import RC, use_style

HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(1)'>&\"`\x1b[31m\u202e"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt;&amp;&quot;`"


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report run: what is shown is also kept here."""
    place = tmp_path / "output"
    place.mkdir()
    monkeypatch.setenv(OUTPUT_VARIABLE, str(place))
    return place


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """JupyterLab: no report run; nothing may be written anywhere."""
    monkeypatch.delenv(OUTPUT_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was handed to the notebook's display."""
    shown: list[Any] = []
    monkeypatch.setattr(show, "display", shown.append)
    return shown


@pytest.fixture(autouse=True)
def _own_style() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


class Rows(HTMLParser):
    """The texts of a table, row by row, and the classes of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.classes: list[list[str | None]] = []
        self.caption = ""
        self._in = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in = tag
        if tag == "tr":
            self.rows.append([])
            self.classes.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.classes[-1].append(dict(attrs).get("class"))

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._in == "caption":
            self.caption += data


def cells(values: list[Any] | pd.Series, **options: Any) -> list[str]:
    """How values of one column are shown."""
    return [row[0] for row in Rows(table_html(pd.DataFrame({"x": values}), "c", **options)).rows[1:]]


# ---- escaping -------------------------------------------------------------------------------------------------------


def test_every_place_for_a_text_is_escaped() -> None:
    frame = pd.DataFrame({HOSTILE: [HOSTILE], "named": ["x"], "status": [HOSTILE], "any": [{HOSTILE: [HOSTILE]}]})
    html = table_html(frame, HOSTILE, note=HOSTILE, labels={"named": HOSTILE})
    assert html.count(ESCAPED) == 7
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert re.findall(r"<(\w+)", html).count("td") == 5


def test_a_hostile_status_stays_in_its_attribute() -> None:
    frame = pd.DataFrame({"status": ['ok" onmouseover="alert(1)', "a b", "inconsistent"]})
    parsed = Rows(table_html(frame, "c"))
    assert parsed.rows[1:] == [['ok" onmouseover="alert(1)'], ["a b"], ["inconsistent"]]
    assert "onmouseover=&quot;" in table_html(frame, "c")
    assert parsed.classes[3] == ["status status-inconsistent"]


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index(["<b>"], name="<i>"),
        pd.Index([3]),
        pd.Index([("<a>", "<b>")], tupleize_cols=False),
        pd.MultiIndex.from_tuples([("<a>", "<b>")], names=["<c>", "<d>"]),
        pd.Index([None], dtype=object),
        pd.DatetimeIndex(["2026-01-02"]),
    ],
)
def test_headings_of_any_kind_are_text(columns: pd.Index) -> None:
    frame = pd.DataFrame([["<x>"]], columns=columns, index=pd.Index(["<y>"], name="<z>"))
    html = table_html(frame, "c")
    assert "&lt;x&gt;" in html
    assert not re.search(r"<[abcdixyz]>", html)
    assert "&lt;y&gt;" not in html, "the index is not shown"


@settings(deadline=None)
@given(st.text(), st.text(), st.text(), st.text())
def test_any_text_gives_the_same_table_and_nothing_to_clean(head: str, cell: str, caption: str, note: str) -> None:
    html = table_html(pd.DataFrame({head: [cell]}), caption, note=note)
    assert set(re.findall(r"<(\w+)", html)) <= {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert re.findall(r"<(\w+)", html).count("td") == 1 + bool(note)
    assert len(re.findall(r"<(\w+)", safe_html(html))) == len(re.findall(r"<(\w+)", html))


def test_long_texts_are_cut_and_say_so() -> None:
    html = table_html(pd.DataFrame({"x": ["y" * 10_000]}), "c" * 10_000)
    assert html.count("[9500 more characters]") == 2
    assert len(html) < 2000


def test_plain_hides_nothing_of_honest_text() -> None:
    assert cells(["a\nb", "é 한국어 🦊", "x = 1 & y < 2", ""]) == ["a\nb", "é 한국어 🦊", "x = 1 & y < 2", ""]


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing",
    [
        pd.Series([None], dtype=object),
        pd.Series([np.nan]),
        pd.Series([pd.NA], dtype=object),
        pd.Series([pd.NA, "a"], dtype=object),
        pd.Series([pd.NA], dtype="string"),
        pd.Series([None], dtype="str"),
        pd.Series([pd.NA], dtype="Int64"),
        pd.Series([pd.NA], dtype="Float64"),
        pd.Series([pd.NA, True], dtype="boolean"),
        pd.Series([pd.NaT], dtype="datetime64[ns]"),
        pd.Series([pd.NaT], dtype="timedelta64[ns]"),
        pd.Series([None], dtype="category"),
        pd.Series([np.nan], dtype="float32"),
        pd.Series([np.float32("nan")], dtype=object),
    ],
    ids=lambda series: f"{series.dtype} {series.iloc[0]!r}",
)
@pytest.mark.parametrize("formats", [{}, {"x": ".2f"}])
def test_missing_is_a_dash(missing: pd.Series, formats: dict[str, str]) -> None:
    if formats and (len(missing) > 1 or missing.dtype.kind == "M"):
        formats = {}
    assert cells(missing, formats=formats)[0] == "–"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, -2, 0], ["1", "−2", "0"]),
        ([1.5, -0.25, 0.0], ["1.5", "−0.25", "0"]),
        ([1 / 3, -2 / 3], ["0.333333", "−0.666667"]),
        (pd.Series([-1, 2], dtype="Int64"), ["−1", "2"]),
        (pd.Series([-1.5], dtype="Float64"), ["−1.5"]),
        (pd.Series([np.int64(-7)], dtype=object), ["−7"]),
        ([True, False], ["True", "False"]),
        (["-1", "−1", "a-b"], ["-1", "−1", "a-b"]),
        ([float("inf"), float("-inf")], ["inf", "−inf"]),
        ([1234567, -1234567], ["1234567", "−1234567"]),
        ([pd.Timestamp("2026-01-02")], ["2026-01-02 00:00:00"]),
        ([["a", -1]], ["['a', -1]"]),
    ],
)
def test_values_are_shown_with_a_true_minus(values: Any, texts: list[str]) -> None:
    assert cells(values) == texts


@pytest.mark.parametrize(
    ("values", "specification", "texts"),
    [
        ([0.123, -0.456], ".2f", ["0.12", "−0.46"]),
        ([0.123, -0.456], "+.1%", ["+12.3%", "−45.6%"]),
        ([1234.5, -1234.5], ",.0f", ["1,234", "−1,234"]),
        ([3, -3], "03d", ["003", "−03"]),
        (pd.Series([3, None, -3], dtype="Int64"), ".0f", ["3", "–", "−3"]),
        (["a-b", "<c>"], ".2f", ["a-b", "<c>"]),
    ],
)
def test_formats(values: Any, specification: str, texts: list[str]) -> None:
    assert cells(values, formats={"x": specification}) == texts


@pytest.mark.parametrize(
    ("values", "number"),
    [
        ([1, 2], True),
        ([0.5, None], True),
        (["70.33 %", "−1.2", "—", ""], True),
        (["~ 5", "1,234"], False),
        (["a", "1"], False),
        (["1", None], True),
        ([True, False], False),
        (["", ""], False),
    ],
)
def test_numbers_are_set_flush_right(values: list[Any], number: bool) -> None:
    classes = Rows(table_html(pd.DataFrame({"x": values}), "c")).classes
    assert {row[0] for row in classes} == {"number" if number else None}


def test_an_empty_table_says_so() -> None:
    assert Rows(table_html(pd.DataFrame({"a": [], "b": []}), "c")).rows == [["a", "b"], ["nothing to show"]]
    assert Rows(table_html(pd.DataFrame({"a": []}), "c", note="Why")).rows == [["a"], ["Why; nothing to show"]]
    assert Rows(table_html(pd.DataFrame(index=[1, 2]), "c")).caption == "c"


def test_columns_of_the_same_name_are_all_shown() -> None:
    frame = pd.DataFrame([[1, "a"]], columns=["x", "x"])
    assert Rows(table_html(frame, "c")).rows == [["x", "x"], ["1", "a"]]


def test_labels_note_and_caption() -> None:
    html = table_html(pd.DataFrame({"a": [1], "b": [2]}), "The caption", note="A note", labels={"a": "First"})
    parsed = Rows(html)
    assert parsed.rows == [["First", "b"], ["1", "2"], ["A note"]]
    assert parsed.caption == "The caption"
    assert '<tfoot><tr><td colspan="2">' in html
    assert "tfoot" not in table_html(pd.DataFrame({"a": [1]}), "c")


def test_the_frame_is_left_as_it_was() -> None:
    frame = pd.DataFrame({"a": [1.23456789, None], "status": ["x", None]})
    before = frame.copy(deep=True)
    table_html(frame, "c", formats={"a": ".1f"}, labels={"a": "A"})
    pd.testing.assert_frame_equal(frame, before)


# ---- files ----------------------------------------------------------------------------------------------------------


def test_a_table_is_kept_unrounded(output: Path, displayed: list[Any]) -> None:
    frame = pd.DataFrame({"model": ["<a>", 'b"c', "d,\ne"], "score": [1 / 3, -2e-17, None]})
    show_table(frame, "scores-1", "Scores", formats={"score": ".1f"}, labels={"model": "Model"})
    content = (output / "tables" / "scores-1.csv").read_bytes()
    assert content == (b'model,score\n<a>,0.3333333333333333\n"b""c",-2e-17\n"d,\ne",\n')
    back = pd.read_csv(output / "tables" / "scores-1.csv")
    assert back["score"].tolist()[:2] == frame["score"].tolist()[:2]
    assert [path.name for path in (output / "tables").iterdir()] == ["scores-1.csv"]
    assert "Model" in displayed[0].data


def test_a_folded_table(displayed: list[Any], lab: Path) -> None:
    show_table(pd.DataFrame({"a": [1]}), "t", "Caption & more", fold=True)
    show_table(pd.DataFrame({"a": [1]}), "t", "Caption & more")
    assert displayed[0].data.startswith("<details><summary>Caption &amp; more</summary><table>")
    assert displayed[0].data.endswith("</table></details>")
    assert displayed[1].data.startswith("<table>")
    assert "open" not in displayed[0].data


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "a_b", "../a", "a/b", "/a", ".a", "-a", "a.csv", "é", "a\n", "a\0", "{a}"]
)
def test_bad_names_are_refused(output: Path, lab: Path, name: str) -> None:
    for setting in (output, lab):
        assert setting
        with pytest.raises(ValueError, match="is not a file name of lower-case letters, digits and hyphens"):
            show_table(pd.DataFrame({"a": [1]}), name, "c")
        with pytest.raises(ValueError, match="is not a file name"):
            show_figure(plt.figure(), name, "alt")
    assert list(output.iterdir()) == []


def test_the_same_name_twice_is_refused(output: Path, displayed: list[Any]) -> None:
    frame = pd.DataFrame({"a": [1]})
    show_table(frame, "one", "c")
    kept = (output / "tables" / "one.csv").read_bytes()
    with pytest.raises(ValueError, match="this report already has a 'one' in tables; give the second another name"):
        show_table(pd.DataFrame({"a": [2]}), "one", "c")
    assert (output / "tables" / "one.csv").read_bytes() == kept
    show_figure(plt.figure(), "one", "alt")  # a figure may have the name of a table
    with pytest.raises(ValueError, match="this report already has a 'one' in figures"):
        show_figure(plt.figure(), "one", "alt")
    assert len(displayed) == 2


def test_outside_a_report_run_nothing_is_written(lab: Path, displayed: list[Any]) -> None:
    for _ in range(2):  # a cell may be run again
        show_table(pd.DataFrame({"a": [1]}), "one", "c")
        show_figure(plt.figure(), "two", "alt")
        summarise(a=1)
    assert list(lab.iterdir()) == []
    assert len(displayed) == 4


def test_a_summary(output: Path) -> None:
    summarise(cells=3, rate=0.5, model="<b> 길")
    text = (output / "summary.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"cells": 3, "rate": 0.5, "model": "<b> 길"}
    assert "길" in text


@given(st.text(st.characters()))
def test_any_text_makes_a_file_name(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", slug(text))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MP-Bench", "mp-bench"),
        ("a  b/c_d", "a-b-c-d"),
        ("../x", "x"),
        ("", "unnamed"),
        ("길", "unnamed"),
        ("-a-", "a"),
    ],
)
def test_slug(text: str, name: str) -> None:
    assert slug(text) == name


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_summary_is_strict_json(output: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        summarise(rate=value)
    assert list(output.iterdir()) == []


# ---- figures --------------------------------------------------------------------------------------------------------


def picture(title: str = "Title", label: str = "x") -> plt.Figure:
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot([0, 1], label=label)
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.text(0.5, 0.5, title)
    axes.legend()
    return figure


def test_a_figure_is_kept_as_svg_and_png_and_closed(output: Path, displayed: list[Any]) -> None:
    before = plt.get_fignums()
    show_figure(picture(), "one", 'A line & a "dot"')
    assert plt.get_fignums() == before
    files = {path.name: path.read_bytes() for path in (output / "figures").iterdir()}
    assert sorted(files) == ["one.png", "one.svg"]
    assert files["one.png"].startswith(b"\x89PNG")
    assert b"<svg" in files["one.svg"]
    (image,) = displayed
    assert image.data == files["one.png"]
    assert image.alt == 'A line & a "dot"'
    assert image.width == 3 * 96


def test_axes_stand_for_their_figure(output: Path, displayed: list[Any]) -> None:
    figure = picture()
    show_figure(figure.axes[0], "one", "alt")
    assert (output / "figures" / "one.svg").exists()
    assert not plt.fignum_exists(figure.number)


def test_axes_of_a_subfigure_stand_for_the_whole(lab: Path, displayed: list[Any]) -> None:
    figure = plt.figure(figsize=(4, 3))
    left, _ = figure.subfigures(1, 2)
    show_figure(left.subplots(), "one", "alt")
    assert displayed[0].width == 4 * 96
    assert not plt.fignum_exists(figure.number)


@pytest.mark.parametrize(
    "text",
    ["x_{$HOME$}", "$$", r"a $\frac{ b$", "cost $5 and $6", "$", "a_b^c", r"\x \\ {", "<b>&\"'", "a\nb", "%d {0}"],
)
@pytest.mark.parametrize("style", ["house style", "as matplotlib comes"])
def test_text_of_a_figure_is_taken_literally(output: Path, displayed: list[Any], text: str, style: str) -> None:
    if style == "house style":
        use_style()
    else:
        mpl.rcdefaults()
    show_figure(picture(text, text), "one", "alt")
    assert (output / "figures" / "one.svg").stat().st_size > 0


def test_the_same_figure_has_the_same_bytes(output: Path, displayed: list[Any]) -> None:
    for name in ("one", "two"):
        show_figure(picture(), name, "alt")
    for kind in ("svg", "png"):
        one, two = ((output / "figures" / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
        assert one == two
        assert b"Matplotlib" not in one
        assert not re.search(rb"20\d\d-\d\d-\d\dT", one)


def test_figures_ask_for_nothing_from_outside(output: Path, displayed: list[Any]) -> None:
    show_figure(picture("<script>alert(1)</script>"), "one", "alt")
    svg = (output / "figures" / "one.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    addresses = set(re.findall(r"(?:href|src)=[\"']([^#\"'][^\"']*)", svg))
    assert all(address.startswith("data:") for address in addresses)


def test_saving_leaves_the_style_of_other_figures_alone(lab: Path, displayed: list[Any]) -> None:
    before = dict(mpl.rcParams)
    show_figure(picture(), "one", "alt")
    assert dict(mpl.rcParams) == before
    assert before["text.parse_math"] != RC["text.parse_math"]


def test_what_is_displayed_reaches_a_notebook(monkeypatch: pytest.MonkeyPatch, lab: Path) -> None:
    """Through IPython's own display, as a kernel has it."""
    monkeypatch.undo()
    monkeypatch.delenv(OUTPUT_VARIABLE, raising=False)
    shell = InteractiveShell.instance()
    shell.display_pub = publisher = CapturingDisplayPublisher()
    try:
        show_table(pd.DataFrame({"a": ["<b>"]}), "one", "c")
        show_figure(picture(), "two", "alternative")
    finally:
        InteractiveShell.clear_instance()
    table, figure = publisher.outputs
    assert "&lt;b&gt;" in table["data"]["text/html"]
    assert "image/png" in figure["data"]
    assert figure["metadata"]["image/png"]["alt"] == "alternative"
