"""The soft processors that a board's file may name: variants of VexRiscv, all of them RV32IM."""

from __future__ import annotations

from dataclasses import dataclass

from .board import Board
from .facts import BoardError


@dataclass(frozen=True)
class Processor:
    variant: str            # as LiteX calls it
    file: str               # its Verilog
    data_cache: bool        # whether it has one, which has to be emptied


PROCESSORS = {
    "VexRiscv": Processor("standard", "VexRiscv.v", data_cache=True),
    # A third of the registers less; multiplies and shifts bit by bit.
    "VexRiscv Lite": Processor("lite", "VexRiscv_Lite.v", data_cache=False),
}


def processor_of(board: Board) -> Processor:
    if board.cpu not in PROCESSORS:
        raise BoardError(f"{board.name}: cpu is {board.cpu!r}, but a soft one is "
                         f"{' or '.join(PROCESSORS)}")
    return PROCESSORS[board.cpu]
