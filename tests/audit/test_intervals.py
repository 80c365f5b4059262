"""Printed intervals against the exact bootstrap, on small tables: each status, its reason and what it rests on.

The counts and bounds are those of arXiv 2610.00372, of its public repository or of its second reading, unless a
test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from faultbook.audit import audit, read_relations
from faultbook.errors import DataError

Judge = Callable[..., pd.DataFrame]
Find = Callable[..., dict[str, Any]]

NAMES = {name: f"doc/t/a/{name}" for name in ("effect", "low", "high", "n", "rescues", "harms", "same")}


def table(effect: str = "", low: str = "", high: str = "", unit: str = "pp", **counts: int) -> str:
    """One row: an effect and bounds in `unit`, and counts."""
    lines = [f"a/effect | {effect} | {unit} | difference"] if effect else []
    lines += [f"a/low | {low} | {unit} | interval_low"] if low else []
    lines += [f"a/high | {high} | {unit} | interval_high"] if high else []
    return "\n".join(lines + [f"a/{name} | {count} | count | count" for name, count in counts.items()])


def interval(*fields: str, **others: Any) -> dict[str, Any]:
    named = {"same": "unchanged"}
    return {"kind": "interval", **{named.get(name, name): NAMES[name] for name in fields}, **others}


BY_EFFECT = interval("effect", "low", "high", "n")
BY_COUNTS = interval("low", "high", "n", "rescues", "harms")


# ---- counts found from an effect and its interval ---------------------------------------------------------------


def test_the_only_counts_behind_an_interval(judge: Judge) -> None:
    # CIR under 2-step stale observations: +9.33 [1.33, 17.33] of 75 tasks, which is 9 rescues and 2 harms.
    verdicts = judge(table("+9.33 pp", "1.33", "17.33", n=75), BY_EFFECT)
    assert verdicts["status"].to_dict() == {
        "a/effect": "consistent",  # a solution exists, which derives nothing
        "a/low": "recomputed",
        "a/high": "recomputed",
        "a/n": "quoted",
    }
    assert verdicts["recomputed"].tolist() == pytest.approx(
        [float("nan"), 100 / 75, 1300 / 75, float("nan")], nan_ok=True
    )
    assert set(verdicts["reason"][:3]) == {
        "9 rescues and 2 harms give exactly these bounds (10,000 draws print them with probability 0.62), "
        "and no other counts do"
    }
    assert verdicts.loc["a/low", "against"] == "doc/t/a/effect; doc/t/a/high; doc/t/a/n"
    assert verdicts.loc["a/effect", "against"] == "doc/t/a/low; doc/t/a/high; doc/t/a/n"


def test_one_is_not_several(judge: Judge) -> None:
    # Full refresh at delay 4: +13.43 [4.48, 22.39] of 67.
    verdicts = judge(table("+13.43", "4.48", "22.39", n=67), BY_EFFECT)
    assert verdicts.loc["a/low", "reason"].startswith("10 rescues and 1 harm give exactly these bounds")


def test_several_counts_behind_an_interval(judge: Judge) -> None:
    # 2-step stale, delay 0: +7.53 [-3.23, 18.28] of 93.
    verdicts = judge(table("+7.53", "−3.23", "18.28", n=93), BY_EFFECT)
    assert verdicts["status"].tolist() == ["ambiguous"] * 3 + ["quoted"]
    reason = verdicts.loc["a/low", "reason"]
    assert reason.startswith("3 counts give exactly these bounds: (16, 9) with exact bounds [")
    assert reason.index("(16, 9)") < reason.index("(17, 10)") < reason.index("(18, 11)")
    assert verdicts["recomputed"].isna().all()


def test_a_printed_count_settles_which(judge: Judge) -> None:
    cells = table("+7.53", "−3.23", "18.28", n=93, rescues=17, harms=10)
    verdicts = judge(cells, interval("effect", "low", "high", "n", "rescues", "harms"))
    assert verdicts["status"].to_dict() == {
        "a/effect": "consistent",
        "a/low": "recomputed",
        "a/high": "recomputed",
        "a/n": "quoted",
        "a/rescues": "consistent",
        "a/harms": "consistent",
    }
    # Both counts are printed: that no others would do was not asked.
    assert "no other counts" not in verdicts.loc["a/low", "reason"]
    assert verdicts.loc["a/rescues", "against"] == "doc/t/a/low; doc/t/a/high"
    half = judge(table("+7.53", "−3.23", "18.28", n=93, harms=10), interval("effect", "low", "high", "n", "harms"))
    assert half.loc["a/low", "reason"].startswith("17 rescues and 10 harms give exactly")


def test_tasks_without_a_change_settle_it_too(judge: Judge) -> None:
    # Full minus ablated refresh: +3.08 [-4.62, 10.77] of 65, 59 of which end alike.
    relation = interval("effect", "low", "high", "n", "same")
    verdicts = judge(table("+3.08", "−4.62", "10.77", n=65, same=59), relation)
    assert verdicts.loc["a/low", "status"] == "recomputed"
    assert verdicts.loc["a/same", "status"] == "consistent"
    wrong = judge(table("+3.08", "−4.62", "10.77", n=65, same=55), relation)
    assert wrong.loc["a/low", "status"] == "inconsistent"


def test_a_bound_that_only_a_finite_bootstrap_prints(judge: Judge) -> None:
    # Content-ablated refresh: +10.45 [1.49, 20.90] of 67; (9, 2) gives [1, 13] exactly and [1, 14] now and then.
    verdicts = judge(table("+10.45", "1.49", "20.90", n=67), BY_EFFECT)
    assert verdicts["status"].tolist() == ["consistent"] * 3 + ["quoted"]
    assert verdicts.loc["a/high", "reason"] == (
        "no counts give exactly these bounds; a finite bootstrap may print them from "
        "(9, 2) with exact bounds [1, 13] and reach 0.22"
    )
    assert verdicts["recomputed"].isna().all()


def test_several_counts_that_a_finite_bootstrap_may_print(judge: Judge) -> None:
    # Not published: of 67, an effect of 1 with [-9, 10] lies between the exact [-8, 10] and [-9, 11].
    verdicts = judge(table("+1.49", "−13.43", "14.93", n=67), BY_EFFECT)
    assert verdicts["status"].tolist()[:3] == ["ambiguous"] * 3
    reason = verdicts.loc["a/low", "reason"]
    assert reason.startswith(
        "no counts give exactly these bounds; a finite bootstrap may print them from (12, 11) with"
    )
    assert "(13, 12)" in reason


def test_an_interval_that_no_counts_give(judge: Judge) -> None:
    verdicts = judge(table("+9.33", "8.00", "10.67", n=75), BY_EFFECT)
    assert verdicts["status"].tolist() == ["inconsistent"] * 3 + ["quoted"]
    assert verdicts.loc["a/low", "reason"] == (
        "no rescues and harms give these bounds; the counts that come nearest: (7, 0) with exact bounds [3, 12]"
    )


def test_bounds_in_the_wrong_order_are_inconsistent(judge: Judge) -> None:
    verdicts = judge(table("+9.33", "17.33", "1.33", n=75), BY_EFFECT)
    assert verdicts.loc["a/low", "status"] == "inconsistent"
    assert verdicts.loc["a/high", "status"] == "inconsistent"


def test_the_number_of_draws_is_the_stated_one(judge: Judge) -> None:
    verdicts = judge(table("+9.33", "1.33", "17.33", n=75), {**BY_EFFECT, "n_resamples": 1000})
    assert "(1,000 draws print them with probability 0.47)" in verdicts.loc["a/low", "reason"]


# ---- bounds off the grid ----------------------------------------------------------------------------------------


def test_a_bound_off_the_grid_is_told_what_it_should_be(judge: Judge) -> None:
    # Replanning only: +1.49 [-8.96, 11.98] of 67; 8/67 prints 11.94.
    verdicts = judge(table("+1.49", "−8.96", "11.98", n=67), BY_EFFECT)
    high = verdicts.loc["a/high"]
    assert high["status"] == "inconsistent"
    assert high["recomputed"] == pytest.approx(800 / 67)
    assert high["reason"].startswith("off the grid of 1/67: the nearest are 8/67 = 11.94, 9/67 = 13.43; ")
    assert high["reason"].endswith("which prints 11.94")
    assert "(7, 6)" in high["reason"]
    assert high["against"] == "doc/t/a/n"
    assert verdicts.loc["a/low", "status"] == "recomputed"
    assert verdicts.loc["a/low", "recomputed"] == pytest.approx(-600 / 67)
    assert verdicts.loc["a/effect", "status"] == "consistent"


def test_a_lower_bound_off_the_grid(judge: Judge) -> None:
    verdicts = judge(table("+9.33", "1.50", "17.33", n=75), BY_EFFECT)
    low = verdicts.loc["a/low"]
    assert low["status"] == "inconsistent"
    assert low["reason"].startswith("off the grid of 1/75: the nearest are 1/75 = 1.33, 2/75 = 2.67")


def test_an_effect_off_the_grid_leaves_nothing_to_say_of_its_bounds(judge: Judge) -> None:
    verdicts = judge(table("+9.50", "1.33", "17.33", n=75), BY_EFFECT)
    assert verdicts["status"].tolist() == ["inconsistent", "quoted", "quoted", "quoted"]
    assert verdicts.loc["a/effect", "reason"].startswith("off the grid of 1/75: the nearest are 7/75 = +9.33")


def test_two_bounds_off_the_grid_explain_nothing(judge: Judge) -> None:
    verdicts = judge(table("+9.33", "1.50", "17.50", n=75), BY_EFFECT)
    assert verdicts["status"].tolist()[1:3] == ["inconsistent", "inconsistent"]
    assert verdicts.loc["a/effect", "status"] != "recomputed"
    assert "give exactly these bounds" not in verdicts.loc["a/effect", "reason"]  # there are no bounds to give


# ---- bounds in counts, counts printed ---------------------------------------------------------------------------


def test_printed_counts_give_bounds_in_counts(judge: Judge) -> None:
    # Repository, refresh d0 stale.
    verdicts = judge(table(low="0", high="13", unit="count", n=73, rescues=9, harms=3), BY_COUNTS)
    assert verdicts["status"].to_dict() == {
        "a/low": "recomputed",
        "a/high": "recomputed",
        "a/n": "quoted",
        "a/rescues": "consistent",
        "a/harms": "consistent",
    }
    assert verdicts["recomputed"].tolist()[:2] == [0, 13]


def test_printed_counts_whose_interval_is_a_monte_carlo_edge(judge: Judge) -> None:
    # Repository, replan d2 stale: [-7, 9] is printed, [-8, 10] is exact.
    verdicts = judge(table(low="−7", high="9", unit="count", n=73, rescues=10, harms=9), BY_COUNTS)
    assert verdicts["status"].tolist() == ["consistent", "consistent", "quoted", "consistent", "consistent"]
    reason = verdicts.loc["a/low", "reason"]
    assert reason.startswith("the printed counts do not give exactly these bounds; a finite bootstrap may print them")
    assert reason.endswith("and reach 0.16")


@pytest.mark.parametrize(("low", "high"), [("−9", "9"), ("−7", "11"), ("−4", "6")])
def test_printed_counts_that_do_not_give_the_bounds(judge: Judge, low: str, high: str) -> None:
    verdicts = judge(table(low=low, high=high, unit="count", n=73, rescues=10, harms=9), BY_COUNTS)
    assert verdicts["status"].tolist()[:2] == ["inconsistent"] * 2
    assert "(10, 9)" in verdicts.loc["a/low", "reason"]
    assert verdicts.loc["a/rescues", "status"] == "quoted"


def test_counts_that_contradict_the_effect_are_inconsistent(judge: Judge) -> None:
    cells = table("+9.33", "1.33", "17.33", n=75, rescues=8, harms=2)
    verdicts = judge(cells, interval("effect", "low", "high", "n", "rescues", "harms"))
    assert verdicts["status"].tolist()[:3] == ["inconsistent"] * 3


def test_a_bound_that_is_no_whole_count_is_not_recomputed(judge: Judge) -> None:
    # An interpolated percentile may lie half-way; 9 rescues and 2 harms of 40 give [1, 13], not [2.5, 13].
    verdicts = judge(table(low="2.5", high="13", unit="count", n=40, rescues=9, harms=2), BY_COUNTS)
    assert verdicts.loc["a/low", "status"] == "inconsistent"


@pytest.mark.parametrize(("rescues", "harms"), [(10, 1), (11, 2)])
def test_a_coarsely_printed_bound_stands_for_every_count_that_rounds_to_it(
    judge: Judge, rescues: int, harms: int
) -> None:
    # Of 300: (10, 1) gives [3, 16], (11, 2) gives [2, 16]; 2 and 3 both print 1, and 16 prints 5.
    verdicts = judge(table(low="1", high="5", n=300, rescues=rescues, harms=harms), BY_COUNTS)
    assert verdicts["status"].tolist()[:2] == ["recomputed"] * 2


def test_coarse_bounds_leave_several_counts_open(judge: Judge) -> None:
    verdicts = judge(table("+3.00", "1", "5", n=300), BY_EFFECT)
    assert verdicts.loc["a/low", "status"] == "ambiguous"


def test_bounds_settle_an_effect_of_several_counts(judge: Judge) -> None:
    # +3 of 300 is 8, 9 or 10; of the three, only 9 = 11 - 2 has [2, 16].
    verdicts = judge(table("+3", "0.67", "5.33", n=300), BY_EFFECT)
    assert verdicts.loc["a/low", "status"] == "recomputed"
    assert verdicts.loc["a/low", "reason"].startswith("11 rescues and 2 harms give exactly these bounds")


@pytest.mark.parametrize(
    ("cells", "relation", "message"),
    [
        (table("+9.33", "1.33", "17.33", n=0), BY_EFFECT, "at least 1"),
        (table("+9.33", "1.33", "17.33"), {**BY_EFFECT, "n": 74.5}, "must be a whole number; found 74.5"),
        (table(low="0", high="1", unit="count", n=5), {**BY_COUNTS, "rescues": 7, "harms": 0}, "7 tasks; n is 5"),
    ],
)
def test_an_interval_that_cannot_be_evaluated(judge: Judge, cells: str, relation: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"row relation-1: cannot be evaluated: .*{message}"):
        judge(cells, relation)


# ---- the difference of two effects ------------------------------------------------------------------------------

JOINT = """
    stale/effect | +7.53  | pp | difference
    stale/low    | −3.23  | pp | interval_low
    stale/high   | 18.28  | pp | interval_high
    clean/effect | −6.45  | pp | difference
    clean/low    | −11.83 | pp | interval_low
    clean/high   | −2.15  | pp | interval_high
    minus/effect | +13.98 | pp | difference
    minus/low    | {}     | pp | interval_low
    minus/high   | {}     | pp | interval_high
    all/n        | 93     | count | count
