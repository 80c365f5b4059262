"""Pages made of hostile text: nothing in them runs, asks for anything, leads away or covers what is honest.

Every payload has its control: on a page that does nothing against it, the same check sees it act.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pandas as pd
import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import Error, expect

from faultbook.reports.page import render
from faultbook.reports.show import table_html

if TYPE_CHECKING:
    from conftest import Once, Open, Run, Visit

OUTSIDE = "http://outside.invalid"  # a name that no server can have
HONEST = [f"honest words {place}" for place in ("first", "second", "third", "last")]
UNSEEN = "\x1b\x07\x08\x9b\u202e\u2066\u200f"  # control characters, and those that turn a text around
INVISIBLE = f"\x1b[31m\x1b]8;;{OUTSIDE}/\x07link\x1b]8;;\x07\x1b[0m\x00{UNSEEN}"  # but for "link"


def script(name: str) -> str:
    return f"(window.__pwn = window.__pwn || []).push('{name}')"


def image(name: str) -> str:
    return f'<img src=x onerror="{script(name)}">'


def element(name: str) -> str:
    return f"<script>{script(name)}</script>"


def positions() -> nbformat.NotebookNode:
    """A notebook with a payload at each of eighteen places, honest words around them."""

    def shown(data: dict[str, Any]) -> Any:
        return new_output("display_data", data=data)

    model = f"a</script>{image('widget view')}"
    outputs = [
        new_output("stream", text=f"{HONEST[1]}\n{INVISIBLE}{image('stream')}\n"),
        shown({"text/html": image("html image")}),
        shown({"text/html": element("html script")}),
        shown({"text/markdown": f"{image('markdown output')} {HONEST[2]}"}),
        shown({"text/latex": f"$${image('latex')}$$"}),
        shown({"text/plain": image("plain")}),
        shown({"image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{script("svg onload")}"/>'}),
        shown({"image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg">{element("svg script")}</svg>'}),
        shown({"application/javascript": script("javascript")}),
        shown({"application/vnd.jupyter.widget-view+json": {"model_id": model}}),
        new_output("error", ename=image("ename"), evalue=image("evalue"), traceback=[image("traceback")]),
    ]
    state = {model: {"model_name": f"</script>{element('widget state')}", "model_module": "x", "state": {}}}
    return new_notebook(
        cells=[
            new_markdown_cell(f"{HONEST[0]}\n\n{image('markdown image')}\n\n{element('markdown script')}"),
            new_code_cell(f"text = '''{image('code')}'''", outputs=outputs, execution_count=1),
            new_markdown_cell(HONEST[3]),
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "title": f"T</title>{element('title')}",
            "widgets": {"application/vnd.jupyter.widget-state+json": {"version_major": 2, "state": state}},
        },
    )


def around(pieces: Mapping[str, str]) -> tuple[nbformat.NotebookNode, list[str]]:
    """A notebook with every hostile piece in two kinds of output and in a markdown cell, and the words between them."""
    cells, words = [new_markdown_cell(HONEST[0])], [HONEST[0]]
    for name, hostile in pieces.items():
        said = [f"words {place} [{name}]" for place in ("before", "within", "after")]
        html = new_output("display_data", data={"text/html": f"<p>{said[0]}</p>\n{hostile}"})
        markdown = new_output("display_data", data={"text/markdown": f"{said[1]}\n\n{hostile}"})
        cells += [new_code_cell("1", outputs=[html, markdown]), new_markdown_cell(hostile), new_markdown_cell(said[2])]
        words += said
    return new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}), words


# What a page does of itself: runs something, asks for something, leads away, or hides what stands beside it.
ACTS = {
    "refresh at once": f'<meta http-equiv="refresh" content="0;url={OUTSIDE}/">',
    "refresh later": f'<meta http-equiv="refresh" content="1; url={OUTSIDE}/">',
    "refresh to data": '<meta http-equiv=refresh content="0;url=data:text/html,gone">',
    "base": f'<base href="{OUTSIDE}/"><img src="base.png" alt="">',
    "image": f'<img src="{OUTSIDE}/pixel.png" alt=""><img src="//outside.invalid/a.png" srcset="{OUTSIDE}/b.png 2x">',
    "markdown image": f"![pixel]({OUTSIDE}/pixel.png)\n\n<img src='{OUTSIDE}/c.png'>",
    "image of this machine": '<img src="../other.png"><img src="file:///etc/hostname">',
    "stylesheet": f'<link rel="stylesheet" href="{OUTSIDE}/style.css">',
    "prefetch": f'<link rel="prefetch" href="{OUTSIDE}/next"><link rel="icon" href="{OUTSIDE}/icon.png">',
    "import": f'<style>@import "{OUTSIDE}/import.css";</style>',
    "url in style": f"<style>main, body {{ background: url({OUTSIDE}/ground.png) }}</style>",
    "font": f"<style>@font-face {{ font-family: f; src: url({OUTSIDE}/f) }} body {{ font-family: f }}</style>",
    "style attribute": f'<p style="background: url({OUTSIDE}/attribute.png)">words</p>',
    "frame": f'<iframe src="{OUTSIDE}/frame"></iframe>',
    "frame with a page": f'<iframe srcdoc="<script>{script("srcdoc").replace("window", "parent")}</script>"></iframe>',
    "object": f'<object data="{OUTSIDE}/object"></object>',
    "embed": f'<embed src="{OUTSIDE}/embed">',
    "video": f'<video src="{OUTSIDE}/film" poster="{OUTSIDE}/poster"></video><audio src="{OUTSIDE}/sound"></audio>',
    "svg onload": f'<svg onload="{script("svg onload")}"></svg>',
    "svg script": f"<svg><script>{script('svg script')}</script></svg>",
    "svg image": f'<svg><image href="{OUTSIDE}/svg.png"/><use href="{OUTSIDE}/u.svg#u"/></svg>',
    "svg in math": f"<math><mtext><table><mglyph><style><!--</style>{image('math')}--></style></mglyph></table></math>",
    "body onload": f'<body onload="{script("body")}" onpageshow="{script("pageshow")}">',
    "focus": f'<input autofocus onfocus="{script("focus")}">',
    "toggle": f'<details open ontoggle="{script("toggle")}"><summary>s</summary>x</details>',
    "animation": f'<style>@keyframes k {{}}</style><i style="animation: k 1s" onanimationend="{script("end")}">a</i>',
    "dialog": "<script>alert('hello')</script><img src=x onerror=alert(1)>",
    "overlay": '<div style="position: fixed; inset: 0; background: #fff; z-index: 9">all is well</div>',
    "page hidden": "<style>main, body { display: none }</style>",
    "white on white": "<style>* { color: #fff !important; opacity: 0 }</style>",
    "hidden by attribute": "<div hidden>" * 50,
    "rest swallowed by a comment": "<!-- ",
    "rest swallowed by a text area": "<textarea>",
    "rest swallowed by a template": "<template>",
    "rest swallowed by a style": "<style>",
    "rest swallowed by a fold": "<details><summary>more</summary>",
    "formula": f"$x$ $${image('formula')}$$ \\({image('brackets')}\\)",
}
# What a page does when a reader clicks; `data:` addresses are spelt as a browser reads them, not as a filter might.
CLICKS = {
    "javascript": f'<a href="javascript:{script("javascript")}">read on</a>',
    "javascript in markdown": f'<a href="JaVaScRiPt:{script("case")}">read on</a> [b](javascript:{script("markdown")})',
    "javascript with a tab": f'<a href="java&#9;script:{script("tab")}">read on</a>',
    "javascript with a control": f'<a href="&#1;javascript:{script("control")}">read on</a>',
    "form": f'<form action="{OUTSIDE}/post" method="post"><button>read on</button></form>',
    "form to javascript": f'<form action="javascript:{script("form")}"><button>read on</button></form>',
    "button": f'<button onclick="{script("button")}">read on</button><a onclick="{script("click")}">b</a>',
    "new window": f'<a href="about:blank" target="_blank" onclick="{script("target")}">read on</a>',
    "area": f'<map name="m"><area href="javascript:{script("area")}" shape="default"></map>'
    f'<a href="javascript:{script("in map")}">read on</a>',
    "svg link": f'<svg height="30"><a href="javascript:{script("svg link")}"><text y="20">read on</text></a></svg>',
}
DATA_LINKS = {
    "data": '<a href="data:text/html,<script>alert(1)</script>">read on</a>',
    "data in markdown": '[b](data:text/html;base64,MQ==) <a href="DATA:text/html;base64,MQ==">read on</a>',
    "data with a tab": '<a href="da&#9;ta:text/html,<script>alert(1)</script>">read on</a>',
    "data with a line break": '<a href="d&#10;ata:text/html,gone">read on</a>',
    "data with a control": '<a href="&#1;data:text/html,gone">read on</a>',
}
SEEN = """words => words.filter(wanted => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode, holder = text.parentElement;
        if (!text.data.includes(wanted) || ['SCRIPT', 'STYLE', 'TEXTAREA'].includes(holder.tagName)) continue;
        if (!holder.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        holder.scrollIntoView({block: 'center'});
        const range = document.createRange();
        range.selectNodeContents(text);
        const box = range.getClientRects()[0];
        if (!box) continue;
        const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        const white = getComputedStyle(holder).color === 'rgb(255, 255, 255)';
        if (top && (top === holder || holder.contains(top)) && !white) return true;
    }
    return false;
})"""


def seen_words(seen: Visit, words: list[str]) -> list[str]:
    """Those of the words that a reader sees: shown, not transparent, not white, with nothing on top."""
    return list(seen.page.evaluate(SEEN, words))


def ours(notebook: nbformat.NotebookNode, folder: Path, title: str = "Report") -> Path:
    page = folder / "ours.html"
    page.write_text(render(notebook, title), encoding="utf-8")
    return page


def stock(notebook: nbformat.NotebookNode, folder: Path) -> Path:
    """The same notebook by nbconvert's own exporter."""
    html, _ = HTMLExporter(mathjax_url="", require_js_url="").from_notebook_node(notebook)
    page = folder / "stock.html"
    page.write_text(html, encoding="utf-8")
    return page


