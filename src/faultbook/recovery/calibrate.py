"""Thresholds of the intervention rule, chosen on out-of-fold predictions: the most gain under a limit on clean harm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._problem import Problem, check_kinds, checked_limit, make_problem, scaled
from faultbook.recovery._stability import THRESHOLDS, resampled, stability_of
from faultbook.recovery._trajectories import PROBABILITIES, Trajectories, aligned, trajectories_of
from faultbook.recovery.orthant import NODE_LIMIT
from faultbook.recovery.policies import RulePolicy
from faultbook.recovery.rule import FailureProbability, InterventionRule, decide_many
from faultbook.stats.bootstrap import as_generator
from faultbook.stats.proportion import as_count, event_upper_bound, n_to_certify

TIE_BREAK = (
    "highest gain, then fewer clean harms, then fewer interventions, then a higher error, failure and utility threshold"
)
FRONTIER_COLUMNS = ["allowed_harms", "gain", "clean_harms", "interventions", *THRESHOLDS, "gap"]

_IN_SUMMARY = (
    *("gain", "rescues", "harms", "clean_harms", "interventions", "n_trajectories", "n_clean", "n_tasks"),
    *("n_not_evaluable", "harm_limit", "harms_allowed", "clean_harm_bound", "certified", "exact", "gap"),
)
_BOOTSTRAPPED_ROWS = 2_000_000  # candidates times resamples by default: some seconds
_BOOTSTRAPS = (10, 100)
_ALIKE = 4e-12  # utilities that differ by less, relative to the largest weight in them, are equal to the rule


class ToCertify(NamedTuple):
    """Harm-free tasks after which an exact upper bound of the clean harm rate is at most the limit; None: no number."""

    one_sided: int | None
    two_sided: int | None


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """A rule, and what it does on the data that it was chosen on.

    Attributes
    ----------
    rule : InterventionRule
        The rule with the thresholds chosen. If nothing gains under the limit it never acts (all thresholds are 1).
    gain, rescues, harms : int
        On trajectories whose observation was disturbed: gain = rescues − harms.
    clean_harms, interventions : int
        Clean trajectories turned from success to failure; interventions on all trajectories.
    n_trajectories, n_clean, n_tasks : int
        What was searched. `n_clean` includes runs that had ended before any candidate.
    n_not_evaluable : int
        Candidates, reached and late enough, of which a probability is missing: they never pass.
    harm_limit : float
        The limit, a rate over all clean trajectories, in [0, 1).
    harms_allowed : int
        The clean harms that it allows: ⌊harm_limit × n_clean⌋.
    clean_harm_bound : float
        Exact one-sided 95 % upper bound of the share of tasks with a clean harm.
    certified : bool
        Whether that bound is at most the limit. It is the bound of a rule given beforehand: on the data that it was
        chosen on, it flatters.
    to_certify : ToCertify
        How many harm-free tasks that takes.
    exact, gap : bool, int
        Whether no thresholds are better; if the search was given up, no gain is higher by more than `gap`.
    bootstraps, stability : DataFrame
        The thresholds chosen on resamples of tasks (a row each), and their quantiles beside those of all tasks.
    """

    rule: InterventionRule
    gain: int
    rescues: int
    harms: int
    clean_harms: int
    interventions: int
    n_trajectories: int
    n_clean: int
    n_tasks: int
    n_not_evaluable: int
    harm_limit: float
    harms_allowed: int
    clean_harm_bound: float
    certified: bool
    to_certify: ToCertify
    exact: bool
    gap: int
    bootstraps: pd.DataFrame = field(repr=False)
    stability: pd.DataFrame = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def tie_break(self) -> str:
        """How equally good thresholds were told apart."""
        return TIE_BREAK

    @property
    def sentence(self) -> str:
        """What the limit means at this size, and whether it is certified."""
        limit = f"{100 * self.harm_limit:g} %"
        said = (
            f"A clean harm rate of at most {limit} allows {self.harms_allowed} of {self.n_clean} clean trajectories; "
            f"{self.clean_harms} are harmed, and the exact one-sided 95 % upper bound is "
            f"{100 * self.clean_harm_bound:.2f} %. "
        )
        if self.certified:
            said += f"For a rule given beforehand, the limit of {limit} would be certified"
        elif self.to_certify.one_sided is None:
            said += f"No number of tasks certifies {limit}"
        else:
            said += f"The limit of {limit} is not certified: that takes {self.to_certify.one_sided} harm-free tasks"
            said += f" ({self.to_certify.two_sided} for a two-sided interval)"
        said += ". The rule was chosen on these trajectories, so judge it on others."
        if not self.exact:
            said += f" The search was given up: other thresholds may gain up to {self.gap} more, or tie."
        return said

    def summary_frame(self) -> pd.DataFrame:
        """One row: the thresholds and the numbers beside them."""
        row: dict[str, Any] = {name: getattr(self.rule, name) for name in (*THRESHOLDS, "harm_penalty", "min_delay")}
        row |= {name: getattr(self, name) for name in _IN_SUMMARY}
        row |= {f"to_certify_{side}": count for side, count in self.to_certify._asdict().items()}
        return pd.DataFrame([row | {"tie_break": self.tie_break, "sentence": self.sentence}])

    def frontier(self, most: int | None = None, *, node_limit: int = NODE_LIMIT) -> pd.DataFrame:
        """The highest gain for each number of clean harms that might be allowed, exactly.

        Parameters
        ----------
        most : int, optional
            The largest number; `harms_allowed` unless given.
        node_limit : int
            As in `calibrate`.

        Returns
        -------
        DataFrame
            One row a number from 0 on: allowed_harms, gain, clean_harms (of the best thresholds), interventions, the
            thresholds (missing where it is best never to act) and gap, 0 where the gain is exact.
        """
        most = self.harms_allowed if most is None else as_count("most", most)
        found = self._problem.solve(most, node_limit=node_limit, every_limit=True)
        rows = [
            (allowed, best.gain, best.harm, best.interventions, *self._problem.values(best.thresholds), found.gap)
            for allowed, best in enumerate(found.optima)
        ]
        return pd.DataFrame(rows, columns=FRONTIER_COLUMNS).astype(dict.fromkeys(THRESHOLDS, "float64"))


def calibrate(
    candidates: pd.DataFrame,
    probabilities: pd.DataFrame,
    *,
    harm_limit: float = 0.02,
    harm_penalty: float = 2.0,
    min_delay: int = 1,
    failure_probability: FailureProbability | None = None,
    seed: int | np.random.Generator = 0,
    n_bootstraps: int | None = None,
    node_limit: int = NODE_LIMIT,
) -> Calibration:
    """Choose the error, failure and utility threshold together: the most gain with at most so much clean harm.

    The search is exact: no triple of thresholds gains more under the limit. Gain is rescues less harms on trajectories
    whose observation was disturbed; clean harm is the share of all clean trajectories turned from success to failure.
    A trajectory is refreshed at its first candidate, in order of delay, that passes, so at most once.

    Parameters
    ----------
    candidates : DataFrame
        Table `Candidates`.
    probabilities : DataFrame
        p_err, p0 and p1 of each candidate that was reached, by models that did not see its task
        (`Estimators.out_of_fold`). A candidate with a missing one never passes.
    harm_limit : float
        Highest clean harm rate, in [0, 1).
    harm_penalty, min_delay, failure_probability
        Of the rule, see `InterventionRule`; failure_probability has no default.
    seed : int or numpy.random.Generator
        Of the resamples of tasks.
    n_bootstraps : int, optional
        Number of resamples. If not given, 100, or fewer (at least 10) from 20,000 candidates on, where each takes
        longer and the thresholds move less.
    node_limit : int
        Boxes of thresholds to look into before the search is given up; the result then says by how much it may miss.

    Returns
    -------
    Calibration
        Among equally good thresholds those with fewer clean harms, then with fewer interventions, then the higher ones
        (error, failure, utility threshold, in this order). The first two are values of a candidate, which passes; the
        utility threshold lies just below such a value, since the rule asks for more than its threshold.

    Raises
    ------
    FaultbookError
        If a setting is out of its range, or there is no clean or no disturbed trajectory.
    DataError
        If candidates or probabilities cannot be used: see `trajectories_of` and `aligned` for what is refused.

    References
    ----------
    arXiv 2610.00372: objective and limit; there λ = 2, ε = .02, 93 tasks. How it searched and broke ties is not
    published.
    """
    limit = checked_limit(harm_limit)
    known = trajectories_of(candidates)
    check_kinds(known)
    rule = InterventionRule(
        min_delay=min_delay,
        error_threshold=1.0,
        failure_threshold=1.0,
        utility_threshold=1.0,  # the highest utility there is, and more is asked for: this rule never acts
        harm_penalty=harm_penalty,
        failure_probability=failure_probability,  # type: ignore[arg-type]  # None is refused there, with the reason
        source=f"calibrated on {len(candidates)} candidates of {known.n_tasks} tasks, clean harm at most {limit:g}",
    )
    p = aligned(candidates, probabilities)
    problem, n_not_evaluable = _problem(candidates, known, p, rule)
    allowed = problem.harms_allowed(limit)
    found = problem.solve(allowed, node_limit=node_limit)
    best = found.optima[0]
    if best.thresholds is not None:
        alpha, beta, gamma = problem.values(best.thresholds)
        rule = replace(rule, error_threshold=alpha, failure_threshold=beta, utility_threshold=gamma)
    counts = _counts(candidates, known, p, rule)
    if (counts["rescues"] - counts["harms"], counts["clean_harms"], counts["interventions"]) != best[:3]:
        raise FaultbookError("the rule decides differently when it is asked again; give a function of p0 that does not")
    n_clean_tasks = len(np.unique(known.task[problem.is_clean]))
    bound = event_upper_bound(counts.pop("clean_tasks_harmed"), n_clean_tasks)
    size = int(np.clip(_BOOTSTRAPPED_ROWS // len(candidates), *_BOOTSTRAPS))
    n = size if n_bootstraps is None else as_count("n_bootstraps", n_bootstraps)
    bootstraps = resampled(problem, limit, n, as_generator(seed), node_limit)
    return Calibration(
        rule=rule,
        gain=best.gain,
        **counts,
        n_trajectories=known.n,
        n_clean=int(problem.is_clean.sum()),
        n_tasks=known.n_tasks,
        n_not_evaluable=n_not_evaluable,
        harm_limit=limit,
        harms_allowed=allowed,
        clean_harm_bound=bound,
        certified=bound <= limit,
        to_certify=ToCertify(*(n_to_certify(limit, sides=sides) if limit else None for sides in (1, 2))),
        exact=found.exact,
        gap=found.gap,
        bootstraps=bootstraps,
        stability=stability_of(bootstraps, problem, best.thresholds),
        _problem=problem,
    )


def _problem(
    candidates: pd.DataFrame, known: Trajectories, p: pd.DataFrame, rule: InterventionRule
) -> tuple[Problem, int]:
    """The search problem, and how many candidates cannot be evaluated."""
    scores = decide_many(rule, candidates["delay"], *(p[name] for name in PROBABILITIES))
    asked = (candidates["reached"] & (candidates["delay"] >= rule.min_delay)).to_numpy(dtype=bool)
    usable = asked & scores["utility_score"].notna().to_numpy()
    p_fail = np.array([rule.p_fail(value) for value in p["p0"].to_numpy()[usable].tolist()], dtype=np.float64)
    scales = (
        scaled(p["p_err"].to_numpy()[usable]),
        scaled(p_fail),
        scaled(scores["utility_score"].to_numpy(dtype=np.float64)[usable], _ALIKE * max(1.0, rule.harm_penalty)),
    )
    tau = candidates["tau"].to_numpy(dtype=np.int64)
    return make_problem(known, tau, usable, scales), int((asked & ~usable).sum())


def _counts(candidates: pd.DataFrame, known: Trajectories, p: pd.DataFrame, rule: InterventionRule) -> dict[str, int]:
    """What the rule does, by applying it."""
    acts = RulePolicy(rule).choose(candidates, p).to_numpy(dtype=bool)
    tau, is_error = candidates["tau"].to_numpy(dtype=np.int64)[acts], known.is_error[known.code[acts]]
    harmed = known.code[acts][~is_error & (tau < 0)]
    return {
        "rescues": int((is_error & (tau > 0)).sum()),
        "harms": int((is_error & (tau < 0)).sum()),
        "clean_harms": len(harmed),
        "interventions": int(acts.sum()),
        "clean_tasks_harmed": len(np.unique(known.task[harmed])),
    }
