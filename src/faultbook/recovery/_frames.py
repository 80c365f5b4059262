"""Tables as callers hand them over: checked and typed, put in the domain's order, and cells picked out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import FaultbookError, short_repr
from faultbook.tables import ACTIONS, CONDITIONS, FEATURE_PREFIX, OUTCOMES, Episodes, Pairs

KEY = ["task_id", "condition", "delay", "action", "replicate"]
CELL = ("condition", "delay", "action")  # what is never pooled silently
BY = (*CELL, "replicate", "cohort", "source", "factual_success", "ended_before")  # what pairs may be split by

_KNOWN = {"condition": CONDITIONS, "action": ACTIONS}
_MOST_SHOWN = 8  # values in a message
_OPEN = {"bool": "boolean", "int64": "Int64"}  # the type of a column that may have missing values yet
_KINDS = {"boolean": "booleans", "Int64": "whole numbers", "float64": "numbers"}


def as_episodes(episodes: pd.DataFrame) -> pd.DataFrame:
    """Episodes with every column of the table, then their features, under a fresh index; a missing replicate is 0.

    Raises
    ------
    FaultbookError
        If a required column is missing, a value is of another type, or one that must be there is missing.
    """
    required = ["task_id", "condition", "delay", "action", "success"]
    frame = _typed(episodes, Episodes, required, "episodes")
    open_ended = frame["delay"].isna() & (frame["action"] != "none")
    if open_ended.any():
        where = branch_name(frame[open_ended].iloc[0])
        raise FaultbookError(
            f"episodes: {int(open_ended.sum())} branches have no delay (first: {where}); "
            "give it; only a branch with the action 'none' serves every delay"
        )
    features = [str(name) for name in episodes.columns if str(name).startswith(FEATURE_PREFIX)]
    return frame.assign(**{name: _converted(episodes[name], "float64", "episodes") for name in features})


def as_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs with every column of the table under a fresh index; outcome and tau follow from the two successes.

    Raises
    ------
    FaultbookError
        If a required column is missing, a value is of another type, one that must be there is missing, or a pair
        stands twice.
    """
    required = [*KEY[:4], "success_without", "success_with"]
    frame = _typed(pairs.drop(columns=["outcome", "tau"], errors="ignore"), Pairs, required, "pairs")
    again = frame.duplicated(KEY)
    if again.any():
        where = branch_name(frame[again].iloc[0])
        raise FaultbookError(f"pairs: {int(again.sum())} pairs stand twice (first: {where}); keep one of each")
    without, with_ = frame["success_without"].to_numpy(dtype=bool), frame["success_with"].to_numpy(dtype=bool)
    return frame.assign(outcome=outcomes(without, with_), tau=with_.astype(np.int64) - without)


def outcomes(without: npt.NDArray[np.bool_], with_: npt.NDArray[np.bool_]) -> pd.Series[Any]:
    """What the action made of each run: rescue, harm, stable success or stable failure, as text."""
    rescue, harm, stable_success, stable_failure = OUTCOMES
    named = np.where(without, np.where(with_, stable_success, harm), np.where(with_, rescue, stable_failure))
    return pd.Series(named, dtype="string[pyarrow]")


def branch_name(row: Any) -> str:
    """What a branch or a pair is called in a message: its key, with values made safe to show."""
    delay = "every delay" if pd.isna(row["delay"]) else f"delay {row['delay']}"
    task, condition, action = (short_repr(str(row[name])) for name in ("task_id", "condition", "action"))
    return f"task {task}, condition {condition}, {delay}, action {action}, replicate {row['replicate']}"


