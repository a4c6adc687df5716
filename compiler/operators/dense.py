"""Matrix products of int8 with per-channel requantization: fully connected layers and products of
two activations.

    output[row, out] = requantize(Σ data[row, in] × weights[out, in])

Tensors are packed: data as (matrix, row block, input block, batch, lane), weights as (matrix,
output block, input block, output lane, input lane), parameters as (output block, 3, batch, lane),
the output as (matrix, row block, output block, batch, lane). Rows are what images are to a
convolution: a tile has `batch` of them. With `Layout.BLOCKS`, rows are what positions are: data and
output have their blocks before the rows, as the results of convolutions have.

What a zero point of the data adds to a sum is part of the bias, if the weights are constants. In a
product of two activations,

    Σ (x − zx) × (w − zw) = Σ x × w − zw × Σ x − zx × Σ w + inputs × zx × zw,

the sums over one side alone are products with a tile that is full of zero points (`zeros_data`,
`zeros_weights`), one for each row and one for each output, which the ALU takes away; what is left
is part of the bias. Where a zero point is 0, nothing of this is done.

The right side of such a product may be a result just as a program leaves it (`right_activations`),
with one image in a tile and blocks of equal size: then `block_out` rows of a channel block lie one
after the other, and are a tile of weights.

    (matrix, block, row, lane)    =    (matrix, input block, output block, output lane, input lane)

Its rows, the outputs of this product, are filled up to whole blocks; what they hold there does not
matter. Lanes beyond its channels must be 0, which they are if its zero point is 0, or there are
none. So Q × Kᵀ takes the projections as they are, where the heads are matrices: their blocks follow
one another. Vᵀ, which the product with the scores wants on its right, is the projection of V with
its sides swapped, a head at a time: the weights are the data, and the input is the right side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Rounding
from ..accelerator.intrinsic import requantize_function
from ..errors import CompileError
from ..expression.expression import Call, Expression, Function, total
from ..expression.tensor import Tensor, compute, placeholder, reduce_axis
from .epilogue import Epilogue
from .packing import Array, pack_activations, pack_weights, unpack_activations

ACTIVATION_BITS = 8


class Layout(Enum):
    """What comes first in data and output, rows or blocks of channels."""

    ROWS = "rows"
    BLOCKS = "blocks"


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
    layout: Layout = Layout.ROWS
    right_activations: bool = False
    rounding: Rounding = Rounding.AWAY

    def __post_init__(self) -> None:
        for name in ("rows", "inputs", "outputs", "matrices"):
            if getattr(self, name) < 1:
                raise CompileError(f"dense: {name} is {getattr(self, name)}, but must be at "
                                   f"least 1")
        if self.constant_weights and self.zero_point_weights:
            raise CompileError(f"dense: zero_point_weights is {self.zero_point_weights}, but "
                               f"constant weights have none")
        if self.constant_weights and self.right_activations:
            raise CompileError("dense: right_activations is True, but so is constant_weights: "
                               "results of a program are not constant")

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
    extents: tuple[int, int, int, int]      # matrices, row blocks, output blocks, input blocks


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a zero point adds to sums, and the sums without it."""

    side: Tensor                # data or weights
    zeros: Tensor               # a tile of zero points of the other side
    sums: Tensor                # of products of the two
    result: Tensor


At = Callable[..., Expression]              # an element, by matrix, block, input block and lanes


def expressions(spec: Dense, config: Config) -> Expressions:
    """What is computed."""
    _check(spec, config)
    rows, depth, outputs = (-(-extent // block) for extent, block in (
        (spec.rows, config.batch), (spec.inputs, config.block_in),
        (spec.outputs, config.block_out)))
    data, data_at = _operand("data", (spec.matrices, rows, depth, config.batch, config.block_in),
                             swapped=spec.layout == Layout.BLOCKS)
    weights, weights_at = _operand("weights", (spec.matrices, outputs, depth, config.block_out,
                                               config.block_in), swapped=spec.right_activations)
    parameters = placeholder("parameters", (outputs, PARAMETER_TILES, config.batch,
                                            config.block_out), "int32")
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    shape = (spec.matrices, rows, outputs, config.batch, config.block_out)
    sums = compute("sums", shape, lambda m, n, o, b, j: total(
        data_at(m, n, c, b, k).cast("int32") * weights_at(m, o, c, j, k).cast("int32"), c, k))
    corrections = []
    if spec.zeros_weights:
        corrections.append(_without_rows(config, data, data_at, depth, sums))
    if spec.zeros_data:
        before = corrections[-1].result if corrections else sums
        corrections.append(_without_outputs(config, weights, weights_at, depth, before))
    value = corrections[-1].result if corrections else sums
    function = requantize_function(rounding=spec.rounding, zero_point=spec.zero_point_out,
                                   low=spec.low, high=spec.high)

    def result(m: Expression, n: Expression, o: Expression, b: Expression,
               j: Expression) -> Expression:
        return Call(function, (value[m, n, o, b, j], *(parameters[o, number, b, j]
                                                       for number in range(PARAMETER_TILES))))

    if spec.layout == Layout.BLOCKS:
        output = compute("output", (spec.matrices, outputs, rows, *shape[3:]),
                         lambda m, o, n, b, j: result(m, n, o, b, j))
    else:
        output = compute("output", shape, result)
    return Expressions(spec=spec, config=config, function=function, data=data, weights=weights,
                       parameters=parameters, sums=sums, corrections=tuple(corrections),
                       output=output, extents=(spec.matrices, rows, outputs, depth))


