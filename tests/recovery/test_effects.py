"""Effects of actions: published counts and intervals, what is never pooled, one estimand, and properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.errors import FaultbookError
from faultbook.recovery.effects import (
    EFFECT_COLUMNS,
    FIXED_BY_MARGINS,
    NO_POINT_ESTIMATE,
    bounds,
    by_cohort,
    effects,
)
from faultbook.stats.proportion import zero_event_upper_bound
from faultbook.stats.resampling import resampled_sum

Success = tuple[bool, bool]

COLUMNS = ["task_id", "condition", "delay", "action", "replicate", "success_without", "success_with"]
RESCUE, HARM, STABLE_SUCCESS, STABLE_FAILURE = (False, True), (True, False), (True, True), (False, False)


def make(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Pairs from (task, condition, delay, action, replicate, without, with)."""
    return pd.DataFrame(rows, columns=COLUMNS)


def cell(
    rescues: int, harms: int, n: int, condition: str = "stale2", delay: int = 0, action: str = "refresh", first: int = 0
) -> pd.DataFrame:
    """One pair a task: `rescues` and `harms` of `n` tasks, the others stable, every third of them a failure."""
    stable = [STABLE_FAILURE if k % 3 == 0 else STABLE_SUCCESS for k in range(n - rescues - harms)]
    successes = [RESCUE] * rescues + [HARM] * harms + stable
    return make([(f"task {first + k}", condition, delay, action, 0, *pair) for k, pair in enumerate(successes)])


def only(pairs: pd.DataFrame, *args: Any, **options: Any) -> pd.Series:
    table = effects(pairs, *args, **options)
    assert len(table) == 1
    return table.iloc[0]


# ---- published cells ----------------------------------------------------------------------------------------------

# Counts (rescues, harms) and the exact percentile bounds, in tasks, of sixteen cells printed in the data that the
# authors of arXiv 2610.00372 published (Qwen3-8B). All but "replan 2 stale" print these bounds; that one prints
# [-7, 9], which its 10,000 draws reach by chance.
CALIBRATION = {
    ("refresh", 0, "stale2", 73): (9, 3, 0, 13),
    ("refresh", 1, "stale2", 73): (8, 3, -1, 12),
    ("refresh", 2, "stale2", 73): (9, 3, 0, 13),
    ("refresh", 4, "stale2", 73): (4, 3, -4, 6),
    ("replan", 0, "stale2", 73): (6, 6, -7, 7),
    ("replan", 1, "stale2", 73): (9, 7, -6, 10),
    ("replan", 2, "stale2", 73): (10, 9, -8, 10),
    ("replan", 4, "stale2", 73): (3, 8, -12, 1),
    ("refresh", 0, "clean", 73): (0, 6, -11, -2),
    ("replan", 0, "clean", 73): (0, 14, -21, -8),
    ("refresh", 2, "clean", 73): (0, 2, -5, 0),
    ("refresh", 1, "clean", 73): (0, 4, -8, -1),
    ("full", 0, "stale2", 59): (14, 1, 6, 20),
    ("full", 4, "stale2", 59): (10, 3, 0, 14),
    ("full", 0, "clean", 59): (0, 5, -10, -1),
    ("full", 4, "clean", 59): (0, 1, -3, 0),
}


def test_the_sixteen_published_cells() -> None:
    parts = [cell(r, h, n, c, d, a) for (a, d, c, n), (r, h, _, _) in CALIBRATION.items()]
    table = effects(pd.concat(parts)).set_index(["action", "delay", "condition"])
    assert len(table) == 16
    for (action, delay, condition, n), (rescues, harms, low, high) in CALIBRATION.items():
        row = table.loc[(action, delay, condition)]
        assert (row["n_tasks"], row["n_pairs"], row["rescues"], row["harms"]) == (n, n, rescues, harms)
        assert row["effect_pp"] == pytest.approx(100 * (rescues - harms) / n)
        assert resampled_sum({1: rescues, -1: harms}, n).bounds() == (low, high)
        # 10,000 draws may print a bound that is one task off the exact one
        assert abs(row["low"] * n / 100 - low) < 1 + 1e-9
        assert abs(row["high"] * n / 100 - high) < 1 + 1e-9


