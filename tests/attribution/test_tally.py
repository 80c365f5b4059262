"""Votes as arrays: counted as by hand, scored as the scalar scores, and nothing that one log says reaches another."""

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

from faultbook.attribution.ndcg import Measure, ndcg, random_ndcg
from faultbook.attribution.tally import Samples, Scorer, attempted, counted, reference, samples_by_model
from faultbook.errors import FaultbookError
from faultbook.tables import Annotations, Attempts, Predictions, typed

Make = Callable[..., Any]

STEPS = st.lists(st.integers(0, 9), max_size=5)
REVIEWS = st.lists(STEPS.map(lambda steps: steps[:3]), min_size=1, max_size=3)
FLAGGED = st.dictionaries(st.sampled_from(["a/1", "a/2", "b/1", "c"]), REVIEWS, min_size=1)
SAMPLES = st.lists(STEPS | st.sampled_from(["missing", "truncated", "unparsable", "abstained", None]), max_size=3)
LISTED = st.dictionaries(st.sampled_from(["a/1", "a/2", "b/1", "c", "unknown"]), SAMPLES)


def votes_of(lists: Any) -> dict[int, int]:
    return dict(Counter(step for steps in lists if isinstance(steps, list) for step in set(steps)))


# ---- counting ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5))))
def test_counting_is_counting(rows: list[tuple[int, int]]) -> None:
    log, step, n = counted(*(np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1)))
    found = dict(zip(zip(log.tolist(), step.tolist(), strict=True), n.tolist(), strict=True))
    assert found == Counter(rows)
    assert list(found) == sorted(found)


def test_a_reference_by_hand(make_annotations: Make, make_logs: Make) -> None:
    flagged = {"m/2": [[1, 4], [4], [4, 6]], "m/1": [[], []], "x": [[0]]}
    logs = make_logs({"x": None, "m/1": 9, "m/2": 8, "m/3": 5}, {"m/2": "q", "x": "q"})
    known = reference(make_annotations(flagged), logs)
    assert known.logs.to_dict("list") == {
        "log_id": ["m/2", "m/1", "x"],  # as annotated
        "split": ["m", "m", "all"],
        "cluster": ["q", "m/1", "q"],
        "n_steps": pytest.approx([8, 9, np.nan], nan_ok=True),
        "n_annotators": [3, 2, 1],
        "n_flagged": [3, 0, 1],
    }
    assert [array.tolist() for array in (known.log, known.step, known.votes)] == [
        [0, 0, 0, 2],
        [1, 4, 6, 0],
        [1, 3, 1, 1],
    ]
    assert known.codes(pd.Series(["x", "m/3", "m/2", "nowhere"])).tolist() == [2, -1, 0, -1]


def test_without_logs_a_log_describes_itself(make_annotations: Make) -> None:
    annotations = make_annotations({"m/n/2": [[7]], "x": [[]]}, n_steps={"m/n/2": 3, "x": 4})
    known = reference(annotations)
    columns = ["log_id", "split", "cluster", "n_steps"]
    assert known.logs[columns].to_numpy().tolist() == [["m/n/2", "m/n", "m/n/2", 8.0], ["x", "all", "x", 4.0]]


def test_an_annotator_who_flags_nothing_is_one(make_annotations: Make) -> None:
    known = reference(make_annotations({"a": [[2], [], []]}))
    assert known.logs.loc[0, ["n_annotators", "n_flagged"]].to_list() == [3, 1]
    assert known.votes.tolist() == [1]


@settings(max_examples=20, deadline=None)
@given(FLAGGED, st.randoms(use_true_random=False))
def test_who_says_it_and_in_which_row_does_not_count(make_annotations: Make, flagged: Any, random: Any) -> None:
    annotations = make_annotations(flagged)
    names = dict(zip(sorted(set(annotations["annotator"])), random.sample("xyz", 3), strict=False))
    other = annotations.assign(annotator=annotations["annotator"].map(names)).sample(frac=1, random_state=1)
    found = []
    for table in (annotations, other):
        known = reference(table)
        ids = known.logs["log_id"].to_numpy()[known.log]
        found.append(sorted(zip(ids, known.step.tolist(), known.votes.tolist(), strict=True)))
    assert found[0] == found[1]


def test_a_reference_needs_annotations_of_known_logs(make_annotations: Make, make_logs: Make) -> None:
    with pytest.raises(FaultbookError, match="no annotations: nothing to judge against"):
        reference(typed([], Annotations))
    with pytest.raises(FaultbookError, match=r"1 annotated logs are not among the logs \(first: b\)"):
        reference(make_annotations({"a": [[1]], "b": [[1]]}), make_logs({"a": 5}))


# ---- samples ----------------------------------------------------------------------------------------------------


def only(tables: tuple[pd.DataFrame, pd.DataFrame], annotations: pd.DataFrame) -> Samples:
    (found,) = samples_by_model(*tables, reference(annotations)).values()
    return found


