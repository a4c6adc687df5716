"""Where the largest numbers of windows are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..operation import Value
from ..types import Array, GraphError, TensorType
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
        return TensorType(self.shaped(n, *self.windows(x, self.kernel), channels), "int64")

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result != expected:
            raise GraphError(f"the result is {result}, but must be {expected}")
        if self.scales or self.low is not None or self.high is not None:
            raise GraphError("places have neither scales nor bounds")
        reach = [(taps - 1) * apart + 1 for taps, apart in zip(self.kernel, self.dilation,
                                                               strict=True)]
        if any(side >= size for side, size in zip(self.pad, np.repeat(reach, 2), strict=True)):
            raise GraphError(f"with pad {self.pad} there are windows outside the image")

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
        return self.in_place(found)
