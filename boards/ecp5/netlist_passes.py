"""The registers, factors and blocks of an ECP5 design, arranged between Yosys and nextpnr."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...isa.atomic import write_atomically
from .align_multiplier_operands import raise_factors
from .dies import DIES, Die
from .editable_netlist import Netlist
from .pack_registers import absorb
from .place_blocks import lay_out
from .replicate_registers import copy_registers

COPIES, SIGNS, PLACES = "copies", "signs", "places"


def arrange(modules: Iterable[Mapping[str, Any]], die: Die) -> Counter[str]:
    """Copy registers of modules that many multipliers read, move those behind a block into it, take
    wires for signs off multipliers, and give blocks their places: how many of each."""
    done: Counter[str] = Counter()
    for each in modules:
        netlist = Netlist(each)
        done[COPIES] += copy_registers(netlist)
        done += absorb(netlist)
        done[SIGNS] += raise_factors(netlist)
        done[PLACES] += lay_out(each, die)
    return done


def arrange_file(source: str | Path, to: str | Path, die: str) -> Counter[str]:
    """The same for a file of Yosys, and the die of a part: "25" for an LFE5U-25F."""
    source, to = Path(source), Path(to)
    design = json.loads(source.read_text(encoding="utf-8"))
    done = arrange(design["modules"].values(), DIES[die])
    write_atomically(to, json.dumps(design).encode())
    return done