"""


def of_row(row: str) -> dict[str, str]:
    return {name: f"doc/t/{row}/{name}" for name in ("effect", "low", "high")} | {"n": "doc/t/all/n"}


STALE = {"id": "stale", "kind": "interval", **of_row("stale")}
CLEAN = {"id": "clean", "kind": "interval", **of_row("clean")}
MINUS = {"id": "minus", "kind": "interval_of_difference", **of_row("minus"), "first": "stale", "second": "clean"}


def test_a_difference_within_monte_carlo_noise(judge: Judge) -> None:
    verdicts = judge(JOINT.format("2.15", "24.73"), STALE, CLEAN, MINUS)
    assert set(verdicts.loc[["minus/effect", "minus/low", "minus/high"], "status"]) == {"ambiguous"}
    # The six clean harms may fall on stale harms and others: (16, 9), (17, 10) and (18, 11) give six patterns.
    assert verdicts.loc["minus/low", "reason"] == (
        "no joint pattern of the two effects gives exactly these bounds; 6 may print them by Monte-Carlo noise, "
        "the likeliest with probability 0.19"
    )
    assert verdicts.loc["minus/low", "against"] == "doc/t/minus/effect; doc/t/minus/high; doc/t/all/n"


def test_a_difference_that_several_overlaps_give_exactly(judge: Judge) -> None:
    # 13 of 93 with [2, 24]: the exact bounds of these patterns.
    verdicts = judge(JOINT.format("2.15", "25.81"), STALE, CLEAN, MINUS)
    assert verdicts.loc["minus/low", "status"] == "ambiguous"
    assert verdicts.loc["minus/low", "reason"].endswith("joint patterns of the two effects give exactly these bounds")


def test_a_difference_that_one_overlap_gives(judge: Judge) -> None:
    # One rescue of 10 tasks minus one harm of the same 10: on one task (+2) or on two (+1 and +1).
    cells = JOINT.replace("93 ", "10 ")
    cells = cells.replace("+7.53", "+10.0").replace("−3.23", "0.0").replace("18.28", "30.0")
    cells = cells.replace("−6.45", "−10.0").replace("−11.83", "−30.0").replace("−2.15", "0.0")
    verdicts = judge(cells.replace("+13.98", "+20.0").format("0.0", "60.0"), STALE, CLEAN, MINUS)
    assert verdicts.loc["minus/low", "status"] == "consistent"
    # 60 % is [0, 6]: the task with +2 is drawn at most three times in 97.5 % of the resamples.
    assert verdicts.loc["minus/low", "reason"] == "1 joint pattern of the two effects gives exactly these bounds"


def test_a_difference_that_no_overlap_gives(judge: Judge) -> None:
    verdicts = judge(JOINT.format("10.75", "15.05"), STALE, CLEAN, MINUS)
    assert set(verdicts.loc[["minus/effect", "minus/low", "minus/high"], "status"]) == {"inconsistent"}
    assert verdicts.loc["minus/low", "reason"] == (
        "no joint pattern of the two effects gives, or nearly gives, this effect with these bounds"
    )


def test_a_difference_with_a_bound_off_the_grid(judge: Judge) -> None:
    verdicts = judge(JOINT.format("2.15", "24.99"), STALE, CLEAN, MINUS)
    assert verdicts.loc["minus/high", "status"] == "inconsistent"
    assert verdicts.loc["minus/high", "reason"].startswith("off the grid of 1/93: the nearest are 23/93 = 24.73")
    assert verdicts.loc["minus/low", "status"] == "consistent"  # on the grid, no more


def test_a_difference_without_its_intervals_is_refused(judge: Judge) -> None:
    with pytest.raises(DataError, match="row minus"):
        judge(JOINT.format("2.15", "24.73"), STALE, MINUS)


def test_a_difference_whose_intervals_lack_a_cell_is_quoted(judge: Judge) -> None:
    cells = "\n".join(line for line in JOINT.format("2.15", "24.73").splitlines() if "clean/low" not in line)
    verdicts = judge(cells, STALE, CLEAN, MINUS)
    assert verdicts.loc["minus/low", "status"] == "quoted"
    assert verdicts.loc["minus/low", "reason"] == (
        "relation 'minus' needs 'doc/t/clean/low', which is not in this table"
    )


# ---- episodes or tasks? -----------------------------------------------------------------------------------------

CLUSTERED = {
    "kind": "clustered_interval",
    **{name: NAMES[name] for name in ("effect", "low", "high")},
    "tasks": "doc/t/all/tasks",
    "episodes": "doc/t/all/episodes",
    "strata": [[0, 0], [1, 0], ["doc/t/stale/rescues", "doc/t/stale/harms"], [1, 0]],
}
OVERALL = """
    all/tasks     | 75  | count | count
    all/episodes  | 300 | count | count
    stale/rescues | 9   | count | count
    stale/harms   | 2   | count | count
    test/p        | {}  | 1     | p