def test_the_bootstrap_converges_to_the_exact_bounds() -> None:
    # The odd cell: with 200,000 draws the quantiles are [-8, 10], not the printed [-7, 9].
    row = only(cell(10, 9, 73), n_resamples=200_000)
    assert (row["low"] * 0.73, row["high"] * 0.73) == (pytest.approx(-8), pytest.approx(10))


@pytest.mark.parametrize(
    ("rescues", "harms", "p"),
    [
        # arXiv 2610.00372 and the exact binomial test: overall CIR, clean d = 0, 2-step stale CIR, full and ablated
        # refresh, the complete cohort, the detectors.
        (11, 2, 0.0225),
        (0, 6, 0.0312),
        (9, 2, 0.0654),
        (10, 1, 0.0117),
        (2, 6, 0.2891),
        (17, 10, 0.2478),
        (6, 1, 0.1250),
        (6, 0, 0.0312),
        (4, 2, 0.6875),
    ],
)
def test_mcnemar(rescues: int, harms: int, p: float) -> None:
    row = only(cell(rescues, harms, 106))
    assert row["mcnemar_exact"] == pytest.approx(p, abs=6e-5)
    assert row["test"] == "exact McNemar"
    assert math.isnan(row["sign_flip_p"])


def test_the_complete_cohort() -> None:
    # 106 tasks: clean 2 rescues and 6 harms, -3.77 pp [-9.43, .94]; stale 17 and 10, +6.60 pp [-2.83, 16.04].
    table = effects(pd.concat([cell(2, 6, 106, "clean"), cell(17, 10, 106)]))
    assert table["effect_pp"].round(2).tolist() == [-3.77, 6.60]
    for row, (low, high) in zip(table.to_dict("records"), [(-10, 1), (-3, 17)], strict=True):
        assert abs(row["low"] * 1.06 - low) < 1 + 1e-9
        assert abs(row["high"] * 1.06 - high) < 1 + 1e-9


def test_factual_successes_and_all_tasks_side_by_side() -> None:
    # 93 factual successes have 0 rescues and 6 harms at clean d = 0; the 13 factual failures add 2 rescues.
    pairs = pd.concat([cell(0, 6, 93, "clean"), cell(2, 0, 13, "clean", first=93)], ignore_index=True)
    pairs["factual_success"] = [True] * 93 + [False] * 13
    table = by_cohort(pairs, n_resamples=200)
    assert table["tasks"].tolist() == ["factual success only", "with failures"]
    assert table["n_tasks"].tolist() == [93, 106]
    assert table["effect_pp"].round(2).tolist() == [-6.45, -3.77]
    assert table["n_unknown"].tolist() == [0, 0]
    assert list(table.columns) == ["condition", "delay", "action", "tasks", *EFFECT_COLUMNS, "n_unknown"]


def test_one_task_rescued_twice() -> None:
    # CIR overall: 300 episodes of 75 tasks in four conditions, task sums +2 once, +1 nine times, -1 twice: +3.00 pp
    # [.67, 5.67] = [2, 17] / 300, exact sign-flip p .0332 (.034 printed, by simulation); McNemar's .0225 ignores that
    # tasks recur.
    conditions = ("clean", "stale1", "stale2", "missing")
    signs = {("task 0", "stale1"): RESCUE, ("task 0", "stale2"): RESCUE}
    signs |= {(f"task {k}", "stale2"): RESCUE for k in range(1, 9)} | {("task 9", "missing"): RESCUE}
    signs |= {(f"task {k}", "stale2"): HARM for k in (10, 11)}
    rows = [
        (f"task {k}", condition, 1, "cir", 0, *signs.get((f"task {k}", condition), STABLE_SUCCESS))
        for k in range(75)
        for condition in conditions
    ]
    row = only(make(rows), ("delay", "action"), pooled="condition")
    assert (row["n_tasks"], row["n_pairs"], row["rescues"], row["harms"]) == (75, 300, 11, 2)
    assert row["effect_pp"] == pytest.approx(3)
    assert row["sign_flip_p"] == pytest.approx(0.0332, abs=5e-5)
    assert row["test"] == "sign flip over tasks"
    assert math.isnan(row["mcnemar_exact"])
    assert abs(row["low"] * 3 - 2) < 1 + 1e-9
    assert abs(row["high"] * 3 - 17) < 1 + 1e-9


