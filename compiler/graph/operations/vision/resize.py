"""Images in another size."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Value, operand
from ...types import Array, GraphError, TensorType
from ..data_movement.shape import _Moved, moved_type


class ResizeKind(Enum):
    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class Coordinates(Enum):
    """Where a pixel of the result lies in the input; the names are ONNX's."""

    HALF_PIXEL = "half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"   # the middle stays the middle in any size
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"


class Nearest(Enum):
    """Which pixel is the nearest; the names are ONNX's."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"


@dataclass(frozen=True, kw_only=True)
class Resize(_Moved):
    """Another number of pixels along any axes: copies of the nearest, or an average of those
    around, separable. `ratios` say how much longer each axis becomes where that is not the ratio
    of sizes. Averages of integers lose their fraction."""

    x: str = operand()
    shape: tuple[int, ...]
    kind: ResizeKind = ResizeKind.NEAREST
    coordinates: Coordinates = Coordinates.HALF_PIXEL
    nearest: Nearest = Nearest.ROUND_PREFER_FLOOR
    ratios: tuple[float, ...] = ()
    cubic: float = -0.75

    def infer(self, x: TensorType) -> TensorType:
        if len(self.shape) != len(x.shape) or 0 in x.shape or (
                self.ratios and len(self.ratios) != len(x.shape)) or min(
                    self.ratios, default=1) <= 0:
            raise GraphError(f"{x.shape} cannot be resized to {self.shape} with ratios "
                             f"{self.ratios}: each axis has one, above zero")
        return moved_type(x, self.shape)

    def changed_axes(self, shape: tuple[int, ...]) -> list[int]:
        """The axes along which there are other pixels, in the order in which they are interpolated:
        first those that become shorter, then the others, the last of them first. Along the last
        axis it takes longest, and this way there is least of it to do."""
        changed = [axis for axis, (before, after) in enumerate(zip(shape, self.shape, strict=True))
                   if before != after or (self.ratios and Fraction(self.ratios[axis]) != 1)]
        shorter = [axis for axis in changed if self.shape[axis] < shape[axis]]
        return [*shorter, *(axis for axis in reversed(changed) if axis not in shorter)]

    def places(self, axis: int, size: int) -> Array:
        """Where along an axis of the input each index of the result lies."""
        after = self.shape[axis]
        ratio = self.ratios[axis] if self.ratios else after / size
        index = np.arange(after, dtype=np.float64)
        if self.coordinates == Coordinates.ALIGN_CORNERS:
            return index * ((size - 1) / (after - 1)) if after > 1 else index * 0
        if self.coordinates == Coordinates.ASYMMETRIC:
            return index / ratio
        if self.coordinates == Coordinates.PYTORCH_HALF_PIXEL and after == 1:
            return index * 0
        found: Array = (index + 0.5) / ratio - 0.5
        if self.coordinates == Coordinates.HALF_PIXEL_SYMMETRIC:
            found += (size - after / ratio) / 2
        return found

    def nearest_pixels(self, places: Array) -> Array:
        """The pixel that is taken for each place. Rounding takes halves as exact as they print."""
        halves = np.rint(places * 2) / 2
        places = np.where(np.abs(places - halves) < 1e-6, halves, places)
        if self.nearest in (Nearest.FLOOR, Nearest.ROUND_PREFER_CEIL):
            whole = np.floor(places + 0.5 * (self.nearest == Nearest.ROUND_PREFER_CEIL))
        else:
            whole = np.ceil(places - 0.5 * (self.nearest == Nearest.ROUND_PREFER_FLOOR))
        return np.asarray(whole).astype(np.int64)

    def compute(self, result: TensorType, x: Value) -> Array:
        found = x.array
        for axis in self.changed_axes(x.array.shape):
            before = found.shape[axis]
            places = self.places(axis, before)
            if self.kind == ResizeKind.NEAREST:
                found = np.take(found, np.clip(self.nearest_pixels(places), 0, before - 1), axis)
            else:
                found = self._interpolate(found, axis, places)
        return found if result.is_float or self.kind == ResizeKind.NEAREST else np.trunc(
            np.clip(found, *result.range))

    def _interpolate(self, array: Array, axis: int, places: Array) -> Array:
        """Averages of the pixels around each place."""
        last = array.shape[axis] - 1
        if self.kind == ResizeKind.LINEAR:
            places = np.clip(places, 0, last)
        below = np.floor(places)
        away = (places - below).reshape([-1 if each == axis else 1 for each in range(array.ndim)])
        total = np.zeros(1)
        for step, weight in self._weights(away):
            index = np.clip(below.astype(np.int64) + step, 0, last)
            total = total + weight * np.take(array.astype(np.float64), index, axis=axis)
        return total

    def _weights(self, away: Array) -> list[tuple[int, Array]]:
        """The steps to pixels around, and what each counts, at a distance from the first."""
        if self.kind == ResizeKind.LINEAR:
            return [(0, 1 - away), (1, away)]
        return list(zip((-1, 0, 1, 2), cubic_weights(away, self.cubic), strict=True))


def cubic_weights(away: Array, a: float) -> tuple[Array, Array, Array, Array]:
    """What each of four pixels counts, at a distance from the second."""
    def near(t: Array) -> Array:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Array) -> Array:
        return a * (((t - 5) * t + 8) * t - 4)

    return far(1 + away), near(away), near(1 - away), far(2 - away)
