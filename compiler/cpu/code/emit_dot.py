"""Sums of four products of bytes at a time, for each lane of a vector.

    for lane:
        for t in 4:
            s[lane] = s[lane] + int32(x[lane, t]) × int32(y[t])

Some processors have an instruction for it; others multiply and add vectors. `llvm.vector.partial.
reduce.add` does not say which lane gets which product, so it is of no use here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import CompileError
from ...expression.expression import Axis, Binary, Cast, Expression
from ...nest.nest import Access, Assign, Loop, Statement
from ...nest.places import place_of
from .emit_values import Values
from .writer import SIZES, Value

DOT = "dot"
TERMS = 4
BYTES = ("int8", "uint8")
REGISTER = 4            # lanes of the instruction


@dataclass(frozen=True)
class Dot:
    """A marked loop, taken apart."""

    lanes: Axis
    terms: Axis
    target: Access
    factors: tuple[Access, Access]


def dot_of(statement: Statement) -> Dot:
    """What loops that are marked as dot products compute."""
    match statement:
        case Loop(axis=lanes, body=Loop(axis=terms, body=Assign(target=target, value=Binary(
                operator="+", left=before, right=Binary(
                    operator="*", left=Cast(dtype="int32", value=Access() as one),
                    right=Cast(dtype="int32", value=Access() as other)))))) if (
                before == target and terms.extent == TERMS and target.dtype == "int32"
                and one.dtype == other.dtype and one.dtype in BYTES):
            return Dot(lanes, terms, target, (one, other))
    raise CompileError(f"{DOT} is sums of {TERMS} products of two of {' or '.join(BYTES)} in int32 "
                       f"for each lane, all guarded by nothing, not {type(statement).__name__}")


def add_dot(values: Values, statement: Statement) -> None:
    """Add the products of all lanes to their sums."""
    dot, writer = dot_of(statement), values.writer
    lanes = dot.lanes.extent
    one, other = (_bytes(values, dot, each) for each in dot.factors)
    values.fixed[dot.lanes] = 0
    pointer = values.address(dot.target)
    del values.fixed[dot.lanes]
    if _stride(values, dot.target, dot.lanes) != 1:
        raise CompileError(f"{DOT}: the sums {dot.target} of lanes are not side by side")
    kind = writer.type("int32", lanes)
    sums = writer.value(f"load {kind}, ptr {pointer}, align 4", "int32", lanes)
    has_instruction = "+dotprod" in values.target.features and (
        values.target.triple.startswith("aarch64") and lanes % REGISTER == 0)
    added = (_instructions if has_instruction else _products)(values, sums, one, other)
    writer.add(f"store {writer.operand(added)}, ptr {pointer}, align 4")


def _stride(values: Values, node: Expression, axis: Axis) -> int:
    assert isinstance(node, Access)
    terms = place_of(node, values.fixed).terms
    return terms.get(axis, 0)


def _bytes(values: Values, dot: Dot, node: Access) -> Value:
    """Four bytes for each lane: those of neighbours, or the same four for all."""
    writer, lanes = values.writer, dot.lanes.extent
    stride = _stride(values, node, dot.lanes)
    if stride not in (0, TERMS) or _stride(values, node, dot.terms) != 1:
        raise CompileError(f"{DOT}: the {TERMS} bytes {node} of a lane are not side by side, or "
                           f"lanes are not")
    values.fixed[dot.lanes] = values.fixed[dot.terms] = 0
    pointer = values.address(node)
    del values.fixed[dot.lanes], values.fixed[dot.terms]
    if stride:
        return values.load(pointer, node.dtype, lanes * TERMS)
    word = writer.value(f"load i32, ptr {pointer}, align {SIZES[node.dtype]}", "int32")
    text = writer.name(f"bitcast {writer.operand(writer.broadcast(word, lanes))} to "
                       f"{writer.type(node.dtype, lanes * TERMS)}")
    return Value(text, node.dtype, lanes * TERMS)


def _instructions(values: Values, sums: Value, one: Value, other: Value) -> Value:
    writer = values.writer
    name = f"llvm.aarch64.neon.{'u' if one.dtype == 'uint8' else 's'}dot.v4i32.v16i8"
    parts = []
    for first in range(0, sums.lanes, REGISTER):
        arguments = [_part(values, sums, first, REGISTER),
                     *(_part(values, each, first * TERMS, REGISTER * TERMS)
                       for each in (one, other))]
        parts.append(Value(writer.call(name, "<4 x i32>", *map(writer.operand, arguments)),
                           "int32", REGISTER))
    return _concatenate(values, parts)


def _part(values: Values, value: Value, first: int, count: int) -> Value:
    if value.lanes == count:
        return value
    return _shuffle(values, value, value, range(first, first + count))


def _concatenate(values: Values, parts: list[Value]) -> Value:
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffle(values, one, other, range(one.lanes * 2)) for one, other in pairs]
    return parts[0]


def _shuffle(values: Values, one: Value, other: Value, places: range) -> Value:
    writer = values.writer
    if len(places) == 1 and one is other:
        return writer.lane(one, places[0])
    mask = ", ".join(f"i32 {place}" for place in places)
    return writer.value(f"shufflevector {writer.operand(one)}, {writer.operand(other)}, "
                        f"<{len(places)} x i32> <{mask}>", one.dtype, len(places))


def _products(values: Values, sums: Value, one: Value, other: Value) -> Value:
    """Products of neighbours are added, and these sums of neighbours again."""
    writer = values.writer
    extend = "zext" if one.dtype == "uint8" else "sext"
    kind = writer.type("int32", one.lanes)
    wide = [writer.name(f"{extend} {writer.operand(each)} to {kind}")
            for each in (one, other)]
    value = writer.value(f"mul {kind} {wide[0]}, {wide[1]}", "int32", one.lanes)
    while value.lanes > sums.lanes:
        halves = [_shuffle(values, value, value, range(first, value.lanes, 2)) for first in (0, 1)]
        value = writer.value(f"add {writer.operand(halves[0])}, {halves[1].text}", "int32",
                             halves[0].lanes)
    return writer.value(f"add {writer.operand(sums)}, {value.text}", "int32", sums.lanes)