# ---- one estimand -------------------------------------------------------------------------------------------------


def test_unequal_clusters_have_one_estimand() -> None:
    # One task rescued ten times and nine tasks without change. The authors' code says 52.6 pp (over episodes) with
    # the interval [0, 30] (over tasks): an interval that excludes its own estimate.
    rows = [("task 0", "stale2", 0, "refresh", k, *RESCUE) for k in range(10)]
    rows += [(f"task {k}", "stale2", 0, "refresh", 0, *STABLE_SUCCESS) for k in range(1, 10)]
    row = only(make(rows))
    assert row["effect_pp"] == pytest.approx(10)
    assert row["low"] <= row["effect_pp"] <= row["high"]
    assert row["high"] == pytest.approx(30)
    assert (row["success_without"], row["success_with"]) == (pytest.approx(0.9), pytest.approx(1))
    assert (row["rescue_rate"], row["rescues"], row["n_tasks"], row["n_pairs"]) == (pytest.approx(0.1), 10, 10, 19)
    assert row["sign_flip_p"] == pytest.approx(1)  # one task can have one sign


def test_intervals_of_unequal_clusters_against_plain_resampling() -> None:
    rng = np.random.default_rng(5)
    rows = [
        (f"task {k}", "stale2", 0, "refresh", r, bool(rng.random() < 0.5), bool(rng.random() < 0.6))
        for k in range(30)
        for r in range(1 + k % 4)
    ]
    pairs = make(rows)
    tau = pairs["success_with"].astype(int) - pairs["success_without"].astype(int)
    means = tau.groupby(pairs["task_id"]).mean().to_numpy()
    draws = means[rng.integers(0, 30, size=(20_000, 30))].mean(axis=1)
    row = only(pairs, n_resamples=20_000)
    assert row["effect_pp"] == pytest.approx(100 * means.mean())
    assert [row["low"], row["high"]] == pytest.approx(list(100 * np.quantile(draws, [0.025, 0.975])), abs=1)


def test_an_exact_sign_flip_of_thirds() -> None:
    # Task means 1/3, 2/3 and -1/3 out of three replicates: of 8 sign patterns of (1, 2, 1), 6 have a total of at
    # least 2 or at most -2.
    taus = {"a": [1, 0, 0], "b": [1, 1, 0], "c": [-1, 0, 0]}
    successes = {1: RESCUE, 0: STABLE_FAILURE, -1: HARM}
    rows = [
        (task, "stale2", 0, "refresh", r, *successes[tau]) for task, all_ in taus.items() for r, tau in enumerate(all_)
    ]
    row = only(make(rows))
    assert row["sign_flip_p"] == pytest.approx(6 / 8)
    assert row["effect_pp"] == pytest.approx(100 * 2 / 9)


def test_discordant_pairs_without_a_net_effect() -> None:
    rows = [("a", "stale2", 0, "refresh", 0, *RESCUE), ("a", "stale2", 0, "refresh", 1, *HARM)]
    row = only(make(rows))
    assert row["test"] == "no task with a net effect"
    assert math.isnan(row["sign_flip_p"])
    assert row["harm_upper"] == 1  # one task of one


def test_many_tasks_with_uneven_replicates_are_tested_by_simulation() -> None:
    sizes = [11, 13, 17, 19] * 9  # their least common multiple leaves no exact p within reach
    rows = [
        (f"task {k}", "stale2", 0, "refresh", r, *(RESCUE if r < 3 + k % 2 else STABLE_SUCCESS))
        for k, size in enumerate(sizes)
        for r in range(size)
    ]
    row = only(make(rows), n_resamples=50)
    assert row["sign_flip_p"] == pytest.approx(1 / 100_001)  # no draw of 100,000 is as extreme as all tasks alike
    assert row["test"] == "sign flip over tasks"


# ---- nothing happened ---------------------------------------------------------------------------------------------


