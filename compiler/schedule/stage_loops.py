"""The loops of a stage for the part of its tensor that is computed, and axes in terms of them."""

from __future__ import annotations

from dataclasses import replace

from ...base.classes.dataclass import dataclass
from ..expression.affine import Affine, affine, margin, opposite
from ..expression.expression import Axis, Expression, Select, binary, minimum
from ..expression.intervals import conjuncts, interval_of
from ..expression.rewrite import substitute
from .loops import Split
from .regions import Part, resize_axes
from .stage import Stage

NOTHING: dict[Expression, tuple[int, int]] = {}         # is known besides


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
    tensor, axes = stage.tensor, resize_axes(stage, part.extents)
    local = _local_values(stage, axes)
    guards, late = [], []
    for axis, each in local.items():
        low, high = _range_of(each)
        if high >= axes[axis].extent:
            guards.append(binary("<", each, axes[axis].extent))
        if low < 0:
            late.append(binary("<=", 0, each))
    guards += late
    values: dict[Axis, Expression] = {}
    counted: dict[Axis, Expression] = {}
    for axis, start, extent in zip(tensor.axes, part.start, tensor.shape, strict=True):
        counted[axis] = own = local[axis] if axis in local else axes[axis]
        values[axis] = value = _sum(start, own) if start.terms or start.constant else own
        low, high = _range_of(value)
        if high >= extent:
            guards.append(binary("<", value, extent))
        if low < 0:             # a reader pads what lies before the tensor
            guards.append(binary("<=", 0, value))
    for axis in tensor.reduce_axes:
        values[axis] = local[axis] if axis in local else axes[axis]
    if len(guards) > 1:
        guards = list(dict.fromkeys(guards))
    return Frame(stage, part, axes, values, counted, guards, body, stage.intrinsic)


def _range_of(index: Expression) -> tuple[int, int]:
    return (0, index.extent - 1) if isinstance(index, Axis) else interval_of(index, NOTHING)


def _sum(start: Affine, index: Expression) -> Expression:
    """The sum of two indices, in its shortest form if it is affine."""
    form = affine(index)
    return start.expression() + index if form is None else (start + form).expression()


def _local_values(stage: Stage, axes: dict[Axis, Axis]) -> dict[Axis, Expression]:
    """Axes that were split or fused, counted from the start of the part, in terms of the loops."""
    found: dict[Axis, Expression] = {}
    for relation in reversed(stage.relations):
        if isinstance(relation, Split):
            factor = axes[relation.inner].extent
            outer, inner = [found[each] if each in found else axes[each]
                            for each in (relation.outer, relation.inner)]
            found[relation.parent] = (
                minimum(outer * factor, axes[relation.parent].extent - factor) + inner
                if relation.overlaps else _joined(outer, factor, inner, relation.late))
        else:
            extent = axes[relation.inner].extent
            fused = found.get(relation.fused, axes[relation.fused])
            found[relation.outer], found[relation.inner] = fused // extent, fused % extent
    return found


def _joined(outer: Expression, factor: int, inner: Expression, late: int) -> Expression:
    """outer × factor + inner - late"""
    one, other = affine(outer), affine(inner)
    if one is None or other is None:
        return outer * factor + inner - late
    return (one.times(factor) + other + Affine(-late)).expression()
