"""One annotator against the others, and models against the very same votes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.ceiling import HUMAN, human_ceiling
from faultbook.attribution.ndcg import ndcg, random_ndcg
from faultbook.attribution.score import score
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import cluster_ratio

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}
LOG3 = 1 / math.log2(3)
IDEAL = 3 + LOG3  # of two flagged steps

#       1       2          3
TWO = {"a": [[1], [1, 4], [4]], "b": [[2], [], []]}
MODELS = {"x": {"a": [[4], [1]], "b": [[2], []]}, "y": {"a": [[1, 4]]}}


def row(table: pd.DataFrame, **where: str) -> pd.Series:
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


# ---- by hand ----------------------------------------------------------------------------------------------------


def test_annotators_by_hand(make_annotations: Make) -> None:
    # Without 1, log a has votes {1: 1, 4: 2} and 1 names step 1, the lesser one; without 2 {1: 1, 4: 1}, and 2 names
    # both; without 3 {1: 2, 4: 1}, and 3 names 4. Log b is no target without 1; 2 and 3 name nothing there.
    result = human_ceiling(make_annotations(TWO), **FEW)
    human = row(result.table, who=HUMAN)
    expected = {"annotator 1": [1 / IDEAL], "annotator 2": [1, 0], "annotator 3": [1 / IDEAL, 0]}
    found = result.per_target.groupby("held_out")["ndcg_at_5"].apply(list).to_dict()
    assert {name: pytest.approx(values, abs=1e-12) for name, values in expected.items()} == found
    assert human["ndcg_at_5"] == pytest.approx((2 / IDEAL + 1) / 5, abs=1e-12)
    assert human[["n_targets", "n_logs", "n_questions", "n_empty"]].to_list() == [5, 2, 2, 2]
    # one of eight steps twice, two of eight once, none twice
    chance = (2 * (4 / 8) + 4 / 8 * (1 + LOG3)) / IDEAL / 5
    assert human["chance"] == pytest.approx(chance, abs=1e-12)
    assert human["adjusted"] == pytest.approx((human["ndcg_at_5"] - chance) / (1 - chance), abs=1e-12)
    each = result.annotators.set_index("who")
    assert each["ndcg_at_5"].to_dict() == pytest.approx(
        {"annotator 1": 1 / IDEAL, "annotator 2": 1 / 2, "annotator 3": 1 / IDEAL / 2}, abs=1e-12
    )
    assert each[["n_targets", "n_empty"]].to_numpy().tolist() == [[1, 0], [2, 1], [2, 1]]


def test_models_by_hand(make_annotations: Make, make_predictions: Make) -> None:
    result = human_ceiling(make_annotations(TWO), *make_predictions(MODELS), **FEW)
    one, both = row(result.table, who="x", samples="one"), row(result.table, who="x", samples="all")
    # log a: [4] and [1] against the orders (4, 1), (1, 4), (1, 4): 3 and 1, 1 and 3, 1 and 3; log b: 1 and 0, twice
    assert one["ndcg_at_5"] == pytest.approx((3 * 2 / IDEAL + 2 * 0.5) / 5, abs=1e-12)
    # together a vote each, so step 1 stands first: once wrong, twice right; log b right
    assert both["ndcg_at_5"] == pytest.approx(((1 + 3 * LOG3) / IDEAL + 4) / 5, abs=1e-12)
    assert [one["n_empty"], both["n_empty"]] == [0, 0]
    assert one["chance"] == pytest.approx((3 * 4 / 8 / IDEAL + 2 * 0.5 / 8) / 5, abs=1e-12)
    other = row(result.table, who="y")
    assert other["samples"] == "one"
    assert other["ndcg_at_5"] == pytest.approx(((1 + 3 * LOG3) / IDEAL + 2) / 5, abs=1e-12)
    assert other["n_empty"] == 2
    human = row(result.table, who=HUMAN)
    for model in (one, both, other):
        assert model["minus_human"] == pytest.approx(model["ndcg_at_5"] - human["ndcg_at_5"], abs=1e-12)
        assert model[["n_targets", "n_logs"]].to_list() == [5, 2]
    assert math.isnan(human["minus_human"])


def test_a_model_that_says_what_an_annotator_says_scores_the_same(
    make_annotations: Make, make_predictions: Make
) -> None:
    flagged = {f"m/{n}": [[n % 5], [n % 3, 5], [n % 4, n % 2]] for n in range(12)}
    listed = {"copy": {name: [lists[1]] for name, lists in flagged.items()}}
    for ties in ("by_step", "expected"):
        result = human_ceiling(make_annotations(flagged), *make_predictions(listed), ties=ties, **FEW)
        targets = result.per_target[result.per_target["held_out"] == "annotator 2"]
        human, model = (targets[targets["kind"] == kind] for kind in ("human", "model"))
        assert human["ndcg_at_5"].to_list() == model["ndcg_at_5"].to_list()
        assert human["chance"].to_list() == model["chance"].to_list()
        assert row(result.annotators, who="annotator 2")["ndcg_at_5"] == human["ndcg_at_5"].mean()


# ---- in general -------------------------------------------------------------------------------------------------

STEPS = st.lists(st.integers(0, 7), max_size=3)
FLAGGED = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(STEPS, min_size=1, max_size=4), min_size=1)


@settings(max_examples=8, deadline=None)
@given(FLAGGED, st.sampled_from([1, 5, None]), st.sampled_from(["reverse_rank", "votes"]))
def test_the_definition(make_annotations: Make, flagged: Any, k: Any, relevance: Any) -> None:
    """Every annotator of every log against the votes of its others, wherever one is left."""
    flagged["d"] = [[1], [2]]
    expected: dict[tuple[str, str], tuple[float, float]] = {}
    for log_id, lists in flagged.items():
        for number, own in enumerate(lists):
            votes = dict(Counter(step for other, steps in enumerate(lists) if other != number for step in set(steps)))
            if votes:
                choices = {"k": k, "relevance": relevance}
                value = ndcg(dict.fromkeys(own, 1), votes, **choices)
                chance = random_ndcg(votes, 8, len(set(own)), **choices)
                expected[f"annotator {number + 1}", log_id] = value, chance
    annotations = make_annotations(flagged)
    result = human_ceiling(annotations, k=k, relevance=relevance, **FEW)
    column = "ndcg_full" if k is None else f"ndcg_at_{k}"
    found = result.per_target.set_index(["held_out", "log_id"])[[column, "chance"]]
    assert sorted(found.index) == sorted(expected)
    for key, values in expected.items():
        assert found.loc[key].to_list() == pytest.approx(values, abs=1e-12)
    mean = cluster_ratio(found[column], np.ones(len(found)), found.index.get_level_values(1), seed=0, **FEW)
    human = row(result.table, who=HUMAN)
    assert human[[column, "low", "high"]].to_list() == pytest.approx([mean.estimate, mean.low, mean.high], nan_ok=True)


def test_models_are_scored_on_the_votes_that_are_left(make_annotations: Make, make_predictions: Make) -> None:
    """With all samples, a model's score on the targets of one annotator is its score against the others alone."""
    rng = np.random.default_rng(2)
    names = [f"m/{n}" for n in range(10)]
    annotations = make_annotations({name: [rng.integers(0, 8, 2).tolist() for _ in range(3)] for name in names})
    tables = make_predictions({"x": {name: [rng.integers(0, 8, 2).tolist() for _ in range(3)] for name in names}})
    result = human_ceiling(annotations, *tables, ties="expected", **FEW)
    for held_out in annotations["annotator"].unique():
        rest = annotations[annotations["annotator"] != held_out]
        known = score(*tables, rest, ties="expected", **FEW).per_log.set_index("log_id")
        mine = result.per_target[(result.per_target["held_out"] == held_out) & (result.per_target["samples"] == "all")]
        expected = known.loc[mine["log_id"], ["ndcg_at_5", "chance"]].to_numpy()
        assert mine[["ndcg_at_5", "chance"]].to_numpy() == pytest.approx(expected, abs=1e-12)
        one = result.per_target[(result.per_target["held_out"] == held_out) & (result.per_target["who"] == "x")]
        one = one[one["samples"] == "one"]
        singles = [
            score(*(table[table["sample"] == n] for table in tables), rest, ties="expected", **FEW).per_log
            for n in range(3)
        ]
        mean = sum(single.set_index("log_id").loc[one["log_id"], "ndcg_at_5"].to_numpy() for single in singles) / 3
        assert one["ndcg_at_5"].to_list() == pytest.approx(mean, abs=1e-12)