def bare(hostile: str, folder: Path) -> Path:
    """The same hostile piece on a page that does nothing against it."""
    rest = "".join(f"<p>{words}</p>" for words in HONEST[1:])
    page = folder / "bare.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body><p>{HONEST[0]}</p>\n{hostile}\n{rest}", encoding="utf-8")
    return page


def effects(seen: Visit) -> list[str]:
    """What the page did that no report may do."""
    led_away = [url for url in seen.navigations if url != seen.address]
    if led_away or seen.interrupted:
        return [*led_away, *seen.asked(), seen.interrupted or "led away"]
    hidden = set(HONEST) - set(seen_words(seen, HONEST))
    return [*seen.fired(), *seen.asked(), *seen.dialogs, *seen.popups, *seen.console_errors, *hidden]


def click_everything(seen: Visit) -> None:
    """Click whatever looks as if it could be clicked, plainly and for a new window."""
    targets = seen.page.locator("main").locator("a, button, area, [onclick], :text-is('read on')").filter(visible=True)
    for how in ([], ["Control"]):
        for target in targets.all():
            target.click(modifiers=how, no_wait_after=True)


def clicked(seen: Visit) -> Visit:
    seen.page.get_by_text("read on").first.click(no_wait_after=True)
    return seen


def assert_harmless(seen: Visit, words: list[str], *, settle: int = 250) -> None:
    """Nothing ran, was asked for, led away, or covers the honest words."""
    seen.settle(settle)
    assert seen.interrupted is None
    assert seen.navigations == [seen.address]
    assert seen.page.url == seen.address
    assert seen.fired() == []
    assert seen.asked() == []
    assert seen.dialogs == []
    assert seen.popups == []
    assert seen.page_errors == []
    assert seen.console_errors == []
    assert seen_words(seen, words) == words
    assert_inert(seen)


