"""Logs written as CSV read back as they were; the shipped labels are what writing gives."""

from __future__ import annotations

import dataclasses
import json
import resource
import shutil
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.attribution.convert import FILES, LABEL_COLUMNS, write_labels, write_logs
from faultbook.attribution.read import LogTables, read_logs
from faultbook.errors import DataError, FaultbookError
from faultbook.tables import Annotations, Attempts, Logs, Predictions, Steps, typed

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ROOT.parent / "shared" / "data" / "who-and-when"
SHIPPED = ROOT / "data" / "logs"
TABLES = ("logs", "steps", "annotations", "predictions", "attempts", "anomalies")


@pytest.fixture(scope="module")
def real() -> LogTables:
    if not PUBLIC.is_dir():
        pytest.skip("the public files of Who&When are not beside this repository")
    return read_logs(PUBLIC)


def _same(one: LogTables, other: LogTables) -> None:
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def _without_reasons(tables: LogTables) -> LogTables:
    annotations = tables.annotations.assign(reason=pd.array([pd.NA] * len(tables.annotations), "string"))
    return dataclasses.replace(tables, annotations=annotations)


def _many(folder: Path, reason: str = "why") -> LogTables:
    """Tables with something in every column and every status."""
    turns = [{"content": str(step), "role": f"A (x{step})", "step": str(step)} for step in range(3)]
    for annotator, flag in (("1", "1"), ("2", "0")):
        first = {**turns[0], "fail_annotation": flag, "fail_reason": reason, "ideal_action": "i", "fail_category": "c"}
        file = folder / annotator / "manual" / "12.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"question": "Q", "history": [first, *turns[1:]]}), encoding="utf-8")
    items = [{"step_number": 9, "agent_name": "A", "failure_reason": reason, "ideal_action": "i"}, {}, {"step": 0}]
    for seed, reply in enumerate([items, [], "no list", "<think>", [{}]]):
        file = folder / "results" / "m" / "x" / f"seed_{seed}" / "manual" / "12.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"failure_attribution": reply}), encoding="utf-8")
    (folder / "predictions_manual.json").write_text('{"12": [2, 1], "13": []}', encoding="utf-8")
    tables, _ = read_logs(folder, strict=False)
    assert set(tables.attempts["status"]) == {"ok", "abstained", "unparsable", "truncated"}
    return tables


# ---- all tables ----------------------------------------------------------------------------------------------------


def test_all_tables_come_back(tmp_path: Path) -> None:
    tables = _many(tmp_path / "given")
    written = write_logs(tables, tmp_path / "new" / "folder")
    assert [file.name for file in written] == list(FILES)
    assert sorted(file.name for file in (tmp_path / "new" / "folder").iterdir()) == sorted(FILES)
    again, problems = read_logs(tmp_path / "new" / "folder", strict=False)
    _same(again, tables)
    # the wrong answer beyond the log is as wrong as before; the rest is settled
    assert problems["problem"].tolist() == ["a prediction of 'm' names step 9 of log 'manual/12', which has 3 steps"]


def test_the_real_logs_come_back_with_their_reasons(real: LogTables, tmp_path: Path) -> None:
    write_logs(real, tmp_path / "written")
    again = read_logs(tmp_path / "written")
    _same(again, real)
    assert again.annotations["reason"].notna().sum() == 184
    write_logs(again, tmp_path / "twice")
    for name in FILES:
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "written" / name).read_bytes()


def test_no_logs_come_back_as_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("log_id\n", encoding="utf-8")
    (tmp_path / "logs.csv").write_text("log_id\n", encoding="utf-8")
    tables = read_logs(tmp_path / "logs.csv")
    write_logs(tables, tmp_path / "written")
    _same(read_logs(tmp_path / "written"), tables)


AWKWARD = ["a,b", 'a"b', "a'b", "a\\b", "a\nb", "a\rb", "a\r\nb", "é ∞", "#a", "=1+1", "NA", "nan", "null", "0", "a  b"]


@pytest.mark.parametrize("reason", [*AWKWARD, "a\0b", "a\u2028b", "\ufeffa", "x" * 100_000])
def test_awkward_text_comes_back(tmp_path: Path, reason: str) -> None:
    tables = _many(tmp_path / "given", reason)
    assert reason in set(tables.annotations["reason"].dropna())
    write_logs(tables, tmp_path / "written")
    _same(read_logs(tmp_path / "written", strict=False)[0], tables)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
