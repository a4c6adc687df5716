"""What a program does, counted: it has no branches, so every complete run does the same."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..isa.config import Config
from ..isa.instructions import ISA, Alu, AluI, Buffer, Gemm, GemmFlags, Load, Requantize, Store
from ..isa.stream import Stream, positions_of


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The work of one run."""

    instructions: dict[str, int]        # by mnemonic
    tile_products: int                  # micro-ops executed by gemm
    macs: int                           # multiplications in them; fewer where depthwise
    alu_vectors: int                    # tiles written by alu, alui and requantize
    bytes_loaded: dict[str, int]        # from DRAM, by buffer
    bytes_stored: dict[str, int]
    most_tokens: dict[str, int]         # highest value of each counter used, as `load → gemm`

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def count(code: Stream, config: Config, most_tokens: dict[str, int]) -> Counts:
    """The work in a stream that ran to its end."""
    _, gemms = positions_of(code, Gemm)
    products = gemms["count"] * _iterations(gemms)
    lanes = np.where(gemms["flags"] & GemmFlags.DEPTHWISE, config.depthwise_lanes,
                     config.block_in * config.block_out)
    return Counts(
        instructions={kind.mnemonic(): len(positions_of(code, kind)[0]) for kind in ISA},
        tile_products=int(products.sum()),
        macs=int((products * lanes).sum()) * config.batch,
        alu_vectors=sum(int(_iterations(positions_of(code, kind)[1]).sum())
                        for kind in (Alu, AluI, Requantize)),
        bytes_loaded=_bytes(positions_of(code, Load)[1], config),
        bytes_stored=_bytes(positions_of(code, Store)[1], config),
        most_tokens=most_tokens)


def _iterations(words: Stream) -> Any:
    return words["loops"].astype(np.int64).prod(1)


def _bytes(words: Stream, config: Config) -> dict[str, int]:
    tiles = words["shape"].astype(np.int64).prod(1)
    moved = {buffer: int(tiles[words["buffer"] == buffer].sum()) for buffer in Buffer}
    return {buffer.name.lower(): number * config.tile_bytes(buffer)
            for buffer, number in moved.items() if number}
