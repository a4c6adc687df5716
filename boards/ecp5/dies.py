"""Where the dies of ECP5 have their multipliers and block RAMs, as nextpnr names the places."""

from __future__ import annotations

from dataclasses import dataclass

from .editable_netlist import MEMORY, MULTIPLIER


@dataclass(frozen=True)
class Site:
    name: str           # X13/Y22/EBR0
    column: int
    row: int


@dataclass(frozen=True)
class Die:
    """Blocks are in rows, in groups of four; the column in the middle has none."""

    groups: tuple[int, ...]             # the first column of each
    multipliers: tuple[int, ...]        # rows
    memories: tuple[int, ...]
    columns: int
    rows: int

    @property
    def middle(self) -> tuple[float, float]:
        return self.columns / 2, self.rows / 2

    def sites(self, kind: str) -> list[Site]:
        """All places for blocks of a type."""
        rows, places = {MULTIPLIER: (self.multipliers, MULTIPLIERS),
                        MEMORY: (self.memories, MEMORIES)}[kind]
        return [Site(f"X{group + offset}/Y{row}/{name}", group + offset, row)
                for row in rows for group in self.groups for offset, name in places]


# In a group: how far from its first column, and what it is called.
MULTIPLIERS = ((0, "MULT18_0"), (1, "MULT18_1"), (4, "MULT18_4"), (5, "MULT18_5"))
MEMORIES = ((0, "EBR0"), (2, "EBR1"), (4, "EBR2"), (6, "EBR3"))

_SMALL = Die((*range(4, 23, 9), *range(33, 61, 9)), (13,), (25, 37), 73, 51)
DIES = {                # by thousands of LUTs, as in the name of a part
    "12": _SMALL, "25": _SMALL,
    "45": Die((*range(4, 32, 9), *range(42, 79, 9)), (22, 46), (10, 34, 58), 91, 72),
    "85": Die((*range(4, 59, 9), *range(69, 115, 9)), (10, 34, 58), (22, 46, 70, 82), 127, 96),
}
