"""JSON that others wrote: what is none is one line that says so, whatever the bytes."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError
from faultbook.jsonfile import document, load_json, parsed_json

QUICK = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
HERE = Path("of-others.json")


def test_what_python_writes_is_read_even_if_it_is_no_json() -> None:
    found = parsed_json('{"a": NaN, "b": [Infinity, -Infinity], "c": 1e999}', HERE)
    assert math.isnan(found["a"])
    assert found["b"] == [math.inf, -math.inf]
    assert found["c"] == math.inf


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "not a JSON document (Expecting ',' delimiter at character 7 of 7)"),
        ("", "not a JSON document (Expecting value at character 0 of 0)"),
        ("{} {}", "not a JSON document (Extra data at character 3 of 5)"),
        ("[" * 100_000, "not a JSON document that can be read (maximum recursion depth exceeded"),
        ("9" * 5000, "not a JSON document that can be read (Exceeds the limit (4300 digits)"),
    ],
)
def test_a_fault_is_one_line_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parsed_json(text, HERE, row=7)
    assert str(caught.value).startswith(f"of-others.json, row 7: {problem}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("content", [b"", b" \r\n\t", b"\0\0\0\0", b"\xef\xbb\xbf\n"])
def test_a_blank_file_is_empty(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match="empty file") as caught:
        load_json(file)
    assert caught.value.file == file


def test_a_mark_of_byte_order_and_bytes_that_are_no_text_lose_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": "x\xff", "b": 1}')
    assert load_json(file) == {"a": "x\ufffd", "b": 1}


def test_what_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_json(tmp_path / "none.json")
    with pytest.raises(DataError, match="no such file"):
        load_json(tmp_path)


@QUICK
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_a_document_or_a_mistake(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(content)
    with contextlib.suppress(DataError):
        load_json(file)


@QUICK
@given(st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | st.integers() | st.text(max_size=8)), st.data())
def test_half_a_document_is_none(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    assert document(text, HERE) == value
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(DataError):
        document(text[:end], HERE)
