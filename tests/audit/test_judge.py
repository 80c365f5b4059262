"""The audit of the repository's own tables: what it must find by itself, and that it computes what it says.

Nothing in the library names these cells; the relations only say which numbers hang together. The cells are those of
the documents named `cir` (a digest of arXiv 2610.00372), `mp-bench`, `itbench-aa` and `terminal-bench`, of the second
reading of arXiv 2610.00372, and of its public repository.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import faultbook.audit
from faultbook.audit import as_json, audit, evaluate, read_relations, read_reported
from faultbook.audit.judge import COLUMNS, CONTEXT

REPORTED = Path(__file__).resolve().parents[2] / "data" / "reported"
STATUSES = {"inconsistent", "recomputed", "ambiguous", "consistent", "quoted"}

STALE = "cir/effects/2-step stale, delay 1"
SECOND = "second reading/effects/2-step stale, delay 1/effect"
SONNET_5 = "mp-bench/reliability-evidence/Claude-Sonnet-4.5 in Table 4/auto nDCG@5"
TAU = "mp-bench/robustness/Kendall tau minimum/auto"
TAU_AGAIN = "mp-bench/robustness-prose/Kendall tau minimum/auto"


def reprinted(reported: pd.DataFrame, changes: dict[str, str]) -> pd.DataFrame:
    """A copy of the changed document's rows in which some cells print something else, as a corrected one would."""
    (document,) = set(reported.loc[reported["id"].isin(changes), "document"])
    copy = reported[reported["document"] == document].copy()
    for cell, printed in changes.items():
        assert (copy["id"] == cell).sum() == 1, cell
        copy.loc[copy["id"] == cell, "printed"] = printed
    return copy


def verdicts_of(reported: pd.DataFrame, relations: Iterable[Any], changes: dict[str, str]) -> pd.DataFrame:
    return audit(reprinted(reported, changes), relations).set_index("id", drop=False)


# ---- the shape of the answer ------------------------------------------------------------------------------------


def test_columns(real_audit: pd.DataFrame) -> None:
    assert COLUMNS == [
        "source",
        "table",
        "row",
        "column",
        "printed",
        "value",
        "recomputed",
        "status",
        "reason",
        "against",
    ]
    assert CONTEXT == ["document", "section", "unit", "kind", "id"]
    assert list(real_audit.columns) == COLUMNS + CONTEXT


def test_every_printed_number_is_judged_once_and_in_order(
    real_reported: pd.DataFrame, real_audit: pd.DataFrame
) -> None:
    numbers = real_reported[real_reported["value"].notna()].reset_index(drop=True)
    assert real_audit["id"].tolist() == numbers["id"].tolist()
    same = ["source", "table", "row", "column", "printed", "value", "document", "section", "unit", "kind"]
    pd.testing.assert_frame_equal(real_audit[same].reset_index(drop=True), numbers[same])


def test_every_number_has_one_of_five_statuses_and_a_reason(real_audit: pd.DataFrame) -> None:
    assert set(real_audit["status"]) == STATUSES
    assert (real_audit["reason"].str.len() > 0).all()
    assert real_audit["against"].notna().all()


def test_what_a_verdict_rests_on_is_in_the_table_and_is_not_the_cell_itself(real_audit: pd.DataFrame) -> None:
    known = set(real_audit["id"])
    for cell, against in real_audit["against"].items():
        named = against.split("; ") if against else []
        assert set(named) <= known
        assert cell not in named
        assert len(named) == len(set(named))
    assert (real_audit.loc[real_audit["status"] == "inconsistent", "against"] != "").any()


def test_a_recomputed_number_rounds_to_what_is_printed(real_audit: pd.DataFrame) -> None:
    recomputed = real_audit[real_audit["status"] == "recomputed"]
    assert recomputed["recomputed"].notna().all()
    # Off by rounding only: less than 2 % of the number, or of one for the small ones.
    error = (recomputed["recomputed"] - recomputed["value"]).abs()
    assert (error <= 0.02 * recomputed["value"].abs().clip(lower=1)).all()


def test_two_audits_are_equal(real_audit: pd.DataFrame) -> None:
    again = audit(read_reported(REPORTED), str(REPORTED / "relations.yaml"))
    pd.testing.assert_frame_equal(again, real_audit.reset_index(drop=True))


def test_the_order_of_relations_changes_no_status(
    real_reported: pd.DataFrame, real_relations: list[Any], real_audit: pd.DataFrame
) -> None:
    backwards = audit(real_reported, reversed(real_relations))
    assert backwards["status"].tolist() == real_audit["status"].tolist()


