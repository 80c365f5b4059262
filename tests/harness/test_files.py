"""Files as they are read: each has its bytes and digest on record, and one that changes stops the report."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.harness.files import Files, Read, changed, measure, shown
from faultbook.jsonfile import parsed_json


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_is_read_is_on_record(tmp_path: Path) -> None:
    files = Files()
    b, a = write(tmp_path / "b", b"bb"), write(tmp_path / "a", b'{"x": 1}')
    assert files.read_bytes(b) == b"bb"
    assert files.read_json(a) == {"x": 1}
    assert files.digest(b) == files.sha256(b) == digest(b"bb")
    assert files.manifest().to_dict("records") == [
        {"path": str(a), "bytes": 8, "sha256": digest(b'{"x": 1}')},
        {"path": str(b), "bytes": 2, "sha256": digest(b"bb")},
    ]


def test_a_manifest_of_nothing() -> None:
    manifest = Files().manifest()
    assert list(manifest.columns) == ["path", "bytes", "sha256"]
    assert manifest.empty


@pytest.mark.parametrize("again", ["read_bytes", "read_text", "read_json", "digest"])
def test_a_file_that_changes_between_two_reads_stops_everything(tmp_path: Path, again: str) -> None:
    files, file = Files(), write(tmp_path / "f", b"1")
    files.read_bytes(file)
    write(file, b"2")
    with pytest.raises(DataError, match="changed between reading and reporting; read it again") as error:
        getattr(files, again)(file)
    assert error.value.problem == changed(file).problem
    assert files.sha256(file) == digest(b"1")


def test_a_change_of_the_same_length_is_found(tmp_path: Path) -> None:
    file = write(tmp_path / "f", b"abc")
    before = measure(file)
    assert before == Read(3, digest(b"abc"))
    write(file, b"abd")
    assert measure(file) != before


def test_a_large_file_is_measured_in_blocks(tmp_path: Path) -> None:
    content = os.urandom(1 << 10) * ((1 << 10) + 1) + b"end"
    assert measure(write(tmp_path / "f", content)) == Read(len(content), digest(content))


@pytest.mark.parametrize("method", ["read_bytes", "digest", "read_json"])
def test_what_is_not_there_is_one_line(tmp_path: Path, method: str) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(DataError, match="no such file"):
            getattr(Files(), method)(path)
        with pytest.raises(DataError, match="no such file"):
            measure(path)


def test_a_name_that_is_no_text_is_refused_before_a_manifest_would_fail(tmp_path: Path) -> None:
    files, file = Files(), tmp_path / os.fsdecode(b"r\xff.json")
    write(file, b"{}")
    for read in (files.read_json, files.digest):
        with pytest.raises(DataError, match=r"a name that is no UTF-8 text.*rename it") as error:
            read(file)
        str(error.value).encode()
    assert files.manifest().empty
    assert shown(file) == f"{tmp_path}/r\\udcff.json"
    assert shown("plain/path") == "plain/path"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty file"),
        (b" \n\t\r\n", "empty file"),
        (b"\0" * 40, "empty file"),  # what a file system leaves of a write that power cut off
        (b"\xef\xbb\xbf", "empty file"),
        (b'{"a": 1', "at character 7 of 7"),
        (b'{"a": 1} {"b": 2}', "Extra data"),
        (b"not json", "at character 0 of 8"),
        (b"[" * 100_000, "cannot be read|can be read"),
        (b"9" * 5_000, "can be read"),
        (b"{'a': 1}", "not a JSON document"),
    ],
)
def test_what_is_no_document_says_why(tmp_path: Path, content: bytes, problem: str) -> None:
    file = write(tmp_path / "f.json", content)
    with pytest.raises(DataError, match=problem) as error:
        Files().read_json(file)
    assert str(file) in str(error.value)
    assert len(str(error.value)) < 500


def test_infinity_and_bytes_that_are_no_text_lose_nothing_else(tmp_path: Path) -> None:
    file = write(tmp_path / "f.json", b'\xef\xbb\xbf{"a": NaN, "b": -Infinity, "c": "x\xe2y", "d": true}')
    document = Files().read_json(file)
    assert math.isnan(document["a"])
    assert document["b"] == -math.inf
    assert document["c"] == "x�y"
    assert document["d"] is True


def test_lines_are_read_one_by_one_and_broken_ones_in_their_place(tmp_path: Path) -> None:
    file = write(tmp_path / "f.jsonl", b'{"a": 1}\r\n\n \0\n{"b":\n"\xe2\x80\xa8"\n[2]')
    files = Files()
    found = list(files.json_lines(file))
    assert [number for number, _ in found] == [1, 4, 5, 6]
    assert [found[place][1] for place in (0, 2, 3)] == [{"a": 1}, "\u2028", [2]]
    assert isinstance(found[1][1], DataError)
    assert (found[1][1].row, found[1][1].file) == (4, file)
    assert files.sha256(file) == digest(file.read_bytes())


def test_a_link_is_read_under_its_own_name(tmp_path: Path) -> None:
    file, files = write(tmp_path / "f", b"x"), Files()
    link = tmp_path / "l"
    link.symlink_to(file)
    files.read_bytes(file)
    files.read_bytes(link)
    assert files.manifest()["sha256"].nunique() == 1
    assert files.manifest()["path"].tolist() == [str(file), str(link)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]",:0123456789eE+-.ntfalsruNI\\u ', max_size=40)))
def test_whatever_bytes_a_file_holds(tmp_path: Path, content: Any) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    file, files = write(tmp_path / "f", raw), Files()
    said = ""
    try:
        files.read_json(file)
    except DataError as error:
        said = str(error)
    assert "\n" not in said
    assert files.sha256(file) == digest(raw)
    for _, line in files.json_lines(file):
        assert not isinstance(line, bytes)


@pytest.mark.parametrize("text", ["1", '"a"', "null", "[1, 2]", "{}"])
def test_documents(text: str) -> None:
    assert parsed_json(text, Path("f")) == json.loads(text)
