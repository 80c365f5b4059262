"""Reading logs: the real files, mixed folders, formats that are named, and content of any kind."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from faultbook.attribution.read import FORMATS, LogTables, read_logs
from faultbook.errors import DataError
from faultbook.problems import PROBLEM_COLUMNS
from faultbook.tables import Annotations, Attempts, Logs, Predictions, Steps

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ROOT.parent / "shared" / "data" / "who-and-when"
MODELS = {
    "logs": Logs,
    "steps": Steps,
    "annotations": Annotations,
    "predictions": Predictions,
    "attempts": Attempts,
}

WHO_AND_WHEN = {
    "question": "Q",
    "history": [{"content": "x", "role": "A"}, {"content": "y", "role": "B"}],
    "mistake_agent": "B",
    "mistake_step": "1",
    "mistake_reason": "r",
}
RAW = {"log_source": "https://github.com/o/r/tree/main/x.json", "annotation": [{"step": "0", "fail_annotation": "1"}]}
NORMALISED = {"question": "Q", "history": [{"content": "x", "role": "A", "step": "0", "fail_annotation": "1"}]}
RESULT = {**NORMALISED, "failure_attribution": [{"agent_name": "A", "step_number": 0}]}
AGENTRX = {"trajectory_id": 1, "failures": [{"failure_id": 1, "step_number": 1}], "root_cause": {"failure_id": 1}}
TRACE = {"trace_id": "t", "spans": [{"span_id": "s", "span_name": "n", "child_spans": []}]}
TRAIL = {"errors": [{"location": "s", "category": "c"}], "scores": []}
PLACES: dict[str, tuple[str, Any]] = {
    "who-and-when": ("Hand-Crafted/1.json", WHO_AND_WHEN),
    "mp-bench-raw": ("raw/1/automatic/1.json", RAW),
    "mp-bench": ("annotated/1/manual/1.json", NORMALISED),
    "mp-bench-predictions": ("results/m/all_at_once/seed_0/manual/1.json", RESULT),
    "leaderboard": ("submissions/n/predictions_manual.json", {"1": [0]}),
    "agentrx": ("tau.json", [AGENTRX]),
    "trail": ("processed_annotations_gaia/t.json", TRAIL),
    "csv": ("notes.csv", "log_id,step,annotator,is_failure\nmine/1,3,me,1\n"),
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def run(name: str, content: Any) -> Path:
        file = tmp_path / "given" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return file

    return run


Write = Callable[..., Path]


def _check(tables: LogTables) -> None:
    """What holds for every reading: the columns, every log in `logs`, every list in an attempt that is ok."""
    for name, model in MODELS.items():
        table = getattr(tables, name)
        model.validate(table)
        assert list(table.index) == list(range(len(table)))
        assert set(table["log_id"]) <= set(tables.logs["log_id"])
    key = ["log_id", "model", "sample"]
    listed = tables.predictions[key].drop_duplicates()
    answered = tables.attempts.loc[tables.attempts["status"] == "ok", key]
    assert len(listed.merge(answered)) == len(listed) == len(answered)


# ---- the real files ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> LogTables:
    if not PUBLIC.is_dir():
        pytest.skip("the public files of Who&When are not beside this repository")
    return read_logs(PUBLIC)


def test_all_184_files_are_read(real: LogTables) -> None:
    # counted from ag2ai/Agents_Failure_Attribution at f4d2b6d
    _check(real)
    by_split = real.logs.groupby("split")["n_steps"]
    assert by_split.size().to_dict() == {"algorithm-generated": 126, "hand-crafted": 58}
    assert by_split.sum().to_dict() == {"algorithm-generated": 1_099, "hand-crafted": 2_993}
    assert by_split.min().to_dict() == {"algorithm-generated": 5, "hand-crafted": 5}
    assert by_split.median().to_dict() == {"algorithm-generated": 10, "hand-crafted": 32.5}
    assert by_split.max().to_dict() == {"algorithm-generated": 10, "hand-crafted": 130}
    assert real.logs["question_id"].nunique() == 142
    assert real.logs["release"].unique().tolist() == ["2025-06 or later"]
    assert len(real.steps) == len(real.annotations) == 4_092
    labels = real.annotations[real.annotations["is_failure"]]
    assert len(labels) == 184
    assert labels[["agent", "reason"]].notna().all(axis=None)


def test_speakers_of_the_real_files(real: LogTables) -> None:
    # counted from the same commit: 191 agents in one subset, compound roles in the other
    split = real.steps.merge(real.logs[["log_id", "split"]])["split"]
    roles = real.steps.loc[split == "hand-crafted", "role"].value_counts()
    assert roles[:3].to_dict() == {
        "Orchestrator (thought)": 1_563,
        "Orchestrator (-> WebSurfer)": 602,
        "WebSurfer": 568,
    }
    assert real.steps.loc[split == "algorithm-generated", "agent"].nunique() == 191


def test_labels_of_the_real_files(real: LogTables) -> None:
    # counted from the same commit: the best constant step gets 27.0 % (step 1) and 15.5 % (step 4 or 8)
    labels = real.annotations[real.annotations["is_failure"]].merge(real.logs[["log_id", "split"]])
    counts = labels.groupby("split")["step"].value_counts(normalize=True)
    assert counts["algorithm-generated"].idxmax() == 1
    assert counts["algorithm-generated"].max() == pytest.approx(0.270, abs=5e-4)
    assert counts["hand-crafted"].max() == pytest.approx(0.155, abs=5e-4)
    assert sorted(counts["hand-crafted"].index[:2]) == [4, 8]


def test_the_real_files_are_of_their_format(real: LogTables) -> None:
    again = read_logs(PUBLIC, "who-and-when")
    for name in MODELS:
        pd.testing.assert_frame_equal(getattr(real, name), getattr(again, name))


# ---- formats -------------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(write: Write) -> Path:
    """A folder with a file of every format that is text."""
    write("GAIA/t.json", TRACE)
    write("submissions/n/metadata.json", {"model_name": "N"})
    write("README.md", "not data")
    write("_notes.json", "{")
    write(".hidden/x.json", "{")
    write("LICENSE", "x")
    return [write(*place) for place in PLACES.values()][-1].parent


def test_a_folder_of_everything(mixed: Path) -> None:
    tables = read_logs(mixed)
    _check(tables)
    sources = tables.logs.set_index("log_id")["source"].to_dict()
    assert sources == {
        "hand-crafted/1": "who-and-when",
        "automatic/1": "mp-bench-raw",
        "manual/1": "mp-bench",
        "tau/1": "agentrx",
        "gaia/t": "trail",
        "mine/1": "csv",
    }
    assert sorted(tables.attempts["model"]) == ["N", "m"]
    assert sorted(set(tables.annotations["annotator"])) == ["1", "expert", "label", "me", "root cause"]


@pytest.mark.parametrize("format_", PLACES)
def test_a_file_may_be_named_with_its_format(write: Write, format_: str) -> None:
    write("GAIA/t.json", TRACE)
    file = write(*PLACES[format_])
    for path, name in ((file, format_), (file, "auto")):
        _check(read_logs(path, name))


@pytest.mark.parametrize("found", PLACES)
@pytest.mark.parametrize("wanted", [name for name in FORMATS if name != "agentracer"])
def test_a_file_of_another_format_is_one_line(write: Write, found: str, wanted: str) -> None:
    if found == wanted:
        return
    file = write(*PLACES[found])
    with pytest.raises(DataError, match=f"this is {found}, not {wanted}; name its format, or none") as caught:
        read_logs(file, wanted)
    assert caught.value.file == file
    tables, problems = read_logs(file, wanted, strict=False)
    assert tables.logs.empty
    assert len(problems) == 1


@pytest.mark.parametrize("strict", [True, False])
def test_an_unknown_format_is_one_line(write: Write, strict: bool) -> None:
    file = write(*PLACES["csv"])
    with pytest.raises(DataError, match=r"'format' must be one of 'auto', 'mp-bench-raw', .* found 'mast'"):
        read_logs(file, "mast", strict)
    with pytest.raises(DataError, match="'anomalies' must be one of 'flag', 'drop' or 'fail'; found 'keep'"):
        read_logs(file, strict=strict, anomalies="keep")


@pytest.mark.parametrize("value", [{}, [], 5, None, '"x"', [1], {"a": 1}, {"history": []}, {"errors": []}, [[]], [{}]])
def test_json_of_no_format_lists_what_was_looked_for(write: Write, value: Any) -> None:
    file = write("x.json", value)
    with pytest.raises(
        DataError, match=r"no format that is known here; looked for mp-bench-predictions: .*trail: "
    ) as caught:
        read_logs(file)
    assert caught.value.file == file
    with pytest.raises(DataError, match="no format that is known here; looked for trail: labels"):
        read_logs(file, "trail")
    _, problems = read_logs(file, strict=False)
    assert len(problems) == 1


@pytest.mark.parametrize("strict", [True, False])
def test_nothing_there(tmp_path: Path, strict: bool) -> None:
    for path, problem in ((tmp_path, "no logs here"), (tmp_path / "gone", "no such file or folder")):
        with pytest.raises(DataError, match=problem) as caught:
            read_logs(path, strict=strict)
        assert caught.value.file == str(path)


def test_a_file_of_no_known_kind(write: Write) -> None:
    with pytest.raises(DataError):
        read_logs(write("x.md", "text"))


def test_several_paths_are_read_as_one(write: Write) -> None:
    logs, result = write(*PLACES["mp-bench"]), write(*PLACES["mp-bench-predictions"])
    tables = read_logs((logs.parent, result, str(logs)))
    _check(tables)
    assert tables.logs["log_id"].tolist() == ["manual/1"]
    assert len(tables.annotations) == len(tables.predictions) == 1
    with pytest.raises(DataError, match="no path is named"):
        read_logs([])
    with pytest.raises(DataError, match="no such file or folder"):
        read_logs([logs, logs.with_name("gone.json")])


def test_files_are_read_in_natural_order(write: Write) -> None:
    for number in (10, 9, 2, 1):
        folder = write(f"Hand-Crafted/{number}.json", WHO_AND_WHEN).parent
    assert read_logs(folder).logs["log_id"].tolist() == [f"hand-crafted/{number}" for number in (1, 2, 9, 10)]


def test_a_relative_path_is_read_alike(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(*PLACES["mp-bench"])
    monkeypatch.chdir(file.parent)
    assert read_logs(file.name).annotations.equals(read_logs(file).annotations)
    assert read_logs(".").annotations.equals(read_logs(file).annotations)


def test_a_broken_file_does_not_spoil_a_folder(mixed: Path, write: Write) -> None:
    broken = [write(f"broken/{number}.json", text) for number, text in enumerate(("", "{", b"\xff", "[" * 10_000))]
    broken += [write("broken/x.csv", b"\xff"), write("broken/x.parquet", b"x"), write("broken/x.jsonl", "{\n")]
    tables, problems = read_logs(mixed, strict=False)
    assert sorted(problems["file"]) == sorted(map(str, broken))
    assert list(problems.columns) == PROBLEM_COLUMNS
    for name in MODELS:
        whole = getattr(tables, name)
        for file in broken:
            file.unlink(missing_ok=True)
        pd.testing.assert_frame_equal(whole, getattr(read_logs(mixed), name))


def test_a_name_that_is_not_unicode_is_a_problem(write: Write) -> None:
    file = write("Hand-Crafted/1.json", WHO_AND_WHEN)
    try:
        file.rename(file.with_name("\udcff.json"))
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system takes no such name")
    tables, problems = read_logs(file.parent, strict=False)
    assert tables.logs.empty
    assert problems["problem"].tolist() == ["a name that is not UTF-8"]
    problems.to_csv()


# ---- hostile content -----------------------------------------------------------------------------------------------

HOSTILE = {
    "nothing": b"",
    "zeros": b"\0" * 100,
    "not UTF-8": b"\xff\xfe{}",
    "half an object": b'{"history": [',
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"history":' * 50_000,
    "a huge number": b"[" + b"9" * 10_000 + b"]",
    "a float beyond floats": json.dumps(WHO_AND_WHEN).replace('"1"', "1e400").encode(),
    "a long integer": json.dumps({**WHO_AND_WHEN, "mistake_step": 10**400}).encode(),
    "a long line": json.dumps({**WHO_AND_WHEN, "mistake_reason": "x" * 10_000_000}).encode(),
    "surrogates": b'{"history": [{"role": "\\ud800", "content": "\\udfff"}], "mistake_step": "\\ud800"}',
    "a zero in text": json.dumps({**WHO_AND_WHEN, "mistake_reason": "a\0b", "mistake_agent": "\0"}).encode(),
    "keys twice": b'{"mistake_step": 1, "mistake_step": 2, "history": [{}], "history": [1]}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["h/1.json", "h/1.jsonl", "h/1.csv", "h/1.parquet", "m/a/seed_0/manual/1.json"])
def test_hostile_content_is_never_a_crash(write: Write, name: str, content: bytes) -> None:
    file = write(name, content)
    tables, problems = read_logs(file, strict=False)
    _check(tables)
    assert set(problems["file"]) <= {str(file)}
    assert all(len(problem) < 1_100 for problem in problems["problem"])
    assert len(problems) or len(tables.logs)
    try:
        strict = read_logs(file)
    except DataError as error:
        assert error.file == file  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert problems.empty
        pd.testing.assert_frame_equal(strict.annotations, tables.annotations)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)


ODD = st.sampled_from([None, True, 5, -1, 1.5, 10**30, "", "x", "\ud800", [], [1], ["x"], {}, {"a": 1}, [[[]]]])
JSONABLE = ODD | LEAVES | _nested(LEAVES | _nested(LEAVES))


def _paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [prefix, *(path for key, part in items for path in _paths(part, (*prefix, key)))]


DOCUMENTS = {name: value for name, (_, value) in PLACES.items() if name != "csv"} | {"trace": TRACE}
PARTS = [(name, path) for name, value in DOCUMENTS.items() for path in _paths(value)]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.slow
@settings(max_examples=33, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(part=st.sampled_from(PARTS), value=JSONABLE)
@example(part=("who-and-when", ("history", 0, "content")), value="\ud800")
@example(part=("mp-bench-predictions", ("failure_attribution", 0, "ideal_action")), value="\ud800")
@example(part=("leaderboard", ("1",)), value={"\ud800": "\ud800"})
def test_a_document_broken_anywhere_is_read_or_a_located_problem(
    scratch: Path, part: tuple[str, tuple[Any, ...]], value: Any
) -> None:
    name, path = part
    document = [copy.deepcopy(DOCUMENTS[name])]
    parent: Any = document
    for key in (0, *path)[:-1]:
        parent = parent[key]
    parent[(0, *path)[-1]] = value
    file = scratch / (PLACES[name][0] if name in PLACES else "GAIA/t.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document[0]), encoding="utf-8")
    tables, problems = read_logs(file, strict=False)
    _check(tables)
    assert set(problems["file"]) <= {str(file)}
    assert len(tables.logs) or len(problems) or value in ({}, [])
    try:
        strict = read_logs(file)
    except DataError as error:
        assert error.file == file  # noqa: PT017
        assert not problems.empty
    else:
        assert problems.empty
        pd.testing.assert_frame_equal(strict.annotations, tables.annotations)
        pd.testing.assert_frame_equal(strict.attempts, tables.attempts)


HEADERS = (
    "log_id,step,annotator,is_failure,agent,reason",
    "log_id,model,sample,position,step",
    "log_id,model,sample,status,ranked,n_unreadable",
    "log_id,subset,n_steps,mistake_step,mistake_agent,question_sha256,history_sha256",
    "log_id,n_steps,split",
    "log_id,step,role",
    "log_id,annotator",
)
CELL = st.sampled_from(
    ["", "a", "b", "0", "1", "2.0", "-1", "1.5", "true", "ok", "abstained", "x" * 9, "²", '"q\nr"', "\0"]
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(header=st.sampled_from(HEADERS), table=st.lists(st.lists(CELL, min_size=8, max_size=8), max_size=6))
def test_a_table_of_anything_is_read_or_located_problems(scratch: Path, header: str, table: list[list[str]]) -> None:
    width = header.count(",") + 1
    file = scratch / "table.csv"
    lines = [header, *(",".join(cells[:width]) for cells in table)]
    file.write_text("\n".join(lines), encoding="utf-8")
    tables, problems = read_logs(file, strict=False)
    _check(tables)
    assert set(problems["file"]) <= {str(file)}
    try:
        strict = read_logs(file)
    except DataError as error:
        assert error.file == file  # noqa: PT017
        assert not problems.empty
    else:
        assert problems.empty
        pd.testing.assert_frame_equal(strict.annotations, tables.annotations)
        pd.testing.assert_frame_equal(strict.attempts, tables.attempts)
