"""Fitted models as JSON: numbers that read back bit for bit, checked on the way in, never a pickle."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import sklearn
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import faultbook
from faultbook.atomic import write_whole
from faultbook.errors import DataError, short_repr, unreadable
from faultbook.recovery.estimators import NOTE_COLUMNS, TARGETS, Estimators, LogisticModel, check_feature_names

SCHEMA = "faultbook.recovery.estimators"
SCHEMA_VERSION = 1

_MEND = "save the models again"
_LARGEST_FILE = 10 * 2**20  # bytes; a model of a thousand features takes less than one MiB

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    """Exactly these keys, of exactly these types; numbers are finite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class _Model(_Part):
    target: str
    mean: list[float]
    scale: list[Annotated[float, Field(gt=0)]]
    coefficient: list[float]
    intercept: float
    base_rate: Share | None
    n_rows: Count
    n_events: Count


class _Range(_Part):
    low: float
    high: float


class _Data(_Part):
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    n_rows: Annotated[int, Field(ge=1)]
    n_tasks: Annotated[int, Field(ge=1)]


class _Note(_Part):
    model: str
    what: str
    reason: str


class _File(_Part):
    schema_name: Annotated[Literal["faultbook.recovery.estimators"], Field(alias="schema")]
    schema_version: Literal[1]
    versions: dict[str, str]
    features: Annotated[list[str], Field(min_length=1)]
    penalty: Literal["l2", "firth"]
    C: Annotated[float, Field(gt=0)] | None
    n_folds: Annotated[int, Field(ge=2)]
    seed: Count | None
    data: _Data
    ranges: dict[str, _Range]
    models: dict[str, _Model]
    notes: list[_Note]


