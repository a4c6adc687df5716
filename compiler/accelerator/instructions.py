"""Instructions of GEMM and ALU from loops around an intrinsic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from ...isa.config import Config
from ...isa.instructions import (
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
from ..errors import CompileError
from ..expression.affine import Affine
from ..expression.expression import Axis
from .hardware_loops import Walk, divided, fused, offsets, padded

OUTER, MIDDLE, INNER = range(3)
FIRST = (GemmFlags.FIRST_OUTER, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_INNER)
MICRO_OPS = 0               # the segment of micro-ops
SEQUENCES = 4               # of micro-ops, of the longest kind, that their scratchpad has room for

Sequenced = tuple[tuple[int, int, int], ...]        # dst, src and wgt of micro-ops


def longest_sequence(config: Config) -> int:
    """The most micro-ops of one gemm: others find room beside them, if there is any."""
    return max(1, config.tiles(Buffer.UOP) // SEQUENCES)


@dataclass
class MicroKernels:
    """Sequences of micro-ops: each once in DRAM, and in the scratchpad until others need its
    place."""

    config: Config
    micro_ops: list[tuple[int, int, int]] = field(default_factory=list)     # as they lie in DRAM
    in_dram: dict[Sequenced, int] = field(default_factory=dict)
    resident: dict[Sequenced, int] = field(default_factory=dict)            # first micro-op
    top: int = 0

    def place(self, sequence: Sequenced) -> tuple[int, list[Load]]:
        """Where a sequence is, and the load that brings it there if it is not there yet."""
        if sequence in self.resident:
            return self.resident[sequence], []
        length, capacity = len(sequence), self.config.tiles(Buffer.UOP)
        if length > capacity:
            raise CompileError(f"a gemm of {length} micro-ops does not fit in uop, which has room "
                               f"for {capacity}")
        if sequence not in self.in_dram:
            self.in_dram[sequence] = len(self.micro_ops)
            self.micro_ops += sequence
        first = self.top if self.top + length <= capacity else 0
        self.resident = {each: place for each, place in self.resident.items()
                         if place + len(each) <= first or place >= first + length}
        self.resident[sequence], self.top = first, first + length
        offset = self.in_dram[sequence] * MicroOp.size
        return first, [Load(buffer=Buffer.UOP, segment=MICRO_OPS, sram=first, offset=offset,
                            shape=(1, 1, length))]


def gemms(axes: Sequence[Axis], dst: Affine, src: Affine, wgt: Affine, kernels: MicroKernels, *,
          starts: bool, depthwise: bool = False) -> Iterator[Instruction]:
    """Gemms for loops around a tile product; with `starts`, the first product of each
    accumulator tile begins its sum.

    Loops over which a sum goes become micro-ops, the others loops of the hardware.
    """
    operands = (dst, src, wgt)
    space = fused([axis for axis in axes if dst.of(axis)], operands)
    sums = fused([axis for axis in axes if not dst.of(axis)], operands)
    most = longest_sequence(kernels.config)
    outside: list[Walk] = []                # of the sum: more than one instruction
    while prod(walk.count for walk in sums) > most:
        outside.append(sums.pop(0))
    written, walked = divided(space, len(FIRST))
    flags = GemmFlags.DEPTHWISE if depthwise else GemmFlags(0)
    for number, far in enumerate(offsets(outside, len(operands))):
        for near in offsets(written, len(operands)):
            base = [operand.constant + one + other for operand, one, other
                    in zip(operands, far, near, strict=True)]
            start = GemmFlags(0)
            if starts and number == 0:
                start = GemmFlags.START | (GemmFlags.FIRST_UOP if sums else GemmFlags(0))
            yield from _gemm(base, walked, sums, kernels, flags | start)


def _gemm(base: list[int], walked: list[Walk], sums: list[Walk], kernels: MicroKernels,
          flags: GemmFlags) -> Iterator[Instruction]:
    sequence = tuple((base[0] + dst, base[1] + src, base[2] + wgt)
                     for dst, src, wgt in offsets(sums, len(base)))
    first, loads = kernels.place(sequence)
    yield from loads
    loops = padded(walked, len(base))
    dst, src, wgt = (tuple(walk.steps[operand] for walk in loops) for operand in range(len(base)))
    yield Gemm(flags=flags, uop=first, count=len(sequence), loops=_counts(loops),
               dst_stride=_triple(dst), src_stride=_triple(src), wgt_stride=_triple(wgt))


def requantizes(axes: Sequence[Axis], out: Affine, acc: Affine, parameters: Sequence[Affine],
                pattern: Requantize) -> Iterator[Requantize]:
    """Requantizations for loops around one tile. `pattern` has everything but tiles and loops."""
    bias = parameters[0]
    for number, each in enumerate(parameters):
        if each != bias + Affine(number):
            raise CompileError("bias, multiplier and shift of a channel block must be three "
                               "accumulator tiles in a row")
    walks = fused(axes, (out, acc, bias))
    outer = [walk for walk in walks if walk.steps[2]]
    inner = [walk for walk in walks if not walk.steps[2]]
    written, near = divided(inner, len(FIRST) - 1)
    for base in offsets([*outer[:-1], *written], 3):
        at = [operand.constant + each for operand, each in zip((out, acc, bias), base, strict=True)]
        loops = [*(outer[-1:] or padded([], 3)[:1]), *padded(near, 3)[-(len(FIRST) - 1):]]
        yield _requantize(at, loops, pattern)


def _requantize(at: list[int], loops: list[Walk], pattern: Requantize) -> Requantize:
    dst, src = (tuple(walk.steps[operand] for walk in loops) for operand in range(2))
    return Requantize(flags=pattern.flags, zero_point=pattern.zero_point, low=pattern.low,
                      high=pattern.high, dst=at[0], src=at[1], params=at[2],
                      loops=_counts(loops), dst_stride=_triple(dst), src_stride=_triple(src),
                      params_stride=loops[OUTER].steps[2])


def alus(axes: Sequence[Axis], op: AluOp, dst: Affine, left: Affine,
         right: Affine) -> Iterator[Alu]:
    """Element-wise operations. The left operand walks as the result does."""
    walks = fused(axes, (dst, left, right))
    if any(walk.steps[0] != walk.steps[1] for walk in walks):
        raise CompileError(f"alu.{op.name.lower()}: the left operand must walk through the "
                           f"accumulator as the result does")
    written, walked = divided(walks, len(FIRST))
    for base in offsets(written, 3):
        loops = padded(walked, 3)
        at = [operand.constant + each for operand, each in zip((dst, left, right), base,
                                                               strict=True)]
        yield Alu(op=op, dst=at[0], lhs=at[1], rhs=at[2], loops=_counts(loops),
                  dst_stride=_triple([walk.steps[0] for walk in loops]),
                  rhs_stride=_triple([walk.steps[2] for walk in loops]))


def immediates(axes: Sequence[Axis], op: AluOp, dst: Affine, src: Affine, *,
               immediate: int) -> Iterator[AluI]:
    """Element-wise operations with a constant."""
    written, walked = divided(fused(axes, (dst, src)), len(FIRST))
    for base in offsets(written, 2):
        loops = padded(walked, 2)
        yield AluI(op=op, dst=dst.constant + base[0], src=src.constant + base[1],
                   immediate=immediate, loops=_counts(loops),
                   dst_stride=_triple([walk.steps[0] for walk in loops]),
                   src_stride=_triple([walk.steps[1] for walk in loops]))


def fills(axes: Sequence[Axis], dst: Affine, value: int) -> Iterator[Instruction]:
    """Give accumulator tiles a constant value."""
    return filled(dst.constant, fused(axes, (dst,)), value)


def filled(first: int, walks: Sequence[Walk], value: int) -> Iterator[Instruction]:
    """The same for tiles from a first one on."""
    written, walked = divided(list(walks), len(FIRST))
    for base, in offsets(written, 1):
        loops = padded(walked, 1)
        yield AluI(op=AluOp.MOVE, dst=first + base, immediate=value, loops=_counts(loops),
                   dst_stride=_triple([walk.steps[0] for walk in loops]))


def _counts(loops: Sequence[Walk]) -> tuple[int, int, int]:
    return _triple([walk.count for walk in loops])


def _triple(values: Sequence[int]) -> tuple[int, int, int]:
    outer, middle, inner = values
    return outer, middle, inner


assert PARAMETER_TILES == 3, "a requantize reads bias, multiplier and shift"
