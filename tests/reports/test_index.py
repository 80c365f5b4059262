"""The front page: every report with its state, whatever its texts hold."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from small_project import tree

from faultbook.reports.catalog import Report
from faultbook.reports.index import write_index
from faultbook.reports.layout import ERROR, FAILED, MANIFEST, SUMMARY

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31mred\x1b[0m\u202e"
SAID = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'&red"


class Page(HTMLParser):
    """Rows of the table as texts, the links, and every element."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        elif tag == "a":
            self.links.append(attributes["href"] or "")
        elif tag == "br" and self._in_cell:
            self.rows[-1][-1] += "\n"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "reports"
    place.mkdir()
    return place


def report(name: str = "1_small", title: str = "Small") -> Report:
    return Report(name, Path(f"notebooks/{name}.ipynb"), title, [])


def made(out: Path, name: str = "1_small", *, summary: Any = None, **changed: Any) -> None:
    """A finished report as far as the index looks at it."""
    folder = out / name
    folder.mkdir()
    content = {
        "timing": {"started": "2026-01-02T03:04:05+00:00", "seconds": 12.345},
        "data": {"a.csv": "0", "b.csv": "1"},
        "parameters": {"n": 1},
    }
    (folder / MANIFEST).write_text(json.dumps({**content, **changed}))
    if summary is not None:
        (folder / SUMMARY).write_text(json.dumps(summary))


def failed(out: Path, name: str = "1_small", error: str = "cell 2: ValueError: bad") -> None:
    folder = out / FAILED / name
    folder.mkdir(parents=True)
    (folder / ERROR).write_text(json.dumps({"name": name, "error": error, "when": "now", "seconds": 1.0}))


def index(out: Path, *reports: Report, **statuses: str) -> Page:
    return Page(write_index(out, reports or [report()], statuses).read_text(encoding="utf-8"))


def test_a_report_that_ran(out: Path) -> None:
    made(out, summary={"consistent": 40, "inconsistent": 2})
    page = index(out, **{"1_small": "ran"})
    assert page.rows[1] == [
        "Small\n1_small",
        "ran",
        "2026-01-02T03:04:05+00:00",
        "12.3",
        "2 data files\nn = 1",
        "40 consistent, 2 inconsistent\n",
    ]
    assert page.links == ["1_small/1_small.html"]


def test_a_report_that_was_never_made(out: Path) -> None:
    page = index(out)
    assert page.rows[1] == ["Small\n1_small", "absent", "–", "–", "–", "–"]
    assert page.links == []


def test_a_report_left_as_it_was(out: Path) -> None:
    made(out)
    assert index(out).rows[1][1] == "unchanged"
    assert index(out, **{"1_small": "unchanged"}).rows[1][1] == "unchanged"


def test_a_report_that_failed_beside_its_last_good_one(out: Path) -> None:
    made(out)
    failed(out)
    page = index(out, **{"1_small": "failed"})
    assert page.rows[1][1] == "failed"
    assert "last run failed: cell 2: ValueError: bad" in page.rows[1][5]
    assert page.links == ["1_small/1_small.html", "failed/1_small/1_small.html"]
    assert index(out).rows[1][1] == "failed", "not asked for this time, it is still the one that failed"


def test_a_report_that_failed_and_was_never_good(out: Path) -> None:
    failed(out)
    page = index(out, **{"1_small": "failed"})
    assert page.rows[1][:5] == ["Small\n1_small", "failed", "–", "–", "–"]
    assert page.links == ["failed/1_small/1_small.html"]


def test_all_reports_of_the_catalog_in_order(out: Path) -> None:
    made(out, "2_b")
    page = index(out, report("1_a", "A"), report("2_b", "B"), report("10_c", "C"), **{"2_b": "ran"})
    assert [(row[0], row[1]) for row in page.rows[1:]] == [
        ("A\n1_a", "absent"),
        ("B\n2_b", "ran"),
        ("C\n10_c", "absent"),
    ]


def test_an_empty_catalog(out: Path) -> None:
    page = Page(write_index(out, [], {}).read_text(encoding="utf-8"))
    assert len(page.rows) == 1


def test_hostile_texts_stay_texts(out: Path) -> None:
    made(out, summary={HOSTILE: HOSTILE, "b": [HOSTILE]}, parameters={"n": HOSTILE, "m": {HOSTILE: 1}})
    failed(out, error=HOSTILE)
    page = index(out, report(title=HOSTILE))
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "img", "iframe"} & set(tags)
    assert tags.count("td") == 6
    assert page.rows[1][0] == f"{SAID}\n1_small"
    assert f"n = {SAID}" in page.rows[1][4]
    assert f"{SAID} {SAID}, " in page.rows[1][5]
    assert f"last run failed: {SAID}" in page.rows[1][5]


def test_hostile_names_stay_in_their_links(out: Path) -> None:
    name = '1_a"><script>alert(1)<%2f..?#& b'
    made(out, name)
    page = index(out, report(name, "T"))
    assert not [tag for tag, _ in page.elements if tag == "script"]
    (link,) = page.links
    assert not set(link) & set('"<>?#& ')


def test_the_page_can_run_and_load_nothing(out: Path) -> None:
    made(out)
    page = index(out)
    tags = [tag for tag, _ in page.elements]
    policy = page.elements[tags.index("head") + 1]
    assert policy[1].get("http-equiv") == "Content-Security-Policy"
    assert "default-src 'none'" in (policy[1]["content"] or "")
    assert len([1 for tag, attributes in page.elements if tag == "meta" and "http-equiv" in attributes]) == 1
    assert not {"script", "link", "img", "form", "iframe"} & set(tags)


def test_only_whole_pages_and_no_leftovers(out: Path) -> None:
    (out / "index.html").write_text("old")
    path = write_index(out, [report()], {})
    assert path == out / "index.html"
    assert list(tree(out)) == ["index.html"]
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "3", '"x"', '{"a": 1}', '{"timing": null}', '{"timing": {}}']
)
def test_a_manifest_of_another_make_does_not_break_the_index(out: Path, content: str) -> None:
    """One broken folder must not take the front page of all others away."""
    made(out, "2_b")
    made(out)
    (out / "1_small" / MANIFEST).write_text(content)
    page = index(out, report(), report("2_b", "B"))
    assert [row[0] for row in page.rows[1:]] == ["Small\n1_small", "B\n2_b"]
    assert page.rows[2][1] == "unchanged"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"a": null}', '{"a": {"b": [1]}}', "\x00"])
def test_a_summary_of_any_make_does_not_break_the_index(out: Path, content: str) -> None:
    made(out)
    (out / "1_small" / SUMMARY).write_text(content)
    assert index(out).rows[1][1] == "unchanged"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"error": null}', '{"error": 3}'])
def test_an_error_of_any_make_does_not_break_the_index(out: Path, content: str) -> None:
    failed(out)
    (out / FAILED / "1_small" / ERROR).write_text(content)
    assert index(out).rows[1][0] == "Small\n1_small"
