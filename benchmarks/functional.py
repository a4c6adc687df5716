"""MAC/s of the functional simulator on a large matrix product, against NumPy's int32 matmul."""

from __future__ import annotations

import argparse
import sys

import numpy as np
import numpy.typing as npt
from common import Column, Outcome, best_of, factor, main, quantity

from microtron.base.errors import MicrotronError
from microtron.isa.config import Config
from microtron.isa.config_files import load_config
from microtron.isa.instructions import (
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    MicroOp,
    Store,
    Sync,
)
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode, encode_micro_ops
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.sim.functional.scratchpads import pack
from microtron.sim.functional.simulator import Functional

MICRO_OPS, LEFT, RIGHT, RESULT = range(4)       # segments
ACC_BYTES = 4


def matmul(config: Config, size: int, right: npt.NDArray[np.int8]) -> Program:
    """left @ right for square int8 matrices, as 32-bit sums.

    Every scratchpad is used in two halves, so that loading, multiplying and storing can overlap.
    A group of columns keeps its weights while all rows pass by; a step is a few rows of a group.
    """
    depth, blocks = size // config.block_in, size // config.block_out
    half = {buffer: config.tiles(buffer) // 2 for buffer in (Buffer.INP, Buffer.WGT, Buffer.ACC)}
    group = min(half[Buffer.WGT] // depth, blocks)
    rows = min(half[Buffer.INP] // depth, half[Buffer.ACC] // max(group, 1), size)
    if config.batch != 1 or 0 in (group, rows) or blocks % group or size % rows or (
            size % config.block_in or size % config.block_out):
        raise MicrotronError(f"a product of size {size} does not divide into halves of the "
                             f"scratchpads of this configuration")
    micro_ops = [MicroOp(dst=step * half[Buffer.ACC], src=step * half[Buffer.INP],
                         wgt=weights * half[Buffer.WGT]) for weights in (0, 1) for step in (0, 1)]
    code: list[Instruction] = [Load(buffer=Buffer.UOP, segment=MICRO_OPS, shape=(1, 1, 4))]
    for number, block in enumerate(range(0, blocks, group)):
        code.append(Load(buffer=Buffer.WGT, segment=RIGHT, sram=number % 2 * half[Buffer.WGT],
                         offset=block * depth * config.tile_bytes(Buffer.WGT),
                         shape=(1, 1, group * depth)))
        for step, row in enumerate(range(0, size, rows)):
            code += [
                Load(buffer=Buffer.INP, segment=LEFT, sram=step % 2 * half[Buffer.INP],
                     offset=row * size, shape=(1, 1, rows * depth)),
                Gemm(flags=GemmFlags.START | GemmFlags.FIRST_INNER,
                     uop=number % 2 * 2 + step % 2, loops=(rows, group, depth),
                     dst_stride=(group, 1, 0), src_stride=(depth, 0, 1),
                     wgt_stride=(0, depth, 1)),
                Store(buffer=Buffer.ACC, segment=RESULT, sram=step % 2 * half[Buffer.ACC],
                      offset=(row * size + block * config.block_out) * ACC_BYTES,
                      shape=(1, rows, group), sram_pitch=(0, group),
                      stride=(0, size * ACC_BYTES))]
    tiles = right.T.reshape(blocks, config.block_out, depth, config.block_in).swapaxes(1, 2)
    return with_tokens(Program(config, encode([*code, Sync()]), (
        _constant("micro_ops", encode_micro_ops(micro_ops).view(np.uint8)),
        Segment("left", size * size),
        _constant("right", pack(tiles, Buffer.WGT, config).ravel()),
        Segment("result", size * size * ACC_BYTES, Access.WRITE)), (
        Tensor("left", "left", 0, (size, size)),
        Tensor("result", "result", 0, (size, size), "int32"))))


def _constant(name: str, data: npt.NDArray[np.uint8]) -> Segment:
    return Segment(name, len(data), Access.READ, data)


def measure(options: argparse.Namespace) -> Outcome:
    config, size = load_config(options.config), options.size
    rng = np.random.default_rng(0)
    left, right = rng.integers(-128, 128, (2, size, size), np.int8)
    machine = Functional(matmul(config, size, right))
    machine.memory.write_tensor("left", left)
    machine.run()                                   # compiles, or reads the compiled kernel
    ours, counts = best_of(machine.run)
    # NumPy is four times as fast when the right matrix lies column by column.
    wide_left, wide_right = left.astype(np.int32), np.asfortranarray(right.astype(np.int32))
    theirs, expected = best_of(lambda: wide_left @ wide_right)
    if not np.array_equal(machine.memory.read_tensor("result"), expected):
        sys.exit("the simulator's product differs from NumPy's")
    rows = [{"what": what, "seconds": seconds, "macs_per_second": size**3 / seconds,
             "relative": theirs / seconds}
            for what, seconds in (("functional simulator", ours), ("NumPy int32 matmul", theirs))]
    return Outcome(
        benchmark="functional", title=f"{size} × {size} × {size} int8 matrix product", rows=rows,
        columns=(Column("what", ""), Column("seconds", "time", quantity("s")),
                 Column("macs_per_second", "speed", quantity("MAC/s")),
                 Column("relative", "against NumPy", factor)),
        facts={"config": options.config, "size": size, "equal": True,
               "instructions": sum(counts.instructions.values()),
               "tile_products": counts.tile_products})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", default="base", help="a preset or a file (default: base)")
    parser.add_argument("--size", type=int, default=1024, help="of the matrices (default: 1024)")


if __name__ == "__main__":
    main(measure, __doc__ or "", arguments)