def ranks(column: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """The place of each value in the domain's order, whatever the order of the rows.

    Known conditions and actions come first and in their order, then other names by alphabet; numbers ascend, true
    comes before false, and missing values come last.
    """
    codes, distinct = pd.factorize(column)
    known = _KNOWN.get(str(column.name), ())

    def place(value: Any) -> tuple[int, Any]:
        if isinstance(value, str):
            return (known.index(value), "") if value in known else (len(known), value)
        return 0, not value if isinstance(value, bool | np.bool_) else value

    values = list(distinct)
    order = sorted(range(len(values)), key=lambda number: place(values[number]))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[order] = np.arange(len(values))
    rank[-1] = len(values)
    ranked: npt.NDArray[np.int64] = rank[codes]
    return ranked


def in_order(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows sorted by columns, in the domain's order (see `ranks`), under a fresh index."""
    if not columns:
        return frame.reset_index(drop=True)
    order = np.lexsort([ranks(frame[name]) for name in reversed(columns)])
    return frame.iloc[order].reset_index(drop=True)


def select(pairs: pd.DataFrame, cell: Mapping[str, Any], name: str) -> pd.DataFrame:
    """The pairs that hold the values of one cell.

    Raises
    ------
    FaultbookError
        As `matching`, or if the pairs are of several conditions, delays or actions.
    """
    chosen = matching(pairs, cell, name)
    for column in CELL:
        if chosen[column].nunique() > 1:
            raise FaultbookError(f"{name} holds several values of {column} ({shown(chosen[column])}); select one")
    return chosen


def matching(pairs: pd.DataFrame, values: Mapping[str, Any], name: str) -> pd.DataFrame:
    """The pairs that hold all of some values.

    Raises
    ------
    FaultbookError
        If a column is not one to split by, or no pair holds the values.
    """
    check_columns(values, BY, f"{name} selects by")
    chosen = pairs
    for column, value in values.items():
        # text is never equal to a number, and to compare them is an error for some of pandas' types
        alike = pd.api.types.is_scalar(value) and isinstance(value, str) == pd.api.types.is_string_dtype(pairs[column])
        here = chosen[(chosen[column] == value).fillna(False).to_numpy(dtype=bool)] if alike else chosen[:0]
        if here.empty:
            beside = " beside its other values" if len(chosen) < len(pairs) else ""
            found = shown(chosen[column])
            raise FaultbookError(f"{name}: no pair with {column} {short_repr(value)}{beside} (found {found})")
        chosen = here
    return chosen


def check_columns(columns: Iterable[str], allowed: Sequence[str], what: str) -> None:
    """Refuse columns that are not among those allowed.

    Raises
    ------
    FaultbookError
        With the columns that are.
    """
    wrong = [name for name in columns if name not in allowed]
    if wrong:
        raise FaultbookError(f"{what} {short_repr(wrong[0])}; give columns among {', '.join(allowed)}")


def shown(column: pd.Series[Any]) -> str:
    """The distinct values of a column for a message, in the domain's order, the first few of them."""
    values = in_order(column.drop_duplicates().to_frame(), [str(column.name)])[str(column.name)].tolist()
    listed = ", ".join("missing" if pd.isna(value) else short_repr(value) for value in values[:_MOST_SHOWN])
    return listed + (f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else "") or "none"


def _typed(frame: pd.DataFrame, model: Any, required: Sequence[str], table: str) -> pd.DataFrame:
    missing = [name for name in required if name not in frame]
    if missing:
        found = ", ".join(map(str, frame.columns)) or "none"
        raise FaultbookError(f"{table}: columns missing: {', '.join(missing)} (found {found})")
    parts = {}
    for name, column in model.to_schema().columns.items():
        dtype = _OPEN.get(str(column.dtype), str(column.dtype))
        if name in frame:
            parts[name] = _converted(frame[name], dtype, table)
        else:
            parts[name] = pd.Series(pd.NA, index=range(len(frame)), dtype=dtype)
    parts["replicate"] = parts["replicate"].fillna(0)
    for name in (*required, "replicate"):
        if table == "episodes" and name == "delay":
            continue
        if parts[name].isna().any():
            n_missing = int(parts[name].isna().sum())
            raise FaultbookError(f"{table}: {n_missing} of {len(frame)} rows have no {name}; give it")
        parts[name] = parts[name].astype(pd.api.types.pandas_dtype(str(model.to_schema().columns[name].dtype)))
    for name in ("delay", "replicate"):
        if (parts[name].dropna() < 0).any():
            raise FaultbookError(f"{table}: {name} is {parts[name].min()} in a row; count from 0")
    return pd.DataFrame(parts)


def _converted(column: pd.Series[Any], dtype: str, table: str) -> pd.Series[Any]:
    try:
        return column.reset_index(drop=True).astype(pd.api.types.pandas_dtype(dtype))
    except (TypeError, ValueError, OverflowError):
        kind = _KINDS.get(dtype, "text")
        raise FaultbookError(f"{table}: a value of '{column.name}' is of another type; give {kind}") from None
