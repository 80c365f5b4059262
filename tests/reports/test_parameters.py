"""Parameters: declared in the notebook, checked before anything runs, and never turned into code."""

from __future__ import annotations

import ast
import datetime
import enum
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from small_project import Command, Project, make_notebook

from faultbook.errors import DataError, FaultbookError, ParameterError
from faultbook.reports.parameters import Parameter, check_all, declared, read_parameters, split_assignment

CELL = """\
text: str = "a=b"  # a default with an equals sign
count: int = 3
rate: float = 0.5  # between 0 and 1
flag: bool = False
mode: Literal["fast", "slow"] = "fast"
bound: float | None = None
limit: Optional[int] = None
name: str | None = None
names: list[str] = [
    "one",
    "two",
]  # over several lines
nested: dict[str, list[float]] = {"a": [1.0, 2.0]}
anything: dict = {}
items: list = []
"""
DECLARED = declared(make_notebook(parameters=CELL), "1_small.ipynb")
BY_NAME = {parameter.name: parameter for parameter in DECLARED}


def one(line: str) -> Parameter:
    """The parameter that a line declares."""
    (parameter,) = declared(make_notebook(parameters=line), "1_small.ipynb")
    return parameter


class Colour(enum.Enum):
    RED = "red"


# ---- what a notebook declares ---------------------------------------------------------------------------------------


def test_every_line_is_a_parameter_with_its_type_default_and_help() -> None:
    assert [(p.name, p.type, p.default, p.help) for p in DECLARED] == [
        ("text", "str", "a=b", "a default with an equals sign"),
        ("count", "int", 3, ""),
        ("rate", "float", 0.5, "between 0 and 1"),
        ("flag", "bool", False, ""),
        ("mode", "Literal['fast', 'slow']", "fast", ""),
        ("bound", "float | None", None, ""),
        ("limit", "Optional[int]", None, ""),
        ("name", "str | None", None, ""),
        ("names", "list[str]", ["one", "two"], "over several lines"),
        ("nested", "dict[str, list[float]]", {"a": [1.0, 2.0]}, ""),
        ("anything", "dict", {}, ""),
        ("items", "list", [], ""),
    ]


def test_a_notebook_without_parameters_declares_none() -> None:
    assert declared(make_notebook("x = 1"), "a.ipynb") == []


def test_comments_and_blank_lines_declare_nothing() -> None:
    assert [p.name for p in declared(make_notebook(parameters="# all of them\n\nn: int = 1\n\n# end\n"), "a")] == ["n"]


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("import os", 1),
        ("n: int = 1\nimport os", 2),
        ("n: int = 1\nfrom os import path", 2),
        ("n = 1", 1),
        ("n: int", 1),
        ("n: int = 1\n\nprint(n)", 3),
        ("n: int = 1\nm: int = n + 1", 2),
        ("m: int = 1 + 1", 1),
        ('n: int = 1\np: str = open("/etc/passwd").read()', 2),
        ("n: int = __import__('os').getpid()", 1),
        ('n: str = f"{1}"', 1),
        ("n: float = float('nan')", 1),
        ("names: list[str] = [\n    'a',\n]\nx.y: int = 1", 4),
        ("names: list[str] = []\nnames[0]: str = 'a'", 2),
        ("n: Path = 'a'", 1),
        ("n: pathlib.Path = 'a'", 1),
        ("n: datetime.date = None", 1),
        ("n: 'int' = 1", 1),
        ("n: tuple[int, int] = (1, 2)", 1),
        ("n: list[int, str] = []", 1),
        ("n: dict[str] = {}", 1),
        ("n: Literal[len] = 1", 1),
        ("n: print(1) = 1", 1),
        ("n: int | Path = 1", 1),
        ("if True:\n    n: int = 1", 1),
        ("n: int = 1; import os", 1),
        ("(n): int = 1\n'text'", 2),
    ],
)
def test_anything_else_in_the_parameters_cell_is_refused_with_its_line(cell: str, line: int) -> None:
    with pytest.raises(DataError) as caught:
        declared(make_notebook(parameters=cell), "1_small.ipynb")
    assert str(caught.value).startswith(f"1_small.ipynb, row {line} of the parameters cell: ")
    assert str(caught.value).endswith("write 'name: type = literal # help'")


