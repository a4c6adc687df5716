"""The loops of a stage for the part of its tensor that is computed, and axes in terms of them."""

from __future__ import annotations

from dataclasses import dataclass

from ..expression.expression import Axis, Expression, binary
from ..expression.intervals import interval_of
from .loops import Fuse, Split
from .regions import Part, sized
from .stage import Stage


@dataclass
class Frame:
    """The loops of a stage, sized for the part that is computed."""

    stage: Stage
    axes: dict[Axis, Axis]              # of the schedule → of this nest
    values: dict[Axis, Expression]      # of the tensor's axes, in terms of loops
    local: dict[Axis, Expression]       # the same, from the start of the part
    guards: list[Expression]


def frame_of(stage: Stage, part: Part) -> Frame:
    axes = sized(stage, part.extents)
    local = _local_values(stage, axes)
    guards = [binary("<", local[axis], axes[axis].extent) for axis in local
              if interval_of(local[axis], {})[1] >= axes[axis].extent]
    values = {}
    for axis, start, extent in zip(stage.tensor.axes, part.start, stage.tensor.shape, strict=True):
        values[axis] = start + local.get(axis, axes[axis])
        if interval_of(values[axis], {})[1] >= extent:
            guards.append(binary("<", values[axis], extent))
    for axis in stage.tensor.reduce_axes:
        values[axis] = local.get(axis, axes[axis])
    counted = {axis: local.get(axis, axes[axis]) for axis in stage.tensor.axes}
    return Frame(stage, axes, values, counted, list(dict.fromkeys(guards)))


def _local_values(stage: Stage, axes: dict[Axis, Axis]) -> dict[Axis, Expression]:
    """Axes that were split or fused, counted from the start of the part, in terms of the loops."""
    found: dict[Axis, Expression] = {}

    def value(axis: Axis) -> Expression:
        return found.get(axis, axes[axis])

    for relation in reversed(stage.relations):
        if isinstance(relation, Split):
            found[relation.parent] = (value(relation.outer) * axes[relation.inner].extent
                                      + value(relation.inner))
        elif isinstance(relation, Fuse):
            extent = axes[relation.inner].extent
            found[relation.outer] = value(relation.fused) // extent
            found[relation.inner] = value(relation.fused) % extent
    return found
