"""ALU and ALUI, compiled: four lanes at once. Importing this module imports numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir
from numba import types

from ...isa.arithmetic import ADD, MAX, MIN, MOVE, MUL, SHIFT_MASK, SHL, SHR, SUB
from ...isa.instructions import Alu, AluI, Buffer
from ..compiled.numba_types import Builder, Context, Intrinsic, Kind, Signature, Word, Words
from ..compiled.vectors import (
    I64,
    NUMBER,
    c_function,
    helper,
    intrinsic,
    intrinsic_of_constants,
    is_set,
    number_at,
)
from .four_lanes import (
    FOUR,
    FOUR_NUMBERS,
    LANES,
    WIDE_LANES,
    four_at,
    four_times,
    walk_stays_inside,
    write_bytes,
    write_numbers,
)
from .machine_table import (
    ADDRESS,
    BATCH,
    BLOCK_OUT,
    BUFFER,
    DONE,
    ELSEWHERE,
    HEADER,
    LANE,
    OUTSIDE,
    READS_LEFT,
    STOP,
    STOPPED,
    TILE,
    TILES,
    place,
)

OP, DST, LHS, RHS, LOOPS, DST_STRIDE, RHS_STRIDE, TARGET = (place(Alu, name) for name in (
    "op", "dst", "lhs", "rhs", "loops", "dst_stride", "rhs_stride", "target"))
OP_I, DST_I, SRC_I, LOOPS_I, DST_STRIDE_I, SRC_STRIDE_I, TARGET_I, IMMEDIATE = (
    place(AluI, name) for name in (
        "op", "dst", "src", "loops", "dst_stride", "src_stride", "target", "immediate"))
OUT, OUT_LOW, OUT_HIGH = int(Buffer.OUT), -128, 127
ACCS, OUTS = (HEADER + BUFFER * each for each in (Buffer.ACC, Buffer.OUT))
Operation = Callable[[Builder, Word, Word], Word]


@cache
def alu() -> int:
    """The address of a C function that executes an alu, given its row and the machine. It does not
    handle tiles whose lanes are not a multiple of four."""
    def function(row: int, machine: int) -> Word:
        loops, walk = row + NUMBER * LOOPS, row + NUMBER * DST_STRIDE
        return _combine(machine, number_at(row, OP), number_at(row, TARGET), loops,
                        number_at(row, DST), walk, number_at(row, LHS), walk,
                        number_at(row, RHS), row + NUMBER * RHS_STRIDE, 0)
    return c_function(function)


@cache
def alui() -> int:
    """The same for an alui."""
    def function(row: int, machine: int) -> Word:
        return _combine(machine, number_at(row, OP_I), number_at(row, TARGET_I),
                        row + NUMBER * LOOPS_I, number_at(row, DST_I), row + NUMBER * DST_STRIDE_I,
                        number_at(row, SRC_I), row + NUMBER * SRC_STRIDE_I, 0, 0,
                        number_at(row, IMMEDIATE))
    return c_function(function)


@helper
def _combine(machine: int, op: int, target: int, loops: int, dst: int, walk: int, left: int,
             left_walk: int, right: int, right_walk: int, immediate: int) -> int:
    """Without a walk, the right operand is the immediate."""
    if number_at(loops, 0) * number_at(loops, 1) * number_at(loops, 2) == 0:
        return DONE
    acc, to = machine + NUMBER * ACCS, machine + NUMBER * (OUTS if target == OUT else ACCS)
    tiles = number_at(acc, TILES)
    if not (walk_stays_inside(dst, loops, walk, number_at(to, TILES))
            and (READS_LEFT >> op & 1 == 0 or walk_stays_inside(left, loops, left_walk, tiles))
            and (right_walk == 0 or walk_stays_inside(right, loops, right_walk, tiles))):
        return OUTSIDE
    lanes = number_at(machine, BATCH) * number_at(machine, BLOCK_OUT)
    if lanes % FOUR or KNOWN >> op & 1 == 0:
        return ELSEWHERE
    # Lanes are independent, so four of them go through all tiles.
    base, tile = number_at(acc, ADDRESS), number_at(acc, TILE)
    for lane in range(0, lanes, FOUR):
        first = base + lane * number_at(acc, LANE)
        _combine_lanes(op, target == OUT, loops, tile, number_at(to, TILE),
                       number_at(to, ADDRESS) + lane * number_at(to, LANE)
                       + number_at(to, TILE) * dst, walk, first + tile * left, left_walk,
                       first + tile * right, right_walk, four_times(immediate),
                       number_at(machine, STOP))
    return STOPPED if is_set(number_at(machine, STOP)) else DONE


@helper
def _combine_lanes(op: int, narrow: bool, loops: int, tile: int, to_tile: int, to: int, walk: int,
                   left: int, left_walk: int, right: int, right_walk: int, fixed: Word,
                   stop: int) -> None:
    """Four lanes, in all iterations."""
    for outer in range(number_at(loops, 0)):
        for middle in range(number_at(loops, 1)):
            if is_set(stop):
                return
            for inner in range(number_at(loops, 2)):
                one, other = fixed, fixed
                if READS_LEFT >> op & 1:
                    one = four_at(left + tile * _tile_offset(left_walk, outer, middle, inner))
                if right_walk != 0:
                    other = four_at(right + tile * _tile_offset(right_walk, outer, middle, inner))
                value = _emit_alu_operation(op, one, other)
                place = to + to_tile * _tile_offset(walk, outer, middle, inner)
                if narrow:
                    value = alu_operation(MAX, value, four_times(OUT_LOW))
                    write_bytes(alu_operation(MIN, value, four_times(OUT_HIGH)), place)
                else:
                    write_numbers(value, place)


@helper
def _tile_offset(strides: int, outer: int, middle: int, inner: int) -> Word:
    return (number_at(strides, 0) * outer + number_at(strides, 1) * middle
            + number_at(strides, 2) * inner)


@intrinsic
def _emit_alu_operation(context: Context, op: Kind, left: Kind, right: Kind) -> Intrinsic:
    """Emit `isa.arithmetic.alu` on four lanes, for one of KNOWN."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        chosen, left, right = values
        unknown, end = builder.append_basic_block(), builder.append_basic_block()
        switch, found = builder.switch(chosen, unknown), []
        for op, operation in OPERATIONS.items():
            block = builder.append_basic_block()
            switch.add_case(I64(op), block)
            builder.position_at_end(block)
            found.append((operation(builder, left, right), block))
            builder.branch(end)
        builder.position_at_end(unknown)
        builder.unreachable()
        builder.position_at_end(end)
        value = builder.phi(LANES)
        for each in found:
            value.add_incoming(*each)
        return value
    return FOUR_NUMBERS(types.int64, FOUR_NUMBERS, FOUR_NUMBERS), generate


