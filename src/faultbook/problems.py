"""Problems met while reading: raised at once when strict, collected with their place when not."""

from __future__ import annotations

import pandas as pd

from faultbook.errors import DataError

PROBLEM_COLUMNS = ["file", "row", "column", "problem", "mend"]


class Problems:
    """A collector of located problems; with `strict=True` the first one is raised."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self._found: list[DataError] = []

    def add(self, error: DataError) -> None:
        """Take a problem, or raise it."""
        if self.strict:
            raise error
        self._found.append(error)

    def frame(self) -> pd.DataFrame:
        """The problems so far: file, row, column, problem, mend (all text; empty where it does not apply)."""
        rows = [
            tuple("" if part is None else str(part) for part in (e.file, e.row, e.column, e.problem, e.mend))
            for e in self._found
        ]
        return pd.DataFrame(rows, columns=PROBLEM_COLUMNS, dtype="string")