def save_model(estimators: Estimators, file: str | Path) -> Path:
    """Write fitted models to a JSON file.

    Parameters
    ----------
    estimators : Estimators
        The models. Their predictions and the data are not written; the SHA-256 of the data is.
    file : path
        The file; one that is there is replaced, at once, so that a reader sees the old models or the new ones.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    file = Path(file)
    text = json.dumps(_document(estimators), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_whole(file, text.encode(), mode=0o644)
    except OSError as error:
        raise _unwritable(error, file) from None
    return file


def load_model(file: str | Path) -> Estimators:
    """Read models that `save_model` wrote: their probabilities are the same to the last bit.

    Parameters
    ----------
    file : path
        The file.

    Returns
    -------
    Estimators
        Without out-of-fold predictions.

    Raises
    ------
    DataError
        If the file cannot be read, is not such a file or of another version, lacks a key or has one too many, holds
        a number that is not finite, or names a feature that a rule could not know.
    """
    file = Path(file)
    try:
        read = _File.model_validate(_json(file))
    except ValidationError as error:
        raise _first_fault(error, file) from None
    _check_names(read, file)
    models = {
        name: LogisticModel(
            name=name,
            mean=tuple(model.mean),
            scale=tuple(model.scale),
            coefficient=tuple(model.coefficient),
            intercept=model.intercept,
            base_rate=model.base_rate,
            n_rows=model.n_rows,
            n_events=model.n_events,
        )
        for name, model in read.models.items()
    }
    return Estimators(
        p_err=models["p_err"],
        p0=models["p0"],
        p1=models["p1"],
        features=tuple(read.features),
        penalty=read.penalty,
        C=read.C,
        n_folds=read.n_folds,
        seed=read.seed,
        n_rows=read.data.n_rows,
        n_tasks=read.data.n_tasks,
        low=tuple(read.ranges[name].low for name in read.features),
        high=tuple(read.ranges[name].high for name in read.features),
        data_sha256=read.data.sha256,
        notes=pd.DataFrame([dict(note) for note in read.notes], columns=NOTE_COLUMNS, dtype="string"),
    )


def _document(estimators: Estimators) -> dict[str, Any]:
    names = estimators.features
    models = {
        name: {
            "target": TARGETS[name],
            "mean": model.mean,
            "scale": model.scale,
            "coefficient": model.coefficient,
            "intercept": model.intercept,
            "base_rate": model.base_rate,
            "n_rows": model.n_rows,
            "n_events": model.n_events,
        }
        for name, model in estimators.models.items()
    }
    ranges = zip(names, estimators.low, estimators.high, strict=True)
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "versions": _versions(estimators),
        "features": names,
        "penalty": estimators.penalty,
        "C": estimators.C,
        "n_folds": estimators.n_folds,
        "seed": estimators.seed,
        "data": {"sha256": estimators.data_sha256, "n_rows": estimators.n_rows, "n_tasks": estimators.n_tasks},
        "ranges": {name: {"low": low, "high": high} for name, low, high in ranges},
        "models": models,
        "notes": estimators.notes.astype(object).to_dict("records"),
    }


def _versions(estimators: Estimators) -> dict[str, str]:
    versions = {"faultbook": faultbook.__version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    if estimators.penalty == "firth":
        try:
            versions["firthmodels"] = version("firthmodels")
        except PackageNotFoundError:  # a file that is saved again where the package is not installed
            versions["firthmodels"] = "not installed"
    return versions


def _json(file: Path) -> Any:
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise DataError(f"larger than {_LARGEST_FILE // 2**20} MiB, so not a model file", file=file)
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", file=file, mend=_MEND) from None
    except OSError as error:
        raise unreadable(error, file) from None
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg[:1].lower()}{error.msg[1:]})"
        raise DataError(problem, file=file, row=error.lineno, mend=_MEND) from None
    except _RefusedError as error:
        raise DataError(str(error), file=file, mend=_MEND) from None
    except RecursionError:
        raise DataError("nested too deeply for a model file", file=file, mend=_MEND) from None
    except ValueError:  # Python reads no integer of more than 4300 digits
        raise DataError("a number has too many digits", file=file, mend=_MEND) from None


class _RefusedError(ValueError):
    """JSON that Python would read, and must not."""


def _no_number(constant: str) -> None:
    raise _RefusedError(f"{constant} is not a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _RefusedError(f"the key {short_repr(name)} stands twice")
        found[name] = value
    return found


def _first_fault(error: ValidationError, file: Path) -> DataError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        problem = "this key is missing"
    elif first["type"] == "extra_forbidden":
        problem = "no such key is known"
    else:
        problem = f"{first['msg'][:1].lower()}{first['msg'][1:]} (found {short_repr(first['input'])})"
    if not place:
        problem = f"not a model file (found {short_repr(first['input'])})"
    return DataError(problem, file=file, column=place or None, mend=_MEND)


def _unwritable(error: OSError, file: Path) -> DataError:
    return DataError(f"cannot be written ({error.strerror})", file=file, mend="name a file in a folder that is there")


def _check_names(read: _File, file: Path) -> None:
    """Features, ranges, models and the lengths of their lists must agree."""
    check_feature_names(read.features, file=str(file))
    for found, wanted, column in ((read.ranges, read.features, "ranges"), (read.models, list(TARGETS), "models")):
        if set(found) != set(wanted):
            names = sorted(set(found) ^ set(wanted))
            raise DataError(f"missing or unknown: {', '.join(names)}", file=file, column=column, mend=_MEND)
    for name, model in read.models.items():
        if model.target != TARGETS[name]:
            problem = f"estimates {short_repr(model.target)}, not {TARGETS[name]}"
            raise DataError(problem, file=file, column=f"models.{name}.target", mend=_MEND)
        for column in ("mean", "scale", "coefficient"):
            size = len(getattr(model, column))
            if size != len(read.features):
                problem = f"{size} numbers for {len(read.features)} features"
                raise DataError(problem, file=file, column=f"models.{name}.{column}", mend=_MEND)
    for name, bounds in read.ranges.items():
        if bounds.low > bounds.high:
            raise DataError(f"from {bounds.low} to {bounds.high}", file=file, column=f"ranges.{name}", mend=_MEND)
