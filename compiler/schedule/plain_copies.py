"""Stages that load a box of an input: one copy, known without the loops that it would take.

    for c in 4: for y in 6: x.inp[c, y] = x[c, y0 + y]    →    copy x.inp from x[0 :+ 4, y0 :+ 6]

Most stages of an accelerator's schedule are such loads. Their loops would be built only for
`form_transfers` to find the box again; whatever is not as plain as this is left to it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..expression.affine import ZERO, Affine, affine, margin
from ..expression.elements import Element
from ..expression.expression import Axis, Cast, Constant, Expression, Select
from ..expression.intervals import conjuncts
from ..expression.tensor import Tensor
from ..nest.nest import DMA, LOADED, Buffer, Copy, Region, Scope
from .regions import Part
from .stage import Stage

PLAIN = "plain"             # what a body remembers its source as
Bound = tuple[int, Axis, int]       # constant + sign × axis >= 0


class Source(NamedTuple):
    """What a body copies: an input, moved by an offset along each axis, with padding around it."""

    tensor: Tensor
    offsets: tuple[int, ...]
    padding: int | None


def is_load(stage: Stage) -> bool:
    """Whether all loops of a stage, as they are, become one transfer to a scratchpad."""
    return (stage.intrinsic is not None and stage.intrinsic[1] == DMA and stage.scope in LOADED
            and not (stage.relations or stage.kinds or stage.border)
            and stage.intrinsic[0] is stage.leaves[0]
            and stage.leaves == list(stage.tensor.axes))


def source_of(tensor: Tensor, body: Expression, scope: Scope) -> Source | None:
    """What is copied, if that takes one transfer wherever a part of the tensor begins."""
    known: dict[str, dict[Scope, Source | None]] = body.__dict__
    found = known.setdefault(PLAIN, {})
    if scope not in found:
        found[scope] = _find_source(tensor, body, scope)
    return found[scope]


def _find_source(tensor: Tensor, body: Expression, scope: Scope) -> Source | None:
    value, padding, guard = body, None, None
    if isinstance(value, Select) and isinstance(value.otherwise, Constant):
        padding, guard, value = int(value.otherwise.value), value.condition, value.then
    if isinstance(value, Cast) and scope == Scope.ACC and (
            value.dtype, value.value.dtype) == ("int32", "int8"):
        value = value.value
    if not isinstance(value, Element) or value.tensor.body is not None or (
            len(value.indices) != len(tensor.axes)):
        return None
    offsets = []
    for axis, index in zip(tensor.axes, value.indices, strict=True):
        form = affine(index)
        if form is None or form.terms != {axis: 1}:
            return None
        offsets.append(form.constant)
    found = Source(value.tensor, tuple(offsets), padding)
    return found if _is_cut_right(tensor, found, guard) else None


def _is_cut_right(tensor: Tensor, source: Source, guard: Expression | None) -> bool:
    """Whether a transfer leaves out, and pads, just what the body does, even where a part reaches
    beyond the tensor: what lies outside the tensor lies outside its source, and whatever else does
    is padded."""
    padded = set() if guard is None else set(map(_bound_of, conjuncts(guard)))
    for axis, offset, extent, size in zip(tensor.axes, source.offsets, tensor.shape,
                                          source.tensor.shape, strict=True):
        if offset > 0 or size - offset > extent:
            return False
        low, high = (offset, axis, 1), (size - 1 - offset, axis, -1)
        if (low not in padded and offset) or (high not in padded and size - offset != extent):
            return False
        padded -= {low, high}
    return not padded


def _bound_of(condition: Expression) -> Bound | None:
    form = margin(condition)
    if form is None or len(form.terms) != 1:
        return None
    (axis, sign), = form.terms.items()
    return form.constant, axis, sign


def copy_part(source: Source, part: Part, target: Buffer, origin: Buffer) -> Copy:
    """The transfer of a part."""
    starts = tuple([Affine(start.constant + offset, start.terms).expression()
                    for start, offset in zip(part.start, source.offsets, strict=True)])
    return Copy(Region(target, (ZERO,) * len(starts), part.extents),
                Region(origin, starts, part.extents), source.padding)
