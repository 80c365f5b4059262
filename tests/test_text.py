"""Foreign text made safe to show."""

from __future__ import annotations

import html
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbook.text import escaped, plain

ANY_TEXT = st.text(st.characters())  # half surrogates too


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("", ""),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("é 한국어 🦊 a\u0301", "é 한국어 🦊 a\u0301"),
        ("−–—×’", "−–—×’"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;208mbold\x1b[m", "bold"),
        ("\x1b[?25l\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]8;id=1;https://x.org\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;window title\x07text", "text"),
        ("\x1b]52;c;Y2xpcGJvYXJk\x07text", "text"),
        ("\x1bMup", "up"),
        ("\x1b", ""),
        ("a\x00b\x07c\x08d\x7fe\x9bf", "abcdef"),
        ("a\r\nb\rc", "a\nbc"),
        ("user\u202egpj.exe", "usergpj.exe"),
        ("\u2066a\u2069 \u200fb\u200e \u061cc", "a b c"),
        ("a\ud800b\udcffc", "abc"),
        ("a\ue000b", "ab"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\x1bP1;2qsixel\x1b\\x",
        "\x1b_application\x1b\\x",
        "\x1b^private\x1b\\x",
        "\x1bXstring\x1b\\x",
        "\x9b31mx",
        "\x9d0;t\x9cx",
    ],
)
def test_what_terminals_hide_goes_whole_or_stays_readable(text: str) -> None:
    """Device strings are rare; at least no control character of them is left."""
    assert not [c for c in plain(text) if unicodedata.category(c) == "Cc"]


@pytest.mark.parametrize(("value", "shown"), [(3, "3"), (None, "None"), (1.5, "1.5"), (["<b>"], "['<b>']")])
def test_any_value(value: object, shown: str) -> None:
    assert plain(value) == shown


def test_long_text_is_cut_and_says_by_how_much() -> None:
    assert plain("x" * 500) == "x" * 500
    assert plain("x" * 501) == "x" * 500 + " … [1 more characters]"
    assert plain("x" * 12, most=10) == "x" * 10 + " … [2 more characters]"


def test_what_is_removed_does_not_count() -> None:
    assert plain("\x1b[31m" * 1000 + "x", most=5) == "x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b &amp; c", "a &amp; b &amp;amp; c"),
        ("\"double\" and 'single'", "&quot;double&quot; and &#x27;single&#x27;"),
        ("<\x1b[31mb\x00>", "&lt;b&gt;"),
    ],
)
def test_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_cutting_comes_before_escaping() -> None:
    assert escaped("&" * 12, most=10) == "&amp;" * 10 + " … [2 more characters]"


@given(ANY_TEXT)
def test_nothing_unseen_is_left_of_any_text(text: str) -> None:
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Co") and c not in "\n\t"]
    assert not set(shown) & {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}
    shown.encode("utf-8")


@given(ANY_TEXT)
def test_plain_text_is_plain_already(text: str) -> None:
    once = plain(text, most=10_000)
    assert plain(once, most=10_000) == once


@given(ANY_TEXT)
def test_no_markup_is_left_of_any_text(text: str) -> None:
    shown = escaped(text)
    assert not set(shown) & set("<>\"'")
    assert html.unescape(shown) == plain(text)
