"""Agreement of annotators: golden values, other packages, what is undefined, and what must not matter."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss_kappa

from faultbook.attribution.agreement import (
    NO_COMMON_STEP,
    NO_SHARED_STEP,
    ONE_ANNOTATOR,
    PER_LOG_COLUMNS,
    PER_LOG_PAIR_COLUMNS,
    POOLED_COLUMNS,
    Agreement,
    agreement,
)
from faultbook.errors import FaultbookError
from faultbook.stats.agreement import NO_VARIATION
from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.tables import Annotations

TYPES = {name: str(column.dtype) for name, column in Annotations.to_schema().columns.items()}
NAMES = ("ann", "bob", "cleo", "dan", "eve")
OVERALL = ["raw_agreement", "positive_agreement", "jaccard", "fleiss_kappa", "krippendorff_alpha"]
OF_PAIRS = ["raw_agreement", "positive_agreement", "jaccard", "cohen_kappa"]


def judged(logs: Mapping[str, Sequence[str]], names: Sequence[str] = NAMES) -> pd.DataFrame:
    """Per log one text a step, one character an annotator: 1 flagged, 0 not, . not judged."""
    rows = [
        {"log_id": log_id, "step": step, "annotator": names[place], "is_failure": mark == "1"}
        for log_id, steps in logs.items()
        for step, marks in enumerate(steps)
        for place, mark in enumerate(marks)
        if mark != "."
    ]
    return pd.DataFrame(rows, columns=list(TYPES)).astype(TYPES)


def found(logs: Mapping[str, Sequence[str]], **settings: Any) -> Agreement:
    return agreement(judged(logs), **{"n_resamples": 100, **settings})


def row(result: Agreement, statistic: str, pair: str = "") -> pd.Series:
    pooled = result.pooled
    return pooled[(pooled["statistic"] == statistic) & (pooled["pair"] == pair)].iloc[0]


def array(marks: Sequence[str]) -> np.ndarray[Any, Any]:
    """Units by raters, NaN where a step was not judged."""
    return np.array([[{"1": 1.0, "0": 0.0, ".": np.nan}[mark] for mark in step] for step in marks])


COMPLETE = st.dictionaries(
    st.sampled_from(["m/1", "m/2", "m/10"]),
    st.lists(st.text("01", min_size=3, max_size=3), min_size=1, max_size=8),
    min_size=1,
)
GAPPED = st.dictionaries(
    st.sampled_from(["m/1", "m/2", "m/10", "a/1"]),
    st.lists(st.text("01.", min_size=4, max_size=4), min_size=1, max_size=6),
    min_size=1,
).filter(lambda logs: any(mark != "." for steps in logs.values() for marks in steps for mark in marks))


# ---- values -------------------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    marks = ["000", "000", "001", "111", "111", "100"]
    result = found({"m/1": marks[:2], "m/2": marks[2:]})
    # P = (4 + 2/3)/6 = 7/9; 8 of 18 flagged, so P_e = (8/18)² + (10/18)² = 41/81; κ = (63 − 41)/(81 − 41)
    assert row(result, "fleiss_kappa")["value"] == pytest.approx(0.55)
    assert row(result, "krippendorff_alpha")["value"] == pytest.approx(1 - 0.45 * 17 / 18)
    # 4 steps of 3 equal pairs, 2 of 1; two steps of 3 pairs of flags, two of 2 pairs with one
    assert row(result, "raw_agreement")["value"] == pytest.approx(14 / 18)
    assert row(result, "positive_agreement")["value"] == pytest.approx(2 * 6 / (2 * 6 + 4))
    assert row(result, "jaccard")["value"] == pytest.approx(6 / 10)


def test_the_golden_value_of_both_packages() -> None:
    # 6 steps by 3 annotators: statsmodels 0.15.0 gives Fleiss 0.44615, krippendorff 0.9.0 alpha 0.47692
    votes = next(v for v in combinations_with_replacement(range(4), 6) if _fleiss(v) == 0.44615)
    result = found({"m/1": ["1" * n + "0" * (3 - n) for n in votes]})
    assert row(result, "fleiss_kappa")["value"] == pytest.approx(0.44615, abs=5e-6)
    assert row(result, "krippendorff_alpha")["value"] == pytest.approx(0.47692, abs=5e-6)


def _fleiss(votes: Sequence[int]) -> float:
    """Fleiss' kappa of votes of three, by the textbook formula, to five digits."""
    observed = sum(n * (n - 1) + (3 - n) * (2 - n) for n in votes) / 6 / len(votes)
    share = sum(votes) / 3 / len(votes)
    expected = share**2 + (1 - share) ** 2
    return round((observed - expected) / (1 - expected), 5) if expected < 1 else math.nan


