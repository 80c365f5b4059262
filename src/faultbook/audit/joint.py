"""Printed intervals that one table of rescues and harms cannot explain: paired differences, and clustered episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from faultbook.audit.cells import Cell, Cells, Finding, Status, named
from faultbook.audit.counts import on_grid
from faultbook.audit.intervals import LEAST_REACH, usable_pairs
from faultbook.audit.relations import ClusteredInterval, Interval, IntervalOfDifference
from faultbook.stats.paired import sign_flip
from faultbook.stats.reconstruct import counts_from_percentage
from faultbook.stats.resampling import SumDistribution, reach_probability, resampled_sum, unit_sum_patterns


def interval_of_difference(
    relation: IntervalOfDifference, cells: Cells, intervals: Mapping[str, Interval]
) -> Iterator[Finding]:
    """A difference of two paired effects needs their joint table; enumerate every overlap of the counts they allow."""
    n = cells.denominator(relation.n)
    against = named([relation.effect, relation.low, relation.high, relation.n])
    bounds = _bound_pairs(cells[relation.low], cells[relation.high], n)
    if bounds is None:
        for name in (relation.effect, relation.low, relation.high):
            yield on_grid(cells[name], [n], relation.id, named([relation.n]))
        return
    reached = _reaching_patterns(relation, cells, intervals, bounds)
    status, reason = _joint_verdict(reached)
    for name in (relation.effect, relation.low, relation.high):
        yield Finding(name, status, reason, relation.id, against=named(against, besides=name))


def _bound_pairs(low: Cell, high: Cell, n: int) -> list[tuple[int, int]] | None:
    """Every pair of counts out of n that the printed bounds stand for; None if a bound is off the grid."""
    lower, upper = ([k for k, _ in counts_from_percentage(cell.number.text, [n])] for cell in (low, high))
    return [(a, b) for a in lower for b in upper if a <= b] if lower and upper else None


def _joint_verdict(reached: list[tuple[bool, float]]) -> tuple[Status, str]:
    n_exact = sum(exact for exact, _ in reached)
    if n_exact:
        patterns = "pattern of the two effects gives" if n_exact == 1 else "patterns of the two effects give"
        return ("consistent" if n_exact == 1 else "ambiguous"), f"{n_exact} joint {patterns} exactly these bounds"
    if reached:
        best = max(reach for _, reach in reached)
        return ("consistent" if len(reached) == 1 else "ambiguous"), (
            f"no joint pattern of the two effects gives exactly these bounds; {len(reached)} may print them by "
            f"Monte-Carlo noise, the likeliest with probability {best:.2f}"
        )
    return "inconsistent", "no joint pattern of the two effects gives, or nearly gives, this effect with these bounds"


def _reaching_patterns(
    relation: IntervalOfDifference,
    cells: Cells,
    intervals: Mapping[str, Interval],
    bounds: list[tuple[int, int]],
) -> list[tuple[bool, float]]:
    """(exact?, reach) of every joint pattern with the printed effect that prints the bounds with some likelihood."""
    for name in (relation.first, relation.second):
        if name not in intervals:
            raise ValueError(f"there is no interval relation '{name}'")
    n = cells.denominator(relation.n)
    effects = {k for k, _ in counts_from_percentage(cells[relation.effect].number.text, [n])}
    first, second = (usable_pairs(intervals[name], cells) for name in (relation.first, relation.second))
    reached = []
    for rescues, harms in first:
        for other_rescues, other_harms in second:
            if (rescues - harms) - (other_rescues - other_harms) not in effects:
                continue
            # Subtracting an effect turns its harms into gains and its rescues into losses.
            for pattern in unit_sum_patterns([(rescues, harms), (other_harms, other_rescues)], n):
                sums = resampled_sum(pattern, n)
                reach = _reach(sums, bounds, relation.n_resamples)
                if sums.bounds() in bounds or reach >= LEAST_REACH:
                    reached.append((sums.bounds() in bounds, reach))
    return reached


def _reach(sums: SumDistribution, bounds: list[tuple[int, int]], n_resamples: int) -> float:
    return sum(reach_probability(sums, *pair, n_resamples=n_resamples) for pair in bounds)


def clustered_interval(relation: ClusteredInterval, cells: Cells) -> Iterator[Finding]:
    """Were episodes or tasks resampled? Compare the printed bounds with both, over every overlap of the strata."""
    tasks, episodes = cells.denominator(relation.tasks), cells.denominator(relation.episodes)
    strata = [(cells.whole(rescues), cells.whole(harms)) for rescues, harms in relation.strata]
    low_cell, high_cell = cells[relation.low], cells[relation.high]
    against = named(
        [relation.effect, relation.tasks, relation.episodes, *(t for pair in relation.strata for t in pair)]
    )
    bounds = _bound_pairs(low_cell, high_cell, episodes)
    if bounds is None:
        for cell in (low_cell, high_cell):
            yield on_grid(cell, [episodes], relation.id, against)
        return
    totals = {1: sum(rescues for rescues, _ in strata), -1: sum(harms for _, harms in strata)}
    yield from _clustered_effect(relation, cells[relation.effect], totals[1] - totals[-1], episodes)
    apart = resampled_sum(totals, episodes)
    patterns = unit_sum_patterns(strata, tasks)
    sums = [resampled_sum(pattern, tasks) for pattern in patterns]
    fitting = [pattern for pattern, total in zip(patterns, sums, strict=True) if total.bounds() in bounds]
    reach = max(_reach(total, bounds, relation.n_resamples) for total in (apart, *sums))
    if relation.p is not None:
        yield _clustered_p(relation, cells[relation.p], fitting, tasks)
    status, reason = _clustered_verdict(apart.bounds(), bounds, fitting, reach, episodes, tasks)
    for cell, side in ((low_cell, 0), (high_cell, 1)):
        exact = {resampled_sum(pattern, tasks).bounds()[side] for pattern in fitting} or {apart.bounds()[side]}
        settled = status == "recomputed" and len(exact) == 1
        computed = cell.table_value(Fraction(100 * exact.pop(), episodes)) if settled else None
        yield Finding(cell.id, status, reason, relation.id, computed, against)


def _clustered_effect(relation: ClusteredInterval, cell: Cell, net: int, episodes: int) -> Iterator[Finding]:
    """The effect is the net count of all strata."""
    exact = Fraction(100 * net, episodes)
    if not cell.number.admits(exact):
        reason = f"the strata give {net}/{episodes} = {cell.write(exact)}, printed {cell.number.text}"
        against = named(term for pair in relation.strata for term in pair)
        yield Finding(cell.id, "inconsistent", reason, relation.id, cell.table_value(exact), against)


def _clustered_verdict(
    independent: tuple[int, int],
    printed: list[tuple[int, int]],
    fitting: list[dict[int, int]],
    reach: float,
    episodes: int,
    tasks: int,
) -> tuple[Status, str]:
    given = f"{episodes} independent episodes give [{independent[0]}, {independent[1]}]/{episodes}"
    shown = f"{' or '.join(f'[{low}, {high}]' for low, high in printed[:4])}/{episodes} is printed"
    if independent in printed and not fitting:
        return "recomputed", f"{given}, as printed: episodes were resampled, not tasks"
    if independent in printed:
        patterns = "pattern" if len(fitting) == 1 else "patterns"
        return "ambiguous", f"{given}, as printed, and so do {len(fitting)} {patterns} of {tasks} tasks"
    if fitting:
        return "recomputed", (
            f"{given} where {shown}, so the interval was clustered: resampling {tasks} tasks gives it for "
            f"{' or '.join(_tasks(pattern) for pattern in fitting[:4])}"
        )
    if reach >= LEAST_REACH:
        return "consistent", (
            f"{given} where {shown}, and no pattern of {tasks} tasks gives it exactly; a finite bootstrap may print it "
            f"with probability {reach:.2f}"
        )
    return "inconsistent", f"{given} where {shown}, and no pattern of {tasks} tasks gives it either"


def _tasks(pattern: dict[int, int]) -> str:
    """'+2 × 1, +1 × 9, −1 × 2': how many tasks carry which sum."""
    return ", ".join(
        f"{total:+d} × {count}".replace("-", "−") for total, count in sorted(pattern.items(), reverse=True)
    )


def _clustered_p(relation: ClusteredInterval, cell: Cell, fitting: list[dict[int, int]], tasks: int) -> Finding:
    """The task-level sign-flip p of every pattern that gives the printed bounds."""
    ps = [sign_flip([t for t, count in pattern.items() for _ in range(count)]).p for pattern in fitting]
    against = named([relation.low, relation.high])
    if not ps:
        return Finding(
            cell.id, "quoted", "no pattern of tasks gives the interval beside it", relation.id, against=against
        )
    # A Monte-Carlo p from 100,000 flips is off by about sqrt(p (1 − p) / 100,000): 0.0006 at p = .03.
    near = [
        p
        for p in ps
        if abs(p - float(cell.number.number)) <= float(cell.number.half_unit) + 4 * (p * (1 - p) / 1e5) ** 0.5
    ]
    listed = ", ".join(f"{p:.4f} for {_tasks(pattern)}" for p, pattern in zip(ps, fitting, strict=True))
    reason = (
        f"exact task-level sign-flip p of the patterns that give the interval: {listed}; printed {cell.number.text}"
    )
    status: Status = ("inconsistent", "recomputed", "ambiguous")[min(len(near), 2)]
    return Finding(cell.id, status, reason, relation.id, near[0] if len(near) == 1 else None, against)