def test_samples_by_hand(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1]], "b": [[2]], "c": [[3]]})
    listed = {"b": [[9, 2], [2]], "a": [[1, 1, 4], "truncated"], "z": [[5], [6], [7]], "c": [None, None]}
    found = only(make_predictions({"m": listed}), annotations)
    # the third column is the sample of log z, which nobody judged: it was not drawn for the others
    assert found.log.tolist() == [0, 0, 1, 1]
    assert found.step.tolist() == [1, 4, 2, 9]
    assert found.names.astype(int).tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0]]
    assert found.priority.tolist() == [[2, 0, 0], [1, 0, 0], [1, 1, 0], [2, 0, 0]]
    assert found.status.tolist() == [["ok", "truncated", "missing"], ["ok", "ok", "missing"], ["missing"] * 3]
    assert found.ranking().tolist() == [1, 1, 2, 1]
    assert found.ranking([1]).tolist() == [0, 0, 1, 0]
    assert found.answered.tolist() == [True, True, False]


def test_a_step_listed_twice_has_one_vote_a_sample(make_annotations: Make, make_predictions: Make) -> None:
    # the published code counts it twice: [4, 4, 4], [2], [2] ranks 4 first there
    found = only(make_predictions({"m": {"a": [[4, 4, 4], [2], [2]]}}), make_annotations({"a": [[2]]}))
    assert dict(zip(found.step.tolist(), found.ranking().tolist(), strict=True)) == {2: 2, 4: 1}


@pytest.mark.parametrize("ranked", [True, False])
def test_one_ranked_list_is_its_own_ranking(make_annotations: Make, make_predictions: Make, ranked: bool) -> None:
    tables = make_predictions({"m": {"a": [[5, 3, 5, 4]]}}, ranked=ranked)
    found = only(tables, make_annotations({"a": [[3]]}))
    assert found.step.tolist() == [3, 4, 5]
    assert found.ranking().tolist() == ([2, 1, 3] if ranked else [1, 1, 1])


def test_several_ranked_lists_vote(make_annotations: Make, make_predictions: Make) -> None:
    found = only(make_predictions({"m": {"a": [[5, 3], [5, 4]]}}, ranked=True), make_annotations({"a": [[3]]}))
    assert found.ranking().tolist() == [1, 1, 2]
    assert found.ranking([1]).tolist() == [0, 1, 2]


def test_whether_a_list_is_ranked_is_told_of_each(make_annotations: Make, make_predictions: Make) -> None:
    # an attempt that came to nothing, or a list of another log, says nothing of the order of this one
    predictions, attempts = make_predictions({"m": {"a": [[5, 3]], "b": ["missing"], "c": [[5, 3]]}}, ranked=True)
    attempts["ranked"] = attempts["log_id"] == "a"
    found = only((predictions, attempts), make_annotations({"a": [[3]], "b": [[3]], "c": [[3]]}))
    assert found.ranking().tolist() == [1, 2, 1, 1]


def test_positions_decide_not_rows(make_annotations: Make, make_predictions: Make) -> None:
    predictions, attempts = make_predictions({"m": {"a": [[6, 2, 4]]}}, ranked=True)
    found = only((predictions[::-1], attempts), make_annotations({"a": [[2]]}))
    assert found.ranking().tolist() == [2, 1, 3]
    predictions["position"] *= 1_000  # gaps
    assert only((predictions, attempts), make_annotations({"a": [[2]]})).ranking().tolist() == [2, 1, 3]


def test_a_prediction_needs_its_attempt(make_annotations: Make, make_predictions: Make) -> None:
    predictions, attempts = make_predictions({"m": {"a": [[1], [2]], "b": [[3]]}})
    lost = attempts[(attempts["log_id"] == "b") | (attempts["sample"] == 0)]
    with pytest.raises(FaultbookError, match=r"1 samples have predictions and no attempt \(first: m, a, sample 1\)"):
        samples_by_model(predictions, lost, reference(make_annotations({"a": [[1]]})))


def test_nothing_attempted_is_said(make_annotations: Make, make_predictions: Make) -> None:
    known = reference(make_annotations({"a": [[1]]}))
    for listed in ({}, {"m": {"z": [[1]]}}, {"m": {"a": ["missing"]}}):
        with pytest.raises(FaultbookError, match="no attempt on an annotated log; check that both name logs alike"):
            attempted(*make_predictions(listed), known)
    assert samples_by_model(typed([], Predictions), typed([], Attempts), known) == {}