@pytest.mark.parametrize(
    "cell", ["n: int = ", "%matplotlib inline", "n: int = 1\n  m: int = 2", "n: str = 'a\nb'", "("]
)
def test_a_parameters_cell_that_is_not_python_is_refused(cell: str) -> None:
    with pytest.raises(DataError, match=r"^1_small\.ipynb.*parameters cell") as caught:
        declared(make_notebook(parameters=cell), "1_small.ipynb")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "n: int = 'one'",
        "n: int = None",
        "n: bool = 1",
        "n: str = 1",
        "mode: Literal['a', 'b'] = 'c'",
        "names: list[str] = [1]",
        "n: float = 1e999",
        "items: list = (1, 2)",
        "items: list = [b'1']",
        "table: dict = {1: 2}",
        "n: float | None = 'x'",
    ],
)
def test_a_default_that_is_not_of_its_own_type_is_refused(line: str) -> None:
    with pytest.raises(FaultbookError, match=r"'(n|mode|names|items|table)'"):
        check_all({}, [one(line)], "1_small")


def test_an_int_default_may_stand_for_a_float() -> None:
    assert check_all({}, [one("rate: float = 1")], "1_small") == {"rate": 1}


def test_two_cells_tagged_parameters_are_refused() -> None:
    """Values are put in after the first; the second would win over them, and the manifest would tell another value."""
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# Title"),
            new_code_cell("n: int = 1", metadata={"tags": ["other", "parameters"]}),
            new_code_cell("n: int = 2", metadata={"tags": ["parameters"]}),
        ]
    )
    with pytest.raises(DataError, match=r"^a\.ipynb.*parameters"):
        declared(notebook, "a.ipynb")


# ---- values through the Python API ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", ""),
        ("text", "007"),
        ("text", "true"),
        ("text", "naïve “quotes” 🦊\n\\"),
        ("count", 0),
        ("count", -(10**30)),
        ("rate", 0.25),
        ("rate", -0.0),
        ("flag", True),
        ("mode", "slow"),
        ("bound", None),
        ("bound", 2.5),
        ("limit", 4),
        ("limit", None),
        ("name", "007"),
        ("name", None),
        ("names", []),
        ("names", ["a=b", "{c}"]),
        ("nested", {"x": [], "y": [0.5]}),
        ("anything", {"a": {"b": [1, None, True, "x", 0.5]}}),
        ("items", [[1], {"a": 2}, None]),
    ],
)
def test_values_of_the_declared_type_are_taken_as_they_are(name: str, value: Any) -> None:
    taken = BY_NAME[name].check(value)
    assert taken == value
    assert type(taken) is type(value)


