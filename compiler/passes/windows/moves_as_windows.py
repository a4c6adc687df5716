"""Moves of whole channels and pixels, as windows that the accelerator has."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ...graph.graph import Graph, Node
from ...graph.operations.data_movement.blocks import DepthOrder, DepthToSpace, SpaceToDepth
from ...graph.operations.data_movement.indexing import Expand, Gather, Tile
from ...graph.operations.data_movement.shape import Concat, Pad, PadMode, Reshape, Slice
from ...graph.operations.layers.window import (
    Conv,
    Pair,
    Pool,
    PoolKind,
    Sides,
    TransposedConv,
    common_channel_axis,
)
from ...graph.operations.pointwise.binary import Binary
from ...graph.operations.pointwise.quantize import Rescale
from ...graph.operations.vision.resize import Resize, ResizeKind
from ...graph.types import Array, Quantization, TensorType
from ..graph_edit import Edit
from .window_of_moves import AXES, blocks_before, is_image, windows_before

TOGETHER = 64               # channels that are repeated at once: a multiple of every array's
MOST_REPEATED = 1 << 28     # products of a resize; the CPU has it if the array cannot
MOST_TIMES = 64             # that a pixel is repeated
MOST_CHANNELS = 1 << 11     # that are cut apart to be repeated
MOST_MOVED = 1 << 20        # numbers of windows in which channels stay apart
MOST_PRODUCTS = 1 << 23     # more would take the array longer than the way to the CPU and back


def moves_as_windows(graph: Graph) -> Graph:
    """Take every second pixel, choose channels and add channels of zeros with operators on images.

        y = Slice(x, steps=(1, 1, 2, 2))    becomes    y = Pool(x, kind=MAX, kernel=(1, 1),
                                                                stride=(2, 2))
        y = Pad(x, before=(0, 8, 0, 0))     becomes    y = Conv(x, w, scales=(1.0,)), where w has
                                                       a 1 for each channel that stays

    So do slices of channels, channels in another order (as a shuffle), a number for each pixel that
    meets all channels of an image (a convolution with a 1 for each of them), blocks of pixels as
    channels and, with a transposed convolution, channels as blocks of pixels and pixels that are
    repeated. A shortcut of a residual network that is made of such moves then stays on the
    accelerator, in the same stream as the layers around it; as moves they are the CPU's. All are
    exact: a maximum of one number is that number, and a sum of one product with 1 and many with 0,
    times 1, is what was multiplied. A slice before a border of channels is the stride of the
    convolution, and a change of scale after it is the convolution's.

    Only int8 becomes windows, which is what the accelerator has, and only in a graph whose windows
    all have their channels on one axis: on another one, a channel would be a row.
    """
    axis = common_channel_axis(node.operation for node in graph.nodes.values())
    if axis is None:
        return graph
    edit = Edit(graph)
    return edit.rewrite(_Change(edit, axis).substitute)


@dataclass
class _Change:
    """The graph so far. Weights are (output, input, y, x), with a 1 where a number goes."""

    edit: Edit
    channels: int           # the axis

    @property
    def pixels(self) -> tuple[int, int]:
        """The axes of rows and columns."""
        return (2, 3) if self.channels == 1 else (1, 2)

    def substitute(self, name: str, node: Node) -> bool:
        """Put a window in place of a move, if there is one."""
        if not is_image(node.type):
            return False
        match node.operation:
            case Slice() as cut:
                return self._slice(name, node, cut) or (
                    max(cut.steps) > 1 and self._moved(name, node))
            case Pad() as pad:
                return self._pad(name, node, pad) or self._moved(name, node)
            case Rescale(x=x) as rescale if self.edit.graph.uses[x] == 1:
                return self._rescale(name, node, rescale)
            case SpaceToDepth() | DepthToSpace() as moved if moved.channel_axis == self.channels:
                return self._block(name, node, moved)
            case Resize() as resize:
                return self._resize(name, node, resize)
            case Expand(x=x) | Tile(x=x) if self._expand(name, node, x):
                return True
            case Reshape() | Gather() | Tile():
                return self._moved(name, node)
            case Concat() as concat if concat.parts[0] in self.edit.nodes:
                return self._moved(name, node)
            case Binary() as binary:
                return self._repeat_channels(name, node, binary)
            case _:
                return False

    def _depth(self, name: str) -> int:
        return self.edit.graph.type_of(name).shape[self.channels]

    def _ones(self, outputs: int, inputs: int, pixels: TensorType, first: int = 0) -> Array | None:
        """A matrix with a 1 in each row, from a column on; None if a product with it for each
        pixel of a tensor is too much."""
        count = pixels.shape[0] * pixels.shape[self.pixels[0]] * pixels.shape[self.pixels[1]]
        return None if outputs * inputs * count > MOST_PRODUCTS else np.eye(
            outputs, inputs, first, np.int8)

    def _block(self, name: str, node: Node, moved: SpaceToDepth | DepthToSpace) -> bool:
        """Blocks of pixels as channels, or channels as blocks of pixels."""
        side, small = moved.block, node.type
        if isinstance(moved, DepthToSpace):
            small = self.edit.graph.type_of(moved.x)
        depth = small.shape[self.channels]
        ones = self._ones(depth, depth, small)
        if ones is None:
            return False
        if isinstance(moved, SpaceToDepth):
            taps = ones.reshape(depth, side, side, -1).transpose(0, 3, 1, 2)
            self._conv(name, node, moved.x, taps, (side, side))
        elif moved.order == DepthOrder.BLOCK_FIRST:
            taps = ones.reshape(depth, side, side, -1).transpose(3, 0, 1, 2)
            self._put_transposed(name, node, moved.x, taps)
        else:
            taps = ones.reshape(depth, -1, side, side).transpose(1, 0, 2, 3)
            self._put_transposed(name, node, moved.x, taps)
        return True

    def _slice(self, name: str, node: Node, cut: Slice) -> bool:
        """Pixels at regular distances from the first on, of some channels."""
        x = self.edit.graph.type_of(cut.x)
        stride = (cut.steps[self.pixels[0]], cut.steps[self.pixels[1]])
        regular = min(stride) > 0 and x.shape[0] == node.type.shape[0] and cut.steps[0] > 0 and all(
            cut.starts[axis] == 0 and node.type.shape[axis] == (x.shape[axis] - 1) // step + 1
            for axis, step in zip(self.pixels, stride, strict=True))
        if not regular:
            return False
        depth, outputs = self._depth(cut.x), node.type.shape[self.channels]
        first, step = cut.starts[self.channels], cut.steps[self.channels]
        if outputs == depth and step > 0:
            self._pixels(name, node, cut.x, stride)
            return True
        ones = self._ones(depth, depth, node.type)
        if ones is None:
            return False
        chosen = ones[np.arange(outputs) * step + first]
        self._conv(name, node, cut.x, chosen[..., None, None], stride)
        return True

    def _pad(self, name: str, node: Node, pad: Pad) -> bool:
        """A border of channels as a convolution."""
        axes = [axis for axis, sizes in enumerate(zip(pad.before, pad.after, strict=True))
                if any(sizes)]
        if axes != [self.channels] or pad.mode != PadMode.CONSTANT or (
                pad.value != node.type.require_quantization().zero_point):
            return False
        x, stride = pad.x, (1, 1)
        before = self.edit.nodes.get(pad.x)
        if before is not None and isinstance(before.operation, Pool) and self._is_new(pad.x):
            x, stride = before.operation.x, before.operation.stride
        ones = self._ones(node.type.shape[self.channels], self._depth(pad.x), node.type,
                          -pad.before[self.channels])
        if ones is None:
            return False
        self._conv(name, node, x, ones[..., None, None], stride)
        return True

    def _rescale(self, name: str, node: Node, rescale: Rescale) -> bool:
        """Another scale after a convolution that only moves. One that has taken a scale, or bounds,
        from another Rescale already does more: a second would replace them."""
        before = self.edit.nodes.get(rescale.x)
        if before is None or not self._is_new(rescale.x) or not isinstance(
                before.operation, Conv | TransposedConv) or (
                before.operation.scales, before.operation.low, before.operation.high) != (
                (1.0,), None, None):
            return False
        scale = before.type.require_quantization().scale / node.type.require_quantization().scale
        del self.edit.nodes[rescale.x]
        self.edit.put(name, replace(before.operation, scales=(scale,), rounding=rescale.rounding,
                                    low=rescale.low, high=rescale.high), node.type, node.origin)
        return True

    def _moved(self, name: str, node: Node) -> bool:
        """What one or several moves make of an image, as one window."""
        for source, window in windows_before(self.edit.graph, name, self.channels):
            depth = self._depth(source)
            if window.keeps_channels(depth) and window.kernel == (1, 1) and not any(window.pad):
                self._pixels(name, node, source, window.stride)
                return True
            apart = window.keeps_channels(depth)
            inputs, most = (1, MOST_MOVED) if apart else (depth, MOST_PRODUCTS)
            if node.type.size * inputs * prod(window.kernel) > most:
                continue
            taps = window.weights(depth)
            if apart:
                taps = taps[np.arange(depth), np.arange(depth)][:, None]
            self._conv(name, node, source, taps, window.stride, window.pad)
            return True
        for source, blocks in blocks_before(self.edit.graph, name, self.channels):
            depth = node.type.shape[self.channels]
            if depth * self.edit.graph.type_of(source).size <= MOST_PRODUCTS:
                taps = blocks.weights(depth)
                self._put_transposed(name, node, source, taps.transpose(1, 0, 2, 3))
                return True
        return False

    def _pixels(self, name: str, node: Node, x: str, stride: Pair) -> None:
        self.edit.put(name, Pool(x=x, kind=PoolKind.MAX, kernel=(1, 1), stride=stride,
                                 channel_axis=self.channels), node.type, node.origin)

    def _repeat_channels(self, name: str, node: Node, binary: Binary) -> bool:
        """One side has a number for each pixel, which all channels of the other meet: give it as
        many channels, by a convolution with ones."""
        graph, depth = self.edit.graph, node.type.shape[self.channels]
        sides = {"left": binary.left, "right": binary.right}
        for side, tensor in sides.items():
            type_ = graph.type_of(tensor)
            if tensor in graph.constants or not is_image(type_) or depth == 1 or (
                    type_.shape[self.channels] != 1) or type_.size == 1:
                continue
            repeated = self.edit.fresh(f"{name}.{side}")
            ones = np.ones((depth, 1, 1, 1), np.int8)
            self._conv(repeated, replace(node, type=self._with_depth(type_, depth)), tensor, ones,
                       (1, 1))
            sides[side] = repeated
        if sides == {"left": binary.left, "right": binary.right}:
            return False
        self.edit.put(name, replace(binary, left=sides["left"], right=sides["right"]), node.type,
                      node.origin)
        return True

    def _resize(self, name: str, node: Node, resize: Resize) -> bool:
        """Pixels that are repeated a whole number of times."""
        x = self.edit.graph.type_of(resize.x)
        if resize.kind != ResizeKind.NEAREST or any(
                x.shape[axis] != node.type.shape[axis] for axis in (0, self.channels)):
            return False
        times = [node.type.shape[axis] // x.shape[axis] for axis in self.pixels]
        for axis, each in zip(self.pixels, times, strict=True):
            if not each:                        # fewer pixels than there were
                return self._moved(name, node)
            size, index = x.shape[axis], np.arange(node.type.shape[axis])
            places = np.clip(resize.nearest_pixels(resize.places(axis, size)), 0, size - 1)
            if not np.array_equal(places, index // each):
                return False
        return self._repeat(name, node, resize.x, times)

    def _expand(self, name: str, node: Node, x: str) -> bool:
        """A row or a column that is repeated."""
        shape = self.edit.graph.type_of(x).shape
        if len(shape) != AXES or any(shape[axis] not in (
                (1, size) if axis in self.pixels else (size,))
                for axis, size in enumerate(node.type.shape)):
            return False
        return self._repeat(name, node, x, [node.type.shape[axis] // shape[axis]
                                            for axis in self.pixels])

    def _repeat(self, name: str, node: Node, x: str, times: list[int]) -> bool:
        """Every pixel as a block, or first as a column if blocks are large. Many channels are some
        at a time, which are read and written where they lie: each number is a sum of 64 products
        at most."""
        before, depth = self.edit.graph.type_of(x), self._depth(x)
        if min(depth, TOGETHER) * node.type.size > MOST_REPEATED or (
                max(times) > MOST_TIMES or depth > MOST_CHANNELS):
            return False
        if depth <= TOGETHER:
            self._repeat_pixels(name, node, x, before, times)
            return True
        parts = []
        for first in range(0, depth, TOGETHER):
            count = min(TOGETHER, depth - first)
            cut, part = (self.edit.fresh(f"{name}.{word}{first}") for word in ("from", "part"))
            some, type_ = np.eye(count, depth, first, np.int8), self._with_depth(before, count)
            self._conv(cut, replace(node, type=type_), x, some[..., None, None], (1, 1))
            self._repeat_pixels(part, replace(node, type=self._with_depth(node.type, count)), cut,
                                type_, times)
            parts.append(part)
        self.edit.put(name, Concat(parts=tuple(parts), axis=self.channels), node.type, node.origin)
        return True

    def _repeat_pixels(self, name: str, node: Node, x: str, before: TensorType,
                       times: list[int]) -> None:
        ones = np.eye(before.shape[self.channels], dtype=np.int8)[..., None, None]
        if prod(times) > MOST_TIMES:
            shape = list(before.shape)
            shape[self.pixels[0]] *= times[0]
            column = self.edit.fresh(f"{name}.column")
            self._put_transposed(column, replace(node, type=replace(before, shape=tuple(shape))),
                                 x, np.tile(ones, (1, 1, times[0], 1)))
            x, times = column, [1, times[1]]
        self._put_transposed(name, node, x, np.tile(ones, (1, 1, *times)))

    def _with_depth(self, type_: TensorType, depth: int) -> TensorType:
        shape = list(type_.shape)
        shape[self.channels] = depth
        return replace(type_, shape=tuple(shape))

    def _is_new(self, name: str) -> bool:
        """Whether a node is a window in place of a move."""
        return self.edit.nodes[name].operation != self.edit.graph.nodes[name].operation

    def _conv(self, name: str, node: Node, x: str, weights: Array, stride: Pair,
              pad: Sides = (0, 0, 0, 0)) -> None:
        """A convolution, of each channel apart if weights have one input each."""
        constant = self.edit.constant(f"{name}.weights", weights, Quantization((1.0,)))
        self.edit.put(name, Conv(
            x=x, weights=constant, stride=stride, pad=pad, channel_axis=self.channels, scales=(
                1.0,), groups=self._depth(x) // weights.shape[1]), node.type, node.origin)

    def _put_transposed(self, name: str, node: Node, x: str, weights: Array) -> None:
        """Every pixel as a block, which is as large as the stride."""
        constant = self.edit.constant(f"{name}.weights", weights, Quantization((1.0,)))
        self.edit.put(name, TransposedConv(
            x=x, weights=constant, stride=(weights.shape[2], weights.shape[3]),
            channel_axis=self.channels, scales=(1.0,)), node.type, node.origin)
