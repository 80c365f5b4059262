"""The tidy tables that faultbook reads and writes: the one place where a column is defined."""

from __future__ import annotations

import pandas as pd
import pandera.pandas as pa
from pandera.typing.pandas import Series

KINDS = (
    "count",
    "rate",
    "difference",
    "interval_low",
    "interval_high",
    "score",
    "p",
    "spread",
    "statistic",
    "quantity",
    "setting",
    "label",
)
QUALIFIERS = ("about", "at most", "at least")


class Reported(pa.DataFrameModel):
    """Numbers as a document prints them. One row, one printed cell.

    The key is (source, table, row, column); `id` joins the four with "/" and is how relations name a cell.
    """

    source: Series[str] = pa.Field(description="who prints it: a document, or 'second reading' and the like")
    table: Series[str] = pa.Field(description="the table or passage, as a short name")
    row: Series[str] = pa.Field(description="the row label")
    column: Series[str] = pa.Field(description="the column label")
    printed: Series[str] = pa.Field(description="the text exactly as printed")
    value: Series[float] = pa.Field(nullable=True, description="the number: rates in [0, 1], differences in pp")
    unit: Series[str] = pa.Field(description="'%', 'pp', 'count', 's', …; '1' for a pure number")
    n: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=1, description="the denominator, where stated")
    kind: Series[str] = pa.Field(isin=KINDS, description="what the number is; a 'label' is text, not a number")
    document: Series[str] = pa.Field(description="the document the number is about; the source unless given")
    section: Series[str] = pa.Field(description="where it stands in its source")
    qualifier: Series[str] = pa.Field(isin=("", *QUALIFIERS), description="'about' and the like, as printed")
    note: Series[str] = pa.Field(description="anything a reader of the row must know")
    id: Series[str] = pa.Field(unique=True, description="source/table/row/column")

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


REPORTED_REQUIRED = ("source", "table", "row", "column", "printed", "unit", "kind")
REPORTED_OPTIONAL = ("value", "n", "document", "section", "qualifier", "note")
