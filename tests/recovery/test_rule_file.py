"""Rules as JSON: the same rule to the last bit, and files that cannot be trusted refused in one line."""

from __future__ import annotations

import copy
import json
import math
import os
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.rule import PAPER_SETTINGS, InterventionRule
from faultbook.recovery.rule_file import SCHEMA, load_rule, save_rule

NUMBERS = ("error_threshold", "failure_threshold", "utility_threshold", "harm_penalty")
PAPER = PAPER_SETTINGS.rule(failure_probability="complement_of_p0")

shares = st.floats(0, 1)
finite = st.floats(allow_nan=False, allow_infinity=False)


def made(**changed: Any) -> InterventionRule:
    return InterventionRule(**{"failure_probability": "complement_of_p0", **changed})


def bits(rule: InterventionRule) -> list[bytes]:
    return [struct.pack("<d", getattr(rule, name)) for name in NUMBERS]


# ---- there and back -----------------------------------------------------------------------------------------------


@given(
    thresholds=st.tuples(shares, shares, finite, st.floats(0, allow_nan=False, allow_infinity=False)),
    min_delay=st.integers(0, 2**70),
    on_tie=st.sampled_from(["hold", "refresh"]),
    source=st.text(st.characters(codec="utf-8"), max_size=30),
)
@example((0.1 + 0.2, 5e-324, -0.0, 1.7976931348623157e308), 0, "hold", '"\n\x1b[31m\\ \u2028 €')
@settings(max_examples=8, deadline=None)
def test_a_rule_is_the_same_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory,
    thresholds: tuple[float, ...],
    min_delay: int,
    on_tie: Any,
    source: str,
) -> None:
    file = tmp_path_factory.mktemp("rules") / "rule.json"
    rule = made(**dict(zip(NUMBERS, thresholds, strict=True)), min_delay=min_delay, on_tie=on_tie, source=source)
    loaded = load_rule(save_rule(rule, file))
    assert loaded == rule
    assert bits(loaded) == bits(rule)  # −0.0 equals 0.0
    text = file.read_bytes()
    assert save_rule(loaded, file).read_bytes() == text


@given(st.tuples(shares, shares, shares))
@settings(max_examples=8, deadline=None)
def test_a_loaded_rule_decides_alike(tmp_path_factory: pytest.TempPathFactory, p: tuple[float, float, float]) -> None:
    # at the thresholds themselves, where the last bit decides
    p_err, p0, p1 = p
    utility = made().decide(delay=1, p_err=1.0, p0=p0, p1=p1).utility_score
    rule = made(error_threshold=p_err, failure_threshold=1 - p0, utility_threshold=utility, on_tie="refresh")
    loaded = load_rule(save_rule(rule, tmp_path_factory.mktemp("rules") / "rule.json"))
    decision = loaded.decide(delay=1, p_err=p_err, p0=p0, p1=p1)
    assert decision == rule.decide(delay=1, p_err=p_err, p0=p0, p1=p1)
    assert decision.action == "refresh"


# what a rule takes, a file holds: other kinds of numbers are written as the nearest plain one
@pytest.mark.parametrize(
    ("setting", "given_as", "comes_back"),
    [
        ("min_delay", np.int64(2), 2),
        ("min_delay", 2.0, 2),
        ("error_threshold", np.float64(0.876), 0.876),
        ("error_threshold", np.float32(0.1), float(np.float32(0.1))),
        ("failure_threshold", 1, 1.0),
        ("harm_penalty", Fraction(1, 3), 1 / 3),
        ("harm_penalty", Decimal("2.5"), 2.5),
    ],
)
def test_other_numbers(tmp_path: Path, setting: str, given_as: Any, comes_back: float) -> None:
    loaded = load_rule(save_rule(made(**{setting: given_as}), tmp_path / "rule.json"))
    assert getattr(loaded, setting) == comes_back
    assert type(getattr(loaded, setting)) is type(comes_back)


