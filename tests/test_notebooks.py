"""The notebooks as they are committed: thin, clean, checked parameters; and the first one run on the project's data."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from faultbook.reports.catalog import catalog
from faultbook.reports.parameters import check_all, declared
from faultbook.reports.run import make_jobs, run_reports

PROJECT = Path(__file__).resolve().parents[1]
EVERY = sorted(path for path in (PROJECT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
REPORTS = [path for path in EVERY if path.parent.name == "notebooks"]
MARKUP = {"HTML", "Markdown", "Latex", "Math", "Javascript", "SVG", "IFrame", "display_html", "display_markdown"}
every = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
reports = pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[str]:
    return [cell.source for cell in read(path).cells if cell.cell_type == "code"]


def nodes(path: Path) -> Iterator[ast.AST]:
    for source in code(path):
        yield from ast.walk(ast.parse(source))


def test_there_are_notebooks() -> None:
    assert REPORTS
    assert [report.path for report in catalog(PROJECT / "notebooks")] == sorted(
        REPORTS, key=lambda path: int(path.stem.split("_")[0])
    ), "a notebook beside the reports that is none of them belongs into explore/"


@every
def test_it_is_a_valid_notebook_of_the_current_format(path: Path) -> None:
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (raw["nbformat"], raw["nbformat_minor"]) >= (4, 5)
    nbformat.validate(read(path))
    identifiers = [cell["id"] for cell in raw["cells"]]
    assert len(set(identifiers)) == len(identifiers)


@every
def test_it_is_committed_without_results(path: Path) -> None:
    notebook = read(path)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not {"papermill", "execution", "ExecuteTime"} & set(cell.metadata)
        assert "injected-parameters" not in cell.metadata.get("tags", [])
    assert not {"papermill", "widgets"} & set(notebook.metadata)


@every
def test_it_names_the_kernel_that_everyone_has(path: Path) -> None:
    assert read(path).metadata.kernelspec == {"name": "python3", "display_name": "Python 3", "language": "python"}


@reports
def test_it_begins_with_a_title(path: Path) -> None:
    first = read(path).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(r"# \S", first.source)
    titles = [
        line
        for cell in read(path).cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("# ")
    ]
    assert len(titles) == 1


@reports
def test_its_parameters_can_be_checked_and_are_explained(path: Path) -> None:
    notebook = read(path)
    assert [cell.cell_type for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])] == ["code"]
    parameters = declared(notebook, path)
    assert parameters
    assert [p.name for p in parameters if not p.help] == []
    defaults = {p.name: p.default for p in parameters}
    assert check_all(defaults, parameters, path.stem) == defaults, "a default is of its own type"


@every
def test_foreign_text_is_shown_only_by_the_functions_that_escape_it(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.split(".")[0] == "IPython"]
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] != "IPython", node.module
        if isinstance(node, ast.Name):
            assert node.id not in MARKUP
        if isinstance(node, ast.Attribute):
            assert node.attr not in MARKUP | {"style", "to_html", "_repr_html_"}, node.attr


def test_the_library_makes_html_in_one_place_only() -> None:
    source = PROJECT / "src" / "faultbook"
    used = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKUP
    }
    assert used == {"reports/show.py"}


@reports
def test_its_cells_are_short(path: Path) -> None:
    for source in code(path):
        lines = [line for line in source.splitlines() if line.strip() and not line.strip().startswith("#")]
        assert len(lines) <= 15, source


@reports
def test_it_holds_no_logic_and_no_place_of_its_own(path: Path) -> None:
    for node in nodes(path):
        assert not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.While, ast.Try))
    for source in code(path):
        assert not re.search(r"^\s*[%!]", source, re.MULTILINE), "a magic or a shell command"
        assert not re.search(r"[\"'](/\w|~/|[A-Z]:\\)", source), "an absolute path"


@reports
def test_every_table_and_figure_has_a_name_of_its_own(path: Path) -> None:
    for function in ("show_table", "show_figure"):
        fixed = [name for name in names(path, function) if isinstance(name, str)]
        assert len(set(fixed)) == len(fixed)
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) for name in fixed)


def names(path: Path, function: str) -> list[str | re.Pattern[str]]:
    """The names that a notebook gives its tables or figures; a pattern where a name is put together."""
    found: list[str | re.Pattern[str]] = []
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            argument = node.args[1] if len(node.args) > 1 else {k.arg: k.value for k in node.keywords}["name"]
            found.append(argument.value if isinstance(argument, ast.Constant) else pattern(argument))
    return found


def pattern(argument: ast.expr) -> re.Pattern[str]:
    if not isinstance(argument, ast.JoinedStr):
        return re.compile(r"[a-z0-9][a-z0-9-]*")
    parts = [
        re.escape(part.value) if isinstance(part, ast.Constant) else r"[a-z0-9][a-z0-9-]*" for part in argument.values
    ]
    return re.compile("".join(parts))


def unmatched(files: set[str], wanted: list[str | re.Pattern[str]]) -> list[Any]:
    """Files that no name stands for, and names that no file stands for."""

    def fits(name: str | re.Pattern[str], file: str) -> bool:
        return file == name if isinstance(name, str) else bool(name.fullmatch(file))

    return [file for file in sorted(files) if not any(fits(name, file) for name in wanted)] + [
        name for name in wanted if not any(fits(name, file) for file in files)
    ]


class Silent:
    """Progress that tells nothing."""

    def cell(self, name: str, index: int, total: int) -> None: ...

    def done(self, result: Any) -> None: ...

    def waiting(self, out: Path) -> None: ...


def test_the_first_notebook_gives_all_its_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    out = tmp_path / "reports"
    every_report = catalog(PROJECT / "notebooks")
    first = every_report[0]
    data = PROJECT / "data"
    jobs = make_jobs([first], data=data, lock=PROJECT / "requirements.lock", given={}, texts={})
    (result,) = run_reports(jobs, every_report, out, progress=Silent())
    assert (result.status, result.error) == ("ran", None)

    folder = out / first.name
    tables = {path.stem for path in (folder / "tables").glob("*.csv")}
    figures = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert unmatched(tables, names(first.path, "show_table")) == []
    assert unmatched(figures, names(first.path, "show_figure")) == []
    assert {path.stem for path in (folder / "figures").glob("*.png")} == figures
    assert all(path.stat().st_size > 0 for path in folder.rglob("*") if path.is_file())

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    printed = {path.relative_to(data).as_posix() for path in (data / "reported").glob("*.csv")}
    assert set(manifest["data"]) == printed | {"reported/relations.yaml"}

    outputs = [output for cell in read(folder / f"{first.name}.ipynb").cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.get("name") == "stderr"] == [], "a warning in the report"
    page = (folder / f"{first.name}.html").read_text(encoding="utf-8")
    assert page.count("<img ") == len(figures)
    assert page.count("<table>") >= len(tables)
    assert "more characters]" not in page, "a text was cut"
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))
