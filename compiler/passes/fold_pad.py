"""Borders into the windows that slide over them."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from ..graph.graph import Graph, with_nodes
from ..graph.operations.data_movement.shape import Pad, PadMode
from ..graph.operations.layers.window import Conv, Pool, PoolKind
from ..graph.types import GraphError, TensorType


def fold_pad(graph: Graph) -> Graph:
    """Let a convolution or a pool do the padding before it.

        a = Pad(x, before=(0, 1, 1, 0), after=(0, 1, 1, 0), value=3)    # the zero point of x
        y = Conv(a, w)                      becomes    y = Conv(x, w, pad=(1, 1, 1, 1))

    The border is then never written. Its value must be what the window assumes outside: the zero
    point (0 of other numbers) for a convolution and for an average, which from then on counts the
    border; the least number for a maximum. An average that does not count a border of its own
    cannot count another, and a window may not lie in the border altogether.
    """
    nodes = dict(graph.nodes)
    for name, node in graph.nodes.items():
        operation = node.operation
        if not isinstance(operation, Conv | Pool):
            continue
        before = graph.nodes.get(operation.x)
        if before is None or not isinstance(before.operation, Pad):
            continue
        changed = fold_border(operation, before.operation, before.type)
        if changed is None:
            continue
        try:
            changed.check(node.type, *(graph.type_of(each) for each in changed.operands()))
        except GraphError:
            continue                        # a window in the border altogether
        nodes[name] = replace(node, operation=changed)
    return with_nodes(graph, nodes)


def fold_border(operation: Conv | Pool, pad: Pad, padded: TensorType) -> Conv | Pool | None:
    """The operation with a border of its own, if that is the same."""
    rows, columns = (axis for axis in (1, 2, 3) if axis != operation.channel_axis)
    others = {0, operation.channel_axis}
    if pad.mode != PadMode.CONSTANT or any(pad.before[axis] or pad.after[axis] for axis in others):
        return None
    if pad.value != border_value(operation, padded):
        return None
    top, bottom, left, right = operation.pad
    sides = (top + pad.before[rows], bottom + pad.after[rows],
             left + pad.before[columns], right + pad.after[columns])
    if isinstance(operation, Conv) or operation.kind == PoolKind.MAX:
        return replace(operation, x=pad.x, pad=sides)
    if any(operation.pad) and not operation.count_include_pad:
        return None
    return replace(operation, x=pad.x, pad=sides, count_include_pad=True)


def border_value(operation: Conv | Pool, padded: TensorType) -> float:
    """The stored number that a window finds outside the image."""
    if isinstance(operation, Pool) and operation.kind == PoolKind.MAX:
        return padded.range[0] if padded.is_integer else -inf
    raw = isinstance(operation, Pool) and operation.raw
    known = padded.quantization
    return 0 if known is None or raw else known.zero_point
