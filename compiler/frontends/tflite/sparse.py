"""Sparse constants of TFLite files as dense ones.

A sparse tensor is a tree. Its levels are axes in `traversal_order`: first those of the shape, in
blocks where `block_map` says so, then those of a block. A level is dense, with all of its indices
under every node, or has for each node the indices that are there. Leaves are the stored numbers.

    [[5, 0, 0], [0, 0, 7]]      level 0 dense, 2 indices
                                level 1: segments 0 1 2, indices 0 2        stored: 5 7
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Protocol

import numpy as np
import tflite

from ....base.classes.dataclass import dataclass
from ...graph.types import MOST_AXES, Array, GraphError, Shape
from .verifier import Table


class Budget(Protocol):
    """How many elements may still be read or made."""

    def spend(self, count: int) -> None: ...


@dataclass(frozen=True)
class _Level:
    """A level of the tree: an axis of blocks, or an axis inside a block."""

    size: int
    segments: Array | None = None       # None: dense
    indices: Array | None = None


def densify(sparsity: Table, stored: Array, shape: Shape, budget: Budget) -> Array:
    """The dense tensor: numbers where the tree has them, zeros elsewhere."""
    order = _integers(sparsity.TraversalOrderAsNumpy(), budget)
    blocked = _integers(sparsity.BlockMapAsNumpy(), budget)
    axes, levels = len(shape), len(order)
    if sorted(order) != list(range(levels)) or levels != axes + len(blocked) or (
            sparsity.DimMetadataLength() != levels) or levels > 2 * MOST_AXES:
        raise GraphError(f"its sparse numbers have {levels} levels in the order {order[:8]} and "
                         f"{len(blocked)} axes of blocks, which does not fit {axes} axes")
    if len(set(blocked)) != len(blocked) or not all(0 <= each < axes for each in blocked):
        raise GraphError(f"its sparse blocks are along {blocked[:8]}, but there are {axes} axes")
    found = {axis: _level(sparsity.DimMetadata(number), budget)
             for number, axis in enumerate(order)}
    sizes = [found[axis].size for axis in range(levels)]
    for axis in range(axes):
        if found[axis].segments is None:
            continue
        block = sizes[axes + blocked.index(axis)] if axis in blocked else 1
        sizes[axis] = shape[axis] // max(block, 1)
    whole = [sizes[axis] * (sizes[axes + blocked.index(axis)] if axis in blocked else 1)
             for axis in range(axes)]
    if tuple(whole) != shape:
        raise GraphError(f"its sparse numbers have the shape {tuple(whole)} instead of {shape}")
    budget.spend(prod(shape))
    return _scatter(list(_places(order, found, sizes, budget)), stored, sizes, axes, blocked)


def _integers(vector: Table, budget: Budget) -> list[int]:
    array = np.empty(0, np.int32) if isinstance(vector, int) else vector
    budget.spend(array.size)
    return [int(each) for each in array]


def _level(metadata: Table, budget: Budget) -> _Level:
    if metadata.Format() == tflite.DimensionType.DENSE:
        if metadata.DenseSize() < 0:
            raise GraphError(f"a level of its sparse numbers has size {metadata.DenseSize()}")
        return _Level(metadata.DenseSize())
    segments = _indices(metadata.ArraySegmentsType(), metadata.ArraySegments(), budget)
    indices = _indices(metadata.ArrayIndicesType(), metadata.ArrayIndices(), budget)
    if not segments.size or segments[0] != 0 or segments[-1] != indices.size or (
            np.diff(segments) < 0).any():
        raise GraphError(f"segments of its sparse numbers must rise from 0 to {indices.size}")
    return _Level(0, segments, indices)


def _indices(kind: int, table: Table, budget: Budget) -> Array:
    """The numbers of a vector that may have one of three types."""
    names = {number: name for name, number in vars(tflite.SparseIndexVector).items()
             if isinstance(number, int)}
    if table is None or names.get(kind, "NONE") == "NONE":
        raise GraphError("a level of its sparse numbers has no indices")
    vector = getattr(tflite, names[kind])()
    vector.Init(table.Bytes, table.Pos)
    values = vector.ValuesAsNumpy()
    array = np.empty(0, np.int64) if isinstance(values, int) else values.astype(np.int64)
    budget.spend(array.size)
    return array


def _places(order: list[int], levels: dict[int, _Level], sizes: list[int],
            budget: Budget) -> Iterator[tuple[int, Array]]:
    """For each axis, the index of every leaf along it."""
    count = 1
    found: dict[int, Array] = {}
    for axis in order:
        level = levels[axis]
        if level.segments is None or level.indices is None:
            parents = np.repeat(np.arange(count), level.size)
            mine = np.tile(np.arange(level.size), count)
        else:
            if level.segments.size != count + 1:
                raise GraphError(f"a level of its sparse numbers has {level.segments.size} "
                                 f"segments, but must have {count + 1}")
            parents, mine = np.repeat(np.arange(count), np.diff(level.segments)), level.indices
            if mine.size and not 0 <= int(mine.min()) <= int(mine.max()) < sizes[axis]:
                raise GraphError(f"indices of its sparse numbers reach from {mine.min()} to "
                                 f"{mine.max()}, but must be below {sizes[axis]}")
        budget.spend(mine.size)
        found = {other: each[parents] for other, each in found.items()} | {axis: mine}
        count = len(mine)
    yield from found.items()


def _scatter(places: list[tuple[int, Array]], stored: Array, sizes: list[int], axes: int,
             blocked: list[int]) -> Array:
    leaves = len(places[0][1]) if places else 1
    if stored.size != leaves:
        raise GraphError(f"it stores {stored.size} numbers, but its sparse tree has {leaves}")
    dense = np.zeros(sizes, stored.dtype)
    dense[tuple(each for _, each in sorted(places, key=lambda pair: pair[0]))] = stored
    within = [[axes + blocked.index(axis)] if axis in blocked else [] for axis in range(axes)]
    moved = dense.transpose([each for axis in range(axes) for each in (axis, *within[axis])])
    shape = [sizes[axis] * prod(sizes[each] for each in within[axis]) for axis in range(axes)]
    return np.ascontiguousarray(moved.reshape(shape))
