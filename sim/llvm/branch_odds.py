"""How often conditions hold, so that LLVM lays out what is usual in one piece.

Most branches of a twin are for what is rare, and a cycle takes a few hundred instructions out of a
hundred kilobytes: without this, what is rare lies between them. `branch_odds.csv` has the odds of
the conditions that mostly hold, or mostly do not, in thousandths, by function and text; they affect
nothing but speed. `tools/branch_odds.py` measures them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from llvmlite import ir

from .values import I64, POINTER

TABLE = Path(__file__).with_name("branch_odds.csv")
WHOLE = 1000
Branch = tuple[str, str]                # the function, with its module, and the condition
COUNTS, MOST = "branch_counts", 4096    # a global variable of compiled code, and its branches


@cache
def _known() -> Mapping[Branch, int]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["function"], row["condition"]): int(row["holds"])
                for row in csv.DictReader(file)}


class Odds:
    """Tells LLVM the odds of branches."""

    def branch(self, builder: ir.IRBuilder, key: Branch, holds: ir.Value, yes: ir.Block,
               no: ir.Block) -> None:
        made, odds = builder.cbranch(holds, yes, no), _known().get(key)
        if odds is not None:
            made.set_weights([odds + 1, WHOLE - odds + 1])


class Counting(Odds):
    """Has compiled code count how often each condition does not hold, and holds."""

    def __init__(self) -> None:
        self.places: dict[Branch, int] = {}

    def branch(self, builder: ir.IRBuilder, key: Branch, holds: ir.Value, yes: ir.Block,
               no: ir.Block) -> None:
        place = self.places.setdefault(key, len(self.places))
        assert place < MOST
        number = builder.add(builder.zext(holds, I64), I64(2 * place))
        first = builder.ptrtoint(_counts(builder.module), I64)
        at = builder.inttoptr(builder.add(first, builder.shl(number, I64(3))), POINTER)
        builder.store(builder.add(builder.load(at, typ=I64), I64(1)), at)
        builder.cbranch(holds, yes, no)


def _counts(module: ir.Module) -> ir.Value:
    if COUNTS not in module.globals:
        made = ir.GlobalVariable(module, ir.ArrayType(I64, 2 * MOST), COUNTS)
        made.initializer = ir.Constant(made.value_type, None)
    return module.globals[COUNTS]


def write_table(counts: Mapping[Branch, tuple[int, int]]) -> int:
    """Replace the table, given how often each condition did not hold and held. Those that do both
    every third time are left out. Returns how many are in it."""
    rows = []
    for (function, condition), (not_held, held) in sorted(counts.items()):
        total = not_held + held
        if total and 3 * min(not_held, held) < total:
            rows.append((function, condition, round(WHOLE * held / total)))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("function", "condition", "holds"))
        writer.writerows(rows)
    return len(rows)
