"""The weights of layers as quantization begins with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.layers.window import TransposedConv
from .parameters import Array, Scale, Weights
from .prepare import PRODUCTS
from .selection import Selection, data_of
from .simulation import bias_input, weights_input

LARGEST_BIAS = 2.0 ** 28        # of a stored bias: the products need room too
TRIED = np.linspace(0.55, 1, 19)        # of the largest weight, where 4 bits may clip it


def initial_weights(selection: Selection, arrays: Mapping[str, Array], scales: Mapping[str, Scale],
                    bits: int) -> dict[str, Weights]:
    """Weights of all layers, rounded to the nearest, from float ones by the simulator's inputs."""
    found = {}
    for layer in selection.layers:
        operation = selection.graph.nodes[layer].operation
        assert isinstance(operation, PRODUCTS)
        if selection.weights(layer) is not None:
            weights = round_weights(selection, layer, arrays[weights_input(layer)],
                                    arrays[bias_input(layer)], bits)
            data = scales[selection.groups[data_of(operation)]]
            found[layer] = widen_scales_for_bias(weights, data)
    return found


def widen_scales_for_bias(weights: Weights, data: Scale) -> Weights:
    """Weights with scales so large that the bias, which counts in products of both scales, fits
    into 32 bits. Channels of zeros need that, and those that are nearly dead."""
    least = np.abs(weights.bias.astype(np.float64)) / (data.scale * LARGEST_BIAS)
    if (weights.scales >= least).all():
        return weights
    return weights.round_at(np.maximum(weights.scales, least).astype(np.float32))


def round_weights(selection: Selection, layer: str, real: Array, bias: Array, bits: int) -> Weights:
    """Float weights rounded at the best scales: the largest of each channel just fits, or, with
    few bits, is clipped where that has the smaller error."""
    operation = selection.graph.nodes[layer].operation
    axis = real.ndim - 1 if isinstance(operation, MatMul) else 0
    weights = Weights(np.asarray(real), np.asarray(bias), axis, bits).round_to_nearest()
    if isinstance(operation, TransposedConv) and operation.groups > 1:
        peak = weights.scales.max()         # ONNX has no scale for each channel of each group
        return weights.round_at(np.full_like(weights.scales, peak))
    if bits == 8:
        return weights
    others = tuple(each for each in range(real.ndim) if each != axis)
    errors = []
    for part in TRIED:
        tried = weights.round_at((weights.scales * part).astype(np.float32))
        errors.append(np.square(tried.dequantized - real).sum(axis=others))
    best = TRIED[np.argmin(errors, axis=0)]
    return weights.round_at((weights.scales * best).astype(np.float32))
