"""Whether a file is a FlatBuffer of TFLite's schema, before anything in it is believed.

The rules are those of the FlatBuffers library's own verifier: offsets, tables, vectors and strings
lie inside the file where their alignment allows, and strings end with a zero. Which fields a table
has is learned from the classes that the schema's compiler generated: a recorder takes the place of
a table and notes how each accessor reads it. The schema has no table inside itself, so that depth
needs no limit. What several tables share is looked at once; vectors that overlap are paid for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import field
from functools import cache
from typing import Any, TypeAlias

import tflite

from ....base.classes.dataclass import dataclass
from ...graph.types import GraphError

OFFSET = 4                      # bytes of an offset, and of a vector's length
UNIONS = {"BuiltinOptions": "BuiltinOptions", "BuiltinOptions2": "BuiltinOptions2",
          "Details": "QuantizationDetails", "ArraySegments": "SparseIndexVector",
          "ArrayIndices": "SparseIndexVector"}      # by accessor: what may be behind it
NO_FIELDS = ("Length", "IsNone", "AsNumpy", "Init")

Table: TypeAlias = Any      # of FlatBuffers, which has no types


@dataclass(frozen=True)
class Field:
    """A field of a table: where the vtable has it, and what it is."""

    name: str
    slot: int
    width: int = 0              # of a number, or of each in a vector; 0: offsets
    is_vector: bool = False
    is_text: bool = False
    table: Table = None           # the class of what is there
    union: str = ""             # the schema's name of the choice, whose number is a slot before


class _Recorder:
    """Notes what an accessor does, in the place of the table that it would read. Its names are
    those of `flatbuffers.table.Table`."""

    Bytes = b""
    Pos = 0

    def __init__(self) -> None:
        self.widths: dict[int, int] = {}        # of numbers, by slot
        self.slot = 0
        self.is_vector = self.is_text = self.is_union = False

    def Offset(self, slot: int) -> int:      # noqa: N802
        self.slot = slot
        self.widths[slot] = 0
        return 1

    def Get(self, flags: Table, place: int) -> int:      # noqa: N802
        self.widths[self.slot] = flags.bytewidth
        return 0

    def Vector(self, place: int) -> int:      # noqa: N802
        self.is_vector = True
        return 0

    def String(self, place: int) -> bytes:      # noqa: N802
        self.is_text = True
        return b""

    def Indirect(self, place: int) -> int:      # noqa: N802
        return 0

    def Union(self, table: Table, place: int) -> None:      # noqa: N802
        self.is_union = True


@cache
def fields_of(kind: Table) -> tuple[Field, ...]:
    """The fields of a table, from the class that the schema's compiler generated."""
    found = []
    for name, accessor in vars(kind).items():
        code = getattr(accessor, "__code__", None)
        if code is None or name.startswith("_") or name.endswith(NO_FIELDS):
            continue
        reader, recorder = kind(), _Recorder()
        reader._tab = recorder
        result = accessor(reader, *[0] * (code.co_argcount - 1))
        if recorder.is_union:
            found.append(Field(name, recorder.slot, union=UNIONS[name]))
        else:
            table = type(result) if hasattr(result, "Init") else None
            found += [Field(name, slot, width, recorder.is_vector, recorder.is_text, table)
                      for slot, width in recorder.widths.items()]
    return tuple(found)


@cache
def choices_of(union: str) -> dict[int, Table]:
    """The classes of tables that a union may be, by number."""
    return {number: getattr(tflite, name) for name, number in vars(getattr(tflite, union)).items()
            if isinstance(number, int) and number and hasattr(tflite, name)}


def verify_flatbuffer(data: bytes) -> None:
    """Refuse a file that is no FlatBuffer of TFLite's schema."""
    verifier = _Verifier(data, len(data))
    for kind, place in verifier.tables(tflite.Model, verifier.pointer(0, "the root")):
        verifier.waiting.extend(verifier.verify_table(kind, place))


