"""Operators on two tensors at the same place."""

from __future__ import annotations

from ....graph.operations.elementwise import Binary, BinaryKind
from ..reading import Node, reads
from .common import fused


@reads("ADD", options="AddOptions", inputs=2)
def add(node: Node) -> None:
    node.add(Binary(kind=BinaryKind.ADD, left=node.input(0), right=node.input(1), **fused(node)))
