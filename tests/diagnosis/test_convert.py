"""Truths written as tidy CSV files read back as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.diagnosis import Truth, read_truth, score, write_truth
from faultbook.diagnosis.convert import FILES
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.errors import FaultbookError

MakeTruth = Callable[..., Truth]


def _facts(truth: Truth) -> list[pd.DataFrame]:
    return [truth.causes, truth.edges.assign(condition="", effect="").astype("string"), truth.incidents, truth.notes]


def _same(one: Truth, other: Truth) -> None:
    for first, second in zip(_facts(one), _facts(other), strict=True):
        pd.testing.assert_frame_equal(first, second, check_dtype=False)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_shipped_truths_come_back(shipped: Callable[[str], Truth], tmp_path: Path, version: str) -> None:
    written = write_truth(shipped(version), tmp_path / "new" / "folder")
    assert [file.name for file in written] == list(FILES)
    assert all(file.is_file() for file in written)
    _same(read_truth(tmp_path / "new" / "folder"), shipped(version))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_shipped_files_are_what_writing_gives(
    shipped: Callable[[str], Truth], tmp_path: Path, version: str
) -> None:
    kept = Path(__file__).resolve().parents[2] / "data" / "incidents" / f"itbench-{version}"
    for file in write_truth(shipped(version), tmp_path):
        assert file.read_bytes() == (kept / file.name).read_bytes()


def test_sentences_of_the_source_stay_with_the_source(make_truth: MakeTruth, tmp_path: Path) -> None:
    edge = {"source": "a", "target": "a", "condition": "a sentence", "effect": "another"}
    truth = make_truth("a* | n/Pod/=a", propagations=[edge])
    write_truth(truth, tmp_path)
    assert not any("sentence" in file.read_text(encoding="utf-8") for file in tmp_path.iterdir())
    assert truth.edges["condition"].tolist() == ["a sentence"]  # the truth itself keeps them
    assert read_truth(tmp_path).edges[["source", "condition"]].to_numpy().tolist() == [["a", ""]]


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_there_are_not_overwritten(make_truth: MakeTruth, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(FaultbookError, match=f"already holds {name}; name an empty folder"):
        write_truth(make_truth("a* | n/Pod/=a"), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_a_destination_that_is_a_file_is_one_line(make_truth: MakeTruth, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(FaultbookError):
        write_truth(make_truth("a* | n/Pod/=a"), tmp_path / "file")


def test_an_ungradeable_incident_comes_back(make_truth: MakeTruth, tmp_path: Path) -> None:
    document = Document("nothing", "x.yaml", "0")
    write_truth(assemble([document]), tmp_path)
    assert read_truth(tmp_path).incidents["incident_id"].tolist() == ["nothing"]


def test_a_group_that_nothing_can_match_comes_back(tmp_path: Path) -> None:
    # reading notes such a group ("no name or filter") and keeps it, so its own CSV form must hold it too
    document = Document("i", "x.yaml", "0")
    read_v1({"groups": [{"id": "a", "kind": "Pod", "namespace": "n", "root_cause": True}]}, document)
    truth = assemble([document])
    write_truth(truth, tmp_path)
    _same(read_truth(tmp_path), truth)


def test_alias_classes_and_scores_come_back(
    make_truth: MakeTruth, make_runs: Callable[..., Any], tmp_path: Path
) -> None:
    truth = make_truth("a* | n/Pod/a-.*\nb | n/Service/b\\b\nc* | -/Namespace/=c", aliases=[["b", "a"]])
    write_truth(truth, tmp_path)
    back = read_truth(tmp_path)
    assert back.causes["cause_set"].tolist() == ["a", "a", "c"]
    runs = make_runs(["n/Service/b", "Namespace/c"], ["n/Pod/a"])
    pd.testing.assert_frame_equal(score(*runs, back), score(*runs, truth))


@pytest.mark.parametrize(
    "text",
    [
        "a,b",
        'a"b',
        "a'b",
        "a\\b",
        "a|b;c",
        "a\nb",
        "a\rb",
        "a\r\nb",
        "é ∞",
        "#a",
        "=1+1",
        "null",
        "NA",
        "nan",
        "-",
        "a  b",
    ],
)
def test_awkward_text_comes_back(tmp_path: Path, text: str) -> None:
    groups = [
        {"id": text, "kind": text, "namespace": text, "filter": [text], "root_cause": True},
        {"id": "b", "kind": "Pod", "name": text, "namespace": "n"},
    ]
    document = Document("i", "x.yaml", "0")
    read_v1({"groups": groups, "aliases": [["b", text]]}, document)
    truth = assemble([document])
    write_truth(truth, tmp_path)
    _same(read_truth(tmp_path), truth)


@pytest.mark.parametrize("pattern", [" a", "a ", "\ta"])
def test_spaces_around_a_pattern_come_back_or_are_never_read(tmp_path: Path, pattern: str) -> None:
    # the same truth must not mean one thing as YAML and another as CSV
    document = Document("i", "x.yaml", "0")
    read_v1({"groups": [{"id": "a", "kind": "Pod", "namespace": "n", "filter": [pattern]}]}, document)
    truth = assemble([document])
    write_truth(truth, tmp_path)
    assert read_truth(tmp_path).causes["pattern"].tolist() == truth.causes["pattern"].tolist()
