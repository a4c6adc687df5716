"""Which micro-ops of its program each gemm and window runs."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from ....isa.config import Config
from ....isa.instructions import Buffer, Gemm, GemmFlags, Load, MicroOp, Window
from ....isa.program import Program
from ....isa.stream import Stream
from ...graph.types import Array

NAME = "micro_ops"          # of their segment
REMEMBERED = 128            # programs of layers
DEPTHWISE, OUT = int(GemmFlags.DEPTHWISE), int(GemmFlags.OUT)


@lru_cache(REMEMBERED)
def sequences(program: Program) -> dict[int, Array]:
    """For each gemm and window, by its position, the micro-ops that it runs, counted in DRAM."""
    on_chip = np.zeros(program.config.tiles(Buffer.UOP), np.int64)
    opcodes = program.code["opcode"]
    loads, gemms, windows = (program.code.view(kind.dtype()) for kind in (Load, Gemm, Window))
    fills = (opcodes == Load.opcode) & (loads["buffer"] == Buffer.UOP)
    multiplies = (opcodes == Gemm.opcode) | (opcodes == Window.opcode)
    counts = np.where(opcodes == Gemm.opcode, gemms["count"], 1)
    firsts = np.where(opcodes == Gemm.opcode, gemms["uop"], windows["uop"])
    found: dict[int, Array] = {}
    for position in np.flatnonzero(fills | multiplies).tolist():
        if multiplies[position]:
            first = int(firsts[position])
            found[position] = on_chip[first:first + int(counts[position])].copy()
            continue
        load = loads[position]
        first, count = int(load["sram"]), int(load["shape"][2])
        begin = int(load["offset"]) // MicroOp.size
        on_chip[first:first + count] = np.arange(begin, begin + count)
    return found


@lru_cache(REMEMBERED)
def modes(program: Program) -> Array:
    """How each micro-op in DRAM is used: flags of the gemms that run it, which all agree; a window
    is depthwise."""
    size = next((each.size for each in program.segments if each.name == NAME), 0)
    found, flags = np.zeros(size // MicroOp.size, np.int64), flags_of(program)
    for position, used in sequences(program).items():
        found[used] = flags[position]
    return found


@lru_cache(REMEMBERED)
def flags_of(program: Program) -> list[int]:
    """For each gemm and window, by its position, the flags that say what its micro-ops mean."""
    code = program.code
    windows, gemms = (code.view(kind.dtype())["flags"] for kind in (Window, Gemm))
    flags: list[int] = np.where(code["opcode"] == int(Window.opcode), DEPTHWISE | windows & OUT,
                                gemms & (DEPTHWISE | OUT)).tolist()
    return flags


def source_unit(config: Config, flags: int) -> Fraction:
    """What an index of activations counts where they are results, in tiles of out: activation
    tiles, or groups of lanes."""
    groups = 1 if flags & GemmFlags.DEPTHWISE else config.inp_groups
    return Fraction(groups, config.acc_groups)


def micro_ops_of(program: Program) -> Stream:
    """All of them, as they are in DRAM."""
    data = next((each.data for each in program.segments if each.name == NAME), None)
    return np.frombuffer(b"" if data is None else data.tobytes(), MicroOp.dtype())
