"""Functions of one 8-bit tensor that are computed in several steps, as one table."""

from __future__ import annotations

import numpy as np

from ..graph.evaluate_graph import compute_node
from ..graph.graph import Graph, Node
from ..graph.operation import Value
from ..graph.operations.pointwise.binary import Binary
from ..graph.operations.pointwise.quantize import Clamp, Lookup, Rescale
from ..graph.operations.tflite.eight_bit import FixedPointPrelu
from ..graph.types import Array, TensorType
from .graph_edit import Edit

ONE_BY_ONE = (Lookup, Rescale, Clamp, Binary, FixedPointPrelu)
EVERY = np.arange(-128, 128).astype(np.int8)
Table = tuple[str, Array]               # a tensor, and the result for each number that it may have


def compose_tables(graph: Graph) -> Graph:
    """Compute what follows from a tensor number by number with one table.

        s = Lookup(x, sigmoid)
        y = Binary(x, s, kind=mul)          becomes    y = Lookup(x, swish)

    Quantizers put a scale between the parts of SiLU and hard-swish; the layer before can look up
    the whole. A PReLU of one slope is a table as well. What has no table in it stays: sums and
    bounds are the ALU's without one.
    """
    edit = Edit(graph)
    tables: dict[str, Table] = {}
    with_lookup: set[str] = set()
    for name, node in graph.nodes.items():
        found = _table_of(graph, node, tables)
        edit.keep(name)
        if found is None:
            continue
        has_lookup = not with_lookup.isdisjoint(node.operation.operands())
        if isinstance(node.operation, Binary) and not has_lookup:
            continue
        tables[name] = found
        if isinstance(node.operation, Lookup | FixedPointPrelu) or has_lookup:
            with_lookup.add(name)
            if not (isinstance(node.operation, Lookup) and node.operation.x == found[0]):
                table = edit.constant(f"{name}.table", found[1], node.type.quantization)
                edit.put(name, Lookup(x=found[0], table=table), node.type, node.origin)
    return edit.finish()


def _table_of(graph: Graph, node: Node, tables: dict[str, Table]) -> Table | None:
    """The tensor that a node is a function of, and its results; None if it is none of one."""
    if not isinstance(node.operation, ONE_BY_ONE) or node.type.dtype != "int8":
        return None
    root, operands = "", []
    for each in node.operation.operands():
        known, constant = graph.type_of(each), graph.array(each)
        if constant is not None:
            is_table = isinstance(node.operation, Lookup)
            if constant.size != 1 and not is_table:
                return None
            array = constant if is_table else constant.reshape(1)
        elif known.dtype != "int8" or known.shape != node.type.shape:
            return None
        else:
            source, array = tables.get(each, (each, EVERY))
            if root not in ("", source):
                return None
            root = source
        operands.append(Value(TensorType(array.shape, known.dtype, known.quantization), array))
    if not root:
        return None
    result = TensorType(EVERY.shape, node.type.dtype, node.type.quantization)
    return root, compute_node(Node(node.operation, result), operands)