def test_no_discordant_pair_is_no_test_and_no_certainty() -> None:
    row = only(cell(0, 0, 75))
    assert row["test"] == "no discordant pairs"
    assert row[["mcnemar_exact", "sign_flip_p", "low", "high"]].isna().all()
    assert (row["effect_pp"], row["harm_rate"]) == (0, 0)
    # 0 of 75: 3.92 % one-sided, 4.80 % (4.7995) two-sided, Clopper-Pearson
    assert row["harm_upper"] == pytest.approx(0.0392, abs=5e-5)
    assert row["harm_upper"] == pytest.approx(1 - 0.05 ** (1 / 75))
    assert zero_event_upper_bound(75, sides=2) == pytest.approx(0.047995, abs=5e-7)


def test_the_bound_of_harm_counts_tasks() -> None:
    # 60 harm-free pairs of 20 tasks certify what 20 tasks do: 1 - .05^(1/20) = 13.9 %.
    rows = [(f"task {k}", "clean", 0, "refresh", r, *STABLE_SUCCESS) for k in range(20) for r in range(3)]
    assert only(make(rows))["harm_upper"] == pytest.approx(1 - 0.05 ** (1 / 20))
    assert only(cell(0, 6, 93))["harm_upper"] == pytest.approx(0.1238, abs=5e-4)  # qbeta(.95, 7, 87)


def test_the_level_is_that_of_interval_and_bound() -> None:
    wide, narrow = (only(cell(9, 3, 73), level=level) for level in (0.99, 0.8))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert only(cell(0, 0, 75), level=0.9)["harm_upper"] == pytest.approx(1 - 0.1 ** (1 / 75))


def test_no_pairs() -> None:
    table = effects(make([]))
    assert table.empty
    assert list(table.columns) == ["condition", "delay", "action", *EFFECT_COLUMNS]


def test_runs_that_ended_before_the_fork_stay_in() -> None:
    pairs = cell(3, 1, 10).assign(ended_before=[False] * 8 + [True] * 2)
    row = only(pairs)
    assert (row["n_tasks"], row["n_ended_before"]) == (10, 2)
    assert (row["effect_pp"], row["effect_of_reached_pp"]) == (pytest.approx(20), pytest.approx(25))


@pytest.mark.parametrize("ended", [None, [None] * 10, [False] * 9 + [None]])
def test_unknown_ends_are_not_counted_as_none(ended: list[bool | None] | None) -> None:
    pairs = cell(3, 1, 10)
    row = only(pairs if ended is None else pairs.assign(ended_before=pd.array(ended, dtype="boolean")))
    assert row["n_ended_before"] is pd.NA
    assert math.isnan(row["effect_of_reached_pp"])


def test_all_ended_before_the_fork() -> None:
    row = only(cell(0, 0, 5).assign(ended_before=True))
    assert row["n_ended_before"] == 5
    assert math.isnan(row["effect_of_reached_pp"])


# ---- nothing is pooled silently -----------------------------------------------------------------------------------

TWO = pd.concat([cell(9, 3, 73, delay=0), cell(8, 3, 73, delay=1), cell(0, 6, 73, "clean")])


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (("condition", "action"), r"several values of delay \(0, 1\).*pooled=\('delay',\)"),
        (("delay", "action"), r"several values of condition \('clean', 'stale2'\)"),
        ((), "several values of condition"),
        ("condition", "several values of delay"),
    ],
)
def test_pooling_must_be_asked_for(by: Any, said: str) -> None:
    with pytest.raises(FaultbookError, match=said):
        effects(TWO, by)


def test_actions_are_not_pooled_either() -> None:
    pairs = pd.concat([cell(1, 0, 5), cell(1, 0, 5, action="replan")])
    with pytest.raises(FaultbookError, match="several values of action"):
        effects(pairs, ("condition", "delay"))


def test_pooling_that_is_asked_for() -> None:
    table = effects(TWO, ("condition", "action"), pooled=("delay",))
    assert table["n_pairs"].tolist() == [73, 146]
    assert table["n_tasks"].tolist() == [73, 73]
    assert table["test"].tolist() == ["exact McNemar", "sign flip over tasks"]
    row = only(TWO, (), pooled=("condition", "delay"))
    assert (row["n_pairs"], row["n_tasks"], row["rescues"], row["harms"]) == (219, 73, 17, 12)


