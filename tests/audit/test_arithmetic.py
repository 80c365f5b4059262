"""Relations of plain arithmetic, on small tables: each status with its reason and what it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from faultbook.errors import DataError

Judge = Callable[..., pd.DataFrame]
Find = Callable[..., dict[str, Any]]


def ids(*names: str) -> list[str]:
    return [f"doc/t/{name}" for name in names]


# ---- the same number several times ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("0.788", "0.788", True),
        ("0.788", "0.79", True),
        ("0.788", "0.78", False),
        ("0.1275", "0.128", True),  # a tie, rounded up
        ("0.1275", "0.127", True),  # or down
        ("0.1274", "0.128", False),
        ("0.12744", "0.1275", False),
        ("8.09", "8.16", False),
        ("8.1", "8.16", False),
        ("8.1", "8.15", True),
        ("−6.45", "-6.45", True),
        ("−6.45", "6.45", False),
        ("+3.00", "3", True),
    ],
)
def test_two_prints_agree_if_some_value_rounds_to_both(judge: Judge, first: str, second: str, agree: bool) -> None:
    verdicts = judge(f"a/x | {first}\nb/x | {second}", kind="same", cells=ids("a/x", "b/x"))
    assert verdicts["status"].tolist() == (["consistent"] * 2 if agree else ["inconsistent"] * 2)
    assert verdicts["against"].tolist() == ids("b/x", "a/x")
    if agree:
        assert set(verdicts["reason"]) == {"printed 2 times, always alike"}
    else:
        assert verdicts["reason"].tolist() == [
            f"prints {first} where doc/t/b/x prints {second}",
            f"prints {second} where doc/t/a/x prints {first}",
        ]
    assert verdicts["recomputed"].isna().all()


def test_counts_are_exact_where_measures_are_rounded(judge: Judge) -> None:
    counts = "a/x | 126 | count | count\nb/x | 126 | count | count\nc/x | 120 | count | count"
    verdicts = judge(counts, kind="same", cells=ids("a/x", "b/x", "c/x"))
    assert verdicts["status"].tolist() == ["inconsistent"] * 3
    assert verdicts.loc["a/x", "against"] == "doc/t/c/x"
    assert verdicts.loc["c/x", "against"] == "doc/t/a/x; doc/t/b/x"
    rounded = judge("a/x | 33 | steps | quantity\nb/x | 33.4 | steps | quantity", kind="same", cells=ids("a/x", "b/x"))
    assert rounded["status"].tolist() == ["consistent"] * 2
    exact = judge("a/x | 33 | count | count\nb/x | 33.4 | steps | quantity", kind="same", cells=ids("a/x", "b/x"))
    assert exact["status"].tolist() == ["inconsistent"] * 2
    settings = judge("a/x | 0.8 | 1 | setting\nb/x | 0.76 | 1 | setting", kind="same", cells=ids("a/x", "b/x"))
    assert settings["status"].tolist() == ["inconsistent"] * 2


def test_only_the_odd_one_out_clashes_with_all(judge: Judge) -> None:
    cells = "a/x | 0.788\nb/x | 0.794\nc/x | 0.788\nd/x | 0.79"
    verdicts = judge(cells, kind="same", cells=ids("a/x", "b/x", "c/x", "d/x"))
    # 0.79 may stand for either, and so contradicts neither.
    assert verdicts["status"].tolist() == ["inconsistent", "inconsistent", "inconsistent", "consistent"]
    assert verdicts.loc["b/x", "against"] == "doc/t/a/x; doc/t/c/x"
    assert verdicts.loc["d/x", "reason"] == "printed 4 times, always alike"
    assert verdicts.loc["d/x", "against"] == "doc/t/a/x; doc/t/b/x; doc/t/c/x"


def test_a_rate_and_the_same_rate_in_per_cent_agree(judge: Judge) -> None:
    verdicts = judge("a/x | 2% | % | setting\nb/x | 0.02 | 1 | setting", kind="same", cells=ids("a/x", "b/x"))
    assert verdicts["status"].tolist() == ["consistent"] * 2


def test_the_label_under_which_a_number_stands_in_the_other_table_is_named(judge: Judge) -> None:
    cells = """
        one/delay 1/effect  | +7.53 pp | pp | difference
        two/delay 0/effect  | +7.53    | pp | difference
        two/delay 0/other   | +9.00    | pp | difference
        two/delay 1/effect  | +11.83   | pp | difference
        two/delay 1/share   | 7.53     | %  | rate
        two/delay 2/other   | 7.53     | pp | difference
    """
    verdicts = judge(cells, kind="same_label", tables=["doc/one", "doc/two"], columns=["effect"])
    one = verdicts.loc["one/delay 1/effect"]
    # Not the share (another unit), nor the cell that shares neither row nor column.
    assert one["reason"] == (
        "prints +7.53 pp where doc/two/delay 1/effect prints +11.83; +7.53 pp stands there under 'delay 0', 'effect'"
    )
    assert one["status"] == "inconsistent"
    assert one["against"] == "doc/two/delay 1/effect"
    assert verdicts.loc["two/delay 1/effect", "reason"] == "prints +11.83 where doc/one/delay 1/effect prints +7.53 pp"
    assert verdicts.loc["two/delay 0/effect", "status"] == "quoted"


def test_labels_match_whatever_their_case_and_only_across_what_is_asked(judge: Judge) -> None:
    cells = """
        one/GPT-4.1/Hand | 0.445
        two/gpt-4.1/hand | 0.431
        one/GPT-4.1/auto | 0.679
        two/GPT-4.1/auto | 0.1
        one/Random/hand  | 0.128
        two/Random/hand  | 0.2
        one/only/hand    | 0.3
    """
    tables = ["doc/one", "doc/two"]
    status = judge(cells, kind="same_label", tables=tables)["status"]
    assert status.tolist() == ["inconsistent"] * 6 + ["quoted"]
    status = judge(cells, kind="same_label", tables=tables, columns=["hand", "Hand"])["status"]
    assert status.tolist() == [
        "inconsistent",
        "inconsistent",
        "quoted",
        "quoted",
        "inconsistent",
        "inconsistent",
        "quoted",
    ]
    status = judge(cells, kind="same_label", tables=tables, rows=["Random"])["status"]
    assert status.tolist() == ["quoted"] * 4 + ["inconsistent"] * 2 + ["quoted"]


# ---- sums and differences ---------------------------------------------------------------------------------------

FLAGS = """
    all/share   | {} | % | rate
    two/share   | {} | % | rate
    one/share   | {} | % | rate
