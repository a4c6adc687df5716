"""Instructions of GEMM and ALU from loops around an intrinsic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ....isa.config import Config
from ....isa.instructions import (
    PARAMETER_TILES,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Requantize,
)
from ...errors import CompileError
from ...expression.affine import Affine
from ...expression.expression import Axis
from .hardware_loops import (
    HARDWARE_LOOPS,
    REMEMBERED,
    Plan,
    Walks,
    assign_hardware_loops,
    fuse_loops,
    offsets,
    pad_loops,
    plan_of,
    split_off_longest,
    walks_of,
)

MICRO_OPS = 0               # the segment of micro-ops
SEQUENCES = 4               # of micro-ops, of the longest kind, that their scratchpad has room for

# Buffers take turns, and so do equal instructions: each is made, and checked, once.
_gemm = lru_cache(REMEMBERED)(Gemm)
_requantize = lru_cache(REMEMBERED)(Requantize)

Tiles = tuple[int, ...]     # of an intrinsic's operands
Sequenced = tuple[Tiles, ...]                       # dst, src and wgt of micro-ops
Key = tuple[GemmFlags, Sequenced]
PLAIN = GemmFlags(0)


def longest_sequence(config: Config) -> int:
    """The most micro-ops of one gemm: those of others find room beside them, where there is any."""
    return max(1, config.tiles(Buffer.UOP) // SEQUENCES)


class MicroKernels:
    """Sequences of micro-ops: each once in DRAM, and in the scratchpad until others need its
    place."""

    def __init__(self, config: Config):
        self.config = config
        self.micro_ops: list[Tiles] = []                    # as they lie in DRAM
        self.in_dram: dict[Key, int] = {}                   # the first micro-op of each
        self.resident: dict[Key, int] = {}                  # the same in the scratchpad
        self.top = 0
        self.sums: dict[tuple[Tiles, Walks], Sequenced] = {}

    def of_sum(self, first: Tiles, walks: Walks) -> Sequenced:
        """The micro-ops of a sum: tiles from the first ones on, as loops walk through them."""
        key = first, walks
        if key not in self.sums:
            self.sums[key] = tuple([tuple(map(int.__add__, first, moved))
                                    for moved in _steps(walks, len(first))])
        return self.sums[key]

    def place(self, sequence: Sequenced, mode: GemmFlags = PLAIN) -> tuple[int, list[Load]]:
        """Where a sequence is, and the load that brings it there if it is not there yet. The same
        numbers mean other tiles in another mode, which may be moved elsewhere: they are kept
        apart."""
        key = mode, sequence
        if key in self.resident:
            return self.resident[key], []
        length, capacity = len(sequence), self.config.tiles(Buffer.UOP)
        if length > capacity:
            raise CompileError(f"a gemm of {length} micro-ops does not fit in uop, which has room "
                               f"for {capacity}")
        if key not in self.in_dram:
            self.in_dram[key] = len(self.micro_ops)
            self.micro_ops += sequence
        first = self.top if self.top + length <= capacity else 0
        self.resident = {each: place for each, place in self.resident.items()
                         if place + len(each[1]) <= first or place >= first + length}
        self.resident[key], self.top = first, first + length
        offset = self.in_dram[key] * MicroOp.size
        return first, [Load(buffer=Buffer.UOP, segment=MICRO_OPS, sram=first, offset=offset,
                            shape=(1, 1, length))]


@lru_cache(REMEMBERED)
def _steps(walks: Walks, operands: int) -> Sequenced:
    """How far the operands have moved in each micro-op of a sum."""
    return tuple(offsets(walks, operands))


class SumPlan(NamedTuple):
    """Loops around a tile product: a sequence of micro-ops for a part of each sum."""

    parts: Walks            # of the sum, one instruction each
    sequence: Walks
    space: Plan


@lru_cache(REMEMBERED)
def plan_sum(walks: Walks, most: int) -> SumPlan:
    """Loops over which a sum runs become micro-ops, at most `most` of them; the others become loops
    of the hardware."""
    space = assign_hardware_loops(tuple(walk for walk in walks if walk.steps[0]), 3)
    parts, sequence = [], list(fuse_loops(tuple(walk for walk in walks if not walk.steps[0])))
    while prod(walk.extent for walk in sequence) > most:
        parts.append(sequence.pop(0))
    return SumPlan(tuple(parts), tuple(sequence), space)


def gemms(axes: Sequence[Axis], dst: Affine, src: Affine, wgt: Affine, kernels: MicroKernels, *,
          starts: bool, mode: GemmFlags = PLAIN) -> Iterator[Instruction]:
    """Gemms for loops around a tile product; with `starts`, the first product of each
    accumulator tile begins its sum. `mode` says what is multiplied, and how."""
    operands = dst, src, wgt
    plan = plan_sum(walks_of(axes, operands), longest_sequence(kernels.config))
    first = GemmFlags.START | (GemmFlags.FIRST_UOP if plan.sequence else GemmFlags(0))
    dst_stride, src_stride, wgt_stride = plan.space.strides
    for number, part in enumerate(offsets(plan.parts, len(operands))):
        flags = mode | first if starts and number == 0 else mode
        for near in offsets(plan.space.written, len(operands)):
            tiles = advance_tiles(advance_tiles(_first(operands), part), near)
            sequence = kernels.of_sum(tiles, plan.sequence)
            uop, loads = kernels.place(sequence, mode)
            yield from loads
            yield _gemm(flags=flags, uop=uop, count=len(sequence), loops=plan.space.counts,
                        dst_stride=dst_stride, src_stride=src_stride, wgt_stride=wgt_stride)


@lru_cache(REMEMBERED)
def plan_channels(walks: Walks) -> Plan:
    """Loops around a requantization: the parameters of channels change with the outer loop of the
    hardware, and with loops that are written out."""
    channels = tuple(walk for walk in fuse_loops(walks) if walk.steps[2])
    written, near = split_off_longest(tuple(walk for walk in fuse_loops(walks)
                                            if not walk.steps[2]),
                                      HARDWARE_LOOPS - 1)
    return plan_of(channels[:-1] + written,
                   channels[-1:] + pad_loops(near, HARDWARE_LOOPS - 1, 3), 3)


def requantizes(axes: Sequence[Axis], out: Affine, acc: Affine, parameters: Sequence[Affine],
                pattern: Requantize) -> Iterator[Requantize]:
    """Requantizations for loops around one tile. `pattern` has everything but tiles and loops."""
    bias = parameters[0]
    for number, each in enumerate(parameters):
        if each.constant != bias.constant + number or each.terms != bias.terms:
            raise CompileError("bias, multiplier and shift of a channel block must be three "
                               "accumulator tiles in a row")
    operands = out, acc, bias
    plan = plan_channels(walks_of(axes, operands))
    dst_stride, src_stride, (params_stride, _, _) = plan.strides
    for steps in offsets(plan.written, len(operands)):
        dst, src, params = advance_tiles(_first(operands), steps)
        yield _requantize(flags=pattern.flags, zero_point=pattern.zero_point, low=pattern.low,
                          high=pattern.high, dst=dst, src=src, params=params, loops=plan.counts,
                          dst_stride=dst_stride, src_stride=src_stride, params_stride=params_stride)


def alus(axes: Sequence[Axis], op: AluOp, dst: Affine, left: Affine,
         right: Affine) -> Iterator[Alu]:
    """Element-wise operations. The left operand walks as the result does."""
    operands = dst, left, right
    plan = assign_hardware_loops(walks_of(axes, operands), len(operands))
    dst_stride, left_stride, right_stride = plan.strides
    if dst_stride != left_stride or any(walk.steps[0] != walk.steps[1] for walk in plan.written):
        raise CompileError(f"alu.{op.name.lower()}: the left operand must walk through the "
                           f"accumulator as the result does")
    for steps in offsets(plan.written, len(operands)):
        result, lhs, rhs = advance_tiles(_first(operands), steps)
        yield Alu(op=op, dst=result, lhs=lhs, rhs=rhs, loops=plan.counts, dst_stride=dst_stride,
                  rhs_stride=right_stride)


def immediates(axes: Sequence[Axis], op: AluOp, dst: Affine, src: Affine, *,
               immediate: int) -> Iterator[AluI]:
    """Element-wise operations with a constant."""
    operands = dst, src
    plan = assign_hardware_loops(walks_of(axes, operands), len(operands))
    dst_stride, src_stride = plan.strides
    for steps in offsets(plan.written, len(operands)):
        result, source = advance_tiles(_first(operands), steps)
        yield AluI(op=op, dst=result, src=source, immediate=immediate, loops=plan.counts,
                   dst_stride=dst_stride, src_stride=src_stride)


def fills(axes: Sequence[Axis], dst: Affine, value: int,
          target: Buffer = Buffer.ACC) -> Iterator[Instruction]:
    """Give tiles a constant value."""
    return emit_fill(dst.constant, walks_of(axes, (dst,)), value, target)


def emit_fill(first: int, walks: Walks, value: int,
              target: Buffer = Buffer.ACC) -> Iterator[Instruction]:
    """The same for tiles that begin with `first`."""
    plan = assign_hardware_loops(walks, 1)
    for step, in offsets(plan.written, 1):
        yield AluI(op=AluOp.MOVE, dst=first + step, immediate=value, loops=plan.counts,
                   dst_stride=plan.strides[0], target=target)


def _first(operands: Sequence[Affine]) -> Tiles:
    return tuple([operand.constant for operand in operands])


def advance_tiles(tiles: Tiles, steps: Tiles) -> Tiles:
    """Tiles a step further."""
    return tuple(map(int.__add__, tiles, steps))


assert PARAMETER_TILES == 3, "a requantize reads bias, multiplier and shift"
