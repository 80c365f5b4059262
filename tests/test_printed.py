"""Printed numbers: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faultbook.printed import MINUS_SIGNS, parse_printed, unit_scale


@pytest.mark.parametrize(
    ("text", "number", "decimals", "signed", "unit"),
    [
        ("+7.53 pp", "7.53", 2, True, "pp"),
        ("−6.45", "-6.45", 2, True, ""),
        ("-6.45", "-6.45", 2, True, ""),
        ("− 6.45", "-6.45", 2, True, ""),
        ("70.33%", "70.33", 2, False, "%"),
        ("70.33 %", "70.33", 2, False, "%"),
        ("4.7995 %", "4.7995", 4, False, "%"),
        ("22,752,932", "22752932", 0, False, ""),
        ("1,000.50", "1000.50", 2, False, ""),
        ("10000", "10000", 0, False, ""),
        (".034", "0.034", 3, False, ""),
        ("−.5", "-0.5", 1, True, ""),
        ("±0.011", "0.011", 3, False, ""),
        ("~15.8 GiB", "15.8", 1, False, "GiB"),
        ("15.8GiB", "15.8", 1, False, "GiB"),
        ("≈33", "33", 0, False, ""),
        ("$0.80", "0.80", 2, False, ""),
        ("0.80 USD", "0.80", 2, False, "USD"),
        ("712 s", "712", 0, False, "s"),
        ("~346 h", "346", 0, False, "h"),
        ("47", "47", 0, False, ""),
        ("0", "0", 0, False, ""),
        ("−0.00", "0.00", 2, True, ""),
        ("  1.0\n", "1.0", 1, False, ""),
    ],
)
def test_parse(text: str, number: str, decimals: int, signed: bool, unit: str) -> None:
    parsed = parse_printed(text)
    assert parsed.number == Decimal(number)
    assert (parsed.decimals, parsed.signed, parsed.unit) == (decimals, signed, unit)
    assert parsed.text == text


@pytest.mark.parametrize("minus", [*MINUS_SIGNS, "-"])
def test_every_minus_sign_is_one(minus: str) -> None:
    parsed = parse_printed(f"{minus}11.83")
    assert parsed.number == Decimal("-11.83")
    assert parsed.signed


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "—",
        "-",
        "+",
        ".",
        "5.",
        "%",
        "pp",
        "1,23",
        "12,34,567",
        "1234,567",
        "1,234,56",
        ",123",
        "0,123",  # a decimal comma, never a thousand
        "00,123",
        "1.234,5",
        "1e5",
        "1E5",
        "0x10",
        "nan",
        "NaN",
        "inf",
        "∞",
        "1_000",
        "٣",
        "３",
        "²",
        "½",
        "1/2",
        "5 6",
        "5–6",
        "[1, 2]",
        "0.5 ± 0.1",
        "0.5±0.1",
        "1.2.3",
        "+-5",
        "--5",
        "5-",
        "5 %%",
        "5 ms",
        "5 gib",
        "5 pp %",
        "% 5",
        "five",
        "5 of 7",
        "5\n6",
        "5\x00",
    ],
)
def test_what_is_no_printed_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a printed number; known units are %, pp, GiB, s, h, USD"):
        parse_printed(text)


def test_refusal_quotes_the_text() -> None:
    with pytest.raises(ValueError, match=r"^'1,23' is not"):
        parse_printed("1,23")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("47%", "46.5", "47.5"),
        ("−6.45", "-6.455", "-6.445"),
        (".034", "0.0335", "0.0345"),
        ("22,752,932", "22752931.5", "22752932.5"),
        ("0.00 pp", "-0.005", "0.005"),
    ],
)
def test_bounds_are_half_a_unit_of_the_last_digit_away(text: str, low: str, high: str) -> None:
    parsed = parse_printed(text)
    assert (parsed.low, parsed.high) == (Fraction(low), Fraction(high))


@pytest.mark.parametrize(
    ("text", "value", "admitted"),
    [
        ("0.128", Fraction("0.1275"), True),  # a tie, rounded up
        ("0.127", Fraction("0.1275"), True),  # the same tie, rounded down
        ("0.128", Fraction("0.12749999"), False),
        ("16.3%", Fraction(4900, 300), True),
        ("16.4%", Fraction(4900, 300), False),
        ("11.98", Fraction(800, 67), False),
        ("11.94", Fraction(800, 67), True),
        ("−6.45 pp", Fraction(-600, 93), True),
        ("+6.45 pp", Fraction(-600, 93), False),
    ],
)
def test_admits(text: str, value: Fraction, admitted: bool) -> None:
    assert parse_printed(text).admits(value) is admitted


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("+7.53 pp", Fraction(1100, 93), "+11.83 pp"),
        ("+7.53 pp", Fraction(-600, 93), "−6.45 pp"),
        ("−6.45", Fraction(1100, 93), "11.83"),  # a minus sign does not tell whether gains carry a plus
        ("+7.53", Fraction(0), "0.00"),
        ("70.33 %", Fraction(22000, 300), "73.33%"),
        (".034", Fraction(0), "0.000"),
        ("22,752,932", Fraction(9523530), "9,523,530"),
        ("0.788", 0.8, "0.800"),
        ("15.8 GiB", 6.4, "6.4GiB"),
    ],
)
def test_like_keeps_decimals_sign_style_and_unit(text: str, value: Fraction | float, written: str) -> None:
    assert parse_printed(text).like(value) == written


def test_only_per_cent_is_scaled() -> None:
    assert unit_scale("%") == Fraction(1, 100)
    assert {unit_scale(unit) for unit in ("pp", "count", "1", "s", "")} == {Fraction(1)}


@st.composite
def printed_texts(draw: st.DrawFn) -> tuple[str, int, int]:
    """A printed number with the digits and the number of decimals it shows."""
    decimals = draw(st.integers(0, 5))
    digits = draw(st.integers(-(10**10), 10**10))
    magnitude = Decimal(abs(digits)).scaleb(-decimals)
    body = f"{magnitude:,.{decimals}f}" if draw(st.booleans()) else f"{magnitude:.{decimals}f}"
    if draw(st.booleans()) and body.startswith("0."):
        body = body[1:]
    sign = draw(st.sampled_from([*MINUS_SIGNS, "-"])) if digits < 0 else draw(st.sampled_from(["", "+"]))
    unit = draw(st.sampled_from(["", "%", " %", " pp", "GiB", " s"]))
    return sign + body + unit, digits, decimals


@settings(deadline=None)
@given(printed_texts())
@example(("−.5 pp", -5, 1))
def test_reading_gives_back_the_digits(printed: tuple[str, int, int]) -> None:
    text, digits, decimals = printed
    parsed = parse_printed(text)
    assert parsed.decimals == decimals
    assert Fraction(parsed.number) == Fraction(digits, 10**decimals)


@settings(deadline=None)
@given(printed_texts(), st.integers(-(10**10), 10**10))
def test_like_writes_what_parse_printed_reads(printed: tuple[str, int, int], other: int) -> None:
    parsed = parse_printed(printed[0])
    value = Fraction(other, 10**parsed.decimals)
    again = parse_printed(parsed.like(value))
    assert Fraction(again.number) == value
    assert (again.decimals, again.unit) == (parsed.decimals, parsed.unit)


@settings(deadline=None)
@given(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=10_000),
    st.integers(0, 4),
    st.sampled_from([ROUND_HALF_UP, ROUND_HALF_DOWN, ROUND_HALF_EVEN]),
)
@example(Fraction(1275, 10_000), 3, ROUND_HALF_UP)
@example(Fraction(1275, 10_000), 3, ROUND_HALF_DOWN)
def test_a_value_is_admitted_by_the_text_it_rounds_to_and_by_no_neighbour(
    value: Fraction, decimals: int, rounding: str
) -> None:
    # A fraction above that is no tie lies at least 5e-9 from one; 28 digits tell them apart.
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    step = Decimal(1).scaleb(-decimals)
    rounded = exact.quantize(step, rounding=rounding)
    assert parse_printed(str(rounded)).admits(value)
    assert not parse_printed(str(rounded + 2 * step)).admits(value)
    assert not parse_printed(str(rounded - 2 * step)).admits(value)
