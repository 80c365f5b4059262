"""Relations files: every kind, every slip of the pen, and what `check_relations` finds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from faultbook.audit import check_relations, read_relations
from faultbook.errors import DataError

MakeTable = Callable[[str], pd.DataFrame]
Write = Callable[..., Path]

# One relation of each kind with all its required fields, and the cells that it names.
EVERY_KIND: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "same", "cells": ["a", "b"]}, ["a", "b"]),
    ({"kind": "same_label", "tables": ["s/t", "s/u"]}, []),
    ({"kind": "sum", "total": "a", "parts": ["b", 2]}, ["a", "b"]),
    ({"kind": "difference", "value": "a", "minuend": "b", "subtrahend": "c"}, ["a", "b", "c"]),
    ({"kind": "product", "total": "a", "factors": ["b", 4]}, ["a", "b"]),
    ({"kind": "pairs_of", "total": "a", "items": "b"}, ["a", "b"]),
    ({"kind": "extreme", "value": "a", "which": "least", "of": ["b", "c"]}, ["a", "b", "c"]),
    ({"kind": "kendall_tau", "value": "a", "items": 5}, ["a"]),
    ({"kind": "ratio", "value": "a", "numerator": "b", "denominator": "c"}, ["a", "b", "c"]),
    ({"kind": "rate", "value": "a", "denominators": ["b", 300]}, ["a", "b"]),
    ({"kind": "effect", "value": "a", "rescues": "b", "harms": "c", "n": 93}, ["a", "b", "c"]),
    ({"kind": "interval", "low": "a", "high": "b", "n": "c", "effect": "d"}, ["a", "b", "c", "d"]),
    ({"kind": "interval", "low": "a", "high": "b", "n": 75, "rescues": 9, "harms": "d"}, ["a", "b", "d"]),
    (
        {
            "kind": "interval_of_difference",
            "effect": "a",
            "low": "b",
            "high": "c",
            "n": "d",
            "first": "interval-1",
            "second": "interval-2",
        },
        ["a", "b", "c", "d"],
    ),
    (
        {
            "kind": "clustered_interval",
            "effect": "a",
            "low": "b",
            "high": "c",
            "tasks": 75,
            "episodes": "d",
            "strata": [["e", 0], [1, "f"]],
            "p": "g",
        },
        ["a", "b", "c", "d", "e", "f", "g"],
    ),
    ({"kind": "paired_margins", "successes_a": "a", "successes_b": "b", "n": "c"}, ["a", "b", "c"]),
    ({"kind": "mcnemar", "value": "a", "only_a": "b", "only_b": 3}, ["a", "b"]),
    ({"kind": "mean_of_scores", "value": "a", "n": "b", "repeats": 3}, ["a", "b"]),
    ({"kind": "certify", "events": "a", "n": 75, "limit": "b"}, ["a", "b"]),
    ({"kind": "upper_bound", "value": "a", "events": "b", "n": 75}, ["a", "b"]),
]
KINDS = [relation["kind"] for relation, _ in EVERY_KIND]
OPTIONAL = {"p"}


@pytest.mark.parametrize(("relation", "cells"), EVERY_KIND, ids=KINDS)
def test_every_kind_is_read_and_names_its_cells(
    write_relations: Write, relation: dict[str, Any], cells: list[str]
) -> None:
    (found,) = read_relations(write_relations({"id": "one", "note": "a remark", **relation}))
    assert (found.id, found.kind, found.note) == ("one", relation["kind"], "a remark")
    assert sorted(found.cell_ids()) == cells


def test_relations_keep_their_order(write_relations: Write) -> None:
    listed = [{"id": f"relation {9 - i}", **relation} for i, (relation, _) in enumerate(EVERY_KIND[:9])]
    assert [found.id for found in read_relations(write_relations(*listed))] == [relation["id"] for relation in listed]


def test_an_empty_list_is_no_relations(write_relations: Write) -> None:
    assert list(read_relations(write_relations())) == []


@pytest.mark.parametrize(("relation", "cells"), EVERY_KIND, ids=KINDS)
def test_an_unknown_field_is_refused_in_every_kind(
    write_relations: Write, relation: dict[str, Any], cells: list[str]
) -> None:
    file = write_relations({"id": "one", **relation, "verdict": "fine"})
    with pytest.raises(DataError, match=r"relation 1 \(one\)") as caught:
        read_relations(file)
    assert caught.value.file == file
    assert caught.value.column is not None
    assert caught.value.column.endswith("verdict")


@pytest.mark.parametrize(
    ("relation", "field"),
    [(relation, field) for relation, _ in EVERY_KIND for field in relation if field not in {"kind", *OPTIONAL}],
    ids=lambda value: value if isinstance(value, str) else value["kind"],
)
def test_a_missing_field_is_named(write_relations: Write, relation: dict[str, Any], field: str) -> None:
    shorter = {name: value for name, value in relation.items() if name != field}
    file = write_relations({"id": "good", **relation}, {"id": "bad", **shorter})
    with pytest.raises(DataError, match=r"relation 2 \(bad\)") as caught:
        read_relations(file)
    assert caught.value.file == file
    if relation["kind"] != "interval" or field in {"low", "high", "n"}:
        assert caught.value.column is not None
        assert caught.value.column.endswith(field)


@pytest.mark.parametrize("given", [{}, {"rescues": "c"}, {"harms": "c"}, {"unchanged": "c"}])
def test_an_interval_needs_its_effect_or_both_counts(write_relations: Write, given: dict[str, str]) -> None:
    file = write_relations({"id": "one", "kind": "interval", "low": "a", "high": "b", "n": 75, **given})
    with pytest.raises(DataError, match=r"relation 1 \(one\).*an interval needs its effect, or both rescues and harms"):
        read_relations(file)


@pytest.mark.parametrize(
    ("relation", "field"),
    [
        ({"kind": "same", "cells": "a"}, "cells"),
        ({"kind": "same", "cells": ["a"]}, "cells"),
        ({"kind": "same", "cells": ["a", 5]}, "cells"),
        ({"kind": "same", "cells": ["a", ""]}, "cells"),
        ({"kind": "same", "cells": ["a", None]}, "cells"),
        ({"kind": "same", "cells": ["a", "a"]}, "cells"),  # a cell agrees with itself, which shows nothing
        ({"kind": "same_label", "tables": ["s/t"]}, "tables"),
        ({"kind": "same_label", "tables": ["s/t", "s/u"], "rows": "r"}, "rows"),
        ({"kind": "sum", "total": "a", "parts": []}, "parts"),
        ({"kind": "sum", "total": "a", "parts": [["b"]]}, "parts"),
        ({"kind": "sum", "total": "", "parts": ["b"]}, "total"),
        ({"kind": "sum", "total": None, "parts": ["b"]}, "total"),
        ({"kind": "sum", "total": True, "parts": ["b"]}, "total"),
        ({"kind": "product", "total": "a", "factors": ["b"]}, "factors"),
        ({"kind": "pairs_of", "total": 36, "items": 9}, "total"),
        ({"kind": "extreme", "value": "a", "which": "largest", "of": ["b"]}, "which"),
        ({"kind": "extreme", "value": "a", "which": "least", "of": []}, "of"),
        ({"kind": "rate", "value": "a", "denominators": []}, "denominators"),
        ({"kind": "rate", "value": "a", "denominators": "b"}, "denominators"),
        ({"kind": "interval", "low": "a", "high": "b", "n": 75, "effect": "c", "n_resamples": 99}, "n_resamples"),
        ({"kind": "interval", "low": "a", "high": "b", "n": 75, "effect": "c", "n_resamples": 1000.5}, "n_resamples"),
        ({**EVERY_KIND[14][0], "strata": []}, "strata"),
        ({**EVERY_KIND[14][0], "strata": [[1, 2, 3]]}, "strata"),
        ({**EVERY_KIND[14][0], "strata": [1, 2]}, "strata"),
        ({**EVERY_KIND[15][0], "level": 0}, "level"),
        ({**EVERY_KIND[15][0], "level": 5}, "level"),
        ({**EVERY_KIND[18][0], "level": 95}, "level"),
        ({**EVERY_KIND[19][0], "sides": 3}, "sides"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value['kind']}",
)
def test_a_wrong_type_is_refused_and_its_field_named(
    write_relations: Write, relation: dict[str, Any], field: str
) -> None:
    file = write_relations({"id": "one", **relation})
    with pytest.raises(DataError, match=r"relation 1 \(one\)") as caught:
        read_relations(file)
    assert caught.value.file == file
    assert field in str(caught.value.column)


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    file = tmp_path / "relations.yaml"
    file.write_text(f"relations:\n- {{id: one, kind: sum, total: {number}, parts: [a]}}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"relation 1 \(one\), column 'total"):
        read_relations(file)


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ({"id": "one", "kind": "average", "cells": ["a", "b"]}, ["relation 1 (one)", "'average'", "'kendall_tau'"]),
        ({"id": "one", "cells": ["a", "b"]}, ["relation 1 (one)", "kind"]),
        ({"id": "one", "kind": ["same"], "cells": ["a", "b"]}, ["relation 1 (one)", "same"]),
        ({"kind": "same", "cells": ["a", "b"]}, ["relation 1", "column 'id'"]),
        ({"id": "", "kind": "same", "cells": ["a", "b"]}, ["relation 1", "column 'id'"]),
        ({"id": 5, "kind": "same", "cells": ["a", "b"]}, ["relation 1 (5)", "column 'id'"]),
        ("same", ["relation 1"]),
        (None, ["relation 1"]),
        ([["id", "one"]], ["relation 1"]),
    ],
    ids=str,
)
def test_an_unknown_kind_or_a_missing_id_is_refused(write_relations: Write, relation: Any, words: list[str]) -> None:
    file = write_relations(relation)
    with pytest.raises(DataError) as caught:
        read_relations(file)
    assert str(caught.value).startswith(f"{file}, row relation 1")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_an_id_that_stands_twice_is_refused(write_relations: Write) -> None:
    good = {"kind": "same", "cells": ["a", "b"]}
    file = write_relations({"id": "x", **good}, {"id": "y", **good}, {"id": "x", **good})
    with pytest.raises(DataError, match=r"row relation 3: the id 'x' stands twice") as caught:
        read_relations(file)
    assert caught.value.file == file


@pytest.mark.parametrize(
    "text",
    ["", "- a\n- b\n", "relations:\n", "relations: 5\n", "relations: {a: b}\n", "relation:\n- a\n", "just text\n"],
)
def test_a_file_without_a_list_of_relations_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "relations.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="no list under 'relations'; start the file with 'relations:'") as caught:
        read_relations(file)
    assert caught.value.file == file


def test_a_key_that_stands_twice_in_a_relation_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "relations.yaml"
    file.write_text("relations:\n- id: one\n  kind: same\n  cells: [a, b]\n  cells: [a, c]\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 5: the key 'cells' stands twice"):
        read_relations(file)


@pytest.mark.parametrize(
    "relation",
    [
        "{id: *b4, kind: same, cells: [x, y]}",
        "{id: one, kind: *b4, cells: [x, y]}",
        "{id: one, kind: same, cells: *b4}",
        "{id: one, kind: sum, total: *b4, parts: *b4}",
        "*b4",
    ],
)
def test_an_error_does_not_write_out_what_aliases_multiply(tmp_path: Path, relation: str) -> None:
    # Five levels of nine aliases stand for 59,049 words; ten levels would fill the memory.
    lines = ["b0: &b0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 9)}]" for i in range(1, 5)]
    file = tmp_path / "relations.yaml"
    file.write_text("\n".join([*lines, "relations:", f"- {relation}", ""]), encoding="utf-8")
    with pytest.raises(DataError, match="relation 1") as caught:
        read_relations(file)
    assert len(str(caught.value)) < 2000, f"the message has {len(str(caught.value)):,} characters"


def test_relations_do_not_change(write_relations: Write) -> None:
    (relation,) = read_relations(write_relations({"id": "one", "kind": "sum", "total": "a", "parts": ["b"]}))
    with pytest.raises(ValueError, match="frozen"):
        relation.total = "c"


# ---- relations against a table ----------------------------------------------------------------------------------

TABLE = """
    overall/effect | +9.33 | pp | difference
    overall/low    | 1.33  | pp | interval_low
    overall/high   | 17.33 | pp | interval_high
    overall/n      | 75    | count | count
    overall/given  | —     | pp | interval_low
    u/overall/n    | 75    | count | count
