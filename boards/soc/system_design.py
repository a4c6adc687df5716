"""The accelerator in a LiteX system as a design (soc/)."""

from __future__ import annotations

from ...isa.config import Config
from ..build.synthesis import Design
from ..facts.board import Board
from ..facts.processors import soft_processor
from .file_names import FACTS, PINS, TOP
from .system_steps import gateware_steps, memory_files, verilog_files

# The processor asks for block RAM for its 32 registers, two blocks of an ECP5. In LUT RAM they take
# 192 LUTs, and arrive sooner. With `slim` and Ethernet an LFE5U-85F lacks one block.
REGISTER_FILE = 'setattr -set ram_style "distributed" VexRiscv/m:RegFilePlugin_regFile'


def system_design(board: Board, config: Config) -> Design:
    verilog = verilog_files(board)
    read = f"read_verilog {' '.join(verilog)}"
    if board.flow == "ecp5" and soft_processor(board):
        read += f"\n{REGISTER_FILE}"
    return Design(gateware_steps(board, config), read,
                  (*verilog, *memory_files(board)), TOP, PINS[board.flow], FACTS)