"""


def overall(low: str, high: str, p: str = ".034") -> str:
    return table("+3.00 pp", low, high) + OVERALL.format(p)


def test_the_overall_interval_was_clustered(judge: Judge) -> None:
    verdicts = judge(overall("0.67", "5.67"), CLUSTERED)
    low, high = verdicts.loc["a/low"], verdicts.loc["a/high"]
    assert low["status"] == high["status"] == "recomputed"
    assert (low["recomputed"], high["recomputed"]) == (pytest.approx(200 / 300), pytest.approx(1700 / 300))
    assert low["reason"] == high["reason"]
    assert low["reason"] == (
        "300 independent episodes give [2, 16]/300 where [2, 17]/300 is printed, so the interval was clustered: "
        "resampling 75 tasks gives it for +2 × 1, +1 × 9, −1 × 2 or +2 × 2, +1 × 7, −1 × 2"
    )
    assert low["against"] == (
        "doc/t/a/effect; doc/t/all/tasks; doc/t/all/episodes; doc/t/stale/rescues; doc/t/stale/harms"
    )
    assert verdicts.loc["test/p", "status"] == "quoted"  # the relation does not name it


def test_an_interval_that_episodes_and_tasks_both_give(judge: Judge) -> None:
    # [2, 16] of 300: eleven rescued and two harmed tasks, each once.
    verdicts = judge(overall("0.67", "5.33"), CLUSTERED)
    assert verdicts.loc["a/low", "status"] == "ambiguous"
    assert verdicts.loc["a/low", "reason"].startswith(
        "300 independent episodes give [2, 16]/300, as printed, and so do"
    )
    assert pd.isna(verdicts.loc["a/low", "recomputed"])


def test_an_interval_of_episodes_only(judge: Judge) -> None:
    # Not published: one task of 2 has both of its rescues, so tasks give [0, 4] and 4 episodes something narrower.
    cells = """
        a/effect | +50.00 | pp | difference
        a/low    | 0.00   | pp | interval_low
        a/high   | 100.00 | pp | interval_high
    """
    relation = {**CLUSTERED, "tasks": 1, "episodes": 2, "strata": [[1, 0], [0, 0]]}
    verdicts = judge(cells, relation)
    # Two episodes, one rescue: the resampled sum is 0, 1 or 2; the one task always carries 1.
    assert verdicts.loc["a/low", "status"] == "recomputed"
    assert verdicts.loc["a/low", "reason"] == (
        "2 independent episodes give [0, 2]/2, as printed: episodes were resampled, not tasks"
    )


def test_an_interval_that_neither_gives(judge: Judge) -> None:
    verdicts = judge(overall("2.00", "4.00"), CLUSTERED)
    assert verdicts.loc["a/low", "status"] == "inconsistent"
    assert verdicts.loc["a/low", "reason"] == (
        "300 independent episodes give [2, 16]/300 where [6, 12]/300 is printed, "
        "and no pattern of 75 tasks gives it either"
    )
    assert pd.isna(verdicts.loc["a/low", "recomputed"])


@pytest.mark.parametrize("bounds", [("1", "5"), ("0.7", "5.3"), ("1", "6")])
def test_a_coarse_clustered_interval_is_no_contradiction(judge: Judge, bounds: tuple[str, str]) -> None:
    # [2, 16] and [2, 17] of 300 with fewer decimals; each printed bound then stands for up to three counts.
    verdicts = judge(overall(*bounds), CLUSTERED)
    assert "inconsistent" not in set(verdicts["status"])


def test_a_clustered_interval_off_the_grid(judge: Judge) -> None:
    verdicts = judge(overall("0.67", "5.50"), CLUSTERED)
    assert verdicts.loc["a/high", "status"] == "inconsistent"
    assert verdicts.loc["a/high", "reason"].startswith("off the grid of 1/300: the nearest are 16/300 = 5.33")
    assert verdicts.loc["a/low", "status"] == "consistent"


@pytest.mark.parametrize(("printed", "status", "p"), [(".034", "recomputed", 0.0332), (".047", "recomputed", 0.0469)])
def test_the_sign_flip_p_tells_the_patterns_apart(judge: Judge, printed: str, status: str, p: float) -> None:
    found = judge(overall("0.67", "5.67", printed), {**CLUSTERED, "p": "doc/t/test/p"}).loc["test/p"]
    assert found["status"] == status
    assert found["recomputed"] == pytest.approx(p, abs=5e-5)
    assert found["reason"] == (
        "exact task-level sign-flip p of the patterns that give the interval: 0.0332 for +2 × 1, +1 × 9, −1 × 2, "
        f"0.0469 for +2 × 2, +1 × 7, −1 × 2; printed {printed}"
    )
    assert found["against"] == "doc/t/a/low; doc/t/a/high"


@pytest.mark.parametrize(
    ("printed", "status"), [(".022", "inconsistent"), (".055", "inconsistent"), (".04", "ambiguous")]
)
def test_a_p_that_none_or_several_patterns_give(judge: Judge, printed: str, status: str) -> None:
    found = judge(overall("0.67", "5.67", printed), {**CLUSTERED, "p": "doc/t/test/p"}).loc["test/p"]
    assert found["status"] == status
    assert pd.isna(found["recomputed"])


def test_a_p_without_a_pattern_is_quoted(judge: Judge) -> None:
    found = judge(overall("2.00", "4.00"), {**CLUSTERED, "p": "doc/t/test/p"}).loc["test/p"]
    assert found["status"] == "quoted"


def test_a_clustered_interval_may_be_a_monte_carlo_edge(judge: Judge) -> None:
    # Repository, replan d2 stale, as one stratum: [-7, 9]/73 is printed with probability .16, [-8, 10] is exact.
    cells = table("+1.37", "−9.59", "12.33") + "\nall/tasks | 73 | count | count\nall/episodes | 73 | count | count"
    verdicts = judge(cells, {**CLUSTERED, "strata": [[10, 9]]})
    assert verdicts.loc["a/low", "status"] != "inconsistent"


def test_strata_without_any_change(judge: Judge) -> None:
    cells = table("0.00", "0.00", "0.00") + "\nall/tasks | 75 | count | count\nall/episodes | 300 | count | count"
    verdicts = judge(cells, {**CLUSTERED, "strata": [[0, 0], [0, 0], [0, 0], [0, 0]]})
    assert verdicts.loc["a/low", "status"] == "ambiguous"  # episodes and tasks alike give [0, 0]


def test_a_rescue_and_a_harm_that_may_meet_on_one_task(judge: Judge) -> None:
    cells = table("0.00", "−1.00", "1.00") + "\nall/tasks | 75 | count | count\nall/episodes | 300 | count | count"
    verdicts = judge(cells, {**CLUSTERED, "strata": [[1, 0], [0, 1]]})
    # Where the two are apart, the sum is at most −3 in 3.7 % of the resamples (nearly Skellam); together they give 0.
    assert verdicts.loc["a/low", "status"] == "ambiguous"
    assert "episodes give [-3, 3]/300, as printed" in verdicts.loc["a/low", "reason"].replace("−", "-")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strata": [[70, 6]]}, "70 rescues and 6 harms do not fit into 75 tasks"),
        ({"episodes": 10}, "does not fit into 10 units"),
        ({"episodes": 0}, "at least 1"),
    ],
)
def test_strata_that_do_not_fit_are_refused(judge: Judge, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"row relation-1: cannot be evaluated: .*{message}"):
        judge(overall("0.00", "10.00"), {**CLUSTERED, **changed})


@pytest.mark.parametrize("relation", [BY_EFFECT, CLUSTERED], ids=lambda relation: relation["kind"])
def test_a_cell_that_is_missing_leaves_the_others_quoted(judge: Judge, relation: dict[str, Any]) -> None:
    verdicts = judge(table("+3.00", "0.67"), relation)
    assert verdicts["status"].tolist() == ["quoted", "quoted"]
    assert set(verdicts["reason"].str.partition(" needs ")[0]) == {"relation 'relation-1'"}


def test_the_evidence_for_an_interval_does_not_depend_on_the_order_of_relations(
    make_table: Callable[[str], pd.DataFrame], write_relations: Callable[..., Any]
) -> None:
    frame = make_table(JOINT.format("2.15", "24.73"))
    relations = read_relations(write_relations(STALE, CLEAN, MINUS))
    pd.testing.assert_frame_equal(audit(frame, relations), audit(frame, relations[::-1]))
