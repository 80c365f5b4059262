"""Counts of rescues and harms behind the printed effects of arXiv 2610.00372, from the shipped cells alone.

Expected counts and exact p are those of an arithmetic audit of the printed numbers by exact convolution; the counts
marked "stated" are printed in a second reading of the paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.audit import read_reported
from faultbook.errors import FaultbookError
from faultbook.recovery.reported import COLUMNS, reconstruct_effects

REPORTED = Path(__file__).resolve().parents[2] / "data" / "reported"


def shipped(*names: str) -> pd.DataFrame:
    return pd.concat([read_reported(REPORTED / f"cir-{name}.csv") for name in names], ignore_index=True)


def printed(row: str = "a", **cells: float | None) -> pd.DataFrame:
    return pd.DataFrame([{"row": row, "column": column, "value": value} for column, value in cells.items()])


def only(table: pd.DataFrame) -> dict[str, Any]:
    (row,) = table.to_dict("records")
    return {str(name): value for name, value in row.items()}


# ---- the published effects ----------------------------------------------------------------------------------------


def test_effects_of_the_main_experiment() -> None:
    names = {"2-step stale, delay 1": 93, "clean, delay 0": 93}
    found = reconstruct_effects(shipped("effects"), names)
    assert list(found.columns) == COLUMNS
    assert list(found["row"]) == list(names)
    stale, clean = found.to_dict("records")
    assert (stale["effect_pp"], stale["low_pp"], stale["high_pp"]) == (7.53, -3.23, 18.28)
    assert (stale["net"], stale["rescues"], stale["harms"]) == (
        7,
        17,
        10,
    )  # stated, for delay 0: the row is mislabelled
    assert stale["others"] == "16/9, 18/11"
    assert stale["reach"] == pytest.approx(0.998, abs=0.002)
    assert stale["mcnemar"] == pytest.approx(0.2478, abs=1e-4)
    assert (clean["net"], clean["rescues"], clean["harms"], clean["others"]) == (-6, 0, 6, "")
    assert clean["mcnemar"] == 0.03125  # 2 × 0.5⁶
    assert clean["reach"] == pytest.approx(1, abs=0.01)
    assert list(found["note"]) == ["", ""]


def test_the_second_reading_prints_those_numbers_at_delay_0() -> None:
    # delay 1 has 15 rescues and 4 harms, stated, without an interval
    found = reconstruct_effects(
        shipped("effects-second-reading"), {"2-step stale, delay 0": 93, "2-step stale, delay 1": 93}
    )
    assert found["net"].tolist() == [7, 11]
    assert (found["rescues"][0], found["harms"][0]) == (17, 10)
    assert (found["note"][1], found["rescues"].isna()[1]) == ("no interval printed", True)


def test_the_ablation_from_effects_of_one_source_and_intervals_of_another() -> None:
    rows = dict.fromkeys(["full refresh", "content-ablated refresh", "replanning only"], 67)
    found = reconstruct_effects(shipped("ablation", "ablation-second-reading"), rows).set_index("row")
    counts = found[["net", "rescues", "harms"]].astype(int).to_numpy().tolist()
    assert counts == [[9, 10, 1], [7, 9, 2], [1, 7, 6]]
    assert found["mcnemar"].tolist() == [pytest.approx(p, abs=1e-4) for p in (0.0117, 0.0654, 1)]
    assert found["note"].tolist() == ["", "", "11.98 is no number of 67 tasks"]
    # the upper bound of the ablated arm is noise of the bootstrap: few runs print it
    assert found["reach"].tolist() == [pytest.approx(reach, abs=0.03) for reach in (0.95, 0.24, 1)]
    assert found.loc["content-ablated refresh", "others"] == ""


def test_the_rule_on_its_evaluation_tasks() -> None:
    found = reconstruct_effects(shipped("evaluation"), {"2-step stale": 75, "clean": 75})
    stale, clean = found.to_dict("records")
    assert (stale["rescues"], stale["harms"], stale["others"]) == (9, 2, "")  # stated
    assert stale["mcnemar"] == pytest.approx(0.0654, abs=1e-4)
    assert stale["reach"] == pytest.approx(0.62, abs=0.02)
    assert (clean["effect_pp"], clean["net"], clean["note"]) == (0, 0, "no interval printed")  # dashes are printed
    assert found.loc[1, ["low_pp", "high_pp", "rescues", "harms", "reach", "mcnemar", "others"]].isna().all()


def test_the_complete_cohort() -> None:
    found = reconstruct_effects(
        shipped("complete-cohort", "complete-cohort-second-reading"), {"clean": 106, "stale": 106}
    )
    assert found[["rescues", "harms"]].astype(int).to_numpy().tolist() == [[2, 6], [17, 10]]  # stated
    assert found["mcnemar"].tolist() == [pytest.approx(p, abs=1e-4) for p in (0.2891, 0.2478)]
    assert found["others"].tolist() == ["", "16/9, 18/11"]


def test_types_are_those_of_counts_and_texts() -> None:
    found = reconstruct_effects(shipped("evaluation"), {"2-step stale": 75, "clean": 75})
    assert {str(found[name].dtype) for name in ("net", "rescues", "harms")} == {"Int64"}
    assert {str(found[name].dtype) for name in ("effect_pp", "low_pp", "high_pp", "reach", "mcnemar")} == {"float64"}
    empty = reconstruct_effects(shipped("evaluation"), {})
    assert (len(empty), list(empty.columns), empty.dtypes["net"]) == (0, COLUMNS, found.dtypes["net"])


# ---- what has no answer -------------------------------------------------------------------------------------------


def test_a_row_that_is_not_printed_is_named_with_those_that_are() -> None:
    with pytest.raises(
        FaultbookError, match="row 'clean, delay 4'; the rows are 2-step stale, delay 1, clean, delay 0"
    ):
        reconstruct_effects(shipped("effects"), {"clean, delay 0": 93, "clean, delay 4": 93})
    with pytest.raises(FaultbookError, match="no printed effect in row 'a'; the rows are none"):
        reconstruct_effects(shipped("effects")[:0], {"a": 93})


def test_a_row_without_an_effect_is_none() -> None:
    # the second reading of the ablation prints intervals only
    with pytest.raises(FaultbookError, match="no printed effect in row 'full refresh'"):
        reconstruct_effects(shipped("ablation-second-reading"), {"full refresh": 67})


def test_rows_that_are_not_named_are_left_out() -> None:
    assert reconstruct_effects(shipped("effects"), {"clean, delay 0": 93})["row"].tolist() == ["clean, delay 0"]


def test_an_effect_that_no_count_gives() -> None:
    found = only(reconstruct_effects(shipped("effects"), {"clean, delay 0": 100}))
    assert found["note"] == "-6.45 is no number of 100 tasks"
    assert pd.isna([found[name] for name in ("net", "rescues", "harms", "reach", "mcnemar", "others")]).all()


@pytest.mark.parametrize("interval", [{}, {"low": 140.0, "high": 160.0}])
def test_an_effect_larger_than_all_tasks(interval: dict[str, float]) -> None:
    found = only(reconstruct_effects(printed(effect=150.0, **interval), {"a": 10}))
    assert (found["note"], pd.isna(found["net"])) == ("150 is no number of 10 tasks", True)


@pytest.mark.parametrize("cells", [{"low": 40.0}, {"high": 60.0}, {"low": None, "high": 60.0}])
def test_half_an_interval_is_none(cells: dict[str, float | None]) -> None:
    found = only(reconstruct_effects(printed(effect=50.0, **cells), {"a": 10}))
    assert (found["net"], found["note"]) == (5, "no interval printed")


def test_bounds_that_no_counts_print() -> None:
    found = only(reconstruct_effects(printed(effect=50.0, low=60.0, high=40.0), {"a": 10}))
    assert (found["net"], found["note"], pd.isna(found["rescues"])) == (5, "no counts print these bounds", True)
    both = only(reconstruct_effects(printed(effect=50.0, low=61.0, high=99.0), {"a": 10}))
    assert both["note"] == "61 and 99 are no numbers of 10 tasks; no counts print these bounds"


@pytest.mark.parametrize("n", [0, -93])
def test_no_tasks_at_all(n: int) -> None:
    with pytest.raises(FaultbookError, match=f"row 'clean, delay 0' is of {n} tasks"):
        reconstruct_effects(shipped("effects"), {"clean, delay 0": n})


# ---- several sources ----------------------------------------------------------------------------------------------


def test_two_numbers_in_one_place_are_never_averaged() -> None:
    # both sources have a row "2-step stale, delay 1", and print 7.53 and 11.83 there
    both = shipped("effects", "effects-second-reading")
    with pytest.raises(FaultbookError, match=r"row '2-step stale, delay 1' prints 7\.53 and 11\.83 as effect; select"):
        reconstruct_effects(both, {"2-step stale, delay 1": 93})
    assert reconstruct_effects(both, {"clean, delay 0": 93})["harms"].tolist() == [6]


def test_a_number_that_is_printed_again_is_one() -> None:
    twice = pd.concat([shipped("effects"), shipped("effects")], ignore_index=True)
    assert reconstruct_effects(twice, {"clean, delay 0": 93})["harms"].tolist() == [6]


def test_effect_and_change_are_two_words_for_one() -> None:
    mixed = shipped("effects", "evaluation")
    found = reconstruct_effects(mixed, {"2-step stale": 75, "clean, delay 0": 93})
    assert found[["rescues", "harms"]].astype(int).to_numpy().tolist() == [[9, 2], [0, 6]]
    with pytest.raises(FaultbookError, match="prints 10 and 20 as effect"):
        reconstruct_effects(printed(effect=10.0, change=20.0), {"a": 10})


def test_swapping_the_sides_swaps_rescues_and_harms() -> None:
    one = only(reconstruct_effects(printed(effect=9 / 0.75, low=1 / 0.75, high=17 / 0.75), {"a": 75}))
    other = only(reconstruct_effects(printed(effect=-9 / 0.75, low=-17 / 0.75, high=-1 / 0.75), {"a": 75}))
    assert (one["rescues"], one["harms"]) == (other["harms"], other["rescues"])
    assert one["reach"] == pytest.approx(other["reach"])
    assert one["mcnemar"] == other["mcnemar"]
