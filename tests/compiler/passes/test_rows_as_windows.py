"""Rows that are joined or cut off become windows, exactly, where a window is next to them."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.shape import Concat, Slice
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.windows.rows_as_windows import MOST_PRODUCTS, rows_as_windows

from .checks import changed, kinds


def pool(builder, name, x, axis, known):
    return builder.add(name, Pool(x=x, kind=PoolKind.MAX, kernel=(1, 1), channel_axis=axis,
                                  low=-100), quantization=known)


def join(channel_axis, axis, sizes, known, *, size=3, others=None):
    """Images that are joined along an axis, and pooled."""
    builder = Builder()
    for number, extent in enumerate(sizes):
        shape = [2, size, size, size]
        shape[axis] = extent
        builder.input(f"x{number}", TensorType(tuple(shape), "int8", known if number == 0 else (
            others or known)))
    builder.add("y", Concat(parts=tuple(builder.inputs), axis=axis), quantization=known)
    pool(builder, "pool", "y", channel_axis, known)
    return builder.graph(("pool",))


@pytest.mark.parametrize("channel_axis", [1, 3])
@pytest.mark.parametrize("sizes", [(4, 1), (1, 4), (2, 3, 1), (1, 1, 1, 1)])
def test_rows_and_columns_are_joined(channel_axis, sizes):
    rng = np.random.default_rng(len(sizes))
    for axis in {1, 2, 3} - {channel_axis}:
        known = Quantization((float(rng.uniform(0.001, 3)),), (int(rng.integers(-128, 128)),))
        found = changed(rows_as_windows, join(channel_axis, axis, sizes, known))
        assert kinds(found) == ["Conv", *["Conv", "Binary"] * (len(sizes) - 1), "Pool"]


@pytest.mark.parametrize(("axis", "sizes"), [(3, (4, 1)), (0, (1, 1)), (1, (1,) * 5), (1, (4,))])
def test_other_joins_stay(axis, sizes):
    graph = join(3, axis, sizes, Quantization((0.5,), (-7,)))
    assert kinds(changed(rows_as_windows, graph)) == kinds(graph)


def test_large_images_stay():
    side = round((MOST_PRODUCTS / 2) ** (1 / 3)) + 1
    graph = join(3, 1, (side, 1), Quantization((0.5,), (-7,)), size=side)
    assert kinds(rows_as_windows(graph)) == kinds(graph)


@pytest.mark.parametrize("channel_axis", [1, 3])
@pytest.mark.parametrize(("start", "stop"), [((1, 0), (5, 4)), ((0, 0), (4, 4)), ((3, 1), (5, 3)),
                                             ((2, 3), (3, 4))])
@pytest.mark.parametrize(("first", "last"), [(0, 3), (0, 2), (1, 3), (1, 2)])
def test_rows_and_columns_are_cut_off(channel_axis, start, stop, first, last):
    known, builder = Quantization((0.5,), (-7,)), Builder()
    shape = (2, 3, 5, 4) if channel_axis == 1 else (2, 5, 4, 3)
    builder.input("x", TensorType(shape, "int8", known))
    pool(builder, "pool", "x", channel_axis, known)
    ends = [(0, 2), *[(first, last)] * (channel_axis == 1), *zip(start, stop, strict=True),
            *[(first, last)] * (channel_axis == 3)]
    builder.add("y", Slice(x="pool", starts=tuple(each for each, _ in ends),
                           stops=tuple(each for _, each in ends), steps=(1,) * 4),
                quantization=known)
    found = changed(rows_as_windows, builder.graph(("y",)))
    assert kinds(found) == ["Pool", *["Conv"] * (1 if last - first == 3 else 2)]


def test_what_no_window_is_next_to_stays():
    known, builder = Quantization((0.5,), (-7,)), Builder()
    builder.input("x", TensorType((1, 5, 4, 3), "int8", known))
    builder.input("z", TensorType((1, 5, 4, 3), "int8", known))
    pool(builder, "pool", "z", 3, known)
    builder.add("y", Slice(x="x", starts=(0, 1, 0, 0), stops=(1, 5, 4, 3), steps=(1,) * 4),
                quantization=known)
    graph = builder.graph(("y", "pool"))
    assert kinds(changed(rows_as_windows, graph)) == ["Pool", "Slice"]
