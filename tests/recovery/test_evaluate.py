"""Policies judged: the published table from constructed runs, and what must hold of any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.evaluate import ALL, TABLE_COLUMNS, Evaluation, evaluate
from faultbook.recovery.policies import (
    AlwaysAt,
    AnomalyDetector,
    Never,
    Oracle,
    Policy,
    RandomAtRate,
    Recorded,
    RulePolicy,
)
from faultbook.recovery.rule import PAPER_SETTINGS
from faultbook.tables import CONDITIONS, Candidates, typed

KEY = ["task_id", "condition", "replicate", "delay"]
TRAJECTORY = KEY[:3]
PER_EPISODE = 100 / 300  # pp: one step of an effect over 300 episodes

# The published evaluation of the rule (arXiv 2610.00372; success, rescues, harms and interventions by condition as a
# second reading of it gives them): 75 tasks a condition, successes without, rescued tasks, harmed tasks, interventions.
# One task is rescued twice (7, under two conditions): the only pattern of task sums that has the printed interval
# [0.67, 5.67] and the printed p .034.
SUCCESSES = {"clean": 61, "stale1": 51, "stale2": 45, "missing": 54}
RULE: dict[str, tuple[list[int], list[int], int]] = {
    "clean": ([], [], 0),
    "stale1": ([7], [], 17),
    "stale2": ([0, 1, 2, 3, 4, 5, 6, 7, 8], [70, 71], 31),
    "missing": ([9], [], 1),
}
# Its two baselines, of which only the totals are known: 6 rescues and 1 harm, and 6 rescues and none.
SEQUENTIAL: dict[str, tuple[list[int], list[int], int]] = {**RULE, "stale1": ([], [], 6), "missing": ([], [], 1)}
SEQUENTIAL["stale2"] = ([0, 1, 2, 3, 4, 5], [70], 31)
MATCHED = {**SEQUENTIAL, "stale1": ([], [], 15), "stale2": ([0, 1, 2, 3, 4, 5], [], 31)}

POLICIES = {"a": RULE, "b": SEQUENTIAL, "c": MATCHED}


def published() -> pd.DataFrame:
    """Runs with those counts: candidates at delays 1, 2 and 4, the policies acting at the first."""
    rows = []
    for condition, n_successes in SUCCESSES.items():
        actors = {name: acting(policy[condition]) for name, policy in POLICIES.items()}
        rescued, harmed, _ = RULE[condition]
        for task in range(75):
            # tasks 0 to 74 − n fail without recovery, the others succeed
            without = task >= 75 - n_successes
            with_ = (without or task in rescued) and task not in harmed
            for delay in (1, 2, 4):
                row = {"task_id": f"t{task:02}", "condition": condition, "replicate": 0, "delay": delay}
                row |= {"reached": True, "is_error": condition != "clean", "success_without": without}
                row |= {"success_with": with_ if delay == 1 else without}
                row |= {name: task in acted and delay == 1 for name, acted in actors.items()}
                rows.append(row | {"tau": int(row["success_with"]) - int(without)})
    frame = pd.DataFrame(rows)
    return typed(frame, Candidates).assign(**{name: frame[name] for name in "abc"})


def acting(counts: tuple[list[int], list[int], int]) -> set[int]:
    """The tasks on which a policy acts: those that it changes, and as many unchanged ones as are left."""
    rescued, harmed, interventions = counts
    unchanged = [task for task in range(20, 70) if task not in (*rescued, *harmed)]
    return {*rescued, *harmed, *unchanged[: interventions - len(rescued) - len(harmed)]}


@pytest.fixture(scope="module")
def paper() -> Evaluation:
    policies = [Recorded("CIR", "a"), Recorded("sequential", "b"), Recorded("matched", "c"), Never()]
    return evaluate(policies, published())


def row(found: Evaluation, policy: str, condition: str = ALL) -> pd.Series[Any]:
    table = found.table
    return table[(table["policy"] == policy) & (table["condition"] == condition)].iloc[0]


@pytest.mark.parametrize(
    ("condition", "without", "with_", "rescues", "harms", "interventions"),
    [
        ("clean", 61, 61, 0, 0, 0),
        ("stale1", 51, 52, 1, 0, 17),
        ("stale2", 45, 52, 9, 2, 31),
        ("missing", 54, 55, 1, 0, 1),
    ],
)
def test_the_published_table_by_condition(
    paper: Evaluation, condition: str, without: int, with_: int, rescues: int, harms: int, interventions: int
) -> None:
    found = row(paper, "CIR", condition)
    assert (found["n_trajectories"], found["n_tasks"]) == (75, 75)
    assert round(75 * found["success_without"], 9) == without
    assert round(75 * found["success_with_policy"], 9) == with_
    assert (found["rescues"], found["harms"], found["interventions"]) == (rescues, harms, interventions)


def test_the_published_totals(paper: Evaluation) -> None:
    found = row(paper, "CIR")
    assert (found["n_trajectories"], found["n_tasks"]) == (300, 75)
    assert round(300 * found["success_without"], 9) == 211  # 70.33 %
    assert round(300 * found["success_with_policy"], 9) == 220  # 73.33 %
    assert found["policy_effect_pp"] == pytest.approx(3.0)
    assert (found["rescues"], found["harms"], found["interventions"]) == (11, 2, 49)
    assert found["intervention_rate"] == pytest.approx(0.163, abs=5e-4)
    assert found["interventions_without_change"] == 36
    # [.67, 5.67] pp are 2 and 17 of 300; resampling may be one step off
    assert found["low_pp"] == pytest.approx(2 * PER_EPISODE, abs=PER_EPISODE)
    assert found["high_pp"] == pytest.approx(17 * PER_EPISODE, abs=PER_EPISODE)
    assert found["sign_flip_p"] == pytest.approx(0.0332, abs=5e-5)  # exact; printed .034 from random signs
    # no intervention on a clean run, 0 of 75: 4.80 % two-sided, 3.92 % one-sided
    assert found["clean_harms"] == 0
    assert found["clean_harm_upper"] == pytest.approx(0.0392, abs=5e-5)
    assert found["clean_harm_upper_two_sided"] == pytest.approx(0.047995, abs=5e-7)


def test_stale2_of_the_published_table(paper: Evaluation) -> None:
    # +9.33 pp [1.33, 17.33]: 7, and 1 to 13 of 75 (reach .62: one step of tolerance)
    found = row(paper, "CIR", "stale2")
    assert found["policy_effect_pp"] == pytest.approx(100 * 7 / 75)
    assert found["low_pp"] == pytest.approx(100 * 1 / 75, abs=100 / 75 + 1e-9)
    assert found["high_pp"] == pytest.approx(100 * 13 / 75, abs=100 / 75 + 1e-9)
    # one trajectory a task: the sign flip is McNemar's exact test, .0654 for 9 and 2
    assert found["sign_flip_p"] == pytest.approx(0.0654, abs=5e-5)


def test_the_published_baselines(paper: Evaluation) -> None:
    sequential, matched = row(paper, "sequential"), row(paper, "matched")
    assert (sequential["policy_effect_pp"], matched["policy_effect_pp"]) == pytest.approx((5 / 3, 2.0))
    assert (sequential["interventions"], matched["interventions"]) == (38, 47)
    differences = paper.differences.set_index(["policy_a", "policy_b"])
    # CIR − baselines: +1.33 and +1.00 pp, both intervals cross 0
    for policy, effect in (("sequential", 4 / 3), ("matched", 1.0)):
        found = differences.loc[("CIR", policy)]
        assert found["difference_pp"] == pytest.approx(effect)
        assert found["low_pp"] < 0 < found["high_pp"]


def test_the_penalty_at_which_the_choice_flips(paper: Evaluation) -> None:
    flips = paper.flip_penalty.set_index(["policy_a", "policy_b"])
    matched = flips.loc[("CIR", "matched")]
    assert matched["flip_penalty"] == 2.5  # (11 − 6) / (2 − 0)
    assert (matched["preferred_below"], matched["preferred_above"]) == ("CIR", "matched")
    assert flips.loc[("CIR", "sequential"), "flip_penalty"] == 5.0
    assert flips.loc[("CIR", "never"), "flip_penalty"] == 5.5
    better = flips.loc[("sequential", "matched")]  # as many rescues with one harm more
    assert math.isnan(better["flip_penalty"])
    assert better["preferred_above"] == "matched"
    equal = flips.loc[("matched", "never")]
    assert math.isnan(equal["flip_penalty"])
    assert (equal["preferred_below"], equal["note"]) == ("matched", "as many harms: the penalty does not matter")


def test_policy_effect_and_effect_of_interventions_are_two_numbers(paper: Evaluation) -> None:
    found = row(paper, "CIR")
    assert found["tau_of_interventions_pp"] == pytest.approx(100 * 9 / 49)
    assert found["policy_effect_pp"] == pytest.approx(found["tau_of_interventions_pp"] * found["intervention_rate"])
    never = row(paper, "never")
    assert never["policy_effect_pp"] == 0
    assert math.isnan(never["tau_of_interventions_pp"])
    assert "no interventions" in never["note"]


def test_never_is_no_certainty(paper: Evaluation) -> None:
    never = row(paper, "never")
    assert never[["low_pp", "high_pp", "sign_flip_p"]].isna().all()
    assert never["test"] == "no discordant pairs"
    assert never["note"].startswith("no interval: all task means are equal")
    assert never["clean_harm_upper"] > 0


def test_gain_and_clean_harm(paper: Evaluation) -> None:
    assert paper.trade_off.to_numpy().tolist()[0] == ["CIR", 9.0, 0.0]
    assert paper.summary_frame()["policy"].to_list() == ["CIR", "sequential", "matched", "never"]


# ---- constructed runs --------------------------------------------------------------------------------------------


def simulated(n_tasks: int, seed: int = 0, *, n_replicates: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    names = [[f"t{n}" for n in range(n_tasks)], CONDITIONS, range(n_replicates)]
    runs = pd.MultiIndex.from_product(names, names=TRAJECTORY).to_frame(index=False)
    delays = np.array([0, 1, 2, 4])
    frame = runs.merge(pd.DataFrame({"delay": delays}), how="cross")
    reached = np.arange(4) < rng.integers(0, 7, (len(runs), 1))
    without = np.repeat(rng.random((len(runs), 1)) < 0.6, 4, axis=1)
    with_ = np.where(reached & (rng.random((len(runs), 4)) < 0.4), ~without, without)
    frame["reached"], frame["is_error"] = reached.ravel(), frame["condition"] != "clean"
    frame["success_without"], frame["success_with"] = without.ravel(), with_.ravel()
    frame["tau"] = frame["success_with"].astype(int) - frame["success_without"].astype(int)
    estimated = pd.DataFrame(rng.random((len(frame), 3)), columns=["p_err", "p0", "p1"])
    return typed(frame, Candidates), pd.concat([frame[KEY], estimated], axis=1)[frame["reached"]]


def every_policy() -> list[Policy]:
    rule = PAPER_SETTINGS.rule(failure_probability="complement_of_p0")
    policies: list[Policy] = [Never(), *(AlwaysAt(delay) for delay in (0, 1, 2, 4)), AnomalyDetector(0.5)]
    return [*policies, RandomAtRate(0.4), RulePolicy(rule), Oracle()]


def judged(policies: list[Policy], *tables: pd.DataFrame, **options: Any) -> Evaluation:
    return evaluate(policies, *tables, **{"n_resamples": 50, **options})


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 2))
def test_what_holds_of_any_policy(seed: int, n_tasks: int, n_replicates: int) -> None:
    found = judged(every_policy(), *simulated(n_tasks, seed, n_replicates=n_replicates)).table
    effect = (found["rescues"] - found["harms"]) / found["n_trajectories"]
    np.testing.assert_allclose(found["success_with_policy"], found["success_without"] + effect, atol=1e-12)
    np.testing.assert_allclose(found["policy_effect_pp"], 100 * effect, atol=1e-9)
    assert (found["interventions"] <= found["n_trajectories"]).all()
    assert (found["interventions_without_change"] > -1e-9).all()
    assert found["success_with_policy"].between(-1e-12, 1 + 1e-12).all()
    # what marginals allow contains what was observed
    bounded = found.dropna(subset="rescues_low")
    for name in ("rescues", "harms"):
        assert bounded[name].between(bounded[f"{name}_low"], bounded[f"{name}_high"]).all()
    # the ceiling
    oracle = found[found["policy"] == "oracle (uses outcomes)"].set_index("condition")["success_with_policy"]
    assert (found["success_with_policy"] <= found["condition"].map(oracle) + 1e-9).all()
    assert (found.loc[found["policy"] == "oracle (uses outcomes)", "harms"] == 0).all()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_conditions_add_up(seed: int) -> None:
    found = judged(every_policy(), *simulated(4, seed)).table
    parts = found[found["condition"] != ALL].groupby("policy", sort=False)
    counts = ["n_trajectories", "rescues", "harms", "interventions", "interventions_without_change"]
    whole = found[found["condition"] == ALL].set_index("policy")[counts]
    np.testing.assert_allclose(parts[counts].sum(), whole, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_rows_does_not_count(seed: int) -> None:
    candidates, probabilities = simulated(4, seed)
    first = judged(every_policy(), candidates, probabilities)
    again = judged(every_policy(), candidates.sample(frac=1, random_state=1), probabilities[::-1])
    pd.testing.assert_frame_equal(first.table, again.table)
    pd.testing.assert_frame_equal(first.differences, again.differences)


def test_swapping_the_outcomes_swaps_rescue_and_harm() -> None:
    candidates, probabilities = simulated(10)
    swapped = candidates.assign(
        success_without=~candidates["success_without"],
        success_with=~candidates["success_with"],
        tau=-candidates["tau"],
    )
    policies: list[Policy] = [AlwaysAt(1), AnomalyDetector(0.5), RandomAtRate(0.3)]
    one, other = (judged(policies, frame, probabilities).table for frame in (candidates, swapped))
    np.testing.assert_allclose(one["rescues"], other["harms"], atol=1e-9)
    np.testing.assert_allclose(one["policy_effect_pp"], -other["policy_effect_pp"], atol=1e-9)
    np.testing.assert_allclose(one["sign_flip_p"], other["sign_flip_p"], atol=1e-12)


def test_a_run_that_ended_stays_in_the_denominator() -> None:
    candidates, _ = simulated(10)
    ended = candidates[candidates["task_id"] == "t0"].assign(task_id="new", reached=False, success_with=True, tau=0)
    ended["success_without"] = True
    one = judged([AlwaysAt(1)], candidates).summary_frame().iloc[0]
    more = judged([AlwaysAt(1)], pd.concat([candidates, ended])).summary_frame().iloc[0]
    assert (more["n_trajectories"], more["n_tasks"]) == (one["n_trajectories"] + 4, one["n_tasks"] + 1)
    assert (more["rescues"], more["harms"], more["interventions"]) == (
        one["rescues"],
        one["harms"],
        one["interventions"],
    )
    assert more["success_without"] == pytest.approx((40 * one["success_without"] + 4) / 44)


def test_replicates_are_clustered_by_task() -> None:
    candidates, _ = simulated(20)
    copies = pd.concat([candidates.assign(replicate=number) for number in range(9)])
    one, nine = (
        judged([AlwaysAt(1)], frame, n_resamples=2_000).summary_frame().iloc[0] for frame in (candidates, copies)
    )
    assert nine["n_trajectories"] == 9 * one["n_trajectories"]
    for name in ("policy_effect_pp", "low_pp", "high_pp", "sign_flip_p", "clean_harm_upper"):
        assert nine[name] == pytest.approx(one[name])


def test_unequal_tasks_have_one_estimand_inside_its_interval() -> None:
    # 1 task with 10 rescued runs, 9 tasks with one unchanged run: over runs 52.6 pp
    rows = [("t0", number, False, True) for number in range(10)] + [(f"t{n}", 0, True, True) for n in range(1, 10)]
    frame = pd.DataFrame(rows, columns=["task_id", "replicate", "success_without", "success_with"])
    frame = frame.assign(condition="stale2", delay=1, reached=True, is_error=True)
    frame["tau"] = frame["success_with"].astype(int) - frame["success_without"].astype(int)
    found = judged([AlwaysAt(1)], typed(frame, Candidates), n_resamples=2_000).summary_frame().iloc[0]
    assert found["policy_effect_pp"] == pytest.approx(100 * 10 / 19)
    assert found["low_pp"] <= found["policy_effect_pp"] <= found["high_pp"]


@pytest.mark.slow
def test_random_is_judged_by_its_mean_over_draws() -> None:
    candidates, _ = simulated(15)
    policy = RandomAtRate(0.4)
    found = judged([policy], candidates).summary_frame().iloc[0]
    chances = policy.chances(candidates)
    assert found["rescues"] == pytest.approx((chances * (candidates["tau"] == 1)).sum())
    assert found["interventions"] == pytest.approx(0.4 * 60)
    assert found["note"] == "means over all draws; no exact bounds"
    assert found[["clean_harm_upper", "rescues_low", "harms_high"]].isna().all()
    rng = np.random.default_rng(0)
    drawn = [candidates.loc[RandomAtRate(0.4, seed=rng).choose(candidates), "tau"].sum() for _ in range(300)]
    assert np.mean(drawn) == pytest.approx(found["rescues"] - found["harms"], abs=4 * np.std(drawn) / math.sqrt(300))


def test_scores_stand_beside_counts() -> None:
    candidates, probabilities = simulated(15)
    found = row(judged([AlwaysAt(1)], candidates, probabilities), "always at delay 1", "stale2")
    acted = candidates[(candidates["condition"] == "stale2") & (candidates["delay"] == 1) & candidates["reached"]]
    p = acted.merge(probabilities, on=KEY)
    assert found["mean_rescue_score"] == pytest.approx(((1 - p["p0"]) * p["p1"]).mean())
    assert found["mean_harm_score"] == pytest.approx((p["p0"] * (1 - p["p1"])).mean())
    assert (found["rescues"], found["harms"]) == ((acted["tau"] == 1).sum(), (acted["tau"] == -1).sum())
    n, a, b = len(acted), acted["success_without"].sum(), acted["success_with"].sum()
    assert (found["rescues_low"], found["rescues_high"]) == (max(0, b - a), min(b, n - a))
    assert (found["harms_low"], found["harms_high"]) == (max(0, a - b), min(a, n - b))
    without = row(judged([AlwaysAt(1)], candidates), "always at delay 1", "stale2")
    assert without[["mean_rescue_score", "mean_harm_score"]].isna().all()
    assert without["rescues_low"] == found["rescues_low"]


def test_clean_harm_is_of_clean_trajectories() -> None:
    candidates, _ = simulated(15)
    found = judged([AlwaysAt(1)], candidates)
    clean = row(found, "always at delay 1", "clean")
    assert clean["clean_harms"] == clean["harms"] > 0
    assert row(found, "always at delay 1")["clean_harms"] == clean["harms"]
    assert row(found, "always at delay 1", "missing")[["clean_harms", "clean_harm_upper"]].isna().all()


def test_one_policy_and_one_task() -> None:
    candidates, _ = simulated(1)
    found = judged([Oracle()], candidates)
    assert found.differences.empty
    assert found.flip_penalty.empty
    assert list(found.table) == TABLE_COLUMNS
    assert found.table["condition"].to_list() == [*CONDITIONS, ALL]
    assert "no interval: there is one task only" in row(found, "oracle (uses outcomes)")["note"]


def test_the_seed_decides() -> None:
    candidates, _ = simulated(12)
    one, two, three = (judged([AlwaysAt(1)], candidates, seed=seed).table for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert not one["low_pp"].equals(three["low_pp"])


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policies", [[], [Never(), Never()], [Never("all")]])
def test_policies_need_names_of_their_own(policies: list[Policy]) -> None:
    with pytest.raises(FaultbookError, match="give at least one, and each a name of its own"):
        judged(policies, simulated(2)[0])


def test_missing_pairs_are_named() -> None:
    candidates, _ = simulated(3)
    with pytest.raises(DataError, match="pairs are missing: t1/stale1/0 at 2; add them, or leave the trajectories out"):
        judged([Never()], candidates[~((candidates["task_id"] == "t1") & (candidates.index == 22))])


class Twice:
    """Acts wherever it can."""

    name = "twice"

    def choose(self, candidates: pd.DataFrame, probabilities: pd.DataFrame | None = None) -> pd.Series[bool]:
        return pd.Series(True, index=candidates.index)


def test_a_policy_that_acts_twice_is_refused() -> None:
    with pytest.raises(FaultbookError, match="policy 'twice' acts twice in a trajectory, or after it had ended"):
        judged([Twice()], simulated(2)[0])


def test_a_level_that_is_none() -> None:
    with pytest.raises(ValueError, match="level is 95"):
        judged([Never()], simulated(2)[0], level=95)
