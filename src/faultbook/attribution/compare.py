"""Which models differ: pairs on the logs they share, resampled by question, and groups that cannot be told apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.stats.multitest import multipletests

from faultbook.errors import FaultbookError, short_repr
from faultbook.stats.bootstrap import Estimate, Floats, cluster_bootstrap
from faultbook.stats.paired import sign_flip

PAIR_COLUMNS = [
    *("model_a", "model_b", "n_logs", "n_clusters", "difference", "low", "high"),
    *("p", "p_holm", "separable", "test"),
]
GROUP_COLUMNS = ["model", "mean", "n_logs", "group"]

_QUESTION = "question_id"
_ALIKE = 1e-12  # differences of equal values that were summed in another order


@dataclass(frozen=True, slots=True)
class Comparison:
    """Models compared on one value.

    `pairs` has one row a pair of models, `groups` one row a model, best first. `cluster` names what was resampled.
    """

    pairs: pd.DataFrame
    groups: pd.DataFrame
    value: str
    cluster: str
    level: float


def compare_models(
    scores: pd.DataFrame,
    *,
    value: str = "ndcg",
    cluster: str = _QUESTION,
    level: float = 0.95,
    n_resamples: int = 10_000,
    n_flips: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of models on the logs that both are scored on.

    Parameters
    ----------
    scores : DataFrame
        One row a model and log: model, log_id, the column `value`, and the column `cluster`. A missing value leaves
        the log out of the pairs of that model. Without question_id the column "cluster" (of `Scores.per_log`) stands
        for it; a log whose cluster is missing, or any log of a table that has neither, is a cluster of its own.
    value : str
        The score to compare, such as "ndcg".
    cluster : str
        What is independent: logs of one question are not.
    level : float
        Confidence level; a pair is separable if its Holm-adjusted p is below 1 − level.
    n_resamples : int
        Of the percentile bootstrap of the paired differences over clusters.
    n_flips : int
        Random sign patterns of the test on cluster sums, where an exact p is out of reach.
    seed : int
        Source of randomness, the same for each pair.

    Returns
    -------
    Comparison
        `pairs`: model_a, model_b, n_logs, n_clusters, difference (a − b, in units of the value), low, high, p, p_holm,
        separable, test (how p was obtained, or why there is none). Pairs stand in the order in which models first
        appear. `groups`: model, mean and n_logs (all logs with a value, which may be more than a pair has), group:
        models that share a letter are not separable, and models that are not separable share one.

    Raises
    ------
    FaultbookError
        If a column or the model's name is missing, a model has a log twice, a value is no finite number, or a log
        stands in two clusters.

    Notes
    -----
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70, over the pairs that can be tested. The letters are a
    compact letter display (Piepho 2004, Journal of Computational and Graphical Statistics 13, 456-466): here each
    letter is a maximal set of models no two of which are separable, and sets are added until each inseparable pair is
    in one. Not separable does not mean equal.
    """
    if cluster == _QUESTION and cluster not in scores:
        cluster = "cluster" if "cluster" in scores else "log_id"
    require_columns(scores, ["model", "log_id", value, cluster], "scores")
    table = _table(scores, value)
    clusters = _clusters(scores, cluster, table.index)
    bootstrap = partial(cluster_bootstrap, level=level, n_resamples=n_resamples, seed=seed)
    flip = partial(_flipped, n_flips=n_flips, seed=seed)
    rows = [_pair(table, clusters, a, b, bootstrap, flip) for a, b in itertools.combinations(table.columns, 2)]
    pairs = pd.DataFrame(rows, columns=PAIR_COLUMNS)
    pairs = pairs.astype(dict.fromkeys(("difference", "low", "high", "p", "p_holm"), "float64"))
    tested = pairs["p"].notna()
    if tested.any():
        pairs.loc[tested, "p_holm"] = multipletests(pairs.loc[tested, "p"], method="holm")[1]
    pairs["separable"] = pairs["p_holm"] < round(1 - level, 12)  # 1 - 0.95 is above 0.05 in binary
    return Comparison(pairs, _groups(table, pairs), value, cluster, level)


def letter_groups(models: Sequence[str], separable: set[frozenset[str]]) -> dict[str, str]:
    """Give letters to models so that two share one exactly if they are not separable.

    Parameters
    ----------
    models : sequence of str
        In the order in which letters are to appear, usually best first.
    separable : set of frozenset
        The pairs that are separable.

    Returns
    -------
    dict of str to str
        The letters of each model, "ab"; with more than 26 sets they are parted by spaces, "z aa".

    Notes
    -----
    A set grows from the first pair that no set holds yet, by each model in order that fits; so there are at most as
    many sets as pairs, where all maximal sets could be exponentially many.
    """
    sets: list[list[str]] = []
    held: set[frozenset[str]] = set()
    for first, second in itertools.combinations(models, 2):
        pair = frozenset((first, second))
        if pair in separable or pair in held:
            continue
        members = [first, second]
        for model in models:
            if model not in members and not any(frozenset((model, other)) in separable for other in members):
                members.append(model)
        held |= {frozenset(couple) for couple in itertools.combinations(members, 2)}
        sets.append(members)
    sets += [[model] for model in models if not any(model in members for members in sets)]
    place = {model: number for number, model in enumerate(models)}
    sets.sort(key=lambda members: sorted(place[model] for model in members))
    joint = "" if len(sets) <= 26 else " "
    return {
        model: joint.join(_letter(number) for number, members in enumerate(sets) if model in members)
        for model in models
    }


