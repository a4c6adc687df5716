"""How tensors are computed for which nothing else was asked: threads share the outermost loop,
vectors lie along the innermost, and what is computed from single elements is computed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...base.processor import Target
from ..expression.expression import BOOL, INDEX, Axis, Element, Reduction, walk
from ..expression.rewrite import with_tensor
from ..expression.tensor import Tensor, topological_order
from ..nest.nest import Scope
from ..schedule.schedule import Schedule
from ..schedule.stage import Stage
from .code.writer import SIZES
from .lane_sums import FOLDS, LANES, along_memory, split_into_lane_sums
from .strides import Strides, strides_of

VECTORS = 2             # that are computed side by side: one waits while the other works
MOST_LANES = 32
FEWEST_LANES = 4
ROWS = (4, 5, 3, 2)     # of vectors that are reduced side by side
WRITTEN_OUT = 8         # terms of a reduction, at most
ALONE = 2               # what a number by itself takes, in vectors
PARTS = 16              # iterations that there should be, for threads to share


def default_schedule(output: Tensor, target: Target) -> Schedule:
    """A schedule of everything that a tensor is computed from."""
    output = _with_lane_sums(output, target)
    schedule = Schedule(output)
    for tensor, stage in schedule.stages.items():
        if tensor is not output and not _has_lane_sums(tensor) and is_worth_inlining(
                tensor, schedule):
            stage.compute_inline()
    computed = [stage for stage in schedule.stages.values() if not stage.inlined]
    inside = {stage: reader for stage in computed
              if (reader := _vector_reader(schedule, stage, target)) is not None}
    for stage in computed:
        if not _has_lane_sums(stage.tensor) and stage not in inside:
            reductions = [each for each, reader in inside.items() if reader is stage]
            if reductions:
                _arrange_with_registers(schedule, stage, target, reductions)
            else:
                arrange(schedule, stage, target)
    for stage in computed:
        if _has_lane_sums(stage.tensor):
            _arrange_lane_sums(schedule, stage)
    return schedule


def _vector_reader(schedule: Schedule, stage: Stage, target: Target) -> Stage | None:
    """The stage that reads each element of a reduction where it computes its own, if vectors of
    both lie along the last axis: registers hold what is reduced."""
    tensor = stage.tensor
    if not isinstance(tensor.body, Reduction) or _has_lane_sums(tensor) or any(
            map(_has_lane_sums, tensor.inputs())) or not target.masks_loads or (
            not tensor.shape or tensor.shape[-1] < FEWEST_LANES):
        return None
    readers = [(each, node.indices) for each in schedule.stages.values()
               for node in _elements(each.tensor) if node.tensor is tensor]
    strides = strides_of(tensor)
    if len(readers) != 1 or (len(tensor.axes) > 1 and strides.join(*tensor.axes[-2:])):
        return None
    (reader, indices), = readers
    alike = indices == reader.tensor.axes and reader.tensor.shape == tensor.shape
    return reader if alike and not reader.inlined and (
        not isinstance(reader.tensor.body, Reduction)) else None


def _has_lane_sums(tensor: Tensor) -> bool:
    return tensor.name.endswith(FOLDS) or (
        isinstance(tensor.body, Reduction) and tensor.name.endswith(LANES))


def is_worth_inlining(tensor: Tensor, schedule: Schedule) -> bool:
    """Whether no element is computed twice if each is computed where it is read."""
    if isinstance(tensor.body, Reduction):
        return False
    readers = {(reader, node.indices) for reader in schedule.stages for node in _elements(reader)
               if node.tensor is tensor}
    if len(readers) != 1:
        return False
    (reader, _), = readers
    return iterations(reader) <= prod(tensor.shape)


def iterations(tensor: Tensor) -> int:
    """How often the body of a tensor is computed."""
    return prod(axis.extent for axis in (*tensor.axes, *tensor.reduce_axes))


def _elements(tensor: Tensor) -> list[Element]:
    return [node for node in walk(tensor.body) if isinstance(node, Element)] if (
        tensor.body is not None) else []


def _with_lane_sums(output: Tensor, target: Target) -> Tensor:
    """The same tensor with partial sums wherever sums lie along memory."""
    for tensor in topological_order(output):
        if target.vector_bytes and along_memory(tensor) is not None and not any(
                map(_has_lane_sums, (tensor, *tensor.inputs()))):
            sums = split_into_lane_sums(tensor, lanes_of(tensor, target))
            output = sums if tensor is output else _substitute(output, tensor, sums)
            return _with_lane_sums(output, target)
    return output


def _substitute(output: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """A tensor computed from another one than before."""
    done: dict[Tensor, Tensor] = {old: new}
    for tensor in topological_order(output):
        if tensor not in done and tensor.body is not None:
            changed = tensor
            for each in tensor.inputs():
                if done.get(each, each) is not each:
                    changed = with_tensor(changed, each, done[each])
            done[tensor] = changed
    return done[output]


def lanes_of(tensor: Tensor, target: Target) -> int:
    """Numbers that are computed at once: some vectors of the widest type that occurs."""
    assert tensor.body is not None
    sizes = [SIZES[node.dtype] for node in walk(tensor.body) if node.dtype not in (INDEX, BOOL)]
    lanes = target.lanes(max(sizes, default=1))
    return 1 if lanes == 1 else min(lanes * VECTORS, MOST_LANES)


def _lanes_of_stage(schedule: Schedule, stage: Stage, target: Target) -> int:
    """The same of a stage and of what is computed on its way."""
    inside = [stage.tensor]
    for tensor in inside:
        inside += [each for each in tensor.inputs() if each not in inside
                   and each in schedule.stages and schedule[each].inlined]
    return min(lanes_of(each, target) for each in inside)


def _fitting(most: int, extent: int) -> int:
    """So many lanes at most that few of the numbers along a loop are left to be computed one by
    one. Each vector takes time besides that of its registers, of which the widest has some."""
    if extent <= most:
        return extent
    return min((lanes for lanes in (most, most // 2, most // 4) if lanes >= FEWEST_LANES),
               key=lambda lanes: extent // lanes * (lanes * VECTORS // most + 1)
               + extent % lanes * ALONE, default=most)


def arrange(schedule: Schedule, stage: Stage, target: Target) -> None:
    """Loops for a tensor that is computed as a whole."""
    tensor = stage.tensor
    if any(_has_lane_sums(each) for each in tensor.inputs()):
        _arrange_totals(stage)
        return
    loops = _fuse_contiguous(stage, strides_of(
        replace(tensor, body=schedule.inlined_body(tensor))))
    if not loops:
        return
    most, extent = _lanes_of_stage(schedule, stage, target), loops[-1].extent
    overlaps = not isinstance(tensor.body, Reduction) and extent >= FEWEST_LANES
    lanes = min(most, 1 << extent.bit_length() - 1) if overlaps else _fitting(most, extent)
    # LLVM for AArch64 cannot cut vectors of three numbers of 64 bits to 8 bits.
    if lanes > 1 and lanes != 3:
        split = stage.split_overlapping if overlaps and extent % lanes else stage.split
        loops[-1], lane = split(loops[-1], lanes)
        stage.reorder(*(axis for axis in stage.leaves if axis is not lane), lane)
        stage.vectorize(lane)
    first = loops[0]
    for axis in loops[1:]:
        if first.extent < PARTS and stage.leaves[1:2] == [axis]:
            first = stage.fuse(first, axis)
    stage.parallel(first)


def _arrange_with_registers(schedule: Schedule, stage: Stage, target: Target,
                            reductions: Sequence[Stage]) -> None:
    """Loops for a tensor, some vectors of it at a time, and for the reductions that it reads, which
    registers hold."""
    most = min(_lanes_of_stage(schedule, each, target) for each in (stage, *reductions))
    *others, last = stage.tensor.axes
    extent = last.extent
    dense = all(strides_of(each.tensor).read(each.tensor.axes[-1]) <= {0, 1} for each in reductions)
    lanes = min(most, 1 << extent.bit_length() - 1) if dense else _fitting(most, extent)
    vectors, lane = stage.split(last, lanes)
    stage.vectorize(lane)
    rows = next((each for each in ROWS if others and others[-1].extent % each == 0), 1)
    if rows > 1:                # the processor adds to one while it waits for another
        others[-1], row = stage.split(others[-1], rows)
        stage.reorder(*others, vectors, row, lane)
        stage.unroll(row)
    for axis in others:
        stage.parallel(axis)
    for each in reductions:
        _arrange_in_registers(each, stage, vectors, lanes)


def _arrange_in_registers(stage: Stage, reader: Stage, loop: Axis, lanes: int) -> None:
    *others, last = stage.tensor.axes
    stage.compute_at(reader, loop)
    stage.scope = Scope.LOCAL
    reduced = [axis for axis in stage.leaves if axis.reduces]
    vectors, lane = stage.split(last, lanes)
    stage.reorder(*others[:-1], vectors, *reduced, *others[-1:], lane)
    stage.vectorize(lane)
    for axis in others[-1:]:
        stage.unroll(axis)
    written = 1
    for axis in reversed(reduced):
        written *= axis.extent
        if written > WRITTEN_OUT:
            break
        stage.unroll(axis)


def _arrange_totals(stage: Stage) -> None:
    """Sums of partial sums: the first loop that has iterations to share is outermost."""
    space = [axis for axis in stage.leaves if not axis.reduces]
    for axis in stage.leaves[len(space):]:
        stage.unroll(axis)
    first = next((axis for axis in space if axis.extent > 1), None)
    if first is not None:
        stage.reorder(first, *(axis for axis in space if axis is not first))
        stage.parallel(first)


def _fuse_contiguous(stage: Stage, strides: Strides) -> list[Axis]:
    """The space loops of a stage, those that are one in memory as one."""
    loops: list[tuple[Axis, Axis]] = []             # a loop, and its last axis
    for axis in stage.tensor.axes:
        if loops and strides.join(loops[-1][1], axis):
            loops[-1] = stage.fuse(loops[-1][0], axis), axis
        else:
            loops.append((axis, axis))
    return [loop for loop, _ in loops]


def _arrange_lane_sums(schedule: Schedule, stage: Stage) -> None:
    """Partial sums are registers of whoever adds them up."""
    reader = stage
    while _has_lane_sums(reader.tensor):
        reader = next(each for each in schedule.stages.values()
                      if each.tensor.body is not None and reader.tensor in each.tensor.inputs())
    *_, lane = stage.tensor.axes
    stage.reorder(*(axis for axis in stage.leaves if axis is not lane), lane)
    stage.vectorize(lane)
    stage.scope = Scope.LOCAL
    space = [axis for axis in reader.leaves if not axis.reduces]
    if space:
        stage.compute_at(reader, space[-1])
