"""What follows from a comparison that is known by its printed totals alone, and what does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.harness.margins import from_margins
from faultbook.printed import signed
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.paired_difference import bonett_price
from faultbook.stats.power import detectable_difference, mcnemar_power, pairs_needed
from faultbook.stats.resampling import resampled_sum

CLAIM_COLUMNS = ["claim", "follows", "value", "why"]
POWER_COLUMNS = ["discordant_rate", "n_pairs", "detectable", "power_for", "power", "pairs_needed"]


class _Cells:
    """Printed cells by row and column."""

    def __init__(self, reported: pd.DataFrame) -> None:
        pairs = zip(reported["row"], reported["column"], strict=True)
        self._values = dict(zip(pairs, reported["value"], strict=True))

    def __call__(self, row: str, column: str) -> int:
        return int(self.number(row, column))

    def number(self, row: str, column: str) -> float:
        """The number of a cell."""
        value = self._values.get((row, column))
        if value is None or pd.isna(value):
            raise FaultbookError(f"no printed number in row '{row}', column '{column}'")
        return float(value)


def what_follows(reported: pd.DataFrame, arms: tuple[str, str] = ("OMK", "Terminus-2")) -> pd.DataFrame:
    """Take the observation table of the interrupted run, and say of each reading of it whether it follows.

    Parameters
    ----------
    reported : DataFrame
        Printed cells of `data/reported/terminal-bench-observations.csv`: row, column, value.
    arms : (str, str)
        The columns of the two arms.

    Returns
    -------
    DataFrame
        claim, follows ("yes", "no", "only as bounds" or "of recorded tokens"), value, and why. Values are computed
        from the cells.

    Raises
    ------
    FaultbookError
        If a cell is missing, or the numbers contradict one another.

    References
    ----------
    The document "harness boundaries", section 1, observation table and the paragraph after it.
    """
    cells = _Cells(reported)
    a, b = arms
    pairs, planned = cells("same pairs", "both"), cells("planned tasks", "both")
    solved = [cells("solved among the same pairs", arm) for arm in arms]
    finished = [cells("finished trials", f"arm {letter}") for letter in "AB"]
    found = from_margins(solved[0], solved[1], pairs, planned=planned, finished_a=finished[0], finished_b=finished[1])
    requests = [cells("requests in the same pairs", arm) for arm in arms]
    tokens = [cells("recorded input tokens in the same pairs", arm) for arm in arms]
    denied = cells("abnormal ends", a)
    low, high = found.bounds.low, found.bounds.high
    unpaired = finished[1] - pairs
    rows = [
        (
            f"on the same pairs {a} solved fewer",
            "yes",
            f"{solved[0]} and {solved[1]} of {pairs}: {signed(found.difference)} pp",
            "both arms have an outcome for each of these tasks",
        ),
        (
            f"{b} is better",
            "no",
            f"exact McNemar p {found.least_p:.2f} to {found.most_p:.2f}",
            found.statement,
        ),
        (
            f"the score over the {planned} planned tasks",
            "only as bounds",
            f"{signed(low)} to {signed(high)} pp",
            f"{planned - pairs} pairs are incomplete; the outcome of {unpaired} finished trial of B is not printed",
        ),
        (
            "finishing the run could turn the result round",
            "only as bounds" if found.bounds.could_turn == "yes" else "no",
            found.bounds.could_turn,
            f"if every missing trial of {a} succeeded and none of {b} did",
        ),
        (
            f"without the {denied} contract denials {a} would have solved {denied} more",
            "only as bounds",
            f"{solved[0]} to {solved[0] + denied} of {pairs}",
            "removing a cause of ending is not solving the task; other runs may have ended for another cause",
        ),
        (
            f"{a} sends fewer requests",
            "yes",
            f"{requests[0]} and {requests[1]}: ratio {requests[0] / requests[1]:.2f}",
            "totals over these pairs; without numbers by pair there is no interval, so not of other tasks",
        ),
        (
            f"{a} needs fewer input tokens",
            "of recorded tokens",
            f"{tokens[0]:,} and {tokens[1]:,}: ratio {tokens[0] / tokens[1]:.2f}",
            "how many trials were metered, and whether cached input counts, is not printed",
        ),
        (
            f"{a} costs less",
            "no",
            "",
            "tokens are not a cost: no price, no output tokens, no cache share is printed",
        ),
        (
            "a run whose state file says running is running",
            "no",
            "",
            "no process owns it; a state that somebody wrote is not ownership",
        ),
        (
            "the commit reproduces what ran",
            "no",
            "",
            "uncommitted changes ran; only the manifest of file digests identifies them",
        ),
    ]
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS, dtype="string")


def power_table(
    n_pairs: int, discordant_rates: Sequence[float], difference: float, *, power: float = 0.8, alpha: float = 0.05
) -> pd.DataFrame:
    """Say what a number of pairs could have detected, and how many pairs a difference needs.

    Parameters
    ----------
    n_pairs : int
        Pairs that are compared.
    discordant_rates : sequence of float
        Shares of pairs that only one arm solves, in (0, 1]: not known beforehand, so several.
    difference : float
        A true difference of the success rates, in (0, 1], whose power and pairs are asked for.
    power, alpha : float
        Wanted probability of detecting, and level of the exact McNemar test.

    Returns
    -------
    DataFrame
        discordant_rate; n_pairs; detectable, the smallest difference in pp that so many pairs detect with that power
        (missing if none); power_for, the difference in pp; power, of n_pairs for it; pairs_needed. A difference cannot
        exceed the discordant rate: both are missing then.

    Raises
    ------
    ValueError
        If a rate, difference, power or level is out of its range.
    """
    rows = []
    for rate in discordant_rates:
        row: dict[str, Any] = {"discordant_rate": rate, "n_pairs": n_pairs, "power_for": 100 * difference}
        row["detectable"] = 100 * detectable_difference(n_pairs, rate, power, alpha).difference
        if difference <= rate:
            row["power"] = mcnemar_power(n_pairs, rate, difference, alpha)
            row["pairs_needed"] = pairs_needed(rate, difference, power, alpha).n_pairs
        rows.append(row)
    return pd.DataFrame(rows, columns=POWER_COLUMNS).astype({"pairs_needed": "Int64"})


def reproduce_paired_run(reported: pd.DataFrame) -> pd.DataFrame:
    """Compute again what a run of complete pairs prints: the difference, its bootstrap interval and the exact p.

    The bootstrap is exact, so that no seed enters: the interval to which random resamples converge.

    Parameters
    ----------
    reported : DataFrame
        Printed cells of `data/reported/terminal-bench-earlier-paired-run.csv`: row, column, value.

    Returns
    -------
    DataFrame
        quantity, reported (missing where it is not printed), reproduced, and their difference; rates in pp.

    Raises
    ------
    FaultbookError
        If a cell is missing.

    References
    ----------
    ROADMAP of the omk repository, sections 2.1 and 2.2 (commit fcec2e1d).
    """
    cells = _Cells(reported)
    names = {"both": "both", "only_a": "A only", "only_b": "B only", "neither": "neither"}
    table = {name: cells(f"solved by {words}", "both") for name, words in names.items()}
    n = sum(table.values())
    low, high = resampled_sum({1: table["only_a"], -1: table["only_b"]}, n).bounds()
    closed = bonett_price(**table)
    interval = "bootstrap interval of A minus B"
    printed = 100 * (cells("solved tasks", "arm A") - cells("solved tasks", "arm B")) / n
    rows = [
        ("difference of the printed totals (pp)", printed, 100 * closed.estimate),
        ("interval, low (pp)", cells.number(interval, "low"), 100 * low / n),
        ("interval, high (pp)", cells.number(interval, "high"), 100 * high / n),
        ("exact McNemar p", cells.number("exact McNemar test", "p"), mcnemar_exact(table["only_a"], table["only_b"]).p),
        ("closed form, low (pp)", math.nan, 100 * closed.low),
        ("closed form, high (pp)", math.nan, 100 * closed.high),
    ]
    found = pd.DataFrame(rows, columns=["quantity", "reported", "reproduced"])
    return found.assign(difference=found["reproduced"] - found["reported"])