@settings(deadline=None, max_examples=13)
@given(GAPPED)
def test_alpha_as_the_krippendorff_package(logs: dict[str, list[str]]) -> None:
    result = found(logs, n_resamples=1)
    for marks, value, note in [
        ([m for steps in logs.values() for m in steps], row(result, "krippendorff_alpha")["value"], None),
        *((logs[r["log_id"]], r["krippendorff_alpha"], r["note"]) for r in result.per_log.to_dict("records")),
    ]:
        ratings = array(marks)
        paired = ratings[(~np.isnan(ratings)).sum(axis=1) > 1]
        if len(set(paired[~np.isnan(paired)])) < 2:
            assert math.isnan(value)
            assert note is None or note.startswith("undefined (")
        else:
            expected = krippendorff.alpha(ratings.T, level_of_measurement="nominal", value_domain=[0, 1])
            assert value == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=13)
@given(COMPLETE)
def test_fleiss_and_cohen_as_statsmodels_and_scikit_learn(logs: dict[str, list[str]]) -> None:
    result = found(logs, n_resamples=1)
    ratings = array([m for steps in logs.values() for m in steps])
    if 0 < ratings.mean() < 1:
        yes = ratings.sum(axis=1)
        expected = statsmodels_fleiss_kappa(np.column_stack([yes, 3 - yes]))
        assert row(result, "fleiss_kappa")["value"] == pytest.approx(expected, abs=1e-9)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        of_pair = row(result, "cohen_kappa", f"{NAMES[first]}, {NAMES[second]}")
        if 0 < ratings[:, [first, second]].mean() < 1:
            expected = cohen_kappa_score(ratings[:, first], ratings[:, second])
            assert of_pair["value"] == pytest.approx(expected, abs=1e-9)
        else:
            assert math.isnan(of_pair["value"])
            assert of_pair["note"] == NO_VARIATION


@settings(deadline=None, max_examples=10)
@given(GAPPED)
def test_one_log_pooled_is_that_log(logs: dict[str, list[str]]) -> None:
    result = found(logs, n_resamples=1)
    by_log = {
        log_id: found({log_id: steps}, n_resamples=1)
        for log_id, steps in logs.items()
        if any("1" in m or "0" in m for m in steps)
    }
    assert set(result.per_log["log_id"]) == set(by_log)
    for record in result.per_log.to_dict("records"):
        alone = by_log[record["log_id"]]
        for name in ("raw_agreement", "positive_agreement", "jaccard", "krippendorff_alpha"):
            assert record[name] == pytest.approx(row(alone, name)["value"], abs=1e-12, nan_ok=True)
    for record in result.per_log_pairs.to_dict("records"):
        for name in OF_PAIRS:
            assert record[name] == pytest.approx(
                row(by_log[record["log_id"]], name, record["pair"])["value"], abs=1e-12, nan_ok=True
            )


def test_fleiss_takes_the_steps_with_the_usual_number_of_judgements() -> None:
    marks = ["110.", "0011", "0.00", ".111"]
    result = found({"m/1": marks, "m/2": ["11..", "1111"]})
    of_three = row(found({"m/1": ["110", "000", "111"]}), "fleiss_kappa")
    fleiss = row(result, "fleiss_kappa")
    assert fleiss["value"] == pytest.approx(of_three["value"])
    assert fleiss["n_steps"] == 3
    assert fleiss["note"] == "steps with 3 judgements; 3 with another number left out"
    assert row(result, "krippendorff_alpha")["n_steps"] == 6
    per_log = result.per_log.set_index("log_id")
    assert per_log.loc["m/2", "note"] == NO_VARIATION
    gone = found({"m/1": ["110", "000"], "m/2": ["11.", "10."]}).per_log.set_index("log_id").loc["m/2"]
    assert gone["note"] == "Fleiss' kappa: undefined (no step with 3 judgements)"
    assert not math.isnan(gone["krippendorff_alpha"])


# ---- undefined ----------------------------------------------------------------------------------------------------