def assert_inert(seen: Visit) -> None:
    """Nothing is there that could act later: one policy, and nothing that it would have to stop."""
    found = seen.page.evaluate(
        """() => {
            const all = choice => [...document.querySelectorAll(choice)], start = e => e.outerHTML.slice(0, 100);
            const web = ['http:', 'https:', 'mailto:', 'file:'];
            return {
                policy: document.head.firstElementChild.httpEquiv,
                policies: all('meta[http-equiv]').length,
                head: [...document.head.children].map(e => e.tagName).filter(name => name !== 'META'),
                elements: all(`script, style, link, meta, base, title, iframe, frame, object, embed, form, input,
                    button, textarea, select, template, svg, math, video, audio, source, dialog`)
                    .filter(e => !document.head.contains(e)).map(start),
                attributes: all('*').flatMap(e => [...e.attributes])
                    .filter(a => /^on|^style$|srcset|action|srcdoc|target/i.test(a.name)).map(a => a.name),
                links: all('[href]').filter(e => !web.includes(e.protocol)).map(start),
                images: all('img[src]').filter(e => !e.src.startsWith('data:image/')).map(start),
                placed: all('main *').filter(e => getComputedStyle(e).position !== 'static').map(start),
            };
        }"""
    )
    assert found == {
        "policy": "Content-Security-Policy",
        "policies": 1,
        "head": ["TITLE", "STYLE"],
        "elements": [],
        "attributes": [],
        "links": [],
        "images": [],
        "placed": [],
    }
    assert not set(UNSEEN) & set(seen.page.content())