def test_an_int_is_taken_for_a_float() -> None:
    assert repr(BY_NAME["rate"].check(2)) == "2.0"
    assert BY_NAME["bound"].check(2) == 2
    assert BY_NAME["nested"].check({"a": [1]}) == {"a": [1]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", True),
        ("count", 1.0),
        ("count", "1"),
        ("count", None),
        ("rate", True),
        ("rate", "0.5"),
        ("rate", None),
        ("flag", 1),
        ("flag", "true"),
        ("text", 7),
        ("text", True),
        ("text", None),
        ("text", ["a"]),
        ("mode", "FAST"),
        ("mode", 1),
        ("bound", "1"),
        ("bound", False),
        ("limit", 1.0),
        ("limit", True),
        ("names", "one"),
        ("names", ["one", 2]),
        ("names", {"a": 1}),
        ("nested", {"a": 1.0}),
        ("nested", {"a": ["x"]}),
        ("nested", [1.0]),
        ("anything", [1]),
        ("items", {"a": 1}),
    ],
)
def test_values_of_another_type_are_refused_with_what_was_found(name: str, value: Any) -> None:
    parameter = BY_NAME[name]
    with pytest.raises(ParameterError) as caught:
        parameter.check(value)
    assert str(caught.value) == f"parameter '{name}' is {parameter.type}; found {value!r}"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("rate", lambda value: value),
        ("bound", lambda value: value),
        ("nested", lambda value: {"a": [0.0, value]}),
        ("anything", lambda value: {"a": {"b": value}}),
        ("items", lambda value: [[1.0], [value]]),
        ("items", lambda value: [{"a": (value)}]),
    ],
)
def test_numbers_that_are_not_finite_are_refused_at_any_depth(name: str, wrap: Any, value: float) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' must be a finite number; found -?(nan|inf)$"):
        BY_NAME[name].check(wrap(value))


@pytest.mark.parametrize(
    "value",
    [
        Path("a"),
        datetime.date(2026, 1, 2),
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        (1, 2),
        {1, 2},
        frozenset({1}),
        b"bytes",
        bytearray(b"bytes"),
        np.int64(1),
        np.float32(1),
        np.bool_(True),
        np.array([1, 2]),
        Colour.RED,
        Decimal(1),
        1j,
        object(),
        pd.NA,
        pd.Timestamp("2026-01-02"),
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_a_notebook_cannot_hold_is_refused_at_any_depth(value: Any, depth: int) -> None:
    name, wrapped = [("text", value), ("items", [value]), ("anything", {"a": [value]})][depth]
    with pytest.raises(ParameterError, match=f"^parameter '{name}' cannot be a {type(value).__name__}"):
        BY_NAME[name].check(wrapped)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, {True: 1}, {1: True, "a": 2}, {(1, 2): 3}, {1.5: 1}])
@pytest.mark.parametrize("depth", [0, 1])
def test_keys_must_be_text(value: dict[Any, Any], depth: int) -> None:
    with pytest.raises(ParameterError, match=r"^parameter 'anything' has the key .*; keys must be text$"):
        BY_NAME["anything"].check({"deep": value} if depth else value)


@pytest.mark.parametrize("name", ["items", "anything"])
def test_a_value_that_holds_itself_is_refused(name: str) -> None:
    value: Any = [] if name == "items" else {}
    value.append(value) if name == "items" else value.update(a=value)
    with pytest.raises(ParameterError, match=f"'{name}'"):
        BY_NAME[name].check(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "a\ud800"),
        ("names", ["\udcff"]),
        ("items", ["\udcff"]),
        ("anything", {"a": "\ud800"}),
        ("anything", {"\ud800": "a"}),
    ],
)
def test_text_that_is_not_unicode_is_refused(name: str, value: Any) -> None:
    """Half a surrogate pair, as a badly encoded command line gives, cannot be written to a file."""
    with pytest.raises(ParameterError, match=f"'{name}'") as caught:
        BY_NAME[name].check(value)
    str(caught.value).encode("utf-8")


def test_an_integer_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ParameterError, match="'rate'"):
        BY_NAME["rate"].check(10**400)


def test_a_long_value_is_not_repeated_in_full() -> None:
    with pytest.raises(ParameterError) as caught:
        BY_NAME["count"].check("x" * 10_000)
    assert len(str(caught.value)) < 200


def test_defaults_fill_in_and_unknown_names_are_refused() -> None:
    parameters = [BY_NAME["count"], BY_NAME["rate"]]
    assert check_all({"rate": 1}, parameters, "1_small") == {"count": 3, "rate": 1.0}
    with pytest.raises(ParameterError, match=r"^notebook '1_small' has no parameter 'cuont'; it has: count, rate$"):
        check_all({"cuont": 1}, parameters, "1_small")
    with pytest.raises(ParameterError, match=r"it has: none$"):
        check_all({"n": 1}, [], "1_small")


