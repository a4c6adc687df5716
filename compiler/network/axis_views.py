"""Operands seen through reshapes and transposes: where their axes stand in the tensor that is
computed, so that addressing does what no engine can.

    projection (word, head × channel) ─ reshape ─ transpose ─► keys (head, channel, word)

Each axis of such an operand is a list of axes of the tensor, whose own are split where need be:
the heads above are the second of (word, head, channel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from ..graph.graph import Graph
from ..graph.operations.data_movement.shape import Reshape, Transpose
from ..graph.types import Array, Shape
from ..operators.layout import Layout, Stage

MOVES = (Reshape, Transpose)        # operations that may be a matter of addresses


@dataclass(frozen=True)
class AxisView:
    """An operand inside a tensor of this shape, or of another one with as many elements."""

    tensor: str
    shape: Shape
    axes: tuple[tuple[int, ...], ...]       # of each axis of the operand, the outermost first

    def reorder(self, order: Sequence[int]) -> AxisView:
        """The operand with its axes in another order."""
        return replace(self, axes=tuple(self.axes[each] for each in order))

    def layout(self, layout: Layout) -> Layout:
        """The layout of the tensor, if this is that of the operand. Refused where a tile would
        take numbers that lie apart."""
        first, *others = layout.stages
        return Layout((_split_axes(first, self.shape, self.axes), *others))

    def positions(self, found: Array) -> Array:
        """Elements of the operand, counted from 1, of which these are those of the tensor; 0 where
        there is none."""
        count = prod(self.shape)
        order = [each for axis in self.axes for each in axis]
        numbers = np.zeros(count + 1, np.int64)
        numbers[np.arange(1, count + 1).reshape(self.shape).transpose(order)] = np.arange(
            1, count + 1).reshape([self.shape[each] for each in order])
        moved: Array = numbers[found]
        return moved


def view_through_moves(graph: Graph, tensor: str, sizes: Shape) -> AxisView:
    """A tensor with axes of these sizes, seen through as many reshapes and transposes as can be."""
    factors = _Factors(list(range(len(sizes))), list(sizes), [[each] for each in range(len(sizes))])
    while tensor in graph.nodes and isinstance(graph.nodes[tensor].operation, MOVES):
        operation = graph.nodes[tensor].operation
        if isinstance(operation, Transpose) and not factors.transpose(
                graph.type_of(tensor).shape, operation.order):
            break
        tensor, = operation.operands()
    return factors.view(tensor)


@dataclass
class _Factors:
    """Sizes whose product is a tensor's, in the order in which its elements follow one another, and
    which of them each axis of the operand has."""

    order: list[int]
    sizes: list[int]
    axes: list[list[int]]

    def transpose(self, shape: Shape, order: Sequence[int]) -> bool:
        """Go from the result of a transpose to what it reads. False if a size cannot be split so
        that each axis has some of them alone."""
        groups: list[list[int]] = []
        waiting = [each for each in self.order if self.sizes[each] > 1]
        for extent in shape:
            group: list[int] = []
            while extent > 1:
                each = waiting[0]
                if self.sizes[each] > extent:
                    if self.sizes[each] % extent:
                        return False
                    waiting[1:1] = [self._split(each, extent)]
                if extent % self.sizes[each]:
                    return False
                extent //= self.sizes[each]
                group.append(waiting.pop(0))
            groups.append(group)
        self.order = [each for axis in range(len(shape)) for each in groups[order.index(axis)]]
        return True

    def _split(self, factor: int, outer: int) -> int:
        """Split a factor, which keeps the outer part. Returns the inner one."""
        inner = len(self.sizes)
        self.sizes.append(self.sizes[factor] // outer)
        self.sizes[factor] = outer
        for axis in self.axes:
            if factor in axis:
                axis.insert(axis.index(factor) + 1, inner)
        self.order.insert(self.order.index(factor) + 1, inner)
        return inner

    def view(self, tensor: str) -> AxisView:
        """What has been found; an axis of size 1 is one of its own."""
        order = [each for each in self.order if self.sizes[each] > 1]
        shape = [self.sizes[each] for each in order]
        axes = []
        for axis in self.axes:
            found = [order.index(each) for each in axis if self.sizes[each] > 1]
            if not found:
                found, shape = [len(shape)], [*shape, 1]
            axes.append(tuple(found))
        return AxisView(tensor, tuple(shape), tuple(axes))


def _split_axes(stage: Stage, source: Shape, axes: Sequence[Sequence[int]]) -> Stage:
    """A stage for a source in which each of its axes is the product of several."""
    shape: list[int] = []
    steps: list[tuple[int, int]] = []
    for (axis, step), extent in zip(stage.steps, stage.shape, strict=True):
        for place, move, count in _split_dimension(step, extent, axes[axis], source):
            shape.append(count)
            steps.append((place, move))
    starts = [0] * len(source)
    for start, places in zip(stage.starts, axes, strict=True):
        if start and len(places) > 1:
            raise CompileError("an axis with a border lies in several pieces")
        starts[places[0]] = start
    found = Stage(source, tuple(shape), tuple(steps), tuple(starts), stage.fill)
    before, after = found.borders()
    for places in axes:
        if any(before[each] or after[each] for each in places[1:]):
            raise CompileError("a tile holds numbers that lie in several pieces")
    return found


def _split_dimension(step: int, extent: int, places: Sequence[int],
                     source: Shape) -> list[tuple[int, int, int]]:
    """A dimension that moves along the product of some axes, as one for each axis that it moves
    along, the outermost first: the axis, the step and the extent."""
    found: list[tuple[int, int, int]] = []
    for number in range(len(places) - 1, 0, -1):
        size, inside = source[places[number]], prod(source[each] for each in places[number + 1:])
        if step % (inside * size) == 0:
            continue                            # moves along outer axes alone
        move, remainder = divmod(step, inside)
        if remainder or size % move:
            raise CompileError("a tile holds numbers that lie in several pieces")
        count = size // move
        if extent <= count:
            return [(places[number], move, extent), *found]
        if extent % count:
            raise CompileError("tiles do not divide the pieces that numbers lie in")
        found.insert(0, (places[number], move, count))
        step, extent = inside * size, extent // count
    inside = prod(source[each] for each in places[1:])
    if step % inside:
        raise CompileError("a tile holds numbers that lie in several pieces")
    return [(places[0], step // inside, extent), *found]
