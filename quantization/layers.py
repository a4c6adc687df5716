"""The weights of layers as quantization begins with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.layers.window import TransposedConv
from .parameters import Array, Weights
from .selection import Selection
from .simulation import bias_input, weights_input

TRIED = np.linspace(0.55, 1, 19)        # of the largest weight, where 4 bits may clip it


def first_weights(selection: Selection, arrays: Mapping[str, Array],
                  bits: int) -> dict[str, Weights]:
    """Weights of all layers, rounded to the nearest, from float ones by the simulator's inputs."""
    return {layer: nearest(selection, layer, arrays[weights_input(layer)],
                           arrays[bias_input(layer)], bits)
            for layer in selection.layers if selection.weights(layer) is not None}


def nearest(selection: Selection, layer: str, real: Array, bias: Array, bits: int) -> Weights:
    """Float weights rounded at the best scales: the largest of each channel just fits, or, with
    few bits, is clipped where that has the smaller error."""
    operation = selection.graph.nodes[layer].operation
    axis = real.ndim - 1 if isinstance(operation, MatMul) else 0
    weights = Weights(np.asarray(real), np.asarray(bias), axis, bits).nearest()
    if isinstance(operation, TransposedConv) and operation.groups > 1:
        peak = weights.scales.max()         # ONNX has no scale for each channel of each group
        return weights.at(np.full_like(weights.scales, peak))
    if bits == 8:
        return weights
    others = tuple(each for each in range(real.ndim) if each != axis)
    errors = []
    for part in TRIED:
        tried = weights.at((weights.scales * part).astype(np.float32))
        errors.append(np.square(tried.dequantized - real).sum(axis=others))
    best = TRIED[np.argmin(errors, axis=0)]
    return weights.at((weights.scales * best).astype(np.float32))
