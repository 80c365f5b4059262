"""Lines and their chain, where the readers' tests do not look: what the writer relies on to go on behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faultbook.journal_chain import FINDINGS, GENESIS, Line, Story, digest, lines, trial_key, version

START = {"kind": "report"}
END = {"termination": {"kind": "completed"}}


def journal(*events: tuple[str, dict[str, Any]], run_id: str = "r") -> bytes:
    previous, made = GENESIS, b""
    for seq, (event, data) in enumerate(events, start=1):
        record = {"seq": seq, "at": "2026-09-08T15:12:34+00:00", "monotonic": float(seq), "run_id": run_id}
        record |= {"event": event, "data": data, "previous_sha256": previous}
        previous = digest(record) or ""
        made += json.dumps(record | {"sha256": previous}).encode() + b"\n"
    return made


WHOLE = journal(("run_started", START), ("note", {"text": "ü\n"}), ("run_finished", END))


def story(content: bytes) -> tuple[Story, list[str]]:
    found = Story()
    return found, [name for line in lines(content) for name, _ in (*line.faults, *found.take(line))]


def test_a_digest_does_not_depend_on_how_a_line_is_written() -> None:
    content = b"".join(json.dumps(json.loads(raw), indent=None).encode() + b"\n" for raw in WHOLE.splitlines())
    assert story(content)[1] == []


def test_no_file_has_no_lines() -> None:
    assert list(lines(b"")) == []


def test_a_line_without_newline_is_a_fragment_even_if_it_is_whole() -> None:
    *_, last = lines(WHOLE[:-1])
    assert (last.record, last.event, last.data) == (None, None, None)
    assert [name for name, _ in last.faults] == ["trailing_fragment"]


def test_a_record_without_digest_that_has_none_is_not_taken_for_whole() -> None:
    (line,) = lines(b'{"seq": 1, "event": "run_finished", "data": {"x": NaN}}\n')
    assert "schema" in dict(line.faults)


def test_a_fault_does_not_spread() -> None:
    first, second, third = WHOLE.splitlines(keepends=True)
    found = list(lines(first + second.replace(b"note", b"nope") + third))
    assert [[name for name, _ in line.faults] for line in found] == [[], ["hash_mismatch"], []]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"commit": "c0ffee", "dirty": True}, "c0ffee+dirty"),
        ({"commit": "c0ffee", "dirty": None}, "c0ffee"),
        ({"dirty": True}, None),
        ("c0ffee", None),
        (None, None),
    ],
)
def test_versions(source: Any, expected: str | None) -> None:
    assert version({"source": source}) == expected


def test_a_trial_is_told_by_its_id_else_by_arm_task_and_attempt() -> None:
    names = {"arm": "a", "task_id": "t", "attempt": 2}
    assert trial_key({"run_id": "r", "data": {"trial_id": "x", **names}}) == ("r", "x")
    assert trial_key({"run_id": "r", "data": names}) == ("r", "a", "t", "2")
    assert trial_key({"run_id": "r", "data": None}) == ("r", None, None, None)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_is_told_in_known_words(data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.integers(0, len(content)))
    _, found = story(bytes(content[:cut]))
    assert set(found) <= set(FINDINGS)
    assert all(isinstance(line, Line) for line in lines(bytes(content)))
