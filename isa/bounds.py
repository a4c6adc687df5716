"""What an instruction may reach: the one place that says an index or address is out of range.

What an instruction says by itself (alignment, a padding value) is checked always. What it reaches
is checked where it reaches something: a loop without iterations or an empty box touches nothing.
Loops are judged by their corners, so a check costs the same for one iteration and for a million.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .config import Config
from .errors import ExecutionError
from .instructions import (
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
    Opcode,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
)
from .program import Access, Segment
from .record import fields_of
from .stream import Stream, positions_of

MicroOps = npt.NDArray[np.uint16]           # (n, 4): the micro-op scratchpad, one a row
Range = tuple[int, int]                     # smallest and largest, both included

DST, SRC, WGT, BIAS = (field.offset // field.bytes for field in fields_of(MicroOp))


def index_range(base: int, loops: Sequence[int], strides: Sequence[int]) -> Range | None:
    """Smallest and largest `base + Σ counter × stride`. None when there are no iterations."""
    low = high = base
    for count, stride in zip(loops, strides, strict=True):
        if count == 0:
            return None
        if stride > 0:
            high += (count - 1) * stride
        else:
            low += (count - 1) * stride
    return low, high


def check(instruction: Instruction, config: Config, segments: Sequence[Segment],
          uops: MicroOps, *, position: int | None = None) -> None:
    """Raise ExecutionError if an instruction reaches outside a scratchpad or a segment.

    `uops` is the micro-op scratchpad as the instruction finds it; only a gemm looks at it.
    `position` is the instruction's number in its program, for the message.
    """
    try:
        match instruction:
            case Gemm():
                _check_gemm(instruction, config, uops)
            case Load():
                _check_load(instruction, config, segments)
            case Store():
                _check_store(instruction, config, segments)
            case Alu() | AluI() | Requantize():
                _check_lanes(instruction, config)
    except ExecutionError as error:
        raise ExecutionError(f"{place_of(instruction, position)}: {error}") from None


def check_end(code: Stream) -> None:
    """Raise ExecutionError unless the last instruction, and no other, is an end."""
    if len(code) == 0:
        raise ExecutionError("the program is empty, but its last instruction must be sync.end")
    positions, words = positions_of(code, Sync)
    ends = positions[words["action"] == SyncAction.END]
    last = len(code) - 1
    if len(ends) and ends[0] < last:
        raise ExecutionError(f"instruction {ends[0]} (sync.end) ends the program, but "
                             f"{last - ends[0]} more follow; it must be the last")
    if not len(ends):
        name = Opcode(int(code["opcode"][last])).name.lower()
        raise ExecutionError(f"instruction {last} ({name}) is the last, but a program's last "
                             f"instruction must be sync.end")


def place_of(instruction: Instruction, position: int | None = None) -> str:
    """How messages call an instruction: `instruction 12 (load.inp)`."""
    name = instruction.mnemonic()
    for field in fields_of(type(instruction)):
        if field.suffix:
            name = f"{name}.{getattr(instruction, field.name).name.lower()}"
    return name if position is None else f"instruction {position} ({name})"


def _check_gemm(gemm: Gemm, config: Config, uops: MicroOps) -> None:
    if gemm.count == 0 or 0 in gemm.loops:
        return
    last = gemm.uop + gemm.count - 1
    _reach("uop", (gemm.uop, last), config.tiles(Buffer.UOP), "uop", "micro-op")
    used = uops[gemm.uop:last + 1]
    lows, highs = used.min(0).tolist(), used.max(0).tolist()

    def reach(field: str, column: int, strides: Sequence[int], limit: int, name: str,
              unit: str = "tile") -> None:
        low, _ = index_range(lows[column], gemm.loops, strides) or (0, 0)
        _, high = index_range(highs[column], gemm.loops, strides) or (0, 0)
        _reach(field, (low, high), limit, name, unit)

    acc, wgt = config.tiles(Buffer.ACC), config.tiles(Buffer.WGT)
    reach("dst", DST, gemm.dst_stride, acc, "acc")
    reach("src", SRC, gemm.src_stride, config.tiles(Buffer.INP), "inp")
    if gemm.flags & GemmFlags.DEPTHWISE:
        reach("wgt", WGT, gemm.wgt_stride, wgt * config.block_out, "wgt", "row")
    else:
        reach("wgt", WGT, gemm.wgt_stride, wgt, "wgt")
    if gemm.flags & GemmFlags.BIAS:
        first_only = gemm.flags & GemmFlags.FIRST_UOP
        _reach("bias", (0, int(used[0, BIAS]) if first_only else highs[BIAS]), acc, "acc")


def _check_lanes(instruction: Alu | AluI | Requantize, config: Config) -> None:
    """The ALU's instructions: a destination and operands that walk with the loops."""
    loops, acc = instruction.loops, config.tiles(Buffer.ACC)
    if 0 in loops:
        return
    target = Buffer.ACC
    match instruction:
        case Alu():
            if instruction.op != AluOp.MOVE:            # a move has no left operand
                _walk("lhs", instruction.lhs, loops, instruction.dst_stride, acc, "acc")
            _walk("rhs", instruction.rhs, loops, instruction.rhs_stride, acc, "acc")
            target = instruction.target
        case AluI():
            if instruction.op != AluOp.MOVE:
                _walk("src", instruction.src, loops, instruction.src_stride, acc, "acc")
            target = instruction.target
        case Requantize():
            _walk("src", instruction.src, loops, instruction.src_stride, acc, "acc")
            _walk("params", instruction.params, (loops[0], PARAMETER_TILES),
                  (instruction.params_stride, 1), acc, "acc")
            if not instruction.flags & RequantizeFlags.ACC:
                target = Buffer.OUT
    _walk("dst", instruction.dst, loops, instruction.dst_stride, config.tiles(target),
          target.name.lower())


