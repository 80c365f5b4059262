"""Oddities that the tables show, on small logs and on the real ones, and the three policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.attribution.anomalies import ANOMALY_COLUMNS, CHECKS, find_anomalies
from faultbook.attribution.read import LogTables, read_logs
from faultbook.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
LABELS = ROOT / "data" / "logs" / "who-and-when-labels.csv"
TABLES = ("logs", "steps", "annotations", "predictions", "attempts")

Read = Callable[..., LogTables]


def _log(step: str = "1", agent: str = "B", question: str = "Q", text: str = "x") -> dict[str, Any]:
    history = [{"content": text, "role": "A"}, {"content": "y", "role": "B (thought)"}]
    return {"question": question, "history": history, "mistake_agent": agent, "mistake_step": step}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write JSON files of logs, or CSV text, and read their folder."""

    def run(files: dict[str, Any], **how: Any) -> LogTables:
        for name, content in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        tables: LogTables = read_logs(tmp_path, **how)
        return tables

    return run


def _found(tables: LogTables) -> set[tuple[str, str]]:
    return set(tables.anomalies[["check", "log_id"]].itertuples(index=False, name=None))


# ---- the real logs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> LogTables:
    return read_logs(LABELS)


def test_the_known_oddities_of_who_and_when(real: LogTables) -> None:
    # counted from ag2ai/Agents_Failure_Attribution at f4d2b6d
    by_check = real.anomalies.groupby("check", sort=False)["log_id"].apply(list).to_dict()
    assert by_check["identical history"] == [f"algorithm-generated/{number}" for number in (22, 51, 117, 121)]
    assert by_check["label agent is not the speaker"] == [
        *(f"algorithm-generated/{number}" for number in (14, 15, 59)),
        *(f"hand-crafted/{number}" for number in (20, 22, 49)),
    ]
    assert len(by_check["question in several splits"]) == 84  # 42 questions, each in both subsets
    assert set(by_check) == set(CHECKS[:3])


def test_what_was_found_says_where_to_look(real: LogTables) -> None:
    found = real.anomalies.set_index(["check", "log_id"])["found"]
    assert found["identical history", "algorithm-generated/117"] == (
        "the steps of algorithm-generated/121, with another question and other labels"
    )
    assert found["identical history", "algorithm-generated/22"] == (
        "the steps of algorithm-generated/51, with another question"
    )
    assert found["label agent is not the speaker", "hand-crafted/20"] == (
        "step 3 blames 'WebSurfer', and 'Orchestrator' speaks"
    )


def test_what_remains_of_who_and_when_without_its_oddities(real: LogTables) -> None:
    kept = read_logs(LABELS, anomalies="drop")
    assert len(kept.logs) == 184 - real.anomalies["log_id"].nunique()
    assert not set(kept.logs["log_id"]) & set(real.anomalies["log_id"])
    assert set(kept.annotations["log_id"]) == set(kept.steps["log_id"]) == set(kept.logs["log_id"])
    assert list(kept.annotations.index) == list(range(len(kept.annotations)))


# ---- each check ----------------------------------------------------------------------------------------------------


def test_sound_logs_have_none(read: Read) -> None:
    tables = read({"h/1.json": _log(), "h/2.json": _log(question="R", text="z"), "h/3.json": _log(text="w")})
    assert tables.anomalies.empty
    assert list(tables.anomalies.columns) == ANOMALY_COLUMNS


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (_log(question="R"), "the steps of h/2, with another question"),
        (_log(step="0", agent="A"), "the steps of h/2, with other labels"),
        (_log(agent=" "), "the steps of h/2, with other labels"),
        (_log(step="0", agent="A", question="R"), "the steps of h/2, with another question and other labels"),
    ],
)
def test_identical_histories(read: Read, other: dict[str, Any], found: str) -> None:
    tables = read({"h/1.json": _log(), "h/2.json": other, "h/3.json": _log(text="z", question="S")})
    assert _found(tables) == {("identical history", "h/1"), ("identical history", "h/2")}
    assert tables.anomalies["found"][0] == found


def test_the_same_log_twice_with_the_same_label_contradicts_nothing(read: Read) -> None:
    assert read({"h/1.json": _log(), "h/2.json": _log()}).anomalies.empty


@pytest.mark.parametrize("agent", ["B", "b", "B (thought)", None, ""])
def test_an_agent_that_speaks(read: Read, agent: Any) -> None:
    # releases of Who&When before the renaming write "Websurfer" for "WebSurfer"
    assert read({"h/1.json": _log(agent=agent)}).anomalies.empty


def test_an_agent_that_does_not_speak(read: Read) -> None:
    tables = read({"h/1.json": _log(agent="A")})
    assert tables.anomalies[["check", "log_id", "found"]].to_numpy().tolist() == [
        ["label agent is not the speaker", "h/1", "step 1 blames 'A', and 'B' speaks"]
    ]


