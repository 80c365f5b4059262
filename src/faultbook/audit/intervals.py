"""Printed intervals held against the exact percentile bootstrap of the counts they can come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from faultbook.audit.cells import Cell, Cells, Finding, Status, named
from faultbook.audit.counts import on_grid
from faultbook.audit.relations import ClusteredInterval, Interval, IntervalOfDifference
from faultbook.stats.paired import sign_flip
from faultbook.stats.reconstruct import (
    counts_from_percentage,
    reach_probability,
    resampled_sum,
    rescue_harm_from_interval,
    unit_sum_patterns,
)

# A finite bootstrap may print a bound one step off the exact one. Counts whose own bootstrap prints the given bounds
# less often than this are not offered as an explanation.
LEAST_REACH = 0.01


def interval(relation: Interval, cells: Cells) -> Iterator[Finding]:
    """Find every (rescues, harms) behind an effect and its bounds, and say whether they print these bounds."""
    n = cells.whole(relation.n)
    printed = [cells[name] for name in (relation.effect, relation.low, relation.high) if name is not None]
    off_grid = [
        finding
        for cell in printed
        if not _as_counts(cell, n)
        and (finding := on_grid(cell, [n], relation.id, named([relation.n]))).status == "inconsistent"
    ]
    found = candidates(relation, cells)
    usable = found[found["exact"] | (found["reach_probability"] >= LEAST_REACH)]
    yield from _explain_off_grid(off_grid, usable, n, cells)
    broken = {finding.cell for finding in off_grid}
    if relation.effect in broken:
        return
    counted = [relation.rescues, relation.harms, relation.unchanged]
    terms = [relation.effect, *counted, relation.low, relation.high, relation.n]
    known = relation.rescues is not None and relation.harms is not None
    status, reason = _verdict(usable, found, known=known)
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


def _derived(cell: Cell, usable: pd.DataFrame, side: str, n: int) -> float:
    count = int(usable[usable["exact"]][side].iloc[0])
    return cell.table_value(Fraction(100 * count, n)) if cell.unit in ("%", "pp") else float(count)


def candidates(relation: Interval, cells: Cells) -> pd.DataFrame:
    """Feasible (rescues, harms) of a printed interval, as `rescue_harm_from_interval` lists them.

    A bound that is off the grid constrains nothing; counts that are printed leave one row.
    """
    n = cells.whole(relation.n)
    rescues = None if relation.rescues is None else cells.whole(relation.rescues)
    harms = None if relation.harms is None else cells.whole(relation.harms)
    if relation.effect is not None:
        nets = _as_counts(cells[relation.effect], n)
    else:
        nets = [] if rescues is None or harms is None else [rescues - harms]
    low, high = (_as_counts(cells[name], n) for name in (relation.low, relation.high))
    found = rescue_harm_from_interval(0, 1, 0, 0).head(0)
    for net in nets:
        lower, upper = (low or [net])[0], (high or [net])[-1]
        frame = rescue_harm_from_interval(net, n, min(lower, upper), max(lower, upper), relation.n_resamples)
        if not low or not high:
            frame["exact"] = (frame["low"].isin(low) if low else True) & (frame["high"].isin(high) if high else True)
            frame["reach_probability"] = 0.0
        found = frame if found.empty else pd.concat([found, frame], ignore_index=True)
    for name, count in (("rescues", rescues), ("harms", harms)):
        found = found if count is None else found[found[name] == count]
    if relation.unchanged is not None:
        found = found[found["rescues"] + found["harms"] == n - cells.whole(relation.unchanged)]
    return found


def _verdict(usable: pd.DataFrame, found: pd.DataFrame, *, known: bool) -> tuple[Status, str]:
    exact = usable[usable["exact"]]
    if len(exact) == 1:
        row = exact.iloc[0]
        alone = "" if known else ", and no other counts do"
        return "recomputed", f"{_pair(row)} give exactly these bounds{_reach(row)}{alone}"
    if len(exact) > 1:
        return "ambiguous", f"{len(exact)} counts give exactly these bounds: {_listed(exact)}"
    if usable.empty:
        best = "" if found.empty else f"; the counts that come nearest: {_nearest(found)}"
        return "inconsistent", f"no rescues and harms give these bounds{best}"
    status: Status = "consistent" if len(usable) == 1 else "ambiguous"
    subject = "the printed counts do not give exactly these bounds" if known else "no counts give exactly these bounds"
    return status, f"{subject}; a finite bootstrap may print them from {_listed(usable)}"


def _pair(row: pd.Series) -> str:
    rescues, harms = int(row["rescues"]), int(row["harms"])
    return f"{rescues} rescue{'s' * (rescues != 1)} and {harms} harm{'s' * (harms != 1)}"


def _reach(row: pd.Series) -> str:
    return (
        f" (10,000 draws print them with probability {row['reach_probability']:.2f})"
        if row["reach_probability"]
        else ""
    )


class _Candidate(NamedTuple):
    """One row of `rescue_harm_from_interval`."""

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
    exact = [text for text, is_exact, _ in reached if is_exact]
    best = max((reach for *_, reach in reached), default=0.0)
    if exact:
        status: Status = "consistent" if len(exact) == 1 else "ambiguous"
        reason = f"{len(exact)} joint patterns of the two effects give exactly these bounds"
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
) -> list[tuple[str, bool, float]]:
    """(pattern, exact?, reach) of every joint pattern that prints the bounds with some likelihood."""
    n = cells.whole(relation.n)
    pairs = []
    for name in (relation.first, relation.second):
        found = candidates(intervals[name], cells)
        usable = found[found["exact"] | (found["reach_probability"] >= LEAST_REACH)]
        pairs.append([(row.rescues, row.harms) for row in _rows(usable)])
    reached = []
    for rescues, harms in pairs[0]:
        for other_rescues, other_harms in pairs[1]:
            # Subtracting an effect turns its harms into gains and its rescues into losses.
            for pattern in unit_sum_patterns([(rescues, harms), (other_harms, other_rescues)], n):
                sums = resampled_sum(pattern, n)
                exact = (sums.quantile(0.025), sums.quantile(0.975)) == (low, high)
                reach = reach_probability(sums, low, high, n_resamples=relation.n_resamples)
                if exact or reach >= LEAST_REACH:
                    reached.append((str(pattern), exact, reach))
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
    apart = resampled_sum(totals, episodes)
    independent = (apart.quantile(0.025), apart.quantile(0.975))
    patterns = unit_sum_patterns(strata, tasks)
    fitting = [pattern for pattern in patterns if _bounds(pattern, tasks) == (low, high)]
    if relation.p is not None:
        yield _clustered_p(relation, cells[relation.p], fitting, tasks)
    status, reason = _clustered_verdict(independent, (low, high), fitting, episodes, tasks)
    for cell, count in ((low_cell, low), (high_cell, high)):
        computed = cell.table_value(Fraction(100 * count, episodes)) if status == "recomputed" else None
        yield Finding(cell.id, status, reason, relation.id, computed, against)


def _bounds(pattern: dict[int, int], n: int) -> tuple[int, int]:
    sums = resampled_sum(pattern, n)
    return sums.quantile(0.025), sums.quantile(0.975)


def _clustered_verdict(
    independent: tuple[int, int], printed: tuple[int, int], fitting: list[dict[int, int]], episodes: int, tasks: int
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
