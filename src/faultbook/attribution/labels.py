"""One label a log, as Who&When has them, and what the single-label measures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.compare import require_columns
from faultbook.errors import FaultbookError, short_repr
from faultbook.stats.bootstrap import Floats, cluster_bootstrap

LABEL_COLUMNS = ["log_id", "split", "question_id", "n_steps", "mistake_step", "mistake_agent"]
TOLERANCES = (0, 1, 2, 3, 5)


def oracle_labels(logs: pd.DataFrame, annotations: pd.DataFrame) -> pd.DataFrame:
    """Take the one label of each log.

    Parameters
    ----------
    logs, annotations : DataFrame
        Tables `Logs` and `Annotations`; the annotations of one annotator, who flags one step of each log.

    Returns
    -------
    DataFrame
        One row a log, in the order of `logs`: log_id, split, question_id, n_steps, mistake_step (0-based; it may lie
        beyond the log, as in releases of Who&When before July 2025), mistake_agent.

    Raises
    ------
    FaultbookError
        If a log has several annotators, several flagged steps or none, or an annotated log is not in `logs`.
    """
    require_columns(logs, LABEL_COLUMNS[:4], "logs")
    require_columns(annotations, ["log_id", "step", "annotator", "is_failure", "agent"], "annotations")
    need = "single-oracle scores need one label a log"
    refuse(logs.loc[logs["log_id"].duplicated(), "log_id"], "stand twice", "keep one row a log")
    refuse(annotations.loc[~annotations["log_id"].isin(logs["log_id"]), "log_id"], "are annotated and not listed")
    judges = annotations[["log_id", "annotator"]].drop_duplicates()
    refuse(judges.loc[judges["log_id"].duplicated(), "log_id"], "have several annotators", need)
    flagged = annotations[annotations["is_failure"].astype(bool)]
    refuse(flagged.loc[flagged["log_id"].duplicated(), "log_id"], "have several flagged steps", need)
    refuse(logs.loc[~logs["log_id"].isin(flagged["log_id"]), "log_id"], "have no flagged step", need)
    label = flagged.rename(columns={"step": "mistake_step", "agent": "mistake_agent"})
    merged = logs[LABEL_COLUMNS[:4]].merge(label[["log_id", *LABEL_COLUMNS[4:]]], on="log_id", how="left")
    return merged.astype({"mistake_step": "int64"})


def check_labels(labels: pd.DataFrame) -> None:
    """Refuse a table that is not one label a log."""
    require_columns(labels, LABEL_COLUMNS, "labels")
    if labels.empty:
        raise FaultbookError("labels: no log; single-oracle scores need one label a log")
    refuse(labels.loc[labels["log_id"].duplicated(), "log_id"], "stand twice", "keep one label a log")
    missing = labels["mistake_step"].isna() | labels["split"].isna()
    refuse(labels.loc[missing, "log_id"], "have no labelled step or no split", "leave them out or label them")


def refuse(logs: pd.Series, what: str, mend: str = "add them to the logs") -> None:
    """Raise if there are any such logs."""
    if len(logs):
        raise FaultbookError(f"{logs.nunique()} logs {what} (first: {logs.iloc[0]}); {mend}")


def question_codes(labels: pd.DataFrame) -> npt.NDArray[np.intp]:
    """A number for the question of each label; a log whose question is unknown is one of its own."""
    codes, known = pd.factorize(labels["question_id"])
    return np.where(codes >= 0, codes, len(known) + np.arange(len(codes)))


def plain_names(column: pd.Series) -> npt.NDArray[np.object_]:
    """Names as plain objects that compare to True or False; None where missing."""
    names: npt.NDArray[np.object_] = column.to_numpy(dtype=object).copy()
    names[column.isna().to_numpy()] = None
    return names


def mean_or_missing(values: Floats) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")


def rate_estimate(
    values: Floats, clusters: npt.NDArray[np.intp], level: float, n_resamples: int, seed: int
) -> dict[str, float]:
    """A mean and its interval over questions, as rate, low and high; missing of nothing."""
    if not len(values):
        return dict.fromkeys(("rate", "low", "high"), float("nan"))
    found = cluster_bootstrap(values, clusters, level=level, n_resamples=n_resamples, seed=seed)
    return {"rate": found.estimate, "low": found.low, "high": found.high}


def tolerance_names(tolerance: Sequence[int]) -> dict[int, str]:
    """The name of the measure at each distance."""
    wrong = [most for most in tolerance if not pd.api.types.is_integer(most) or most < 0]
    if wrong:
        raise FaultbookError(f"tolerance holds {short_repr(wrong[0])}; give whole numbers of steps, 0 for equality")
    return {int(most): f"step ±{most}" if most else "step" for most in tolerance}
