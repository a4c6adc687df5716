"""Conditions of a nest when it is emitted: decided, or turned into limits of hardware loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...errors import CompileError
from ...expression.affine import Affine, margin
from ...expression.expression import Axis, Binary, Expression
from ...expression.intervals import Known, conjuncts, interval_of

Values = Mapping[Axis, int]         # of loops that are written out


class Limit(NamedTuple):
    """A condition inside loops of the hardware: it cuts the end or the beginning of one of them, or
    all of them off."""

    room: Affine            # on loops that are written out; where it is negative, nothing is left
    axis: Axis | None       # the loop that is cut, if there is one
    step: int               # the room that an iteration of it adds, or takes if it is negative


def limits_of(conditions: Iterable[Expression], axes: Collection[Axis]) -> list[Limit]:
    """What conditions inside loops over some axes mean for these loops."""
    return [_limit(condition, axes) for condition in conditions]


def _limit(condition: Expression, axes: Collection[Axis]) -> Limit:
    room = margin(condition)
    if room is None:
        raise CompileError(f"{condition}: a condition inside loops of the hardware must compare "
                           f"sums of axes with < or <=")
    inside = [axis for axis in room.terms if axis in axes]
    if not inside:
        return Limit(room, None, 0)
    if len(inside) > 1:
        raise CompileError(f"{condition}: a condition inside loops of the hardware must cut one of "
                           f"them")
    return Limit(room.drop_axes(*inside), inside[0], room.of(inside[0]))


class Clipped(NamedTuple):
    """What limits leave of some loops: where each begins, and its iterations."""

    starts: tuple[int, ...]
    extents: tuple[int, ...]


def clip_loops(axes: Sequence[Axis], limits: Iterable[Limit], values: Values) -> Clipped | None:
    """What limits leave of some loops; None if that is nothing."""
    starts, ends = dict.fromkeys(axes, 0), {axis: axis.extent for axis in axes}
    for limit in limits:
        room = limit.room.value(values)
        if limit.axis is None:
            if room < 0:
                return None
        elif limit.step > 0:
            starts[limit.axis] = max(starts[limit.axis], -(room // limit.step))
        else:
            ends[limit.axis] = min(ends[limit.axis], room // -limit.step + 1)
    extents = tuple([ends[axis] - starts[axis] for axis in axes])
    return Clipped(tuple(starts.values()), extents) if min(extents, default=1) > 0 else None


def decision(condition: Expression) -> Callable[[Values], bool]:
    """Whether a condition holds, as a function of the loops that are written out."""
    parts = [(each, margin(each)) for each in conjuncts(condition)]

    def holds(values: Values) -> bool:
        return all(_truth(each, values) if room is None else room.value(values) >= 0
                   for each, room in parts)

    return holds


def _truth(comparison: Expression, values: Values) -> bool:
    """Whether a comparison holds that is not affine."""
    if isinstance(comparison, Binary) and comparison.operator in ("<", "<="):
        known: Known = {axis: (value, value) for axis, value in values.items()}
        left, right = interval_of(comparison.left, known), interval_of(comparison.right, known)
        strict = comparison.operator == "<"
        if left[1] + strict <= right[0]:
            return True
        if left[0] + strict > right[1]:
            return False
    raise CompileError(f"whether {comparison} holds is not known when it is emitted")
