"""Rankings under several configurations, and a judge beside BLEU: known values, brute force, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faultbook.attribution.robustness import (
    AGREEMENT_COLUMNS,
    CONSTANT,
    PAIR_COLUMNS,
    SUMMARY_COLUMNS,
    TOO_FEW,
    TOO_FEW_MODELS,
    robustness,
    tau_grid,
    text_agreement,
)
from faultbook.errors import FaultbookError


def configured(**columns: list[float]) -> pd.DataFrame:
    """Scores of models m0, m1, … under each named configuration."""
    rows = [(name, f"m{number}", score) for name, column in columns.items() for number, score in enumerate(column)]
    return pd.DataFrame(rows, columns=["configuration", "model", "score"])


def only_pair(**columns: list[float]) -> pd.Series:
    return robustness(configured(**columns)).pairs.iloc[0]


# ---- Kendall ----------------------------------------------------------------------------------------------------


def test_nine_configurations_make_36_pairs() -> None:
    # MP-Bench (arXiv 2603.25001), appendix on robustness: 3 consolidators × 3 judges.
    draw = np.random.default_rng(0)
    rows = [
        (consolidation, judge, model, float(draw.normal()))
        for consolidation, judge, model in itertools.product("ABC", "XYZ", "klmnop")
    ]
    result = robustness(pd.DataFrame(rows, columns=["consolidation", "judge", "model", "score"]))
    assert list(result.pairs.columns) == PAIR_COLUMNS
    assert list(result.summary.columns) == SUMMARY_COLUMNS
    summary = result.summary.iloc[0]
    assert summary[["n_configurations", "n_models", "n_pairs", "n_defined"]].to_list() == [9, 6, 36, 36]
    assert result.pairs.loc[0, ["configuration_a", "configuration_b"]].to_list() == ["A × X", "A × Y"]
    assert summary["mean_tau"] == pytest.approx(result.pairs["tau"].mean())
    assert (summary["lowest"], summary["highest"]) == (result.pairs["tau"].min(), result.pairs["tau"].max())
    assert summary["n_p_below_0_1"] == (result.pairs["p"] < 0.1).sum()
    assert set(result.pairs["note"]) == {"exact"}


# The manual and automatic scores that the public leaderboard and the paper's first version print for five models
# (GPT-4.1, GPT-5.1, Claude-Sonnet-4.5, Qwen3-8B, gpt-oss-120B); their orders agree with τ = 0.4 and 1.0.
@pytest.mark.parametrize(
    ("board", "paper", "tau", "p"),
    [
        ([0.445, 0.385, 0.432, 0.317, 0.449], [0.4313, 0.3747, 0.4397, 0.2944, 0.4245], 0.4, 58 / 120),
        ([0.679, 0.769, 0.788, 0.676, 0.696], [0.6755, 0.7844, 0.7894, 0.6681, 0.7030], 1.0, 2 / 120),
    ],
)
def test_the_leaderboard_and_the_paper(board: list[float], paper: list[float], tau: float, p: float) -> None:
    row = only_pair(board=board, paper=paper)
    assert (row["tau"], row["p"]) == (pytest.approx(tau), pytest.approx(p))
    assert (row["n_models"], row["note"]) == (5, "exact")


def test_tau_b_with_ties_by_hand() -> None:
    # x = 1 2 2 3, y = 1 2 3 4: of six pairs five are concordant and one is tied in x, so τ-b = 5 / sqrt(5 · 6);
    # all of 5 untied comparisons agree in 2 of 24 orders (the tied models swapped), and as many are reversed.
    row = only_pair(a=[1, 2, 2, 3], b=[1, 2, 3, 4])
    assert row["tau"] == pytest.approx(5 / math.sqrt(30))
    assert row["p"] == pytest.approx(4 / 24)
    assert row["note"] == "exact, all orders of ties enumerated"


def test_many_models_with_ties_are_asymptotic() -> None:
    x, y = [float(n) for n in range(20)], [float(n // 2) for n in range(20)]
    row = only_pair(a=x, b=y)
    known = stats.kendalltau(x, y, method="asymptotic")
    assert (row["tau"], row["p"], row["note"]) == (known.statistic, known.pvalue, "asymptotic")


@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        ([1, 2, 3], [5, 5, 5], CONSTANT),
        ([5, 5, 5], [1, 2, 3], CONSTANT),
        ([1, 2], [1, 2], TOO_FEW_MODELS),
        ([1, 2, np.nan, 3], [1, np.nan, 2, 3], TOO_FEW_MODELS),
    ],
)
def test_undefined_pairs(a: list[float], b: list[float], note: str) -> None:
    result = robustness(configured(a=a, b=b))
    assert result.pairs[["tau", "p"]].isna().all(axis=None)
    assert result.pairs["note"].to_list() == [note]
    summary = result.summary.iloc[0]
    assert summary[["n_pairs", "n_defined", "n_p_below_0_1"]].to_list() == [1, 0, 0]
    assert summary[["mean_tau", "lowest", "highest"]].isna().all()


def test_the_models_that_both_score() -> None:
    frame = configured(a=[1, 2, 3, np.nan, 9], b=[1, 2, 4, 5, np.nan]).dropna()
    pair = robustness(frame).pairs.iloc[0]
    assert (pair["n_models"], pair["tau"]) == (3, pytest.approx(1.0))


def test_one_configuration_has_no_pair() -> None:
    result = robustness(configured(a=[1, 2, 3]))
    assert result.pairs.empty
    assert result.summary.iloc[0][["n_configurations", "n_pairs", "n_defined"]].to_list() == [1, 0, 0]


SCORES = st.integers(3, 6).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.sampled_from([1.0, 2.0, 2.5, 7.0, 8.0, 9.5]), min_size=n, max_size=n) for _ in range(2)]
    )
)


@settings(max_examples=20, deadline=None)
@given(SCORES)
def test_tau_and_p_against_all_orders(columns: tuple[list[float], list[float]]) -> None:
    x, y = columns
    row = only_pair(a=x, b=y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert row["note"] == CONSTANT
        return

    def surplus(order: tuple[float, ...]) -> float:
        pairs = itertools.combinations(range(len(x)), 2)
        return float(sum(np.sign((x[i] - x[j]) * (order[i] - order[j])) for i, j in pairs))

    observed = surplus(tuple(y))
    assert row["p"] == pytest.approx(np.mean([abs(surplus(o)) >= abs(observed) for o in itertools.permutations(y)]))
    untied = [sum(a != b for a, b in itertools.combinations(column, 2)) for column in columns]
    assert row["tau"] == pytest.approx(observed / math.sqrt(untied[0] * untied[1]))


@settings(max_examples=13, deadline=None)
@given(SCORES, st.data())
def test_order_and_names_do_not_count(columns: tuple[list[float], list[float]], data: st.DataObject) -> None:
    x, y = columns
    order = data.draw(st.permutations(range(len(x))))
    forward, backward = only_pair(a=x, b=y), only_pair(a=y, b=x)
    moved = only_pair(z=[x[i] for i in order], a=[y[i] for i in order])
    stretched = only_pair(a=[10 * value - 3 for value in x], b=y)
    for other in (backward, moved, stretched):
        for name in ("tau", "p"):
            assert other[name] == pytest.approx(forward[name], abs=1e-12, nan_ok=True)
        assert other["note"] == forward["note"]
    reversed_order = only_pair(a=x, b=[-value for value in y])
    assert reversed_order["tau"] == pytest.approx(-forward["tau"], abs=1e-12, nan_ok=True)
    assert reversed_order["p"] == pytest.approx(forward["p"], abs=1e-12, nan_ok=True)


# ---- what τ can be ----------------------------------------------------------------------------------------------


def test_the_grid_of_five_models() -> None:
    # Kendall (1938): of 120 orders 1, 4, 9, 15, 20, 22, 20, 15, 9, 4, 1 have 0, 1, …, 10 discordant pairs.
    grid = tau_grid(5)
    assert (120 * grid["probability"]).to_list() == pytest.approx([1, 4, 9, 15, 20, 22, 20, 15, 9, 4, 1])
    assert grid["tau"].to_list() == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0, -0.2, -0.4, -0.6, -0.8, -1])
    assert (120 * grid["p"]).to_list() == pytest.approx([2, 10, 28, 58, 98, 120, 98, 58, 28, 10, 2])
    assert grid["p"].min() == pytest.approx(0.0167, abs=5e-5)


def test_a_printed_tau_of_0_733_is_of_six_models_and_not_of_five() -> None:
    # MP-Bench, appendix on robustness, prints a lowest τ of 0.600 (manual) and 0.733 (automatic).
    assert 0.733 not in tau_grid(5)["tau"].round(3).to_list()
    six = tau_grid(6).set_index(tau_grid(6)["tau"].round(3))["p"]
    assert six[0.733] == pytest.approx(40 / 720)
    assert six[0.6] == pytest.approx(98 / 720)


@pytest.mark.parametrize("n", range(2, 8))
def test_the_grid_against_all_orders(n: int) -> None:
    inverted = [sum(a > b for a, b in itertools.combinations(order, 2)) for order in itertools.permutations(range(n))]
    grid = tau_grid(n)
    counts = np.bincount(inverted, minlength=len(grid)) / math.factorial(n)
    np.testing.assert_allclose(grid["probability"], counts, atol=1e-12)
    assert grid["probability"].sum() == pytest.approx(1)
    for row in grid.itertuples():
        order = next(o for o in itertools.permutations(range(n)) if _inversions(o) == row.n_discordant)
        known = stats.kendalltau(range(n), order, method="exact")
        assert (row.tau, row.p) == (pytest.approx(known.statistic), pytest.approx(known.pvalue))


def _inversions(order: tuple[int, ...]) -> int:
    return sum(a > b for a, b in itertools.combinations(order, 2))


def test_the_largest_grid() -> None:
    grid = tau_grid(170)
    assert len(grid) == 170 * 169 // 2 + 1
    assert grid["probability"].sum() == pytest.approx(1)
    assert (grid["probability"] > 0).all()
    assert grid["p"].max() == pytest.approx(1)


@pytest.mark.parametrize("n", [1, 0, -3, 171, 2.5, True, "5", None])
def test_a_number_of_models_out_of_range(n: Any) -> None:
    with pytest.raises(FaultbookError, match="give a whole number of models from 2 to 170"):
        tau_grid(n)


def test_faults_of_the_table_are_one_clear_line() -> None:
    frame = configured(a=[1, 2, 3], b=[1, 2, 3])
    cases: list[tuple[pd.DataFrame, str]] = [
        (frame.drop(columns="configuration"), "scores: columns missing: consolidation, judge"),
        (frame.drop(columns="score"), "scores: columns missing: score"),
        (frame.drop(columns="model"), "scores: columns missing: model"),
        (pd.concat([frame, frame]), r"scores: 6 stand twice \(first: a, m0\); give one, of one split"),
        (frame.assign(score="high"), r"column 'score': 6 values are no finite number \(first: 'high'\)"),
        (frame.assign(score=np.inf), "6 values are no finite number"),
        (frame.assign(model=None), "a row leaves configuration or model empty"),
        (frame.iloc[:0], "scores: no rows"),
    ]
    for table, message in cases:
        with pytest.raises(FaultbookError, match=message) as caught:
            robustness(table)
        assert "\n" not in str(caught.value)


# ---- a judge beside plain measures ------------------------------------------------------------------------------

WORDS = ["the", "agent", "took", "a", "page", "and", "never", "checked", "its", "source", "before", "it", "answered"]


def judged(n: int, n_models: int = 3, seed: int = 0, **columns: Any) -> tuple[pd.DataFrame, pd.Series]:
    """Items whose texts keep the first words of the human's; the more they keep, the better the judge likes them."""
    draw = np.random.default_rng(seed)
    kept = draw.integers(3, len(WORDS), n)
    frame = pd.DataFrame({"model": [f"m{number % n_models}" for number in range(n)]})
    frame["model_text"] = [" ".join(WORDS[:k] + ["something"] * (len(WORDS) - k)) for k in kept]
    frame["human_text"] = " ".join(WORDS)
    return frame.assign(**columns), pd.Series(kept + draw.normal(size=n), index=frame.index)


