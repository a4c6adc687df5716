"""Puts an intrinsic in the place of a stage's loops without building them.

`tensorize` unifies loops around an assignment with an intrinsic. Which element of a stage's body
each operand of the intrinsic is does not depend on loops, so it is found once for a body. What
remains for each schedule are the tiles. Where anything is not as plain as this, loops are built,
and `tensorize` says what is wrong, if anything is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...expression.affine import ZERO, Affine
from ...expression.elements import axes_in
from ...expression.expression import (
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Element,
    Expression,
    Reduction,
    Select,
)
from ...expression.tensor import Tensor
from ...nest.nest import Invoke, Region, Start
from ...schedule.located import Located
from .intrinsic import Intrinsic

PAIRS = "pairs"             # what a body remembers the elements of an intrinsic's operands as


class Pair(NamedTuple):
    """An operand of an intrinsic: the axis that each of its dimensions runs along, if that has more
    than one index, and the element of a body that it is."""

    tensor: Tensor
    along: tuple[Axis | None, ...]
    element: Element


def pairs_of(intrinsic: Intrinsic, body: Expression) -> tuple[Pair, ...] | None:
    """What an intrinsic reads and the elements of a body that it is; None if that takes a closer
    look."""
    known: dict[str, dict[Intrinsic, tuple[Pair, ...] | None]] = body.__dict__
    found = known.setdefault(PAIRS, {})
    if intrinsic not in found:
        found[intrinsic] = _find_pairs(intrinsic, body)
    return found[intrinsic]


def _find_pairs(intrinsic: Intrinsic, body: Expression) -> tuple[Pair, ...] | None:
    pattern = intrinsic.tensor.body
    if isinstance(pattern, Reduction) or isinstance(body, Reduction):
        if not isinstance(pattern, Reduction) or not isinstance(body, Reduction) or (
                pattern.combiner != body.combiner):
            return None
        pattern, body = pattern.value, body.value
    found: dict[Element, Element] = {}
    if pattern is None or not _pair(pattern, body, found):
        return None
    pairs = {each.tensor: Pair(each.tensor, _along(each.indices), element)
             for each, element in found.items()}
    if len(pairs) < len(found) or any(len(axes_in(index)) > 1
                                      for each in found for index in each.indices):
        return None
    return tuple([pairs[each] for each in intrinsic.operands[1:]])


def _along(indices: Sequence[Expression]) -> tuple[Axis | None, ...]:
    return tuple([next((axis for axis in axes_in(index) if axis.extent > 1), None)
                  for index in indices])


def _pair(pattern: Expression, value: Expression, found: dict[Element, Element]) -> bool:
    """Whether two expressions are alike but for their elements."""
    match pattern, value:
        case Element(), Element():
            return found.setdefault(pattern, value) == value
        case Constant(), Constant():
            return pattern == value
        case (Cast(), Cast()) | (Binary(), Binary()) | (Call(), Call()) | (Select(), Select()):
            return _kind(pattern) == _kind(value) and all(
                _pair(one, other, found)
                for one, other in zip(pattern.operands(), value.operands(), strict=True))
    return False


def _kind(node: Expression) -> object:
    match node:
        case Cast():
            return node.dtype
        case Binary():
            return node.operator
        case Call():
            return node.function
    return None


class _Tiles:
    """Which loop each axis of an intrinsic is, as far as that is known."""

    def __init__(self, intrinsic: Intrinsic, loops: Sequence[Axis]):
        self.intrinsic, self.loops = intrinsic, set(loops)
        self.used: dict[Axis, Axis] = {}

    def region(self, tensor: Tensor, along: Sequence[Axis | None],
               located: Located) -> Region | None:
        """The tile that an operand is; None if it is none."""
        buffer, indices = located
        rank = len(tensor.shape)
        if (buffer.scope != self.intrinsic.scopes[tensor] or buffer.dtype != tensor.dtype
                or buffer.shape[-rank:] != tensor.shape):
            return None
        outer = indices[:-rank]
        for form in outer:              # which tile it is must not depend on the loops inside
            if not self.loops.isdisjoint(form.terms):
                return None
        for axis, form in zip(along, indices[-rank:], strict=True):
            if not self._runs_along(axis, form):
                return None
        return Region(buffer, (*[form.expression() for form in outer], *(ZERO,) * rank),
                      (*(1,) * len(outer), *tensor.shape))

    def _runs_along(self, axis: Axis | None, form: Affine) -> bool:
        """Whether an index is the loop that an axis of the intrinsic is."""
        if form.constant or len(form.terms) > 1:
            return False
        if not form.terms:
            return axis is None
        (loop, step), = form.terms.items()
        if step != 1 or loop not in self.loops:
            return False
        if axis is None:
            return loop.extent == 1
        return loop.extent == axis.extent and self.used.setdefault(axis, loop) is loop

    def is_all(self) -> bool:
        """Whether each loop of several iterations is an axis of the intrinsic."""
        used = set(self.used.values())
        return all(each in used or each.extent == 1 for each in self.loops)


def invoke_stage(intrinsic: Intrinsic, body: Expression, loops: Sequence[Axis], target: Located,
                 locate: Callable[[Element], Located | None]) -> Invoke | None:
    """The intrinsic that loops around a body are; None if that takes a closer look."""
    pairs = pairs_of(intrinsic, body)
    if pairs is None:
        return None
    tiles, tensor = _Tiles(intrinsic, loops), intrinsic.tensor
    region = tiles.region(tensor, _along(tensor.axes), target)
    regions = []
    for each in pairs:
        if region is None:
            return None
        regions.append(region)
        located = locate(each.element)
        region = None if located is None else tiles.region(each.tensor, each.along, located)
    if region is None or not tiles.is_all():
        return None
    return Invoke(intrinsic.name, (*regions, region))


def start_stage(intrinsic: Intrinsic, value: int, loops: Sequence[Axis],
                target: Located) -> Start | None:
    """The start of an intrinsic's sums that loops are; None if that takes a closer look."""
    tiles, tensor = _Tiles(intrinsic, loops), intrinsic.tensor
    region = tiles.region(tensor, _along(tensor.axes), target)
    return Start(intrinsic.name, region, value) if region is not None and tiles.is_all() else None
