"""Data movement: reshapes, transposes, slices, concatenation, padding."""

from __future__ import annotations

from math import prod

import numpy as np

from ....graph.operation import normalize_axis
from ....graph.operations.data_movement.blocks import DepthOrder, DepthToSpace, SpaceToDepth
from ....graph.operations.data_movement.indexing import Expand, Gather, GatherNd, OneHot, Tile
from ....graph.operations.data_movement.shape import Concat, Pad, PadMode, Slice, Transpose
from ....graph.types import GraphError, Shape
from ..call import Call
from ..operator_table import operator

PAD_MODES = {"constant": PadMode.CONSTANT, "reflect": PadMode.REFLECT, "edge": PadMode.EDGE,
             "wrap": PadMode.WRAP}


def axes_of(call: Call, number: int, rank: int) -> tuple[int, ...] | None:
    """Axes, an attribute in old opsets and an operand in new ones, counted from the front."""
    found = call.integers(number, "axes") if call.has(number) else call.list("axes")
    return None if found is None else tuple(normalize_axis(axis, rank) for axis in found)


@operator("Reshape", "allowzero", since=5)
def reshape(call: Call) -> None:
    before, wanted = call.type(0).shape, list(call.integers(1, "the shape"))
    if not call.flag("allowzero"):
        if any(size == 0 for size in wanted[len(before):]):
            raise GraphError(f"shape {tuple(wanted)} keeps sizes that {before} does not have")
        wanted = [before[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    if -1 in wanted:
        place = wanted.index(-1)
        rest = prod(wanted[:place] + wanted[place + 1:])
        if rest < 1:
            raise GraphError(f"nothing can be meant by -1 in shape {tuple(wanted)}")
        wanted[place] = prod(before) // rest
    call.give_reshaped(call.tensor(0), tuple(wanted))


@operator("Flatten", "axis")
def flatten(call: Call) -> None:
    shape = call.type(0).shape
    axis = call.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise GraphError(f"axis is {axis}, but there are {len(shape)}")
    axis += len(shape) * (axis < 0)
    call.give_reshaped(call.tensor(0), (prod(shape[:axis]), prod(shape[axis:])))


@operator("Squeeze", "axes")
def squeeze(call: Call) -> None:
    shape = call.type(0).shape
    axes = axes_of(call, 1, len(shape))
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    call.give_reshaped(call.tensor(0), tuple(size for axis, size in enumerate(shape)
                                             if axis not in axes))


@operator("Unsqueeze", "axes")
def unsqueeze(call: Call) -> None:
    given = call.integers(1, "axes") if call.has(1) else call.list("axes") or ()
    sizes = list(call.type(0).shape)
    rank = len(sizes) + len(given)
    for axis in sorted(normalize_axis(each, rank) for each in given):
        sizes.insert(axis, 1)
    call.give_reshaped(call.tensor(0), tuple(sizes))


@operator("Transpose", "perm")
def transpose(call: Call) -> None:
    x = call.tensor(0)
    order = call.list("perm") or tuple(reversed(range(len(call.type(0).shape))))
    call.give_moved(Transpose(x=x, order=order), x)


@operator("Concat", "axis", since=4)
def concat(call: Call) -> None:
    parts = [call.tensor(each) for each in range(len(call))]
    if not parts:
        raise GraphError("there is nothing to join")
    if len({call.type_of(each).quantization for each in parts}) > 1:
        parts = [call.plain_operand(each) for each in range(len(call))]
    call.give_moved(Concat(parts=tuple(parts), axis=call.integer("axis", 0)), parts[0])


@operator("Split", "axis split num_outputs", since=2)
def split(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    axis = normalize_axis(call.integer("axis", 0), len(shape))
    count = len(call.node.output)
    sizes = call.integers(1, "split") if call.has(1) else call.list("split")
    if sizes is None:
        each = -(-shape[axis] // max(count, 1))
        sizes = tuple(min(each, max(shape[axis] - each * part, 0)) for part in range(count))
    if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes, default=0) < 0:
        raise GraphError(f"{count} parts of {sizes} do not make up an axis of {shape[axis]}")
    start = 0
    for number, size in enumerate(sizes):
        call.give_moved(build_slice(x, shape, {axis: (start, start + size, 1)}), x, number)
        start += size


def build_slice(x: str, shape: Shape, parts: dict[int, tuple[int, int, int]]) -> Slice:
    """A slice with a start, a stop and a step on some axes, and all of the others."""
    limits = [parts.get(axis, (0, size, 1)) for axis, size in enumerate(shape)]
    return Slice(x=x, starts=tuple(each[0] for each in limits),
                 stops=tuple(each[1] for each in limits), steps=tuple(each[2] for each in limits))


@operator("Slice", "starts ends axes")
def slice_(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    if call.has(1):
        starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
        steps = call.integers(4, "steps") if call.has(4) else None
    else:
        starts, ends, steps = call.list("starts") or (), call.list("ends") or (), None
    axes = axes_of(call, 3, len(shape))
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps or (
            len(set(axes)) != len(axes) or len(axes) > len(shape)):
        raise GraphError(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit "
                         f"each other")
    parts = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        part = _part(start, end, step, shape[axis])
        parts[axis] = (part.start, part.stop, step) if part else (0, 0, 1)
    call.give_moved(build_slice(x, shape, parts), x)


def _part(start: int, end: int, step: int, size: int) -> range:
    """The indices from a start to an end of an axis. Unlike in Python, going backwards from before
    the first index begins at the first."""
    start, end = (each + size * (each < 0) for each in (start, end))
    if step > 0 or not size:
        return range(min(max(start, 0), size), min(max(end, 0), size), abs(step))
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)


@operator("Pad", "mode pads value", since=2)
def pad(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    widths = call.integers(1, "pads") if call.has(1) else call.list("pads") or ()
    axes = axes_of(call, 3, len(shape)) or tuple(range(len(shape)))
    if len(widths) != 2 * len(axes):
        raise GraphError(f"pads are {widths}, but must be two for each of {len(axes)} axes")
    before, after = [0] * len(shape), [0] * len(shape)
    for place, axis in enumerate(axes):
        before[axis], after[axis] = widths[place], widths[place + len(axes)]
    mode = PAD_MODES[call.text("mode", "constant", " ".join(PAD_MODES))]
    value = call.number(2, "the value") if call.has(2) else call.real("value", 0)
    if min(*before, *after, 0) < 0:
        parts = {axis: (max(-low, 0), size + min(high, 0), 1) for axis, (low, high, size)
                 in enumerate(zip(before, after, shape, strict=True))}
        if any(stop < start for start, stop, _ in parts.values()):
            raise GraphError(f"pads {widths} cut off more than there is of {shape}")
        x = call.move(build_slice(x, shape, parts), x)
    low_high = [tuple(max(each, 0) for each in sides) for sides in (before, after)]
    inner = call.type_of(x).shape
    if mode != PadMode.CONSTANT and any(
            max(sides) and size < 1 + max(sides) * (mode == PadMode.REFLECT)
            for size, *sides in zip(inner, *low_high, strict=True)):
        raise GraphError(f"pads {widths} show more than there is of {inner}")
    call.give_moved(Pad(x=x, before=low_high[0], after=low_high[1], value=value, mode=mode), x)


@operator("Expand")
def expand(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(Expand(x=x, shape=call.integers(1, "the shape")), x)


@operator("Tile", since=6)
def tile(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(Tile(x=x, repeats=call.integers(1, "repeats")), x)


@operator("Gather", "axis")
def gather(call: Call) -> None:
    x, shape = call.tensor(0), call.type(0).shape
    axis = normalize_axis(call.integer("axis", 0), len(shape))
    index = call.known_values(1)
    if index is not None and index.dtype.kind == "i" and index.size:
        size = shape[axis]
        if not -size <= index.min() <= index.max() < size:
            raise GraphError(f"indices are from {index.min()} to {index.max()}, but the axis has "
                             f"{size}")
        if index.ndim == 0:             # a single slice is cheaper than a pick
            start = int(index) % size
            part = call.move(build_slice(x, shape, {axis: (start, start + 1, 1)}), x)
            call.give_reshaped(part, (*shape[:axis], *shape[axis + 1:]))
            return
    call.give_moved(Gather(x=x, indices=call.plain_operand(1), axis=axis), x)


@operator("GatherND", "batch_dims")
def gather_nd(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(GatherNd(x=x, indices=call.plain_operand(1),
                             batch=call.integer("batch_dims", 0)), x)


@operator("DepthToSpace", "blocksize mode")
def depth_to_space(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(DepthToSpace(x=x, block=call.integer("blocksize", 0), channel_axis=1,
                                 order=DepthOrder(call.text("mode", "DCR", "DCR CRD"))), x)


@operator("SpaceToDepth", "blocksize mode")
def space_to_depth(call: Call) -> None:
    x = call.tensor(0)
    call.give_moved(SpaceToDepth(x=x, block=call.integer("blocksize", 0), channel_axis=1,
                                 order=DepthOrder(call.text("mode", "DCR", "DCR CRD"))), x)


@operator("OneHot", "axis")
def one_hot(call: Call) -> None:
    values = call.array(2, "values")
    if values.shape != (2,):
        raise GraphError(f"values have shape {values.shape}, but must have (2,)")
    depth = call.number(1, "depth")
    call.give(OneHot(indices=call.cast(call.plain_operand(0), "int64"),
                     depth=int(np.clip(depth, -1, 2e9)),
                     axis=call.integer("axis", -1), off=values[0].item(), on=values[1].item(),
                     wrap=True), dtype=str(values.dtype))
