"""Policies mark at most one candidate a trajectory, and only where the run was still going on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.calibrate import calibrate
from faultbook.recovery.detectors import calibrate_detector, match_detector, standard_policies
from faultbook.recovery.policies import (
    AlwaysAt,
    AnomalyDetector,
    Never,
    Oracle,
    Policy,
    RandomAtRate,
    RandomPolicy,
    Recorded,
    RulePolicy,
    first_of,
)
from faultbook.recovery.rule import PAPER_SETTINGS
from faultbook.tables import CONDITIONS, Candidates, typed

KEY = ["task_id", "condition", "replicate", "delay"]
TRAJECTORY = KEY[:3]
DELAYS = (0, 1, 2, 4)


def simulated(n_tasks: int, seed: int = 0, *, digits: int = 15) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Candidates and probabilities without any connection; runs end at some delay, or go on."""
    rng = np.random.default_rng(seed)
    runs = pd.MultiIndex.from_product([[f"t{n}" for n in range(n_tasks)], CONDITIONS, [0]], names=TRAJECTORY)
    frame = runs.to_frame(index=False).merge(pd.DataFrame({"delay": DELAYS}), how="cross")
    shape = (len(runs), len(DELAYS))
    reached = np.arange(len(DELAYS)) < rng.integers(0, 7, (len(runs), 1))
    without = np.repeat(rng.random((len(runs), 1)) < 0.6, len(DELAYS), axis=1)
    with_ = np.where(reached & (rng.random(shape) < 0.4), ~without, without)
    frame["reached"], frame["is_error"] = reached.ravel(), frame["condition"] != "clean"
    frame["success_without"], frame["success_with"] = without.ravel(), with_.ravel()
    frame["tau"] = frame["success_with"].astype(int) - frame["success_without"].astype(int)
    names = ["p_err", "p0", "p1"]
    estimated = pd.DataFrame(rng.random((len(frame), 3)).round(digits), columns=names)
    probabilities = pd.concat([frame[KEY], estimated], axis=1)[frame["reached"]]
    return typed(frame, Candidates).assign(x_noops=rng.integers(0, 5, len(frame))), probabilities


def every_policy(rule_settings: Any = PAPER_SETTINGS) -> list[Policy]:
    rule = rule_settings.rule(failure_probability="complement_of_p0")
    detectors = [AnomalyDetector(0.5), AnomalyDetector(2, "x_noops", 0, "no-ops")]
    return [Never(), AlwaysAt(0), AlwaysAt(4), *detectors, RandomAtRate(0.4, seed=3), RulePolicy(rule), Oracle()]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_one_reached_candidate_a_trajectory_at_most(seed: int, n_tasks: int) -> None:
    candidates, probabilities = simulated(n_tasks, seed)
    candidates.index = pd.Index(np.random.default_rng(seed).permutation(len(candidates)) + 1000)
    for policy in every_policy():
        acts = policy.choose(candidates, probabilities)
        assert acts.dtype == bool
        assert acts.index.equals(candidates.index)
        assert acts.groupby([candidates[name] for name in TRAJECTORY]).sum().max() <= 1
        assert candidates.loc[acts, "reached"].all()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_rows_does_not_count(seed: int) -> None:
    candidates, probabilities = simulated(5, seed)
    shuffled = candidates.sample(frac=1, random_state=seed % 100)
    for policy in every_policy():
        acts = policy.choose(candidates, probabilities)
        pd.testing.assert_series_equal(policy.choose(shuffled, probabilities).sort_index(), acts.sort_index())


