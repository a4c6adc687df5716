"""Pools. Averages are those of stored numbers, rounded exactly."""

from __future__ import annotations

from .....isa.instructions import Rounding
from ....graph.operations.layers.window import Pool, PoolKind
from ....graph.types import GraphError
from ..operator_node import Node, reads
from .rule_helpers import fused_bounds, image_sides, pads


@reads("AVERAGE_POOL_2D", "MAX_POOL_2D", options="Pool2DOptions")
def pool_2d(node: Node) -> None:
    kind = PoolKind.MAX if node.operator.name == "MAX_POOL_2D" else PoolKind.AVERAGE
    kernel = node.option("FilterHeight"), node.option("FilterWidth")
    stride = node.option("StrideH"), node.option("StrideW")
    if node.type(0).quantization != node.declared_result().quantization:
        raise GraphError("the result has another scale or zero point than the input")
    raw = kind == PoolKind.AVERAGE and node.type(0).is_quantized
    node.add(Pool(x=node.input(0), kind=kind, kernel=kernel, stride=stride,
                  pad=pads(node, image_sides(node), kernel, stride), raw=raw,
                  rounding=Rounding.AWAY if raw else Rounding.TWICE, **fused_bounds(node)))
