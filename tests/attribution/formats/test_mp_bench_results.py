"""Predictions for MP-Bench: samples of the evaluator, whatever became of the reply, and lists of the leaderboard."""

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

PLACE = "results/openai_gpt/all_at_once/seed_1/manual/7.json"
ITEMS = [
    {"agent_name": "WebSurfer", "step_number": 3, "failure_reason": "r", "ideal_action": "i", "fail_category": "c"},
    {"agent_name": "Orchestrator", "step_number": "1", "failure_reason": "", "ideal_action": None},
]
LOG: dict[str, Any] = {
    "question": "Q",
    "ground_truth": "4711",
    "history": [{"content": str(step), "role": "A", "step": str(step), "fail_annotation": "1"} for step in range(5)],
}
ATTEMPT = ("log_id", "model", "sample", "status", "ranked", "n_unreadable")


def test_a_result(write: Write, rows: Rows) -> None:
    tables = read_logs(write(PLACE, {**LOG, "failure_attribution": ITEMS, "failure_attribution_reasoning": "hm"}))
    assert rows(tables.attempts, *ATTEMPT) == [("manual/7", "openai_gpt", 1, "ok", False, 0)]
    columns = ("log_id", "model", "sample", "position", "step", "agent", "reason", "ideal_action")
    assert rows(tables.predictions, *columns) == [
        ("manual/7", "openai_gpt", 1, 0, 3, "WebSurfer", "r", "i"),
        ("manual/7", "openai_gpt", 1, 1, 1, "Orchestrator", None, None),
    ]
    assert rows(tables.logs, "log_id", "n_steps", "source") == [("manual/7", 5, "mp-bench-predictions")]
    # the file is a copy of an annotated log: its annotations are another annotator's, and its answer nobody's
    assert tables.annotations.empty
    assert "4711" not in "".join(frame.to_csv() for frame in (tables.logs, tables.steps, tables.predictions))


def test_the_annotated_log_says_what_the_log_is(write: Write, rows: Rows) -> None:
    write(f"a/{PLACE}", {**LOG, "failure_attribution": []})
    folder = write("b/1/manual/7.json", LOG).parents[3]
    tables = read_logs(folder)
    assert rows(tables.logs, "log_id", "source") == [("manual/7", "mp-bench")]
    assert len(tables.annotations) == 5


@pytest.mark.parametrize(
    "reply",
    [
        ITEMS,
        json.dumps(ITEMS),
        f"```json\n{json.dumps(ITEMS)}\n```",
        f"<think>step 9? no.</think>\n{json.dumps(ITEMS)}",
        f'[{{"step_number": 9}}] no</think>```json\n{json.dumps(ITEMS)}\n```',
        f"Here you are: {json.dumps(ITEMS)} Good luck!",
        json.dumps(ITEMS)[:-1],
        json.dumps({"failure_attribution": ITEMS}),
        {"failure_attribution": ITEMS},
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_reply_in_any_wrapping(write: Write, rows: Rows, reply: Any, alone: bool) -> None:
    file = write(PLACE, reply if alone else {"failure_attribution": reply})
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.predictions, "step") == [(3,), (1,)]
    assert rows(tables.attempts, "status", "n_unreadable") == [("ok", 0)]
    assert len(problems) <= 1


def test_a_reply_as_a_text_file(write: Write, rows: Rows) -> None:
    file = write(PLACE.replace(".json", ".txt"), f"```\n{json.dumps(ITEMS)}\n```")
    write("results/notes.txt", "not a reply: it lies nowhere")
    for path in (file, file.parents[5]):
        tables, problems = read_logs(path, strict=False)
        assert rows(tables.predictions, "log_id", "step") == [("manual/7", 3), ("manual/7", 1)]
        assert problems["problem"].tolist() == ["the reply is not strict JSON"]


def test_one_object_is_a_list_of_one(write: Write, rows: Rows) -> None:
    assert rows(read_logs(write(PLACE, {"failure_attribution": ITEMS[0]})).predictions, "step") == [(3,)]


def test_an_empty_list_is_an_abstention(write: Write, rows: Rows) -> None:
    for reply in ([], "[]"):
        tables = read_logs(write(PLACE, {"failure_attribution": reply}))
        assert rows(tables.attempts, "status", "n_unreadable") == [("abstained", 0)]
        assert tables.predictions.empty
        assert len(tables.logs) == 1


@pytest.mark.parametrize(
    "reply", [None, "", "I cannot tell.", {}, {"steps": [1]}, 5, True, "{", "[" * 100_000, "the steps [3, 5], I think"]
)
def test_a_reply_without_a_list_is_unparsable(write: Write, rows: Rows, reply: Any) -> None:
    file = write(PLACE, {"failure_attribution": reply})
    with pytest.raises(DataError, match="the reply lists no steps") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "failure_attribution")
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.attempts, "status") == [("unparsable",)]
    assert len(problems) == 1


