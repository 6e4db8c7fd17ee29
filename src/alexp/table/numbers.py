"""Numbers as people write them: decimal commas, thousands separators, percent signs and units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Decimal = Literal[".", ","]
BOTH: frozenset[Decimal] = frozenset((".", ","))

_LONGEST = 500  # characters of a number with its unit, and of a name with one: most digits are those of 1e400
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2007": " ", "\u2212": "-", "\u2019": "'"})
_WRITTEN = re.compile(r"([<>≤≥~≈]=?\s*)?([+-]?)((?:\d[\d.,' ]*|[.,]\d+))([eE][+-]?\d+)?\s*((?![\d.,])\S.*)?")
_READINGS: dict[Decimal, re.Pattern[str]] = {
    ".": re.compile(r"(?:\d+|[1-9]\d{0,2}([,' ])\d{3}(?:\1\d{3})*)(?:\.\d*)?|\.\d+"),
    ",": re.compile(r"(?:\d+|[1-9]\d{0,2}([.' ])\d{3}(?:\1\d{3})*)(?:,\d*)?|,\d+"),
}
_UNIT = re.compile(
    r"%|‰|°|°C|° C|°F|ºC|K|C|s|sec|ms|min|mins|h|hr|hrs|hours?|d|days?|[nµμumk]?g|[nµμumk]?mol|mol ?%|wt ?%|vol ?%|"
    r"[nµμupmk]?M|[µμumcd]?[lL]|[nµμupmkc]?m|eq\.?|equiv\.?|m?bar|[kMhG]?Pa|atm|psi|torr|Torr|rpm|[mkµμu]?[VAW]|"
    r"[kM]?J|k?cal|[kMG]?Hz|ppm|ppb|k?Da|m?Pas?|cP|Å|m?eV|€|\$|EUR|USD",
)
_TITLE = re.compile(r".*?[(\[]\s*([^()\[\]]+?)\s*[)\]]$|.*\s/\s?(\S+)$")


class Written(NamedTuple):
    """A number as it is written: a sign of comparison, the sign, its digits, the exponent, and the unit."""

    bound: str
    sign: str
    digits: str
    exponent: str
    unit: str

    @property
    def readings(self) -> frozenset[Decimal]:
        """The decimal signs with which the digits are a number."""
        return frozenset(sign for sign in BOTH if _READINGS[sign].fullmatch(self.digits))

    @property
    def is_whole(self) -> bool:
        """Whether it has neither a fraction nor an exponent, whatever the decimal sign."""
        return not self.exponent and "." not in self.digits and "," not in self.digits

    def value(self, decimal: Decimal) -> float:
        """The number, for one of its readings."""
        digits = re.sub("[ '.]" if decimal == "," else "[ ',]", "", self.digits).replace(",", ".")
        return float(f"{self.sign}{digits}{self.exponent}")


def written(text: str) -> Written | None:
    """A cell as a number; None if it is none.

    >>> written("1.234,5 mg").readings, written("<0.1").bound, written("DMF")
    (frozenset({','}), '<', None)
    """
    found = _WRITTEN.fullmatch(text.translate(_SPACES).strip()) if len(text) <= _LONGEST else None
    if found is None:
        return None
    bound, sign, digits, exponent, unit = (part or "" for part in found.groups())
    number = Written(bound.strip(), sign, digits.strip(), exponent, " ".join(unit.split()))
    return number if number.readings else None


def is_unit(text: str) -> bool:
    """Whether a text is a unit as laboratories write them, such as °C, mol% or mg/mL.

    >>> is_unit("mg/mL"), is_unit("kJ mol-1"), is_unit("a")
    (True, True, False)
    """
    if _UNIT.fullmatch(text):
        return True
    parts = [re.sub(r"(\^?[-−]?\d|⁻¹|²|³)$", "", part) for part in re.split(r"[/·* ]", text) if part]
    return len(parts) > 1 and all(_UNIT.fullmatch(part) for part in parts)


def unit_in(title: str) -> str:
    """The unit that a header names, as in "T (°C)", "T [°C]" or "T / °C"; empty if it names none."""
    found = _TITLE.fullmatch(title) if len(title) <= _LONGEST else None
    unit = "" if found is None else (found[1] or found[2] or "")
    return unit if is_unit(unit) else ""


@dataclass(frozen=True)
class Convention:
    """How the numbers of a column are written.

    Attributes
    ----------
    readings : decimal signs with which all of them are numbers.
    comma, point : positions of the first numbers that only a decimal comma, or only a decimal point, explains.
    open : position of the first number that both explain, with different values.
    """

    readings: frozenset[Decimal]
    comma: int | None
    point: int | None
    open: int | None


def convention(numbers: list[Written | None]) -> Convention:
    """The decimal signs that explain all numbers of a column; None is a blank cell."""
    first: dict[Decimal, int] = {}
    open_one = None
    for k, number in enumerate(numbers):
        if number is None or number.is_whole:
            continue
        if number.readings == BOTH:
            if open_one is None and number.value(".") != number.value(","):
                open_one = k
        else:
            first.setdefault(next(iter(number.readings)), k)
    readings = BOTH & frozenset(first) if first else BOTH
    return Convention(readings if len(first) < 2 else frozenset(), first.get(","), first.get("."), open_one)
