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


@lru_cache(REMEMBERED)
def sequences(program: Program) -> dict[int, Array]:
    """For each gemm and window, by its position, the micro-ops that it runs, counted in DRAM."""
    on_chip = np.zeros(program.config.tiles(Buffer.UOP), np.int64)
    loads, gemms, windows = (program.code.view(kind.dtype()) for kind in (Load, Gemm, Window))
    found: dict[int, Array] = {}
    for position, opcode in enumerate(program.code["opcode"].tolist()):
        if opcode == Load.opcode and loads["buffer"][position] == Buffer.UOP:
            load = loads[position]
            first, count = int(load["sram"]), int(load["shape"][2])
            begin = int(load["offset"]) // MicroOp.size
            on_chip[first:first + count] = np.arange(begin, begin + count)
        elif opcode == Gemm.opcode:
            first = int(gemms["uop"][position])
            found[position] = on_chip[first:first + int(gemms["count"][position])].copy()
        elif opcode == Window.opcode:
            first = int(windows["uop"][position])
            found[position] = on_chip[first:first + 1].copy()
    return found


@lru_cache(REMEMBERED)
def modes(program: Program) -> Array:
    """How each micro-op in DRAM is used: flags of the gemms that run it, which all agree; a window
    is depthwise."""
    size = next((each.size for each in program.segments if each.name == NAME), 0)
    found = np.zeros(size // MicroOp.size, np.int64)
    for position, used in sequences(program).items():
        found[used] = flags_at(program.code, position)
    return found


def flags_at(code: Stream, position: int) -> int:
    """Of a gemm or window, those that say what its micro-ops mean."""
    if code["opcode"][position] == Window.opcode:
        flags = int(code.view(Window.dtype())["flags"][position])
        return GemmFlags.DEPTHWISE | flags & GemmFlags.OUT
    flags = int(code.view(Gemm.dtype())["flags"][position])
    return flags & (GemmFlags.DEPTHWISE | GemmFlags.OUT)


def source_unit(config: Config, flags: int) -> Fraction:
    """What an index of activations counts where they are results, in tiles of out: activation
    tiles, or groups of lanes."""
    groups = 1 if flags & GemmFlags.DEPTHWISE else config.inp_groups
    return Fraction(groups, config.acc_groups)


def micro_ops_of(program: Program) -> Stream:
    """All of them, as they are in DRAM."""
    data = next((each.data for each in program.segments if each.name == NAME), None)
    return np.frombuffer(b"" if data is None else data.tobytes(), MicroOp.dtype())
