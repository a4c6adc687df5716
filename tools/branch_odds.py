"""Measures how often branches of the cycle-exact simulator are taken (sim/llvm/branch_odds.py).

    python tools/branch_odds.py

The programs are those of benchmarks/simulator.py; networks whose files are not here are left out.
The table is written anew. Do so when the twins have changed much: the odds are found by the text of
a condition, and one that has no odds is only a little slower.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from microtron.base.machine_code import Library, object_file
from microtron.isa.config_files import load_config
from microtron.isa.program import Program
from microtron.sim.cycle import loop
from microtron.sim.cycle.run import run_cycles
from microtron.sim.llvm.branch_odds import COUNTS, MOST, Branch, Counting, write_table
from microtron.sim.llvm.functions import ENTRY

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from simulator import NETWORKS, compile_layer, compile_network, layer

CONFIG = "base"


def programs() -> list[Program]:
    config = load_config(CONFIG)
    found = [layer(CONFIG, config), compile_layer(CONFIG, config)]
    for name in NETWORKS:
        found += compile_network(name, CONFIG) or []
    return found


def count(some: list[Program]) -> dict[Branch, tuple[int, int]]:
    """How often each condition does not hold, and holds, while these programs are simulated."""
    odds = Counting()
    library = Library(object_file(loop.compiled.text(odds)))
    loop.compiled.use(library.function(ENTRY, ctypes.c_int64, ctypes.c_int64))
    for each in some:
        run_cycles(each)
    counts = (ctypes.c_int64 * (2 * MOST)).from_address(library.address(COUNTS))
    return {branch: (counts[2 * place], counts[2 * place + 1])
            for branch, place in odds.places.items()}


def main() -> int:
    print(f"{write_table(count(programs()))} branches that are mostly or rarely taken",
          file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
