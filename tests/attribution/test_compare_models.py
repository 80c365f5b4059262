"""Comparing models: known differences, brute force, symmetry, letters, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.compare import (
    GROUP_COLUMNS,
    PAIR_COLUMNS,
    Comparison,
    compare_models,
    letter_groups,
)
from faultbook.errors import FaultbookError

Values = dict[str, list[float]]


def scores(values: Values, questions: list[str] | None = None) -> pd.DataFrame:
    """One row a model and log; logs are "log 0", "log 1", …"""
    rows = [
        (model, f"log {number}", questions[number] if questions else None, value)
        for model, column in values.items()
        for number, value in enumerate(column)
    ]
    return pd.DataFrame(rows, columns=["model", "log_id", "question_id", "ndcg"])


def compared(frame: pd.DataFrame, **options: Any) -> Comparison:
    return compare_models(frame, **{"n_resamples": 200, "n_flips": 500, **options})


def only_pair(frame: pd.DataFrame, **options: Any) -> pd.Series:
    return compared(frame, **options).pairs.iloc[0]


def letters(result: Comparison) -> dict[str, set[str]]:
    return dict(zip(result.groups["model"], map(set, result.groups["group"]), strict=True))


# ---- known cases ------------------------------------------------------------------------------------------------


def test_a_known_pair() -> None:
    # Ten logs, a is better by 1 on eight of them and worse on one: of 2^9 sign patterns those with at most one
    # minus (or one plus) are as extreme, 2 (1 + 9) / 512 (the exact binomial test of 8 against 1).
    frame = scores({"a": [1, 1, 1, 1, 1, 1, 1, 1, 0, 0], "b": [0] * 8 + [1, 0]})
    row = only_pair(frame)
    assert row["difference"] == pytest.approx(0.7)
    assert row["p"] == pytest.approx(20 / 512)
    assert row["p_holm"] == pytest.approx(20 / 512)
    assert row["separable"]
    assert (row["n_logs"], row["n_clusters"]) == (10, 10)
    assert row["test"] == "sign flip of 10 clusters, exact, by convolution"


def test_questions_are_flipped_as_a_whole() -> None:
    # The same logs in five questions of two: sums 2, 2, 2, 2, −1, so the total is 7 and only 9, 7, −7 and −9 are as
    # far from 0: four patterns of 32.
    frame = scores({"a": [1] * 8 + [0, 0], "b": [0] * 8 + [1, 0]}, [f"q{number // 2}" for number in range(10)])
    row = only_pair(frame)
    assert (row["p"], row["n_logs"], row["n_clusters"]) == (pytest.approx(4 / 32), 10, 5)
    assert not row["separable"]


def test_holm_by_hand() -> None:
    # All signs alike on ten, four and six logs: p of 2/1024, 2/16 and 2/64. Holm: the least times 3, the next times
    # 2, the last times 1.
    pairs = compared(scores({"a": [1] * 10, "b": [0] * 10, "c": [0] * 4 + [1] * 6})).pairs
    assert pairs["p"].to_list() == pytest.approx([2 / 1024, 2 / 16, 2 / 64])
    assert pairs["p_holm"].to_list() == pytest.approx([6 / 1024, 2 / 16, 4 / 64])
    assert pairs["separable"].to_list() == [True, False, False]


def test_pairs_without_a_test_are_not_counted() -> None:
    # b and c are equal on all logs, so two p are adjusted, not three.
    pairs = compared(scores({"a": [1] * 6, "b": [0] * 6, "c": [0] * 6})).pairs
    assert pairs["p"].to_list()[:2] == pytest.approx([1 / 32] * 2)
    assert pairs["p_holm"].to_list()[:2] == pytest.approx([2 / 32] * 2)
    assert pairs.loc[2, ["p", "p_holm", "low", "high"]].isna().all()
    assert pairs.loc[2, "difference"] == 0
    assert pairs.loc[2, "test"] == "undefined (no difference in any cluster)"
    assert not pairs["separable"].any()


def test_an_adjusted_p_at_the_level_is_not_below_it() -> None:
    # p is 2/64 exactly, and 1 − 31/32 is too.
    frame = scores({"a": [1] * 6, "b": [0] * 6})
    assert not only_pair(frame, level=1 - 1 / 32)["separable"]
    assert only_pair(frame, level=0.96)["separable"]


def test_the_interval_of_a_known_case() -> None:
    # The differences are 0 and 1, five times each: scipy.stats.binom(10, .5) has its 2.5 % and 97.5 % points at 2, 8.
    row = only_pair(scores({"a": [1, 0] * 5, "b": [0] * 10}), n_resamples=20_000)
    assert (row["low"], row["high"]) == pytest.approx((0.2, 0.8))


def test_logs_of_one_question_make_a_wider_interval() -> None:
    draw = np.random.default_rng(1)
    common = np.repeat(draw.normal(size=30), 4)
    values = {"a": list(common), "b": [0.0] * 120}
    questions = [f"q{number // 4}" for number in range(120)]
    by_question, by_log = (only_pair(scores(values, q), n_resamples=2_000) for q in (questions, None))
    ratio = (by_question["high"] - by_question["low"]) / (by_log["high"] - by_log["low"])
    assert 1.7 < ratio < 2.3  # four equal logs a question: twice the standard error


@pytest.mark.slow
def test_missing_scores_leave_the_log_out_of_the_pair() -> None:
    frame = scores({"a": [1, 1, np.nan, 1], "b": [0, np.nan, 0, 0], "c": [0, 0, 0, 0]})
    pairs = compared(frame).pairs.set_index(["model_a", "model_b"])
    assert pairs["n_logs"].to_dict() == {("a", "b"): 2, ("a", "c"): 3, ("b", "c"): 3}
    groups = compared(frame).groups.set_index("model")
    assert groups["n_logs"].to_dict() == {"a": 3, "b": 3, "c": 4}
    dropped = compared(frame.dropna(subset="ndcg"))
    pd.testing.assert_frame_equal(dropped.pairs, compared(frame).pairs)


def test_models_without_a_common_log() -> None:
    frame = scores({"a": [1.0, np.nan], "b": [np.nan, 0.0]})
    result = compared(frame)
    row = result.pairs.iloc[0]
    assert (row["n_logs"], row["n_clusters"], row["test"]) == (0, 0, "undefined (no log in common)")
    assert row[["difference", "low", "high", "p", "p_holm"]].isna().all()
    assert letters(result) == {"a": {"a"}, "b": {"a"}}


def test_one_model_is_a_group() -> None:
    result = compared(scores({"a": [1.0, 0.0]}))
    assert result.pairs.empty
    assert list(result.pairs.columns) == PAIR_COLUMNS
    assert result.groups.to_numpy().tolist() == [["a", 0.5, 2, "a"]]
    assert list(result.groups.columns) == GROUP_COLUMNS


def test_a_model_whose_every_score_is_missing_stands_last() -> None:
    result = compared(scores({"x": [np.nan] * 8, "a": [0.0] * 8, "b": [1.0] * 8}))
    assert result.groups["model"].to_list() == ["b", "a", "x"]
    assert letters(result) == {"b": {"a"}, "a": {"b"}, "x": {"a", "b"}}


def test_what_was_resampled_is_named() -> None:
    frame = scores({"a": [1.0, 0.0], "b": [0.0, 0.0]}, ["q", "q"])
    assert compared(frame).cluster == "question_id"
    assert compared(frame).pairs["n_clusters"].to_list() == [1]
    assert compared(frame.drop(columns="question_id")).cluster == "log_id"
    renamed = frame.rename(columns={"question_id": "cluster", "ndcg": "ndcg_at_5"})
    assert compared(renamed, value="ndcg_at_5").cluster == "cluster"
    assert compared(renamed, value="ndcg_at_5").pairs["n_clusters"].to_list() == [1]
    assert compared(frame.assign(task="t"), cluster="task").cluster == "task"


def test_a_log_without_a_question_is_one_of_its_own() -> None:
    frame = scores({"a": [1.0] * 4, "b": [0.0] * 4}, ["q", "q", "r", "r"])
    frame.loc[frame["log_id"].isin(["log 0", "log 3"]), "question_id"] = None
    assert compared(frame).pairs["n_clusters"].to_list() == [4]
    # the question of a log may stand in the rows of one model only
    frame.loc[0, "question_id"] = "q"
    assert compared(frame).pairs["n_clusters"].to_list() == [3]


# ---- properties -------------------------------------------------------------------------------------------------

TABLES = st.integers(2, 4).flatmap(
    lambda n_models: st.integers(1, 8).flatmap(
        lambda n_logs: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.3, 1.0, float("nan")]), min_size=n_logs, max_size=n_logs),
            min_size=n_models,
            max_size=n_models,
        )
    )
)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(TABLES)
def test_p_against_every_sign_pattern(columns: list[list[float]]) -> None:
    values = dict(zip("abcd", columns, strict=False))
    questions = [f"q{number // 2}" for number in range(len(columns[0]))]
    for row in compared(scores(values, questions), n_resamples=20).pairs.to_dict("records"):
        difference = np.array(values[row["model_a"]]) - np.array(values[row["model_b"]])
        sums = pd.Series(difference).groupby(questions).sum(min_count=1).dropna().to_numpy()
        assert row["n_clusters"] == len(sums)
        if not len(sums) or np.abs(sums).max() < 1e-9:
            assert pd.isna(row["p"])
            continue
        totals = [abs(np.dot(signs, sums)) for signs in itertools.product([-1, 1], repeat=len(sums))]
        assert row["p"] == pytest.approx(np.mean(np.array(totals) >= abs(sums.sum()) - 1e-9))
        assert row["difference"] == pytest.approx(np.nanmean(difference))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(TABLES, st.randoms(use_true_random=False))
def test_the_order_of_rows_within_models_does_not_count(columns: list[list[float]], random: Any) -> None:
    frame = scores(dict(zip("abcd", columns, strict=False)))
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = frame.iloc[order].sort_values("model", kind="stable")
    one, other = compared(frame), compared(shuffled)
    pd.testing.assert_frame_equal(one.pairs, other.pairs)
    pd.testing.assert_frame_equal(one.groups, other.groups)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(TABLES)
def test_swapping_the_models_mirrors_the_difference(columns: list[list[float]]) -> None:
    values = dict(zip("abcd", columns, strict=False))
    forward = compared(scores(values)).pairs.set_index(["model_a", "model_b"])
    backward = compared(scores(dict(reversed(values.items())))).pairs.set_index(["model_b", "model_a"])
    backward = backward.loc[forward.index]
    for one, other in (("difference", "difference"), ("low", "high"), ("high", "low")):
        np.testing.assert_allclose(forward[one].to_numpy(float), -backward[other].to_numpy(float), atol=1e-12)
    for name in ("p", "p_holm", "separable", "n_logs"):
        np.testing.assert_array_equal(forward[name].to_numpy(), backward[name].to_numpy())


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(TABLES, st.permutations(["Ä", "b b", "x:1", "z"]))
def test_names_do_not_count(columns: list[list[float]], names: list[str]) -> None:
    plain, renamed = (compared(scores(dict(zip(which, columns, strict=False)))) for which in ("abcd", names))
    for name in ("difference", "p", "p_holm", "separable", "n_logs"):
        np.testing.assert_allclose(plain.pairs[name].to_numpy(float), renamed.pairs[name].to_numpy(float), atol=1e-12)
    back = dict(zip(names, "abcd", strict=True))
    assert {back[model] for model in renamed.groups["model"]} == set(plain.groups["model"])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(TABLES)
def test_a_letter_is_shared_exactly_by_what_is_not_separable(columns: list[list[float]]) -> None:
    result = compared(scores(dict(zip("abcd", columns, strict=False))), level=0.5)
    group = letters(result)
    for row in result.pairs.to_dict("records"):
        assert bool(group[row["model_a"]] & group[row["model_b"]]) != row["separable"]
    assert all(group.values())


GRAPHS = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25))
)


@settings(max_examples=200, deadline=None)
@given(GRAPHS)
def test_letters_of_any_relation(graph: tuple[int, set[tuple[int, int]]]) -> None:
    models = [f"m{number}" for number in range(graph[0])]
    separable = {frozenset((models[a], models[b])) for a, b in graph[1] if a != b}
    group = {model: set(text) for model, text in letter_groups(models, separable).items()}
    assert all(group.values())
    for pair in itertools.combinations(models, 2):
        assert bool(group[pair[0]] & group[pair[1]]) != (frozenset(pair) in separable)
    used = sorted(set().union(*group.values()))
    assert used == [chr(ord("a") + number) for number in range(len(used))]
    # no letter is idle: none is worn by a part of those who wear another
    worn = {letter: {model for model in models if letter in group[model]} for letter in used}
    assert not any(worn[one] < worn[other] for one, other in itertools.permutations(used, 2))


def test_letters_of_a_chain_and_of_many_models() -> None:
    # best to worst, neighbours alike: the classic display a, ab, b
    assert letter_groups(["x", "y", "z"], {frozenset("xz")}) == {"x": "a", "y": "ab", "z": "b"}
    models = [f"m{number}" for number in range(30)]
    apart = {frozenset(pair) for pair in itertools.combinations(models, 2)}
    group = letter_groups(models, apart)
    assert (group["m0"], group["m25"], group["m26"], group["m29"]) == ("a", "z", "aa", "ad")
    apart.remove(frozenset(("m0", "m29")))
    apart.remove(frozenset(("m0", "m28")))
    assert letter_groups(models, apart)["m0"] == "a b"


# ---- what is refused --------------------------------------------------------------------------------------------


def test_faults_of_the_table_are_one_clear_line() -> None:
    frame = scores({"a": [1.0, 0.0], "b": [0.0, 0.0]}, ["q", "q"])
    odd = frame.assign(question_id=["q", "q", "r", "q"])
    cases: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
        (frame.drop(columns="ndcg"), {}, "scores: columns missing: ndcg"),
        (frame, {"value": "ndcg_at_5"}, "scores: columns missing: ndcg_at_5"),
        (frame, {"cluster": "tasks"}, "scores: columns missing: tasks"),
        (frame.drop(columns="model"), {}, "scores: columns missing: model"),
        (pd.concat([frame, frame]), {}, r"4 logs stand twice for a model \(first: a, log 0\)"),
        (frame.assign(ndcg=["x", 1, 1, 1]), {}, r"column 'ndcg': 1 values are no finite number \(first: 'x'\)"),
        (frame.assign(ndcg=np.inf), {}, "4 values are no finite number"),
        (frame.assign(model=[None, "a", "b", "b"]), {}, "1 rows name no model or no log"),
        (frame.iloc[:0], {}, "scores: no rows"),
        (odd, {}, "log log 0 stands in two clusters of 'question_id'"),
    ]
    for table, options, message in cases:
        with pytest.raises(FaultbookError, match=message) as caught:
            compared(table, **options)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"n_resamples": 0}, {"seed": None}])
def test_settings_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"level|n_resamples|seed"):
        compared(scores({"a": [1.0, 0.0], "b": [0.0, 0.5]}), **options)


def test_nullable_and_text_columns_are_read_as_they_are() -> None:
    frame = scores({"a": [1.0, 0.0, np.nan], "b": [0.0, 0.0, 1.0]})
    nullable = frame.astype({"ndcg": "Float64", "model": "category", "log_id": "string", "question_id": "string"})
    assert compared(nullable).pairs["difference"].to_list() == compared(frame).pairs["difference"].to_list()


def test_the_seed_decides() -> None:
    draw = np.random.default_rng(5)
    frame = scores({"a": list(draw.normal(size=40)), "b": list(draw.normal(size=40))})
    pd.testing.assert_frame_equal(compared(frame, seed=3).pairs, compared(frame, seed=3).pairs)
    assert only_pair(frame, seed=3)["low"] != only_pair(frame, seed=4)["low"]
    assert only_pair(frame)["test"] == "sign flip of 40 clusters, Monte Carlo"