def test_what_has_one_value_need_not_be_named() -> None:
    assert only(cell(9, 3, 73), ())["rescues"] == 9
    # each condition has one delay here, so nothing is pooled
    pairs = pd.concat([cell(1, 0, 5, "clean", 0), cell(2, 0, 5, "stale2", 1)])
    assert effects(pairs, ("condition",))["rescues"].tolist() == [1, 2]


def test_cells_stand_in_the_order_of_the_domain() -> None:
    known = [("clean", 0, "refresh"), ("stale2", 1, "replan"), ("stale2", 10, "refresh"), ("missing", 0, "refresh")]
    own = [("another", 2, "refresh"), ("another", 2, "a rollback")]
    pairs = pd.concat([cell(1, 0, 4, *key) for key in [*reversed(known), *own]])
    table = effects(pairs)
    assert list(zip(table["condition"], table["delay"], table["action"], strict=True)) == [
        *known,
        ("another", 2, "refresh"),
        ("another", 2, "a rollback"),
    ]


def test_cohorts_and_missing_values_are_cells_too() -> None:
    pairs = cell(3, 1, 10).assign(cohort=["fit"] * 4 + ["evaluation"] * 4 + [None] * 2)
    table = effects(pairs, ("cohort", "condition", "delay", "action"))
    assert table["cohort"].iloc[:2].tolist() == ["evaluation", "fit"]
    assert table["cohort"].isna().tolist() == [False, False, True]
    assert table["n_tasks"].tolist() == [4, 4, 2]


def test_flags_are_cells_too() -> None:
    pairs = cell(2, 1, 6).assign(factual_success=pd.array([True, False, None] * 2, dtype="boolean"))
    table = effects(pairs, ("factual_success",))
    assert table["factual_success"].tolist() == [True, False, pd.NA]
    assert table["n_tasks"].tolist() == [2, 2, 2]


# ---- cohorts ------------------------------------------------------------------------------------------------------


def test_unknown_factual_outcomes_are_counted() -> None:
    pairs = cell(2, 2, 8).assign(factual_success=pd.array([True] * 5 + [False] * 2 + [None], dtype="boolean"))
    table = by_cohort(pairs, n_resamples=50)
    assert table["n_tasks"].tolist() == [5, 8]
    assert table["n_unknown"].tolist() == [0, 1]


def test_a_cell_without_factual_successes_has_one_row() -> None:
    pairs = pd.concat(
        [cell(1, 0, 4).assign(factual_success=True), cell(1, 0, 4, "clean").assign(factual_success=False)]
    )
    table = by_cohort(pairs, n_resamples=50)
    assert list(zip(table["condition"], table["tasks"], strict=True)) == [
        ("clean", "with failures"),
        ("stale2", "factual success only"),
        ("stale2", "with failures"),
    ]


def test_cohorts_need_factual_outcomes() -> None:
    with pytest.raises(FaultbookError, match="give factual_success"):
        by_cohort(cell(1, 0, 4))
    with pytest.raises(FaultbookError, match="leave it out"):
        by_cohort(cell(1, 0, 4).assign(factual_success=True), ("factual_success",))


# ---- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["task_id", "condition", "delay", "action", "success_without", "success_with"])
def test_a_column_that_is_missing(column: str) -> None:
    with pytest.raises(FaultbookError, match=f"columns missing: {column}"):
        effects(cell(1, 1, 4).drop(columns=column))


@pytest.mark.parametrize("column", ["task_id", "condition", "delay", "action", "success_with"])
def test_a_value_that_is_missing_is_not_false(column: str) -> None:
    pairs = cell(1, 1, 4).astype({column: object})
    pairs.loc[2, column] = None
    with pytest.raises(FaultbookError, match=f"1 of 4 rows have no {column}"):
        effects(pairs)


@pytest.mark.parametrize(
    ("column", "value"), [("success_with", "yes"), ("success_with", 2), ("delay", 0.5), ("delay", -1)]
)
def test_a_value_of_another_type(column: str, value: object) -> None:
    pairs = cell(1, 1, 4).astype({column: object})
    pairs.loc[2, column] = value
    with pytest.raises(FaultbookError, match=column):
        effects(pairs)


def test_text_is_never_taken_for_true() -> None:
    pairs = cell(2, 1, 6)
    with pytest.raises(FaultbookError, match="'success_with' is of another type; give booleans"):
        effects(pairs.astype({"success_with": str}))


