"""From a schedule to a loop nest: loops, buffers, and the point where each tensor is computed."""

from __future__ import annotations

from dataclasses import replace

from ..errors import CompileError
from ..expression.elements import axes_in, elements_in
from ..expression.expression import (
    Axis,
    Element,
    Expression,
    Reduction,
    both,
    walk,
)
from ..expression.rewrite import substitute
from ..expression.tensor import Tensor, topological_order
from ..nest.nest import (
    Allocate,
    Buffer,
    Loop,
    LoopKind,
    Marked,
    Nest,
    Statement,
    When,
    make_sequence,
)
from .assignments import assign_element, assign_first_value
from .lowering_state import Converter, Lowering
from .marks import convert, convert_perfect, convert_stage, convert_start, wrap_in_loops
from .plain_copies import copy_part, is_load, source_of
from .regions import Part, boxes_read, covering, extend_along, whole_tensor
from .schedule import Schedule
from .sliding import new_part, ring_copies, slide_of
from .stage import Stage
from .stage_loops import Frame, frame_of, frames_of


def lower(schedule: Schedule, converter: Converter | None = None) -> Nest:
    """The nest that computes a schedule's outputs as its stages say. Marked loops stay as they are,
    or become what a converter makes of them: that takes less time than to look for them later."""
    state = Lowering(converter)
    stages = [stage for stage in schedule.stages.values() if not stage.inlined]
    for stage in stages:
        stage.check_mark()
        state.stages[stage.tensor] = stage
        state.bodies[stage.tensor] = schedule.inlined_body(stage.tensor)
        state.read[stage.tensor] = _tensors(state.bodies[stage.tensor])
    state.above = {stage.over: stage for stage in stages if stage.over is not None}
    for stage in state.above.values():
        _check_in_place(state, stage)
    inputs = []
    for tensor in topological_order(*schedule.outputs):
        if tensor.body is None:
            state.buffers[tensor] = Buffer(tensor.name, tensor.shape, tensor.dtype)
            state.parts[tensor] = whole_tensor(tensor)
            inputs.append(state.buffers[tensor])
    roots = []
    for stage in stages:
        if stage.attach is None:
            roots.append(stage)
        else:
            _check_readers(state, stage)
            state.inside.setdefault(stage.attach, []).append(stage)
    return _roots(schedule, state, roots, inputs)


def _check_readers(state: Lowering, stage: Stage) -> None:
    """Refuse a stage that is computed where not all of its readers can see it."""
    assert stage.attach is not None
    around, axis = stage.attach
    readers = [state.stages[tensor] for tensor, read in state.read.items()
               if stage.tensor in read]
    strangers = [each for each in readers if each is not around and not _is_inside(each, around)]
    if strangers or not readers:
        why = f"but {strangers[0]} reads it too" if strangers else "but no stage reads it"
        raise CompileError(f"{stage} is computed in loop {axis} of {around}, {why}; it must be a "
                           f"loop around all its readers")


def _check_in_place(state: Lowering, stage: Stage) -> None:
    """Refuse to write over a tensor that somebody else reads, or that lies elsewhere."""
    assert stage.over is not None
    source, body = state.stages.get(stage.over), state.bodies[stage.tensor]
    if source is None or (source.attach, source.scope, stage.over.shape, stage.over.dtype) != (
            stage.attach, stage.scope, stage.tensor.shape, stage.tensor.dtype):
        raise CompileError(f"{stage} cannot be computed in place of {stage.over.name}: both must "
                           f"be computed in the same loop, in the same scope, with the same shape "
                           f"and type")
    others = [each.name for each, read in state.read.items()
              if each is not stage.tensor and stage.over in read]
    elements = [each for each in walk(body) if isinstance(each, Element)
                and each.tensor is stage.over]
    if others or isinstance(body, Reduction) or any(
            each.indices != tuple(stage.tensor.axes) for each in elements):
        why = f"{others[0]} reads it too" if others else "it is not read element by element"
        raise CompileError(f"{stage} cannot be computed in place of {stage.over.name}: {why}")


def _roots(schedule: Schedule, state: Lowering, roots: list[Stage],
           inputs: list[Buffer]) -> Nest:
    """The nest of stages that are computed one after the other, each as a whole."""
    for stage in roots:
        _realize(state, stage, whole_tensor(stage.tensor))
    body = make_sequence(*(_produce(state, stage) for stage in roots))
    outputs = [state.buffers[tensor] for tensor in schedule.outputs]
    for stage in reversed(roots):
        if state.buffers[stage.tensor] not in outputs:
            body = Allocate(state.buffers[stage.tensor], body)
    return Nest(tuple(inputs), tuple(outputs), body)