# ---- scoring ----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(FLAGGED, LISTED, st.booleans(), st.sampled_from([1, 3, 5, None]))
def test_all_logs_at_once_as_one_by_one(
    make_annotations: Make, make_predictions: Make, flagged: Any, listed: Any, ranked: bool, k: int | None
) -> None:
    known = reference(make_annotations(flagged, n_steps=10))
    for found in samples_by_model(*make_predictions({"m": listed}, ranked=ranked), known).values():
        ids, n_samples = known.logs["log_id"], found.names.shape[1]
        for how in itertools.product(("reverse_rank", "votes"), ("exp", "linear"), ("by_step", "expected")):
            choices: dict[str, Any] = dict(zip(("relevance", "gain", "ties"), how, strict=True))
            scorer = Scorer(known, Measure(k, **choices))
            scores = scorer.scores(found.log, found.ranking(), scorer.gains(found.log, found.step))
            named = np.bincount(found.log, weights=found.ranking() > 0, minlength=len(ids)).astype(int)
            chance = scorer.chance(named)
            for code, log_id in enumerate(ids):
                samples = listed.get(log_id, [])
                single = ranked and n_samples == 1 and samples and isinstance(samples[0], list)
                predicted = samples[0] if single else votes_of(samples)
                votes = votes_of(flagged[log_id])
                assert scores[code] == pytest.approx(ndcg(predicted, votes, k, **choices), abs=1e-12, nan_ok=True)
                no_ties = {name: choices[name] for name in ("relevance", "gain")}
                once = random_ndcg(votes, 10, int(named[code]), k, **no_ties)
                assert chance[code] == pytest.approx(once, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("step", [10**12, 2**62, 2**63 - 1])
def test_an_absurd_step_stays_in_its_log(make_annotations: Make, make_predictions: Make, step: int) -> None:
    # a key such as log · width + step would overflow, and take the scores of all other logs with it
    annotations = make_annotations({name: [[place]] for place, name in enumerate("abcdef")})
    listed = {name: [[place]] for place, name in enumerate("abcde")} | {"f": [[step, 5]]}
    scorer = Scorer(known := reference(annotations), Measure())
    found = only(make_predictions({"m": listed}, ranked=True), annotations)
    scores = scorer.scores(found.log, found.ranking(), scorer.gains(found.log, found.step))
    assert scores == pytest.approx([1, 1, 1, 1, 1, 1 / math.log2(3)])
    assert len(known.logs) == 6


def test_an_absurd_label_stays_in_its_log(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    annotations = make_annotations({"a": [[1]], "b": [[2**62]], "c": [[3]]})
    known = reference(annotations, make_logs(dict.fromkeys("abc", 8)))
    found = only(make_predictions({"m": {"a": [[1]], "b": [[2**62]], "c": [[3]]}}), annotations)
    scorer = Scorer(known, Measure())
    assert scorer.scores(found.log, found.ranking(), scorer.gains(found.log, found.step)).tolist() == [1, 1, 1]


def test_chance_cannot_draw_a_label_beyond_its_log(
    make_annotations: Make, make_predictions: Make, make_logs: Make
) -> None:
    # Labels at steps 5, 6 and 7 of a log of two steps, as some releases of Who&When have them: two draws of two steps
    # hit nothing. A label inside counts as ever: gains 7, 3, 1, so 7/2 · (1 + 1/log2 3) of the ideal.
    ideal = 7 + 3 / math.log2(3) + 1 / 2
    for steps, expected in (([5, 6, 7], 0.0), ([1, 6, 7], 7 / 2 * (1 + 1 / math.log2(3)) / ideal)):
        annotations = make_annotations({"a": [steps]}, n_steps=2)
        scorer = Scorer(reference(annotations, make_logs({"a": 2})), Measure())
        assert scorer.chance(np.array([3])) == pytest.approx([expected], abs=1e-12)
    unknown = Scorer(reference(annotations, make_logs({"a": None})), Measure())
    assert np.isnan(unknown.chance(np.array([3]))).all()


def test_nobody_flags_anything(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[]], "b": [[], []]})
    for ties in ("by_step", "expected"):
        scorer = Scorer(reference(annotations), Measure(ties=ties))
        found = only(make_predictions({"m": {"a": [[1]]}}), annotations)
        gains = scorer.gains(found.log, found.step)
        assert gains.tolist() == [0]
        assert np.isnan(scorer.scores(found.log, found.ranking(), gains)).all()
        assert np.isnan(scorer.chance(np.array([1, 1]))).all()


def test_nothing_is_named(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1]], "b": [[]]})
    scorer = Scorer(reference(annotations), Measure())
    found = only(make_predictions({"m": {"a": [[]], "b": ["truncated"]}}), annotations)
    scores = scorer.scores(found.log, found.ranking(), scorer.gains(found.log, found.step))
    assert scores == pytest.approx([0, np.nan], nan_ok=True)
    assert found.answered.tolist() == [False, False]


def test_2000_flagged_steps_beside_a_short_log(make_annotations: Make, make_predictions: Make) -> None:
    many = list(range(2000))
    annotations = make_annotations({"long": [many], "short": [[3]]})
    for gain, relevance in itertools.product(("exp", "linear"), ("reverse_rank", "votes")):
        measure = Measure(None, gain=gain, relevance=relevance)
        scorer = Scorer(reference(annotations), measure)
        found = only(make_predictions({"m": {"long": [many], "short": [[3]]}}), annotations)
        scores = scorer.scores(found.log, found.ranking(), scorer.gains(found.log, found.step))
        assert scores == pytest.approx([1, 1], abs=1e-12)
