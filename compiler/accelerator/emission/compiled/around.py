"""Loops around an intrinsic, and how its operands move with them, without where they begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....expression.expression import Axis
from ..sites import IntrinsicSite


class Around(NamedTuple):
    """Loops of any extents, and how far each operand moves with each of them."""

    axes: Sequence[Axis]
    steps: Sequence[Sequence[int]]

    def loops(self, extents: Sequence[int]) -> list[Axis]:
        """The loops with these extents."""
        return [Axis(axis.name, extent, axis.reduces)
                for axis, extent in zip(self.axes, extents, strict=True)]


def along_run(site: IntrinsicSite, *, groups: bool) -> Around:
    """The loops of a visit along a run of an interleaved dimension, which is whole groups or a part
    of one: `IntrinsicSite._along`, and `_whole` for those that compute by tile."""
    assert site.blocks is not None, "an operand is interleaved"
    loop, ways = site.blocks.loop, site.blocks.ways
    within = 0 if loop is None else groups + 1
    count = len(site.axes) - (loop is not None) + within
    steps = []
    for operand in site.operands:
        each = list(operand.steps)
        if loop is not None:
            outer, inner = ((operand.blocks.group, 1) if operand.blocks is not None
                            else (each[loop] * ways, each[loop]))
            each[loop:loop + 1] = (outer, inner)[2 - within:]
            if site.by_tile:
                del each[loop + within - 1]
        steps.append([step // ways for step in each] if site.by_tile else each)
    count -= site.by_tile and loop is not None
    return Around([Axis(f"loop{number}", 1) for number in range(count)], steps)
