"""Cross-layer equalization: channels of a tensor between two layers get ranges that are more alike,
and biases that only shift it go to the second layer.

The first layer is divided by a factor for each channel, and the second multiplied with it. Weights
have a scale for each output channel, so the division costs the first layer nothing; the factor
weighs the range of the tensor against that of the second layer's weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...compiler.graph.graph import Graph
from ...compiler.graph.operations.layers.matmul import MatMul
from ...compiler.graph.operations.layers.window import Conv
from ...compiler.graph.operations.pointwise.quantize import Clamp
from ..calibration.statistics import Say
from ..parameters import Array
from ..selection import Selection, data_of
from ..simulation import Simulator, bias_input, weights_input

MOST = 16.0                     # factor by which a channel may change
FLOOR = 1e-6                    # of the largest peak, below which a channel counts as dead


@dataclass(frozen=True)
class Pair:
    """Two layers, and the tensor between them, which nobody else reads."""

    first: str
    second: str
    tensor: str


@dataclass
class Channels:
    """The least, the largest and the largest absolute number of each channel."""

    low: Array
    high: Array

    @property
    def peaks(self) -> Array:
        return np.maximum(np.abs(self.low), np.abs(self.high))


def find_pairs(selection: Selection) -> list[Pair]:
    """Layers that follow each other, with nothing but a ReLU between them."""
    graph, found = selection.graph, []
    for second in selection.layers:
        operation = graph.nodes[second].operation
        if not isinstance(operation, Conv | MatMul) or selection.weights(second) is None:
            continue
        tensor = data_of(operation)
        first = _layer_before(graph, tensor)
        if first in selection.layers and selection.weights(str(first)) is not None and (
                graph.uses[tensor] == 1
                and len(selection.members(selection.groups[tensor])) == 1
                and isinstance(graph.nodes[str(first)].operation, type(operation))):
            found.append(Pair(str(first), second, tensor))
    return found


def _layer_before(graph: Graph, tensor: str) -> str | None:
    node = graph.nodes.get(tensor)
    if node is None:
        return None
    if isinstance(node.operation, Clamp):
        clamp = node.operation
        plain = clamp.low in (None, 0) and clamp.high is None
        return clamp.x if plain and graph.uses[clamp.x] == 1 else None
    return tensor


def observe_channels(simulator: Simulator, tensors: dict[str, int],
                     samples: Iterable[dict[str, Array]], say: Say) -> dict[str, Channels]:
    """Ranges of channels, which lie along the axis that goes with each tensor."""
    found: dict[str, Channels] = {}
    for number, sample in enumerate(samples, 1):
        say(f"looking at channels, sample {number}")
        values = {**sample, **simulator.run(sample)}
        for name, axis in tensors.items():
            array = values[name]
            others = tuple(each for each in range(array.ndim) if each != axis % array.ndim)
            low, high = array.min(axis=others), array.max(axis=others)
            known = found.setdefault(name, Channels(low, high))
            known.low, known.high = np.minimum(known.low, low), np.maximum(known.high, high)
    return found


def factors_of(peaks: Array, weights: Array) -> Array:
    """What each channel is divided by: the geometric mean of what would make all channels alike,
    and what would make the weights that read them alike."""
    floor = FLOOR * max(float(peaks.max(initial=0)), 1e-30)
    other = np.maximum(weights, FLOOR * max(float(weights.max(initial=0)), 1e-30))
    factors = np.sqrt(np.maximum(peaks, floor) / other)
    factors /= np.exp(np.mean(np.log(factors)))
    return np.clip(np.where(peaks > floor, factors, 1), 1 / MOST, MOST).astype(np.float32)


def input_peaks(operation: Conv | MatMul, weights: Array) -> Array:
    """The largest weight that reads each input channel."""
    found: Array
    if isinstance(operation, MatMul):
        found = np.abs(weights).max(axis=1)
    else:
        grouped = weights.reshape(operation.groups, -1, *weights.shape[1:])
        found = np.abs(grouped).max(axis=(1, 3, 4)).reshape(-1)
    return found


def multiply_inputs(operation: Conv | MatMul, weights: Array, factors: Array) -> Array:
    """Weights whose input channels are multiplied with factors."""
    if isinstance(operation, MatMul):
        return (weights * factors[:, None]).astype(np.float32)
    grouped = weights.reshape(operation.groups, -1, *weights.shape[1:])
    shaped = factors.reshape(operation.groups, 1, -1, 1, 1)
    return (grouped * shaped).reshape(weights.shape).astype(np.float32)


def equalize(simulator: Simulator, pairs: list[Pair], channels: dict[str, Channels], *,
             scale: bool, absorb: bool) -> dict[str, Array]:
    """Float weights and biases, by the simulator's inputs, of an equal model."""
    graph = simulator.selection.graph
    arrays = dict(simulator.float_arrays)
    for pair in pairs:
        operation = graph.nodes[pair.second].operation
        assert isinstance(operation, Conv | MatMul)
        names = (weights_input(pair.first), bias_input(pair.first), weights_input(pair.second),
                 bias_input(pair.second))
        first, bias, second, last = (arrays[name] for name in names)
        known = channels[pair.tensor]
        if absorb and not (isinstance(operation, Conv) and any(operation.pad)):
            least = np.maximum(known.low, 0).astype(np.float32)
            bias = bias - least
            ones = np.ones_like(known.low)
            last = last + _response(operation, multiply_inputs(operation, second, least), ones)
        if scale:
            factors = factors_of(known.peaks, input_peaks(operation, second))
            shaped = factors if isinstance(operation, MatMul) else factors.reshape(-1, 1, 1, 1)
            first, bias = (first / shaped).astype(np.float32), bias / factors
            second = multiply_inputs(operation, second, factors)
        arrays.update(zip(names, (first, bias.astype(np.float32), second,
                                  last.astype(np.float32)), strict=True))
    return arrays


def _response(operation: Conv | MatMul, weights: Array, x: Array) -> Array:
    """What a layer makes of an input that is the same everywhere, without its bias."""
    found: Array = x @ weights if isinstance(operation, MatMul) else weights.sum(axis=(1, 2, 3))
    return found