@pytest.mark.parametrize(
    "payload",
    [
        {"failure_attribution": f"<think>it must be {json.dumps(ITEMS)}"},
        {"failure_attribution": json.dumps(ITEMS)[:40], "finish_reason": "length"},
        {"failure_attribution": ITEMS, "stop_reason": "max_tokens"},
        f"<think>it must be {json.dumps(ITEMS)}",
    ],
)
def test_a_reply_that_was_cut_off_is_no_answer(write: Write, rows: Rows, payload: Any) -> None:
    # lm-evaluation-harness #3382: the reasoning was taken for the answer
    file = write(PLACE, payload)
    with pytest.raises(DataError, match="the reply was cut off"):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.attempts, "status") == [("truncated",)]
    assert tables.predictions.empty
    assert len(problems) == 1


@pytest.mark.parametrize(
    "item", [{"agent_name": "A"}, {"step_number": 1.5}, {"step_number": -1}, True, "three", None, []]
)
def test_an_unreadable_item_never_loses_the_sample(write: Write, rows: Rows, item: Any) -> None:
    # the published notebook lost the whole seed, in silence
    file = write(PLACE, {"failure_attribution": [item, *ITEMS]})
    with pytest.raises(DataError, match="step is ") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "failure_attribution[0]")
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.predictions, "position", "step") == [(0, 3), (1, 1)]
    assert rows(tables.attempts, "status", "n_unreadable") == [("ok", 1)]
    assert len(problems) == 1


def test_items_that_are_all_unreadable_are_unparsable(write: Write, rows: Rows) -> None:
    tables, problems = read_logs(write(PLACE, {"failure_attribution": ["x", {}, True]}), strict=False)
    assert rows(tables.attempts, "status", "n_unreadable") == [("unparsable", 3)]
    assert len(problems) == 3


def test_a_step_beyond_the_log_is_kept_as_a_wrong_answer(write: Write, rows: Rows) -> None:
    file = write(PLACE, {**LOG, "failure_attribution": [{"step_number": 5}, {"step_number": 4}]})
    with pytest.raises(
        DataError, match="a prediction of 'openai_gpt' names step 5 of log 'manual/7', which has 5 steps"
    ):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert rows(tables.predictions, "step") == [(5,), (4,)]
    assert rows(tables.attempts, "status", "n_unreadable") == [("ok", 0)]
    assert problems["mend"].tolist() == ["it is kept, as a wrong answer"]


def test_a_step_listed_twice_stays(write: Write, rows: Rows) -> None:
    tables = read_logs(write(PLACE, {"failure_attribution": [{"step_number": 3}] * 3}))
    assert rows(tables.predictions, "position", "step") == [(0, 3), (1, 3), (2, 3)]


def test_an_agent_that_is_no_name_does_not_lose_the_item(write: Write, rows: Rows) -> None:
    items = [{"step_number": 3, "agent_name": ["A"]}, {"step_number": 1, "failure_reason": {"a": [1]}}]
    tables, problems = read_logs(write(PLACE, {"failure_attribution": items}), strict=False)
    assert rows(tables.predictions, "step", "agent", "reason") == [(3, None, None), (1, None, '{"a":[1]}')]
    assert problems["column"].tolist() == ["failure_attribution[0].agent_name"]