@dataclass
class _Verifier:
    data: bytes
    left: int                   # elements of vectors that may still be read
    seen: set[tuple[Table, int]] = field(default_factory=set)
    waiting: list[tuple[Table, int]] = field(default_factory=list)

    def tables(self, kind: Table, place: int) -> Iterator[tuple[Table, int]]:
        """A table and all that are found behind it, each once."""
        self.waiting.append((kind, place))
        while self.waiting:
            found = self.waiting.pop()
            if found not in self.seen:
                self.seen.add(found)
                yield found

    def check(self, good: bool, what: str) -> None:
        if not good:
            raise GraphError(f"it is no valid FlatBuffer: {what}")

    def number(self, place: int, width: int, what: str, signed: bool = False) -> int:
        """A number of the file at a place that suits its width."""
        self.check(place % width == 0 and 0 <= place <= len(self.data) - width,
                   f"{what} at byte {place} is outside of {len(self.data)} bytes or not aligned")
        return int.from_bytes(self.data[place:place + width], "little", signed=signed)

    def pointer(self, place: int, what: str) -> int:
        """Where an offset points to."""
        offset = self.number(place, OFFSET, what)
        self.check(0 < offset < len(self.data) - place, f"the offset {offset} of {what} at byte "
                                                        f"{place} leads out of the file")
        return place + offset

    def verify_table(self, kind: Table, place: int) -> Iterator[tuple[Table, int]]:
        """Verify a table but for the tables that it points to, which are the result."""
        title = kind.__name__
        vtable = place - self.number(place, OFFSET, title, signed=True)
        length = self.number(vtable, 2, f"the vtable of {title}")
        self.check(length % 2 == 0 and vtable + length <= len(self.data),
                   f"the vtable of {title} at byte {vtable} has {length} bytes")

        def slot(number: int) -> int:
            """Where a field is, in bytes from the table; 0 if it is not there."""
            return self.number(vtable + number, 2, "a vtable") if number < length else 0

        for each in fields_of(kind):
            offset, what = slot(each.slot), f"{title}.{each.name}"
            if offset == 0:
                continue
            if each.width and not each.is_vector:
                self.number(place + offset, each.width, what)
            elif each.union:
                target, before = self.pointer(place + offset, what), slot(each.slot - 2)
                chosen = self.number(place + before, 1, what) if before else 0
                if chosen in choices_of(each.union):
                    yield choices_of(each.union)[chosen], target
            elif each.is_vector:
                yield from self.vector(each, self.pointer(place + offset, what), what)
            elif each.is_text:
                self.text(self.pointer(place + offset, what), what)
            else:
                yield each.table, self.pointer(place + offset, what)

    def count(self, place: int, width: int, what: str) -> int:
        """The length of a vector that is whole."""
        count = self.number(place, OFFSET, what)
        self.check(place + OFFSET + count * width <= len(self.data),
                   f"{what} at byte {place} has {count} elements in {len(self.data)} bytes")
        return count

    def text(self, place: int, what: str) -> None:
        end = place + OFFSET + self.count(place, 1, what)
        self.check(self.data[end:end + 1] == b"\0", f"{what} at byte {place} does not end")

    def vector(self, each: Field, place: int, what: str) -> Iterator[tuple[Table, int]]:
        """Verify a vector but for the tables in it, which are the result."""
        count = self.count(place, each.width or OFFSET, what)
        if each.width or (each, place) in self.seen:
            return
        self.seen.add((each, place))
        self.left -= count
        self.check(self.left >= 0, "its vectors overlap so often that they are longer than the "
                                   "whole file")
        offsets = struct.unpack_from(f"<{count}I", self.data, place + OFFSET)
        for number, offset in enumerate(offsets):
            target = place + OFFSET * (number + 1) + offset
            if each.is_text:
                self.text(target, what)
            else:
                yield each.table, target
