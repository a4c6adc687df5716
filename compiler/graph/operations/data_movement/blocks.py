"""Blocks of pixels as channels or as images, and back. Scales and zero points stay."""

from __future__ import annotations

from enum import Enum
from math import prod

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Value, operand
from ...types import Array, GraphError, TensorType
from .shape import _Moved, moved_type


class DepthOrder(Enum):
    """Which part of the channels' index says where in a block a number goes."""

    BLOCK_FIRST = "DCR"
    CHANNEL_FIRST = "CRD"


@dataclass(frozen=True, kw_only=True)
class DepthToSpace(_Moved):
    """Channels as blocks of pixels."""

    x: str = operand()
    block: int
    order: DepthOrder = DepthOrder.BLOCK_FIRST
    channel_axis: int = 3

    def infer(self, x: TensorType) -> TensorType:
        n, y, x_, channels = as_images(x, self.channel_axis)
        if self.block < 1 or channels % self.block ** 2:
            raise GraphError(f"{channels} channels are no blocks of {self.block} × {self.block}")
        shape = (n, y * self.block, x_ * self.block, channels // self.block ** 2)
        return moved_type(x, place_channels(shape, self.channel_axis))

    def compute(self, result: TensorType, x: Value) -> Array:
        images = np.moveaxis(x.array, self.channel_axis, -1)
        n, height, width, channels = images.shape
        side, depth = self.block, channels // self.block ** 2
        if self.order == DepthOrder.BLOCK_FIRST:
            parts = images.reshape(n, height, width, side, side, depth)
        else:
            parts = images.reshape(n, height, width, depth, side, side).transpose(0, 1, 2, 4, 5, 3)
        pixels = parts.transpose(0, 1, 3, 2, 4, 5).reshape(n, height * side, width * side, depth)
        return np.moveaxis(pixels, -1, self.channel_axis)


@dataclass(frozen=True, kw_only=True)
class SpaceToDepth(_Moved):
    """Blocks of pixels as channels."""

    x: str = operand()
    block: int
    order: DepthOrder = DepthOrder.BLOCK_FIRST
    channel_axis: int = 3

    def infer(self, x: TensorType) -> TensorType:
        n, y, x_, channels = as_images(x, self.channel_axis)
        if self.block < 1 or y % self.block or x_ % self.block:
            raise GraphError(f"{y} × {x_} pixels are no blocks of {self.block} × {self.block}")
        shape = (n, y // self.block, x_ // self.block, channels * self.block ** 2)
        return moved_type(x, place_channels(shape, self.channel_axis))

    def compute(self, result: TensorType, x: Value) -> Array:
        images = np.moveaxis(x.array, self.channel_axis, -1)
        n, height, width, channels = images.shape
        side = self.block
        parts = images.reshape(n, height // side, side, width // side, side, channels)
        order = (0, 1, 3, 2, 4, 5) if self.order == DepthOrder.BLOCK_FIRST else (0, 1, 3, 5, 2, 4)
        pixels = parts.transpose(order).reshape(
            n, height // side, width // side, channels * side ** 2)
        return np.moveaxis(pixels, -1, self.channel_axis)


def as_images(x: TensorType, channel_axis: int) -> tuple[int, int, int, int]:
    """Images, rows, columns and channels."""
    if len(x.shape) != 4 or channel_axis not in (1, 3):
        raise GraphError(f"the input has shape {x.shape} and channels on axis {channel_axis}, but "
                         f"must have 4 axes, and channels on axis 1 or 3")
    n, *sides = x.shape
    channels = sides.pop(channel_axis - 1)
    return n, sides[0], sides[1], channels


def place_channels(shape: tuple[int, int, int, int], channel_axis: int) -> tuple[int, ...]:
    """(n, y, x, channel) with channels where they belong."""
    n, y, x, channels = shape
    return (n, channels, y, x) if channel_axis == 1 else shape


@dataclass(frozen=True, kw_only=True)
class SpaceToBatch(_Moved):
    """Pixels apart by a block, as images of their own, after a border of a stored number was put
    around. Blocks and borders are those of the axes after the first."""

    x: str = operand()
    block: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float = 0

    def infer(self, x: TensorType) -> TensorType:
        axes = len(self.block)
        if not len(self.before) == len(self.after) == axes < len(x.shape) or min((
                *self.before, *self.after, 0)) < 0 or min(self.block, default=0) < 1:
            raise GraphError(f"blocks of {self.block} with borders {self.before} and {self.after} "
                             f"do not fit {x.shape}")
        sides = [size + before + after for size, before, after
                 in zip(x.shape[1:], self.before, self.after, strict=False)]
        if any(size % each for size, each in zip(sides, self.block, strict=True)):
            raise GraphError(f"padded sides {tuple(sides)} are no multiples of {self.block}")
        inside = [size // each for size, each in zip(sides, self.block, strict=True)]
        return moved_type(x, (x.shape[0] * prod(self.block), *inside, *x.shape[axes + 1:]))

    def compute(self, result: TensorType, x: Value) -> Array:
        axes, rest = len(self.block), x.array.ndim - len(self.block) - 1
        widths = [(0, 0), *zip(self.before, self.after, strict=True), *[(0, 0)] * rest]
        padded = np.pad(x.array, widths, constant_values=self.value)
        split: list[int] = []
        for size, each in zip(padded.shape[1:], self.block, strict=False):
            split += [size // each, each]
        parts = padded.reshape(padded.shape[0], *split, *padded.shape[axes + 1:])
        order = [*range(2, 2 * axes + 1, 2), 0, *range(1, 2 * axes + 1, 2),
                 *range(2 * axes + 1, parts.ndim)]
        return parts.transpose(order).reshape(result.shape)


@dataclass(frozen=True, kw_only=True)
class BatchToSpace(_Moved):
    """Images as pixels apart by a block, of which borders are cut off."""

    x: str = operand()
    block: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        axes = len(self.block)
        if not len(self.before) == len(self.after) == axes < len(x.shape) or min((
                *self.before, *self.after, 0)) < 0 or min(self.block, default=0) < 1 or (
                x.shape[0] % prod(self.block)):
            raise GraphError(f"blocks of {self.block} with borders {self.before} and {self.after} "
                             f"do not fit {x.shape}")
        sides = [size * each - before - after for size, each, before, after
                 in zip(x.shape[1:], self.block, self.before, self.after, strict=False)]
        if min(sides, default=0) < 0:
            raise GraphError(f"borders {self.before} and {self.after} leave nothing of {x.shape}")
        return moved_type(x, (x.shape[0] // prod(self.block), *sides, *x.shape[axes + 1:]))

    def compute(self, result: TensorType, x: Value) -> Array:
        axes, shape = len(self.block), x.array.shape
        parts = x.array.reshape(*self.block, shape[0] // prod(self.block), *shape[1:])
        order = [axes]
        for each in range(axes):
            order += [axes + 1 + each, each]
        order += range(2 * axes + 1, parts.ndim)
        whole = parts.transpose(order).reshape(
            shape[0] // prod(self.block),
            *(size * each for size, each in zip(shape[1:], self.block, strict=False)),
            *shape[axes + 1:])
        cut = [slice(None), *(slice(before, before + size) for before, size
                              in zip(self.before, result.shape[1:], strict=False))]
        return whole[tuple(cut)]