def test_eighteen_positions(visit: Open, tmp_path: Path) -> None:
    seen = visit(ours(positions(), tmp_path, title=f"T</title>{element('page title')}"))
    assert_harmless(seen, [*HONEST, image("stream"), image("plain"), image("traceback")])
    expect(seen.page).to_have_title(f"T</title>{element('page title')}")


def test_eighteen_positions_fire_elsewhere(visit: Open, tmp_path: Path) -> None:
    """The control: were the payloads dead, the test above would tell nothing."""
    seen = visit(stock(positions(), tmp_path))
    seen.page.wait_for_function("window.__pwn?.length > 0")
    assert {"markdown image", "markdown script", "html image", "html script"} <= set(seen.settle().fired())
    assert [url for url in seen.requests if url != seen.address]


def test_nothing_acts_by_itself(visit: Open, tmp_path: Path) -> None:
    notebook, words = around(ACTS)
    seen = visit(ours(notebook, tmp_path))
    assert_harmless(seen, words, settle=1500)  # one of the payloads bides its time


@pytest.mark.parametrize("name", ACTS)
def test_it_acts_on_a_bare_page(visit: Open, tmp_path: Path, name: str) -> None:
    assert eventually(visit(bare(ACTS[name], tmp_path)), effects)


def test_nothing_acts_on_a_click(visit: Open, tmp_path: Path) -> None:
    notebook, words = around(CLICKS)
    seen = visit(ours(notebook, tmp_path))
    assert_harmless(seen, words)
    click_everything(seen)
    assert_harmless(seen, words)
    assert len(seen.page.context.pages) == 1


@pytest.mark.parametrize("name", CLICKS)
def test_it_acts_on_a_click_on_a_bare_page(visit: Open, tmp_path: Path, name: str) -> None:
    assert eventually(clicked(visit(bare(CLICKS[name], tmp_path))), effects)


@pytest.mark.parametrize("name", DATA_LINKS)
def test_no_data_address_is_left_in_a_link(visit: Open, tmp_path: Path, name: str) -> None:
    """Chromium refuses to go to one and says so; the page should not leave that to the browser."""
    assert eventually(clicked(visit(bare(DATA_LINKS[name], tmp_path))), effects)
    notebook, words = around({name: DATA_LINKS[name]})
    assert_harmless(clicked(visit(ours(notebook, tmp_path))), words)


