"""Layouts as expressions: what they are in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.cpu.tiles import PLAIN, TILES, pack_tensor, unpack_tensor
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.tensor import topological_order
from microtron.compiler.operators.layout import Layout, Stage, tile_images, tile_layout, tile_rows

sizes = st.integers(1, 7)


def check(layout, dtype="int8", inverts=True):
    tensor = np.arange(np.prod(layout.source)).astype(dtype).reshape(layout.source)
    there = pack_tensor(layout, dtype)
    assert there.name == TILES
    tiles = evaluate(there, {each: tensor for each in topological_order(there)
                             if each.body is None})
    np.testing.assert_array_equal(tiles, layout.pack(tensor))
    if inverts:
        back = unpack_tensor(layout, dtype)
        assert back.name == PLAIN
        plain = evaluate(back, {each: tiles for each in topological_order(back)
                                if each.body is None})
        np.testing.assert_array_equal(plain, layout.unpack(tiles))
        np.testing.assert_array_equal(plain, tensor)


@given(sizes, sizes, sizes, sizes, st.integers(1, 4), st.integers(1, 4))
def test_images(n, channels, height, width, batch, block):
    check(tile_images(n, channels, height, width, batch, block))


@given(sizes, sizes, sizes, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_rows(matrices, rows, columns, batch, block, blocks_first):
    check(tile_rows(matrices, rows, columns, batch, block, blocks_first=blocks_first), "int32")


@given(st.lists(st.tuples(sizes, st.integers(1, 3)), min_size=1, max_size=3), st.randoms())
def test_axes_in_any_order(axes, random):
    order = [(axis, inside) for axis in range(len(axes)) for inside in (False, True)]
    random.shuffle(order)
    check(tile_layout(tuple(size for size, _ in axes), {axis: block for axis, (_, block)
                                                        in enumerate(axes)}, order))


def test_windows_that_overlap_with_a_border_that_is_filled():
    """Two stages: rows of three that overlap, then two of these side by side."""
    windows = Stage((10,), (8, 3), ((0, 2), (0, 1)), (-1,), fill=7)
    pairs = Stage((4, 6), (6, 4), ((1, 1), (0, 1)), (0, 0))
    check(Layout((windows, pairs)), inverts=False)
    with pytest.raises(CompileError, match="not in there once"):
        unpack_tensor(Layout((windows, pairs)), "int8")