def _check(spec: Dense, config: Config) -> None:
    """Refuse what a configuration cannot hold."""
    if not spec.constant_weights and config.wgt_bits != ACTIVATION_BITS:
        raise CompileError(f"dense: the right side of a product of two activations has "
                           f"{ACTIVATION_BITS} bits, but weights of this configuration have "
                           f"{config.wgt_bits}; take constant weights")
    if spec.right_activations and (config.batch != 1 or config.block_in != config.block_out):
        raise CompileError(f"dense: activations are tiles of weights only with batch 1 and equal "
                           f"blocks, but batch is {config.batch}, block_in {config.block_in} and "
                           f"block_out {config.block_out}; pack the right side with pack_matrix")


def _operand(name: str, shape: tuple[int, ...], *, swapped: bool) -> tuple[Tensor, At]:
    """A placeholder of that shape, in DRAM perhaps with input blocks before the others, and its
    elements by indices in the order of the shape."""
    matrices, others, depth, *tile = shape
    if not swapped:
        tensor = placeholder(name, shape, "int8")
        return tensor, lambda *indices: tensor[indices]
    turned = placeholder(name, (matrices, depth, others, *tile), "int8")
    return turned, lambda m, n, c, b, k: turned[m, c, n, b, k]


def _without_rows(config: Config, data: Tensor, data_at: At, depth: int,
                  before: Tensor) -> Correction:
    """Takes away the sum of each row of the data times the zero point of the weights."""
    zeros = placeholder("zeros_weights", (1, config.block_out, config.block_in), "int8")
    matrices, rows = before.shape[:2]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_row", (matrices, rows, config.batch, config.block_out),
                   lambda m, n, b, j: total(data_at(m, n, c, b, k).cast("int32")
                                            * zeros[0, j, k].cast("int32"), c, k))
    result = compute("without_rows", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, n, b, j]))
    return Correction(side=data, zeros=zeros, sums=sums, result=result)


def _without_outputs(config: Config, weights: Tensor, weights_at: At, depth: int,
                     before: Tensor) -> Correction:
    """Takes away the sum of the weights of each output times the zero point of the data."""
    zeros = placeholder("zeros_data", (1, config.batch, config.block_in), "int8")
    matrices, _, outputs = before.shape[:3]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_output", (matrices, outputs, config.batch, config.block_out),
                   lambda m, o, b, j: total(zeros[0, b, k].cast("int32")
                                            * weights_at(m, o, c, j, k).cast("int32"), c, k))
    result = compute("without_outputs", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, o, b, j]))
    return Correction(side=weights, zeros=zeros, sums=sums, result=result)


def pack_data(data: Array, config: Config, layout: Layout = Layout.ROWS) -> Array:
    """(matrices, rows, inputs), or without matrices, → what the program takes as `data`."""
    packed = np.stack([pack_activations(each[:, :, None, None], config, config.block_in)[:, :, 0, 0]
                       for each in data.reshape(-1, *data.shape[-2:])])
    return packed if layout == Layout.ROWS else np.ascontiguousarray(packed.swapaxes(1, 2))


def pack_matrix(weights: Array, config: Config) -> Array:
    """(matrices, outputs, inputs), or without matrices, → what the program takes as `weights`."""
    packed = [pack_weights(each[:, :, None, None], config)[:, :, 0, 0]
              for each in weights.reshape(-1, *weights.shape[-2:])]
    return np.stack(packed)


def as_right_side(output: Array, spec: Dense, config: Config) -> Array:
    """A program's `output`, (…, channel block, row, 1, lane), seen as what the program of `spec`
    takes as `weights` with `right_activations`. Not a byte is moved."""
    depth, outputs = -(-spec.inputs // config.block_in), -(-spec.outputs // config.block_out)
    return output.reshape(spec.matrices, depth, outputs, config.block_out, config.block_in)


def unpack_output(tiles: Array, spec: Dense) -> Array:
    """The program's `output` → (matrices, rows, outputs)."""
    by_rows = tiles if spec.layout == Layout.ROWS else tiles.swapaxes(1, 2)
    return np.stack([unpack_activations(each[:, :, None, None], spec.rows, spec.outputs)[:, :, 0, 0]
                     for each in by_rows])


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