def test_what_a_file_says_of_itself(tmp_path: Path) -> None:
    document = json.loads(save_rule(PAPER, tmp_path / "rule.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["schema_version"]) == (SCHEMA, 1)
    assert [document[name] for name in NUMBERS] == [0.876, 0.052, 0.0, 2.0]  # arXiv 2610.00372
    assert (document["min_delay"], document["failure_probability"]) == (1, "complement_of_p0")
    assert "Qwen3-14B" in document["source"]
    assert load_rule(tmp_path / "rule.json").provenance == PAPER.provenance


# ---- what cannot be saved -----------------------------------------------------------------------------------------


def test_a_function_of_ones_own_is_in_no_file(tmp_path: Path) -> None:
    rule = made(failure_probability=lambda p0: 1 - p0)
    with pytest.raises(FaultbookError, match="only a rule with failure_probability='complement_of_p0' can be saved"):
        save_rule(rule, tmp_path / "rule.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("source", "said"), [("\ud800", "surrogate"), (5, "valid string"), (None, "valid string")])
def test_a_source_that_is_no_text(tmp_path: Path, source: Any, said: str) -> None:
    with pytest.raises(FaultbookError, match=f"the rule cannot be saved: source.*{said}") as error:
        save_rule(made(source=source), tmp_path / "rule.json")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


# ---- written at once ----------------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "rule.json"
    file.write_text("old" * 1000, encoding="utf-8")
    assert save_rule(PAPER, str(file)) == file
    assert load_rule(file) == PAPER
    assert [path.name for path in tmp_path.iterdir()] == ["rule.json"]


def test_what_cannot_be_written_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    for target in ("none/rule.json", "folder", ".", "file/rule.json", "n" * 300):
        with pytest.raises(FaultbookError, match="cannot be written") as error:
            save_rule(PAPER, target)
        assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"


def test_a_full_disk_leaves_the_old_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save_rule(PAPER, tmp_path / "rule.json")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FaultbookError, match="No space left on device"):
        save_rule(made(min_delay=4), file)
    assert load_rule(file) == PAPER
    assert [path.name for path in tmp_path.iterdir()] == ["rule.json"]


# ---- files that cannot be trusted ---------------------------------------------------------------------------------


def changed(**change: Any) -> Callable[[dict[str, Any]], str]:
    return lambda document: json.dumps(document | change)


def without(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda document: json.dumps({key: value for key, value in document.items() if key != name})


FAULTS: list[tuple[Callable[[dict[str, Any]], str], str]] = [
    *((without(name), f"column '{name}': this key is missing") for name in (*NUMBERS, "schema", "schema_version")),
    *((without(name), f"column '{name}': this key is missing") for name in ("min_delay", "on_tie", "source")),
    (without("failure_probability"), "column 'failure_probability': this key is missing"),
    (changed(extra=1), "column 'extra': no such key is known"),
    (changed(schema_name=SCHEMA), "column 'schema_name': no such key"),
    (changed(**{"\x1b[31m" + "x\n" * 1000: 1}), r"column 'x x .* more characters\]': no such key"),
    (changed(schema="faultbook.recovery.estimators"), "column 'schema'.*'faultbook.recovery.rule'.*found 'faultbook"),
    (changed(schema_version=2), "column 'schema_version'.*found 2"),
    (changed(schema_version="1"), "column 'schema_version'.*found '1'"),
    *((changed(**{name: math.nan}), f"column '{name}'.*finite number.*found nan") for name in NUMBERS),
    *((changed(**{name: math.inf}), f"column '{name}'.*finite number.*found inf") for name in NUMBERS),
    (lambda d: json.dumps(d).replace("0.876", "1e999"), "column 'error_threshold'.*finite number.*found inf"),
    (changed(error_threshold=1.0000001), "column 'error_threshold'.*less than or equal to 1"),
    (changed(failure_threshold=-0.1), "column 'failure_threshold'.*greater than or equal to 0.*found -0.1"),
    (changed(harm_penalty=-2), "column 'harm_penalty'.*greater than or equal to 0"),
    (changed(utility_threshold="0"), "column 'utility_threshold'.*found '0'"),
    (changed(utility_threshold=True), "column 'utility_threshold'.*found True"),
    (changed(utility_threshold=[0.0]), r"column 'utility_threshold'.*found \[0.0\]"),
    (changed(utility_threshold=10**400), "column 'utility_threshold'"),
    (changed(min_delay=-1), "column 'min_delay'.*found -1"),
    (changed(min_delay=1.5), "column 'min_delay'.*found 1.5"),
    (changed(min_delay=None), "column 'min_delay'.*found None"),
    (changed(min_delay=10**400), "min_delay is 1000.*give a finite number"),
    (changed(failure_probability="p0"), "column 'failure_probability'.*found 'p0'"),
    (changed(failure_probability=None), "column 'failure_probability'.*found None"),
    (changed(on_tie="act"), "column 'on_tie'.*'hold' or 'refresh'.*found 'act'"),
    (changed(source=None), "column 'source'.*found None"),
    (changed(source="\ud800"), "column 'source': not text"),
    (lambda d: json.dumps(d).replace('"min_delay": 1', '"min_delay": 1, "min_delay": 0'), "'min_delay' stands twice"),
    (lambda d: json.dumps(d)[:-9], "not JSON"),
    (lambda d: json.dumps(d) * 2, "not JSON"),
    (lambda _: "", "not JSON"),
    (lambda _: "error ≥ 0.9", "not JSON"),
    (lambda _: "[]", r"not a rule file \(found \[\]\)"),
    (lambda _: "null", "not a rule file"),
    (lambda _: "[" * 100_000, "not JSON"),
    (lambda _: '{"schema": ' * 100_000, "not JSON"),
    (lambda _: "9" * 5_000, "not JSON"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS)
def test_faults_are_located_in_one_line(tmp_path: Path, fault: Callable[[dict[str, Any]], str], said: str) -> None:
    file = save_rule(PAPER, tmp_path / "rule.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(fault(copy.deepcopy(document)), encoding="utf-8")
    with pytest.raises(DataError, match=said) as error:
        load_rule(file)
    assert str(error.value).startswith(str(file))
    assert not set("\n\x1b") & set(str(error.value))
    assert len(str(error.value)) < 300 + len(str(file))


def test_a_deep_value_inside_a_rule(tmp_path: Path) -> None:
    file = tmp_path / "rule.json"
    for depth in (50, 500, 5_000):
        file.write_text('{"source": ' + "[" * depth + "]" * depth + "}", encoding="utf-8")
        with pytest.raises(DataError, match=r"rule\.json"):
            load_rule(file)


@given(st.binary(max_size=60))
@example(b"\x80\x04\x95\xff")
@example(b"\xff\xfe{\x00}\x00")
@settings(max_examples=8, deadline=None)
def test_bytes_of_any_kind(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("rules") / "rule.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"not JSON|not a rule file|this key is missing|stands twice"):
        load_rule(file)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "none" / "rule.json"):
        with pytest.raises(DataError, match="no such file"):
            load_rule(path)


def test_numbers_without_a_point_are_numbers(tmp_path: Path) -> None:
    file = save_rule(PAPER, tmp_path / "rule.json")
    document = json.loads(file.read_text(encoding="utf-8")) | {"error_threshold": 1, "harm_penalty": 2}
    file.write_text(json.dumps(document), encoding="utf-8")
    loaded = load_rule(file)
    assert (loaded.error_threshold, loaded.harm_penalty) == (1.0, 2.0)
    assert isinstance(loaded.error_threshold, float)
