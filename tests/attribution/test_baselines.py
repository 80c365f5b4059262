"""Answers that read nothing: what they name, that none sees its own labels, and what they are worth."""

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

from faultbook.attribution.baselines import (
    CONSTANT,
    PRIOR,
    SAMPLE_SUBMISSION,
    SPEAKER,
    baselines,
    random_scores,
    with_baselines,
)
from faultbook.attribution.ndcg import Measure, discounts, gains_of, random_ndcg
from faultbook.attribution.score import score
from faultbook.errors import FaultbookError
from faultbook.tables import Attempts, Predictions, Steps, typed

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}


def named(predictions: pd.DataFrame, model: str) -> dict[str, list[int]]:
    own = predictions[predictions["model"] == model].sort_values(["log_id", "position"])
    return {str(log_id): part["step"].to_list() for log_id, part in own.groupby("log_id", sort=False)}


def make_steps(speakers: dict[str, list[str | None]]) -> pd.DataFrame:
    rows = [(log_id, step, agent, agent) for log_id, agents in speakers.items() for step, agent in enumerate(agents)]
    return typed(rows, Steps)


# ---- the position prior -----------------------------------------------------------------------------------------


def test_the_prior_by_hand(make_annotations: Make, make_logs: Make) -> None:
    flagged = {"m/1": [[0], [0, 2]], "m/2": [[2], [2]], "m/3": [[3], [0]], "m/4": [[1], []], "a/1": [[4], [4]]}
    lengths = {"m/1": 8, "m/2": 3, "m/3": 8, "m/4": 8, "a/1": 8}
    predictions, attempts = baselines(make_annotations(flagged, n_steps=0), make_logs(lengths))
    # m/1 sees, of three others (two that have a step 3): 0: 1/3, 1: 1/3, 2: 2/3, 3: 1/2. m/2 has no step 3.
    # m/3 sees 0: 2/3, 1: 1/3, 2: 3/3. m/4 sees 0: 3/3, 2: 3/3, 3: 1/2. a/1 is alone in its split.
    expected = {"m/1": [2, 3, 0, 1], "m/2": [0, 1, 2], "m/3": [2, 0, 1], "m/4": [0, 2, 3]}
    assert named(predictions, PRIOR) == expected
    tries = attempts[attempts["model"] == PRIOR].set_index("log_id")
    assert tries["status"].to_dict() == dict.fromkeys(expected, "ok") | {"a/1": "abstained"}
    assert tries["ranked"].all()


def test_the_prior_takes_the_mean_over_the_others_alone(make_annotations: Make, make_logs: Make) -> None:
    # m/1 sees two votes on step 0 in three others, and one on step 5 in the one other that has it: 2/3 and 1. Were m/1
    # among those it is held against, that would be 2/4 and 1/2, and the earlier step would stand first.
    flagged = {"m/1": [[]], "m/2": [[5]], "m/3": [[0]], "m/4": [[0]]}
    logs = make_logs({"m/1": 8, "m/2": 8, "m/3": 2, "m/4": 2})
    assert named(baselines(make_annotations(flagged, n_steps=1), logs)[0], PRIOR)["m/1"] == [5, 0]


LENGTHS = st.integers(1, 7) | st.none()
LOGS = st.lists(
    st.tuples(LENGTHS, st.lists(st.lists(st.integers(0, 8), max_size=2), min_size=1, max_size=2)),
    min_size=1,
    max_size=6,
)


def tables(logs: Any, make_annotations: Make, make_logs: Make) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = [f"{'ma'[number % 2]}/{number}" for number in range(len(logs))]
    flagged = {name: lists for name, (_, lists) in zip(names, logs, strict=True)}
    lengths = {name: n for name, (n, _) in zip(names, logs, strict=True)}
    return make_annotations(flagged, n_steps=1), make_logs(lengths)