def test_unanimous_annotators_have_raw_agreement_and_nothing_else() -> None:
    result = found({"m/1": ["000", "000"], "m/2": ["000"]})
    raw, rest = result.pooled["statistic"] == "raw_agreement", result.pooled["statistic"] != "raw_agreement"
    assert (result.pooled.loc[raw, "value"] == 1).all()
    assert (result.pooled.loc[raw, "note"] == "").all()
    assert result.pooled.loc[rest, ["value", "low", "high"]].isna().all(axis=None)
    assert (result.pooled.loc[rest, "note"] == "undefined (no variation)").all()
    assert (result.per_log["note"] == "undefined (no variation)").all()
    assert (result.per_log_pairs["note"] == "undefined (no variation)").all()


def test_everything_flagged_is_agreement_on_flags() -> None:
    result = found({"m/1": ["111", "111"]})
    assert row(result, "jaccard")["value"] == row(result, "positive_agreement")["value"] == 1
    assert row(result, "krippendorff_alpha")["note"] == NO_VARIATION


def test_agreement_with_variation_is_one() -> None:
    result = found({"m/1": ["111", "000"], "m/2": ["000", "111"]})
    assert (result.pooled["value"] == 1).all()
    assert result.pooled[["low", "high"]].isna().all(axis=None)  # no resample differs: not certainty


def test_one_annotator() -> None:
    result = found({"m/1": ["1", "0"], "m/2": ["0"]})
    assert result.pooled["statistic"].to_list() == OVERALL
    assert result.pooled["value"].isna().all()
    assert (result.pooled["note"] == ONE_ANNOTATOR).all()
    assert (result.per_log["note"] == ONE_ANNOTATOR).all()
    assert result.per_log["n_steps"].to_list() == [2, 1]
    assert result.per_log_pairs.empty
    assert list(result.per_log_pairs.columns) == PER_LOG_PAIR_COLUMNS


def test_annotators_who_never_meet() -> None:
    result = found({"m/1": ["1.", "0."], "m/2": [".1"]})
    assert (result.pooled.loc[result.pooled["pair"] == "", "note"] == NO_SHARED_STEP).all()
    assert (result.pooled.loc[result.pooled["pair"] != "", "note"] == NO_COMMON_STEP).all()
    assert result.pooled["value"].isna().all()
    assert (result.pooled[["n_logs", "n_steps"]] == 0).all(axis=None)


def test_who_did_not_judge_a_log_did_not_disagree() -> None:
    # cleo judges one log of two; what ann and bob say of the other does not touch the pairs with her
    both = found({"m/1": ["110", "100", "001"], "m/2": ["11.", "10."]})
    one = found({"m/1": ["110", "100", "001"]})
    for name in OF_PAIRS:
        for pair in ("ann, cleo", "bob, cleo"):
            assert row(both, name, pair)["value"] == row(one, name, pair)["value"]
    assert row(both, "jaccard", "ann, bob")["value"] == 2 / 4


# ---- intervals ----------------------------------------------------------------------------------------------------


def test_the_interval_of_raw_agreement_is_that_of_the_cluster_bootstrap() -> None:
    logs = {f"m/{n}": [["11", "10", "00", "01", "00"][(n * k) % 5] for k in range(1 + n % 6)] for n in range(20)}
    result = row(found(logs, n_resamples=500, seed=2), "raw_agreement", "ann, bob")
    equal = [(m[0] == m[1], log) for log, steps in logs.items() for m in steps]
    expected = cluster_bootstrap([e for e, _ in equal], [c for _, c in equal], n_resamples=20_000, seed=1)
    assert result["value"] == pytest.approx(expected.estimate)
    assert (result["low"], result["high"]) == pytest.approx((expected.low, expected.high), abs=0.03)
    assert (result["n_logs"], result["n_steps"]) == (20, len(equal))


def test_logs_are_resampled_not_steps() -> None:
    # six logs of 30 equal steps are six independent observations, not 180
    blocks = {f"m/{n}": [marks] * 30 for n, marks in enumerate(["110", "000", "111", "100", "000", "011"])}
    singles = {f"{log}/{n}": [m] for log, steps in blocks.items() for n, m in enumerate(steps)}
    wide, narrow = (row(found(logs, n_resamples=800), "krippendorff_alpha") for logs in (blocks, singles))
    assert wide["value"] == pytest.approx(narrow["value"])
    assert wide["high"] - wide["low"] > 3 * (narrow["high"] - narrow["low"])


