"""What unfinished trials leave open: the best and the worst case of a difference over every way they may end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import pandas as pd

from faultbook.stats.bootstrap import check_same_rows
from faultbook.stats.proportion import as_count

Turn = Literal["no", "it could level it", "yes"]

_ALIKE = 1e-12  # a difference of rates that is smaller is 0, but for rounding


@dataclass(frozen=True, slots=True)
class DifferenceBounds:
    """Sharp bounds of the difference a − b over everything planned, and of the two rates, in [-1, 1] and [0, 1].

    `low` and `high` are attained, each by a completion of the unfinished trials; they are no confidence interval:
    they say nothing of other tasks, only of these trials. `n_tasks` is None where trials were counted, not tasks.
    """

    low: float
    high: float
    low_a: float
    high_a: float
    low_b: float
    high_b: float
    unfinished_a: int
    unfinished_b: int
    planned_a: int
    planned_b: int
    n_tasks: int | None
    method: str

    def summary_frame(self) -> pd.DataFrame:
        """One row with the fields as columns."""
        return pd.DataFrame([asdict(self)])


def difference_bounds(
    known_a: int, successes_a: int, planned_a: int, known_b: int, successes_b: int, planned_b: int
) -> DifferenceBounds:
    """Bound the difference of two success rates over all planned trials, whatever the unfinished ones would give.

    Lowest, every unfinished trial of a fails and every one of b succeeds; highest, the other way round. Nothing is
    assumed of why a trial did not finish.

    Parameters
    ----------
    known_a, known_b : int
        Number of trials of the arm with an outcome; also those whose partner has none.
    successes_a, successes_b : int
        Number of these that succeeded.
    planned_a, planned_b : int
        Number of trials planned, at least 1.

    Returns
    -------
    DifferenceBounds
        Differences of rates, ``successes_a / planned_a - successes_b / planned_b`` over every completion. With
        nothing missing, `low` and `high` are equal to the difference.

    Raises
    ------
    ValueError
        If a number is not whole, nothing is planned, or there are more successes than known trials or more known
        trials than planned ones.

    References
    ----------
    Manski (1989), Journal of Human Resources 24, 343-360, and (2003), Partial Identification of Probability
    Distributions, ch. 1; for two arms with missing outcomes: Horowitz & Manski (2000), Journal of the American
    Statistical Association 95, 77-84.
    """
    a = _cell("a", "", known_a, successes_a, planned_a)
    b = _cell("b", "", known_b, successes_b, planned_b)
    return _bounds([a], [b], None, "worst and best case of a difference of two rates over planned trials")


def task_mean_bounds(
    known_a: Iterable[Any],
    successes_a: Iterable[Any],
    planned_a: Iterable[Any],
    known_b: Iterable[Any],
    successes_b: Iterable[Any],
    planned_b: Iterable[Any],
) -> DifferenceBounds:
    """Bound the mean over tasks of differences of a task's two success rates, whatever unfinished attempts give.

    As `difference_bounds`, with equal weight for each planned task, also for one without any outcome.

    Parameters
    ----------
    known_a, successes_a, planned_a, known_b, successes_b, planned_b : iterable of int, shape (n_tasks,)
        Numbers of attempts of each task, by position: with an outcome, successful, and planned (at least 1 in
        either arm). None may be missing: a task without attempts has 0 known ones.

    Returns
    -------
    DifferenceBounds
        Of the mean over tasks; `low_a` … `high_b` bound the two mean rates. Computed in exact fractions, so the
        order of tasks does not matter and swapping the arms only changes signs.

    Raises
    ------
    ValueError
        As `difference_bounds`, naming the position of the task; or if lengths or indexes differ, or there is no
        task.

    References
    ----------
    Manski (1989), Journal of Human Resources 24, 343-360; Horowitz & Manski (2000), Journal of the American
    Statistical Association 95, 77-84.
    """
    values = _same_tasks(
        {
            "known_a": known_a, "successes_a": successes_a, "planned_a": planned_a,
            "known_b": known_b, "successes_b": successes_b, "planned_b": planned_b,
        }
    )  # fmt: skip
    a, b = (
        [
            _cell(arm, f" at position {i}", *numbers)
            for i, numbers in enumerate(
                zip(*(values[f"{name}_{arm}"] for name in ("known", "successes", "planned")), strict=True)
            )
        ]
        for arm in ("a", "b")
    )
    return _bounds(a, b, len(a), "worst and best case of the mean over planned tasks of differences of two rates")


def could_turn(bounds: DifferenceBounds, difference: float) -> Turn:
    """Say whether the unfinished trials could turn a difference round.

    Parameters
    ----------
    bounds : DifferenceBounds
        Over everything planned.
    difference : float
        The difference a − b found so far, for instance on complete pairs; within 1e-12 of 0 it counts as 0.

    Returns
    -------
    {"no", "it could level it", "yes"}
        "yes" if some completion has a difference of the other sign, "it could level it" if the nearest to it is
        exactly 0, "no" if all have the same sign. If the difference is 0: "yes" if some completion is not 0.

    Raises
    ------
    ValueError
        If the difference is missing or infinite: without a difference there is nothing to turn.
    """
    try:
        number = float(difference)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"difference is {difference!r}; give a finite difference, without one there is none to turn")
    if abs(number) <= _ALIKE:
        return "no" if bounds.low == bounds.high == 0 else "yes"
    # An exact 0 among the fractions is a 0 among the floats, and nothing else is.
    nearest = bounds.low if number > 0 else -bounds.high
    if nearest > 0:
        return "no"
    return "it could level it" if nearest == 0 else "yes"


def _same_tasks(columns: dict[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Columns of one number a task, as lists of one length."""
    for name, column in columns.items():
        check_same_rows(columns["known_a"], column, ("known_a", name))
    values = {name: list(column) for name, column in columns.items()}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"there are {counts}; give one number a task in each")
    if not values["known_a"]:
        raise ValueError("there is no task; a mean over no tasks is undefined, give at least one planned task")
    return values


