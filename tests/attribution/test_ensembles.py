"""Combinations of models at one number of samples, draw by draw, and how much samples disagree."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.draws import shared_draws
from faultbook.attribution.ensembles import DISAGREEMENT_COLUMNS, ensembles
from faultbook.attribution.ndcg import ndcg, random_ndcg
from faultbook.attribution.scaling import n_scaling
from faultbook.attribution.score import score
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import cluster_ratio

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}
FLAGGED = {"a": [[1], [1, 4]], "b": [[0, 2], [3], [2]], "c": [[]], "d": [[6]]}

STEPS = st.lists(st.integers(0, 7), max_size=3)
LISTED = st.fixed_dictionaries(
    {"x": st.lists(STEPS, min_size=2, max_size=2), "y": st.lists(STEPS, min_size=3, max_size=3)}
)


def votes_of(samples: Any) -> dict[int, int]:
    return dict(Counter(step for steps in samples if isinstance(steps, list) for step in set(steps)))


def ways(sizes: dict[str, int], budget: int) -> Iterator[list[list[tuple[str, int]]]]:
    """For each choice of who gives one more, all draws: (model, sample) pairs."""
    base, extra = divmod(budget, len(sizes))
    for more in itertools.combinations(sizes, extra):
        parts = [itertools.combinations([(m, n) for n in range(size)], base + (m in more)) for m, size in sizes.items()]
        yield [[pair for part in draw for pair in part] for draw in itertools.product(*parts)]


def by_hand(listed: Any, flagged: Any, models: list[str], budget: int, ties: str) -> tuple[np.ndarray, np.ndarray]:
    """Score and chance of each log: the mean over choices of the mean over draws."""
    sizes = {model: max(len(samples) for samples in listed[model].values()) for model in models}
    scores, chance = [], []
    for lists in flagged.values():
        if not any(lists):
            continue
        log_id = next(name for name, found in flagged.items() if found is lists)
        votes = votes_of(lists)
        means = []
        for draws in ways(sizes, budget):
            named = [votes_of(listed[model][log_id][number] for model, number in draw) for draw in draws]
            value = np.mean([ndcg(predicted, votes, ties=ties) for predicted in named])
            means.append((value, np.mean([random_ndcg(votes, 8, len(predicted)) for predicted in named])))
        scores.append(np.mean([mean for mean, _ in means]))
        chance.append(np.mean([mean for _, mean in means]))
    return np.array(scores), np.array(chance)


# ---- the definition ---------------------------------------------------------------------------------------------


@settings(max_examples=5, deadline=None)
@given(LISTED, LISTED, LISTED, st.sampled_from([1, 2, 3]), st.sampled_from(["by_step", "expected"]))
def test_every_draw_one_by_one(
    make_annotations: Make, make_predictions: Make, a: Any, b: Any, d: Any, budget: int, ties: Any
) -> None:
    listed = {model: {"a": a[model], "b": b[model], "d": d[model]} for model in "xy"}
    result = ensembles(*make_predictions(listed), make_annotations(FLAGGED), budget=budget, ties=ties, **FEW)
    table = result.combinations.set_index("combination")
    assert list(table.index) == (["x", "y", "x + y"] if budget > 1 else ["x", "y"])
    assert result.budget == budget
    found = {}
    for name, row in table.to_dict("index").items():
        models = name.split(" + ")
        if budget == 3 and name == "x":
            assert row["note"] == "needs 3 samples of a model; x has 2"
            assert math.isnan(row["ndcg_at_5"])
            continue
        scores, chance = by_hand(listed, FLAGGED, models, budget, ties)
        found[name] = scores
        assert row["ndcg_at_5"] == pytest.approx(scores.mean(), abs=1e-12)
        assert row["chance"] == pytest.approx(chance.mean(), abs=1e-12)
        assert row["adjusted"] == pytest.approx((scores - chance).sum() / (1 - chance).sum(), abs=1e-12)
        assert (row["n_models"], row["n_logs"], row["note"]) == (len(models), 3, "")
        sizes = {model: {"x": 2, "y": 3}[model] for model in models}
        assert row["n_draws"] == sum(map(len, ways(sizes, budget)))
    if budget == 2:
        best = max(("x", "y"), key=lambda model: table.loc[model, "ndcg_at_5"])
        assert table.loc["x + y", "best_member"] == best
        gap = (found["x + y"] - found[best]).mean()
        assert table.loc["x + y", "over_best"] == pytest.approx(gap, abs=1e-12)
    elif budget == 3:  # one of the members has too few samples to be held against
        assert pd.isna(table.loc["x + y", ["best_member", "over_best"]]).all()


def test_three_models_share_five_samples(make_annotations: Make, make_predictions: Make) -> None:
    rng = np.random.default_rng(6)
    listed = {m: {name: rng.integers(0, 8, (2, 2)).tolist() for name in FLAGGED} for m in "xyz"}
    result = ensembles(*make_predictions(listed), make_annotations(FLAGGED), budget=5, **FEW)
    table = result.combinations.set_index("combination")
    assert list(table.index) == ["x", "y", "z", "x + y", "x + z", "y + z", "x + y + z"]
    assert table["note"].iloc[:6].str.startswith("needs ").all()
    assert table["note"].iloc[3] == "needs 3 samples of a model; x has 2, y has 2"
    # two give both samples and one gives either: three choices of two draws each
    assert table.loc["x + y + z", "n_draws"] == 6
    scores, _ = by_hand(listed, FLAGGED, list("xyz"), 5, "by_step")
    assert table.loc["x + y + z", "ndcg_at_5"] == pytest.approx(scores.mean(), abs=1e-12)


def test_who_gives_one_more_has_the_same_weight_however_many_draws(
    make_annotations: Make, make_predictions: Make
) -> None:
    # Budget 3: x (3 samples) gives two and y (5) one in 3 · 5 = 15 ways, x one and y two in 3 · 10 = 30. x is always
    # right, y always names one wrong step that stands first among equals: two votes of y put it first.
    listed = {"x": {"a": [[5]] * 3}, "y": {"a": [[0]] * 5}}
    result = ensembles(*make_predictions(listed), make_annotations({"a": [[5]]}), budget=3, **FEW)
    pair = result.combinations.set_index("combination").loc["x + y"]
    assert pair["n_draws"] == 45
    assert pair["ndcg_at_5"] == pytest.approx((1 + 1 / math.log2(3)) / 2, abs=1e-12)


@settings(max_examples=13, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 12), st.sampled_from([1, 7, 1000]))
def test_draws_share_the_budget(sizes: list[int], budget: int, most: int) -> None:
    if budget < len(sizes) or -(-budget // len(sizes)) > min(sizes):
        return
    draws, weights = shared_draws(sizes, budget, most, np.random.default_rng(0))
    assert len(draws) == len(weights) == len(set(draws))
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    by_choice: Counter[tuple[int, ...]] = Counter()
    for draw, weight in zip(draws, weights, strict=True):
        taken = tuple(len(part) for part in draw)
        assert sum(taken) == budget
        assert max(taken) - min(taken) <= 1
        by_choice[taken] += weight
    assert list(by_choice.values()) == pytest.approx([1 / len(by_choice)] * len(by_choice), abs=1e-12)
    assert len(by_choice) == math.comb(len(sizes), budget % len(sizes))
    if most == 1000:
        names = {str(n): size for n, size in enumerate(sizes)}
        assert len(draws) == sum(map(len, ways(names, budget)))


# ---- against the other measures of the same thing ---------------------------------------------------------------


def some(make_annotations: Make, make_predictions: Make, **samples: int) -> list[pd.DataFrame]:
    rng = np.random.default_rng(4)
    flagged = {f"m/{n}": rng.integers(0, 8, (3, 2)).tolist() for n in range(12)}
    listed = {m: {name: rng.integers(0, 8, (n, 2)).tolist() for name in flagged} for m, n in samples.items()}
    return [*make_predictions(listed), make_annotations(flagged)]


def test_a_single_model_is_what_scaling_and_score_say(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, x=3, y=3)
    names = ["ndcg_at_5", "low", "high", "chance", "adjusted", "adjusted_low", "adjusted_high"]
    scaled = n_scaling(*tables, **FEW).set_index(["n_samples", "model"])
    for budget in (1, 2, 3):
        single = ensembles(*tables, budget=budget, **FEW).combinations.set_index("combination").loc[["x", "y"], names]
        expected = scaled.loc[budget].loc[["x", "y"], names].to_numpy().tolist()
        assert single.to_numpy().tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    known = score(*tables, **FEW).models[names].to_numpy().tolist()
    assert single.to_numpy().tolist() == [pytest.approx(row, abs=1e-12) for row in known]


def test_one_ranked_list_keeps_its_order(make_annotations: Make, make_predictions: Make) -> None:
    tables = [*make_predictions({"x": {"a": [[5, 1]]}}, ranked=True), make_annotations({"a": [[5]]})]
    assert score(*tables, **FEW).models["ndcg_at_5"].to_list() == [1]
    assert ensembles(*tables, **FEW).combinations["ndcg_at_5"].to_list() == [1]


def test_the_best_member_and_its_interval(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, x=2, y=2, z=2)
    result = ensembles(*tables, **FEW)
    assert result.budget == 2  # as many as every model has
    table = result.combinations.set_index("combination")
    assert table.loc[["x", "y", "z"], ["best_member", "over_best"]].isna().all(axis=None)
    best = table.loc[["x", "y"], "ndcg_at_5"].idxmax()
    assert table.loc["x + y", "best_member"] == best
    pair, alone = (_per_log(tables, models) for models in (["x", "y"], [best]))
    gap = cluster_ratio(pair - alone, np.ones(len(pair)), range(len(pair)), seed=0, **FEW)
    found = table.loc["x + y", ["over_best", "over_best_low", "over_best_high"]]
    assert found.to_list() == pytest.approx([gap.estimate, gap.low, gap.high], abs=1e-12)


def _per_log(tables: list[pd.DataFrame], models: list[str]) -> np.ndarray:
    """Two samples in all, through the scores of a model that is made up of them."""
    predictions, attempts, annotations = tables
    pairs = itertools.product((0, 1), repeat=2) if len(models) > 1 else [(0, 1)]
    total = []
    for pair in pairs:
        chosen = list(zip(models if len(models) > 1 else models * 2, pair, strict=True))
        made_up = []
        for table in (predictions, attempts):
            parts = [
                table[(table["model"] == m) & (table["sample"] == n)].assign(sample=i)
                for i, (m, n) in enumerate(chosen)
            ]
            made_up.append(pd.concat(parts, ignore_index=True).assign(model="made up"))
        rows = score(*made_up, annotations, **FEW).per_log
        total.append(rows.loc[rows["n_flagged"] > 0, "ndcg_at_5"].to_numpy())
    return np.mean(total, axis=0)


def test_chance_grows_with_what_is_named(make_annotations: Make, make_predictions: Make) -> None:
    # two models that never agree name twice as many steps: some of their gain is that
    flagged = {f"m/{n}": [[n % 8]] for n in range(8)}
    listed = {"x": {name: [[0], [0]] for name in flagged}, "y": {name: [[4], [4]] for name in flagged}}
    table = ensembles(*make_predictions(listed), make_annotations(flagged), **FEW).combinations
    assert table["chance"].to_list() == pytest.approx([1 / 8, 1 / 8, (1 + 1 / math.log2(3)) / 8], abs=1e-12)
    assert table["adjusted"].to_list() == pytest.approx([0, 0, 0], abs=1e-12)


# ---- which combinations -----------------------------------------------------------------------------------------


def test_combinations_have_at_most_as_many_models_as_samples(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, v=4, w=4, x=4, y=4, z=4)
    for budget, most_models, largest in ((4, 4, 4), (4, 2, 2), (2, 4, 2), (1, 4, 1), (4, 9, 4)):
        table = ensembles(*tables, budget=budget, most_models=most_models, most_draws=3, **FEW).combinations
        assert table["n_models"].max() == largest
        assert len(table) == sum(math.comb(5, n) for n in range(1, largest + 1))
        assert table["combination"].is_unique


def test_many_draws_are_sampled(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, x=6, y=6)
    every, few = (ensembles(*tables, budget=4, most_draws=most, **FEW).combinations for most in (225, 30))
    assert every["n_draws"].to_list() == [15, 15, 225]
    assert few["n_draws"].to_list() == [15, 15, 30]
    assert few["ndcg_at_5"].iloc[2] == pytest.approx(every["ndcg_at_5"].iloc[2], abs=0.05)
    assert few["ndcg_at_5"].iloc[2] != every["ndcg_at_5"].iloc[2]


def test_a_model_that_attempted_only_some_logs(make_annotations: Make, make_predictions: Make) -> None:
    listed = {"x": {"a": [[1]], "b": [[2]]}, "y": {"a": [[1]], "z": [[1], [2]]}}
    tables = [*make_predictions(listed), make_annotations({"a": [[1]], "b": [[2]]})]
    table = ensembles(*tables, budget=1, **FEW).combinations.set_index("combination")
    # y's second sample is of a log that nobody judged: of two samples, one was not drawn for a and both for b
    assert table["ndcg_at_5"].to_dict() == {"x": 1, "y": 1 / 4}


def test_the_same_seed_gives_the_same_bytes(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, x=4, y=4)
    results = [ensembles(*tables, budget=3, most_draws=4, seed=seed, **FEW) for seed in (7, 7, 8)]
    csv = [result.combinations.to_csv() + result.disagreement.to_csv() for result in results]
    assert csv[0] == csv[1]
    assert csv[0] != csv[2]
    shuffled = [table.sample(frac=1, random_state=2) for table in tables]
    shuffled[1] = shuffled[1].sort_values("model")
    again = ensembles(*shuffled, budget=3, most_draws=4, seed=7, **FEW)
    pd.testing.assert_frame_equal(results[0].combinations, again.combinations, rtol=1e-12, atol=1e-12)
    pd.testing.assert_frame_equal(results[0].disagreement, again.disagreement, rtol=1e-12, atol=1e-12)


# ---- disagreement -----------------------------------------------------------------------------------------------


def test_disagreement_by_hand(make_annotations: Make, make_predictions: Make) -> None:
    listed = {
        "x": {
            "a": [[1, 2], [2, 3], [2, 2]],  # 1 − 1/3, 1 − 1/2, 1 − 1/2
            "b": [[], [], [4]],  # nobody names anything; then one of two does, twice
            "c": [[5], "truncated", None],  # a sample that did not reply disagrees with nobody
        },
        "y": {"a": [[2]], "b": [[4, 9]], "c": [[7]]},
    }
    annotations = make_annotations({"a": [[1]], "b": [[4]], "c": [[]]})
    result = ensembles(*make_predictions(listed), annotations, budget=1, **FEW)
    found = result.disagreement
    assert list(found.columns) == DISAGREEMENT_COLUMNS
    pairs = ["model_a", "model_b", "kind", "n_logs", "n_pairs"]
    assert found[pairs].to_numpy().tolist() == [
        ["x", "x", "within", 2, 3],
        ["x", "y", "between", 3, 3],
        ["y", "y", "within", 0, 0],
    ]
    within = [2 / 3, 1 / 2, 1 / 2, 1, 1]
    between = [1 / 2, 1 / 2, 0, 1, 1, 1 / 2, 1]
    expected = [np.mean(within), np.mean(between), np.nan]
    assert found["disagreement"].to_list() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    interval = cluster_ratio([5 / 3, 2], [3, 2], "ab", seed=0, **FEW)
    assert found.loc[0, ["low", "high"]].to_list() == pytest.approx([interval.low, interval.high], abs=1e-12)


@settings(max_examples=5, deadline=None)
@given(LISTED, LISTED)
def test_disagreement_is_one_minus_jaccard(make_annotations: Make, make_predictions: Make, a: Any, b: Any) -> None:
    listed = {model: {"a": a[model], "b": b[model]} for model in "xy"}
    found = ensembles(*make_predictions(listed), make_annotations(FLAGGED), budget=1, **FEW).disagreement
    for row in found.to_dict("records"):
        one, other = row["model_a"], row["model_b"]
        values = []
        for log_id, i, j in itertools.product("ab", range(3), range(3)):
            if (one != other or i < j) and i < len(listed[one][log_id]) and j < len(listed[other][log_id]):
                first, second = set(listed[one][log_id][i]), set(listed[other][log_id][j])
                values += [1 - len(first & second) / len(first | second)] if first | second else []
        assert row["disagreement"] == pytest.approx(np.mean(values) if values else np.nan, abs=1e-12, nan_ok=True)


def test_models_that_copy_each_other_do_not_disagree(make_annotations: Make, make_predictions: Make) -> None:
    lists = {name: [[1, 2], [1, 2]] for name in FLAGGED}
    result = ensembles(*make_predictions({"x": lists, "y": lists}), make_annotations(FLAGGED), **FEW)
    assert result.disagreement["disagreement"].to_list() == [0, 0, 0]
    assert result.disagreement[["low", "high"]].isna().all(axis=None)  # no width is no certainty
    assert result.combinations["over_best"].to_list() == pytest.approx([np.nan, np.nan, 0], nan_ok=True)


# ---- names and refusals -----------------------------------------------------------------------------------------


def test_the_measure_is_named(make_annotations: Make, make_predictions: Make) -> None:
    tables = some(make_annotations, make_predictions, x=1)
    result = ensembles(*tables, k=3, relevance="votes", gain="linear", ties="expected", **FEW)
    assert result.measure == "nDCG@3, relevance votes, gain linear, ties expected"
    assert "ndcg_at_3" in result.combinations
    assert result.summary_frame() is result.combinations


@pytest.mark.parametrize("setting", ["budget", "most_models", "most_draws"])
@pytest.mark.parametrize("number", [0, -2, 1.5, True])
def test_settings_out_of_range_are_refused(
    make_annotations: Make, make_predictions: Make, setting: str, number: Any
) -> None:
    tables = some(make_annotations, make_predictions, x=2)
    with pytest.raises(FaultbookError, match=f"{setting} is {number}; give a whole number of at least 1"):
        ensembles(*tables, **{setting: number})


def test_what_cannot_be_combined_is_refused(make_annotations: Make, make_predictions: Make) -> None:
    predictions, attempts, annotations = some(make_annotations, make_predictions, x=2)
    for elsewhere in ({}, {"x": {"z": [[1]]}}):
        with pytest.raises(FaultbookError, match="no attempt on an annotated log"):
            ensembles(*make_predictions(elsewhere), annotations)
    with pytest.raises(FaultbookError, match="24 samples have predictions and no attempt"):
        ensembles(predictions, attempts[:0], annotations)
    with pytest.raises(FaultbookError, match="nobody flagged a step"):
        ensembles(predictions, attempts, make_annotations({"m/1": [[]]}))


def test_a_budget_that_nobody_has_is_noted(make_annotations: Make, make_predictions: Make) -> None:
    table = ensembles(*some(make_annotations, make_predictions, x=2), budget=9, **FEW).combinations
    assert table["note"].to_list() == ["needs 9 samples of a model; x has 2"]
    assert table[["ndcg_at_5", "low", "chance", "n_draws"]].isna().all(axis=None)
