"""Tables as plain values for `--json`, and problems as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from faultbook.errors import DataError
from faultbook.text import plain

if TYPE_CHECKING:
    import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; missing is null."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
        for row in plain.to_dict("records")
    ]


def joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One table below the other."""
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)


def errors_of(problems: pd.DataFrame) -> Iterator[DataError]:
    """The problems of a table, each with its place."""
    for row in records(problems):
        place = {name: row[name] or None for name in ("file", "row", "column", "mend")}
        yield DataError(row["problem"], **place)


def print_problems(problems: pd.DataFrame) -> None:
    """A line each on stderr, with its place."""
    for error in errors_of(problems):
        click.echo(f"  {plain(str(error), most=1000)}", err=True)