"""
GOOD: list[dict[str, Any]] = [
    {
        "id": "first",
        "kind": "interval",
        "effect": "doc/t/overall/effect",
        "low": "doc/t/overall/low",
        "high": "doc/t/overall/high",
        "n": "doc/t/overall/n",
    },
    {"id": "labels", "kind": "same_label", "tables": ["doc/t", "doc/u"]},
    {
        "id": "joint",
        "kind": "interval_of_difference",
        "effect": "doc/t/overall/effect",
        "low": "doc/t/overall/low",
        "high": "doc/t/overall/high",
        "n": 75,
        "first": "first",
        "second": "first",
    },
]


def test_relations_that_name_what_is_there_pass(make_table: MakeTable, write_relations: Write) -> None:
    check_relations(make_table(TABLE), read_relations(write_relations(*GOOD)), "relations.yaml")
    check_relations(make_table(TABLE), iter(read_relations(write_relations(*GOOD))), Path("relations.yaml"))


@pytest.mark.parametrize(
    ("position", "field", "value", "message"),
    [
        (0, "effect", "doc/t/overall/efect", "row first: no printed number 'doc/t/overall/efect'"),
        (0, "n", "doc/t/Overall/n", "row first: no printed number 'doc/t/Overall/n'"),
        (0, "low", "doc/t/overall/given", "row first: no printed number 'doc/t/overall/given'"),  # a dash
        (1, "tables", ["doc/t", "doc/v"], "row labels: no table 'doc/v'"),
        (1, "tables", ["t", "doc/u"], "row labels: no table 't'"),
        (2, "high", "overall/high", "row joint: no printed number 'overall/high'"),
        (2, "first", "frist", "row joint: no interval relation 'frist'"),
        (2, "second", "labels", "row joint: no interval relation 'labels'"),  # there, but no interval
    ],
)
def test_a_slip_of_the_pen_is_refused(
    make_table: MakeTable, write_relations: Write, position: int, field: str, value: Any, message: str
) -> None:
    listed = copy.deepcopy(GOOD)
    listed[position][field] = value
    with pytest.raises(DataError, match=message) as caught:
        check_relations(make_table(TABLE), read_relations(write_relations(*listed)), "relations.yaml")
    assert caught.value.file == "relations.yaml"


def test_the_real_relations_name_what_is_there(real_reported: pd.DataFrame, real_relations: list[Any]) -> None:
    check_relations(real_reported, real_relations, "relations.yaml")
    assert len(real_relations) > 100
    assert {relation.kind for relation in real_relations} <= set(KINDS)
