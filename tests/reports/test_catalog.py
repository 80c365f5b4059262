"""Which notebooks are reports, and which of them are meant."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from small_project import Command, Project, make_notebook

from faultbook.errors import DataError, FaultbookError
from faultbook.reports.catalog import catalog, read_notebook, select


@pytest.fixture
def three(project: Project) -> Project:
    project.add("1", name="2_second", title="Second & last")
    project.add("1", name="10_tenth", title="Tenth")
    project.add("1", name="1_first", title="First", parameters="n: int = 1  # a number")
    (project.notebooks / "explore").mkdir()
    project.add("1", name="explore/3_not_one")
    project.add("1", name="draft")
    (project.notebooks / "1_first.py").write_text("")
    return project


def test_numbered_notebooks_in_the_order_of_their_numbers(three: Project) -> None:
    assert [(report.name, report.title) for report in three.catalog()] == [
        ("1_first", "First"),
        ("2_second", "Second & last"),
        ("10_tenth", "Tenth"),
    ]
    assert [p.name for p in three.catalog()[0].parameters] == ["n"]


def test_a_folder_without_notebooks(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no notebooks named N_name\.ipynb here; name the folder with --notebooks"):
        catalog(tmp_path)


@pytest.mark.parametrize("name", ["1b_draft", "1-old_copy", "2026-01-02_notes"])
def test_a_name_that_begins_with_more_than_a_number_is_no_report(three: Project, name: str) -> None:
    three.add("1", name=name)
    assert [report.name for report in three.catalog()] == ["1_first", "2_second", "10_tenth"]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ([], ["1_first", "2_second", "10_tenth"]),
        (["2"], ["2_second"]),
        (["2_second"], ["2_second"]),
        (["10", "1"], ["10_tenth", "1_first"]),
        (["1", "1_first", "1"], ["1_first"]),
    ],
)
def test_select_by_number_or_name(three: Project, names: list[str], chosen: list[str]) -> None:
    assert [report.name for report in select(three.catalog(), names)] == chosen


@pytest.mark.parametrize("name", ["3", "first", "1_firs", "", "01", "1_first.ipynb", "*"])
def test_unknown_names_are_refused_with_what_there_is(three: Project, name: str) -> None:
    with pytest.raises(FaultbookError) as caught:
        select(three.catalog(), ["1", name])
    assert str(caught.value) == f"no report '{name}'; there are: 1_first, 2_second, 10_tenth"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"cells": 1, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        b'{"cells": [{"cell_type": "code"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}',
        b'{"metadata": {}, "nbformat": 99, "nbformat_minor": 0, "cells": []}',
        b"[" * 20_000,
    ],
    ids=lambda content: content[:40].decode("ascii", "replace"),
)
def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "1_x.ipynb"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"1_x\.ipynb: not a notebook") as caught:
        read_notebook(file)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_or_a_broken_link_named_like_a_notebook(project: Project) -> None:
    project.add("1")
    (project.notebooks / "2_folder.ipynb").mkdir()
    with pytest.raises(DataError, match="2_folder"):
        project.catalog()
    (project.notebooks / "2_folder.ipynb").rmdir()
    (project.notebooks / "3_link.ipynb").symlink_to("nowhere.ipynb")
    with pytest.raises(DataError, match="3_link"):
        project.catalog()


def test_an_older_notebook_is_read(project: Project) -> None:
    old = {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": [{"cell_type": "heading", "level": 1, "source": ["Old"], "metadata": {}}]}],
    }
    (project.notebooks / "1_old.ipynb").write_text(json.dumps(old))
    (report,) = project.catalog()
    assert report.title == "Old"


@pytest.mark.parametrize(
    ("cells", "title"),
    [
        ([new_markdown_cell("# A title")], "A title"),
        ([new_markdown_cell("words\n\n#  Spaced  \n\n# Second")], "Spaced"),
        ([new_markdown_cell("## Lower"), new_markdown_cell("# Later")], "Later"),
        ([new_code_cell("# a comment")], "1_small"),
        ([new_markdown_cell("#NoSpace")], "1_small"),
        ([], "1_small"),
    ],
)
def test_the_title_is_the_first_heading(project: Project, cells: list[nbformat.NotebookNode], title: str) -> None:
    project.write(new_notebook(cells=cells))
    assert [report.title for report in project.catalog()] == [title]


# ---- the real command -----------------------------------------------------------------------------------------------


def test_list_runs_nothing(three: Project, command: Command) -> None:
    done = command("report", "--list")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "1_first  First",
        "    n: int = 1  # a number",
        "2_second  Second & last",
        "10_tenth  Tenth",
    ]
    assert not three.out.exists()


def test_list_as_json(three: Project, command: Command) -> None:
    done = command("report", "2", "1", "--list", "--json")
    assert json.loads(done.stdout) == {
        "reports": [
            {"name": "2_second", "title": "Second & last", "parameters": []},
            {
                "name": "1_first",
                "title": "First",
                "parameters": [{"name": "n", "type": "int", "default": 1, "help": "a number"}],
            },
        ]
    }
    assert not three.out.exists()


@pytest.mark.parametrize("arguments", [["7"], ["1", "first"], ["--list", "7"], ["1\n2"]])
def test_an_unknown_name_stops_everything(three: Project, command: Command, arguments: list[str]) -> None:
    assert "no report" in command("report", *arguments).error
    assert not three.out.exists()


def test_a_broken_notebook_stops_everything(three: Project, command: Command) -> None:
    (three.notebooks / "3_broken.ipynb").write_text("{")
    assert "3_broken.ipynb: not a notebook" in command("report", "1").error
    assert "3_broken.ipynb: not a notebook" in command("report", "--list").error
    assert not three.out.exists()


def test_folders_that_are_not_there(three: Project, command: Command) -> None:
    assert "--data absent: no such folder" in command("report", "--data", "absent").error
    assert "absent" in command("report", "--notebooks", "absent").error
    assert "no notebooks named" in command("report", "--notebooks", "data").error
    assert not three.out.exists()


def test_make_notebook_is_valid(project: Project) -> None:
    nbformat.validate(make_notebook("1", parameters="n: int = 1", first="import os"))
