"""Features that separate outcomes, alone or together: there a maximum-likelihood fit has no finite coefficient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from faultbook.recovery.estimators import (
    TARGETS,
    Floats,
    Truths,
    feature_matrix,
    reached_rows,
    truths,
)

SEPARATION_COLUMNS = ["model", "features", "how", "kind", "note"]
_SEEN = 1e-6  # margins and weights of standardised features below this are zero to the solver


def separation(candidates: pd.DataFrame, features: Sequence[str]) -> pd.DataFrame:
    """Features that separate the outcomes of a model, one by one and jointly: no finite likelihood estimate exists.

    Parameters
    ----------
    candidates : DataFrame
        The table `Candidates`; only rows with `reached` are used.
    features : sequence of str
        The features.

    Returns
    -------
    DataFrame
        One row a find, none if there is none: model, features (a smallest set that separates), how ("alone" or
        "jointly"), kind ("complete": every row is on its side of a border; "quasi-complete": some lie on it) and note.

    Notes
    -----
    A linear programme looks for weights under which no row is on the wrong side and, for quasi-complete separation,
    at least one is on the right side. The set named jointly is one from which no feature can be taken.

    References
    ----------
    Albert & Anderson (1984), Biometrika 71, 1-10 (the two kinds). Konis (2007), Linear programming algorithms for
    detecting separated data in binary logistic regression models, thesis, University of Oxford.
    """
    rows = reached_rows(candidates)
    x = feature_matrix(rows, features)
    found = []
    for model, target in TARGETS.items():
        for names, kind in _separating(x, truths(rows, target), list(features)):
            how = "jointly" if len(names) > 1 else "alone"
            note = (
                f"{target}: weights grow without bound unless penalised; Firth's penalty (penalty='firth') is a remedy"
            )
            found.append((model, ", ".join(names), how, kind, note))
    return pd.DataFrame(found, columns=SEPARATION_COLUMNS)


def why_no_estimate(x: Floats, y: Truths, names: list[str]) -> str:
    """Why maximum likelihood has no finite coefficients here; empty if it has."""
    if y.all() or not y.any():
        return "one outcome only"
    design = with_intercept(x)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        needed = [
            name
            for place, name in enumerate(names, start=1)
            if np.linalg.matrix_rank(np.delete(design, place, axis=1)) == np.linalg.matrix_rank(design)
        ]
        return f"collinear features: {', '.join(needed)}"
    found = _separating(x, y, names)
    return f"{found[0][1]} separation by {', '.join(found[0][0])}: no finite estimate" if found else ""


def _separating(x: Floats, y: Truths, names: list[str]) -> list[tuple[list[str], str]]:
    """Sets of features that separate, each with its kind: single ones, then a smallest set of several."""
    kept = np.flatnonzero(np.ptp(x, axis=0) > 0)
    if y.all() or not y.any() or not len(kept):
        return []
    alone = {place: _alone(x[:, place], y) for place in kept}
    found = [([names[place]], kind) for place, kind in alone.items() if kind]
    side = np.where(y, 1.0, -1.0)[:, np.newaxis] * with_intercept(x[:, kept])
    side = np.unique(side, axis=0)
    kind = _kind(side)
    if kind and kind not in [other for _, other in found]:
        columns = list(range(1, side.shape[1]))
        for column in list(columns):
            fewer = [other for other in columns if other != column]
            if fewer and _kind(side[:, [0, *fewer]]) == kind:
                columns = fewer
        found.append(([names[kept[column - 1]] for column in columns], kind))
    return found


def _alone(x: Floats, y: Truths) -> str:
    """How one feature separates the outcomes: "complete", "quasi-complete" or not at all, ""."""
    (low, high), (low_event, high_event) = value_range(x[~y]), value_range(x[y])
    if high < low_event or high_event < low:
        return "complete"
    return "quasi-complete" if high == low_event or high_event == low else ""


def _kind(side: Floats) -> str:
    """As `_alone`, of rows (1, features) times the sign of their outcome: are there weights w with side @ w ≥ 0?"""
    n, width = side.shape
    box = [(-1.0, 1.0)] * width
    widest = linprog(
        np.array([0.0] * width + [-1.0]),
        A_ub=np.column_stack([-side, np.ones(n)]),
        b_ub=np.zeros(n),
        bounds=[*box, (0.0, 1.0)],
    )
    if widest.status == 0 and widest.x[-1] > _SEEN:
        return "complete"
    total = linprog(-side.sum(axis=0), A_ub=-side, b_ub=np.zeros(n), bounds=box)
    margins = side @ total.x if total.status == 0 else np.zeros(1)
    return "quasi-complete" if margins.max() > _SEEN and margins.min() > -_SEEN * margins.max() else ""


def with_intercept(x: Floats) -> Floats:
    """A column of ones, then the features in standard deviations."""
    return np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)])


def value_range(values: Floats) -> tuple[float, float]:
    """The least and the greatest of the values that are known; NaN without any."""
    known = values[~np.isnan(values)]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
