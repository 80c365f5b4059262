"""Views of the repository's own audit, and of tables that lack what a view is about."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from faultbook.audit import audit, read_relations, read_reported, views
from faultbook.audit.cells import STATUSES
from faultbook.paths import project_folder

REPORTED = project_folder() / "data" / "reported"


@pytest.fixture(scope="module")
def reported() -> pd.DataFrame:
    return read_reported(REPORTED)


@pytest.fixture(scope="module")
def audited(reported: pd.DataFrame) -> pd.DataFrame:
    return audit(reported)


@pytest.fixture
def bare(reported: pd.DataFrame) -> pd.DataFrame:
    """A few numbers without any relation."""
    part = reported[reported["table"] == "settings"].reset_index(drop=True)
    part.attrs.clear()
    return part


def test_status_counts_count_every_number_once(audited: pd.DataFrame) -> None:
    counts = views.status_counts(audited)
    assert list(counts.columns) == ["document", *STATUSES, "all"]
    assert counts["all"].sum() == len(audited)
    assert (counts[list(STATUSES)].sum(axis=1) == counts["all"]).all()
    assert counts["document"].is_unique


def test_side_by_side_writes_recomputed_values_like_the_printed_ones(audited: pd.DataFrame) -> None:
    shown = views.table_of(audited, "cir", "evaluation").set_index(["row", "column"])
    # 211 of 300 and 220 of 300 (arXiv 2610.00372, evaluation table)
    assert shown.loc[("overall", "success without"), "recomputed"] == "70.33%"
    assert shown.loc[("overall", "change"), "recomputed"] == "+3.00 pp"
    assert shown.loc[("overall", "low"), "difference"] == pytest.approx(2 / 3 - 0.67, abs=1e-6)
    label = (
        views.table_of(audited, "cir", "effects").set_index(["row", "column"]).loc[("2-step stale, delay 1", "effect")]
    )
    assert label["recomputed"] == "+11.83 pp"
    assert label["difference"] == pytest.approx(11.827957 - 7.53, abs=1e-5)


def test_side_by_side_leaves_what_was_not_derived_empty(audited: pd.DataFrame) -> None:
    shown = views.side_by_side(audited)
    without = audited["recomputed"].isna()
    assert (shown.loc[without, "recomputed"] == "").all()
    assert shown.loc[without, "difference"].isna().all()
    assert shown.loc[~without, "recomputed"].ne("").all()


def test_table_of_a_table_that_is_not_there_is_empty(audited: pd.DataFrame) -> None:
    assert views.table_of(audited, "cir", "no such table").empty


def test_printed_table_keeps_shape_labels_and_dashes(reported: pd.DataFrame) -> None:
    matrix = views.printed_table(reported, "mp-bench", "comparison")
    assert list(matrix["row"]) == ["MAST", "Who&When", "TracerTraj", "Aegis", "MP-Bench"]
    assert list(matrix["size"]) == ["1,600", "184", "2,500", "9,500", "289"]
    assert matrix.set_index("row").loc["MP-Bench", "perspective"] == "Multi"
    assert "—" in set(views.printed_table(reported, "mp-bench", "table-2")["hand reasoning"])


def test_findings_are_those_of_a_status_and_document(audited: pd.DataFrame) -> None:
    found = views.findings(audited, "inconsistent", "cir")
    assert set(found["cell"]) == set(audited.query("status == 'inconsistent' and document == 'cir'")["id"])
    assert found["reason"].ne("").all()


def test_contradictions_name_each_disagreement_once(audited: pd.DataFrame) -> None:
    pairs = views.contradictions(audited)
    disagreements = [frozenset(pair) for pair in zip(pairs["printed"], pairs["other_printed"], strict=True)]
    assert len(disagreements) == len(set(disagreements))
    # MP-Bench digest, reliability section: Table 2 against Table 4 and appendix Table 5
    assert frozenset(("0.788", "0.794")) in disagreements
    assert frozenset(("8.09", "8.16")) in disagreements
    assert (pairs["cells"] >= 2).all()
    assert (pairs["value"] != pairs["other_value"]).all()


def test_printed_intervals_give_the_likeliest_counts(reported: pd.DataFrame) -> None:
    intervals = views.printed_intervals(reported).set_index("relation")
    # arXiv 2610.00372: 9 rescues and 2 harms of 75; 10 and 1 of 67; 0 and 6 of 93
    for name, counts in {
        "cir-2-step-interval": (9, 2),
        "cir-full-refresh-interval": (10, 1),
        "cir-clean-interval": (0, 6),
    }.items():
        row = intervals.loc[name]
        assert (row["rescues"], row["harms"]) == counts
        assert row["n_exact"] == 1
        assert row["low"] == pytest.approx(row["exact_low"], abs=0.006)
    assert intervals.loc["cir-stale-interval", "n_exact"] == 3
    assert not intervals.loc["cir-ablated-refresh-interval", "exact"]
    calibration = intervals[intervals["unit"] == "count"]
    assert len(calibration) == 16
    assert calibration["exact"].sum() == 15  # the sixteenth is a Monte-Carlo edge


def test_solved_ranges_leave_the_number_solved_open(reported: pd.DataFrame) -> None:
    ranges = views.solved_ranges(reported).set_index("id")
    row = ranges.loc["itbench-aa/introduction/Claude Opus 4.7/score"]
    # 46.5 % to 47.5 % of 59 × 3 = 177 runs is 82.3 to 84.1
    assert (row["runs"], row["perfect_low"], row["perfect_high"]) == (177, 0, 84)
    assert (row["above_zero_low"], row["above_zero_high"]) == (83, 177)


def test_margin_splits_of_seven_and_ten_in_21(reported: pd.DataFrame) -> None:
    splits = views.margin_splits(reported)
    assert list(splits["only_a"]) == list(range(8))
    assert splits["p"].round(3).tolist() == [0.25, 0.375, 0.453, 0.508, 0.549, 0.581, 0.607, 0.629]


def test_views_of_a_table_without_relations_are_empty_but_have_their_columns(bare: pd.DataFrame) -> None:
    assert {"relation", "effect", "reach_probability"} <= set(views.printed_intervals(bare).columns)
    assert {"runs", "perfect_high"} <= set(views.solved_ranges(bare).columns)
    assert list(views.margin_splits(bare).columns) == ["relation", "only_a", "only_b", "p"]
    assert views.contradictions(audit(bare)).empty


def test_relations_whose_cells_are_missing_are_left_out(reported: pd.DataFrame) -> None:
    relations = read_relations(REPORTED / "relations.yaml")
    part = reported[reported["document"] == "terminal-bench"]
    assert set(views.printed_intervals(part, relations)["relation"]) == {"tb-earlier-interval"}
    assert math.isclose(views.printed_intervals(part, relations)["effect"].iloc[0], -100 / 24)
