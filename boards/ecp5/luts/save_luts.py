"""Fewer LUTs for the same logic of an ECP5, after synthesis."""

from __future__ import annotations

import json
from pathlib import Path

from ....base.atomic_files import write_atomically
from ..editable_netlist import Netlist
from .absorb_luts import absorb_luts
from .merge_luts import merge_luts


def save_luts(netlist: Netlist) -> int:
    """Put LUTs into carry chains and into one another: how many fewer there are."""
    return absorb_luts(netlist) + merge_luts(netlist)


def save_luts_in_file(path: Path) -> None:
    """The same for all modules of a file of Yosys, which is replaced."""
    design = json.loads(path.read_text(encoding="utf-8"))
    for module in design["modules"].values():
        save_luts(Netlist(module))
    write_atomically(path, json.dumps(design).encode())
