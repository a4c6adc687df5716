"""At which channels of each tensor a tile must begin.

    y = Concat(a, b)        b begins after a:               y is cut there, and a ends with a tile
    s = Slice(y, first)     s begins inside y:              y is cut there
    z = Pool(y)             channel by channel:             z is cut wherever y is
    c = Conv(y)             weights meet any order:         c is not cut

Channels between two cuts are a segment, which fills whole tiles: lanes that are left over hold
channels that nobody asked for. A cut at the end says that the last segment fills its tiles, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from ....base.classes.dataclass import dataclass
from ...graph.graph import Graph, Node
from ...graph.operation import normalize_axis
from ...graph.operations.data_movement.shape import Concat, Slice
from ...graph.operations.layers.window import Conv, Pool
from ...graph.operations.pointwise.binary import Binary
from ...graph.operations.pointwise.quantize import Clamp, Lookup, Rescale
from ...graph.operations.vision.integer_upsample import Upsample
from ...graph.types import Array
from ...passes.windows.window_of_moves import is_image
from ..tensor_views import first_channel


class Link(NamedTuple):
    """A tensor whose channels another one has, too, from some channel on."""

    part: str
    whole: str
    start: int = 0
    is_slice: bool = False      # of the whole, which goes on after it


@dataclass
class Cuts:
    """The cuts of all tensors of a graph that have some."""

    graph: Graph
    axis: int                   # of channels
    block: int                  # lanes of a tile
    most_images: int            # that lie in one tile
    found: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        links: dict[str, list[Link]] = {}
        waiting: list[str] = []
        for name, node in self.graph.nodes.items():
            for link in self._links(name, node):
                links.setdefault(link.part, []).append(link)
                links.setdefault(link.whole, []).append(link)
            for tensor, cut in self._own_cuts(name, node):
                self.found.setdefault(tensor, set()).add(cut)
                waiting.append(tensor)
        while waiting:
            for link in links.get(waiting.pop(), ()):
                waiting += self._follow(link)

    def channels(self, tensor: str) -> int:
        return self.graph.type_of(tensor).shape[self.axis]

    def places(self, tensor: str) -> tuple[Array, int]:
        """Where each channel of a tensor stands once its segments begin with tiles, and how many
        places there are."""
        count, cuts = self.channels(tensor), sorted(self.found.get(tensor, ()))
        ends = cuts if cuts and cuts[-1] == count else [*cuts, count]
        places, start = [], 0
        for first, end in pairwise([0, *ends]):
            places.append(np.arange(end - first) + start)
            start += -(-(end - first) // self.block) * self.block
        total = start if cuts and cuts[-1] == count else int(places[-1][-1]) + 1
        return np.concatenate(places), total

    def is_moved(self, tensor: str) -> bool:
        """Whether a tensor has lanes that are left over before its end, or must have some there."""
        return tensor in self.found and self.places(tensor)[1] != self.channels(tensor)

    def joins(self, node: Node) -> bool:
        """Whether a node joins channels of images, all of which are computed."""
        joined = node.operation
        return isinstance(joined, Concat) and is_image(node.type) and (
            normalize_axis(joined.axis, len(node.type.shape)) == self.axis
            and not any(each in self.graph.constants for each in joined.parts))

    def is_view(self, node: Node) -> bool:
        """Whether images are few enough for parts of channels to lie one after the other."""
        return node.type.shape[0] <= self.most_images

    def first_of_slice(self, node: Node) -> int | None:
        """The first channel that a node takes of a tensor, if some in a row are all it takes."""
        if isinstance(node.operation, Slice):
            cut, x = node.operation, self.graph.type_of(node.operation.x)
            others = [each for each in range(len(x.shape)) if each != self.axis]
            is_slice = is_image(node.type) and set(cut.steps) == {1} and all(
                x.shape[each] == node.type.shape[each] for each in others) and (
                cut.x not in self.graph.constants)
            return cut.starts[self.axis] if is_slice else None
        conv = node.operation
        if not is_image(node.type) or not isinstance(conv, Conv) or conv.x in self.graph.constants:
            return None
        return first_channel(self.graph, node)

    def same_channels(self, node: Node) -> tuple[str, ...]:
        """Operands of which a node computes channel by channel; none if it does otherwise."""
        if not is_image(node.type):
            return ()
        count = node.type.shape[self.axis]
        tensors: tuple[str, ...]
        match node.operation:
            case Pool(x=x) | Upsample(x=x) | Lookup(x=x) | Rescale(x=x) | Clamp(x=x):
                tensors = (x,)
            case Binary(left=left, right=right):
                tensors = tuple(dict.fromkeys((left, right)))
            case Conv(x=x, groups=groups) if 1 < groups == self.channels(x) == count:
                tensors = (x,)
            case _:
                return ()
        tensors = tuple(each for each in tensors if each not in self.graph.constants
                        or self.graph.type_of(each).size > 1)
        if not all(is_image(self.graph.type_of(each)) for each in tensors):
            return ()
        return tuple(each for each in tensors if self.channels(each) == count > 1)

    def _links(self, name: str, node: Node) -> Iterator[Link]:
        """Tensors whose cuts are those of others."""
        for each in self.same_channels(node):
            yield Link(each, name)
        first = self.first_of_slice(node)
        if first is not None:
            yield Link(name, node.operation.operands()[0], first, is_slice=True)
        if self.joins(node) and self.is_view(node):
            parts = node.operation.operands()
            starts = accumulate((self.channels(each) for each in parts[:-1]), initial=0)
            for part, start in zip(parts, starts, strict=True):
                yield Link(part, name, start)

    def _own_cuts(self, name: str, node: Node) -> Iterator[tuple[str, int]]:
        first = self.first_of_slice(node)
        if first and self.is_view(node):
            yield node.operation.operands()[0], first
        if self.joins(node) and self.is_view(node):
            for end in accumulate(self.channels(each) for each in node.operation.operands()[:-1]):
                yield name, end

    def _follow(self, link: Link) -> Iterator[str]:
        """Have the cuts of a part and of the tensor that has its channels agree. A slice need not
        end with a tile where the whole does."""
        part, whole, start, is_slice = link
        end = start + self.channels(part)
        inside = {each - start for each in self.found.get(whole, ())
                  if start < each < end + (not is_slice)}
        more = inside - self.found.get(part, set())
        if more:
            self.found.setdefault(part, set()).update(more)
            yield part
        above = {each + start for each in self.found.get(part, ())} - self.found.get(whole, set())
        if above:
            self.found.setdefault(whole, set()).update(above)
            yield whole
