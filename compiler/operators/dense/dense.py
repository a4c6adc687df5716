"""Matrix products of int8 with per-channel requantization: fully connected layers and products of
two activations.

    output[row, out] = requantize(Σ data[row, in] × weights[out, in])

Tensors are packed: data as (matrix, row block, input block, batch, lane), weights as (matrix,
output block, input block, output lane, input lane), parameters as (output block, 3, batch, lane),
the output as (matrix, row block, output block, batch, lane). Rows are what images are to a
convolution: a tile has `batch` of them. With `Layout.BLOCKS`, rows are what positions are: data and
output have their blocks before the rows, as the results of convolutions have.

What a zero point of the data adds to a sum is part of the bias, if the weights are constants. For a
product of two activations, `dense_zero_points` says what is done.

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

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Rounding
from ...errors import CompileError
from ...expression.expression import Expression, total
from ...expression.tensor import Tensor, compute, placeholder, reduce_axis
from ...nest.nest import Interleave
from ..description import Epilogue, activation, extent, setting
from ..form import TensorForm, blocks_of, requantize_sum
from ..layout import Layout as TileLayout
from ..layout import interleaves, memory_block, tile_layout, tile_rows, wide_tiles
from ..packing import (
    INT8,
    Array,
    Operand,
    bias_with_zero_point,
    pack_activations,
    pack_parameters,
    pack_weights,
    parameter_operands,
    unpack_activations,
    weight_operand,
)
from ..work import Work, parameter_bytes, weight_bytes
from .zero_points import (
    At,
    Correction,
    bias_of_activations,
    subtract_row_sums,
    subtract_weight_sums,
    zero_tiles,
)

ACTIVATION_BITS = 8


class Layout(Enum):
    """What comes first in data and output, rows or blocks of channels."""

    ROWS = "rows"
    BLOCKS = "blocks"


@dataclass(frozen=True, kw_only=True)
class Dense(Epilogue):
    """A matrix product, `matrices` times, each time with other data and weights.

    Rounding is part of what is meant. The default, AWAY, is that of TFLite's FULLY_CONNECTED; its
    BATCH_MATMUL rounds TWICE: `batch_matmul` describes that one.
    """

    operator: ClassVar[str] = "dense"

    rows: int = extent("rows of the data and of the result")
    inputs: int = extent("columns of the data, summed over")
    outputs: int = extent("columns of the result")
    matrices: int = extent("products at once", 1)
    constant_weights: bool = setting("weights are known when the operands are packed", True)
    zero_point_in: int = activation("zero point of the data")
    zero_point_weights: int = activation("zero point of weights that are not constant")
    layout: Layout = setting("what comes first in data and output: rows, or blocks of channels",
                             Layout.ROWS)
    right_activations: bool = setting("the right side is a result as a program leaves it", False)
    rounding: Rounding = setting("how results are rounded: away, even or twice", Rounding.AWAY)

    def check(self) -> None:
        super().check()
        if self.constant_weights and self.zero_point_weights:
            raise self.wrong("zero_point_weights", self.zero_point_weights,
                             "0 for constant weights: subtract it before they are packed, or take "
                             "constant_weights=False")
        if self.constant_weights and self.right_activations:
            raise CompileError("dense: right_activations is True, but so is constant_weights: "
                               "results of a program are not constant")
        if self.constant_weights and self.zero_point_in and self.matrices > 1:
            raise self.wrong("zero_point_in", self.zero_point_in,
                             f"0 for constant weights of {self.matrices} matrices, which share one "
                             f"bias; compile them one by one, or take constant_weights=False")

    @property
    def zeros_data(self) -> int:
        """The zero point of the data that is subtracted at run time."""
        return 0 if self.constant_weights else self.zero_point_in

    @property
    def zeros_weights(self) -> int:
        return 0 if self.constant_weights else self.zero_point_weights

    @property
    def macs(self) -> int:
        return self.matrices * self.rows * self.inputs * self.outputs


def batch_matmul(*, rows: int, inputs: int, outputs: int, **fields: Any) -> Dense:
    """A product of two activations as TFLite's BATCH_MATMUL computes it, which rounds TWICE."""
    return Dense(rows=rows, inputs=inputs, outputs=outputs,
                 **{"constant_weights": False, "rounding": Rounding.TWICE} | fields)


