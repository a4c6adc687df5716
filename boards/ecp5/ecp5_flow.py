"""Lattice ECP5: Yosys, nextpnr-ecp5 and ecppack, around a LiteX system or a bare accelerator."""

from __future__ import annotations

import re

from ...isa.config import Config
from ..build import bitstream, tools
from ..build.bare_design import bare_design
from ..build.constraints import format_lpf
from ..build.flow import Build, Flow
from ..build.steps import Call, Command, Step
from ..build.synthesis import AREA, NETLIST, Design, synthesis_steps
from ..facts.board import Board
from ..facts.errors import BoardError
from ..soc.system_design import system_design
from ..soc.system_steps import system_needs
from .set_clock import CLOCK

PART = re.compile(r"LFE5(U|UM|UM5G)-(12|25|45|85)F-([678])(BG256|BG381|BG554|BG756|MG285)\w")
PREPARED = "prepared.json"          # the netlist that is placed
ROUTABLE = "routable.json"          # the same with settings of the router
TIMING, CONFIG = "timing.json", "design.config"
CHOSEN = "clock.json"               # the accelerator's clock
# Of systems with two clocks. After some ten rounds with nextpnr's own growth of prices, a free wire
# anywhere is cheaper than one in use beside the sink, so what conflicts in the last rounds is led
# far around (docs/measured.md). `slim` on the ECPIX-5 ends after 52 rounds with these; `small` on
# the ULX3S, which ends with nextpnr's own, does not.
ROUTER = {"initCurrCongWeight": "1.0", "currCongWeightMult": "1.0"}     # 0.5 and 2.0 unless set
PACKAGES = {"BG": "CABGA", "MG": "CSFBGA"}


def _parse_part(board: Board) -> tuple[str, str, str, str]:
    """Its kind, thousands of LUTs, speed grade and package."""
    match = PART.fullmatch(board.part.name)
    if match is None:
        raise BoardError(f"{board.name}: part is {board.part.name!r}, but must be as "
                         "LFE5U-85F-6BG381C")
    kind, size, speed, package = match.groups()
    return kind, size, speed, package


def nextpnr_options(board: Board) -> tuple[str, ...]:
    """How nextpnr is told about the part."""
    kind, size, speed, package = _parse_part(board)
    prefix = {"U": "", "UM": "um-", "UM5G": "um5g-"}[kind]
    return (f"--{prefix}{size}k", "--package", PACKAGES[package[:2]] + package[2:],
            "--speed", speed)


def plan_back_end(board: Board, design: Design) -> Build:
    """The steps from a design to its bitstream."""
    product = f"{board.name}.bit"
    steps = (
        *synthesis_steps(board, design, "synth_ecp5", luts="abc -lut 4:7"),
        Step(name="netlist", doing="running passes over the netlist",
             inputs=(NETLIST,), outputs=(PREPARED,),
             work=Call("microtron.boards.ecp5.netlist_passes:run_passes_on_file", {
                 "source": NETLIST, "to": PREPARED, "die": _parse_part(board)[1]})),
        *_routes(board, design.pins),
        Step(name="pack", doing="writing the bitstream", inputs=(CONFIG,),
             outputs=(product,), work=Command(tools.ECPPACK, (
                 "--compress", "--input", CONFIG, "--bit", product))),
        Step(name="check", doing="reading the bitstream back", inputs=(product,),
             outputs=(bitstream.REPORT,),
             work=Call("microtron.boards.ecp5.ecp5_bitstream:check", {
                 "name": product, "idcode": board.part.idcode})))
    clock, chosen = (CLOCK, CHOSEN) if board.clock.is_crossed else ("", "")
    return Build(steps=steps, product=product, timing=TIMING, system=design.system,
                 clock=clock, chosen=chosen)


def _routes(board: Board, pins: str) -> tuple[Step, ...]:
    """Place and route; where the accelerator has a clock of its own, it gets what that reached, and
    the router has settings that were tried with such a system."""
    clock = board.clock
    netlist, routed = (ROUTABLE, "routed.config") if clock.is_crossed else (PREPARED, CONFIG)
    route = Step(
        name="route", doing="placing and routing: minutes, or an hour if large",
        inputs=(netlist, pins, AREA), outputs=(routed, TIMING),
        work=Command(tools.NEXTPNR_ECP5, (
            *nextpnr_options(board), "--json", netlist, "--lpf", pins,
            "--lpf-allow-unconstrained", "--textcfg", routed, "--report", TIMING, "--freq",
            f"{clock.system_hz / 1e6:g}",
            # The static placer takes a third less wire on whole systems; without it, the router
            # does not come to an end on some.
            "--timing-allow-fail", "--placer", "static", "--router", "router2")))
    if not clock.is_crossed:
        return (route,)
    settings = Step(
        name="settings", doing="setting the router", inputs=(PREPARED,), outputs=(ROUTABLE,),
        work=Call("microtron.boards.build.router_settings:write_settings", {
            "source": PREPARED, "to": ROUTABLE, "settings": ROUTER}))
    return (settings, route, Step(
        name="clock", doing="setting the accelerator's clock", inputs=(TIMING, routed),
        outputs=(CONFIG, CHOSEN), work=Call("microtron.boards.ecp5.set_clock:set_clock", {
            "timing": TIMING, "config": routed, "oscillator_hz": clock.hz,
            "wanted_hz": clock.accelerator_hz, "to": CONFIG, "chosen": CHOSEN})))


def plan(board: Board, config: Config) -> Build:
    if board.memory.kind == "none":
        return plan_back_end(board, bare_design(board, config, "pins.lpf", format_lpf))
    return plan_back_end(board, system_design(board, config))


FLOW = Flow(name="ecp5", plan=plan, needs=lambda board: (
    tools.AMARANTH, tools.YOSYS, tools.python_package("scipy"), tools.NEXTPNR_ECP5, tools.ECPPACK,
    *system_needs(board)))
