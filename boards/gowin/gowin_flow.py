"""Gowin GW2A: Yosys, nextpnr-himbaechel-gowin and gowin_pack, around a LiteX system or bare."""

from __future__ import annotations

import re

from ...isa.config import Config
from ..build import bitstream, tools
from ..build.bare_design import bare_design
from ..build.constraints import format_cst
from ..build.flow import Build, Flow
from ..build.steps import Call, Command, Step
from ..build.synthesis import AREA, CELLS, NETLIST, Design, resource_arguments, synthesis_steps
from ..facts.board import Board
from ..facts.errors import BoardError
from ..soc.system_design import system_design
from ..soc.system_steps import system_needs

# GW2AR is the die of GW2A with memory in its package; C is the revision of that die, which parts of
# grade C8 have.
PART = re.compile(r"GW2AR?-LV(18|55)[A-Z]+\d+C\d/I\d")

PACKED = "packed.json"          # the netlist that is placed
# Registers with different enables or resets do not share a slice, and the placer finds no place for
# the last of some hundred kinds. So LUTs do what fewer registers than these have in common.
SHARED = 12
REGISTERS = (                   # passes of Yosys, in place of `map_ffs` of `synth_gowin`
    "opt_clean",
    "dfflegalize -cell $_DFF_?_ 0 -cell $_DFFE_?P_ 0 -cell $_SDFF_?P?_ r -cell $_SDFFE_?P?P_ r "
    "-cell $_DFF_?P?_ r -cell $_DFFE_?P?P_ r -cell $_DLATCH_?_ x -cell $_DLATCH_?P?_ x "
    f"-mince {SHARED} -minsrst {SHARED}",
    "techmap -map +/gowin/cells_map.v", "techmap -map +/gowin/cells_latch.v",
    "opt_expr -mux_undef", "simplemap")
# Without muxes behind LUTs: a fifth less of them, and every LUT counts on these parts.
SYNTHESIS = "synth_gowin -nowidelut"


def die_name(board: Board) -> str:
    """How the tools call the die."""
    match = PART.fullmatch(board.part.name)
    if match is None:
        raise BoardError(f"{board.name}: part is {board.part.name!r}, but must be as "
                         "GW2AR-LV18QN88C8/I7")
    return f"GW2A-{match[1]}C"


def plan_back_end(board: Board, design: Design) -> Build:
    """The steps from a design to its bitstream."""
    product = f"{board.name}.fs"
    steps = (
        *synthesis_steps(board, design, SYNTHESIS, REGISTERS, (
            Step(name="netlist", doing="packing registers", inputs=(NETLIST,), outputs=(PACKED,),
                 work=Call("microtron.boards.gowin.pack_into_blocks:pack_registers_in_file", {
                     "source": NETLIST, "to": PACKED, "top": design.top})),
            Step(name="fit", doing="counting cells", inputs=(CELLS, PACKED), outputs=(AREA,),
                 work=Call("microtron.boards.gowin.lut_sites:check_fit", {
                     "netlist": PACKED, "top": design.top, **resource_arguments(board)})))),
        Step(name="route", doing="placing and routing: minutes, or an hour if large",
             inputs=(PACKED, design.pins, AREA), outputs=("placed.json", "timing.json"),
             work=Command(tools.NEXTPNR_GOWIN, (
                 "--device", board.part.name, "--vopt", f"family={die_name(board)}",
                 "--vopt", f"cst={design.pins}", "--json", PACKED, "--write", "placed.json",
                 "--report", "timing.json", "--freq", f"{board.clock.system_hz / 1e6:g}",
                 "--timing-allow-fail"))),
        Step(name="pack", doing="writing the bitstream", inputs=("placed.json",),
             outputs=(product,), work=Command(tools.GOWIN_PACK, (
                 "-d", die_name(board), "-o", product, "placed.json"))),
        Step(name="check", doing="reading the bitstream back", inputs=(product,),
             outputs=(bitstream.REPORT,),
             work=Call("microtron.boards.gowin.gowin_bitstream:check", {
                 "name": product, "idcode": board.part.idcode})))
    return Build(steps=steps, product=product, timing="timing.json", system=design.system)


def plan(board: Board, config: Config) -> Build:
    if board.memory.kind == "none":
        return plan_back_end(board, bare_design(board, config, "pins.cst", format_cst,
                                           everywhere=True))
    return plan_back_end(board, system_design(board, config))


FLOW = Flow(name="gowin", plan=plan, needs=lambda board: (
    tools.AMARANTH, tools.YOSYS, tools.NEXTPNR_GOWIN, tools.GOWIN_PACK, *system_needs(board)))
