"""Trials and plans as CSV: five columns suffice, every hostile cell is located, and nothing missing is filled in."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.files import Files
from faultbook.harness.formats import trial_csv
from faultbook.harness.read import read_trials
from faultbook.problems import Problems
from faultbook.tables import TRIAL_STATES, Plan, Trials
from faultbook.taxonomy import causes

HEADER = "arm,task_id,attempt,state,resolved"
PLAN_HEADER = "arm,task_id,attempt"


def write(folder: Path, *lines: str, header: str = HEADER, name: str = "trials.csv") -> Path:
    file = folder / name
    file.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return file


def row(folder: Path, **cells: str) -> pd.Series[Any]:
    """The only row of a table with some further columns."""
    values = dict(zip(HEADER.split(","), ("a", "t", "1", "finished", "true"), strict=True)) | cells
    return read_trials(write(folder, ",".join(values.values()), header=",".join(values))).iloc[0]


def fault(file: Path) -> DataError:
    """The first problem of a file; read leniently it is the first one listed."""
    with pytest.raises(DataError) as strict:
        read_trials(file)
    _, problems = read_trials(file, strict=False)
    error = strict.value
    parts = [error.file, error.row, error.column, error.problem, error.mend]
    assert problems.iloc[0].tolist() == ["" if part is None else str(part) for part in parts]
    assert "\n" not in str(error)
    assert len(str(error)) < 1_500
    return error


# ---- what is read


def test_five_columns_suffice(tmp_path: Path) -> None:
    file = write(tmp_path, "a,t,1,finished,true", "b,t,1,finished,false", "b,u,1,unfinished,")
    files = Files()
    trials = read_trials(file, files=files)
    Trials.validate(trials)
    assert trials["resolved"].tolist()[:2] == [True, False]
    assert pd.isna(trials["resolved"][2])
    assert trials["reward_valid"].tolist()[:2] == [True, True]
    assert pd.isna(trials["reward_valid"][2])
    assert trials["usage_status"].tolist() == ["absent"] * 3
    assert set(trials["source_sha256"]) == {hashlib.sha256(file.read_bytes()).hexdigest()}
    assert set(trials["source_path"]) == {str(file)}
    known = {*HEADER.split(","), "reward_valid", "usage_status", "source_format", "source_path", "source_sha256"}
    assert trials.drop(columns=list(known)).isna().all(axis=None)
    assert files.manifest()["path"].tolist() == [str(file)]


def test_a_table_without_a_row(tmp_path: Path) -> None:
    trials = read_trials(write(tmp_path))
    assert len(trials) == 0
    Trials.validate(trials)


def test_every_column(tmp_path: Path) -> None:
    cells = {
        "reward": "1.0",
        "reward_key": "reward",
        "cause": "agent_budget_exhausted",
        "cause_source": "inferred",
        "other_causes": "sandbox",
        "exception_type": "AgentTimeoutError",
        "total_seconds": "9.5",
        "setup_seconds": "1",
        "agent_seconds": "7.5",
        "verifier_seconds": "0",
        "input_tokens": "123456789012345",
        "cache_tokens": "0",
        "output_tokens": "7.0",
        "cache_included": "1",
        "requests": "3",
        "cost": "0.25",
        "started_at": "2026-09-08T15:12:34Z",
        "trial_id": "7",
        "run_id": "r",
        "task_checksum": "c0ffee",
        "source_version": "0.25",
        "note": "free text",
        "anything": "else",
    }
    found = row(tmp_path, **cells)
    assert found["reward"] == 1
    assert found["reward_valid"]  # a resolved timeout of the agent is normal
    assert found[["cause", "cause_source"]].tolist() == ["agent_budget_exhausted", "inferred"]
    assert found[["total_seconds", "setup_seconds", "agent_seconds", "verifier_seconds"]].tolist() == [9.5, 1, 7.5, 0]
    assert found[["input_tokens", "cache_tokens", "output_tokens"]].tolist() == [123_456_789_012_345, 0, 7]
    assert found["cache_included"]
    assert found["usage_status"] == "reported"
    assert found[["requests", "cost", "trial_id", "note"]].tolist() == [3, 0.25, "7", "free text"]
    assert "anything" not in found


def test_a_table_of_ours_reads_back_as_it_was(tmp_path: Path) -> None:
    lines = ("a,t,1,finished,true,1,,5", "b,t,1,finished,false,0.5,provider_network,", "b,u,0,unreadable,,,,")
    trials = read_trials(write(tmp_path, *lines, header=f"{HEADER},reward,cause,input_tokens"))
    trials.to_csv(tmp_path / "again.csv", index=False)
    again = read_trials(tmp_path / "again.csv")
    place = ["source_path", "source_sha256"]
    pd.testing.assert_frame_equal(again.drop(columns=place), trials.drop(columns=place))


@pytest.mark.parametrize(
    ("cause", "valid"),
    [(name, one.verdict_stands) for name, one in causes().items()],
)
def test_whether_a_verdict_stands_follows_from_the_cause(tmp_path: Path, cause: str, valid: bool | None) -> None:
    found = row(tmp_path, cause=cause)
    assert found["resolved"]
    assert found["cause_source"] == "observed"
    assert (None if pd.isna(found["reward_valid"]) else bool(found["reward_valid"])) is valid


def test_what_the_file_says_of_a_verdict_counts(tmp_path: Path) -> None:
    assert row(tmp_path, cause="provider_network", reward_valid="true")["reward_valid"]
    assert not row(tmp_path, reward_valid="false")["reward_valid"]
    assert pd.isna(row(tmp_path, resolved="", reward_valid="true")["reward_valid"])


@pytest.mark.parametrize(
    ("tokens", "status"),
    [
        (("", ""), "absent"),
        (("0", "0"), "zero_suspect"),
        (("0", ""), "zero_suspect"),
        (("5", ""), "partial"),
        (("", "5"), "partial"),
        (("5", "0"), "reported"),
        (("5", "5"), "reported"),
    ],
)
def test_the_usage_status_follows_from_the_tokens(tmp_path: Path, tokens: tuple[str, str], status: str) -> None:
    found = row(tmp_path, input_tokens=tokens[0], output_tokens=tokens[1])
    assert found["usage_status"] == status
    for name, cell in zip(("input_tokens", "output_tokens"), tokens, strict=True):
        assert pd.isna(found[name]) if cell == "" else found[name] == int(cell)


def test_tokens_of_a_trial_that_goes_on_are_no_total(tmp_path: Path) -> None:
    found = row(tmp_path, state="unfinished", resolved="", input_tokens="5", output_tokens="5")
    assert found["usage_status"] == "partial"


def test_a_given_usage_status_counts(tmp_path: Path) -> None:
    assert row(tmp_path, input_tokens="0", output_tokens="0", usage_status="reported")["usage_status"] == "reported"
    assert row(tmp_path, input_tokens="5", output_tokens="5", usage_status="partial")["usage_status"] == "partial"


def test_attempts_count_from_0_or_from_1(tmp_path: Path) -> None:
    file = write(tmp_path, "a,t,0,finished,true", "a,t,1,finished,false", "b,t,2.0,finished,true")
    assert read_trials(file)["attempt"].tolist() == [0, 1, 2]


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path, "none,7,1,finished,true", '"a, b",missing,1,finished,true', "NaN,ü ü,1,finished,true")
    trials = read_trials(file)
    assert trials["arm"].tolist() == ["none", "a, b", "NaN"]
    assert trials["task_id"].tolist() == ["7", "missing", "ü ü"]


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    file = tmp_path / "t.CSV"
    file.write_bytes(b"\xef\xbb\xbf" + f"{HEADER}\r\na,t,1,finished,TRUE\r\n\r\n".encode())
    assert read_trials(file)["resolved"].tolist() == [True]


# ---- the arm given by the caller


def test_an_arm_s_name_is_given_or_replaced(tmp_path: Path) -> None:
    without = write(tmp_path, "t,1,finished,true", header=HEADER.removeprefix("arm,"))
    assert read_trials(without, arm="mine")["arm"].tolist() == ["mine"]
    with pytest.raises(DataError, match="columns missing: \\['arm'\\]"):
        read_trials(without)
    one = write(tmp_path, "a,t,1,finished,true", "a,u,1,finished,true", name="one.csv")
    assert read_trials(one, arm="mine")["arm"].tolist() == ["mine"] * 2


def test_two_arms_are_not_called_by_one_name(tmp_path: Path) -> None:
    file = write(tmp_path, "a,t,1,finished,true", "b,t,1,finished,true")
    with pytest.raises(DataError, match="holds 2 arms \\(a, b\\), which cannot all be called 'mine'"):
        read_trials(file, arm="mine")


# ---- what cannot be used


@pytest.mark.parametrize(
    ("line", "column", "problem", "stays"),
    [
        (",t,1,finished,true", "arm", "no arm", 0),
        ("a,,1,finished,true", "task_id", "no task_id", 0),
        ("a,t,,finished,true", "attempt", "no attempt", 0),
        ("a,t,nan,finished,true", "attempt", "no attempt", 0),
        ("a,t,one,finished,true", "attempt", "attempt is 'one', not a whole number", 0),
        ("a,t,-1,finished,true", "attempt", "attempt is '-1', not a whole number", 0),
        ("a,t,1.5,finished,true", "attempt", "attempt is '1.5', not a whole number", 0),
        ("a,t,1e3,finished,true", "attempt", "attempt is '1e3', not a whole number", 0),
        ("a,t,９,finished,true", "attempt", "attempt is '９', not a whole number", 0),
        ("a,t,99999999999999999999,finished,true", "attempt", "not a whole number", 0),
        ("a,t,true,finished,true", "attempt", "attempt is 'true', not a whole number", 0),
        ("a,t,1,,true", "state", "no state", 0),
        ("a,t,1,done,true", "state", "'state' must be one of 'finished', 'unfinished'", 0),
        ("a,t,1,Finished,true", "state", "found 'Finished'", 0),
        ("a,t,1,finished,yes", "resolved", "resolved is 'yes', not a boolean", 1),
        ("a,t,1,finished,2", "resolved", "resolved is '2', not a boolean", 1),
        ("a,t,1,finished,0.5", "resolved", "resolved is '0.5', not a boolean", 1),
        ("a,t,1,unfinished,true", "resolved", "a trial that is not finished has no verdict; this one is unfinished", 1),
        ("a,t,1,not_started,false", "resolved", "this one is not_started", 1),
        ("a,t,1,unreadable,0", "resolved", "this one is unreadable", 1),
    ],
)
def test_cells_that_cannot_be_used(tmp_path: Path, line: str, column: str, problem: str, stays: int) -> None:
    file = write(tmp_path, "ok,ok,1,finished,false", line)
    error = fault(file)
    assert (error.file, error.row, error.column) == (file, 3, column)
    assert problem in error.problem
    trials, problems = read_trials(file, strict=False)
    assert len(trials) == 1 + stays
    assert len(problems) == 1
    assert trials["resolved"][1:].isna().all()


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("reward", "high", "reward is 'high', not a finite number"),
        ("reward", "inf", "reward is 'inf', not a finite number"),
        ("reward_valid", "maybe", "reward_valid is 'maybe', not a boolean"),
        ("cause", "gremlins", "'cause' must be one of 'completed'"),
        ("cause_source", "guessed", "'cause_source' must be one of 'observed' or 'inferred'; found 'guessed'"),
        ("total_seconds", "-0.1", "total_seconds is '-0.1', not a number of at least 0"),
        ("total_seconds", "true", "total_seconds is 'true', not a number of at least 0"),
        ("agent_seconds", "10m", "agent_seconds is '10m', not a finite number"),
        ("cost", "$3", "cost is '$3', not a finite number"),
        ("cost", "-3", "cost is '-3', not a number of at least 0"),
        ("input_tokens", "1.5", "input_tokens is '1.5', not a whole number"),
        ("output_tokens", "9999999999999999", "not a whole number"),
        ("requests", "-1", "requests is '-1', not a whole number"),
        ("cache_included", "partly", "cache_included is 'partly', not a boolean"),
        ("usage_status", "full", "'usage_status' must be one of 'reported'"),
        ("usage_status", "reported", "usage_status is reported, but input_tokens or output_tokens is empty"),
        ("task_checksum", "x" * 501, "not a name"),
    ],
)
def test_other_cells_that_cannot_be_used_are_missing(tmp_path: Path, column: str, cell: str, problem: str) -> None:
    file = write(tmp_path, f"a,t,1,finished,true,{cell}", header=f"{HEADER},{column}")
    error = fault(file)
    assert (error.row, error.column) == (2, column)
    assert problem in error.problem
    trials, problems = read_trials(file, strict=False)
    assert len(problems) == 1
    assert trials["resolved"].tolist() == [True]
    if column == "usage_status":
        assert trials[column].tolist() == ["absent"]
    elif column == "reward_valid":
        assert trials[column].tolist() == [True]
    else:
        assert trials[column].isna().all()


@pytest.mark.parametrize(("resolved", "reward"), [("true", "0"), ("false", "1"), ("1", "0.0")])
def test_a_verdict_that_contradicts_its_reward_is_none(tmp_path: Path, resolved: str, reward: str) -> None:
    file = write(tmp_path, f"a,t,1,finished,{resolved},{reward}", header=f"{HEADER},reward")
    error = fault(file)
    assert (error.row, error.column) == (2, "resolved")
    assert "beside a reward of" in error.problem
    trials, _ = read_trials(file, strict=False)
    assert trials[["resolved", "reward", "reward_valid"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("resolved", "reward"), [("true", "0.7"), ("false", "0.7"), ("true", "1"), ("", "1"), ("true", "3")]
)
def test_a_reward_that_leaves_the_verdict_open_is_kept(tmp_path: Path, resolved: str, reward: str) -> None:
    found = row(tmp_path, resolved=resolved, reward=reward)
    assert found["reward"] == float(reward)
    assert pd.isna(found["resolved"]) if resolved == "" else found["resolved"] == (resolved == "true")


def test_a_reward_of_a_trial_that_has_not_ended_is_no_verdict(tmp_path: Path) -> None:
    file = write(tmp_path, "a,t,1,unfinished,,1.0", header=f"{HEADER},reward")
    assert fault(file).row == 2
    trials, _ = read_trials(file, strict=False)
    assert trials[["resolved", "reward", "reward_valid"]].isna().all(axis=None)


def test_every_fault_of_a_file_is_listed_with_the_line_on_which_its_row_ends(tmp_path: Path) -> None:
    lines = ('"a\nb",t,x,finished,true', "", "a,t,1,finished,perhaps", "a,t,2,gone,", "a,t,3,finished,1")
    trials, problems = read_trials(write(tmp_path, *lines), strict=False)
    assert problems["row"].tolist() == ["3", "6", "5"]
    assert trials["attempt"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"arm,task_id,attempt\na,t,1\n", "columns missing: ['state', 'resolved']"),
        (f"{HEADER},arm\n".encode(), "columns twice: ['arm']"),
        (f"{HEADER}\na,t,1,finished\n".encode(), "4 cells where the header has 5"),
        (f"{HEADER}\na,t,1,finished,true,\n".encode(), "6 cells where the header has 5"),
        (f"{HEADER}\na,\xff,1,finished,true\n".encode("latin-1"), "not UTF-8 text"),
        (f'{HEADER}\n"a,t,1,finished,true\n'.encode(), "not a CSV table"),
        (HEADER.replace(",", ";").encode(), "columns missing"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    for strict in (True, False):
        with pytest.raises(DataError) as error:
            read_trials(file, strict=strict)
        assert problem in str(error.value)
        assert "\n" not in str(error.value)
        assert str(file) in str(error.value)


def test_a_folder_that_is_named_like_a_table_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "runs.csv"
    folder.mkdir()
    assert not trial_csv.recognises(folder)
    write(folder, "a,t,1,finished,true")
    assert len(read_trials(folder)) == 1


# ---- plans


def planned(folder: Path, *lines: str, strict: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    problems = Problems(strict)
    return trial_csv.read_plan_table(write(folder, *lines, header=PLAN_HEADER), problems), problems.frame()


def test_a_plan_of_three_columns(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, "a,t,0", "b,t,0", "a,t,1")
    Plan.validate(plan)
    assert plan["source"].tolist() == ["file"] * 3
    assert plan["attempt"].tolist() == [0, 0, 1]


def test_a_trial_that_is_planned_twice_is_planned_once_and_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 4.*attempt 1 of 'a' at 't' is planned already; keep one of the rows"):
        planned(tmp_path, "a,t,1", "b,t,1", "a,t,1.0")
    plan, problems = planned(tmp_path, "a,t,1", "b,t,1", "a,t,1.0", strict=False)
    assert len(plan) == 2
    assert problems["row"].tolist() == ["4"]


@pytest.mark.parametrize("line", [",t,1", "a,,1", "a,t,", "a,t,first", "a,t,-1"])
def test_a_planned_trial_without_a_name_is_left_out(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError, match="row 2"):
        planned(tmp_path, line)
    plan, problems = planned(tmp_path, line, "a,u,1", strict=False)
    assert plan["task_id"].tolist() == ["u"]
    assert len(problems) == 1


# ---- whatever a file holds

CELL = st.one_of(
    st.sampled_from(["", "a", "t", "0", "1", "-1", "true", "false", "nan", "inf", "1e9", "9" * 16, *TRIAL_STATES]),
    st.sampled_from([*causes(), "observed", "reported", "zero_suspect", "\x1b[31m", "x\ny", "'", '"', "é"]),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=5),
)
COLUMNS = (*trial_csv.REQUIRED, "reward", "reward_valid", "cause", "total_seconds", "cost", "input_tokens")
COLUMNS = (*COLUMNS, "output_tokens", "usage_status", "cache_included", "note", "other")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[CELL] * len(COLUMNS)), max_size=6))
def test_whatever_cells_hold_they_are_read_or_located(tmp_path: Path, cells: list[tuple[str, ...]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *cells])
    file = tmp_path / "fuzz.csv"
    file.write_text(text.getvalue(), encoding="utf-8", newline="")
    trials, problems = read_trials(file, strict=False)
    Trials.validate(trials)
    assert len(trials) <= len(cells)
    assert len(trials) + len(problems) >= len(cells)
    ended = trials["state"] == "finished"
    assert trials.loc[~ended, ["resolved", "reward"]].isna().all(axis=None)
    given = {cell.strip() for line in cells for cell in line}
    for name in ("input_tokens", "output_tokens"):
        assert {int(value) for value in trials[name].dropna()} <= {int(cell) for cell in given if cell.isdecimal()}
    assert not (trials["resolved"].notna().any() and not given & {"true", "false", "0", "1"})
    for problem in problems["row"]:
        assert int(problem) >= 2


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80))
def test_whatever_bytes_a_file_holds_there_is_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "fuzz.csv"
    file.write_bytes(HEADER.encode() + b"\n" + content)
    said = ""
    try:
        Trials.validate(read_trials(file, strict=False)[0])
    except DataError as error:
        said = str(error)
    assert "\n" not in said
