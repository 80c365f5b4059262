"""Whether the ranking of models depends on who consolidates and judges, and whether plain measures agree with it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from faultbook.attribution.compare import numbers_of, require_columns
from faultbook.errors import FaultbookError, short_repr
from faultbook.stats.bootstrap import Floats, as_generator
from faultbook.stats.proportion import as_count, check_level

PAIR_COLUMNS = ["configuration_a", "configuration_b", "n_models", "tau", "p", "note"]
SUMMARY_COLUMNS = [
    *("n_configurations", "n_models", "n_pairs", "n_defined"),
    *("mean_tau", "lowest", "highest", "n_p_below_0_1"),
]
AGREEMENT_COLUMNS = ["level", "measure", "r", "low", "high", "n", "n_clusters", "n_left_out", "interval", "note"]
CONSTANT, TOO_FEW_MODELS, TOO_FEW = (
    "undefined (constant)",
    "undefined (fewer than 3 models)",
    "undefined (n below 3)",
)

_MOST_ENUMERATED = 8  # models: 40,320 orders
_MOST_GRID = 170
_ALIKE = 1e-12  # relative to the size of values: they differ by rounding only
_CELLS = 2**20  # resampled counts held at a time: 8 MiB


@dataclass(frozen=True, slots=True)
class Robustness:
    """How alike configurations rank models: `pairs` has one row a pair of them, `summary` one row."""

    pairs: pd.DataFrame
    summary: pd.DataFrame


def robustness(scores: pd.DataFrame) -> Robustness:
    """Compute Kendall's τ-b between the scores of models under every pair of evaluation configurations.

    Parameters
    ----------
    scores : DataFrame
        One row a configuration and model: the columns consolidation and judge (who writes the consolidated reasons
        and who scores them), or configuration; model; score. A missing score leaves the model out of the pairs of
        that configuration.

    Returns
    -------
    Robustness
        `pairs`: configuration_a, configuration_b (in the order of first appearance), n_models (both score), tau, p
        (two-sided), note (how p was obtained, or why there is none). `summary`: n_configurations, n_models, n_pairs,
        n_defined, mean_tau, lowest, highest, n_p_below_0_1, over the pairs that are defined.

    Raises
    ------
    FaultbookError
        If a column or a name is missing, a score is no finite number, or a configuration scores a model twice.

    Notes
    -----
    MP-Bench (arXiv 2603.25001), appendix on robustness: 3 consolidators × 3 judges, 36 pairs. p is exact over all
    orders of the models: from the distribution of Kendall (1938, Biometrika 30, 81-93) without ties, by enumeration
    with ties up to 8 models, else asymptotic. The pairs share configurations and models, so they are not independent,
    and neither is the number of small p a test of its own. What τ can be at all says `tau_grid`.
    """
    table = _wide(scores)
    values = table.to_numpy()
    rows = []
    for a, b in itertools.combinations(range(len(table)), 2):
        both = ~np.isnan(values[a]) & ~np.isnan(values[b])
        rows.append((table.index[a], table.index[b], int(both.sum()), *_kendall(values[a, both], values[b, both])))
    pairs = pd.DataFrame(rows, columns=PAIR_COLUMNS).astype({"tau": "float64", "p": "float64"})
    tau = pairs["tau"].dropna()
    low_p = int((pairs["p"] < 0.1).sum())
    row = (*table.shape, len(pairs), len(tau), tau.mean(), tau.min(), tau.max(), low_p)
    return Robustness(pairs, pd.DataFrame([row], columns=SUMMARY_COLUMNS))


def tau_grid(n: int) -> pd.DataFrame:
    """List every value that Kendall's τ can have for n models without ties.

    Parameters
    ----------
    n : int
        Number of models, 2 to 170.

    Returns
    -------
    DataFrame
        One row a value, highest first: n_discordant (pairs of models in the other order), tau, probability (under
        random orders), p (exact, two-sided). Five models give τ of 1, 0.8, 0.6, …, so 0.733 is none of theirs;
        six models have it, with p = 0.056.

    Raises
    ------
    FaultbookError
        If n is out of range.

    Notes
    -----
    Kendall (1938), Biometrika 30, 81-93: of n! orders, the number with d discordant pairs grows from n − 1 by adding
    0 to n − 1 of them.
    """
    if not pd.api.types.is_integer(n) or not 2 <= n <= _MOST_GRID:
        raise FaultbookError(f"n is {n!r}; give a whole number of models from 2 to {_MOST_GRID}")
    mass = np.ones(1)
    for size in range(2, int(n) + 1):
        mass = np.convolve(mass, np.full(size, 1 / size))
    n_pairs = len(mass) - 1
    discordant = np.arange(len(mass))
    # |τ| of d equals that of n_pairs − d; whole numbers, so that equal values are equal
    distance = np.abs(n_pairs - 2 * discordant)
    tail = np.bincount(distance, weights=mass, minlength=n_pairs + 1)[::-1].cumsum()[::-1]
    tau = (n_pairs - 2 * discordant) / n_pairs
    p = np.minimum(tail[distance], 1.0)
    return pd.DataFrame({"n_discordant": discordant, "tau": tau, "probability": mass, "p": p})


def text_agreement(
    texts: pd.DataFrame,
    judge_scores: pd.Series,
    *,
    embeddings: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate a judge's scores with how close the texts are by BLEU and, where vectors are given, by cosine.

    Parameters
    ----------
    texts : DataFrame
        One row a judged item: model, model_text, human_text, and log_id where it is known.
    judge_scores : Series
        The judge's score of each row of `texts`, with the same index.
    embeddings : (array, array), optional
        Vectors of the model's and the human's texts, each of shape (len(texts), d). They are taken as given; none is
        computed here.
    level, n_resamples, seed
        Of the interval.

    Returns
    -------
    DataFrame
        Rows for the levels "item" and "model" and the measures "BLEU" and "embedding similarity": r (Pearson), low,
        high, n (items or models), n_clusters (logs), n_left_out (items without a score, a text or a direction),
        interval (how it was obtained), note (what was correlated, or why r is undefined). An item's BLEU is sacrebleu's
        sentence BLEU, a model's BLEU its corpus BLEU over its items; a model's judge score and similarity are means.

        Items of one log are dependent, so with log_id the interval of items resamples logs; without it, it is Fisher's
        z of n ≥ 4 items, which takes them as independent and is too narrow where they are not. Models have none: a
        handful of chosen models is no sample of any.

    Raises
    ------
    FaultbookError
        If a column or a name is missing, the rows do not match, or a score or vector holds what is no finite number.

    Notes
    -----
    MP-Bench (arXiv 2603.25001), appendix on robustness. BLEU: Post (2018), WMT, 186-191; its signature stands in the
    note.
    """
    items = _items(texts, judge_scores)
    measures = [_bleu(items)]
    if embeddings is not None:
        measures.append(_cosine(items, embeddings))
    rows: list[dict[str, Any]] = []
    for measure in measures:
        known = ~np.isnan(measure.of_items)
        judge, of_items, clusters = items["judge"].to_numpy()[known], measure.of_items[known], items["log"][known]
        r, reason = _pearson(judge, of_items)
        row = {"level": "item", "measure": measure.name, "r": r, "n": len(judge), "n_left_out": int((~known).sum())}
        row |= {"n_clusters": clusters.nunique() if "log_id" in texts else pd.NA, "note": reason or measure.item_note}
        low, high, interval = np.nan, np.nan, "none"
        if not reason and "log_id" in texts:
            low, high, interval = _resampled(judge, of_items, clusters.to_numpy(), level, n_resamples, seed)
        elif not reason:
            low, high, interval = _fisher(r, len(judge), level)
        rows.append(row | {"low": low, "high": high, "interval": interval})
        means = items[known].groupby("model", sort=False)["judge"].mean()
        r, reason = _pearson(means.to_numpy(), measure.of_models[means.index].to_numpy())
        row = {"level": "model", "measure": measure.name, "r": r, "low": np.nan, "high": np.nan, "n": len(means)}
        row |= {"n_left_out": int((~known).sum()), "n_clusters": pd.NA, "interval": "none"}
        rows.append(row | {"note": reason or measure.model_note})
    return pd.DataFrame(rows, columns=AGREEMENT_COLUMNS).astype({"n_clusters": "Int64"})