def test_questions_shared_by_splits(read: Read) -> None:
    files = {"a/1.json": _log(), "b/1.json": _log(text="z"), "b/2.json": _log(text="w"), "b/3.json": _log(question="R")}
    tables = read(files)
    found = tables.anomalies.loc[lambda t: t["check"] == "question in several splits"].set_index("log_id")["found"]
    assert found.to_dict() == {
        "a/1": "the question of b/1, b/2",
        "b/1": "the question of a/1",
        "b/2": "the question of a/1",
    }


def test_two_annotators_who_say_the_same_to_the_letter(read: Read) -> None:
    # MAST #16: 19 human records share 8 blocks of annotations, 18 of them byte-identical to another
    header = "log_id,step,annotator,is_failure,reason\n"
    rows = [f"l,{step},{who},{flag},{text}\n" for who in "xyz" for step, flag, text in ((0, 0, ""), (1, 1, "why"))]
    tables = read({"a.csv": header + "".join(rows[:-1]) + "l,1,z,1,why?\n"})
    assert tables.anomalies[["check", "log_id", "found"]].to_numpy().tolist() == [
        ["identical judgements", "l", "annotators x, y say the same, to the letter"]
    ]


@pytest.mark.parametrize(
    "rows",
    [
        "l,1,x,1,\nl,1,y,1,\n",  # agreement without a word is agreement
        "l,1,x,0,\nl,1,y,0,\n",
        "l,1,x,1,why\nl,2,y,1,why\n",
        "l,1,x,1,why\nl,1,y,0,why\n",
        "l,1,x,1,why\nm,1,x,1,why\n",
        "l,1,expert,1,why\nl,1,root cause,1,why\n",  # a selection, by the format's definition
    ],
)
def test_annotators_who_merely_agree(read: Read, rows: str) -> None:
    assert read({"a.csv": "log_id,step,annotator,is_failure,reason\n" + rows}).anomalies.empty


def test_missing_values_are_no_oddities(read: Read) -> None:
    # logs without a question, a history or a length have nothing in common for that
    tables = read({"a.csv": "log_id,step,annotator,is_failure\na/1,7,x,1\nb/1,7,x,1\n"})
    assert tables.logs[["n_steps", "question_id", "content_sha256"]].isna().all(axis=None)
    assert tables.anomalies.empty


def test_no_logs_have_none() -> None:
    empty = {name: table.iloc[:0] for name, table in _frames(read_logs(LABELS)).items()}
    assert find_anomalies(empty).empty


def _frames(tables: LogTables) -> dict[str, pd.DataFrame]:
    return {name: getattr(tables, name) for name in TABLES}


# ---- policies ------------------------------------------------------------------------------------------------------

ODD = {
    "h/1.json": _log(),
    "h/2.json": _log(agent="A", text="z"),
    "h/3.json": _log(question="R"),
    "predictions.csv": "log_id,model,sample,step\nh/2,m,0,0\nh/4,m,0,0\n",
    "h/4.json": _log(text="sound", question="S"),
}


def test_flag_reports_and_changes_nothing(read: Read) -> None:
    tables = read(ODD)
    assert len(tables.logs) == 4
    assert _found(tables) == {
        ("identical history", "h/1"),
        ("identical history", "h/3"),
        ("label agent is not the speaker", "h/2"),
    }
    assert tables.anomalies["repair"].str.len().min() > 10


def test_drop_takes_the_logs_out_of_every_table(read: Read) -> None:
    tables = read(ODD, anomalies="drop")
    for name in TABLES:
        assert set(getattr(tables, name)["log_id"]) == {"h/4"}, name
    assert set(tables.anomalies["log_id"]) == {"h/1", "h/2", "h/3"}
    assert tables.anomalies["repair"].unique().tolist() == ["left out"]
    assert find_anomalies(_frames(tables)).empty


@pytest.mark.parametrize("strict", [True, False])
def test_fail_names_the_first_and_the_count(read: Read, strict: bool) -> None:
    message = (
        "3 anomalies, the first: log 'h/1', identical history: the steps of h/3, with another question; "
        "read with anomalies='flag' or 'drop'"
    )
    with pytest.raises(DataError) as caught:
        read(ODD, anomalies="fail", strict=strict)
    assert str(caught.value) == message


def test_fail_passes_sound_logs(read: Read) -> None:
    assert len(read({"h/1.json": _log()}, anomalies="fail").logs) == 1


def test_a_label_beyond_the_log_is_a_problem_but_under_drop(read: Read) -> None:
    files = {"h/1.json": _log(step="7", agent=""), "h/2.json": _log(text="z", question="R")}
    for policy in ("flag", "fail"):
        with pytest.raises(DataError, match="names step 7 of log 'h/1', which has 2 steps"):
            read(files, anomalies=policy)
    assert read(files, anomalies="drop").logs["log_id"].tolist() == ["h/2"]
    flagged, problems = read(files, strict=False)
    assert _found(flagged) == {("label out of range", "h/1")}
    assert len(problems) == 1
    dropped, problems = read(files, strict=False, anomalies="drop")
    assert dropped.logs["log_id"].tolist() == ["h/2"]
    assert problems.empty
