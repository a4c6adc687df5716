"""Tensors of special convolutions as the accelerator wants them: folded, depthwise, grouped and
transposed. What they have in common with plain ones is in `packing`."""

from __future__ import annotations

import numpy as np

from ...isa.config import Config
from .conv2d import Conv2d
from .depthwise import Chunks
from .first_layer import Fold, along
from .grouped import Grouped
from .packing import (
    Array,
    bias_with_zero_point,
    check_weights,
    filled,
    pack_activations,
    pack_parameters,
    pack_weights,
    unpack_activations,
    weight_tiles,
    weights_in_dram,
)
from .transposed import PhasePair, Transposed, phases, shapes


def with_lanes(tiles: Array, lanes: int) -> Array:
    """The last axis filled with zeros up to so many lanes."""
    return filled(tiles, tiles.ndim - 1, lanes)


def pack_depthwise_activations(tensor: Array, config: Config, multiplier: int = 1) -> Array:
    """(n, channels, y, x) → (n block, channel block, y, x, batch, lane), a channel repeated for
    every output channel that reads it."""
    repeated = np.repeat(tensor, multiplier, axis=1)
    return with_lanes(pack_activations(repeated, config, config.depthwise_lanes), config.block_in)


def unpack_depthwise_activations(tiles: Array, config: Config, images: int,
                                 channels: int) -> Array:
    """The inverse for results, without what was filled up."""
    return unpack_activations(tiles[..., :config.depthwise_lanes], images, channels)


def pack_depthwise_weights(weights: Array, config: Config, chunks: Chunks) -> Array:
    """(channels, y, x) → (block, chunk y, chunk x, row, lane): a row for each tap of a chunk"""
    check_weights(weights, config)
    lanes, (height, width), (far_y, far_x) = config.depthwise_lanes, chunks.taps, chunks.counts
    weights = filled(filled(filled(weights, 0, lanes), 1, height * far_y), 2, width * far_x)
    taps = weights.reshape(-1, lanes, far_y, height, far_x, width).transpose(0, 2, 4, 3, 5, 1)
    rows = taps.reshape(*taps.shape[:3], height * width, lanes)
    tiles = with_lanes(filled(rows, 3, chunks.rows(config)), config.block_in)
    return weights_in_dram(np.ascontiguousarray(tiles), config)


def pack_depthwise_parameters(bias: Array, multiplier: Array, shift: Array,
                              config: Config) -> Array:
    """Three numbers a channel → (block, 3, batch, lane), the same for every image of a batch."""
    lanes = config.depthwise_lanes
    bias, multiplier, shift = (
        with_lanes(filled(np.asarray(each, np.int32), 0, lanes).reshape(-1, lanes),
                   config.block_out).reshape(-1) for each in (bias, multiplier, shift))
    return pack_parameters(bias, multiplier, shift, config)


def fold_activations(tensor: Array, spec: Conv2d, fold: Fold) -> Array:
    """(n, channels, y, x) → (n, taps × channels, y, x) with taps of the kernel in the channels;
    see `operators.first_layer`."""
    y, x = along(spec, fold, 0), along(spec, fold, 1)
    (top, _, left, _), (dy, dx) = spec.pad, spec.dilation
    sizes = [(each.size - 1) * each.step + (taps - 1) * dilation + 1
             for each, taps, dilation in zip((y, x), fold.taps, spec.dilation, strict=True)]
    border = [(0, 0), (0, 0), *((before, max(0, size - before - inside)) for before, size, inside
                                in zip((top, left), sizes, tensor.shape[2:], strict=True))]
    padded = np.pad(tensor, border, constant_values=spec.zero_point_in)
    parts = [padded[:, :, i * dy:, j * dx:][:, :, ::y.step, ::x.step][:, :, :y.size, :x.size]
             for i in range(fold.rows) for j in range(fold.columns)]
    return np.concatenate(parts, axis=1)