@dataclass(frozen=True, slots=True)
class _Closeness:
    """How close the texts of items and of models are; an item that is left out is NaN."""

    name: str
    of_items: Floats
    of_models: pd.Series
    item_note: str
    model_note: str


def _items(texts: pd.DataFrame, judge_scores: pd.Series) -> pd.DataFrame:
    """The texts, the judge's scores (NaN if missing or without texts) and a number for the log of each item."""
    require_columns(texts, ["model", "model_text", "human_text"], "texts")
    if not texts.index.equals(getattr(judge_scores, "index", None)):
        raise FaultbookError("judge_scores and texts have different rows; give a Series with the index of texts")
    if texts["model"].isna().any():
        raise FaultbookError(f"texts: {int(texts['model'].isna().sum())} rows name no model; name it")
    items = texts[["model", "model_text", "human_text"]].astype(object).reset_index(drop=True)
    present = items[["model_text", "human_text"]].notna().to_numpy()
    for column, there in zip(("model_text", "human_text"), present.T, strict=True):
        wrong = [text for text in items[column][there] if not isinstance(text, str)]
        if wrong:
            raise FaultbookError(f"texts, column '{column}': {short_repr(wrong[0])} is no text; give text")
    judge = numbers_of(judge_scores, "judge_scores")
    items["judge"] = np.where(present.all(axis=1), judge, np.nan)
    codes = pd.factorize(texts["log_id"])[0] if "log_id" in texts else np.full(len(texts), -1)
    items["log"] = np.where(codes >= 0, codes, codes.max(initial=-1) + 1 + np.arange(len(codes)))
    return items


