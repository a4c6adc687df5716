"""The accelerator in a LiteX system as a design (soc/)."""

from __future__ import annotations

from ..isa.config import Config
from .board import Board
from .soc.steps import FACTS, PINS, TOP, VERILOG, gateware
from .synthesis import Design


def system_design(board: Board, config: Config) -> Design:
    steps, pins = gateware(board, config), PINS[board.flow]
    others = (name for step in steps for name in step.outputs
              if name not in (*VERILOG, pins, FACTS))       # what memories hold
    return Design(steps, f"read_verilog {' '.join(VERILOG)}", (*VERILOG, *others), TOP, pins)
