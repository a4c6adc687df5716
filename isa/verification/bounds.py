"""What an instruction may reach: the one place that says an index or address is out of range.

What an instruction says by itself (alignment, a padding value) is checked always. What it reaches
is checked where it reaches something: a loop without iterations or an empty box touches nothing.
Loops are judged by their corners, so a check costs the same for one iteration and for a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import ExecutionError
from ..config import Config
from ..instructions import (
    PARAMETER_TILES,
    TABLES,
    WINDOW_ROWS,
    WINDOW_TAPS,
    Alu,
    AluI,
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
    Table,
    Window,
)
from ..program import Access, Segment
from ..record import fields_of
from ..stream import Stream, positions_of

MicroOps = npt.NDArray[np.uint16]           # (n, 4): the micro-op scratchpad, one a row
Range = tuple[int, int]                     # smallest and largest, both included

DST, SRC, WGT, BIAS = (field.offset // field.bytes for field in fields_of(MicroOp))
DEPTHWISE, FROM_BIAS = int(GemmFlags.DEPTHWISE), int(GemmFlags.BIAS)    # plain integers are quick
FIRST_UOP, FROM_OUT = int(GemmFlags.FIRST_UOP), int(GemmFlags.OUT)
TO_ACC = int(RequantizeFlags.ACC)


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

    `uops` is the micro-op scratchpad as the instruction finds it; only GEMM looks at it.
    `position` is the instruction's number in its program, for the message.
    """
    try:
        _check_supported(instruction, config)
        match instruction:
            case Gemm():
                _check_gemm(instruction, config, uops)
            case Window():
                _check_window(instruction, config, uops)
            case Load():
                _check_load(instruction, config, segments)
            case Store():
                _check_store(instruction, config, segments)
            case Alu() | AluI() | Requantize():
                _check_lanes(instruction, config)
            case Table():
                _within("src", (instruction.src, instruction.src + config.table_tiles - 1),
                        _limits(config).tiles[Buffer.ACC], Buffer.ACC)
            case Sync():
                pass
            case _:
                raise TypeError(f"nobody has said what {instruction.mnemonic()} may reach")
    except ExecutionError as error:
        raise ExecutionError(f"{place_of(instruction, position)}: {error}") from None


def check_supported(instruction: Instruction, config: Config, position: int) -> None:
    """The part of `check` that asks whether the accelerator can do such a thing at all."""
    try:
        _check_supported(instruction, config)
    except ExecutionError as error:
        raise ExecutionError(f"{place_of(instruction, position)}: {error}") from None


def _check_supported(instruction: Instruction, config: Config) -> None:
    if isinstance(instruction, Window) and not config.has_windows:
        raise ExecutionError(f"window_taps is {config.window_taps}, but windows need "
                             f"{WINDOW_TAPS}")
    if isinstance(instruction, Table) and not config.tables:
        raise ExecutionError(f"tables is {config.tables}, but tables need {TABLES}")
    for broken, reason in instruction.lacks(instruction, config):
        if broken:
            raise ExecutionError(reason())
    if isinstance(instruction, Gemm | Window) and int(instruction.flags) & FROM_OUT and (
            0 not in instruction.loops and not config.gemm_out_tiles and (
                isinstance(instruction, Window) or instruction.count)):
        raise ExecutionError(f"flags has OUT, but GEMM reads out only where out_readers is 2, and "
                             f"it is {config.out_readers}")


def check_end(code: Stream) -> None:
    """Raise ExecutionError unless the last instruction, and no other, is an end."""
    if len(code) == 0:
        raise ExecutionError("the program is empty, but its last instruction must be sync.end")
    positions, words = positions_of(code, Sync)
    ends = positions[words["action"] == SyncAction.END]
    last = len(code) - 1
    if len(ends) and ends[0] < last:
        raise ExecutionError(f"instruction {ends[0]} (sync.end) ends the program, but must be its "
                             f"last, which is instruction {last}")
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


class Limits(NamedTuple):
    """What a configuration has, by buffer: asked for at every check, worked out once."""

    tiles: tuple[int, ...]
    tile_bytes: tuple[int, ...]


