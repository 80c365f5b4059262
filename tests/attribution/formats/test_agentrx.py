"""AgentRx: steps that count from 1, many failures a log, and the one that is the root cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultbook.attribution.read import read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]

FAILURES = [
    {"failure_id": 1, "step_number": 2, "step_reason": "r1", "failure_category": "c1", "failed_agent": "Assistant"},
    {"failure_id": 2, "step_number": 4, "step_reason": "r2", "failure_category": "c2", "failed_agent": "Websurfer"},
    {"failure_id": 3, "step_number": 4, "step_reason": "r3", "failure_category": "c1", "failed_agent": "Websurfer"},
]
TURNS = [{"index": number, "role": role, "content": "x"} for number, role in enumerate("abcd", start=1)]
RECORD: dict[str, Any] = {
    "trajectory_id": 104,
    "failures": FAILURES,
    "root_cause": {"failure_id": 1, "reason_for_root_cause": "because"},
}


def test_records(write: Write, rows: Rows) -> None:
    tables = read_logs(write("tau.json", [RECORD, {**RECORD, "trajectory_id": "x-1", "root_cause": None}]))
    assert rows(tables.logs, "log_id", "split", "n_steps") == [("tau/104", "tau", None), ("tau/x-1", "tau", None)]
    columns = ("annotator", "step", "is_failure", "agent", "reason", "category")
    assert rows(tables.annotations[tables.annotations["log_id"] == "tau/104"], *columns) == [
        ("expert", 1, True, "Assistant", "r1", "c1"),
        ("expert", 3, True, "Websurfer", "r2\nr3", "c2; c1"),
        ("root cause", 1, True, "Assistant", "r1", "c1"),
        ("root cause", 3, False, None, None, None),
    ]
    assert tables.annotations.loc[lambda t: t["log_id"] == "tau/x-1", "annotator"].unique().tolist() == ["expert"]
    # the root cause is a selection from the failures, no copy of an annotator
    assert tables.anomalies.empty


@pytest.mark.parametrize("content", [json.dumps(RECORD), json.dumps([RECORD]), json.dumps(RECORD) + "\n\n"])
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_one_record_however_it_is_wrapped(write: Write, rows: Rows, content: str, suffix: str) -> None:
    assert rows(read_logs(write(f"m.{suffix}", content)).logs, "log_id") == [("m/104",)]


def test_json_lines_go_on_after_a_broken_line(write: Write) -> None:
    file = write("m.jsonl", f"{json.dumps(RECORD)}\n{{\n{json.dumps({**RECORD, 'trajectory_id': 'b'})}\n5\n")
    tables, problems = read_logs(file, strict=False)
    assert tables.logs["log_id"].tolist() == ["m/104", "m/b"]
    assert problems["row"].tolist() == ["2", "4"]


@pytest.mark.parametrize("name", ["traj", "trajectory_snippet"])
def test_turns_give_length_and_speakers(write: Write, rows: Rows, name: str) -> None:
    tables = read_logs(write("m.json", {**RECORD, name: TURNS}))
    assert rows(tables.logs, "n_steps") == [(4,)]
    assert rows(tables.steps, "step", "agent") == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    assert len(tables.annotations) == 8


def test_a_snippet_that_ends_before_a_failure_is_not_the_log(write: Write, rows: Rows) -> None:
    assert rows(read_logs(write("m.json", {**RECORD, "trajectory_snippet": TURNS[:3]})).logs, "n_steps") == [(None,)]
    assert rows(read_logs(write("m.json", {**RECORD, "trajectory_snippet": TURNS[2:]})).logs, "n_steps") == [(None,)]


def test_turns_that_do_not_count_from_1_are_located(write: Write) -> None:
    file = write("m.json", {**RECORD, "traj": TURNS[1:]})
    with pytest.raises(DataError, match=r"do not run 1, 2, …") as caught:
        read_logs(file)
    assert caught.value.column == "traj.index"


def test_a_failure_beyond_the_turns_is_located(write: Write) -> None:
    with pytest.raises(DataError, match="names step 3 of log 'm/104', which has 3 steps"):
        read_logs(write("m.json", {**RECORD, "traj": TURNS[:3]}))


@pytest.mark.parametrize("number", [0, -1, 1.5, "three", True, None])
def test_a_step_number_that_is_none_is_located(write: Write, number: object) -> None:
    failures = [{**FAILURES[0], "step_number": number}, *FAILURES[1:]]
    file = write("m.json", [{**RECORD, "failures": failures, "root_cause": {"failure_id": 2}, "traj": TURNS}])
    with pytest.raises(DataError, match="step is ") as caught:
        read_logs(file)
    assert (caught.value.row, caught.value.column) == ("item 0", "failures[0].step_number")
    tables, problems = read_logs(file, strict=False)
    # the expert flagged a step that nobody knows; the root cause is known
    assert tables.annotations.groupby("annotator").size().to_dict() == {"expert": 1, "root cause": 4}
    assert len(problems) == 1


@pytest.mark.parametrize("root_cause", [{"failure_id": 9}, {}, "x", 5, [1], {"failure_id": None}])
def test_a_root_cause_that_is_no_failure_is_located(write: Write, root_cause: object) -> None:
    file = write("m.json", {**RECORD, "root_cause": root_cause})
    with pytest.raises(DataError, match=r"the root cause .* is none of the failures"):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert tables.annotations["annotator"].unique().tolist() == ["expert"]
    assert len(problems) == 1


@pytest.mark.parametrize("trajectory_id", [None, 1.5, True, [], "", "\ud800"])
def test_a_trajectory_without_a_name_is_a_problem(write: Write, trajectory_id: object) -> None:
    tables, problems = read_logs(write("m.json", {**RECORD, "trajectory_id": trajectory_id}), strict=False)
    assert tables.logs.empty
    assert problems["column"].tolist() == ["trajectory_id"]


@pytest.mark.parametrize("failures", [None, {}, "x", 5, [5], [None], ["x"]])
def test_failures_that_are_no_list_of_objects(write: Write, failures: object) -> None:
    record = {**RECORD, "failures": failures, "root_cause": None}
    tables, problems = read_logs(write("m.json", record), strict=False)
    assert tables.annotations.empty
    assert len(tables.logs) == len(problems) == 1


def test_one_trajectory_twice_is_refused(write: Write) -> None:
    with pytest.raises(DataError, match="annotator 'expert' judges log 'm/104' here and in"):
        read_logs(write("m.json", [RECORD, {**RECORD, "trajectory_id": "104"}]))


def test_a_list_with_something_else_in_it_is_located(write: Write) -> None:
    tables, problems = read_logs(write("m.json", [RECORD, 5]), strict=False)
    assert len(tables.logs) == 1
    assert problems["row"].tolist() == ["item 1"]
