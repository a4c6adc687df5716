"""Places the multipliers and block RAMs of an ECP5 design before nextpnr places the rest.

nextpnr legalizes blocks one by one, each to the nearest free site. Where most sites are taken, the
last blocks end far from their logic. Here all blocks are legalized at once, by the assignment with
the least total movement, in rounds of quadratic placement: each round solves for the least
wirelength with anchors that hold blocks at their sites and spread logic; the anchors grow stronger
from round to round.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base.checked_values import PlainData
from .density import DensityMap
from .dies import Die, Site
from .editable_netlist import MEMORY, MULTIPLIER, Cell
from .wirelength import WirelengthModel

# Of the places of a die: where fewer are taken, nextpnr finds near ones, and sees to the clock.
MOST = 0.75
STARTS = 4                          # the outcome depends on where cells begin; the best is taken
ROUNDS = 40
BLOCK, BLOCKS_GROW = 0.02, 1.12     # a block's pull towards its place, to all pulls of its wires
LOGIC, LOGIC_GROWS = 0.01, 1.08     # a cell's pull towards where there is room for it
TO_MIDDLE = 1e-6                    # so weak that it only decides where nothing else does


def place_blocks(module: PlainData, die: Die) -> int:
    """Bind every block of a module to a site, and say how many: none if the die has many more, or
    too few, which nextpnr reports."""
    cells: dict[str, Cell] = module["cells"]
    blocks = {kind: [name for name, cell in cells.items() if cell["type"] == kind]
              for kind in (MULTIPLIER, MEMORY)}
    filled = max(len(names) / len(die.sites(kind)) for kind, names in blocks.items())
    if not MOST <= filled <= 1:
        return 0
    tried = [Placement(cells, blocks, die, start).solve() for start in range(STARTS)]
    _, places = min(tried, key=lambda each: each[0])
    for name, site in places.items():
        cells[name].setdefault("attributes", {})["BEL"] = site.name
    return len(places)


class Placement:
    """Positions of cells, columns first, and behind them those of nets' centres."""

    def __init__(self, cells: Mapping[str, Cell], blocks: Mapping[str, list[str]], die: Die,
                 start: int):
        self.names = [name for names in blocks.values() for name in names]
        self.model, self.density = WirelengthModel(cells), DensityMap(cells, die)
        self.count = len(cells)
        numbers = {name: number for number, name in enumerate(cells)}
        self.blocks = np.array([numbers[name] for name in self.names])
        self.kinds = {kind: [self.names.index(name) for name in names]
                      for kind, names in blocks.items() if names}
        self.sites = {kind: die.sites(kind) for kind in self.kinds}
        self.middle = np.array(die.middle)[:, None]
        # Anything but one point: there, nothing would pull in any direction.
        rng = np.random.default_rng(start)
        self.at = self.middle * rng.uniform(0, 2, (2, self.model.points))

    def solve(self) -> tuple[float, dict[str, Site]]:
        """The wirelength, and the site of each block."""
        block, logic = BLOCK, LOGIC
        chosen = self._assign_sites()
        for _ in range(ROUNDS):
            goals = self._targets(chosen)
            for axis in range(2):
                self._solve_axis(axis, goals[axis], block, logic)
            chosen = self._assign_sites()
            block, logic = block * BLOCKS_GROW, logic * LOGIC_GROWS
        sites = dict(zip(self.names, chosen, strict=True))
        return self.model.half_perimeter(self._targets(chosen)), sites

    def _targets(self, chosen: list[Site]) -> np.ndarray:
        """Where everything should be."""
        goals = np.repeat(self.middle, self.model.points, axis=1)
        goals[:, :self.count] = self.density.spread(self.at[:, :self.count])
        goals[:, self.blocks] = np.array([(site.column, site.row) for site in chosen]).T
        return goals

    def _assign_sites(self) -> list[Site]:
        """A place for each block, with the least way in total."""
        from scipy.optimize import linear_sum_assignment

        chosen: dict[int, Site] = {}
        for kind, members in self.kinds.items():
            sites = self.sites[kind]
            places = np.array([(site.column, site.row) for site in sites])
            at = self.at[:, self.blocks[members]].T
            ways = np.abs(at[:, None, :] - places[None, :, :]).sum(axis=2)
            for member, site in zip(*linear_sum_assignment(ways), strict=True):
                chosen[members[member]] = sites[site]
        return [chosen[block] for block in range(len(self.names))]

    def _solve_axis(self, axis: int, goals: np.ndarray, block: float, logic: float) -> None:
        """Move all cells to where pulls along an axis cancel."""
        at = self.at[axis]
        weights, total = self.model.weigh(at)
        held = np.full(at.size, TO_MIDDLE)
        cells = slice(self.count)
        held[cells] += logic * total[cells] / np.maximum(np.abs(at[cells] - goals[cells]), 1)
        held[self.blocks] = block * total[self.blocks] + TO_MIDDLE
        self.at[axis] = self.model.solve(weights, total, held, goals, at)
