"""Thresholds chosen exactly, held against asking the rule at every triple of values."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.calibrate import Calibration, calibrate
from faultbook.recovery.policies import RulePolicy
from faultbook.recovery.rule import InterventionRule
from faultbook.tables import CONDITIONS, Candidates, typed

KEY = ["task_id", "condition", "replicate", "delay"]
DELAYS = (0, 1, 2, 4)

Moment = tuple[bool, bool, float, float, float]  # reached, success with, p_err, p0, p1


def tables(runs: dict[tuple[str, str], tuple[bool, dict[int, Moment]]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Candidates and probabilities from (task, condition) → (success without, delay → moment)."""
    rows, probabilities = [], []
    for (task, condition), (without, moments) in runs.items():
        for delay, (reached, with_, *p) in moments.items():
            success = with_ if reached else without
            row = {"task_id": task, "condition": condition, "replicate": 0, "delay": delay, "reached": reached}
            row |= {"is_error": condition != "clean", "success_without": without, "success_with": success}
            rows.append(row | {"tau": int(success) - int(without)})
            if reached:
                probabilities.append((task, condition, 0, delay, *p))
    return typed(rows, Candidates), pd.DataFrame(probabilities, columns=[*KEY, "p_err", "p0", "p1"])


def chosen(candidates: pd.DataFrame, probabilities: pd.DataFrame, **options: Any) -> Calibration:
    return calibrate(
        candidates, probabilities, **{"failure_probability": "complement_of_p0", "n_bootstraps": 0, **options}
    )


