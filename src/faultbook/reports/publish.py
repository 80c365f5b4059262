"""Make the files of one report in a folder of its own, and put it in place whole."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from papermill.execute import ERROR_MARKER_TAG

from faultbook.reports.catalog import Report
from faultbook.reports.execute import Outcome
from faultbook.reports.layout import BUILDING, ERROR, FAILED, INDEX_IN_THE_MAKING, READ_LOG
from faultbook.reports.manifest import Inputs, data_digests, versions, write_manifest
from faultbook.reports.page import render
from faultbook.reports.swap import recover, swap_in

# A path begins after a colour of the terminal, after "//" of an address, after a line break as a repr writes it,
# or after what is no part of a name; and it ends where a name ends.
_BEFORE, _AFTER = r"(\x1b\[[0-9;]*m|(?<![\w.~/-])|(?<=://)|(?<=\\[nrt]))", r"(?![\w-]|\.\w)"
_READABLE = 0o755  # mkdtemp makes folders that only their owner can enter; a report is for others to read


@dataclass(frozen=True, slots=True)
class Making:
    """A report in the making: its inputs, with their digests from before the run, and the run that makes it."""

    report: Report
    inputs: Inputs
    fingerprint: dict[str, Any]
    started: datetime
    run: dict[str, Any]


def prepare(out: Path) -> None:
    """Make the reports folder and clear away what a killed run left in it (the caller holds its lock)."""
    for folder in (out, out / FAILED):
        if folder.is_dir():
            recover(folder)
            for left in folder.glob(f"{BUILDING}*"):
                shutil.rmtree(left, ignore_errors=True)
    for unfinished in out.glob(f"{INDEX_IN_THE_MAKING}*"):
        unfinished.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)


def new_building(out: Path, report: Report) -> Path:
    """An empty folder beside the target, so that it can be renamed into place."""
    return Path(tempfile.mkdtemp(prefix=f"{BUILDING}{report.name}-", dir=out))


def publish(building: Path, out: Path, made: Making, outcome: Outcome) -> Path:
    """Finish a successful run in `building` and swap it in as `out/<name>`; return the page's path."""
    name = made.report.name
    reads = data_digests(building / READ_LOG, made.inputs.data)
    (building / READ_LOG).unlink(missing_ok=True)
    _write_notebook(building, made, outcome)
    content = {
        **made.fingerprint,
        **reads,
        "name": name,
        "title": made.report.title,
        "seed": made.inputs.parameters.get("seed"),
        "versions": versions(),
        "run": made.run,
        "timing": {"started": made.started.isoformat(timespec="seconds"), "seconds": round(outcome.seconds, 3)},
    }
    write_manifest(building, content)
    building.chmod(_READABLE)
    swap_in(building, out / name)
    shutil.rmtree(out / FAILED / name, ignore_errors=True)
    return out / name / f"{name}.html"


def keep_failure(building: Path, out: Path, made: Making, outcome: Outcome) -> Path:
    """Keep what a failed run got to as `out/failed/<name>`; the last good report stays as it was."""
    name = made.report.name
    (building / READ_LOG).unlink(missing_ok=True)
    _write_notebook(building, made, outcome)
    failure = {
        "name": name,
        "title": made.report.title,
        "error": scrub(outcome.error or "", made.inputs, building),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(outcome.seconds, 3),
    }
    text = json.dumps(failure, indent=2, sort_keys=True, ensure_ascii=False)
    (building / ERROR).write_text(text + "\n", encoding="utf-8")
    building.chmod(_READABLE)
    (out / FAILED).mkdir(exist_ok=True)
    swap_in(building, out / FAILED / name)
    return out / FAILED / name / f"{name}.html"


def scrub(text: str, inputs: Inputs, building: Path | None = None) -> str:
    """Replace this machine's paths, and numbers that differ from run to run, by what they stand for."""
    places = [
        (building, "<report>"),
        (inputs.data.absolute(), "<data>"),
        (inputs.notebook.absolute().parent.parent, "<project>"),
        (Path(__file__).resolve().parents[1], "<faultbook>"),
        (Path(sys.prefix), "<python>"),
        (Path(sys.base_prefix), "<python>"),
        (Path(tempfile.gettempdir()), "<temporary>"),
        (_home(), "~"),
    ]
    spelled = [(str(path), name) for path, name in places if path is not None and path != Path(path.anchor)]
    for path, name in sorted(spelled, key=lambda place: -len(place[0])):
        text = re.sub(rf"{_BEFORE}{re.escape(path)}{_AFTER}", rf"\1{name}", text)
    return re.sub(r"\bipykernel_\d+\b", "ipykernel", text)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a user without a home
        return None


def clean(notebook: nbformat.NotebookNode, inputs: Inputs, building: Path | None = None) -> nbformat.NotebookNode:
    """Take out of an executed notebook what differs from run to run or tells about this machine."""
    notebook.cells = [cell for cell in notebook.cells if ERROR_MARKER_TAG not in cell.metadata.get("tags", [])]
    notebook.metadata.pop("papermill", None)
    notebook.metadata.pop("widgets", None)
    for index, cell in enumerate(notebook.cells):
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
        elif not cell.get("id"):
            cell.id = f"cell-{index}"
        if "outputs" in cell:
            cell.outputs = _scrubbed(cell.outputs, lambda text: scrub(text, inputs, building))
    return notebook


def _write_notebook(building: Path, made: Making, outcome: Outcome) -> None:
    notebook, name = clean(outcome.notebook, made.inputs, building), made.report.name
    failure = scrub(outcome.error or "", made.inputs, building)
    (building / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    (building / f"{name}.html").write_text(render(notebook, made.report.title, failure), encoding="utf-8")


def _scrubbed(value: Any, scrub_text: Callable[[str], str]) -> Any:
    """Scrub every text in nested outputs; images stay as they are."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return nbformat.from_dict(
            {key: item if key.startswith("image/png") else _scrubbed(item, scrub_text) for key, item in value.items()}
        )
    return [_scrubbed(item, scrub_text) for item in value] if isinstance(value, list) else value
