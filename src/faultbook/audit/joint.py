"""Printed intervals that one table of rescues and harms cannot explain: paired differences, and clustered episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from faultbook.audit.cells import Cell, Cells, Finding, Status, named
from faultbook.audit.counts import on_grid
from faultbook.audit.intervals import LEAST_REACH, usable_pairs
from faultbook.audit.relations import ClusteredInterval, Interval, IntervalOfDifference
from faultbook.stats.paired import sign_flip
from faultbook.stats.reconstruct import counts_from_percentage, reach_probability, resampled_sum, unit_sum_patterns


def interval_of_difference(
    relation: IntervalOfDifference, cells: Cells, intervals: Mapping[str, Interval]
) -> Iterator[Finding]:
    """A difference of two paired effects needs their joint table; enumerate every overlap of the counts they allow."""
    n = cells.whole(relation.n)
    bounds = [counts_from_percentage(cells[name].number.text, [n]) for name in (relation.low, relation.high)]
    against = named([relation.effect, relation.low, relation.high, relation.n])
    if not all(bounds):
        for name in (relation.effect, relation.low, relation.high):
            yield on_grid(cells[name], [n], relation.id, named([relation.n]))
        return
    low, high = bounds[0][0][0], bounds[1][0][0]
    reached = _reaching_patterns(relation, cells, intervals, low, high)
    n_exact = sum(exact for exact, _ in reached)
    best = max((reach for _, reach in reached), default=0.0)
    if n_exact:
        status: Status = "consistent" if n_exact == 1 else "ambiguous"
        reason = f"{n_exact} joint patterns of the two effects give exactly these bounds"
    elif reached:
        status = "consistent" if len(reached) == 1 else "ambiguous"
        reason = (
            f"no joint pattern of the two effects gives exactly these bounds; {len(reached)} may print them by "
            f"Monte-Carlo noise, the likeliest with probability {best:.2f}"
        )
    else:
        status, reason = "inconsistent", "no joint pattern of the two effects gives or nearly gives these bounds"
    for name in (relation.effect, relation.low, relation.high):
        yield Finding(name, status, reason, relation.id, against=named(against, besides=name))


def _reaching_patterns(
    relation: IntervalOfDifference, cells: Cells, intervals: Mapping[str, Interval], low: int, high: int
) -> list[tuple[bool, float]]:
    """(exact?, reach) of every joint pattern that prints the bounds with some likelihood."""
    n = cells.whole(relation.n)
    for name in (relation.first, relation.second):
        if name not in intervals:
            raise ValueError(f"there is no interval relation '{name}'")
    pairs = [usable_pairs(intervals[name], cells) for name in (relation.first, relation.second)]
    reached = []
    for rescues, harms in pairs[0]:
        for other_rescues, other_harms in pairs[1]:
            # Subtracting an effect turns its harms into gains and its rescues into losses.
            for pattern in unit_sum_patterns([(rescues, harms), (other_harms, other_rescues)], n):
                sums = resampled_sum(pattern, n)
                reach = reach_probability(sums, low, high, n_resamples=relation.n_resamples)
                if sums.bounds() == (low, high) or reach >= LEAST_REACH:
                    reached.append((sums.bounds() == (low, high), reach))
    return reached


def clustered_interval(relation: ClusteredInterval, cells: Cells) -> Iterator[Finding]:
    """Were episodes or tasks resampled? Compare the printed bounds with both, over every overlap of the strata."""
    tasks, episodes = cells.whole(relation.tasks), cells.whole(relation.episodes)
    strata = [(cells.whole(rescues), cells.whole(harms)) for rescues, harms in relation.strata]
    low_cell, high_cell = cells[relation.low], cells[relation.high]
    bounds = [counts_from_percentage(cell.number.text, [episodes]) for cell in (low_cell, high_cell)]
    against = named(
        [relation.effect, relation.tasks, relation.episodes, *(t for pair in relation.strata for t in pair)]
    )
    if not all(bounds):
        for cell in (low_cell, high_cell):
            yield on_grid(cell, [episodes], relation.id, against)
        return
    low, high = bounds[0][0][0], bounds[1][0][0]
    totals = {1: sum(rescues for rescues, _ in strata), -1: sum(harms for _, harms in strata)}
    independent = resampled_sum(totals, episodes).bounds()
    patterns = unit_sum_patterns(strata, tasks)
    sums = [resampled_sum(pattern, tasks) for pattern in patterns]
    fitting = [pattern for pattern, total in zip(patterns, sums, strict=True) if total.bounds() == (low, high)]
    reach = max(reach_probability(total, low, high, n_resamples=relation.n_resamples) for total in sums)
    if relation.p is not None:
        yield _clustered_p(relation, cells[relation.p], fitting, tasks)
    status, reason = _clustered_verdict(independent, (low, high), fitting, reach, episodes, tasks)
    for cell, count in ((low_cell, low), (high_cell, high)):
        computed = cell.table_value(Fraction(100 * count, episodes)) if status == "recomputed" else None
        yield Finding(cell.id, status, reason, relation.id, computed, against)


def _clustered_verdict(
    independent: tuple[int, int],
    printed: tuple[int, int],
    fitting: list[dict[int, int]],
    reach: float,
    episodes: int,
    tasks: int,
) -> tuple[Status, str]:
    given = f"{episodes} independent episodes give [{independent[0]}, {independent[1]}]/{episodes}"
    shown = f"[{printed[0]}, {printed[1]}]/{episodes} is printed"
    if independent == printed and not fitting:
        return "recomputed", f"{given}, as printed: episodes were resampled, not tasks"
    if independent == printed:
        return "ambiguous", f"{given}, as printed, and so do {len(fitting)} patterns of {tasks} tasks"
    if fitting:
        return "recomputed", (
            f"{given} where {shown}, so the interval was clustered: resampling {tasks} tasks gives it for "
            f"{' or '.join(_tasks(pattern) for pattern in fitting[:4])}"
        )
    if reach >= LEAST_REACH:
        return "consistent", (
            f"{given} where {shown}, and no pattern of {tasks} tasks gives it exactly; a finite bootstrap over tasks "
            f"may print it with probability {reach:.2f}"
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
