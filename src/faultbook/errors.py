"""Errors that a user can mend: one line that says what was found, where, and what would mend it."""

from __future__ import annotations

import reprlib
from pathlib import Path


class FaultbookError(Exception):
    """A fault of the input, never of the program. The command line prints it as one line and exits with 2."""


class ParameterError(FaultbookError):
    """A notebook parameter that is unknown, of the wrong type, or not a plain value."""


class Signalled(BaseException):  # what happened, no fault of anybody's
    """A signal that ends the program, raised where the program stood, so that what is under way is cleaned up."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class DataError(FaultbookError):
    """A value in a data file that cannot be used.

    Parameters
    ----------
    problem : str
        What was found, in one sentence without a full stop.
    file : path, optional
        The file as the caller named it.
    row : int or str, optional
        The row: a line number of the file (the header is line 1), or a key.
    column : str, optional
        The column or field.
    mend : str, optional
        What would mend it.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        row: int | str | None = None,
        column: str | None = None,
        mend: str | None = None,
    ) -> None:
        self.problem, self.file, self.row, self.column, self.mend = problem, file, row, column, mend
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        places = [
            str(self.file) if self.file is not None else "",
            f"row {self.row}" if self.row is not None else "",
            f"column '{self.column}'" if self.column is not None else "",
        ]
        where = ", ".join(place for place in places if place)
        sentence = f"{where}: {self.problem}" if where else self.problem
        return " ".join((f"{sentence}; {self.mend}" if self.mend else sentence).split())


def unreadable(error: OSError, file: str | Path) -> DataError:
    """A file that the system does not let us read, as a located error."""
    missing = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
    return DataError("no such file" if missing else f"cannot be read ({error.strerror})", file=file)


def one_of(name: str, found: object, allowed: list[str] | tuple[str, ...]) -> str:
    """Say that `found` is not among the `allowed` values of `name`, in the same words everywhere."""
    quoted = [f"'{value}'" if value else "empty" for value in allowed]
    choices = f"{', '.join(quoted[:-1])} or {quoted[-1]}" if len(quoted) > 1 else quoted[0]
    return f"'{name}' must be {'one of ' if len(quoted) > 1 else ''}{choices}; found '{found}'"


def short_repr(value: object) -> str:
    """A value as it stands in a message: short, even of a document whose aliases nest to a size no text could hold."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    return short.repr(value)