# ---- whose sample it is --------------------------------------------------------------------------------------------


def _models(folder: Path, rows: Rows) -> list[tuple[Any, ...]]:
    return sorted(rows(read_logs(folder).attempts, "model", "sample", "log_id"))


def test_method_and_temperature_are_named_where_there_are_several(write: Write, rows: Rows) -> None:
    for place in (
        "a/all_at_once/seed_0/manual/1",
        "a/all_at_once/seed_2/manual/1",
        "b/all_at_once/seed_0/automatic/1",
        "b/all_at_once/seed_0/temp_0.3/automatic/1",
        "c/all_at_once/seed_0/manual/1",
        "c/step_by_step/seed_0/manual/1",
    ):
        folder = write(f"results/{place}.json", {"failure_attribution": []}).parents[len(place.split("/")) - 1]
    assert folder.name == "results"
    assert _models(folder, rows) == [
        ("a", 0, "manual/1"),
        ("a", 2, "manual/1"),
        ("b, temperature 0.3", 0, "automatic/1"),
        ("b, temperature 1.0", 0, "automatic/1"),
        ("c, all_at_once", 0, "manual/1"),
        ("c, step_by_step", 0, "manual/1"),
    ]
    # wherever the reading begins
    assert _models(folder / "a" / "all_at_once" / "seed_2", rows) == [("a", 2, "manual/1")]


def test_splits_are_spelt_as_those_of_the_logs(write: Write, rows: Rows) -> None:
    write("results/m/x/seed_0/Hand-Crafted/1.json", {"failure_attribution": []})
    folder = write("results/predictions_Algorithm_Generated.json", {"1": []}).parent
    assert rows(read_logs(folder).logs, "log_id") == [("hand-crafted/1",), ("algorithm-generated/1",)]


@pytest.mark.parametrize("place", ["7.json", "model/manual/7.json", "m/x/seed_0/7.json", "m/x/seed_0/a/b/7.json"])
def test_a_result_of_nobody_is_a_problem(write: Write, place: str) -> None:
    file = write(place, {"failure_attribution": ITEMS})
    with pytest.raises(DataError, match="names no model and sample; put it at results/MODEL/METHOD/seed_N"):
        read_logs(file)
    tables, problems = read_logs(file, strict=False)
    assert tables.attempts.empty
    assert len(problems) == 1


def test_one_sample_twice_is_refused_or_the_first_is_kept(write: Write, rows: Rows) -> None:
    write(f"a/{PLACE}", {"failure_attribution": ITEMS})
    file = write(f"b/{PLACE}", {"failure_attribution": []})
    with pytest.raises(DataError, match="sample 1 of 'openai_gpt' for log 'manual/7' stands here and in") as caught:
        read_logs(file.parents[6])
    assert caught.value.file == file
    tables, problems = read_logs(file.parents[6], strict=False)
    assert rows(tables.attempts, "status") == [("ok",)]
    assert len(tables.predictions) == 2
    assert len(problems) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0", b"", b'{"failure_attribution": "\xff"}', b'["\\ud800"]'])
def test_hostile_bytes_are_an_unparsable_sample(write: Write, rows: Rows, content: bytes) -> None:
    tables, problems = read_logs(write(PLACE, content), strict=False)
    assert rows(tables.attempts, "log_id", "status") == [("manual/7", "unparsable")]
    assert not problems.empty


# ---- leaderboard ---------------------------------------------------------------------------------------------------


