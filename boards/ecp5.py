"""Lattice ECP5: Yosys, nextpnr-ecp5 and ecppack, around a LiteX system or a bare accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..isa.config import Config
from . import tools
from .board import Board, Wire
from .facts import BoardError
from .flow import Build, Flow
from .steps import Call, Command, Step, Write

PART = re.compile(r"LFE5(U|UM|UM5G)-(12|25|45|85)F-([678])(BG256|BG381|BG554|BG756|MG285)\w")
PACKAGES = {"BG": "CABGA", "MG": "CSFBGA"}
SYNTHESIS = """\
{read}
hierarchy -check -top {top}
synth_ecp5 -top {top} -json design.json
tee -q -o cells.json stat -json
"""


def nextpnr_options(board: Board) -> tuple[str, ...]:
    """How nextpnr is told about the part."""
    match = PART.fullmatch(board.part.name)
    if match is None:
        raise BoardError(f"{board.name}: part is {board.part.name!r}, but must be as "
                         "LFE5U-85F-6BG381C")
    kind, size, speed, package = match.groups()
    prefix = {"U": "", "UM": "um-", "UM5G": "um5g-"}[kind]
    return (f"--{prefix}{size}k", "--package", PACKAGES[package[:2]] + package[2:],
            "--speed", speed)


def constraints(clock: str, hz: int, wires: dict[str, Wire]) -> str:
    """The LPF of a design: where its ports are, and how fast its clock comes in."""
    lines = [f'FREQUENCY PORT "{clock}" {hz / 1e6:g} MHZ;']
    for name, wire in wires.items():
        options = " ".join((f"IO_TYPE={wire.standard}", *wire.options))
        for port, place in _bits(name, wire):
            lines += [f'LOCATE COMP "{port}" SITE "{place}";', f'IOBUF PORT "{port}" {options};']
    return "\n".join(lines) + "\n"


def _bits(name: str, wire: Wire) -> Iterator[tuple[str, str]]:
    for bit, place in enumerate(wire.places):
        yield (name if len(wire.places) == 1 else f"{name}[{bit}]"), place


def back_end(board: Board, gateware: tuple[Step, ...], *, read: str, top: str, lpf: str,
             clock: str = "") -> Build:
    """The steps from a design, which `gateware` writes, to its bitstream."""
    sources = tuple(name for step in gateware for name in step.outputs if name != lpf)
    product = f"{board.name}.bit"
    steps = (
        *gateware,
        Step(name="script", doing="writing the script for Yosys", outputs=("synthesis.ys",),
             work=Write({"synthesis.ys": SYNTHESIS.format(read=read, top=top)})),
        Step(name="synthesis", doing="synthesizing: a minute or more",
             inputs=(*sources, "synthesis.ys"), outputs=("design.json", "cells.json"),
             work=Command(tools.YOSYS, ("synthesis.ys",))),
        Step(name="fit", doing="counting cells", inputs=("cells.json",), outputs=("area.json",),
             work=Call("microtron.boards.cells:check", {
                 "flow": "ecp5", "board": board.name, "device": board.part.device,
                 "available": dict(board.part.resources)}, sources=("boards/cells.py",))),
        Step(name="route", doing="placing and routing: minutes, or an hour if large",
             inputs=("design.json", lpf, "area.json"), outputs=("design.config", "timing.json"),
             work=Command(tools.NEXTPNR_ECP5, (
                 *nextpnr_options(board), "--json", "design.json", "--lpf", lpf,
                 "--lpf-allow-unconstrained", "--textcfg", "design.config", "--report",
                 "timing.json", "--freq", f"{board.clock.system_hz / 1e6:g}",
                 "--timing-allow-fail"))),
        Step(name="pack", doing="writing the bitstream", inputs=("design.config",),
             outputs=(product,), work=Command(tools.ECPPACK, (
                 "--compress", "--input", "design.config", "--bit", product))),
        Step(name="check", doing="reading the bitstream back", inputs=(product,),
             outputs=("bitstream.json",),
             work=Call("microtron.boards.bitstream:check_ecp5", {
                 "name": product, "idcode": board.part.idcode},
                 sources=("boards/bitstream.py",))))
    return Build(steps=steps, product=product, timing="timing.json", clock=clock)


def bare(board: Board, config: Config) -> Build:
    """The accelerator alone, for a part without memory around it."""
    wires = {name: wire for group in board.pins.values() for name, wire in group.items()}
    if board.clock.pin:
        wires["clk"] = Wire((board.clock.pin,), board.clock.standard, ())
    gateware = (
        Step(name="gateware", doing="writing the accelerator", outputs=("top.il",),
             work=Call("microtron.boards.bare:write", {"config": config.to_dict()},
                       sources=("hw", "isa", "boards/bare.py"), packages=("amaranth",))),
        Step(name="pins", doing="writing the constraints", outputs=("pins.lpf",),
             work=Write({"pins.lpf": constraints("clk", board.clock.system_hz, wires)})))
    return back_end(board, gateware, read="read_rtlil top.il", top="top", lpf="pins.lpf")


def plan(board: Board, config: Config) -> Build:
    if board.memory.kind == "none":
        return bare(board, config)
    raise BoardError(f"{board.name}: there is no system for its memory yet")


FLOW = Flow(name="ecp5", plan=plan, needs=(tools.AMARANTH, tools.YOSYS, tools.NEXTPNR_ECP5,
                                           tools.ECPPACK))