def simulated(n_tasks: int, seed: int = 0, *, digits: int = 15) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs whose probabilities say something of their outcomes."""
    rng = np.random.default_rng(seed)
    runs = {}
    for number, condition in itertools.product(range(n_tasks), CONDITIONS):
        is_error, skill = condition != "clean", rng.normal()
        without = bool(rng.random() < 1 / (1 + math.exp(-0.8 + is_error - skill)))
        moments: dict[int, Moment] = {}
        for delay in DELAYS:
            with_ = without if rng.random() < 0.7 else bool(rng.random() < 0.6)
            logits = (2 * is_error - 0.5, skill, 0.4 + 0.6 * skill)
            p = [round(1 / (1 + math.exp(-logit - rng.normal())), digits) for logit in logits]
            moments[delay] = (bool(rng.random() < 0.93), with_, p[0], p[1], p[2])
        runs[f"t{number}", condition] = (without, moments)
    return tables(runs)


def by_run(candidates: pd.DataFrame, probabilities: pd.DataFrame) -> list[list[dict[str, Any]]]:
    """The moments of each run that were reached, in order, with their probabilities."""
    both = candidates[candidates["reached"]].merge(probabilities, on=KEY).sort_values("delay")
    return [moments.to_dict("records") for _, moments in both.groupby(KEY[:3], sort=False)]


def asked(runs: list[list[dict[str, Any]]], rule: InterventionRule) -> dict[str, int]:
    """What the rule does, asked moment by moment."""
    counts = dict.fromkeys(("rescues", "harms", "clean_harms", "interventions"), 0)
    for moments in runs:
        for moment in moments:
            if rule.decide(**{name: moment[name] for name in ("delay", "p_err", "p0", "p1")}).action == "refresh":
                counts["interventions"] += 1
                counts["rescues"] += moment["is_error"] and moment["tau"] == 1
                counts["harms"] += moment["is_error"] and moment["tau"] == -1
                counts["clean_harms"] += (not moment["is_error"]) and moment["tau"] == -1
                break
    return counts


def key_of(counts: dict[str, int]) -> tuple[int, int, int]:
    return counts["rescues"] - counts["harms"], -counts["clean_harms"], -counts["interventions"]


P = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0, math.nan])
MOMENT = st.tuples(st.booleans(), st.booleans(), P, P, P)
RUN = st.tuples(st.booleans(), st.tuples(MOMENT, MOMENT, MOMENT).map(lambda m: dict(zip((0, 1, 3), m, strict=True))))
RUNS = st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from(["clean", "stale1"])), RUN, min_size=2)


@settings(max_examples=13, deadline=None)
@given(RUNS, st.sampled_from([0.0, 0.34, 0.5, 0.9]))
def test_no_triple_of_values_does_better(runs: dict[Any, Any], harm_limit: float) -> None:
    candidates, probabilities = tables(runs)
    conditions = {condition for _, condition in runs}
    if len(conditions) < 2:
        return
    result = chosen(candidates, probabilities, harm_limit=harm_limit)
    moments = by_run(candidates, probabilities)
    counts = asked(moments, result.rule)
    assert {name: getattr(result, name) for name in counts} == counts
    assert result.gain == counts["rescues"] - counts["harms"]
    assert result.clean_harms <= result.harms_allowed
    known = probabilities.dropna()
    utilities = (1 - known["p0"]) * known["p1"] - 2 * known["p0"] * (1 - known["p1"])
    for alpha, beta, u in itertools.product({0.0, *known["p_err"]}, {0.0, *(1 - known["p0"])}, {-3.0, *utilities}):
        rule = InterventionRule(
            error_threshold=alpha,
            failure_threshold=beta,
            utility_threshold=u - 1e-6,
            failure_probability="complement_of_p0",
        )
        other = asked(moments, rule)
        if other["clean_harms"] <= result.harms_allowed:
            assert key_of(other) <= key_of(counts)


def test_counts_are_those_of_the_rule() -> None:
    candidates, probabilities = simulated(40)
    result = chosen(candidates, probabilities, harm_limit=0.1)
    assert result.exact
    counts = asked(by_run(candidates, probabilities), result.rule)
    assert {name: getattr(result, name) for name in counts} == counts
    assert int(RulePolicy(result.rule).choose(candidates, probabilities).sum()) == result.interventions
    assert (result.n_trajectories, result.n_clean, result.n_tasks) == (160, 40, 40)
    assert result.gain > 0


@pytest.mark.parametrize(
    ("harm_limit", "n_clean", "allowed"),
    # 93, 75 and 106 tasks at .02: "harms allowed", 1, 1 and 2; .29 of 100 is 28.999… in floating point
    [(0.02, 93, 1), (0.02, 75, 1), (0.02, 106, 2), (0.29, 100, 29), (0.0, 93, 0), (0.02, 49, 0), (0.02, 50, 1)],
)
def test_the_limit_in_harms(harm_limit: float, n_clean: int, allowed: int) -> None:
    moment: Moment = (True, True, 0.5, 0.5, 0.5)
    runs = {(f"t{number}", "clean"): (True, {1: moment}) for number in range(n_clean)}
    candidates, probabilities = tables({**runs, ("t0", "stale2"): (True, {1: moment})})
    assert chosen(candidates, probabilities, harm_limit=harm_limit).harms_allowed == allowed


def test_the_rate_is_over_all_clean_trajectories_those_that_had_ended_included() -> None:
    ended: Moment = (False, True, 0.5, 0.5, 0.5)
    # one clean harm in 50 clean trajectories, 49 of which end before the candidate
    runs: dict[tuple[str, str], Any] = {(f"t{n}", "clean"): (True, {1: ended}) for n in range(49)}
    runs["t49", "clean"] = (True, {1: (True, False, 0.9, 0.1, 0.9)})
    runs["t49", "stale2"] = (False, {1: (True, True, 0.9, 0.1, 0.9)})
    result = chosen(*tables(runs))
    assert (result.n_clean, result.harms_allowed, result.clean_harms, result.gain) == (50, 1, 1, 1)


def certifiable(n_tasks: int) -> Calibration:
    runs: dict[tuple[str, str], Any] = {}
    for number in range(n_tasks):
        runs[f"t{number}", "clean"] = (True, {1: (True, True, 0.2, 0.8, 0.8)})
        runs[f"t{number}", "stale2"] = (False, {1: (True, True, 0.9, 0.2, 0.9)})
    return chosen(*tables(runs))


def test_what_the_sample_can_certify() -> None:
    # 149 harm-free tasks for one side, 183 for two: 1 − .05^(1/n) and 1 − .025^(1/n) at most .02
    small, large = certifiable(93), certifiable(149)
    assert small.to_certify == large.to_certify == (149, 183)
    assert not small.certified
    assert small.clean_harm_bound == pytest.approx(0.0317, abs=5e-5)  # zero harms in 93 tasks
    assert "not certified: that takes 149 harm-free tasks (183 for a two-sided interval)" in small.sentence
    assert large.certified
    assert "would be certified" in large.sentence
    assert not certifiable(148).certified


def test_a_limit_of_zero_is_never_certified() -> None:
    result = chosen(*simulated(10), harm_limit=0.0)
    assert (result.harms_allowed, result.clean_harms, result.certified) == (0, 0, False)
    assert result.to_certify == (None, None)
    assert "No number of tasks certifies 0 %" in result.sentence


def test_replicates_of_a_task_are_one_task_to_the_bound() -> None:
    candidates, probabilities = simulated(20)
    repeated = pd.concat([candidates.assign(replicate=number) for number in range(5)], ignore_index=True)
    estimated = pd.concat([probabilities.assign(replicate=number) for number in range(5)], ignore_index=True)
    one, five = chosen(candidates, probabilities), chosen(repeated, estimated)
    assert five.clean_harm_bound == one.clean_harm_bound
    assert (five.n_clean, five.n_tasks) == (100, 20)


# ---- thresholds --------------------------------------------------------------------------------------------------


def test_thresholds_are_the_highest_that_do_it() -> None:
    runs: dict[tuple[str, str], Any] = {
        ("a", "stale2"): (False, {1: (True, True, 0.8, 0.3, 0.6)}),
        ("a", "clean"): (True, {1: (True, False, 0.1, 0.9, 0.1)}),
    }
    rule = chosen(*tables(runs)).rule
    assert (rule.error_threshold, rule.failure_threshold) == (0.8, 1 - 0.3)
    utility = 0.7 * 0.6 - 2 * 0.3 * 0.4
    assert rule.utility_threshold < utility
    assert rule.utility_threshold == pytest.approx(utility, abs=1e-7)


def test_the_rule_never_acts_where_nothing_gains() -> None:
    runs: dict[tuple[str, str], Any] = {
        ("a", "stale2"): (True, {1: (True, False, 1.0, 0.0, 1.0)}),
        ("a", "clean"): (True, {1: (True, True, 1.0, 0.0, 1.0)}),
    }
    result = chosen(*tables(runs), n_bootstraps=5)
    assert (result.gain, result.interventions) == (0, 0)
    # even the surest candidate is held, on these data and on any
    assert result.rule.decide(delay=1, p_err=1.0, p0=0.0, p1=1.0).action == "hold"
    assert result.stability.set_index("quantity").loc["error_threshold", "n"] == 0
    assert not result.bootstraps["acts"].any()
    assert result.frontier()[["gain", "clean_harms"]].to_numpy().tolist() == [[0, 0]]


def test_utilities_that_differ_by_rounding_only_are_not_told_apart() -> None:
    # .1 + .2 against .3: the rule takes such a difference for a tie, so no threshold may fall between them
    p0, p1 = 0.1 + 0.2, 0.55
    runs: dict[tuple[str, str], Any] = {
        ("a", "stale2"): (False, {1: (True, True, 0.5, 0.3, p1)}),
        ("b", "stale2"): (True, {1: (True, False, 0.5, p0, p1)}),
        ("c", "stale2"): (False, {1: (True, True, 0.5, 0.3, p1)}),
        ("a", "clean"): (True, {1: (True, True, 0.1, 0.3, p1)}),
    }
    candidates, probabilities = tables(runs)
    result = chosen(candidates, probabilities, failure_probability=lambda p0: 0.5)
    assert (result.rescues, result.harms) == (2, 1)
    assert asked(by_run(candidates, probabilities), result.rule)["interventions"] == 3


@pytest.mark.parametrize("harm_penalty", [0.0, 1.0, 2.0, 1e4])
def test_any_harm_penalty(harm_penalty: float) -> None:
    candidates, probabilities = simulated(25, digits=2)
    result = chosen(candidates, probabilities, harm_penalty=harm_penalty, harm_limit=0.2)
    assert result.rule.harm_penalty == harm_penalty
    counts = asked(by_run(candidates, probabilities), result.rule)
    assert {name: getattr(result, name) for name in counts} == counts


def test_failure_probability_may_be_a_function() -> None:
    candidates, probabilities = simulated(30)
    plain = chosen(candidates, probabilities, harm_limit=0.1)
    scaled = chosen(candidates, probabilities, harm_limit=0.1, failure_probability=lambda p0: (1 - p0) / 2)
    # a monotone change of scale moves the threshold, and nothing else
    assert scaled.rule.failure_threshold == pytest.approx(plain.rule.failure_threshold / 2)
    assert (scaled.gain, scaled.clean_harms, scaled.interventions) == (
        plain.gain,
        plain.clean_harms,
        plain.interventions,
    )


def test_early_candidates_do_not_pass() -> None:
    candidates, probabilities = simulated(30)
    for min_delay in (0, 1, 2, 4, 5):
        result = chosen(candidates, probabilities, min_delay=min_delay, harm_limit=0.2)
        acts = RulePolicy(result.rule).choose(candidates, probabilities)
        assert (candidates.loc[acts, "delay"] >= min_delay).all()
        assert (result.interventions == 0) == (min_delay == 5)


def test_a_candidate_with_a_missing_probability_never_passes() -> None:
    candidates, probabilities = simulated(20)
    lost = probabilities.index[probabilities["delay"] == 1]
    probabilities.loc[lost, "p1"] = np.nan
    result = chosen(candidates, probabilities, harm_limit=0.2)
    assert result.n_not_evaluable == len(lost)
    assert (candidates.loc[RulePolicy(result.rule).choose(candidates, probabilities), "delay"] > 1).all()


def test_runs_that_had_all_ended() -> None:
    ended: Moment = (False, True, 0.5, 0.5, 0.5)
    candidates, probabilities = tables({("a", "clean"): (True, {1: ended}), ("a", "stale2"): (False, {1: ended})})
    assert probabilities.empty
    result = chosen(candidates, probabilities, n_bootstraps=2)
    assert (result.gain, result.interventions, result.n_trajectories, result.exact) == (0, 0, 2, True)


def test_predictions_with_the_index_of_the_candidates_do_too() -> None:
    candidates, probabilities = simulated(20)
    wide = candidates[KEY].merge(probabilities, on=KEY, how="left").drop(columns=KEY)
    assert chosen(candidates, wide).summary_frame().equals(chosen(candidates, probabilities).summary_frame())


# ---- what does not matter ----------------------------------------------------------------------------------------


def test_the_order_of_rows_and_their_index_do_not_count() -> None:
    candidates, probabilities = simulated(25, digits=1)
    options = {"harm_limit": 0.1, "n_bootstraps": 6}
    first = chosen(candidates, probabilities, **options)
    for seed in (1, 2):
        shuffled = candidates.sample(frac=1, random_state=seed)
        again = chosen(shuffled, probabilities.sample(frac=1, random_state=seed), **options)
        assert again.rule == first.rule
        pd.testing.assert_frame_equal(again.bootstraps, first.bootstraps)
        pd.testing.assert_frame_equal(again.frontier(), first.frontier())


def test_the_input_is_left_as_it_is() -> None:
    candidates, probabilities = simulated(10)
    before = candidates.copy(), probabilities.copy()
    chosen(candidates, probabilities, n_bootstraps=2)
    pd.testing.assert_frame_equal(candidates, before[0])
    pd.testing.assert_frame_equal(probabilities, before[1])


def test_a_run_without_effect_changes_neither_gain_nor_harm() -> None:
    candidates, probabilities = simulated(20)
    first = chosen(candidates, probabilities)
    stable, estimated = tables({("new", "stale1"): (True, dict.fromkeys(DELAYS, (True, True, 0.9, 0.5, 0.9)))})
    more = chosen(pd.concat([candidates, stable]), pd.concat([probabilities, estimated]))
    assert (more.gain, more.clean_harms) == (first.gain, first.clean_harms)


# ---- stability and frontier --------------------------------------------------------------------------------------


def test_stability_over_resamples_of_tasks() -> None:
    candidates, probabilities = simulated(30)
    result = chosen(candidates, probabilities, harm_limit=0.1, n_bootstraps=25, seed=3)
    assert len(result.bootstraps) == 25
    assert result.bootstraps["exact"].all()
    stability = result.stability.set_index("quantity")
    assert stability.loc["gain", "chosen"] == result.gain
    assert stability.loc["error_threshold", "chosen"] == result.rule.error_threshold
    ordered = stability[["low", "lower_quartile", "median", "upper_quartile", "high"]].to_numpy()
    assert (np.diff(ordered, axis=1) >= 0).all()
    # thresholds chosen on a resample gain at most the optimum here, unless they break the limit here
    kept = result.bootstraps[result.bootstraps["clean_harms_here"] <= result.harms_allowed]
    assert len(kept)
    assert (kept["gain_here"] <= result.gain).all()
    again = chosen(candidates, probabilities, harm_limit=0.1, n_bootstraps=25, seed=3)
    pd.testing.assert_frame_equal(again.bootstraps, result.bootstraps)


def test_a_resample_of_one_task_is_that_task() -> None:
    candidates, probabilities = simulated(30)
    one = candidates["task_id"] == "t4"
    result = chosen(candidates[one], probabilities, n_bootstraps=3)
    drawn = result.bootstraps[["gain", "clean_harms", "interventions"]].drop_duplicates()
    assert drawn.to_numpy().tolist() == [[result.gain, result.clean_harms, result.interventions]]


def test_the_number_of_resamples_by_default() -> None:
    assert len(chosen(*simulated(5), n_bootstraps=None).bootstraps) == 100
    none = chosen(*simulated(5))
    assert none.bootstraps.empty
    assert none.stability["median"].isna().all()


def test_the_frontier_is_calibration_at_each_limit() -> None:
    candidates, probabilities = simulated(40)
    result = chosen(candidates, probabilities, harm_limit=0.2)
    frontier = result.frontier()
    assert frontier["allowed_harms"].to_list() == list(range(9))
    assert (frontier["gap"] == 0).all()
    assert frontier["gain"].is_monotonic_increasing
    assert (frontier["clean_harms"] <= frontier["allowed_harms"]).all()
    for row in frontier.to_dict("records"):
        alone = chosen(candidates, probabilities, harm_limit=row["allowed_harms"] / 40)
        assert (row["gain"], row["clean_harms"], row["interventions"]) == (
            alone.gain,
            alone.clean_harms,
            alone.interventions,
        )
        assert row["error_threshold"] == alone.rule.error_threshold
    assert result.frontier(3).equals(frontier.head(4))


def test_a_search_that_is_given_up_says_so() -> None:
    candidates, probabilities = simulated(300)
    part, whole = chosen(candidates, probabilities, node_limit=1), chosen(candidates, probabilities)
    assert whole.exact
    assert not part.exact
    assert part.gain <= whole.gain <= part.gain + part.gap
    assert f"may gain up to {part.gap} more" in part.sentence
    assert "given up" not in whole.sentence


# ---- errors ------------------------------------------------------------------------------------------------------


def test_failure_probability_has_no_default() -> None:
    with pytest.raises(FaultbookError, match="failure_probability is not given, and has no default"):
        calibrate(*simulated(3))


@pytest.mark.parametrize("harm_limit", [-0.01, 1.0, 2, math.nan, "0.02", True])
def test_a_limit_that_is_no_rate(harm_limit: Any) -> None:
    with pytest.raises(FaultbookError, match=r"harm_limit is .*; give a rate in \[0, 1\), such as \.02 for 2 %"):
        chosen(*simulated(3), harm_limit=harm_limit)


def test_both_kinds_of_trajectories_are_needed() -> None:
    candidates, probabilities = simulated(3)
    with pytest.raises(DataError, match="no trajectory is clean; add the clean condition"):
        chosen(candidates[candidates["is_error"]], probabilities)
    with pytest.raises(DataError, match="every trajectory is clean"):
        chosen(candidates[~candidates["is_error"]], probabilities)


def test_missing_pairs_are_named() -> None:
    candidates, probabilities = simulated(3)
    lost = candidates.drop(candidates.index[[5, 9]])
    with pytest.raises(DataError, match="pairs are missing: t0/stale1/0 at 1, t0/stale2/0 at 1; add them"):
        chosen(lost, probabilities)


def test_missing_predictions_are_named() -> None:
    candidates, probabilities = simulated(3)
    row = probabilities.iloc[7]
    name = f"{row['task_id']}/{row['condition']}/0 at {row['delay']}"
    with pytest.raises(DataError, match=f"a candidate that was reached has none: {name};"):
        chosen(candidates, probabilities.drop(probabilities.index[7]))


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("tau", 1, "tau is not success_with − success_without: t0/clean/0 at 1;"),
        ("success_without", None, "success_without is not the same at every delay of a trajectory: t0/clean/0 at"),
        ("is_error", True, "is_error is not the same at every delay of a trajectory: t0/clean/0 at"),
        ("delay", 2, "a moment stands twice: t0/clean/0 at 2;"),
        ("task_id", pd.NA, "the key is incomplete"),
    ],
)
def test_candidates_that_contradict_themselves(column: str, value: Any, problem: str) -> None:
    candidates, probabilities = simulated(3)
    row = candidates.iloc[1]
    if column == "success_without":
        candidates.loc[1, ["success_without", "success_with", "tau"]] = [not row["success_without"]] * 2 + [0]
    elif column == "tau":
        candidates.loc[1, "tau"] = 1 if row["tau"] != 1 else -1
    else:
        candidates.loc[1, column] = value
    with pytest.raises(DataError, match=problem):
        chosen(candidates, probabilities)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: p.drop(columns="p1"), "probabilities: no column p1"),
        (lambda p: p.assign(p1="high"), "not numbers but"),
        (lambda p: p.assign(p_err=93.0), "p_err is 93; give a probability in"),
        (lambda p: pd.concat([p, p.head(1)]), "probabilities: a candidate stands twice: t0/clean/0 at"),
        (lambda p: p.drop(columns="delay"), "neither the key nor the index of the candidates"),
        (lambda p: None, "no probabilities, and p_err, p0, p1 are asked for"),
        (lambda p: p.head(0), "a candidate that was reached has none"),
    ],
)
def test_probabilities_that_cannot_be_used(change: Any, problem: str) -> None:
    candidates, probabilities = simulated(3)
    with pytest.raises(DataError, match=problem):
        chosen(candidates, change(probabilities))


def test_candidates_that_are_no_candidates() -> None:
    candidates, probabilities = simulated(3)
    with pytest.raises(DataError, match="candidates: no column reached"):
        chosen(candidates.drop(columns="reached"), probabilities)
    with pytest.raises(DataError, match="column 'delay': candidates: type 'str'; give whole numbers"):
        chosen(candidates.astype({"delay": "str"}), probabilities)
    with pytest.raises(DataError, match="candidates: no rows"):
        chosen(candidates.head(0), probabilities)


def test_a_fickle_failure_probability_is_found_out() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(FaultbookError, match="the rule decides differently when it is asked again"):
        chosen(*simulated(30), failure_probability=lambda p0: float(rng.random()), harm_limit=0.5)


def test_the_result_in_one_row() -> None:
    result = chosen(*simulated(20))
    row = result.summary_frame().iloc[0]
    assert (row["gain"], row["to_certify_one_sided"], row["exact"]) == (result.gain, 149, True)
    assert row["tie_break"].startswith("highest gain, then fewer clean harms, then fewer interventions")
    assert "calibrated on 320 candidates of 20 tasks" in result.rule.provenance
