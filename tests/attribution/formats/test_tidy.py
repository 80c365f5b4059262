"""The in-house CSV form: tables of a folder, single files known by their columns, labels, and cells at fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.attribution.read import LogTables, read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]

LOGS = "log_id,split,n_steps\nmanual/1,manual,3\nmanual/2,manual,2\n"
ANNOTATIONS = """log_id,step,annotator,is_failure,agent,reason
manual/1,1,ann,true,A,"because, it
failed"
manual/1,2,ann,0,,
manual/1,0,bob,FALSE,,
manual/2,0,ann,1,,
"""
PREDICTIONS = """log_id,model,sample,position,step,agent,reason,ideal_action
manual/1,gpt,0,1,2,,,
manual/1,gpt,0,0,1,A,r,i
manual/2,gpt,0,0,5,,,
"""
ATTEMPTS = """log_id,model,sample,status,ranked,n_unreadable
manual/1,gpt,0,ok,true,2
manual/2,gpt,0,ok,false,0
manual/2,gpt,1,truncated,0,0
"""


def _statuses(tables: LogTables, rows: Rows) -> list[tuple[Any, ...]]:
    return rows(tables.attempts, "log_id", "model", "sample", "status", "ranked", "n_unreadable")


def test_a_folder_of_all_tables(write: Write, rows: Rows) -> None:
    write("logs.csv", LOGS)
    write("steps.csv", "log_id,step,role,agent\nmanual/1,1,B (x),\nmanual/1,0,A,Z\nmanual/1,2,,\n")
    write("annotations.csv", ANNOTATIONS)
    write("attempts.csv", ATTEMPTS)
    folder = write("predictions.csv", PREDICTIONS.replace(",5,", ",1,")).parent
    tables = read_logs(folder)
    columns = ("log_id", "split", "n_steps", "source", "release")
    assert rows(tables.logs, *columns) == [
        ("manual/1", "manual", 3, "csv", None),
        ("manual/2", "manual", 2, "csv", None),
    ]
    assert rows(tables.steps, "log_id", "step", "role", "agent") == [
        ("manual/1", 0, "A", "Z"),
        ("manual/1", 1, "B (x)", "B"),
        ("manual/1", 2, None, None),
    ]
    # nothing is filled in: what an annotator does not list was not judged
    assert rows(tables.annotations, "log_id", "step", "annotator", "is_failure", "reason") == [
        ("manual/1", 1, "ann", True, "because, it\nfailed"),
        ("manual/1", 2, "ann", False, None),
        ("manual/1", 0, "bob", False, None),
        ("manual/2", 0, "ann", True, None),
    ]
    assert rows(tables.predictions, "log_id", "position", "step", "agent") == [
        ("manual/1", 0, 1, "A"),
        ("manual/1", 1, 2, None),
        ("manual/2", 0, 1, None),
    ]
    assert _statuses(tables, rows) == [
        ("manual/1", "gpt", 0, "ok", True, 2),
        ("manual/2", "gpt", 0, "ok", False, 0),
        ("manual/2", "gpt", 1, "truncated", False, 0),
    ]


def test_reviews_say_who_went_through_the_whole_log(write: Write, rows: Rows) -> None:
    write("logs.csv", LOGS)
    write("annotations.csv", ANNOTATIONS)
    folder = write("reviews.csv", "log_id,annotator\nmanual/1,ann\nmanual/2,carl\n").parent
    tables = read_logs(folder)
    assert rows(tables.annotations, "log_id", "annotator", "step", "is_failure") == [
        ("manual/1", "ann", 0, False),
        ("manual/1", "ann", 1, True),
        ("manual/1", "ann", 2, False),
        ("manual/1", "bob", 0, False),
        ("manual/2", "ann", 0, True),
        ("manual/2", "carl", 0, False),
        ("manual/2", "carl", 1, False),
    ]


def test_reviews_do_not_say_what_an_unreadable_row_says(write: Write, rows: Rows) -> None:
    write("logs.csv", LOGS)
    bad = "log_id,step,annotator,is_failure\nmanual/1,1,ann,yes\nmanual/1,x,bob,1\nmanual/1,0,bob,1\n"
    write("annotations.csv", bad)
    folder = write("reviews.csv", "log_id,annotator\nmanual/1,ann\nmanual/1,bob\n").parent
    tables, problems = read_logs(folder, strict=False)
    assert rows(tables.annotations, "annotator", "step", "is_failure") == [
        ("ann", 0, False),
        ("ann", 2, False),
        ("bob", 0, True),
    ]
    assert len(problems) == 2


def test_reviews_of_logs_of_unknown_length(write: Write, rows: Rows) -> None:
    write("annotations.csv", "log_id,step,annotator,is_failure\na,4,x,1\n")
    folder = write("reviews.csv", "log_id,annotator\na,y\nb,y\n").parent
    tables = read_logs(folder)
    assert rows(tables.logs, "log_id", "split", "n_steps") == [("a", "all", None), ("b", "all", None)]
    assert rows(tables.annotations, "log_id", "annotator", "step", "is_failure") == [
        ("a", "x", 4, True),
        ("a", "y", 4, False),
        ("b", "y", 0, False),
    ]


@pytest.mark.parametrize("name", ["annotations.csv", "whatever.csv"])
def test_annotations_alone_make_the_logs(write: Write, rows: Rows, name: str) -> None:
    tables = read_logs(write(name, ANNOTATIONS))
    assert rows(tables.logs, "log_id", "split", "n_steps") == [
        ("manual/1", "manual", None),
        ("manual/2", "manual", None),
    ]
    assert len(tables.annotations) == 4


def test_predictions_alone_make_the_samples(write: Write, rows: Rows) -> None:
    tables = read_logs(write("x.csv", "log_id,model,sample,step\nb,m,0,3\na,m,0,3\na,m,0,3\na,m,1,0\n"))
    assert rows(tables.predictions, "log_id", "sample", "position", "step") == [
        ("b", 0, 0, 3),
        ("a", 0, 0, 3),
        ("a", 0, 1, 3),
        ("a", 1, 0, 0),
    ]
    assert _statuses(tables, rows) == [
        ("b", "m", 0, "ok", False, 0),
        ("a", "m", 0, "ok", False, 0),
        ("a", "m", 1, "ok", False, 0),
    ]


def test_attempts_alone(write: Write, rows: Rows) -> None:
    tables = read_logs(write("x.csv", "log_id,model,sample,status\na,m,0,abstained\na,m,1,missing\n"))
    assert [row[3] for row in _statuses(tables, rows)] == ["abstained", "missing"]
    assert tables.predictions.empty


def test_steps_that_have_no_gap_tell_the_length(write: Write, rows: Rows) -> None:
    tables = read_logs(write("x.csv", "log_id,step,role\na,1,B\na,0,A\nb,1,A\nb,2,A\n"))
    assert rows(tables.logs, "log_id", "n_steps") == [("a", 2), ("b", None)]


@pytest.mark.parametrize("steps", ["a,0,A\n", "a,0,A\na,2,A\n", "a,0,A\na,1,A\na,2,A\na,3,A\n"])
def test_steps_that_do_not_fit_the_length_are_located(write: Write, steps: str) -> None:
    write("logs.csv", "log_id,n_steps\na,3\n")
    file = write("steps.csv", f"log_id,step,role\n{steps}")
    with pytest.raises(DataError, match=r"steps of log 'a', which has 3; list every step") as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.column) == (file, "step")


@pytest.mark.parametrize("table", ["logs", "steps", "annotations", "predictions", "attempts", "reviews"])
def test_a_table_with_a_header_alone(write: Write, table: str) -> None:
    header = {
        "logs": "log_id",
        "steps": "log_id,step",
        "annotations": ANNOTATIONS.split("\n")[0],
        "predictions": "log_id,model,sample,step",
        "attempts": ATTEMPTS.split("\n")[0],
        "reviews": "log_id,annotator",
    }[table]
    tables = read_logs(write(f"{table}.csv", header + "\n"))
    assert tables.logs.empty
    assert tables.annotations.empty


# ---- cells at fault ------------------------------------------------------------------------------------------------


def _fault(write: Write, name: str, text: str) -> tuple[DataError, LogTables, pd.DataFrame]:
    file = write(name, text)
    with pytest.raises(DataError) as caught:
        read_logs(file)
    assert caught.value.file == file
    tables, problems = read_logs(file, strict=False)
    assert (problems["file"] == str(file)).all()
    return caught.value, tables, problems


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("1.5", "step is '1.5', not a whole number"),
        ("three", "step is 'three', not a whole number"),
        ("-1", "step is '-1', but steps count from 0"),
        ("", "step is '', not a whole number"),
        ("1e400", "step is '1e400', not a whole number"),
        ("true", "step is 'true', not a whole number"),
        ("1" * 30, f"step is '{'1' * 30}', not a whole number"),
    ],
)
def test_a_step_of_an_annotation(write: Write, step: str, found: str) -> None:
    text = f'log_id,step,annotator,is_failure,reason\na,0,x,0,"two\nlines"\na,{step},x,1,\na,3.0,x,1,\n'
    error, tables, problems = _fault(write, "x.csv", text)
    assert error.problem == found
    assert (error.row, error.column) == (4, "step")  # the line of the file
    assert tables.annotations["step"].tolist() == [0, 3]
    assert len(problems) == 1


@pytest.mark.parametrize("flag", ["yes", "", "2", "1.0", "None", "wahr"])
def test_a_boolean(write: Write, flag: str) -> None:
    text = f"log_id,step,annotator,is_failure\na,0,x,True\na,1,x,{flag}\na,2,x,fAlSe\n"
    error, tables, _ = _fault(write, "x.csv", text)
    assert error.problem == f"is_failure is '{flag}', not a boolean"
    assert (error.row, error.column) == (3, "is_failure")
    assert tables.annotations["is_failure"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "text", "row", "column", "problem"),
    [
        ("x.csv", "log_id,step,annotator,is_failure\n,0,x,1\n", 2, "log_id", "no log_id"),
        ("x.csv", "log_id,step,annotator,is_failure\na,0,,1\n", 2, "annotator", "no annotator"),
        ("x.csv", "log_id,step,annotator,is_failure\na,0,x,1\na,0,x,0\n", 3, "step", "stands twice"),
        ("x.csv", "log_id,model,sample,step\na,,0,1\n", 2, "model", "no model"),
        ("x.csv", "log_id,model,sample,step\na,m,x,1\n", 2, "sample", "sample is 'x', not a whole number"),
        ("x.csv", "log_id,model,sample,step\na,m,-1,1\n", 2, "sample", "but"),
        ("x.csv", "log_id,model,sample,step,position\na,m,0,1,p\n", 2, "position", "position is 'p'"),
        ("x.csv", "log_id,model,sample,step,position\na,m,0,1,0\na,m,0,2,0\n", 3, "position", "stands twice"),
        ("x.csv", "log_id,model,sample,status\na,m,0,fine\n", 2, "status", "'status' must be one of"),
        ("x.csv", "log_id,model,sample,status\na,m,0,missing\na,m,0,missing\n", 3, "sample", "stands twice"),
        ("x.csv", "log_id,model,sample,status,ranked\na,m,0,missing,perhaps\n", 2, "ranked", "not a boolean"),
        ("x.csv", "log_id,model,sample,status,n_unreadable\na,m,0,missing,-2\n", 2, "n_unreadable", "n_unreadable is"),
        ("x.csv", "log_id,n_steps\na,0\n", 2, "n_steps", "n_steps is '0', not a number of steps"),
        ("x.csv", "log_id,n_steps\na,x\n", 2, "n_steps", "n_steps is 'x', not a number of steps"),
        ("logs.csv", "log_id\na\na\n", 3, "log_id", "log 'a' stands twice"),
        ("x.csv", "log_id,step,role\na,0,A\na,0,B\n", 3, "step", "stands twice"),
        ("x.csv", "log_id,annotator\na,\n", 2, "annotator", "no annotator"),
        ("x.csv", "a,b\n1,2\n", 1, None, "no table that is known here (found ['a', 'b'])"),
        (
            "annotations.csv",
            "log_id,step\na,0\n",
            1,
            None,
            "annotations without the columns ['annotator', 'is_failure']",
        ),
        ("x.csv", "log_id,step,annotator,is_failure\na,0,x\n", 2, None, "3 cells where the header has 4"),
    ],
)
def test_a_fault_names_its_line(write: Write, name: str, text: str, row: int, column: str | None, problem: str) -> None:
    error, _, problems = _fault(write, name, text)
    assert problem in error.problem
    assert (error.row, error.column) == (row, column)
    assert len(problems) == 1


def test_a_log_that_is_not_on_the_list_is_located_and_kept(write: Write, rows: Rows) -> None:
    write("logs.csv", LOGS)
    file = write("annotations.csv", ANNOTATIONS.replace("manual/2", "manual/02"))
    with pytest.raises(DataError, match=r"log 'manual/02' is not in logs.csv") as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.row) == (file, 6)
    tables, problems = read_logs(file.parent, strict=False)
    assert rows(tables.logs, "log_id", "n_steps") == [("manual/1", 3), ("manual/2", 2), ("manual/02", None)]
    assert len(problems) == 1


def test_a_label_beyond_the_log_is_located(write: Write) -> None:
    write("logs.csv", LOGS)
    file = write("annotations.csv", "log_id,step,annotator,is_failure\nmanual/2,1,x,0\nmanual/2,2,x,1\n")
    with pytest.raises(DataError, match="annotator 'x' names step 2 of log 'manual/2', which has 2 steps") as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, 3, "step")
    tables, problems = read_logs(file.parent, strict=False)
    assert tables.annotations["step"].tolist() == [1, 2]
    assert len(problems) == 1


def test_a_prediction_beyond_the_log_is_located_and_kept(write: Write) -> None:
    write("logs.csv", LOGS)
    file = write("predictions.csv", PREDICTIONS)
    with pytest.raises(
        DataError, match="a prediction of 'gpt' names step 5 of log 'manual/2', which has 2 steps"
    ) as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.row) == (file, 4)
    tables, _ = read_logs(file.parent, strict=False)
    assert tables.predictions["step"].tolist() == [1, 2, 5]


# ---- samples -------------------------------------------------------------------------------------------------------


def test_unreadable_steps_are_counted(write: Write, rows: Rows) -> None:
    text = "log_id,model,sample,step\na,m,0,x\na,m,0,3\na,m,1,x\na,m,1,-1\n"
    tables, problems = read_logs(write("predictions.csv", text), strict=False)
    assert _statuses(tables, rows) == [("a", "m", 0, "ok", False, 1), ("a", "m", 1, "unparsable", False, 2)]
    assert rows(tables.predictions, "position", "step") == [(0, 3)]
    assert len(problems) == 3
    write("attempts.csv", "log_id,model,sample,status,n_unreadable\na,m,0,ok,4\na,m,1,ok,0\n")
    tables, problems = read_logs(write("predictions.csv", text).parent, strict=False)
    assert _statuses(tables, rows) == [("a", "m", 0, "ok", False, 5), ("a", "m", 1, "unparsable", False, 2)]
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("status", "becomes", "n_predictions"),
    [("abstained", "ok", 1), ("truncated", "truncated", 0), ("unparsable", "unparsable", 0), ("missing", "missing", 0)],
)
def test_a_status_that_what_is_listed_contradicts(
    write: Write, rows: Rows, status: str, becomes: str, n_predictions: int
) -> None:
    write("predictions.csv", "log_id,model,sample,step\na,m,0,3\n")
    file = write("attempts.csv", f"log_id,model,sample,status\na,m,0,{status}\n")
    with pytest.raises(DataError, match=f"sample 0 of 'm' for log 'a' is '{status}', yet lists steps") as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, 2, "status")
    tables, problems = read_logs(file.parent, strict=False)
    assert [row[3] for row in _statuses(tables, rows)] == [becomes]
    assert len(tables.predictions) == n_predictions
    assert len(problems) == 1


def test_ok_needs_a_step(write: Write, rows: Rows) -> None:
    file = write("attempts.csv", "log_id,model,sample,status\na,m,0,ok\n")
    with pytest.raises(DataError, match="is 'ok', yet lists no step"):
        read_logs(file)
    tables, _ = read_logs(file, strict=False)
    assert [row[3] for row in _statuses(tables, rows)] == ["abstained"]


def test_a_sample_in_two_files_is_refused_or_the_first_is_kept(write: Write, rows: Rows) -> None:
    header = "log_id,model,sample,step\n"
    write("a.csv", f"{header}x,m,0,1\nx,m,0,2\n")
    file = write("b.csv", f"{header}x,m,1,1\nx,m,0,5\nx,m,0,6\n")
    with pytest.raises(DataError, match=r"sample 0 of 'm' for log 'x' stands here and in .*a.csv") as caught:
        read_logs(file.parent)
    assert (caught.value.file, caught.value.row) == (file, 3)
    tables, problems = read_logs(file.parent, strict=False)
    assert rows(tables.predictions, "sample", "step") == [(0, 1), (0, 2), (1, 1)]
    assert len(problems) == 1
    # and across folders
    write("a/x.csv", f"{header}y,m,0,1\n")
    other = write("b/x.csv", f"{header}y,m,0,7\n").parents[1]
    tables, problems = read_logs(other, strict=False)
    assert rows(tables.predictions.loc[lambda t: t["log_id"] == "y"], "step") == [(1,)]


def test_an_annotator_in_two_files_is_refused_or_the_first_is_kept(write: Write, rows: Rows) -> None:
    header = "log_id,step,annotator,is_failure\n"
    write("a.csv", f"{header}x,1,ann,1\n")
    file = write("b.csv", f"{header}x,0,bob,1\nx,0,ann,1\nx,2,ann,1\n")
    with pytest.raises(DataError, match=r"annotator 'ann' judges log 'x' here and in .*a.csv, row 2"):
        read_logs(file.parent)
    tables, problems = read_logs(file.parent, strict=False)
    assert rows(tables.annotations, "annotator", "step") == [("ann", 1), ("bob", 0)]
    assert len(problems) == 1


# ---- labels --------------------------------------------------------------------------------------------------------

LABELS = "log_id,subset,n_steps,mistake_step,mistake_agent,question_sha256,history_sha256,release\n"


def test_labels_take_the_speakers_from_the_file_beside(write: Write, rows: Rows) -> None:
    write("our-steps.csv", "log_id,step,role\nh/1,0,human\nh/1,1,Orchestrator (thought)\n")
    file = write("our-labels.csv", LABELS + "h/1,h,2,1,orchestrator,qq,hh,first\nh/2,h,3,,,,,\n")
    for path in (file, file.parent):
        tables = read_logs(path)
        assert rows(
            tables.logs, "log_id", "split", "n_steps", "question_id", "source", "release", "content_sha256"
        ) == [
            ("h/1", "h", 2, "qq", "who-and-when", "first", "hh"),
            ("h/2", "h", 3, None, "who-and-when", None, None),
        ]
        assert rows(tables.steps, "step", "agent") == [(0, "human"), (1, "Orchestrator")]
        assert rows(tables.annotations, "log_id", "step", "annotator", "is_failure", "agent") == [
            ("h/1", 0, "label", False, None),
            ("h/1", 1, "label", True, "orchestrator"),
        ]
        assert tables.anomalies.empty  # agents are compared without regard to case


def test_labels_without_speakers(write: Write) -> None:
    tables = read_logs(write("labels.csv", LABELS + "h/1,h,2,1,A,,,\n"))
    assert tables.steps.empty
    assert len(tables.annotations) == 2


@pytest.mark.parametrize("step", ["x", "1.5", "-1"])
def test_a_label_that_cannot_be_read_is_located(write: Write, step: str) -> None:
    error, tables, _ = _fault(write, "labels.csv", LABELS + f"h/1,h,2,{step},A,,,\n")
    assert (error.row, error.column) == (2, "mistake_step")
    assert tables.annotations.empty
    assert len(tables.logs) == 1


def test_a_log_with_two_labels_is_refused(write: Write) -> None:
    error, tables, _ = _fault(write, "labels.csv", LABELS + "h/1,h,2,1,A,,,\nh/1,h,2,0,A,,,\n")
    assert "annotator 'label' judges log 'h/1' here and in" in error.problem
    assert tables.annotations["is_failure"].tolist() == [False, True]