@settings(max_examples=6, deadline=None)
@given(LOGS, st.integers(1, 4))
def test_the_prior_is_its_definition(make_annotations: Make, make_logs: Make, logs: Any, n_predicted: int) -> None:
    """Votes of the other logs of the split that have the step (one of unknown length may), over their number."""
    found = named(baselines(*tables(logs, make_annotations, make_logs), n_predicted=n_predicted)[0], PRIOR)
    for number, (length, _) in enumerate(logs):
        rates = {}
        for step in range(9):
            others = [
                sum(step in set(steps) for steps in lists)
                for other, (n, lists) in enumerate(logs)
                if other != number and other % 2 == number % 2 and step < (n or 99)
            ]
            if sum(others) and step < (length or 99):
                rates[step] = sum(others) / len(others)
        ranking = sorted(rates, key=lambda step: (-rates[step], step))[:n_predicted]
        assert found.get(f"{'ma'[number % 2]}/{number}", []) == ranking


@settings(max_examples=5, deadline=None)
@given(LOGS, st.data())
def test_the_prior_never_sees_its_own_labels(make_annotations: Make, make_logs: Make, logs: Any, data: Any) -> None:
    number = data.draw(st.integers(0, len(logs) - 1))
    other = data.draw(st.lists(st.lists(st.integers(0, 8), max_size=2), min_size=1, max_size=2))
    changed = [(n, other if own == number else lists) for own, (n, lists) in enumerate(logs)]
    name = f"{'ma'[number % 2]}/{number}"
    old, new = (named(baselines(*tables(given_, make_annotations, make_logs))[0], PRIOR) for given_ in (logs, changed))
    assert old.get(name) == new.get(name)


def test_a_label_beyond_its_log_says_nothing_of_place(make_annotations: Make, make_logs: Make) -> None:
    # as in releases of Who&When before July 2025: the label of a log of five steps was step 8
    annotations = make_annotations({"m/34": [[8]], "m/1": [[2]], "m/2": [[2]]}, n_steps=1)
    predictions, _ = baselines(annotations, make_logs({"m/34": 5, "m/1": 10, "m/2": 10}))
    assert named(predictions, PRIOR) == {"m/34": [2], "m/1": [2], "m/2": [2]}


def test_a_log_of_unknown_length_is_not_as_long_as_its_last_label(make_annotations: Make, make_logs: Make) -> None:
    flagged = {"a": [[0]], "b": [[0], [3]], "c": [[3]], "d": [[3]]}
    annotations = make_annotations(flagged, n_steps=0)
    assert named(baselines(annotations, make_logs(dict.fromkeys(flagged)))[0], PRIOR)["a"] == [3, 0]


def test_a_wild_label_costs_no_memory(make_annotations: Make) -> None:
    predictions, _ = baselines(make_annotations({"a": [[10**15]], "b": [[2]], "c": [[2]]}))
    assert named(predictions, PRIOR) == {"a": [2], "b": [2], "c": [2]}


# ---- the constant list and the most frequent speaker ------------------------------------------------------------


def test_the_constant_list(make_annotations: Make, make_logs: Make) -> None:
    annotations = make_annotations({"a": [[1]], "b": [[]]}, n_steps=2)
    predictions, _ = baselines(annotations, make_logs({"a": 2, "b": 9, "c": 9}))
    assert named(predictions, CONSTANT) == {"a": [0, 1, 2], "b": [0, 1, 2]}
    other, attempts = baselines(annotations, constant=[5, 1, 5], n_predicted=1)
    assert named(other, CONSTANT) == {"a": [5, 1], "b": [5, 1]}
    assert set(attempts["status"][attempts["model"] == CONSTANT]) == {"ok"}
    nothing, attempts = baselines(annotations, constant=[])
    assert named(nothing, CONSTANT) == {}
    assert set(attempts["status"][attempts["model"] == CONSTANT]) == {"abstained"}


def test_the_most_frequent_speaker(make_annotations: Make) -> None:
    speakers: dict[str, list[str | None]] = {
        "a": ["human", "coder", "critic", "coder", "critic", "coder"],
        "b": ["human", "critic", "coder", "coder", "critic"],  # a tie: who speaks first
        "c": ["human", None, None, None],
        "d": [None],
        "z": ["coder"],  # nobody judged it
    }
    annotations = make_annotations({name: [[1]] for name in "abcde"})
    steps = make_steps(speakers).sample(frac=1, random_state=0)
    predictions, attempts = baselines(annotations, steps=steps, n_predicted=2)
    assert named(predictions, SPEAKER) == {"a": [1, 3], "b": [1, 4], "c": [0]}
    tries = attempts[attempts["model"] == SPEAKER].set_index("log_id")["status"]
    assert tries.to_dict() == {"a": "ok", "b": "ok", "c": "ok", "d": "abstained", "e": "abstained"}


