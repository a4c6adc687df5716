"""Rows and columns that are joined or cut off, as windows that the accelerator has."""

from __future__ import annotations

from dataclasses import field
from itertools import accumulate

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import Rounding
from ...graph.graph import Graph, Node
from ...graph.operation import Value, normalize_axis
from ...graph.operations.data_movement.shape import Concat, Slice
from ...graph.operations.layers.window import Conv, Pool, TransposedConv, common_channel_axis
from ...graph.operations.pointwise.binary import Binary, BinaryKind
from ...graph.types import Quantization, TensorType
from ..graph_edit import Edit
from .window_of_moves import is_image

MOST_PRODUCTS = 1 << 18     # of one window; more take longer than the way to the CPU and back
MOST_PARTS = 4
WINDOWS = (Conv, Pool, TransposedConv)
Pads = tuple[int, int, int, int]        # above, below, to the left and to the right


def rows_as_windows(graph: Graph) -> Graph:
    """Join images along rows or columns, and cut some off, with depthwise convolutions.

        y = Concat(a, b, axis=1)            becomes    c = Conv(a, ones, groups, pad below)
                                                       d = Conv(b, ones, groups, pad above)
                                                       y = Binary(c, d, kind=ADD)
        y = Slice(x, starts=(0, 1, 0, 0))   becomes    y = Conv(x, zeros and ones, groups)

    A streaming layer joins the rows of a frame with those it remembers, and cuts off the oldest:
    between its neighbours on the accelerator these moves would be the CPU's. All are exact: around
    an image there are zeros, and adding a zero of the same scale changes nothing, which is tried
    with every number. Only where a window is next to them, and for images that are small: for large
    ones the products take longer than the CPU.
    """
    axis = common_channel_axis(node.operation for node in graph.nodes.values())
    if axis is None:
        return graph
    edit = Edit(graph)
    return edit.rewrite(_Change(edit, axis).replace_node)


@dataclass
class _Change:
    """The graph so far."""

    edit: Edit
    channels: int                       # the axis
    moved: set[str] = field(default_factory=set)    # nodes that became windows

    def replace_node(self, name: str, node: Node) -> bool:
        if not is_image(node.type) or not self._is_next_to_window(name, node):
            return False
        match node.operation:
            case Concat() as concat:
                done = self._join(name, node, concat)
            case Slice() as cut:
                done = self._cut(name, node, cut)
            case _:
                return False
        if done:
            self.moved.add(name)
        return done

    def _is_next_to_window(self, name: str, node: Node) -> bool:
        """Whether a neighbour is the accelerator's."""
        graph = self.edit.graph
        around = (*node.operation.operands(), *graph.readers.get(name, ()))
        return any(each in self.moved or (
            each in graph.nodes and isinstance(graph.nodes[each].operation, WINDOWS))
            for each in around)

    @property
    def pixels(self) -> tuple[int, int]:
        """The axes of rows and columns."""
        return (2, 3) if self.channels == 1 else (1, 2)

    def _join(self, name: str, node: Node, concat: Concat) -> bool:
        graph, type_ = self.edit.graph, node.type
        axis = normalize_axis(concat.axis, len(type_.shape))
        types = [graph.type_of(each) for each in concat.parts]
        if axis not in self.pixels or not 2 <= len(types) <= MOST_PARTS or (
                type_.size > MOST_PRODUCTS or not adds_nothing(type_)):
            return False
        if any(not is_image(each) or each.quantization != type_.quantization for each in types) or (
                any(each in graph.constants for each in concat.parts)):
            return False
        ends = list(accumulate(each.shape[axis] for each in types))
        total, place = "", 2 * self.pixels.index(axis)
        for part, each, end in zip(concat.parts, types, ends, strict=True):
            pads = [0, 0, 0, 0]
            pads[place], pads[place + 1] = end - each.shape[axis], ends[-1] - end
            inside = self._window(f"{name}.part", node, part, (1, 1), (0, 0),
                                  (pads[0], pads[1], pads[2], pads[3]))
            if not total:
                total = inside
                continue
            last = end == ends[-1]
            result = name if last else self.edit.fresh(f"{name}.sum")
            self.edit.put(result, Binary(kind=BinaryKind.ADD, left=total, right=inside,
                                         rounding=Rounding.TWICE), type_, node.origin)
            total = result
        return True

    def _cut(self, name: str, node: Node, cut: Slice) -> bool:
        x = self.edit.graph.type_of(cut.x)
        rows, columns = self.pixels
        if any(step != 1 for step in cut.steps) or x.shape[0] != node.type.shape[0] or (
                not is_image(x) or cut.x in self.edit.graph.constants):
            return False
        kernel = (x.shape[rows] - node.type.shape[rows] + 1,
                  x.shape[columns] - node.type.shape[columns] + 1)
        if kernel == (1, 1) or node.type.size * kernel[0] * kernel[1] > MOST_PRODUCTS:
            return False
        self._window(name, node, self._some_channels(name, node, cut), kernel,
                     (cut.starts[rows], cut.starts[columns]), (0, 0, 0, 0), is_result=True)
        return True

    def _some_channels(self, name: str, node: Node, cut: Slice) -> str:
        """What a slice is cut from, without the channels that it leaves out: a 1 × 1 convolution
        with rows of the identity, which is read where it lies."""
        x, count = self.edit.graph.type_of(cut.x), node.type.shape[self.channels]
        if x.shape[self.channels] == count:
            return cut.x
        chosen = np.eye(count, x.shape[self.channels], cut.starts[self.channels], np.int8)
        weights = self.edit.constant(f"{name}.channels.weights", chosen[..., None, None],
                                     Quantization((1.0,)))
        shape = list(x.shape)
        shape[self.channels] = count
        result = self.edit.fresh(f"{name}.channels")
        self.edit.put(result, Conv(x=cut.x, weights=weights, channel_axis=self.channels,
                                   scales=(1.0,)),
                      TensorType(tuple(shape), x.dtype, x.quantization), node.origin)
        return result

    def _window(self, name: str, node: Node, x: str, kernel: tuple[int, int],
                tap: tuple[int, int], pads: Pads, *, is_result: bool = False) -> str:
        """One pixel of each window, of each channel apart."""
        depth = node.type.shape[self.channels]
        taps = np.zeros((depth, 1, *kernel), np.int8)
        taps[:, :, tap[0], tap[1]] = 1
        weights = self.edit.constant(f"{name}.taps", taps, Quantization((1.0,)))
        conv = Conv(x=x, weights=weights, groups=depth, pad=pads, channel_axis=self.channels,
                    scales=(1.0,))
        result = name if is_result else self.edit.fresh(name)
        before = self.edit.nodes[x].type if x in self.edit.nodes else self.edit.graph.type_of(x)
        type_ = conv.infer(before, self.edit.constants[weights].type)
        self.edit.put(result, conv, TensorType(type_.shape, "int8", node.type.quantization),
                      node.origin)
        return result


def adds_nothing(type_: TensorType) -> bool:
    """Whether every number stays what it is if a zero of the same scale is added."""
    numbers = np.arange(-128, 128).astype(np.int8)
    each = TensorType(numbers.shape, "int8", type_.quantization)
    zeros = np.full_like(numbers, type_.require_quantization().zero_point)
    add = Binary(kind=BinaryKind.ADD, left="", right="", rounding=Rounding.TWICE)
    return all(np.array_equal(add.compute(each, Value(each, left), Value(each, right)), numbers)
               for left, right in ((numbers, zeros), (zeros, numbers)))
