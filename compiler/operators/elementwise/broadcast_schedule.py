"""Schedules of operations with one number for each channel: the template, its knobs, and how to
choose them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...nest.nest import Scope
from ...schedule.schedule import Schedule
from ..cost_model import Column, Mask
from ..divisions import even_sizes, grid, some_sizes
from ..form import Template
from ..kernel import Operator
from .broadcast import Broadcast, BroadcastForm, form_of

STEP_START = 40             # cycles that a step costs beside its work


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: channel blocks, rows and columns."""

    blocks: int
    rows: int
    columns: int
    doubled: bool = True        # two buffers each, so that engines overlap


def schedule(form: BroadcastForm, knobs: Knobs) -> Schedule:
    """The template: a box of the image comes in, passes through the ALU step by step, and goes out.
    What belongs to channels is there before."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [inside, *(step for step in reversed(form.steps) if form.parameters in step.inputs())]
    parameters = plan.cache_read(form.parameters, Scope.ACC, *readers)
    inside, output = plan.replacement_of(inside), plan.replacement_of(form.output)
    last = plan[output]
    n, c, y, x, b, j = last.leaves
    c_far, c_near = last.split(c, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(n, c_far, y_far, x_far, c_near, y_near, x_near, b, j)
    whole = form.left.shape
    for step, intrinsic in form.steps.items():
        stage = plan[plan.replacement_of(step)]
        stage.scope = Scope.ACC
        stage.compute_at(last, x_far if step.shape == whole else c_far)
        stage.tensorize(stage.leaves[4], intrinsic.name)
    for tensor, scope, at in ((form.right, Scope.ACC, c_far), (form.left, Scope.ACC, x_far),
                              (inside, Scope.OUT, x_far)):
        plan[tensor].scope = scope
        plan[tensor].compute_at(last, at)
        if knobs.doubled and boxes(form, knobs) > 1:
            plan[tensor].double_buffer(at)
    plan[inside].tensorize(plan[inside].leaves[4], form.function.name)
    assert plan[parameters].attach is None, "parameters are loaded once"
    return plan


def boxes(form: BroadcastForm, knobs: Knobs) -> Column:
    """How many boxes the image is taken in."""
    images, blocks, rows, columns = form.output.shape[:4]
    return images * -(-blocks // knobs.blocks) * -(-rows // knobs.rows) * -(
        -columns // knobs.columns)


def _copies(form: BroadcastForm, knobs: Knobs) -> Column:
    return np.where(knobs.doubled & (boxes(form, knobs) > 1), 2, 1)


def largest(form: BroadcastForm) -> Knobs:
    _, blocks, rows, columns = form.output.shape[:4]
    return Knobs(blocks=blocks, rows=rows, columns=columns)


def grids(form: BroadcastForm) -> Iterator[Knobs]:
    """Double buffers are given up only if nothing fits with them, and so are whole rows."""
    blocks, rows = (some_sizes(extent) for extent in form.output.shape[1:3])
    width = form.output.shape[3]
    for doubled in (True, False):
        yield replace(grid(Knobs, blocks=blocks, rows=rows, columns=[width]), doubled=doubled)
    yield replace(grid(Knobs, blocks=[1], rows=[1], columns=even_sizes(width)), doubled=False)


def fits(form: BroadcastForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room."""
    config, copies = form.config, _copies(form, knobs)
    box = knobs.blocks * knobs.rows * knobs.columns
    of_image, of_channels = (len(form.steps_of(each.shape)) for each in (form.left, form.right))
    used = (PARAMETER_TILES * form.parameters.shape[0] + box * (of_image + copies)
            + knobs.blocks * (of_channels + copies))
    return (used <= config.tiles(Buffer.ACC)) & (box * copies <= config.tiles(Buffer.OUT))


def estimate(form: BroadcastForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly: those of the slower of ALU and bus, plus what cannot overlap."""
    config = form.config
    images, blocks, rows, columns = form.output.shape[:4]
    tiles, count = images * blocks * rows * columns, boxes(form, knobs)
    box = knobs.blocks * knobs.rows * knobs.columns
    moved = 2 * config.tile_bytes(Buffer.OUT) * memory.cycles_per_beat / config.bus_bytes
    passes = (len(form.steps_of(form.left.shape)) + 1) * config.vector_cycles
    apart = (moved + passes) * box * (1 if knobs.doubled else count)
    cycles: Column = np.maximum(moved, passes) * tiles + count * STEP_START + apart
    return cycles


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(description=Broadcast, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE)
