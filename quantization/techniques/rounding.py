"""Rounding of weights that is learned layer by layer, and the correction of biases, both from what
layers read in calibration.

A layer's error is e·H·e for each output channel, where e is what rounding does to its weights and H
the mean of x·xᵀ over its inputs x: AdaRound's objective. Starting from the nearest integers,
coordinate descent moves one weight at a time to the other integer beside it, where that makes the
error smaller. No gradient is needed: the change is known in closed form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from ...compiler.graph.operations.layers.matmul import MatMul
from ...compiler.graph.operations.layers.window import Conv
from ..calibration.statistics import Say
from ..parameters import Array, Parameters, Weights
from ..selection import Selection, data_of
from ..simulation import Simulator

MOST_INPUTS = 2304              # of an output channel; H has their square
MOST_BYTES = 1 << 30            # of all H together
ROWS = 512                      # inputs of a layer that one sample adds
DAMPING = 0.01                  # of the mean of H's diagonal, which holds weights where they are
SWEEPS = 2


@dataclass
class Moments:
    """Sums over the inputs of a layer, for each group of channels: x·xᵀ of stored inputs, and x
    before and after storing."""

    products: Array                 # (group, k, k)
    real: Array                     # (group, k)
    stored: Array
    count: int = 0
    waiting: list[Array] = field(default_factory=list)

    def add(self, real: Array, stored: Array) -> None:
        """Inputs of several windows, (row, group, k)."""
        self.real += real.sum(axis=0)
        self.stored += stored.sum(axis=0)
        self.count += len(real)
        self.waiting.append(stored)
        if sum(map(len, self.waiting)) >= ROWS:
            self.multiply()

    def multiply(self) -> None:
        """Add the products of what waits: few large ones take less time than many small ones."""
        if self.waiting:
            by_group = np.concatenate(self.waiting).transpose(1, 0, 2)
            self.products += np.matmul(by_group.transpose(0, 2, 1), by_group)
            self.waiting.clear()


def observe_moments(simulator: Simulator, samples: Iterable[dict[str, Array]],
                    parameters: Parameters, say: Say) -> dict[str, Moments]:
    """The moments of all layers whose weights are not too many, from the float model."""
    selection = simulator.selection
    found = _empty(selection, parameters)
    random = np.random.default_rng(0)
    for number, sample in enumerate(samples, 1):
        say(f"learning how to round, sample {number}")
        values = {**sample, **simulator.run(sample)}
        for layer, moments in found.items():
            operation = selection.graph.nodes[layer].operation
            assert isinstance(operation, Conv | MatMul)
            point = data_of(operation)
            real = _windows(operation, values[point], parameters.weights[layer], random)
            scale = parameters.scales[selection.groups[point]]
            moments.add(real, scale.fake_quantize(real))
    for moments in found.values():
        moments.multiply()
    return found


def _empty(selection: Selection, parameters: Parameters) -> dict[str, Moments]:
    found, taken = {}, 0
    for layer, weights in parameters.weights.items():
        operation = selection.graph.nodes[layer].operation
        if not isinstance(operation, Conv | MatMul) or weights.real.ndim not in (2, 4):
            continue
        groups = operation.groups if isinstance(operation, Conv) else 1
        size = weights.real[0].size if isinstance(operation, Conv) else weights.real.shape[0]
        taken += 4 * groups * size * size
        if size <= MOST_INPUTS and taken <= MOST_BYTES:
            shape = (groups, size)
            found[layer] = Moments(np.zeros((*shape, size), np.float32),
                                   np.zeros(shape), np.zeros(shape))
    return found


def _windows(operation: Conv | MatMul, x: Array, weights: Weights,
             random: np.random.Generator) -> Array:
    """Some inputs of a layer, as rows of (group, k)."""
    if isinstance(operation, MatMul):
        rows = x.reshape(-1, x.shape[-1])
        picked = rows[random.permutation(len(rows))[:ROWS]]
        return picked[:, None]
    _, depth, height, width = weights.real.shape
    top, bottom, left, right = operation.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    sides = [(size - (taps - 1) * apart - 1) // stride + 1 for size, taps, apart, stride in zip(
        padded.shape[2:], (height, width), operation.dilation, operation.stride, strict=True)]
    places = random.permutation(len(x) * sides[0] * sides[1])[:ROWS]
    image, row, column = np.unravel_index(places, (len(x), *sides))
    taps = [padded[image, :, row * operation.stride[0] + i * operation.dilation[0],
                   column * operation.stride[1] + j * operation.dilation[1]]
            for i in range(height) for j in range(width)]
    windows = np.stack(taps, axis=-1)                       # (row, channel, tap)
    return windows.reshape(len(places), operation.groups, depth * height * width)


def learn_rounding(parameters: Parameters, moments: dict[str, Moments],
                   say: Say) -> dict[str, Weights]:
    """The weights of all layers with moments, rounded anew."""
    found = {}
    for number, (layer, each) in enumerate(moments.items(), 1):
        say(f"rounding the weights of layer {number} of {len(moments)}")
        found[layer] = _round_layer(parameters.weights[layer], each)
    return found


def _round_layer(weights: Weights, moments: Moments) -> Weights:
    groups, size, _ = moments.products.shape
    by_channel = np.moveaxis(weights.real, weights.axis, 0)
    steps = (np.moveaxis(weights.real / weights.broadcast_channels(weights.scales), weights.axis, 0)
             .reshape(groups, -1, size).astype(np.float32))
    assert weights.stored is not None
    stored = np.moveaxis(weights.stored, weights.axis, 0).reshape(groups, -1, size).astype(
        np.float32)
    matrices = moments.products / max(moments.count, 1)
    damping = DAMPING * np.diagonal(matrices, axis1=1, axis2=2).mean(axis=1) + 1e-12
    matrices += damping[:, None, None] * np.eye(size, dtype=np.float32)
    stored = descend(steps, stored, matrices, weights.largest)
    integers = np.moveaxis(stored.reshape(by_channel.shape), 0, weights.axis)
    return replace(weights, stored=np.ascontiguousarray(integers).astype(np.int8))


def descend(steps: Array, stored: Array, matrices: Array, largest: int) -> Array:
    """Integers of (group, channel, k) with a smaller error e·H·e each, e = steps − stored. Groups
    have a matrix H each, and go through their weights at the same time."""
    groups, channels, size = steps.shape
    rows, group = np.arange(groups * channels), np.repeat(np.arange(groups), channels)
    error = steps - stored
    slope = np.matmul(error, matrices).reshape(-1, size)
    stored, error = stored.reshape(-1, size).copy(), error.reshape(-1, size)
    diagonals = np.diagonal(matrices, axis1=1, axis2=2)
    for _ in range(SWEEPS):
        moved = 0
        for each in np.argsort(-diagonals, axis=1).T:
            k, own = each[group], diagonals[np.arange(groups), each][group]
            left = error[rows, k]
            step = np.sign(left)
            gain = 2 * step * slope[rows, k] - own
            fits = np.abs(stored[rows, k] + step) <= largest
            at = np.flatnonzero((gain > 1e-6 * own) & fits & (step != 0) & (np.abs(left) < 1))
            if len(at):
                stored[at, k[at]] += step[at]
                error[at, k[at]] -= step[at]
                slope[at] -= step[at, None] * matrices[group[at], k[at]]
                moved += len(at)
        if not moved:
            break
    return stored.reshape(steps.shape)


def correct_biases(parameters: Parameters, moments: dict[str, Moments]) -> dict[str, Weights]:
    """Biases that take back what rounding adds to a layer's outputs in the mean."""
    found = {}
    for layer, each in moments.items():
        weights = parameters.weights[layer]
        groups, size, _ = each.products.shape
        real, stored = (np.moveaxis(values, weights.axis, 0).reshape(groups, -1, size)
                        for values in (weights.real.astype(np.float64),
                                       weights.dequantized.astype(np.float64)))
        count = max(each.count, 1)
        shift = (np.einsum("gok,gk->go", real, each.real / count)
                 - np.einsum("gok,gk->go", stored, each.stored / count)).reshape(-1)
        found[layer] = replace(weights, bias=(weights.bias + shift).astype(np.float32))
    return found
