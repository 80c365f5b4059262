"""Votes on steps, as sorted arrays: what annotators flag, what samples of models name, on one list of logs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from faultbook.attribution.ndcg import Array, Measure, dcg, expected_by_chance, gains_of, share_of_ideal
from faultbook.errors import FaultbookError


@dataclass(frozen=True, slots=True)
class Reference:
    """The logs that were judged, in the order of their first annotation, and the votes on their steps.

    `logs` has one row a log: log_id, split, cluster (its question, else the log), n_steps (missing if unknown),
    n_annotators, n_flagged. The arrays hold one row a flagged step, logs and steps ascending.
    """

    logs: pd.DataFrame
    log: Array
    step: Array
    votes: Array

    def codes(self, ids: pd.Series) -> Array:
        """The position of each log in `logs`; -1 for a log that nobody judged."""
        positions: Array = pd.Index(self.logs["log_id"]).get_indexer(pd.Index(ids))
        return positions


def reference(annotations: pd.DataFrame, logs: pd.DataFrame | None = None) -> Reference:
    """Count the annotators' votes.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`.
    logs : DataFrame, optional
        Table `Logs`: splits, questions and numbers of steps. Without it a log is its own question, the split is what
        stands before "/" in its id, and its last judged step counts as the last one.

    Raises
    ------
    FaultbookError
        If nothing is annotated, or an annotated log is missing from `logs`.
    """
    if annotations.empty:
        raise FaultbookError("no annotations: nothing to judge against")
    code, ids = pd.factorize(annotations["log_id"])
    step = annotations["step"].to_numpy(dtype=np.int64)
    flagged = annotations["is_failure"].to_numpy(dtype=bool)
    frame = _described(pd.Series(ids.astype(object)), logs)
    if logs is None:
        last = np.zeros(len(ids), dtype=np.int64)
        np.maximum.at(last, code, step)
        frame["n_steps"] = last + 1.0
    judges = pd.factorize(annotations["annotator"])[0]
    pairs = np.unique(code.astype(np.int64) * (judges.max() + 1) + judges) // (judges.max() + 1)
    frame["n_annotators"] = np.bincount(pairs, minlength=len(ids))
    log, place, votes = counted(code[flagged], step[flagged])
    frame["n_flagged"] = np.bincount(log, minlength=len(ids))
    return Reference(frame, log, place, votes)


def counted(log: Array, step: Array) -> tuple[Array, Array, Array]:
    """Each distinct (log, step), logs and steps ascending, with the number of its rows."""
    order = np.lexsort((step, log))
    log, step = log[order].astype(np.int64), step[order]
    new = np.ones(len(log), dtype=bool)
    new[1:] = (log[1:] != log[:-1]) | (step[1:] != step[:-1])
    sizes = np.diff(np.append(np.flatnonzero(new), len(log)))
    return log[new], step[new], sizes


class Scorer:
    """Scores rankings on all logs of a reference at once."""

    def __init__(self, known: Reference, measure: Measure) -> None:
        self._known, self.measure, self._n = known, measure, len(known.logs)
        self._n_steps = known.logs["n_steps"].to_numpy(dtype=np.float64)
        self._gains, self.ideal = gains_of(known.log, known.votes, self._n, measure)
        # a label beyond its log is never drawn
        drawable = ~(known.step >= self._n_steps[known.log])
        self._total = np.bincount(known.log, weights=self._gains * drawable, minlength=self._n)

    def gains(self, log: Array, step: Array) -> Array:
        """The gain of each predicted (log, step); 0 where no annotator flagged it."""
        flagged = pd.MultiIndex.from_arrays([self._known.log, self._known.step])
        at = flagged.get_indexer(pd.MultiIndex.from_arrays([log, step]))
        gains: Array = np.where(at >= 0, np.append(self._gains, 0.0)[at], 0.0)  # -1, which is not found, is the 0
        return gains

    def scores(self, log: Array, priority: Array, gains: Array) -> Array:
        """The nDCG of each log, 0 where nothing is predicted, NaN where nothing is flagged; rows as in `dcg`."""
        return share_of_ideal(dcg(log, priority, gains, self._n, self.measure), self.ideal)

    def chance(self, n_predicted: Array) -> Array:
        """What as many distinct random steps would score."""
        return expected_by_chance(self._total, self.ideal, self._n_steps, n_predicted, self.measure)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the samples of one model name on the logs of a reference.

    `names` has shape (rows, samples) and says which sample names the (log, step) of a row, each at most once;
    `priority` has the same shape and holds the place value within the sample's list (highest first). `status` has
    shape (logs, samples) and holds the status of each attempt; what was never attempted is "missing". `ranked` has
    that shape too and says whether the list is in order of priority.
    """

    log: Array
    step: Array
    names: Array
    priority: Array
    status: Array
    ranked: Array
    n_unreadable: int

    def ranking(self, chosen: list[int] | None = None) -> Array:
        """The priority of each row from some samples (all by default): votes, or the order of a single ranked list."""
        chosen = list(range(self.names.shape[1])) if chosen is None else chosen
        votes: Array = self.names[:, chosen].sum(axis=1).astype(np.int64)
        if len(chosen) != 1:
            return votes
        return np.where(self.ranked[self.log, chosen[0]], self.priority[:, chosen[0]], votes)

    @property
    def answered(self) -> Array:
        """Per log, whether any sample names a step."""
        named: Array = np.bincount(self.log, weights=self.names.any(axis=1), minlength=len(self.status)) > 0
        return named


