"""Operators that take parts of tensors. Those with several results become several slices."""

from __future__ import annotations

from itertools import accumulate

from ....graph.operation import normalize_axes, normalize_axis
from ....graph.operations.data_movement.shape import Reshape, Slice
from ....graph.types import GraphError, Shape
from ..operator_node import Node, reads
from .translate_shape import few


def slice_axis(name: str, shape: Shape, axis: int, start: int, stop: int) -> Slice:
    """Some indices of one axis."""
    starts, stops = [0] * len(shape), list(shape)
    starts[axis], stops[axis] = start, stop
    return Slice(x=name, starts=tuple(starts), stops=tuple(stops), steps=(1,) * len(shape))


@reads("SLICE", inputs=3)
def slice_(node: Node) -> None:
    """From a start, so many; a size of -1 is all that is left."""
    shape = node.type(0).shape
    starts = few(node.integers(1, "the starts"), len(shape), "starts")
    sizes = few(node.integers(2, "the sizes"), len(shape), "sizes")
    stops = [size if count == -1 else start + count
             for size, start, count in zip(shape, starts, sizes, strict=True)]
    for size, start, stop in zip(shape, starts, stops, strict=True):
        if not 0 <= start <= stop <= size:
            raise GraphError(f"starts {starts} and sizes {sizes} do not lie in {shape}")
    node.add(Slice(x=node.input(0), starts=starts, stops=tuple(stops), steps=(1,) * len(shape)))


@reads("SPLIT", options="SplitOptions", inputs=2, outputs=None)
def split(node: Node) -> None:
    """Equal parts along an axis."""
    count = len(node.operator.outputs)
    (axis,) = few(node.integers(0, "the axis"), 1, "an axis")
    shape = node.type(1).shape
    axis = normalize_axis(axis, len(shape))
    if node.option("NumSplits") != count or shape[axis] % count:
        raise GraphError(f"there are {count} results and {node.option('NumSplits')} parts of "
                         f"{shape[axis]} indices")
    split_axis(node, 1, axis, [shape[axis] // count] * count)


@reads("SPLIT_V", options="SplitVOptions", inputs=3, outputs=None)
def split_v(node: Node) -> None:
    """Parts of given sizes along an axis; one may be -1: what is left."""
    sizes = list(node.integers(1, "the sizes", most=1 << 16))
    (axis,) = few(node.integers(2, "the axis"), 1, "an axis")
    shape = node.type(0).shape
    axis = normalize_axis(axis, len(shape))
    if sizes.count(-1) == 1:
        place = sizes.index(-1)
        sizes[place] = shape[axis] - (sum(sizes) + 1)
    if min(sizes, default=-1) < 0 or sum(sizes) != shape[axis] or (
            len(sizes) != len(node.operator.outputs)):
        raise GraphError(f"parts of {sizes[:8]} do not make {len(node.operator.outputs)} results "
                         f"of {shape[axis]} indices")
    split_axis(node, 0, axis, sizes)


def split_axis(node: Node, position: int, axis: int, sizes: list[int]) -> None:
    shape = node.type(position).shape
    for number, (size, stop) in enumerate(zip(sizes, accumulate(sizes), strict=True)):
        node.add(slice_axis(node.input(position), shape, axis, stop - size, stop), number)


@reads("UNPACK", options="UnpackOptions", outputs=None)
def unpack(node: Node) -> None:
    """The indices of an axis as tensors of their own, which do not have it."""
    shape = node.type(0).shape
    axis = normalize_axis(node.option("Axis"), len(shape))
    if shape[axis] != len(node.operator.outputs):
        raise GraphError(f"there are {len(node.operator.outputs)} results for the {shape[axis]} "
                         f"indices of axis {axis}")
    for index in range(shape[axis]):
        one = node.step("part", slice_axis(node.input(0), shape, axis, index, index + 1))
        node.add(Reshape(x=one, shape=(*shape[:axis], *shape[axis + 1:])), index)


@reads("REVERSE_V2", inputs=2)
def reverse(node: Node) -> None:
    shape = node.type(0).shape
    axes = normalize_axes(node.integers(1, "the axes"), len(shape))
    node.add(Slice(
        x=node.input(0), starts=tuple(size - 1 if axis in axes else 0
                                      for axis, size in enumerate(shape)),
        stops=tuple(-1 if axis in axes else size for axis, size in enumerate(shape)),
        steps=tuple(-1 if axis in axes else 1 for axis in range(len(shape)))))


@reads("STRIDED_SLICE", options="StridedSliceOptions", inputs=4)
def strided_slice(node: Node) -> None:
    """Python's x[a:b:c, …, None, i], where bits of masks say what each entry means."""
    shape = node.type(0).shape
    entries = list(zip(*(node.integers(position, what) for position, what in (
        (1, "the starts"), (2, "the ends"), (3, "the steps"))), strict=False))
    masks = {name: node.option(f"{name}Mask") for name in (
        "Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    if node.option("Offset"):
        entries = [(start, start + length, step) for start, length, step in entries]
    starts: list[int] = []
    stops: list[int] = []
    steps: list[int] = []
    after: list[int] = []
    for number, entry in enumerate(entries):
        bits = {name: bool(mask >> number & 1) for name, mask in masks.items()}
        named_after = sum(not masks["NewAxis"] >> each & 1
                          for each in range(number + 1, len(entries)))
        if bits["Ellipsis"]:
            while len(starts) + named_after < len(shape):
                size = shape[len(starts)]
                starts, stops, steps = [*starts, 0], [*stops, size], [*steps, 1]
                after.append(size)
        elif bits["NewAxis"]:
            after.append(1)
        elif len(starts) < len(shape):
            size = shape[len(starts)]
            start, stop, step = bounds(entry, size, bits)
            starts, stops, steps = [*starts, start], [*stops, stop], [*steps, step]
            after += [] if bits["ShrinkAxis"] else [len(range(start, stop, step))]
        else:
            raise GraphError(f"there are more entries than the {len(shape)} axes of {shape}")
    rest = shape[len(starts):]
    whole = Slice(x=node.input(0), starts=(*starts, *(0 for _ in rest)), stops=(*stops, *rest),
                  steps=(*steps, *(1 for _ in rest)))
    taken = node.step("part", whole)
    node.add(Reshape(x=taken, shape=(*after, *rest)))


def bounds(entry: tuple[int, ...], size: int, bits: dict[str, bool]) -> tuple[int, int, int]:
    """Start, stop and step of one entry, inside an axis."""
    start, stop, step = entry
    if step == 0:
        raise GraphError("a step is 0")
    if bits["ShrinkAxis"]:
        start += size if start < 0 else 0
        if not 0 <= start < size:
            raise GraphError(f"an index is {entry[0]}, but the axis has {size}")
        return start, start + 1, 1
    found = slice(None if bits["Begin"] else start, None if bits["End"] else stop,
                  step).indices(size)
    return found if len(range(*found)) else (0, 0, 1)
