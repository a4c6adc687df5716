"""Sums of two or four products of bytes at a time, for each lane of a vector.

    for lane:
        for t in 4:
            s[lane] = s[lane] + int32(x[lane, t]) × int32(y[t])

Some processors have an instruction for it (`dot_instructions`); others multiply and add vectors.
`llvm.vector.partial.reduce.add` does not say which lane gets which product, so it is of no use
here.
"""

from __future__ import annotations

from ....base.classes.dataclass import dataclass
from ...errors import CompileError
from ...expression.expression import Axis, Binary, Cast, Expression
from ...nest.nest import Access, Assign, Loop, Statement
from ...nest.places import place_of
from .dot_instructions import add_by_instructions, shuffle
from .emit_values import Values
from .writer import SIZES, UNSIGNED, Value

DOT = "dot"
SMALL_DOT = "dot of small factors"      # 16 bits hold the sum of any two neighbouring products
DOTS = (DOT, SMALL_DOT)
FACTORS = {4: ("int8", "uint8"), 2: ("int8", "int16")}      # by the number of terms


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
                before == target and target.dtype == "int32"
                and {one.dtype, other.dtype} <= {*FACTORS.get(terms.extent, ())}):
            return Dot(lanes, terms, target, (one, other))
    kinds = " and ".join(f"{count} products of {' or '.join(each)}"
                         for count, each in FACTORS.items())
    raise CompileError(f"{DOT} is sums of {kinds} in int32 for each lane, all guarded by nothing, "
                       f"not {type(statement).__name__}")


def add_dot(values: Values, statement: Statement, intrinsic: str) -> None:
    """Add the products of all lanes to their sums."""
    dot, writer = dot_of(statement), values.writer
    lanes = dot.lanes.extent
    one, other = (_factors(values, dot, each) for each in dot.factors)
    values.fixed[dot.lanes] = 0
    pointer = values.address(dot.target)
    del values.fixed[dot.lanes]
    if _stride(values, dot.target, dot.lanes) != 1:
        raise CompileError(f"{DOT}: the sums {dot.target} of lanes are not side by side")
    kind = writer.type("int32", lanes)
    sums = writer.value(f"load {kind}, ptr {pointer}, align 4", "int32", lanes)
    added = add_by_instructions(writer, values.target, sums, one, other,
                                small=intrinsic == SMALL_DOT)
    if added is None:
        added = _products(values, sums, one, other)
    writer.add(f"store {writer.operand(added)}, ptr {pointer}, align 4")


def _stride(values: Values, node: Expression, axis: Axis) -> int:
    assert isinstance(node, Access)
    terms = place_of(node, values.fixed).terms
    return terms.get(axis, 0)


def _factors(values: Values, dot: Dot, node: Access) -> Value:
    """The factors of each lane: those of neighbours, or the same for all."""
    writer, lanes, count = values.writer, dot.lanes.extent, dot.terms.extent
    stride = _stride(values, node, dot.lanes)
    if stride not in (0, count) or _stride(values, node, dot.terms) != 1:
        raise CompileError(f"{DOT}: the {count} factors {node} of a lane are not side by side, or "
                           f"lanes are not")
    values.fixed[dot.lanes] = values.fixed[dot.terms] = 0
    pointer = values.address(node)
    del values.fixed[dot.lanes], values.fixed[dot.terms]
    if stride:
        return values.load(pointer, node.dtype, lanes * count)
    bits = 8 * SIZES[node.dtype] * count
    word = writer.name(f"load i{bits}, ptr {pointer}, align {SIZES[node.dtype]}")
    first = writer.name(f"insertelement <{lanes} x i{bits}> poison, i{bits} {word}, i32 0")
    all_ = writer.name(f"shufflevector <{lanes} x i{bits}> {first}, <{lanes} x i{bits}> poison, "
                       f"<{lanes} x i32> zeroinitializer")
    return writer.value(f"bitcast <{lanes} x i{bits}> {all_} to "
                        f"{writer.type(node.dtype, lanes * count)}", node.dtype, lanes * count)


def _products(values: Values, sums: Value, one: Value, other: Value) -> Value:
    """Products of neighbours are added, and these sums of neighbours again."""
    writer = values.writer
    kind = writer.type("int32", one.lanes)
    wide = [writer.name(f"{'zext' if each.dtype in UNSIGNED else 'sext'} {writer.operand(each)} "
                        f"to {kind}") for each in (one, other)]
    value = writer.value(f"mul {kind} {wide[0]}, {wide[1]}", "int32", one.lanes)
    while value.lanes > sums.lanes:
        halves = [shuffle(writer, value, value, range(first, value.lanes, 2)) for first in (0, 1)]
        value = writer.value(f"add {writer.operand(halves[0])}, {halves[1].text}", "int32",
                             halves[0].lanes)
    return writer.value(f"add {writer.operand(sums)}, {value.text}", "int32", sums.lanes)
