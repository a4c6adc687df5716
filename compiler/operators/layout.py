"""How plain tensors lie in tiles, as data: so that it can be compared, saved and compiled.

A layout takes an element of the tiles to an element of the tensor, in stages. In each, an index of
the source is the sum of some indices of the result, each times a step:

    (n, c, y, x) → tiles (n // batch, c // block, y, x, n % batch, c % block)

has the steps n: batch, c: block, y: 1, x: 1, n: 1, c: 1. Where that leaves the source there is a
fill value. Two tensors whose layouts are equal can share their bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ..errors import CompileError
from ..nest.nest import Interleave
from .packing import Array

Shape = tuple[int, ...]
Step = tuple[int, int]          # an axis of the source, and how far an index moves along it


@dataclass(frozen=True)
class Stage:
    """One step from a source to a result, whose dimensions each walk along one axis."""

    source: Shape
    shape: Shape
    steps: tuple[Step, ...]     # of each dimension of the result
    starts: tuple[int, ...]     # of each axis of the source; before the first, or after the last,
    fill: int = 0               # there is this

    def __post_init__(self) -> None:
        """Refuse what would reach beyond the source: layouts are read from files too."""
        if len(self.steps) != len(self.shape) or len(self.starts) != len(self.source):
            raise CompileError(f"a stage of {len(self.source)} axes and {len(self.shape)} "
                               f"dimensions has {len(self.starts)} starts and {len(self.steps)} "
                               f"steps")
        if min((*self.source, *self.shape, 1)) < 1:
            raise CompileError(f"a stage from shape {self.source} to {self.shape} is empty")
        for axis, step in self.steps:
            if not 0 <= axis < len(self.source) or step < 0:
                raise CompileError(f"a stage has the step {step} along axis {axis} of "
                                   f"{len(self.source)}")

    def apply(self, tensor: Array) -> Array:
        """The result for a source."""
        tensor = tensor.reshape(self.source)
        before, after = self.borders()
        if any(before) or any(after):
            tensor = np.pad(tensor, list(zip(before, after, strict=True)),
                            constant_values=self.fill)
        first = tuple(slice(start + more, None) for start, more
                      in zip(self.starts, before, strict=True))
        moved = np.lib.stride_tricks.as_strided(
            tensor[first], self.shape,
            [step * tensor.strides[axis] for axis, step in self.steps], writeable=False)
        return np.ascontiguousarray(moved)

    def borders(self) -> tuple[list[int], list[int]]:
        """How far a result reaches beyond the source, before and after each axis."""
        ends = list(self.starts)
        for (axis, step), extent in zip(self.steps, self.shape, strict=True):
            ends[axis] += step * (extent - 1)
        return ([max(0, -start) for start in self.starts],
                [max(0, end + 1 - size) for end, size in zip(ends, self.source, strict=True)])

    def invert(self, result: Array) -> Array:
        """The source of a result, if each of its elements is in there once."""
        order, sizes = self.inverse()
        tensor = result.reshape(self.shape).transpose(order).reshape(sizes)
        return np.ascontiguousarray(tensor[tuple(slice(size) for size in self.source)])

    def inverse(self) -> tuple[list[int], list[int]]:
        """Dimensions of the result in the order of the source's axes, and how long each axis is
        then, or longer than in the source. Refused if an element is not in there once."""
        order, sizes = [], []
        for axis, size in enumerate(self.source):
            dims = sorted((dim for dim, (along, _) in enumerate(self.steps) if along == axis),
                          key=lambda dim: -self.steps[dim][1])
            step = 1
            for dim in reversed(dims):
                if self.shape[dim] > 1 and self.steps[dim][1] != step:
                    raise CompileError(f"{self}: an element of axis {axis} is not in there once")
                step *= self.shape[dim]
            if self.starts[axis] or step < size:
                raise CompileError(f"{self}: some elements of axis {axis} are not in there")
            order += dims
            sizes.append(step)
        return order, sizes

    def with_axes(self, source: Shape, axes: Sequence[int]) -> Stage:
        """The same for a source whose axes stand elsewhere: axis i of this one is axes[i]."""
        starts = [0] * len(source)
        for axis, start in zip(axes, self.starts, strict=True):
            starts[axis] = start
        return replace(self, source=source, starts=tuple(starts),
                       steps=tuple((axes[axis], step) for axis, step in self.steps))


@dataclass(frozen=True)
class Layout:
    """Stages one after the other; each sees the result before in the shape of its source."""

    stages: tuple[Stage, ...]

    @property
    def source(self) -> Shape:
        """The shape of the plain tensor."""
        return self.stages[0].source

    @property
    def size(self) -> int:
        """Elements of the tiles."""
        return prod(self.stages[-1].shape)

    def pack(self, tensor: Array) -> Array:
        """A plain tensor in tiles."""
        for stage in self.stages:
            tensor = stage.apply(tensor)
        return tensor

    def unpack(self, tiles: Array) -> Array:
        """A plain tensor from tiles."""
        for stage in reversed(self.stages):
            tiles = stage.invert(tiles)
        return tiles

    def with_axes(self, source: Shape, axes: Sequence[int]) -> Layout:
        """The same for a plain tensor whose axes stand elsewhere."""
        return Layout((self.stages[0].with_axes(source, axes), *self.stages[1:]))


def ways_of(config: Config, block: int) -> int:
    """How many tiles of `block` lanes are one in memory, where activations lie in tiles of the
    larger block."""
    return largest_block(config) // block


def largest_block(config: Config) -> int:
    """Lanes of a tile in memory where activations lie in tiles of the larger block."""
    return max(config.block_in, config.block_out)


def memory_block(config: Config, block: int) -> int:
    """Lanes of a tile in memory that is read, or written, in tiles of `block` lanes."""
    return block * ways_of(config, block)


def interleaves(config: Config, *, read: Sequence[str] = ("data",),
                written: Sequence[str] = ("output",), dimension: int = 1) -> dict[str, Interleave]:
    """Tensors with channel blocks along a dimension that are interleaved in memory: those that are
    read in tiles of `block_in` lanes, and those in tiles of `block_out`."""
    ways = {**dict.fromkeys(read, ways_of(config, config.block_in)),
            **dict.fromkeys(written, ways_of(config, config.block_out))}
    return {name: Interleave(dimension, count) for name, count in ways.items() if count > 1}


def wide_tiles(tiles: Array, config: Config, block: int) -> Array:
    """Tiles of `block` lanes, as a program leaves them in memory, as those that lie there."""
    ways = ways_of(config, block)
    return tiles if ways == 1 else tiles.reshape(*tiles.shape[:-3], config.batch, ways * block)


def tile_layout(source: Shape, outer: Sequence[int], rows: tuple[int, int],
                lanes: tuple[int, int], group: int = 0) -> Layout:
    """A tensor with two axes cut into blocks that are filled up to whole ones, `rows` and `lanes`
    of tiles: an axis and its block. `outer` are the axes that tiles follow one another along.
    In a tile, groups of so many lanes follow one another, each with all rows."""
    blocks = dict((rows, lanes))
    shape = [-(-source[axis] // blocks.get(axis, 1)) for axis in outer]
    steps = [(axis, blocks.get(axis, 1)) for axis in outer]
    (row_axis, height), (lane_axis, width) = rows, lanes
    if group and group < width and height > 1:
        shape, width = [*shape, width // group], group
        steps.append((lane_axis, group))
    return Layout((Stage(source, (*shape, height, width),
                         (*steps, (row_axis, 1), (lane_axis, 1)), (0,) * len(source)),))


def tile_images(images: int, channels: int, height: int, width: int, config: Config,
                block: int, columns: int = 1) -> Layout:
    """(n, channel, y, x) → (n block, channel block, y, x, batch, lane); if several columns share a
    tile, (n, channel block, y, group of columns, column, lane), one image after the other"""
    shape = images, channels, height, width
    if columns > 1:
        pixel = block // columns
        return Layout((Stage(shape, (images, -(-channels // pixel), height, -(-width // columns),
                                     columns, pixel),
                             ((0, 1), (1, pixel), (2, 1), (3, columns), (3, 1), (1, 1)),
                             (0,) * len(shape)),))
    return tile_layout(shape, range(4), (0, config.batch), (1, block), config.depthwise_lanes)


def tile_rows(matrices: int, rows: int, columns: int, config: Config, block: int, *,
               blocks_first: bool = False) -> Layout:
    """(matrix, row, column) → (matrix, row block, column block, batch, lane), or with column blocks
    before rows"""
    return tile_layout((matrices, rows, columns), (0, 2, 1) if blocks_first else (0, 1, 2),
                       (1, config.batch), (2, block), config.depthwise_lanes)
