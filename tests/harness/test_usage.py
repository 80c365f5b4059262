"""What trials used: totals of what was metered, with the share that was, and ratios on pairs metered in both arms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.harness.fields import usage_status
from faultbook.harness.plan import held, plan
from faultbook.harness.usage import QUANTITIES, Usage, metered_only, paired_totals, usage
from faultbook.tables import Trials, typed


def trial(
    arm: str, task: str, tokens_in: int | None = None, tokens_out: int | None = None, attempt: int = 1, **more: Any
) -> dict[str, Any]:
    row = {"arm": arm, "task_id": task, "attempt": attempt, "state": "finished", "resolved": True}
    row |= {"input_tokens": tokens_in, "output_tokens": tokens_out, "cache_included": True, "source_format": "csv"}
    return row | {"usage_status": usage_status(tokens_in, tokens_out)} | more


def run(*rows: dict[str, Any], **settings: Any) -> Usage:
    return usage(typed(list(rows), Trials), **settings)


def of_arm(found: Usage, arm: str, quantity: str = "input_tokens") -> dict[str, Any]:
    table = found.arms
    return table[(table["arm"] == arm) & (table["quantity"] == quantity)].iloc[0].to_dict()


def ratio(found: Usage, quantity: str = "input_tokens") -> dict[str, Any]:
    return found.paired.set_index("quantity").loc[quantity].to_dict()


def is_nothing(row: dict[str, Any], *names: str) -> bool:
    return all(math.isnan(row[name]) for name in names)


# ---- totals


def test_totals_are_over_what_was_metered_and_say_how_much_that_is() -> None:
    rows = [trial("a", "t", 100, 10), trial("a", "u", 200, 30), trial("a", "v"), trial("a", "w", state="unfinished")]
    found = run(*rows, trial("b", "t"))
    row = of_arm(found, "a")
    assert (row["finished"], row["metered"], row["share_metered"]) == (3, 2, 2 / 3)
    assert (row["total"], row["per_trial"]) == (300, 150)
    assert (row["reported"], row["absent"], row["zero_suspect"], row["partial"]) == (2, 1, 0, 0)
    assert of_arm(found, "a", "output_tokens")["total"] == 40


def test_what_is_missing_is_never_zero() -> None:
    found = run(trial("a", "t"), trial("b", "t", state="unfinished"))
    for quantity in QUANTITIES:
        first, second = of_arm(found, "a", quantity), of_arm(found, "b", quantity)
        assert (first["finished"], first["metered"], first["share_metered"]) == (1, 0, 0.0)
        assert (second["finished"], second["metered"]) == (0, 0)
        assert is_nothing(second, "share_metered", "total", "per_trial")
        assert is_nothing(first, "total", "per_trial")
        row = ratio(found, quantity)
        assert (row["pairs"], row["metered_pairs"]) == (1, 0)
        assert is_nothing(row, "total_a", "total_b", "ratio", "low", "high")
        assert row["note"] == "metered in both arms of no pair"


def test_suspect_zeros_stand_apart_and_in_no_total() -> None:
    zero = trial("b", "t", 0, 0, cost=0.0, requests=0, cause="sandbox")
    found = run(trial("a", "t", 100, 10, cost=1.0, requests=2), zero)
    assert found.suspected.to_dict("records") == [
        {"arm": "b", "task_id": "t", "attempt": 1, "state": "finished", "cause": "sandbox"}
    ]
    for quantity in QUANTITIES:
        row = of_arm(found, "b", quantity)
        assert (row["metered"], row["zero_suspect"]) == (0, 1)
        assert math.isnan(row["total"])
        assert ratio(found, quantity)["metered_pairs"] == 0


def test_a_cost_beside_suspect_zeros_is_kept() -> None:
    found = run(trial("a", "t", 0, 0, cost=0.5, requests=3), trial("b", "t", 1, 1, cost=1.0, requests=6))
    assert ratio(found, "cost")["ratio"] == 0.5
    assert ratio(found, "requests")["ratio"] == 0.5
    assert ratio(found)["metered_pairs"] == 0


def test_suspects_of_trials_that_did_not_finish_are_shown_too() -> None:
    found = run(trial("a", "t", 0, 0, state="unfinished"), trial("b", "t", 1, 1))
    assert found.suspected["state"].tolist() == ["unfinished"]


def test_one_direction_counts_for_itself() -> None:
    found = run(trial("a", "t", 100, None), trial("b", "t", 50, 5))
    assert of_arm(found, "a")["total"] == 100
    assert of_arm(found, "a")["partial"] == 1
    assert ratio(found)["ratio"] == 2
    assert ratio(found, "output_tokens")["metered_pairs"] == 0


def test_a_sum_over_some_steps_is_no_total() -> None:
    found = run(trial("a", "t", 100, 10, usage_status="partial"), trial("b", "t", 50, 5))
    row = of_arm(found, "a")
    assert (row["metered"], row["partial"]) == (0, 1)
    assert math.isnan(row["total"])
    assert ratio(found)["metered_pairs"] == 0


@pytest.mark.parametrize("state", ["unfinished", "unreadable"])
def test_what_a_trial_used_before_it_broke_off_is_in_no_ratio(state: str) -> None:
    rows = [trial("a", "t", 100, 10, state=state, resolved=None, cost=1.0), trial("b", "t", 100, 10, cost=1.0)]
    rows += [trial(arm, "u", 10, 10, cost=1.0) for arm in "ab"]
    found = run(*rows)
    assert ratio(found)["metered_pairs"] == ratio(found, "cost")["metered_pairs"] == 1
    assert of_arm(found, "a")["total"] == 10


def test_records_that_contradict_one_another_are_in_no_total() -> None:
    found = run(trial("a", "t", 100, 10), trial("a", "t", 900, 90, resolved=False), trial("b", "t", 100, 10))
    assert of_arm(found, "a")["metered"] == 0
    assert ratio(found)["metered_pairs"] == 0


def test_a_trial_outside_the_plan_uses_nothing() -> None:
    rows = [trial(arm, task, 10, 1) for arm in "abc" for task in "tu"]
    found = run(*rows, planned=plan(arms=["a", "b"], tasks=["t"]))
    assert of_arm(found, "a")["total"] == 10
    assert set(found.arms["arm"]) == {"a", "b"}


# ---- what the input tokens hold


@pytest.mark.parametrize(
    ("kinds", "cache"),
    [
        ((True, True), "included"),
        ((False, False), "excluded"),
        ((True, False), "mixed"),
        ((True, None), "unknown"),
        ((None, None), "unknown"),
    ],
)
def test_whether_an_arm_s_input_holds_the_cache(kinds: tuple[bool | None, bool | None], cache: str) -> None:
    rows = [trial("a", task, 10, 1, cache_included=kind) for task, kind in zip("tu", kinds, strict=True)]
    found = run(*rows, trial("a", "v", cache_included=None), trial("b", "t", 10, 1))
    assert of_arm(found, "a")["cache"] == cache


@pytest.mark.parametrize(
    ("kinds", "note"),
    [
        ((True, False), "cached input is included in one arm and excluded in the other: no ratio"),
        ((False, None), "cached input is excluded in one arm and unknown in the other: no ratio"),
        ((None, True), "cached input is unknown in one arm and included in the other: no ratio"),
        ((True, True), ""),
        ((False, False), ""),
        ((None, None), "whether cached input is counted is not known for both arms"),
    ],
)
def test_a_cache_counted_in_one_arm_only_leaves_no_ratio(kinds: tuple[bool | None, bool | None], note: str) -> None:
    rows = [trial(arm, t, 10, 2, cache_included=kind) for arm, kind in zip("ab", kinds, strict=True) for t in "tu"]
    row = ratio(run(*rows))
    assert row["note"] == note
    assert math.isnan(row["ratio"]) == ("no ratio" in note)
    assert row["metered_pairs"] == 2
    assert ratio(run(*rows), "output_tokens")["ratio"] == 1  # the cache is of the input alone


def test_mixed_trials_in_both_arms_leave_no_ratio() -> None:
    rows = [trial(arm, task, 10, 1, cache_included=task == "t") for arm in "ab" for task in "tu"]
    assert "mixed in one arm and mixed in the other: no ratio" in ratio(run(*rows))["note"]


# ---- ratios


def test_a_ratio_is_of_totals_over_the_same_pairs() -> None:
    rows = [trial("a", "t", 300, 3), trial("b", "t", 100, 1), trial("a", "u", 100, 1), trial("b", "u", 100, 1)]
    rows += [trial("a", "alone", 10_000, 1), trial("b", "alone")]
    row = ratio(run(*rows))
    assert (row["pairs"], row["metered_pairs"], row["total_a"], row["total_b"]) == (3, 2, 400, 200)
    assert row["ratio"] == 2.0
    assert row["low"] < 2 < row["high"]
    assert "bootstrap of 2 clusters" in row["method"]


def test_one_pair_has_a_ratio_and_no_interval() -> None:
    row = ratio(run(trial("a", "t", 300, 3), trial("b", "t", 100, 1)))
    assert row["ratio"] == 3
    assert is_nothing(row, "low", "high")
    assert "there is one cluster only" in row["method"]


def test_several_attempts_are_summed_and_all_needed() -> None:
    rows = [trial(arm, task, 10 * k, 1, k) for arm in "ab" for task in "tu" for k in (1, 2)]
    rows[-1] |= {"input_tokens": None, "output_tokens": None, "usage_status": "absent"}
    row = ratio(run(*rows))
    assert (row["pairs"], row["metered_pairs"], row["total_a"]) == (2, 1, 30)


def test_a_task_that_is_not_the_same_in_both_arms_is_in_no_ratio() -> None:
    rows = [trial(arm, task, 10, 1) for arm in "ab" for task in "tu"]
    rows[0] |= {"task_checksum": "x"}
    rows[2] |= {"task_checksum": "y"}
    row = ratio(run(*rows))
    assert (row["pairs"], row["metered_pairs"]) == (2, 1)


def test_an_arm_that_used_none_at_all() -> None:
    rows = [trial("a", t, 10, 10, cost=1.0) for t in "tu"] + [trial("b", t, 10, 10, cost=0.0) for t in "tu"]
    row = ratio(run(*rows), "cost")
    assert is_nothing(row, "ratio", "low", "high")
    assert row["note"] == "the second arm used none: no ratio"
    assert ratio(run(*rows, arms=["b", "a"]), "cost")["ratio"] == 0


def test_a_task_at_which_an_arm_used_none_leaves_a_ratio_without_interval() -> None:
    rows = [trial(arm, t, 10, 10, cost=float(arm + t != "bt")) for arm in "ab" for t in "tuv"]
    row = ratio(run(*rows), "cost")
    assert row["ratio"] == 1.5
    assert is_nothing(row, "low", "high")
    assert row["method"] == "ratio of sums; no interval: the second arm used none at some task"


def test_cost_is_what_was_recorded_and_never_made_of_tokens() -> None:
    found = run(trial("a", "t", 10, 1), trial("b", "t", 10, 1, cost=2.0))
    assert of_arm(found, "a", "cost")["metered"] == 0
    assert of_arm(found, "b", "cost")["total"] == 2
    assert ratio(found, "cost")["metered_pairs"] == 0


AMOUNTS = st.lists(
    st.tuples(*[st.one_of(st.none(), st.integers(0, 3), st.integers(0, 10**12))] * 2), min_size=1, max_size=6
)


@settings(max_examples=8, deadline=None)
@given(AMOUNTS)
def test_swapping_the_arms_inverts_the_ratio(pairs: list[tuple[int | None, int | None]]) -> None:
    rows = [trial(arm, f"t{i}", n, n) for i, pair in enumerate(pairs) for arm, n in zip("ab", pair, strict=True)]
    one, other = ratio(run(*rows)), ratio(run(*rows, arms=["b", "a"]))
    known = [pair for pair in pairs if pair[0] and pair[1]]  # two zeros are suspect
    for row in (one, other):
        assert row["metered_pairs"] == len(known)
    if known:
        assert one["ratio"] == pytest.approx(1 / other["ratio"], rel=1e-12)
        assert one["ratio"] == pytest.approx(sum(a for a, _ in known) / sum(b for _, b in known), rel=1e-12)
        assert math.isnan(one["low"]) == math.isnan(other["low"])
        if not math.isnan(one["low"]):
            assert one["low"] <= one["high"]
    else:
        assert is_nothing(one, "ratio", "low", "high")


def test_the_interval_is_that_of_its_seed_and_level() -> None:
    rng = np.random.default_rng(5)
    rows = [trial(arm, f"t{i}", int(rng.integers(1, 10**6)), 1) for i in range(12) for arm in "ab"]
    first, again, other = (ratio(run(*rows, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert (first["low"], first["high"]) != (other["low"], other["high"])
    narrow = ratio(run(*rows, seed=1, level=0.5))
    assert first["low"] < narrow["low"] < narrow["high"] < first["high"]


# ---- arms and parts


def test_three_arms_need_two_names() -> None:
    rows = [trial(arm, "t", 10, 1) for arm in "abc"]
    with pytest.raises(FaultbookError, match="the plan has 3 arms"):
        run(*rows)
    assert run(*rows, arms=["c", "a"]).arms["arm"].unique().tolist() == ["c", "a"]


def test_parts_of_it() -> None:
    table = typed([trial("a", "t", 0, 0), trial("b", "t", 5, 1), trial("a", "u", 4, 2), trial("b", "u", 2, 1)], Trials)
    cells = held(table, plan(trials=table)).cells
    metered = metered_only(cells)
    assert metered["input_tokens"].isna().sum() == 1
    totals = paired_totals(metered, ["b", "a"], "input_tokens")
    assert totals.to_dict("index") == {"u": {"a": 2.0, "b": 4.0}}
    found = run(*table.to_dict("records"))
    pd.testing.assert_frame_equal(found.summary_frame(), found.paired)