@dataclass(frozen=True, kw_only=True)
class DenseForm(TensorForm):
    """A matrix product in tensors."""

    spec: Dense
    data: Tensor
    weights: Tensor
    parameters: Tensor
    sums: Tensor
    corrections: tuple[Correction, ...]
    extents: tuple[int, int, int, int]      # matrices, row blocks, output blocks, input blocks
    asked: Dense | None = None              # in the layout that was asked for, if in another one

    @property
    def description(self) -> Dense:
        return self.asked or self.spec

    @property
    def note(self) -> str:
        return "" if self.asked is None else "the host takes and gives blocks before rows"

    @property
    def work(self) -> Work:
        """Corrections of zero points are products with tiles of them, and subtractions."""
        spec, (matrices, rows, outputs, depth) = self.spec, self.extents
        vectors = matrices * rows * outputs
        own = matrices * outputs * PARAMETER_TILES if spec.zeros_data else 0
        more = depth * (own + (matrices * rows if spec.zeros_weights else 0))
        count = spec.matrices * spec.inputs * spec.outputs
        weights = weight_bytes(count, self.config) if spec.constant_weights else count
        written = spec.matrices * spec.rows * spec.outputs * self.result_bytes
        return Work(macs=spec.macs, products=vectors * depth + more, written=written,
                    bytes=weights + written + spec.matrices * spec.rows * spec.inputs,
                    parameters=parameter_bytes(spec.outputs, self.config),
                    passes=vectors * (2 if spec.zeros_weights else 1) + own)

    @property
    def operands(self) -> tuple[Operand, ...]:
        spec = self.spec
        several = (spec.matrices,) if spec.matrices > 1 else ()
        shape = (*several, spec.outputs, spec.inputs)
        weights = (weight_operand(shape, self.config) if spec.constant_weights
                   else Operand("weights", shape, INT8))
        return (Operand("data", (*several, spec.rows, spec.inputs)), weights,
                *parameter_operands(spec.outputs))

    @property
    def layouts(self) -> dict[str, TileLayout]:
        spec, config = self.spec, self.config
        first = spec.layout == Layout.BLOCKS
        found = {"data": tile_rows(spec.matrices, spec.rows, spec.inputs, config,
                                   memory_block(config, config.block_in), blocks_first=first),
                 "output": tile_rows(spec.matrices, spec.rows, spec.outputs, config,
                                     memory_block(config, config.block_out), blocks_first=first)}
        if not spec.constant_weights:
            order = (0, 2, 1) if spec.right_activations else (0, 1, 2)
            found["weights"] = tile_layout((spec.matrices, spec.outputs, spec.inputs), order,
                                           (1, config.block_out), (2, config.block_in))
        return found

    @property
    def interleaves(self) -> dict[str, Interleave]:
        return interleaves(self.config, dimension=1 if self.spec.layout == Layout.BLOCKS else 2)

    def pack(self, given: Mapping[str, Array]) -> dict[str, Array]:
        spec, config = self.spec, self.config
        if spec.constant_weights:
            bias = bias_with_zero_point(given["bias"], given["weights"].reshape(
                -1, spec.inputs)[:spec.outputs], spec.zero_point_in)
        else:
            bias = bias_of_activations(given["bias"], spec.inputs, spec.zeros_data,
                                       spec.zeros_weights)
        weights = pack_matrix(given["weights"], config)
        if spec.right_activations:
            weights = np.ascontiguousarray(weights.swapaxes(1, 2))
        data = pack_data(given["data"], config, spec.layout)
        return {"data": data.reshape(self.shapes["data"]), "weights": weights,
                "parameters": pack_parameters(bias, given["multiplier"], given["shift"], config),
                **zero_tiles(spec.zeros_data, spec.zeros_weights, config)}

    def unpack(self, output: Array) -> Array:
        matrices = unpack_output(wide_tiles(output, self.config, self.config.block_out),
                                 self.config, self.spec)
        return matrices if self.spec.matrices > 1 else matrices[0]


