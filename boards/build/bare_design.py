"""The bare accelerator as a design: for a part without memory around it (bare.py)."""

from __future__ import annotations

from collections.abc import Callable

from ...isa.config import Config
from ..facts.board import Board, Wire
from ..facts.errors import BoardError
from .steps import Call, Step, Write
from .synthesis import Design

PORTS = ("clk", "rst", "data_in", "load", "data_out")


def bare_design(board: Board, config: Config, pins: str,
                constraints: Callable[[dict[str, Wire]], str], *,
                everywhere: bool = False) -> Design:
    """`constraints` writes the file `pins`; if `everywhere`, every port must have a place."""
    wires = {name: wire for name, wire in board.pins.get("bare", {}).items()}
    if board.clock.pin:
        wires["clk"] = Wire((board.clock.pin,), board.clock.standard, ())
    for name in wires:
        if name not in PORTS:
            raise BoardError(f"{board.name}: pins: bare: there is no port {name!r}; there are "
                             f"{', '.join(PORTS)}")
    missing = [port for port in PORTS if port not in wires]
    if everywhere and missing:
        raise BoardError(f"{board.name}: pins: bare: {missing[0]} is missing")
    steps = (
        Step(name="gateware", doing="writing the accelerator", outputs=("top.il",),
             work=Call("microtron.boards.build.bare:write_rtlil",
                       {"config": config.to_dict(), "family": board.flow,
                        "multipliers": board.part.resources["dsp"]})),
        Step(name="pins", doing="writing the constraints", outputs=(pins,),
             work=Write({pins: constraints(wires)})))
    # Yosys takes a memory and the register behind it as one only with `no_rw_check`; a design that
    # has been through Verilog has them apart.
    return Design(steps, "read_rtlil top.il\nmemory_nordff", ("top.il",), "top", pins)