def fold_weights(weights: Array, fold: Fold) -> Array:
    """(outputs, channels, y, x) → (outputs, taps × channels, y, x) for folded activations"""
    weights = filled(filled(weights, 2, fold.rows), 3, fold.columns)
    outputs, channels, height, width = weights.shape
    taps = weights.reshape(outputs, channels, height // fold.rows, fold.rows,
                           width // fold.columns, fold.columns).transpose(0, 3, 5, 1, 2, 4)
    return np.ascontiguousarray(taps.reshape(outputs, fold.rows * fold.columns * channels,
                                             height // fold.rows, width // fold.columns))


def pack_grouped_activations(tensor: Array, config: Config, spec: Grouped, merged: int) -> Array:
    """(n, channels, y, x) → (n block, merged groups, channel block, y, x, batch, lane)"""
    groups = _merged_groups(tensor, 1, spec.group_in, merged)
    tiles = [pack_activations(group, config, config.block_in) for group in groups]
    return np.stack(tiles, axis=1)


def unpack_grouped_activations(tiles: Array, spec: Grouped, merged: int) -> Array:
    """The inverse for results, without what was filled up."""
    channels = merged * spec.group_out
    groups = [unpack_activations(tiles[:, number], spec.images, channels)
              for number in range(tiles.shape[1])]
    return np.ascontiguousarray(np.concatenate(groups, axis=1)[:, :spec.channels_out])


def pack_grouped_weights(weights: Array, config: Config, spec: Grouped, merged: int) -> Array:
    """(outputs, inputs of a group, y, x) → (merged groups, output block, input block, y, x, output
    lane, input lane), block-diagonal"""
    check_weights(weights, config)
    packed = []
    for part in _merged_groups(weights, 0, spec.group_out, merged):
        diagonal = np.zeros((merged * spec.group_out, merged * spec.group_in, *spec.kernel),
                            weights.dtype)
        for number in range(merged):
            rows = slice(number * spec.group_out, (number + 1) * spec.group_out)
            columns = slice(number * spec.group_in, (number + 1) * spec.group_in)
            diagonal[rows, columns] = part[rows]
        packed.append(pack_weights(diagonal, config))
    return np.stack(packed)


def pack_grouped_parameters(bias: Array, multiplier: Array, shift: Array, config: Config,
                            spec: Grouped, merged: int) -> Array:
    """Three numbers a channel → (merged groups, block, 3, batch, lane)"""
    rows = np.stack([np.asarray(each, np.int32) for each in (bias, multiplier, shift)])
    return np.stack([pack_parameters(group[0], group[1], group[2], config)
                     for group in _merged_groups(rows, 1, spec.group_out, merged)])


def _merged_groups(array: Array, axis: int, group: int, merged: int) -> list[Array]:
    """An axis of channels cut into merged groups, the last one filled up."""
    whole = filled(array, axis, group * merged)
    return np.split(whole, whole.shape[axis] // (group * merged), axis=axis)


def pack_transposed_weights(weights: Array, config: Config, spec: Transposed) -> Array:
    """(inputs, outputs, y, x) → (phase, output block, input block, y, x, output lane, input lane):
    the taps of each phase, in the order in which it reads"""
    check_weights(weights, config)
    packed = np.zeros(shapes(spec, config).weights, weights.dtype)
    for number, phase in enumerate(phases(spec)):
        if phase.y.taps and phase.x.taps:
            tiles = weight_tiles(_taps(weights, phase), config)
            packed[number, :, :, :tiles.shape[2], :tiles.shape[3]] = tiles
    return weights_in_dram(packed, config)


def _taps(weights: Array, phase: PhasePair) -> Array:
    """The weights of a phase as (outputs, inputs, y, x)."""
    taps: Array = weights[:, :, list(phase.y.taps)][:, :, :, list(phase.x.taps)]
    return taps.transpose(1, 0, 2, 3)


def pack_transposed_parameters(bias: Array, weights: Array, multiplier: Array, shift: Array,
                               config: Config, spec: Transposed) -> Array:
    """Three numbers a channel → (phase, block, 3, batch, lane). What the zero point of the input
    adds to a sum depends on the taps of the phase, and is part of the bias."""
    packed = []
    for phase in phases(spec):
        taps = _taps(weights, phase)
        packed.append(pack_parameters(bias_with_zero_point(bias, taps, spec.zero_point_in),
                                      multiplier, shift, config))
    return np.stack(packed)


def unpack_transposed_activations(tiles: Array, spec: Transposed) -> Array:
    """(n block, block, y, phase, x, phase, batch, lane) → (n, channels, y, x)"""
    images, blocks, far_y, near_y, far_x, near_x, batch, lanes = tiles.shape
    rows = tiles.reshape(images, blocks, far_y * near_y, far_x * near_x, batch, lanes)
    height, width = spec.out_size
    return unpack_activations(rows, spec.images, spec.channels_out)[:, :, :height, :width]
