"""The accelerator in a LiteX system as a design (soc/)."""

from __future__ import annotations

from ..isa.config import Config
from .board import Board
from .soc.steps import PINS, TOP, gateware, memories_of, verilog_of
from .synthesis import Design


def system_design(board: Board, config: Config) -> Design:
    verilog = verilog_of(board)
    return Design(gateware(board, config), f"read_verilog {' '.join(verilog)}",
                  (*verilog, *memories_of(board)), TOP, PINS[board.flow])
