"""The container of a program image: a header, a table of named sections, one checksum.

It knows nothing of programs. docs/program.md is its specification: the same sections always
give the same bytes, and a reader refuses every file that is laid out in any other way.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.classes.dataclass import dataclass
from ...base.errors import ImageError
from ..instructions import ISA_VERSION

Octets = npt.NDArray[np.uint8]

MAGIC = b"\x8fMTIMG\r\n"            # not text, and broken by whatever converts line ends
FORMAT_VERSION = 1
HEADER = struct.Struct("<8sHHIQQ32s")
NAME_BYTES = 24
ENTRY = struct.Struct(f"<{NAME_BYTES}sIIQQ")
CHECKSUM = slice(HEADER.size - hashlib.sha256().digest_size, HEADER.size)
REQUIRED = 1                        # flag: a reader must know this section to use the image
PAGE = 4096                         # alignment of what is mapped in place
ALIGNMENT_LIMIT = 1 << 16           # the largest page of the machines we know
SECTIONS_LIMIT = 64
SECTION_NAME = re.compile(rb"[a-z][a-z0-9._-]{0,23}")


class Header(NamedTuple):
    """The first bytes of an image, in order."""

    magic: bytes
    format_version: int
    isa_version: int
    sections: int
    size: int
    reserved: int
    checksum: bytes


@dataclass(frozen=True, eq=False)
class Section:
    """Named bytes. `alignment` is that of their offset in the file."""

    name: str
    content: Octets
    alignment: int = PAGE
    required: bool = True


def pack(sections: Sequence[Section]) -> bytes:
    """The image that holds these sections, in order."""
    end = HEADER.size + ENTRY.size * len(sections)
    table: list[bytes] = []
    body: list[bytes | memoryview] = []
    for section in sections:
        offset = _align_up(end, section.alignment)
        size = len(section.content)
        table.append(ENTRY.pack(section.name.encode("ascii"), REQUIRED * section.required,
                                section.alignment, offset, size))
        body += [bytes(offset - end), np.ascontiguousarray(section.content).data]
        end = offset + size
    header = Header(MAGIC, FORMAT_VERSION, ISA_VERSION, len(sections), end, 0, b"")
    signed = [HEADER.pack(*header)[:CHECKSUM.start], *table, *body]
    digest = hashlib.sha256()
    for piece in signed:
        digest.update(piece)
    return b"".join([signed[0], digest.digest(), *signed[1:]])


def unpack(data: Octets) -> list[Section]:
    """The sections of an image as views of `data`. Raises ImageError for anything else."""
    header = check_header(data[:HEADER.size].tobytes(), len(data))
    digest = hashlib.sha256(data[:CHECKSUM.start].data)
    digest.update(data[CHECKSUM.stop:].data)
    if digest.digest() != header.checksum:
        raise ImageError(f"is damaged: its checksum is {header.checksum.hex()[:16]}…, but its "
                         f"content gives {digest.hexdigest()[:16]}…")
    if header.reserved:
        raise ImageError(f"the reserved field of the header is {header.reserved}, but must be 0")
    sections = list(_sections(data, header))
    names = [section.name for section in sections]
    for name in names:
        if names.count(name) > 1:
            raise ImageError(f"section {name} is there twice")
    return sections


def check_header(start: bytes, size: int) -> Header:
    """The header in the first bytes of a file of `size` bytes, if it belongs there."""
    if not start:
        raise ImageError(f"is empty, but a program image has {HEADER.size} bytes or more")
    if not MAGIC.startswith(start[:len(MAGIC)]):
        raise ImageError(f"is not a program image: it starts with "
                         f"{start[:len(MAGIC)].hex(' ')}, but must with {MAGIC.hex(' ')}")
    if len(start) < HEADER.size:
        raise ImageError(f"is truncated: it has {size} bytes, but its header takes {HEADER.size}")
    header = Header(*HEADER.unpack(start))
    if header.format_version != FORMAT_VERSION:
        raise ImageError(f"has format version {header.format_version}, but this program reads "
                         f"version {FORMAT_VERSION}")
    if header.isa_version != ISA_VERSION:
        raise ImageError(f"holds instructions of ISA version {header.isa_version}, but this "
                         f"program reads version {ISA_VERSION}")
    if size < header.size:
        raise ImageError(f"is truncated: it has {size} bytes, but its header says {header.size}")
    if size > header.size:
        raise ImageError(f"goes on after its end: it has {size} bytes, but its header says "
                         f"{header.size}")
    return header


def _sections(data: Octets, header: Header) -> Iterator[Section]:
    end = HEADER.size + ENTRY.size * header.sections
    if header.sections > SECTIONS_LIMIT or end > header.size:
        raise ImageError(f"the header says {header.sections} sections, but {header.size} bytes "
                         f"have room for {_room(header.size)} (never more than {SECTIONS_LIMIT})")
    for index, entry in enumerate(ENTRY.iter_unpack(data[HEADER.size:end].tobytes())):
        padded, flags, alignment, offset, size = entry
        name = padded.rstrip(b"\0")
        if not SECTION_NAME.fullmatch(name):
            raise ImageError(f"section {index} has the name {padded!r}, but must have 1 to 24 of "
                             f"a-z, 0-9, '.', '_' and '-', a letter first, then zero bytes")
        place = f"section {name.decode()}"
        if flags & ~REQUIRED:
            raise ImageError(f"{place}: flags is {flags:#x}, but only {REQUIRED:#x} has a meaning")
        if not 1 <= alignment <= ALIGNMENT_LIMIT or alignment & alignment - 1:
            raise ImageError(f"{place}: alignment is {alignment}, but must be a power of two "
                             f"from 1 to {ALIGNMENT_LIMIT}")
        if offset != _align_up(end, alignment):
            raise ImageError(f"{place}: offset is {offset}, but must be "
                             f"{_align_up(end, alignment)}, where the one before it ends")
        if offset + size > header.size:
            raise ImageError(f"{place}: ends at byte {offset + size}, but the image has "
                             f"{header.size}")
        if data[end:offset].any():
            raise ImageError(f"{place}: the bytes before it, from {end}, must be zero")
        end = offset + size
        yield Section(name.decode(), data[offset:end], alignment, flags == REQUIRED)
    if end != header.size:
        raise ImageError(f"the sections end at byte {end}, but the image has {header.size}")


def _align_up(offset: int, alignment: int) -> int:
    return offset + -offset % alignment


def _room(size: int) -> int:
    return min((size - HEADER.size) // ENTRY.size, SECTIONS_LIMIT)
