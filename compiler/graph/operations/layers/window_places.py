"""Where the largest numbers of windows are."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Value
from ...types import Array, GraphError, TensorType
from .window import Pair, _Window


@dataclass(frozen=True, kw_only=True)
class MaxPlace(_Window):
    """Where in its image the largest number of each window is, the first of equal ones: row ×
    width + column, or column × height + row if `by_column`. Pixels of the border never are. What
    is no number is larger than all."""

    kernel: Pair
    by_column: bool = False

    def infer(self, x: TensorType) -> TensorType:
        n, _, _, channels = self.image(x)
        return TensorType(self.image_shape(n, *self.windows(x, self.kernel), channels), "int64")

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result != expected:
            raise GraphError(f"the result is {result}, but must be {expected}")
        if self.scales or self.low is not None or self.high is not None:
            raise GraphError("places have neither scales nor bounds")
        if not all(self._all_inside(types[0], axis) for axis in range(2)):
            raise GraphError(f"with pad {self.pad} and dilation {self.dilation} there are windows "
                             f"outside the image")

    def _all_inside(self, x: TensorType, axis: int) -> bool:
        """Whether each window has a tap in the image, along y or along x. Taps of a dilated one may
        be on both sides of it."""
        size, apart = self.image(x)[1 + axis], self.dilation[axis]
        starts = np.arange(self.windows(x, self.kernel)[axis]) * self.stride[axis] - (
            self.pad[2 * axis])
        first = np.maximum(-(starts // apart), 0)           # the first tap that is not before it
        return bool(np.all((first < self.kernel[axis]) & (starts + first * apart < size)))

    def compute(self, result: TensorType, x: Value) -> Array:
        images, counts = self.channels_last(x.array), self.windows(x.type, self.kernel)
        height, width = images.shape[1:3]
        rows, columns = np.arange(height)[:, None], np.arange(width)
        numbers = columns * height + rows if self.by_column else rows * width + columns
        places = np.broadcast_to(numbers[..., None], images.shape)
        best = np.zeros((images.shape[0], *counts, images.shape[3]), images.dtype)
        found = np.full(best.shape, -1, np.int64)
        for (_, _, here), (_, _, place) in zip(self.taps(images, self.kernel, counts, 0),
                                               self.taps(places, self.kernel, counts, -1),
                                               strict=True):
            larger = (place >= 0) & ((found < 0) | (here > best) | (
                np.not_equal(here, here) & np.equal(best, best)))
            best, found = np.where(larger, here, best), np.where(larger, place, found)
        return self.place_channels(found)
