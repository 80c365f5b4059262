"""YAML that people, and people with bad intentions, write."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from faultbook.errors import DataError
from faultbook.yamlfile import load_yaml, parse_yaml


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "relations.yaml"


def test_plain_values(written: Path) -> None:
    written.write_text("a: 1\nb: [x, 2.5, null, true]\nc:\n  d: '−0.5'\ne: 2026-10-02\n", encoding="utf-8")
    assert load_yaml(written) == {
        "a": 1,
        "b": ["x", 2.5, None, True],
        "c": {"d": "−0.5"},
        "e": datetime.date(2026, 10, 2),
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing_is_none(written: Path, text: str) -> None:
    written.write_text(text, encoding="utf-8")
    assert load_yaml(str(written)) is None


def test_byte_order_mark_is_accepted(written: Path) -> None:
    written.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_yaml(written) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("a: 1\na: 2", 2, "a"),
        ("a: 1\n'a': 2", 2, "a"),
        ("top:\n  - x: 1\n    y: 2\n    x: 3\n", 4, "x"),
        ("- - - {b: 1, c: {d: 1, d: 1}}", 1, "d"),
        ("{b: 1, b: 1}", 1, "b"),
        ("1: a\n2: b\n1: c", 3, "1"),
        ("1: a\ntrue: b", 2, "True"),  # equal keys of a Python dict: one of the two would vanish
        ("&x a: 1\n*x : 2", 1, "a"),  # an alias stands where its anchor does
        ("!!set {a, b, a}", 1, "a"),
        ("~: 1\nnull: 2", 2, "None"),
        ("2026-10-02: a\n2026-10-02: b", 2, "2026-10-02"),
    ],
)
def test_a_key_that_stands_twice_is_refused_at_any_depth(written: Path, text: str, line: int, key: str) -> None:
    written.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"row {line}: the key '{key}' stands twice") as caught:
        load_yaml(written)
    assert caught.value.file == written
    assert caught.value.row == line


def test_equal_keys_in_different_mappings_are_fine(written: Path) -> None:
    written.write_text("- {a: 1, b: {a: 2}}\n- {a: 3}\n", encoding="utf-8")
    assert load_yaml(written) == [{"a": 1, "b": {"a": 2}}, {"a": 3}]


@pytest.mark.parametrize(
    "text",
    [
        '!!python/object/apply:os.mkdir ["{victim}"]',
        'a: [b, {{c: !!python/object/apply:os.mkdir ["{victim}"]}}]',
        '? !!python/object/apply:os.mkdir ["{victim}"]\n: a',
        "!!python/name:os.mkdir",
        "!!python/module:os",
        "!!python/tuple [1, 2]",
        "!own a",
    ],
)
def test_tags_that_build_objects_are_refused(written: Path, text: str) -> None:
    victim = written.parent / "victim"
    written.write_text(text.format(victim=victim), encoding="utf-8")
    with pytest.raises(DataError, match=r"row 1: .*tag"):
        load_yaml(written)
    assert not victim.exists()


@pytest.mark.parametrize(
    "text", ["!!bool maybe", "!!timestamp soon", '!!int ""', '!!float ""', "!!int one", "2024-13-45"]
)
def test_a_value_that_its_tag_contradicts_is_refused(written: Path, text: str) -> None:
    written.write_text(f"a: {text}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"relations\.yaml"):
        load_yaml(written)


def test_aliases_are_shared_and_not_copied(written: Path) -> None:
    # Nine levels of nine aliases: 10**9 strings if anything copied them.
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    written.write_text("\n".join(lines), encoding="utf-8")
    loaded = load_yaml(written)
    assert loaded["a8"][0] is loaded["a8"][8] is loaded["a7"]


def test_a_list_that_holds_itself_does_not_hang(written: Path) -> None:
    written.write_text("&a [*a]", encoding="utf-8")
    loaded = load_yaml(written)
    assert loaded[0] is loaded


@pytest.mark.parametrize("text", ["[" * 20_000, "- " * 20_000 + "a", "{a: " * 20_000])
def test_nesting_without_end_is_refused(written: Path, text: str) -> None:
    written.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"relations\.yaml.*recursion"):
        load_yaml(written)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: *nobody\n", 1),
        ("a: 1\nb: c: d\n", 2),
        ('a: "open', 1),
        ("[1, 2]: 3", 1),
        ("{a: b}: 3", 1),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(written: Path, text: str, line: int) -> None:
    written.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_yaml(written)
    assert caught.value.row == line
    assert caught.value.file == written
    assert str(caught.value).endswith("correct the YAML")


def test_control_characters_are_refused(written: Path) -> None:
    written.write_text("a: \x00", encoding="utf-8")
    with pytest.raises(DataError, match="not YAML"):
        load_yaml(written)


@pytest.mark.parametrize(("content", "byte"), [(b"a: \xe9\n", 3), (b"\xff\xfea\x00", 0)])
def test_not_utf8_is_refused_with_the_byte(written: Path, content: bytes, byte: int) -> None:
    written.write_bytes(content)
    with pytest.raises(DataError, match=rf"relations\.yaml: not UTF-8 text \(byte {byte}\); save as UTF-8"):
        load_yaml(written)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "no.yaml", tmp_path):
        with pytest.raises(DataError) as caught:
            load_yaml(path)
        assert caught.value.file == path


def test_a_path_below_a_file_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(DataError, match="no such file"):
        load_yaml(tmp_path / "a.yaml" / "b.yaml")


def test_a_document_in_one_row_of_a_file_is_named_by_that_row() -> None:
    assert parse_yaml("a: [1, 2]", "logs.csv", row=7) == {"a": [1, 2]}
    for text in ("a: [1", "a: 1\n\na: 2", "a: !!python/name:os.mkdir", "a: \x00"):
        with pytest.raises(DataError, match=r"^logs\.csv, row 7: ") as caught:
            parse_yaml(text, "logs.csv", row=7)
        assert (caught.value.file, caught.value.row) == ("logs.csv", 7)


def test_equal_keys_may_be_let_through_but_never_objects() -> None:
    assert parse_yaml("a: 1\na: 2", "events.yaml", unique_keys=False) == {"a": 2}
    with pytest.raises(DataError, match=r"events\.yaml, row 1: .*tag"):
        parse_yaml("!!python/object/apply:os.getcwd []", "events.yaml", unique_keys=False)
