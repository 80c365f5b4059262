"""Signs that an answer reached what was to find it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.diagnosis import Truth, leaks
from faultbook.diagnosis.leaks import LEAK_COLUMNS
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.errors import FaultbookError
from faultbook.tables import Submissions, typed


def truth(*groups: dict[str, Any]) -> Truth:
    document = Document("i", "made up", "")
    read_v1({"groups": [{"kind": "Pod", **group} for group in groups]}, document)
    return assemble([document])


def named(*names: str, incident_id: str = "i") -> pd.DataFrame:
    rows = [("m", incident_id, 1, n, name, None, "Pod", name, None, "confirmed") for n, name in enumerate(names)]
    return typed(rows, Submissions)


LOAD = {"id": "load-generator-pod-1", "filter": ["load-generator-.*"], "root_cause": True}


# ---- submissions ------------------------------------------------------------------------------------------------


def test_an_id_that_only_the_truth_has() -> None:
    found = leaks(named("checkout", "load-generator-pod-1"), truth(LOAD))
    assert list(found.columns) == LEAK_COLUMNS
    assert found.values.tolist() == [
        [
            "truth-only id",
            "warning",
            "m, i, repeat 1, position 1",
            "load-generator-pod-1",
            "may be an id of the truth file; check what the agent could read",
        ]
    ]


@pytest.mark.parametrize(
    "group",
    [
        {"id": "db-0", "name": "db-0"},
        {"id": "db-0", "filter": ["db-0"]},
        {"id": "flagd-config", "name": "flagd-config"},
        {"id": "db", "filter": ["db-.*"]},  # an id that reads like a workload is a name, too
    ],
)
def test_an_id_that_is_a_real_name_is_no_sign(group: dict[str, Any]) -> None:
    assert leaks(named(group["id"]), truth(group, LOAD)).empty


def test_the_real_name_of_another_group_is_no_sign() -> None:
    assert leaks(named("db-0"), truth({"id": "db-0", "filter": ["database"]}, {"id": "x", "name": "db-0"})).empty


@pytest.mark.parametrize("name", ["load-generator", "load-generator-6d5f7c9b8d-x2x7k", "pod-1", "other-pod-1"])
def test_what_the_cluster_has_is_no_sign(name: str) -> None:
    assert leaks(named(name), truth(LOAD)).empty


def test_an_id_of_another_incident_is_no_sign() -> None:
    assert leaks(named("load-generator-pod-1", incident_id="j"), truth(LOAD)).empty


def test_nothing_given_and_nothing_found() -> None:
    found = leaks()
    assert found.empty
    assert list(found.columns) == LEAK_COLUMNS
    assert leaks(typed([], Submissions), truth(LOAD)).empty


# ---- evidence ---------------------------------------------------------------------------------------------------


def beside(folder: Path) -> list[str]:
    found = leaks(evidence=folder)
    assert set(found["kind"]) <= {"truth beside evidence"}
    assert set(found["severity"]) <= {"error"}
    return found["place"].tolist()


@pytest.mark.parametrize(
    "name", ["ground_truth.yaml", "groundtruth.yml", "groundtruth_v1.yaml", "gt.json", "ground_truths.json"]
)
def test_a_truth_beside_the_evidence(tmp_path: Path, name: str) -> None:
    (tmp_path / "Scenario-1" / "logs").mkdir(parents=True)
    (tmp_path / "Scenario-1" / "logs" / "a.log").write_text("x")
    (tmp_path / name).write_text("groups: []")
    (tmp_path / "Scenario-1" / name).write_text("groups: []")
    assert beside(tmp_path) == sorted([f"Scenario-1/{name}", name])


@pytest.mark.parametrize("name", ["Ground_Truth.YAML", "GROUND_TRUTH.yaml", "gt.JSON"])
def test_letter_case_hides_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("groups: []")
    assert beside(tmp_path) == [name]


@pytest.mark.parametrize("name", ["k8s_events.json", "alerts.yaml", "ground_truth.md", "data.jsonl", "budget.json"])
def test_other_files_are_evidence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a": 1}\n')
    assert beside(tmp_path) == []


def test_a_folder_of_that_name_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "ground_truth.yaml").mkdir()
    assert beside(tmp_path) == []


ROW = json.dumps({"id_aa": 1, "ground_truth_yaml": "groups: []"})


@pytest.mark.parametrize(
    "text",
    [f"{ROW}\n", f'{{"note": "header"}}\n{ROW}\n', f"\n{ROW}\n", f"not JSON\n{ROW}\n"],
    ids=["first row", "second row", "after a blank line", "after a broken line"],
)
def test_rows_that_hold_the_truth(tmp_path: Path, text: str) -> None:
    (tmp_path / "sre").mkdir()
    (tmp_path / "sre" / "data.jsonl").write_text(text)
    assert beside(tmp_path) == ["sre/data.jsonl"]


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00\xff\xfe" * 100, b"[1, 2]\n", b"[" * 100_000])
def test_rows_that_cannot_be_read_do_no_harm(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.jsonl").write_bytes(content)
    assert beside(tmp_path) == []


def test_the_house_form_is_a_truth_too(tmp_path: Path) -> None:
    (tmp_path / "causes.csv").write_text("incident_id,group_id,kind,name,is_root_cause\ni,a,Pod,a,true\n")
    assert beside(tmp_path) == ["causes.csv"]


@pytest.mark.parametrize("argument", ["evidence", "transcripts"])
def test_a_place_that_does_not_exist_is_not_clean(tmp_path: Path, argument: str) -> None:
    with pytest.raises(FaultbookError, match="nowhere"):
        leaks(**{argument: tmp_path / "nowhere"})


# ---- transcripts ------------------------------------------------------------------------------------------------


def reads(path: Path) -> list[tuple[str, str]]:
    found = leaks(transcripts=path)
    assert set(found["kind"]) <= {"transcript names a truth file"}
    return list(zip(found["place"], found["found"], strict=True))


def test_lines_that_name_a_truth_file(tmp_path: Path) -> None:
    file = tmp_path / "run.log"
    file.write_text("$ ls\nalerts.json\n$ cat /home/user/Scenario-1/ground_truth.yaml\n$ cat gt.json\ndone\n")
    assert reads(file) == [
        ("run.log, line 3", "/home/user/Scenario-1/ground_truth.yaml"),
        ("run.log, line 4", "gt.json"),
    ]


def test_json_transcripts(tmp_path: Path) -> None:
    calls = [{"tool": "shell", "input": "ls"}, {"tool": "shell", "input": "head -3 ./groundtruth_v1.yaml"}]
    (tmp_path / "pretty.json").write_text(json.dumps(calls, indent=1))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, calls)))
    (tmp_path / "single.json").write_text(json.dumps(calls))
    places = dict(reads(tmp_path))
    assert places == {
        "pretty.json, line 8": "./groundtruth_v1.yaml",
        "rows.jsonl, line 2": "./groundtruth_v1.yaml",
        "single.json, line 1": "./groundtruth_v1.yaml",
    }


@pytest.mark.parametrize(
    "line", ["the ground truth is unknown", "budgt.json", "weight.yaml", "gt json", "ground_truth"]
)
def test_words_are_no_file(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.log").write_text(line)
    assert reads(tmp_path) == []


def test_letter_case_of_a_read(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("cat GROUND_TRUTH.YAML")
    assert [found for _, found in reads(tmp_path)] == ["GROUND_TRUTH.YAML"]


def test_two_transcripts_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").write_text("cat gt.yaml" if name == "b" else "ls")
    assert [place for place, _ in reads(tmp_path)] == ["b/run.log, line 1"]


def test_binary_files_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(bytes(range(256)) * 50 + b"\ncat gt.yaml\n")
    assert [found for _, found in reads(tmp_path)] == ["gt.yaml"]


def test_what_is_too_large_is_said_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.log").open("wb") as file:
        file.truncate(50_000_001)  # sparse
    found = leaks(transcripts=tmp_path)
    assert found[["kind", "severity", "place", "found"]].values.tolist() == [
        ["transcript not read", "info", "huge.log", "50000001 bytes"]
    ]


def test_a_long_line_is_read_in_linear_time(tmp_path: Path) -> None:
    # An agent's output, such as base64: some milliseconds, or half an hour if time grows with the square of the length.
    def stop(*_: object) -> None:
        raise TimeoutError

    file = tmp_path / "run.json"
    file.write_text("a" * 200_000 + " cat gt.yaml")
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        assert [found for _, found in reads(file)] == ["gt.yaml"]
    except TimeoutError:
        pytest.fail("the time grows with the square of the length of a line", pytrace=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_shown_has_no_control_characters(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("\x1b[31m" + "x" * 400 + "/gt.yaml\x07")
    (_, found), *_ = reads(tmp_path)
    assert "\x1b" not in found
    assert len(found) < 250
