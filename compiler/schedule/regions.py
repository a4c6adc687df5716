"""Which part of a tensor a loop needs: bounds for what is computed inside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...base.classes.dataclass import unguarded
from ..expression.affine import Affine, affine, affine_at
from ..expression.elements import elements_in
from ..expression.expression import Axis, Element, Expression
from ..expression.rewrite import substitute
from ..expression.tensor import Tensor
from .loops import Split
from .stage import Stage

NOWHERE = Affine()          # not moved at all
Side = tuple[Affine, int]       # where a dimension of a box starts, and its extent


@unguarded(frozen=True)
class Part:
    """A box of a tensor: it starts at sums of the loops around it."""

    start: tuple[Affine, ...]
    extents: tuple[int, ...]


def whole_tensor(tensor: Tensor) -> Part:
    return Part((NOWHERE,) * len(tensor.shape), tensor.shape)


def extend_along(tensor: Tensor, part: Part, axes: Collection[Axis]) -> Part:
    """The part, extended to all of the tensor along some axes."""
    everything = whole_tensor(tensor)
    places = [place for place, axis in enumerate(tensor.axes) if axis in axes]
    start, extents = list(part.start), list(part.extents)
    for place in places:
        start[place], extents[place] = everything.start[place], everything.extents[place]
    return Part(tuple(start), tuple(extents))


def boxes_read(tensor: Tensor, reader: Expression, values: Mapping[Axis, Expression],
               inside: Collection[Axis]) -> list[list[Side]]:
    """For each element of a tensor in the reader's body, the box that it covers while the axes
    `inside` run. `values` gives the reader's own axes in terms of loops."""
    return [_box(element, values, inside, tensor) for element in elements_in(reader)
            if element.tensor is tensor]


def covering(tensor: Tensor, boxes: list[list[Side]]) -> Part:
    """The box that covers several. A read that a select does not choose may lie outside the tensor;
    the box does not, as far as its extents are known."""
    starts, extents = [], []
    for dimension in range(len(tensor.shape)):
        start, extent = _union([box[dimension] for box in boxes])
        if extent >= tensor.shape[dimension]:
            start, extent = NOWHERE, tensor.shape[dimension]
        starts.append(start)
        extents.append(extent)
    return Part(tuple(starts), tuple(extents))


def _box(element: Element, values: Mapping[Axis, Expression], inside: Collection[Axis],
         tensor: Tensor) -> list[Side]:
    sides = []
    for index, extent in zip(element.indices, tensor.shape, strict=True):
        form = affine_at(index, values)
        if form is None:
            form = affine(substitute(index, values))
        if form is None:        # not affine: all of it
            sides.append((Affine(), extent))
            continue
        low, reach, still = form.constant, 1, {}
        for axis, each in form.terms.items():
            if axis not in inside:
                still[axis] = each
            elif each < 0:
                low += each * (axis.extent - 1)
                reach -= each * (axis.extent - 1)
            else:
                reach += each * (axis.extent - 1)
        sides.append((Affine(low, still), reach))
    return sides


def _union(sides: list[Side]) -> Side:
    """The smallest side that covers several that start the same way, up to a constant."""
    if len(sides) == 1:
        return sides[0]
    first, _ = sides[0]
    low = min(start.constant for start, _ in sides)
    high = max(start.constant + extent for start, extent in sides)
    if any(dict(start.terms) != dict(first.terms) for start, _ in sides):
        return Affine(), 1 << 62        # nothing in common: the caller takes the whole
    return Affine(low, first.terms), high - low


def resize_axes(stage: Stage, extents: tuple[int, ...]) -> dict[Axis, Axis]:
    """The axes of a stage when only a part of its tensor is computed: for each axis of the
    schedule, one with the extent that it then has."""
    tensor = stage.tensor
    axes = {axis: Axis(axis.name, extent) for axis, extent
            in zip(tensor.axes, extents, strict=True)}
    axes |= {axis: axis for axis in tensor.reduce_axes}
    for relation in stage.relations:
        if isinstance(relation, Split):
            parent, factor = axes[relation.parent], relation.inner.extent
            inner = min(factor, parent.extent)
            axes[relation.inner] = Axis(relation.inner.name, inner, parent.reduces)
            axes[relation.outer] = Axis(relation.outer.name, -(
                -(parent.extent + relation.late) // inner), parent.reduces)
        else:
            outer, inner_axis = axes[relation.outer], axes[relation.inner]
            axes[relation.fused] = Axis(relation.fused.name, outer.extent * inner_axis.extent,
                                        outer.reduces)
    return axes