def test_what_each_policy_does() -> None:
    rows = [
        # task, delay, reached, success without and with, p_err, p0, p1
        ("a", 1, True, False, False, 0.9, 0.9, 0.9),
        ("a", 2, True, False, True, 0.95, 0.1, 0.9),
        ("a", 4, True, False, True, 0.99, 0.1, 0.9),
        ("b", 1, True, True, False, 0.3, 0.5, 0.5),
        ("b", 2, False, True, True, None, None, None),
        ("b", 4, False, True, True, None, None, None),
    ]
    columns = ["task_id", "delay", "reached", "success_without", "success_with", "p_err", "p0", "p1"]
    frame = pd.DataFrame(rows, columns=columns).assign(condition="stale2", replicate=0, is_error=True)
    frame["tau"] = frame["success_with"].astype(int) - frame["success_without"].astype(int)
    candidates, p = typed(frame, Candidates), frame[["p_err", "p0", "p1"]].astype(float)
    rule = PAPER_SETTINGS.rule(failure_probability="complement_of_p0")

    def acts(policy: Policy) -> list[int]:
        return np.flatnonzero(policy.choose(candidates, p)).tolist()

    assert acts(Never()) == []
    assert acts(AlwaysAt(1)) == [0, 3]
    assert acts(AlwaysAt(2)) == [1]  # b had ended
    assert acts(AnomalyDetector(0.3)) == [0, 3]
    assert acts(AnomalyDetector(0.95)) == [1]
    assert acts(AnomalyDetector(0.95, min_delay=3)) == [2]
    assert acts(AnomalyDetector(math.inf)) == []
    assert acts(RulePolicy(rule)) == [1]  # the first has u = .09 − 2 · .09 < 0
    assert acts(Oracle()) == [1]
    assert acts(Oracle(min_delay=3)) == [2]
    assert acts(RandomAtRate(0.0)) == []
    assert AlwaysAt(2).name == "always at delay 2"


# ---- random ------------------------------------------------------------------------------------------------------


def test_random_acts_at_its_rate_on_average() -> None:
    candidates, _ = simulated(40)
    policy = RandomAtRate(0.3)
    chances = policy.chances(candidates)
    assert isinstance(policy, RandomPolicy)
    assert chances.sum() == pytest.approx(0.3 * 160)
    assert (chances[~candidates["reached"] | (candidates["delay"] < 1)] == 0).all()
    # alike among the candidates of a trajectory, and among trajectories that have any
    groups = [candidates[name] for name in TRAJECTORY]
    assert (chances[chances > 0].groupby(groups).nunique() == 1).all()
    sums = chances.groupby(groups).sum()
    assert sums[sums > 0].round(12).nunique() == 1


@pytest.mark.slow
def test_many_draws_have_the_mean_that_is_said() -> None:
    candidates, _ = simulated(6)
    chances = RandomAtRate(0.4).chances(candidates)
    rng = np.random.default_rng(0)
    n_draws = 400
    drawn = sum(RandomAtRate(0.4, seed=rng).choose(candidates).astype(float) for _ in range(n_draws)) / n_draws
    assert (drawn - chances).abs().max() < 5 * math.sqrt(0.25 / n_draws)


def test_a_rate_out_of_reach_acts_wherever_it_can() -> None:
    candidates, _ = simulated(20)
    assert candidates.groupby(TRAJECTORY)["reached"].any().mean() < 0.95
    sums = RandomAtRate(1.0, min_delay=0).chances(candidates).groupby([candidates[name] for name in TRAJECTORY]).sum()
    assert set(sums.round(12)) == {0.0, 1.0}


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(FaultbookError, match="give interventions by trajectory, in"):
        RandomAtRate(rate)


# ---- detectors ---------------------------------------------------------------------------------------------------


def swept(candidates: pd.DataFrame, probabilities: pd.DataFrame, score: str, allowed: int) -> tuple[int, int, int]:
    """The best that any threshold attains: gain, fewer clean harms, fewer interventions."""
    values = probabilities[score] if score in probabilities else candidates[score]
    best = (0, 0, 0)
    for threshold in values.unique():
        acted = candidates[AnomalyDetector(threshold, score).choose(candidates, probabilities)]
        harms = int((~acted["is_error"] & (acted["tau"] < 0)).sum())
        if harms <= allowed:
            best = max(best, (int(acted.loc[acted["is_error"], "tau"].sum()), -harms, -len(acted)))
    return best


@pytest.mark.parametrize("score", ["p_err", "x_noops"])
@pytest.mark.parametrize("seed", range(5))
def test_the_detector_is_calibrated_exactly(seed: int, score: str) -> None:
    candidates, probabilities = simulated(15, seed, digits=2)
    detector = calibrate_detector(candidates, probabilities, score=score, harm_limit=0.1)
    acted = candidates[detector.choose(candidates, probabilities)]
    harms = int((~acted["is_error"] & (acted["tau"] < 0)).sum())
    found = int(acted.loc[acted["is_error"], "tau"].sum()), -harms, -len(acted)
    assert found == swept(candidates, probabilities, score, 1)


def test_a_detector_that_cannot_gain_never_acts() -> None:
    candidates, probabilities = simulated(10)
    hopeless = candidates.assign(success_with=candidates["success_without"], tau=0)
    detector = calibrate_detector(hopeless, probabilities)
    assert detector.threshold == math.inf
    assert not detector.choose(hopeless, probabilities).any()


