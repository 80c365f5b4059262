"""Who judged which step and how, as one array: what consensus, agreement and the noise filter count on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import FaultbookError

FLAGGED, NOT_FLAGGED, NOT_JUDGED = 1, 0, -1

Integers = npt.NDArray[np.int64]

_KEY = ["log_id", "step", "annotator"]


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judged steps, by log and step ascending: `ratings` has one row a step and one column an annotator.

    `logs` and `annotators` hold the names, in natural order ("manual/2" before "manual/10"); `log` (steps,) is the
    position in `logs`, `step` (steps,) the 0-based step, `ratings` (steps, annotators) is 1 flagged, 0 not flagged,
    −1 not judged.
    """

    logs: npt.NDArray[np.object_]
    annotators: list[str]
    log: Integers
    step: Integers
    ratings: npt.NDArray[np.int8]

    @property
    def votes(self) -> Integers:
        """How many annotators flag each step, shape (steps,)."""
        votes: Integers = (self.ratings == FLAGGED).sum(axis=1, dtype=np.int64)
        return votes

    @property
    def judged(self) -> Integers:
        """How many annotators judged each step, shape (steps,)."""
        judged: Integers = (self.ratings != NOT_JUDGED).sum(axis=1, dtype=np.int64)
        return judged

    def per_log(self, columns: list[npt.NDArray[Any]], steps: npt.NDArray[np.bool_] | None = None) -> Any:
        """Sum columns of numbers, each of shape (steps,), over each log: shape (logs, columns)."""
        log = self.log if steps is None else self.log[steps]
        sums = [
            np.bincount(log, weights=column if steps is None else column[steps], minlength=len(self.logs))
            for column in columns
        ]
        return np.column_stack(sums)


def judgements(annotations: pd.DataFrame) -> Judgements:
    """Arrange a table of annotations; a step that an annotator did not judge is missing, never "not flagged".

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`.

    Raises
    ------
    FaultbookError
        If a column is missing, there is no row, a key is missing, an annotator judges a step twice, a step is no whole
        number of at least 0, or `is_failure` is neither true nor false.
    """
    flags, steps = _checked(annotations)
    logs, log = _named(annotations["log_id"])
    annotators, annotator = _named(annotations["annotator"])
    order = np.lexsort((annotator, steps, log))
    log, steps, annotator, flags = log[order], steps[order], annotator[order], flags[order]
    new = np.ones(len(log), dtype=bool)
    new[1:] = (log[1:] != log[:-1]) | (steps[1:] != steps[:-1])
    twice = np.flatnonzero(~new[1:] & (annotator[1:] == annotator[:-1]))
    if len(twice):
        at = twice[0]
        where = f"{logs[log[at]]}, step {steps[at]}, {annotators[annotator[at]]}"
        raise FaultbookError(f"{len(twice)} steps are judged twice by one annotator (first: {where}); keep one of them")
    ratings = np.full((int(new.sum()), len(annotators)), NOT_JUDGED, dtype=np.int8)
    ratings[np.cumsum(new) - 1, annotator] = flags
    return Judgements(logs, [str(name) for name in annotators], log[new], steps[new], ratings)


def _checked(annotations: pd.DataFrame) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Flags and steps of a table that can be used."""
    lost = [name for name in (*_KEY, "is_failure") if name not in annotations]
    if lost:
        raise FaultbookError(f"annotations without {', '.join(lost)}; give a table with the columns of Annotations")
    if annotations.empty:
        raise FaultbookError("no annotations: nothing was judged")
    missing = [name for name in (*_KEY, "is_failure") if annotations[name].isna().any()]
    if missing:
        raise FaultbookError(
            f"annotations with a missing {missing[0]}; leave out the row of a step that an annotator did not judge"
        )
    return _flags(annotations["is_failure"]), whole_steps(annotations["step"])


def _flags(column: pd.Series) -> npt.NDArray[np.bool_]:
    flags = column if pd.api.types.is_bool_dtype(column) else column.infer_objects()
    if not pd.api.types.is_bool_dtype(flags):
        raise FaultbookError(f"is_failure holds {column.iloc[0]!r}; give true or false")
    return flags.to_numpy(dtype=bool)


def whole_steps(column: pd.Series) -> Integers:
    """A column of steps as whole numbers of at least 0.

    Raises
    ------
    FaultbookError
        If one is something else.
    """
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) if is_number else np.full(len(column), np.nan)
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)))
    if len(wrong):
        raise FaultbookError(f"step is {column.iloc[wrong[0]]!r}; steps are whole numbers of at least 0")
    return numbers.astype(np.int64)


def _named(column: pd.Series) -> tuple[npt.NDArray[np.object_], Integers]:
    """The names of a column in natural order, and the position of each row's name."""
    codes, names = pd.factorize(column.astype(object))
    order = natural_order(pd.Series(names, dtype=object))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return np.asarray(names, dtype=object)[order], place[codes]


def natural_order(names: pd.Series) -> Integers:
    """Positions that sort names by the number at their end, if they have one: "manual/2" before "manual/10"."""
    text = names.astype(str)
    parts = text.str.extract(re.compile(r"^(.*?)(\d*)$", re.DOTALL))
    padded = parts[0].str.cat(parts[1].str.zfill(20))
    return np.lexsort((text.to_numpy(dtype=object), padded.to_numpy(dtype=object))).astype(np.int64)
