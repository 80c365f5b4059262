"""What a notebook's `parameters` cell declares, and whether given values fit it. Nothing given here becomes code."""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, Union, get_args, get_origin

from nbformat import NotebookNode
from pydantic import ConfigDict, TypeAdapter, ValidationError

from faultbook.errors import DataError, ParameterError, short_repr
from faultbook.text import is_unicode
from faultbook.yamlfile import load_yaml, parse_yaml

_PLAIN: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "None": None,
}
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_DEEPEST = 50  # levels of lists and mappings


@dataclass(frozen=True, slots=True)
class Parameter:
    """One line of a parameters cell: `name: type = default  # help`."""

    name: str
    type: str
    default: Any
    help: str
    annotation: Any

    def check(self, value: Any) -> Any:
        """Return the value if it is of the declared type (an int may stand for a float), else raise ParameterError."""
        _refuse_unwritable(self.name, value)
        try:
            if self.annotation is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            return TypeAdapter(self.annotation, config=_STRICT).validate_python(value)
        except (ValidationError, OverflowError):
            raise self._mismatch(repr(value)) from None

    def parse(self, text: str) -> Any:
        """Read a value from the command line by the declared type: text stays text, everything else is YAML."""
        if self.annotation is str or (get_origin(self.annotation) is Literal and text in get_args(self.annotation)):
            return self.check(text)
        try:
            value = parse_yaml(text, self.name)
        except DataError:
            raise self._mismatch(repr(text)) from None
        if isinstance(value, str) and _takes(self.annotation, float):
            value = _number(value)  # YAML 1.1 reads 1e5 as text
        elif _is_number(value) and _number(text, type(value)) != value:
            raise self._mismatch(repr(text))  # and 010 as 8, 1:30 as 90
        return self.check(text if _is_union_with_text(self.annotation) and value is not None else value)

    def _mismatch(self, found: str) -> ParameterError:
        found = " ".join(found.split())
        shown = found if len(found) <= 80 else found[:77] + "..."
        return ParameterError(f"parameter '{self.name}' is {self.type}; found {shown}")


def declared(notebook: NotebookNode, file: str | Path) -> list[Parameter]:
    """Read the parameters that a notebook declares in its cell tagged `parameters`.

    Every statement there must be `name: type = literal`, with a comment that says what it is for. Types are str, int,
    float, bool, None, list[…], dict[str, …], Literal[…], and unions of them.

    Raises
    ------
    DataError
        If a statement in that cell is anything else, or there is a second such cell.
    """
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if not cells:
        return []
    if len(cells) > 1:  # the second one would set its defaults after the given values
        raise DataError(f"{len(cells)} cells are tagged 'parameters'", file=file, mend="tag one of them only")
    source = cells[0].source
    try:
        statements, comments = ast.parse(source).body, _comments(source)
    except (SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"the parameters cell is not Python ({error})", file=file) from None
    return [_parameter(statement, comments, file) for statement in statements]


def check_all(given: Mapping[str, Any], parameters: Sequence[Parameter], notebook: str) -> dict[str, Any]:
    """Check given values against the declared parameters, and fill in the defaults.

    Raises
    ------
    ParameterError
        For an unknown name, a value of the wrong type, or one that cannot be written into a notebook.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ParameterError(f"notebook '{notebook}' has no parameter '{name}'; it has: {known}")
    return {name: p.check(given[name]) if name in given else p.default for name, p in by_name.items()}


def split_assignment(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`.

    Raises
    ------
    ParameterError
        If there is no "=" or the name is not an identifier.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"'{text}' is not NAME=VALUE")
    if not name.isidentifier():
        raise ParameterError(f"'{name}' is not a parameter name")
    return name, value


def read_parameters(path: str | Path) -> dict[str, Any]:
    """Read a YAML file of parameters: one mapping of names to plain values.

    Raises
    ------
    DataError, ParameterError
        If the file is no mapping, or a name is not an identifier.
    """
    values = load_yaml(path)
    if not isinstance(values, dict):
        raise DataError(
            "is empty" if values is None else f"holds {short_repr(values)}, not a mapping",
            file=path,
            mend="write one 'name: value' a line",
        )
    for name in values:
        if not (isinstance(name, str) and name.isidentifier()):
            raise DataError(f"'{name}' is not a parameter name", file=path, mend="use a Python identifier")
    return values


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def _parameter(statement: ast.stmt, comments: Mapping[int, str], file: str | Path) -> Parameter:
    line = statement.lineno
    mend = "write 'name: type = literal  # help'"
    if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value):
        raise DataError("not a parameter declaration", file=file, row=f"{line} of the parameters cell", mend=mend)
    name = statement.target.id
    try:
        annotation, default = _type(statement.annotation), _literal(statement.value)
        help_text = comments.get(statement.end_lineno or line, "")
        parameter = Parameter(name, ast.unparse(statement.annotation), default, help_text, annotation)
        return replace(parameter, default=parameter.check(default))
    except (ValueError, ParameterError) as error:
        problem = f"parameter '{name}' is not declared plainly ({error})"
        raise DataError(problem, file=file, row=f"{line} of the parameters cell", mend=mend) from None


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):  # their messages name objects by their address
        raise ValueError(f"'{ast.unparse(node)}' is not a literal") from None


def _type(node: ast.expr) -> Any:
    """A type from its annotation, built from names we know; nothing is evaluated."""
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.Name) and node.id in _PLAIN:
        return _PLAIN[node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(_type(node.left), _type(node.right))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match node.value.id:
            case "Literal":
                return Literal[tuple(ast.literal_eval(item) for item in inside)]
            case "Optional" if len(inside) == 1:
                return _union(_type(inside[0]), None)
            case "list" if len(inside) == 1:
                return GenericAlias(list, (_type(inside[0]),))
            case "dict" if len(inside) == 2:
                return GenericAlias(dict, (_type(inside[0]), _type(inside[1])))
    raise ValueError(f"the type '{ast.unparse(node)}' is not one of str, int, float, bool, None, list, dict, Literal")


def _union(one: Any, other: Any) -> Any:
    return Union[one, other]  # noqa: UP007  # `None | None` is none


def _takes(annotation: Any, kind: type) -> bool:
    return annotation is kind or (get_origin(annotation) is Union and kind in get_args(annotation))


def _is_union_with_text(annotation: Any) -> bool:
    """Whether text is one of several allowed types, so that 007 or yes must stay as typed."""
    return annotation is not str and _takes(annotation, str)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _number(text: str, kind: type[int] | type[float] = float) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


def _refuse_unwritable(name: str, value: Any, depth: int = 0) -> None:
    """Refuse what a notebook cannot hold as plain JSON."""
    if depth > _DEEPEST:
        raise ParameterError(f"parameter '{name}' is nested more than {_DEEPEST} levels deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"parameter '{name}' must be a finite number; found {value}")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ParameterError(f"parameter '{name}' has the key {key!r}; keys must be text")
            _refuse_unwritable(name, key, depth + 1)
            _refuse_unwritable(name, item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _refuse_unwritable(name, item, depth + 1)
    elif isinstance(value, str) and not is_unicode(value):
        raise ParameterError(f"parameter '{name}' holds half of a surrogate pair; found {value!r}")
    elif not isinstance(value, (str, int, float, type(None))):
        kind = type(value).__name__
        raise ParameterError(f"parameter '{name}' cannot be a {kind} ({value}); write it as text in quotes")