NAME = TEXT.map(str.strip).filter(bool)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    log_ids=st.lists(NAME, min_size=1, max_size=3, unique=True),
    annotators=st.lists(NAME, min_size=1, max_size=2, unique=True),
    texts=st.lists(st.none() | NAME, min_size=6, max_size=6),
)
def test_any_names_and_texts_come_back(
    scratch: Path, log_ids: list[str], annotators: list[str], texts: list[str | None]
) -> None:
    judged = [
        (log_id, step, annotator, step == 0, *texts[step : step + 4])
        for log_id in log_ids
        for annotator in sorted(annotators)
        for step in range(2)
    ]
    logs = typed([(log_id, "s", None, None, "csv", None, None) for log_id in log_ids], Logs)
    empty = (typed([], Predictions), typed([], Attempts), pd.DataFrame())
    tables = LogTables(logs, typed([], Steps), typed(judged, Annotations), *empty)
    for name in FILES:
        (scratch / name).unlink(missing_ok=True)
    write_logs(tables, scratch)
    again = read_logs(scratch)
    pd.testing.assert_frame_equal(again.logs, logs)
    key = ["log_id", "annotator", "step"]
    expected = tables.annotations.sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(again.annotations.sort_values(key, ignore_index=True), expected)


# ---- labels --------------------------------------------------------------------------------------------------------


def test_the_shipped_labels_are_what_writing_gives(real: LogTables, tmp_path: Path) -> None:
    written = write_labels(real, tmp_path / "new" / "who-and-when-labels.csv")
    assert [file.name for file in written] == ["who-and-when-labels.csv", "who-and-when-steps.csv"]
    for file in written:
        assert file.read_bytes() == (SHIPPED / file.name).read_bytes()


def test_the_shipped_labels_are_the_real_logs_without_their_reasons(real: LogTables, tmp_path: Path) -> None:
    for name in ("who-and-when-labels.csv", "who-and-when-steps.csv"):
        shutil.copy(SHIPPED / name, tmp_path)
    for path in (SHIPPED / "who-and-when-labels.csv", tmp_path):
        _same(read_logs(path), _without_reasons(real))


def test_the_shipped_labels_hold_facts_and_no_text() -> None:
    labels = pd.read_csv(SHIPPED / "who-and-when-labels.csv", dtype=str)
    assert list(labels.columns) == list(LABEL_COLUMNS)
    assert len(labels) == 184
    assert labels["mistake_agent"].str.fullmatch(r"[\w-]+").all()
    for name in ("question_sha256", "history_sha256"):
        assert labels[name].str.fullmatch("[0-9a-f]{64}").all()
    steps = pd.read_csv(SHIPPED / "who-and-when-steps.csv", dtype=str)
    assert list(steps.columns) == ["log_id", "step", "role"]
    assert steps["role"].str.len().max() < 60


def test_labels_of_a_log_that_has_none_come_back(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text("log_id,split,n_steps\na/1,a,3\na/2,a,\n", encoding="utf-8")
    (tmp_path / "annotations.csv").write_text(
        "log_id,step,annotator,is_failure\na/1,0,label,0\na/1,1,label,1\na/1,2,label,0\n", encoding="utf-8"
    )
    tables = read_logs(tmp_path)
    write_labels(tables, tmp_path / "out" / "x-labels.csv")
    again = read_logs(tmp_path / "out")
    assert again.logs.drop(columns="source").equals(tables.logs.drop(columns="source"))
    assert again.annotations.equals(tables.annotations)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("a,0,bob,1\n", "log 'a' has another annotator than 'label'; write_logs writes any number of them"),
        ("a,0,label,1\na,1,label,1\n", "log 'a' has more than one label"),
    ],
)
def test_labels_are_one_a_log(tmp_path: Path, rows: str, problem: str) -> None:
    (tmp_path / "a.csv").write_text("log_id,step,annotator,is_failure\n" + rows, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        write_labels(read_logs(tmp_path / "a.csv"), tmp_path / "out" / "x-labels.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["labels.json", "labels", "x-steps.csv/"])
def test_labels_need_the_name_of_a_csv_file(tmp_path: Path, name: str) -> None:
    tables = read_logs(SHIPPED / "who-and-when-labels.csv")
    if name.endswith("/"):
        (tmp_path / "x-labels.csv").mkdir()
        name = "x-labels.csv"
    with pytest.raises(FaultbookError, match=r"is no name for labels|already holds"):
        write_labels(tables, tmp_path / name)


# ---- nothing is overwritten, nothing half written ------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_there_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(FaultbookError, match=f"already holds {name}; name another folder"):
        write_logs(read_logs(SHIPPED / "who-and-when-labels.csv"), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["x-labels.csv", "x-steps.csv"])
def test_labels_that_are_there_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(FaultbookError, match=f"already holds {name}"):
        write_labels(read_logs(SHIPPED / "who-and-when-labels.csv"), tmp_path / "x-labels.csv")
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_destination_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FaultbookError, match=r"is a file; name a folder|cannot be written to"):
            write_logs(read_logs(SHIPPED / "who-and-when-labels.csv"), folder)


def test_a_failure_leaves_nothing_half_written(tmp_path: Path) -> None:
    tables = read_logs(SHIPPED / "who-and-when-labels.csv")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # logs.csv fits, steps.csv does not
    try:
        with pytest.raises(FaultbookError, match=r"out cannot be written to \(File too large\)"):
            write_logs(tables, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "out").iterdir()) == []
    assert len(write_logs(tables, tmp_path / "out")) == len(FILES)