def test_links_that_lead_somewhere_stay(visit: Open, tmp_path: Path) -> None:
    """The page is made safe, not bare: what a notebook may well bring is still an element."""
    table = pd.DataFrame({"a": [1]})
    honest = (
        '<h3>Honest heading</h3><p><a href="https://example.org/paper">paper</a></p>'
        f"{table.to_html()}{table.style.set_caption('styled').to_html()}"
    )
    picture = "![dot](data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)"
    notebook, words = around({"honest": f"{honest}\n\n| left | right |\n|---|---|\n| 1 | 2 |\n\n{picture}\n"})
    seen = visit(ours(notebook, tmp_path))
    assert_harmless(seen, words)
    page = seen.page
    assert page.locator("h3", has_text="Honest heading").count() == 3
    assert page.locator("a[href='https://example.org/paper'][rel~=noopener]").count() == 3
    assert page.locator("th", has_text="left").count() == 2
    assert page.locator("caption", has_text="styled").count() == 3
    assert page.locator("img").evaluate_all("all => all.filter(i => i.naturalWidth === 1).length") == 2


def test_invisible_characters_of_foreign_html_go_too(visit: Open, tmp_path: Path) -> None:
    """A table of pandas' own escapes markup, but not what makes `exe.txt` read as `txt.exe`."""
    notebook, words = around({"table": pd.DataFrame({UNSEEN: [f"log{UNSEEN}line"]}).to_html()})
    assert_harmless(visit(ours(notebook, tmp_path)), words)


def test_table_html(visit: Open, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        [
            [image("cell"), 1.5, f"{INVISIBLE}{element('log')}"],
            ["</td></tr></table><script>0</script>", 2, "&lt;b&gt;"],
        ],
        columns=[element("column"), f'n" onmouseover="{script("attribute")}', "status"],
        index=pd.Index([image("index"), "b"], name=image("index name")),
    )
    html = table_html(
        frame,
        f"</caption></table>{image('caption')}",
        note=image("note"),
        labels={"status": f"<b>{image('label')}</b>"},
        formats={f'n" onmouseover="{script("attribute")}': ".1f"},
    )
    # As it is, without the page's own cleaning: the table alone must be safe, for in JupyterLab nothing else stands by.
    bare = tmp_path / "bare.html"
    bare.write_text(f"<!DOCTYPE html><meta charset=utf-8><body><p>{HONEST[0]}</p>{html}<p>{HONEST[1]}</p>", "utf-8")
    seen = visit(bare).settle()
    assert (seen.fired(), seen.asked(), seen.dialogs) == ([], [], [])
    page = seen.page
    expect(page.locator("td").first).to_have_text(image("cell"))
    expect(page.locator("th")).to_have_text([element("column"), frame.columns[1], f"<b>{image('label')}</b>"])
    expect(page.locator("caption")).to_have_text(f"</caption></table>{image('caption')}")
    expect(page.locator("tfoot")).to_have_text(image("note"))
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody td").last).to_have_text("&lt;b&gt;")
    assert page.locator("body *").evaluate_all(
        "all => all.every(e => [...e.attributes].every(a => !/^on/.test(a.name)))"
    )
    assert set(page.locator("body *").evaluate_all("all => all.map(e => e.tagName)")) <= {
        *("P", "TABLE", "CAPTION", "THEAD", "TBODY", "TFOOT", "TR", "TH", "TD")
    }
    assert seen_words(seen, HONEST[:2]) == HONEST[:2]


# --- really run: a notebook that shows hostile logs, one that fails with a hostile error, one with a hostile name

FIGURE_TITLES = ["$$", "x_{$HOME$}", "a $\\frac{ b$", "cost $5 and $6", image("figure")]
LOG = f"{HONEST[1]} {INVISIBLE}{image('log')}{element('log script')}"
SUMMARY = {image("summary name"): element("summary value"), "seen": f"{INVISIBLE}{image('summary')}"}
ODD_NAME = "3_a b&c'\"<img src=x onerror=alert(1)>#%41?d"
PARAMETER = image("parameter")


IMPORTS = """
import sys
import matplotlib.pyplot as plt
import pandas as pd
from faultbook.reports.show import show_figure, show_table, summarise
"""
FIGURES = f"""
for number, title in enumerate({FIGURE_TITLES!r}):
    figure, axes = plt.subplots(figsize=(4, 2))
    axes.set(title=title, xlabel=title, ylabel=title)
    axes.bar([title, title + " again"], [1, 2], label=title)
    axes.legend()
    axes.text(0, 1, title)
    try:
        show_figure(figure, f"STYLE-{{number}}", title)
    except ValueError as error:  # one figure that cannot be drawn must not hide what becomes of the others
        print(repr(title), "was not drawn:", error)
    plt.close("all")
"""


