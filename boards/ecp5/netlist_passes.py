"""The passes over the netlist of an ECP5 design between Yosys and nextpnr, in order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ...base.atomic_files import write_atomically
from ...base.checked_values import PlainData
from .align_multiplier_operands import align_multiplier_operands
from .dies import DIES, Die
from .editable_netlist import Netlist
from .luts.save_luts import save_luts
from .pack_registers import pack_registers
from .place_blocks import place_blocks
from .replicate_registers import replicate_registers

COPIES, SIGNS, PLACES, LUTS = "copies", "signs", "places", "LUTs"


def run_passes(modules: Iterable[PlainData], die: Die) -> Counter[str]:
    """Merge LUTs, replicate and pack registers, align multiplier operands and place blocks: how
    many of each were changed."""
    done: Counter[str] = Counter()
    for each in modules:
        netlist = Netlist(each)
        done[LUTS] += save_luts(netlist)
        done[COPIES] += replicate_registers(netlist)
        done += pack_registers(netlist)
        done[SIGNS] += align_multiplier_operands(netlist)
        done[PLACES] += place_blocks(each, die)
    return done


def run_passes_on_file(source: str | Path, to: str | Path, die: str) -> Counter[str]:
    """The same for a file of Yosys, and the die of a part: "25" for an LFE5U-25F."""
    source, to = Path(source), Path(to)
    design = json.loads(source.read_text(encoding="utf-8"))
    done = run_passes(design["modules"].values(), DIES[die])
    write_atomically(to, json.dumps(design).encode())
    return done
