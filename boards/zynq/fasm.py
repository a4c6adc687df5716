"""Reads FASM, the text in which place and route says what is switched on in an FPGA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.checked_values import quote
from ...base.errors import MicrotronError

LINE = re.compile(r"""\s* (?P<name>[A-Za-z_][\w.]*)
                      (?: \[ (?P<high>\d{1,6}) (?: : (?P<low>\d{1,6}) )? \] )?
                      (?: \s*=\s* (?: (?P<bits>\d{1,6}) \s*'\s* (?P<base>[bhdo]) )?
                                  \s* (?P<digits>[0-9A-Fa-f_]+) )?
                      \s* (?: \{ .* \} )? \s* """, re.VERBOSE)
BASES = {"b": 2, "o": 8, "d": 10, "h": 16, None: 10}


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing that is switched on: of a tile, and which bit of it where it has several."""

    tile: str
    name: str
    bit: int
    line: int               # of the file

    def __str__(self) -> str:
        return f"{self.tile}.{self.name}[{self.bit}]" if self.bit else f"{self.tile}.{self.name}"


def parse_fasm(text: str, file: str) -> Iterator[Feature]:
    """Every single bit that a FASM file switches on."""
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition("#")[0]
        if not said.strip() or said.lstrip().startswith("{"):       # a comment or an annotation
            continue
        match = LINE.fullmatch(said)
        tile, _, name = match["name"].partition(".") if match else ("", "", "")
        if match is None or not name:
            raise MicrotronError(f"{file}:{number}: {quote(said.strip())} is no line of FASM")
        for bit in _bits(match, f"{file}:{number}"):
            yield Feature(tile, name, bit, number)


def _bits(match: re.Match[str], place: str) -> Iterator[int]:
    high = int(match["high"] or 0)
    low = int(match["low"]) if match["low"] is not None else high
    digits, base = match["digits"] or "1", BASES[match["base"]]
    try:
        value = int(digits.replace("_", "") or "x", base)
    except ValueError:
        raise MicrotronError(f"{place}: {quote(digits)} is no number of base {base}") from None
    if value.bit_length() > high - low + 1:
        raise MicrotronError(f"{place}: a value of {value.bit_length()} bits for {high - low + 1}")
    return (low + number for number, digit in enumerate(reversed(f"{value:b}")) if digit == "1")