# ---- values from the command line -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "007", "007"),
        ("text", "true", "true"),
        ("text", "None", "None"),
        ("text", "1e5", "1e5"),
        ("text", "2026-01-02", "2026-01-02"),
        ("text", "", ""),
        ("text", " a ", " a "),
        ("text", "a=b: [c", "a=b: [c"),
        ("text", "null", "null"),
        ("count", "7", 7),
        ("count", "-7", -7),
        ("rate", "1e5", 100000.0),
        ("rate", "1E-3", 0.001),
        ("rate", ".5", 0.5),
        ("rate", "2", 2.0),
        ("flag", "true", True),
        ("flag", "False", False),
        ("mode", "slow", "slow"),
        ("bound", "0.5", 0.5),
        ("bound", "1e5", 100000.0),
        ("bound", "null", None),
        ("limit", "3", 3),
        ("limit", "null", None),
        ("name", "007", "007"),
        ("name", "yes", "yes"),
        ("name", "null", None),
        ("names", "[a, b]", ["a", "b"]),
        ("names", "['007', 'yes']", ["007", "yes"]),
        ("nested", "{a: [1.5, 2], b: []}", {"a": [1.5, 2.0], "b": []}),
        ("anything", "{a: {b: null}}", {"a": {"b": None}}),
    ],
)
def test_text_is_read_by_the_declared_type(name: str, text: str, value: Any) -> None:
    found = BY_NAME[name].parse(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("line", "text", "value"),
    [
        ("mode: Literal['on', 'off'] = 'off'", "on", "on"),
        ("mode: Literal['no', 'yes'] = 'no'", "yes", "yes"),
        ("mode: Literal['007', '008'] = '007'", "007", "007"),
        ("mode: Literal['1e5'] = '1e5'", "1e5", "1e5"),
        ("mode: Literal['2026-01-02', 'x'] = 'x'", "2026-01-02", "2026-01-02"),
        ("mode: Literal['null', 'x'] = 'x'", "null", "null"),
        ("size: Literal[1, 2] = 1", "2", 2),
        ("mode: Literal['a', 'b'] | None = None", "b", "b"),
        ("mode: Literal['a', 'b'] | None = None", "null", None),
    ],
)
def test_a_choice_is_read_as_it_is_written(line: str, text: str, value: Any) -> None:
    assert one(line).parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("count", "1.0"),
        ("count", "one"),
        ("count", "true"),
        ("count", ""),
        ("count", "1e5"),
        ("count", "[1]"),
        ("count", "010"),  # eight in YAML 1.1: neither reading is what everyone means
        ("count", "1:30"),  # ninety in YAML 1.1
        ("rate", "nan"),
        ("rate", ".nan"),
        ("rate", "inf"),
        ("rate", "-.inf"),
        ("rate", "1e999"),
        ("rate", "half"),
        ("rate", "1:30"),
        ("rate", "1" * 400),
        ("flag", "1"),
        ("flag", "maybe"),
        ("mode", "quick"),
        ("bound", "nan"),
        ("bound", "-inf"),
        ("limit", "x"),
        ("limit", "2026-01-02"),
        ("names", "one"),
        ("names", "[1, 2]"),
        ("names", "[2026-01-02]"),
        ("names", "[a"),
        ("nested", "{a: [.nan]}"),
        ("nested", "{1: [2.0]}"),
        ("anything", "{1: 2}"),
        ("anything", "{a: 2026-01-02}"),
        ("anything", "{a: !!set {b}}"),
        ("anything", "{a: !!binary aGk=}"),
        ("anything", "{a: !!python/object/apply:os.getcwd []}"),
        ("anything", "{a: 1, a: 2}"),
        ("items", "[.inf]"),
        ("items", "&a [*a]"),
        ("items", "[" * 3000),
        ("text", "\udcff"),
    ],
)
def test_text_that_does_not_fit_is_refused(name: str, text: str) -> None:
    with pytest.raises(FaultbookError, match=f"'{name}'") as caught:
        BY_NAME[name].parse(text)
    assert "\n" not in str(caught.value)


