"""Recomputations from printed numbers alone, on the shipped transcriptions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from faultbook.attribution.reported import adjusted_scores, budgets, filter_tables, printed_shares
from faultbook.audit import read_reported
from faultbook.errors import FaultbookError

REPORTED = Path(__file__).resolve().parents[2] / "data" / "reported"


@pytest.fixture(scope="module")
def table_2() -> pd.DataFrame:
    return read_reported(REPORTED / "mp-bench-table-2.csv")


def test_the_printed_scores_are_rescaled_between_the_printed_random_row_and_one(table_2: pd.DataFrame) -> None:
    frame = adjusted_scores(table_2).set_index("model")
    assert len(frame) == 5
    assert "Random" not in frame.index
    # (0.449 - 0.128) / (1 - 0.128) and (0.788 - 0.315) / (1 - 0.315), document, table 2
    assert frame.loc["GPT-oss-120B", "hand_adjusted"] == pytest.approx(0.321 / 0.872)
    assert frame.loc["Claude-Sonnet-4.5", "auto_adjusted"] == pytest.approx(0.473 / 0.685)


def test_the_full_list_has_its_own_random_row(table_2: pd.DataFrame) -> None:
    assert set(adjusted_scores(table_2, "full")["hand_chance"]) == {0.148}  # document, table 2


@pytest.mark.parametrize(("drop", "says"), [("row", "no row 'Random'"), ("column", "no column hand nDCG@5")])
def test_what_is_missing_is_named(table_2: pd.DataFrame, drop: str, says: str) -> None:
    kept = table_2[table_2[drop] != ("Random" if drop == "row" else "hand nDCG@5")]
    with pytest.raises(FaultbookError, match=says):
        adjusted_scores(kept)


def test_printed_shares_name_their_source_and_add_up() -> None:
    cells = read_reported(REPORTED / "mp-bench-annotation.csv")
    frame = printed_shares(cells, "document")
    assert dict(zip(frame["flagged_by"], frame["share"], strict=True)) == {"all": 0.196, "two": 0.335, "one": 0.469}
    assert set(frame["source"]) == {"document"}
    assert frame["share"].sum() == pytest.approx(1)


def test_combinations_are_held_against_single_models_with_more_samples() -> None:
    frame = budgets(read_reported(REPORTED / "mp-bench-tables-3-4.csv"))
    assert list(frame["split"]) == ["hand"] * 4 + ["auto"] * 4
    assert set(frame["samples"]) == {9}
    best = frame.set_index(["split", "combination"]).loc[("auto", "G-4.1 + G-5.1 + OSS")]
    # document, tables 3 and 4: 0.789 against 0.788 (Sonnet-4.5, N = 3) and 0.802 (N = 7)
    assert best["best_single_3"] == "Sonnet-4.5"
    assert best["over_single_3"] == pytest.approx(0.001)
    assert best["over_single_7"] == pytest.approx(-0.013)


def test_the_printed_agreement_of_the_noise_filter_fixes_one_table() -> None:
    # document, section 4.1.4: 200 single flags, 65.5 % legitimate, 92.5 % equal verdicts, kappa 0.8401
    frame = filter_tables(200, 131, 185, "0.8401")
    assert frame[["legitimate_removed", "noise_kept"]].to_numpy().tolist() == [[13, 2]]
    assert frame["share_removed"].item() == pytest.approx(0.40)  # while 31.6 % is printed for all single flags


def test_a_kappa_that_no_table_gives_leaves_none() -> None:
    assert filter_tables(200, 131, 185, "0.9999").empty


def test_perfect_agreement_has_one_table() -> None:
    frame = filter_tables(10, 4, 10, "1.00")
    assert frame[["legitimate_removed", "noise_kept", "share_removed"]].to_numpy().tolist() == [[0, 0, 0.6]]


@pytest.mark.parametrize("counts", [(0, 0, 0), (10, 11, 5), (10, 5, 11), (10, -1, 5)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(FaultbookError, match="give counts up to"):
        filter_tables(*counts, "0.5")
