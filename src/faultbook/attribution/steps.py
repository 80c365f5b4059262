"""Step numbers as people and models write them: "3", 3 and 3.0 are one step; 1.5, "three", −1 and true are none."""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.errors import short_repr

_MOST_DIGITS = 9  # no log has a thousand million steps
_MOST = 10**_MOST_DIGITS
_LONGEST = 100  # of a value in a message
_WRITTEN = re.compile(rf"[0-9]{{1,{_MOST_DIGITS}}}(?:\.0+)?")


def parse_step(value: object, *, base: int = 0) -> int:
    """Read a step number; what is no whole number is refused, never rounded.

    Parameters
    ----------
    value : object
        "3", 3 or 3.0 (also "3.0": tools that write CSV make floats of integers). Booleans are no steps, though Python
        counts with them.
    base : int
        The number that the source gives to the first step: 0 or 1.

    Returns
    -------
    int
        The step, counted from 0.

    Raises
    ------
    ValueError
        If it is no step number, in one sentence that names it.
    """
    number = _whole(value)
    if number is None:
        raise ValueError(f"step is {_shown(value)}, not a whole number")
    if number < base:
        raise ValueError(f"step is {_shown(value)}, but steps count from {base}")
    if number >= _MOST:
        raise ValueError(f"step is {_shown(value)}, beyond any log")
    return number - base


def parse_text_steps(column: pd.Series[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Read a column of step numbers given as text, all at once.

    Parameters
    ----------
    column : Series of str, shape (n,)
        Text as in a CSV file.

    Returns
    -------
    (steps, unreadable) : arrays of shape (n,)
        The steps, counted from 0, and where there is none (the step is 0 there; `parse_step` says why).
    """
    text = column.astype("string").str.strip()
    readable: npt.NDArray[np.bool_] = text.str.fullmatch(_WRITTEN.pattern).fillna(False).to_numpy().astype(np.bool_)
    digits = text.where(readable, "0").str.replace(r"\.0+$", "", regex=True)
    steps: npt.NDArray[np.int64] = digits.astype("int64").to_numpy().astype(np.int64)
    return steps, ~readable


def _whole(value: object) -> int | None:
    """The whole number that a value stands for, or None."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        written = value.strip()
        negative = re.fullmatch(rf"-([0-9]{{1,{_MOST_DIGITS}}})(?:\.0+)?", written)
        if negative:
            return -int(negative[1]) or None  # "-0" is nobody's first step
        return int(written.partition(".")[0]) if _WRITTEN.fullmatch(written) else None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return int(number) if number.is_integer() else None
    return None


def _shown(value: object) -> str:
    """A value for a message: text in quotes, anything else as Python writes it, both short."""
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        # Python refuses to write out an integer of thousands of digits
        return str(int(value)) if -_MOST < value < _MOST else "a number of 10 digits or more"
    shown = short_repr(value.item() if isinstance(value, np.generic) else value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