def test_settings() -> None:
    logs = {f"m/{n}": ["110", "000", "111"][: 1 + n % 3] for n in range(30)}
    result = found(logs, level=0.5, n_resamples=300, seed=4)
    assert (result.level, result.n_resamples) == (0.5, 300)
    wide, narrow = row(found(logs, n_resamples=300, seed=4), "jaccard"), row(result, "jaccard")
    assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]
    pd.testing.assert_frame_equal(result.pooled, found(logs, level=0.5, n_resamples=300, seed=4).pooled)
    assert not result.pooled.equals(found(logs, level=0.5, n_resamples=300, seed=5).pooled)
    with pytest.raises(ValueError, match="level"):
        found(logs, level=2.0)


# ---- what does not matter -------------------------------------------------------------------------------------------


def numbers(frame: pd.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    rounded = frame.drop(columns=list(names)).round(12).fillna(-9)
    return sorted(rounded.itertuples(index=False, name=None))


@settings(deadline=None, max_examples=10)
@given(GAPPED, st.randoms(use_true_random=False))
def test_names_and_order_do_not_count(logs: dict[str, list[str]], rng: random.Random) -> None:
    table = judged(logs)
    other = table.sample(frac=1, random_state=rng.randrange(2**31)).reset_index(drop=True)
    new_names = dict(zip(NAMES, rng.sample(["z", "y", "x", "w", "v"], 5), strict=True))
    new_logs = dict(zip(logs, rng.sample(["p/3", "p/30", "q", "r/1"], len(logs)), strict=True))
    renamed = other.assign(annotator=other["annotator"].map(new_names), log_id=other["log_id"].map(new_logs))
    one, shuffled, two = (agreement(t, n_resamples=60, seed=5) for t in (table, other, renamed.astype(TYPES)))
    for name in ("pooled", "per_log", "per_log_pairs"):
        pd.testing.assert_frame_equal(getattr(shuffled, name), getattr(one, name))
    # bounds included, to the last of 12 digits: the draws do not depend on names
    assert numbers(two.pooled, ["pair"]) == numbers(one.pooled, ["pair"])
    assert numbers(two.per_log, ["log_id"]) == numbers(one.per_log, ["log_id"])
    assert numbers(two.per_log_pairs, ["log_id", "pair"]) == numbers(one.per_log_pairs, ["log_id", "pair"])


@settings(deadline=None, max_examples=10)
@given(COMPLETE)
def test_an_unflagged_step_at_the_end_changes_no_agreement_on_flags(logs: dict[str, list[str]]) -> None:
    longer = {log_id: [*steps, "000"] for log_id, steps in logs.items()}
    one, two = found(logs, n_resamples=60), found(longer, n_resamples=60)
    kept = one.pooled["statistic"].isin(["positive_agreement", "jaccard"])
    columns = ["statistic", "pair", "value", "low", "high", "n_logs", "note"]
    pd.testing.assert_frame_equal(two.pooled.loc[kept, columns], one.pooled.loc[kept, columns])
    same = ["log_id", "positive_agreement", "jaccard"]
    pd.testing.assert_frame_equal(two.per_log[same], one.per_log[same])
    pd.testing.assert_frame_equal(two.per_log_pairs[["pair", *same]], one.per_log_pairs[["pair", *same]])
    raw = (row(r, "raw_agreement")["value"] for r in (one, two))
    assert next(raw) <= next(raw)


# ---- shape --------------------------------------------------------------------------------------------------------


def test_shape_and_order() -> None:
    result = found({"m/10": ["110"], "m/2": ["10."], "a/1": ["011"]})
    assert list(result.pooled.columns) == POOLED_COLUMNS
    assert list(result.per_log.columns) == PER_LOG_COLUMNS
    assert list(result.per_log_pairs.columns) == PER_LOG_PAIR_COLUMNS
    assert result.pooled["statistic"].to_list() == [*OVERALL, *(OF_PAIRS * 3)]
    assert list(dict.fromkeys(result.pooled["pair"])) == ["", "ann, bob", "ann, cleo", "bob, cleo"]
    assert result.per_log["log_id"].to_list() == ["a/1", "m/2", "m/10"]
    assert result.per_log_pairs["log_id"].to_list() == ["a/1"] * 3 + ["m/2"] + ["m/10"] * 3
    pd.testing.assert_frame_equal(result.summary_frame(), result.pooled)


def test_annotators_stand_in_natural_order() -> None:
    names = ("annotator 2", "annotator 10", "annotator 1")
    pooled = agreement(judged({"m/1": ["110"]}, names), n_resamples=1).pooled
    pairs = list(dict.fromkeys(pooled["pair"]))[1:]
    assert pairs == ["annotator 1, annotator 2", "annotator 1, annotator 10", "annotator 2, annotator 10"]


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(FaultbookError, match="no annotations"):
        agreement(judged({}))