def agreement(*tables: Any, **options: Any) -> pd.DataFrame:
    return text_agreement(*tables, **{"n_resamples": 300, **options}).set_index(["level", "measure"])


def test_bleu_against_sacrebleu_and_numpy() -> None:
    import sacrebleu

    texts, scores = judged(12)
    result = agreement(texts, scores)
    sentence = [
        sacrebleu.sentence_bleu(model, [human], use_effective_order=True).score
        for model, human in zip(texts["model_text"], texts["human_text"], strict=True)
    ]
    item = result.loc[("item", "BLEU")]
    assert item["r"] == pytest.approx(np.corrcoef(sentence, scores)[0, 1])
    assert item["note"].startswith("sentence BLEU, nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:")
    corpus = [
        sacrebleu.corpus_bleu(list(part["model_text"]), [list(part["human_text"])]).score
        for _, part in texts.groupby("model")
    ]
    model = result.loc[("model", "BLEU")]
    assert model["r"] == pytest.approx(np.corrcoef(corpus, scores.groupby(texts["model"]).mean())[0, 1])
    assert model["note"].startswith("corpus BLEU and mean judge score, nrefs:1|case:mixed|eff:no|")
    assert (item["n"], model["n"]) == (12, 3)
    assert model[["low", "high"]].isna().all()
    assert model["interval"] == "none"
    assert list(text_agreement(texts, scores).columns) == AGREEMENT_COLUMNS


