"""More samples: the average over all subsets, one by one, and over some of them, as stated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.draws import some_draws
from faultbook.attribution.ndcg import ndcg, random_ndcg
from faultbook.attribution.scaling import n_scaling
from faultbook.attribution.score import score
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import cluster_ratio

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}

STEPS = st.lists(st.integers(0, 7), max_size=3)
SAMPLES = st.lists(STEPS | st.sampled_from(["truncated", None]), min_size=4, max_size=4)


def votes_of(samples: Any) -> dict[int, int]:
    return dict(Counter(step for steps in samples if isinstance(steps, list) for step in set(steps)))


# ---- the definition ---------------------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(
    st.lists(SAMPLES, min_size=3, max_size=3), st.sampled_from(["by_step", "expected"]), st.sampled_from([2, 5, None])
)
def test_every_subset_one_by_one(
    make_annotations: Make, make_predictions: Make, samples: list[Any], ties: Any, k: Any
) -> None:
    flagged = {"a": [[1], [1, 4]], "b": [[0, 2], [3], [2]], "c": [[]], "d": [[6]]}
    listed = dict(zip("abc", samples, strict=True)) | {"d": [[6], [5], [6, 5], [0]]}
    votes = {log_id: votes_of(lists) for log_id, lists in flagged.items() if any(lists)}
    table = n_scaling(*make_predictions({"x": listed}), make_annotations(flagged), k=k, ties=ties, **FEW)
    column = "ndcg_full" if k is None else f"ndcg_at_{k}"
    assert table["n_samples"].to_list() == [1, 2, 3, 4]
    for row in table.to_dict("records"):
        subsets = list(itertools.combinations(range(4), row["n_samples"]))
        scores, chance = np.zeros((len(subsets), 3)), np.zeros((len(subsets), 3))
        for (i, subset), (j, log_id) in itertools.product(enumerate(subsets), enumerate(votes)):
            predicted = votes_of(listed[log_id][n] for n in subset)
            scores[i, j] = ndcg(predicted, votes[log_id], k, ties=ties)
            chance[i, j] = random_ndcg(votes[log_id], 8, len(predicted), k)
        per_log, level = scores.mean(axis=0), chance.mean(axis=0)
        mean = cluster_ratio(per_log, np.ones(3), list(votes), seed=0, **FEW)
        adjusted = cluster_ratio(per_log - level, 1 - level, list(votes), seed=0, **FEW)
        assert (row["n_subsets"], row["all_subsets"], row["n_logs"]) == (len(subsets), True, 3)
        names = [column, "low", "high", "chance", "adjusted", "adjusted_low", "adjusted_high"]
        values = [mean.estimate, mean.low, mean.high, level.mean(), adjusted.estimate, adjusted.low, adjusted.high]
        # bounds come of resampled sums: alike to rounding, or missing where the per-log values are alike to rounding
        assert [row[names[i]] for i in (0, 3, 4)] == pytest.approx([values[i] for i in (0, 3, 4)], abs=1e-12)
        if not np.isnan(mean.low) and np.ptp(per_log) > 1e-6:
            assert [row[name] for name in names] == pytest.approx(values, abs=1e-9, nan_ok=True)
        spread = scores.mean(axis=1).std() if len(subsets) > 1 else np.nan
        assert row["spread"] == pytest.approx(spread, abs=1e-9, nan_ok=True)


def test_two_samples_by_hand(make_annotations: Make, make_predictions: Make) -> None:
    # one sample is right, one names nothing: 1 and 0, on average 1/2; together right
    table = n_scaling(*make_predictions({"x": {"a": [[3], []]}}), make_annotations({"a": [[3]]}), **FEW)
    assert table["ndcg_at_5"].to_list() == [0.5, 1]
    assert table["chance"].to_list() == [1 / 16, 1 / 8]
    assert table["spread"].to_list() == pytest.approx([0.5, np.nan], nan_ok=True)
    assert table["adjusted"].to_list() == [(0.5 - 1 / 16) / (1 - 1 / 16), 1]


def test_one_draw_may_fall_where_the_average_rises(make_annotations: Make, make_predictions: Make) -> None:
    # Seven logs; four samples of which the first happens to be perfect. From sample 1 to samples 1 and 2 the score
    # falls; over all subsets it rises.
    flagged = {f"m/{n}": [[n]] * 3 for n in range(7)}
    listed = {name: [[n], [(n + 1) % 7, n], [(n + 2) % 7, n], [(n + 3) % 7, n]] for n, name in enumerate(flagged)}
    annotations = make_annotations(flagged, n_steps=7)
    tables = make_predictions({"x": listed})
    chosen = [score(*(t[t["sample"] < n] for t in tables), annotations, **FEW).models["ndcg_at_5"][0] for n in (1, 2)]
    assert chosen[0] == 1 >= chosen[1]
    table = n_scaling(*tables, annotations, **FEW)
    assert table["ndcg_at_5"].is_monotonic_increasing
    assert table["ndcg_at_5"].iloc[0] < table["ndcg_at_5"].iloc[-1]


def test_all_samples_are_what_score_scores(make_annotations: Make, make_predictions: Make) -> None:
    rng = np.random.default_rng(4)
    flagged = {f"m/{n}": rng.integers(0, 8, (3, 2)).tolist() for n in range(12)}
    listed = {m: {name: rng.integers(0, 8, (n, 2)).tolist() for name in flagged} for m, n in (("x", 3), ("y", 2))}
    tables = [*make_predictions(listed), make_annotations(flagged)]
    table = n_scaling(*tables, **FEW)
    assert list(zip(table["model"], table["n_samples"], strict=True)) == [
        ("x", 1), ("x", 2), ("x", 3), ("y", 1), ("y", 2)
    ]  # fmt: skip
    last = table.groupby("model").last()
    known = score(*tables, **FEW).models.set_index("model")
    for name in ("ndcg_at_5", "low", "high", "chance", "adjusted", "adjusted_low", "adjusted_high", "n_logs"):
        assert last[name].to_list() == pytest.approx(known[name].to_list(), abs=1e-12)


def test_a_single_ranked_list_keeps_its_order(make_annotations: Make, make_predictions: Make) -> None:
    tables = make_predictions({"x": {"a": [[5, 1], [1, 5]]}}, ranked=True)
    table = n_scaling(*tables, make_annotations({"a": [[5]]}), **FEW)
    behind = 1 / math.log2(3)
    assert table["ndcg_at_5"].to_list() == pytest.approx([(1 + behind) / 2, behind])  # together: a tie, 1 before 5


# ---- some of many -----------------------------------------------------------------------------------------------


def test_subsets_are_drawn_where_there_are_too_many(make_annotations: Make, make_predictions: Make) -> None:
    rng = np.random.default_rng(1)
    flagged = {f"m/{n}": rng.integers(0, 8, (3, 2)).tolist() for n in range(8)}
    listed = {"x": {name: rng.integers(0, 8, (8, 2)).tolist() for name in flagged}}
    tables = [*make_predictions(listed), make_annotations(flagged)]
    every, some = (n_scaling(*tables, most_subsets=most, **FEW) for most in (70, 20))
    assert every["n_subsets"].to_list() == [math.comb(8, n) for n in range(1, 9)]
    assert every["all_subsets"].all()
    assert some["n_subsets"].to_list() == [8, 20, 20, 20, 20, 20, 8, 1]
    assert some["all_subsets"].to_list() == [True, False, False, False, False, False, True, True]
    gap = (some["ndcg_at_5"] - every["ndcg_at_5"]).abs()
    assert gap[some["all_subsets"]].to_list() == pytest.approx([0, 0, 0], abs=1e-15)
    # a mean of 20 of N subsets is as far from that of all as a sample without replacement may be
    assert (gap <= 4 * every["spread"].fillna(0) / math.sqrt(20) + 1e-12).all()


@settings(max_examples=13, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=3), st.integers(1, 60))
def test_draws_are_different_and_of_the_right_size(sizes: list[tuple[int, int]], most: int) -> None:
    taken = [min(size, n) for size, n in sizes]
    total = math.prod(math.comb(size, n) for (size, _), n in zip(sizes, taken, strict=True))
    draws = some_draws([size for size, _ in sizes], taken, most, np.random.default_rng(0))
    assert len(draws) == len(set(draws)) == min(total, most)
    for draw in draws:
        assert [len(part) for part in draw] == taken
        for part, (size, _) in zip(draw, sizes, strict=True):
            assert sorted(set(part)) == list(part)
            assert set(part) <= set(range(size))


def test_each_subset_is_drawn_equally_often() -> None:
    rng = np.random.default_rng(8)
    counts = Counter(draw for _ in range(600) for draw in some_draws([5], [2], 4, rng))
    assert len(counts) == 10
    # 600 · 4/10 = 240 each, with a standard deviation of √(600 · .4 · .6) = 12
    assert all(abs(n - 240) < 4.5 * 12 for n in counts.values())


def test_the_same_seed_gives_the_same_bytes(make_annotations: Make, make_predictions: Make) -> None:
    rng = np.random.default_rng(1)
    flagged = {f"m/{n}": rng.integers(0, 8, (3, 2)).tolist() for n in range(6)}
    listed = {"x": {name: rng.integers(0, 8, (7, 2)).tolist() for name in flagged}}
    tables = [*make_predictions(listed), make_annotations(flagged)]
    csv = [n_scaling(*tables, most_subsets=5, seed=seed, **FEW).to_csv() for seed in (7, 7, 8)]
    assert csv[0] == csv[1]
    assert csv[0] != csv[2]
    shuffled = [table.sample(frac=1, random_state=2) for table in tables]
    old, new = (n_scaling(*given_, most_subsets=5, **FEW) for given_ in (tables, shuffled))
    pd.testing.assert_frame_equal(old, new, rtol=1e-12, atol=1e-12)


# ---- edges ------------------------------------------------------------------------------------------------------


def test_chance_is_shown_where_nothing_can_be_adjusted(make_annotations: Make, make_predictions: Make) -> None:
    table = n_scaling(*make_predictions({"x": {"a": [[0]]}}), make_annotations({"a": [[0]]}, n_steps=1), **FEW)
    assert table[["ndcg_at_5", "chance"]].to_numpy().tolist() == [[1, 1]]
    assert table[["adjusted", "adjusted_low", "adjusted_high"]].isna().all(axis=None)


def test_an_unknown_length_has_no_chance_level(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    tables = [*make_predictions({"x": {"a": [[0]], "b": [[1]]}}), make_annotations({"a": [[0]], "b": [[1]]})]
    table = n_scaling(*tables, make_logs({"a": None, "b": None}), **FEW)
    assert table[["chance", "adjusted"]].isna().all(axis=None)
    table = n_scaling(*tables, make_logs({"a": None, "b": 8}), **FEW)
    assert table[["ndcg_at_5", "chance", "adjusted", "n_logs"]].to_numpy().tolist() == [[1, 1 / 8, 1, 2]]


def test_the_measure_is_named(make_annotations: Make, make_predictions: Make) -> None:
    tables = [*make_predictions({"x": {"a": [[0]]}}), make_annotations({"a": [[0]]})]
    table = n_scaling(*tables, k=None, relevance="votes", gain="linear", ties="expected", **FEW)
    assert table["measure"].to_list() == ["nDCG@full, relevance votes, gain linear, ties expected"]
    assert "ndcg_full" in table


def test_what_cannot_be_scaled_is_refused(make_annotations: Make, make_predictions: Make) -> None:
    tables = make_predictions({"x": {"a": [[1], [2]]}})
    annotations = make_annotations({"a": [[1]]})
    for most in (0, -1, 2.5, True, None):
        with pytest.raises(FaultbookError, match=f"most_subsets is {most}; give a whole number of at least 1"):
            n_scaling(*tables, annotations, most_subsets=most)
    with pytest.raises(FaultbookError, match="nobody flagged a step; there is nothing to rank against"):
        n_scaling(*tables, make_annotations({"a": [[]]}))
    with pytest.raises(FaultbookError, match="no annotations"):
        n_scaling(*tables, annotations[:0])
    for elsewhere in ({}, {"x": {"z": [[1]]}}):
        with pytest.raises(FaultbookError, match="no attempt on an annotated log"):
            n_scaling(*make_predictions(elsewhere), annotations)
    with pytest.raises(FaultbookError, match="2 samples have predictions and no attempt"):
        n_scaling(tables[0], tables[1][:0], annotations)
