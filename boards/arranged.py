"""The registers of an ECP5 design, arranged between Yosys and nextpnr."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..isa.atomic import write_atomically
from .absorbed import absorb
from .copied import copy_registers
from .netlist import Netlist

# What becomes of a design depends on these.
SOURCES = tuple(f"boards/{name}.py" for name in ("arranged", "absorbed", "copied", "netlist"))
COPIES = "copies"


def arrange(modules: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Copy registers of modules that many multipliers read, and move those behind a block into it:
    how many, by what became of them."""
    done: Counter[str] = Counter()
    for each in modules:
        netlist = Netlist(each)
        done[COPIES] += copy_registers(netlist)
        done += absorb(netlist)
    return done


def arrange_file(source: str | Path, to: str | Path) -> Counter[str]:
    """The same for a file of Yosys."""
    source, to = Path(source), Path(to)
    design = json.loads(source.read_text(encoding="utf-8"))
    done = arrange(design["modules"].values())
    write_atomically(to, json.dumps(design).encode())
    return done
