"""Flows: how a configuration becomes a bitstream for one kind of boards.

To add one, write a module with a `FLOW` and name it in `MODULES`:

    def plan(board: Board, config: Config) -> Build:
        return Build(
            steps=(
                Step(name="gateware", doing="writing the design", outputs=("top.v",),
                     work=Call("microtron.boards.soc.generate:write",
                               {"board": board.name, "config": config.to_dict()})),
                Step(name="synthesis", doing="synthesizing: minutes", inputs=("top.v",),
                     outputs=("top.json",), work=Command(tools.YOSYS, ("-q", "synthesis.ys"))),
                …),
            product="top.bit", timing="timing.json", clock="sys")

    FLOW = Flow(name="ecp5", needs=lambda board: (tools.YOSYS, …), plan=plan)

A plan is pure: it neither runs nor asks for tools, so that `--dry-run` works everywhere. Steps run
in the order given, each in a folder of its own with its inputs (steps.py). The frame does the rest:
it runs them with cache and progress, refuses a configuration that cannot fit, and writes the
report, the driver's configuration and the command that loads the product. Nothing that takes long
to import (Amaranth, LiteX) is imported at the top of a flow's module; `Call` imports it in another
process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from ...isa.config import Config
from ..facts.board import Board
from . import tools
from .steps import Step
from .tools import Need

# By the name that a board's file has. Imported when asked for: flows are built on this module.
MODULES = {"ecp5": "ecp5.ecp5_flow", "gowin": "gowin.gowin_flow", "zynq": "zynq.zynq_flow",
           "vivado": "vendor.vivado", "quartus": "vendor.quartus"}


@dataclass(frozen=True, kw_only=True)
class Build:
    """What a flow is going to do."""

    steps: tuple[Step, ...]
    product: str                # the file that it is all for: a bitstream, or a vendor's project
    timing: str | None = None   # nextpnr's --report
    features: str = ""          # what is set in the bitstream, by name: FASM
    clock: str = ""             # part of the name of the clock that counts, if there are several
    chosen: str = ""            # the file with the clock that was chosen, if a step chooses one
    loads: str = ""             # what is loaded, where the product is only what makes it
    system: str = ""            # the file with the system's address map, if a step writes one
    facts: Mapping[str, object] = field(default_factory=dict)   # for the driver: device.json


@dataclass(frozen=True, kw_only=True)
class Flow:
    name: str
    needs: Callable[[Board], tuple[Need, ...]]      # what must be installed to build for a board
    plan: Callable[[Board, Config], Build]
    makes_bitstream: bool = True    # else a project for the vendor's tools


def flow_of(board: Board) -> Flow:
    """The flow that builds for a board."""
    flow: Flow = import_module(f"microtron.boards.{MODULES[board.flow]}").FLOW
    return flow


def why_unavailable(board: Board) -> str | None:
    """Why nothing can be built for a board on this machine, and what to install; None if it can."""
    return next(filter(None, map(tools.explain_missing, flow_of(board).needs(board))), None)
