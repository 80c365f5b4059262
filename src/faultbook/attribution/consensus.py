"""Consensus: how many annotators flag a step, which steps all of them flag, and which pair differs most."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from faultbook.attribution.agreement import pair_counts, unordered
from faultbook.attribution.judgements import Judgements, judgements
from faultbook.stats.bootstrap import Floats, cluster_bootstrap
from faultbook.stats.coincidences import bootstrap_counts, raw_of_counts

STEP_COLUMNS = [
    *("log_id", "step", "votes", "n_annotators", "consensus_rate", "rank", "rank_tied", "perspective"),
]
SHARE_COLUMNS = ["n_annotators", "flagged_by", "votes", "share", "low", "high", "count", "n_steps", "n_logs"]
_OF_FLAGGED = ("disagreement_of_flagged", "low_of_flagged", "high_of_flagged", "n_flagged_by_any")
PAIR_COLUMNS = [
    *("annotator_a", "annotator_b", "disagreement", "low", "high", "n_flagged_by_either"),
    *_OF_FLAGGED,
    *("raw_disagreement", "raw_low", "raw_high", "n_steps", "n_logs"),
]
_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Steps that one of two annotators flags and the other does not, among the `n_steps` that either flags."""

    annotator_a: str
    annotator_b: str
    value: float
    low: float
    high: float
    n_steps: int


@dataclass(frozen=True, slots=True)
class Consensus:
    """What several annotators say together. Every interval resamples logs, at `level`.

    Attributes
    ----------
    steps : DataFrame
        Steps with at least one vote, by log and step: log_id, step, votes, n_annotators (who judged the step),
        consensus_rate (votes / n_annotators), rank (1-based; more votes first, then the earlier step, as the code of
        MP-Bench sorts), rank_tied (equal votes share the best rank), perspective: "invariant" if all who judged the
        step flag it, "dependent" if only some do, missing if one annotator alone judged it.
    shares : DataFrame
        Of the n_steps steps that n_annotators judged and at least one flagged, the share that k of them flag:
        n_annotators, flagged_by ("all", "two", "one", …), votes (k), share, low, high, count (steps with k votes),
        n_steps, n_logs. Steps judged by another number of annotators have rows of their own.
    pairs : DataFrame
        Each pair of annotators, over the steps that both judged. `disagreement` is 1 − Jaccard: flagged by one only,
        among flagged by either. `disagreement_of_flagged` takes all steps that any annotator flags as the whole;
        `raw_disagreement` all steps. Each with its bounds and number of steps; NaN where the whole is empty.
    """

    steps: pd.DataFrame
    shares: pd.DataFrame
    pairs: pd.DataFrame
    level: float

    @property
    def highest_disagreement(self) -> Disagreement | None:
        """The pair with the highest `disagreement`, which as a maximum is biased upwards; None if no pair has one."""
        defined = self.pairs[self.pairs["disagreement"].notna()]
        if defined.empty:
            return None
        row = defined.iloc[int(defined["disagreement"].to_numpy().argmax())]
        names = str(row["annotator_a"]), str(row["annotator_b"])
        numbers = float(row["disagreement"]), float(row["low"]), float(row["high"])
        return Disagreement(*names, *numbers, int(row["n_flagged_by_either"]))

    def summary_frame(self) -> pd.DataFrame:
        """The shares of flagged steps by number of votes."""
        return self.shares.copy()


def consensus(annotations: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0) -> Consensus:
    """Count votes on steps and rank the steps by them.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`, with a row for every step that an annotator judged, flagged or not: with flagged rows
        alone, every step would look unanimous.
    level : float
        Confidence level.
    n_resamples, seed : int
        Of the percentile bootstrap, which resamples whole logs.

    Returns
    -------
    Consensus

    Raises
    ------
    FaultbookError
        If the table cannot be used (see `judgements`).
    ValueError
        If a setting is out of its range.

    Notes
    -----
    MP-Bench (arXiv 2603.25001), sections 4.1.5 and 4.3: a step counts if at least one annotator flags it; its consensus
    rate ranks it. The published largest pairwise disagreement does not state its whole. If one, two and three of three
    annotators flag shares s₁, s₂ and s₃ of the flagged steps, 1 − Jaccard of the three pairs averages
    2 (s₁ + s₂) / (3 − s₁), weighted by their steps, and `disagreement_of_flagged` averages 2 (s₁ + s₂) / 3.
    """
    known = judgements(annotations)
    flagged = _flagged(known)
    shares = _shares(flagged, level, n_resamples, seed)
    return Consensus(_steps(known, flagged), shares, _pairs(known, level, n_resamples, seed), level)


