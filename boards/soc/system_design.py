"""The accelerator in a LiteX system as a design (soc/)."""

from __future__ import annotations

from ...isa.config import Config
from ..build.synthesis import Design
from ..facts.board import Board
from .file_names import FACTS, PINS, TOP
from .system_steps import gateware_steps, memory_files, verilog_files


def system_design(board: Board, config: Config) -> Design:
    verilog = verilog_files(board)
    return Design(gateware_steps(board, config), f"read_verilog {' '.join(verilog)}",
                  (*verilog, *memory_files(board)), TOP, PINS[board.flow], FACTS)
