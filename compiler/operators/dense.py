"""Matrix products of int8 with per-channel requantization: fully connected layers and products of
two activations.

    output[row, out] = requantize(Σ data[row, in] × weights[out, in])

Tensors are packed: data as (matrix, row block, input block, batch, lane), weights as (matrix,
output block, input block, output lane, input lane), parameters as (output block, 3, batch, lane),
the output as (matrix, row block, output block, batch, lane). Rows are what images are to a
convolution: a tile has `batch` of them.

What a zero point of the data adds to a sum is part of the bias, if the weights are constants. In a
product of two activations,

    Σ (x − zx) × (w − zw) = Σ x × w − zw × Σ x − zx × Σ w + inputs × zx × zw,

the sums over one side alone are products with a tile that is full of zero points (`zeros_data`,
`zeros_weights`), one for each row and one for each output, which the ALU takes away; what is left
is part of the bias. Where a zero point is 0, nothing of this is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Rounding
from ..errors import CompileError
from ..expression import Call, Function, total
from ..intrinsic import requantize_function
from ..packing import Array, pack_activations, pack_weights, unpack_activations
from ..tensor import Tensor, compute, placeholder, reduce_axis
from .epilogue import Epilogue


@dataclass(frozen=True, kw_only=True)
class Dense(Epilogue):
    """What is to be computed, `matrices` times, each time with other data and weights."""

    rows: int
    inputs: int
    outputs: int
    matrices: int = 1
    constant_weights: bool = True
    zero_point_in: int = 0
    zero_point_weights: int = 0
    rounding: Rounding = Rounding.AWAY

    def __post_init__(self) -> None:
        for name in ("rows", "inputs", "outputs", "matrices"):
            if getattr(self, name) < 1:
                raise CompileError(f"dense: {name} is {getattr(self, name)}, but must be at "
                                   f"least 1")
        if self.constant_weights and self.zero_point_weights:
            raise CompileError(f"dense: zero_point_weights is {self.zero_point_weights}, but "
                               f"constant weights have none")

    @property
    def zeros_data(self) -> int:
        """The zero point of the data that is taken away at run time."""
        return 0 if self.constant_weights else self.zero_point_in

    @property
    def zeros_weights(self) -> int:
        return 0 if self.constant_weights else self.zero_point_weights

    @property
    def macs(self) -> int:
        return self.matrices * self.rows * self.inputs * self.outputs

    @property
    def bytes(self) -> int:
        """What has to be read and written once, without parameters."""
        return self.matrices * (self.rows * (self.inputs + self.outputs)
                                + self.inputs * self.outputs)


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """The tensors of a product on one configuration."""

    spec: Dense
    config: Config
    function: Function
    data: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    corrections: tuple[Correction, ...]
    output: Tensor

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Matrices, row blocks, output blocks, input blocks."""
        matrices, rows, depth = self.data.shape[:3]
        return matrices, rows, self.weights.shape[1], depth


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a zero point adds to sums, and the sums without it."""

    side: Tensor                # data or weights
    zeros: Tensor               # a tile of zero points of the other side
    sums: Tensor                # of products of the two
    result: Tensor


def expressions(spec: Dense, config: Config) -> Expressions:
    """What is computed."""
    rows, depth, outputs = (-(-extent // block) for extent, block in (
        (spec.rows, config.batch), (spec.inputs, config.block_in),
        (spec.outputs, config.block_out)))
    data = placeholder("data", (spec.matrices, rows, depth, config.batch, config.block_in), "int8")
    weights = placeholder("weights", (spec.matrices, outputs, depth, config.block_out,
                                      config.block_in), "int8")
    parameters = placeholder("parameters", (outputs, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    shape = (spec.matrices, rows, outputs, config.batch, config.block_out)
    sums = compute("sums", shape, lambda m, n, o, b, j: total(
        data[m, n, c, b, k].cast("int32") * weights[m, o, c, j, k].cast("int32"), c, k))
    corrections = []
    if spec.zeros_weights:
        corrections.append(_without_rows(config, data, sums))
    if spec.zeros_data:
        before = corrections[-1].result if corrections else sums
        corrections.append(_without_outputs(config, weights, before))
    value = corrections[-1].result if corrections else sums
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)
    output = compute("output", shape, lambda m, n, o, b, j: Call(function, (
        value[m, n, o, b, j], *(parameters[o, number, b, j]
                                for number in range(PARAMETER_TILES)))))
    return Expressions(spec=spec, config=config, function=function, data=data, weights=weights,
                       parameters=parameters, sums=sums, corrections=tuple(corrections),
                       output=output)


def _without_rows(config: Config, data: Tensor, before: Tensor) -> Correction:
    """Takes away the sum of each row of the data times the zero point of the weights."""
    zeros = placeholder("zeros_weights", (1, config.block_out, config.block_in), "int8")
    matrices, rows, depth = data.shape[:3]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_row", (matrices, rows, config.batch, config.block_out),
                   lambda m, n, b, j: total(data[m, n, c, b, k].cast("int32")
                                            * zeros[0, j, k].cast("int32"), c, k))
    result = compute("without_rows", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, n, b, j]))
    return Correction(side=data, zeros=zeros, sums=sums, result=result)


def _without_outputs(config: Config, weights: Tensor, before: Tensor) -> Correction:
    """Takes away the sum of the weights of each output times the zero point of the data."""
    zeros = placeholder("zeros_data", (1, config.batch, config.block_in), "int8")
    matrices, outputs, depth = weights.shape[:3]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_output", (matrices, outputs, config.batch, config.block_out),
                   lambda m, o, b, j: total(zeros[0, b, k].cast("int32")
                                            * weights[m, o, c, j, k].cast("int32"), c, k))
    result = compute("without_outputs", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, o, b, j]))
    return Correction(side=weights, zeros=zeros, sums=sums, result=result)


def pack_data(data: Array, config: Config) -> Array:
    """(matrices, rows, inputs), or without matrices, → what the program takes as `data`."""
    packed = [pack_activations(each[:, :, None, None], config, config.block_in)[:, :, 0, 0]
              for each in data.reshape(-1, *data.shape[-2:])]
    return np.stack(packed)


def pack_matrix(weights: Array, config: Config) -> Array:
    """(matrices, outputs, inputs), or without matrices, → what the program takes as `weights`."""
    packed = [pack_weights(each[:, :, None, None], config)[:, :, 0, 0]
              for each in weights.reshape(-1, *weights.shape[-2:])]
    return np.stack(packed)


def unpack_output(tiles: Array, spec: Dense) -> Array:
    """The program's `output` → (matrices, rows, outputs)."""
    return np.stack([unpack_activations(each[:, :, None, None], spec.rows, spec.outputs)[:, :, 0, 0]
                     for each in tiles])


def run_time_inputs(spec: Dense, config: Config) -> dict[str, Array]:
    """Tiles of zero points, for a product of two activations: what the program takes besides."""
    tiles = {"zeros_data": (spec.zeros_data, (1, config.batch, config.block_in)),
             "zeros_weights": (spec.zeros_weights, (1, config.block_out, config.block_in))}
    # Each side is multiplied with the zero point of the other.
    return {name: np.full(shape, value, np.int8) for name, (value, shape) in tiles.items() if value}


def run_time_bias(bias: Array, spec: Dense) -> Array:
    """The bias of a product of two activations with what their zero points add to every sum."""
    both = spec.inputs * spec.zeros_data * spec.zeros_weights
    return (np.asarray(bias, np.int64) + both).astype(np.int32)