def test_a_submission(write: Write, rows: Rows) -> None:
    write("submissions/mine/metadata.json", {"model_name": "GPT-4o", "organization": "x"})
    write("submissions/mine/predictions_manual.json", {"1": [3, 0], "trace_002": ["2", 1.0, 7]})
    folder = write("submissions/mine/predictions_automatic.json", {"1": []}).parents[1]
    tables = read_logs(folder)
    assert rows(tables.attempts, *ATTEMPT) == [
        ("automatic/1", "GPT-4o", 0, "abstained", True, 0),
        ("manual/1", "GPT-4o", 0, "ok", True, 0),
        ("manual/trace_002", "GPT-4o", 0, "ok", True, 0),
    ]
    assert rows(tables.predictions, "log_id", "position", "step") == [
        ("manual/1", 0, 3),
        ("manual/1", 1, 0),
        ("manual/trace_002", 0, 2),
        ("manual/trace_002", 1, 1),
        ("manual/trace_002", 2, 7),
    ]
    assert rows(tables.logs, "log_id", "n_steps", "source")[0] == ("automatic/1", None, "leaderboard")


@pytest.mark.parametrize(
    "metadata", [None, {}, [], "{", {"model_name": ""}, {"model_name": 5.5}, b"\xff", {"model_name": "\ud800"}]
)
def test_without_metadata_the_folder_is_the_model(write: Write, rows: Rows, metadata: Any) -> None:
    if metadata is not None:
        write("submissions/mine/metadata.json", metadata)
    file = write("submissions/mine/predictions_manual.json", {"1": [3]})
    assert rows(read_logs(file).attempts, "model") == [("mine",)]
    tables, problems = read_logs(file.parent, strict=False)
    assert rows(tables.attempts, "model") == [("mine",)]
    assert len(problems) == (metadata in ("{", b"\xff"))  # a broken file is one, whatever it was to say


def test_the_board_itself_holds_no_predictions(write: Write) -> None:
    write("metadata.json", {"model_name": "x"})
    board = write("leaderboard.json", [{"model_name": "x", "manual_ndcg5": 0.4}])
    write("submissions/mine/predictions_manual.json", {"1": [3]})
    assert len(read_logs(board.parent).attempts) == 1
    with pytest.raises(DataError, match="no format that is known here"):
        read_logs(board)


def test_other_names_of_the_model(write: Write, rows: Rows) -> None:
    write("mine/metadata.json", {"name": "A model"})
    assert rows(read_logs(write("mine/predictions_manual.json", {"1": [3]})).attempts, "model") == [("A model",)]


@pytest.mark.parametrize("steps", [None, 3, "3", {"3": 1}])
def test_an_entry_that_is_no_list_is_located(write: Write, rows: Rows, steps: Any) -> None:
    file = write("mine/predictions_manual.json", {"1": steps, "2": [3]})
    with pytest.raises(DataError, match="is not a list of steps") as caught:
        read_logs(file)
    assert (caught.value.file, caught.value.column) == (file, "1")
    tables, _ = read_logs(file, strict=False)
    assert rows(tables.attempts, "log_id", "status", "ranked") == [
        ("manual/1", "unparsable", True),
        ("manual/2", "ok", True),
    ]


@pytest.mark.parametrize("step", [-1, 1.5, True, "x", None, [3], 10**30])
def test_an_unreadable_step_of_a_list_is_counted(write: Write, rows: Rows, step: Any) -> None:
    file = write("mine/predictions_manual.json", {"1": [step, 3]})
    with pytest.raises(DataError, match="step is ") as caught:
        read_logs(file)
    assert caught.value.column == "1[0]"
    tables, _ = read_logs(file, strict=False)
    assert rows(tables.attempts, "status", "n_unreadable") == [("ok", 1)]
    assert rows(tables.predictions, "position", "step") == [(0, 3)]


@pytest.mark.parametrize("key", ["", " ", "\ud800", "x" * 10_000])
def test_an_id_that_is_no_name_is_a_problem(write: Write, key: str) -> None:
    tables, problems = read_logs(write("mine/predictions_manual.json", {key: [3], "2": [1]}), strict=False)
    assert tables.attempts["log_id"].tolist() == ["manual/2"]
    assert len(problems) == 1


def test_any_object_may_be_called_a_submission(write: Write, rows: Rows) -> None:
    file = write("mine/our list.json", {"1": [3]})
    assert rows(read_logs(file, format="leaderboard").predictions, "log_id") == [("our list/1",)]
    with pytest.raises(DataError, match="no format that is known here"):
        read_logs(file)
