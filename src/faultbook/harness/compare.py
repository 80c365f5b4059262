"""Two arms compared on the same pairs, with nothing filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from faultbook.harness.attrition import Attrition, attrition
from faultbook.harness.pairs import axis_counts, flipped, one_attempt, outcomes, pair_table, table_counts
from faultbook.harness.plan import held_two, plan
from faultbook.stats.missing import could_turn, task_mean_bounds
from faultbook.stats.paired import mcnemar_exact
from faultbook.stats.paired_difference import PairedDifference, bonett_price, mean_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ESTIMANDS = (
    "same pairs, verdicts that stand",
    "same pairs, every recorded verdict",
    "all planned pairs, what is missing counted as failed",
)
_COLUMNS = ["estimand", "pairs", "rate_a", "rate_b", "difference", "low", "high", "p", "mid_p", "test"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and the highest difference, in pp, over every completion of the planned pairs.

    They are no confidence interval: they say nothing of other tasks. `could_turn` says whether some completion has the
    other sign ("yes", "it could level it", "no"; "" where there is no difference to turn).
    """

    low: float
    high: float
    could_turn: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms on the same pairs. Differences are those of arm a less arm b, in percentage points.

    Attributes
    ----------
    arm_a, arm_b : str
        The arms.
    pairs : int
        Tasks that are planned in both arms.
    complete_pairs : int
        Those of them with an outcome for every planned attempt in both arms.
    table : dict of str to int, or None
        Complete pairs solved by both, only_a, only_b and neither. None with several attempts a task.
    rate_a, rate_b, difference, low, high : float
        Shares solved among complete pairs, and their difference with its interval; NaN where there is no pair.
    level : float
        Of the interval.
    method : str
        Of the interval.
    mcnemar_exact, mcnemar_mid_p : float
        Two-sided p of McNemar's exact test and the mid-p beside it; NaN with several attempts a task, or no
        discordant pair.
    sign_flip : float
        Two-sided p over tasks with several attempts, exact where that is in reach (`test`); NaN with one.
    test : str
        Which test was made, or why none.
    bounds : Bounds
        The lowest and the highest difference over every completion of the plan, and whether what is missing could
        turn the result round.
    attrition : Attrition
        What is missing by arm, with flags.
    estimands : DataFrame
        The same comparison under each of `ESTIMANDS`; only the first fills nothing in and voids nothing wrongly.
    denominators : DataFrame
        Of how many planned pairs outcome, usage and time are known.
    pair_table : DataFrame
        One row a task (`pairs.pair_table`).
    outside : DataFrame
        Trials that do not enter, and why (`plan.Held`).
    plan_source : str
        Where the plan comes from; "inferred" if from the trials themselves.
    """

    arm_a: str
    arm_b: str
    pairs: int
    complete_pairs: int
    table: dict[str, int] | None
    rate_a: float
    rate_b: float
    difference: float
    low: float
    high: float
    level: float
    method: str
    mcnemar_exact: float
    mcnemar_mid_p: float
    sign_flip: float
    test: str
    bounds: Bounds
    attrition: Attrition
    estimands: pd.DataFrame
    denominators: pd.DataFrame
    pair_table: pd.DataFrame
    outside: pd.DataFrame
    plan_source: str

    def summary_frame(self) -> pd.DataFrame:
        """One row: the arms, the pairs, the difference with interval and tests, and the bounds."""
        names = ("arm_a", "arm_b", "pairs", "complete_pairs", "rate_a", "rate_b", "difference", "low", "high")
        row = {name: getattr(self, name) for name in names}
        tests = {name: getattr(self, name) for name in ("mcnemar_exact", "mcnemar_mid_p", "sign_flip", "test")}
        bounds = {f"bounds_{name}": value for name, value in asdict(self.bounds).items()}
        return pd.DataFrame([row | tests | bounds])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the difference with its interval and the bounds (`plot.plot_difference`)."""
        from faultbook.harness.plot import plot_difference

        return plot_difference(self, ax)


