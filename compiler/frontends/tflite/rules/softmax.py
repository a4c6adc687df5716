"""Softmax."""

from __future__ import annotations

from ....graph.operations.fixed_point import FixedPointSoftmax
from ....graph.types import GraphError
from ..reading import Node, reads


@reads("SOFTMAX", options="SoftmaxOptions")
def softmax(node: Node) -> None:
    """Along the last axis. Of 8-bit numbers, in the reference kernels' fixed-point arithmetic."""
    x = node.type(0)
    if not x.is_quantized:
        raise GraphError("float softmax: not yet")
    node.add(FixedPointSoftmax(x=node.input(0), beta=float(node.option("Beta"))))
