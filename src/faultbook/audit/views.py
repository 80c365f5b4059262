"""Tables for readers, made from an audit: reported beside recomputed, contradictions, intervals, open questions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from faultbook.audit.cells import STATUSES, Cells
from faultbook.audit.intervals import candidates
from faultbook.audit.judge import resolve
from faultbook.audit.relations import AnyRelation, Interval, MeanOfScores, PairedMargins
from faultbook.printed import parse_printed, unit_scale
from faultbook.stats.bounds import graded_mean_counts
from faultbook.stats.reconstruct import mcnemar_from_margins

Relations = Iterable[AnyRelation] | str | Path | None
_INTERVAL_COLUMNS = (
    *("relation", "label", "unit", "n", "effect", "low", "high", "rescues", "harms", "exact_low", "exact_high"),
    *("exact", "n_exact", "reach_probability"),
)
_RANGE_COLUMNS = ("id", "row", "printed", "runs", "perfect_low", "perfect_high", "above_zero_low", "above_zero_high")


def status_counts(audited: pd.DataFrame) -> pd.DataFrame:
    """How many printed numbers of each document have which status: one row a document, one column a status."""
    counts = pd.crosstab(audited["document"], audited["status"])
    counts = counts.reindex(columns=list(STATUSES), fill_value=0)
    counts = counts.reindex(list(dict.fromkeys(audited["document"])))
    counts["all"] = counts.sum(axis=1)
    counts.columns.name = None
    return counts.reset_index()


def side_by_side(audited: pd.DataFrame) -> pd.DataFrame:
    """Printed beside recomputed, written alike, with the difference in printed units (recomputed − printed).

    Returns
    -------
    DataFrame
        source, table, row, column, printed, recomputed, difference, status, reason.
    """
    shown = audited[["source", "table", "row", "column", "printed"]].copy()
    texts, differences = [], []
    for row in audited.to_dict("records"):
        number = parse_printed(row["printed"])
        again = row["recomputed"] / float(unit_scale(row["unit"]))
        texts.append("" if math.isnan(again) else number.like(again))
        differences.append(again - float(number.number))
    shown["recomputed"] = texts
    shown["difference"] = pd.Series(differences, index=shown.index).round(6)
    shown[["status", "reason"]] = audited[["status", "reason"]]
    return shown


def table_of(audited: pd.DataFrame, source: str, table: str) -> pd.DataFrame:
    """One printed table, side by side, without the columns that are the same throughout; empty if it is not there."""
    part = audited[(audited["source"] == source) & (audited["table"] == table)]
    return side_by_side(part).drop(columns=["source", "table", "reason"])


def printed_table(reported: pd.DataFrame, source: str, table: str) -> pd.DataFrame:
    """One printed table in its own shape, texts as printed: labels and dashes too."""
    part = reported[(reported["source"] == source) & (reported["table"] == table)]
    wide = part.pivot_table(index="row", columns="column", values="printed", aggfunc="first", sort=False)
    wide.columns.name = None
    return wide.reset_index()


def findings(audited: pd.DataFrame, status: str, document: str | None = None) -> pd.DataFrame:
    """The printed numbers with a status, with the reason and what it rests on: cell, printed, recomputed, reason."""
    part = audited[audited["status"] == status]
    part = part if document is None else part[part["document"] == document]
    shown = side_by_side(part)
    shown.insert(0, "cell", part["id"])
    return shown[["cell", "printed", "recomputed", "reason"]]


def contradictions(audited: pd.DataFrame) -> pd.DataFrame:
    """Disagreements between printed numbers that claim the same quantity, each pair of numbers once.

    Returns
    -------
    DataFrame
        document, cell, printed, value, other_cell, other_printed, other_value (values in printed units; the first two
        cells in which the two numbers meet), cells (how many cells print one of the two and are contradicted).
    """
    inconsistent = {row["id"]: row for row in audited[audited["status"] == "inconsistent"].to_dict("records")}
    found: dict[tuple[str, frozenset[str]], tuple[str, str, set[str]]] = {}
    for cell_id, row in inconsistent.items():
        for other_id in filter(None, row["against"].split("; ")):
            if other_id in inconsistent:
                key = (row["document"], frozenset((row["printed"], inconsistent[other_id]["printed"])))
                found.setdefault(key, (cell_id, other_id, set()))[2].update((cell_id, other_id))
    rows = [
        (key[0], *_number(inconsistent[first]), *_number(inconsistent[second]), len(members))
        for key, (first, second, members) in found.items()
    ]
    columns = ["document", "cell", "printed", "value", "other_cell", "other_printed", "other_value", "cells"]
    return pd.DataFrame(rows, columns=columns)


def _number(row: dict[Hashable, Any]) -> tuple[str, str, float]:
    return row["id"], row["printed"], float(parse_printed(row["printed"]).number)


def printed_intervals(reported: pd.DataFrame, relations: Relations = None) -> pd.DataFrame:
    """Every printed interval of a paired effect beside the exact bounds of the counts most likely behind it.

    Returns
    -------
    DataFrame
        relation, label, unit, n, effect, low, high (as printed, in printed units), rescues, harms, exact_low,
        exact_high (printed units), exact, n_exact (how many counts give exactly these bounds), reach_probability.
    """
    cells = Cells(reported)
    rows = []
    for relation in resolve(reported, relations):
        if not isinstance(relation, Interval) or not all(cell_id in cells for cell_id in relation.cell_ids()):
            continue
        found = candidates(relation, cells).sort_values(["exact", "reach_probability"], ascending=False, kind="stable")
        n, low, high = cells.whole(relation.n), cells[relation.low], cells[relation.high]
        step = 1.0 if low.unit == "count" else 100 / n
        effect = float(cells[relation.effect].number.number) if relation.effect else math.nan
        best = found.iloc[0].to_dict() if not found.empty else dict.fromkeys(found.columns, math.nan)
        rows.append(
            {
                "relation": relation.id,
                "label": f"{low.row} ({low.table.split('/')[1]})",
                "unit": low.unit,
                "n": n,
                "effect": effect if relation.effect else step * (best["rescues"] - best["harms"]),
                "low": float(low.number.number),
                "high": float(high.number.number),
                "rescues": best["rescues"],
                "harms": best["harms"],
                "exact_low": step * best["low"],
                "exact_high": step * best["high"],
                "exact": bool(pd.notna(best["exact"]) and best["exact"]),  # NaN where nothing fits
                "n_exact": int(found["exact"].sum()),
                "reach_probability": best["reach_probability"],
            }
        )
    return pd.DataFrame(rows, columns=list(_INTERVAL_COLUMNS))


def solved_ranges(reported: pd.DataFrame, relations: Relations = None) -> pd.DataFrame:
    """For every mean of graded scores: how many runs may be perfect, and how many may score above zero.

    Returns
    -------
    DataFrame
        id, row, printed, runs, perfect_low, perfect_high, above_zero_low, above_zero_high.
    """
    cells = Cells(reported)
    rows = []
    for relation in resolve(reported, relations):
        if isinstance(relation, MeanOfScores) and all(cell_id in cells for cell_id in relation.cell_ids()):
            cell = cells[relation.value]
            scale = unit_scale(cell.unit)
            low, high = max(cell.number.low * scale, Fraction(0)), min(cell.number.high * scale, Fraction(1))
            n, repeats = cells.whole(relation.n), cells.whole(relation.repeats)
            counts = graded_mean_counts(low, high, n, n_repeats=repeats)
            counts.insert(0, "printed", cell.number.text)
            counts.insert(0, "row", cell.row)
            counts.insert(0, "id", cell.id)
            rows.append(counts)
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=list(_RANGE_COLUMNS))


def margin_splits(reported: pd.DataFrame, relations: Relations = None) -> pd.DataFrame:
    """For every pair of margins: the exact McNemar p of each discordant split (relation, only_a, only_b, p)."""
    cells = Cells(reported)
    frames = []
    for relation in resolve(reported, relations):
        if isinstance(relation, PairedMargins) and all(cell_id in cells for cell_id in relation.cell_ids()):
            terms = (relation.successes_a, relation.successes_b, relation.n)
            frame = mcnemar_from_margins(*(cells.whole(term) for term in terms))
            frame.insert(0, "relation", relation.id)
            frames.append(frame)
    columns = ["relation", "only_a", "only_b", "p"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
