"""Schedules of lane-wise operators: the template, its knobs, and how to choose them."""

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
from ..divisions import even_sizes, grid
from ..form import Template
from ..kernel import Operator
from .elementwise import Elementwise, flat_forms, form_of
from .lanewise import LanewiseForm

STEP_START = 40             # cycles that a step costs beside its work,
LATE = 20                   # and more where operands stay in use until results are there


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How many tiles are computed at once. What the ALU computes on the way may have buffers of its
    own, or lie where operands were: then more tiles fit, and there are fewer instructions, but
    operands are in use for longer."""

    tiles: int
    doubled: bool = True        # two buffers each, so that engines overlap
    in_place: bool = False


def schedule(form: LanewiseForm, knobs: Knobs) -> Schedule:
    """The template: operands come in, pass through the ALU step by step, and go out. What is
    loaded and stored has two buffers; the ALU alone uses what lies between."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [inside, *(step for step in reversed(form.steps) if form.parameters in step.inputs())]
    parameters = plan.cache_read(form.parameters, Scope.ACC, *readers)
    inside, output = plan.replacement_of(inside), plan.replacement_of(form.output)
    last = plan[output]
    far, _ = last.split(last.leaves[0], knobs.tiles)
    for step, intrinsic in form.steps.items():
        stage = plan[plan.replacement_of(step)]
        stage.scope = Scope.ACC
        stage.compute_at(last, far)
        if knobs.in_place:
            stage.compute_in_place(next(each for each in stage.tensor.inputs()
                                        if each in plan.stages and each.shape == step.shape))
        stage.tensorize(stage.leaves[1], intrinsic.name)
    for tensor, scope in (*((each, Scope.ACC) for each in form.wide), (inside, Scope.OUT)):
        plan[tensor].scope = scope
        plan[tensor].compute_at(last, far)
        if knobs.doubled and far.extent > 1:
            plan[tensor].double_buffer(far)
    plan[inside].tensorize(plan[inside].leaves[1], form.function.name)
    assert plan[parameters].attach is None, "parameters are loaded once"
    return plan


def _copies(form: LanewiseForm, knobs: Knobs) -> Column:
    return np.where(knobs.doubled & (knobs.tiles < form.output.shape[0]), 2, 1)


def largest(form: LanewiseForm) -> Knobs:
    return Knobs(tiles=form.output.shape[0], in_place=True)


def grids(form: LanewiseForm) -> Iterator[Knobs]:
    """Double buffers are given up only if nothing fits with them."""
    for doubled in (True, False):
        yield replace(grid(Knobs, tiles=even_sizes(form.output.shape[0]),
                           in_place=[False, True][:1 + bool(form.steps)]), doubled=doubled)


def fits(form: LanewiseForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room."""
    config, copies = form.config, _copies(form, knobs)
    used = PARAMETER_TILES * form.parameters.shape[0] + knobs.tiles * (
        np.where(knobs.in_place, 0, len(form.steps)) + copies * len(form.wide))
    return ((used <= config.tiles(Buffer.ACC))
            & (knobs.tiles * copies <= config.tiles(Buffer.OUT)))


def estimate(form: LanewiseForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly: those of the slower of ALU and bus, plus what cannot overlap."""
    config, tiles = form.config, form.output.shape[0]
    pieces = -(-tiles // knobs.tiles)
    moved = ((len(form.wide) + 1) * config.tile_bytes(Buffer.OUT) * memory.cycles_per_beat
             / config.bus_bytes)
    passes = (len(form.steps) + 1) * config.vector_cycles
    apart = (moved + passes) * knobs.tiles * (1 if knobs.doubled else pieces)
    start = STEP_START + np.where(knobs.in_place, LATE, 0)
    cycles: Column = max(moved, passes) * tiles + pieces * start + apart
    return cycles


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(description=Elementwise, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE, alone=flat_forms)
