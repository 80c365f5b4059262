"""Tables as plain values for `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; missing is null."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
        for row in plain.to_dict("records")
    ]
