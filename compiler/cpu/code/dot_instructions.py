"""Instructions that add products of bytes, or of bytes and 16-bit numbers, to 32-bit sums.

| processor | instruction | factors |
|---|---|---|
| aarch64 with dot products | `sdot`, `udot` | four bytes, both signed or both unsigned |
| x86-64 with VNNI | `vpdpbusd` | four bytes, unsigned and signed |
| other x86-64 | `vpmaddubsw`, `vpmaddwd` | the same, if the sum of two products has 16 bits |
| x86-64 | `vpmaddwd` | two of 16 bits |
"""

from __future__ import annotations

from collections.abc import Callable

from ....base.processor import Target
from .writer import Value, Writer

REGISTERS = (16, 8, 4)          # lanes of 32 bits
PRODUCTS_OF_WORDS = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}
PRODUCTS_OF_BYTES = {16: "avx512.pmaddubs.w.512", 8: "avx2.pmadd.ub.sw",
                     4: "ssse3.pmadd.ub.sw.128"}
Step = Callable[[Writer, Value, Value, Value], Value]


def add_by_instructions(writer: Writer, target: Target, sums: Value, one: Value, other: Value, *,
                        small: bool) -> Value | None:
    """Sums with the products added; None, if the processor has no instruction for these factors.
    `small`: 16 bits hold the sum of any two neighbouring products."""
    step = _step(target, one, other, small)
    widest = target.vector_bytes // 4
    lanes = next((each for each in REGISTERS if each <= widest and sums.lanes % each == 0), None)
    if step is None or lanes is None:
        return None
    if one.dtype == "int8" != other.dtype:      # the signed bytes come second
        one, other = other, one
    terms = one.lanes // sums.lanes
    return _concatenate(writer, [
        step(writer, _part(writer, sums, first, lanes),
             *(_part(writer, each, first * terms, lanes * terms) for each in (one, other)))
        for first in range(0, sums.lanes, lanes)])


def _step(target: Target, one: Value, other: Value, small: bool) -> Step | None:
    kinds = {one.dtype, other.dtype}
    if target.triple.startswith("aarch64"):
        alike = len(kinds) == 1 and "+dotprod" in target.features
        return _add_dot if alike and "int16" not in kinds else None
    if not target.triple.startswith("x86_64"):
        return None
    if "int16" in kinds:
        return _add_words
    if kinds != {"int8", "uint8"}:
        return None
    return _add_vnni if target.adds_byte_products else _add_bytes if small else None


def _add_dot(writer: Writer, sums: Value, one: Value, other: Value) -> Value:
    name = f"llvm.aarch64.neon.{'u' if one.dtype == 'uint8' else 's'}dot.v4i32.v16i8"
    return Value(writer.call(name, "<4 x i32>", *map(writer.operand, (sums, one, other))),
                 "int32", 4)


def _add_vnni(writer: Writer, sums: Value, one: Value, other: Value) -> Value:
    kind = writer.type("int32", sums.lanes)
    words = [Value(writer.name(f"bitcast {writer.operand(each)} to {kind}"), "int32", sums.lanes)
             for each in (one, other)]
    return Value(writer.call(f"llvm.x86.avx512.vpdpbusd.{sums.lanes * 32}", kind,
                             *map(writer.operand, (sums, *words))), "int32", sums.lanes)


def _add_bytes(writer: Writer, sums: Value, one: Value, other: Value) -> Value:
    pairs = Value(writer.call(f"llvm.x86.{PRODUCTS_OF_BYTES[sums.lanes]}",
                              writer.type("int16", sums.lanes * 2),
                              *map(writer.operand, (one, other))), "int16", sums.lanes * 2)
    return _add_words(writer, sums, pairs, writer.constant(1, "int16", sums.lanes * 2))


def _add_words(writer: Writer, sums: Value, one: Value, other: Value) -> Value:
    kind = writer.type("int16", sums.lanes * 2)
    words = [each if each.dtype == "int16" else
             writer.value(f"sext {writer.operand(each)} to {kind}", "int16", each.lanes)
             for each in (one, other)]
    text = writer.call(f"llvm.x86.{PRODUCTS_OF_WORDS[sums.lanes]}",
                       writer.type("int32", sums.lanes), *map(writer.operand, words))
    return writer.value(f"add {writer.operand(sums)}, {text}", "int32", sums.lanes)


def _part(writer: Writer, value: Value, first: int, count: int) -> Value:
    return value if value.lanes == count else shuffle(writer, value, value,
                                                      range(first, first + count))


def _concatenate(writer: Writer, parts: list[Value]) -> Value:
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [shuffle(writer, one, other, range(one.lanes * 2)) for one, other in pairs]
    return parts[0]


def shuffle(writer: Writer, one: Value, other: Value, places: range) -> Value:
    """Lanes of two vectors, or of one that is both."""
    if len(places) == 1 and one is other:
        return writer.lane(one, places[0])
    mask = ", ".join(f"i32 {place}" for place in places)
    return writer.value(f"shufflevector {writer.operand(one)}, {writer.operand(other)}, "
                        f"<{len(places)} x i32> <{mask}>", one.dtype, len(places))