def _realize(state: Lowering, stage: Stage, part: Part) -> Buffer:
    tensor = stage.tensor
    if stage.uncut:
        part = extend_along(tensor, part, stage.uncut)
    state.parts[tensor] = part
    above = state.above.get(tensor)
    if above is not None:                   # whose buffer is there already: readers come first
        assert state.parts[above.tensor].extents == part.extents, "it reads element by element"
        state.buffers[tensor] = state.buffers[above.tensor]
        return state.buffers[tensor]
    shape = list(part.extents)
    if tensor in state.slides:              # copies overlap in a ring of whole steps
        slide = state.slides[tensor]
        shape[slide.dimension] = slide.first + ring_copies(stage, slide) * slide.step
    state.buffers[tensor] = Buffer(tensor.name, tuple(shape), tensor.dtype, stage.scope,
                                   stage.tile_rows)
    return state.buffers[tensor]


def _produce(state: Lowering, stage: Stage) -> Statement:
    """The loops that compute the part of a stage's tensor that is needed."""
    part = state.parts[stage.tensor]
    if stage.tensor in state.slides:
        part = new_part(part, state.slides[stage.tensor])
    load = _load(state, stage, part) if state.converter is not None and is_load(stage) else None
    if load is not None:
        return load
    known = state.frames.pop(stage.tensor, None)
    frames = [known] if known is not None and known.part is part and not stage.border else (
        frames_of(stage, part, state.bodies[stage.tensor]))
    leaves = stage.leaves
    first = next((place for place, axis in enumerate(leaves) if axis.reduces), len(leaves))
    return make_sequence(*(_loops(state, frame, 0, first) for frame in frames))


def _load(state: Lowering, stage: Stage, part: Part) -> Statement | None:
    """The transfer that a stage is, without its loops; None if it may be none."""
    tensor = stage.tensor
    source = source_of(tensor, state.bodies[tensor], stage.scope)
    if source is None or tensor in state.slides or any(
            (stage, axis) in state.inside for axis in stage.leaves):
        return None
    return copy_part(source, part, state.buffers[tensor], state.buffers[source.tensor])


def _mark(state: Lowering, frame: Frame, place: int, first_reduction: int) -> Statement:
    """The loops from a marked one inwards, or what they become."""
    assert frame.intrinsic is not None
    stage, leaves, found = frame.stage, frame.stage.leaves[place:], None
    begins_inside = isinstance(frame.body, Reduction) and first_reduction > place
    if not begins_inside and not any((stage, axis) in state.inside for axis in leaves):
        found = convert_stage(state, frame, [frame.axes[each] for each in leaves])
        if found is not None:
            return found
        kinds = {frame.axes[axis]: kind for axis, kind in stage.kinds.items()}
        found = convert_perfect(state, frame.intrinsic[1], [frame.axes[each] for each in leaves],
                                frame.guards, assign_element(state, frame), kinds)
    return found or convert(state, Marked(
        frame.intrinsic[1], _plain_loop(state, frame, place, first_reduction)))


def _loops(state: Lowering, frame: Frame, place: int, first_reduction: int) -> Statement:
    """The loops from one place inwards, with everything that is computed inside them."""
    if place == first_reduction and isinstance(frame.body, Reduction):
        start = _start_sums(state, frame, place, frame.body)
        return make_sequence(start, _loop(state, frame, place, first_reduction))
    return _loop(state, frame, place, first_reduction)


def _loop(state: Lowering, frame: Frame, place: int, first_reduction: int) -> Statement:
    stage = frame.stage
    if place == len(stage.leaves):
        return _innermost(state, frame)
    axis = stage.leaves[place]
    if frame.intrinsic is not None and axis is frame.intrinsic[0]:
        tile = {frame.axes[each] for each in stage.leaves[place:]}
        outside = [guard for guard in frame.guards if not _has_axis(guard, tile)]
        inner = frame if not outside else replace(
            frame, guards=[each for each in frame.guards if each not in outside])
        marked = _mark(state, inner, place, first_reduction)
        return When(both(*outside), marked) if outside else marked
    return _plain_loop(state, frame, place, first_reduction)


