"""Turn an executed notebook into one self-contained HTML page in which nothing can run.

Three layers: notebooks show foreign text only through `faultbook.reports.show`, which escapes it; every piece of HTML
in a cell is cleaned here; and a content security policy forbids scripts, requests and forms whatever slips through.
"""

from __future__ import annotations

import base64
import copy
import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
import nh3
from nbconvert import HTMLExporter

from faultbook.text import escaped, plain

TEMPLATES = Path(__file__).resolve().parent / "template"
_TAGS = nh3.ALLOWED_TAGS | {"img", "figure", "figcaption", "tfoot", "caption", "colgroup", "col", "details", "summary"}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_IMAGE_WITHOUT_SOURCE = re.compile(r"<img(?![^>]*\ssrc=)[^>]*>")
_IGNORED_IN_ADDRESSES = dict.fromkeys([*range(0x21), 0x7F])  # browsers read "da\tta:" as "data:"
_ATTRIBUTES = {
    "*": {"class", "title", "id"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start"},
}


def render(notebook: nbformat.NotebookNode, title: str, failure: str = "") -> str:
    """Render a notebook as an HTML page.

    Parameters
    ----------
    notebook : NotebookNode
        Executed, or as far as it got.
    title : str
        The page's title, as plain text.
    failure : str
        Why the run failed, as plain text; shown on top.

    Returns
    -------
    str
        One HTML document: figures inline, code folded, no script, no address outside the page but ordinary links.
    """
    exporter = HTMLExporter(template_name="template", extra_template_basedirs=[str(TEMPLATES.parent)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = exporter.exclude_anchor_links = True
    filters = {
        "safe_html": safe_html,
        "plain_text": functools.partial(escaped, most=200_000),
        "alternative": _alternative,
        "width": _width,
        "one_line": lambda text: escaped("".join(text.split()), most=len(text)),
        "base64": lambda text: base64.b64encode(text.encode("utf-8")).decode("ascii"),
    }
    for name, function in filters.items():
        exporter.register_filter(name, function)
    resources = {"report_title": title, "report_css": stylesheet(), "report_failure": failure}
    shown = _only_what_shows(notebook, exporter.default_config["NbConvertBase"]["display_data_priority"])
    html, _ = exporter.from_notebook_node(shown, resources=resources)
    return str(html)


def _only_what_shows(notebook: nbformat.NotebookNode, shown: Iterable[str]) -> nbformat.NotebookNode:
    """Say where a widget or another output was that a page cannot show; nbconvert would drop it without a word."""
    copied, known = copy.deepcopy(notebook), set(shown) - {_WIDGET}
    for cell in copied.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if _WIDGET in data:
                output.data = nbformat.from_dict({"text/plain": "(a widget; open the notebook to use it)"})
            elif data and not known & set(data):
                text = f"({', '.join(sorted(data))}; open the notebook to see it)"
                output.data = nbformat.from_dict({"text/plain": text})
    return copied


def stylesheet() -> str:
    """The style sheet of all pages."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8")


def safe_html(html: str) -> str:
    """Keep the text, tables, headings and images of a piece of HTML; drop scripts, styles, forms, frames, redirects."""
    cleaned = nh3.clean(
        plain(html, most=len(html)),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto", "data"},
        attribute_filter=_only_data_images,
        strip_comments=True,
        link_rel="noopener noreferrer",
    )
    return _IMAGE_WITHOUT_SOURCE.sub("", cleaned)


def _only_data_images(tag: str, attribute: str, value: str) -> str | None:
    """Images only from the page itself; and nothing else from a `data:` address."""
    if attribute not in ("src", "href"):
        return value
    address = value.translate(_IGNORED_IN_ADDRESSES)
    if tag == "img":
        return address if address.lower().startswith("data:image/") else None
    return None if address.lower().startswith("data:") else address


def _width(metadata: Any) -> str:
    """The width attribute of an image, where the notebook gave one."""
    for mime in ("image/png", "image/jpeg"):
        width = metadata[mime].get("width") if isinstance(metadata.get(mime), dict) else None
        if isinstance(width, int) and 0 < width < 10_000:
            return f' width="{width}"'
    return ""


def _alternative(metadata: Any) -> str:
    for mime in ("image/png", "image/svg+xml", "image/jpeg"):
        if isinstance(metadata.get(mime), dict) and metadata[mime].get("alt"):
            return escaped(metadata[mime]["alt"], most=1000)
    return escaped(metadata.get("alt", "figure"), most=1000)
