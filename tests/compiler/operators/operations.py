"""Every operator as something to run and compare: a program, its inputs, and what NumPy says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from microtron.compiler.operators import dense, elementwise, first_layer, pool
from microtron.compiler.operators import packing_convolutions as special
from microtron.compiler.operators.build import compile_conv2d
from microtron.compiler.operators.build_convolutions import (
    compile_depthwise,
    compile_first_layer,
    compile_grouped,
    compile_transposed,
)
from microtron.compiler.operators.build_other import (
    compile_dense,
    compile_elementwise,
    compile_pool,
)
from microtron.compiler.operators.elementwise import Operation
from microtron.compiler.operators.packing import (
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
    unpack_activations,
)
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.program import Program

from . import convolutions, references


@dataclass(frozen=True)
class Case:
    """A compiled operator, and what its output must be once it is unpacked."""

    program: Program
    inputs: dict[str, Any]
    expected: np.ndarray
    unpack: Callable[[np.ndarray], np.ndarray]


class Numbers:
    """Operands from a seed. Scales of all sizes: some channels get few different results, others
    saturate almost always."""

    def __init__(self, config, seed):
        self.rng, self.limit = np.random.default_rng(seed), 1 << config.wgt_bits - 1

    def data(self, *shape):
        return self.rng.integers(-128, 128, shape, np.int8)

    def weights(self, *shape):
        return self.rng.integers(-self.limit, self.limit, shape, np.int8)

    def epilogue(self, channels):
        """Bias, multiplier and shift of each channel."""
        bias = self.rng.integers(-1 << 15, 1 << 15, channels).astype(np.int32)
        scales = 10.0 ** self.rng.uniform(-4.5, 0.3, channels)
        return bias, *np.transpose([quantize_scale(float(scale)) for scale in scales])


def conv2d(spec, config, seed=0):
    numbers = Numbers(config, seed)
    data = numbers.data(spec.images, spec.channels_in, spec.height, spec.width)
    weights = numbers.weights(spec.channels_out, spec.channels_in, *spec.kernel)
    return _convolution(compile_conv2d(spec, config).program, spec, config, data, weights,
                        numbers.epilogue(spec.channels_out))


def first_layer_with(fold):
    """A convolution folded like this, if its kernel has so many taps."""
    def build(spec, config, seed=0):
        rows, columns = (min(taps, kernel) for taps, kernel in zip(fold, spec.kernel, strict=True))
        taken = first_layer.Fold(rows=rows, columns=columns)
        numbers = Numbers(config, seed)
        data = numbers.data(spec.images, spec.channels_in, spec.height, spec.width)
        weights = numbers.weights(spec.channels_out, spec.channels_in, *spec.kernel)
        program = compile_first_layer(spec, config, fold=taken).program
        if taken == first_layer.UNFOLDED:
            return _convolution(program, spec, config, data, weights,
                                numbers.epilogue(spec.channels_out))
        return _convolution(program, spec, config, data, weights,
                            numbers.epilogue(spec.channels_out),
                            special.fold_activations(data, spec, taken),
                            special.fold_weights(weights, taken))
    return build


def _convolution(program, spec, config, data, weights, epilogue, folded_data=None,
                 folded_weights=None):
    bias, *scale = epilogue
    return Case(
        program, {
            "data": pack_activations(data if folded_data is None else folded_data, config,
                                     config.block_in),
            "weights": pack_weights(weights if folded_weights is None else folded_weights, config),
            "parameters": pack_parameters(
                bias_with_zero_point(bias, weights, spec.zero_point_in), *scale, config)},
        convolutions.grouped(spec, 1, data, weights, *epilogue),
        lambda output: unpack_activations(output, spec.images, spec.channels_out))


def depthwise(spec, config, seed=0):
    numbers = Numbers(config, seed)
    data = numbers.data(spec.images, spec.channels_in, spec.height, spec.width)
    weights = numbers.weights(spec.channels_out, 1, *spec.kernel)
    bias, *scale = epilogue = numbers.epilogue(spec.channels_out)
    kernel = compile_depthwise(spec, config)
    return Case(
        kernel.program, {
            "data": special.pack_depthwise_activations(data, config, spec.multiplier),
            "weights": special.pack_depthwise_weights(weights[:, 0], config, kernel.chunks),
            "parameters": special.pack_depthwise_parameters(
                bias_with_zero_point(bias, weights, spec.zero_point_in), *scale, config)},
        convolutions.grouped(spec, spec.channels_in, data, weights, *epilogue),
        lambda output: special.unpack_depthwise_activations(output, config, spec.images,
                                                            spec.channels_out))


def grouped(spec, config, seed=0):
    numbers = Numbers(config, seed)
    data = numbers.data(spec.images, spec.channels_in, spec.height, spec.width)
    weights = numbers.weights(spec.channels_out, spec.group_in, *spec.kernel)
    bias, *scale = epilogue = numbers.epilogue(spec.channels_out)
    kernel = compile_grouped(spec, config)
    merged = kernel.merged
    return Case(
        kernel.program, {
            "data": special.pack_grouped_activations(data, config, spec, merged),
            "weights": special.pack_grouped_weights(weights, config, spec, merged),
            "parameters": special.pack_grouped_parameters(
                bias_with_zero_point(bias, weights, spec.zero_point_in), *scale, config, spec,
                merged)},
        convolutions.grouped(spec, spec.groups, data, weights, *epilogue),
        lambda output: special.unpack_grouped_activations(output, spec, merged))


def transposed(spec, config, seed=0):
    numbers = Numbers(config, seed)
    data = numbers.data(spec.images, spec.channels_in, spec.height, spec.width)
    weights = numbers.weights(spec.channels_in, spec.channels_out, *spec.kernel)
    bias, *scale = epilogue = numbers.epilogue(spec.channels_out)
    return Case(
        compile_transposed(spec, config).program, {
            "data": pack_activations(data, config, config.block_in),
            "weights": special.pack_transposed_weights(weights, config, spec),
            "parameters": special.pack_transposed_parameters(bias, weights, *scale, config, spec)},
        convolutions.transposed(spec, data, weights, *epilogue),
        lambda output: special.unpack_transposed_activations(output, spec))


def product(spec, config, seed=0):
    """A matrix product with constant weights, or of two activations."""
    numbers = Numbers(config, seed)
    data = numbers.data(spec.matrices, spec.rows, spec.inputs)
    weights = numbers.weights(spec.matrices, spec.outputs, spec.inputs)
    bias, *scale = epilogue = numbers.epilogue(spec.outputs)
    whole = (bias_with_zero_point(bias, weights[0], spec.zero_point_in) if spec.constant_weights
             else dense.run_time_bias(bias, spec))
    return Case(
        compile_dense(spec, config).program, {
            "data": dense.pack_data(data, config), "weights": dense.pack_matrix(weights, config),
            "parameters": pack_parameters(whole, *scale, config),
            **dense.run_time_inputs(spec, config)},
        references.dense(spec, data, weights, *epilogue),
        lambda output: dense.unpack_output(output, spec))


def pooled(spec, config, seed=0):
    data = Numbers(config, seed).data(spec.images, spec.channels, spec.height, spec.width)
    return Case(
        compile_pool(spec, config).program, {
            "data": pack_activations(data, config, config.block_out),
            "parameters": pool.parameters(spec, config)},
        references.pool(spec, data),
        lambda output: unpack_activations(output, spec.images, spec.channels))


def element_wise(spec, config, seed=0):
    left, right = Numbers(config, seed).data(2, spec.images, spec.channels, spec.height,
                                             spec.width)
    tiles = {name: pack_activations(each, config, config.block_out)
             for name, each in (("left", left), ("right", right))}
    shape = tiles["left"].shape
    if spec.operation == Operation.RESCALE:
        del tiles["right"]
    return Case(
        compile_elementwise(spec, config).program, {
            **{name: each.reshape(-1, *shape[-2:]) for name, each in tiles.items()},
            "parameters": elementwise.parameters(spec, config)},
        references.elementwise(spec, left, right),
        lambda output: unpack_activations(output.reshape(shape), spec.images, spec.channels))