def _plain_loop(state: Lowering, frame: Frame, place: int, first_reduction: int) -> Statement:
    """A loop, around what is computed inside it and the loops inside it."""
    stage = frame.stage
    axis = stage.leaves[place]
    attached = state.inside.get((stage, axis))
    if attached is None:
        return Loop(frame.axes[axis], _loops(state, frame, place + 1, first_reduction),
                    stage.kinds.get(axis, LoopKind.SERIAL))
    within = {frame.axes[each] for each in stage.leaves[place + 1:]}
    known: dict[Tensor, Part] = {}
    for each in reversed(attached):         # readers first: they determine what is needed of others
        part = _required_part(state, frame, each.tensor, within, known)
        slide = slide_of(each, part, frame.axes[axis])
        if slide is not None:
            state.slides[each.tensor] = slide
            known.clear()                   # less is needed of what it reads
        _realize(state, each, part)
    inner = _loops(state, frame, place + 1, first_reduction)
    statement = make_sequence(*(_produce(state, each) for each in attached), inner)
    for each in reversed(attached):
        if each.over is None:               # otherwise the buffer is that of the source
            found = state.slides.get(each.tensor)
            copies = each.copies if found is None else ring_copies(each, found)
            statement = Allocate(state.buffers[each.tensor], statement, copies, each.ahead, found,
                                 each.period)
    return Loop(frame.axes[axis], statement, stage.kinds.get(axis, LoopKind.SERIAL))


def _required_part(state: Lowering, frame: Frame, tensor: Tensor, within: set[Axis],
                   known: dict[Tensor, Part]) -> Part:
    """The part of a tensor that the body of a loop needs, itself or through stages that are
    computed inside it; `within` are the loops inside, `known` the parts that were asked for."""
    if tensor in known:
        return known[tensor]
    boxes = boxes_read(tensor, state.bodies[frame.stage.tensor], frame.values, within)
    for reader, body in state.bodies.items():
        stage = state.stages[reader]
        if reader is not tensor and tensor in state.read[reader] and (
                _is_inside(stage, frame.stage)):
            part = _required_part(state, frame, reader, within, known)
            if reader in state.slides:
                part = new_part(part, state.slides[reader])
            inner = state.frames.get(reader)
            if inner is None or inner.part is not part:
                inner = state.frames[reader] = frame_of(stage, part, body)
            boxes += boxes_read(tensor, body, inner.values, set(inner.axes.values()))
    if not boxes:
        raise CompileError(f"{tensor.name} is computed in a loop of {frame.stage}, which does not "
                           f"read it")
    known[tensor] = covering(tensor, boxes)
    return known[tensor]


def _is_inside(stage: Stage, outer: Stage) -> bool:
    """Whether a stage is computed in a loop of another, or of one that is."""
    while stage.attach is not None:
        stage = stage.attach[0]
        if stage is outer:
            return True
    return False


def _tensors(body: Expression) -> set[Tensor]:
    return {element.tensor for element in elements_in(body)}


def _start_sums(state: Lowering, frame: Frame, place: int, body: Reduction) -> Statement:
    """Give every element that the remaining loops compute the value its reduction starts from."""
    renamed = {frame.axes[axis]: Axis(frame.axes[axis].name, frame.axes[axis].extent)
               for axis in frame.stage.leaves[place:] if not axis.reduces}
    guards = [substitute(guard, dict(renamed)) for guard in frame.guards
              if not _reduces(guard)]
    kinds = {renamed[frame.axes[axis]]: kind for axis, kind in frame.stage.kinds.items()
             if frame.axes[axis] in renamed}
    if frame.intrinsic is None:
        statement: Statement = assign_first_value(state, frame, renamed, body)
        return wrap_in_loops(When(both(*guards), statement) if guards else statement,
                             list(renamed.values()), kinds)
    marked = frame.stage.leaves.index(frame.intrinsic[0])
    tile = {frame.axes[axis] for axis in frame.stage.leaves[marked:]}
    within = [new for old, new in renamed.items() if old in tile]
    outside = [new for old, new in renamed.items() if old not in tile]
    near = [guard for guard in guards if _has_axis(guard, set(within))]
    far = [guard for guard in guards if guard not in near]
    mark = convert_start(state, frame, within, near, renamed, body)
    return wrap_in_loops(When(both(*far), mark) if far else mark, outside, kinds)


def _has_axis(expression: Expression, axes: set[Axis]) -> bool:
    return not axes.isdisjoint(axes_in(expression))


def _reduces(expression: Expression) -> bool:
    return any(axis.reduces for axis in axes_in(expression))


def _innermost(state: Lowering, frame: Frame) -> Statement:
    statement = assign_element(state, frame)
    return When(both(*frame.guards), statement) if frame.guards else statement