def _bleu(items: pd.DataFrame) -> _Closeness:
    """Sentence BLEU (without orders that a short text cannot have) and corpus BLEU, against the human's text."""
    from sacrebleu.metrics.bleu import BLEU

    known = items[items["judge"].notna()]
    sentence, corpus = BLEU(effective_order=True), BLEU(force=True)
    of_items = np.full(len(items), np.nan)
    pairs = zip(known["model_text"], known["human_text"], strict=True)
    of_items[known.index] = [sentence.sentence_score(text, [human]).score for text, human in pairs]
    of_models = {
        model: corpus.corpus_score(list(part["model_text"]), [list(part["human_text"])]).score
        for model, part in known.groupby("model", sort=False)
    }
    signatures = [str(metric.get_signature()) if len(known) else "" for metric in (sentence, corpus)]
    notes = (f"sentence BLEU, {signatures[0]}", f"corpus BLEU and mean judge score, {signatures[1]}")
    return _Closeness("BLEU", of_items, pd.Series(of_models, dtype="float64"), *notes)


def _cosine(items: pd.DataFrame, embeddings: tuple[npt.ArrayLike, npt.ArrayLike]) -> _Closeness:
    """Cosine of the two vectors of each item; a vector of zeros has no direction."""
    try:
        model, human = (np.asarray(vectors, dtype=np.float64) for vectors in embeddings)
    except (TypeError, ValueError):
        raise FaultbookError("embeddings are no two arrays of numbers; give one row a text in each") from None
    if model.ndim != 2 or model.shape != human.shape or len(model) != len(items):
        shapes = f"{model.shape} and {human.shape}"
        raise FaultbookError(f"embeddings have the shapes {shapes}; give both as ({len(items)}, d), one row a text")
    if not (np.isfinite(model).all() and np.isfinite(human).all()):
        raise FaultbookError("embeddings hold values that are no finite number; mend them or leave the rows out")
    size = np.linalg.norm(model, axis=1) * np.linalg.norm(human, axis=1)
    known = (size > 0) & items["judge"].notna().to_numpy()
    cosine = np.divide((model * human).sum(axis=1), size, out=np.full(len(items), np.nan), where=known)
    of_models = items.assign(cosine=cosine)[known].groupby("model", sort=False)["cosine"].mean()
    return _Closeness("embedding similarity", cosine, of_models, "cosine", "mean cosine and mean judge score")


def _pearson(x: Floats, y: Floats) -> tuple[float, str]:
    """Pearson's r, or NaN and the reason."""
    if len(x) < 3:
        return math.nan, TOO_FEW
    if any(np.ptp(values) <= _ALIKE * np.abs(values).max() for values in (x, y)):
        return math.nan, CONSTANT
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0)), ""


