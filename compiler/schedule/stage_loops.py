"""The loops of a stage for the part of its tensor that is computed, and axes in terms of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..expression.affine import margin, opposite
from ..expression.expression import Axis, Expression, Select, binary, minimum
from ..expression.intervals import conjuncts, interval_of
from ..expression.rewrite import substitute
from .loops import Fuse, Split
from .regions import Part, resize_axes
from .stage import Stage


@dataclass
class Frame:
    """The loops of a stage, sized for the part that is computed."""

    stage: Stage
    part: Part
    axes: dict[Axis, Axis]              # of the schedule → of this nest
    values: dict[Axis, Expression]      # of the tensor's axes, in terms of loops
    local: dict[Axis, Expression]       # the same, from the start of the part
    guards: list[Expression]
    body: Expression                    # what is computed, ...
    intrinsic: tuple[Axis, str] | None  # ... and by what, from which loop inwards


def frames_of(stage: Stage, part: Part, body: Expression) -> list[Frame]:
    """The loops that compute a part, one after the other: what a select chooses, where its
    condition holds, then the constant around it on every side. Corners are filled twice."""
    if not stage.border:
        return [frame_of(stage, part, body)]
    assert isinstance(body, Select), "the stage has checked it"
    conditions = list(conjuncts(body.condition))
    inside = _restrict(frame_of(stage, part, body.then), conditions)
    outside = [_restrict(_filling(frame_of(stage, part, body.otherwise)), [opposite(each)])
               for each in conditions]
    return [each for each in (inside, *outside) if each is not None]


def _filling(frame: Frame) -> Frame:
    assert frame.intrinsic is not None, "only intrinsics leave a border to others"
    return replace(frame, intrinsic=(frame.intrinsic[0], frame.stage.border))


def _restrict(frame: Frame, conditions: list[Expression]) -> Frame | None:
    """The loops where conditions hold; None if that is nowhere."""
    guards = []
    for each in conditions:
        guard = substitute(each, frame.values)
        room = margin(guard)
        low, high = (-1, 0) if room is None else room.range()
        if high < 0:
            return None
        guards += [guard] if low < 0 else []
    return replace(frame, guards=[*frame.guards, *guards])


def frame_of(stage: Stage, part: Part, body: Expression) -> Frame:
    axes = resize_axes(stage, part.extents)
    local = _local_values(stage, axes)
    ranges = {axis: interval_of(each, {}) for axis, each in local.items()}
    guards = [binary("<", local[axis], axes[axis].extent) for axis in local
              if ranges[axis][1] >= axes[axis].extent]
    guards += [binary("<=", 0, each) for axis, each in local.items() if ranges[axis][0] < 0]
    values = {}
    for axis, start, extent in zip(stage.tensor.axes, part.start, stage.tensor.shape, strict=True):
        values[axis] = start + local.get(axis, axes[axis])
        low, high = interval_of(values[axis], {})
        if high >= extent:
            guards.append(binary("<", values[axis], extent))
        if low < 0:             # a reader pads what lies before the tensor
            guards.append(binary("<=", 0, values[axis]))
    for axis in stage.tensor.reduce_axes:
        values[axis] = local.get(axis, axes[axis])
    counted = {axis: local.get(axis, axes[axis]) for axis in stage.tensor.axes}
    return Frame(stage, part, axes, values, counted, list(dict.fromkeys(guards)), body,
                 stage.intrinsic)


def _local_values(stage: Stage, axes: dict[Axis, Axis]) -> dict[Axis, Expression]:
    """Axes that were split or fused, counted from the start of the part, in terms of the loops."""
    found: dict[Axis, Expression] = {}

    def value(axis: Axis) -> Expression:
        return found.get(axis, axes[axis])

    for relation in reversed(stage.relations):
        if isinstance(relation, Split) and relation.overlaps:
            factor = axes[relation.inner].extent
            last = axes[relation.parent].extent - factor
            found[relation.parent] = minimum(value(relation.outer) * factor, last) + value(
                relation.inner)
        elif isinstance(relation, Split):
            found[relation.parent] = (value(relation.outer) * axes[relation.inner].extent
                                      + value(relation.inner) - relation.late)
        elif isinstance(relation, Fuse):
            extent = axes[relation.inner].extent
            found[relation.outer] = value(relation.fused) // extent
            found[relation.inner] = value(relation.fused) % extent
    return found
