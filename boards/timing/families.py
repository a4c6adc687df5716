"""The FPGAs that the accelerator is measured on: their parts, synthesis, and place and route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..build.cell_count import CELLS, LUT_RAMS, WEIGHTS
from ..build.tools import NEXTPNR_ECP5, NEXTPNR_GOWIN, NEXTPNR_XILINX, Need
from ..gowin import gowin_flow
from ..zynq.zynq_flow import LUTS_ENABLE


@dataclass(frozen=True, kw_only=True)
class Family:
    """One part of a family, and how the tools are told about it."""

    part: str
    synthesis: str                  # the pass of Yosys, with its options
    flow: str                       # whose cells its netlists have
    logic: str                      # cells that plain logic becomes, which keep no names
    tool: Need                      # nextpnr
    options: tuple[str, ...]
    registers: tuple[str, ...] = ()     # passes in place of its own for registers
    shares_pins: bool = False       # delays of a LUT name inputs of the one beside it as well
    die: str = ""                   # ECP5: blocks get places on it and registers before all else
    files: Mapping[str, str] = field(default_factory=dict)      # written beside the design

    @property
    def cells(self) -> dict[str, str]:
        """What cells count as, by regular expression; LUT RAMs apart from LUTs."""
        return {**CELLS[self.flow], LUT_RAM: LUT_RAMS[self.flow]}

    def weight(self, cell: str, kind: str) -> float:
        """How many of a kind of resource a cell counts as."""
        return 1 if kind == LUT_RAM else WEIGHTS[kind].get(cell, 1)


LUT_RAM = "lutram"
PINS = ("clk", "rst", "data_in", "load", "data_out")      # of the wrapper


def _per_pin(line: str, *places: str) -> str:
    return "".join(line.format(name=name, place=place) + "\n"
                   for name, place in zip(PINS, places, strict=True))


FAMILIES = {
    "ecp5": Family(
        part="LFE5U-85F-6", synthesis="synth_ecp5", die="85",
        flow="ecp5",
        logic="LUT4|PFUMX|L6MUX21",
        tool=NEXTPNR_ECP5,
        options=("--85k", "--package", "CABGA381", "--speed", "6", "--lpf-allow-unconstrained",
                 "--timing-allow-fail",
                 # `tiny` takes 13 % less wire than with nextpnr's default, and routes 4 % faster.
                 "--placer", "static")),
    "xc7": Family(
        part="xc7z020clg400-1", synthesis="synth_xilinx -flatten -family xc7",
        shares_pins=True,
        registers=LUTS_ENABLE,      # as a build for a board does, or nothing routes
        flow="zynq",
        logic="LUT[1-6]|INV|MUXF[78]",
        tool=NEXTPNR_XILINX,
        options=("--device", "xc7z020clg400-1", "-o", "xdc=pins.xdc", "--timing-allow-fail"),
        files={"pins.xdc": _per_pin(
            "set_property LOC {place} [get_ports {name}]\n"
            "set_property IOSTANDARD LVCMOS33 [get_ports {name}]",
            "H16", "D19", "D20", "L20", "R14")}),
    "gowin": Family(
        part="GW2AR-LV18QN88C8/I7", synthesis=gowin_flow.SYNTHESIS, registers=gowin_flow.REGISTERS,
        flow="gowin", logic=r"LUT[1-4]|MUX2_LUT\d|MUX2",
        tool=NEXTPNR_GOWIN,
        options=("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C",
                 "--vopt", "cst=pins.cst", "--timing-allow-fail"),
        files={"pins.cst": _per_pin('IO_LOC "{name}" {place};', "4", "88", "87", "15", "16")}),
}