def _cell(arm: str, where: str, known: object, successes: object, planned: object) -> tuple[int, int, int]:
    """Successes, unfinished and planned trials of one task (or of all) in one arm."""
    k, s = as_count(f"known_{arm}{where}", known), as_count(f"successes_{arm}{where}", successes)
    n = as_count(f"planned_{arm}{where}", planned)
    if n == 0:
        raise ValueError(f"planned_{arm}{where} is 0; a rate of no trials is undefined, plan at least one in each arm")
    if not s <= k <= n:
        raise ValueError(
            f"successes_{arm}, known_{arm} and planned_{arm}{where} are {s}, {k} and {n}; give no more successes than "
            "known trials, and no more known than planned ones"
        )
    return s, n - k, n


def _bounds(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]], n_tasks: int | None, method: str
) -> DifferenceBounds:
    (low_a, high_a), (low_b, high_b) = _mean_rates(a), _mean_rates(b)
    return DifferenceBounds(
        low=float(low_a - high_b),
        high=float(high_a - low_b),
        low_a=float(low_a),
        high_a=float(high_a),
        low_b=float(low_b),
        high_b=float(high_b),
        unfinished_a=sum(unfinished for _, unfinished, _ in a),
        unfinished_b=sum(unfinished for _, unfinished, _ in b),
        planned_a=sum(planned for _, _, planned in a),
        planned_b=sum(planned for _, _, planned in b),
        n_tasks=n_tasks,
        method=method,
    )


def _mean_rates(cells: list[tuple[int, int, int]]) -> tuple[Fraction, Fraction]:
    """Mean rates if all unfinished trials fail, and if all succeed."""
    # Whole sums for each number of planned attempts leave few fractions to add, however many tasks there are.
    lowest, highest = Counter[int](), Counter[int]()
    for successes, unfinished, planned in cells:
        lowest[planned] += successes
        highest[planned] += successes + unfinished
    low, high = (
        sum((Fraction(total, planned) for planned, total in sums.items()), Fraction(0)) / len(cells)
        for sums in (lowest, highest)
    )
    return low, high
