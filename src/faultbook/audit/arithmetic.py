"""Relations of plain arithmetic: the same quantity twice, sums, differences, products, ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from faultbook.audit.cells import Cell, Cells, Finding, Range, Status, named
from faultbook.audit.relations import (
    Difference,
    Extreme,
    KendallTau,
    PairsOf,
    Product,
    Ratio,
    Same,
    SameLabel,
    Sum,
    Term,
)


def same(relation: Same, cells: Cells) -> Iterator[Finding]:
    """Cells that print one quantity agree if some value rounds to both; each is held against all others."""
    yield from _alike(relation.id, [cells[cell_id] for cell_id in relation.cells], cells)


def same_label(relation: SameLabel, cells: Cells) -> Iterator[Finding]:
    """Cells with equal row and column labels in several tables print one quantity."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for table in relation.tables:
        for cell in cells.of_table(table):
            wanted = relation.rows is None or cell.row in relation.rows
            if wanted and (relation.columns is None or cell.column in relation.columns):
                groups.setdefault((cell.row.casefold(), cell.column.casefold()), []).append(cell)
    for group in groups.values():
        if len(group) > 1:
            yield from _alike(relation.id, group, cells)


def _alike(name: str, group: list[Cell], cells: Cells) -> Iterator[Finding]:
    for cell in group:
        others = [other for other in group if other.id != cell.id]
        clashing = [other for other in others if not cell.table_range.meets(other.table_range)]
        if not clashing:
            reason = f"printed {len(group)} times, always alike"
            yield Finding(cell.id, "consistent", reason, name, against=named(other.id for other in others))
            continue
        contradicting = ", ".join(f"{other.id} prints {other.number.text}" for other in clashing)
        reason = f"prints {cell.number.text} where {contradicting}"
        fitting = _elsewhere(cell, clashing, {member.id for member in group}, cells)
        if fitting:
            reason += f"; {cell.number.text} stands there under {' and '.join(fitting)}"
        yield Finding(cell.id, "inconsistent", reason, name, against=named(other.id for other in clashing))


def _elsewhere(cell: Cell, clashing: list[Cell], group: set[str], cells: Cells) -> list[str]:
    """Labels in the contradicting tables, in the same row or column, under which this very number is printed."""
    found: list[str] = []
    if len(cell.number.number.as_tuple().digits) < 3:
        return found  # a 5 stands in many places
    for other in clashing:
        for candidate in cells.of_table(other.table):
            beside = (candidate.row == other.row) != (candidate.column == other.column)
            alike = candidate.number.number == cell.number.number and candidate.unit == cell.unit
            if beside and alike and candidate.id not in group:
                found.append(f"'{candidate.row}', '{candidate.column}'")
    return list(dict.fromkeys(found))


def total(relation: Sum, cells: Cells) -> Iterator[Finding]:
    """Check total = parts − less, and derive every term from the others."""
    signed = [(term, 1) for term in relation.parts] + [(term, -1) for term in relation.less]
    yield from _linear(relation.id, relation.total, signed, cells)


def difference(relation: Difference, cells: Cells) -> Iterator[Finding]:
    """Check value = minuend − subtrahend."""
    yield from _linear(relation.id, relation.value, [(relation.minuend, 1), (relation.subtrahend, -1)], cells)


def _linear(name: str, whole: Term, signed: list[tuple[Term, int]], cells: Cells) -> Iterator[Finding]:
    (first, _), *rest = signed
    text = cells.write(first)
    text += "".join(f" {'+' if sign > 0 else '−'} {_bracketed(cells.write(term))}" for term, sign in rest)
    equation = f"{text} = {{}}, printed {cells.write(whole)}"

    def solve(target: int) -> Range:
        """Solve for the term at `target`; −1 is the whole."""
        rest = cells.range(0 if target < 0 else whole)
        for index, (term, sign) in enumerate(signed):
            if index != target:
                positive = (sign > 0) == (target < 0)
                rest = rest + cells.range(term) if positive else rest - cells.range(term)
        return rest if target < 0 or signed[target][1] > 0 else cells.range(0) - rest

    yield from _solved(name, [whole, *(term for term, _ in signed)], lambda index: solve(index - 1), equation, cells)


def _bracketed(text: str) -> str:
    """A signed number after an operator is set in brackets."""
    return f"({text})" if text.startswith(("−", "-", "+")) else text


def product(relation: Product, cells: Cells) -> Iterator[Finding]:
    """Check total = product of factors, and derive every term from the others."""
    text = " × ".join(cells.write(term) for term in relation.factors)
    terms = [relation.total, *relation.factors]

    def solve(index: int) -> Range:
        others = [cells.range(term) for position, term in enumerate(relation.factors, 1) if position != index]
        multiplied = math.prod(others[1:], start=others[0])
        return multiplied if index == 0 else cells.range(relation.total) / multiplied

    yield from _solved(relation.id, terms, solve, f"{text} = {{}}, printed {cells.write(relation.total)}", cells)


