"""Relations between printed numbers and the counts behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from faultbook.audit.cells import Cell, Cells, Finding, Status, named
from faultbook.audit.relations import Certify, Effect, McNemarP, MeanOfScores, PairedMargins, Rate, Term, UpperBound
from faultbook.stats.bounds import graded_mean_counts
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.proportion import event_upper_bound, n_to_certify
from faultbook.stats.reconstruct import counts_from_percentage, mcnemar_from_margins


def rate(relation: Rate, cells: Cells) -> Iterator[Finding]:
    """A percentage lies on the grid of its denominators; with a printed count it is that count over one of them."""
    cell = cells[relation.value]
    denominators = {cells.denominator(term): term for term in relation.denominators}
    if relation.numerator is None:
        yield on_grid(cell, list(denominators), relation.id, named(relation.denominators))
        return
    count = cells.whole(relation.numerator)
    terms: list[Term] = [relation.numerator, *relation.denominators]
    ways = ", ".join(f"{count}/{n} = {cell.write(Fraction(100 * count, n))}" for n in denominators)
    fitting = [n for n in denominators if cell.number.admits(Fraction(100 * count, n))]
    reason = f"{ways}, printed {cell.number.text}"
    if not fitting:
        computed = cell.table_value(Fraction(100 * count, next(iter(denominators))))
        yield Finding(cell.id, "inconsistent", reason, relation.id, computed, named(terms))
        return
    computed = cell.table_value(Fraction(100 * count, fitting[0]))
    yield Finding(
        cell.id,
        "recomputed",
        reason,
        relation.id,
        computed,
        named([relation.numerator, *fitting_terms(denominators, fitting)]),
    )
    counts = [k for k, n in counts_from_percentage(cell.number.text, fitting)]
    if isinstance(relation.numerator, str) and counts == [count]:
        yield Finding(relation.numerator, "recomputed", reason, relation.id, float(count), (cell.id,))


def fitting_terms(denominators: dict[int, Term], fitting: list[int]) -> list[Term]:
    """The terms behind the denominators that fit."""
    return [denominators[n] for n in fitting]


def on_grid(cell: Cell, denominators: list[int], relation: str, against: tuple[str, ...] = ()) -> Finding:
    """Whether a percentage is some whole count over one of the denominators: how many ways, if any."""
    found = counts_from_percentage(cell.number.text, denominators)
    if not found:
        reason = f"off the grid of {_grids(denominators)}: the nearest are {', '.join(_neighbours(cell, denominators))}"
        return Finding(cell.id, "inconsistent", reason, relation, against=against)
    listed = ", ".join(f"{k}/{n}" for k, n in found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
    if len(found) > 1:
        return Finding(cell.id, "ambiguous", f"{len(found)} counts fit: {listed}", relation, against=against)
    exact = cell.table_value(Fraction(100 * found[0][0], found[0][1]))
    return Finding(cell.id, "consistent", f"only {listed} rounds to it", relation, exact, against)


def _grids(denominators: list[int]) -> str:
    return " and ".join(f"1/{n}" for n in denominators)


def _neighbours(cell: Cell, denominators: list[int]) -> list[str]:
    """The grid values just below and above a printed percentage."""
    texts = []
    for n in denominators:
        below = math.floor(Fraction(cell.number.number) * n / 100)
        texts += [f"{k}/{n} = {cell.write(Fraction(100 * k, n))}" for k in (below, below + 1)]
    return texts


def effect(relation: Effect, cells: Cells) -> Iterator[Finding]:
    """An effect is rescues minus harms over n; the counts are derived back where only one net count fits."""
    cell = cells[relation.value]
    rescues, harms, n = cells.whole(relation.rescues), cells.whole(relation.harms), cells.denominator(relation.n)
    exact = Fraction(100 * (rescues - harms), n)
    status: Status = "recomputed" if cell.number.admits(exact) else "inconsistent"
    named_counts = f"{rescues} rescue{'s' * (rescues != 1)} − {harms} harm{'s' * (harms != 1)}"
    reason = f"({named_counts}) / {n} = {cell.write(exact)}, printed {cell.number.text}"
    against = named((relation.rescues, relation.harms, relation.n))
    yield Finding(cell.id, status, reason, relation.id, cell.table_value(exact), against)
    if status == "recomputed" and len(counts_from_percentage(cell.number.text, [n])) == 1:
        for term, value in ((relation.rescues, rescues), (relation.harms, harms)):
            if isinstance(term, str):
                yield Finding(term, "recomputed", reason, relation.id, float(value), (cell.id,))


def paired_margins(relation: PairedMargins, cells: Cells) -> Iterator[Finding]:
    """Two margins of the same pairs leave the discordant split, and so the p-value, open."""
    solved_a, solved_b, n = (cells.whole(t) for t in (relation.successes_a, relation.successes_b, relation.n))
    if max(solved_a, solved_b) > n:
        reason = f"{solved_a} and {solved_b} solved of {n} pairs"
        for cell_id in (relation.successes_a, relation.successes_b):
            yield Finding(cell_id, "inconsistent", reason, relation.id, against=named([relation.n]))
        return
    splits = mcnemar_from_margins(solved_a, solved_b, n)
    p = splits["p"].dropna()
    detected = int((p < relation.level).sum())
    verdict = "at no split" if detected == 0 else f"at {detected} of {len(splits)} splits"
    spread = f"exact McNemar p {p.min():.3f} to {p.max():.3f}" if len(p) else "no discordant pair, so no test"
    reason = (
        f"{solved_a} and {solved_b} of the same {n} pairs: {len(splits)} discordant split{'s' * (len(splits) != 1)}, "
        f"{spread}; a difference is detected {verdict} (level {relation.level:g})"
    )
    status: Status = "ambiguous" if len(splits) > 1 else "consistent"
    for cell_id, other in ((relation.successes_a, relation.successes_b), (relation.successes_b, relation.successes_a)):
        yield Finding(cell_id, status, reason, relation.id, against=named([other, relation.n]))


def mcnemar(relation: McNemarP, cells: Cells) -> Iterator[Finding]:
    """A printed p is the exact two-sided McNemar p of the discordant pairs."""
    cell = cells[relation.value]
    only_a, only_b = cells.whole(relation.only_a), cells.whole(relation.only_b)
    result = mcnemar_exact(only_a, only_b)
    against = named((relation.only_a, relation.only_b))
    if math.isnan(result.p):
        reason = f"{result.test}, so there is no p; printed {cell.number.text}"
        yield Finding(cell.id, "inconsistent", reason, relation.id, against=against)
        return
    holds = cell.number.admits(Fraction(result.p))
    reason = (
        f"exact McNemar of {only_a} against {only_b} discordant pairs: p = {result.p:.4f}, printed {cell.number.text}"
    )
    yield Finding(cell.id, "recomputed" if holds else "inconsistent", reason, relation.id, result.p, against)


def mean_of_scores(relation: MeanOfScores, cells: Cells) -> Iterator[Finding]:
    """A mean of graded scores does not determine how many incidents were solved."""
    cell = cells[relation.value]
    n, repeats = cells.whole(relation.n), cells.whole(relation.repeats)
    scale = Fraction(1, 100) if cell.unit == "%" else Fraction(1)
    low, high = max(cell.number.low * scale, Fraction(0)), min(cell.number.high * scale, Fraction(1))
    against = named((relation.n, relation.repeats))
    if low > high:
        reason = f"a mean of scores in [0, 1] cannot be {cell.number.text}"
        yield Finding(cell.id, "inconsistent", reason, relation.id, against=against)
        return
    counts = graded_mean_counts(low, high, n, n_repeats=repeats).iloc[0]
    reason = (
        f"a mean of graded scores over {n} incidents × {repeats} runs cannot be turned into a number of incidents "
        f"solved: "
        f"{counts.perfect_low} to {counts.perfect_high} of {counts.runs} runs may be perfect, "
        f"{counts.above_zero_low} to {counts.above_zero_high} may score above 0"
    )
    yield Finding(cell.id, "ambiguous", reason, relation.id, against=against)


def certify(relation: Certify, cells: Cells) -> Iterator[Finding]:
    """Whether the events seen show, at the level, a rate of at most the limit; and how many tasks would."""
    events, n = cells.whole(relation.events), cells.whole(relation.n)
    limit_cell = cells[relation.limit]
    limit = float(limit_cell.number.number) / (100 if limit_cell.unit == "%" else 1)
    upper = [event_upper_bound(events, n, level=relation.level, sides=sides) for sides in (1, 2)]
    needed = [n_to_certify(limit, events, level=relation.level, sides=sides) for sides in (1, 2)]
    shown = upper[0] <= limit
    digits = 2 if abs(upper[0] - limit) > 5e-5 else 4
    one, two = (f"{100 * bound:.{digits}f} %" for bound in upper)
    reason = (
        f"{events} of {n}: the exact {100 * relation.level:g} % upper bound is {one} (one-sided) or {two} (two-sided), "
        f"{'within' if shown else 'so it cannot certify'} {100 * limit:g} %; "
        f"{needed[0]} (one-sided) or {needed[1]} (two-sided) tasks with {events} events would"
    )
    status: Status = "consistent" if shown else "ambiguous"
    yield Finding(relation.events, status, reason, relation.id, against=named([relation.limit, relation.n]))
    yield Finding(relation.limit, status, reason, relation.id, against=named([relation.events, relation.n]))


def upper_bound(relation: UpperBound, cells: Cells) -> Iterator[Finding]:
    """A printed bound is the exact Clopper–Pearson upper bound."""
    cell, events, n = cells[relation.value], cells.whole(relation.events), cells.whole(relation.n)
    bound = event_upper_bound(events, n, level=relation.level, sides=relation.sides)
    sides = "two-sided" if relation.sides == 2 else "one-sided"
    reason = f"exact {sides} upper bound of {events} in {n}: {cell.write(100 * bound)}, printed {cell.number.text}"
    status: Status = "recomputed" if cell.number.admits(Fraction(100 * bound)) else "inconsistent"
    yield Finding(
        cell.id, status, reason, relation.id, cell.table_value(100 * bound), named([relation.events, relation.n])
    )
