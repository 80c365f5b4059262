"""Tables as plain values for `--json`, and problems as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

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


def print_problems(problems: pd.DataFrame) -> None:
    """A line each on stderr."""
    for problem in records(problems):
        click.echo(f"  {problem['file']}: {problem['problem']}", err=True)