def test_a_refused_text_of_several_lines_is_told_in_one() -> None:
    with pytest.raises(ParameterError) as caught:
        BY_NAME["count"].parse("{\n:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "pair"), [("a=1", ("a", "1")), ("a=b=c", ("a", "b=c")), ("a=", ("a", ""))])
def test_the_first_equals_sign_divides(text: str, pair: tuple[str, str]) -> None:
    assert split_assignment(text) == pair


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", "'a' is not NAME=VALUE"),
        ("", "'' is not NAME=VALUE"),
        ("=1", "'' is not a parameter name"),
        ("x; import os; y=1", "'x; import os; y' is not a parameter name"),
        ("a b=1", "'a b' is not a parameter name"),
        ("a.b=1", "'a.b' is not a parameter name"),
        ("1a=1", "'1a' is not a parameter name"),
        (" a=1", "' a' is not a parameter name"),
    ],
)
def test_names_are_identifiers(text: str, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        split_assignment(text)
    assert str(caught.value) == problem


# ---- a file of parameters -------------------------------------------------------------------------------------------


def test_a_file_is_one_mapping(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("count: 5\nnested: {a: [1.5]}\ntext: '007'\nbound: null\n", encoding="utf-8")
    assert read_parameters(file) == {"count": 5, "nested": {"a": [1.5]}, "text": "007", "bound": None}


# ---- the real command: one line, exit code 2, and nothing ran -------------------------------------------------------


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("cuont=1", "no report to run has a parameter 'cuont'; there are: anything, bound, count,"),
        ("x; import os; y=1", "'x; import os; y' is not a parameter name"),
        ("count", "'count' is not NAME=VALUE"),
        ("count=1.0", "parameter 'count' is int; found 1.0"),
        ("count=true", "parameter 'count' is int; found True"),
        ("count=\n{", "parameter 'count' is int"),
        ("count\n=1", "is not a parameter name"),
        ("rate=nan", "parameter 'rate' must be a finite number; found nan"),
        ("rate=inf", "parameter 'rate' must be a finite number; found inf"),
        ("bound=-.inf", "parameter 'bound' must be a finite number; found -inf"),
        ("rate=" + "9" * 400, "parameter 'rate'"),
        ("nested={a: [1.0, .nan]}", "parameter 'nested' must be a finite number; found nan"),
        ("anything={1: 2}", "parameter 'anything' has the key 1; keys must be text"),
        ("anything={a: 2026-01-02}", "parameter 'anything' cannot be a date (2026-01-02); write it as text in quotes"),
        ("items=&a [*a]", "parameter 'items'"),
        ("items=" + "[" * 3000, "parameter 'items'"),
        ("mode=quick", "parameter 'mode' is Literal['fast', 'slow']; found 'quick'"),
        ("text=\udcff", "parameter 'text'"),
        ('names=["\\uD800"]', "parameter 'names'"),
    ],
    ids=lambda text: ascii(text)[1:30],
)
def test_a_bad_assignment_stops_everything(project: Project, command: Command, assignment: str, said: str) -> None:
    project.add("x = 1", parameters=CELL)
    line = command("report", "-p", "flag=true", "-p", assignment).error
    assert line.startswith("faultbook: ")
    assert said in line
    assert not project.out.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- count\n- 1\n", "p.yaml: holds ['count', 1], not a mapping; write one 'name: value' a line"),
        ("just text", "p.yaml: holds 'just text', not a mapping"),
        ("count: 1\ncount: 2\n", "p.yaml, row 2: the key 'count' stands twice in one mapping"),
        ("nested: {a: [1.0], a: [2.0]}\n", "p.yaml, row 1: the key 'a' stands twice"),
        ("count: [1\n", "p.yaml, row 2: "),
        ("count: 1\n\tflag: true\n", "p.yaml, row 2: "),
        ("\x00", "p.yaml"),
        ("!!python/object/apply:os.getcwd []", "p.yaml, row 1: could not determine a constructor"),
        ("when: 2026-01-02\n", "no report to run has a parameter 'when'"),
        ("text: 2026-01-02\n", "parameter 'text' cannot be a date (2026-01-02); write it as text in quotes"),
        ("text: 007\n", "parameter 'text' is str; found 7"),
        ("rate: .nan\n", "parameter 'rate' must be a finite number; found nan"),
        ("rate: true\n", "parameter 'rate' is float; found True"),
        ("count: 2.0\n", "parameter 'count' is int; found 2.0"),
        ("items: [1, [.inf]]\n", "parameter 'items' must be a finite number; found inf"),
        ("anything: {1: a}\n", "parameter 'anything' has the key 1; keys must be text"),
        ("anything: {a: !!set {b}}\n", "parameter 'anything' cannot be a set"),
        ("items: &a [*a]\n", "parameter 'items'"),
        ("'x; import os; y': 1\n", "p.yaml: 'x; import os; y' is not a parameter name; use a Python identifier"),
        ("1: 2\n", "p.yaml: '1' is not a parameter name"),
        ('text: "\\uD800"\n', "parameter 'text'"),
    ],
)
def test_a_bad_file_of_parameters_stops_everything(project: Project, command: Command, content: str, said: str) -> None:
    project.add("x = 1", parameters=CELL)
    (project.folder / "p.yaml").write_text(content, encoding="utf-8")
    line = command("report", "--params", "p.yaml").error
    assert line.startswith("faultbook: ")
    assert said in line
    assert not project.out.exists()


