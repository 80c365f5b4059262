"""The page of a report: whatever a notebook brings, nothing in it can run; what is honest stays."""

from __future__ import annotations

import base64
import re
import warnings
from html.parser import HTMLParser
from typing import Any

import nbformat
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from faultbook.reports.page import render, safe_html, stylesheet

IMAGE = '<img src=x onerror="window.__pwn=(window.__pwn||0)+1">'
SCRIPT = "<script>window.__pwn=(window.__pwn||0)+1</script>"
WIDGET = "application/vnd.jupyter.widget-view+json"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="4"/></svg>'


def shown(**data: Any) -> nbformat.NotebookNode:
    """A code cell with one output of one MIME type."""
    metadata = data.pop("metadata", {})
    mime = {key.replace("__", "/").replace("_plus_", "+").replace("_", "-"): value for key, value in data.items()}
    return code(new_output("display_data", data=mime, metadata=metadata))


def code(*outputs: nbformat.NotebookNode, source: str = "show()") -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=list(outputs), execution_count=1)


def mime(kind: str, content: Any, **metadata: Any) -> nbformat.NotebookNode:
    return code(new_output("display_data", data={kind: content}, metadata=metadata))


def error(ename: str = "Error", evalue: str = "bad", traceback: str = "at line 1") -> nbformat.NotebookNode:
    return code(new_output("error", ename=ename, evalue=evalue, traceback=[traceback]))


def page(*cells: nbformat.NotebookNode, title: str = "Title", **metadata: Any) -> str:
    return render(new_notebook(cells=list(cells), metadata=metadata), title)


