"""The soft processors that a board's file may name: variants of VexRiscv, all of them RV32IM."""

from __future__ import annotations

from dataclasses import dataclass

from .board import Board
from .errors import BoardError


@dataclass(frozen=True)
class Processor:
    variant: str            # as LiteX calls it
    file: str               # its Verilog
    data_cache: bool        # whether it has one, which has to be emptied


NONE = "none"       # then a host has the bus, over the serial line: where there is no room for one
PROCESSORS = {
    "VexRiscv": Processor("standard", "VexRiscv.v", data_cache=True),
    # A third of the registers less; multiplies and shifts bit by bit.
    "VexRiscv Lite": Processor("lite", "VexRiscv_Lite.v", data_cache=False),
}


def soft_processor(board: Board) -> Processor | None:
    """What a system has; None if the board's file says so."""
    if board.cpu != NONE and board.cpu not in PROCESSORS:
        raise BoardError(f"{board.name}: cpu is {board.cpu!r}, but a soft one is "
                         f"{', '.join(PROCESSORS)} or {NONE}")
    return PROCESSORS.get(board.cpu)


def processor_of(board: Board) -> Processor:
    """The processor that software is for."""
    found = soft_processor(board)
    if found is None:
        raise BoardError(f"{board.name}: its system has no processor; a host runs networks on it: "
                         f"--device board:{board.name}@/dev/ttyUSB0")
    return found