def form_of(spec: Dense, config: Config) -> DenseForm:
    """What is computed."""
    _check(spec, config)
    rows, depth, outputs = (blocks_of(spec.rows, config.batch),
                            blocks_of(spec.inputs, config.block_in),
                            blocks_of(spec.outputs, config.block_out))
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
    corrections, value, own = [], sums, parameters
    if spec.zeros_weights:
        corrections.append(subtract_row_sums(config, data, data_at, depth, sums))
        value = corrections[-1].result
    if spec.zeros_data:
        corrections.append(subtract_weight_sums(config, weights, weights_at, depth, parameters,
                                                spec.matrices))
        own = corrections[-1].result
    function = spec.requantization()

    def result(m: Expression, n: Expression, o: Expression, b: Expression,
               j: Expression) -> Expression:
        at = (o,) if own is parameters else (m, o)
        return requantize_sum(function, value[m, n, o, b, j], own, at, (b, j))

    if spec.layout == Layout.BLOCKS:
        output = compute("output", (spec.matrices, outputs, rows, *shape[3:]),
                         lambda m, o, n, b, j: result(m, n, o, b, j))
    else:
        output = compute("output", shape, result)
    return DenseForm(spec=spec, config=config, function=function, data=data, weights=weights,
                     parameters=parameters, sums=sums, corrections=tuple(corrections),
                     output=output, extents=(spec.matrices, rows, outputs, depth))


def blocks_first(spec: Dense, config: Config) -> list[DenseForm]:
    """For a product that stands alone: the form with blocks before rows. Rows of a block are one
    run in memory, where else each row of a few blocks is a short one."""
    if spec.layout == Layout.BLOCKS or blocks_of(spec.rows, config.batch) == 1:
        return []
    return [replace(form_of(replace(spec, layout=Layout.BLOCKS), config), asked=spec)]


def _check(spec: Dense, config: Config) -> None:
    """Refuse what the configuration has no room for."""
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


def pack_data(data: Array, config: Config, layout: Layout = Layout.ROWS) -> Array:
    """(matrices, rows, inputs), or without matrices, → what the program takes as `data`."""
    block = memory_block(config, config.block_in)
    packed = np.stack([pack_activations(each[:, :, None, None], config, block)[:, :, 0, 0]
                       for each in data.reshape(-1, *data.shape[-2:])])
    return packed if layout == Layout.ROWS else np.ascontiguousarray(packed.swapaxes(1, 2))


def pack_matrix(weights: Array, config: Config) -> Array:
    """(matrices, outputs, inputs), or without matrices, → what the program takes as `weights`."""
    packed = [pack_weights(each[:, :, None, None], config)[:, :, 0, 0]
              for each in weights.reshape(-1, *weights.shape[-2:])]
    return np.stack(packed)


def view_as_weights(output: Array, spec: Dense, config: Config) -> Array:
    """A program's `output`, (…, channel block, row, 1, lane), seen as what the program of `spec`
    takes as `weights` with `right_activations`. Not a byte is moved."""
    depth, outputs = -(-spec.inputs // config.block_in), -(-spec.outputs // config.block_out)
    return output.reshape(spec.matrices, depth, outputs, config.block_out, config.block_in)


def unpack_output(tiles: Array, config: Config, spec: Dense) -> Array:
    """The program's `output` → (matrices, rows, outputs)."""
    by_rows = tiles if spec.layout == Layout.ROWS else tiles.swapaxes(1, 2)
    return np.stack([unpack_activations(each[:, :, None, None], config, spec.rows,
                                        spec.outputs)[:, :, 0, 0] for each in by_rows])
