"""Cells of pairs side by side: how two effects differ, and which tasks each action rescues alone or together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from faultbook.errors import FaultbookError
from faultbook.recovery._frames import as_pairs, in_order, matching, select
from faultbook.recovery._tasks import Sampling, Tasks, flip_tasks, paired_difference, whole_parts
from faultbook.tables import OUTCOMES

NO_COMMON_TASK = "no task in common"
DIFFERENCE_COLUMNS = [
    *("action_a", "action_b", "n_tasks", "n_pairs", "n_agree", "n_disagree", "only_a", "only_b"),
    *("both_rescue", "rescue_only_a", "rescue_only_b", "both_harm", "harm_only_a", "harm_only_b"),
    *("difference_pp", "low", "high", "mcnemar_exact", "sign_flip_p", "test"),
]

_MOST_ACTIONS = 6  # 63 sets of actions
_UNIT = ["task_id", "replicate"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """How the effect in cell a differs from that in cell b, on the tasks that both have.

    `difference_pp` = `effect_a_pp` − `effect_b_pp`, with the interval `low` to `high`, in percentage points. `joint`
    counts the pairs by outcome in a (rows) and in b (columns), `lost` names the tasks that one of the cells lacks.
    """

    difference_pp: float
    low: float
    high: float
    sign_flip_p: float
    test: str
    n_tasks: int
    effect_a_pp: float
    effect_b_pp: float
    level: float
    joint: pd.DataFrame
    lost: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """One row: the fields that are numbers or text, and how many tasks were lost."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("joint", "lost")}
        return pd.DataFrame([plain | {"n_lost": len(self.lost)}])


