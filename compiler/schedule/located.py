"""Which element of its buffer an element of a tensor is, as sums of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..expression.affine import Affine, affine_at
from ..expression.expression import Axis, Element, Expression
from ..nest.nest import Buffer
from .regions import Part


class Located(NamedTuple):
    """A buffer, and which element of it, in terms of loops."""

    buffer: Buffer
    indices: Sequence[Affine]


def locate_element(element: Element, values: Mapping[Axis, Expression], part: Part,
                   buffer: Buffer) -> Located | None:
    """The element of a buffer that holds a part of a tensor, for these values of axes; None if its
    indices are not sums."""
    indices = []
    for index, start in zip(element.indices, part.start, strict=True):
        form = element_index(index, start, values)
        if form is None:
            return None
        indices.append(form)
    return Located(buffer, indices)


def element_index(index: Expression, start: Affine,
                  values: Mapping[Axis, Expression]) -> Affine | None:
    """An index into a part that starts somewhere; None if it is not a sum."""
    form = affine_at(index, values)
    if form is not None and (start.terms or start.constant):    # not all, from the beginning
        form += start.times(-1)
    return form


def rename_axes(located: Located, renamed: Mapping[Axis, Axis]) -> Located:
    """The same with some loops as others."""
    return Located(located.buffer, [Affine(form.constant, {
        renamed.get(axis, axis): each for axis, each in form.terms.items()})
        for form in located.indices])
