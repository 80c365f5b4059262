"""What the models can be trusted for: coefficients, calibration, separation, folds and gates that nothing reaches."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.diagnostics import (
    BRIER_COLUMNS,
    CALIBRATION_COLUMNS,
    EVENT_COLUMNS,
    FOLD_COLUMNS,
    SUMMARY_COLUMNS,
    brier,
    calibration,
    events,
    folds,
    summaries,
)
from faultbook.recovery.estimators import TARGETS, Estimators, LogisticModel, fit
from faultbook.recovery.model_file import load_model, save_model
from faultbook.recovery.reach import REACH_COLUMNS, reachable
from faultbook.recovery.rule import PAPER_SETTINGS, InterventionRule, decide_many
from faultbook.recovery.separation import SEPARATION_COLUMNS, separation
from faultbook.stats.bootstrap import cluster_ratio
from faultbook.stats.proportion import clopper_pearson

FEATURES = ["x_skill", "x_novel", "x_flag"]
PAPER = PAPER_SETTINGS.rule(failure_probability="complement_of_p0")


def candidates(n_tasks: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(n_tasks):
        skill = rng.normal()
        for condition, delay in itertools.product(("clean", "stale2"), (1, 2)):
            error = condition == "stale2"
            rows.append(
                {"task_id": f"t{task:02d}", "condition": condition, "replicate": 0, "delay": delay}
                | {"reached": bool(rng.random() < 0.95), "is_error": error}
                | {"success_without": bool(skill + rng.normal() - error > -0.5)}
                | {"success_with": bool(skill + rng.normal() > -0.5)}
                | {"x_skill": skill + rng.normal() / 2, "x_novel": rng.normal() + error, "x_flag": rng.random() < 0.3}
            )
    return pd.DataFrame(rows)


def plain(y: Any, **features: Any) -> pd.DataFrame:
    """One candidate a task with one outcome for all three models."""
    base = {"task_id": [f"t{i:03d}" for i in range(len(y))], "condition": "clean", "replicate": 0, "delay": 1}
    return pd.DataFrame(base | {"reached": True, **dict.fromkeys(TARGETS.values(), y)} | features)


FRAME = candidates()
FITTED = fit(FRAME)
REACHED = FRAME[FRAME["reached"]]


# ---- coefficients -----------------------------------------------------------------------------------------------


def test_summaries_are_those_of_a_binomial_model_with_errors_by_task() -> None:
    table = summaries(FITTED, FRAME)
    assert list(table.columns) == SUMMARY_COLUMNS
    x = REACHED[FEATURES].astype(float)
    design = sm.add_constant(((x - x.mean()) / x.std(ddof=0)).to_numpy())
    groups = pd.factorize(REACHED["task_id"])[0]
    for model, target in TARGETS.items():
        part = table[table["model"] == model]
        other = sm.GLM(REACHED[target].astype(float).to_numpy(), design, family=sm.families.Binomial())
        theirs = other.fit(cov_type="cluster", cov_kwds={"groups": groups})
        np.testing.assert_allclose(part["coefficient"], theirs.params, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(part["se"], theirs.bse, rtol=1e-4)
        np.testing.assert_allclose(part[["low", "high"]], theirs.conf_int(), rtol=1e-3, atol=1e-5)
        assert part["feature"].to_list() == ["intercept", *FEATURES]
        assert part["used"].to_list()[1:] == list(FITTED.models[model].coefficient)
    assert set(table["n"]) == {len(REACHED)}
    assert set(table["n_tasks"]) == {40}
    assert (table["note"] == "").all()


def test_a_penalty_shrinks_what_is_used() -> None:
    table = summaries(fit(FRAME, C=1e-3), FRAME)
    slopes = table[table["feature"].isin(["x_skill", "x_novel"])]
    assert (slopes["used"].abs() < slopes["coefficient"].abs()).all()


def test_repeating_rows_of_a_task_does_not_shrink_errors() -> None:
    once = plain(np.random.default_rng(0).random(60) < 0.5, x_a=np.random.default_rng(1).normal(size=60))
    often = pd.concat([once.assign(replicate=i) for i in range(5)], ignore_index=True)
    single, repeated = (summaries(fit(frame), frame) for frame in (once, often))
    # statsmodels' small-sample factor (N - 1) / (N - k) differs by less than 2 % here
    np.testing.assert_allclose(repeated["se"], single["se"], rtol=0.02)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"x_a": [0, 0, 0, 1, 1, 1] * 5}, "complete separation by x_a: no finite estimate"),
        ({"x_a": [0, 0, 1, 1, 1, 1] * 5, "x_b": range(30)}, "quasi-complete separation by x_a"),
        ({"x_a": [0, 1, 0, 1, 1, 0] * 5, "x_b": [0, 2, 0, 2, 2, 0] * 5}, "collinear features: x_a, x_b"),
    ],
)
def test_what_cannot_be_estimated_is_missing_with_its_reason(features: dict[str, Any], said: str) -> None:
    frame = plain([False, False, False, True, True, True] * 5, **features)
    table = summaries(fit(frame), frame)
    assert table["note"].str.startswith(said).all()
    assert table[["coefficient", "se", "p", "low", "high"]].isna().all(axis=None)
    assert table["used"].notna().all()


def test_one_outcome_constants_and_few_tasks() -> None:
    frame = FRAME.assign(is_error=True, x_flag=1)
    table = summaries(fit(frame), frame).set_index(["model", "feature"])
    assert table.loc[("p_err", "x_skill"), "note"] == "one outcome only"
    assert table.loc["p_err", ["coefficient", "used"]].isna().all(axis=None)
    assert table.loc[("p0", "x_flag"), "note"].startswith("constant")
    assert np.isnan(table.loc[("p0", "x_flag"), "coefficient"])
    assert table.loc[("p0", "x_skill"), "note"] == ""
    few = FRAME[FRAME["task_id"].isin(["t01", "t02", "t03", "t04"])]
    row = summaries(fit(few, features=["x_skill", "x_novel", "x_flag"]), few).set_index(["model", "feature"])
    found = row.loc[("p_err", "x_novel")]
    assert found["note"].startswith(("no errors: 4 tasks for 4 coefficients", "complete", "quasi"))
    assert np.isnan(found["se"])


# ---- calibration ------------------------------------------------------------------------------------------------


def test_the_calibration_curve_counts_every_row_once() -> None:
    table = calibration(FITTED, FRAME)
    assert list(table.columns) == CALIBRATION_COLUMNS
    judged = FRAME.merge(FITTED.out_of_fold, on=["task_id", "condition", "replicate", "delay"])
    for model, target in TARGETS.items():
        part = table[table["model"] == model]
        assert len(part) == 5
        assert part["n"].sum() == len(REACHED)
        assert part["events"].sum() == REACHED[target].sum()
        assert part["n"].max() - part["n"].min() <= 2
        assert (part["predicted_high"].to_numpy()[:-1] < part["predicted_low"].to_numpy()[1:]).all()
        for row in part.to_dict("records"):
            inside = judged[judged[model].between(row["predicted_low"], row["predicted_high"])]
            expected = cluster_ratio(inside[target], np.ones(len(inside)), inside["task_id"], n_resamples=2_000, seed=0)
            assert (row["observed"], row["low"], row["high"]) == (expected.estimate, expected.low, expected.high)
            assert row["n_tasks"] == inside["task_id"].nunique()
            assert row["predicted"] == pytest.approx(inside[model].mean())


def test_equal_predictions_share_a_bin() -> None:
    frame = plain([True, False] * 20, x_a=[0, 0, 1, 1] * 10)
    assert (calibration(fit(frame), frame, out_of_fold=False).groupby("model").size() <= 2).all()
    frame = FRAME.assign(is_error=True)
    one = calibration(fit(frame), frame).query("model == 'p_err'")
    assert one[["predicted", "observed", "high", "n"]].to_numpy().tolist() == [[1, 1, 1, len(REACHED)]]
    n_tasks = REACHED["task_id"].nunique()  # rows that all agree: exact, of tasks
    assert one["low"].item() == clopper_pearson(n_tasks, n_tasks).low


@pytest.mark.parametrize("n_bins", [0, 6, 2.5])
def test_few_bins_only(n_bins: Any) -> None:
    with pytest.raises(FaultbookError, match="give 1 to 5"):
        calibration(FITTED, FRAME, n_bins=n_bins)


def test_models_are_judged_out_of_fold_on_their_own_rows_only() -> None:
    other = candidates(seed=1)
    for judge in (calibration, brier, folds):
        with pytest.raises(FaultbookError, match=r"not fitted on these candidates; .*out_of_fold=False"):
            judge(FITTED, other)
    with pytest.raises(FaultbookError, match="other names"):
        brier(FITTED, FRAME.assign(task_id="z" + FRAME["task_id"]))
    assert calibration(FITTED, other, out_of_fold=False)["n"].sum() == 3 * other["reached"].sum()
    with pytest.raises(FaultbookError, match="no candidate was reached"):
        brier(FITTED, other.assign(reached=False), out_of_fold=False)


def test_brier_scores_against_the_base_rate() -> None:
    table = brier(FITTED, FRAME, n_resamples=500)
    assert list(table.columns) == BRIER_COLUMNS
    judged = FRAME.merge(FITTED.out_of_fold, on=["task_id", "condition", "replicate", "delay"])
    for row in table.to_dict("records"):
        target = judged[TARGETS[row["model"]]].astype(float)
        assert row["brier"] == pytest.approx(((judged[row["model"]] - target) ** 2).mean())
        assert row["brier_of_base_rate"] == pytest.approx(target.mean() * (1 - target.mean()))
        assert row["gain"] == pytest.approx(row["brier_of_base_rate"] - row["brier"])
        assert row["low"] < row["brier"] < row["high"]
        assert row["gain_low"] < row["gain"] < row["gain_high"]
        assert (row["n"], row["n_tasks"]) == (len(REACHED), 40)
    assert table.set_index("model").loc["p0", "gain_low"] > 0  # skill was made to matter
    pd.testing.assert_frame_equal(table, brier(FITTED, FRAME.iloc[::-1], n_resamples=500))


def test_noise_is_no_better_than_the_base_rate() -> None:
    frame = FRAME.assign(x_skill=np.random.default_rng(5).normal(size=len(FRAME)))
    assert (brier(fit(frame, features=["x_skill"]), frame, n_resamples=200)["gain_low"] < 0.005).all()


def test_the_brier_score_of_one_outcome() -> None:
    frame = FRAME.assign(is_error=True)
    row = brier(fit(frame), frame, n_resamples=50).set_index("model").loc["p_err"]
    assert (row["brier"], row["gain"]) == (0, 0)
    assert np.isnan([row["low"], row["high"], row["gain_low"]]).all()
    assert "one outcome only" in row["note"]


# ---- separation -------------------------------------------------------------------------------------------------


def found(frame: pd.DataFrame, *features: str) -> list[tuple[str, str, str]]:
    table = separation(frame, features)
    assert list(table.columns) == SEPARATION_COLUMNS
    part = table[table["model"] == "p0"]
    return list(part[["features", "how", "kind"]].itertuples(index=False, name=None))


def test_separation_is_named_by_feature() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(93) < 46
    noise = rng.normal(size=93)
    frame = plain(y, x_flag=y.astype(int), x_noise=noise, x_half=np.where(y, rng.integers(0, 2, 93), 0), x_one=1)
    assert found(frame, "x_noise", "x_one") == []
    assert found(frame, "x_flag", "x_noise") == [("x_flag", "alone", "complete")]
    assert found(frame, "x_half", "x_noise") == [("x_half", "alone", "quasi-complete")]
    assert set(found(frame, *frame.filter(like="x_"))) == {
        ("x_flag", "alone", "complete"),
        ("x_half", "alone", "quasi-complete"),
    }


def test_features_that_separate_together_only() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(93, 3))
    total = x[:, 0] + x[:, 1]
    frame = plain(total > 0, x_a=x[:, 0], x_b=x[:, 1], x_c=x[:, 2])
    assert found(frame, "x_a", "x_b", "x_c") == [("x_a, x_b", "jointly", "complete")]
    assert found(frame, "x_a", "x_c") == []
    border = plain([True, False], x_a=[1, 1], x_b=[-1, -1], x_c=[0, 0]).assign(task_id=["u", "v"])
    on_border = pd.concat([frame, border], ignore_index=True)  # a row of each outcome
    kinds = {kind for _, _, kind in found(on_border, "x_a", "x_b")}
    assert kinds == {"quasi-complete"}


def exactly_separated(points: list[tuple[int, int]], y: list[bool]) -> bool:
    """Whether some line has the outcomes on its two sides, borders included, not all on the line: by trying them all.

    If there is one, it can be turned and moved until it goes through two points (or lies beside one axis).
    """
    directions = {(a[1] - b[1], b[0] - a[0]) for a, b in itertools.permutations(points, 2)} | {(0, 1), (1, 0), (1, 1)}
    for u, v in directions | {(-u, -v) for u, v in directions}:
        for a in points:
            margins = [
                (u * (p[0] - a[0]) + v * (p[1] - a[1])) * (1 if e else -1) for p, e in zip(points, y, strict=True)
            ]
            if min(margins) >= 0 and max(margins) > 0:
                return True
    return False


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=3, max_size=12),
)
@settings(max_examples=50, deadline=None)
def test_the_linear_programme_agrees_with_trying_all_lines(rows: list[tuple[int, int, bool]]) -> None:
    y = [row[2] for row in rows]
    frame = plain(y, x_a=[row[0] for row in rows], x_b=[row[1] for row in rows])
    varies = [name for name in ("x_a", "x_b") if frame[name].nunique() > 1]
    if len(set(y)) < 2 or not varies:
        assert found(frame, "x_a", "x_b") == []
        return
    assert bool(found(frame, "x_a", "x_b")) == exactly_separated([(a, b) for a, b, _ in rows], y)


# ---- folds and events -------------------------------------------------------------------------------------------


def test_folds_add_up() -> None:
    table = folds(FITTED, FRAME)
    assert list(table.columns) == FOLD_COLUMNS
    for model, target in TARGETS.items():
        part = table[table["model"] == model]
        assert part[["n", "n_events", "n_tasks"]].sum().to_list() == [len(REACHED), REACHED[target].sum(), 40]
        assert (part["n"] + part["n_train"] == len(REACHED)).all()
        assert (part["n_events"] + part["n_train_events"] == REACHED[target].sum()).all()
    assert (table["note"] == "").all()


def test_a_one_class_fold_is_named() -> None:
    frame = plain([i == 0 for i in range(30)], x_a=np.arange(30.0))
    table = folds(fit(frame), frame)
    named = table[table["note"] != ""]
    assert len(named) == 3  # one fold of each model
    assert (named["n_train_events"] == 0).all()
    assert named["note"].str.contains("base rate").all()


def test_events_are_counted_in_tasks() -> None:
    table = events(FRAME.assign(x_one=1.0), [*FEATURES, "x_one"])
    assert list(table.columns) == EVENT_COLUMNS
    row = table.set_index("model").loc["p0"]
    failures = REACHED[~REACHED["success_without"]]
    successes = REACHED[REACHED["success_without"]]
    rarer = failures if len(failures) < len(successes) else successes
    assert (row["n_events"], row["rarer"]) == (len(successes), len(rarer))
    assert row["rarer_tasks"] == rarer["task_id"].nunique()
    assert (row["n_features"], row["tasks_per_feature"]) == (3, row["rarer_tasks"] / 3)
    few = events(plain([i < 6 for i in range(93)], x_a=range(93)), ["x_a"]).iloc[0]
    assert (few["rarer_tasks"], few["tasks_per_feature"]) == (6, 6)
    assert "fewer than 10" in few["note"]
    assert np.isnan(events(FRAME.assign(x_one=1), ["x_one"])["tasks_per_feature"]).all()


# ---- gates that nothing reaches ---------------------------------------------------------------------------------


def gates(rule: InterventionRule, estimators: Estimators, frame: pd.DataFrame | None = None) -> pd.DataFrame:
    table = reachable(rule, estimators, frame)
    assert list(table.columns) == REACH_COLUMNS
    return table.set_index("gate")


def test_the_experiments_threshold_is_out_of_reach_at_its_own_penalty() -> None:
    # scikit-learn 1.9.1: C = .1, 93 rows, one feature that separates perfectly and one of noise, standardised:
    # p stays within about .15 to .85, and α = .876 is never reached
    y = np.arange(93) < 46
    frame = plain(y, x_flag=y, x_noise=np.random.default_rng(0).normal(size=93))
    table = gates(PAPER, fit(frame))
    row = table.loc["error"]
    assert not row["reachable"]
    assert row["highest_seen"] == pytest.approx(0.855, abs=0.005)
    assert row["highest_seen"] <= row["highest_possible"] < 0.876
    assert row["lowest_seen"] == pytest.approx(0.147, abs=0.005)
    assert "p_err ≥ 0.876 is never reached: the highest attainable value is 0.8" in row["note"]
    assert not table.loc["all", "reachable"]
    assert "never can with these features and C = 0.1" in table.loc["all", "note"]
    assert "2610.00372" in table.loc["all", "note"]
    assert gates(PAPER, fit(frame, C=10)).loc["error", "reachable"]


def test_reach_within_the_rows() -> None:
    rule = dataclasses.replace(PAPER, error_threshold=0.4)
    table = gates(rule, FITTED)
    p = FITTED.predict(REACHED)
    decided = decide_many(rule, REACHED["delay"], p["p_err"], p["p0"], p["p1"])
    assert table.loc["error", ["lowest_seen", "highest_seen"]].to_list() == [p["p_err"].min(), p["p_err"].max()]
    assert table.loc["failure", "highest_seen"] == 1 - p["p0"].min()
    assert table.loc["utility", "highest_seen"] == decided["utility_score"].max()
    assert table.loc["delay", "n_passing"] == len(REACHED)
    assert table.loc["all", "n_passing"] == (decided["action"] == "refresh").sum() > 0
    assert table["reachable"].all()
    pd.testing.assert_frame_equal(table, gates(rule, FITTED, FRAME))


WEIGHTS = st.lists(st.floats(-2, 2), min_size=3, max_size=3)


@given(WEIGHTS, WEIGHTS, st.floats(-2, 2), st.floats(-2, 2), st.sampled_from([0, 1, 2, 5]), st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_nothing_within_the_ranges_lies_outside_what_is_possible(
    first: list[float], second: list[float], a: float, b: float, penalty: float, seed: int
) -> None:
    low, high = np.array([-2.0, 0.0, 1.0]), np.array([1.5, 1.0, 4.0])

    def model(name: str, weights: list[float], intercept: float) -> LogisticModel:
        return LogisticModel(name, (0.5, 0.2, 2.0), (1.0, 0.4, 0.8), tuple(weights), intercept, None, 9, 4)

    made = dataclasses.replace(
        FITTED,
        p_err=model("p_err", first, b),
        p0=model("p0", first, a),
        p1=model("p1", second, b),
        low=tuple(low),
        high=tuple(high),
    )
    rng = np.random.default_rng(seed)
    inside = low + (high - low) * rng.random((400, 3))
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    x = np.concatenate([inside, corners])
    p_err, p0, p1 = (m.probabilities(x) for m in made.models.values())
    u = (1 - p0) * p1 - penalty * p0 * (1 - p1)
    table = gates(dataclasses.replace(PAPER, harm_penalty=penalty), made)
    possible = table[["lowest_possible", "highest_possible"]].astype(float)
    for gate, values, exact in (("error", p_err, 1e-12), ("failure", 1 - p0, 1e-12), ("utility", u, 1e-4)):
        lowest, highest = possible.loc[gate]
        assert lowest - exact <= values.min() <= values.max() <= highest + exact
        if gate != "utility":  # corners attain it
            assert values.max() == pytest.approx(highest, abs=1e-12)


def test_a_gate_that_holds_nothing_back_is_said_to() -> None:
    rule = dataclasses.replace(PAPER, failure_threshold=0, error_threshold=0.0)
    table = gates(rule, FITTED)
    assert table.loc["failure", "note"].endswith("the gate holds nothing back")


def test_a_tie_everywhere_is_no_reach() -> None:
    frame = FRAME.assign(success_without=False, success_with=False)
    table = gates(dataclasses.replace(PAPER, error_threshold=0.1), fit(frame))
    assert not table.loc["utility", "reachable"]
    assert table.loc["utility", "highest_possible"] == 0
    on_tie = dataclasses.replace(PAPER, error_threshold=0.1, on_tie="refresh")
    assert gates(on_tie, fit(frame)).loc["utility", "reachable"]


def test_models_from_a_file_are_judged_by_their_ranges(tmp_path: Any) -> None:
    loaded = load_model(save_model(FITTED, tmp_path / "m.json"))
    table = gates(PAPER, loaded)
    assert table["n_rows"].to_list() == [0] * 5
    assert table[["lowest_seen", "highest_seen"]].isna().all(axis=None)
    fresh = gates(PAPER, FITTED)
    pd.testing.assert_series_equal(table["highest_possible"], fresh["highest_possible"])
    assert pd.isna(table.loc["delay", "reachable"])
    pd.testing.assert_frame_equal(gates(PAPER, loaded, FRAME), fresh)


def test_a_function_for_failure() -> None:
    table = gates(dataclasses.replace(PAPER, failure_probability=lambda _: 0.01), FITTED)
    assert not table.loc["failure", "reachable"]
    unknown = gates(dataclasses.replace(PAPER, failure_probability=lambda _: float("nan")), FITTED)
    assert not unknown.loc["failure", "reachable"]
    assert unknown.loc["failure", "note"] == "p_fail cannot be evaluated anywhere"
    assert unknown.loc["all", "n_passing"] == 0


def test_rows_without_a_feature_are_refused() -> None:
    with pytest.raises(DataError, match="x_skill"):
        reachable(PAPER, FITTED, FRAME.drop(columns="x_skill"))
