"""Operators that move numbers and compute nothing."""

from __future__ import annotations

from math import prod

from ....graph.operations.shape import Reshape
from ....graph.types import GraphError, Shape
from ..reading import Node, reads


@reads("RESHAPE", options="ReshapeOptions", inputs=(1, 2))
def reshape(node: Node) -> None:
    """The shape is an operand or, in old files, a setting."""
    wanted = node.integers(1, "the sizes") if node.has(1) else node.option_integers("NewShape")
    node.add(Reshape(x=node.input(0), shape=completed(wanted, node.type(0).shape)))


def completed(wanted: Shape, shape: Shape) -> Shape:
    """A shape in which one size may be -1: whatever is left."""
    open_axes = [axis for axis, size in enumerate(wanted) if size == -1]
    known = prod(size for size in wanted if size != -1)
    if len(open_axes) > 1 or min(wanted, default=0) < -1 or (
            open_axes and (not known or prod(shape) % known)):
        raise GraphError(f"shape {shape} cannot become {wanted}")
    return tuple(prod(shape) // known if size == -1 else size for size in wanted)
