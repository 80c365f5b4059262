"""How far chosen thresholds move when tasks are resampled."""

from __future__ import annotations

import numpy as np
import pandas as pd

from faultbook.recovery._grid import Thresholds
from faultbook.recovery._problem import Problem
from faultbook.recovery._trajectories import Ints

THRESHOLDS = ("error_threshold", "failure_threshold", "utility_threshold")
BOOTSTRAP_COLUMNS = [
    *("resample", "acts", *THRESHOLDS, "gain", "clean_harms", "interventions"),
    *("gain_here", "clean_harms_here", "exact"),
]
STABILITY_COLUMNS = ["quantity", "chosen", "low", "lower_quartile", "median", "upper_quartile", "high", "n"]

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def resampled(problem: Problem, limit: float, n: int, rng: np.random.Generator, node_limit: int) -> pd.DataFrame:
    """Repeat the search on resamples of tasks.

    Returns
    -------
    DataFrame
        One row a resample: whether its rule acts at all, its thresholds (missing if not), gain, clean_harms and
        interventions on the resample; gain_here and clean_harms_here, of the same thresholds on all tasks as they are;
        and whether the search was exact.
    """
    n_tasks = int(problem.task.max()) + 1
    rows = []
    for number in range(n):
        times: Ints = rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks))[problem.task]
        found = problem.solve(problem.harms_allowed(limit, times), times, node_limit=node_limit)
        best = found.optima[0]
        here = problem.outcome(best.thresholds)
        counts = (best.gain, best.harm, best.interventions, here.gain, here.harm)
        acts = best.thresholds is not None
        rows.append((number, acts, *problem.values(best.thresholds), *counts, found.exact))
    types = dict.fromkeys(BOOTSTRAP_COLUMNS, "int64") | dict.fromkeys(THRESHOLDS, "float64")
    return pd.DataFrame(rows, columns=BOOTSTRAP_COLUMNS).astype(types | {"acts": "bool", "exact": "bool"})


def stability_of(bootstraps: pd.DataFrame, problem: Problem, chosen: Thresholds | None) -> pd.DataFrame:
    """Quantiles over resamples (5, 25, 50, 75 and 95 %) beside what was chosen on all tasks.

    `n` counts resamples; those of thresholds are the resamples whose rule acts at all.
    """
    best = problem.outcome(chosen)
    of_all = dict(zip(THRESHOLDS, problem.values(chosen), strict=True))
    of_all |= {"gain": best.gain, "clean_harms": best.harm, "interventions": best.interventions}
    of_all |= {"gain_here": best.gain, "clean_harms_here": best.harm}
    rows = []
    for name, value in of_all.items():
        drawn = bootstraps[name].dropna().to_numpy(dtype=np.float64)
        quantiles = np.quantile(drawn, _QUANTILES) if len(drawn) else np.full(len(_QUANTILES), np.nan)
        rows.append((name, value, *quantiles, len(drawn)))
    return pd.DataFrame(rows, columns=STABILITY_COLUMNS).astype({"chosen": "float64"})
