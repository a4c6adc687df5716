"""Counts the cells of a synthesized design, and says what the part has too few of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from ..facts.board import RESOURCES
from ..facts.errors import BoardError

# Cells of each flow's FPGAs by what they count as: regular expressions.
CELLS: Mapping[str, Mapping[str, str]] = {
    "ecp5": {"lut": "LUT4|CCU2C", "register": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD"},
    "gowin": {"lut": "LUT[1-4]|ALU", "register": "DFF.*", "dsp": "MULT(9X9|18X18|36X36)",
              "bram": "SDPB|SDPX9B|DPB|DPX9B|SPX?9?|pROMX?9?"},
    "zynq": {"lut": "LUT[1-6]", "register": "FD[RSCP]E", "dsp": "DSP48E1",
             "bram": "RAMB(18|36)E1"},
    "vivado": {"lut": "LUT[1-6]", "register": "FD[RSCP]E", "dsp": "DSP48E[12]",
               "bram": "RAMB(18|36)E[12]"},
    "quartus": {"lut": "MISTRAL_(ALUT.*|NOT)", "register": "MISTRAL_FF",
                "dsp": r"MISTRAL_MUL\d+X\d+", "bram": "MISTRAL_M10K"},
}
LUT_RAMS = {"ecp5": "TRELLIS_DPR16X4", "gowin": r"RAM16SDP\d", "zynq": r"RAM\d+[MXD].*",
            "vivado": r"RAM\d+[MXD].*", "quartus": "MISTRAL_MLAB"}
# The kinds of resources that LUT RAMs take; LUTs alone elsewhere.
LUT_RAM_KINDS = {"gowin": ("lut", "register")}
# Those that count as more, or less, than one. A LUT RAM takes a slice and a half of ECP5, a slice
# of Xilinx, and with nextpnr the whole of a block of eight LUTs and six registers on Gowin.
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "lut": {"CCU2C": 2, "TRELLIS_DPR16X4": 6, "RAM16SDP4": 8, "RAM16SDP2": 8, "RAM16SDP1": 8,
            "RAM32M": 4, "RAM64M": 4},
    "register": {"RAM16SDP4": 6, "RAM16SDP2": 6, "RAM16SDP1": 6},
    "dsp": {"MULT18X18": 2, "MULT36X36": 8, "MISTRAL_MUL27X27": 2},
    "bram": {"RAMB18E1": 0.5, "RAMB18E2": 0.5},
}


def count_cells(cells: Mapping[str, int], flow: str) -> dict[str, float]:
    """How many of each kind of resource."""
    found = {}
    for kind, pattern in CELLS[flow].items():
        if kind in LUT_RAM_KINDS.get(flow, ("lut",)):
            pattern = f"{pattern}|{LUT_RAMS[flow]}"
        found[kind] = sum(number * WEIGHTS[kind].get(cell, 1) for cell, number in cells.items()
                          if re.fullmatch(pattern, cell))
    return found


def check_fit(flow: str, board: str, device: str, available: dict[str, int]) -> None:
    """The step of a build: `cells.json`, as Yosys's `stat -json` writes it, to `area.json`."""
    design = json.loads(Path("cells.json").read_text(encoding="utf-8"))["design"]
    found = count_cells(design["num_cells_by_type"], flow)
    for kind, number in found.items():
        if number > available[kind]:
            raise BoardError(f"{board}: the design does not fit: it takes {number:,g} "
                             f"{RESOURCES[kind]}, but {device} has {available[kind]:,}")
    Path("area.json").write_text(json.dumps(found), encoding="utf-8")
