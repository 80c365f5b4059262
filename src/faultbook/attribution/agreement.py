"""How far annotators agree on which steps failed: pooled, by log, and by pair of annotators."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from faultbook.attribution.judgements import FLAGGED, NOT_FLAGGED, Judgements, judgements
from faultbook.stats.agreement import NO_VARIATION
from faultbook.stats.bootstrap import Estimate, Floats
from faultbook.stats.coincidences import (
    alpha_of_coincidences,
    bootstrap_counts,
    coincidences_of_binary,
    fleiss_of_coincidences,
    jaccard_of_counts,
    kappa_of_tables,
    positive_of_counts,
    raw_of_counts,
)

ONE_ANNOTATOR = "undefined (one annotator)"
NO_COMMON_STEP = "undefined (no step judged by both)"
NO_SHARED_STEP = "undefined (no step judged by two)"

POOLED_COLUMNS = ["statistic", "pair", "value", "low", "high", "n_logs", "n_steps", "note"]
_OVERALL = ["raw_agreement", "positive_agreement", "jaccard", "fleiss_kappa", "krippendorff_alpha"]
_OF_PAIRS = ["raw_agreement", "positive_agreement", "jaccard", "cohen_kappa"]
PER_LOG_COLUMNS = ["log_id", "n_steps", *_OVERALL, "note"]
PER_LOG_PAIR_COLUMNS = ["log_id", "pair", "n_steps", *_OF_PAIRS, "note"]

_Statistic = Callable[[Floats], Floats]


# ---- statistics of summed counts, shape (…, counts) → (…) ----------------------------------------------------------


def _symmetric(sums: Floats) -> Floats:
    """Coincidence matrices from their cells 00, 01 and 11."""
    return sums[..., [0, 1, 1, 2]].reshape(*sums.shape[:-1], 2, 2)


def _raw(sums: Floats) -> Floats:
    """Of pairs of judgements with two flags, one, none."""
    return raw_of_counts(sums[..., 0] + sums[..., 2], sums.sum(axis=-1))


def _positive(sums: Floats) -> Floats:
    """Of pairs of judgements with two flags, one."""
    return positive_of_counts(sums[..., 0], sums[..., 1])


def _jaccard(sums: Floats) -> Floats:
    """Of pairs of judgements with two flags, one."""
    return jaccard_of_counts(sums[..., 0], sums[..., 1])


def _cohen(sums: Floats) -> Floats:
    """Of steps flagged by both, the one, the other, neither."""
    return kappa_of_tables(sums.reshape(*sums.shape[:-1], 2, 2))


def _fleiss(sums: Floats) -> Floats:
    return fleiss_of_coincidences(_symmetric(sums))


def _alpha(sums: Floats) -> Floats:
    return alpha_of_coincidences(_symmetric(sums))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Statistics of agreement.

    `pooled` has a row for each statistic over all annotators (pair "") and for each pair ("a, b"): statistic, pair,
    value, low, high, n_logs, n_steps, note. `per_log` has a row a log: log_id, n_steps, one column a statistic, note.
    `per_log_pairs` has a row for each log and pair that judged a step of it. A note says why a value is undefined; a
    value is never filled in. Intervals are percentiles of `n_resamples` resamples of logs, at `level`.
    """

    pooled: pd.DataFrame
    per_log: pd.DataFrame
    per_log_pairs: pd.DataFrame
    level: float
    n_resamples: int

    def summary_frame(self) -> pd.DataFrame:
        """The pooled statistics, one row each."""
        return self.pooled.copy()


