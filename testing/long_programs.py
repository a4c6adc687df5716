"""Random programs whose instructions take long: what a simulator that skips must get right.

Tokens keep their order, so they end; but they race, so only their time has a meaning. They do not
race for micro-ops, which time depends on: a gemm that has none to wait for remains as it is.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import MicrotronError
from ..isa.config import Config
from ..isa.instructions import (
    WINDOW_ROWS,
    Alu,
    AluI,
    Buffer,
    Gemm,
    Instruction,
    Load,
    Requantize,
    Store,
    Table,
    Window,
)
from ..isa.program import Program
from ..isa.stream import decode, encode
from ..isa.verification.bounds import check

ATTEMPTS = 8
SHARE = 0.5                 # of the instructions that become longer, if they can
Triple = tuple[int, int, int]


def lengthen(program: Program, rng: random.Random) -> Program:
    """The program with longer loops and larger boxes, elsewhere, within the same bounds."""
    instructions = decode(program.code)
    uops = _micro_ops(program, instructions)
    for position, instruction in enumerate(instructions):
        if rng.random() > SHARE:
            continue
        for _ in range(ATTEMPTS):
            try:
                longer = _longer(instruction, program.config, rng)
                check(longer, program.config, program.segments, uops)
            except MicrotronError:
                continue            # out of bounds: another one
            instructions[position] = longer
            break
    return replace(program, code=encode(instructions))


def _micro_ops(program: Program, instructions: list[Instruction]) -> npt.NDArray[np.uint16]:
    """The scratchpad after the program's first instruction, which fills it."""
    uops = np.zeros((program.config.tiles(Buffer.UOP), 4), np.uint16)
    first, data = instructions[0], program.segments[0].data
    assert isinstance(first, Load)
    assert first.buffer == Buffer.UOP
    assert data is not None
    count = first.shape[2]
    uops[first.sram:first.sram + count] = data[:8 * count].view("<u2").reshape(-1, 4)
    return uops


def _longer(instruction: Instruction, config: Config, rng: random.Random) -> Instruction:
    match instruction:
        case Gemm() if instruction.count and all(instruction.loops):
            return replace(instruction, loops=_loops(rng), dst_stride=_stride(rng),
                           src_stride=_stride(rng), wgt_stride=_stride(rng))
        case Window() if all(instruction.loops):
            outer, middle, inner = (WINDOW_ROWS * each for each in _stride(rng))
            return replace(instruction, loops=_loops(rng), dst_stride=_stride(rng),
                           src_stride=_stride(rng), wgt_stride=(outer, middle, inner))
        case Alu():
            return replace(instruction, loops=_loops(rng), dst_stride=_stride(rng),
                           rhs_stride=_stride(rng), **_bases(config, rng, "dst", "lhs", "rhs"))
        case AluI():
            return replace(instruction, loops=_loops(rng), dst_stride=_stride(rng),
                           src_stride=_stride(rng), **_bases(config, rng, "dst", "src"))
        case Requantize():
            return replace(instruction, loops=_loops(rng), dst_stride=_stride(rng),
                           src_stride=_stride(rng), **_bases(config, rng, "dst", "src", "params"))
        case Table():
            return replace(instruction, **_bases(config, rng, "src"))
        case Load() if instruction.buffer != Buffer.UOP:
            top, bottom, left, right = rng.choices((0, 0, 1, 20), k=4)
            return replace(instruction, **_box(instruction.buffer, config, rng),
                           pad=(top, bottom, left, right), sram_pitch=rng.choice((0, 1, 100)))
        case Store():
            return replace(instruction, **_box(instruction.buffer, config, rng),
                           sram_pitch=(rng.choice((0, 1, 100)), rng.choice((0, 1, 30))))
    return instruction


def _loops(rng: random.Random) -> Triple:
    counts = [rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 5, 20)),
              rng.choice((20, 60, 200, 500))]
    rng.shuffle(counts)
    outer, middle, inner = counts
    return outer, middle, inner


def _stride(rng: random.Random) -> Triple:
    outer, middle, inner = rng.choices((0, 0, 1, 1, -1, 2, 3), k=3)
    return outer, middle, inner


def _bases(config: Config, rng: random.Random, *names: str) -> dict[str, Any]:
    """Near the ends of banks, where engines begin and cease to meet."""
    bank, banks = config.acc_bank_tiles, config.acc_banks
    return {name: max(0, rng.randrange(banks) * bank + rng.choice((-40, -3, 0, 3, bank // 2)))
            for name in names}


def _box(buffer: Buffer, config: Config, rng: random.Random) -> dict[str, Any]:
    tile, tiles = config.tile_bytes(buffer), config.tiles(buffer)
    return {"shape": (rng.choice((1, 1, 2)), rng.choice((1, 1, 2, 8)),
                      rng.choice((5, 12, 40, 100, 200))),
            "offset": rng.randrange(40) * tile,
            "stride": (rng.randint(0, 8) * tile, rng.randint(0, 12) * tile),
            "sram": rng.choice((0, rng.randrange(tiles), tiles // config.acc_banks))}