def require_columns(frame: pd.DataFrame, columns: Sequence[str], table: str) -> None:
    """Refuse a table that lacks columns.

    Raises
    ------
    FaultbookError
        With the names of the missing columns and of those found.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        found = ", ".join(map(str, frame.columns)) or "none"
        raise FaultbookError(f"{table}: columns missing: {', '.join(missing)} (found {found})")


def _table(scores: pd.DataFrame, value: str) -> pd.DataFrame:
    """One row a log, one column a model in the order of first appearance; NaN where there is no value."""
    if scores.empty:
        raise FaultbookError("scores: no rows; give one row a model and log")
    key = scores[["model", "log_id"]]
    if key.isna().any(axis=None):
        raise FaultbookError(f"scores: {int(key.isna().any(axis=1).sum())} rows name no model or no log; name both")
    doubled = key[key.duplicated()]
    if len(doubled):
        first = doubled.iloc[0]
        where = f"first: {first['model']}, {first['log_id']}"
        raise FaultbookError(f"scores: {len(doubled)} logs stand twice for a model ({where}); give one value a log")
    numbers = numbers_of(scores[value], f"scores, column '{value}'")
    log, logs = pd.factorize(key["log_id"], sort=True)
    column, models = pd.factorize(key["model"])
    wide = np.full((len(logs), len(models)), np.nan)
    wide[log, column] = numbers
    return pd.DataFrame(wide, index=pd.Index(logs), columns=pd.Index(models))


def numbers_of(column: pd.Series, where: str) -> Floats:
    """The numbers of a column, NaN where missing.

    Raises
    ------
    FaultbookError
        If a value is infinite or no number.
    """
    numbers: Floats = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = (column.notna().to_numpy() & np.isnan(numbers)) | np.isinf(numbers)
    if wrong.any():
        first = short_repr(column.to_numpy()[wrong][0])
        raise FaultbookError(
            f"{where}: {int(wrong.sum())} values are no finite number (first: {first}); leave them out"
        )
    return numbers


def _clusters(scores: pd.DataFrame, cluster: str, logs: pd.Index) -> npt.NDArray[np.int64]:
    """A number for the cluster of each log; a log whose cluster is missing is one of its own."""
    if cluster == "log_id":
        return np.arange(len(logs))
    known = scores[["log_id", cluster]].dropna().drop_duplicates()
    doubled = known[known["log_id"].duplicated()]
    if len(doubled):
        raise FaultbookError(f"scores: log {doubled.iloc[0]['log_id']} stands in two clusters of '{cluster}'; mend one")
    codes, _ = pd.factorize(known.set_index("log_id")[cluster].reindex(logs))
    return np.where(codes >= 0, codes, codes.max(initial=-1) + 1 + np.arange(len(logs)))


def _pair(
    table: pd.DataFrame,
    clusters: npt.NDArray[np.int64],
    a: str,
    b: str,
    bootstrap: Callable[..., Estimate],
    flip: Callable[[Floats], tuple[float, str]],
) -> dict[str, object]:
    difference = (table[a] - table[b]).to_numpy()
    both = ~np.isnan(difference)
    row: dict[str, object] = {"model_a": a, "model_b": b, "n_logs": int(both.sum()), "n_clusters": 0}
    if not both.any():
        return row | {"test": "undefined (no log in common)"}
    # Resampled in one direction whatever the order of the models, so that swapping them mirrors the interval exactly.
    sign = 1.0 if str(a) <= str(b) else -1.0
    values = np.where(np.abs(difference) > _ALIKE, difference, 0.0)[both] * sign
    codes, _ = pd.factorize(clusters[both])
    estimate = bootstrap(values, codes)
    low, high = (estimate.low, estimate.high) if sign > 0 else (-estimate.high, -estimate.low)
    p, test = flip(np.bincount(codes, weights=values).astype(np.float64))
    row |= {"n_clusters": estimate.n_clusters, "difference": sign * estimate.estimate, "low": low, "high": high}
    return row | {"p": p, "test": test}


def _flipped(sums: Floats, *, n_flips: int, seed: int) -> tuple[float, str]:
    """The p of a sign-flip test on cluster sums, exact if within reach, and how it was obtained."""
    sums = np.where(np.abs(sums) > _ALIKE, sums, 0.0)
    if not sums.any():
        return float("nan"), "undefined (no difference in any cluster)"
    try:
        result = sign_flip(sums)
    except ValueError:  # no exact p within reach
        result = sign_flip(sums, n_draws=n_flips, seed=seed)
    return result.p, f"sign flip of {result.n} clusters, {result.method}"


def _groups(table: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    groups = pd.DataFrame({"model": list(table.columns), "mean": table.mean().to_numpy()})
    groups["n_logs"] = table.notna().sum().to_numpy()
    order = sorted(groups.index, key=lambda i: (-groups["mean"].fillna(-np.inf)[i], str(groups["model"][i])))
    groups = groups.loc[order].reset_index(drop=True)
    apart = pairs[pairs["separable"]]
    separable = {frozenset(pair) for pair in zip(apart["model_a"], apart["model_b"], strict=True)}
    letters = letter_groups(list(groups["model"]), separable)
    return groups.assign(group=[letters[model] for model in groups["model"]])[GROUP_COLUMNS]


def _letter(number: int) -> str:
    """0 is "a", 25 is "z", 26 is "aa"."""
    before, last = divmod(number, 26)
    return (_letter(before - 1) if before else "") + chr(ord("a") + last)