@cache
def _limits(config: Config) -> Limits:
    return Limits(tuple(config.tiles(buffer) for buffer in Buffer),
                  tuple(config.tile_bytes(buffer) for buffer in Buffer))


def _check_gemm(gemm: Gemm, config: Config, uops: MicroOps) -> None:
    if gemm.count == 0 or 0 in gemm.loops:
        return
    tiles, flags = _limits(config).tiles, int(gemm.flags)
    last = gemm.uop + gemm.count - 1
    _within("uop", (gemm.uop, last), tiles[Buffer.UOP], Buffer.UOP, "micro-op")
    used = uops[gemm.uop:last + 1]
    lows, highs = used.min(0).tolist(), used.max(0).tolist()

    def strided_range(column: int, strides: Sequence[int]) -> Range:
        low, high = index_range(0, gemm.loops, strides) or (0, 0)
        return lows[column] + low, highs[column] + high

    _check_sums(strided_range(DST, gemm.dst_stride), config, depthwise=bool(flags & DEPTHWISE))
    _check_activations(strided_range(SRC, gemm.src_stride), flags, config,
                       depthwise=bool(flags & DEPTHWISE))
    if flags & DEPTHWISE:
        _within("wgt", strided_range(WGT, gemm.wgt_stride), tiles[Buffer.WGT] * config.block_out,
                Buffer.WGT, "row")
    else:
        _within("wgt", strided_range(WGT, gemm.wgt_stride), tiles[Buffer.WGT], Buffer.WGT)
    if flags & FROM_BIAS:
        highest = int(used[0, BIAS]) if flags & FIRST_UOP else highs[BIAS]
        _within("bias", (0, highest), tiles[Buffer.ACC], Buffer.ACC)


def _check_activations(reached: Range, flags: int, config: Config, *, depthwise: bool) -> None:
    buffer = Buffer.OUT if flags & FROM_OUT else Buffer.INP
    limit = config.gemm_out_tiles if flags & FROM_OUT else _limits(config).tiles[buffer]
    _within_groups("src", reached, limit, buffer, config.inp_groups if depthwise else 1)


def _check_sums(reached: Range | None, config: Config, *, depthwise: bool) -> None:
    _within_groups("dst", reached, _limits(config).tiles[Buffer.ACC], Buffer.ACC,
                   config.acc_groups if depthwise else 1)


def _within_groups(field: str, reached: Range | None, tiles: int, buffer: Buffer,
                   groups: int) -> None:
    """The same for what counts groups of lanes, if tiles have several."""
    _within(field, reached, tiles * groups, buffer, "group of lanes" if groups > 1 else "tile")


def _check_window(window: Window, config: Config, uops: MicroOps) -> None:
    if 0 in window.loops:
        return
    tiles, flags = _limits(config).tiles, int(window.flags)
    _within("uop", (window.uop, window.uop), tiles[Buffer.UOP], Buffer.UOP, "micro-op")
    dst, src, wgt, bias = uops[window.uop].tolist()
    outer, middle, inner = window.loops
    _check_activations(index_range(src, window.loops, window.src_stride) or (0, 0), flags, config,
                       depthwise=True)
    _within("wgt", index_range(wgt, window.loops, window.wgt_stride),
            tiles[Buffer.WGT] * config.block_out, Buffer.WGT, "row")
    steps = (stride for count, stride in zip(window.loops, window.wgt_stride, strict=True)
             if count > 1)
    for row in (wgt, *(wgt + step for step in steps)):
        if row % WINDOW_ROWS:
            raise ExecutionError(f"wgt reaches row {row}, but must be a multiple of {WINDOW_ROWS} "
                                 f"in every iteration")
    sums = outer, middle, max(inner - WINDOW_TAPS + 1, 0)
    _check_sums(index_range(dst, sums, window.dst_stride), config, depthwise=True)
    if flags & FROM_BIAS:
        _within("bias", index_range(bias, sums, (0, 0, 0)), tiles[Buffer.ACC], Buffer.ACC)