def test_renaming_agents_changes_nothing(make_annotations: Make) -> None:
    rng = np.random.default_rng(0)
    annotations = make_annotations({name: [[1]] for name in "abcdef"})
    speakers = {name: rng.choice(list("xyz"), 12).tolist() for name in "abcdef"}
    renamed = {log: [{"x": "C", "y": "A", "z": "B"}[agent] for agent in agents] for log, agents in speakers.items()}
    old, new = (baselines(annotations, steps=make_steps(given_))[0] for given_ in (speakers, renamed))
    pd.testing.assert_frame_equal(old, new)


def test_the_speaker_needs_steps(make_annotations: Make) -> None:
    annotations = make_annotations({"a": [[1]], "b": [[1]]})
    for steps in (None, typed([], Steps)):
        assert set(baselines(annotations, steps=steps)[1]["model"]) == {PRIOR, CONSTANT}
    silent = baselines(annotations, steps=make_steps({"a": [None, None]}))[1]
    assert set(silent["status"][silent["model"] == SPEAKER]) == {"abstained"}


# ---- tables -----------------------------------------------------------------------------------------------------


def test_baselines_are_tables_like_those_of_models(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1], [2]], "b": [[2]], "c": [[]]})
    steps = make_steps({"a": ["x", "y", "y"], "b": ["x"]})
    predictions, attempts = baselines(annotations, steps=steps)
    Predictions.validate(predictions)
    Attempts.validate(attempts)
    assert len(attempts) == 9
    for listed in ({"m": {"a": [[2]], "b": ["truncated"]}}, {}):
        both = with_baselines(*make_predictions(listed), annotations, steps=steps)
        Predictions.validate(both[0])
        Attempts.validate(both[1])
        models = score(*both, annotations, **FEW).models
        assert models["model"].to_list() == [*listed, PRIOR, CONSTANT, SPEAKER]
        assert models["n_without_failure"].to_list() == [1] * len(models)
    # a constant list never leaves a log alone
    assert models.set_index("model").loc[CONSTANT, "false_alarm_rate"] == 1


def test_settings_reach_the_baselines(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1, 2]], "b": [[1, 2]]})
    given_ = with_baselines(*make_predictions({}), annotations, constant=(7,), n_predicted=1)
    assert named(given_[0], CONSTANT) == {"a": [7], "b": [7]}
    assert named(given_[0], PRIOR) == {"a": [1], "b": [1]}


def test_what_makes_no_baseline_is_refused(make_annotations: Make) -> None:
    annotations = make_annotations({"a": [[1]]})
    for wrong in (
        {"n_predicted": 0},
        {"constant": [-1]},
        {"constant": ["0"]},
        {"constant": [0.0]},
        {"constant": [True]},
    ):
        with pytest.raises(FaultbookError, match="give 1 or more, and steps"):
            baselines(annotations, **wrong)
    with pytest.raises(FaultbookError, match="no annotations"):
        baselines(annotations[:0])


# ---- what they are worth ----------------------------------------------------------------------------------------


def test_random_scores_by_hand(make_annotations: Make, make_logs: Make) -> None:
    flagged = {"m/1": [[1], [1, 4]], "m/2": [[6]], "m/3": [[]], "m/4": [[0]], "a/1": [[2]]}
    logs = make_logs({"m/1": 8, "m/2": 10, "m/3": 9, "m/4": None, "a/1": 4})
    table = random_scores(make_annotations(flagged), logs).set_index("split")
    assert table.loc["m", ["n_logs", "mean_steps", "mean_flagged"]].to_list() == [2, 9, 1.5]
    for column, k in (("ndcg_at_5", 5), ("ndcg_full", None)):
        mean = (random_ndcg({1: 2, 4: 1}, 8, k=k) + random_ndcg({6: 1}, 10, k=k)) / 2
        assert table.loc["m", column] == pytest.approx(mean, abs=1e-12)
        assert table.loc["a", column] == pytest.approx(random_ndcg({2: 1}, 4, k=k), abs=1e-12)
    three = random_scores(make_annotations(flagged), logs, n_predicted=3, k=2, relevance="votes", gain="linear")
    mean = sum(random_ndcg(v, n, 3, 2, relevance="votes", gain="linear") for v, n in (({1: 2, 4: 1}, 8), ({6: 1}, 10)))
    assert three["ndcg_at_2"].iloc[0] == pytest.approx(mean / 2, abs=1e-12)


