"""Typed records with a fixed binary form: the mechanism under instructions and micro-ops.

A record is a frozen dataclass whose fields are declared with `operand`. Everything that depends
on the encoding (NumPy dtype, C struct, hardware layout, assembly, manual) asks `fields_of`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from enum import IntEnum, IntFlag
from functools import cached_property
from struct import Struct
from types import SimpleNamespace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array
from ..base.checked_values import integer, quote
from ..base.classes.dataclass import dataclass
from ..base.errors import IsaError
from ..base.keywords import Declared


@dataclass(frozen=True)
class Scalar:
    """A machine integer: what one element of a field is made of."""

    name: str
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << self.bits - self.signed) - 1

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def code(self) -> str:
        """As the module `struct` calls it."""
        code = {1: "b", 2: "h", 4: "i"}[self.bytes]
        return code if self.signed else code.upper()

    @property
    def numpy(self) -> str:
        return f"<{'i' if self.signed else 'u'}{self.bytes}"


Test: TypeAlias = Callable[[Any], bool]     # of a field's value
Fields: TypeAlias = Any     # an instruction, or many: then each of its fields is a column
# Whether it is broken, by one record or by which of many, and what to say then.
Rule = tuple[bool | npt.NDArray[np.bool_], Callable[[], str]]

u8, u16, u32 = Scalar("u8", 8, False), Scalar("u16", 16, False), Scalar("u32", 32, False)
i8, i16, i32 = Scalar("i8", 8, True), Scalar("i16", 16, True), Scalar("i32", 32, True)


@dataclass(frozen=True)
class Field:
    """One declared field at the byte it ended up at."""

    name: str
    doc: str
    scalar: Scalar
    offset: int
    axes: tuple[str, ...]            # names of the elements of a vector field; empty for a number
    kind: type[IntEnum | IntFlag] | None
    default: Any
    suffix: bool                     # written behind the mnemonic: load.inp
    allowed: tuple[IntEnum, ...]     # the values of `kind` that make sense here
    skip: int                        # bytes left free in front of it

    @property
    def count(self) -> int:
        return len(self.axes) or 1

    @property
    def bytes(self) -> int:
        return self.scalar.bytes * self.count

    @property
    def is_flags(self) -> bool:
        return self.kind is not None and issubclass(self.kind, IntFlag)

    @cached_property
    def numbers(self) -> list[int]:
        """The values that `kind` names, those that make sense here."""
        return [int(each) for each in self.allowed or self.kind or ()]

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING


def operand(scalar: Scalar, doc: str, *, default: object = 0, axes: tuple[str, ...] = (),
            kind: type[IntEnum | IntFlag] | None = None, suffix: bool = False,
            allowed: tuple[IntEnum, ...] = (), skip: int = 0) -> Declared:
    """Declare a field. `axes` makes it a vector, `kind` gives its values names, `skip` leaves bytes
    in front of it free: fields that two records share may then lie at the same place."""
    metadata = {"scalar": scalar, "doc": doc, "axes": axes, "kind": kind, "suffix": suffix,
                "allowed": allowed, "skip": skip}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A fixed number of bytes with named, naturally aligned, little-endian fields."""

    size: ClassVar[int]
    lead: ClassVar[int] = 0          # bytes before the first declared field (the opcode)

    def __post_init__(self) -> None:
        for field, fits in _tests_of(type(self)):
            if not fits(self.__dict__[field.name]):
                object.__setattr__(self, field.name, _check_value(self, field))
        for broken, reason in self.rules(self):
            if broken:
                raise IsaError(f"{self.mnemonic()}: {reason()}")

    @classmethod
    def rules(cls, fields: Fields) -> Iterator[Rule]:
        """What must not be, beyond the range of each field.

        `fields` is one record, or has a column of many for each field (a tuple of columns for a
        vector), so that the same rule serves a single record and a whole stream.
        """
        yield from ()

    @classmethod
    def mnemonic(cls) -> str:
        return cls.__name__.lower()

    @classmethod
    def dtype(cls) -> np.dtype[np.void]:
        if cls not in _dtypes:
            _dtypes[cls] = _dtype(cls)
        return _dtypes[cls]

    def encode(self) -> bytes:
        values: list[int] = []
        for field in fields_of(type(self)):
            value = self.__dict__[field.name]
            values += value if field.axes else (value,)
        return _struct_of(type(self)).pack(*values)

    @classmethod
    def of(cls, word: np.void) -> Self:
        """The record held in one element of a structured array of `dtype()`."""
        return cls(**{field.name: word[field.name].tolist() for field in fields_of(cls)})

    @classmethod
    def find_invalid(cls, words: npt.NDArray[np.void]) -> npt.NDArray[np.intp]:
        """Which words of a structured array do not hold a valid record: `of` says why."""
        return np.flatnonzero(_suspicious(cls, words))

    @classmethod
    def of_all(cls, words: npt.NDArray[np.void]) -> list[Self]:
        """The records of an array without invalid words, much faster than one by one."""
        columns = [_values(field, words[field.name]) for field in fields_of(cls)]
        names = [field.name for field in fields_of(cls)]
        records = []
        for row in zip(*columns, strict=True):
            record = object.__new__(cls)
            record.__dict__.update(zip(names, row, strict=True))
            records.append(record)
        return records


def _values(field: Field, column: Array) -> list[object]:
    """A column as the values that records hold: numbers, tuples or members of an enum."""
    values: list[Any] = column.ravel().tolist()
    if field.kind is not None:
        members = {each: field.kind(each) for each in set(values)}
        values = [members[each] for each in values]
    if field.axes:
        return list(zip(*(values[axis::field.count] for axis in range(field.count)), strict=True))
    return values


