"""Files of a report: cleaned of what tells about a machine or a moment, and of nothing else."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from small_project import tree

from faultbook.reports.catalog import Report
from faultbook.reports.execute import Outcome
from faultbook.reports.layout import BUILDING, FAILED, MANIFEST, READ_LOG
from faultbook.reports.manifest import Inputs
from faultbook.reports.publish import Making, clean, keep_failure, new_building, prepare, publish, scrub

RUN = {"run_id": "r", "trial_id": "1_small.1.abc", "journal": ".runs/r/journal.jsonl"}


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    project = tmp_path / "project"
    for name in ("notebooks", "data"):
        (project / name).mkdir(parents=True)
    (project / "notebooks" / "1_small.ipynb").write_text("{}")
    return Inputs(project / "notebooks" / "1_small.ipynb", project / "data", project / "requirements.lock", {"seed": 7})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "out"
    prepare(place)
    return place


def making(inputs: Inputs) -> Making:
    report = Report("1_small", inputs.notebook, "A <small> title", [])
    return Making(report, inputs, inputs.fingerprint(), datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), RUN)


def executed(*outputs: nbformat.NotebookNode, source: str = "1") -> nbformat.NotebookNode:
    return new_notebook(cells=[new_markdown_cell("# T"), new_code_cell(source, outputs=list(outputs))])


def stream(text: str) -> nbformat.NotebookNode:
    return new_output("stream", name="stdout", text=text)


# ---- scrub ----------------------------------------------------------------------------------------------------------


def test_places_of_this_machine_are_named_for_what_they_are(inputs: Inputs) -> None:
    project = inputs.notebook.parent.parent
    text = (
        f"{inputs.data}/a.csv {project}/notebooks/1_small.ipynb {sys.prefix}/lib/x.py "
        f"{sys.base_prefix}/lib/y.py {Path.home()}/.cache/z {tempfile.gettempdir()}/t"
    )
    said = scrub(text, inputs)
    assert said == (
        "<data>/a.csv <project>/notebooks/1_small.ipynb <python>/lib/x.py <python>/lib/y.py ~/.cache/z <temporary>/t"
    )


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{}.",
        "{}, and",
        "'{}'",
        "({})",
        "PATH={}:{}",
        "file://{}",
        "<b>{}</b>",
        "\x1b[32m{}\x1b[39m",
        "a\n{}\nb",
        "a\\n{}\\nb",  # the repr of a text of several lines
        "&#x27;{}&#x27;",
    ],
)
def test_a_place_is_found_whatever_stands_around_it(inputs: Inputs, around: str) -> None:
    place = f"{inputs.data}/a.csv"
    assert scrub(around.replace("{}", place), inputs) == around.replace("{}", "<data>/a.csv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no path at all.",
        "https://example.org/a/b.html",
        "1.5 / 2.5 = 0.6; a/b; <td>x</td>; ./a; ../b",
        "/etc/hosts",
        "é 한국어 🦊",
    ],
)
def test_text_without_places_stays_as_it_is(inputs: Inputs, text: str) -> None:
    assert scrub(text, inputs) == text


HONEST = "a.b, 1.5; <td>x</td>; https://example.org/data/set.html; metadata/database; foo/data/a and //x"


@pytest.mark.parametrize(
    ("notebook", "data"),
    [
        ("notebooks/1_small.ipynb", "/elsewhere/data"),  # --notebooks notebooks
        ("1_small.ipynb", "/elsewhere/data"),  # --notebooks .
        ("/notebooks/1_small.ipynb", "/elsewhere/data"),  # a container with its folders at the top
        ("/1_small.ipynb", "/elsewhere/data"),
        ("/project/notebooks/1_small.ipynb", "/data"),
        ("/project/notebooks/1_small.ipynb", "/"),
    ],
)
def test_short_places_do_not_eat_honest_text(notebook: str, data: str) -> None:
    inputs = Inputs(Path(notebook), Path(data), Path("requirements.lock"), {})
    assert scrub(HONEST, inputs) == HONEST


@pytest.mark.parametrize("home", ["/", "/x"])
def test_a_short_home_does_not_eat_honest_text(inputs: Inputs, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """In many containers the home folder of a user without a name is /."""
    monkeypatch.setenv("HOME", home)
    assert scrub(HONEST, inputs) == HONEST


def test_a_user_without_a_home(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run under a number that no account has."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert scrub(HONEST, inputs) == HONEST


def test_a_neighbour_with_the_same_beginning_is_another_place(inputs: Inputs) -> None:
    assert "<data>" not in scrub(f"{inputs.data}-other/a.csv", inputs)


# ---- clean ----------------------------------------------------------------------------------------------------------


def test_what_differs_from_run_to_run_is_taken_out(inputs: Inputs) -> None:
    notebook = executed(stream("x"))
    notebook.metadata.update(
        papermill={"duration": 1.5}, widgets={"a": 1}, kernelspec={"name": "python3", "display_name": "P"}
    )
    notebook.cells[1].metadata.update(papermill={"start_time": "now"}, execution={"iopub": "now"}, tags=["keep"])
    injected = new_code_cell("n = 1", metadata={"tags": ["injected-parameters"]})
    without_id = new_code_cell("2")
    del without_id["id"]
    notebook.cells += [injected, without_id]
    cleaned = clean(notebook, inputs)
    assert set(cleaned.metadata) == {"kernelspec"}
    assert cleaned.cells[1].metadata == {"tags": ["keep"]}
    assert [cell.id for cell in cleaned.cells[2:]] == ["injected-parameters", "cell-3"]
    nbformat.validate(cleaned)


@pytest.mark.parametrize("mime", ["text/plain", "text/html", "text/markdown", "image/svg+xml", "application/json"])
def test_places_in_outputs_are_scrubbed(inputs: Inputs, mime: str) -> None:
    text: Any = f"{inputs.data}/a"
    content = {"deep": [text, {"er": text}]} if mime == "application/json" else text
    notebook = executed(
        new_output("execute_result", data={mime: content}, metadata={"x": {"alt": text}}),
        stream(text),
        new_output("error", ename="E", evalue=text, traceback=[text, text]),
    )
    written = nbformat.writes(clean(notebook, inputs))
    assert str(inputs.data) not in written
    assert written.count("<data>/a") >= 6


def test_pictures_are_left_alone(inputs: Inputs) -> None:
    content = "iVBOR" + str(inputs.data).replace("/", "+")
    notebook = executed(new_output("display_data", data={"image/png": content, "text/plain": "x"}))
    assert clean(notebook, inputs).cells[1].outputs[0].data["image/png"] == content


def test_the_number_of_a_kernel_is_taken_out(inputs: Inputs) -> None:
    """A warning in a cell names the file that the kernel made of it, with its process number."""
    one, two = (
        scrub(f"{tempfile.gettempdir()}/ipykernel_{number}/{cell}.py:1: UserWarning: x", inputs)
        for number, cell in ((123, 99887766), (45678, 99887766))
    )
    assert one == two


# ---- folders --------------------------------------------------------------------------------------------------------


def test_prepare_makes_the_folder_and_clears_leftovers(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "out"
    prepare(place)
    assert list(place.iterdir()) == []
    for leftover in (f"{BUILDING}1_x-abc", f"{FAILED}/{BUILDING}1_x-abc"):
        (place / leftover / "deep").mkdir(parents=True)
        (place / leftover / "deep" / "a").touch()
    for moved in (".1_x.old", f"{FAILED}/.1_x.old"):
        (place / moved).mkdir()
        (place / moved / "a").write_text("the last good one")
    (place / ".index-abc").write_text("half")
    (place / "own.txt").write_text("someone else's")
    prepare(place)
    assert tree(place) == {
        "1_x/a": b"the last good one",
        f"{FAILED}/1_x/a": b"the last good one",
        "own.txt": b"someone else's",
    }


def test_publish_puts_the_whole_report_in_place(inputs: Inputs, out: Path) -> None:
    (inputs.data / "a.csv").write_text("x")
    (out / FAILED / "1_small").mkdir(parents=True)
    building = new_building(out, making(inputs).report)
    (building / READ_LOG).write_text("read\ta.csv\n")
    (building / "tables").mkdir()
    (building / "tables" / "t.csv").write_text("x\n")
    page = publish(building, out, making(inputs), Outcome(executed(stream("hello")), 1.23456, None))
    assert page == out / "1_small" / "1_small.html"
    assert sorted(tree(out)) == [
        f"1_small/{name}" for name in ("1_small.html", "1_small.ipynb", MANIFEST, "tables/t.csv")
    ]
    assert not (out / FAILED / "1_small").exists()
    assert (out / "1_small").stat().st_mode & 0o777 == 0o755
    assert b"A &lt;small&gt; title" in page.read_bytes()
    manifest = nbformat.reader.parse_json((out / "1_small" / MANIFEST).read_text())
    assert manifest["timing"] == {"started": "2026-01-02T03:04:05+00:00", "seconds": 1.235}
    assert (manifest["name"], manifest["title"], manifest["seed"]) == ("1_small", "A <small> title", 7)
    assert list(manifest["data"]) == ["a.csv"]
    assert manifest["run"] == RUN


def test_a_failure_is_kept_beside_the_last_good_report(inputs: Inputs, out: Path) -> None:
    publish(new_building(out, making(inputs).report), out, making(inputs), Outcome(executed(stream("good")), 1.0, None))
    good = tree(out / "1_small")
    building = new_building(out, making(inputs).report)
    (building / READ_LOG).write_text("read\ta.csv\n")
    error = f"cell 1: OSError: {inputs.data}/a.csv <gone>"
    page = keep_failure(building, out, making(inputs), Outcome(executed(stream("bad")), 2.0, error))
    assert page == out / FAILED / "1_small" / "1_small.html"
    assert tree(out / "1_small") == good
    assert sorted(tree(out / FAILED / "1_small")) == ["1_small.html", "1_small.ipynb", "error.json"]
    failure = nbformat.reader.parse_json((out / FAILED / "1_small" / "error.json").read_text())
    assert {key: failure[key] for key in ("name", "title", "error", "seconds")} == {
        "name": "1_small",
        "title": "A <small> title",
        "error": "cell 1: OSError: <data>/a.csv <gone>",
        "seconds": 2.0,
    }
    assert b"bad" in page.read_bytes()