def test_fisher_z_by_hand() -> None:
    texts, scores = judged(12)
    item = agreement(texts, scores).loc[("item", "BLEU")]
    half = 1.959963984540054 / 3  # of 12 items: sqrt(12 − 3) = 3
    bounds = [math.tanh(math.atanh(item["r"]) + sign * half) for sign in (-1, 1)]
    assert item[["low", "high"]].to_list() == pytest.approx(bounds)
    assert item["interval"] == "Fisher z, items taken as independent"
    assert pd.isna(item["n_clusters"])


def test_items_of_one_log_are_resampled_together() -> None:
    texts, scores = judged(20, seed=3)
    repeated = pd.concat([texts] * 4, ignore_index=True)
    fourfold = pd.concat([scores] * 4, ignore_index=True)
    logs = [str(number % 20) for number in range(80)]
    by_log = agreement(repeated.assign(log_id=logs), fourfold, n_resamples=4_000).loc[("item", "BLEU")]
    by_item = agreement(repeated.assign(log_id=[f"x{n}" for n in range(80)]), fourfold, n_resamples=4_000)
    ratio = (by_log["high"] - by_log["low"]) / (by_item["high"] - by_item["low"]).loc[("item", "BLEU")]
    assert 1.5 < ratio < 2.6  # four equal items a log: about twice as wide
    assert (by_log["n"], by_log["n_clusters"]) == (80, 20)
    assert by_log["interval"] == "percentile bootstrap of 20 logs, 4000 resamples"
    assert by_log["low"] < by_log["r"] < by_log["high"]


