"""The tidy tables that faultbook reads and writes: the one place where a column is defined."""

from __future__ import annotations

from typing import Any

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


class Causes(pa.DataFrameModel):
    """Entities that an incident's ground truth lists. One row, one group of the truth file."""

    incident_id: Series[str]
    group_id: Series[str] = pa.Field(description="the truth file's own id; exists nowhere in the cluster")
    kind: Series[str] = pa.Field(description="Kubernetes kind as written")
    namespace: Series[str] = pa.Field(nullable=True)
    name: Series[str] = pa.Field(nullable=True, description="exact name, where the truth gives one")
    pattern: Series[str] = pa.Field(
        nullable=True, description="regular expression for names, where the truth gives one"
    )
    is_root_cause: Series[bool]
    cause_set: Series[str] = pa.Field(description="first group id of the class of aliases, closed transitively")
    role: Series[str] = pa.Field(isin=("cause", "alerting", "path", "listed"), description="first that applies")
    n_alerts: Series[int] = pa.Field(ge=0, description="alerts that name this group")
    truth_sha256: Series[str]

    class Config:
        """Columns in this order, nothing else; a group stands once."""

        strict = True
        ordered = True
        unique = ["incident_id", "group_id"]  # noqa: RUF012  # pandera's form


class Edges(pa.DataFrameModel):
    """Propagation edges of an incident, as written: they may dangle or loop."""

    incident_id: Series[str]
    source: Series[str]
    target: Series[str]
    condition: Series[str]
    effect: Series[str]

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True


RUN_STATUSES = ("scored", "empty", "malformed", "timed_out", "missing", "ungradeable")


class Runs(pa.DataFrameModel):
    """Runs of a model on an incident, whatever came of them."""

    model: Series[str]
    incident_id: Series[str]
    repeat: Series[int]
    status: Series[str] = pa.Field(isin=RUN_STATUSES)
    turns: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    cost: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0)

    class Config:
        """Columns in this order, nothing else; a run stands once."""

        strict = True
        ordered = True
        unique = ["model", "incident_id", "repeat"]  # noqa: RUF012  # pandera's form


class Submissions(pa.DataFrameModel):
    """Entities that runs submitted as causes, in their order."""

    model: Series[str]
    incident_id: Series[str]
    repeat: Series[int]
    position: Series[int] = pa.Field(ge=0, description="0-based place in the submission")
    entity: Series[str] = pa.Field(description="the text as submitted")
    namespace: Series[str] = pa.Field(nullable=True)
    kind: Series[str] = pa.Field(nullable=True)
    name: Series[str]
    confidence: Series[pd.Float64Dtype] = pa.Field(nullable=True, ge=0, le=1)
    stage: Series[str] = pa.Field(isin=("found", "suspected", "confirmed"))

    class Config:
        """Columns in this order, nothing else."""

        strict = True
        ordered = True
        unique = ["model", "incident_id", "repeat", "position"]  # noqa: RUF012  # pandera's form


def typed(rows: list[Any], model: type[pa.DataFrameModel]) -> pd.DataFrame:
    """Make a table of the model from rows (dicts or tuples), with its column types even when there is no row."""
    columns = list(model.to_schema().columns)
    frame = pd.DataFrame(rows, columns=columns)
    types = {name: str(column.dtype) for name, column in model.to_schema().columns.items()}
    return model.validate(frame.astype(types))
