"""Numbers as they stand in print: the digits, their precision, and the range of values that round to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

MINUS_SIGNS = "−–‒﹣－"
SPACES = "\u00a0\u2009\u202f"  # no-break and thin spaces, as between a number and its unit
_UNITS = ("%", "pp", "GiB", "s", "h", "USD")
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<prefix>[±~≈$]?)\s*(?P<digits>[1-9]\d{0,2}(?:,\d{3})+|\d+|(?=\.\d))(?P<decimals>\.\d+)?\s*(?P<unit>%|pp|GiB|s|h|USD)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A printed number: exact digits, number of decimals, sign and unit as printed.

    `number` is in printed units: 70.33 for "70.33 %".
    """

    text: str
    number: Decimal
    decimals: int
    signed: bool
    unit: str

    @property
    def half_unit(self) -> Fraction:
        """Half of one unit of the last printed digit."""
        return Fraction(1, 2 * 10**self.decimals)

    @property
    def low(self) -> Fraction:
        """The least value that may round to the printed digits (ties count, whichever way they were broken)."""
        return Fraction(self.number) - self.half_unit

    @property
    def high(self) -> Fraction:
        """The greatest value that may round to the printed digits."""
        return Fraction(self.number) + self.half_unit

    def admits(self, value: Fraction) -> bool:
        """Whether `value`, in printed units, may have been rounded to these digits."""
        return self.low <= value <= self.high

    def like(self, value: float | Fraction) -> str:
        """Write `value` (printed units) with the same number of decimals, sign style and unit."""
        sign = "+" if self.signed and self.number > 0 and value > 0 else ""
        exact = Fraction(value)
        with localcontext(prec=60):
            digits = Decimal(exact.numerator) / Decimal(exact.denominator)
        body = f"{sign}{digits:,.{self.decimals}f}".replace("-", "−")
        return body + (" pp" if self.unit == "pp" else self.unit)


def parse_printed(text: str) -> PrintedNumber:
    """Parse a number as printed: "+7.53 pp", "−6.45", "70.33%", "22,752,932", ".034", "±0.011", "~15.8 GiB".

    Raises
    ------
    ValueError
        If the text is not one number with at most one known unit.
    """
    normal = str(text).strip()
    for space in SPACES:
        normal = normal.replace(space, " ")
    for minus in MINUS_SIGNS:
        normal = normal.replace(minus, "-")
    match = _NUMBER.fullmatch(normal)
    if match is None:
        raise ValueError(f"'{text}' is not a printed number; known units are {', '.join(_UNITS)}")
    decimals = match["decimals"] or ""
    number = Decimal(match["sign"] + (match["digits"].replace(",", "") or "0") + decimals)
    return PrintedNumber(str(text), number, max(len(decimals) - 1, 0), bool(match["sign"]), match["unit"] or "")


def unit_scale(unit: str) -> Fraction:
    """The factor from printed units to the `value` column: per cent become rates, everything else stays."""
    return Fraction(1, 100) if unit == "%" else Fraction(1)


def signed(value: float, decimals: int = 1) -> str:
    """Write a difference with its sign, as in print: "+7.5", "−14.3", and 0 without one."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")