def test_a_log_is_not_shorter_without_an_annotator(make_annotations: Make, make_logs: Make) -> None:
    # only annotator 2 judged up to step 19; without them the log still has 20 steps to draw from
    annotations = make_annotations({"a": [[1], [1, 19], [1]]}, n_steps=2)
    for logs in (None, make_logs({"a": 20})):
        result = human_ceiling(annotations, logs=logs, **FEW)
        found = result.per_target.set_index("held_out")["chance"]
        assert found["annotator 2"] == pytest.approx(random_ndcg({1: 2}, 20, 2), abs=1e-12)


def test_questions_are_clusters(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    names = [f"m/{n}" for n in range(6)]
    annotations = make_annotations({name: [[n], [n], [n + 1]] for n, name in enumerate(names)})
    logs = make_logs(dict.fromkeys(names, 8), {name: str(n // 2) for n, name in enumerate(names)})
    tables = make_predictions({"x": {name: [[n]] for n, name in enumerate(names[:3])}})
    result = human_ceiling(annotations, *tables, logs, **FEW)
    assert result.table["n_questions"].to_list() == [3, 3]
    targets = result.per_target.set_index(["held_out", "log_id"])
    gap = targets.loc[targets["kind"] == "model", "ndcg_at_5"] - targets.loc[targets["kind"] == "human", "ndcg_at_5"]
    clusters = [str(int(log_id[2:]) // 2) for _, log_id in gap.index]
    paired = cluster_ratio(gap.to_numpy(), np.ones(len(gap)), clusters, seed=0, **FEW)
    found = row(result.table, who="x")[["minus_human", "minus_low", "minus_high"]]
    assert found.to_list() == pytest.approx([paired.estimate, paired.low, paired.high], abs=1e-12)


@settings(max_examples=5, deadline=None)
@given(FLAGGED, st.permutations(["p", "q", "r", "s"]), st.integers(0, 99))
def test_who_the_annotators_are_does_not_count(
    make_annotations: Make, make_predictions: Make, flagged: Any, names: list[str], seed: int
) -> None:
    flagged["d"] = [[1], [2]]
    annotations = make_annotations(flagged)
    tables = make_predictions({"x": {"a": [[1, 2], [3]], "d": [[2]]}})
    renamed = annotations.assign(annotator=annotations["annotator"].map(lambda name: names[int(name[-1]) - 1]))
    old = human_ceiling(annotations, *tables, **FEW).table
    new = human_ceiling(renamed.sample(frac=1, random_state=seed), *tables, **FEW).table
    pd.testing.assert_frame_equal(old, new, rtol=1e-12, atol=1e-12)


def test_annotators_of_different_logs(make_annotations: Make) -> None:
    # 3 judged only b: they are held out there, and nobody is held against what they did not see
    annotations = make_annotations({"a": [[1], [1]], "b": [[2], [2], [3]]})
    found = human_ceiling(annotations, **FEW).per_target
    targets = sorted(zip(found["held_out"].str[-1], found["log_id"], strict=True))
    assert targets == [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b"), ("3", "b")]


def test_a_log_of_one_annotator_is_no_target(make_annotations: Make) -> None:
    found = human_ceiling(make_annotations({"a": [[1]], "b": [[2], [2]]}), **FEW)
    assert set(found.per_target["log_id"]) == {"b"}
    assert row(found.table, who=HUMAN)["ndcg_at_5"] == 1


def test_samples_that_were_not_drawn_count_as_0(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1], [1]], "b": [[2], [2]]})
    result = human_ceiling(annotations, *make_predictions({"x": {"a": [[1], [1]], "b": [[2], None]}}), **FEW)
    assert row(result.table, who="x", samples="one")["ndcg_at_5"] == pytest.approx((1 + 1 / 2) / 2)
    assert row(result.table, who="x", samples="all")["ndcg_at_5"] == 1


def test_nobody_flags_anything(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[], []], "b": [[], [], []]})
    result = human_ceiling(annotations, *make_predictions({"x": {"a": [[1]]}}), **FEW)
    human = row(result.table, who=HUMAN)
    assert human[["n_targets", "n_logs", "n_empty"]].to_list() == [0, 0, 0]
    assert human[["ndcg_at_5", "low", "high", "chance", "adjusted"]].isna().all()


def test_the_measure_is_named(make_annotations: Make) -> None:
    result = human_ceiling(make_annotations(TWO), k=3, gain="linear", relevance="votes", ties="expected", **FEW)
    assert result.measure == "nDCG@3, relevance votes, gain linear, ties expected"
    assert "ndcg_at_3" in result.table
    assert result.summary_frame() is result.table


def test_the_same_seed_gives_the_same_bytes(make_annotations: Make) -> None:
    annotations = make_annotations({f"m/{n}": [[n % 5], [n % 3], [n % 4]] for n in range(12)})
    csv = [human_ceiling(annotations, seed=seed, **FEW).table.to_csv() for seed in (7, 7, 8)]
    assert csv[0] == csv[1]
    assert csv[0] != csv[2]


def test_what_has_no_ceiling_is_refused(make_annotations: Make, make_predictions: Make) -> None:
    alone = "no log has two annotators; a human ceiling needs one to hold against the others"
    with pytest.raises(FaultbookError, match=alone):
        human_ceiling(make_annotations({"a": [[1]], "b": [[2]]}))
    apart = make_annotations({"a": [[1]], "b": [[1]]})
    apart.loc[apart["log_id"] == "b", "annotator"] = "another"
    with pytest.raises(FaultbookError, match=alone):
        human_ceiling(apart)
    with pytest.raises(FaultbookError, match="no log has two annotators"):
        human_ceiling(apart[:0])
    predictions, attempts = make_predictions({"x": {"a": [[1]]}, "y": {"z": [[1]]}})
    annotations = make_annotations(TWO)
    with pytest.raises(FaultbookError, match="predictions and attempts go together"):
        human_ceiling(annotations, predictions)
    with pytest.raises(FaultbookError, match="predictions and attempts go together"):
        human_ceiling(annotations, attempts=attempts)
    elsewhere = attempts["log_id"] == "z"
    with pytest.raises(FaultbookError, match="no attempt on an annotated log"):
        human_ceiling(annotations, predictions[predictions["log_id"] == "z"], attempts[elsewhere])
    with pytest.raises(FaultbookError, match="1 samples have predictions and no attempt"):
        human_ceiling(annotations, predictions, attempts[elsewhere])
    with pytest.raises(ValueError, match="k is 0"):
        human_ceiling(annotations, k=0)