def _flagged(known: Judgements) -> pd.DataFrame:
    """Steps with a vote: position of the log, step, votes, n_annotators."""
    votes, judged = known.votes, known.judged
    there = votes > 0
    columns = {"log": known.log, "step": known.step, "votes": votes, "n_annotators": judged}
    return pd.DataFrame({name: column[there] for name, column in columns.items()})


def _steps(known: Judgements, flagged: pd.DataFrame) -> pd.DataFrame:
    log, step, votes = (flagged[name].to_numpy() for name in ("log", "step", "votes"))
    order = np.lexsort((step, -votes, log))
    place = np.arange(len(order))
    new_log = np.ones(len(order), dtype=bool)
    new_log[1:] = log[order][1:] != log[order][:-1]
    new_votes = new_log.copy()
    new_votes[1:] |= votes[order][1:] != votes[order][:-1]
    start = np.maximum.accumulate(np.where(new_log, place, 0))
    first_alike = np.maximum.accumulate(np.where(new_votes, place, 0))
    frame = flagged.copy()
    frame["log_id"] = known.logs[log]
    frame["consensus_rate"] = frame["votes"] / frame["n_annotators"]
    for name, ranks in (("rank", place), ("rank_tied", first_alike)):
        column = np.empty(len(order), dtype=np.int64)
        column[order] = ranks - start + 1
        frame[name] = column
    unanimous = (frame["votes"] == frame["n_annotators"]).map({True: "invariant", False: "dependent"}).astype("str")
    frame["perspective"] = unanimous.where(frame["n_annotators"] > 1)
    return frame.astype({"log_id": "str"})[STEP_COLUMNS]


def _shares(flagged: pd.DataFrame, level: float, n_resamples: int, seed: int) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for n_annotators, part in flagged.groupby("n_annotators", sort=True):
        for votes in range(int(str(n_annotators)), 0, -1):
            is_so = part["votes"] == votes
            e = cluster_bootstrap(is_so, part["log"], level=level, n_resamples=n_resamples, seed=seed)
            rows.append(
                {
                    "n_annotators": n_annotators,
                    "flagged_by": "all" if votes == n_annotators else number_word(votes),
                    "votes": votes,
                    "share": e.estimate,
                    "low": e.low,
                    "high": e.high,
                    "count": int(is_so.sum()),
                    "n_steps": len(part),
                    "n_logs": e.n_clusters,
                }
            )
    counts = dict.fromkeys(("n_annotators", "votes", "count", "n_steps", "n_logs"), "int64")
    numbers = dict.fromkeys(("share", "low", "high"), "float64")
    return pd.DataFrame(rows, columns=SHARE_COLUMNS).astype({**counts, **numbers, "flagged_by": "str"})


def number_word(number: int) -> str:
    """A number in words up to ten, in figures beyond."""
    return _WORDS[number] if number < len(_WORDS) else str(number)


def _pairs(known: Judgements, level: float, n_resamples: int, seed: int) -> pd.DataFrame:
    bootstrap = partial(bootstrap_counts, level=level, n_resamples=n_resamples, seed=seed)

    def measured(one: Floats, rest: Floats, names: tuple[str, str, str, str]) -> dict[str, float]:
        """Steps that one of the two flags, as a share of them and the rest."""
        n = int((one + rest).sum())
        e = bootstrap(np.column_stack([rest, one]), _disagreement, n=n)
        return dict(zip(names, (e.estimate, e.low, e.high, n), strict=True))

    rows: list[dict[str, Any]] = []
    for first, second in itertools.combinations(range(len(known.annotators)), 2):
        counts, logs = pair_counts(known, first, second)
        both, one, neither = unordered(counts).T
        judged_by_both = (known.ratings[:, [first, second]] >= 0).all(axis=1)
        flagged_by_any = known.per_log([judged_by_both & (known.votes > 0)])[logs, 0]
        row: dict[str, Any] = {"annotator_a": known.annotators[first], "annotator_b": known.annotators[second]}
        row |= measured(one, both, ("disagreement", "low", "high", "n_flagged_by_either"))
        row |= measured(one, flagged_by_any - one, _OF_FLAGGED)
        row |= measured(one, both + neither, ("raw_disagreement", "raw_low", "raw_high", "n_steps"))
        rows.append(row | {"n_logs": len(counts)})
    frame = pd.DataFrame(rows, columns=PAIR_COLUMNS)
    numbers = [name for name in PAIR_COLUMNS if not name.startswith(("annotator", "n_"))]
    counted = [name for name in PAIR_COLUMNS if name.startswith("n_")]
    return frame.astype(dict.fromkeys(numbers, "float64") | dict.fromkeys(counted, "int64"))


def _disagreement(sums: Floats) -> Floats:
    """The share of the steps that one of the two alone flags, from the number of the others and of these."""
    return raw_of_counts(sums[..., 1], sums.sum(axis=-1))
