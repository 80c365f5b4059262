"""Scores of models: one set of logs for all, everything counted, chance beside every value, nothing by accident."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.ndcg import ndcg, random_ndcg
from faultbook.attribution.score import Scores, score
from faultbook.errors import FaultbookError
from faultbook.stats.bootstrap import cluster_ratio
from faultbook.stats.proportion import wilson

Make = Callable[..., Any]
FEW: dict[str, Any] = {"n_resamples": 50}
LOG3 = 1 / math.log2(3)

STATUSES = ["ok", "abstained", "unparsable", "truncated", "missing"]
STEPS = st.lists(st.integers(0, 9), max_size=4)
SAMPLES = st.lists(STEPS | st.sampled_from([*STATUSES[1:], None]), max_size=3)
LOGS = ["m/1", "m/2", "m/3", "a/1"]
MODELS = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.dictionaries(st.sampled_from([*LOGS, "other/1"]), SAMPLES), min_size=1
)
FLAGGED = st.dictionaries(st.sampled_from(LOGS), st.lists(STEPS, min_size=1, max_size=3), min_size=1)


@pytest.fixture(scope="module")
def example(make_annotations: Make, make_predictions: Make, make_logs: Make) -> Scores:
    """Two models on six logs, one of which nobody flagged, one of unknown length, and two of one question."""
    annotations = make_annotations(
        {
            "m/1": [[2], [2, 5], [2]],  # votes 3, 1
            "m/2": [[0], [0], [1]],  # votes 2, 1
            "m/3": [[7], [], []],
            "a/1": [[3], [3], [3]],
            "a/2": [[], [], []],
            "a/3": [[], []],
        }
    )
    lengths = {"m/1": 8, "m/2": 8, "m/3": 8, "a/1": None, "a/2": 8, "a/3": 8}
    listed = {
        "x": {
            "m/1": [[5, 2], [5]],  # 5 before 2
            "m/2": [[0], [0, 1]],
            "m/3": ["truncated", "unparsable"],
            "a/1": [[3], None],
            "a/2": [[4], []],  # a false alarm
            "a/3": ["abstained", "missing"],
        },
        "y": {
            "m/1": [[2, 5]],
            "m/3": [[]],
            "a/1": [[0]],
            "a/2": ["unparsable"],
            "a/3": ["truncated"],
            "b/9": [[1]],
        },
    }
    logs = make_logs(lengths, {"m/1": "q", "a/1": "q"})
    return score(*make_predictions(listed), annotations, logs, n_resamples=200)


# ---- by hand ----------------------------------------------------------------------------------------------------


def value(result: Scores, model: str, log_id: str, column: str = "ndcg_at_5") -> float:
    rows = result.per_log
    return float(rows.loc[(rows["model"] == model) & (rows["log_id"] == log_id), column].item())


REVERSED = (1 + 3 * LOG3) / (3 + LOG3)  # gains 3 and 1, the lesser one first


def test_each_log(example: Scores) -> None:
    expected = {"m/1": REVERSED, "m/2": 1, "m/3": 0, "a/1": 1, "a/2": np.nan, "a/3": np.nan}
    assert {i: value(example, "x", i) for i in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)
    expected |= {"m/1": 1, "m/2": 0, "a/1": 0}
    assert {i: value(example, "y", i) for i in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)
    # two of eight steps, gains 3 and 1
    assert value(example, "x", "m/1", "chance") == pytest.approx(4 / 8 * (1 + LOG3) / (3 + LOG3), abs=1e-12)
    assert value(example, "y", "m/2", "chance") == 0
    assert math.isnan(value(example, "x", "a/1", "chance"))


def test_every_status_is_counted(example: Scores) -> None:
    status = example.per_log.pivot_table("status", "log_id", "model", "first", sort=False)
    assert status["x"].to_dict() == {
        "m/1": "answered",
        "m/2": "answered",
        "m/3": "truncated",
        "a/1": "answered",
        "a/2": "answered",
        "a/3": "abstained",
    }
    assert status["y"].to_list() == ["answered", "missing", "abstained", "answered", "unparsable", "truncated"]
    counts = [f"n_{name}" for name in ("logs", "answered", "common", "abstained", "truncated", "unparsable", "missing")]
    assert example.models[counts].to_numpy().tolist() == [[4, 3, 2, 0, 1, 0, 0], [4, 2, 2, 1, 0, 0, 1]]
    assert example.models["n_questions"].to_list() == [3, 3]


def test_three_means(example: Scores) -> None:
    first, second = example.models.to_dict("records")
    assert first["ndcg_at_5"] == pytest.approx((REVERSED + 2) / 4, abs=1e-12)
    assert first["ndcg_at_5_answered"] == pytest.approx((REVERSED + 2) / 3, abs=1e-12)
    assert first["ndcg_at_5_common"] == pytest.approx((REVERSED + 1) / 2, abs=1e-12)  # m/1 and a/1
    assert [second[f"ndcg_at_5{end}"] for end in ("", "_answered", "_common")] == pytest.approx([1 / 4, 1 / 2, 1 / 2])


def test_false_alarms_are_those_of_logs_without_a_flagged_step(example: Scores) -> None:
    columns = ["n_without_failure", "n_replied_without_failure", "n_false_alarms", "false_alarm_rate"]
    assert example.models[columns].to_numpy().tolist() == [
        [2, 2, 1, 0.5],
        pytest.approx([2, 0, 0, np.nan], nan_ok=True),
    ]
    bounds = wilson(1, 2)
    assert example.models.loc[0, ["false_alarm_low", "false_alarm_high"]].to_list() == [bounds.low, bounds.high]
    assert example.models.loc[1, ["false_alarm_low", "false_alarm_high"]].isna().all()


@pytest.mark.parametrize("end", ["", "_full"])
def test_adjusted_is_recomputed_by_hand(example: Scores, end: str) -> None:
    column = "ndcg_full" if end else "ndcg_at_5"
    for row in example.models.to_dict("records"):
        part = example.per_log[(example.per_log["model"] == row["model"]) & (example.per_log["n_flagged"] > 0)]
        part = part[part["n_steps"].notna()]
        assert list(part["log_id"]) == ["m/1", "m/2", "m/3"]
        mean, chance = part[column].mean(), part[f"chance{end}"].mean()
        assert row[f"adjusted{end}"] == pytest.approx((mean - chance) / (1 - chance), abs=1e-12)
        assert row[f"chance{end}"] == pytest.approx(chance, abs=1e-12)
        assert part[f"adjusted{end}"].to_list() == pytest.approx(
            [(x - e) / (1 - e) for x, e in zip(part[column], part[f"chance{end}"], strict=True)]
        )


def test_intervals_resample_questions(example: Scores) -> None:
    for row in example.models.to_dict("records"):
        part = example.per_log[(example.per_log["model"] == row["model"]) & (example.per_log["n_flagged"] > 0)]
        questions = part["log_id"].map({"m/1": "q", "a/1": "q", "m/2": "2", "m/3": "3"})
        mean = cluster_ratio(part["ndcg_at_5"], np.ones(4), questions, n_resamples=200, seed=0)
        assert (row["low"], row["high"]) == (mean.low, mean.high)
        part, questions = part[part["n_steps"].notna()], questions[part["n_steps"].notna()]
        chance = part["chance"]
        ratio = cluster_ratio(part["ndcg_at_5"] - chance, 1 - chance, questions, n_resamples=200, seed=0)
        assert (row["adjusted_low"], row["adjusted_high"]) == (ratio.low, ratio.high)


def test_one_question_twice_is_one_cluster(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    names = [f"m/{n}" for n in range(20)]
    annotations = make_annotations({name: [[1]] for name in names})
    tables = make_predictions({"x": {name: [[n // 2 % 2]] for n, name in enumerate(names)}})
    lengths = dict.fromkeys(names, 8)
    pairs = score(*tables, annotations, make_logs(lengths, {name: str(n // 2) for n, name in enumerate(names)}))
    single = score(*tables, annotations, make_logs(lengths))
    every_other = annotations[annotations["log_id"].isin(names[::2])]
    half = score(*tables, every_other, make_logs(dict.fromkeys(names[::2], 8)))
    assert pairs.models.loc[0, "n_questions"] == 10
    bounds = ["ndcg_at_5", "low", "high", "adjusted", "adjusted_low", "adjusted_high", "adjusted_full_low"]
    # ten pairs of equal logs say as much as ten logs, and less than twenty
    assert pairs.models.loc[0, bounds].to_list() == pytest.approx(half.models.loc[0, bounds].to_list(), abs=1e-12)
    for bound in ("low", "adjusted_low", "adjusted_full_low"):
        assert single.models.loc[0, bound] > pairs.models.loc[0, bound]


# ---- groups -----------------------------------------------------------------------------------------------------


def test_splits_and_models_stand_in_their_order(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"z/1": [[1]], "a/1": [[2]], "z/2": [[3]]})
    listed = {"n": {"z/1": [[1]]}, "b": {"a/1": [[2]], "z/2": [[3]]}}
    result = score(*make_predictions(listed), annotations, **FEW)
    assert result.models["model"].to_list() == ["n", "b"]
    assert result.by_split[["split", "model"]].to_numpy().tolist() == [["z", "n"], ["z", "b"], ["a", "n"], ["a", "b"]]
    assert result.by_split["ndcg_at_5"].to_list() == [0.5, 0.5, 0, 1]
    assert result.by_split["n_logs"].to_list() == [2, 2, 1, 1]
    assert result.by_length["model"].to_list() == ["n", "b"]


def test_lengths_are_grouped(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    lengths = {"1": 81, "2": 5, "3": 6, "4": None, "5": 80, "6": 1, "7": 10, "8": 5}
    annotations = make_annotations({name: [[0] if name != "8" else []] for name in lengths}, n_steps=1)
    result = score(*make_predictions({"x": {"2": [[0]]}}), annotations, make_logs(lengths), **FEW)
    table = result.by_length
    assert table["length"].astype(str).to_list() == ["1–5", "6–10", "41–80", "81 or more", "unknown"]
    assert table["n_logs"].to_list() == [2, 2, 1, 1, 1]
    assert table["n_without_failure"].to_list() == [1, 0, 0, 0, 0]
    assert table["ndcg_at_5"].to_list() == [0.5, 0, 0, 0, 0]
    assert table["chance"].to_list() == pytest.approx([0.1, 0, 0, 0, np.nan], nan_ok=True)
    assert table["adjusted"].to_list() == pytest.approx([(0.5 - 0.1) / 0.9, 0, 0, 0, np.nan], nan_ok=True)


def test_chance_falls_with_length_where_the_score_does(
    make_annotations: Make, make_predictions: Make, make_logs: Make
) -> None:
    # a model that names three steps at random is worth 0 in every group once chance is taken off
    rng = np.random.default_rng(0)
    lengths = {f"m/{n}": (5, 20, 80)[n % 3] for n in range(300)}
    annotations = make_annotations({i: [[int(rng.integers(n))]] for i, n in lengths.items()}, n_steps=0)
    listed = {"random": {i: [rng.permutation(n)[:3].tolist()] for i, n in lengths.items()}}
    result = score(*make_predictions(listed, ranked=True), annotations, make_logs(lengths), n_resamples=500)
    assert result.by_length["ndcg_at_5"].is_monotonic_decreasing
    assert (result.by_length["adjusted_low"] < 0).all()
    assert (result.by_length["adjusted_high"] > 0).all()


# ---- the published values, through tables -----------------------------------------------------------------------


def test_the_published_notebook_through_tables(
    golden_file: Path, make_annotations: Make, make_predictions: Make
) -> None:
    cases = json.loads(golden_file.read_text("utf-8"))["cases"]
    names = {case["name"]: case for case in cases}
    annotations = make_annotations({name: case["annotators"] for name, case in names.items()}, n_steps=0)
    samples = {name: case["samples"] for name, case in names.items()}
    lists = {name: [case["predicted_ranking"]] for name, case in names.items()}
    parts = [make_predictions({"samples": samples}), make_predictions({"list": lists}, ranked=True)]
    predictions, attempts = (pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))
    for gain, k in itertools.product(("exp", "linear"), (1, 3, 5)):
        rows = score(predictions, attempts, annotations, k=k, gain=gain, **FEW).per_log
        for model, part in rows.groupby("model"):
            assert len(part) == 392
            for row in part.to_dict("records"):
                if model == "samples" and row["log_id"] == "duplicate_step_within_a_sample":
                    continue  # there the notebook counts a step that a sample lists three times three times
                case = names[row["log_id"]]
                found = [row[f"ndcg_at_{k}"], row["ndcg_full"]]
                expected = [case[f"ndcg_{gain}_at_{k}"], case[f"ndcg_{gain}_at_full"]]
                assert found == pytest.approx(expected, abs=1e-12), case["name"]


# ---- whatever comes ---------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(FLAGGED, MODELS)
def test_counts_add_up(make_annotations: Make, make_predictions: Make, flagged: Any, listed: Any) -> None:
    tables = make_predictions(listed)
    annotations = make_annotations(flagged, n_steps=10)
    tried = tables[1][tables[1]["log_id"].isin(flagged) & (tables[1]["status"] != "missing")]
    if tried.empty:
        with pytest.raises(FaultbookError, match="no attempt on an annotated log"):
            score(*tables, annotations, **FEW)
        return
    result = score(*tables, annotations, n_resamples=5)
    models = dict.fromkeys(tables[1]["model"])
    planned = [name for name, lists in flagged.items() if any(lists)]
    assert result.models["model"].to_list() == list(models)
    assert len(result.per_log) == len(models) * len(flagged)
    for row in result.models.to_dict("records"):
        lost = sum(row[f"n_{status}"] for status in ("abstained", "truncated", "unparsable", "missing"))
        assert row["n_logs"] == row["n_answered"] + lost == len(planned)
        assert row["n_without_failure"] == len(flagged) - len(planned)
        assert 0 <= row["n_false_alarms"] <= row["n_replied_without_failure"] <= row["n_without_failure"]
        mine = {name: [s for s in listed[row["model"]].get(name, []) if isinstance(s, list)] for name in flagged}
        answered = [name for name in planned if any(mine[name])]
        assert row["n_answered"] == len(answered)
        by_name = dict.fromkeys(planned, 0.0) | {name: _by_hand(mine[name], flagged[name]) for name in answered}
        if planned:
            assert row["ndcg_at_5"] == pytest.approx(sum(by_name.values()) / len(planned), abs=1e-12)
            assert 0 <= row["ndcg_at_5"] <= 1
        else:
            assert math.isnan(row["ndcg_at_5"])
    for name in ("n_logs", "n_answered", "n_without_failure", "n_false_alarms"):
        for table in (result.by_split, result.by_length):
            assert table.groupby("model")[name].sum().to_dict() == result.models.set_index("model")[name].to_dict()


def _by_hand(samples: list[list[int]], lists: list[list[int]]) -> float:
    sides = [pd.Series([step for part in side for step in set(part)]).value_counts() for side in (samples, lists)]
    predicted, votes = ({int(step): int(n) for step, n in side.items()} for side in sides)
    return ndcg(predicted, votes)


@settings(max_examples=5, deadline=None)
@given(FLAGGED, MODELS, st.sampled_from([3, 99]), st.data())
def test_more_names_of_wrong_steps_never_help(
    make_annotations: Make, make_predictions: Make, flagged: Any, listed: Any, wrong: int, data: Any
) -> None:
    """A step that is named again in its sample, or that nobody flagged, added to every list at some place."""
    flagged = {name: [[step for step in steps if step != wrong] for steps in lists] for name, lists in flagged.items()}
    flagged["m/1"] = [[1]]
    listed["x"] = listed.get("x", {}) | {"m/1": [[1, 1]]}

    def worse(steps: Any) -> Any:
        if not isinstance(steps, list) or not steps:
            return steps
        place = data.draw(st.integers(0, len(steps)))
        return [*steps[:place], wrong, *steps[place:], steps[0]]

    more = {m: {log: [worse(s) for s in samples] for log, samples in logs.items()} for m, logs in listed.items()}
    annotations = make_annotations(flagged, n_steps=10)
    for ranked in (False, True):
        old, new = (
            score(*make_predictions(given, ranked=ranked), annotations, n_resamples=5) for given in (listed, more)
        )
        for column in ("ndcg_at_5", "ndcg_full"):
            assert (new.per_log[column] <= old.per_log[column] + 1e-15).where(old.per_log[column].notna(), True).all()


@settings(max_examples=6, deadline=None)
@given(FLAGGED, MODELS, st.randoms(use_true_random=False), st.sampled_from(["by_step", "expected"]))
def test_order_of_rows_and_names_do_not_matter(
    make_annotations: Make, make_predictions: Make, flagged: Any, listed: Any, random: Any, ties: Any
) -> None:
    flagged["m/1"] = [[1], [1, 2]]
    listed["x"] = listed.get("x", {}) | {"m/1": [[2, 1]]}
    predictions, attempts = make_predictions(listed)
    annotations = make_annotations(flagged)
    old = score(predictions, attempts, annotations, ties=ties, **FEW)
    # the annotators change places, logs and agents have other names, and a last step is judged that nobody flags
    judges = dict(zip(sorted(set(annotations["annotator"])), random.sample("uvw", 3), strict=False))
    logs = {name: f"{name.partition('/')[0]}/{number}" for number, name in enumerate([*LOGS[::-1], "other/1"])}
    more = annotations.drop_duplicates(["log_id", "annotator"]).assign(step=60, is_failure=False)
    other = pd.concat([annotations, more], ignore_index=True).assign(agent="another")
    other["annotator"] = other["annotator"].map(judges)
    tables = [
        table.assign(log_id=table["log_id"].map(logs)).sample(frac=1, random_state=random.randrange(99))
        for table in (predictions.assign(agent="somebody"), attempts, other)
    ]
    new = score(*tables, ties=ties, **FEW)
    for table, key in (("models", ["model"]), ("by_split", ["model", "split"])):
        before, after = (getattr(result, table).set_index(key).sort_index() for result in (old, new))
        longer = [name for name in before if name.startswith(("chance", "adjusted"))]  # a longer log has less of it
        before, after = before.drop(columns=longer), after.drop(columns=longer)
        pd.testing.assert_frame_equal(before, after, rtol=1e-12, atol=1e-12, check_dtype=False)


def test_the_order_of_rows_does_not_matter_at_all(
    make_annotations: Make, make_predictions: Make, make_logs: Make
) -> None:
    rng = np.random.default_rng(3)
    names = [f"{split}/{n}" for split in "ma" for n in range(15)]
    annotations = make_annotations({name: rng.integers(0, 9, (3, 2)).tolist() for name in names}, n_steps=9)
    listed = {m: {name: rng.integers(0, 9, (3, 2)).tolist() for name in names} for m in "xyz"}
    tables = [*make_predictions(listed), annotations, make_logs(dict.fromkeys(names, 9), {"m/1": "q", "a/7": "q"})]
    old = score(*tables, **FEW)
    new = score(*[table.sample(frac=1, random_state=5) for table in tables], **FEW)
    for table, key in (("models", ["model"]), ("by_split", ["model", "split"]), ("per_log", ["model", "log_id"])):
        before, after = (getattr(result, table).set_index(key).sort_index() for result in (old, new))
        pd.testing.assert_frame_equal(before, after, rtol=1e-12, atol=1e-12)


def test_the_same_seed_gives_the_same_bytes(make_annotations: Make, make_predictions: Make) -> None:
    names = [f"m/{n}" for n in range(12)]
    annotations = make_annotations({name: [[n % 5], [n % 3]] for n, name in enumerate(names)})
    tables = make_predictions({"x": {name: [[n % 4]] for n, name in enumerate(names)}})
    csv = [score(*tables, annotations, seed=seed, **FEW).models.to_csv() for seed in (7, 7, 8)]
    assert csv[0] == csv[1]
    assert csv[0] != csv[2]


def test_the_tables_are_not_changed(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    tables = [*make_predictions({"x": {"a": [[1, 1], [2]]}}), make_annotations({"a": [[1]]}), make_logs({"a": 8})]
    copies = [table.copy() for table in tables]
    score(*tables, **FEW)
    for table, copy in zip(tables, copies, strict=True):
        pd.testing.assert_frame_equal(table, copy)


@pytest.mark.parametrize("status", STATUSES)
def test_a_list_is_an_answer_whatever_its_status(make_annotations: Make, make_predictions: Make, status: str) -> None:
    # readers leave such lists out; a table of one's own may hold them, and then alarms must not outnumber replies
    predictions, attempts = make_predictions({"x": {"a": [[1]], "b": [[1]], "c": [[1]]}})
    attempts.loc[attempts["log_id"] == "b", "status"] = status
    row = score(predictions, attempts, make_annotations({"a": [[1]], "b": [[]], "c": [[]]}), **FEW).models.iloc[0]
    assert (row["n_false_alarms"], row["n_replied_without_failure"], row["false_alarm_rate"]) == (2, 2, 1)


def test_an_ok_that_lists_nothing_is_an_abstention(make_annotations: Make, make_predictions: Make) -> None:
    predictions, attempts = make_predictions({"x": {"a": ["ok", "truncated"], "b": ["ok"]}})
    result = score(predictions, attempts, make_annotations({"a": [[1]], "b": [[]]}), **FEW)
    row = result.models.iloc[0]
    assert (row["n_answered"], row["n_abstained"], row["n_truncated"]) == (0, 1, 0)
    assert (row["n_replied_without_failure"], row["n_false_alarms"], row["false_alarm_rate"]) == (1, 0, 0)
    assert row["ndcg_at_5"] == 0
    assert math.isnan(row["ndcg_at_5_answered"])


def test_an_all_abstaining_model_scores_0_not_nothing(make_annotations: Make, make_predictions: Make) -> None:
    # the published code averages over the logs a model answered, so one easy answer is a perfect score there
    names = [f"m/{n}" for n in range(10)]
    annotations = make_annotations({name: [[1]] for name in names})
    easy = {name: [[1]] if name == "m/0" else [[]] for name in names}
    rows = score(*make_predictions({"easy": easy, "never": {n: [[]] for n in names}}), annotations, **FEW).models
    assert rows["ndcg_at_5"].to_list() == [0.1, 0]
    assert rows["ndcg_at_5_answered"].to_list() == pytest.approx([1, np.nan], nan_ok=True)
    assert rows["n_common"].to_list() == [0, 0]
    assert rows["ndcg_at_5_common"].isna().all()


def test_unreadable_items_of_judged_logs_are_counted(make_annotations: Make, make_predictions: Make) -> None:
    predictions, attempts = make_predictions({"x": {"a": [[1], [2]], "z": [[1]]}, "y": {"a": [[1]]}})
    attempts["n_unreadable"] = [3, 4, 50, 0]
    result = score(predictions, attempts, make_annotations({"a": [[1]]}), **FEW)
    assert result.models["n_unreadable"].to_list() == [7, 0]


def test_samples_of_different_numbers(make_annotations: Make, make_predictions: Make) -> None:
    annotations = make_annotations({"a": [[1], [1, 4]], "b": [[2]]})
    listed = {"x": {"a": [[4], [1], [1]], "b": [[2]]}, "y": {"a": [[4]]}}
    result = score(*make_predictions(listed), annotations, **FEW)
    assert value(result, "x", "a") == 1
    assert value(result, "x", "b") == 1
    assert value(result, "y", "a") == pytest.approx(ndcg([4], {1: 2, 4: 1}))


def test_a_log_of_one_step_is_no_test_of_anybody(make_annotations: Make, make_predictions: Make) -> None:
    result = score(*make_predictions({"x": {"a": [[0]]}}), make_annotations({"a": [[0]]}, n_steps=1), **FEW)
    row = result.models.iloc[0]
    assert (row["ndcg_at_5"], row["chance"]) == (1, 1)
    assert row[["adjusted", "adjusted_low", "adjusted_high", "low", "high"]].isna().all()


@pytest.mark.parametrize("relevance", ["votes", "reverse_rank"])
def test_where_every_list_is_perfect_nothing_is_adjusted(
    make_annotations: Make, make_predictions: Make, relevance: Any
) -> None:
    # all of n steps have two votes: by votes any order of them scores 1, and chance is 1 but for rounding
    names = {f"m/{n}": n for n in range(1, 30)}
    annotations = make_annotations({name: [range(n)] * 2 for name, n in names.items()}, n_steps=names)
    listed = {"x": {name: [list(range(n))[::-1]] for name, n in names.items()}}
    result = score(*make_predictions(listed, ranked=True), annotations, relevance=relevance, k=5, **FEW)
    row = result.models.iloc[0]
    if relevance == "votes":
        assert row["chance"] == 1
        assert row[["adjusted", "adjusted_full", "adjusted_low", "adjusted_high"]].isna().all()
    else:
        assert row["adjusted"] < 0


def test_2000_flagged_steps_through_tables(make_annotations: Make, make_predictions: Make) -> None:
    many = list(range(2000))
    annotations = make_annotations({"a": [many, many[::2]], "b": [[1]]})
    result = score(*make_predictions({"x": {"a": [many[:1500]], "b": [[1]]}}), annotations, **FEW)
    even_first = [*many[::2], *many[1::2]]
    expected = ndcg(many[:1500], {step: 2 - step % 2 for step in many})
    assert value(result, "x", "a") == pytest.approx(expected, abs=1e-12)
    assert ndcg(even_first, {step: 2 - step % 2 for step in many}, None) == pytest.approx(1, abs=1e-12)
    assert 0 < value(result, "x", "a", "chance") < 1


def test_chance_is_that_of_the_scalar(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    annotations = make_annotations({"a": [[1], [1, 4], [6]]})
    result = score(*make_predictions({"x": {"a": [[4, 1, 99], [4]]}}), annotations, make_logs({"a": 30}), k=2, **FEW)
    votes = {1: 2, 4: 1, 6: 1}
    assert value(result, "x", "a", "chance") == pytest.approx(random_ndcg(votes, 30, 3, 2), abs=1e-15)
    assert value(result, "x", "a", "chance_full") == pytest.approx(random_ndcg(votes, 30, 3, None), abs=1e-15)
    assert result.per_log["n_predicted"].to_list() == [3]


# ---- names and refusals -----------------------------------------------------------------------------------------


def test_the_measures_are_named(make_annotations: Make, make_predictions: Make) -> None:
    tables = [*make_predictions({"x": {"a": [[1]]}}), make_annotations({"a": [[1]]})]
    result = score(*tables, k=3, relevance="votes", gain="linear", ties="expected", **FEW)
    rest = "relevance votes, gain linear, ties expected"
    assert result.measures == (f"nDCG@3, {rest}", f"nDCG@full, {rest}")
    assert {"ndcg_at_3", "ndcg_at_3_answered", "ndcg_at_3_common", "ndcg_full"} <= set(result.models)
    assert result.summary_frame() is result.models


def test_what_cannot_be_scored_is_refused(make_annotations: Make, make_predictions: Make, make_logs: Make) -> None:
    predictions, attempts = make_predictions({"x": {"a": [[1]]}})
    annotations = make_annotations({"a": [[1]]})
    with pytest.raises(FaultbookError, match="no annotations"):
        score(predictions, attempts, annotations[:0])
    with pytest.raises(FaultbookError, match="no attempt on an annotated log"):
        score(predictions[:0], attempts[:0], annotations)
    with pytest.raises(FaultbookError, match="1 samples have predictions and no attempt"):
        score(predictions, attempts[:0], annotations)
    with pytest.raises(FaultbookError, match="1 annotated logs are not among the logs"):
        score(predictions, attempts, annotations, make_logs({"b": 3}))
    for wrong in ({"k": 0}, {"gain": "log"}, {"relevance": "rank"}, {"ties": "random"}, {"level": 95}, {"seed": -1}):
        with pytest.raises(ValueError, match=r"k is 0|must be one of|level is 95|seed is -1"):
            score(predictions, attempts, annotations, **wrong)