def agreement(annotations: pd.DataFrame, *, level: float = 0.95, n_resamples: int = 2_000, seed: int = 0) -> Agreement:
    """Measure how far annotators agree on which steps are failures.

    Parameters
    ----------
    annotations : DataFrame
        Table `Annotations`, with a row for every step that an annotator judged, flagged or not. A step without a row of
        an annotator is missing for them, never "not flagged".
    level : float
        Confidence level.
    n_resamples, seed : int
        Of the percentile bootstrap, which resamples whole logs.

    Returns
    -------
    Agreement
        raw_agreement: share of equal judgements; near 1 for any annotators if flags are rare. positive_agreement: Dice
        of the flagged steps. jaccard: flagged by both among flagged by either. cohen_kappa: of a pair. fleiss_kappa:
        over the steps with as many judgements as most steps have (the note says how many have another number, and are
        left out). krippendorff_alpha: nominal, with missing judgements. Over all annotators, the first three pool all
        pairs. Where every judgement is the same, everything but raw agreement is undefined (positive agreement and
        Jaccard are 1 where every step is flagged by everybody).

    Raises
    ------
    FaultbookError
        If the table cannot be used (see `judgements`).
    ValueError
        If a setting is out of its range.

    Notes
    -----
    MP-Bench reports shares of votes and the largest raw disagreement of a pair, and no coefficient that corrects for
    chance. Beyond that see `stats.agreement`.
    """
    known = judgements(annotations)
    bootstrap = partial(bootstrap_counts, level=level, n_resamples=n_resamples, seed=seed)
    pooled, per_log = _overall(known, bootstrap)
    names = list(itertools.combinations(range(len(known.annotators)), 2))
    parts = [_pair(known, first, second, bootstrap) for first, second in names]
    by_pair = [frame for _, frame in parts if len(frame)]
    return Agreement(
        pooled=pd.DataFrame(pooled + [row for rows, _ in parts for row in rows], columns=POOLED_COLUMNS),
        per_log=per_log,
        per_log_pairs=_sorted_pairs(by_pair, known),
        level=level,
        n_resamples=n_resamples,
    )


def pair_counts(known: Judgements, first: int, second: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Steps of each log that two annotators both judged: flagged by both, the first, the second, neither.

    Returns
    -------
    (counts, logs)
        Counts of shape (logs with such a step, 4), and the positions of these logs.
    """
    a, b = known.ratings[:, first], known.ratings[:, second]
    cells = [(a == x) & (b == y) for x, y in itertools.product((FLAGGED, NOT_FLAGGED), repeat=2)]
    counts: Floats = known.per_log(cells)
    logs = np.flatnonzero(counts.sum(axis=1) > 0)
    return counts[logs], logs


def in_one_direction(counts: Floats) -> Floats:
    """Counts of a pair with the annotators in the order that puts the larger sorted counts first.

    Which annotator comes first must not show in the draws of the bootstrap; what is counted is symmetric in the two.
    """
    other = counts[:, [0, 2, 1, 3]]
    ordered = [np.array(table)[np.lexsort(table.T[::-1])] for table in (counts, other)]
    differing = np.flatnonzero(ordered[0] != ordered[1])
    if not len(differing):
        return counts
    return counts if ordered[0].flat[differing[0]] > ordered[1].flat[differing[0]] else other


def unordered(counts: Floats) -> Floats:
    """Counts of a pair without regard to order: flagged by both, by one, by neither."""
    return np.column_stack([counts[:, 0], counts[:, 1] + counts[:, 2], counts[:, 3]])


def _overall(known: Judgements, bootstrap: Callable[..., Estimate]) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Rows over all annotators, pooled and by log."""
    votes, judged = known.votes, known.judged
    shared = judged > 1
    sizes = np.bincount(judged[shared], minlength=1)
    usual = len(sizes) - 1 - int(sizes[::-1].argmax())  # the larger of two that are equally frequent
    alike = shared & (judged == usual)
    others = judged - votes
    pairs = [votes * (votes - 1) / 2, votes * others, others * (others - 1) / 2]
    matrices = coincidences_of_binary(votes, judged)
    cells = [matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]]
    counts = known.per_log([*pairs, *cells, *(cell * alike for cell in cells), shared, alike])
    statistics: dict[str, tuple[_Statistic, slice, int]] = {
        "raw_agreement": (_raw, slice(0, 3), 9),
        "positive_agreement": (_positive, slice(0, 2), 9),
        "jaccard": (_jaccard, slice(0, 2), 9),
        "fleiss_kappa": (_fleiss, slice(6, 9), 10),
        "krippendorff_alpha": (_alpha, slice(3, 6), 9),
    }
    reason = ONE_ANNOTATOR if len(known.annotators) == 1 else NO_SHARED_STEP
    left_out = int((shared & ~alike).sum())
    usual_note = f"steps with {usual} judgements; {left_out} with another number left out" if left_out else ""
    rows = []
    for name, (statistic, columns, n_column) in statistics.items():
        there = counts[counts[:, n_column] > 0]
        note = usual_note if name == "fleiss_kappa" else ""
        rows.append(_row(name, "", there[:, columns], statistic, there[:, n_column], bootstrap, reason, note))
    by_log = {name: statistic(counts[:, columns]) for name, (statistic, columns, _) in statistics.items()}
    return rows, _per_log(known, by_log, counts[:, 9:], usual)