# The positions at which a log, a model name or a result can reach a page.
POSITIONS: dict[str, list[nbformat.NotebookNode]] = {
    "markdown cell, image": [new_markdown_cell(IMAGE)],
    "markdown cell, script": [new_markdown_cell(f"words\n\n{SCRIPT}\n\nwords")],
    "markdown cell, link": [new_markdown_cell("[a](javascript:alert(1)) <a href='javascript:alert(1)'>b</a>")],
    "stdout": [
        code(new_output("stream", name="stdout", text=f"\x1b]8;;http://x.org\x1b\\{IMAGE}\x1b]8;;\x1b\\\x1b[31m"))
    ],
    "stderr": [code(new_output("stream", name="stderr", text=SCRIPT + IMAGE))],
    "html, image": [mime("text/html", IMAGE)],
    "html, script": [mime("text/html", f"<div>{SCRIPT}</div>")],
    "markdown output": [mime("text/markdown", f"{IMAGE}\n\n{SCRIPT}")],
    "latex": [mime("text/latex", f"$x${IMAGE}")],
    "plain": [mime("text/plain", IMAGE)],
    "svg, onload": [mime("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" onload="window.__pwn=1"></svg>')],
    "svg, script": [mime("image/svg+xml", f'<svg xmlns="http://www.w3.org/2000/svg">{SCRIPT}</svg>')],
    "javascript": [mime("application/javascript", "window.__pwn=(window.__pwn||0)+1")],
    "error name": [error(ename=IMAGE)],
    "error value": [error(evalue=IMAGE)],
    "traceback": [error(traceback=f"\x1b[31m{IMAGE}{SCRIPT}")],
    "widget": [mime(WIDGET, {"model_id": f"a</script>{IMAGE}", "version_major": 2, "version_minor": 0})],
    "source": [code(source=f"x = '{IMAGE}{SCRIPT}'")],
    # beyond those of a notebook that a browser was seen to run
    "raw cell": [new_raw_cell(IMAGE + SCRIPT)],
    "raw cell, html": [new_raw_cell(IMAGE + SCRIPT, metadata={"raw_mimetype": "text/html"})],
    "result": [code(new_output("execute_result", data={"text/html": SCRIPT + IMAGE}, execution_count=1))],
    "png": [mime("image/png", f'AAAA" onerror="alert(1)"><script>1</script>{IMAGE}')],
    "jpeg": [mime("image/jpeg", f'AAAA" onload="alert(1)">{IMAGE}')],
    "alternative text": [mime("image/png", PIXEL, **{"image/png": {"alt": f'"{IMAGE}'}})],
    "alternative text beside": [mime("image/png", PIXEL, alt=f'x" onerror="alert(1)" {IMAGE}')],
    "width of an image": [mime("image/png", PIXEL, **{"image/png": {"width": '1" onerror="alert(1)'}})],
    "mermaid": [mime("text/vnd.mermaid", f"graph TD; A-->{IMAGE}")],
    "pdf": [mime("application/pdf", PIXEL)],
    "json": [mime("application/json", {"a": IMAGE})],
    "stream of another name": [code(new_output("stream", name=f"stdout{IMAGE}", text=IMAGE))],
    "tags": [new_code_cell("x", metadata={"tags": [IMAGE]}, outputs=[])],
    "attachment": [
        new_markdown_cell("![a](attachment:a.svg)", attachments={"a.svg": {"image/svg+xml": SCRIPT + IMAGE}})
    ],
}
FORBIDDEN = {
    "<script>1</script>": "script",
    "<ScRiPt src=//x.org/x.js></sCrIpT>": "script",
    "<meta http-equiv=refresh content='0;url=http://x.org'>": "refresh",
    "<META HTTP-EQUIV='Content-Security-Policy' content='default-src *'>": "policy",
    "<iframe src=http://x.org></iframe>": "iframe",
    "<iframe srcdoc='<script>1</script>'></iframe>": "srcdoc",
    "<object data=http://x.org></object>": "object",
    "<embed src=http://x.org>": "embed",
    "<form action=http://x.org><input name=a><button>send</button></form>": "form",
    "<style>body { display: none }</style>": "style",
    "<p style='position: fixed; background: url(http://x.org)'>x</p>": "style attribute",
    "<link rel=stylesheet href=http://x.org/x.css>": "link",
    "<base href=http://x.org>": "base",
    "<svg onload=alert(1)><script>1</script></svg>": "svg",
    "<math><mtext><style><img src=x onerror=alert(1)>": "math",
    "<img src=http://x.org/x.png>": "remote image",
    "<img src=//x.org/x.png srcset='http://x.org 2x'>": "remote image set",
    "<img src=data:text/html,<script>1</script>>": "html as image",
    "<video src=http://x.org autoplay><source src=http://x.org></video>": "video",
    "<audio src=http://x.org></audio>": "audio",
    "<a href=javascript:alert(1)>a</a>": "javascript link",
    "<a href=' JaVaScRiPt:alert(1)'>a</a>": "javascript link, spaced",
    "<a href='java&#10;script:alert(1)'>a</a>": "javascript link, broken up",
    "<a href='data:text/html,<script>1</script>'>a</a>": "data link",
    "<a href=' DATA:text/html;base64,AAAA'>a</a>": "data link, spaced",
    "<a href='d\nata:text/html,x'>a</a>": "data link, broken up",
    "<a href='vbscript:x'>a</a>": "vbscript link",
    "<a href=x ping=http://x.org>a</a>": "ping",
    "<details ontoggle=alert(1) open>x</details>": "toggle",
    "<p onclick=alert(1) ONMOUSEOVER=alert(1)>x</p>": "handlers",
    "<table background=http://x.org><tr><td background=http://x.org>x</table>": "background",
    "<template><script>1</script></template>": "template",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>": "noscript",
    "</main></body></html><script>1</script>": "end of page",
    "<!--><img src=x onerror=alert(1)>-->": "comment",
    "<button onclick=alert(1) data-commandlinker-command=x>x</button>": "command of the Lab",
    "<xmp><p title='</xmp><script>1</script>'></xmp>": "xmp",
    "<textarea><script>1</script></textarea>": "textarea",
    "<frameset><frame src=http://x.org></frameset>": "frames",
    "<portal src=http://x.org></portal><marquee onstart=alert(1)>x</marquee>": "odd elements",
}


class Elements(HTMLParser):
    """All elements of a page in order, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


def assert_harmless(html: str) -> Elements:
    """Nothing on the page can run, load or lead away by itself."""
    elements = Elements(html)
    tags = [tag for tag, _ in elements.found]
    assert not {
        *("script", "iframe", "frame", "frameset", "object", "embed", "applet", "form", "input", "button", "textarea"),
        *("link", "base", "svg", "math", "video", "audio", "source", "template", "portal", "marquee", "noscript"),
    } & set(tags)
    assert tags.count("style") == 1, "only the page's own style sheet"
    for tag, attributes in elements.found:
        assert not [name for name in attributes if name.startswith(("on", "data-"))], (tag, attributes)
        assert not {"style", "srcdoc", "srcset", "background", "ping", "action", "formaction"} & set(attributes), tag
        address = "".join((attributes.get("href") or "").split()).lower()
        assert not address.startswith(("javascript", "data", "vbscript")), attributes
    for image in elements.named("img"):
        assert (image.get("src") or "data:image/").startswith("data:image/"), image
    equivalents = [attributes for attributes in elements.named("meta") if "http-equiv" in attributes]
    assert len(equivalents) == 1
    assert elements.found[tags.index("head") + 1] == ("meta", equivalents[0]), "a policy governs what comes after it"
    assert equivalents[0]["http-equiv"] == "Content-Security-Policy"
    assert set((equivalents[0]["content"] or "").split("; ")) == {
        "default-src 'none'",
        "img-src data:",
        "style-src 'unsafe-inline'",
        "font-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    }
    assert tags.count("title") == tags.count("head") == tags.count("body") == tags.count("main") == 1
    return elements


@pytest.mark.parametrize("position", POSITIONS)
def test_a_payload_at_every_position_is_dead(position: str) -> None:
    assert_harmless(page(*POSITIONS[position]))


def test_all_positions_on_one_page_with_hostile_metadata() -> None:
    cells = [cell for cells in POSITIONS.values() for cell in cells]
    state = {"a": {"model_name": f"</script>{SCRIPT}", "state": {"value": SCRIPT}}}
    html = page(
        *cells,
        title=f"T</title>{SCRIPT}",
        widgets={"application/vnd.jupyter.widget-state+json": {"state": state}},
        title_=SCRIPT,
        kernelspec={"name": SCRIPT, "display_name": SCRIPT},
        authors=[{"name": SCRIPT}],
    )
    elements = assert_harmless(html)
    assert f"T</title>{SCRIPT}" in elements.text, "the title is shown as it is written"


def test_a_hostile_language_is_dead() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no such lexer
        assert_harmless(page(code(), language_info={"name": f"python{IMAGE}", "pygments_lexer": SCRIPT}))


@pytest.mark.parametrize("html", FORBIDDEN, ids=FORBIDDEN.values())
@pytest.mark.parametrize("way", ["html", "markdown cell", "markdown output"])
def test_forbidden_html_is_dropped(html: str, way: str) -> None:
    cell = {
        "html": mime("text/html", html),
        "markdown cell": new_markdown_cell(html),
        "markdown output": mime("text/markdown", html),
    }[way]
    assert_harmless(page(cell, mime("text/html", "<h3>after</h3>")))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([*FORBIDDEN, IMAGE, SCRIPT, "<table><tr><td>", "</td>", "&lt;", '"', "'", ">", "`"])))
def test_forbidden_html_in_any_mixture_is_dropped(parts: list[str]) -> None:
    frame = "<title>t</title><main></main><style></style>"
    head = '<head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
    rest = "style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'\"></head><body></body>"
    assert_harmless(head + rest + frame + safe_html("".join(parts)))


def test_the_whole_policy_survives_a_broken_page() -> None:
    """Unclosed elements in an output must not swallow what follows."""
    html = page(mime("text/html", "<table><tr><td><b>open"), new_markdown_cell("## After"))
    assert [tag for tag, _ in assert_harmless(html).found].count("h2") == 1
    assert html.rstrip().endswith("</html>")


# ---- what is honest stays -------------------------------------------------------------------------------------------


def test_headings_lists_links_and_tables_of_markdown() -> None:
    elements = assert_harmless(
        page(
            new_markdown_cell(
                "# One\n\n## Two\n\n### Three\n\n- a\n- b\n\n1. c\n\n**bold** *it* `code`\n\n"
                "| x | y |\n|---|--:|\n| 1 | 2 |\n\n[link](https://example.org/a?b=c&d) <https://example.org>\n\n"
                "```python\nx = 1 < 2\n```\n\n> quote"
            )
        )
    )
    tags = [tag for tag, _ in elements.found]
    for tag in ("h1", "h2", "h3", "ul", "ol", "li", "strong", "em", "code", "table", "thead", "th", "td", "blockquote"):
        assert tag in tags, tag
    assert elements.named("a")[0]["href"] == "https://example.org/a?b=c&d"
    assert elements.named("a")[0]["rel"] == "noopener noreferrer"
    assert "x = 1 < 2" in elements.text


def test_tables_of_pandas() -> None:
    frame = pd.DataFrame({"model": ["a<b", "c"], "score": [0.5, 1.0]})
    for html in (frame.to_html(), frame.style.format(escape="html").to_html()):
        elements = assert_harmless(page(mime("text/html", html)))
        tags = [tag for tag, _ in elements.found]
        assert tags.count("table") == 1
        assert {"thead", "tbody", "th", "tr", "td"} <= set(tags)
        assert "a<b" in elements.text


def test_details_captions_and_spans() -> None:
    html = (
        "<details><summary>more</summary><table><caption>C</caption><thead><tr><th scope='col' colspan='2'>h</th></tr>"
        "</thead><tbody><tr><td rowspan='2' class='number'>1</td></tr></tbody><tfoot><tr><td>n</td></tr></tfoot>"
        "</table></details><figure><figcaption>F</figcaption></figure><h4 id='a'>H</h4>"
    )
    elements = assert_harmless(page(mime("text/html", html)))
    tags = [tag for tag, _ in elements.found]
    for tag in ("details", "summary", "caption", "thead", "tbody", "tfoot", "figure", "figcaption", "h4"):
        assert tag in tags, tag
    assert {"scope": "col", "colspan": "2"} in elements.named("th")
    assert {"rowspan": "2", "class": "number"} in elements.named("td")
    assert {"id": "a"} in elements.named("h4")


def test_images_are_part_of_the_page() -> None:
    elements = assert_harmless(
        page(
            mime("image/png", PIXEL + "\n", **{"image/png": {"alt": 'A "dot" & more', "width": 9}}),
            mime("image/jpeg", PIXEL),
            mime("image/svg+xml", SVG, **{"image/svg+xml": {"alt": "A circle"}}),
            mime("text/html", f"<img src='data:image/png;base64,{PIXEL}' alt='inline'>"),
            new_markdown_cell(f"![md](data:image/png;base64,{PIXEL})"),
        )
    )
    png, jpeg, svg, html, markdown = elements.named("img")
    assert png["src"] == f"data:image/png;base64,{PIXEL}"
    assert png["alt"] == 'A "dot" & more'
    assert jpeg["src"] == f"data:image/jpeg;base64,{PIXEL}"
    assert jpeg["alt"] == "figure"
    assert svg["alt"] == "A circle"
    assert base64.b64decode((svg["src"] or "").removeprefix("data:image/svg+xml;base64,")).decode() == SVG
    assert (html["alt"], html["src"]) == ("inline", png["src"])
    assert (markdown["alt"], markdown["src"]) == ("md", png["src"])


def test_an_image_attached_to_a_markdown_cell_is_part_of_the_page() -> None:
    cell = new_markdown_cell("![dot](attachment:dot.png)", attachments={"dot.png": {"image/png": PIXEL}})
    (image,) = assert_harmless(page(cell)).named("img")
    assert image["src"] == f"data:image/png;base64,{PIXEL}"


def test_a_hostile_svg_is_an_image_and_nothing_else() -> None:
    """Inside <img> a browser runs no script of an SVG; the bytes stay what they were."""
    html = page(*POSITIONS["svg, script"])
    assert SCRIPT not in html
    (image,) = Elements(html).named("img")
    assert "script" in base64.b64decode((image["src"] or "").split(",")[1]).decode()


def test_streams_keep_their_words_and_lose_their_colours() -> None:
    text = (
        "\x1b[1;31mred\x1b[0m \x1b]8;;http://x.org\x07link\x1b]8;;\x07 \x1b]0;title\x07a\x08b\x00 <b>&amp;</b>\tend\n"
    )
    html = page(code(new_output("stream", name="stdout", text=text)))
    assert "red link ab &lt;b&gt;&amp;amp;&lt;/b&gt;\tend" in html
    for mark in ("\x1b", "\x00", "\x08", "\x07", "x.org", "[1;31m"):
        assert mark not in html


def test_stdout_stderr_and_errors_can_be_told_apart() -> None:
    elements = assert_harmless(
        page(
            code(new_output("stream", name="stdout", text="out")),
            code(new_output("stream", name="stderr", text="err")),
            error(traceback="\x1b[31mTraceback\x1b[0m <module>"),
        )
    )
    assert [pre.get("class") for pre in elements.named("pre") if "class" in pre] == ["stdout", "stderr", "error"]
    assert "Traceback <module>" in elements.text


@pytest.mark.parametrize("kind", ["text/plain", "text/latex", "stream"])
def test_long_text_is_capped_and_says_so(kind: str) -> None:
    text = "x" * 500_000
    cell = code(new_output("stream", name="stdout", text=text)) if kind == "stream" else mime(kind, text)
    html = page(cell)
    assert "more characters]" in html
    assert len(html) < 260_000


def test_what_cannot_be_shown_says_so() -> None:
    text = Elements(page(mime("application/javascript", "x"), mime(WIDGET, {"model_id": "a"}))).text
    assert "a script; reports run none" in text
    assert "a widget; open the notebook to use it" in text


def test_the_richest_form_is_shown_once() -> None:
    output = new_output("execute_result", data={"text/plain": "PLAIN", "text/html": "<b>RICH</b>"}, execution_count=1)
    text = Elements(page(code(output))).text
    assert text.count("RICH") == 1
    assert "PLAIN" not in text


def test_a_figure_is_shown_as_a_figure_though_it_has_a_text() -> None:
    output = new_output("display_data", data={"text/plain": "<Figure size 640x480>", "image/png": PIXEL})
    html = page(code(output))
    assert len(Elements(html).named("img")) == 1
    assert "640x480" not in html


def test_code_is_folded_and_whole() -> None:
    elements = assert_harmless(page(code(source="x = [a < b for a in '&']  # why")))
    assert ("details", {}) in elements.found
    assert "x = [a < b for a in '&']  # why" in elements.text


@pytest.mark.parametrize("title", ["", "A & B <i>", "quote \" and '", "길", "x" * 3000, "\x1b[31m"])
def test_titles_are_text(title: str) -> None:
    assert_harmless(page(new_markdown_cell("words"), title=title))


def test_no_cells_at_all() -> None:
    assert_harmless(page())


def test_the_same_notebook_gives_the_same_page() -> None:
    cells = [new_markdown_cell("# A\n\n## A\n\n## A"), code(new_output("stream", name="stdout", text="a"))]
    assert page(*cells) == page(*cells)


def test_maths_stays_text() -> None:
    text = Elements(page(new_markdown_cell("cost $5 and $$x_1$$ and \\(a\\)"), mime("text/latex", "$$x$$"))).text
    assert "cost $5 and $$x_1$$" in text
    assert "$$x$$" in text


def test_the_style_sheet_loads_nothing() -> None:
    assert not re.search(r"url\(|@import|@font-face|expression", stylesheet())


# ---- safe_html alone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html", ["<b>a</b>", "a &amp; b", "<p>a<br>b</p>", "<sub>a</sub><sup>b</sup>", "<pre>a\n b</pre>"]
)
def test_plain_html_stays_as_it_is(html: str) -> None:
    assert safe_html(html) == html


@settings(deadline=None)
@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = safe_html(text)
    assert safe_html(once) == once
