"""SmoothQuant: large channels of an activation that the CPU computes, such as a layer norm, are
divided by factors that the weights of the layers reading it are multiplied with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...compiler.graph.graph import Graph, Node
from ...compiler.graph.operations.layers.matmul import MatMul
from ...compiler.graph.operations.layers.normalization import LayerNorm
from ...compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from ...compiler.passes.graph_edit import Edit
from ..calibration.statistics import Say
from ..parameters import Array
from ..selection import Selection
from ..simulation import Simulator
from .equalization import factors_of, observe_channels


def find_smoothed(selection: Selection) -> dict[str, list[str]]:
    """Float activations, and the layers with constant weights that read them."""
    found: dict[str, list[str]] = {}
    for layer in selection.layers:
        operation = selection.graph.nodes[layer].operation
        if isinstance(operation, MatMul) and selection.weights(layer) is not None:
            name = operation.left
            weights = selection.graph.constants[operation.right]
            if name in selection.graph.nodes and name not in selection.nodes and len(
                    weights.type.shape) == 2:
                found.setdefault(name, []).append(layer)
    return found


def smooth(simulator: Simulator, samples: Iterable[dict[str, Array]], say: Say) -> Graph:
    """The graph with factors moved from activations to weights. What a layer norm makes for
    these layers alone is divided in its parameters, anything else by a product."""
    selection = simulator.selection
    graph, chosen = selection.graph, find_smoothed(selection)
    channels = observe_channels(simulator, dict.fromkeys(chosen, -1), samples, say)
    edit = Edit(graph)
    moved: dict[str, str] = {}
    factors: dict[str, Array] = {}
    for name, node in graph.nodes.items():
        operation = node.operation
        if isinstance(operation, MatMul) and name in chosen.get(operation.left, ()):
            weights = graph.constants[operation.right].array
            made = edit.constant(f"{name}.smoothed_weights", (
                weights * factors[operation.left][:, None]).astype(np.float32))
            node = replace(node, operation=replace(operation, left=moved[operation.left],
                                                   right=made))
        edit.put(name, node.operation, node.type, node.origin)
        if name in chosen:
            peaks = np.max([np.abs(graph.constants[_right_operand(graph, each)].array).max(axis=1)
                            for each in chosen[name]], axis=0)
            factors[name] = factors_of(channels[name].peaks, peaks)
            moved[name] = _divide(edit, name, node, factors[name], set(chosen[name]))
    return edit.finish()


def _right_operand(graph: Graph, layer: str) -> str:
    operation = graph.nodes[layer].operation
    assert isinstance(operation, MatMul)
    return operation.right


def _divide(edit: Edit, name: str, node: Node, factors: Array, readers: set[str]) -> str:
    """The tensor divided by factors, for some readers."""
    norm = node.operation
    alone = set(edit.graph.readers[name]) <= readers and name not in edit.graph.outputs
    if alone and isinstance(norm, LayerNorm) and norm.scale in edit.constants and (
            norm.bias is None or norm.bias in edit.constants) and (
            edit.constants[norm.scale].type.shape == factors.shape):
        scale = edit.constants[norm.scale].array / factors
        changed = replace(norm, scale=edit.constant(f"{name}.scale", scale.astype(np.float32)))
        if norm.bias is not None:
            bias = edit.constants[norm.bias].array / factors
            changed = replace(changed, bias=edit.constant(f"{name}.bias", bias.astype(np.float32)))
        edit.put(name, changed, node.type, node.origin)
        return name
    inverse = edit.constant(f"{name}.inverse", (1 / factors).astype(np.float32))
    product = edit.fresh(f"{name}.smoothed")
    edit.put(product, Binary(kind=BinaryKind.MUL, left=name, right=inverse), node.type,
             node.origin)
    return product
