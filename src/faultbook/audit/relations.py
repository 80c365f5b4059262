"""How printed numbers hang together, declared as data. A relation says what must hold, never whether it does.

A relation names cells of the `reported` table by their id, "source/table/row/column". Where a field takes a term, a
plain number may stand instead of a cell (the four conditions of 75 × 4 episodes, say).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, TypeAdapter, ValidationError, model_validator

from faultbook.errors import DataError
from faultbook.yamlfile import load_yaml

CellId = Annotated[str, Field(min_length=1, strict=True)]
Term = CellId | StrictInt | StrictFloat


class _Relation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    id: str = Field(min_length=1)
    note: str = ""

    def cell_ids(self) -> list[str]:
        """The ids of all cells that the relation names, in order, each once."""
        fields = self.model_dump(exclude={"id", "kind", "note"})
        return list(dict.fromkeys(_strings(fields)))


class Same(_Relation):
    """The same quantity, printed several times."""

    kind: Literal["same"]
    cells: list[CellId] = Field(min_length=2)

    @model_validator(mode="after")
    def _different(self) -> Same:
        if len(set(self.cells)) < len(self.cells):
            raise ValueError("'cells' names a cell twice; it agrees with itself")
        return self


class SameLabel(_Relation):
    """Tables that print the same cells: what has equal row and column labels (case aside) is the same quantity.

    `tables` are written "source/table". `rows` and `columns` restrict the labels; without them all shared ones count.
    """

    kind: Literal["same_label"]
    tables: list[str] = Field(min_length=2)
    rows: list[str] | None = None
    columns: list[str] | None = None

    def cell_ids(self) -> list[str]:
        """No fixed cells: they are found by label."""
        return []


class Sum(_Relation):
    """total = sum of parts − sum of less."""

    kind: Literal["sum"]
    total: Term
    parts: list[Term] = Field(min_length=1)
    less: list[Term] = []


class Difference(_Relation):
    """value = minuend − subtrahend."""

    kind: Literal["difference"]
    value: CellId
    minuend: Term
    subtrahend: Term


class Product(_Relation):
    """total = product of factors."""

    kind: Literal["product"]
    total: Term
    factors: list[Term] = Field(min_length=2)


class PairsOf(_Relation):
    """total = number of unordered pairs of so many items."""

    kind: Literal["pairs_of"]
    total: CellId
    items: Term


class Extreme(_Relation):
    """value = the least or the greatest of some cells."""

    kind: Literal["extreme"]
    value: CellId
    which: Literal["least", "greatest"]
    of: list[CellId] = Field(min_length=1)

    def cell_ids(self) -> list[str]:
        """`which` is a word, not a cell."""
        return list(dict.fromkeys([self.value, *self.of]))


class KendallTau(_Relation):
    """value = Kendall τ between two rankings of so many items, without ties."""

    kind: Literal["kendall_tau"]
    value: CellId
    items: Term


class Ratio(_Relation):
    """value = numerator / denominator."""

    kind: Literal["ratio"]
    value: CellId
    numerator: Term
    denominator: Term


class Rate(_Relation):
    """value = count / denominator in per cent, the count printed (`numerator`) or reconstructed."""

    kind: Literal["rate"]
    value: CellId
    denominators: list[Term] = Field(min_length=1)
    numerator: Term | None = None


class Effect(_Relation):
    """value = (rescues − harms) / n in percentage points."""

    kind: Literal["effect"]
    value: CellId
    rescues: Term
    harms: Term
    n: Term


class Interval(_Relation):
    """[low, high] is the percentile bootstrap over n tasks of an effect of rescues − harms.

    The effect, or both counts, must be printed; bounds may be printed in pp or in counts.
    """

    kind: Literal["interval"]
    low: CellId
    high: CellId
    n: Term
    effect: CellId | None = None
    rescues: Term | None = None
    harms: Term | None = None
    unchanged: Term | None = None  # tasks with the same outcome in both arms: n − rescues − harms
    n_resamples: int = Field(default=10_000, ge=100)

    @model_validator(mode="after")
    def _determined(self) -> Interval:
        if self.effect is None and (self.rescues is None or self.harms is None):
            raise ValueError("an interval needs its effect, or both rescues and harms")
        return self


class IntervalOfDifference(_Relation):
    """[low, high] belongs to the paired difference of two effects, each with an interval relation of its own."""

    kind: Literal["interval_of_difference"]
    effect: CellId
    low: CellId
    high: CellId
    n: Term
    first: str
    second: str
    n_resamples: int = Field(default=10_000, ge=100)

    def cell_ids(self) -> list[str]:
        """`first` and `second` are relations, not cells."""
        return list(dict.fromkeys(_strings([self.effect, self.low, self.high, self.n])))


class ClusteredInterval(_Relation):
    """[low, high] of an effect over episodes; whether episodes or tasks were resampled is for the audit to find."""

    kind: Literal["clustered_interval"]
    effect: CellId
    low: CellId
    high: CellId
    tasks: Term
    episodes: Term
    strata: list[tuple[Term, Term]] = Field(min_length=1, description="(rescues, harms) of each stratum")
    p: CellId | None = None
    n_resamples: int = Field(default=10_000, ge=100)


class PairedMargins(_Relation):
    """Two arms solved `successes_a` and `successes_b` of the same n pairs; who solved which is not printed."""

    kind: Literal["paired_margins"]
    successes_a: CellId
    successes_b: CellId
    n: Term
    level: float = Field(default=0.05, gt=0, lt=1)


class McNemarP(_Relation):
    """value = exact two-sided McNemar p of the discordant pairs."""

    kind: Literal["mcnemar"]
    value: CellId
    only_a: Term
    only_b: Term


class MeanOfScores(_Relation):
    """value = mean of scores in [0, 1] over n incidents, each repeated; a score may be a fraction."""

    kind: Literal["mean_of_scores"]
    value: CellId
    n: Term
    repeats: Term


class Certify(_Relation):
    """Whether `events` in n shows a rate of at most `limit`."""

    kind: Literal["certify"]
    events: CellId
    n: Term
    limit: CellId
    level: float = Field(default=0.95, gt=0, lt=1)


class UpperBound(_Relation):
    """value = exact (Clopper–Pearson) upper bound of events in n, in per cent."""

    kind: Literal["upper_bound"]
    value: CellId
    events: Term
    n: Term
    sides: Literal[1, 2] = 2
    level: float = Field(default=0.95, gt=0, lt=1)


AnyRelation = (
    Same
    | SameLabel
    | Sum
    | Difference
    | Product
    | PairsOf
    | Extreme
    | KendallTau
    | Ratio
    | Rate
    | Effect
    | Interval
    | IntervalOfDifference
    | ClusteredInterval
    | PairedMargins
    | McNemarP
    | MeanOfScores
    | Certify
    | UpperBound
)
_TYPE_NAMES = ("constrained-str", "str", "int", "float")  # how pydantic names the branches of a term
KINDS = tuple(get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(AnyRelation))
_ADAPTER: TypeAdapter[AnyRelation] = TypeAdapter(Annotated[AnyRelation, Field(discriminator="kind")])


def read_relations(path: str | Path) -> list[AnyRelation]:
    """Read a relations file: `relations:` with a list of entries, each with `id`, `kind` and the fields of its kind.

    Raises
    ------
    DataError
        With file, relation and field: not YAML, an unknown kind or field, an id that stands twice.
    """
    document = load_yaml(path)
    entries = document.get("relations") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise DataError("no list under 'relations'", file=path, mend="start the file with 'relations:'")
    relations: dict[str, AnyRelation] = {}
    for position, entry in enumerate(entries, start=1):
        relation = _parse(entry, path, position)
        if relation.id in relations:
            raise DataError(f"the id '{relation.id}' stands twice", file=path, row=f"relation {position}")
        relations[relation.id] = relation
    return list(relations.values())


def _parse(entry: Any, path: str | Path, position: int) -> AnyRelation:
    where = f"relation {position}"
    if not isinstance(entry, dict):
        raise DataError(f"is {type(entry).__name__}, not a mapping", file=path, row=where)
    # Checked before anything writes them out: nested aliases can stand for gigabytes.
    name, kind = entry.get("id"), entry.get("kind")
    if isinstance(name, (str, int, float)):
        where += f" ({str(name)[:100]})"
    if not isinstance(name, str) or len(name) > 200:
        raise DataError("must be a short text", file=path, row=where, column="id")
    if not isinstance(kind, str) or len(kind) > 200:
        raise DataError(f"must be one of {', '.join(KINDS)}", file=path, row=where, column="kind")
    try:
        return _ADAPTER.validate_python(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = [str(part) for part in first["loc"][1:] if part not in _TYPE_NAMES]
        field = ".".join(place) or _named_field(first["msg"])
        message = first["msg"][:400]
        raise DataError(message, file=path, row=where, column=field, mend="see faultbook.audit.relations") from None


def _named_field(message: str) -> str | None:
    """The field that a check of a whole relation names in quotes."""
    parts = message.split("'")
    return parts[1] if len(parts) > 2 else None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
