"""What zero points add to a product of two activations, and how it is subtracted.

    Σ (x − zx) × (w − zw) = Σ x × w − zw × Σ x − zx × Σ w + inputs × zx × zw

The sums over one side alone are products with a tile that is full of zero points (`zeros_data`,
`zeros_weights`), one for each row and one for each output, which the ALU subtracts; the last term
is part of the bias. A zero point of 0 needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....isa.config import Config
from ...expression.expression import Expression, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ..packing import Array

At = Callable[..., Expression]              # an element, by matrix, block, input block and lanes


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a zero point adds to sums, and the sums without it."""

    side: Tensor                # data or weights
    zeros: Tensor               # a tile of zero points of the other side
    sums: Tensor                # of products of the two
    result: Tensor


def subtract_row_sums(config: Config, data: Tensor, data_at: At, depth: int,
                      before: Tensor) -> Correction:
    """Subtract the sum of each row of the data times the zero point of the weights."""
    zeros = placeholder("zeros_weights", (1, config.block_out, config.block_in), "int8")
    matrices, rows = before.shape[:2]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_row", (matrices, rows, config.batch, config.block_out),
                   lambda m, n, b, j: total(data_at(m, n, c, b, k).cast("int32")
                                            * zeros[0, j, k].cast("int32"), c, k))
    result = compute("without_rows", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, n, b, j]))
    return Correction(side=data, zeros=zeros, sums=sums, result=result)


def subtract_weight_sums(config: Config, weights: Tensor, weights_at: At, depth: int,
                         before: Tensor) -> Correction:
    """Subtract the sum of each output's weights times the zero point of the data."""
    zeros = placeholder("zeros_data", (1, config.batch, config.block_in), "int8")
    matrices, _, outputs = before.shape[:3]
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_output", (matrices, outputs, config.batch, config.block_out),
                   lambda m, o, b, j: total(zeros[0, b, k].cast("int32")
                                            * weights_at(m, o, c, j, k).cast("int32"), c, k))
    result = compute("without_outputs", before.shape, lambda m, n, o, b, j: (
        before[m, n, o, b, j] - sums[m, o, b, j]))
    return Correction(side=weights, zeros=zeros, sums=sums, result=result)


def zero_tiles(data: int, weights: int, config: Config) -> dict[str, Array]:
    """Further inputs of the program: tiles full of those zero points that are not 0. Each side is
    multiplied by the zero point of the other."""
    tiles = {"zeros_data": (data, (1, config.batch, config.block_in)),
             "zeros_weights": (weights, (1, config.block_out, config.block_in))}
    return {name: np.full(shape, value, np.int8) for name, (value, shape) in tiles.items() if value}


def bias_of_activations(bias: Array, inputs: int, data: int, weights: int) -> Array:
    """The bias, plus what the product of both zero points adds to every sum."""
    return (np.asarray(bias, np.int64) + inputs * data * weights).astype(np.int32)
