"""Answers that need no reading of the log, to stand beside every model: what a score is worth shows against these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from faultbook.attribution.ndcg import Array, Gain, Measure, Relevance
from faultbook.attribution.tally import Reference, Scorer, reference
from faultbook.errors import FaultbookError
from faultbook.tables import Attempts, Predictions, typed

PRIOR = "baseline: position prior"
CONSTANT = "baseline: constant list"
SPEAKER = "baseline: most frequent speaker"
SAMPLE_SUBMISSION = (0, 1, 2)  # the constant list that MP-Bench's leaderboard ships as its sample submission


def baselines(
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    steps: pd.DataFrame | None = None,
    *,
    constant: Sequence[int] = SAMPLE_SUBMISSION,
    n_predicted: int = 5,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make the predictions of baselines on every annotated log.

    Parameters
    ----------
    annotations, logs : DataFrame
        As for `score`.
    steps : DataFrame, optional
        Table `Steps`; the baseline of the most frequent speaker needs it and is left out without it.
    constant : sequence of int
        The list that is given for every log.
    n_predicted : int
        Longest list of the other two.

    Returns
    -------
    (predictions, attempts)
        Tables `Predictions` and `Attempts`, one ranked list a baseline and log. The position prior ranks the steps by
        the mean number of votes that the same step has in all other logs of the split that are long enough
        (leave-one-log-out; steps that nobody flagged elsewhere are not named). The most frequent speaker names the
        first steps of whoever speaks most often, the earlier one among equals.

    Raises
    ------
    FaultbookError
        If nothing is annotated, or `n_predicted` or a step of `constant` is not a whole number in range.
    """
    if n_predicted < 1 or any(type(step) is not int or step < 0 for step in constant):
        raise FaultbookError(f"n_predicted is {n_predicted} and constant {tuple(constant)}; give 1 or more, and steps")
    known = reference(annotations, logs)
    parts = [_ranked(PRIOR, known, *_prior(known, n_predicted)), _ranked(CONSTANT, known, *_constant(known, constant))]
    if steps is not None and not steps.empty:
        parts.append(_ranked(SPEAKER, known, *_speaker(known, steps, n_predicted)))
    predictions = pd.concat([part[0] for part in parts], ignore_index=True)
    return predictions, pd.concat([part[1] for part in parts], ignore_index=True)


def with_baselines(
    predictions: pd.DataFrame,
    attempts: pd.DataFrame,
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    steps: pd.DataFrame | None = None,
    *,
    constant: Sequence[int] = SAMPLE_SUBMISSION,
    n_predicted: int = 5,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add the baselines to predictions and attempts, so that no model is shown without them; see `baselines`."""
    more = baselines(annotations, logs, steps, constant=constant, n_predicted=n_predicted)
    joined = [pd.concat(pair, ignore_index=True) for pair in zip((predictions, attempts), more, strict=True)]
    return joined[0], joined[1]


def random_scores(
    annotations: pd.DataFrame,
    logs: pd.DataFrame | None = None,
    *,
    n_predicted: int | None = None,
    k: int = 5,
    relevance: Relevance = "reverse_rank",
    gain: Gain = "exp",
) -> pd.DataFrame:
    """Expect what distinct random steps score, in closed form; one row a split.

    Parameters
    ----------
    annotations, logs : DataFrame
        As for `score`.
    n_predicted : int, optional
        Steps that are drawn; every step of the log by default. The published row copies each model's list lengths.
    k, relevance, gain
        See `random_ndcg`.

    Returns
    -------
    DataFrame
        split, n_logs (with a flagged step and of known length), mean_steps, mean_flagged, ndcg_at_k, ndcg_full.
    """
    known = reference(annotations, logs)
    n_steps = known.logs["n_steps"].to_numpy(dtype=np.float64)
    drawn = n_steps if n_predicted is None else np.full(len(n_steps), float(n_predicted))
    frame = known.logs.copy()
    for measure in (Measure(k, relevance, gain), Measure(None, relevance, gain)):
        frame[measure.column] = Scorer(known, measure).chance(drawn)
    judged = frame[frame[f"ndcg_at_{k}"].notna()].groupby("split", sort=False)
    counts = judged.agg(n_logs=("log_id", "size"), mean_steps=("n_steps", "mean"), mean_flagged=("n_flagged", "mean"))
    return counts.join(judged[[f"ndcg_at_{k}", "ndcg_full"]].mean()).reset_index()


def _prior(known: Reference, n_predicted: int) -> tuple[Array, Array]:
    """The (log, step) that are named, in order of priority within each log."""
    split = pd.factorize(known.logs["split"])[0]
    n_steps = known.logs["n_steps"].to_numpy(dtype=np.float64)
    # A log of unknown length has room for any step: its own labels must not tell how long it is.
    length = np.where(np.isfinite(n_steps), n_steps, np.inf)
    inside = known.step < length[known.log]  # a label outside its log says nothing of place
    logs, named = [], []
    for code in range(split.max() + 1):
        members = np.flatnonzero(split == code)
        here = inside & (split[known.log] == code)
        steps, place = np.unique(known.step[here], return_inverse=True)
        given = known.votes[here]
        votes = np.bincount(place, weights=given, minlength=len(steps))
        present = len(members) - np.searchsorted(np.sort(length[members]), steps, side="right")
        starts, ends = (np.searchsorted(known.log[here], members, side=side) for side in ("left", "right"))
        for log, start, end in zip(members, starts, ends, strict=True):
            others = votes.copy()
            others[place[start:end]] -= given[start:end]
            rate = np.where(steps < length[log], others / np.maximum(present - 1, 1), 0.0)
            order = np.argsort(-rate, kind="stable")[:n_predicted]
            named.append(steps[order[rate[order] > 0]])
            logs.append(np.full(len(named[-1]), log))
    return np.concatenate(logs), np.concatenate(named)


def _constant(known: Reference, constant: Sequence[int]) -> tuple[Array, Array]:
    listed = np.array(list(dict.fromkeys(constant)), dtype=np.int64)
    return np.repeat(np.arange(len(known.logs)), len(listed)), np.tile(listed, len(known.logs))


def _speaker(known: Reference, steps: pd.DataFrame, n_predicted: int) -> tuple[Array, Array]:
    spoken = steps[steps["agent"].notna()].assign(log=lambda frame: known.codes(frame["log_id"]))
    spoken = spoken[spoken["log"] >= 0].sort_values(["log", "step"], kind="stable")
    turns = spoken.groupby(["log", "agent"], sort=False)["step"].agg(["size", "min"]).reset_index()
    most = turns.sort_values(["log", "size", "min"], ascending=[True, False, True]).drop_duplicates("log")
    own = spoken.merge(most[["log", "agent"]], on=["log", "agent"])
    own = own.sort_values(["log", "step"]).groupby("log", sort=False).head(n_predicted)
    return own["log"].to_numpy(), own["step"].to_numpy()


def _ranked(model: str, known: Reference, log: Array, step: Array) -> tuple[pd.DataFrame, pd.DataFrame]:
    ids = known.logs["log_id"].to_numpy()
    named = pd.DataFrame({"log_id": ids[log], "step": step})
    named["position"] = named.groupby("log_id", sort=False).cumcount()
    rows = named.assign(model=model, sample=0, agent=None, reason=None, ideal_action=None)
    replied = np.bincount(log, minlength=len(ids)) > 0
    tries = pd.DataFrame({"log_id": ids, "model": model, "sample": 0, "ranked": True, "n_unreadable": 0})
    tries["status"] = np.where(replied, "ok", "abstained")
    return typed(rows, Predictions), typed(tries, Attempts)
