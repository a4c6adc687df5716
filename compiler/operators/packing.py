"""Tensors as the accelerator wants them: in tiles, with channels filled up to whole blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES
from ..errors import CompileError

Array = npt.NDArray[Any]
BYTE, HALF = 8, 4           # bits


def filled(array: Array, axis: int, multiple: int) -> Array:
    """An axis filled with zeros up to a multiple."""
    missing = -array.shape[axis] % multiple
    widths = [(0, missing if place == axis else 0) for place in range(array.ndim)]
    return np.pad(array, widths) if missing else array


def pack_activations(tensor: Array, config: Config, block: int) -> Array:
    """(n, channels, y, x) → (n block, channel block, y, x, batch, lane)"""
    tensor = filled(filled(tensor, 0, config.batch), 1, block)
    images, channels, height, width = tensor.shape
    tiles = tensor.reshape(images // config.batch, config.batch, channels // block, block, height,
                           width)
    return np.ascontiguousarray(tiles.transpose(0, 2, 4, 5, 1, 3))


def unpack_activations(tiles: Array, images: int, channels: int) -> Array:
    """The inverse, without what was filled up."""
    far, blocks, height, width, batch, lanes = tiles.shape
    tensor = tiles.transpose(0, 4, 1, 5, 2, 3).reshape(far * batch, blocks * lanes, height, width)
    return np.ascontiguousarray(tensor[:images, :channels])


def pack_weights(weights: Array, config: Config) -> Array:
    """(outputs, inputs, y, x) → (output block, input block, y, x, output lane, input lane), where
    the lanes are bytes of a tile if weights have 4 bits (see `weights_in_dram`)"""
    check_weights(weights, config)
    return weights_in_dram(weight_tiles(weights, config), config)


def check_weights(weights: Array, config: Config) -> None:
    """Refuse weights that have more bits than those of the configuration."""
    limit = 1 << config.wgt_bits - 1
    outside = np.argwhere((weights < -limit) | (weights >= limit))
    if len(outside):
        place = ", ".join(map(str, outside[0]))
        raise CompileError(f"weights[{place}] is {weights[tuple(outside[0])]}, but weights of this "
                           f"configuration have {config.wgt_bits} bits: {-limit} to {limit - 1}")


def weight_tiles(weights: Array, config: Config) -> Array:
    """(outputs, inputs, y, x) → (output block, input block, y, x, output lane, input lane)"""
    weights = filled(filled(weights, 0, config.block_out), 1, config.block_in)
    outputs, inputs, height, width = weights.shape
    tiles = weights.reshape(outputs // config.block_out, config.block_out,
                            inputs // config.block_in, config.block_in, height, width)
    return np.ascontiguousarray(tiles.transpose(0, 2, 4, 5, 1, 3))


def weights_in_dram(tiles: Array, config: Config) -> Array:
    """Tiles, or rows of tiles, of weights (…, row, lane) as programs take them: weights of 8 bits
    as they are, those of 4 bits two to a byte, the first in the low half: (…, byte)."""
    if config.wgt_bits == BYTE:
        return tiles
    pairs = tiles.astype(np.uint8).reshape(*tiles.shape[:-2], -1, 2)
    return pairs[..., 0] & 0xF | pairs[..., 1] << HALF


def pack_parameters(bias: Array, multiplier: Array, shift: Array, config: Config) -> Array:
    """Three numbers a channel → (block, 3, batch, lane), the same for every image of a batch."""
    rows = np.stack([filled(np.asarray(each, np.int32), 0, config.block_out)
                     for each in (bias, multiplier, shift)])
    tiles = rows.reshape(PARAMETER_TILES, -1, 1, config.block_out).transpose(1, 0, 2, 3)
    return np.ascontiguousarray(np.repeat(tiles, config.batch, axis=2).astype(np.int32))


def bias_with_zero_point(bias: Array, weights: Array, zero_point: int) -> Array:
    """The bias of sums over (x - zero point) × w, for sums over x × w. Wraps like the sums do."""
    sums = weights.astype(np.int64).sum(axis=tuple(range(1, weights.ndim)))
    corrected: Array = (np.asarray(bias, np.int64) - zero_point * sums).astype(np.int32)
    return corrected