def test_a_file_of_parameters_that_is_not_utf8_or_not_there(project: Project, command: Command) -> None:
    project.add("x = 1", parameters=CELL)
    (project.folder / "p.yaml").write_bytes(b"text: \xff\n")
    assert "p.yaml: not UTF-8 text" in command("report", "--params", "p.yaml").error
    assert "absent.yaml" in command("report", "--params", "absent.yaml").error
    assert not project.out.exists()


def test_a_bad_parameters_cell_of_any_notebook_stops_everything(project: Project, command: Command) -> None:
    project.add("x = 1", parameters=CELL)
    project.add("x = 1", name="2_other", parameters="n: int = 1\nimport os")
    line = command("report").error
    assert "2_other.ipynb, row 2 of the parameters cell: not a parameter declaration" in line
    assert not project.out.exists()


def test_a_default_of_the_wrong_type_stops_everything(project: Project, command: Command) -> None:
    project.add("x = 1", parameters="n: int = 'one'")
    assert "'n'" in command("report").error
    assert not project.out.exists()


# ---- what arrives ---------------------------------------------------------------------------------------------------

NASTY = {
    "quotes": """'"'''\"\"\"""",
    "escapes": "\\n \\ \\\\ \\u0041 \\",
    "lines": "a\nb\r\nc\r\td\x0b\x0c\x1c\x85\u2028\u2029e",
    "braces": "{braces} {{0}} {} %s %(a)s ${HOME} $(id) `id` #",
    "code": "'); import os; os._exit(7) #",
    "cell": "%magic\n!ls\n?x",
    "letters": "é e\u0301 한국어 🦊 \U0010ffff \u202e\u200f \ufeff",
    "control": "\x01\x07\x1b[31mred\x1b[0m\x7f",
    "tags": "<script>alert(1)</script>&amp;",
}


