"""How the elements that a tensor's body reads move with its axes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...base.classes.dataclass import dataclass
from ..expression.expression import Axis, Element, Expression, walk
from ..expression.tensor import Tensor
from ..nest.nest import Access, Buffer
from ..nest.places import place_of


@dataclass(frozen=True)
class Strides:
    """Elements from one index of an axis to the next, for the result and for everything that is
    read. `free` axes occur nowhere else: not in conditions, and not in indices from data."""

    accesses: tuple[dict[Axis, int], ...]
    free: frozenset[Axis]

    def along(self, axis: Axis) -> set[int]:
        return {each.get(axis, 0) for each in self.accesses}

    def read(self, axis: Axis) -> set[int]:
        """The same without the result."""
        return {each.get(axis, 0) for each in self.accesses[1:]}

    def join(self, outer: Axis, inner: Axis) -> bool:
        """Whether two axes are one in memory, wherever something is read."""
        return {outer, inner} <= self.free and all(
            each.get(outer, 0) == each.get(inner, 0) * inner.extent for each in self.accesses)


def strides_of(tensor: Tensor) -> Strides:
    assert tensor.body is not None
    own = {axis: prod(tensor.shape[place + 1:]) for place, axis in enumerate(tensor.axes)}
    accesses, bound = [own], set()
    for element in _elements(tensor.body):
        place = place_of(Access(Buffer("", element.tensor.shape, element.tensor.dtype),
                                element.indices), {})
        found: dict[Axis, int] = {}
        for term, factor in place.terms.items():
            if isinstance(term, Axis):
                found[term] = factor
            else:
                bound |= {each for each in walk(term) if isinstance(each, Axis)}
        accesses.append(found)
    bound |= set(_axes_outside_indices(tensor.body))
    return Strides(tuple(accesses), frozenset({*tensor.axes, *tensor.reduce_axes} - bound))


def _elements(body: Expression) -> Iterator[Element]:
    return (node for node in walk(body) if isinstance(node, Element))


def _axes_outside_indices(body: Expression) -> Iterator[Axis]:
    """Axes that are numbers themselves, or decide about something."""
    seen: set[int] = set()
    left = [body]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Axis):
            yield node
        elif not isinstance(node, Element):
            left += node.operands()
