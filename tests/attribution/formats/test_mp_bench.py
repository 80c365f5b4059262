"""MP-Bench annotations, raw and normalised, and the logs that raw ones point to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultbook.attribution.formats.sources import parse_console_log
from faultbook.attribution.read import read_logs
from faultbook.errors import DataError

Write = Callable[..., Path]
Rows = Callable[..., list[tuple[Any, ...]]]

ADDRESS = "https://github.com/some/logs/tree/main/Automatic%20logs/7/log.json"
ITEM = {"step": "2", "fail_annotation": "1", "fail_category": "c", "fail_reason": "r", "ideal_action": "i"}
RAW: dict[str, Any] = {"log_source": ADDRESS, "annotation": [ITEM, {"step": "0", "fail_annotation": "0"}]}
TURNS = [{"content": f"text {step}", "name": name} for step, name in enumerate(("A", "B", "A (x)", "C"))]
LOG = {"question": "Q", "ground_truth": "4711", "history": TURNS}


def _normalised(*flags: Any) -> dict[str, Any]:
    history = [
        {"content": f"text {step}", "role": "A", "step": str(step), "fail_annotation": flag, "fail_reason": f"r{step}"}
        for step, flag in enumerate(flags)
    ]
    return {
        "is_correct": None,
        "question": "Q",
        "ground_truth": "4711",
        "history": history,
        "system_prompt": {},
    }


# ---- raw -----------------------------------------------------------------------------------------------------------


def test_raw_without_the_log(write: Write, rows: Rows) -> None:
    file = write("MP-Bench/1/manual/12.json", RAW)
    tables = read_logs(file)
    assert rows(tables.logs, "log_id", "split", "n_steps", "question_id") == [("manual/12", "manual", None, None)]
    columns = ("step", "annotator", "is_failure", "reason", "ideal_action", "category")
    assert rows(tables.annotations, *columns) == [
        (0, "1", False, None, None, None),
        (2, "1", True, "r", "i", "c"),
    ]
    assert tables.steps.empty


def test_where_the_end_is_unknown_all_judge_what_anybody_lists(write: Write, rows: Rows) -> None:
    # a step without an annotation is not flagged, says the format
    write("1/manual/3.json", {"log_source": "x", "annotation": [{"step": 5, "fail_annotation": 1}]})
    write("2/manual/3.json", {"log_source": "x", "annotation": [{"step": "1", "fail_annotation": "0"}]})
    folder = write("3/manual/3.json", {"log_source": "x", "annotation": []}).parents[2]
    assert rows(read_logs(folder).annotations, "annotator", "step", "is_failure") == [
        ("1", 1, False),
        ("1", 5, True),
        ("2", 1, False),
        ("2", 5, False),
        ("3", 1, False),
        ("3", 5, False),
    ]


def test_a_log_in_which_nobody_flags_a_step_is_judged(write: Write, rows: Rows) -> None:
    # 12 manual logs of MP-Bench have no flagged step, and must not vanish
    tables = read_logs(write("1/manual/3.json", {"log_source": "x", "annotation": []}))
    assert rows(tables.annotations, "annotator", "step", "is_failure") == [("1", 0, False)]


def test_sources_give_the_length_and_the_speakers(write: Write, rows: Rows, tmp_path: Path) -> None:
    file = write("1/automatic/7.json", RAW)
    write("../copy/Automatic logs/7/log.json", LOG)
    tables = read_logs(file, sources=tmp_path / "copy")
    assert rows(tables.logs, "n_steps") == [(4,)]
    assert rows(tables.steps, "role", "agent")[2] == ("A (x)", "A")
    assert rows(tables.annotations, "step", "is_failure") == [(0, False), (1, False), (2, True), (3, False)]
    assert "4711" not in "".join(frame.to_csv() for frame in (tables.logs, tables.steps, tables.annotations))


@pytest.mark.parametrize(
    "kept", ["Automatic logs/7/log.json", "7/log.json", "log.json", "main/Automatic logs/7/log.json"]
)
def test_the_longest_end_of_the_address_that_exists_counts(write: Write, tmp_path: Path, kept: str) -> None:
    file = write("1/automatic/7.json", RAW)
    write("../copy/log.json", {**LOG, "history": TURNS[:3]})
    write(f"../copy/{kept}", LOG)
    n_steps = 3 if kept.startswith("main") else 4  # what stands before the path, a branch, is no part of it
    assert read_logs(file, sources=tmp_path / "copy").logs["n_steps"].tolist() == [n_steps]


def test_a_source_that_is_not_there_is_located(write: Write, tmp_path: Path) -> None:
    file = write("1/automatic/7.json", RAW)
    (tmp_path / "copy").mkdir()
    with pytest.raises(DataError, match=r"no file of log_source .* is below") as caught:
        read_logs(file, sources=tmp_path / "copy")
    assert (caught.value.file, caught.value.column) == (file, "log_source")
    tables, problems = read_logs(file, strict=False, sources=tmp_path / "copy")
    assert tables.annotations["step"].tolist() == [0, 2]
    assert len(problems) == 1


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/o/r/tree/main/../../secret/log.json",
        "https://github.com/o/r/tree/main/%2e%2e/secret/log.json",
        "https://github.com/o/r/tree/main/..%2Fsecret%2Flog.json",
        "https://github.com/o/r/tree/main/secret%00/log.json",
        "../secret/log.json",
        "linked/log.json",
        "http://[",
        "",
        None,
        5,
        ["x"],
        "x" * 5_000,
        "\ud800",
    ],
)
def test_no_address_leads_out_of_the_folder(write: Write, tmp_path: Path, address: object) -> None:
    write("../secret/log.json", LOG)
    (tmp_path / "copy" / "secret").mkdir(parents=True)
    (tmp_path / "copy" / "linked").symlink_to(tmp_path / "secret")
    file = write("1/automatic/7.json", {**RAW, "log_source": address})
    tables, problems = read_logs(file, strict=False, sources=tmp_path / "copy")
    assert tables.logs["n_steps"].isna().all()
    assert problems["column"].tolist() == ["log_source"]
    assert len(problems["problem"][0]) < 500


@pytest.mark.parametrize(
    "log", ["", "no turn here", "[1]", '{"history": []}', '{"history": [5]}', "{", b"\xff\xfe\x00"]
)
def test_a_source_without_steps_is_located(write: Write, tmp_path: Path, log: object) -> None:
    file = write("1/automatic/7.json", RAW)
    write("../copy/log.json", log)
    tables, problems = read_logs(file, strict=False, sources=tmp_path / "copy")
    assert tables.logs["n_steps"].isna().all()
    assert problems["column"].tolist() == ["log_source"]


def test_sources_must_be_a_folder(write: Write, tmp_path: Path) -> None:
    file = write("1/automatic/7.json", RAW)
    for wrong in (tmp_path / "gone", file):
        with pytest.raises(DataError, match="no such folder of sources"):
            read_logs(file, strict=False, sources=wrong)


def test_sources_below_the_folder_are_not_read_as_logs(write: Write) -> None:
    write("1/automatic/7.json", RAW)
    sources = write("sources/7/log.json", {**LOG, "mistake_step": "1", "mistake_agent": "B"}).parents[1]
    tables = read_logs(sources.parent, sources=sources)
    assert tables.logs["log_id"].tolist() == ["automatic/7"]
    assert tables.logs["n_steps"].tolist() == [4]


@pytest.mark.parametrize("flag", [2, "2", "yes", None, True, False, 1.0, [1], ""])
def test_a_flag_that_is_neither_0_nor_1_is_located(write: Write, rows: Rows, flag: object) -> None:
    items = [{"step": "1", "fail_annotation": flag}, {"step": "3", "fail_annotation": 1}]
    file = write("1/manual/1.json", {"log_source": "log.json", "annotation": items})
    sources = write("../copy/log.json", LOG).parent
    with pytest.raises(DataError, match=r"fail_annotation is .*, not '0' or '1'") as caught:
        read_logs(file, sources=sources)
    assert caught.value.column == "annotation[0].fail_annotation"
    tables, problems = read_logs(file, strict=False, sources=sources)
    # what it says of step 1 is unknown, of the others it is known
    assert rows(tables.annotations, "step", "is_failure") == [(0, False), (2, False), (3, True)]
    assert len(problems) == 1


@pytest.mark.parametrize("item", [{"fail_annotation": "1"}, {"step": "1.5", "fail_annotation": "1"}, "1", None])
def test_an_annotation_of_no_step_leaves_the_rest_unknown(write: Write, rows: Rows, item: object) -> None:
    file = write("1/manual/1.json", {"log_source": "log.json", "annotation": [item, ITEM]})
    sources = write("../copy/log.json", LOG).parent
    tables, problems = read_logs(file, strict=False, sources=sources)
    assert rows(tables.annotations, "step", "is_failure") == [(2, True)]
    assert len(problems) == 1


@pytest.mark.parametrize("annotation", [None, {}, "x", 5])
def test_annotations_that_are_no_list(write: Write, annotation: object) -> None:
    tables, problems = read_logs(write("1/manual/1.json", {"annotation": annotation}), strict=False)
    assert tables.annotations.empty
    assert problems["column"].tolist() == ["annotation"]


def test_a_step_that_is_annotated_twice_is_located(write: Write, rows: Rows) -> None:
    again = {**ITEM, "fail_annotation": "0", "fail_reason": "another"}
    file = write("1/manual/1.json", {"log_source": "x", "annotation": [ITEM, again]})
    with pytest.raises(DataError, match="step 2 is annotated twice"):
        read_logs(file)
    tables, _ = read_logs(file, strict=False)
    assert rows(tables.annotations, "step", "is_failure", "reason") == [(2, True, "r\nanother")]


# ---- normalised ----------------------------------------------------------------------------------------------------


def test_normalised(write: Write, rows: Rows) -> None:
    for annotator, flags in (("1", "0101"), ("2", "0000"), ("3", [0, 1, "0", 0])):
        write(f"annotated/{annotator}/Manual/4.json", _normalised(*flags))
    tables = read_logs(write("annotated/1/manual/5.json", _normalised("1")).parents[2])
    assert rows(tables.logs, "log_id", "n_steps", "source") == [
        ("manual/4", 4, "mp-bench"),
        ("manual/5", 1, "mp-bench"),
    ]
    assert len(tables.annotations) == 13
    assert rows(tables.annotations[tables.annotations["is_failure"]], "log_id", "annotator", "step", "reason") == [
        ("manual/4", "1", 1, "r1"),
        ("manual/4", "1", 3, "r3"),
        ("manual/4", "3", 1, "r1"),
        ("manual/5", "1", 0, "r0"),
    ]
    assert "4711" not in "".join(frame.to_csv() for frame in (tables.logs, tables.steps, tables.annotations))


def test_a_log_without_annotations_is_not_one_that_nobody_flagged(write: Write) -> None:
    with pytest.raises(DataError, match="no format that is known here"):
        read_logs(write("logs/manual/4.json", {"question": "Q", "history": TURNS}))


def test_a_path_may_lead_up(write: Write, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write("annotated/1/manual/4.json", _normalised("1"))
    monkeypatch.chdir(file.parent)
    for path in (".", "../manual", "../manual/4.json", "../../1/manual"):
        assert rows(read_logs(path).annotations, "log_id", "annotator") == [("manual/4", "1")]


def test_a_step_without_an_annotation_is_not_flagged(write: Write, rows: Rows) -> None:
    payload = _normalised("1", "0")
    del payload["history"][1]["fail_annotation"]
    assert rows(read_logs(write("1/manual/1.json", payload)).annotations, "is_failure") == [(True,), (False,)]


@pytest.mark.parametrize("number", ["3", 0, "x", True, -1, 1.5])
def test_a_step_whose_number_is_not_its_place_is_located(write: Write, rows: Rows, number: object) -> None:
    payload = _normalised("0", "1")
    payload["history"][1]["step"] = number
    file = write("1/manual/1.json", payload)
    with pytest.raises(DataError) as caught:
        read_logs(file)
    assert caught.value.column == "history[1].step"
    tables, _ = read_logs(file, strict=False)
    assert rows(tables.annotations, "step", "is_failure") == [(0, False), (1, True)]


def test_two_annotators_must_have_read_the_same_log(write: Write) -> None:
    write("1/manual/1.json", _normalised("0", "1"))
    file = write("2/manual/1.json", _normalised("0", "1", "0"))
    with pytest.raises(DataError, match=r"log 'manual/1' has other steps here than in .*1.json") as caught:
        read_logs(file.parents[2])
    assert caught.value.file == file


def test_one_annotator_judges_a_log_once(write: Write, rows: Rows) -> None:
    write("a/1/manual/1.json", _normalised("0", "1"))
    file = write("b/1/manual/1.json", _normalised("1", "0"))
    with pytest.raises(DataError, match=r"annotator '1' judges log 'manual/1' here and in .*1.json") as caught:
        read_logs(file.parents[3])
    assert caught.value.file == file
    tables, problems = read_logs(file.parents[3], strict=False)
    assert rows(tables.annotations, "is_failure") == [(False,), (True,)]
    assert len(problems) == 1


def test_raw_and_normalised_of_one_log_agree(write: Write, tmp_path: Path) -> None:
    # as build_annotated_from_log_source.py joins them
    write("../copy/log.json", LOG)
    raw = read_logs(write("raw/1/automatic/7.json", RAW), sources=tmp_path / "copy")
    history = [
        {"content": turn["content"], "role": turn["name"], "step": str(step), "fail_annotation": "0"}
        for step, turn in enumerate(TURNS)
    ]
    normalised = read_logs(write("normal/2/automatic/7.json", {"question": "Q", "history": history}))
    same = ["log_id", "n_steps", "question_id", "content_sha256"]
    assert raw.logs[same].equals(normalised.logs[same])
    assert raw.steps.equals(normalised.steps)


# ---- console logs --------------------------------------------------------------------------------------------------

CONSOLE = """pip install …
---------- installer ----------
not a turn: the scenario has not begun
SCENARIO.PY STARTING !#!#
---------- user ----------
Who was it?