def samples_by_model(predictions: pd.DataFrame, attempts: pd.DataFrame, known: Reference) -> dict[str, Samples]:
    """Split predictions by model, on the logs of a reference.

    Raises
    ------
    FaultbookError
        If a prediction belongs to no attempt.
    """
    check_attempts(predictions, attempts)
    found = {}
    for model, tries in attempts.groupby("model", sort=False, observed=True):
        part = predictions[predictions["model"] == model]
        found[str(model)] = _samples(
            part.assign(log=known.codes(part["log_id"])), tries.assign(log=known.codes(tries["log_id"])), known
        )
    return found


def attempted(predictions: pd.DataFrame, attempts: pd.DataFrame, known: Reference) -> dict[str, Samples]:
    """`samples_by_model`, if there is anything to judge.

    Raises
    ------
    FaultbookError
        If a prediction belongs to no attempt, or no model attempted an annotated log.
    """
    samples = samples_by_model(predictions, attempts, known)
    if not any((model.status != "missing").any() for model in samples.values()):
        raise FaultbookError("no attempt on an annotated log; check that both name logs alike, as in 'manual/12'")
    return samples


def _samples(part: pd.DataFrame, tries: pd.DataFrame, known: Reference) -> Samples:
    ids = np.sort(tries["sample"].unique())
    part, tries = part[part["log"] >= 0], tries[tries["log"] >= 0]
    part = part.sort_values(["log", "sample", "position"]).drop_duplicates(["log", "sample", "step"])
    log, step, _ = counted(part["log"].to_numpy(dtype=np.intp), part["step"].to_numpy(dtype=np.int64))
    row = pd.MultiIndex.from_arrays([log, step]).get_indexer(pd.MultiIndex.from_frame(part[["log", "step"]]))
    column = np.searchsorted(ids, part["sample"].to_numpy())
    priority = np.zeros((len(log), len(ids)), dtype=np.int64)
    place = part.groupby(["log", "sample"], sort=False).cumcount(ascending=False).to_numpy()
    priority[row, column] = place + 1
    cell = (tries["log"].to_numpy(), np.searchsorted(ids, tries["sample"].to_numpy()))
    status = np.full((len(known.logs), len(ids)), "missing", dtype=object)
    status[cell] = tries["status"].to_numpy(dtype=object)
    ranked = np.zeros(status.shape, dtype=bool)
    ranked[cell] = tries["ranked"].to_numpy(dtype=bool)
    return Samples(log, step, priority > 0, priority, status, ranked, int(tries["n_unreadable"].sum()))


def check_attempts(predictions: pd.DataFrame, attempts: pd.DataFrame) -> None:
    """Refuse predictions that belong to no attempt.

    Raises
    ------
    FaultbookError
        With the first of them.
    """
    key = ["log_id", "model", "sample"]
    tried = pd.MultiIndex.from_frame(attempts[key])
    listed = predictions[key].drop_duplicates()
    lost = listed[~pd.MultiIndex.from_frame(listed).isin(tried)]
    if len(lost):
        first = lost.iloc[0]
        where = f"{first['model']}, {first['log_id']}, sample {first['sample']}"
        raise FaultbookError(
            f"{len(lost)} samples have predictions and no attempt (first: {where}); add their attempts"
        )


def _described(ids: pd.Series, logs: pd.DataFrame | None) -> pd.DataFrame:
    """One row a log, in the order of ids, with what is known of it."""
    if logs is None:
        split = ids.str.extract(r"^(.*)/", expand=False).fillna("all")
        return pd.DataFrame({"log_id": ids, "split": split, "cluster": ids})
    unknown = ids[~ids.isin(logs["log_id"])]
    if len(unknown):
        raise FaultbookError(f"{len(unknown)} annotated logs are not among the logs (first: {unknown.iloc[0]})")
    known = logs.set_index("log_id").loc[ids].reset_index()
    cluster = known["question_id"].where(known["question_id"].notna(), known["log_id"])
    n_steps = known["n_steps"].to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.DataFrame({"log_id": known["log_id"], "split": known["split"], "cluster": cluster, "n_steps": n_steps})