def test_the_bootstrap_against_plain_resampling() -> None:
    texts, scores = judged(40, log_id=[f"log {number // 2}" for number in range(40)], seed=2)
    vectors = np.random.default_rng(1).normal(size=(40, 3))
    human = np.ones((40, 3))
    row = agreement(texts, scores, embeddings=(vectors, human), n_resamples=8_000).loc[("item", "embedding similarity")]
    cosine = vectors.sum(axis=1) / np.linalg.norm(vectors, axis=1) / math.sqrt(3)
    assert row["r"] == pytest.approx(np.corrcoef(cosine, scores)[0, 1])
    draw = np.random.default_rng(7)
    drawn = []
    for _ in range(4_000):
        chosen = draw.integers(0, 20, 20)
        rows = np.concatenate([2 * chosen, 2 * chosen + 1])
        drawn.append(np.corrcoef(cosine[rows], scores.to_numpy()[rows])[0, 1])
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)


@pytest.mark.parametrize("what", ["scores", "texts"])
def test_constants_are_undefined(what: str) -> None:
    texts, scores = judged(9, log_id=list("abcabcabc"))
    if what == "scores":
        scores[:] = 7.1
    else:
        texts["model_text"] = "the agent took the wrong page"
    result = agreement(texts, scores)
    assert result["r"].isna().all()
    assert result["note"].to_list() == [CONSTANT, CONSTANT]
    assert result[["low", "high"]].isna().all(axis=None)
    assert set(result["interval"]) == {"none"}


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_items(n: int) -> None:
    result = agreement(*judged(n))
    assert result["note"].to_list() == [TOO_FEW, TOO_FEW]
    assert result["n"].to_list() == [n, n]


