"""Batch normalization into weights, or into a product and a sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..graph.graph import Graph, Node
from ..graph.operations.layers.matmul import MatMul
from ..graph.operations.layers.normalization import BatchNorm
from ..graph.operations.layers.window import Conv, TransposedConv
from ..graph.operations.pointwise.binary import Binary, BinaryKind
from ..graph.types import Array
from .graph_edit import Edit

Layer = Conv | TransposedConv | MatMul


def fold_batch_norm(graph: Graph) -> Graph:
    """Give a batch normalization to the weights and the bias of the layer that it reads.

        a = Conv(x, w, b)
        y = BatchNorm(a, scale, bias, mean, variance)
                            becomes    y = Conv(x, w × f, b × f + g) with constants f and g

    A layer that something else reads too, or that clamps its results, is left alone. Without such
    a layer, the two numbers for each channel become a product and a sum:

        y = BatchNorm(x, …)     becomes    p = Binary(x, f, kind=MUL), y = Binary(p, g, kind=ADD)

    Results are those of real numbers in another order, equal but for their rounding.
    """
    edit = Edit(graph)
    with np.errstate(all="ignore"):             # as in `evaluate`: infinities are numbers
        for name, node in graph.nodes.items():
            factors = _factors(graph, node)
            if factors is None:
                edit.keep(name)
                continue
            assert isinstance(node.operation, BatchNorm)
            before = _layer_before(graph, node.operation, edit)
            if before is None:
                _replace_by_product_and_sum(edit, name, node, *factors)
            else:
                del edit.nodes[node.operation.x]
                _fold_into_layer(edit, name, node, before, *factors)
    return edit.finish()


def _factors(graph: Graph, node: Node) -> tuple[Array, Array] | None:
    """f and g, for which the result is x × f + g, if the node is a normalization with constants."""
    norm = node.operation
    if not isinstance(norm, BatchNorm):
        return None
    arrays = [graph.array(each) for each in (norm.scale, norm.bias, norm.mean, norm.variance)]
    known = [each.astype(np.float64) for each in arrays if each is not None]
    if len(known) < len(arrays):
        return None
    scale, bias, mean, variance = known
    factor = scale / np.sqrt(variance + norm.epsilon)
    return factor, bias - mean * factor


def _layer_before(graph: Graph, norm: BatchNorm, edit: Edit) -> Layer | None:
    """The layer whose weights can take the factors."""
    before = edit.nodes.get(norm.x)
    if before is None or graph.uses[norm.x] != 1 or not before.type.is_float:
        return None
    layer = before.operation
    axes = len(before.type.shape)
    if not isinstance(layer, Layer) or (layer.low, layer.high) != (None, None):
        return None
    channels = axes - 1 if isinstance(layer, MatMul) else layer.channel_axis
    weights = layer.right if isinstance(layer, MatMul) else layer.weights
    known = all(each is None or each in edit.constants for each in (weights, layer.bias))
    return layer if known and norm.channel_axis % axes == channels else None


def _fold_into_layer(edit: Edit, name: str, node: Node, layer: Layer, factor: Array,
                     added: Array) -> None:
    dtype = node.type.dtype
    if layer.bias is not None:
        added = added + edit.constants[layer.bias].array * factor
    bias = edit.constant(f"{name}.bias", added.astype(dtype))
    if isinstance(layer, MatMul):
        products = edit.constants[layer.right].array * factor           # channels come last
    else:
        products = edit.constants[layer.weights].array * factor.reshape(-1, 1, 1, 1)
    weights = edit.constant(f"{name}.weights", products.astype(dtype))
    edit.put(name, replace(layer, right=weights, bias=bias) if isinstance(layer, MatMul)
             else replace(layer, weights=weights, bias=bias), node.type, node.origin)


def _replace_by_product_and_sum(edit: Edit, name: str, node: Node, factor: Array,
                                added: Array) -> None:
    assert isinstance(node.operation, BatchNorm)
    axes = len(node.type.shape)
    shape = [-1 if each == node.operation.channel_axis % axes else 1 for each in range(axes)]
    names = [edit.constant(f"{name}.{word}", each.reshape(shape).astype(node.type.dtype))
             for word, each in (("factor", factor), ("added", added))]
    product = edit.fresh(f"{name}.product")
    edit.put(product, Binary(kind=BinaryKind.MUL, left=node.operation.x, right=names[0]),
             node.type, node.origin)
    edit.put(name, Binary(kind=BinaryKind.ADD, left=product, right=names[1]), node.type,
             node.origin)
