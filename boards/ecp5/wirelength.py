"""The quadratic wirelength of a design: its nets as springs between cells.

Small nets are cliques, larger ones stars around a point of their own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .editable_netlist import Cell, bits_of

MANY = 100                          # cells on a wire that goes everywhere, wherever they are
FEW = 3                             # cells that pull at each other; more pull at their middle
NEAR = 1.0                          # a tile: what is closer pulls no harder
CLOCKS = ("CLK", "WCK")             # have wires of their own
PRECISION, STEPS = 2e-4, 100        # of a solution


class WirelengthModel:
    """Points that pull at each other: cells, by their numbers, and behind them middles of wires."""

    def __init__(self, cells: Mapping[str, Cell]):
        wires: dict[int, set[int]] = {}
        for number, cell in enumerate(cells.values()):
            for port, bit in bits_of(cell):
                if isinstance(bit, int) and not port.startswith(CLOCKS):
                    wires.setdefault(bit, set()).add(number)
        self.wires = [sorted(each) for each in wires.values() if 2 <= len(each) <= MANY]
        self.points = len(cells)
        pairs: list[tuple[int, int]] = []
        pulls: list[float] = []
        for members in self.wires:
            if len(members) <= FEW:
                found = [(left, right) for place, left in enumerate(members)
                         for right in members[:place]]
                pulls += [1 / (len(members) - 1) for _ in found]
            else:
                found = [(member, self.points) for member in members]
                pulls += [1.0 for _ in found]
                self.points += 1
            pairs += found
        self.ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self.pulls = np.array(pulls)
        self.members = np.array([member for each in self.wires for member in each], dtype=np.int64)
        self.firsts = np.cumsum([0, *map(len, self.wires)])[:-1]

    def half_perimeter(self, at: np.ndarray) -> float:
        """The half-perimeter wirelength (HPWL): half of the box around each net, summed."""
        if not self.wires:
            return 0.0
        ends = at[:, self.members]
        return float((np.maximum.reduceat(ends, self.firsts, axis=1)
                      - np.minimum.reduceat(ends, self.firsts, axis=1)).sum())

    def weigh(self, at: np.ndarray) -> tuple[object, np.ndarray]:
        """What pulls at what along an axis, and how hard in all. A wire pulls as hard however long
        it is: springs get weaker, the longer they were before."""
        from scipy.sparse import coo_array

        first, second = self.ends
        pulls = self.pulls / np.maximum(np.abs(at[first] - at[second]), NEAR)
        weights = coo_array((np.r_[pulls, pulls], (np.r_[first, second], np.r_[second, first])),
                            shape=(self.points, self.points)).tocsr()
        return weights, weights.sum(axis=1)

    def solve(self, weights: object, total: np.ndarray, held: np.ndarray, goals: np.ndarray,
                at: np.ndarray) -> np.ndarray:
        """Where all pulls cancel, those towards goals included."""
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import cg

        weight = total + held
        found, _ = cg(diags_array(weight) - weights, held * goals, x0=at, rtol=PRECISION,
                      maxiter=STEPS, M=diags_array(1 / weight))
        positions: np.ndarray = found
        return positions
