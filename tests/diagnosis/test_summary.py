"""The split of a score into what omission and over-diagnosis cost, and what counts as a run."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.diagnosis import Policy, score, summarize
from faultbook.diagnosis.score import SCORE_COLUMNS
from faultbook.diagnosis.summary import SUMMARY_COLUMNS
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.errors import FaultbookError
from faultbook.tables import Runs, Submissions, typed

Cell = str | tuple[int, int, int]


def scores(cells: dict[tuple[str, int], Cell], *, model: str = "m", policy: str = "itbench-aa") -> pd.DataFrame:
    """A score table from (incident, repeat) → (causes, found, false positives), or the status of an unscored run."""
    rows: list[dict[str, Any]] = []
    for (incident, repeat), cell in cells.items():
        row: dict[str, Any] = {"model": model, "incident_id": incident, "repeat": repeat, "policy": policy}
        if isinstance(cell, str):
            rows.append(row | {"status": cell})
            continue
        causes, found, fp = cell
        precision = found / (found + fp) if found + fp else None
        row |= {"status": "scored" if found + fp else "empty", "n_submitted": found + fp, "n_causes": causes}
        row |= {"n_found": found, "tp": found, "fp": fp, "recall": found / causes, "precision": precision}
        rows.append(row | {"score": precision if found == causes else 0.0})
    frame = pd.DataFrame(rows, columns=SCORE_COLUMNS)
    counts = dict.fromkeys(("n_submitted", "n_causes", "n_found", "tp", "fp"), "Int64")
    return frame.astype({**counts, **dict.fromkeys(("recall", "precision", "score"), "Float64"), "repeat": "int64"})


def summary(frame: pd.DataFrame, **settings: Any) -> pd.Series:
    return summarize(frame, **{"n_resamples": 200, **settings}).iloc[0]


UNSCORED = st.sampled_from(["malformed", "timed_out", "missing", "ungradeable"])
GRADED = st.integers(1, 4).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 5)))
TABLES = st.dictionaries(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), UNSCORED | GRADED, min_size=1, max_size=20
)


@settings(max_examples=25, deadline=None)
@given(TABLES)
def test_the_split_is_exact(cells: dict[tuple[str, int], Cell]) -> None:
    row = summary(scores(cells), n_resamples=20)
    gradeable = {key: cell for key, cell in cells.items() if cell != "ungradeable"}
    assert row["n_ungradeable"] == len(cells) - len(gradeable)
    assert row["n_runs"] == len(gradeable)
    if not gradeable:
        assert pd.isna(row["score"])
        return
    full = [c for c in gradeable.values() if not isinstance(c, str) and c[0] == c[1]]
    total = sum(c[0] / (c[0] + c[2]) for c in full)
    rate = len(full) / len(gradeable)
    assert row["score"] == pytest.approx(total / len(gradeable), abs=1e-12)
    assert row["full_recall_rate"] == pytest.approx(rate, abs=1e-12)
    assert row["omission_loss"] + row["over_diagnosis_loss"] + row["score"] == pytest.approx(1, abs=1e-12)
    assert row["omission_loss"] == pytest.approx(1 - rate, abs=1e-12)
    if full:
        precision = row["precision_given_full_recall"]
        assert precision == pytest.approx(total / len(full), abs=1e-12)
        assert 1 - row["score"] == pytest.approx((1 - rate) + rate * (1 - precision), abs=1e-12)
    else:
        assert pd.isna(row["precision_given_full_recall"])
        assert row["over_diagnosis_loss"] == 0


@settings(max_examples=10, deadline=None)
@given(TABLES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_count(cells: dict[tuple[str, int], Cell], random: Any) -> None:
    frame = scores(cells)
    order = list(range(len(frame)))
    random.shuffle(order)
    numbers = [name for name in SUMMARY_COLUMNS if name not in ("model", "policy")]
    for one, other in zip(
        summary(frame, n_resamples=20)[numbers], summary(frame.iloc[order], n_resamples=20)[numbers], strict=True
    ):
        assert other == pytest.approx(one, abs=1e-12, nan_ok=True)


def test_unscored_runs_count_as_zero_and_are_left_out() -> None:
    cells: dict[tuple[str, int], Cell] = {
        ("a", 0): (1, 1, 0),
        ("a", 1): "malformed",
        ("b", 0): (1, 1, 1),
        ("b", 1): "timed_out",
        ("c", 0): (1, 0, 0),  # an empty submission is an answer, and it is scored
        ("c", 1): "missing",
    }
    row = summary(scores(cells))
    assert row["score"] == pytest.approx(1.5 / 6)
    assert row["score_of_scored"] == pytest.approx(1.5 / 3)
    assert (row["n_incidents"], row["n_runs"], row["n_unscored"], row["n_ungradeable"]) == (3, 6, 3, 0)


def test_an_ungradeable_incident_is_in_neither_mean() -> None:
    cells: dict[tuple[str, int], Cell] = {("a", 0): (1, 1, 0), ("b", 0): (1, 1, 1)}
    without = summary(scores(cells))
    extended = summary(scores({**cells, ("c", 0): "ungradeable", ("c", 1): "ungradeable"}))
    assert extended["n_ungradeable"] == 2
    same = [name for name in SUMMARY_COLUMNS if name != "n_ungradeable"]
    pd.testing.assert_series_equal(extended[same], without[same])


@pytest.mark.parametrize("status", ["ungradeable", "missing"])
def test_a_model_without_a_scored_run(status: str) -> None:
    row = summary(scores({("a", 0): status, ("b", 0): status}))
    assert row["score"] == 0 if status == "missing" else pd.isna(row["score"])
    assert pd.isna(row["score_of_scored"])
    assert row["n_incidents"] == (2 if status == "missing" else 0)


def test_no_run_at_all() -> None:
    frame = summarize(scores({}))
    assert frame.empty
    assert list(frame.columns) == SUMMARY_COLUMNS


def test_a_missing_score_of_a_scored_run_is_not_zero() -> None:
    frame = scores({("a", 0): (1, 1, 0), ("b", 0): (1, 1, 0)})
    frame.loc[1, "score"] = pd.NA
    with pytest.raises((FaultbookError, ValueError)):
        summarize(frame, n_resamples=20)


# ---- intervals --------------------------------------------------------------------------------------------------

MIXED: dict[tuple[str, int], Cell] = {(f"i{n}", 0): (1, n % 2, n % 3) for n in range(15)}


def test_repeating_every_run_leaves_the_interval_as_it_is() -> None:
    twice = {(incident, repeat): cell for (incident, _), cell in MIXED.items() for repeat in range(4)}
    one, four = summary(scores(MIXED)), summary(scores(twice))
    bounds = [name for name in SUMMARY_COLUMNS if name.endswith(("low", "high", "loss", "score"))]
    assert four[bounds].astype(float).to_list() == pytest.approx(one[bounds].astype(float).to_list(), abs=1e-12)
    assert (four["n_incidents"], four["n_runs"]) == (15, 60)


def test_resampling_incidents_is_wider_than_resampling_runs() -> None:
    repeated = {(incident, repeat): cell for (incident, _), cell in MIXED.items() for repeat in range(4)}
    incidents = summary(scores(repeated), n_resamples=2_000)
    frame = scores(repeated)
    frame["incident_id"] = [f"run {n}" for n in range(len(frame))]
    runs = summary(frame, n_resamples=2_000)
    # four equal runs of an incident: the standard error of runs is half that of incidents
    ratio = (incidents["high"] - incidents["low"]) / (runs["high"] - runs["low"])
    assert 1.7 < ratio < 2.3


def test_the_interval_of_a_known_case() -> None:
    # 10 incidents, 5 solved: the mean of a resample is a binomial count of 10 at 1/2 over 10; scipy.stats.binom(10, .5)
    # has its 2.5 % and 97.5 % points at 2 and 8.
    row = summary(scores({(f"i{n}", 0): (1, n % 2, 0) for n in range(10)}), n_resamples=20_000)
    assert (row["low"], row["high"]) == pytest.approx((0.2, 0.8))
    assert (row["omission_low"], row["omission_high"]) == pytest.approx((0.2, 0.8))


def test_no_spread_gives_no_interval() -> None:
    row = summary(scores({(f"i{n}", 0): (1, 1, 0) for n in range(5)}))
    assert row["score"] == 1
    assert row[["low", "high", "omission_low", "omission_high"]].isna().all()


def test_the_seed_decides() -> None:
    frame = scores(MIXED)
    pd.testing.assert_frame_equal(summarize(frame, n_resamples=50, seed=3), summarize(frame, n_resamples=50, seed=3))
    assert summary(frame, n_resamples=50, seed=3)["low"] != summary(frame, n_resamples=50, seed=4)["low"]


# ---- policies ---------------------------------------------------------------------------------------------------

SPLIT = [name for name in SUMMARY_COLUMNS if name.startswith(("full", "precision", "omission", "over"))]


def test_f1_has_no_split() -> None:
    row = summary(scores(MIXED, policy="ibm"))
    assert not pd.isna(row["score"])
    assert row[SPLIT].isna().all()


def test_models_and_policies_have_rows_of_their_own() -> None:
    frame = pd.concat(
        [scores(MIXED), scores(MIXED, policy="starharness"), scores({("i0", 0): (1, 1, 0)}, model="n")],
        ignore_index=True,
    )
    result = summarize(frame, n_resamples=20)
    assert list(zip(result["model"], result["policy"], strict=True)) == [
        ("m", "itbench-aa"),
        ("m", "starharness"),
        ("n", "itbench-aa"),
    ]


@pytest.mark.parametrize("scoring", ["precision_at_full_recall", "f1"])
def test_a_policy_of_ones_own_is_summarized_too(scoring: Any) -> None:
    document = Document("i", "made up", "")
    read_v1({"groups": [{"id": "a", "kind": "Pod", "name": "a", "root_cause": True}]}, document)
    runs = typed([("m", "i", 0, "scored", None, None)], Runs)
    named = typed(
        [("m", "i", 0, n, name, None, "Pod", name, None, "confirmed") for n, name in enumerate("ab")], Submissions
    )
    row = summary(score(named, runs, assemble([document]), Policy("our own", scoring=scoring)))
    assert row["policy"] == "our own"
    assert row["score"] == pytest.approx(1 / 2 if scoring == "precision_at_full_recall" else 2 / 3)
    assert pd.isna(row["over_diagnosis_loss"]) == (scoring == "f1")