def contrast(
    pairs: pd.DataFrame,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Contrast:
    """Compare the effects of two cells, paired by task.

    Parameters
    ----------
    pairs : DataFrame
        Table `Pairs`.
    a, b : mapping of str to value
        The cells: ``{"condition": "stale2", "delay": 0, "action": "refresh"}``. A column that has one value in the
        pairs need not be named.
    level, n_resamples, seed
        Of the percentile bootstrap, which resamples tasks.

    Returns
    -------
    Contrast
        Of the tasks that both cells have. Where a task has several pairs its mean effect counts; `joint` then counts
        those pairs whose replicate is in both cells.

    Raises
    ------
    FaultbookError
        If a cell has no pair, or pairs of several conditions, delays or actions.

    Notes
    -----
    The difference needs the joint outcomes: two pairs of numbers of rescues and harms do not determine its interval.
    The p is of a sign-flip test on task differences, exact where that is within reach.

    References
    ----------
    arXiv 2610.00372: 2-step stale minus clean, paired by task.
    """
    frame, sampling = as_pairs(pairs), Sampling(level, n_resamples, seed)
    cells = [select(frame, cell, name) for cell, name in ((a, "a"), (b, "b"))]
    means = [cell.groupby("task_id")["tau"].agg(["mean", "size"]) for cell in cells]
    first, second = means[0].align(means[1], join="inner", axis=0)
    sizes = np.concatenate([first["size"], second["size"]]).astype(np.int64)
    (parts_a, n_parts), (parts_b, _) = (whole_parts(m["mean"].to_numpy(dtype=float), sizes) for m in (first, second))
    difference = (parts_a - parts_b) / n_parts
    lost = [
        (task, name)
        for name, mine, other in (("a", means[0], means[1]), ("b", means[1], means[0]))
        for task in other.index.difference(mine.index)
    ]
    value = low = high = p = effect_a = effect_b = np.nan
    test = NO_COMMON_TASK
    if len(difference):
        estimate = sampling.mean(difference, np.arange(len(difference)))
        value, low, high = 100 * estimate.estimate, 100 * estimate.low, 100 * estimate.high
        effect_a, effect_b = (100 * float(m["mean"].mean()) for m in (first, second))
        p, test = flip_tasks(difference, sizes, seed)
    named = pd.DataFrame(lost, columns=["task_id", "missing_in"], dtype="string[pyarrow]")
    return Contrast(value, low, high, p, test, len(difference), effect_a, effect_b, level, _joint(*cells), named)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What several actions do to the same tasks, under one condition and delay.

    Attributes
    ----------
    outcomes : DataFrame
        One row a task and replicate that has all arms: task_id, replicate, and for each action its outcome.
    rescues, harms : DataFrame
        One row for each set of actions: actions (joined by " + "), n_actions, n (how often exactly these actions, and
        no other, rescue or harm) and task_ids (a list).
    differences : DataFrame
        One row for each two actions: action_a, action_b, n_tasks, n_pairs; n_agree and n_disagree (the same success or
        not), only_a and only_b (success with one alone); both_rescue, rescue_only_a, rescue_only_b and the same of
        harm; difference_pp (a − b), low and high in percentage points; mcnemar_exact, sign_flip_p and test as in
        `faultbook.recovery.effects`.
    lost : DataFrame
        task_id, replicate and action: the arms that are missing, for which the task is left out.
    """

    outcomes: pd.DataFrame
    rescues: pd.DataFrame
    harms: pd.DataFrame
    differences: pd.DataFrame
    lost: pd.DataFrame
    condition: str
    delay: int
    level: float

    def summary_frame(self) -> pd.DataFrame:
        """The table `differences`."""
        return self.differences


def overlap(
    pairs: pd.DataFrame,
    actions: Sequence[str],
    *,
    condition: str,
    delay: int,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> Overlap:
    """Find which tasks each action rescues or harms alone or together with others, on the tasks that have all arms.

    Parameters
    ----------
    pairs : DataFrame
        Table `Pairs`.
    actions : sequence of str
        Two to six actions.
    condition, delay
        The cell; both are needed, since outcomes of different forks are not to be laid over each other.
    level, n_resamples, seed
        Of the percentile bootstrap of the differences, which resamples tasks.

    Returns
    -------
    Overlap
        The tasks that lack an arm are named in `lost`, with the arm.

    Raises
    ------
    FaultbookError
        If there are not two to six different actions, or one of them has no pair in this cell.

    References
    ----------
    arXiv 2610.00372, appendix: full and content-ablated refresh agree on 59 of 65 tasks.
    """
    if isinstance(actions, str) or not 2 <= len(set(actions)) == len(actions) <= _MOST_ACTIONS:
        raise FaultbookError(f"overlap is of two to {_MOST_ACTIONS} different actions; found {actions!r}")
    here = matching(as_pairs(pairs), {"condition": condition, "delay": delay}, "overlap")
    for action in actions:
        matching(here, {"action": action}, f"overlap at condition {condition!r} and delay {delay!r}")
    here = here[here["action"].isin(actions)]
    wide = here.pivot_table(index=_UNIT, columns="action", values="outcome", aggfunc="first")[list(actions)]
    missing = wide.isna()
    lost = missing.melt(ignore_index=False, value_name="missing").query("missing").reset_index()[[*_UNIT, "action"]]
    common = wide[~missing.any(axis=1)]
    sampling = Sampling(level, n_resamples, seed)
    rows = [_compared(common, first, second, sampling) for first, second in itertools.combinations(actions, 2)]
    sets = {name: _sets(common == name, actions) for name in OUTCOMES[:2]}
    return Overlap(
        common.rename_axis(columns=None).reset_index(),
        sets["rescue"],
        sets["harm"],
        pd.DataFrame(rows, columns=DIFFERENCE_COLUMNS),
        in_order(lost, [*_UNIT, "action"]),
        condition,
        delay,
        level,
    )


def _joint(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Counts of pairs by outcome in a (rows) and in b (columns)."""
    single = a["task_id"].is_unique and b["task_id"].is_unique
    both = a.merge(b, on=_UNIT[:1] if single else _UNIT, suffixes=("_a", "_b"))
    counts = pd.crosstab(both["outcome_a"], both["outcome_b"])
    counts = counts.reindex(index=list(OUTCOMES), columns=list(OUTCOMES), fill_value=0).astype("int64")
    return counts.rename_axis(index="a", columns="b")


def _sets(events: pd.DataFrame, actions: Sequence[str]) -> pd.DataFrame:
    """For each set of actions, where the event is under these and under no other."""
    happened = {action: events[action].to_numpy(dtype=bool) for action in actions}
    rows = []
    for n_actions in range(1, len(actions) + 1):
        for chosen in itertools.combinations(actions, n_actions):
            exactly = np.all([happened[action] == (action in chosen) for action in actions], axis=0)
            task_ids = list(dict.fromkeys(events.index.get_level_values("task_id")[exactly]))
            rows.append((" + ".join(chosen), n_actions, int(exactly.sum()), task_ids))
    return pd.DataFrame(rows, columns=["actions", "n_actions", "n", "task_ids"])


def _compared(common: pd.DataFrame, a: str, b: str, sampling: Sampling) -> dict[str, Any]:
    rescue, harm, stable_success, _ = OUTCOMES
    sides = {action: common[action].isin([rescue, stable_success]).to_numpy(dtype=bool) for action in (a, b)}
    tasks = Tasks(common.index.get_level_values("task_id").to_series())
    row = asdict(paired_difference(sides[b], sides[a], tasks, sampling))
    row["difference_pp"] = row.pop("effect_pp")
    agree = sides[a] == sides[b]
    row |= {"action_a": a, "action_b": b, "n_agree": int(agree.sum()), "n_disagree": int((~agree).sum())}
    row |= {"only_a": int((sides[a] & ~sides[b]).sum()), "only_b": int((sides[b] & ~sides[a]).sum())}
    for name in (rescue, harm):
        first, second = ((common[action] == name).to_numpy(dtype=bool) for action in (a, b))
        row |= {f"both_{name}": int((first & second).sum())}
        row |= {f"{name}_only_a": int((first & ~second).sum()), f"{name}_only_b": int((second & ~first).sum())}
    return row
