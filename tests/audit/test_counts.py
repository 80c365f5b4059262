"""Relations between printed numbers and counts, on small tables: each status, its reason and what it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from faultbook.errors import DataError

Judge = Callable[..., pd.DataFrame]
Find = Callable[..., dict[str, Any]]


# ---- rates ------------------------------------------------------------------------------------------------------

# arXiv 2610.00372: success rates over 75 tasks or 300 episodes.
RATE = """
    a/rate     | {}  | %     | rate
    a/tasks    | 75  | count | count
    a/episodes | 300 | count | count
    a/solved   | {}  | count | count
"""
TASKS, EPISODES, SOLVED = "doc/t/a/tasks", "doc/t/a/episodes", "doc/t/a/solved"


@pytest.mark.parametrize(
    ("rate", "denominators", "status", "reason", "recomputed"),
    [
        ("70.33%", [TASKS, EPISODES], "consistent", "only 211/300 rounds to it", 211 / 300),
        ("73.33%", [TASKS, EPISODES], "ambiguous", "2 counts fit: 55/75, 220/300", None),
        ("73.33%", [TASKS], "consistent", "only 55/75 rounds to it", 55 / 75),
        ("73.3%", [EPISODES, 1000], "ambiguous", "2 counts fit: 220/300, 733/1000", None),
        (
            "70.33%",
            [TASKS],
            "inconsistent",
            "off the grid of 1/75: the nearest are 52/75 = 69.33%, 53/75 = 70.67%",
            None,
        ),
        (
            "70.4%",
            [TASKS, EPISODES],
            "inconsistent",
            "off the grid of 1/75 and 1/300: the nearest are "
            "52/75 = 69.3%, 53/75 = 70.7%, 211/300 = 70.3%, 212/300 = 70.7%",
            None,
        ),
    ],
    ids=["unique", "several", "one denominator", "a plain denominator", "off one grid", "off both grids"],
)
def test_a_rate_lies_on_a_grid(
    judge: Judge, rate: str, denominators: list[Any], status: str, reason: str, recomputed: float | None
) -> None:
    verdicts = judge(RATE.format(rate, 0), kind="rate", value="doc/t/a/rate", denominators=denominators)
    found = verdicts.loc["a/rate"]
    assert (found["status"], found["reason"]) == (status, reason)
    assert found["recomputed"] == pytest.approx(recomputed, nan_ok=True) if recomputed else pd.isna(found["recomputed"])
    assert found["against"] == "; ".join(name for name in denominators if isinstance(name, str))
    assert set(verdicts.drop("a/rate")["status"]) == {"quoted"}


def test_many_counts_are_not_all_listed(judge: Judge) -> None:
    verdicts = judge("a/rate | 50% | % | rate", kind="rate", value="doc/t/a/rate", denominators=[1000])
    found = verdicts.loc["a/rate"]
    assert found["status"] == "ambiguous"
    assert found["reason"].startswith("11 counts fit: 495/1000, 496/1000,")
    assert found["reason"].endswith("502/1000 and 3 more")


def test_a_negative_difference_lies_between_its_neighbours(judge: Judge) -> None:
    verdicts = judge("a/e | −6.60 | pp | difference", kind="rate", value="doc/t/a/e", denominators=[93])
    reason = verdicts.loc["a/e", "reason"].replace("-", "−")
    assert reason == "off the grid of 1/93: the nearest are −7/93 = −7.53, −6/93 = −6.45"
    verdicts = judge("a/e | −6.45 | pp | difference", kind="rate", value="doc/t/a/e", denominators=[93])
    assert verdicts.loc["a/e", "recomputed"] == pytest.approx(-600 / 93)
    assert verdicts.loc["a/e", "reason"].replace("-", "−") == "only −6/93 rounds to it"


WITH_COUNT = {"kind": "rate", "value": "doc/t/a/rate", "numerator": SOLVED, "denominators": [TASKS, EPISODES]}


def test_a_rate_with_its_count_is_computed_from_it_and_the_count_from_the_rate(judge: Judge) -> None:
    verdicts = judge(RATE.format("60.00%", 45), WITH_COUNT)
    rate, solved = verdicts.loc["a/rate"], verdicts.loc["a/solved"]
    assert rate["status"] == solved["status"] == "recomputed"
    assert rate["reason"] == solved["reason"] == "45/75 = 60.00%, 45/300 = 15.00%, printed 60.00%"
    assert (rate["recomputed"], solved["recomputed"]) == (pytest.approx(0.6), 45)
    assert rate["against"] == f"{SOLVED}; {TASKS}"  # not the denominator that does not fit
    assert solved["against"] == "doc/t/a/rate"


def test_a_count_that_the_rate_does_not_fix_is_not_derived_from_it(judge: Judge) -> None:
    verdicts = judge(RATE.format("15%", 45), WITH_COUNT)  # 44, 45 and 46 of 300 print 15 %
    assert verdicts.loc["a/rate", "status"] == "recomputed"
    assert verdicts.loc["a/solved", "status"] == "quoted"


def test_a_rate_that_its_count_does_not_give(judge: Judge) -> None:
    verdicts = judge(RATE.format("61.00%", 45), WITH_COUNT)
    rate = verdicts.loc["a/rate"]
    assert rate["status"] == "inconsistent"
    assert rate["reason"] == "45/75 = 60.00%, 45/300 = 15.00%, printed 61.00%"
    assert rate["recomputed"] == pytest.approx(0.6)
    assert rate["against"] == f"{SOLVED}; {TASKS}; {EPISODES}"
    assert verdicts.loc["a/solved", "status"] == "quoted"


def test_the_denominator_in_the_table_itself_is_a_grid_without_any_relation(judge: Judge) -> None:
    verdicts = judge(
        """
        a/on        | 92.5% | %     | rate         | 200
        a/off       | 92.4% | %     | rate         | 200
        a/several   | 92%   | %     | rate         | 200
        a/effect    | 11.98 | pp    | difference   | 67
        a/bound     | 11.98 | pp    | interval_low | 67
        a/score     | 0.788 | 1     | score        | 67
        a/count     | 31    | count | count        | 36
        """
    )
    assert verdicts["status"].tolist() == [
        "consistent",
        "inconsistent",
        "ambiguous",
        "inconsistent",
        "quoted",
        "quoted",
        "quoted",
    ]
    assert verdicts.loc["a/on", "reason"] == "only 185/200 rounds to it"
    assert verdicts.loc["a/on", "recomputed"] == pytest.approx(0.925)
    assert verdicts.loc["a/effect", "reason"] == "off the grid of 1/67: the nearest are 8/67 = 11.94, 9/67 = 13.43"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"denominators": [0]}, "denominator must be at least 1; found 0"),
        ({"denominators": [-75]}, "denominator must be at least 1; found -75"),
        ({"denominators": [0], "numerator": 3}, "denominator must be at least 1; found 0"),
        ({"denominators": [2.5]}, "must be a whole number; found 2.5"),
        ({"denominators": ["doc/t/a/rate"]}, "must be a whole number; found 0.5"),
        ({"denominators": [75], "numerator": "doc/t/a/rate"}, "must be a whole number; found 0.5"),
    ],
)
def test_a_denominator_that_is_none_is_refused(judge: Judge, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"row relation-1: cannot be evaluated: .*{message}"):
        judge("a/rate | 0.5% | % | rate", kind="rate", value="doc/t/a/rate", **fields)


# ---- effects ----------------------------------------------------------------------------------------------------

EFFECT = "a/e | {} | pp | difference\na/r | {} | count | count\na/h | {} | count | count\na/n | {} | count | count"
EFFECT_OF = {"kind": "effect", "value": "doc/t/a/e", "rescues": "doc/t/a/r", "harms": "doc/t/a/h", "n": "doc/t/a/n"}


@pytest.mark.parametrize(
    ("effect", "rescues", "harms", "n", "exact"),
    [
        ("+11.83", 15, 4, 93, 1100 / 93),
        ("−6.45 pp", 0, 6, 93, -600 / 93),
        ("−3.77 pp", 2, 6, 106, -400 / 106),
        ("0.00 pp", 3, 3, 75, 0),
        ("+3.00 pp", 11, 2, 300, 3),
    ],
)
def test_an_effect_and_its_counts_are_derived_from_each_other(
    judge: Judge, effect: str, rescues: int, harms: int, n: int, exact: float
) -> None:
    verdicts = judge(EFFECT.format(effect, rescues, harms, n), EFFECT_OF)
    assert verdicts["status"].tolist() == ["recomputed"] * 3 + ["quoted"]
    assert verdicts["recomputed"].tolist()[:3] == pytest.approx([exact, rescues, harms])
    assert verdicts.loc["a/e", "against"] == "doc/t/a/r; doc/t/a/h; doc/t/a/n"
    assert verdicts.loc["a/r", "against"] == "doc/t/a/e"
    assert f"/ {n} = {effect}, printed {effect}" in verdicts.loc["a/e", "reason"]


def test_an_effect_that_its_counts_do_not_give(judge: Judge) -> None:
    # arXiv 2610.00372 prints +7.53 beside delay 1, whose counts are 15 rescues and 4 harms of 93.
    verdicts = judge(EFFECT.format("+7.53 pp", 15, 4, 93), EFFECT_OF)
    assert verdicts["status"].tolist() == ["inconsistent", "quoted", "quoted", "quoted"]
    assert verdicts.loc["a/e", "recomputed"] == pytest.approx(1100 / 93)
    assert verdicts.loc["a/e", "reason"] == "(15 rescues − 4 harms) / 93 = +11.83 pp, printed +7.53 pp"


def test_counts_are_derived_back_only_where_one_net_count_fits(judge: Judge) -> None:
    # +3 pp of 300 are 8, 9 or 10 more successes (2.67, 3.00 and 3.33): the rescues may be 10, 11 or 12.
    verdicts = judge(EFFECT.format("+3 pp", 11, 2, 300), EFFECT_OF)
    assert verdicts.loc["a/e", "status"] == "recomputed"
    assert verdicts.loc["a/r", "status"] != "recomputed"
    assert verdicts.loc["a/h", "status"] != "recomputed"


def test_counts_of_an_effect_may_be_plain_numbers(find: Find) -> None:
    found = find("a/e | −0.67 pp | pp | difference", kind="effect", value="doc/t/a/e", rescues=5, harms=7, n=300)
    assert set(found) == {"doc/t/a/e"}
    assert found["doc/t/a/e"].status == "recomputed"
    assert found["doc/t/a/e"].against == ()


def test_an_effect_over_no_tasks_is_refused(judge: Judge) -> None:
    with pytest.raises(DataError, match=r"row relation-1: cannot be evaluated: .*(denominator|at least 1|divi)"):
        judge(EFFECT.format("+3.00", 2, 1, 0), EFFECT_OF)


# ---- two success counts of the same pairs -----------------------------------------------------------------------

MARGINS = {"kind": "paired_margins", "successes_a": "doc/t/a/k", "successes_b": "doc/t/b/k", "n": "doc/t/both/n"}
PAIRS = "a/k | {} | count | count\nb/k | {} | count | count\nboth/n | {} | count | count"


def test_margins_that_show_no_difference_at_any_split(judge: Judge) -> None:
    # Terminal-Bench document: 7 and 10 of the same 21 pairs.
    verdicts = judge(PAIRS.format(7, 10, 21), MARGINS)
    assert verdicts["status"].tolist() == ["ambiguous", "ambiguous", "quoted"]
    assert set(verdicts["reason"][:2]) == {
        "7 and 10 of the same 21 pairs: 8 discordant splits, exact McNemar p 0.250 to 0.629; "
        "a difference is detected at no split (level 0.05)"
    }
    assert verdicts["against"].tolist()[:2] == ["doc/t/b/k; doc/t/both/n", "doc/t/a/k; doc/t/both/n"]


def test_margins_that_show_a_difference_at_some_splits(judge: Judge) -> None:
    # 2 and 10 of 21: only_a = 0, 1, 2 against only_b = 8, 9, 10; p = .0078, .0215, .0386.
    verdicts = judge(PAIRS.format(2, 10, 21), MARGINS)
    assert (
        "3 discordant splits, exact McNemar p 0.008 to 0.039; a difference is detected at 3 of 3 splits"
        in (verdicts.loc["a/k", "reason"])
    )
    strict = judge(PAIRS.format(2, 10, 21), {**MARGINS, "level": 0.01})
    assert "at 1 of 3 splits (level 0.01)" in strict.loc["a/k", "reason"]


def test_margins_that_leave_one_split(judge: Judge) -> None:
    verdicts = judge(PAIRS.format(0, 5, 21), MARGINS)  # no success of A can be shared
    assert verdicts["status"].tolist() == ["consistent", "consistent", "quoted"]
    assert "exact McNemar p 0.062" in verdicts.loc["a/k", "reason"]  # 2 / 2**5


def test_margins_without_a_discordant_pair_have_no_p(judge: Judge) -> None:
    verdicts = judge(PAIRS.format(21, 21, 21), MARGINS)
    assert verdicts.loc["a/k", "status"] == "consistent"
    assert "nan" not in verdicts.loc["a/k", "reason"]


def test_more_successes_than_pairs_are_inconsistent(judge: Judge) -> None:
    verdicts = judge(PAIRS.format(7, 22, 21), MARGINS)
    assert verdicts["status"].tolist() == ["inconsistent", "inconsistent", "quoted"]
    assert verdicts.loc["a/k", "reason"] == "7 and 22 solved of 21 pairs"
    assert verdicts.loc["a/k", "against"] == "doc/t/both/n"


def test_negative_successes_are_refused(judge: Judge) -> None:
    with pytest.raises(
        DataError, match="row relation-1: cannot be evaluated: success counts -1 and 7 must lie between"
    ):
        judge(PAIRS.format("−1", 7, 21), MARGINS)


# ---- McNemar ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "only_a", "only_b", "status", "p"),
    [
        ("1", 2, 3, "recomputed", 1.0),
        (".0312", 0, 6, "recomputed", 0.03125),
        (".0313", 0, 6, "recomputed", 0.03125),  # a tie, rounded up
        (".0654", 9, 2, "recomputed", 0.0654296875),
        (".065", 9, 2, "recomputed", 0.0654296875),
        (".066", 9, 2, "inconsistent", 0.0654296875),
        (".0225", 11, 2, "recomputed", 0.0224609375),
        ("0", 0, 20, "recomputed", 2 / 2**20),
    ],
)
def test_a_printed_p_is_that_of_its_discordant_pairs(
    judge: Judge, printed: str, only_a: int, only_b: int, status: str, p: float
) -> None:
    cells = f"test/p | {printed} | 1 | p\na/n | {only_a} | count | count\nb/n | {only_b} | count | count"
    verdicts = judge(cells, kind="mcnemar", value="doc/t/test/p", only_a="doc/t/a/n", only_b="doc/t/b/n")
    found = verdicts.loc["test/p"]
    assert found["status"] == status
    assert found["recomputed"] == pytest.approx(p, rel=1e-9)
    assert found["reason"] == (
        f"exact McNemar of {only_a} against {only_b} discordant pairs: p = {p:.4f}, printed {printed}"
    )
    assert found["against"] == "doc/t/a/n; doc/t/b/n"


def test_no_discordant_pair_gives_no_p(judge: Judge) -> None:
    verdicts = judge("test/p | 0.000 | 1 | p", kind="mcnemar", value="doc/t/test/p", only_a=0, only_b=0)
    found = verdicts.loc["test/p"]
    assert found["status"] == "inconsistent"
    assert pd.isna(found["recomputed"])
    assert "nan" not in found["reason"]


@pytest.mark.parametrize("count", [-1, 2.5])
def test_discordant_pairs_must_be_counts(judge: Judge, count: float) -> None:
    with pytest.raises(DataError, match=r"row relation-1: cannot be evaluated: .*whole number"):
        judge("test/p | 1.000 | 1 | p", kind="mcnemar", value="doc/t/test/p", only_a=count, only_b=3)


# ---- means of graded scores -------------------------------------------------------------------------------------


def test_a_mean_of_graded_scores_is_no_number_of_incidents(judge: Judge) -> None:
    # ITBench-AA document: 47 % over 59 scenarios and 3 runs each.
    cells = "a/score | 47% | % | score\nall/n | 59 | count | count\nall/repeats | 3 | count | count"
    relation = {"kind": "mean_of_scores", "value": "doc/t/a/score", "n": "doc/t/all/n", "repeats": "doc/t/all/repeats"}
    found = judge(cells, relation).loc["a/score"]
    assert found["status"] == "ambiguous"
    # 177 runs, mean in [.465, .475]: at most .475 * 177 = 84.08 perfect ones; at least .465 * 177 = 82.3 above 0.
    assert found["reason"] == (
        "a mean of graded scores over 59 incidents × 3 runs cannot be turned into a number of incidents solved: "
        "0 to 84 of 177 runs may be perfect, 83 to 177 may score above 0"
    )
    assert found["against"] == "doc/t/all/n; doc/t/all/repeats"
    assert pd.isna(found["recomputed"])
    as_rate = judge(cells.replace("47% | %", "0.47 | 1"), relation).loc["a/score"]
    assert (as_rate["status"], as_rate["reason"]) == (found["status"], found["reason"])


@pytest.mark.parametrize("printed", ["101% | %", "−1% | %", "1.01 | 1", "47 | 1"])
def test_a_mean_outside_the_range_of_scores_is_inconsistent(judge: Judge, printed: str) -> None:
    cells = f"a/score | {printed} | score"
    found = judge(cells, kind="mean_of_scores", value="doc/t/a/score", n=59, repeats=3).loc["a/score"]
    assert found["status"] == "inconsistent"
    assert found["reason"] == f"a mean of scores in [0, 1] cannot be {printed.split(' | ')[0]}"


@pytest.mark.parametrize("printed", ["100% | %", "0% | %", "1.000 | 1"])
def test_a_mean_at_the_end_of_the_range_is_possible(judge: Judge, printed: str) -> None:
    cells = f"a/score | {printed} | score"
    found = judge(cells, kind="mean_of_scores", value="doc/t/a/score", n=59, repeats=3).loc["a/score"]
    assert found["status"] == "ambiguous"


def test_a_mean_over_nothing_is_refused(judge: Judge) -> None:
    with pytest.raises(DataError, match=r"row relation-1: cannot be evaluated: .*at least 1"):
        judge("a/score | 47% | % | score", kind="mean_of_scores", value="doc/t/a/score", n=0, repeats=3)


# ---- what a sample size can show --------------------------------------------------------------------------------

CERTIFY = {"kind": "certify", "events": "doc/t/clean/harms", "n": "doc/t/clean/n", "limit": "doc/t/set/epsilon"}
HARMS = "clean/harms | {} | count | count\nclean/n | {} | count | count\nset/epsilon | {} | setting"


@pytest.mark.parametrize("limit", ["0.02 | 1", "2% | %"])
def test_no_harm_in_75_cannot_certify_2_per_cent(find: Find, limit: str) -> None:
    # arXiv 2610.00372: no clean harm in 75 tasks, limit 2 %; exact bounds 3.92 % and 4.80 %; 149 and 183 tasks needed.
    found = find(HARMS.format(0, 75, limit), **CERTIFY)
    harms, epsilon = found["doc/t/clean/harms"], found["doc/t/set/epsilon"]
    assert harms.status == "ambiguous"
    assert harms.reason == (
        "0 of 75: the exact 95 % upper bound is 3.92 % (one-sided) or 4.80 % (two-sided), so it cannot certify 2 %; "
        "149 (one-sided) or 183 (two-sided) tasks with 0 events would"
    )
    assert harms.against == ("doc/t/set/epsilon", "doc/t/clean/n")
    assert (epsilon.status, epsilon.reason) == (harms.status, harms.reason)
    assert epsilon.against == ("doc/t/clean/harms", "doc/t/clean/n")


@pytest.mark.parametrize(
    ("harms", "n", "shown"), [(0, 148, False), (0, 149, True), (1, 149, False), (1, 236, True), (75, 75, False)]
)
def test_enough_tasks_certify_the_limit(judge: Judge, harms: int, n: int, shown: bool) -> None:
    verdicts = judge(HARMS.format(harms, n, "0.02 | 1"), CERTIFY)
    found = verdicts.loc["clean/harms"]
    assert found["status"] == ("consistent" if shown else "ambiguous")
    assert ("cannot certify" in verdicts.loc["set/epsilon", "reason"]) is not shown


def test_another_level_needs_fewer_tasks(find: Find) -> None:
    # .98 ** n <= .1 from n = 114 on.
    reason = find(HARMS.format(0, 75, "0.02 | 1"), **CERTIFY, level=0.9)["doc/t/clean/harms"].reason
    assert "the exact 90 % upper bound" in reason
    assert "114 (one-sided)" in reason


@pytest.mark.parametrize(
    ("harms", "n", "limit", "message"),
    [(0, 75, "0 | 1", "limit"), (0, 75, "1 | 1", "limit"), (76, 75, "0.02 | 1", "76"), (0, 0, "0.02 | 1", "n")],
)
def test_a_limit_that_no_sample_shows_is_refused(judge: Judge, harms: int, n: int, limit: str, message: str) -> None:
    with pytest.raises(DataError, match=f"row relation-1: cannot be evaluated: .*{message}"):
        judge(HARMS.format(harms, n, limit), CERTIFY)


@pytest.mark.parametrize(
    ("printed", "events", "sides", "status", "words"),
    [
        # Repository of arXiv 2610.00372: 0 of 75, two-sided upper bound 4.7995 %.
        ("4.7995 %", 0, 2, "recomputed", "exact two-sided upper bound of 0 in 75: 4.7995%, printed 4.7995 %"),
        ("4.80 %", 0, 2, "recomputed", "4.80%, printed 4.80 %"),
        ("3.92 %", 0, 1, "recomputed", "exact one-sided upper bound of 0 in 75: 3.92%, printed 3.92 %"),
        ("3.92 %", 0, 2, "inconsistent", "exact two-sided upper bound of 0 in 75: 4.80%, printed 3.92 %"),
        ("4.80 %", 1, 2, "inconsistent", "of 1 in 75: 7.21%, printed 4.80 %"),
    ],
)
def test_an_upper_bound(judge: Judge, printed: str, events: int, sides: int, status: str, words: str) -> None:
    cells = f"b/high | {printed} | % | interval_high\nb/k | {events} | count | count\nb/n | 75 | count | count"
    relation = {"kind": "upper_bound", "value": "doc/t/b/high", "events": "doc/t/b/k", "n": "doc/t/b/n", "sides": sides}
    found = judge(cells, relation).loc["b/high"]
    assert found["status"] == status
    assert words in found["reason"]
    assert found["against"] == "doc/t/b/k; doc/t/b/n"
    # The quantile of the beta distribution: for 1 in 75, see Clopper & Pearson (1934).
    exact = {(0, 2): 1 - 0.025 ** (1 / 75), (0, 1): 1 - 0.05 ** (1 / 75), (1, 2): 0.0721}[events, sides]
    assert found["recomputed"] == pytest.approx(exact, abs=5e-5)


@pytest.mark.parametrize(
    "relation",
    [
        {"kind": "rate", "value": "doc/t/a/x", "denominators": ["doc/t/gone/x"]},
        {"kind": "effect", "value": "doc/t/a/x", "rescues": 3, "harms": "doc/t/gone/x", "n": 75},
        {"kind": "paired_margins", "successes_a": "doc/t/a/x", "successes_b": "doc/t/gone/x", "n": 21},
        {"kind": "mcnemar", "value": "doc/t/a/x", "only_a": "doc/t/gone/x", "only_b": 3},
        {"kind": "mean_of_scores", "value": "doc/t/a/x", "n": "doc/t/gone/x", "repeats": 3},
        {"kind": "certify", "events": "doc/t/a/x", "n": 75, "limit": "doc/t/gone/x"},
        {"kind": "upper_bound", "value": "doc/t/a/x", "events": "doc/t/gone/x", "n": 75},
    ],
    ids=lambda relation: relation["kind"],
)
def test_a_cell_that_is_missing_leaves_the_others_quoted(judge: Judge, relation: dict[str, Any]) -> None:
    verdicts = judge("a/x | 3", relation)
    assert verdicts["status"].tolist() == ["quoted"]
    assert verdicts["reason"].tolist() == ["relation 'relation-1' needs 'doc/t/gone/x', which is not in this table"]
