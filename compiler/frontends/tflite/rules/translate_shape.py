"""Operators that give tensors another shape, another order of axes, or a border."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.operation import normalize_axes, normalize_axis
from ....graph.operations.data_movement.indexing import Expand, Tile
from ....graph.operations.data_movement.shape import Concat, Pad, PadMode, Reshape, Transpose
from ....graph.operations.pointwise.quantize import Lookup
from ....graph.types import GraphError, Quantization, Shape
from ..operator_node import Node, reads
from .rule_helpers import fused_bounds, round_half_away

MIRRORS = (PadMode.REFLECT, PadMode.SYMMETRIC)      # by number


@reads("RESHAPE", options="ReshapeOptions", inputs=(1, 2))
def reshape(node: Node) -> None:
    """The shape is an operand or, in old files, a setting."""
    wanted = node.integers(1, "the sizes") if node.has(1) else node.option_integers("NewShape")
    node.add(Reshape(x=node.input(0), shape=complete_shape(wanted, node.type(0).shape)))


def complete_shape(wanted: Shape, shape: Shape) -> Shape:
    """A shape in which one size may be -1: whatever is left."""
    open_axes = [axis for axis, size in enumerate(wanted) if size == -1]
    known = prod(size for size in wanted if size != -1)
    if len(open_axes) > 1 or min(wanted, default=0) < -1 or (
            open_axes and (not known or prod(shape) % known)):
        raise GraphError(f"shape {shape} cannot become {wanted}")
    return tuple(prod(shape) // known if size == -1 else size for size in wanted)


@reads("SQUEEZE", options="SqueezeOptions")
def squeeze(node: Node) -> None:
    """Without the axes that are named, or without all that have one index."""
    shape = node.type(0).shape
    gone = normalize_axes(node.option_integers("SqueezeDims"), len(shape)) or tuple(
        axis for axis, size in enumerate(shape) if size == 1)
    if any(shape[axis] != 1 for axis in gone):
        raise GraphError(f"axes {gone} of {shape} cannot be left out: they have more than one "
                         f"index")
    node.add(Reshape(x=node.input(0), shape=tuple(
        size for axis, size in enumerate(shape) if axis not in gone)))


@reads("EXPAND_DIMS", inputs=2)
def expand_dims(node: Node) -> None:
    (axis,) = few(node.integers(1, "the axis"), 1, "an axis")
    shape = node.type(0).shape
    axis = normalize_axis(axis, len(shape) + 1)
    node.add(Reshape(x=node.input(0), shape=(*shape[:axis], 1, *shape[axis:])))


def few(values: tuple[int, ...], count: int, what: str) -> tuple[int, ...]:
    if len(values) != count:
        raise GraphError(f"there are {len(values)} numbers for {what}, but must be {count}")
    return values


@reads("TRANSPOSE", inputs=2)
def transpose(node: Node) -> None:
    node.add(Transpose(x=node.input(0), order=node.integers(1, "the axes")))


@reads("SHAPE")
def shape(node: Node) -> None:
    node.give_constant(np.array(node.type(0).shape, node.declared_result().dtype))


@reads("RANK")
def rank(node: Node) -> None:
    node.give_constant(np.array(len(node.type(0).shape), node.declared_result().dtype))


@reads("FILL", inputs=2)
def fill(node: Node) -> None:
    """One number everywhere."""
    node.add(Expand(x=node.input(1), shape=node.integers(0, "the sizes")))


@reads("CONCATENATION", options="ConcatenationOptions", inputs=(1, 1 << 16))
def concatenation(node: Node) -> None:
    """Unsigned numbers of another scale than the result are brought to it, in 32 bits."""
    if fused_bounds(node):
        raise GraphError("a fused activation of a concatenation is not supported")
    result = node.declared_result()
    parts = []
    for position in range(len(node.operator.inputs)):
        name, type_ = node.input(position), node.type(position)
        if type_.quantization != result.quantization and type_.dtype == "uint8":
            name = node.step("part", Lookup(x=name, table=rescaling(
                node, type_.require_quantization(), node.declared_quantization())),
                "uint8", result.quantization)
        parts.append(name)
    node.add(Concat(parts=tuple(parts), axis=node.option("Axis")))


def rescaling(node: Node, before: Quantization, after: Quantization) -> str:
    """A table of 8-bit numbers at another scale."""
    ratio = np.float32(before.scale) * (np.float32(1) / np.float32(after.scale))
    bias = np.float32(-before.zero_point) * ratio
    reals = np.arange(256, dtype=np.float32) * ratio + bias
    stored = round_half_away(reals.astype(np.float64)) + after.zero_point
    return node.constant("table", np.clip(stored, 0, 255).astype(np.uint8), after)


@reads("PACK", options="PackOptions", inputs=(1, 1 << 16))
def pack(node: Node) -> None:
    """Tensors along a new axis."""
    shape = node.type(0).shape
    axis = normalize_axis(node.option("Axis"), len(shape) + 1)
    parts = []
    for position in range(len(node.operator.inputs)):
        if node.type(position).shape != shape:
            raise GraphError(f"shapes {node.type(position).shape} and {shape} differ")
        parts.append(node.step("part", Reshape(x=node.input(position),
                                               shape=(*shape[:axis], 1, *shape[axis:]))))
    node.add(Concat(parts=tuple(parts), axis=axis))


@reads("PAD", "PADV2", inputs=(2, 3))
def pad(node: Node) -> None:
    """A border of zeros, or of a value."""
    quantization = node.type(0).quantization
    value: float = quantization.zero_point if quantization else 0
    if node.operator.name == "PADV2" and node.has(2):
        array = node.array(2)
        if array is None or array.size != 1:
            raise GraphError("the value of the border must be one constant number")
        if node.type(2).plain().dtype != node.type(0).dtype or (
                node.type(2).quantization != quantization):
            raise GraphError(f"the border is {node.type(2)} and the input {node.type(0)}, but "
                             f"both must be of one type")
        value = array.reshape(-1)[0].item()
    before, after = borders(node)
    node.add(Pad(x=node.input(0), before=before, after=after, value=value))


@reads("MIRROR_PAD", options="MirrorPadOptions", inputs=2)
def mirror_pad(node: Node) -> None:
    number = node.option("Mode")
    if not 0 <= number < len(MIRRORS):
        raise GraphError(f"the mode is number {number}, but must be REFLECT or SYMMETRIC")
    before, after = borders(node)
    least = 1 if MIRRORS[number] == PadMode.REFLECT else 0
    for size, *widths in zip(node.type(0).shape, before, after, strict=False):
        if max(widths) > size - least:
            raise GraphError(f"a border of {max(widths)} is wider than the {size - least} that "
                             f"are there to mirror")
    node.add(Pad(x=node.input(0), before=before, after=after, mode=MIRRORS[number]))


def borders(node: Node) -> tuple[Shape, Shape]:
    """How much comes before and after, along each axis."""
    widths = few(node.integers(1, "the borders"), 2 * len(node.type(0).shape), "borders")
    return widths[::2], widths[1::2]


@reads("TILE", inputs=2)
def tile(node: Node) -> None:
    node.add(Tile(x=node.input(0), repeats=node.integers(1, "the repeats")))


@reads("BROADCAST_TO", inputs=2)
def broadcast_to(node: Node) -> None:
    node.add(Expand(x=node.input(0), shape=node.integers(1, "the sizes")))
