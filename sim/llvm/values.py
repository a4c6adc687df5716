"""Values of compiled code: numbers, records, arrays and tuples of them.

A number is a Python integer if it is known at compile time. Otherwise it is an LLVM value of 64
bits, or of one bit if it results from a comparison. Records and arrays are those of NumPy: an
address, and the layout of the memory there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

from ...base.arrays import Dtype

I1, I8, I64, POINTER = ir.IntType(1), ir.IntType(8), ir.IntType(64), ir.PointerType()
WORD = 8                    # bytes of a number or an address

Number: TypeAlias = Any     # a Python integer or an LLVM value, which has no type annotations
Value: TypeAlias = Any      # a Number, Record, Array or tuple, or a Python object: a function, …
Kind: TypeAlias = Any       # the compile-time type of a value; hashable


@dataclass(frozen=True)
class Record:
    """A record in memory or, without an address, the kind of one."""

    dtype: Dtype
    pointer: ir.Value | None = None


@dataclass(frozen=True)
class Array:
    """Consecutive elements in row-major order. Lengths that are known are integers."""

    dtype: Dtype
    shape: tuple[Number | None, ...]
    pointer: ir.Value | None = None


NUMBER = "number"       # the kind of numbers, whatever they are


def kind_of(value: Value) -> Kind:
    match value:
        case Record(dtype):
            return Record(dtype)
        case Array(dtype, shape):
            return Array(dtype, tuple(each if isinstance(each, int) else None for each in shape))
        case tuple():
            return _like(value, map(kind_of, value))
        case int() | ir.Value():
            return NUMBER
    raise TypeError(f"{value!r} cannot be kept in a variable")


def types_of(kind: Kind) -> list[ir.Type]:
    """The LLVM types of the words of a value of this kind."""
    match kind:
        case Record():
            return [POINTER]
        case Array(shape=shape):
            return [POINTER, *(I64 for each in shape if each is None)]
        case tuple():
            return [each for part in kind for each in types_of(part)]
    return [I64]


def words_of(builder: ir.IRBuilder, value: Value) -> list[ir.Value]:
    """The words of a value, with these types."""
    match value:
        case Record(pointer=pointer):
            return [pointer]
        case Array(shape=shape, pointer=pointer):
            return [pointer, *(each for each in shape if not isinstance(each, int))]
        case tuple():
            return [each for part in value for each in words_of(builder, part)]
    return [word(builder, value)]


def from_words(kind: Kind, words: Iterator[ir.Value]) -> Value:
    """The value of this kind with these words."""
    match kind:
        case Record(dtype):
            return Record(dtype, next(words))
        case Array(dtype, shape):
            pointer = next(words)
            return Array(dtype, tuple(next(words) if each is None else each for each in shape),
                         pointer)
        case tuple():
            return _like(kind, (from_words(each, words) for each in kind))
    return next(words)


def _like(model: tuple[object, ...], parts: Iterable[object]) -> tuple[object, ...]:
    """A tuple of the same type, which may be a NamedTuple."""
    return model._make(parts) if hasattr(model, "_make") else tuple(parts)


def space(builder: ir.IRBuilder, size: int) -> ir.Value:
    """The address of some bytes on the function's stack.

    They are allocated at the start of the first block: LLVM promotes only those to registers, and
    after an inlined call the current block would be another one.
    """
    with builder.goto_entry_block():
        builder.position_at_start(builder.block)
        place = builder.alloca(ir.ArrayType(I8, size))
        place.align, place.type = WORD, POINTER     # some versions of llvmlite keep the array type
        return place


def word(builder: ir.IRBuilder, number: Number) -> ir.Value:
    """A number as 64 bits."""
    if isinstance(number, int):
        return I64((number + (1 << 63)) % (1 << 64) - (1 << 63))
    return builder.zext(number, I64) if number.type == I1 else number


def truth(builder: ir.IRBuilder, number: Number) -> ir.Value:
    """Whether a number is nonzero, as one bit."""
    if isinstance(number, int):
        return I1(int(number != 0))
    return number if number.type == I1 else builder.icmp_signed("!=", number, I64(0))


def field(builder: ir.IRBuilder, record: Record, name: str) -> Value:
    """A field of a record: a number, or a record or an array inside it."""
    place = _place(builder, record, name)
    if place.dtype.subdtype is not None:
        dtype, shape = place.dtype.subdtype
        return Array(dtype, shape, place.pointer)
    return load(builder, place)


def set_field(builder: ir.IRBuilder, record: Record, name: str, number: Number) -> None:
    store(builder, _place(builder, record, name), number)


def _place(builder: ir.IRBuilder, record: Record, name: str) -> Record:
    fields: Mapping[str, Value] = record.dtype.fields or {}
    if name not in fields:
        raise TypeError(f"a record has no {name!r}, but {', '.join(fields)}")
    dtype, offset, *_ = fields[name]
    return Record(dtype, builder.gep(record.pointer, [I64(offset)], inbounds=True,
                                     source_etype=I8))


def element(builder: ir.IRBuilder, array: Array, *indices: Number) -> Array | Record:
    """The address of an element, or of a row if there are fewer indices than axes."""
    place: Number = indices[0]
    for index, length in zip(indices[1:], array.shape[1:], strict=False):
        place = builder.add(builder.mul(word(builder, place), word(builder, length)),
                            word(builder, index))
    rest = array.shape[len(indices):]
    for length in rest:
        place = builder.mul(word(builder, place), word(builder, length))
    pointer = builder.gep(array.pointer, [word(builder, place)], inbounds=True,
                          source_etype=ir.ArrayType(I8, array.dtype.itemsize))
    return Array(array.dtype, rest, pointer) if rest else Record(array.dtype, pointer)


def load(builder: ir.IRBuilder, place: Record) -> Value:
    """The value at an address: a record itself, or a number as 64 bits."""
    if place.dtype.fields:
        return place
    kind = ir.IntType(8 * place.dtype.itemsize)
    found = builder.load(place.pointer, align=place.dtype.itemsize, typ=kind)
    if kind == I64:
        return found
    return builder.sext(found, I64) if place.dtype.kind == "i" else builder.zext(found, I64)


def store(builder: ir.IRBuilder, place: Record, number: Number) -> None:
    if place.dtype.kind not in "iu":
        raise TypeError(f"only numbers can be written, not {place.dtype}")
    value, kind = word(builder, number), ir.IntType(8 * place.dtype.itemsize)
    if kind != I64:
        value = builder.trunc(value, kind)
    builder.store(value, place.pointer, align=place.dtype.itemsize)
