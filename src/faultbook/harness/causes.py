"""Why trials ended, by arm. The taxonomy itself is in `faultbook.taxonomy`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from faultbook.harness.plan import arms_of, held, plan
from faultbook.tables import TRIAL_STATES
from faultbook.taxonomy import cause, causes

COLUMNS = [
    "arm",
    "state",
    "cause",
    "owner",
    "retryable",
    "trials",
    "observed",
    "inferred",
    "resolved",
    "not_resolved",
    "without_verdict",
    "verdict_stands",
]
_TYPES = {
    "arm": "string",
    "state": "string",
    "cause": "string",
    "owner": "string",
    "retryable": "boolean",
    "verdict_stands": "boolean",
} | dict.fromkeys(("trials", "observed", "inferred", "resolved", "not_resolved", "without_verdict"), "int64")


def cause_table(trials: pd.DataFrame, planned: pd.DataFrame | None = None) -> pd.DataFrame:
    """Count trials by arm, state and primary cause.

    Parameters
    ----------
    trials : DataFrame
        Table `Trials`.
    planned : DataFrame, optional
        Table `Plan`; inferred from the trials if left out.

    Returns
    -------
    DataFrame
        One row an arm, state and cause (missing where none is on record): owner and retryable of the cause, trials,
        how many of the causes are observed and how many inferred from a text; recorded verdicts resolved,
        not_resolved and without_verdict; and whether a verdict beside this cause stands. In the order of the plan's
        arms, of the states and of the taxonomy; every planned trial counts once.
    """
    planned = plan(trials=trials) if planned is None else planned
    cells = held(trials, planned).cells
    rows = [
        _row(str(arm), str(state), name, group)
        for (arm, state, name), group in cells.groupby(["arm", "state", "cause"], dropna=False, sort=False)
    ]
    order = {name: place for place, name in enumerate(causes())}
    arms = arms_of(planned)
    states = {name: place for place, name in enumerate(TRIAL_STATES)}
    rows.sort(key=lambda row: (arms.index(row["arm"]), states[row["state"]], order.get(row["cause"], -1)))
    return pd.DataFrame(rows, columns=COLUMNS).astype(_TYPES)


def infrastructure(trials: pd.DataFrame) -> pd.Series[Any]:
    """Whether a trial's primary cause is known, and neither the agent's nor the harness's own doing."""
    theirs = [name for name, one in causes().items() if one.is_infrastructure]
    return trials["cause"].isin(theirs).fillna(False).astype(bool)


def _row(arm: str, state: str, name: Any, group: pd.DataFrame) -> dict[str, Any]:
    known = None if pd.isna(name) else cause(name)
    verdicts = group["recorded"]
    return {
        "arm": arm,
        "state": state,
        "cause": None if known is None else known.name,
        "owner": None if known is None else known.owner,
        "retryable": None if known is None else known.retryable,
        "trials": len(group),
        "observed": int((group["cause_source"] == "observed").sum()),
        "inferred": int((group["cause_source"] == "inferred").sum()),
        "resolved": int(verdicts.fillna(False).sum()),
        "not_resolved": int((~verdicts.fillna(True)).sum()),
        "without_verdict": int(verdicts.isna().sum()),
        "verdict_stands": None if known is None else known.verdict_stands,
    }
