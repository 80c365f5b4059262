"""Save an intervention rule as JSON and load it again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from faultbook.errors import DataError, FaultbookError, unreadable
from faultbook.recovery.rule import InterventionRule

SCHEMA = "faultbook.recovery.rule"

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
    source: str


def save_rule(rule: InterventionRule, file: str | Path) -> Path:
    """Write a rule as JSON; the file is whole or not there.

    Raises
    ------
    FaultbookError
        If the rule's failure probability is a function of your own, which no file can hold, or the file cannot be
        written.
    """
    if rule.failure_probability != "complement_of_p0":
        raise FaultbookError("only a rule with failure_probability='complement_of_p0' can be saved; keep yours in code")
    names = [name for name in _RuleFile.model_fields if not name.startswith("schema")]
    content = {"schema": SCHEMA, "schema_version": 1, **{name: getattr(rule, name) for name in names}}
    path = Path(file)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)
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
        content = json.loads(Path(file).read_text(encoding="utf-8"), parse_constant=lambda _: math.nan)
        known = _RuleFile.model_validate(content)
    except OSError as error:
        raise unreadable(error, file) from None
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(map(str, first["loc"])) or None
        raise DataError(first["msg"], file=file, column=column, mend="calibrate again with --out") from None
    except ValueError:
        raise DataError("not JSON", file=file, mend="calibrate again with --out") from None
    fields = known.model_dump(exclude={"schema_name", "schema_version"})
    return InterventionRule(**fields)
