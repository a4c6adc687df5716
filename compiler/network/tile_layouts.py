"""Layouts of tensors in tiles: the default one, and whether two of them are the same bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from ...isa.config import Config
from ..errors import CompileError
from ..graph.types import Array, Shape
from ..operators.description import LARGEST
from ..operators.elementwise.lanewise import Lanewise
from ..operators.layout import Layout, memory_block, tile_images

IMAGE_AXES = (0, 1, 2, 3)       # image, channel, row and column in the order of ONNX
REMEMBERED = 16                 # layouts whose positions are cached


def image_axes(channel_axis: int) -> tuple[int, int, int, int]:
    """Where (image, channel, row, column) stand if channels stand here."""
    return IMAGE_AXES if channel_axis == 1 else (0, 3, 1, 2)


def natural_layout(shape: Shape, config: Config, channel_axis: int | None) -> Layout:
    """The layout of a tensor that only element-wise operations read: that of images, if it may be
    some and channels of all images of the network stand at one axis, or else with its last axis in
    lanes."""
    block = memory_block(config, config.block_out)
    if channel_axis is not None and len(shape) == len(IMAGE_AXES):
        axes = image_axes(channel_axis)
        images, channels, height, width = (shape[axis] for axis in axes)
        tiles = tile_images(images, channels, height, width, config, block)
        return tiles.with_axes(shape, axes)
    *rows, channels = shape if shape else (1,)
    count = prod(rows)
    return tile_images(1, channels, 1, count, config, block).with_axes(
        (1, 1, count, channels), image_axes(3))


def cover_layout(spec: Lanewise, layout: Layout, config: Config) -> Lanewise:
    """An element-wise operation on all tiles of a layout."""
    lanes = config.batch * config.block_out
    if layout.size % lanes:
        raise CompileError(f"tiles of {lanes} lanes do not hold a tensor of {layout.size}")
    tiles = layout.size // lanes
    rows = next(rows for rows in range(-(-tiles // LARGEST), tiles + 1) if tiles % rows == 0)
    return replace(spec, channels=config.block_out, images=config.batch, height=rows,
                   width=tiles // rows)


def same_bytes(one: Layout, other: Layout) -> bool:
    """Whether tensors of the same elements are the same bytes in both layouts. Bytes between
    elements do not matter: they are multiplied by zero."""
    if one == other:
        return True
    return one.size == other.size and not _is_filled(one) and not _is_filled(other) and bool(
        (positions(one) == positions(other)).all())


def _is_filled(layout: Layout) -> bool:
    """Whether bytes between elements have a meaning: a border that the host adds."""
    return any(stage.fill for stage in layout.stages)


@lru_cache(REMEMBERED)
def positions(layout: Layout) -> Array:
    """For each element of the tiles, which element of the tensor it is, counted from 1; 0 where
    there is none."""
    count = prod(layout.source)
    return layout.pack(np.arange(1, count + 1, dtype=np.int64)).ravel()
