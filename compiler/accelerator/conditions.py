"""Conditions of a nest when it is emitted: known, or as what they leave of loops inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import CompileError
from ..expression.affine import affine
from ..expression.expression import Axis, Binary, Expression
from ..expression.intervals import interval_of


def clipped(axes: Iterable[Axis], conditions: Iterable[Expression],
            values: Mapping[Axis, int]) -> dict[Axis, Axis] | None:
    """The loops with the extents that conditions inside them leave; None if nothing is."""
    extents = {axis: axis.extent for axis in axes}
    for condition in conditions:
        assert isinstance(condition, Binary)
        left, right = affine(condition.left), affine(condition.right)
        if left is None or right is None or condition.operator not in ("<", "<="):
            raise CompileError(f"{condition}: loops of the hardware cannot have such a "
                               f"condition inside")
        room = (right + left.times(-1)).at(values, -(condition.operator == "<"))
        if not room.terms:
            if room.constant < 0:
                return None
            continue
        (axis, step), *more = room.terms.items()
        if more or step >= 0 or axis not in extents:
            raise CompileError(f"{condition}: loops of the hardware cannot have a condition "
                               f"on more than one of them inside")
        extents[axis] = min(extents[axis], room.constant // -step + 1)
        if extents[axis] <= 0:
            return None
    return {axis: axis if extent == axis.extent else Axis(axis.name, extent, axis.reduces)
            for axis, extent in extents.items()}


def holds(condition: Expression, values: Mapping[Axis, int]) -> bool:
    """Whether a condition on loops that are written out holds."""
    return _truth(condition, {axis: (value, value) for axis, value in values.items()})


def _truth(condition: Expression, known: Mapping[Expression, tuple[int, int]]) -> bool:
    assert isinstance(condition, Binary)
    if condition.operator == "and":
        return _truth(condition.left, known) and _truth(condition.right, known)
    left, right = interval_of(condition.left, known), interval_of(condition.right, known)
    if condition.operator == "<" and (left[1] < right[0] or left[0] >= right[1]):
        return left[1] < right[0]
    if condition.operator == "<=" and (left[1] <= right[0] or left[0] > right[1]):
        return left[1] <= right[0]
    raise CompileError(f"whether {condition} holds is not known when it is emitted")