def executed_cells() -> list[nbformat.NotebookNode]:
    raw = f"""
from IPython.display import HTML, Javascript, Latex, Markdown, SVG, display
display({positions().cells[1].outputs[9].data!r}, raw=True)
for kind, text in {[(o.data and next(iter(o.data.items()))) for o in positions().cells[1].outputs[1:9]]!r}:
    display({{kind: text}}, raw=True)
display(Markdown({ACTS["refresh at once"]!r}), HTML({ACTS["refresh later"]!r}), HTML({ACTS["overlay"]!r}))
"""
    return [
        new_markdown_cell(f"# Title {image('title')}\n\n{HONEST[0]}\n\n{image('cell')}\n\n{ACTS['page hidden']}"),
        new_code_cell('said: str = "x"  # what was said', metadata={"tags": ["parameters"]}),
        new_code_cell(IMPORTS),
        new_code_cell(
            f"log = {LOG!r}\nframe = pd.DataFrame({{log: [log, said], 'status': [log, said]}}, index=[log, log])\n"
            f"show_table(frame.rename_axis(log), 'log', log, note=log)\nshow_table(frame, 'folded', log, fold=True)"
        ),
        new_code_cell(f"print(log)\nprint(log, file=sys.stderr)\nsummarise(**{SUMMARY!r})"),
        new_code_cell(raw),
        new_code_cell(FIGURES.replace("STYLE", "plain")),
        new_code_cell("from faultbook.style import use_style\n\nuse_style()\n" + FIGURES.replace("STYLE", "house")),
        new_markdown_cell(HONEST[3]),
    ]


def failing_cells() -> list[nbformat.NotebookNode]:
    return [
        new_markdown_cell(f"# Failing {image('failing title')}\n\n{HONEST[0]}"),
        new_code_cell(f"print({HONEST[1]!r})"),
        new_code_cell(f"raise type({image('ename')!r}, (Exception,), {{}})({INVISIBLE + element('evalue')!r})"),
        new_markdown_cell(HONEST[3]),
    ]


