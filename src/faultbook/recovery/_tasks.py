"""What is measured on pairs, with the task as the unit: means of task means, their intervals and tests."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, nan
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.stats.bootstrap import Estimate, Floats, cluster_bootstrap
from faultbook.stats.paired import mcnemar_exact, sign_flip
from faultbook.stats.proportion import event_upper_bound

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# What `test` says. The first is of one pair a task, the third of several.
EXACT_MCNEMAR = "exact McNemar"
NO_DISCORDANT = "no discordant pairs"
SIGN_FLIP = "sign flip over tasks"
NO_NET_EFFECT = "no task with a net effect"

_N_FLIPS = 100_000  # random sign patterns where no exact p is within reach
_MOST_PARTS = 2_520  # of a task mean that is counted in whole parts: clusters of up to ten pairs


@dataclass(frozen=True, slots=True)
class Sampling:
    """How intervals are made: the confidence level, the number of resamples of tasks, and the seed."""

    level: float = 0.95
    n_resamples: int = 10_000
    seed: int | np.random.Generator = 0

    def mean(self, values: Any, tasks: Any) -> Estimate:
        """The mean of task means and its percentile interval over tasks."""
        return cluster_bootstrap(
            values, tasks, weight="cluster", level=self.level, n_resamples=self.n_resamples, seed=self.seed
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Success on one side less success on the other, of pairs: `effect_pp`, `low` and `high` in percentage points.

    `mcnemar_exact` is NaN unless every task has one pair, `sign_flip_p` unless some task has several; `test` says which
    of the two there is, or why there is none.
    """

    n_tasks: int
    n_pairs: int
    effect_pp: float
    low: float
    high: float
    mcnemar_exact: float
    sign_flip_p: float
    test: str


class Tasks:
    """The tasks of n rows, as numbers, with what is averaged over them."""

    def __init__(self, names: pd.Series[Any]) -> None:
        self.codes: npt.NDArray[np.intp] = pd.factorize(names)[0]
        self.sizes: Integers = np.bincount(self.codes).astype(np.int64)

    @property
    def n(self) -> int:
        """The number of tasks."""
        return len(self.sizes)

    @property
    def several(self) -> bool:
        """Whether some task has several rows."""
        return self.n < len(self.codes)

    def means(self, values: Any) -> Floats:
        """The mean of each task, shape (tasks,)."""
        sums = np.bincount(self.codes, weights=np.asarray(values, dtype=np.float64), minlength=self.n)
        means: Floats = sums / self.sizes
        return means

    def mean(self, values: Any) -> float:
        """The mean of the task means; NaN without a task."""
        return float(self.means(values).mean()) if self.n else nan

    def upper_bound(self, events: Mask, level: float) -> float:
        """Exact one-sided upper bound of a rate, from the number of tasks with an event.

        With one row a task it is that of the rate of events. With several, the mean of task rates cannot exceed the
        share of tasks with any event, so the bound holds for it too, and is wide rather than wrong.
        """
        n_tasks = int((self.means(events) > 0).sum())
        return event_upper_bound(n_tasks, self.n, level) if self.n else nan


def paired_difference(without: Mask, with_: Mask, tasks: Tasks, sampling: Sampling) -> Difference:
    """Compare the two sides of pairs, n of them, clustered in tasks."""
    effect = with_.astype(np.int64) - without
    if not tasks.n:
        return Difference(0, 0, nan, nan, nan, nan, nan, NO_DISCORDANT)
    estimate = sampling.mean(effect, tasks.codes)
    mcnemar = p = nan
    if not effect.any():
        test = NO_DISCORDANT
    elif tasks.several:
        p, test = flip_tasks(tasks.means(effect), tasks.sizes, sampling.seed)
    else:
        mcnemar, test = mcnemar_exact(int((effect > 0).sum()), int((effect < 0).sum())).p, EXACT_MCNEMAR
    value, low, high = 100 * estimate.estimate, 100 * estimate.low, 100 * estimate.high
    return Difference(tasks.n, len(effect), value, low, high, mcnemar, p, test)


def flip_tasks(means: Floats, sizes: Integers, seed: int | np.random.Generator) -> tuple[float, str]:
    """The two-sided p of a sign-flip test on task means, and what `test` says of it.

    Parameters
    ----------
    means : array, shape (tasks,)
        Each a sum of whole numbers over its size.
    sizes : array
        All sizes that occur.
    seed : int or Generator
        Used only where no exact p is within reach (`faultbook.stats.paired.sign_flip`).
    """
    values = whole_parts(means, sizes)[0]
    if not values.any():
        return nan, NO_NET_EFFECT
    try:
        return sign_flip(values).p, SIGN_FLIP
    except ValueError:  # no exact p is within reach
        return sign_flip(values, n_draws=_N_FLIPS, seed=seed).p, SIGN_FLIP


def whole_parts(means: Floats, sizes: Integers) -> tuple[Floats, int]:
    """Means as whole numbers of equal parts, and how many parts make 1; as they are, and 1, if there are too many.

    1/3 + 1/3 and 2/3 become one number that way, which they are not in floating point.
    """
    n_parts = 1
    for size in np.unique(sizes).tolist():
        n_parts = lcm(n_parts, size)
        if n_parts > _MOST_PARTS:
            return means, 1
    return np.rint(means * n_parts), n_parts