---------- Orchestrator (thought) ----------
  I think
--------- nine ---------
----------- eleven -----------
---------- WebSurfer ----------
"""


def test_a_console_log() -> None:
    assert parse_console_log(CONSOLE) == [
        {"role": "user", "content": "Who was it?"},
        {
            "role": "Orchestrator (thought)",
            "content": "I think\n--------- nine ---------\n----------- eleven -----------",
        },
        {"role": "WebSurfer", "content": ""},
    ]


def test_a_console_log_as_a_source(write: Write, rows: Rows) -> None:
    address = "https://github.com/o/r/tree/main/traces/3/console_log.txt"
    file = write("1/manual/3.json", {"log_source": address, "annotation": [{"step": "1", "fail_annotation": "1"}]})
    write("../copy/traces/3/console_log.txt", CONSOLE)
    write("../copy/traces/3/prompt.txt", "Who was it?\n")
    sources = write("../copy/traces/3/expected_answer.txt", "4711").parents[2]
    tables = read_logs(file, sources=sources)
    assert rows(tables.steps, "step", "agent") == [(0, "user"), (1, "Orchestrator"), (2, "WebSurfer")]
    assert tables.logs["question_id"].notna().all()
    (sources / "traces" / "3" / "prompt.txt").unlink()
    assert read_logs(file, sources=sources).logs["question_id"].isna().all()


def test_an_unreadable_source_is_located(write: Write) -> None:
    file = write("1/manual/3.json", {"log_source": "log.json", "annotation": []})
    log = write("../copy/log.json", LOG)
    log.chmod(0)
    if os.access(log, os.R_OK):
        pytest.skip("whoever runs this may read every file")
    with pytest.raises(DataError, match="cannot be read"):
        read_logs(file, sources=log.parent)
