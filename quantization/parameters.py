"""The numbers that quantization chooses: scales of activations, weights and biases of layers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..base import arrays
from ..compiler.graph.types import Quantization

Array = arrays.Array
LOW, HIGH = -128, 127
SMALLEST = 1e-9                 # a scale, so that constant and dead tensors have one too


@dataclass(frozen=True)
class Scale:
    """real = scale × (stored − zero point), in int8. The scale is a 32-bit float, as in files."""

    scale: float
    zero: int = 0

    @staticmethod
    def from_range(low: float, high: float) -> Scale:
        """The scale for numbers between two, and zero, which always has an exact integer."""
        low, high = min(0.0, float(low)), max(0.0, float(high))
        scale = float(np.float32(max((high - low) / (HIGH - LOW), SMALLEST)))
        return Scale(scale, int(np.clip(round(LOW - low / scale), LOW, HIGH)))

    @property
    def low(self) -> float:
        return self.scale * (LOW - self.zero)

    @property
    def high(self) -> float:
        return self.scale * (HIGH - self.zero)

    @property
    def quantization(self) -> Quantization:
        return Quantization((self.scale,), (self.zero,))

    def fake_quantize(self, values: Array) -> Array:
        """Numbers after they were stored."""
        steps = np.clip(np.rint(values / np.float32(self.scale)), LOW - self.zero,
                        HIGH - self.zero)
        found: Array = (steps * np.float32(self.scale)).astype(np.float32)
        return found


@dataclass(frozen=True)
class Weights:
    """The weights of a layer: the float ones, and the integers that stand for them, with a scale
    for each output channel along `axis`."""

    real: Array
    bias: Array                     # float, one for each output channel
    axis: int
    bits: int
    scales: Array = field(default_factory=lambda: np.ones(1, np.float32))
    stored: Array | None = None

    @property
    def largest(self) -> int:
        """The largest integer; the least is its negative, so that scales are symmetric."""
        return (1 << self.bits - 1) - 1

    def broadcast_channels(self, values: Array) -> Array:
        """Numbers of channels in a shape that meets the weights'."""
        return values.reshape([-1 if each == self.axis else 1 for each in range(self.real.ndim)])

    def round_to_nearest(self) -> Weights:
        """Rounded to the nearest, at scales that just hold the largest of each channel."""
        others = tuple(each for each in range(self.real.ndim) if each != self.axis)
        peaks = np.abs(self.real).max(axis=others, initial=0).astype(np.float64)
        scales = np.maximum(peaks / self.largest, SMALLEST).astype(np.float32)
        return self.round_at(scales)

    def round_at(self, scales: Array) -> Weights:
        """Rounded to the nearest at given scales."""
        steps = np.rint(self.real / self.broadcast_channels(scales))
        stored = np.clip(steps, -self.largest, self.largest)
        return replace(self, scales=scales, stored=stored.astype(np.int8))

    @property
    def dequantized(self) -> Array:
        assert self.stored is not None
        found: Array = self.stored.astype(np.float32) * self.broadcast_channels(self.scales)
        return found


@dataclass(frozen=True)
class Parameters:
    """Everything that is chosen for a selection. What is missing from `scales` stays float."""

    scales: dict[str, Scale]                            # by group
    weights: dict[str, Weights]                         # by layer
    notes: dict[str, str] = field(default_factory=dict)     # technique → what it brought

    def with_weights(self, changed: dict[str, Weights]) -> Parameters:
        return replace(self, weights={**self.weights, **changed})
