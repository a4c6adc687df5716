"""Seeded weights that keep numbers in a sensible range, and unlike from channel to channel."""

from __future__ import annotations

from math import sqrt

import numpy as np

from microtron.base.arrays import Array

SPREAD = 0.3                # of the size of a channel's weights, as a share


class Weights:
    """A source of weights. The same seed gives the same ones in the same order."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def conv(self, outputs: int, depth: int, kernel: int,
             sample: Array | None = None) -> tuple[Array, Array]:
        """Weights (output, input of its group, y, x) and a bias, for results of the size of the
        operands after a ReLU has taken half of them away; or near 1, given a sample of the
        operands: that is what batch normalization does."""
        weights, bias = self._draw((outputs, depth, kernel, kernel), depth * kernel * kernel, 0)
        return weights if sample is None else weights / sqrt(np.square(sample).mean()), bias

    def dense(self, outputs: int, inputs: int) -> tuple[Array, Array]:
        """Weights (output, input) and a bias."""
        return self._draw((outputs, inputs), inputs, 0)

    def linear(self, inputs: int, outputs: int) -> tuple[Array, Array]:
        """Weights (input, output) and a bias."""
        return self._draw((inputs, outputs), 2 * inputs, 1)

    def norm(self, width: int) -> tuple[Array, Array]:
        """The scale and the bias of a normalization."""
        return 1 + self._normal(0.1, width), self._normal(0.1, width)

    def embedding(self, *shape: int) -> Array:
        return self._normal(0.5, *shape)

    def _draw(self, shape: tuple[int, ...], products: int, axis: int) -> tuple[Array, Array]:
        sizes = np.exp(self._normal(SPREAD, shape[axis])) * sqrt(2 / products)
        shaped = sizes.reshape([-1 if each == axis else 1 for each in range(len(shape))])
        return self._normal(1, *shape) * shaped, self._normal(0.1, shape[axis])

    def _normal(self, deviation: float, *shape: int) -> Array:
        return np.float32(deviation) * self.rng.standard_normal(shape, np.float32)