def test_three_items_have_no_fisher_interval_and_one_log_no_bootstrap() -> None:
    texts, scores = judged(3)
    assert agreement(texts, scores).loc[("item", "BLEU"), "interval"] == "none (n below 4)"
    one_log = agreement(texts.assign(log_id="a"), scores).loc[("item", "BLEU")]
    assert (one_log["interval"], one_log["n_clusters"]) == ("none (one log only)", 1)
    assert one_log[["low", "high"]].isna().all()


def test_a_perfect_line_has_no_interval() -> None:
    texts, _ = judged(12)
    vectors = np.column_stack([np.cos(np.arange(12) / 9), np.sin(np.arange(12) / 9)])
    scores = pd.Series(np.cos(np.arange(12) / 9), index=texts.index)
    given_vectors = (vectors, np.tile([1.0, 0.0], (12, 1)))
    item = ("item", "embedding similarity")
    assert agreement(texts, scores, embeddings=given_vectors).loc[item, "interval"] == "none (r is ±1)"
    by_log = agreement(texts.assign(log_id=texts.index), scores, embeddings=given_vectors).loc[item]
    assert (by_log["r"], by_log["interval"]) == (pytest.approx(1), "none (no resample differs)")


def test_what_is_missing_is_left_out_and_counted() -> None:
    texts, scores = judged(20)
    texts.loc[3, "model_text"] = None
    scores[5] = np.nan
    vectors = np.random.default_rng(0).normal(size=(20, 4))
    human = vectors + 1
    human[8] = 0
    result = agreement(texts, scores, embeddings=(vectors, human))
    assert result["n_left_out"].to_list() == [2, 2, 3, 3]
    assert result["n"].to_list() == [18, 3, 17, 3]
    dropped = agreement(texts.drop(index=[3, 5]), scores.drop(index=[3, 5]))
    assert dropped["r"].to_list() == pytest.approx(result["r"].to_list()[:2])
    assert pd.isna(scores[5])  # the caller's data stay as they were


def test_an_empty_text_is_a_text() -> None:
    texts, scores = judged(8)
    texts.loc[0, "model_text"] = ""
    assert agreement(texts, scores).loc[("item", "BLEU"), "n"] == 8


@settings(max_examples=5, deadline=None)
@given(st.integers(5, 15), st.integers(0, 10), st.randoms(use_true_random=False))
def test_the_order_of_items_and_names_do_not_count(n: int, seed: int, random: Any) -> None:
    texts, scores = judged(n, seed=seed, log_id=[f"log {number // 2}" for number in range(n)])
    order = list(range(n))
    random.shuffle(order)
    other = texts.iloc[order].assign(model=texts["model"].map({"m0": "z", "m1": "m0", "m2": "ä"}))
    one, two = agreement(texts, scores), agreement(other, scores.iloc[order])
    for name in ("r", "low", "high", "n", "n_clusters"):
        np.testing.assert_allclose(
            one[name].to_numpy(float, na_value=np.nan), two[name].to_numpy(float, na_value=np.nan), atol=1e-9
        )


def test_faults_of_the_texts_are_one_clear_line() -> None:
    texts, scores = judged(6)
    square = np.ones((6, 2))
    cases: list[tuple[tuple[Any, Any], dict[str, Any], str]] = [
        ((texts.drop(columns="human_text"), scores), {}, "texts: columns missing: human_text"),
        ((texts, scores.iloc[:4]), {}, "judge_scores and texts have different rows"),
        ((texts, scores.to_list()), {}, "judge_scores and texts have different rows"),
        ((texts, scores.astype(str).replace(scores.astype(str)[0], "good")), {}, "1 values are no finite number"),
        ((texts.assign(model=None), scores), {}, "6 rows name no model"),
        ((texts.assign(model_text=7), scores), {}, "column 'model_text': 7 is no text"),
        ((texts, scores), {"embeddings": (square, square[:5])}, r"shapes \(6, 2\) and \(5, 2\); give both as \(6, d\)"),
        (
            (texts, scores),
            {"embeddings": (square * np.nan, square)},
            "embeddings hold values that are no finite number",
        ),
        ((texts, scores), {"embeddings": (["x"], square)}, "embeddings are no two arrays of numbers"),
        ((texts, scores), {"embeddings": square}, "embeddings are no two arrays of numbers"),
    ]
    for tables, options, message in cases:
        with pytest.raises(FaultbookError, match=message) as caught:
            agreement(*tables, **options)
        assert "\n" not in str(caught.value)
