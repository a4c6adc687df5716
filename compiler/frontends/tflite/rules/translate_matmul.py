"""Matrix products: fully connected layers and products of activations."""

from __future__ import annotations

from math import prod

from .....isa.instructions import Rounding
from ....graph.operations.data_movement.shape import Reshape
from ....graph.operations.layers.matmul import MatMul
from ....graph.types import GraphError
from ..operator_node import Node, reads
from .rule_helpers import Settings, double_products, fused_bounds, single_product
from .translate_convolution import bias_of, eight_bit_factors, shape_of, weights_of

PLAIN_WEIGHTS = 0               # the one format in which weights are not shuffled


@reads("FULLY_CONNECTED", options="FullyConnectedOptions", inputs=(2, 3))
def fully_connected(node: Node) -> None:
    """Weights are (column, k). Inputs of any shape are rows of k."""
    if node.option("WeightsFormat") != PLAIN_WEIGHTS:
        raise GraphError("shuffled weights are not supported")
    weights = weights_of(node, (1, 0))
    depth, columns = shape_of(node, weights)
    x, shape = node.input(0), node.type(0).shape
    if not depth or prod(shape) % depth:
        raise GraphError(f"an input of shape {shape} cannot be rows of {depth}")
    rows = (prod(shape) // depth, depth)
    if shape != rows:
        x = node.step("rows", Reshape(x=x, shape=rows))
    product = MatMul(left=x, right=weights, bias=bias_of(node, 2), **scaling(node, weights),
                     **fused_bounds(node))
    kept = (*shape[:-1], columns)
    if not node.option("KeepNumDims") or kept == (rows[0], columns):
        node.add(product)
        return
    if shape[-1:] != (depth,):
        raise GraphError(f"an input of shape {shape} cannot keep its axes with rows of {depth}")
    tensor = node.declared_result()
    flat = node.step("flat", product, tensor.dtype, tensor.quantization)
    node.add(Reshape(x=flat, shape=kept))


@reads("BATCH_MATMUL", options="BatchMatMulOptions", inputs=2)
def batch_matmul(node: Node) -> None:
    sides = []
    for position, option in enumerate(("AdjX", "AdjY")):
        axes = list(range(len(node.shape(position))))
        if len(axes) < 2:
            raise GraphError("a matrix has two axes or more")
        if node.option(option):
            axes[-2:] = axes[:-3:-1]
        sides.append(node.permute(position, axes, real=node.type(0).is_float))
    settings = {**scaling(node, sides[1]), "rounding": Rounding.TWICE}
    node.add(MatMul(left=sides[0], right=sides[1], **settings))


def scaling(node: Node, weights: str) -> Settings:
    """The multipliers of an integer product, whose quotients are rounded once."""
    if node.type(0).is_float:
        return {}
    first, second, result = eight_bit_factors(node, 0, weights)
    scales = double_products(first, second, result) if len(second.scales) > 1 else (
        single_product(first, second, result),)
    return {"scales": scales, "rounding": Rounding.AWAY}