def _check_lanes(instruction: Alu | AluI | Requantize, config: Config) -> None:
    """The ALU's instructions: a destination and operands that walk with the loops."""
    tiles, loops = _limits(config).tiles, instruction.loops
    if 0 in loops:
        return
    operands: list[tuple[str, int, Sequence[int]]]
    match instruction:
        case Alu():
            operands = [("lhs", instruction.lhs, instruction.dst_stride),
                        ("rhs", instruction.rhs, instruction.rhs_stride)]
            if not instruction.op.reads_left:
                del operands[0]
            target = instruction.target
        case AluI():
            operands = [("src", instruction.src, instruction.src_stride)]
            if not instruction.op.reads_left:
                del operands[0]
            target = instruction.target
        case Requantize():
            operands = [("src", instruction.src, instruction.src_stride)]
            target = Buffer.ACC if int(instruction.flags) & TO_ACC else Buffer.OUT
            _within("params", index_range(instruction.params, (loops[0], PARAMETER_TILES),
                                          (instruction.params_stride, 1)),
                    tiles[Buffer.ACC], Buffer.ACC)
    for field, base, strides in operands:
        _within(field, index_range(base, loops, strides), tiles[Buffer.ACC], Buffer.ACC)
    _within("dst", index_range(instruction.dst, loops, instruction.dst_stride), tiles[target],
            target)


def _check_load(load: Load, config: Config, segments: Sequence[Segment]) -> None:
    limits, buffer = _limits(config), load.buffer
    most = (1 << config.wgt_bits - 1) - 1
    if buffer == Buffer.WGT and not -most - 1 <= load.pad_value <= most:
        raise ExecutionError(f"pad_value is {load.pad_value}, which does not fit in a weight of "
                             f"{config.wgt_bits} bits ({-most - 1} to {most})")
    z, y, x = load.shape
    top, bottom, left, right = load.pad
    plane = (top + y + bottom) * (left + x + right)
    _within("sram", index_range(load.sram, (z, plane), (load.sram_pitch, 1)),
            limits.tiles[buffer], buffer)
    _check_dram(load, limits.tile_bytes[buffer], segments)


def _check_store(store: Store, config: Config, segments: Sequence[Segment]) -> None:
    limits, buffer = _limits(config), store.buffer
    _within("sram", index_range(store.sram, store.shape, (*store.sram_pitch, 1)),
            limits.tiles[buffer], buffer)
    _check_dram(store, limits.tile_bytes[buffer], segments)


def _check_dram(transfer: Load | Store, tile: int, segments: Sequence[Segment]) -> None:
    for name, value in (("offset", transfer.offset), ("stride[z]", transfer.stride[0]),
                        ("stride[y]", transfer.stride[1])):
        if value % tile:
            raise ExecutionError(f"{name} is {value}, but must be a multiple of {tile}, the bytes "
                                 f"of one {transfer.buffer.name.lower()} tile in DRAM")
    z, y, x = transfer.shape
    reached = index_range(transfer.offset, (z, y, x * tile), (*transfer.stride, 1))
    if reached is None:
        return
    if transfer.segment >= len(segments):
        raise ExecutionError(f"segment is {transfer.segment}, but the program has "
                             f"{len(segments)}")
    segment = segments[transfer.segment]
    if isinstance(transfer, Store) and segment.access != Access.WRITE:
        raise ExecutionError(f"segment is {transfer.segment} ({segment.name}), which is for "
                             f"reading only")
    _within("offset", reached, segment.size, segment.name, "byte")


def _within(field: str, reached: Range | None, limit: int, space: Buffer | str,
            unit: str = "tile") -> None:
    """Refuse what a field reaches unless it lies in a buffer, or a segment of that name."""
    if reached is None or (reached[0] >= 0 and reached[1] < limit):
        return
    wrong = reached[0] if reached[0] < 0 else reached[1]
    name = space.name.lower() if isinstance(space, Buffer) else f"segment {space}"
    raise ExecutionError(f"{field} reaches {unit} {wrong}, but {name} has {limit} "
                         f"(0 to {limit - 1})")
