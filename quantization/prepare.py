"""A float graph in the one form that quantization works on: 32-bit floats, channels first, batch
norms and biases folded, clamps as nodes of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..base.checked_values import show_name
from ..base.errors import MicrotronError
from ..compiler.graph.graph import Constant, Graph, Node
from ..compiler.graph.operations.layers.matmul import MatMul
from ..compiler.graph.operations.layers.window import Conv, TransposedConv
from ..compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ..compiler.graph.operations.pointwise.quantize import Clamp
from ..compiler.graph.operations.pointwise.unary import Cast
from ..compiler.graph.operations.scaled import Clamped
from ..compiler.graph.types import TensorType
from ..compiler.graph.verify_graph import verify_graph
from ..compiler.passes.fold_batch_norm import fold_batch_norm
from ..compiler.passes.fold_constants import fold_constants, fold_dequantized
from ..compiler.passes.fold_pad import fold_pad
from ..compiler.passes.graph_edit import Edit
from ..compiler.passes.merge_equal import merge_equal
from ..compiler.passes.normalize import normalize
from ..compiler.passes.remove_dead import remove_dead
from ..compiler.passes.simplify_shape import simplify_shape
from .channels_first import channels_first

Product = Conv | TransposedConv | MatMul
PRODUCTS = (Conv, TransposedConv, MatMul)


def prepare(graph: Graph) -> Graph:
    """The graph, ready to be quantized. Refuses one that is quantized already."""
    steps: tuple[Callable[[Graph], Graph], ...] = (
        widen, fold_constants, fold_dequantized, _refuse_quantized, split_clamps, fold_batch_norm,
        normalize, fold_constants, fold_bias, simplify_shape, remove_dead, fold_pad, channels_first,
        fold_constants, simplify_shape, merge_equal, remove_dead)
    with np.errstate(all="ignore"):             # as in `evaluate`: infinities are numbers
        for step in steps:
            graph = step(graph)
    verify_graph(graph)
    return graph


def _refuse_quantized(graph: Graph) -> Graph:
    found = [name for name, type_ in graph.types.items() if type_.is_quantized]
    if found:
        raise MicrotronError(f"{show_name(graph.name or 'the model')} is quantized already, as "
                             f"{show_name(found[0])} is {graph.type_of(found[0]).dtype} with a "
                             f"scale; compile it as it is, or give the float model")
    return graph


def widen(graph: Graph) -> Graph:
    """Half precision as single precision, which is what kernels and scales are computed in."""
    def wide(type_: TensorType) -> TensorType:
        return replace(type_, dtype="float32") if type_.dtype == "float16" else type_

    if not any(type_.dtype == "float16" for type_ in graph.types.values()):
        return graph
    nodes = {}
    for name, node in graph.nodes.items():
        operation = node.operation
        if isinstance(operation, Cast) and operation.dtype == "float16":
            operation = replace(operation, dtype="float32")
        nodes[name] = replace(node, operation=operation, type=wide(node.type))
    constants = {name: Constant(wide(each.type), each.array.astype(wide(each.type).dtype))
                 for name, each in graph.constants.items()}
    return replace(graph, nodes=nodes, constants=constants,
                   inputs={name: wide(type_) for name, type_ in graph.inputs.items()})


def split_clamps(graph: Graph) -> Graph:
    """Bounds of float operators as clamps of their own, the form that ONNX has."""
    edit = Edit(graph)
    for name, node in graph.nodes.items():
        operation = node.operation
        if isinstance(operation, Clamped) and not isinstance(operation, Clamp) and (
                node.type.is_float) and (operation.low, operation.high) != (None, None):
            inner = edit.fresh(f"{name}.unclamped")
            edit.put(inner, replace(operation, low=None, high=None), node.type, node.origin)
            edit.put(name, Clamp(x=inner, low=operation.low, high=operation.high), node.type,
                     node.origin)
        else:
            edit.keep(name)
    return edit.finish()


def fold_bias(graph: Graph) -> Graph:
    """A sum with constants of each channel into the bias of the layer before, and a product into
    its weights.

        a = MatMul(x, w)
        y = Binary(a, c, kind=ADD)          becomes    y = MatMul(x, w, bias=c)
    """
    edit = Edit(graph)
    for name, node in graph.nodes.items():
        found = _fold_constant(edit, node)
        if found is None:
            edit.keep(name)
        else:
            layer, before = found
            del edit.nodes[before]
            edit.put(name, layer, node.type, node.origin)
    return edit.finish()


def _fold_constant(edit: Edit, node: Node) -> tuple[Product, str] | None:
    """The layer with the constant in it, and the node that it takes the place of."""
    match node.operation:
        case Binary(kind=BinaryKind.ADD | BinaryKind.SUB | BinaryKind.MUL as kind, left=before,
                    right=right, low=None, high=None):
            constant = edit.constants.get(right)
        case _:
            return None
    layer = edit.nodes[before].operation if before in edit.nodes else None
    if constant is None or not isinstance(layer, PRODUCTS) or edit.graph.uses[before] != 1 or (
            edit.nodes[before].type.shape != node.type.shape):
        return None
    weights = edit.constants.get(layer.right if isinstance(layer, MatMul) else layer.weights)
    bias = None if layer.bias is None else edit.constants.get(layer.bias)
    if weights is None or (layer.bias is not None and bias is None):
        return None
    axes = len(node.type.shape)
    axis = axes - 1 if isinstance(layer, MatMul) else layer.channel_axis
    channels, shape = node.type.shape[axis], constant.type.shape
    full = (1,) * (axes - len(shape)) + shape
    if any(size != 1 for each, size in enumerate(full) if each != axis):
        return None
    values = np.broadcast_to(constant.array.reshape(-1), (channels,)).astype(np.float64)
    sums = np.zeros(channels) if bias is None else bias.array.astype(np.float64)
    if kind == BinaryKind.MUL:
        shaped = values if isinstance(layer, MatMul) else values.reshape(-1, 1, 1, 1)
        made = edit.constant(f"{before}.scaled",
                             (weights.array * shaped).astype(weights.array.dtype))
        layer = (replace(layer, right=made) if isinstance(layer, MatMul)
                 else replace(layer, weights=made))
        sums = sums * values
    else:
        sums = sums - values if kind == BinaryKind.SUB else sums + values
    name = edit.constant(f"{before}.bias", sums.astype(node.type.dtype))
    return replace(layer, bias=name), before
