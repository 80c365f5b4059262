"""The front page of the reports folder: every report with its status, time, inputs and summary."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from faultbook.reports.catalog import Report
from faultbook.reports.layout import ERROR, FAILED, INDEX_IN_THE_MAKING, SUMMARY
from faultbook.reports.manifest import read_manifest
from faultbook.reports.page import TEMPLATES, stylesheet
from faultbook.text import plain


def write_index(out: Path, reports: Sequence[Report], statuses: Mapping[str, str]) -> Path:
    """Write `index.html` for all reports of the catalog, from what lies in the folder; replace it in one step.

    Parameters
    ----------
    out : path
        The reports folder.
    reports : sequence of Report
        The catalog.
    statuses : mapping
        What this run did with each report; others are listed in the state they were left in.
    """
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    environment.filters["plain"] = plain
    rows = [_row(out, report, statuses.get(report.name)) for report in reports]
    page = environment.get_template("overview.html.j2").render(css=stylesheet(), rows=rows)
    descriptor, name = tempfile.mkstemp(prefix=INDEX_IN_THE_MAKING, dir=out)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(page)
    Path(name).chmod(0o644)
    Path(name).replace(out / "index.html")
    return out / "index.html"


def _row(out: Path, report: Report, status: str | None) -> dict[str, Any]:
    manifest, failure = _finished(out / report.name), _read(out / FAILED / report.name / ERROR)
    left = "failed" if failure else "unchanged" if manifest else "absent"
    row = {"name": report.name, "title": report.title, "status": status or left, "made": "–", "seconds": "–"}
    if manifest:
        timing = manifest["timing"]
        row |= {"made": timing["started"], "seconds": f"{timing['seconds']:.1f}"}
    return row | {
        "page": f"{report.name}/{report.name}.html" if manifest else None,
        "files": len(manifest["data"]) if manifest else None,
        "parameters": manifest["parameters"] if manifest else {},
        "summary": _read(out / report.name / SUMMARY) or {},
        "failure": failure and {**failure, "page": f"{FAILED}/{report.name}/{report.name}.html"},
    }


def _finished(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished report; None if there is none, or one that this version did not write."""
    manifest = read_manifest(folder)
    if manifest is None or not all(isinstance(manifest.get(key), dict) for key in ("timing", "data", "parameters")):
        return None
    timing = manifest["timing"]
    known = isinstance(timing.get("started"), str) and isinstance(timing.get("seconds"), int | float)
    return manifest if known else None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