def test_pairs_that_stand_twice() -> None:
    with pytest.raises(FaultbookError, match=r"1 pairs stand twice .*task 'task 0', condition 'stale2', delay 0"):
        effects(pd.concat([cell(1, 1, 4), cell(1, 0, 1)]))


@pytest.mark.parametrize("settings", [{"by": ("tau",)}, {"by": ("task_id",)}, {"pooled": ("cohort",)}, {"by": (3,)}])
def test_columns_that_make_no_cell(settings: dict[str, Any]) -> None:
    with pytest.raises(FaultbookError, match="give columns among condition, delay, action"):
        effects(cell(1, 1, 4), **settings)


def test_the_pairs_stay_as_they_are() -> None:
    pairs = cell(2, 1, 6)
    before = pairs.copy(deep=True)
    effects(pairs)
    pd.testing.assert_frame_equal(pairs, before)


# ---- properties ---------------------------------------------------------------------------------------------------

PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(["t1", "t2", "t3", "t4", "t5"]), st.sampled_from(["clean", "stale2"]), st.integers(0, 2)),
    st.tuples(st.booleans(), st.booleans()),
    min_size=1,
    max_size=25,
).map(lambda cells: make([(task, condition, 0, "refresh", r, *pair) for (task, condition, r), pair in cells.items()]))
FAST: dict[str, Any] = {"n_resamples": 200}


@settings(max_examples=13, deadline=None)
@given(PAIRS)
def test_swapping_the_sides_swaps_rescue_and_harm(pairs: pd.DataFrame) -> None:
    swapped = pairs.rename(columns={"success_without": "success_with", "success_with": "success_without"})
    one, other = effects(pairs, **FAST), effects(swapped, **FAST)
    for mine, theirs in (("rescues", "harms"), ("harms", "rescues"), ("success_with", "success_without")):
        assert one[mine].tolist() == other[theirs].tolist()
    assert one["stable_successes"].tolist() == other["stable_successes"].tolist()
    assert one["effect_pp"].tolist() == pytest.approx((-other["effect_pp"]).tolist())
    assert one["test"].tolist() == other["test"].tolist()
    for p in ("mcnemar_exact", "sign_flip_p"):
        assert one[p].tolist() == pytest.approx(other[p].tolist(), nan_ok=True)
    assert one["low"].isna().tolist() == other["high"].isna().tolist()


@settings(max_examples=13, deadline=None)
@given(PAIRS, st.booleans(), st.booleans())
def test_a_stable_pair_changes_no_rescue_and_no_harm(pairs: pd.DataFrame, success: bool, new_task: bool) -> None:
    task = "t9" if new_task else pairs["task_id"].iloc[0]
    added = make([(task, pairs["condition"].iloc[0], 0, "refresh", 9, success, success)])
    before, after = effects(pairs, **FAST), effects(pd.concat([pairs, added]), **FAST)
    assert before[["rescues", "harms"]].to_numpy().tolist() == after[["rescues", "harms"]].to_numpy().tolist()
    assert after["n_pairs"].sum() == before["n_pairs"].sum() + 1


@settings(max_examples=13, deadline=None)
@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_tasks_do_not_count(pairs: pd.DataFrame, random: Any) -> None:
    order = list(range(len(pairs)))
    random.shuffle(order)
    names = {"t1": "zeta", "t2": "eta", "t3": "10", "t4": "9", "t5": "ß"}
    other = pairs.iloc[order].assign(task_id=lambda frame: frame["task_id"].map(names))
    pd.testing.assert_frame_equal(effects(pairs, **FAST), effects(other, **FAST))


@settings(max_examples=13, deadline=None)
@given(PAIRS)
def test_the_parts_fit_together(pairs: pd.DataFrame) -> None:
    for row in effects(pairs, **FAST).to_dict("records"):
        counted = sum(row[name] for name in ("rescues", "harms", "stable_successes", "stable_failures"))
        assert counted == row["n_pairs"] >= row["n_tasks"]
        assert row["effect_pp"] == pytest.approx(100 * (row["success_with"] - row["success_without"]), abs=1e-9)
        assert row["effect_pp"] == pytest.approx(100 * (row["rescue_rate"] - row["harm_rate"]), abs=1e-9)
        assert row["harm_rate"] <= row["harm_upper"] <= 1
        assert math.isnan(row["low"]) or row["low"] <= row["high"]
        assert not (math.isfinite(row["mcnemar_exact"]) and math.isfinite(row["sign_flip_p"]))