def pairs_of(relation: PairsOf, cells: Cells) -> Iterator[Finding]:
    """Check total = items (items − 1) / 2."""
    cell, items = cells[relation.total], cells.whole(relation.items)
    pairs = math.comb(items, 2)
    holds = cell.number.admits(Fraction(pairs))
    reason = f"{items} items make {pairs} pairs, printed {cell.number.text}"
    status: Status = "recomputed" if holds else "inconsistent"
    yield Finding(cell.id, status, reason, relation.id, float(pairs), named([relation.items]))


def extreme(relation: Extreme, cells: Cells) -> Iterator[Finding]:
    """Check that a cell is the least or the greatest of others."""
    cell = cells[relation.value]
    choose = min if relation.which == "least" else max
    found = choose((cells[member] for member in relation.of), key=lambda member: member.number.number)
    reason = (
        f"the {relation.which} of {len(relation.of)} is {found.number.text} ('{found.row}'), printed {cell.number.text}"
    )
    status: Status = "recomputed" if cell.range.meets(found.range) else "inconsistent"
    value = cell.table_value(Fraction(found.number.number))
    yield Finding(cell.id, status, reason, relation.id, value, named([found.id], besides=cell.id))


def kendall_tau(relation: KendallTau, cells: Cells) -> Iterator[Finding]:
    """A Kendall τ between two rankings of m items without ties is 1 − 2 d / (m choose 2), d whole (Kendall 1938)."""
    cell, items = cells[relation.value], cells.whole(relation.items)
    if items < 2:
        raise ValueError(f"a ranking needs at least 2 items; found {items}")
    pairs = math.comb(items, 2)
    grid = [1 - Fraction(2 * discordant, pairs) for discordant in range(pairs + 1)]
    fitting = [tau for tau in grid if cell.number.admits(tau)]
    against = named([relation.items])
    if fitting:
        reason = (
            f"rankings of {items} items with {int((1 - fitting[0]) * pairs / 2)} of {pairs} pairs discordant give it"
        )
        yield Finding(cell.id, "consistent", reason, relation.id, float(fitting[0]), against)
        return
    nearest = sorted(grid, key=lambda tau: abs(tau - Fraction(cell.number.number)))[:2]
    others = [m for m in range(2, 13) if any(_tau_fits(cell, d, math.comb(m, 2)) for d in range(math.comb(m, 2) + 1))]
    reason = (
        f"no two rankings of {items} items without ties give {cell.number.text}; the nearest are "
        f"{' and '.join(cell.write(tau) for tau in nearest)}"
        + (f", while {', '.join(map(str, others))} items could give it" if others else "")
    )
    yield Finding(cell.id, "inconsistent", reason, relation.id, against=against)


def _tau_fits(cell: Cell, discordant: int, pairs: int) -> bool:
    return cell.number.admits(1 - Fraction(2 * discordant, pairs))


def ratio(relation: Ratio, cells: Cells) -> Iterator[Finding]:
    """Check value = numerator / denominator; a value in per cent is scaled."""
    value = cells[relation.value]
    hundred = cells.range(100 if value.unit == "%" else 1)
    above, below = cells.range(relation.numerator), cells.range(relation.denominator)
    ways: list[Callable[[], Range]] = [
        lambda: hundred * above / below,
        lambda: value.range * below / hundred,
        lambda: hundred * above / value.range,
    ]
    text = (
        f"{cells.write(relation.numerator)} / {cells.write(relation.denominator)} = {{}}, printed {value.number.text}"
    )
    terms = [relation.value, relation.numerator, relation.denominator]
    yield from _solved(relation.id, terms, lambda index: ways[index](), text, cells)


def _solved(
    name: str, terms: list[Term], solve: Callable[[int], Range], equation: str, cells: Cells
) -> Iterator[Finding]:
    """Findings for an equation: `solve(i)` is the range of term i that the other terms imply; term 0 is the result."""
    holds = solve(0).meets(cells.range(terms[0]))
    result = float(solve(0).middle)
    reason = equation.format(cells[terms[0]].write(result) if isinstance(terms[0], str) else f"{result:,.10g}")
    for index, term in enumerate(terms):
        if not isinstance(term, str):
            continue
        status: Status = "recomputed" if holds else "inconsistent"
        recomputed = None
        try:
            recomputed = cells[term].table_value(solve(index).middle)
        except ZeroDivisionError:  # 0 = 0 × 75 says nothing about the 75
            status = "consistent" if holds else status
        yield Finding(term, status, reason, name, recomputed, named(terms, besides=term))