def _check_load(load: Load, config: Config, segments: Sequence[Segment]) -> None:
    _check_alignment(load, config)
    most = (1 << config.wgt_bits - 1) - 1
    if load.buffer == Buffer.WGT and not -most - 1 <= load.pad_value <= most:
        raise ExecutionError(f"pad_value is {load.pad_value}, which does not fit in a weight of "
                             f"{config.wgt_bits} bits ({-most - 1} to {most})")
    z, y, x = load.shape
    top, bottom, left, right = load.pad
    _walk("sram", load.sram, (z, (top + y + bottom) * (left + x + right)), (load.sram_pitch, 1),
          config.tiles(load.buffer), load.buffer.name.lower())
    _check_dram(load, config, segments)


def _check_store(store: Store, config: Config, segments: Sequence[Segment]) -> None:
    _check_alignment(store, config)
    _walk("sram", store.sram, store.shape, (*store.sram_pitch, 1), config.tiles(store.buffer),
          store.buffer.name.lower())
    _check_dram(store, config, segments)


def _check_alignment(transfer: Load | Store, config: Config) -> None:
    tile = config.tile_bytes(transfer.buffer)
    for name, value in (("offset", transfer.offset), ("stride[z]", transfer.stride[0]),
                        ("stride[y]", transfer.stride[1])):
        if value % tile:
            raise ExecutionError(f"{name} is {value}, but must be a multiple of {tile}, the bytes "
                                 f"of one {transfer.buffer.name.lower()} tile in DRAM")


def _check_dram(transfer: Load | Store, config: Config, segments: Sequence[Segment]) -> None:
    z, y, x = transfer.shape
    reached = index_range(transfer.offset, (z, y, x * config.tile_bytes(transfer.buffer)),
                          (*transfer.stride, 1))
    if reached is None:
        return
    if transfer.segment >= len(segments):
        raise ExecutionError(f"segment is {transfer.segment}, but the program has "
                             f"{len(segments)}")
    segment = segments[transfer.segment]
    if isinstance(transfer, Store) and segment.access != Access.WRITE:
        raise ExecutionError(f"segment is {transfer.segment} ({segment.name}), which is for "
                             f"reading only")
    _reach("offset", reached, segment.size, f"segment {segment.name}", "byte")


def _walk(field: str, base: int, loops: Sequence[int], strides: Sequence[int], limit: int,
          name: str) -> None:
    reached = index_range(base, loops, strides)
    if reached is not None:
        _reach(field, reached, limit, name)


def _reach(field: str, reached: Range, limit: int, name: str, unit: str = "tile") -> None:
    low, high = reached
    if low < 0 or high >= limit:
        raise ExecutionError(f"{field} reaches {unit} {low if low < 0 else high}, but {name} has "
                             f"{limit} (0 to {limit - 1})")
