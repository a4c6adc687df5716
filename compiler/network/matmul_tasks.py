"""Matrix products as operators compute them: with constant weights, or of two activations.

The two products of attention take queries, keys, values and scores by head. Heads are matrices of
one `Dense`, and the reshapes and transposes before it are addresses (`axis_views.py`). With blocks
of channels before rows (`Layout.BLOCKS`) the tiles of a projection are those of its heads, one
after the other, so the product with the keys follows in the same program.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod

import numpy as np

from ...isa.config import Config
from ..errors import CompileError
from ..graph.graph import Graph, Node
from ..graph.operations.layers.matmul import MatMul
from ..operators.dense.dense import Dense, Layout, form_of
from ..operators.layout import Layout as TileLayout
from .axis_views import AxisView, view_through_moves
from .task import (
    RefusalError,
    Task,
    check_activation,
    epilogue_of,
    parameters_of,
    root,
    weights_of,
)

TRANSPOSED = (0, 2, 1)          # weights have a row for each output


def matmul_task(graph: Graph, node: Node, operation: MatMul, config: Config) -> Task:
    """A product with constant weights, or one of two activations."""
    check_activation(graph.type_of(operation.left), "left side")
    if operation.left in graph.constants:
        raise RefusalError("the left side is constant")
    if operation.right not in graph.constants:
        return _product_of_activations(graph, node, operation, config)
    return _product_with_weights(graph, node, operation, config)


def _product_with_weights(graph: Graph, node: Node, operation: MatMul, config: Config) -> Task:
    left, right = graph.type_of(operation.left), graph.type_of(operation.right)
    if len(right.shape) != 2:
        raise RefusalError("matrices of weights that differ from one product to the next")
    weights = np.ascontiguousarray(weights_of(graph, operation.right, config).T)
    outputs, inputs = weights.shape
    rows = prod(left.shape[:-1])
    by_blocks = rows > 1 and _takes_results(config) and _has_products(graph)
    spec = Dense(rows=rows, inputs=inputs, outputs=outputs,
                 layout=Layout.BLOCKS if by_blocks else Layout.ROWS,
                 zero_point_in=left.require_quantization().zero_point, **epilogue_of(node))
    task = Task(spec, {"data": operation.left}, {
        "weights": weights, **parameters_of(graph, operation.bias, operation.scales, outputs)})
    return _with_views(graph, task, form_of(spec, config).layouts, {
        "data": view_through_moves(graph, operation.left, (1, rows, inputs))})


def _takes_results(config: Config) -> bool:
    """Whether tiles of activations can be tiles of weights."""
    return config.batch == 1 and config.block_in == config.block_out


def _has_products(graph: Graph) -> bool:
    """Whether a graph multiplies tensors that are both computed at run time, in 8 bits."""
    return any(isinstance(each.operation, MatMul) and each.operation.right not in graph.constants
               and graph.type_of(each.operation.right).dtype == "int8"
               for each in graph.nodes.values())


def _product_of_activations(graph: Graph, node: Node, operation: MatMul, config: Config) -> Task:
    left, right = graph.type_of(operation.left), graph.type_of(operation.right)
    check_activation(right, "right side")
    *some, rows, inputs = left.shape
    *others, _, outputs = right.shape
    if not others:                  # one matrix for all rows
        some, rows = [], prod(left.shape[:-1])
    if some != others:
        raise RefusalError("one side is repeated to meet the other")
    matrices, as_left = prod(some), _takes_results(config)
    spec = Dense(rows=rows, inputs=inputs, outputs=outputs, matrices=matrices,
                 constant_weights=False, right_activations=as_left,
                 layout=Layout.BLOCKS if as_left else Layout.ROWS,
                 zero_point_in=left.require_quantization().zero_point,
                 zero_point_weights=right.require_quantization().zero_point, **epilogue_of(node))
    task = Task(spec, {"data": operation.left, "weights": operation.right},
                parameters_of(graph, operation.bias, operation.scales, outputs))
    views = {"data": view_through_moves(graph, operation.left, (matrices, rows, inputs)),
             "weights": view_through_moves(graph, operation.right, (
                 matrices, inputs, outputs)).reorder(TRANSPOSED)}
    whole = AxisView(root(graph, operation.right), (matrices, inputs, outputs),
                     ((0,), (1,), (2,))).reorder(TRANSPOSED)
    return _with_views(graph, replace(task, views={"weights": whole}),
                       form_of(spec, config).layouts, views)


def _with_views(graph: Graph, task: Task, layouts: Mapping[str, TileLayout],
                views: Mapping[str, AxisView]) -> Task:
    """A task that reads what lies before transposes, where tiles can be addressed there."""
    for operand, view in views.items():
        if view.tensor != root(graph, task.reads[operand]):
            with suppress(CompileError):
                view.layout(layouts[operand])
                task = replace(task, reads={**task.reads, operand: view.tensor},
                               views={**task.views, operand: view})
    return task
