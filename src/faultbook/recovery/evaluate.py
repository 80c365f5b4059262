"""Policies judged on real branches: what each rescues and harms, and what that does to success."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._tasks import NO_DISCORDANT, NO_NET_EFFECT, SIGN_FLIP
from faultbook.recovery._trajectories import Floats, Mask, Trajectories, aligned, trajectories_of
from faultbook.recovery.policies import Policy, RandomPolicy
from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.stats.bounds import rescue_harm_counts
from faultbook.stats.paired import sign_flip
from faultbook.stats.proportion import check_level, event_upper_bound

ALL = "all"
TABLE_COLUMNS = [
    *("policy", "condition", "n_trajectories", "n_tasks", "success_without", "success_with_policy"),
    *("policy_effect_pp", "low_pp", "high_pp", "sign_flip_p", "test", "rescues", "harms"),
    *("interventions", "intervention_rate", "interventions_without_change", "tau_of_interventions_pp"),
    *("clean_harms", "clean_harm_upper", "clean_harm_upper_two_sided"),
    *("mean_rescue_score", "mean_harm_score", "rescues_low", "rescues_high", "harms_low", "harms_high", "note"),
]
DIFFERENCE_COLUMNS = ["policy_a", "policy_b", "difference_pp", "low_pp", "high_pp", "sign_flip_p", "test"]
FLIP_COLUMNS = [
    *("policy_a", "policy_b", "rescues_a", "harms_a", "rescues_b", "harms_b"),
    *("flip_penalty", "preferred_below", "preferred_above", "note"),
]
TRADE_OFF_COLUMNS = ["policy", "gain", "clean_harms"]

_N_FLIPS = 100_000  # random sign patterns where the sums are not whole
_ALIKE = 1e-9  # expected counts that differ by less differ by rounding only
_TEXT = ("policy", "condition", "test", "note")


@dataclass(frozen=True, eq=False, slots=True)
class Evaluation:
    """Policies side by side.

    Attributes
    ----------
    table : DataFrame
        One row a policy and condition, and "all" of them together, trajectories weighted alike:

        n_trajectories, n_tasks : int
            Runs that had ended before any candidate are in, with the outcome that they had.
        success_without, success_with_policy, intervention_rate : float
            Rates over trajectories; success_with_policy = success_without + (rescues − harms) / n_trajectories.
        policy_effect_pp, low_pp, high_pp : float
            Their difference in percentage points, with a percentile interval over tasks (missing where tasks do not
            differ: no certainty, see `clean_harm_upper`).
        sign_flip_p, test : float, str
            Two-sided p over task sums; exact, but for policies that draw.
        rescues, harms, interventions, interventions_without_change : float
            Whole numbers, but for policies that draw: there the means over all draws.
        tau_of_interventions_pp : float
            The mean τ where the policy acted, which is another quantity than the policy's effect on all trajectories.
            Missing without interventions.
        clean_harms, clean_harm_upper, clean_harm_upper_two_sided : float
            Clean trajectories turned from success to failure, and exact upper bounds (one-sided, and of a two-sided
            interval) of the share of clean tasks with such a harm. Missing in rows without clean trajectories.
        mean_rescue_score, mean_harm_score : float
            Mean scores (1 − p0) p1 and p0 (1 − p1) where the policy acted. They rank candidates; rescues and harms
            beside them are what was observed. Missing without probabilities.
        rescues_low, rescues_high, harms_low, harms_high : float
            The counts that the numbers of successes without and with the interventions allow (Fréchet bounds): all that
            would be known without pairs.
        note : str
            Why something is missing, and what kind of number the others are.
    differences : DataFrame
        Effects of pairs of policies over all trajectories, paired: a − b in percentage points.
    flip_penalty : DataFrame
        For pairs of policies, the harm penalty λ at which R − λ H prefers the other one.
    trade_off : DataFrame
        gain (rescues − harms on disturbed trajectories) and clean_harms of each policy.
    """

    table: pd.DataFrame
    differences: pd.DataFrame
    flip_penalty: pd.DataFrame
    trade_off: pd.DataFrame
    level: float
    n_resamples: int

    def summary_frame(self) -> pd.DataFrame:
        """The rows of all conditions together, one a policy."""
        return self.table[self.table["condition"] == ALL].reset_index(drop=True)


def evaluate(
    policies: Sequence[Policy],
    candidates: pd.DataFrame,
    probabilities: pd.DataFrame | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Evaluation:
    """Judge policies by what came of the branches that they choose.

    Parameters
    ----------
    policies : sequence of Policy
        See `policies`; `detectors.standard_policies` has the usual ones.
    candidates : DataFrame
        Table `Candidates`, of tasks that no policy was chosen on.
    probabilities : DataFrame, optional
        p_err, p0 and p1 of the candidates, for policies that need them and for the scores.
    level : float
        Confidence level.
    n_resamples, seed
        Of the percentile bootstrap over tasks, and of sign flips where an exact p is out of reach.

    Returns
    -------
    Evaluation

    Raises
    ------
    FaultbookError
        If there is no policy, two have one name, or one acts twice in a trajectory.
    DataError
        If candidates or probabilities cannot be used, or lack pairs; missing ones are named.

    References
    ----------
    arXiv 2610.00372: success, effect, rescues, harms and interventions of policies on 75 tasks under 4 conditions.
    Clopper & Pearson (1934) for the bounds at few or no harms; Fréchet (1951) for what marginals allow.
    """
    names = [policy.name for policy in policies]
    if not names or len(set(names)) < len(names) or ALL in names:
        raise FaultbookError(f"policies are named {names}; give at least one, and each a name of its own")
    known = trajectories_of(candidates)
    check_level(level)
    judge = _Judge(known, candidates, probabilities, (level, n_resamples, seed))
    done = [judge.deeds(policy) for policy in policies]
    cells = [(condition, known.table["condition"] == condition) for condition in known.table["condition"].unique()]
    cells.append((ALL, pd.Series(True, index=known.table.index)))
    rows = [
        {"policy": deeds.name, "condition": condition, **judge.row(deeds, inside.to_numpy(dtype=bool))}
        for deeds in done
        for condition, inside in cells
    ]
    table = pd.DataFrame(rows, columns=TABLE_COLUMNS)
    types = dict.fromkeys(_TEXT, "string") | {"n_trajectories": "int64", "n_tasks": "int64"}
    pairs = list(itertools.combinations(done, 2))
    return Evaluation(
        table=table.astype({name: types.get(name, "float64") for name in TABLE_COLUMNS}),
        differences=pd.DataFrame([judge.difference(a, b) for a, b in pairs], columns=DIFFERENCE_COLUMNS),
        flip_penalty=pd.DataFrame([_flip(a, b) for a, b in pairs], columns=FLIP_COLUMNS),
        trade_off=pd.DataFrame([judge.trade_off(deeds) for deeds in done], columns=TRADE_OFF_COLUMNS),
        level=level,
        n_resamples=n_resamples,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Deeds:
    """What a policy does in each trajectory: probabilities of it, which are 0 or 1 unless the policy draws."""

    name: str
    draws: bool
    acts: Floats
    rescues: Floats
    harms: Floats
    successes_with: Floats  # successes of the branches that it takes
    rescue_score: Floats  # 0 where it does not act
    harm_score: Floats

    @property
    def effect(self) -> Floats:
        return self.rescues - self.harms


class _Judge:
    """What is common to all rows: the trajectories, their candidates, and how intervals are made."""

    def __init__(
        self,
        known: Trajectories,
        candidates: pd.DataFrame,
        probabilities: pd.DataFrame | None,
        sampling: tuple[float, int, int | np.random.Generator],
    ) -> None:
        self.known, self.candidates, self.probabilities = known, candidates, probabilities
        self.level, self.n_resamples, self.seed = sampling
        self.without = known.table["success_without"].to_numpy(dtype=np.float64)
        self.clean = ~known.is_error
        scores = np.full((2, len(candidates)), nan)
        if probabilities is not None:
            p0, p1 = aligned(candidates, probabilities, ("p0", "p1")).to_numpy(dtype=np.float64).T
            scores = np.array([(1 - p0) * p1, p0 * (1 - p1)])
        self.scores = scores

    def deeds(self, policy: Policy) -> _Deeds:
        """What a policy does."""
        draws = isinstance(policy, RandomPolicy)
        chosen: pd.Series[Any]
        if isinstance(policy, RandomPolicy):
            chosen = policy.chances(self.candidates, self.probabilities)
        else:
            chosen = policy.choose(self.candidates, self.probabilities)
        chance = chosen.to_numpy(dtype=np.float64)
        if self.known.sums(chance).max() > 1 + _ALIKE or (chance[~self.candidates["reached"].to_numpy(bool)] > 0).any():
            raise FaultbookError(f"policy '{policy.name}' acts twice in a trajectory, or after it had ended")
        tau = self.candidates["tau"].to_numpy(dtype=np.int64)
        with_ = self.candidates["success_with"].to_numpy(dtype=bool)
        of = self.known.sums
        scores = [of(np.where(chance > 0, chance * score, 0.0)) for score in self.scores]
        return _Deeds(policy.name, draws, *(of(chance * part) for part in (1, tau > 0, tau < 0, with_)), *scores)

    def row(self, deeds: _Deeds, inside: Mask) -> dict[str, Any]:
        """The numbers of some trajectories."""
        n, acts = int(inside.sum()), float(deeds.acts[inside].sum())
        rescues, harms = float(deeds.rescues[inside].sum()), float(deeds.harms[inside].sum())
        effect = self._effect(deeds.effect[inside], self.known.task[inside])
        without = float(self.without[inside].mean())
        row = {
            "n_trajectories": n,
            "n_tasks": len(np.unique(self.known.task[inside])),
            "success_without": without,
            "success_with_policy": without + (rescues - harms) / n,
            "policy_effect_pp": effect.pop("difference_pp"),
            **effect,
            "rescues": rescues,
            "harms": harms,
            "interventions": acts,
            "intervention_rate": acts / n,
            "interventions_without_change": acts - rescues - harms,
            "tau_of_interventions_pp": 100 * (rescues - harms) / acts if acts else nan,
            "mean_rescue_score": float(deeds.rescue_score[inside].sum()) / acts if acts else nan,
            "mean_harm_score": float(deeds.harm_score[inside].sum()) / acts if acts else nan,
        }
        notes = [str(row.pop("reason"))] + ([] if acts else ["no interventions"])
        if deeds.draws:
            notes.append("means over all draws; no exact bounds")
        else:
            row |= self._marginal_bounds(deeds, inside, int(acts))
        row |= self._clean_harm(deeds, inside & self.clean)
        return row | {"note": "; ".join(note for note in notes if note)}

    def difference(self, a: _Deeds, b: _Deeds) -> dict[str, Any]:
        """How the effects of two policies differ over all trajectories."""
        return {"policy_a": a.name, "policy_b": b.name, **self._effect(a.effect - b.effect, self.known.task)}

    def trade_off(self, deeds: _Deeds) -> tuple[str, float, float]:
        """Gain on disturbed trajectories, and harm on clean ones."""
        return deeds.name, float(deeds.effect[~self.clean].sum()), float(deeds.harms[self.clean].sum())

    def _effect(self, effect: Floats, task: Any) -> dict[str, Any]:
        effect = np.where(np.abs(effect) < _ALIKE, 0.0, effect)
        sums = np.bincount(task, weights=effect).astype(np.float64)
        sums[np.abs(sums) < _ALIKE] = 0.0
        found = cluster_bootstrap(effect, task, level=self.level, n_resamples=self.n_resamples, seed=self.seed)
        reason = found.method.partition("no interval: ")[2].replace("cluster", "task")
        test, p = SIGN_FLIP, nan
        if not effect.any():
            test = NO_DISCORDANT
        elif not sums.any():
            test = NO_NET_EFFECT
        else:
            p = self._sign_flip(sums)
        value, low, high = 100 * found.estimate, 100 * found.low, 100 * found.high
        row = {"difference_pp": value, "low_pp": low, "high_pp": high, "sign_flip_p": p, "test": test}
        return row | {"reason": f"no interval: {reason}" if reason else ""}

    def _sign_flip(self, sums: Floats) -> float:
        try:
            return sign_flip(sums).p
        except ValueError:  # no exact p is within reach
            return sign_flip(sums, n_draws=_N_FLIPS, seed=self.seed).p

    def _marginal_bounds(self, deeds: _Deeds, inside: Mask, acts: int) -> dict[str, float]:
        if not acts:
            return {}
        acted = inside & (deeds.acts > 0)
        bounds = rescue_harm_counts(int(self.without[acted].sum()), int(deeds.successes_with[acted].sum()), acts)
        names = {"rescue_low": "rescues_low", "rescue_high": "rescues_high", "harm_low": "harms_low"}
        renamed = bounds.rename(columns=names | {"harm_high": "harms_high"}).drop(columns="effect")
        return {str(name): float(value) for name, value in renamed.iloc[0].items()}

    def _clean_harm(self, deeds: _Deeds, clean: Mask) -> dict[str, float]:
        if not clean.any():
            return {}
        found = {"clean_harms": float(deeds.harms[clean].sum())}
        if deeds.draws:
            return found
        n_tasks = len(np.unique(self.known.task[clean]))
        harmed = len(np.unique(self.known.task[clean & (deeds.harms > 0)]))
        found["clean_harm_upper"] = event_upper_bound(harmed, n_tasks, self.level)
        return found | {"clean_harm_upper_two_sided": event_upper_bound(harmed, n_tasks, self.level, sides=2)}


def _flip(a: _Deeds, b: _Deeds) -> dict[str, Any]:
    """The harm penalty at which the preference between two policies changes."""
    counts = [float(part.sum()) for part in (a.rescues, a.harms, b.rescues, b.harms)]
    rescues, harms = counts[0] - counts[2], counts[1] - counts[3]
    row: dict[str, Any] = {"policy_a": a.name, "policy_b": b.name, "flip_penalty": nan}
    row |= dict(zip(("rescues_a", "harms_a", "rescues_b", "harms_b"), counts, strict=True))
    if abs(harms) < _ALIKE:
        note = "as many harms: the penalty does not matter"
        better = pd.NA if abs(rescues) < _ALIKE else a.name if rescues > 0 else b.name
        return row | {"preferred_below": better, "preferred_above": better, "note": note}
    careful, bold = (b.name, a.name) if harms > 0 else (a.name, b.name)
    penalty = rescues / harms
    if penalty <= 0:
        note = "fewer harms and as many rescues or more: better at any penalty above 0"
        return row | {"preferred_below": careful, "preferred_above": careful, "note": note}
    return row | {"flip_penalty": penalty, "preferred_below": bold, "preferred_above": careful, "note": ""}