def _suspicious(record: type[Record], words: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Which words do not hold a valid record."""
    bad = np.zeros(len(words), np.bool_)
    columns: dict[str, Array | tuple[Array, ...]] = {}
    for field in fields_of(record):
        column = words[field.name].astype(np.int64)
        columns[field.name] = tuple(column.T) if field.axes else column
        if field.kind is not None:
            wrong = (column & ~sum(field.numbers) != 0 if field.is_flags else
                     ~np.isin(column, field.numbers))
            bad |= wrong.reshape(len(words), field.count).any(1)
    for broken, _ in record.rules(SimpleNamespace(**columns)):
        bad |= broken
    return bad


_fields: dict[type[Record], tuple[Field, ...]] = {}      # all are derived once per class
_tests: dict[type[Record], list[tuple[Field, Test]]] = {}
_dtypes: dict[type[Record], np.dtype[np.void]] = {}
_structs: dict[type[Record], Struct] = {}


def _tests_of(record: type[Record]) -> list[tuple[Field, Test]]:
    """For each field, whether a value is fine as it is. Almost all are, and a compiler makes very
    many records: `_check_value`, which converts what can be converted and explains the rest, takes
    ten times as long."""
    if record not in _tests:
        _tests[record] = [(field, _test(field)) for field in fields_of(record)]
    return _tests[record]


def _test(field: Field) -> Test:
    low, high, count, kind = field.scalar.low, field.scalar.high, field.count, field.kind
    if field.axes:
        return lambda value: type(value) is tuple and len(value) == count and all(
            [type(each) is int and low <= each <= high for each in value])
    if kind is None:
        return lambda value: type(value) is int and low <= value <= high
    if field.is_flags:
        known = int(sum(kind))
        return lambda value: type(value) is kind and value.value | known == known
    members = field.allowed or tuple(kind)
    return lambda value: type(value) is kind and value in members


def _check_value(record: Record, field: Field) -> object:
    value = getattr(record, field.name)
    place = f"{record.mnemonic()}: {field.name}"
    if not field.axes:
        return _check_scalar(place, field, value)
    if not isinstance(value, tuple | list) or len(value) != field.count:
        raise IsaError(f"{place} is {quote(value)}, but needs {field.count} numbers: "
                       f"{', '.join(field.axes)}")
    return tuple(_check_scalar(f"{place}[{axis}]", field, each)
                 for axis, each in zip(field.axes, value, strict=True))


def _check_scalar(place: str, field: Field, value: object) -> object:
    number = integer(value)
    if number is None:
        raise IsaError(f"{place} is {quote(value)}, but must be an integer")
    value, scalar = number, field.scalar
    if not scalar.low <= value <= scalar.high:
        raise IsaError(f"{place} is {quote(value)}, which does not fit in {scalar.bits} bits "
                       f"({scalar.low} to {scalar.high})")
    if field.kind is None:
        return value
    if field.is_flags:
        known = sum(field.kind)
        if value & ~known:
            raise IsaError(f"{place} is {value:#x}, but only the bits {known:#x} have a meaning")
        return field.kind(value)
    names = field.allowed or tuple(field.kind)
    if value not in tuple(int(each) for each in names):
        raise IsaError(f"{place} is {value}, but must be one of "
                       f"{', '.join(f'{each.name.lower()} ({each.value})' for each in names)}")
    return field.kind(value)


def fields_of(record: type[Record]) -> tuple[Field, ...]:
    """The declared fields with their byte offsets, in order."""
    if record not in _fields:
        _fields[record] = tuple(_fields_with_offsets(record))
    return _fields[record]


def _fields_with_offsets(record: type[Record]) -> Iterator[Field]:
    offset = record.lead
    for each in dataclasses.fields(record):
        scalar: Scalar = each.metadata["scalar"]
        offset += each.metadata["skip"]
        offset += -offset % scalar.bytes          # natural alignment; the gap is reserved
        field = Field(name=each.name, offset=offset, default=each.default, **each.metadata)
        yield field
        offset += field.bytes
    if offset > record.size:
        raise TypeError(f"{record.__name__} takes {offset} bytes, but has {record.size}")


def reserved_bytes(record: type[Record]) -> tuple[int, ...]:
    """Offsets of the bytes that no field uses. They are zero in every valid word."""
    used = set(range(record.lead))
    for field in fields_of(record):
        used.update(range(field.offset, field.offset + field.bytes))
    return tuple(sorted(set(range(record.size)) - used))


def _struct_of(record: type[Record]) -> Struct:
    """The fields as numbers, one after the other; what lies between them is zero."""
    if record not in _structs:
        layout, end = "<", 0
        for field in fields_of(record):
            layout += f"{field.offset - end}x{field.count}{field.scalar.code}"
            end = field.offset + field.bytes
        _structs[record] = Struct(f"{layout}{record.size - end}x")
    return _structs[record]


def _dtype(record: type[Record]) -> np.dtype[np.void]:
    fields = fields_of(record)
    names, formats, offsets = [], [], []
    if record.lead:
        names, formats, offsets = ["opcode"], [f"<u{record.lead}"], [0]
    return np.dtype({
        "names": names + [field.name for field in fields],
        "formats": formats + [(field.scalar.numpy, (field.count,)) if field.axes
                              else field.scalar.numpy for field in fields],
        "offsets": offsets + [field.offset for field in fields],
        "itemsize": record.size,
    })