def test_random_scores_of_logs_that_nobody_flags(make_annotations: Make) -> None:
    assert random_scores(make_annotations({"m/1": [[]], "m/2": [[]]})).empty


def worth(annotations: pd.DataFrame, n: int, constant: list[int], **choices: Any) -> pd.Series:
    return (
        score(*baselines(annotations, constant=constant), annotations, **choices, **FEW)
        .models.set_index("model")
        .loc[CONSTANT]
    )


@pytest.mark.slow
def test_a_constant_list_is_worth_chance_and_the_prior(make_annotations: Make) -> None:
    """What it has above chance is the excess of gain at its places over the mean of the log, and nothing else."""
    rng = np.random.default_rng(9)
    n = 8
    placed = {f"m/{i}": [rng.geometric(0.4, 2).clip(1, n) - 1 for _ in range(3)] for i in range(40)}
    annotations = make_annotations(
        {name: [part.tolist() for part in lists] for name, lists in placed.items()}, n_steps=n
    )
    for relevance, gain, ties in itertools.product(
        ("reverse_rank", "votes"), ("exp", "linear"), ("by_step", "expected")
    ):
        measure = Measure(5, relevance, gain, ties)
        shares = np.zeros((40, n))  # gain of each step of each log, as a share of the ideal
        for row, lists in enumerate(placed.values()):
            votes = Counter(int(step) for part in lists for step in set(part.tolist()))
            gains, ideal = gains_of(np.zeros(n, np.int64), np.array([votes[step] for step in range(n)]), 1, measure)
            shares[row] = gains / ideal
        prior = shares.mean(axis=0)
        for constant in ([0, 1, 2], [7, 6, 5], [3]):
            row = worth(annotations, n, constant, relevance=relevance, gain=gain, ties=ties)
            excess = ((prior - prior.mean())[constant] * discounts(np.arange(len(constant)), 5)).sum()
            assert row["ndcg_at_5"] - row["chance"] == pytest.approx(excess, abs=1e-12)
            # and no constant list has more above chance than the best places of the data set, in hindsight
            best = np.sort(prior - prior.mean())[::-1][: len(constant)] * discounts(np.arange(len(constant)), 5)
            assert row["ndcg_at_5"] - row["chance"] <= best.sum() + 1e-12


def test_the_sample_submission_gains_by_the_tie_break_alone(make_annotations: Make) -> None:
    # Each set of three steps of eight is flagged once, one vote a step: failures fall anywhere. The leaderboard's
    # sample, [0, 1, 2], is above chance only where the earlier of two equal steps is graded higher.
    flagged = {f"m/{n}": [list(steps)] for n, steps in enumerate(itertools.combinations(range(8), 3))}
    annotations = make_annotations(flagged, n_steps=8)
    published = worth(annotations, 8, list(SAMPLE_SUBMISSION))
    assert published["chance"] == pytest.approx(0.3119, abs=5e-5)
    assert published["ndcg_at_5"] == pytest.approx(0.5230, abs=5e-5)
    assert published["adjusted_low"] > 0.1
    for choices in ({"ties": "expected"}, {"relevance": "votes"}, {"ties": "expected", "gain": "linear"}):
        row = worth(annotations, 8, list(SAMPLE_SUBMISSION), **choices)
        assert row["adjusted"] == pytest.approx(0, abs=1e-12)
        assert row["adjusted_low"] < 0 < row["adjusted_high"]
    late = worth(annotations, 8, [7, 6, 5])
    assert late["adjusted"] == pytest.approx((0.12418 - 0.31194) / (1 - 0.31194), abs=1e-4)


def test_the_prior_finds_a_place_that_is_always_the_same(make_annotations: Make) -> None:
    annotations = make_annotations({f"m/{n}": [[5], [5, n % 8]] for n in range(20)})
    models = score(*baselines(annotations), annotations, **FEW).models.set_index("model")
    assert models.loc[PRIOR, "ndcg_at_5"] > 0.8 > models.loc[CONSTANT, "ndcg_at_5"]
    assert math.isfinite(models.loc[PRIOR, "adjusted_low"])
