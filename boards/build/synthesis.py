"""The first steps that flows with open tools have in common: Yosys, and whether its cells fit."""

from __future__ import annotations

from dataclasses import dataclass

from ..facts.board import Board
from . import tools
from .steps import Call, Command, Step, Write

NETLIST, CELLS, AREA = "design.json", "cells.json", "area.json"
# Yosys 0.70 cannot put what ABC9 made of some designs back, and this is all that it says.
# ABC maps these.
ABC9_FAULT = "Assert `GetSize(conn.first) == GetSize(conn.second)' failed"
SCRIPT = """\
{read}
{synthesis}
tee -q -o {cells} stat -json
"""


@dataclass(frozen=True)
class Design:
    """What earlier steps have written."""

    steps: tuple[Step, ...]
    read: str                       # Yosys's commands that read it
    sources: tuple[str, ...]        # the files that they name, or the design does
    top: str
    pins: str                       # the file of constraints
    system: str = ""                # the file with the system's address map


def synthesis_steps(board: Board, design: Design, synthesis: str, registers: tuple[str, ...] = (),
                fit: tuple[Step, ...] = (), luts: str = "") -> tuple[Step, ...]:
    """The steps up to a netlist that fits the part; `synthesis` is the family's pass, `registers`
    what is done in place of its own mapping of registers, `fit` the steps that count cells there,
    and `luts` the pass that maps to LUTs where ABC9 fails."""
    command = f"{synthesis} -top {design.top}"
    passes = [f"{command} -json {NETLIST}"]
    if registers:
        passes = [f"{command} -run begin:map_ffs", *registers,
                  f"{command} -run map_luts: -json {NETLIST}"]
    scripts, run = {"synthesis.ys": passes}, Command(tools.YOSYS, ("synthesis.ys",))
    if luts:
        scripts["with_abc.ys"] = [f"{command} -run :map_luts", luts, "clean",
                                  f"{command} -run map_cells: -json {NETLIST}"]
        run = Command(tools.YOSYS, ("synthesis.ys",), ABC9_FAULT, ("with_abc.ys",))
    texts = {name: SCRIPT.format(read=design.read, synthesis="\n".join(each), cells=CELLS)
             for name, each in scripts.items()}
    return (
        *design.steps,
        Step(name="script", doing="writing the script for Yosys", outputs=tuple(texts),
             work=Write(texts)),
        Step(name="synthesis", doing="synthesizing: a minute or more",
             inputs=(*design.sources, *texts), outputs=(NETLIST, CELLS), work=run),
        *(fit or (Step(name="fit", doing="counting cells", inputs=(CELLS,), outputs=(AREA,),
                       work=Call("microtron.boards.build.cell_count:check_fit",
                                 {"flow": board.flow, **resource_arguments(board)})),)))


def resource_arguments(board: Board) -> dict[str, object]:
    """What a step that counts cells is told about a part."""
    return {"board": board.name, "device": board.part.device,
            "available": dict(board.part.resources)}
