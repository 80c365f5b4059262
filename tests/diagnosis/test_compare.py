"""Paired differences between models: on common incidents only, adjusted, and honest about ties."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from faultbook.diagnosis import compare
from faultbook.diagnosis.summary import COMPARISON_COLUMNS
from faultbook.errors import FaultbookError

Values = dict[str, list[float | str]]


def table(values: Values, policy: str = "itbench-aa") -> pd.DataFrame:
    """Scores by model, one incident each in order; a text is a status, and the incident of "-" is not there."""
    rows = [
        (model, f"i{n}", 0, policy, value if isinstance(value, str) else "scored", value)
        for model, listed in values.items()
        for n, value in enumerate(listed)
        if value != "-"
    ]
    frame = pd.DataFrame(rows, columns=["model", "incident_id", "repeat", "policy", "status", "score"])
    return frame.assign(score=pd.to_numeric(frame["score"], errors="coerce").astype("Float64"))


def pair(values: Values, **settings: int | float) -> pd.Series:
    return compare(table(values), **{"n_resamples": 500, "n_flips": 1_000, **settings}).iloc[0]


def test_a_difference_in_percentage_points() -> None:
    row = pair({"a": [1, 1, 0.5, 0], "b": [0, 1, 0, 0]})
    assert (row["model_a"], row["model_b"], row["n_incidents"]) == ("a", "b", 4)
    assert row["difference_pp"] == pytest.approx(37.5)
    assert row["low_pp"] <= row["difference_pp"] <= row["high_pp"]


def test_the_p_of_a_known_case() -> None:
    # Six incidents that all differ by the same: of 64 sign patterns two are as far from 0, so p = 2 / 64.
    row = pair({"a": [1] * 6, "b": [0] * 6}, n_flips=100_000)
    assert row["p"] == pytest.approx(2 / 64, abs=0.003)
    assert row["separable"]
    assert pd.isna(row["low_pp"])  # no spread, no interval
    row = pair({"a": [1] * 5, "b": [0] * 5}, n_flips=100_000)
    assert row["p"] == pytest.approx(2 / 32, abs=0.004)
    assert not row["separable"]


def test_the_level_decides_what_is_separable() -> None:
    values: Values = {"a": [1] * 6, "b": [0] * 6}  # p is about 0.031
    assert not pair(values, level=0.99)["separable"]
    assert pair(values, level=0.95)["separable"]


SCORES = st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 1.0]), min_size=3, max_size=10)


@settings(max_examples=6, deadline=None)
@given(SCORES, st.randoms(use_true_random=False))
def test_the_order_of_models_only_changes_signs(first: list[float], random: np.random.Generator) -> None:
    second = list(first)
    random.shuffle(second)
    forth = pair({"a": [*first], "b": [*second]})
    back = pair({"b": [*second], "a": [*first]})
    assert (back["model_a"], back["model_b"]) == ("b", "a")
    assert back["difference_pp"] == pytest.approx(-forth["difference_pp"], abs=1e-9)
    assert back["p"] == pytest.approx(forth["p"], nan_ok=True)
    assert back["separable"] == forth["separable"]


def test_the_interval_of_the_mirror_image_is_mirrored() -> None:
    first, second = [1, 0, 0.5, 1, 1, 0, 1, 0.5, 1, 0, 0, 1], [0, 0, 1, 1, 0, 0.5, 0, 0.5, 1, 1, 0, 0]
    forth = pair({"a": [*first], "b": [*second]}, n_resamples=20_000)
    back = pair({"b": [*second], "a": [*first]}, n_resamples=20_000)
    assert [-back["high_pp"], -back["low_pp"]] == pytest.approx([forth["low_pp"], forth["high_pp"]], abs=2.5)


def test_only_common_incidents_count() -> None:
    row = pair({"a": [1, 1, 1, "-", 1], "b": [0, 0, 0, 1, "-"]})
    assert row["n_incidents"] == 3
    assert row["difference_pp"] == pytest.approx(100)


def test_nothing_in_common() -> None:
    row = pair({"a": [1, "-"], "b": ["-", 1]})
    assert row["n_incidents"] == 0
    assert row[["difference_pp", "low_pp", "high_pp", "p", "p_holm"]].isna().all()
    assert not row["separable"]


def test_unscored_is_zero_and_ungradeable_is_left_out() -> None:
    row = pair({"a": [1, 1, "ungradeable"], "b": [1, "timed_out", "ungradeable"]})
    assert row["n_incidents"] == 2
    assert row["difference_pp"] == pytest.approx(50)


def test_an_incident_counts_once_however_often_it_was_run() -> None:
    once = table({"a": [1, 0.5, 0, 1], "b": [0, 0.5, 1, 0]})
    often = pd.concat([once.assign(repeat=n) for n in range(3)], ignore_index=True)
    uneven = pd.concat([often, once[once["model"] == "a"].assign(repeat=3)], ignore_index=True)
    for frame in (often, uneven):
        pd.testing.assert_frame_equal(
            compare(frame, n_resamples=200, n_flips=500), compare(once, n_resamples=200, n_flips=500)
        )


def test_identical_models_have_no_p_and_are_not_separable() -> None:
    row = pair({"a": [1, 0, 0.5], "b": [1, 0, 0.5]})
    assert row["difference_pp"] == 0
    assert row[["p", "p_holm", "low_pp", "high_pp"]].isna().all()
    assert not row["separable"]


def test_repeats_in_another_order_are_identical_models() -> None:
    # The same four scores; their float mean differs by 6e-17, and it does so in the same direction in every incident.
    orders = {"a": [0, 1 / 3, 2 / 3, 1 / 2], "b": [0, 2 / 3, 1 / 2, 1 / 3]}
    rows = [
        (model, f"i{n}", repeat, "itbench-aa", "scored", value)
        for model, values in orders.items()
        for n in range(10)
        for repeat, value in enumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=["model", "incident_id", "repeat", "policy", "status", "score"])
    row = compare(frame.astype({"score": "Float64"}), n_resamples=200, n_flips=2_000).iloc[0]
    assert row["difference_pp"] == pytest.approx(0, abs=1e-9)
    assert pd.isna(row["p"])
    assert not row["separable"]


# ---- several models ---------------------------------------------------------------------------------------------

FOUR: Values = {
    "a": [1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5],
    "b": [1, 1, 1, 1, 0, 1, 0.5, 1, 0, 1],
    "c": [0, 0, 0, 1, 0, 0, 0, 0.5, 0, 0],
    "d": [0, 0, 0, 1, 0, 0, 0, 0.5, 0, 0],
}


def test_holm_by_hand() -> None:
    frame = compare(table(FOUR), n_resamples=200, n_flips=20_000)
    assert len(frame) == 6
    tested = frame[frame["p"].notna()]
    assert (frame["model_a"] + frame["model_b"]).tolist() == ["ab", "ac", "ad", "bc", "bd", "cd"]
    assert len(tested) == 5  # c and d are the same
    ordered = tested.sort_values("p", kind="stable")
    # Holm (1979): the k-th smallest of m times m − k + 1, never below the one before, at most 1
    stepped = [min(1.0, p * (len(ordered) - k)) for k, p in enumerate(ordered["p"])]
    assert ordered["p_holm"].to_list() == pytest.approx(np.maximum.accumulate(stepped).tolist())
    assert tested["p_holm"].to_list() == pytest.approx(multipletests(tested["p"], method="holm")[1].tolist())
    assert all(one <= other for one, other in pairwise(ordered["p_holm"]))
    assert frame["separable"].tolist() == [p < 1 - 0.95 for p in frame["p_holm"]]


def test_the_numbers_are_numbers() -> None:
    for values in (FOUR, {"a": [1, "-"], "b": ["-", 1]}, {"a": [1.0]}):
        frame = compare(table(values), n_resamples=50, n_flips=100)
        assert list(frame.columns) == COMPARISON_COLUMNS
        if len(frame):
            for name in ("difference_pp", "low_pp", "high_pp", "p", "p_holm"):
                assert pd.api.types.is_float_dtype(frame[name]), name
        assert frame["separable"].dtype == bool


def test_one_model_has_nothing_to_be_compared_with() -> None:
    assert compare(table({"a": [1, 0]})).empty


def test_the_seed_decides() -> None:
    frame = table(FOUR)
    one = compare(frame, n_resamples=100, n_flips=500, seed=5)
    pd.testing.assert_frame_equal(one, compare(frame, n_resamples=100, n_flips=500, seed=5))
    shuffled = frame.iloc[[*range(9, -1, -1), *range(10, len(frame))]]
    pd.testing.assert_frame_equal(one, compare(shuffled, n_resamples=100, n_flips=500, seed=5))
    assert not one.equals(compare(frame, n_resamples=100, n_flips=500, seed=6))


def test_scores_of_two_policies_are_not_averaged() -> None:
    both = pd.concat([table({"a": [1, 1], "b": [0, 0]}), table({"a": [0, 0], "b": [1, 1]}, "ibm")], ignore_index=True)
    with pytest.raises(FaultbookError, match="polic"):
        compare(both, n_resamples=20, n_flips=20)