def _fisher(r: float, n: int, level: float) -> tuple[float, float, str]:
    level = check_level(level)
    if n < 4 or 1 - abs(r) < _ALIKE:
        return math.nan, math.nan, "none (n below 4)" if n < 4 else "none (r is ±1)"
    half = float(stats.norm.ppf((1 + level) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), "Fisher z, items taken as independent"


def _resampled(
    x: Floats, y: Floats, clusters: npt.NDArray[Any], level: float, n_resamples: int, seed: int
) -> tuple[float, float, str]:
    """Percentile interval of r over resampled logs, from the sums that r is made of."""
    level, n_resamples, rng = check_level(level), as_count("n_resamples", n_resamples), as_generator(seed)
    codes, logs = pd.factorize(clusters)
    if len(logs) < 2:
        return math.nan, math.nan, "none (one log only)"
    x, y = ((values - values.mean()) / values.std() for values in (x, y))
    terms = np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y])
    order = np.lexsort((*terms.T, codes))  # so that the order of rows does not count
    sums = np.column_stack([np.bincount(codes[order], weights=term) for term in terms[order].T])
    sums = sums[np.lexsort(sums.T)]
    drawn = []
    for start in range(0, n_resamples, size := max(1, _CELLS // len(logs))):
        shares = np.full(len(logs), 1 / len(logs))
        totals = rng.multinomial(len(logs), shares, size=min(size, n_resamples - start)) @ sums
        n, sx, sy, sxx, syy, sxy = totals.T
        spread = np.maximum(sxx / n - (sx / n) ** 2, 0) * np.maximum(syy / n - (sy / n) ** 2, 0)
        defined = spread > _ALIKE
        drawn.append((sxy / n - sx * sy / n**2)[defined] / np.sqrt(spread[defined]))
    found = np.clip(np.concatenate(drawn), -1.0, 1.0) if drawn else np.empty(0)
    if not len(found) or np.ptp(found) <= _ALIKE:
        return math.nan, math.nan, "none (no resample differs)"
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    lost = f", {n_resamples - len(found)} of them undefined and left out" if len(found) < n_resamples else ""
    return float(low), float(high), f"percentile bootstrap of {len(logs)} logs, {n_resamples} resamples{lost}"


def _wide(scores: pd.DataFrame) -> pd.DataFrame:
    """One row a configuration, one column a model, both in the order of first appearance."""
    parts = ["configuration"] if "configuration" in scores else ["consolidation", "judge"]
    require_columns(scores, [*parts, "model", "score"], "scores")
    if scores.empty:
        raise FaultbookError("scores: no rows; give one row a configuration and model")
    if scores[[*parts, "model"]].isna().any(axis=None):
        raise FaultbookError(f"scores: a row leaves {', '.join(parts)} or model empty; name each")
    named = scores[parts].astype(str).agg(" × ".join, axis=1)
    row, configurations = pd.factorize(named)
    column, models = pd.factorize(scores["model"])
    doubled = pd.DataFrame({"row": row, "column": column}).duplicated().to_numpy()
    if doubled.any():
        first = f"{named.to_numpy()[doubled][0]}, {scores['model'].to_numpy()[doubled][0]}"
        raise FaultbookError(f"scores: {int(doubled.sum())} stand twice (first: {first}); give one, of one split")
    wide = np.full((len(configurations), len(models)), np.nan)
    wide[row, column] = numbers_of(scores["score"], "scores, column 'score'")
    return pd.DataFrame(wide, index=pd.Index(configurations), columns=pd.Index(models))


def _kendall(x: Floats, y: Floats) -> tuple[float, float, str]:
    """Kendall's τ-b, its two-sided p, and how p was obtained or why both are undefined."""
    n = len(x)
    if n < 3:
        return math.nan, math.nan, TOO_FEW_MODELS
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, math.nan, CONSTANT
    if len(np.unique(x)) == n == len(np.unique(y)) and n <= _MOST_GRID:
        found = stats.kendalltau(x, y, method="exact")
        return float(found.statistic), float(found.pvalue), "exact"
    found = stats.kendalltau(x, y, method="asymptotic")
    if n <= _MOST_ENUMERATED:
        return float(found.statistic), _enumerated_p(x, y), "exact, all orders of ties enumerated"
    return float(found.statistic), float(found.pvalue), "asymptotic"


def _enumerated_p(x: Floats, y: Floats) -> float:
    """Share of all orders of y whose concordant less discordant pairs are at least as far from 0 as observed."""
    first, second = np.triu_indices(len(x), 1)
    signs = np.sign(x[first] - x[second]).astype(np.int64)
    ranks = stats.rankdata(y, method="dense")
    orders = np.array(list(itertools.permutations(ranks)))
    totals = np.sign(orders[:, first] - orders[:, second]).astype(np.int64) @ signs
    return float(np.mean(np.abs(totals) >= abs(totals[0])))  # the first order is the given one
