"""Layouts as expressions: what they are in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.cpu.tiles import PLAIN, TILES, pack_tensor, unpack_tensor
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.tensor import topological_order
from microtron.compiler.operators.layout import Layout, Stage, tile_images, tile_layout, tile_rows
from microtron.isa.config import tiny

sizes = st.integers(1, 7)
configs = st.builds(lambda **fields: replace(tiny, **fields), batch=st.sampled_from((1, 2, 4)),
                    block_in=st.sampled_from((2, 4, 8)), block_out=st.sampled_from((2, 4, 8)))


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


@given(sizes, sizes, sizes, sizes, configs)
def test_images(n, channels, height, width, config):
    check(tile_images(n, channels, height, width, config, max(config.block_in, config.block_out)))


@given(sizes, sizes, sizes, configs, st.booleans())
def test_rows(matrices, rows, columns, config, blocks_first):
    check(tile_rows(matrices, rows, columns, config, config.block_in, blocks_first=blocks_first),
          "int32")


@given(st.tuples(sizes, sizes, sizes), st.permutations(range(3)), st.integers(1, 3),
       st.sampled_from(((1, 0), (4, 0), (4, 1), (4, 2), (6, 3))))
def test_axes_in_any_order(shape, order, rows, lanes):
    block, group = lanes
    check(tile_layout(shape, order, (order[1], rows), (order[2], block), group))


def test_a_wide_tile_is_narrow_ones_side_by_side():
    config = replace(tiny, batch=2, block_in=8)             # and block_out 4
    image = np.arange(2 * 8 * 3).reshape(2, 8, 1, 3)
    wide, narrow = (tile_images(2, 8, 1, 3, config, block).pack(image) for block in (8, 4))
    assert wide.ravel().tolist() == narrow[0].transpose(1, 2, 0, 3, 4).ravel().tolist()
    assert wide.ravel()[config.place_in_tile(1, 5)] == image[1, 5, 0, 0]


def test_channels_that_were_folded_are_filled_up_in_groups_of_lanes():
    shape = (2, 2, 2, 1, 3, 5)
    folded = Stage(shape, shape, tuple((axis, 1) for axis in range(6)), (0,) * 6)
    tiles = tile_images(2, 4, 3, 5, replace(tiny, batch=2, block_in=8), 8)
    check(Layout((folded, *tiles.stages)))


def test_windows_that_overlap_with_a_border_that_is_filled():
    """Two stages: rows of three that overlap, then two of these side by side."""
    windows = Stage((10,), (8, 3), ((0, 2), (0, 1)), (-1,), fill=7)
    pairs = Stage((4, 6), (6, 4), ((1, 1), (0, 1)), (0, 0))
    check(Layout((windows, pairs)), inverts=False)
    with pytest.raises(CompileError, match="not in there once"):
        unpack_tensor(Layout((windows, pairs)), "int8")
