"""Notebook 1, run by the project's own runner: what a reader of its page and of the index sees."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pandas as pd
import pytest
from playwright.sync_api import expect

from faultbook.audit import STATUSES

if TYPE_CHECKING:
    from conftest import Open, Visit

PROJECT = Path(__file__).resolve().parents[2]
NAME = "1_reported_numbers"
NOTEBOOK = nbformat.read(PROJECT / "notebooks" / f"{NAME}.ipynb", as_version=4)
MARKDOWN = [line for cell in NOTEBOOK.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
CODE = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]
STATUS_WORDS = [*STATUSES, "ran", "unchanged", "failed", "absent"]


@pytest.fixture
def folder(real_reports: Path) -> Path:
    return real_reports / NAME


@pytest.fixture
def report(visit: Open, folder: Path) -> Visit:
    return visit(folder / f"{NAME}.html")


@pytest.fixture
def index(visit: Open, real_reports: Path) -> Visit:
    return visit(real_reports / "index.html")


def assert_calm(seen: Visit) -> None:
    seen.settle()
    assert seen.interrupted is None
    assert seen.page_errors == []
    assert seen.console_errors == []
    assert seen.dialogs == []
    assert seen.asked() == []
    assert seen.navigations == [seen.address]


def test_page_loads_without_error_and_asks_for_nothing(report: Visit, tmp_path: Path) -> None:
    assert_calm(report)
    report.page.screenshot(path=tmp_path / "report.png", full_page=True)
    assert (tmp_path / "report.png").stat().st_size > 10_000


def test_headings_are_those_of_the_notebook(report: Visit) -> None:
    for level in (1, 2):
        headings = [line.lstrip("# ").strip() for line in MARKDOWN if re.match(rf"#{{{level}}} ", line)]
        expect(report.page.locator(f"main h{level}")).to_have_text(headings)
    expect(report.page).to_have_title(MARKDOWN[0].removeprefix("# "))


def test_every_figure_is_drawn_and_described(report: Visit, folder: Path) -> None:
    saved = sorted(path.name for path in (folder / "figures").glob("*.png"))
    figures = report.page.locator("main img").evaluate_all(
        "all => all.map(img => ({width: img.naturalWidth, alt: img.alt, shown: img.getBoundingClientRect().height}))"
    )
    assert len(figures) == len(saved) == sum(code.count("show_figure(") for code in CODE)
    for figure in figures:
        assert figure["width"] > 400
        assert figure["shown"] > 100
        assert len(figure["alt"]) > 20  # a sentence, not a stopgap
    assert len({figure["alt"] for figure in figures}) == len(figures)


def test_figures_are_as_wide_as_the_notebook_made_them(report: Visit, folder: Path) -> None:
    """Otherwise a letter has another size in every figure."""
    run = nbformat.read(folder / f"{NAME}.ipynb", as_version=4)
    outputs = [
        output for cell in run.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    wanted = [output.metadata["image/png"]["width"] for output in outputs]
    column = report.page.locator(".output").first.evaluate("box => box.clientWidth")
    shown = report.page.locator("main img").evaluate_all("all => all.map(img => img.getBoundingClientRect().width)")
    assert shown == pytest.approx([min(width, column) for width in wanted], abs=1)


def test_every_table_is_there_with_headings_and_a_caption(report: Visit, folder: Path) -> None:
    tables = report.page.locator("main table").evaluate_all(
        """all => all.map(table => ({
            caption: (table.querySelector('caption') ?? table.closest('details')?.querySelector('summary'))
                ?.textContent.trim(),
            heads: [...table.querySelectorAll('thead th')].map(th => [th.scope, th.textContent.trim()]),
            rows: table.tBodies[0].rows.length,
            ragged: [...table.tBodies[0].rows].some(row => row.cells.length != table.tHead.rows[0].cells.length),
        }))"""
    )
    lines = {
        path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in (folder / "tables").glob("*.csv")
    }
    assert len(tables) == len(lines) > 10
    for table in tables:
        assert table["caption"]
        assert table["heads"]
        assert all(scope == "col" and text for scope, text in table["heads"])
        assert table["rows"] > 0
        assert not table["ragged"]


def test_code_is_folded_away_and_opens_by_a_click(report: Visit, folder: Path) -> None:
    page = report.page
    assert page.locator("details[open]").count() == 0
    folds = page.locator("details", has=page.locator("summary", has_text=re.compile(r"^code$")))
    run = nbformat.read(folder / f"{NAME}.ipynb", as_version=4)  # holds a cell more: the injected parameters
    expect(folds).to_have_count(sum(cell.cell_type == "code" for cell in run.cells))
    assert page.locator("main .highlight:visible").count() == 0
    fold = folds.filter(has_text="use_style()").first
    expect(fold.locator("pre")).to_be_hidden()
    fold.locator("summary").click()
    expect(fold.locator("pre")).to_be_visible()
    assert "from faultbook.audit import" in fold.locator("pre").inner_text()
    fold.locator("summary").click()
    expect(fold.locator("pre")).to_be_hidden()


def test_a_long_table_opens_by_a_click(report: Visit, folder: Path) -> None:
    page = report.page
    folds = page.locator("details", has=page.locator("table"))
    run = (folder / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert folds.count() == run.count("<details><summary>") > 3
    for fold in folds.all():
        expect(fold.locator("table")).to_be_hidden()
        fold.locator("summary").click()
        expect(fold.locator("table")).to_be_visible()


@pytest.mark.parametrize("width", [1200, 420])
@pytest.mark.parametrize("opened", [False, True], ids=["folded", "unfolded"])
def test_only_tables_scroll_sideways(visit: Open, real_reports: Path, tmp_path: Path, width: int, opened: bool) -> None:
    page = visit(real_reports / NAME / f"{NAME}.html", width=width).page
    if opened:
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    page.screenshot(path=tmp_path / f"report-{width}.png", full_page=not opened)
    assert _overflow(page) == 0
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('main *')]
            .filter(e => !e.closest('.output') && e.getBoundingClientRect().right > innerWidth + 1)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert beyond == []
    cut = page.evaluate(
        """() => [...document.querySelectorAll('.output')]
            .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'auto')
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert cut == []