@settings(max_examples=6, deadline=None)
@given(PAIRS)
def test_repeating_every_pair_alike_leaves_the_interval(pairs: pd.DataFrame) -> None:
    single = pairs[~pairs.duplicated(["task_id", "condition"])]
    twice = pd.concat([single.assign(replicate=0), single.assign(replicate=1)])
    one, two = effects(single, **FAST), effects(twice, **FAST)
    for name in ("effect_pp", "low", "high", "harm_upper", "harm_rate"):
        assert one[name].tolist() == pytest.approx(two[name].tolist(), nan_ok=True)


def test_the_seed_decides() -> None:
    # 40 tasks with uneven means: bounds are not on a coarse grid
    rows = [
        (f"t{k}", "stale2", 0, "refresh", r, *(RESCUE if (k * 7 + r) % 3 == 0 else STABLE_SUCCESS))
        for k in range(40)
        for r in range(1 + k % 3)
    ]
    pairs = make(rows)
    pd.testing.assert_frame_equal(effects(pairs, seed=3, **FAST), effects(pairs, seed=3, **FAST))
    assert only(pairs, seed=3, **FAST)["low"] != only(pairs, seed=4, **FAST)["low"]


def test_a_cell_does_not_depend_on_the_others() -> None:
    alone = effects(cell(9, 3, 73), **FAST)
    among = effects(pd.concat([cell(0, 6, 73, "clean"), cell(9, 3, 73)]), **FAST)
    pd.testing.assert_frame_equal(alone, among.iloc[1:].reset_index(drop=True))


def test_a_hundred_thousand_pairs() -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    pairs = pd.DataFrame(
        {
            "task_id": np.char.add("task ", (np.arange(n) // 16).astype(str)),
            "condition": np.array(["clean", "stale1", "stale2", "missing"])[np.arange(n) % 4],
            "delay": np.array([0, 1, 2, 4])[np.arange(n) // 4 % 4],
            "action": "refresh",
            "success_without": rng.random(n) < 0.6,
            "success_with": rng.random(n) < 0.7,
        }
    )
    table = effects(pairs)
    assert table["n_pairs"].sum() == n
    assert len(table) == 16
    pooled = effects(pairs, ("condition", "action"), pooled="delay")
    assert pooled["effect_pp"].mean() == pytest.approx(10, abs=1)


# ---- without pairs ------------------------------------------------------------------------------------------------


def test_two_rates_leave_rescue_and_harm_open() -> None:
    row = bounds(0.6, 0.6).iloc[0]
    assert row[["rescue_low", "rescue_high", "harm_low", "harm_high", "effect"]].tolist() == pytest.approx(
        [0, 0.4, 0, 0.4, 0]
    )
    assert row["note"] == NO_POINT_ESTIMATE
    assert row["n"] is pd.NA


def test_two_counts_leave_them_open_too() -> None:
    # 2-step stale, 45 -> 52 of 75 (arXiv 2610.00372): rescue - harm is 7; the 9 and 2 that were seen are one split.
    row = bounds(45, 52, 75).iloc[0]
    assert row[["rescue_low", "rescue_high", "harm_low", "harm_high", "effect"]].tolist() == [7, 30, 0, 23, 7]
    assert (row["n"], row["note"]) == (75, NO_POINT_ESTIMATE)


@pytest.mark.parametrize("arguments", [(0, 0.3), (1, 0.3), (0, 3, 10), (0.4, 1)])
def test_margins_that_leave_nothing_open(arguments: tuple[float, ...]) -> None:
    assert bounds(*arguments)["note"].iloc[0] == FIXED_BY_MARGINS


@pytest.mark.parametrize("arguments", [(60, 70), (-0.1, 0.5), (math.nan, 0.5), (0.6, 0.7, 75), (80, 7, 75), (1, 1, 0)])
def test_what_is_no_rate_and_no_count(arguments: tuple[float, ...]) -> None:
    with pytest.raises(FaultbookError):
        bounds(*arguments)