def compare(
    trials: pd.DataFrame, planned: pd.DataFrame | None = None, *, arms: Sequence[str] | None = None, level: float = 0.95
) -> Comparison:
    """Compare two arms on the pairs that are complete in both.

    Parameters
    ----------
    trials : DataFrame
        Table `Trials`. What is not in the plan never enters; the result lists it.
    planned : DataFrame, optional
        Table `Plan`. If left out it is inferred from the trials, and tasks that no arm started are unknown.
    arms : sequence of two str, optional
        The arms a and b; needed if the plan has more than two.
    level : float
        Of the interval.

    Returns
    -------
    Comparison
        With one attempt a task: the paired table, the difference with the interval of Bonett and Price (2012), and
        McNemar's exact test. With several: means over tasks of the share of attempts solved, a t interval over tasks
        and an exact sign-flip test, since attempts of two arms are not paired with one another.

    Raises
    ------
    FaultbookError
        If there are not two arms to compare, or nothing is planned.

    References
    ----------
    Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37, 479-488; McNemar (1947); bounds:
    Horowitz and Manski (2000), Journal of the American Statistical Association 95, 77-84.
    """
    planned = plan(trials=trials) if planned is None else planned
    found, chosen = held_two(trials, planned, arms)
    cells = found.cells
    pairs = pair_table(cells, chosen)
    every = pair_table(cells, chosen, verdict="recorded")
    estimates = [_estimate(pairs, level), _estimate(every, level), _estimate(_filled(every), level)]
    main = estimates[0]
    return Comparison(
        arm_a=chosen[0],
        arm_b=chosen[1],
        pairs=len(pairs),
        complete_pairs=int(pairs["complete"].sum()),
        table=table_counts(pairs) if main.single else None,
        rate_a=main.rate_a,
        rate_b=main.rate_b,
        difference=main.interval.estimate * 100,
        low=main.interval.low * 100,
        high=main.interval.high * 100,
        level=level,
        method=main.interval.method,
        mcnemar_exact=main.p if main.single else math.nan,
        mcnemar_mid_p=main.mid_p,
        sign_flip=math.nan if main.single else main.p,
        test=main.test,
        bounds=_bounds(pairs, main.interval.estimate),
        attrition=attrition(found, chosen),
        estimands=pd.DataFrame(
            [one.row(name) for name, one in zip(ESTIMANDS, estimates, strict=True)], columns=_COLUMNS
        ),
        denominators=axis_counts(cells, chosen, _axes(cells)),
        pair_table=pairs,
        outside=found.outside,
        plan_source=", ".join(sorted(set(planned["source"]))),
    )


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A comparison of complete pairs; `single` if every pair is of one attempt each."""

    pairs: int
    single: bool
    rate_a: float
    rate_b: float
    interval: PairedDifference
    p: float
    mid_p: float
    test: str

    def row(self, name: str) -> tuple[Any, ...]:
        """As a row of `estimands`."""
        found = self.interval
        numbers = (found.estimate * 100, found.low * 100, found.high * 100)
        return name, self.pairs, self.rate_a, self.rate_b, *numbers, self.p, self.mid_p, self.test


def _estimate(pairs: pd.DataFrame, level: float) -> _Estimate:
    single = bool(one_attempt(pairs).all())
    complete = pairs[pairs["complete"]]
    if complete.empty:
        nothing = PairedDifference(math.nan, math.nan, math.nan, level, 0, "no complete pair", True)
        return _Estimate(0, single, math.nan, math.nan, nothing, math.nan, math.nan, "no complete pair")
    shares = [complete[f"solved_{arm}"] / complete[f"planned_{arm}"] for arm in ("a", "b")]
    rate_a, rate_b = (math.fsum(share) / len(share) for share in shares)
    if single:
        counts = table_counts(pairs)
        exact = mcnemar_exact(counts["only_a"], counts["only_b"])
        name = "McNemar, exact binomial" if exact.test == "exact binomial" else exact.test
        interval = bonett_price(**counts, level=level)
        return _Estimate(len(complete), True, rate_a, rate_b, interval, exact.p, exact.mid_p, name)
    interval = mean_difference(shares[0] - shares[1], level)
    # In whole numbers, so that p needs no enumeration: shares over their least common denominator.
    unit = math.lcm(*complete["planned_a"], *complete["planned_b"])
    sums = complete["solved_a"] * (unit // complete["planned_a"]) - complete["solved_b"] * (
        unit // complete["planned_b"]
    )
    test = flipped(sums)
    name = f"sign flip over tasks, {test.method}"
    return _Estimate(len(complete), False, rate_a, rate_b, interval, test.p, math.nan, name)


def _filled(pairs: pd.DataFrame) -> pd.DataFrame:
    """Every planned pair made complete: what is not observed counts as failed, as leaderboards count it."""
    return pairs.assign(complete=True, outcome=outcomes(pairs).where(one_attempt(pairs)))


def _bounds(pairs: pd.DataFrame, difference: float) -> Bounds:
    if pairs.empty:
        return Bounds(math.nan, math.nan, "")
    # Where the two arms had different tasks under one name, nothing is known of the planned pair.
    columns = [
        pairs[f"{what}_{arm}"].where(pairs["same_task"] | (what == "planned"), 0)
        for arm in ("a", "b")
        for what in ("observed", "solved", "planned")
    ]
    found = task_mean_bounds(*columns)
    turn = "" if math.isnan(difference) else could_turn(found, difference)
    return Bounds(found.low * 100, found.high * 100, turn)


def _axes(cells: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    return {
        "outcome": cells["verdict"].notna(),
        "usage": cells["usage_status"] == "reported",
        "time": cells["total_seconds"].notna(),
    }
