"""What some moves do to an image, as the window that would do the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ...graph.graph import Graph, Node
from ...graph.operation import Value
from ...graph.operations.data_movement.blocks import DepthToSpace, SpaceToDepth
from ...graph.operations.data_movement.indexing import Expand, Gather, Tile
from ...graph.operations.data_movement.shape import Concat, Pad, PadMode, Reshape, Slice, Transpose
from ...graph.operations.layers.window import Pair, Sides
from ...graph.operations.vision.resize import Resize, ResizeKind
from ...graph.types import Array, TensorType

MOVES = (Reshape, Transpose, Slice, Gather, Tile, Expand, SpaceToDepth, DepthToSpace)
FURTHEST = 8                # moves in a row
MOST_NUMBERS = 1 << 22      # of a tensor whose places are all tried
BORDER = -1                 # the place of a number that is the zero point
AXES = 4


@dataclass(frozen=True)
class Window:
    """For each channel of the result one number of a window: its channel, its row and its column.
    A channel of −1 is zero points. Rows and columns count from the window's first, at `pad`
    before the image."""

    channels: Array
    rows: Array
    columns: Array
    kernel: Pair
    stride: Pair
    pad: Sides

    @property
    def keeps_pixels(self) -> bool:
        """Whether every number stays in its row and column."""
        return (self.kernel, self.stride, self.pad) == ((1, 1), (1, 1), (0, 0, 0, 0))

    def keeps_channels(self, depth: int) -> bool:
        return np.array_equal(self.channels, np.arange(depth))

    def weights(self, depth: int) -> Array:
        """A 1 where each number comes from, of an image with so many channels."""
        found = np.zeros((len(self.channels), depth, *self.kernel), np.int8)
        inside = np.flatnonzero(self.channels != BORDER)
        found[inside, self.channels[inside], self.rows[inside], self.columns[inside]] = 1
        return found


def windows_before(graph: Graph, name: str, channels: int) -> Iterator[tuple[str, Window]]:
    """Images that moves alone make a tensor of, the first of all in front, each with the window
    that does what the moves between do. `channels` is the axis of both."""
    for source, places, shape in _places_before(graph, name, channels):
        window = find_window(places, shape)
        if window is not None:
            yield source, window


def blocks_before(graph: Graph, name: str, channels: int) -> Iterator[tuple[str, Window]]:
    """Images whose channels moves alone make blocks of pixels of, each with the window that would
    take the blocks apart again."""
    for source, places, shape in _places_before(graph, name, channels):
        order = np.argsort(places, axis=None)
        if places.size == prod(shape) and places.flat[order[0]] == 0 and (
                np.diff(places.flat[order]) == 1).all():
            window = find_window(order.reshape(shape), places.shape)
            if window is not None and window.kernel == window.stride and not any(window.pad):
                yield source, window


def _places_before(graph: Graph, name: str,
                   channels: int) -> Iterator[tuple[str, Array, tuple[int, ...]]]:
    """Images that a tensor is made of, where in each its numbers lie, and the image's shape; with
    channels on axis 1."""
    result = graph.type_of(name)
    for source in reversed(_sources(graph, name, FURTHEST)):
        type_ = graph.type_of(source)
        if source in graph.constants or not is_image(type_) or type_.size > MOST_NUMBERS:
            continue
        images, *sides = type_.shape
        shape = (images, sides.pop(channels - 1), *sides)
        places = np.moveaxis(np.arange(type_.size).reshape(shape), 1, channels)
        moved = _Places(graph, {source: places}).of(name)
        if moved is not None and moved.shape == result.shape:
            yield source, np.moveaxis(moved, channels, 1), shape


def is_image(type_: TensorType) -> bool:
    """Whether a tensor may be images that the accelerator has."""
    known = type_.quantization
    return len(type_.shape) == AXES and 0 not in type_.shape and type_.dtype == "int8" and (
        known is not None and len(known.scales) == 1)


def _sources(graph: Graph, name: str, depth: int) -> list[str]:
    """Tensors that moves alone make another one of, each of which is all that it is made of; the
    nearest first."""
    node = graph.nodes.get(name)
    if node is None or not depth or node.type.size > MOST_NUMBERS:
        return []
    if isinstance(node.operation, Concat):
        ways = [_sources(graph, each, depth - 1) for each in node.operation.parts]
        return [each for each in ways[0] if all(each in other for other in ways[1:])]
    if not _is_move(graph, node):
        return []
    x = node.operation.operands()[0]
    return [x, *_sources(graph, x, depth - 1)]


def _is_move(graph: Graph, node: Node) -> bool:
    match node.operation:
        case Gather(indices=indices):
            return indices in graph.constants
        case Pad(mode=PadMode.CONSTANT, value=value):
            known = node.type.quantization
            return known is not None and len(known.scales) == 1 and value == known.zero_point
        case Resize(kind=kind):
            return kind == ResizeKind.NEAREST
        case operation:
            return isinstance(operation, MOVES)


@dataclass
class _Places:
    """Where in a source each number of a tensor lies."""

    graph: Graph
    known: dict[str, Array]

    def of(self, name: str) -> Array | None:
        if name not in self.known:
            node = self.graph.nodes.get(name)
            if node is None or not (isinstance(node.operation, Concat)
                                    or _is_move(self.graph, node)):
                return None
            values = []
            for each in node.operation.operands():
                type_, array = self.graph.type_of(each), self.graph.array(each)
                array = self.of(each) if array is None else array
                if array is None:
                    return None
                values.append(Value(type_, array))
            operation = node.operation
            if isinstance(operation, Pad):
                operation = replace(operation, value=BORDER)
            self.known[name] = operation.compute(node.type, *values)
        return self.known[name]


def find_window(places: Array, source: tuple[int, ...]) -> Window | None:
    """The window that takes from an image what lies at some places, counted through all its
    numbers. Both have channels on axis 1."""
    images, depth, high, wide = source
    if places.shape[0] != images:
        return None
    outputs, rows, columns = places.shape[1:]
    stride = (_step(places, 2, wide), _step(places, 3, 1))
    if min(stride) < 1:
        return None
    first = places[0].reshape(outputs, -1)
    at = (first != BORDER).argmax(axis=1)               # of each channel, one that lies inside
    place = first[np.arange(outputs), at]
    channels = np.where(place == BORDER, BORDER, place // (high * wide))
    if channels.max() >= depth:
        return None                                     # of another image
    above = place // wide % high - at // columns * stride[0]
    before = place % wide - at % columns * stride[1]
    above, before = (np.where(channels == BORDER, 0, each) for each in (above, before))
    y = np.arange(rows) * stride[0] + above[:, None]
    x = np.arange(columns) * stride[1] + before[:, None]
    inside = ((channels != BORDER)[:, None, None] & ((y >= 0) & (y < high))[:, :, None]
              & ((x >= 0) & (x < wide))[:, None])
    right = (channels[:, None, None] * high + y[:, :, None]) * wide + x[:, None]
    for image in range(images):
        if not np.array_equal(places[image], np.where(
                inside, right + image * depth * high * wide, BORDER)):
            return None
    along = (place_taps(above, rows, high, stride[0]), place_taps(before, columns, wide, stride[1]))
    return Window(channels, along[0].places, along[1].places,
                  (along[0].length, along[1].length), stride, (*along[0].pad, *along[1].pad))


def _step(places: Array, axis: int, unit: int) -> int:
    """By how many rows or columns places move on along an axis; 0 if it is no whole number."""
    one, other = (np.take(places, range(*each), axis) for each in (
        (1, places.shape[axis]), (0, places.shape[axis] - 1)))
    known = np.flatnonzero((one != BORDER) & (other != BORDER))
    if not known.size:
        return 1
    step, rest = divmod(int(one.flat[known[0]] - other.flat[known[0]]), unit)
    return 0 if rest else step


@dataclass(frozen=True)
class Taps:
    """Where in a window its numbers lie, along one axis, and the border that it takes."""

    places: Array
    length: int
    pad: Pair


def place_taps(first: Array, count: int, size: int, step: int) -> Taps:
    """The shortest window around numbers, of which there are as many as wanted in an image of some
    size, a step apart. The first window's numbers lie where `first` says, from the image's edge."""
    before = max(0, -int(first.min()))
    length = int(first.max()) + before + 1
    after = (count - 1) * step + length - before - size
    length += max(0, 1 - after - step)                  # so that there are no more windows
    return Taps(first + before, length, (before, max(0, after)))