def test_the_table_is_left_as_it_was(real_reported: pd.DataFrame) -> None:
    assert real_reported.attrs == {"folder": str(REPORTED)}
    pd.testing.assert_frame_equal(real_reported, read_reported(REPORTED))


# ---- what it must find ------------------------------------------------------------------------------------------


def test_the_wrong_delay(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc[f"{STALE}/effect"]
    assert found["status"] == "inconsistent"
    assert SECOND in found["against"].split("; ")
    assert found["recomputed"] == pytest.approx(1100 / 93)
    assert "prints +7.53 pp where second reading/effects/2-step stale, delay 1/effect prints +11.83" in found["reason"]
    assert "+7.53 pp stands there under '2-step stale, delay 0', 'effect'" in found["reason"]
    assert "(15 rescues − 4 harms) / 93 = +11.83 pp" in found["reason"]
    assert real_audit.loc[SECOND, "status"] == "inconsistent"  # the audit does not decide who is right


def test_the_misprinted_bound(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc["second reading/ablation/replanning only/high"]
    assert found["status"] == "inconsistent"
    assert found["printed"] == "11.98"
    assert found["recomputed"] == pytest.approx(800 / 67)
    assert "off the grid of 1/67: the nearest are 8/67 = 11.94" in found["reason"]
    assert "second reading/cohorts/mechanism/of which" in found["against"]


def test_two_scores_of_one_model_in_one_table(real_audit: pd.DataFrame) -> None:
    table_2 = "mp-bench/table-2/Claude-Sonnet-4.5/auto nDCG@5"
    for cell, other, printed in ((table_2, SONNET_5, "0.788"), (SONNET_5, table_2, "0.794")):
        found = real_audit.loc[cell]
        assert (found["status"], found["printed"]) == ("inconsistent", printed)
        assert other in found["against"].split("; ")
    assert "0.794 stands there under 'Claude-Sonnet-4.5', 'auto nDCG@full'" in real_audit.loc[SONNET_5, "reason"]


def test_two_judge_scores_of_one_model(real_audit: pd.DataFrame) -> None:
    table_2 = "mp-bench/table-2/Claude-Sonnet-4.5/hand reasoning"
    table_5 = "mp-bench/robustness/judge score of Sonnet-4.5/hand"
    for cell, other, printed in ((table_2, table_5, "8.09"), (table_5, table_2, "8.16")):
        found = real_audit.loc[cell]
        assert (found["status"], found["printed"]) == ("inconsistent", printed)
        assert other in found["against"].split("; ")


def test_a_mean_score_is_no_number_of_incidents(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc["itbench-aa/introduction/Claude Opus 4.7/score"]
    assert (found["status"], found["printed"]) == ("ambiguous", "47%")
    assert "cannot be turned into a number of incidents solved" in found["reason"]
    assert pd.isna(found["recomputed"])


@pytest.mark.parametrize(
    ("row", "share"),
    [
        ("steps flagged by all three", 0.196),
        ("steps flagged by exactly two", 0.335),
        ("steps flagged by one", 0.469),
    ],
)
def test_the_shares_of_annotators_make_the_whole(real_audit: pd.DataFrame, row: str, share: float) -> None:
    found = real_audit.loc[f"mp-bench/annotation/{row}/value"]
    assert (found["status"], found["recomputed"]) == ("recomputed", pytest.approx(share))
    assert "19.6% + 33.5% + 46.9% = 100, printed 100" in found["reason"]


@pytest.mark.parametrize(("side", "count"), [("low", 2), ("high", 17)])
def test_the_overall_interval_was_clustered(real_audit: pd.DataFrame, side: str, count: int) -> None:
    found = real_audit.loc[f"cir/evaluation/overall/{side}"]
    assert found["status"] == "recomputed"
    assert found["recomputed"] == pytest.approx(100 * count / 300)
    assert "300 independent episodes give [2, 16]" in found["reason"]
    assert "clustered" in found["reason"]
    assert "+2 × 1, +1 × 9, −1 × 2" in found["reason"]


def test_the_sign_flip_p_needs_one_double_rescue(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc["second reading/cir-overall/overall/sign-flip p"]
    assert (found["printed"], found["status"]) == (".034", "recomputed")
    assert found["recomputed"] == pytest.approx(0.0332, abs=5e-5)
    assert "0.0332 for +2 × 1, +1 × 9, −1 × 2" in found["reason"]


def test_no_clean_harm_certifies_nothing(real_audit: pd.DataFrame) -> None:
    harms, epsilon = "second reading/cir-by-condition/clean/harms", "cir/settings/epsilon/value"
    words = ["3.92 % (one-sided)", "4.80 % (two-sided)", "cannot certify 2 %", "149 (one-sided) or 183 (two-sided)"]
    for cell in (harms, epsilon):
        assert [word for word in words if word not in real_audit.loc[cell, "reason"]] == []
    assert real_audit.loc[epsilon, "status"] == "ambiguous"
    assert harms in real_audit.loc[epsilon, "against"].split("; ")


@pytest.mark.parametrize(("arm", "printed"), [("OMK", "7"), ("Terminus-2", "10")])
def test_7_and_10_of_21_show_no_difference_at_any_split(real_audit: pd.DataFrame, arm: str, printed: str) -> None:
    found = real_audit.loc[f"terminal-bench/observations/solved among the same pairs/{arm}"]
    assert (found["printed"], found["status"]) == (printed, "ambiguous")
    assert "a difference is detected at no split" in found["reason"]


def test_no_rankings_of_five_models_give_the_least_tau(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc[TAU]
    assert (found["printed"], found["status"]) == ("0.733", "inconsistent")
    assert found["against"] == "mp-bench/reliability-evidence/LLMs/value"
    # Every tau of two rankings of five, by listing them.
    taus = {
        1 - 2 * sum(a > b for a, b in itertools.combinations(ranking, 2)) / 10
        for ranking in itertools.permutations(range(5))
    }
    assert not any(abs(tau - 0.733) <= 0.0005 for tau in taus)
    assert real_audit.loc["mp-bench/robustness/Kendall tau minimum/hand", "status"] == "consistent"


def test_fifteen_of_sixteen_repository_intervals_are_recomputed(real_audit: pd.DataFrame) -> None:
    bounds = real_audit[(real_audit["table"] == "calibration") & real_audit["kind"].str.startswith("interval")]
    assert Counter(bounds["status"]) == {"recomputed": 30, "consistent": 2}
    assert set(bounds.loc[bounds["status"] == "consistent", "row"]) == {"replan d2 stale"}


def test_other_verdicts_of_the_interval_table(real_audit: pd.DataFrame) -> None:
    status = real_audit["status"]
    assert status["cir/effects/clean, delay 0/low"] == status["cir/effects/clean, delay 0/high"] == "recomputed"
    assert "0 rescues and 6 harms" in real_audit.loc["cir/effects/clean, delay 0/low", "reason"]
    assert status["cir/evaluation/2-step stale/high"] == "recomputed"
    assert "9 rescues and 2 harms" in real_audit.loc["cir/evaluation/2-step stale/high", "reason"]
    assert status["cir/effects/stale minus clean/high"] == "ambiguous"
    assert status["second reading/ablation/content-ablated refresh/high"] == "consistent"
    assert status["cir/overlap/full and ablated refresh/low"] == "recomputed"
    assert status["authors' repository/exact-bound/Clopper-Pearson/high"] == "recomputed"
    assert status["cir/opening/overall/success with"] == "ambiguous"  # 55/75 and 220/300
    assert status["cir/opening/overall/success without"] == "consistent"  # 211/300 only


def test_rounding_is_no_contradiction(real_audit: pd.DataFrame) -> None:
    # 0.1275 in the first version and 0.128 later: one number with fewer decimals.
    for cell in ("mp-bench/table-2/Random/hand nDCG@5", "second-hand/paper-v1-table-2/Random/hand nDCG@5"):
        assert real_audit.loc[cell, "status"] == "consistent"
    assert real_audit.loc["mp-bench/table-2/Random/hand nDCG@5", "printed"] == "0.128"


def test_settings_are_quoted_where_nothing_follows_from_them(real_audit: pd.DataFrame) -> None:
    found = real_audit.loc["cir/settings/alpha/value"]
    assert (found["status"], found["reason"]) == ("quoted", "a chosen setting; nothing printed follows from it")


# ---- verdicts are computed, not looked up -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {SONNET_5: "0.788"},
            {
                SONNET_5: "consistent",
                "mp-bench/table-2/Claude-Sonnet-4.5/auto nDCG@5": "consistent",
                "mp-bench/tables-3-4/best single model/auto": "recomputed",
            },
            id="0.794 mended",
        ),
        pytest.param(
            {SONNET_5: "0.79"},
            {SONNET_5: "consistent", "mp-bench/tables-3-4/Sonnet-4.5/auto N=3": "consistent"},
            id="coarser",
        ),
        pytest.param(
            {"second reading/ablation/replanning only/high": "11.94"},
            {
                "second reading/ablation/replanning only/high": "recomputed",
                "second reading/ablation/replanning only/low": "recomputed",
            },
            id="11.98 mended",
        ),
        pytest.param(
            {f"{STALE}/effect": "+11.83 pp"},
            {
                f"{STALE}/effect": "inconsistent",  # now it contradicts its own interval
                SECOND: "recomputed",
                f"{STALE}/low": "inconsistent",
                "cir/effects/stale minus clean/effect": "inconsistent",
            },
            id="the effect of delay 1 in the row of delay 0",
        ),
        pytest.param({TAU: "0.800", TAU_AGAIN: "0.800"}, {TAU: "consistent"}, id="a possible tau"),
        pytest.param({"mp-bench/reliability-evidence/LLMs/value": "6"}, {TAU: "consistent"}, id="a tau of six models"),
        pytest.param(
            {"cir/evaluation/overall/high": "5.33"},
            {
                "cir/evaluation/overall/high": "ambiguous",
                "second reading/cir-overall/overall/sign-flip p": "inconsistent",
            },
            id="the interval of independent episodes",
        ),
        pytest.param(
            {"second reading/cir-overall/overall/sign-flip p": ".047"},
            {"second reading/cir-overall/overall/sign-flip p": "recomputed"},
            id="the p of two double rescues",
        ),
        pytest.param(
            {"second reading/cir-overall/overall/sign-flip p": ".022"},
            {"second reading/cir-overall/overall/sign-flip p": "inconsistent"},
            id="the p of independent episodes",
        ),
        pytest.param(
            {"mp-bench/annotation/steps flagged by one/value": "47.9%"},
            {
                "mp-bench/annotation/steps flagged by all three/value": "inconsistent",
                "mp-bench/annotation/steps flagged by one/value": "inconsistent",
            },
            id="shares of more than the whole",
        ),
        pytest.param(
            {"cir/baselines/CIR/rescues": "12"},
            {
                "cir/baselines/CIR/rescues": "inconsistent",
                "cir/opening/overall/rescues": "inconsistent",
                "cir/baselines/CIR/change": "inconsistent",
            },
            id="one rescue more",
        ),
        pytest.param(
            {"itbench-aa/title/headline launch score/score": "147%"},
            {"itbench-aa/title/headline launch score/score": "inconsistent"},
            id="a score above 1",
        ),
        pytest.param(
            {"authors' repository/calibration/refresh d0 stale/high": "15"},
            {"authors' repository/calibration/refresh d0 stale/high": "inconsistent"},
            id="another interval of the repository",
        ),
        pytest.param(
            {
                "authors' repository/calibration/replan d2 stale/low": "−8",
                "authors' repository/calibration/replan d2 stale/high": "10",
            },
            {"authors' repository/calibration/replan d2 stale/low": "recomputed"},
            id="the sixteenth interval without noise",
        ),
    ],
)
def test_another_printed_number_gets_another_verdict(
    real_reported: pd.DataFrame,
    real_relations: list[Any],
    real_audit: pd.DataFrame,
    changes: dict[str, str],
    expected: dict[str, str],
) -> None:
    verdicts = verdicts_of(real_reported, real_relations, changes)
    assert {cell: verdicts.loc[cell, "status"] for cell in expected} == expected
    changed = [cell for cell in expected if verdicts.loc[cell, "reason"] != real_audit.loc[cell, "reason"]]
    assert changed, "the change had no effect at all"


def test_more_solved_pairs_show_a_difference_at_some_splits(
    real_reported: pd.DataFrame, real_relations: list[Any]
) -> None:
    solved = "terminal-bench/observations/solved among the same pairs/"
    verdicts = verdicts_of(real_reported, real_relations, {f"{solved}OMK": "3"})
    # 0 to 3 against 7 to 10: p = .0156, .0391, .0654 and .0923.
    assert "a difference is detected at 2 of 4 splits" in verdicts.loc[f"{solved}Terminus-2", "reason"]


def test_a_limit_of_5_per_cent_could_be_certified(real_reported: pd.DataFrame, real_relations: list[Any]) -> None:
    changes = {"cir/settings/epsilon/value": "0.05", "cir/evaluation-prose/epsilon/value": "0.05"}
    found = evaluate(reprinted(real_reported, changes), real_relations)
    certified = [f for f in found if f.relation == "cir-clean-harm-limit" and f.cell.endswith("clean/harms")]
    assert [finding.status for finding in certified] == ["consistent"]
    assert "within 5 %" in certified[0].reason


def test_under_its_own_label_the_stale_effect_contradicts_nothing(
    real_reported: pd.DataFrame, real_relations: list[Any], tmp_path: Path
) -> None:
    mended = real_reported[real_reported["document"] == "cir"].copy()
    old, new = "2-step stale, delay 1", "2-step stale, delay 0"
    rows = (mended["source"] == "cir") & (mended["row"] == old)
    assert rows.sum() == 3
    mended.loc[rows, "row"] = new
    mended.loc[rows, "id"] = mended.loc[rows, "id"].str.replace(old, new)
    text = (REPORTED / "relations.yaml").read_text(encoding="utf-8").replace(f"cir/effects/{old}", f"cir/effects/{new}")
    (tmp_path / "relations.yaml").write_text(text, encoding="utf-8")
    # One relation rests on the shared label "delay 1", which the row then no longer bears.
    relations = [r for r in read_relations(tmp_path / "relations.yaml") if r.id != "cir-delay-1-label"]
    assert len(relations) == len(real_relations) - 1
    verdicts = audit(mended, relations).set_index("id")
    assert verdicts.loc[f"cir/effects/{new}/effect", "status"] == "recomputed"
    assert verdicts.loc[SECOND, "status"] == "recomputed"


# ---- parts of a table, and no relations -------------------------------------------------------------------------


@pytest.mark.parametrize("document", ["cir", "itbench-aa", "mp-bench", "terminal-bench"])
def test_a_document_is_judged_alone_as_among_the_others(
    real_reported: pd.DataFrame, real_audit: pd.DataFrame, document: str
) -> None:
    alone = audit(real_reported[real_reported["document"] == document])
    among = real_audit[real_audit["document"] == document]
    pd.testing.assert_frame_equal(alone.reset_index(drop=True), among.reset_index(drop=True))


def test_a_part_of_a_document_says_what_it_lacks(real_reported: pd.DataFrame) -> None:
    part = real_reported[real_reported["source"] == "cir"]
    verdicts = audit(part).set_index("id")
    assert len(verdicts) == part["value"].notna().sum()
    found = verdicts.loc["cir/effects/clean, delay 0/low"]
    assert found["status"] == "quoted"
    assert found["reason"] == (
        "relation 'cir-clean-interval' needs 'second reading/cohorts/primary/of which', which is not in this table"
    )
    # What needs nothing from elsewhere is judged as before.
    assert verdicts.loc["cir/baselines/CIR/change", "status"] == "recomputed"


def test_one_cell_alone_is_quoted(real_reported: pd.DataFrame) -> None:
    verdicts = audit(real_reported[real_reported["id"] == SONNET_5])
    assert verdicts["status"].tolist() == ["quoted"]


def test_a_table_without_numbers_has_no_verdicts(real_reported: pd.DataFrame) -> None:
    verdicts = audit(real_reported[real_reported["kind"] == "label"])
    assert list(verdicts.columns) == COLUMNS + CONTEXT
    assert verdicts.empty


def test_without_a_folder_only_stated_denominators_are_checked(real_reported: pd.DataFrame) -> None:
    bare = real_reported.copy()
    bare.attrs = {}
    verdicts = audit(bare).set_index("id")
    assert "recomputed" not in set(verdicts["status"])
    found = verdicts.loc["cir/evaluation/overall/success without"]
    assert (found["status"], found["reason"]) == ("consistent", "only 211/300 rounds to it")
    assert verdicts.loc[SONNET_5, "status"] == "quoted"
    checked = verdicts[verdicts["status"] != "quoted"]
    stated = bare.set_index("id").loc[checked.index]
    assert stated["n"].notna().all()
    assert set(stated["unit"]) <= {"%", "pp"}


def test_a_folder_without_relations_is_as_none(real_reported: pd.DataFrame, tmp_path: Path) -> None:
    bare, elsewhere = real_reported.copy(), real_reported.copy()
    bare.attrs, elsewhere.attrs = {}, {"folder": str(tmp_path)}
    pd.testing.assert_frame_equal(audit(bare), audit(elsewhere), check_flags=False)
    pd.testing.assert_frame_equal(audit(bare), audit(real_reported, []), check_flags=False)


def test_the_strongest_finding_leads(
    make_table: Callable[[str], pd.DataFrame], write_relations: Callable[..., Path]
) -> None:
    cells = "a/n | 5 | count | count\nb/m | 5 | count | count\nc/n | 6 | count | count\nd/n | 2 | count | count"
    agrees = {"id": "agrees", "kind": "same", "cells": ["doc/t/a/n", "doc/t/b/m"]}
    derives = {"id": "derives", "kind": "sum", "total": "doc/t/a/n", "parts": ["doc/t/d/n", 3]}
    clashes = {"id": "clashes", "kind": "same", "cells": ["doc/t/a/n", "doc/t/c/n"]}

    def verdict(*relations: dict[str, Any]) -> pd.Series:
        return audit(make_table(cells), write_relations(*relations)).set_index("id").loc["doc/t/a/n"]

    assert verdict(agrees)["status"] == "consistent"
    both = verdict(agrees, derives)
    assert (both["status"], both["reason"], both["against"]) == ("recomputed", "2 + 3 = 5, printed 5", "doc/t/d/n")
    for order in itertools.permutations([agrees, derives, clashes]):
        worst = verdict(*order)
        assert worst["status"] == "inconsistent"
        assert worst["reason"] == "prints 5 where doc/t/c/n prints 6; 2 + 3 = 5, printed 5"
        assert worst["against"] == "doc/t/c/n"
        assert worst["recomputed"] == 5


# ---- for programs -----------------------------------------------------------------------------------------------


def test_an_audit_as_json_holds_every_row_and_no_nan(real_audit: pd.DataFrame) -> None:
    document = json.loads(json.dumps(as_json(real_audit), allow_nan=False))
    assert list(document) == ["rows", "counts"]
    assert [list(row) for row in document["rows"][:2]] == [COLUMNS, COLUMNS]
    assert len(document["rows"]) == len(real_audit)
    assert document["counts"] == dict(Counter(row["status"] for row in document["rows"]))
    by_reason = {
        row["printed"]: row for row in document["rows"] if row["table"] == "ablation" and row["column"] == "high"
    }
    assert by_reason["11.98"]["recomputed"] == pytest.approx(800 / 67)
    assert by_reason["20.90"]["recomputed"] is None


def test_json_names_statuses_that_do_not_occur(real_audit: pd.DataFrame) -> None:
    document = as_json(real_audit[real_audit["status"] == "quoted"].head(2))
    assert document["counts"] == {"inconsistent": 0, "recomputed": 0, "ambiguous": 0, "consistent": 0, "quoted": 2}
    assert as_json(real_audit.head(0))["rows"] == []


# ---- no verdict is written down ---------------------------------------------------------------------------------


def strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value


def test_relations_hold_no_verdict(real_reported: pd.DataFrame) -> None:
    document = yaml.safe_load((REPORTED / "relations.yaml").read_text(encoding="utf-8"))
    cells = set(real_reported["id"]) | set(real_reported["source"] + "/" + real_reported["table"])
    words = (
        r"\b(in)?consistent\b|ambiguous|recomputed?\b|\bquoted\b|off[- ](the )?grid|contradict|mislabel|misprint|typo|"
        r"\bwrong|\berrors?\b|mistake|incorrect|discrepan|differs?\b|disagree|monte.carlo|clustered by"
    )
    told = [
        text
        for relation in document["relations"]
        for text in strings({name: value for name, value in relation.items() if name != "kind"})
        if text not in cells and re.search(words, text, re.IGNORECASE)
    ]
    assert told == []
    assert set(document) == {"relations"}


def test_the_library_names_no_cell_and_no_printed_number(real_reported: pd.DataFrame) -> None:
    files = [file for file in Path(faultbook.audit.__path__[0]).glob("*.py") if file.name != "plot.py"]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    ids = [cell for cell in real_reported["id"] if cell in source]
    labels = {row for row in real_reported["row"] if re.search(r"[A-Z0-9]", row) and len(row) > 3}
    rows = [row for row in labels if row in source]
    # Printed numbers of at least three digits beside the point: 11.98, .034, 0.794.
    texts = {text for text in real_reported["printed"] if re.search(r"\.\d{3}|\d\d\.\d\d", text)}
    printed = [text for text in texts if re.search(rf"(?<![\d.]){re.escape(text)}(?!\d)", source)]
    assert len(files) >= 6
    assert (ids, rows, printed) == ([], [], [])
