"""Images in another size where each pixel is an average of many, or of a part of the image: a
constant matrix along each axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ......base.classes.dataclass import dataclass
from .....graph.operations.data_movement.shape import Transpose
from .....graph.operations.layers.matmul import MatMul
from .....graph.operations.pointwise.logic import Logical, LogicKind, Where
from .....graph.operations.vision.resize import Resize, ResizeKind
from .....graph.types import Array, GraphError
from ...call import Call
from ...reader import LARGEST_FOLDED


@dataclass(frozen=True)
class Filter:
    """How pixels are averaged beyond what a Resize says."""

    antialias: bool = False             # over as many as become one
    exclude_outside: bool = False       # without what is outside, instead of repeating the edge
    region: tuple[tuple[float, float], ...] = ()    # of each axis that is left: from 0 to 1
    outside: float = 0                  # what is there outside of the image, with a region


def give_resized(call: Call, resize: Resize, chosen: Filter) -> None:
    """The result of a node that resizes with a filter."""
    found, shape = resize.x, call.type_of(resize.x).shape
    resize.infer(call.type_of(resize.x))
    if not call.type_of(found).is_float:
        raise GraphError(f"the input is {call.type_of(found)}, but must be real numbers for this")
    beyond: str | None = None
    for axis, size in enumerate(shape):
        places, outside = _places(resize, chosen, axis, size)
        if size == resize.shape[axis] and (places == np.arange(size)).all():
            continue
        matrix = _matrix(resize, chosen, axis, size, places)
        found = _along(call, found, axis, matrix)
        if outside.any():
            mask = call.constant(outside.reshape([-1 if each == axis else 1
                                                  for each in range(len(shape))]))
            beyond = mask if beyond is None else call.add(
                Logical(kind=LogicKind.OR, left=beyond, right=mask))
    if beyond is None:
        call.give_existing(found)
    else:
        call.give(Where(condition=beyond, right=found,
                        left=call.scalar(chosen.outside, call.type_of(found).dtype)))


def _places(resize: Resize, chosen: Filter, axis: int, size: int) -> tuple[Array, Array]:
    """Where each index of the result lies in the input, and which are outside."""
    after = resize.shape[axis]
    if after * size > LARGEST_FOLDED:
        raise GraphError(f"a matrix from {size} to {after} pixels has more than {LARGEST_FOLDED} "
                         f"numbers")
    if not chosen.region:
        return resize.places(axis, size), np.zeros(after, bool)
    start, end = chosen.region[axis]
    step = (end - start) * (size - 1)
    index = np.arange(after, dtype=np.float64)
    places = start * (size - 1) + (index * step / (after - 1) if after > 1 else step / 2 + index)
    return places, (places < 0) | (places > size - 1)


def _matrix(resize: Resize, chosen: Filter, axis: int, size: int, places: Array) -> Array:
    """What each pixel of the input counts for each of the result: (result, input)."""
    found = np.zeros((len(places), size))
    if not len(places):
        return found
    if resize.kind == ResizeKind.NEAREST:
        found[np.arange(len(places)), np.clip(resize.nearest_pixels(places), 0, size - 1)] = 1
        return found
    ratio = resize.ratios[axis] if resize.ratios else len(places) / size
    narrow = min(ratio, 1.0) if chosen.antialias else 1.0
    kernel: Callable[[Array], Array] = _linear if resize.kind == ResizeKind.LINEAR else (
        lambda away: _cubic(away, resize.cubic))
    reach = int((1 if resize.kind == ResizeKind.LINEAR else 2) / narrow) + 1
    if (2 * reach + 1) * len(places) > LARGEST_FOLDED:
        raise GraphError(f"{len(places)} averages of {2 * reach + 1} pixels are more than "
                         f"{LARGEST_FOLDED} numbers")
    around = np.floor(places).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    weights = kernel((around - places[:, None]) * narrow)
    if chosen.exclude_outside:
        weights = np.where((around < 0) | (around >= size), 0, weights)
    if chosen.exclude_outside or chosen.antialias:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    rows = np.broadcast_to(np.arange(len(places))[:, None], around.shape)
    np.add.at(found, (rows, np.clip(around, 0, size - 1)), weights)
    return found


def _linear(away: Array) -> Array:
    found: Array = np.clip(1 - np.abs(away), 0, 1)
    return found


def _cubic(away: Array, a: float) -> Array:
    t = np.abs(away)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, a * (((t - 5) * t + 8) * t - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _along(call: Call, tensor: str, axis: int, matrix: Array) -> str:
    """A tensor times a matrix along an axis."""
    shape = call.type_of(tensor).shape
    order = (*(each for each in range(len(shape)) if each != axis), axis)
    turned = call.add(Transpose(x=tensor, order=order))
    flat = call.reshape(turned, (call.type_of(tensor).size // max(shape[axis], 1), shape[axis]))
    weights = call.constant(np.ascontiguousarray(matrix.T, call.type_of(tensor).dtype))
    product = call.add(MatMul(left=flat, right=weights))
    after = call.reshape(product, (*(shape[each] for each in order[:-1]), matrix.shape[0]))
    return call.add(Transpose(x=after, order=tuple(np.argsort(order).tolist())))
