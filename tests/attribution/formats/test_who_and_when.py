"""Who&When: both subsets, the key variants of all releases, and labels that cannot be read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultbook.attribution.formats.values import collapsed
from faultbook.attribution.read import read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]

AG: dict[str, Any] = {
    "is_correct": False,
    "question": "How many?",
    "question_ID": "q-1",
    "level": "1",
    "ground_truth": "42",
    "history": [
        {"content": "plan", "role": "assistant", "name": "Excel_Expert"},
        {"content": "exitcode: 0", "role": "user", "name": "Computer_terminal"},
        {"content": "41", "role": "assistant", "name": "Blu-Ray_Expert"},
    ],
    "mistake_agent": "Blu-Ray_Expert",
    "mistake_step": "2",
    "mistake_reason": "miscounted",
    "system_prompt": {},
}
HC: dict[str, Any] = {
    "is_corrected": False,
    "question": " How many?\n",
    "question_ID": "q-1",
    "level": 1,
    "ground_truth": "42",
    "history": [
        {"content": "How many?", "role": "human"},
        {"content": "I look", "role": "Orchestrator (thought)"},
        {"content": "search", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "a page", "role": "WebSurfer"},
    ],
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "wrong page",
}


def test_an_algorithm_generated_log(write: Write, rows: Rows) -> None:
    tables = read_logs(write("Algorithm-Generated/7.json", AG))
    question = hashlib.sha256(b"How many?").hexdigest()
    columns = ("log_id", "split", "n_steps", "question_id", "source", "release")
    assert rows(tables.logs, *columns) == [
        ("algorithm-generated/7", "algorithm-generated", 3, question, "who-and-when", "2025-06 or later")
    ]
    # the speaker is `name`: `role` is that of a chat
    assert rows(tables.steps, "step", "role", "agent") == [
        (0, "Excel_Expert", "Excel_Expert"),
        (1, "Computer_terminal", "Computer_terminal"),
        (2, "Blu-Ray_Expert", "Blu-Ray_Expert"),
    ]
    assert rows(tables.annotations, "step", "annotator", "is_failure", "agent", "reason") == [
        (0, "label", False, None, None),
        (1, "label", False, None, None),
        (2, "label", True, "Blu-Ray_Expert", "miscounted"),
    ]
    assert tables.predictions.empty
    assert tables.attempts.empty
    assert tables.anomalies.empty


def test_a_hand_crafted_log(write: Write, rows: Rows) -> None:
    tables = read_logs(write("Hand-Crafted/12.json", HC))
    assert rows(tables.steps, "role", "agent")[1:3] == [
        ("Orchestrator (thought)", "Orchestrator"),
        ("Orchestrator (-> WebSurfer)", "Orchestrator"),
    ]
    assert rows(tables.annotations[tables.annotations["is_failure"]], "log_id", "step") == [("hand-crafted/12", 3)]


def test_one_question_has_one_id_in_both_subsets(write: Write) -> None:
    write("Algorithm-Generated/1.json", AG)
    folder = write("Hand-Crafted/1.json", HC).parents[1]
    tables = read_logs(folder)
    assert tables.logs["question_id"].nunique() == 1
    assert set(tables.anomalies["check"]) == {"question in several splits"}


def test_the_first_release_is_known_by_its_keys(write: Write, rows: Rows) -> None:
    # ag2ai/Agents_Failure_Attribution renamed groundtruth and question_id in d14db54 … cf18daa
    old = {**HC, "groundtruth": HC["ground_truth"], "question_id": "q"}
    del old["ground_truth"], old["question_ID"]
    tables = read_logs(write("Hand-Crafted/1.json", old))
    assert rows(tables.logs, "release") == [("first",)]
    assert tables.logs["content_sha256"].tolist() == read_logs(write("b/1.json", HC)).logs["content_sha256"].tolist()


@pytest.mark.parametrize("answer", ["ground_truth", "groundtruth"])
def test_no_answer_to_a_question_enters_a_table(write: Write, answer: str) -> None:
    tables = read_logs(write("a/1.json", {**HC, answer: "the answer is 4711"}))
    frames = (tables.logs, tables.steps, tables.annotations, tables.anomalies)
    assert not any("4711" in frame.to_csv() for frame in frames)


@pytest.mark.parametrize(
    ("folder", "split"),
    [
        ("Hand-Crafted", "hand-crafted"),
        ("hand_crafted", "hand-crafted"),
        ("Algorithm-Generated/more", "algorithm-generated"),
        ("our runs", "our runs"),
    ],
)
def test_the_split_is_the_folder(write: Write, folder: str, split: str) -> None:
    assert read_logs(write(f"{folder}/3.json", HC)).logs["log_id"].tolist() == [f"{split}/3"]


@pytest.mark.parametrize("step", ["2", 2, 2.0, "2.0"])
def test_a_step_is_read_however_it_is_written(write: Write, step: object) -> None:
    tables = read_logs(write("a/1.json", {**HC, "mistake_agent": None, "mistake_step": step}))
    assert tables.annotations.loc[lambda t: t["is_failure"], "step"].tolist() == [2]


@pytest.mark.parametrize("step", [1.5, "three", -1, True, None, [1], {"a": 1}, float("nan"), 10**40])
def test_a_label_that_cannot_be_read_is_located(write: Write, step: object) -> None:
    file = write("a/1.json", {**HC, "mistake_step": step})
    with pytest.raises(DataError, match="step is ") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "mistake_step")
    tables, problems = read_logs(file, strict=False)
    # it flagged some step: to call all of them unflagged would be untrue
    assert tables.annotations.empty
    assert len(tables.logs) == len(problems) == 1


def test_a_label_beyond_the_log(write: Write, rows: Rows) -> None:
    # releases before July 2025: hand-crafted 34, 53 and 54
    file = write("Hand-Crafted/34.json", {**HC, "mistake_step": "8"})
    with pytest.raises(DataError, match="names step 8 of log 'hand-crafted/34', which has 4 steps") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "step")
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.annotations, "step", "is_failure")[-1] == (8, True)
    assert len(tables.annotations) == 5
    assert len(problems) == 1
    assert rows(tables.anomalies, "check", "found") == [("label out of range", "step 8 of 4 steps")]
    dropped = read_logs(file, anomalies="drop")
    assert dropped.logs.empty
    assert dropped.annotations.empty
    assert len(dropped.anomalies) == 1


@pytest.mark.parametrize("agent", [5.5, ["WebSurfer"], {"a": 1}, "\ud800", True, "x" * 10_000])
def test_an_agent_that_is_no_name_is_located(write: Write, agent: object) -> None:
    file = write("a/1.json", {**HC, "mistake_agent": agent})
    with pytest.raises(DataError, match="agent is "):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert tables.annotations.loc[lambda t: t["is_failure"], "agent"].isna().tolist() == [True]
    assert len(problems) == 1
    assert len(problems["problem"][0]) < 300


@pytest.mark.parametrize("history", [[], None, {}, "text", 5])
def test_a_log_without_history_has_an_unknown_length(write: Write, history: object) -> None:
    file = write("a/1.json", {**HC, "history": history})
    with pytest.raises(DataError, match="history is "):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert tables.logs["n_steps"].isna().tolist() == [True]
    assert tables.annotations["step"].tolist() == [3]
    assert len(problems) == 1


def test_a_turn_that_is_no_object_is_a_step_still(write: Write) -> None:
    history = [HC["history"][0], ["odd"], *HC["history"][2:]]
    tables, problems = read_logs(write("a/1.json", {**HC, "history": history}), strict=False)
    assert tables.logs["n_steps"].tolist() == [4]
    assert tables.steps["role"].isna().tolist() == [False, True, False, False]
    assert problems["column"].tolist() == ["history[1]"]


def test_contents_and_speakers_make_the_digest(write: Write) -> None:
    other_name = [{**HC["history"][0], "role": "user"}, *HC["history"][1:]]
    other_text = [{**HC["history"][0], "content": "How much?"}, *HC["history"][1:]]
    digests = [
        read_logs(write(f"a{number}/1.json", {**HC, "history": history})).logs["content_sha256"][0]
        for number, history in enumerate((HC["history"], other_name, other_text, list(HC["history"])))
    ]
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("speaker", "agent"),
    [
        ("Orchestrator (termination condition)", "Orchestrator"),
        ("Product Manager", "Product Manager"),
        ("human", "human"),
        (" (x)", " (x)"),
        (None, None),
    ],
)
def test_speakers_collapse_to_agents(speaker: str | None, agent: str | None) -> None:
    assert collapsed(speaker) == agent
