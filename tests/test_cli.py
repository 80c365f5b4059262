"""The `faultbook` command: audit, lab, and what they say to whom. `report` is tested in tests/reports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import faultbook
from faultbook.audit import STATUSES
from faultbook.cli import main
from faultbook.paths import DATA_VARIABLE

COMMAND = str(Path(sys.executable).parent / "faultbook")
PROJECT = Path(__file__).resolve().parents[1]
KEYS = ["source", "table", "row", "column", "printed", "value", "recomputed", "status", "reason", "against"]

TABLE = """\
source,table,row,column,printed,unit,kind,n
lab,trials,first,solved,3,count,count,
lab,trials,second,solved,2,count,count,
lab,trials,all,solved,6,count,count,
lab,trials,all,rate,33.3 %,%,rate,18
lab,trials,all,note,see <text>,1,label,
"""
RELATIONS = """\
relations:
  - id: all-solved
    kind: sum
    total: lab/trials/all/solved
    parts: [lab/trials/first/solved, lab/trials/second/solved]
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run the command in this process, in an empty folder."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)

    def running(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return running


@pytest.fixture
def in_house(tmp_path: Path) -> Path:
    """A team's own printed numbers with their relations."""
    place = tmp_path / "in-house"
    place.mkdir()
    (place / "trials.csv").write_text(TABLE, encoding="utf-8")
    (place / "relations.yaml").write_text(RELATIONS, encoding="utf-8")
    return place


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"not strict JSON: {name}")

    return json.loads(text, parse_constant=refuse)


