"""Whether fitted models can pass the gates of a rule at all, at their scale and penalty."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from faultbook.recovery.estimators import (
    KEY,
    TARGETS,
    Estimators,
    Floats,
    Truths,
    reached_rows,
)
from faultbook.recovery.rule import InterventionRule, decide_many
from faultbook.recovery.separation import value_range

REACH_COLUMNS = [
    *("gate", "threshold", "lowest_seen", "highest_seen", "lowest_possible", "highest_possible"),
    *("n_rows", "n_passing", "reachable", "note"),
]
_EDGE_POINTS = 257
_GATE_VALUES = {"delay": "delay", "error": "p_err", "failure": "p_fail", "utility": "u"}


def reachable(rule: InterventionRule, estimators: Estimators, candidates: pd.DataFrame | None = None) -> pd.DataFrame:
    """Which gates of a rule these models can pass at all.

    A penalised model keeps away from 0 and 1: with C = .1, 93 tasks and one feature that separates perfectly, p_err
    stays below .876, and a rule with the experiment's threshold never acts. Thresholds go with features, their scale
    and C.

    Parameters
    ----------
    rule : InterventionRule
        The rule.
    estimators : Estimators
        The models that it is to work with.
    candidates : DataFrame, optional
        Rows to look at; those that were fitted unless given (none if the models come from a file).

    Returns
    -------
    DataFrame
        One row each for the gates "delay", "error" (p_err), "failure" (p_fail) and "utility" (u), and one for "all":
        threshold; lowest_seen and highest_seen in the rows; lowest_possible and highest_possible of the models within
        the ranges that the features had when fitted (NaN for the delay, which no model gives); n_rows; n_passing;
        reachable (<NA> if "all" gates are possible one by one, but no row passes them together) and note, a sentence.

    Notes
    -----
    Extremes of p_err and p0 are exact: they lie at corners. u rises with p1 and falls with p0, so its extremes lie on
    the outline of the log odds of the two, a polygon with two corners a feature; its edges are searched at 257 points.
    """
    rows = _rows_seen(estimators, candidates)
    decided = decide_many(rule, rows["delay"], rows["p_err"], rows["p0"], rows["p1"])
    seen: dict[str, Floats] = {name: rows[name].to_numpy(dtype=np.float64) for name in ("delay", "p_err")}
    seen["p_fail"] = np.array([rule.p_fail(float(p)) for p in rows["p0"]], dtype=np.float64)
    seen["u"] = decided["utility_score"].to_numpy()
    possible = _possible(rule, estimators)
    found = [_reach_of_gate(rule, gate, seen[value], possible[value]) for gate, value in _GATE_VALUES.items()]
    n_acts = int((decided["action"] == "refresh").sum())
    closed = any(row["reachable"] is False for row in found)
    note = f"the rule acts on {n_acts} of {len(rows)} rows"
    if closed:
        settings = "Firth's penalty" if estimators.C is None else f"C = {estimators.C:g}"
        note += f"; it never can with these features and {settings}. Its thresholds: {rule.provenance}"
    together = False if closed else (True if n_acts else None)
    found.append({"gate": "all", "n_rows": len(rows), "n_passing": n_acts, "reachable": together, "note": note})
    return pd.DataFrame(found, columns=REACH_COLUMNS).astype({"reachable": "boolean"})


def _reach_of_gate(rule: InterventionRule, gate: str, seen: Floats, possible: Floats) -> dict[str, Any]:
    threshold = float(getattr(rule, "min_delay" if gate == "delay" else f"{gate}_threshold"))
    passing, open_ = (_passes(rule, gate, values, threshold) for values in (seen, possible))
    (lowest_seen, highest_seen), (lowest, highest) = value_range(seen), value_range(possible)
    asked = f"{_GATE_VALUES[gate]} {'>' if gate == 'utility' and rule.on_tie == 'hold' else '≥'} {threshold:g}"
    note = f"{int(passing.sum())} of {len(seen)} rows have {asked}" if len(seen) else "no rows to look at"
    reached = bool(passing.any() or open_.any()) if len(seen) + len(possible) else None
    if reached is False:
        _, top = value_range(np.concatenate([seen, possible]))
        note = f"{asked} is never reached: the highest attainable value is {top:.3f}"
        note = f"{_GATE_VALUES[gate]} cannot be evaluated anywhere" if np.isnan(top) else note
    elif len(possible) and open_.all():
        note += "; the gate holds nothing back"
    return (
        {"gate": gate, "threshold": threshold, "lowest_seen": lowest_seen, "highest_seen": highest_seen}
        | {"lowest_possible": lowest, "highest_possible": highest, "n_rows": len(seen)}
        | {"n_passing": int(passing.sum()), "reachable": reached, "note": note}
    )


def _passes(rule: InterventionRule, gate: str, values: Floats, threshold: float) -> Truths:
    if gate != "utility":
        return values >= threshold
    tie = rule.is_tie(values)
    return np.where(tie, rule.on_tie == "refresh", values > threshold)


def _rows_seen(estimators: Estimators, candidates: pd.DataFrame | None) -> pd.DataFrame:
    if candidates is not None:
        rows = reached_rows(candidates)
        return rows[KEY].join(estimators.predict(rows)).reset_index(drop=True)
    fitted = estimators.fitted
    return pd.DataFrame(columns=[*KEY, *TARGETS]) if fitted is None else fitted


def _possible(rule: InterventionRule, estimators: Estimators) -> dict[str, Floats]:
    """Values that the models can give within the ranges of the features, extremes included."""
    low, high = np.array(estimators.low), np.array(estimators.high)
    weights = np.array(estimators.p_err.coefficient)
    corners = np.array([np.where(weights > 0, low, high), np.where(weights > 0, high, low)])
    outline = _outline(estimators)
    p0, p1 = estimators.p0.probabilities(outline), estimators.p1.probabilities(outline)
    p_fail = np.array([rule.p_fail(float(p)) for p in np.linspace(p0.min(), p0.max(), _EDGE_POINTS)])
    utility = (1 - p0) * p1 - rule.harm_penalty * p0 * (1 - p1)
    return {"delay": np.empty(0), "p_err": estimators.p_err.probabilities(corners), "p_fail": p_fail, "u": utility}


def _outline(estimators: Estimators) -> Floats:
    """Rows of features along the outline of all (log odds of p0, log odds of p1) within the features' ranges.

    The two are linear in the features, so a box of features becomes a polygon whose edges are the features' own
    directions, sorted by angle: from the lowest corner, move one feature after the other from end to end, and back.
    """
    low, high = np.array(estimators.low), np.array(estimators.high)
    slopes = np.array([np.divide(model.coefficient, model.scale) for model in (estimators.p0, estimators.p1)])
    directions = slopes * (high - low)
    upwards = (directions[1] > 0) | ((directions[1] == 0) & (directions[0] > 0))
    start, end = np.where(upwards, low, high), np.where(upwards, high, low)
    angles = np.arctan2(*np.where(upwards, directions, -directions)[::-1])
    corners = [start]
    for goal in (end, start):
        for feature in np.argsort(angles, kind="stable"):
            corner = corners[-1].copy()
            corner[feature] = goal[feature]
            corners.append(corner)
    return np.concatenate([np.linspace(one, other, _EDGE_POINTS) for one, other in itertools.pairwise(corners)])
