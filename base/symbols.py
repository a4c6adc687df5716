"""Names that an object file defines, and those that it needs from elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = b"\x7fELF\x02\x01"          # of 64 bits, the least significant byte first
SYMBOLS = 2                         # the type of a section
GLOBAL, WEAK = 1, 2                 # bindings


def names_of(code: bytes) -> tuple[set[str], set[str]]:
    """What an object file defines for others, and what it needs. Other formats than ELF of 64 bits,
    which hosts here have, say nothing."""
    defined: set[str] = set()
    needed: set[str] = set()
    if code[:len(MAGIC)] == MAGIC:
        for name, binding, section in _symbols(code):
            if section and binding in (GLOBAL, WEAK):
                defined.add(name)
            elif not section and binding == GLOBAL and name:
                needed.add(name)
    return defined, needed


def _symbols(code: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, binding and number of the section of each symbol; no section has what is missing."""
    start, = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + place * size)
                for place in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == SYMBOLS:
            texts = sections[link][4]
            for place in range(offset, offset + length, 24):
                name, info, _, section = struct.unpack_from("<IBBH", code, place)
                end = code.index(b"\0", texts + name)
                yield code[texts + name:end].decode(), info >> 4, section