def test_a_detector_is_matched_on_interventions() -> None:
    candidates, probabilities = simulated(20)
    n_possible = int(AnomalyDetector(-math.inf).choose(candidates, probabilities).sum())
    for wanted in (0, 1, 7, n_possible, n_possible + 5):
        detector = match_detector(candidates, probabilities, interventions=wanted)
        # without ties every number up to that of trajectories with a candidate can be had
        assert int(detector.choose(candidates, probabilities).sum()) == min(wanted, n_possible)


def test_with_tied_scores_the_nearest_number_is_taken() -> None:
    candidates, _ = simulated(20)
    counts = {int(AnomalyDetector(t, "x_noops").choose(candidates).sum()) for t in (*range(5), math.inf)}
    for wanted in range(max(counts) + 3):
        found = int(match_detector(candidates, interventions=wanted, score="x_noops").choose(candidates).sum())
        assert found == min(counts, key=lambda count: (abs(count - wanted), count))


def test_outcomes_do_not_count_in_matching() -> None:
    candidates, probabilities = simulated(20)
    other = candidates.assign(success_with=candidates["success_without"], tau=0)
    matched = [match_detector(frame, probabilities, interventions=9) for frame in (candidates, other)]
    assert matched[0] == matched[1]


def test_a_missing_score_does_not_pass() -> None:
    candidates, probabilities = simulated(10)
    candidates["x_gap"] = candidates["x_noops"].where(candidates["delay"] == 2).astype("Float64")
    acts = AnomalyDetector(-1, "x_gap").choose(candidates)
    assert set(candidates.loc[acts, "delay"]) == {2}
    assert not math.isnan(calibrate_detector(candidates, probabilities, score="x_gap", harm_limit=0.5).threshold)


def test_the_standard_policies() -> None:
    candidates, probabilities = simulated(30)
    found = calibrate(candidates, probabilities, failure_probability="complement_of_p0", harm_limit=0.1, n_bootstraps=0)
    policies = standard_policies(found, candidates, probabilities)
    assert [policy.name for policy in policies] == [
        "never",
        *(f"always at delay {delay}" for delay in DELAYS),
        "sequential anomaly detector",
        "anomaly detector, matched rate",
        "random at matched rate",
        "CIR rule",
        "oracle (uses outcomes)",
    ]
    acts = {policy.name: int(policy.choose(candidates, probabilities).sum()) for policy in policies}
    assert acts["CIR rule"] == acts["anomaly detector, matched rate"] == found.interventions > 0
    assert policies[7].chances(candidates).sum() == pytest.approx(found.interventions)
    with pytest.raises(FaultbookError, match="the rule was calibrated on other candidates"):
        standard_policies(found, *simulated(31, 1))


# ---- errors ------------------------------------------------------------------------------------------------------


def test_a_delay_that_no_candidate_has() -> None:
    with pytest.raises(FaultbookError, match="no candidate has the delay 3; the delays are 0, 1, 2, 4"):
        AlwaysAt(3).choose(simulated(2)[0])


def test_the_rule_needs_probabilities() -> None:
    rule = RulePolicy(PAPER_SETTINGS.rule(failure_probability="complement_of_p0"))
    with pytest.raises(DataError, match="no probabilities, and p_err, p0, p1 are asked for"):
        rule.choose(simulated(2)[0])


@pytest.mark.parametrize(
    ("score", "problem"), [("x_missing", "no such score"), ("condition", "a score of type 'str"), ("p_err", "no such")]
)
def test_a_score_that_is_none(score: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        AnomalyDetector(0.5, score).choose(simulated(2)[0])


def test_recorded_decisions() -> None:
    candidates, _ = simulated(10)
    candidates["acted"] = first_of(candidates, (candidates["delay"] >= 1).to_numpy())
    policy = Recorded("theirs", "acted")
    assert policy.choose(candidates).sum() == candidates["acted"].sum() > 0
    twice = candidates.assign(acted=candidates["reached"])
    with pytest.raises(DataError, match="column 'acted': a second intervention in a trajectory, or one after it had"):
        policy.choose(twice)
    over = candidates.assign(acted=~candidates["reached"])
    with pytest.raises(DataError, match=r"task t., .*, replicate 0, delay ., column 'acted'"):
        policy.choose(over)
    with pytest.raises(DataError, match="no such column"):
        Recorded("theirs", "x").choose(candidates)
    with pytest.raises(DataError, match="give true or false"):
        policy.choose(candidates.assign(acted=0.5))
