"""The accelerator in a LiteX system as a design (soc/)."""

from __future__ import annotations

from ...isa.config import Config
from ..build.synthesis import Design
from ..facts.board import Board
from .file_names import FACTS, PINS, TOP
from .system_steps import gateware, memories_of, verilog_of


def system_design(board: Board, config: Config) -> Design:
    verilog = verilog_of(board)
    return Design(gateware(board, config), f"read_verilog {' '.join(verilog)}",
                  (*verilog, *memories_of(board)), TOP, PINS[board.flow], FACTS)