@pytest.fixture(scope="module")
def hostile_reports(once: Once, run_notebooks: Run, chromium: Path) -> Path:
    """A reports folder of three hostile notebooks, run by the project's own command."""

    def write(path: Path, cells: list[nbformat.NotebookNode]) -> None:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)

    def make(folder: Path) -> None:
        notebooks = folder / "notebooks"
        notebooks.mkdir()
        write(notebooks / "1_hostile.ipynb", executed_cells())
        write(notebooks / "2_failing.ipynb", failing_cells())
        write(notebooks / f"{ODD_NAME}.ipynb", [new_markdown_cell(f"# Odd name\n\n{HONEST[0]}")])
        parameters = folder / "parameters.yaml"
        parameters.write_text(json.dumps({"said": PARAMETER}), encoding="utf-8")
        results = run_notebooks(notebooks, folder / "reports", parameters=parameters)
        (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")

    return once("hostile-reports", make)


def test_what_became_of_the_hostile_notebooks(hostile_reports: Path) -> None:
    results = json.loads((hostile_reports / "results.json").read_text(encoding="utf-8"))
    assert {result["name"]: (result["status"], result["error"]) for result in results} == {
        "1_hostile": ("ran", None),
        "2_failing": ("failed", f"cell 2: {image('ename')}: link{element('evalue')}"),
        ODD_NAME: ("ran", None),
    }


def test_an_executed_hostile_notebook(visit: Open, hostile_reports: Path) -> None:
    seen = visit(hostile_reports / "reports" / "1_hostile" / "1_hostile.html")
    assert_harmless(seen, [HONEST[0], HONEST[1], HONEST[3], image("log"), image("plain")], settle=1500)
    page = seen.page
    expect(page.locator("table").first.locator("td").first).to_have_text(
        f"{HONEST[1]} link{image('log')}{element('log script')}"
    )
    expect(page.locator("td", has_text=PARAMETER).first).to_have_text(PARAMETER)
    expect(page.locator("h1")).to_have_text("Title")
    click_everything(seen)
    assert_harmless(seen, HONEST[:2])


@pytest.mark.parametrize("style", ["house", "plain"])
def test_figures_with_hostile_texts_are_drawn(visit: Open, hostile_reports: Path, style: str) -> None:
    """Also in a notebook that did not ask for the house style before it drew: `show_figure` alone must do."""
    folder = hostile_reports / "reports" / "1_hostile"
    wanted = [f"{style}-{number}" for number in range(len(FIGURE_TITLES))]
    for ending in ("png", "svg"):
        assert sorted(path.stem for path in folder.glob(f"figures/{style}-*.{ending}")) == wanted
    for name, title in zip(wanted, FIGURE_TITLES, strict=True):
        drawn = (folder / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert f"<!-- {title.replace('&', '&amp;')}" in drawn or "<" in title
        assert "Oblique" not in drawn  # the letters of a formula would be slanted
    images = visit(folder / "1_hostile.html").page.locator("main img[src^='data:image/png']")
    shown = images.evaluate_all("all => all.map(img => [img.alt, img.naturalWidth])")
    assert {alternative for alternative, _ in shown} == set(FIGURE_TITLES)
    assert min(width for _, width in shown) > 300


def test_saved_svg_figures_run_nothing(visit: Open, hostile_reports: Path) -> None:
    for path in sorted((hostile_reports / "reports" / "1_hostile" / "figures").glob("house-*.svg")):
        seen = visit(path).settle(50)
        assert (seen.fired(), seen.asked(), seen.dialogs, seen.page_errors) == ([], [], [], [])
        assert seen.page.locator("script, foreignObject, image[href^=http]").count() == 0
        assert seen.page.locator("path").count() > 3


def test_the_page_of_a_failed_report(visit: Open, hostile_reports: Path) -> None:
    seen = visit(hostile_reports / "reports" / "failed" / "2_failing" / "2_failing.html")
    assert_harmless(seen, [HONEST[0], HONEST[1], HONEST[3], image("ename")])
    error = seen.page.locator("pre.error")
    expect(error).to_contain_text(element("evalue"))
    assert str(hostile_reports) not in seen.page.content()
    expect(seen.page.locator("p.failure")).to_contain_text(element("evalue"))
    assert seen.page.get_by_text("An Exception was encountered").count() == 0  # papermill's own words are left out


def test_the_index_of_hostile_reports(visit: Open, hostile_reports: Path, tmp_path: Path) -> None:
    seen = visit(hostile_reports / "reports" / "index.html")
    seen.page.screenshot(path=tmp_path / "index.png", full_page=True)
    titles = [f"Title {image('title')}", f"Failing {image('failing title')}", "Odd name"]
    texts = [PARAMETER, image("summary name"), element("summary value"), element("evalue")]
    assert_harmless(seen, [*titles, *texts])
    assert seen.page.locator("tbody tr").count() == 3
    assert seen.page.locator("tbody tr").nth(2).locator("code").inner_text() == ODD_NAME


@pytest.mark.parametrize(("row", "heading"), [("1_hostile", "Title"), ("2_failing", "Failing"), (ODD_NAME, "Odd name")])
def test_the_links_of_the_index_lead_to_the_pages(visit: Open, hostile_reports: Path, row: str, heading: str) -> None:
    page = visit(hostile_reports / "reports" / "index.html").page
    page.locator("tbody tr", has_text=row).get_by_role("link").click()
    expect(page.locator("h1")).to_have_text(heading)


def eventually(seen: Visit, what: Callable[[Visit], list[str]]) -> list[str]:
    """Wait for something that must happen, however long it takes (the suite's deadline apart)."""
    for _ in range(100):
        with contextlib.suppress(Error):  # asked while the page is just being led away
            if found := what(seen):
                return found
        seen.settle(100)
    return []
