"""Several attempts at a task: pass@k, where it can be estimated at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

import pandas as pd

from faultbook.harness.plan import arms_of, held, plan
from faultbook.stats.pass_at_k import MeanPassAtK, mean_pass_at_k


def pass_at_k(
    trials: pd.DataFrame, planned: pd.DataFrame | None = None, *, k: Sequence[int] = (1,), level: float = 0.95
) -> pd.DataFrame:
    """Estimate pass@k of each arm over all planned tasks.

    Parameters
    ----------
    trials, planned, level
        As for `compare`.
    k : sequence of int
        Numbers of attempts, each at least 1.

    Returns
    -------
    DataFrame
        One row an arm and k: estimate, low, high, n_tasks, n_lacking, method. Where any planned task has fewer than k
        scored attempts it is not estimable: the estimate is missing, never 0 and never 1.

    Raises
    ------
    FaultbookError
        If nothing is planned.
    ValueError
        If a k is not a whole number of at least 1.

    References
    ----------
    Chen et al. (2021), arXiv 2107.03374, section 2.1, equation 1.
    """
    planned = plan(trials=trials) if planned is None else planned
    cells = held(trials, planned).cells
    rows = []
    for arm in arms_of(planned):
        verdicts = cells[cells["arm"] == arm].groupby("task_id", sort=False)["verdict"]
        scored, solved = verdicts.count(), verdicts.sum()
        rows += [{"arm": arm} | asdict(mean_pass_at_k(solved, scored, number, level)) for number in k]
    columns = ["arm", *(field.name for field in fields(MeanPassAtK) if field.name != "degenerate")]
    return pd.DataFrame(rows, columns=columns)