@pytest.mark.parametrize("width", [1200, 420])
def test_the_index_fits_its_window(visit: Open, real_reports: Path, tmp_path: Path, width: int) -> None:
    page = visit(real_reports / "index.html", width=width).page
    page.screenshot(path=tmp_path / f"index-{width}.png", full_page=True)
    assert _overflow(page) == 0


def test_nothing_tells_about_this_machine(report: Visit, folder: Path) -> None:
    texts = {"page": _everything_readable(report)}
    for path in [folder / f"{NAME}.ipynb", folder / "manifest.json", *folder.glob("tables/*")]:
        texts[path.name] = _without_images(path)
    for name, text in texts.items():
        for place in (PROJECT, sys.prefix, sys.base_prefix, tempfile.gettempdir(), Path.home(), folder.parent):
            assert f"{place}/" not in text, name
        assert not re.search(r"(?<![\w.<~/-])/(home|root|tmp|usr|var|opt|work|Users)/\w", text), name


def test_print_leaves_out_the_code_and_nothing_else(report: Visit) -> None:
    page = report.page
    images = page.locator("main img:visible").count()
    page.emulate_media(media="print")
    assert page.locator("main .highlight:visible").count() == 0
    assert page.locator("main summary:visible", has_text=re.compile(r"^code$")).count() == 0
    assert page.locator("main img:visible").count() == images > 0
    assert page.locator("main table:visible").count() > 10
    expect(page.locator("h1")).to_be_visible()


def test_print_keeps_the_folded_tables(report: Visit) -> None:
    """A reader of the paper has no click: a folded table is there in full, or at least its caption is."""
    page = report.page
    page.emulate_media(media="print")
    captions = page.locator("details:has(table) > summary").all()
    assert [caption.text_content() for caption in captions if not caption.is_visible()] == []


def test_status_colours_can_be_read_on_white(report: Visit) -> None:
    colours = report.page.evaluate(
        """words => Object.fromEntries(words.map(word => {
            const cell = document.createElement('td');
            cell.className = `status status-${word}`;
            document.querySelector('main').append(cell);
            return [word, getComputedStyle(cell).color];
        }))""",
        [*STATUS_WORDS, "no such status"],
    )
    unstyled = colours.pop("no such status")
    for word, colour in colours.items():
        assert colour != unstyled, f"{word} has no colour of its own"
        assert _contrast(colour, "rgb(255, 255, 255)") >= 4.5, f"{word}: {colour}"
    grounds = report.page.evaluate(
        "['html', 'body', 'main'].map(e => getComputedStyle(document.querySelector(e)).backgroundColor)"
    )
    assert set(grounds) <= {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}


def test_statuses_in_the_tables_are_coloured_words(report: Visit) -> None:
    cells = report.page.locator("td.status").evaluate_all("all => all.map(td => [td.className, td.textContent])")
    assert {word for _, word in cells} == set(STATUSES)
    assert all(name == f"status status-{word}" for name, word in cells)


def test_index_is_calm_and_leads_to_the_report(index: Visit) -> None:
    assert_calm(index)
    index.page.get_by_role("link", name=MARKDOWN[0].removeprefix("# ")).click()
    index.page.wait_for_url(f"**/{NAME}/{NAME}.html")
    expect(index.page.locator("h1")).to_have_text(MARKDOWN[0].removeprefix("# "))
    assert index.page_errors == []
    assert index.console_errors == []


def test_index_sums_the_audit_up(index: Visit, folder: Path) -> None:
    counts = pd.read_csv(folder / "tables" / "status-counts.csv")[list(STATUSES)].sum()
    assert counts.sum() > 500
    (row,) = index.page.locator("tbody tr", has_text=NAME).all()
    text = row.inner_text()
    for status, count in counts.items():
        assert re.search(rf"(?<!\d){count} {status}\b", text)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert f"{len(manifest['data'])} data files" in text
    assert "tables = reported" in text
    expect(row.locator("td.status-ran")).to_have_text("ran")


def _overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def _everything_readable(seen: Visit) -> str:
    alternatives = seen.page.locator("img").evaluate_all("all => all.map(img => img.alt)")
    addresses = seen.page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    text = str(seen.page.evaluate("document.documentElement.textContent"))
    return "\n".join([text, *alternatives, *map(str, addresses)])


def _without_images(path: Path) -> str:
    """The text of a file; of a notebook, without the letters that encode its images."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r'"image/png": "[^"]*"', "", text)


def _contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, after WCAG 2."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
