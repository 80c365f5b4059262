"""The notebooks that can be run as reports, found by their numbered names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from faultbook.errors import DataError, FaultbookError, unreadable
from faultbook.reports.parameters import Parameter, declared

_NUMBERED = re.compile(r"[0-9]{1,6}_.+")


@dataclass(frozen=True, slots=True)
class Report:
    """One notebook: its name (the file's stem), title (its first heading), and parameters."""

    name: str
    path: Path
    title: str
    parameters: list[Parameter]


def catalog(folder: Path) -> list[Report]:
    """List the notebooks `N_name.ipynb` of a folder, in the order of N.

    Raises
    ------
    DataError
        If there is none, or one is not a notebook or declares its parameters in a way that cannot be checked.
    """
    numbered = [path for path in folder.glob("*.ipynb") if _NUMBERED.fullmatch(path.stem)]
    paths = sorted(numbered, key=lambda path: (int(path.stem.split("_")[0]), path.stem))
    if not paths:
        raise DataError("no notebooks named N_name.ipynb here", file=folder, mend="name the folder with --notebooks")
    return [_report(path) for path in paths]


def select(reports: Sequence[Report], names: Sequence[str]) -> list[Report]:
    """Pick reports by name or number; without names, all of them.

    Raises
    ------
    FaultbookError
        If there is no such report.
    """
    if not names:
        return list(reports)
    chosen = []
    for name in dict.fromkeys(names):
        found = [report for report in reports if name in (report.name, report.name.split("_")[0])]
        if not found:
            raise FaultbookError(f"no report '{name}'; there are: {', '.join(report.name for report in reports)}")
        chosen += [report for report in found if report not in chosen]
    return chosen


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook file.

    Raises
    ------
    DataError
        If it is not a valid notebook.
    """
    try:
        notebook: nbformat.NotebookNode = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
    except OSError as error:
        raise unreadable(error, path) from None
    except (ValueError, nbformat.ValidationError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(f"not a notebook ({str(error).splitlines()[0]})", file=path) from None
    return notebook


def _report(path: Path) -> Report:
    notebook = read_notebook(path)
    return Report(path.stem, path, _title(notebook, path.stem), declared(notebook, path))


def _title(notebook: nbformat.NotebookNode, otherwise: str) -> str:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if line.startswith("# "):
                    return str(line[2:].strip())
    return otherwise