"""


def test_every_term_of_a_sum_is_derived_from_the_others(judge: Judge) -> None:
    # MP-Bench document, annotation table: shares of steps flagged by three, two and one annotators.
    cells = FLAGS.format("19.6%", "33.5%", "46.9%")
    verdicts = judge(cells, kind="sum", total=100, parts=ids("all/share", "two/share", "one/share"))
    assert verdicts["status"].tolist() == ["recomputed"] * 3
    assert verdicts["recomputed"].tolist() == pytest.approx([0.196, 0.335, 0.469])
    assert set(verdicts["reason"]) == {"19.6% + 33.5% + 46.9% = 100, printed 100"}
    assert verdicts.loc["two/share", "against"] == "doc/t/all/share; doc/t/one/share"


def test_shares_may_miss_the_total_by_their_rounding_only(judge: Judge) -> None:
    def status(*shares: str) -> set[str]:
        relation = {"kind": "sum", "total": 100, "parts": ids("all/share", "two/share", "one/share")}
        return set(judge(FLAGS.format(*shares), relation)["status"])

    assert status("19.6%", "33.5%", "46.8%") == {"recomputed"}  # 99.9: three roundings of .05 at most
    assert status("19.7%", "33.5%", "46.95%") == {"inconsistent"}  # 100.15 with roundings of .105
    assert status("19.6%", "33.5%", "47.0%") == {"recomputed"}  # 100.1
    assert status("19.6%", "33.5%", "47.1%") == {"inconsistent"}  # 100.2


def test_a_sum_that_does_not_hold_says_what_each_term_should_be(judge: Judge) -> None:
    cells = "all/n | 48 | count | count\ndone/n | 43 | count | count\nleft/n | 6 | count | count"
    verdicts = judge(cells, kind="sum", total="doc/t/all/n", parts=ids("done/n", "left/n"))
    assert verdicts["status"].tolist() == ["inconsistent"] * 3
    assert verdicts["recomputed"].tolist() == [49, 42, 5]
    assert set(verdicts["reason"]) == {"43 + 6 = 49, printed 48"}
    assert verdicts["against"].tolist() == [
        "doc/t/done/n; doc/t/left/n",
        "doc/t/all/n; doc/t/left/n",
        "doc/t/all/n; doc/t/done/n",
    ]


def test_parts_may_be_taken_away_and_totals_may_be_negative(judge: Judge) -> None:
    cells = "net/n | −3 | count | count\ngain/n | 2 | count | count\nloss/n | 5 | count | count"
    verdicts = judge(cells, kind="sum", total="doc/t/net/n", parts=ids("gain/n"), less=ids("loss/n"))
    assert verdicts["status"].tolist() == ["recomputed"] * 3
    assert verdicts["recomputed"].tolist() == [-3, 2, 5]
    assert set(verdicts["reason"]) == {"2 − 5 = −3, printed −3"}
    wrong = judge(cells.replace("−3", "3"), kind="sum", total="doc/t/net/n", parts=ids("gain/n"), less=ids("loss/n"))
    assert wrong["status"].tolist() == ["inconsistent"] * 3
    assert wrong["recomputed"].tolist() == [-3, 8, -1]


def test_a_difference_writes_negative_numbers_in_brackets(judge: Judge) -> None:
    # arXiv 2610.00372: the effect under stale observations minus the one under clean ones.
    cells = "s/e | +7.53 pp | pp | difference\nc/e | −6.45 pp | pp | difference\nd/e | +13.98 pp | pp | difference"
    relation = {"kind": "difference", "value": "doc/t/d/e", "minuend": "doc/t/s/e", "subtrahend": "doc/t/c/e"}
    verdicts = judge(cells, relation)
    assert verdicts["status"].tolist() == ["recomputed"] * 3
    assert verdicts["recomputed"].tolist() == pytest.approx([7.53, -6.45, 13.98])
    assert verdicts.loc["d/e", "reason"] == "+7.53 pp − (−6.45 pp) = +13.98 pp, printed +13.98 pp"
    assert judge(cells.replace("13.98", "13.99"), relation)["status"].tolist() == ["recomputed"] * 3  # .01 is rounding
    assert judge(cells.replace("13.98", "14.00"), relation)["status"].tolist() == ["inconsistent"] * 3  # .02 is not


def test_plain_numbers_are_exact_and_get_no_verdict(judge: Judge) -> None:
    verdicts = judge("a/n | 7.5", kind="difference", value="doc/t/a/n", minuend=10, subtrahend=2.5)
    assert verdicts["reason"].tolist() == ["10 − 2.5 = 7.5, printed 7.5"]
    assert verdicts["against"].tolist() == [""]
    assert verdicts["status"].tolist() == ["recomputed"]


def test_large_plain_numbers_are_written_in_full(judge: Judge) -> None:
    verdicts = judge("a/n | 2,000,003 | count | count", kind="sum", total="doc/t/a/n", parts=[1000001, 1000002])
    assert verdicts["status"].tolist() == ["recomputed"]
    assert "1000001" in verdicts["reason"].iloc[0].replace(",", "")


# ---- products, pairs, ratios ------------------------------------------------------------------------------------


def test_every_factor_is_derived_from_the_product(judge: Judge) -> None:
    cells = "all/n | {} | count | count\ntasks/n | 59 | count | count\nrepeats/n | 3 | count | count"
    relation = {"kind": "product", "total": "doc/t/all/n", "factors": ids("tasks/n", "repeats/n")}
    verdicts = judge(cells.format(177), relation)
    assert verdicts["status"].tolist() == ["recomputed"] * 3
    assert verdicts["recomputed"].tolist() == [177, 59, 3]
    assert set(verdicts["reason"]) == {"59 × 3 = 177, printed 177"}
    wrong = judge(cells.format(180), relation)
    assert wrong["status"].tolist() == ["inconsistent"] * 3
    assert wrong["recomputed"].tolist() == [177, 60, pytest.approx(180 / 59)]
    assert wrong.loc["tasks/n", "against"] == "doc/t/all/n; doc/t/repeats/n"


def test_a_rounded_factor_leaves_the_product_room(judge: Judge) -> None:
    relation = {"kind": "product", "total": "doc/t/all/x", "factors": ["doc/t/each/x", 3]}
    assert set(judge("all/x | 10.1 | s | quantity\neach/x | 3.4 | s | quantity", relation)["status"]) == {"recomputed"}
    assert set(judge("all/x | 10.5 | s | quantity\neach/x | 3.4 | s | quantity", relation)["status"]) == {
        "inconsistent"
    }


def test_a_product_of_0_holds(judge: Judge) -> None:
    cells = "all/n | 0 | count | count\nfew/n | 0 | count | count\nmany/n | 75 | count | count"
    verdicts = judge(cells, kind="product", total="doc/t/all/n", factors=ids("few/n", "many/n"))
    assert verdicts.loc["all/n", "status"] == "recomputed"
    assert "inconsistent" not in set(verdicts["status"])


@pytest.mark.parametrize(("pairs", "status"), [("36", "recomputed"), ("35", "inconsistent"), ("81", "inconsistent")])
def test_pairs_of_items(judge: Judge, pairs: str, status: str) -> None:
    cells = f"grid/pairs | {pairs} | count | count\ngrid/items | 9 | count | count"
    verdicts = judge(cells, kind="pairs_of", total="doc/t/grid/pairs", items="doc/t/grid/items")
    found = verdicts.loc["grid/pairs"]
    assert (found["status"], found["recomputed"]) == (status, 36)
    assert found["reason"] == f"9 items make 36 pairs, printed {pairs}"
    assert found["against"] == "doc/t/grid/items"
    assert verdicts.loc["grid/items", "status"] == "quoted"


@pytest.mark.parametrize("items", [2.5, "doc/t/grid/pairs"])
def test_items_must_be_whole(judge: Judge, items: float | str) -> None:
    with pytest.raises(DataError, match=r"relation-1: cannot be evaluated: .*must be a whole number; found"):
        judge("grid/pairs | 36.5", kind="pairs_of", total="doc/t/grid/pairs", items=items)


RATIO = {"kind": "ratio", "value": "doc/t/a/share", "numerator": "doc/t/a/k", "denominator": "doc/t/a/n"}


@pytest.mark.parametrize(
    ("share", "unit", "status", "reason"),
    [
        ("14.7%", "%", "recomputed", "11 / 75 = 14.7%, printed 14.7%"),
        ("14.6%", "%", "inconsistent", "11 / 75 = 14.7%, printed 14.6%"),
        ("0.147", "1", "recomputed", "11 / 75 = 0.147, printed 0.147"),
        ("0.15", "1", "recomputed", "11 / 75 = 0.15, printed 0.15"),
        ("0.1465", "1", "inconsistent", "11 / 75 = 0.1467, printed 0.1465"),
    ],
)
def test_a_ratio_is_scaled_to_per_cent_where_it_is_printed_so(
    judge: Judge, share: str, unit: str, status: str, reason: str
) -> None:
    verdicts = judge(f"a/share | {share} | {unit} | rate\na/k | 11 | count | count\na/n | 75 | count | count", RATIO)
    assert verdicts["status"].tolist() == [status] * 3
    assert set(verdicts["reason"]) == {reason}
    assert verdicts.loc["a/share", "recomputed"] == pytest.approx(11 / 75)
    printed = float(share.removesuffix("%")) / (100 if unit == "%" else 1)
    assert verdicts.loc["a/k", "recomputed"] == pytest.approx(75 * printed)
    # The middle of what the rounded share allows, which is not quite 11 / share.
    assert verdicts.loc["a/n", "recomputed"] == pytest.approx(11 / printed, rel=0.01)


def test_a_divisor_of_0_is_refused(judge: Judge) -> None:
    cells = "a/share | 14.7% | % | rate\na/k | 11 | count | count\na/n | 0 | count | count"
    with pytest.raises(DataError, match="row relation-1: cannot be evaluated: the divisor may be 0"):
        judge(cells, RATIO)


def test_none_of_75_is_a_ratio_too(judge: Judge) -> None:
    cells = "a/share | 0.0% | % | rate\na/k | 0 | count | count\na/n | 75 | count | count"
    verdicts = judge(cells, RATIO)
    assert verdicts.loc["a/share", "status"] == "recomputed"


# ---- extremes ---------------------------------------------------------------------------------------------------

MODELS = "m/one | 0.317\nm/two | 0.449\nm/three | 0.432\nbest/x | {}"


@pytest.mark.parametrize(
    ("which", "printed", "status", "extreme", "label"),
    [
        ("greatest", "0.449", "recomputed", "0.449", "two"),
        ("greatest", "0.45", "recomputed", "0.449", "two"),
        ("greatest", "0.432", "inconsistent", "0.449", "two"),
        ("least", "0.317", "recomputed", "0.317", "one"),
        ("least", "0.31", "inconsistent", "0.317", "one"),
    ],
)
def test_an_extreme_is_found_among_the_others(
    find: Find, which: str, printed: str, status: str, extreme: str, label: str
) -> None:
    found = find(
        MODELS.format(printed), kind="extreme", value="doc/t/best/x", which=which, of=ids("m/one", "m/two", "m/three")
    )
    assert set(found) == {"doc/t/best/x"}
    best = found["doc/t/best/x"]
    assert (best.status, best.recomputed) == (status, float(extreme))
    assert best.reason == f"the {which} of 3 is {extreme} ('m'), printed {printed}"
    assert best.against == (f"doc/t/m/{label}",)


def test_an_extreme_in_per_cent_is_recomputed_as_a_rate(judge: Judge) -> None:
    cells = "a/x | 47% | % | score\nb/x | 42% | % | score\nbest/x | 47% | % | score"
    verdicts = judge(cells, kind="extreme", value="doc/t/best/x", which="greatest", of=ids("a/x", "b/x"))
    assert verdicts.loc["best/x", "recomputed"] == pytest.approx(0.47)


# ---- Kendall's tau ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tau", "items", "discordant", "pairs"),
    [
        ("1.00", 5, 0, 10),
        ("0.600", 5, 2, 10),
        ("0.800", 5, 1, 10),
        ("−1.00", 5, 10, 10),
        ("0.733", 6, 2, 15),
        ("0.333", 3, 1, 3),
        ("0.3", 3, 1, 3),
        ("0.0", 5, 5, 10),
    ],
)
def test_a_tau_that_two_rankings_give(judge: Judge, tau: str, items: int, discordant: int, pairs: int) -> None:
    verdicts = judge(
        f"t/min | {tau} | 1 | statistic\nm/n | {items} | count | count",
        kind="kendall_tau",
        value="doc/t/t/min",
        items="doc/t/m/n",
    )
    found = verdicts.loc["t/min"]
    assert found["status"] == "consistent"
    assert found["recomputed"] == pytest.approx(1 - 2 * discordant / pairs)
    assert found["reason"] == f"rankings of {items} items with {discordant} of {pairs} pairs discordant give it"
    assert found["against"] == "doc/t/m/n"


def test_a_tau_that_no_two_rankings_give(judge: Judge) -> None:
    # MP-Bench document, appendix C.1: a minimum of 0.733 over rankings of the five models of Table 2.
    verdicts = judge("t/min | 0.733 | 1 | statistic", kind="kendall_tau", value="doc/t/t/min", items=5)
    found = verdicts.loc["t/min"]
    assert found["status"] == "inconsistent"
    assert found["reason"] == (
        "no two rankings of 5 items without ties give 0.733; the nearest are 0.800 and 0.600, "
        "while 6, 10 items could give it"
    )
    assert pd.isna(found["recomputed"])


def test_a_tau_that_no_number_of_items_gives(judge: Judge) -> None:
    verdicts = judge("t/min | 1.200 | 1 | statistic", kind="kendall_tau", value="doc/t/t/min", items=3)
    assert verdicts.loc["t/min", "status"] == "inconsistent"
    assert "could give it" not in verdicts.loc["t/min", "reason"]


def test_a_tau_of_one_item_is_refused(judge: Judge) -> None:
    with pytest.raises(DataError, match=r"row relation-1: cannot be evaluated: .*item"):
        judge("t/min | 1.00 | 1 | statistic", kind="kendall_tau", value="doc/t/t/min", items=1)


# ---- cells that are not there -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation",
    [
        {"kind": "same", "cells": ids("a/x", "gone/x")},
        {"kind": "sum", "total": 7, "parts": ids("a/x", "gone/x")},
        {"kind": "sum", "total": "doc/t/gone/x", "parts": ids("a/x")},
        {"kind": "difference", "value": "doc/t/a/x", "minuend": "doc/t/gone/x", "subtrahend": 1},
        {"kind": "product", "total": "doc/t/a/x", "factors": ["doc/t/gone/x", 2]},
        {"kind": "pairs_of", "total": "doc/t/a/x", "items": "doc/t/gone/x"},
        {"kind": "extreme", "value": "doc/t/a/x", "which": "least", "of": ids("gone/x")},
        {"kind": "kendall_tau", "value": "doc/t/a/x", "items": "doc/t/gone/x"},
        {"kind": "ratio", "value": "doc/t/a/x", "numerator": "doc/t/gone/x", "denominator": 2},
    ],
    ids=lambda relation: relation["kind"],
)
def test_a_cell_that_is_missing_leaves_the_others_quoted(find: Find, judge: Judge, relation: dict[str, Any]) -> None:
    reason = "relation 'relation-1' needs 'doc/t/gone/x', which is not in this table"
    found = find("a/x | 3\nother/x | 4\ngone/x | —", **relation)
    assert set(found) == {"doc/t/a/x"}
    assert (found["doc/t/a/x"].status, found["doc/t/a/x"].reason) == ("quoted", reason)
    verdicts = judge("a/x | 3\nother/x | 4", relation)
    assert verdicts["status"].tolist() == ["quoted", "quoted"]
    assert verdicts.loc["other/x", "reason"] == "a score; the runs behind it are not printed"
    # ... and says which cell it lacks, rather than that nothing bears on it.
    assert verdicts.loc["a/x", "reason"] == reason