def _per_log(known: Judgements, by_log: dict[str, Floats], n_shared: Floats, usual: int) -> pd.DataFrame:
    """One row a log; `n_shared` counts its steps with two judgements or more, and with `usual` ones."""
    n_steps = np.bincount(known.log, minlength=len(known.logs))
    n_annotators = (
        known.per_log([known.ratings[:, a] >= 0 for a in range(len(known.annotators))]).astype(bool).sum(axis=1)
    )
    alpha, fleiss = np.isnan(by_log["krippendorff_alpha"]), np.isnan(by_log["fleiss_kappa"])
    reasons = {
        ONE_ANNOTATOR: n_annotators == 1,
        NO_SHARED_STEP: n_shared[:, 0] == 0,
        NO_VARIATION: alpha,
        f"Fleiss' kappa: undefined (no step with {usual} judgements)": n_shared[:, 1] == 0,
        f"Fleiss' kappa: undefined (no variation in steps with {usual} judgements)": fleiss,
    }
    note = np.select(list(reasons.values()), list(reasons), default="")
    frame = pd.DataFrame({"log_id": known.logs, "n_steps": n_steps, **by_log, "note": note})
    return frame.astype({"log_id": "str", "note": "str"})[PER_LOG_COLUMNS]


def _pair(
    known: Judgements, first: int, second: int, bootstrap: Callable[..., Estimate]
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Rows of one pair, pooled and by log."""
    pair = f"{known.annotators[first]}, {known.annotators[second]}"
    counts, logs = pair_counts(known, first, second)
    counted = unordered(counts)
    statistics: dict[str, tuple[_Statistic, Floats]] = {
        "raw_agreement": (_raw, counted),
        "positive_agreement": (_positive, counted[:, :2]),
        "jaccard": (_jaccard, counted[:, :2]),
        "cohen_kappa": (_cohen, in_one_direction(counts)),
    }
    n_steps = counts.sum(axis=1)
    rows = [_row(n, pair, c, statistic, n_steps, bootstrap, NO_COMMON_STEP) for n, (statistic, c) in statistics.items()]
    by_log = {name: statistic(c) for name, (statistic, c) in statistics.items()}
    frame = pd.DataFrame({"log_id": known.logs[logs], "pair": pair, "n_steps": n_steps.astype(np.int64), **by_log})
    frame["note"] = np.where(frame["cohen_kappa"].isna(), NO_VARIATION, "")
    return rows, frame


def _row(
    statistic: str,
    pair: str,
    counts: Floats,
    function: _Statistic,
    n_steps: Floats,
    bootstrap: Callable[..., Estimate],
    without: str,
    note: str = "",
) -> dict[str, Any]:
    """One pooled row; `without` is why there is no value if there is no count at all."""
    n = int(n_steps.sum())
    estimate = bootstrap(counts, function, n=n)
    undefined = np.isnan(estimate.estimate)
    reason = (NO_VARIATION if n else without) if undefined else ""
    row = {"statistic": statistic, "pair": pair, "value": estimate.estimate, "low": estimate.low, "high": estimate.high}
    return row | {"n_logs": len(counts), "n_steps": n, "note": "; ".join(part for part in (reason, note) if part)}


def _sorted_pairs(frames: list[pd.DataFrame], known: Judgements) -> pd.DataFrame:
    """All pairs of a log together, logs in their order."""
    if not frames:
        empty = pd.DataFrame(columns=PER_LOG_PAIR_COLUMNS)
        numbers = dict.fromkeys(_OF_PAIRS, "float64") | {"n_steps": "int64"}
        return empty.astype(numbers | dict.fromkeys(("log_id", "pair", "note"), "str"))
    together = pd.concat(frames, ignore_index=True)
    order = np.argsort(pd.Index(known.logs).get_indexer(pd.Index(together["log_id"])), kind="stable")
    frame = together.iloc[order].reset_index(drop=True)
    return frame.astype(dict.fromkeys(("log_id", "pair", "note"), "str"))[PER_LOG_PAIR_COLUMNS]
