"""Save an intervention rule as JSON and load it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from faultbook.atomic import write_whole
from faultbook.errors import DataError, FaultbookError, short_repr, unreadable
from faultbook.recovery.rule import InterventionRule
from faultbook.text import is_unicode, plain

SCHEMA = "faultbook.recovery.rule"

_MEND = "calibrate again with --out"
_NUMBERS = ("error_threshold", "failure_threshold", "utility_threshold", "harm_penalty")


def _whole_text(text: str) -> str:
    if not is_unicode(text):
        raise PydanticCustomError("unicode", "not text: half of a surrogate pair")
    return text


Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class _RuleFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    schema_name: Annotated[Literal["faultbook.recovery.rule"], Field(alias="schema")]
    schema_version: Literal[1]
    min_delay: Annotated[int, Field(ge=0)]
    error_threshold: Share
    failure_threshold: Share
    utility_threshold: FiniteFloat
    harm_penalty: Annotated[FiniteFloat, Field(ge=0)]
    failure_probability: Literal["complement_of_p0"]
    on_tie: Literal["hold", "refresh"]
    source: Annotated[str, AfterValidator(_whole_text)]


def save_rule(rule: InterventionRule, file: str | Path) -> Path:
    """Write a rule as JSON; the file is whole or not there.

    Raises
    ------
    FaultbookError
        If the rule's failure probability is a function of your own, which no file can hold, if its source is not text,
        or if the file cannot be written.
    """
    if rule.failure_probability != "complement_of_p0":
        raise FaultbookError("only a rule with failure_probability='complement_of_p0' can be saved; keep yours in code")
    path = Path(file)
    text = json.dumps(_content(rule), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_whole(path, text.encode(), mode=0o644)
    except OSError as error:
        raise FaultbookError(f"{path} cannot be written ({error.strerror})") from None
    return path


def load_rule(file: str | Path) -> InterventionRule:
    """Read a rule that `save_rule` wrote; every number comes back as it was.

    Raises
    ------
    DataError
        If it is no such file, with the first thing that is wrong.
    """
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"), object_pairs_hook=_once)
        known = _RuleFile.model_validate(content)
    except OSError as error:
        raise unreadable(error, file) from None
    except ValidationError as error:
        raise _first_fault(error, file) from None
    except _TwiceError as error:
        raise DataError(str(error), file=file, mend=_MEND) from None
    except (ValueError, RecursionError):
        raise DataError("not JSON", file=file, mend=_MEND) from None
    try:
        return InterventionRule(**known.model_dump(exclude={"schema_name", "schema_version"}))
    except FaultbookError as error:  # a setting that a file can hold and a rule cannot
        raise DataError(str(error), file=file) from None


class _TwiceError(ValueError):
    """JSON that Python would read by taking the last of two values."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(f"the key {short_repr(name)} stands twice")
        found[name] = value
    return found


def _content(rule: InterventionRule) -> dict[str, Any]:
    """What the file will hold: plain numbers, so that `load_rule` takes what `save_rule` wrote."""
    content: dict[str, Any] = {"schema": SCHEMA, "schema_version": 1, "min_delay": int(rule.min_delay)}
    content |= {name: float(getattr(rule, name)) for name in _NUMBERS}
    content |= {name: getattr(rule, name) for name in ("failure_probability", "on_tie", "source")}
    try:
        _RuleFile.model_validate(content)
    except ValidationError as error:
        column, problem = _said(error)
        raise FaultbookError(f"the rule cannot be saved: {column}: {problem}") from None
    return content


def _first_fault(error: ValidationError, file: str | Path) -> DataError:
    column, problem = _said(error)
    return DataError(problem, file=file, column=column or None, mend=_MEND)


def _said(error: ValidationError) -> tuple[str, str]:
    """The key of the first fault, and the fault in words."""
    first = error.errors(include_url=False)[0]
    column, found = plain(".".join(map(str, first["loc"])), most=80), f"found {short_repr(first['input'])}"
    if not column:
        return column, f"not a rule file ({found})"
    if first["type"] == "missing":
        return column, "this key is missing"
    if first["type"] == "extra_forbidden":
        return column, "no such key is known"
    return column, f"{first['msg'][:1].lower()}{first['msg'][1:]} ({found})"
