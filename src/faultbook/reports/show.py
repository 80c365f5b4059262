"""What a notebook calls to show a table or a figure, so that the report keeps it as a file too.

In a report run the table or figure is also saved under `tables/` or `figures/`; in JupyterLab it is only shown.
Every string is escaped: a log line, a model name or a column label is text, never markup.
"""

from __future__ import annotations

import io
import json
import numbers
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, Image, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from faultbook.reports.layout import OUTPUT_VARIABLE, SUMMARY
from faultbook.style import figure_style
from faultbook.text import escaped

_PRINTED = re.compile(r"[+−±~-]?[\d.][\d.,]*( ?[%A-Za-z]{1,3})?$")
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def show_table(
    frame: pd.DataFrame,
    name: str,
    caption: str,
    *,
    note: str = "",
    formats: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    fold: bool = False,
) -> None:
    """Show a table with a caption, and save it as `tables/<name>.csv` (unrounded, with the frame's own columns).

    Parameters
    ----------
    frame : DataFrame
        Shown without its index. A column called `status` is set in bold and in the colour of its value.
    name : str
        File name without ending: lower-case letters, digits and hyphens.
    caption, note : str
        Above and below the table.
    formats : mapping, optional
        Column to format specification (".2f", "+.1%"); other numbers are shown as they are.
    labels : mapping, optional
        Column to shown heading.
    fold : bool
        Show only the caption until it is clicked; for long tables.
    """
    target = _target("tables", name)
    if target is not None:
        frame.to_csv(target.with_suffix(".csv"), index=False, lineterminator="\n")
    html = table_html(frame, "" if fold else caption, note=note, formats=formats, labels=labels)
    display(HTML(f"<details><summary>{escaped(caption)}</summary>{html}</details>" if fold else html))


def table_html(
    frame: pd.DataFrame,
    caption: str,
    *,
    note: str = "",
    formats: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> str:
    """Write a table as HTML in which every caption, heading and cell is escaped."""
    formats, labels = formats or {}, labels or {}
    numeric = {name for name in frame.columns if name in formats or _is_numbers(frame[name])}
    head = "".join(
        f'<th scope="col"{_class(name in numeric)}>{escaped(labels.get(name, _heading(name)))}</th>'
        for name in frame.columns
    )
    rows = [
        "<tr>"
        + "".join(
            _cell(name, value, formats.get(name), number=name in numeric)
            for name, value in zip(frame.columns, row, strict=True)
        )
        + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    ]
    if frame.empty:
        note = f"{note}; nothing to show" if note else "nothing to show"
    foot = f'<tfoot><tr><td colspan="{len(frame.columns)}">{escaped(note, most=2000)}</td></tr></tfoot>' if note else ""
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>{foot}</table>"


def show_figure(figure: Figure | Axes, name: str, alternative: str) -> None:
    """Show a figure as PNG, save it as `figures/<name>.svg` and `.png`, and close it.

    Parameters
    ----------
    figure : Figure or Axes
        What to show.
    name : str
        File name without ending: lower-case letters, digits and hyphens.
    alternative : str
        What the figure shows, for readers who do not see it.
    """
    figure = figure.get_figure(root=True) or plt.gcf() if isinstance(figure, Axes) else figure
    target = _target("figures", name)
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # fixed when a text is made, so the style alone would come too late
    with figure_style():
        picture = _saved(figure, "png")
        if target is not None:
            target.with_suffix(".png").write_bytes(picture)
            target.with_suffix(".svg").write_bytes(_saved(figure, "svg"))
    plt.close(figure)
    width = int(figure.get_figwidth() * 96)
    display(Image(picture, format="png", width=width, alt=alternative))


def slug(text: str) -> str:
    """Make a file name for `show_table` and `show_figure` of any text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def summarise(**values: str | int | float) -> None:
    """Leave a few values for the index of all reports."""
    folder = os.environ.get(OUTPUT_VARIABLE)
    if folder:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, indent=2)
        (Path(folder) / SUMMARY).write_text(text + "\n", encoding="utf-8")


def _saved(figure: Figure, kind: str) -> bytes:
    stream = io.BytesIO()
    # No date and no version: the same figure has the same bytes.
    figure.savefig(stream, format=kind, metadata=dict.fromkeys(("Date", "Creator") if kind == "svg" else ("Software",)))
    return stream.getvalue()


def _target(kind: str, name: str) -> Path | None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' is not a file name of lower-case letters, digits and hyphens")
    if not os.environ.get(OUTPUT_VARIABLE):
        return None
    folder = Path(os.environ[OUTPUT_VARIABLE]) / kind
    folder.mkdir(exist_ok=True)
    if (folder / name).with_suffix(".csv" if kind == "tables" else ".png").exists():
        raise ValueError(f"this report already has a '{name}' in {kind}; give the second another name")
    return folder / name


def _heading(name: object) -> str:
    """Our own column names read as words; what is not such a name is shown as it is."""
    text = str(name)
    return text.replace("_", " ") if _COLUMN.fullmatch(text) else text


def _class(number: bool) -> str:
    return ' class="number"' if number else ""


def _cell(name: object, value: Any, specification: str | None, *, number: bool) -> str:
    if _missing(value):
        return f"<td{_class(number)}>–</td>"
    if name == "status":
        word = escaped(value)
        return f'<td class="status status-{word}">{word}</td>'
    if specification is not None and not isinstance(value, str):
        return f"<td{_class(number)}>{escaped(format(value, specification)).replace('-', '−')}</td>"
    shown = value
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        whole = isinstance(value, numbers.Integral)
        shown = (str(value) if whole else f"{float(value):.6g}").replace("-", "−")
    return f"<td{_class(number)}>{escaped(shown)}</td>"


def _missing(value: Any) -> bool:
    """None, NaN, NA and NaT."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _is_numbers(column: pd.Series) -> bool:
    """Numbers, or printed numbers: they are set flush right."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return True
    texts = [value for value in column if not (_missing(value) or (isinstance(value, str) and value in ("", "—")))]
    return bool(texts) and all(isinstance(value, str) and _PRINTED.match(value) for value in texts)
