"""When to recover: policies that mark the candidate on which they act, at most one a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery._trajectories import PROBABILITIES, Floats, Mask, aligned
from faultbook.recovery.estimators import truths
from faultbook.recovery.rule import TRAJECTORY, InterventionRule, decide_many, first_pass
from faultbook.stats.bootstrap import as_generator


class Policy(Protocol):
    """Anything with a name and a choice."""

    @property
    def name(self) -> str:
        """What the policy is called in tables."""

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """Mark the candidates on which the policy acts.

        Parameters
        ----------
        candidates : DataFrame
            Table `Candidates`.
        probabilities : DataFrame, optional
            p_err, p0 and p1 of the candidates, for policies that need them: with the candidates' key or index.

        Returns
        -------
        Series of bool
            With the index of `candidates`; True at most once a trajectory, and only where it was reached.
        """


@runtime_checkable
class RandomPolicy(Policy, Protocol):
    """A policy that draws. It is judged by what it does on average over its draws."""

    def chances(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[float]:
        """The probability of acting on each candidate; they sum to at most 1 a trajectory."""


@dataclass(frozen=True, slots=True)
class Never:
    """No recovery at all."""

    name: str = "never"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """No candidate."""
        return pd.Series(False, index=candidates.index)


@dataclass(frozen=True, slots=True)
class AlwaysAt:
    """Recovery at one delay, whatever the run looks like."""

    delay: int

    @property
    def name(self) -> str:
        """What it is called: always at delay d."""
        return f"always at delay {self.delay}"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """The candidate at this delay; none in a run that had ended by then.

        Raises
        ------
        FaultbookError
            If no candidate has this delay.
        """
        here = (candidates["delay"] == self.delay).to_numpy(dtype=bool)
        if not here.any():
            delays = ", ".join(str(delay) for delay in sorted(candidates["delay"].unique()))
            raise FaultbookError(f"no candidate has the delay {self.delay}; the delays are {delays}")
        return first_of(candidates, here)


@dataclass(frozen=True, slots=True)
class AnomalyDetector:
    """Recovery at the first candidate that looks wrong enough, whether or not recovery would help.

    Parameters
    ----------
    threshold : float
        Least score that passes; infinity lets nothing pass. `calibrate.calibrate_detector` and
        `calibrate.match_detector` find one.
    score : str
        A column of the probabilities, or else of the candidates. A missing score does not pass.
    min_delay : int
        Least delay at which it acts.
    name : str
        What it is called.
    """

    threshold: float
    score: str = "p_err"
    min_delay: int = 1
    name: str = "sequential anomaly detector"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """The first candidate whose score is at least the threshold."""
        late = (candidates["delay"] >= self.min_delay).to_numpy(dtype=bool)
        return first_of(candidates, late & (anomaly_score(candidates, probabilities, self.score) >= self.threshold))


@dataclass(frozen=True, slots=True)
class RandomAtRate:
    """Recovery in a share of all trajectories, drawn at random, each at one of its candidates, likewise drawn.

    What a policy of that rate gains without looking at the run. `evaluate` takes its mean over all draws, in closed
    form; the interval is of the tasks, not of the draw.

    Parameters
    ----------
    rate : float
        Interventions by trajectory, in [0, 1], over all trajectories, those that had ended included. If so many have
        no candidate that the rate is out of reach, each of the others is acted on.
    min_delay : int
        Least delay at which it acts.
    seed : int or numpy.random.Generator
        Of the one draw that `choose` makes.
    name : str
        What it is called.

    Raises
    ------
    FaultbookError
        If the rate is not in [0, 1].
    """

    rate: float
    min_delay: int = 1
    seed: int | np.random.Generator = 0
    name: str = "random at matched rate"

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise FaultbookError(f"rate is {self.rate}; give interventions by trajectory, in [0, 1]")

    def chances(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[float]:
        """The probability of acting on each candidate."""
        may = truths(candidates, "reached") & (candidates["delay"] >= self.min_delay).to_numpy(dtype=bool)
        run = candidates.groupby(TRAJECTORY, sort=False).ngroup().to_numpy()
        n_choices = np.bincount(run, weights=may)
        share = min(1.0, self.rate * len(n_choices) / max(int((n_choices > 0).sum()), 1))
        return pd.Series(np.where(may, share / np.maximum(n_choices[run], 1), 0.0), index=candidates.index)

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """One draw, the same for the same seed whatever the order of the rows."""
        chance = self.chances(candidates)
        keyed = candidates[[*TRAJECTORY, "delay"]].assign(chance=chance.to_numpy(), row=np.arange(len(candidates)))
        keyed = keyed.sort_values([*TRAJECTORY, "delay"], kind="stable")
        run = keyed.groupby(TRAJECTORY, sort=False).ngroup().to_numpy()
        drawn = as_generator(self.seed).random(run.max(initial=-1) + 1)[run]
        upper = keyed["chance"].groupby(run).cumsum().to_numpy()
        acts = np.zeros(len(candidates), dtype=bool)
        acts[keyed["row"].to_numpy()] = (drawn < upper) & (drawn >= upper - keyed["chance"].to_numpy())
        return first_of(candidates, acts)


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """The intervention rule: the first candidate, in order of delay, that passes all of its gates."""

    rule: InterventionRule
    name: str = "CIR rule"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """The candidate on which the rule refreshes."""
        p = aligned(candidates, probabilities)
        decided = decide_many(self.rule, candidates["delay"], *(p[name] for name in PROBABILITIES))
        return first_of(candidates, (decided["action"] == "refresh").to_numpy(dtype=bool))


@dataclass(frozen=True, slots=True)
class Oracle:
    """Recovery exactly where it rescues, at the earliest such candidate: a ceiling, for it looks at the outcomes.

    No policy with the same `min_delay` has more successes.
    """

    min_delay: int = 0
    name: str = "oracle (uses outcomes)"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """The first candidate with τ = 1."""
        return first_of(candidates, ((candidates["tau"] == 1) & (candidates["delay"] >= self.min_delay)).to_numpy(bool))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a policy of another origin did, as a column of the candidates says."""

    name: str
    column: str

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        """The candidates whose column is true.

        Raises
        ------
        DataError
            If the column is missing or holds anything but true and false, or a trajectory is acted on twice or after
            it had ended.
        """
        if self.column not in candidates:
            raise DataError("no such column among the candidates", column=self.column, mend="record who acts, and when")
        acts = truths(candidates, self.column)
        once = first_of(candidates, acts)
        if int(once.sum()) < int(acts.sum()):
            row = candidates[acts & ~once.to_numpy()].iloc[0]
            where = f"task {row['task_id']}, {row['condition']}, replicate {row['replicate']}, delay {row['delay']}"
            problem = "a second intervention in a trajectory, or one after it had ended"
            raise DataError(problem, row=where, column=self.column, mend="keep the first")
        return once


def first_of(candidates: pd.DataFrame, passes: Mask) -> pd.Series[bool]:
    """Mark the first candidate of each trajectory, in order of delay, that passes and was reached."""
    decided = first_pass(candidates.assign(action=np.where(passes, "refresh", "hold")))
    return decided["refreshed"].rename(None)


def anomaly_score(candidates: pd.DataFrame, probabilities: pd.DataFrame | None, name: str) -> Floats:
    """A column of the probabilities, or else of the candidates, as floats; NaN where it is missing.

    Raises
    ------
    DataError
        If neither has it, or it holds no numbers.
    """
    if probabilities is not None and name in probabilities:
        return aligned(candidates, probabilities, [name])[name].to_numpy(dtype=np.float64)
    if name not in candidates:
        raise DataError("no such score, neither in the probabilities nor in the candidates", column=name)
    column: pd.Series[Any] = candidates[name]
    if not pd.api.types.is_numeric_dtype(column.dtype):
        raise DataError(f"a score of type '{column.dtype}'", column=name, mend="give numbers")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)
