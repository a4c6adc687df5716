"""What zero points add to a product of two activations, and how it is subtracted.

    Σ (x − zx) × (w − zw) = Σ x × w − zw × Σ x − zx × Σ w + inputs × zx × zw

The sums over one side alone are products with a tile that is full of zero points (`zeros_data`,
`zeros_weights`), one for each row and one for each output; the last term is part of the bias. What
belongs to a row, the ALU subtracts from all its sums. What belongs to an output, it subtracts from
the bias of that output, once for all rows:

    parameters: bias, multiplier, shift    −    zeros_data: zx, 0, 0, times weights

so that multiplier and shift stay what they are. A zero point of 0 needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES
from ...expression.expression import Expression, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ..packing import Array

At = Callable[..., Expression]              # an element, by matrix, block, input block and lanes


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a zero point adds to sums or parameters, and these without it."""

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
                         parameters: Tensor, matrices: int) -> Correction:
    """Subtract the sum of each output's weights times the zero point of the data from its bias. The
    result has parameters for each matrix."""
    zeros = placeholder("zeros_data", (PARAMETER_TILES, config.batch, config.block_in), "int8")
    shape = (matrices, *parameters.shape)
    c, k = reduce_axis("c", depth), reduce_axis("k", config.block_in)
    sums = compute("by_output", shape, lambda m, o, p, b, j: total(
        zeros[p, b, k].cast("int32") * weights_at(m, o, c, j, k).cast("int32"), c, k))
    result = compute("own_parameters", shape, lambda m, o, p, b, j: (
        parameters[o, p, b, j] - sums[m, o, p, b, j]))
    return Correction(side=weights, zeros=zeros, sums=sums, result=result)


def zero_tiles(data: int, weights: int, config: Config) -> dict[str, Array]:
    """Further inputs of the program: tiles of those zero points that are not 0. Each side is
    multiplied by the zero point of the other."""
    found = {}
    if data:
        found["zeros_data"] = np.zeros((PARAMETER_TILES, config.batch, config.block_in), np.int8)
        found["zeros_data"][0] = data
    if weights:
        found["zeros_weights"] = np.full((1, config.block_out, config.block_in), weights, np.int8)
    return found


def bias_of_activations(bias: Array, inputs: int, data: int, weights: int) -> Array:
    """The bias, plus what the product of both zero points adds to every sum."""
    return (np.asarray(bias, np.int64) + inputs * data * weights).astype(np.int32)
