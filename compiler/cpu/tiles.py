"""Tensors in tiles, and back, as expressions: what a `Layout` means."""

from __future__ import annotations

from math import prod

from ..expression.expression import Constant, Expression, both, select
from ..expression.tensor import Tensor, compute, placeholder
from ..operators.layout import Layout, Stage

Shape = tuple[int, ...]
PLAIN, TILES = "plain", "tiles"         # the names of both sides


def pack_tensor(layout: Layout, dtype: str) -> Tensor:
    """The tiles of a plain tensor."""
    tensor = placeholder(PLAIN, layout.source, dtype)
    for number, stage in enumerate(layout.stages):
        tensor = _apply_stage(stage, tensor, number == len(layout.stages) - 1)
    return tensor


def _apply_stage(stage: Stage, source: Tensor, is_last: bool) -> Tensor:
    def element(*dims: Expression) -> Expression:
        indices: list[Expression] = [Constant(start) for start in stage.starts]
        for dim, (axis, step) in zip(dims, stage.steps, strict=True):
            indices[axis] = indices[axis] + dim * step
        before, after = stage.borders()
        inside = [Constant(0) <= index for index, more in zip(indices, before, strict=True) if more]
        inside += [index < size for index, more, size
                   in zip(indices, after, stage.source, strict=True) if more]
        value = at(source, indices, stage.source, within=not inside)
        return select(both(*inside), value, stage.fill) if inside else value
    return compute(TILES if is_last else "stage", stage.shape, element)


def unpack_tensor(layout: Layout, dtype: str) -> Tensor:
    """The plain tensor of tiles."""
    tensor = placeholder(TILES, layout.stages[-1].shape, dtype)
    for number, stage in enumerate(reversed(layout.stages)):
        tensor = _invert_stage(stage, tensor, number == len(layout.stages) - 1)
    return tensor


def _invert_stage(stage: Stage, tiles: Tensor, is_last: bool) -> Tensor:
    stage.inverse()                     # refuses what has no inverse

    def element(*axes: Expression) -> Expression:
        dims: list[Expression] = [Constant(0)] * len(stage.shape)
        for dim, (axis, step) in enumerate(stage.steps):
            if stage.shape[dim] > 1:
                outer = axes[axis] // step
                larger = any(along == axis and other > step and stage.shape[place] > 1
                             for place, (along, other) in enumerate(stage.steps))
                dims[dim] = outer % stage.shape[dim] if larger else outer
        return at(tiles, dims, stage.shape)
    return compute(PLAIN if is_last else "stage", stage.source, element)


def at(tensor: Tensor, indices: list[Expression], shape: Shape, *,
       within: bool = True) -> Expression:
    """An element of a tensor that is seen in another shape of the same size. If indices are not
    always `within` it, the first one is reduced as well, so that any of them names an element."""
    if tensor.shape == shape:
        return tensor[tuple(indices)]
    flat: Expression = Constant(0)
    for place, index in enumerate(indices):
        flat = flat + index * prod(shape[place + 1:])
    found = []
    for place, size in enumerate(tensor.shape):
        inner = prod(tensor.shape[place + 1:])
        found.append(flat // inner % size if place or not within else flat // inner)
    return tensor[tuple(found)]