def test_nasty_text_arrives_in_a_real_run(project: Project, command: Command) -> None:
    lines = [f"{name}: str = ''" for name in NASTY]
    project.add(f"print(ascii([{', '.join(NASTY)}]))", parameters="\n".join(lines))
    assignments = [part for name, text in NASTY.items() for part in ("-p", f"{name}={text}")]
    done = command("report", "--quiet", *assignments)
    assert done.code == 0, done.stderr
    assert ast.literal_eval(project.printed()) == list(NASTY.values())
    assert project.manifest()["parameters"] == NASTY


def test_every_kind_of_parameter_arrives_without_a_false_warning(project: Project, command: Command) -> None:
    """Papermill's own line parser does not know half of these types, and would say so."""
    names = [parameter.name for parameter in DECLARED]
    project.add(f"print(ascii([{', '.join(names)}]))", parameters=CELL, first="from typing import Literal, Optional")
    file = project.folder / "p.yaml"
    file.write_text("text: from the file\ncount: 9\nlimit: 4\nanything: {a: [1, null, {b: '{c}'}]}\n", encoding="utf-8")
    done = command("report", "--params", file, "--quiet", "-p", "text=a=b", "-p", "rate=1e5", "-p", "mode=slow")
    assert (done.code, done.stderr) == (0, "")
    assert ast.literal_eval(project.printed()) == [
        *("a=b", 9, 100000.0, False, "slow", None, 4, None),
        *(["one", "two"], {"a": [1.0, 2.0]}, {"a": [1, None, {"b": "{c}"}]}, []),
    ]


def injected(parameters: dict[str, Any]) -> ast.Module:
    """The cell that papermill makes of values, parsed."""
    notebook = load_notebook_node(make_notebook(parameters="n: int = 1"))
    notebook = parameterize_notebook(notebook, parameters, kernel_name="python3", language="python")
    nbformat.writes(notebook).encode("utf-8")
    return ast.parse(notebook.cells[2].source)


def assert_arrives(name: str, value: Any) -> None:
    checked = BY_NAME[name].check(value)
    (statement,) = injected({name: checked}).body
    assert isinstance(statement, ast.Assign)
    (target,) = statement.targets
    assert isinstance(target, ast.Name)
    assert target.id == name
    found = ast.literal_eval(statement.value)
    assert repr(found) == repr(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)


PLAIN = LEAVES | _nested(LEAVES | _nested(LEAVES))


@settings(deadline=None)
@given(TEXTS)
def test_any_text_arrives_as_one_plain_literal(text: str) -> None:
    assert BY_NAME["text"].parse(text) == text
    assert_arrives("text", text)


@settings(deadline=None)
@given(st.lists(PLAIN, max_size=4))
def test_any_plain_value_arrives_as_one_plain_literal(value: list[Any]) -> None:
    assert_arrives("items", value)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_number_arrives_unrounded(value: float) -> None:
    assert_arrives("rate", value)
    assert BY_NAME["rate"].parse(repr(value)) == value


@settings(deadline=None, max_examples=30)
@given(st.text(st.characters()))
def test_any_text_at_all_is_taken_or_refused(text: str) -> None:
    """Half surrogates included: nothing but a ParameterError may come of a text."""
    for parameter in DECLARED:
        try:
            value = parameter.parse(text)
        except ParameterError:
            continue
        injected({parameter.name: value})


@pytest.mark.parametrize("default", ["open('x')", "[print()]", "{[]: 1}", "1 + x"])
def test_a_default_that_is_no_literal_is_named_as_written(default: str) -> None:
    with pytest.raises(DataError, match="is not a literal") as caught:
        one(f"n: dict = {default}")
    assert f"'{default}'" in str(caught.value)
    assert "0x" not in str(caught.value)


def test_an_empty_file_of_parameters_is_called_empty(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.touch()
    with pytest.raises(DataError, match="is empty; write one 'name: value' a line"):
        read_parameters(file)
