"""Sums that begin with their first product, so that accumulators need not be cleared before.

Where a sum should begin, its tiles are only noted. Products that come next to just these tiles
begin it; before anything else touches one of them, they are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ....base.classes.dataclass import dataclass
from ....isa.instructions import Instruction
from ...expression.affine import Affine
from ...expression.expression import Axis
from ...nest.nest import Region
from ..selection.hardware_loops import Walk, Walks, fuse_loops, offsets, walks_of
from ..selection.instructions import emit_fill
from .scratchpads import strides_of


@dataclass(frozen=True)
class Tiles:
    """The tiles that an operand is in some iteration, without a list of them."""

    first: int
    walks: Walks

    def each(self) -> set[int]:
        return {self.first + offset for offset, in offsets(self.walks, 1)}

    def span(self) -> tuple[int, int]:
        """The first and the last of them."""
        reach = [(walk.extent - 1) * walk.steps[0] for walk in self.walks]
        return (self.first + sum(min(each, 0) for each in reach),
                self.first + sum(max(each, 0) for each in reach))

    def meets(self, other: Tiles) -> bool:
        """Whether some tile is in both."""
        (low, high), (other_low, other_high) = self.span(), other.span()
        return low <= other_high and other_low <= high and not self.each().isdisjoint(other.each())


def touched_tiles(axes: Sequence[Axis], operand: Affine) -> Tiles:
    walks = fuse_loops(walks_of([axis for axis in axes if axis in operand.terms], (operand,)))
    return Tiles(operand.constant, tuple(sorted(walks, key=lambda walk: walk.steps)))


def copied_tiles(first: int, region: Region) -> Tiles:
    """Those of a box, whose first tile is known."""
    extents, strides, order = list(region.extents), strides_of(region.buffer), (
        region.buffer.interleave)
    if order is not None:               # its groups, each with all of their tiles
        extents[order.dimension] = -(-extents[order.dimension] // order.ways)
        extents, strides = [order.ways, *extents], [1, *strides]
    sizes = zip(extents, strides, strict=False)
    return Tiles(first, tuple(Walk(extent, (stride,)) for extent, stride in sizes if extent > 1))


@dataclass
class Starts:
    """What has been noted and not begun yet. No tile is in two of them."""

    noted: dict[Tiles, int] = field(default_factory=dict)   # and the value they start from

    def note(self, tiles: Tiles, value: int) -> Iterator[Instruction]:
        """Sums begin here with the next products."""
        self.begin_sums(tiles)
        yield from self.clear_touched([tiles])
        self.noted[tiles] = value

    def begin_sums(self, tiles: Tiles) -> bool:
        """Whether products to these tiles begin their sums. They have then begun."""
        known = tiles in self.noted
        self.noted.pop(tiles, None)
        return known

    def clear_touched(self, touched: Iterable[Tiles]) -> Iterator[Instruction]:
        """Clears what is touched before its sum has begun."""
        if not self.noted:
            return
        for other in touched:
            for tiles in [each for each in self.noted if each.meets(other)]:
                yield from emit_fill(tiles.first, tiles.walks, self.noted.pop(tiles))
