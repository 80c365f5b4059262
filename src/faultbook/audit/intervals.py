"""Printed intervals held against the exact percentile bootstrap of the counts they can come from."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from faultbook.audit.cells import Cell, Cells, Finding, Status, named
from faultbook.audit.counts import on_grid
from faultbook.audit.relations import Interval
from faultbook.stats.reconstruct import counts_from_percentage, rescue_harm_candidates

# A finite bootstrap may print a bound one step off the exact one. Counts whose own bootstrap prints the given bounds
# less often than this are not offered as an explanation.
LEAST_REACH = 0.01


def interval(relation: Interval, cells: Cells) -> Iterator[Finding]:
    """Find every (rescues, harms) behind an effect and its bounds, and say whether they print these bounds."""
    n = cells.denominator(relation.n)
    printed = [cells[name] for name in (relation.effect, relation.low, relation.high) if name is not None]
    off_grid = [_off_grid(cell, relation, n) for cell in printed if not _as_counts(cell, n)]
    found = candidates(relation, cells)
    usable = _usable(found)
    yield from _explain_off_grid(off_grid, usable, n, cells)
    broken = {finding.cell for finding in off_grid}
    if relation.effect in broken or {relation.low, relation.high} <= broken:
        return  # no bound is left that could say anything
    counted = [relation.rescues, relation.harms, relation.unchanged]
    terms = [relation.effect, *counted, relation.low, relation.high, relation.n]
    status, reason = _verdict(usable, found, relation)
    for cell in printed:
        if cell.id in broken:
            continue
        side = {relation.low: "low", relation.high: "high"}.get(cell.id)
        against = named((term for term in terms if term is not None), besides=cell.id)
        # The effect itself is not derived anew by its interval: an integer solution exists, no more.
        own: Status = "consistent" if side is None and status == "recomputed" else status
        computed = _derived(cell, usable, side, n) if side and own == "recomputed" else None
        yield Finding(cell.id, own, reason, relation.id, computed, against)
    if status in ("recomputed", "consistent"):
        for term in named(term for term in counted if term is not None):
            yield Finding(term, "consistent", reason, relation.id, against=named([relation.low, relation.high]))


def _as_counts(cell: Cell, n: int) -> list[int]:
    """The counts out of n that a cell may print: a count as it stands, a percentage by its grid."""
    if cell.unit in ("%", "pp"):
        return [k for k, _ in counts_from_percentage(cell.number.text, [n])]
    return [int(cell.number.number)] if cell.number.number % 1 == 0 else []


def _off_grid(cell: Cell, relation: Interval, n: int) -> Finding:
    if cell.unit in ("%", "pp"):
        return on_grid(cell, [n], relation.id, named([relation.n]))
    return Finding(cell.id, "inconsistent", f"{cell.number.text} is no whole count", relation.id)


def _derived(cell: Cell, usable: pd.DataFrame, side: str, n: int) -> float:
    count = int(usable[usable["exact"]][side].iloc[0])
    return cell.table_value(Fraction(100 * count, n)) if cell.unit in ("%", "pp") else float(count)


def candidates(relation: Interval, cells: Cells) -> pd.DataFrame:
    """Feasible (rescues, harms) of a printed interval, as `rescue_harm_candidates` lists them.

    A bound that is off the grid constrains nothing, and one printed so coarsely that several counts round to it is met
    by each of them; counts that are printed leave one row.
    """
    n = cells.denominator(relation.n)
    counts = {
        name: cells.whole(term)
        for name, term in (("rescues", relation.rescues), ("harms", relation.harms))
        if term is not None
    }
    if relation.effect is not None:
        nets = _as_counts(cells[relation.effect], n)
    else:
        nets = [counts["rescues"] - counts["harms"]]
    low, high = (_as_counts(cells[name], n) for name in (relation.low, relation.high))
    tables = [_table(net, n, low, high, relation.n_resamples) for net in nets]
    found = pd.concat(tables, ignore_index=True) if tables else rescue_harm_candidates(0, 1, []).head(0)
    for name, count in counts.items():
        found = found[found[name] == count]
    if relation.unchanged is not None:
        found = found[found["rescues"] + found["harms"] == n - cells.whole(relation.unchanged)]
    return found


def _table(net: int, n: int, low: list[int], high: list[int], n_resamples: int) -> pd.DataFrame:
    """All (rescues, harms) of one net effect, held against every pair of bounds that the printed ones stand for."""
    pairs = [(lower, upper) for lower in low for upper in high if lower <= upper]
    table = rescue_harm_candidates(net, n, pairs, n_resamples)
    if not (low and high):  # a bound off the grid constrains nothing
        table["exact"] = (table["low"].isin(low) if low else True) & (table["high"].isin(high) if high else True)
    return table


def usable_pairs(relation: Interval, cells: Cells) -> list[tuple[int, int]]:
    """The (rescues, harms) that give, or whose bootstrap may print, the bounds of an interval."""
    return [(row.rescues, row.harms) for row in _rows(_usable(candidates(relation, cells)))]


def _usable(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["exact"] | (found["reach_probability"] >= LEAST_REACH)]


def _verdict(usable: pd.DataFrame, found: pd.DataFrame, relation: Interval) -> tuple[Status, str]:
    known = relation.rescues is not None and relation.harms is not None
    exact = usable[usable["exact"]]
    if len(exact) == 1:
        row = exact.iloc[0]
        alone = "" if known else ", and no other counts do"
        return "recomputed", f"{_pair(row)} give exactly these bounds{_reach(row, relation.n_resamples)}{alone}"
    if len(exact) > 1:
        return "ambiguous", f"{len(exact)} counts give exactly these bounds: {_listed(exact)}"
    if found.empty and known:
        return "inconsistent", "the printed rescues and harms do not give the printed effect"
    if usable.empty:
        best = "" if found.empty else f"; the counts that come nearest: {_nearest(found)}"
        return "inconsistent", f"no rescues and harms give these bounds{best}"
    status: Status = "consistent" if len(usable) == 1 else "ambiguous"
    subject = "the printed counts do not give exactly these bounds" if known else "no counts give exactly these bounds"
    return status, f"{subject}; a finite bootstrap may print them from {_listed(usable)}"


def _pair(row: pd.Series) -> str:
    rescues, harms = int(row["rescues"]), int(row["harms"])
    return f"{rescues} rescue{'s' * (rescues != 1)} and {harms} harm{'s' * (harms != 1)}"


def _reach(row: pd.Series, n_resamples: int) -> str:
    reach = row["reach_probability"]
    return f" ({n_resamples:,} draws print them with probability {reach:.2f})" if reach else ""


class _Candidate(NamedTuple):
    """One row of `rescue_harm_candidates`."""

    rescues: int
    harms: int
    exact: bool
    low: int
    high: int
    reach_probability: float


def _rows(frame: pd.DataFrame) -> list[_Candidate]:
    return [_Candidate(*row) for row in frame.itertuples(index=False, name=None)]


def _listed(frame: pd.DataFrame, most: int = 6) -> str:
    texts = [
        f"({row.rescues}, {row.harms}) with exact bounds [{row.low}, {row.high}]"
        + (f" and reach {row.reach_probability:.2f}" if row.reach_probability else "")
        for row in _rows(frame.head(most))
    ]
    return ", ".join(texts) + (f" and {len(frame) - most} more" if len(frame) > most else "")


def _nearest(found: pd.DataFrame) -> str:
    return _listed(found.sort_values("reach_probability", ascending=False, kind="stable").head(1))


def _explain_off_grid(off_grid: list[Finding], usable: pd.DataFrame, n: int, cells: Cells) -> Iterator[Finding]:
    """For a bound off the grid, say what the other printed numbers would have printed there."""
    for finding in off_grid:
        cell = cells[finding.cell]
        side = {"interval_low": "low", "interval_high": "high"}.get(cell.kind)
        if side is None or len(off_grid) > 1 or usable[side].nunique() != 1:
            yield finding
            continue
        exact = Fraction(100 * int(usable[side].iloc[0]), n)
        left = f"the effect and the other bound leave {_listed(usable)}, which prints {cell.write(exact)}"
        reason = f"{finding.reason}; {left}"
        yield Finding(cell.id, "inconsistent", reason, finding.relation, cell.table_value(exact), finding.against)
