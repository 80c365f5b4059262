"""Reasoning scores: what is read and what is refused, means by step and by log, and the charge for uncovered steps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.attribution.judge_files import parse_score
from faultbook.attribution.reasoning import (
    COVERAGE_COLUMNS,
    SUMMARY_COLUMNS,
    ReasoningTables,
    read_reasoning,
    reasoning_coverage,
    summarize_reasoning,
)
from faultbook.errors import DataError, FaultbookError
from faultbook.stats.bootstrap import cluster_bootstrap
from faultbook.tables import REASONING_PARTS, Annotations, Predictions, Reasoning, typed

HEADER = "log_id,model,step,part,score\n"


def judge_file(comparisons: Any, missed: Any = (), spurious: Any = (), **more: Any) -> str:
    fields = {"comparisons": comparisons, "annotator_only_steps": missed, "gpt_only_steps": spurious, **more}
    return json.dumps({name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()})


def comparison(step: Any, overall: Any = 8, reason: Any = 7, action: Any = 9) -> dict[str, Any]:
    scores = {"overall_score": overall, "fail_reason_score": reason, "ideal_action_score": action}
    return {"step": step, **scores, "faithfulness_score": 0, "reasoning": "…"}


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def lenient(path: Path) -> tuple[ReasoningTables, pd.DataFrame]:
    return read_reasoning(path, strict=False)


def rows(frame: pd.DataFrame) -> list[list[Any]]:
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


# ---- one score ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (10, 10.0), (7.5, 7.5), (10.0, 10.0), (None, None)])
def test_what_is_a_score(value: object, expected: float | None) -> None:
    assert parse_score(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "score is 0, which the published code writes for a missing score; the scale is 1 to 10"),
        (0.0, "score is 0.0, which"),
        ("8", "score is the text '8', not a number"),
        ("", "the text ''"),
        (11, "score is 11; the scale"),
        (10.01, "10.01"),
        (-3, "-3"),
        (0.99, "0.99; the scale"),
        (True, "score is True, not a number"),
        (False, "score is False, not a number"),
        (math.nan, "score is NaN"),
        (math.inf, "score is inf; the scale"),
        ([8], "not a number"),
        ({"score": 8}, "not a number"),
        (10**30, "the scale"),
    ],
)
def test_what_is_no_score(value: object, message: str) -> None:
    with pytest.raises(ValueError, match="score is") as caught:
        parse_score(value)
    assert message in str(caught.value)


# ---- CSV ----------------------------------------------------------------------------------------------------------


def test_scores_from_a_csv_file(tmp_path: Path) -> None:
    file = write(tmp_path, "r.csv", HEADER + "m/1,A,3,overall,8\nm/1,A,3,failure_reason,7.5\nm/1,A,3.0,ideal_action,\n")
    tables = read_reasoning(file)
    assert tables.coverage is None
    assert rows(tables.scores) == [
        ["m/1", "A", 3, "overall", 8.0],
        ["m/1", "A", 3, "failure_reason", 7.5],
        ["m/1", "A", 3, "ideal_action", None],
    ]
    Reasoning.validate(tables.scores)


@pytest.mark.parametrize("cell", ["0", "11", "nan", "NaN", "inf", "eight", "true", "-1", "1e1", "0.5"])
def test_a_cell_that_is_no_score_is_located_and_missing(tmp_path: Path, cell: str) -> None:
    file = write(tmp_path, "r.csv", f"{HEADER}m/1,A,3,overall,{cell}\nm/1,A,4,overall,5\n")
    with pytest.raises(DataError, match=r"row 2, column 'score'.*it is left missing; give a number from 1 to 10"):
        read_reasoning(file)
    tables, problems = lenient(file)
    assert rows(tables.scores) == [["m/1", "A", 3, "overall", None], ["m/1", "A", 4, "overall", 5.0]]
    assert problems[["row", "column"]].to_numpy().tolist() == [["2", "score"]]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (",A,3,overall,8", "log_id"),
        ("m/1,,3,overall,8", "model"),
        ("m/1,A,three,overall,8", "step"),
        ("m/1,A,-1,overall,8", "step"),
        ("m/1,A,1.5,overall,8", "step"),
        ("m/1,A,3,faithfulness,8", "part"),
        ("m/1,A,2,overall,8", ""),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out(tmp_path: Path, row: str, column: str) -> None:
    file = write(tmp_path, "r.csv", f"{HEADER}m/1,A,2,overall,5\n{row}\n")
    tables, problems = lenient(file)
    assert rows(tables.scores) == [["m/1", "A", 2, "overall", 5.0]]
    assert problems[["row", "column"]].to_numpy().tolist() == [["3", column]]


def test_a_csv_file_without_its_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="columns missing"):
        read_reasoning(write(tmp_path, "r.csv", "log_id,model,step,score\nm/1,A,3,8\n"))


# ---- files of the published judge ---------------------------------------------------------------------------------


def test_a_folder_of_the_published_judge(tmp_path: Path) -> None:
    place = "gpt-x/all_at_once_taxonomy/unified_gpt-5.1"
    write(
        tmp_path, f"{place}/manual/7.json", judge_file([comparison("3"), comparison("10", 5, 4, 6)], ("1",), ("2", "4"))
    )
    write(tmp_path, f"{place}/automatic/12.json", judge_file([], ("0", "1")))
    write(tmp_path, f"{place}/manual/run.log", "not data")
    tables = read_reasoning(tmp_path)
    assert tables.coverage is not None
    assert list(tables.coverage.columns) == COVERAGE_COLUMNS
    assert rows(tables.coverage) == [["automatic/12", "gpt-x", 0, 2, 0], ["manual/7", "gpt-x", 2, 1, 2]]
    scores = tables.scores.pivot_table(index="step", columns="part", values="score")
    assert set(tables.scores["log_id"]) == {"manual/7"}
    assert scores.loc[3].to_dict() == {"failure_reason": 7, "ideal_action": 9, "overall": 8}
    assert scores.loc[10].to_dict() == {"failure_reason": 4, "ideal_action": 6, "overall": 5}


@pytest.mark.parametrize("start", ["", "results", "results/gpt-x", "results/gpt-x/m/unified_g/manual/7.json"])
def test_the_model_is_two_folders_above_the_consolidation(tmp_path: Path, start: str) -> None:
    write(tmp_path, "results/gpt-x/m/unified_g/manual/7.json", judge_file([comparison(3)]))
    tables = read_reasoning(tmp_path / start)
    assert set(zip(tables.scores["log_id"], tables.scores["model"], strict=True)) == {("manual/7", "gpt-x")}


def test_a_plain_folder_names_the_model_first(tmp_path: Path) -> None:
    write(tmp_path, "A/manual/7.json", judge_file([comparison(3)]))
    write(tmp_path, "B/manual/7.json", judge_file([comparison(3)]))
    assert set(read_reasoning(tmp_path).scores["model"]) == {"A", "B"}
    with pytest.raises(DataError, match="its folders name no model"):
        read_reasoning(tmp_path / "A")
    assert set(read_reasoning(tmp_path / "A", model="mine").scores["model"]) == {"mine"}
    assert set(read_reasoning(tmp_path / "A/manual/7.json", model="mine").scores["log_id"]) == {"manual/7"}


# each of the published code's ways to lose a score
@pytest.mark.parametrize(
    ("given", "is_problem"),
    [(0, True), ("8", True), (11, True), (math.nan, True), (True, True), (None, False), ("absent", False)],
)
def test_a_score_that_was_not_given(tmp_path: Path, given: Any, is_problem: bool) -> None:
    compared = comparison(3, overall=given)
    if given == "absent":
        del compared["overall_score"]
    write(tmp_path, "A/manual/7.json", judge_file([compared]))
    tables, problems = lenient(tmp_path)
    scores = dict(zip(tables.scores["part"], tables.scores["score"], strict=True))
    assert pd.isna(scores["overall"])
    assert (scores["failure_reason"], scores["ideal_action"]) == (7, 9)
    assert problems["column"].to_list() == (["comparisons[0].overall_score"] if is_problem else [])
    summary = summarize_reasoning(tables.scores, tables.coverage).set_index("part")
    assert summary["n_missing"].to_dict() == {"failure_reason": 0, "ideal_action": 0, "overall": 1}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("[]", "comparisons"),
        ("{}", "comparisons"),
        ('{"comparisons": {}}', "comparisons"),
        ("not json", ""),
        (judge_file([7]), "comparisons[0]"),
        (judge_file([comparison(None)]), "comparisons[0].step"),
        (judge_file([comparison("3 and 5")]), "comparisons[0].step"),
        (judge_file([comparison(1.5)]), "comparisons[0].step"),
        (judge_file([comparison(True)]), "comparisons[0].step"),
        (judge_file([], missed=None), "annotator_only_steps"),
        (judge_file([], spurious="3"), "gpt_only_steps"),
        (judge_file([], spurious=("x",)), "gpt_only_steps"),
        ("[" * 100_000, ""),
    ],
)
def test_a_file_that_cannot_be_used_is_located(tmp_path: Path, text: str, column: str) -> None:
    write(tmp_path, "A/manual/7.json", text)
    write(tmp_path, "A/manual/8.json", judge_file([comparison(3)]))
    with pytest.raises(DataError, match=r"7\.json"):
        read_reasoning(tmp_path)
    tables, problems = lenient(tmp_path)
    assert set(tables.scores["log_id"]) == {"manual/8"}
    assert problems["column"].to_list() == [column]


def test_what_is_judged_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path, "A/x/unified_a/manual/7.json", judge_file([comparison(3), comparison("3", 1)], ("1", 1, "1")))
    write(tmp_path, "A/x/unified_b/manual/7.json", judge_file([comparison(4)]))
    tables, problems = lenient(tmp_path)
    assert len(problems) == 2
    assert rows(tables.scores)[0] == ["manual/7", "A", 3, "failure_reason", 7.0]
    assert tables.coverage is not None
    assert rows(tables.coverage) == [["manual/7", "A", 1, 1, 0]]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file of a judge here"):
        read_reasoning(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_reasoning(tmp_path / "x.csv")
    with pytest.raises(DataError, match="no file of a judge here"):
        read_reasoning(write(tmp_path, "x.jsonl", "{}\n{}\n"))


# ---- means --------------------------------------------------------------------------------------------------------


def scored(scores: Mapping[str, Sequence[float | None]], model: str = "A") -> pd.DataFrame:
    """Overall scores of the steps 0, 1, … of each log; the parts like them."""
    listed = [
        (log_id, model, step, part, score)
        for log_id, of_log in scores.items()
        for step, score in enumerate(of_log)
        for part in REASONING_PARTS
    ]
    return typed(listed, Reasoning)


def covered(counts: Mapping[str, tuple[int | None, int | None, int | None]], model: str = "A") -> pd.DataFrame:
    return pd.DataFrame([(log_id, model, *n) for log_id, n in counts.items()], columns=COVERAGE_COLUMNS)


def overall(frame: pd.DataFrame) -> pd.Series:
    return frame[frame["part"] == "overall"].iloc[0]


def test_means_by_hand() -> None:
    scores = scored({"m/1": [8, 8, None, 2], "m/2": [10]})
    coverage = covered({"m/1": (5, 1, 2), "m/2": (1, 0, 0), "m/3": (0, 1, 1)})
    row = overall(summarize_reasoning(scores, coverage))
    assert (row["by_step"], row["by_log"]) == (7, 8)
    assert (row["n_steps"], row["n_logs"], row["n_missing"]) == (4, 2, 1)
    # 28 points and 5 ones for 9 steps; per log (18 + 3)/6, 10, 1
    assert row["charged_by_step"] == pytest.approx(33 / 9)
    assert row["charged_by_log"] == pytest.approx((3.5 + 10 + 1) / 3)
    assert (row["n_missed"], row["n_spurious"], row["n_charged_logs"]) == (2, 3, 3)
    assert row["n_unjudged"] == 1


def test_without_a_coverage_nothing_is_charged() -> None:
    row = overall(summarize_reasoning(scored({"m/1": [8, 6]})))
    assert row["by_step"] == 7
    assert row[[name for name in SUMMARY_COLUMNS if name.startswith("charged")]].isna().all()
    assert pd.isna(row["n_missed"])


def test_an_incomplete_coverage_charges_nothing() -> None:
    row = overall(summarize_reasoning(scored({"m/1": [8]}), covered({"m/1": (1, None, 2)})))
    assert pd.isna(row["charged_by_step"])
    assert pd.isna(row["n_spurious"])
    assert row["by_step"] == 8


def test_missed_steps_cost_nothing_in_the_published_mean() -> None:
    # the fault that the charge is for: naming one easy step only scores best
    cautious = summarize_reasoning(scored({"m/1": [9]}), covered({"m/1": (1, 4, 0)}))
    thorough = summarize_reasoning(scored({"m/1": [9, 8, 8, 7, 7]}), covered({"m/1": (5, 0, 0)}))
    assert overall(cautious)["by_step"] > overall(thorough)["by_step"]
    assert overall(cautious)["charged_by_step"] < overall(thorough)["charged_by_step"]


def test_intervals_resample_logs() -> None:
    scores = {f"m/{n}": [float(1 + (n * k) % 10) for k in range(1 + n % 4)] for n in range(20)}
    row = overall(summarize_reasoning(scored(scores), n_resamples=400, seed=2))
    values, logs = [s for of in scores.values() for s in of], [log for log, of in scores.items() for _ in of]
    for name, weight in (("by_step", "unit"), ("by_log", "cluster")):
        expected = cluster_bootstrap(values, logs, weight=weight, n_resamples=400, seed=2)
        assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(
            (expected.estimate, expected.low, expected.high)
        )


def test_no_score_at_all() -> None:
    frame = summarize_reasoning(scored({"m/1": [None]}), covered({"m/1": (1, 1, 0)}))
    row = overall(frame)
    assert math.isnan(row["by_step"])
    assert (row["n_steps"], row["n_missing"], row["charged_by_step"]) == (0, 1, 1)
    empty = summarize_reasoning(typed([], Reasoning))
    assert empty.empty
    assert list(empty.columns) == SUMMARY_COLUMNS


def test_a_model_that_matched_nothing_is_charged_too() -> None:
    coverage = pd.concat([covered({"m/1": (1, 0, 0)}), covered({"m/1": (0, 1, 3)}, "B")], ignore_index=True)
    frame = summarize_reasoning(scored({"m/1": [8]}), coverage)
    assert list(dict.fromkeys(frame["model"])) == ["A", "B"]
    other = overall(frame[frame["model"] == "B"])
    assert math.isnan(other["by_step"])
    assert other["charged_by_step"] == 1


SCORES = st.dictionaries(
    st.sampled_from(["m/1", "m/2", "m/3"]), st.lists(st.none() | st.integers(1, 10), min_size=1, max_size=5), min_size=1
)


@settings(deadline=None, max_examples=10)
@given(SCORES, st.integers(0, 4), st.integers(0, 4), st.randoms(use_true_random=False))
def test_the_charge_never_helps_and_names_do_not_count(
    scores: dict[str, list[int | None]], missed: int, spurious: int, random: Any
) -> None:
    table = scored(scores)
    coverage = covered({log_id: (len(of), missed, spurious) for log_id, of in scores.items()})
    frame = summarize_reasoning(table, coverage, n_resamples=40)
    row = overall(frame)
    if row["n_steps"]:
        assert row["charged_by_step"] <= row["by_step"] + 1e-12
        given = [s for of in scores.values() for s in of if s is not None]
        n = missed * len(scores) + spurious * len(scores)
        assert row["charged_by_step"] == pytest.approx((sum(given) + n) / (len(given) + n))
    order = random.sample(range(len(table)), len(table))
    renamed = table.iloc[order].assign(log_id=lambda t: "x" + t["log_id"])
    other = summarize_reasoning(renamed, coverage.assign(log_id="x" + coverage["log_id"]), n_resamples=40)
    pd.testing.assert_frame_equal(other, frame)


@pytest.mark.parametrize(
    ("scores", "coverage", "message"),
    [
        (scored({"m/1": [8]}).drop(columns="part"), None, "scores without part"),
        (scored({"m/1": [8]}).assign(score=0.0), None, "3 scores lie outside 1 to 10 .first: 0.0"),
        (scored({"m/1": [8]}).assign(score="8"), None, "score holds '8'"),
        (scored({"m/1": [8]}).assign(score=True), None, "score holds .*True"),
        (scored({"m/1": [8]}).assign(part="style"), None, "part 'style' is unknown"),
        (scored({"m/1": [8]}), covered({"m/2": (1, 0, 0)}), "no row for 1 logs of A .first: m/1"),
        (scored({"m/1": [8, 9]}), covered({"m/1": (1, 0, 0)}), "2 steps of A have scores in m/1, .* counts 1"),
        (scored({"m/1": [8]}), covered({"m/1": (1, 0, 0)}).drop(columns="n_missed"), "without n_missed"),
        (scored({"m/1": [8]}), pd.concat([covered({"m/1": (1, 0, 0)})] * 2), "m/1 of A twice"),
    ],
)
def test_what_is_refused(scores: pd.DataFrame, coverage: pd.DataFrame | None, message: str) -> None:
    with pytest.raises(FaultbookError, match=message):
        summarize_reasoning(scores, coverage)


# ---- coverage -----------------------------------------------------------------------------------------------------


def test_coverage_by_hand() -> None:
    flags = {("m/1", 0): True, ("m/1", 1): True, ("m/1", 2): False, ("m/2", 0): False}
    annotations = typed([(*k, "ann", flag, None, None, None, None) for k, flag in flags.items()], Annotations)
    named = [("A", 0, 0), ("A", 0, 7), ("A", 1, 0), ("B", 0, 1)]
    predictions = typed([("m/1", m, s, p, step, None, None, None) for p, (m, s, step) in enumerate(named)], Predictions)
    assert rows(reasoning_coverage(annotations, predictions)) == [
        ["m/1", "A", 1, 1, 1],  # 0 in both samples counts once, 7 is beyond the log
        ["m/2", "A", 0, 0, 0],
        ["m/1", "B", 1, 1, 0],
        ["m/2", "B", 0, 0, 0],
    ]


def test_coverage_without_predictions() -> None:
    annotations = typed([("m/1", 0, "ann", True, None, None, None, None)], Annotations)
    frame = reasoning_coverage(annotations, typed([], Predictions))
    assert frame.empty
    assert list(frame.columns) == COVERAGE_COLUMNS