@intrinsic_of_constants
def alu_operation(context: Context, op: Kind, left: Kind, right: Kind) -> Intrinsic:
    """One operation, which is a constant."""
    def generate(context: Context, builder: Builder, signature: Signature, values: Words) -> Word:
        return OPERATIONS[op.literal_value](builder, *values[1:])
    return FOUR_NUMBERS(op, FOUR_NUMBERS, FOUR_NUMBERS), generate


def _select(relation: str) -> Operation:
    return lambda builder, left, right: builder.select(
        builder.icmp_signed(relation, left, right), left, right)


def _amount(builder: Builder, right: Word) -> Word:
    return builder.and_(right, ir.Constant(LANES, [SHIFT_MASK] * FOUR))


def _shift_right(builder: Builder, left: Word, right: Word) -> Word:
    """Computed with more bits, since half of the divisor is added."""
    one = ir.Constant(WIDE_LANES, [1] * FOUR)
    amount = builder.zext(_amount(builder, right), WIDE_LANES)
    half = builder.lshr(builder.shl(one, amount), one)
    value = builder.add(builder.sext(left, WIDE_LANES), half)
    return builder.trunc(builder.ashr(value, amount), LANES)


OPERATIONS: dict[int, Operation] = {
    ADD: lambda builder, left, right: builder.add(left, right),
    SUB: lambda builder, left, right: builder.sub(left, right),
    MUL: lambda builder, left, right: builder.mul(left, right),
    MIN: _select("<"),
    MAX: _select(">"),
    SHR: _shift_right,
    SHL: lambda builder, left, right: builder.shl(left, _amount(builder, right)),
    MOVE: lambda builder, left, right: right,
}
KNOWN = sum(1 << each for each in OPERATIONS)       # as a set; others are not handled here
