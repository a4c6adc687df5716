"""Images read at places that other numbers name."""

from __future__ import annotations

from enum import Enum
from itertools import product

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, operand
from ...types import Array, GraphError, TensorType
from .resize import ResizeKind, cubic_weights

MOST_AXES = 3               # of an image: more would have a thousand neighbours
FAR = 4.0                   # pixels outside, from which on all places are the same
CUBIC = -0.75


class Outside(Enum):
    """What is read outside of an image; the names are ONNX's."""

    ZEROS = "zeros"
    BORDER = "border"               # the nearest pixel, also for each of those around a place
    REFLECTION = "reflection"       # the image in a mirror, and that in a mirror


@dataclass(frozen=True, kw_only=True)
class GridSample(Operation):
    """Images (n, channel, sides…) read at the places of a grid (n, sides of the result…, axis),
    which go from −1 to 1 along each axis, the last axis of the image first: from the centre of the
    first pixel to that of the last, or, without `align_corners`, from edge to edge. Places between
    pixels get the nearest, ties to even, or an average of those around. What is no number lies
    outside, before the first."""

    x: str = operand()
    grid: str = operand()
    kind: ResizeKind = ResizeKind.LINEAR
    outside: Outside = Outside.ZEROS
    align_corners: bool = False

    def infer(self, x: TensorType, grid: TensorType) -> TensorType:
        axes = len(x.shape) - 2
        if not 1 <= axes <= MOST_AXES or len(grid.shape) != axes + 2 or (
                grid.shape[-1] != axes or grid.shape[0] != x.shape[0] or 0 in x.shape[2:]):
            raise GraphError(f"a grid of shape {grid.shape} does not belong to images of "
                             f"{x.shape}")
        if not x.is_float or not grid.is_float:
            raise GraphError(f"images are {x} and the grid {grid}, but must be real numbers")
        return TensorType((*x.shape[:2], *grid.shape[1:-1]), x.dtype)

    def compute(self, result: TensorType, x: Value, grid: Value) -> Array:
        sides = x.array.shape[2:]
        places = [self.place(grid.array[..., -1 - axis], size) for axis, size in enumerate(sides)]
        taps = [self.taps(each, size) for each, size in zip(places, sides, strict=True)]
        values = np.moveaxis(x.array, 1, -1).astype(np.float64)     # channels last
        batch = np.arange(values.shape[0]).reshape(-1, *[1] * len(sides))
        total = np.zeros((*grid.array.shape[:-1], values.shape[-1]))
        for several in product(*taps):
            indices, weight = [batch], np.ones(())
            for (index, share), size in zip(several, sides, strict=True):
                index, share = self.clip_pixels(index, share, size)
                indices.append(index)
                weight = weight * share
            total += np.where(weight == 0, 0, weight)[..., None] * values[tuple(indices)]
        return np.moveaxis(total, -1, 1)

    def borders(self, size: int) -> tuple[float, float]:
        return (0, size - 1) if self.align_corners else (-0.5, size - 0.5)

    def place(self, grid: Array, size: int) -> Array:
        """Numbers of a grid as places along an axis, in pixels."""
        low, high = self.borders(size)
        one, length = grid.dtype.type(1), grid.dtype.type(high - low)
        found = (grid + one) / 2 * length + grid.dtype.type(low)    # in the precision of the grid
        found = np.where(np.isnan(found), -np.inf, found.astype(np.float64))
        if self.kind == ResizeKind.NEAREST:
            found = np.rint(found)
        beyond = (found < low) | (found > high)
        if self.outside == Outside.BORDER and self.kind != ResizeKind.CUBIC:
            found = np.where(beyond, np.clip(found, 0, size - 1), found)
        elif self.outside == Outside.REFLECTION:
            found = np.where(beyond, reflect(found, low, high), found)
        return np.clip(found, -FAR, size - 1 + FAR)

    def taps(self, places: Array, size: int) -> list[tuple[Array, Array]]:
        """Pixels around some places, and what each of them counts."""
        if self.kind == ResizeKind.NEAREST:
            return [(places.astype(np.int64), np.ones(()))]
        below = np.floor(places)
        first, away = below.astype(np.int64), places - below
        if self.kind == ResizeKind.LINEAR:
            return [(first, 1 - away), (first + 1, away)]
        return [(first + step, weight) for step, weight in zip(
            (-1, 0, 1, 2), cubic_weights(away, CUBIC), strict=True)]

    def clip_pixels(self, index: Array, weight: Array, size: int) -> tuple[Array, Array]:
        """Pixels that are in the image, and what they count."""
        if self.outside == Outside.ZEROS:
            weight = np.where((index >= 0) & (index < size), weight, 0)
        elif self.outside == Outside.REFLECTION:
            index = np.trunc(reflect(index, *self.borders(size))).astype(np.int64)
        return np.clip(index, 0, size - 1), weight


def reflect(places: Array, low: float, high: float) -> Array:
    """Places as mirrors at both ends show them."""
    if low == high:
        return np.full(places.shape, low)
    away = np.nan_to_num(np.abs(places - low), posinf=0)
    times = np.floor(away / (high - low))
    rest = away - times * (high - low)
    found: Array = np.where(times % 2 == 0, low + rest, high - rest)
    return found