def refused(result: Result) -> str:
    """The one line on stderr of a refused command."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


# ---- audit ----------------------------------------------------------------------------------------------------------


def test_audit_of_the_projects_own_numbers(run: Callable[..., Result]) -> None:
    result = run("audit", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = strict(result.stdout)
    assert list(found) == ["rows", "counts"]
    assert all(list(row) == KEYS for row in found["rows"])
    assert list(found["counts"]) == list(STATUSES)
    for status in STATUSES:
        assert found["counts"][status] == sum(row["status"] == status for row in found["rows"]) > 0
    assert all(isinstance(row["value"], float) for row in found["rows"])
    assert all(row["recomputed"] is None or isinstance(row["recomputed"], float) for row in found["rows"])
    assert all(row["reason"] for row in found["rows"])
    identifiers = {"/".join(row[key] for key in KEYS[:4]) for row in found["rows"]}
    assert len(identifiers) == len(found["rows"])
    for row in found["rows"]:
        assert all(other in identifiers for other in filter(None, row["against"].split("; ")))


def test_audit_of_a_table_of_ones_own(run: Callable[..., Result], in_house: Path) -> None:
    found = strict(run("audit", "--json", "--data", in_house).stdout)
    assert [(row["row"], row["column"], row["value"], row["status"]) for row in found["rows"]] == [
        ("first", "solved", 3.0, "inconsistent"),
        ("second", "solved", 2.0, "inconsistent"),
        ("all", "solved", 6.0, "inconsistent"),
        ("all", "rate", 0.333, "consistent"),
    ]
    assert found["rows"][2]["recomputed"] == 5.0
    assert found["rows"][2]["against"] == "lab/trials/first/solved; lab/trials/second/solved"
    assert found["counts"] == {"inconsistent": 3, "recomputed": 0, "ambiguous": 0, "consistent": 1, "quoted": 0}


def test_audit_as_text_says_the_same(run: Callable[..., Result], in_house: Path) -> None:
    result = run("audit", "--data", in_house)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "lab: 4 printed numbers: 3 inconsistent, 1 consistent",
        "  inconsistent  lab/trials/first/solved  3",
        "    3 + 2 = 5, printed 6",
        "  inconsistent  lab/trials/second/solved  2",
        "    3 + 2 = 5, printed 6",
        "  inconsistent  lab/trials/all/solved  6",
        "    3 + 2 = 5, printed 6",
    ]


def test_audit_finds_the_folder_in_a_data_folder(run: Callable[..., Result], in_house: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(in_house, data / "reported")
    (data / "other.csv").write_text("not,printed\n1,2\n")
    assert run("audit", "--json", "--data", data).stdout == run("audit", "--json", "--data", in_house).stdout


def test_audit_finds_the_projects_folder(
    run: Callable[..., Result], in_house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / "notebooks").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    shutil.copytree(in_house, project / "data" / "reported")
    expected = run("audit", "--json", "--data", in_house).stdout
    monkeypatch.chdir(project / "notebooks")
    assert run("audit", "--json").stdout == expected
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, str(project / "data"))
    assert run("audit", "--json").stdout == expected


def test_audit_without_relations(run: Callable[..., Result], in_house: Path) -> None:
    (in_house / "relations.yaml").unlink()
    found = strict(run("audit", "--json", "--data", in_house).stdout)
    assert [row["status"] for row in found["rows"]] == ["quoted", "quoted", "quoted", "consistent"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("relations.yaml", RELATIONS.replace("first", "frist"), "row all-solved: no printed number 'lab/trials/frist/"),
        ("relations.yaml", RELATIONS.replace("sum", "summ"), "relations.yaml, row relation 1 (all-solved)"),
        ("relations.yaml", "relations: {}\n", "relations.yaml: no list under 'relations'"),
        ("relations.yaml", "a: [\n", "relations.yaml, row 2"),
        ("relations.yaml", "", "relations.yaml: no list under 'relations'"),
        ("trials.csv", TABLE.replace("33.3 %", "33.3 % ± 2"), "trials.csv, row 5, column 'printed'"),
        ("trials.csv", TABLE.replace("unit", "units"), "trials.csv, row 1: columns missing: ['unit']"),
        ("trials.csv", TABLE.replace("second", "first"), "trials.csv, row 3: cell 'lab/trials/first/solved' stands"),
        ("trials.csv", "", "trials.csv: not a CSV table"),
    ],
)
def test_a_fault_of_the_input_is_one_line(
    run: Callable[..., Result], in_house: Path, name: str, content: str, said: str
) -> None:
    (in_house / name).write_text(content, encoding="utf-8")
    for arguments in (["--json"], []):
        line = refused(run("audit", "--data", in_house, *arguments))
        assert line.startswith("faultbook: ")
        assert said in line


@pytest.mark.parametrize("where", ["absent", "empty"])
def test_a_folder_without_numbers_is_one_line(run: Callable[..., Result], tmp_path: Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    assert f"{where}: no CSV file of printed numbers here" in refused(run("audit", "--data", where))


def test_a_file_instead_of_a_folder_is_told(run: Callable[..., Result], in_house: Path) -> None:
    result = run("audit", "--data", in_house / "trials.csv")
    assert result.exit_code == 2
    assert "trials.csv" in result.stderr


# ---- the command itself ---------------------------------------------------------------------------------------------


def test_version(run: Callable[..., Result]) -> None:
    assert run("--version").stdout == f"faultbook, version {faultbook.__version__}\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_the_commands(run: Callable[..., Result], option: str) -> None:
    result = run(option)
    assert result.exit_code == 0
    for name in ("audit", "lab", "report"):
        assert f"  {name} " in result.stdout


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lab", ["--port", "--no-browser"]),
        ("audit", ["--data", "--json"]),
        (
            "report",
            ["--data", "--out", "--parameter", "--params", "--jobs", "--force", "--limit", "--notebooks", "--list"],
        ),
    ],
)
def test_help_of_a_command(run: Callable[..., Result], name: str, options: list[str]) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert [option for option in options if option not in result.stdout] == []


def test_lab_refuses_a_port_that_is_none(run: Callable[..., Result]) -> None:
    assert run("lab", "--port", "0").exit_code == 2


def test_lab_listens_on_this_machine_only_and_keeps_its_token(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, arguments: started.append([program, *arguments[1:]]))
    run("lab", "--port", "8899", "--no-browser")
    (command,) = started
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--ServerApp.ip=127.0.0.1" in command
    assert "--port=8899" in command
    assert "--no-browser" in command
    assert f"--ServerApp.root_dir={PROJECT}" in command
    assert not [argument for argument in command if "token" in argument or "password" in argument]


def test_the_installed_command_and_what_it_imports() -> None:
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"faultbook, version {faultbook.__version__}\n"
    program = (
        "import sys, faultbook.cli; print(sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    )
    heavy = ["pandas", "papermill", "numpy", "matplotlib", "nbconvert", "IPython", "scipy", "pydantic", "yaml"]
    loaded = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


def test_the_installed_command_refuses_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run([COMMAND, "audit", "--data", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"faultbook: {tmp_path}: no CSV file of printed numbers here")
    assert len(done.stderr.splitlines()) == 1


# ---- mistakes in the call --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "No such command 'nonsense'; see faultbook --help"),
        (("report", "--jbs", "3"), "No such option '--jbs'"),
        (("report", "--jobs", "0"), "0 is not in the range 1<=x<=64; see faultbook report --help"),
        (("diagnosis", "score"), "Missing option '--truth'; see faultbook diagnosis score --help"),
    ],
)
def test_a_mistaken_call_is_one_line(run: Callable[..., Result], arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(run(*arguments))
