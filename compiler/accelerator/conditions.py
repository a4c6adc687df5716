"""Conditions of a nest when it is emitted: known, or as what they leave of loops inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import CompileError
from ..expression.affine import margin
from ..expression.expression import Axis, Binary, Expression
from ..expression.intervals import interval_of


def clipped(axes: Iterable[Axis], conditions: Iterable[Expression],
            values: Mapping[Axis, int]) -> dict[Axis, Axis] | None:
    """The loops with the extents that conditions inside them leave; None if nothing is."""
    extents = {axis: axis.extent for axis in axes}
    for condition in conditions:
        room = margin(condition)
        if room is None:
            raise CompileError(f"{condition}: a condition inside loops of the hardware must "
                               f"compare sums of axes with < or <=")
        room = room.at(values)
        if not room.terms:
            if room.constant < 0:
                return None
            continue
        (axis, step), *more = room.terms.items()
        if more or step >= 0 or axis not in extents:
            raise CompileError(f"{condition}: a condition inside loops of the hardware must cut "
                               f"one of them short")
        extents[axis] = min(extents[axis], room.constant // -step + 1)
        if extents[axis] <= 0:
            return None
    return {axis: axis if extent == axis.extent else Axis(axis.name, extent, axis.reduces)
            for axis, extent in extents.items()}


def holds(condition: Expression, values: Mapping[Axis, int]) -> bool:
    """Whether a condition on loops that are written out holds."""
    return _truth(condition, {axis: (value, value) for axis, value in values.items()})


def _truth(condition: Expression, known: Mapping[Expression, tuple[int, int]]) -> bool:
    match condition:
        case Binary(operator="and"):
            return _truth(condition.left, known) and _truth(condition.right, known)
        case Binary(operator="<" | "<="):
            left, right = interval_of(condition.left, known), interval_of(condition.right, known)
            strict = condition.operator == "<"
            if left[1] + strict <= right[0]:
                return True
            if left[0] + strict > right[1]:
                return False
    raise CompileError(f"whether {condition} holds is not known when it is emitted")
