"""Hold every printed number against arithmetic: evaluate the relations, then give each cell one status."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.audit import arithmetic, counts, intervals, joint
from faultbook.audit.cells import STATUSES, Cell, Cells, Finding, MissingCellError
from faultbook.audit.relations import AnyRelation, Interval, read_relations
from faultbook.errors import DataError

COLUMNS = ["source", "table", "row", "column", "printed", "value", "recomputed", "status", "reason", "against"]
CONTEXT = ["document", "section", "unit", "kind", "id"]
_GRID = "grid"  # the name under which the denominators stated in the table itself are evaluated

_EVALUATORS: dict[str, Any] = {
    "same": arithmetic.same,
    "same_label": arithmetic.same_label,
    "sum": arithmetic.total,
    "difference": arithmetic.difference,
    "product": arithmetic.product,
    "pairs_of": arithmetic.pairs_of,
    "extreme": arithmetic.extreme,
    "kendall_tau": arithmetic.kendall_tau,
    "ratio": arithmetic.ratio,
    "rate": counts.rate,
    "effect": counts.effect,
    "paired_margins": counts.paired_margins,
    "mcnemar": counts.mcnemar,
    "mean_of_scores": counts.mean_of_scores,
    "certify": counts.certify,
    "upper_bound": counts.upper_bound,
    "interval": intervals.interval,
    "interval_of_difference": joint.interval_of_difference,
    "clustered_interval": joint.clustered_interval,
}
_HYPHEN_MINUS = re.compile(r"(?<![\w/.-])-(?=\d)")  # in front of a number, not inside a name
_QUOTED = {
    "setting": "a chosen setting; nothing printed follows from it",
    "score": "a score; the runs behind it are not printed",
    "spread": "a spread over repeated runs that are not printed",
    "statistic": "a statistic whose data are not printed",
    "p": "a p-value whose counts are not printed",
}


def audit(reported: pd.DataFrame, relations: Iterable[AnyRelation] | str | Path | None = None) -> pd.DataFrame:
    """Give every printed number a status from what the other printed numbers imply.

    Parameters
    ----------
    reported : DataFrame
        The `Reported` table, as `read_reported` returns it.
    relations : iterable of relations, or path, optional
        How the numbers hang together. By default `relations.yaml` beside the files that `reported` was read from;
        without such a file only stated denominators are checked.

    Returns
    -------
    DataFrame
        One row per printed number, in the order of `reported`: source, table, row, column, printed, value,
        recomputed (same units as value; NaN if nothing was derived), status, reason, against (ids of the cells
        the verdict rests on, joined by "; "), then document, section, unit, kind and id. The status is

        - ``recomputed``: follows from other printed numbers or from counts they determine;
        - ``consistent``: nothing contradicts it, and one integer solution exists where one is needed;
        - ``ambiguous``: several solutions fit;
        - ``inconsistent``: no solution fits, or another printed number contradicts it;
        - ``quoted``: nothing printed bears on it.

        Where relations disagree, the first of inconsistent, recomputed, ambiguous, consistent, quoted wins and the
        other reasons follow it.

    Raises
    ------
    DataError
        If a relation cannot be evaluated (a denominator that is no whole number, a division by 0).
    """
    findings: dict[str, list[Finding]] = {}
    for finding in evaluate(reported, relations):
        findings.setdefault(finding.cell, []).append(finding)
    cells = Cells(reported)
    rows = [_judge(cells[row["id"]], findings.get(row["id"], []), row) for row in _numbers(reported)]
    return pd.DataFrame(rows, columns=COLUMNS + CONTEXT).astype({"value": "float64", "recomputed": "float64"})


def evaluate(reported: pd.DataFrame, relations: Iterable[AnyRelation] | str | Path | None = None) -> list[Finding]:
    """Evaluate every relation, and every denominator that the table states, into findings about single cells.

    Parameters and errors as for `audit`. A relation some of whose cells are not in the table (a part of it was
    selected, say) leaves a finding `quoted` on those that are.
    """
    cells = Cells(reported)
    resolved = resolve(reported, relations)
    by_id = {relation.id: relation for relation in resolved if isinstance(relation, Interval)}
    found = [finding for relation in resolved for finding in _evaluate_one(relation, cells, by_id)]
    on_grid = [
        counts.on_grid(cell, [cell.n], _GRID)
        for cell in cells.values()
        if cell.n is not None and cell.unit in ("%", "pp") and cell.kind in ("rate", "difference")
    ]
    return found + on_grid


def check_relations(reported: pd.DataFrame, relations: Iterable[AnyRelation], file: str | Path) -> None:
    """Refuse relations that name a cell or relation which does not exist: a slip of the pen would hide a check.

    Raises
    ------
    DataError
        Naming the relation and the cell.
    """
    relations = list(relations)
    cells, names = Cells(reported), {relation.id for relation in relations if isinstance(relation, Interval)}
    tables = set(reported["source"] + "/" + reported["table"])
    for relation in relations:
        for cell_id in relation.cell_ids():
            if cell_id not in cells:
                mend = "name it as source/table/row/column"
                raise DataError(f"no printed number '{cell_id}'", file=file, row=relation.id, mend=mend)
        for table in getattr(relation, "tables", []):
            if table not in tables:
                raise DataError(f"no table '{table}'", file=file, row=relation.id, mend="name it as source/table")
        for name in (getattr(relation, "first", None), getattr(relation, "second", None)):
            if name is not None and name not in names:
                raise DataError(f"no interval relation '{name}'", file=file, row=relation.id)


def resolve(reported: pd.DataFrame, relations: Iterable[AnyRelation] | str | Path | None) -> list[AnyRelation]:
    """The relations meant: those given, those of a file, or those beside the files that `reported` was read from."""
    if relations is None:
        folder = reported.attrs.get("folder")
        beside = Path(folder) / "relations.yaml" if folder else None
        return read_relations(beside) if beside and beside.is_file() else []
    return read_relations(relations) if isinstance(relations, (str, Path)) else list(relations)


def _evaluate_one(relation: AnyRelation, cells: Cells, intervals_by_id: dict[str, Interval]) -> Iterator[Finding]:
    evaluator = _EVALUATORS[relation.kind]
    if relation.kind == "interval_of_difference":
        evaluator = partial(evaluator, intervals=intervals_by_id)
    try:
        yield from list(evaluator(relation, cells))
    except MissingCellError as missing:
        reason = f"relation '{relation.id}' needs '{missing}', which is not in this table"
        for cell_id in relation.cell_ids():
            if cell_id in cells:
                yield Finding(cell_id, "quoted", reason, relation.id)
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(f"cannot be evaluated: {error}", file="relations.yaml", row=relation.id) from error


def _numbers(reported: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return reported[reported["value"].notna()].to_dict("records")


def _judge(cell: Cell, findings: list[Finding], row: dict[Hashable, Any]) -> dict[Hashable, Any]:
    ranked = sorted(findings, key=lambda finding: STATUSES.index(finding.status))
    status = ranked[0].status if ranked else "quoted"
    leading = [finding for finding in ranked if finding.status == status]
    # What merely does not object adds nothing once something stronger was said.
    telling = [finding.reason for finding in ranked if finding.status in (status, "recomputed", "ambiguous")]
    reasons = telling or [_QUOTED.get(cell.kind, "no other printed number bears on it")]
    against = [cell_id for finding in leading for cell_id in finding.against]
    computed = [finding.recomputed for finding in ranked if finding.recomputed is not None]
    return {
        **row,
        "recomputed": computed[0] if computed else None,
        "status": status,
        "reason": _HYPHEN_MINUS.sub("−", "; ".join(dict.fromkeys(reasons))),
        "against": "; ".join(dict.fromkeys(against)),
    }


def as_json(audited: pd.DataFrame) -> dict[str, Any]:
    """The audit as one JSON object: `rows` with the columns of `audit` up to `against`, and `counts` by status."""
    rows = audited[COLUMNS].astype(object).where(audited[COLUMNS].notna(), None).to_dict("records")
    counted = audited["status"].value_counts()
    return {"rows": rows, "counts": {status: int(counted.get(status, 0)) for status in STATUSES}}
