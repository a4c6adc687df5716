"""Orders of axes into the constants that they meet."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ..graph.graph import Graph, Node
from ..graph.operations.data_movement.shape import Reshape, Transpose
from ..graph.operations.layers.matmul import MatMul
from .graph_edit import Edit


def fold_transpose(graph: Graph) -> Graph:
    """Put the rows of constant weights in the order in which numbers lie before a transpose.

        a = Transpose(x, order=(0, 2, 3, 1))            # of an image (1, c, h, w)
        b = Reshape(a, shape=(1, h × w × c))
        y = MatMul(b, w)                    becomes     b = Reshape(x, shape=(1, c × h × w))
                                                        y = MatMul(b, w with its rows moved)

    A network that counts channels last ends so when it becomes one that counts them first. The
    transpose moves numbers from lane to lane, which is the CPU's; sums do not depend on the order
    of their terms. Sums of real numbers are rounded in theirs, so only integers are moved.
    """
    edit = Edit(graph)
    return edit.rewrite(lambda name, node: _substitute(edit, name, node))


def _substitute(edit: Edit, name: str, node: Node) -> bool:
    matmul = node.operation
    if not isinstance(matmul, MatMul):
        return False
    graph = edit.graph
    moved = _before_transpose(graph, matmul.left)
    weights, type_ = graph.array(matmul.right), graph.type_of(matmul.right)
    if moved is None or weights is None or weights.ndim != 2 or not type_.is_integer:
        return False
    known = type_.quantization
    if known is not None and known.axis not in (None, -1, 1):
        return False
    x, order = moved
    shape = graph.type_of(x).shape
    within = tuple(each - 1 for each in order[1:])          # of the axes of a row
    rows = np.arange(len(weights)).reshape([shape[1 + each] for each in within])
    places = rows.transpose(np.argsort(within)).reshape(-1)
    flat = edit.fresh(f"{name}.flat")
    edit.put(flat, Reshape(x=x, shape=(shape[0], prod(shape[1:]))),
             graph.type_of(matmul.left), node.origin)
    right = edit.constant(f"{matmul.right}.moved", np.ascontiguousarray(weights[places]), known)
    edit.put(name, replace(matmul, left=flat, right=right), node.type, node.origin)
    return True


def _before_transpose(graph: Graph, left: str) -> tuple[str, tuple[int, ...]] | None:
    """What the rows of a matrix are made of, and the order in which their axes are taken."""
    reshape = graph.nodes[left].operation if left in graph.nodes else None
    if not isinstance(reshape, Reshape) or reshape.x not in graph.nodes:
        return None
    transpose = graph.nodes[reshape.x].operation
    if not isinstance(transpose, Transpose) or transpose.order[0] != 0:
        return None
    x = graph.type_of(transpose.x)
    result = graph.type_of(left)
    single = x.quantization is None or x.quantization.axis is None
    if not single or not x.is_integer or result.shape != (x.shape[0], prod(x.shape[1:])):
        return None
    return transpose.x, transpose.order
