"""Counts the work of a program, which has no branches, so that every complete run does the same."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..isa.config import Config
from ..isa.instructions import (
    TABLE_WORDS,
    WINDOW_TAPS,
    Alu,
    AluI,
    Buffer,
    Gemm,
    GemmFlags,
    Instruction,
    Load,
    Requantize,
    Store,
    Table,
    Window,
)
from ..isa.stream import Stream


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The work of one run."""

    instructions: dict[str, int]        # by mnemonic
    tile_products: int                  # micro-ops executed by gemm, iterations of windows
    macs: int                           # multiplications in them; fewer if depthwise
    alu_vectors: int                    # tiles written by alu, alui and requantize, words of tables
    bytes_loaded: dict[str, int]        # from DRAM, by buffer
    bytes_stored: dict[str, int]
    most_tokens: dict[str, int]         # highest value of each counter used, as `load → gemm`

    def to_dict(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def count(code: Stream, config: Config, most_tokens: dict[str, int]) -> Counts:
    """The work of a stream that runs to its end."""
    opcodes = np.ascontiguousarray(code["opcode"])
    numbers = np.bincount(opcodes, minlength=1 << 8).tolist()

    def words_of(kind: type[Instruction]) -> Stream:
        words: Stream = code.view(kind.dtype())[opcodes == int(kind.opcode)]
        return words

    gemms = words_of(Gemm)
    products = gemms["count"] * _iterations(gemms)
    by_lane = total(products[gemms["flags"] & int(GemmFlags.DEPTHWISE) != 0])
    dense = total(products) - by_lane
    windows = words_of(Window)
    by_lane_in_windows = WINDOW_TAPS * total(window_sums(windows))
    return Counts(
        instructions={kind.mnemonic(): numbers[kind.opcode] for kind in config.instructions},
        tile_products=dense + by_lane + total(_iterations(windows)),
        macs=config.batch * ((by_lane + by_lane_in_windows) * config.depthwise_lanes
                             + dense * config.block_in * config.block_out),
        alu_vectors=TABLE_WORDS * numbers[Table.opcode] + sum(
            total(_iterations(words_of(kind))) for kind in (Alu, AluI, Requantize)
            if numbers[kind.opcode]),
        bytes_loaded=_bytes(words_of(Load), config), bytes_stored=_bytes(words_of(Store), config),
        most_tokens=most_tokens)


Numbers = npt.NDArray[np.uint64]


def total(numbers: Numbers) -> int:
    """The sum, even if it needs more than 64 bits."""
    rough = numbers.sum(dtype=np.float64)
    return int(rough) if rough < EXACT else sum(numbers.tolist())


EXACT = 1 << 53             # below it, floating-point sums of integers are exact


def _iterations(words: Stream) -> Numbers:
    """Numbers of 48 bits, which leaves room to multiply by the 16 bits of a gemm's count."""
    iterations: Numbers = words["loops"].astype(np.uint64).prod(1)
    return iterations


def window_sums(words: Stream) -> Numbers:
    """The number of sums of each window."""
    loops = words["loops"].astype(np.uint64)
    fewest = np.uint64(WINDOW_TAPS - 1)
    loops[:, 2] = np.maximum(loops[:, 2], fewest) - fewest
    sums: Numbers = loops.prod(1)
    return sums


def _bytes(words: Stream, config: Config) -> dict[str, int]:
    tiles, buffers = words["shape"].astype(np.uint64).prod(1), np.ascontiguousarray(words["buffer"])
    moved = {Buffer(buffer): total(tiles[buffers == buffer])
             for buffer in np.flatnonzero(np.bincount(buffers)).tolist() if buffer in BUFFERS}
    return {buffer.name.lower(): number * config.tile_bytes(buffer)
            for buffer, number in moved.items() if number}


BUFFERS = frozenset(map(int, Buffer))
