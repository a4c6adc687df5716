"""Schedules of pools: the template, its knobs, and how to choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from math import prod
from operator import sub
from typing import TypeVar

import numpy as np

from ....isa.config import Config
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...expression.expression import Axis
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage
from ..cost_model import ROUND_TRIP, Column, Mask, load_cycles, store_cycles
from ..divisions import even_sizes, fair_sizes, grid, some_sizes
from ..form import Template, blocks_of, runs_of
from ..kernel import Operator
from . import average, average_schedule
from .average import AverageForm
from .average_schedule import factor_tiles, load_factors
from .knobs import Knobs
from .pool import LATENCY, Pool, PoolForm, form_of

Result = TypeVar("Result")
BUFFERS = 2                 # of boxes, used in turn
STEP_START = 10             # cycles that a step costs beside its work, and each box, measured
GRIDS = 4                   # sizes of windows that are compared: whole ones, and parts
CONTENTION = 0.1            # part of the ALU's cycles that loads into its banks wait for it


def schedule(form: PoolForm, knobs: Knobs) -> Schedule:
    """The template: a box of the input comes in, is combined shift by shift, and goes out. A
    window that does not fit is combined part by part."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [step for step in reversed(form.steps) if form.parameters in step.inputs()]
    parameters = plan.cache_read(form.parameters, Scope.ACC, inside, *readers)
    inside, output = plan.replacement_of(inside), plan.replacement_of(form.output)

    last = plan[output]
    n, c, y, x, b, j = last.leaves
    c_far, c_near = last.split(c, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    step = y_far if is_row_by_row(form, knobs) else c_far
    outer = (n, c_far, x_far, y_far) if step is y_far else (y_far, x_far, n, c_far)
    last.reorder(*outer, c_near, y_near, x_near, b, j)
    if max(form.parameters.shape[:2]) > 1:
        plan[parameters].compute_at(last, x_far)
        if copies(form, knobs) > 1:
            plan[parameters].double_buffer(x_far)
    plan[inside].compute_at(last, step)
    plan[inside].tensorize(plan[inside].leaves[4], form.function.name)
    plan[form.sums].compute_at(last, step)     # one buffer: the ALU alone uses it
    for each, intrinsic in form.steps.items():
        stage = plan[plan.replacement_of(each)]
        stage.scope = Scope.ACC
        stage.compute_at(last, step)
        stage.tensorize(stage.leaves[4], intrinsic.name)
        if form.factors in each.inputs():
            stage.compute_in_place(form.sums)
    load_factors(plan, form.factors, (last, x_far))

    stage, axis = _schedule_combination(plan, form, knobs)
    padded = plan[form.padded]
    padded.scope = Scope.ACC
    ahead = (copies(form, knobs) > 1 and knobs.window == form.spec.kernel
             and max(map(sub, form.spec.kernel, form.spec.stride)) > 1)    # many instructions
    padded.compute_at(*((last, step) if ahead else (stage, axis)))
    if copies(form, knobs) > 1:
        padded.double_buffer(step if ahead else axis)
        plan[inside].double_buffer(step)
    if ahead:       # the ALU's queue holds fewer instructions than a box takes
        padded.compute_ahead()
    return plan


def _schedule_combination(plan: Schedule, form: PoolForm, knobs: Knobs) -> tuple[Stage, Axis]:
    """Schedule the combination of elements. Returns the loop that needs one box of the input."""
    down, across = (form.combination(axis, clipped=bool(is_clipped(form, knobs))).name
                    for axis in range(2))
    stage = plan[form.sums]
    stage.scope = Scope.ACC
    n, c, y, x, b, j, *window = stage.leaves
    sizes = knobs.window if form.columns is None else knobs.window[1:]
    parts = [stage.split(axis, size) for axis, size in zip(window, sizes, strict=True)]
    # Shifts outside, so that the ALU need not wait for what it has just computed.
    stage.reorder(*(far for far, _ in parts), *(near for _, near in parts), n, y, x, c, b, j)
    stage.tensorize(b, down if form.spec.kernel[1] == 1 else across)
    if form.columns is None:
        return stage, parts[-1][0]
    column = plan[form.columns]
    column.scope = Scope.ACC
    column.compute_at(stage, parts[-1][0])
    n, c, y, x, b, j, ky = column.leaves
    far, near = column.split(ky, knobs.window[0])
    column.reorder(far, near, n, y, x, c, b, j)
    column.tensorize(b, down)
    return column, far


def boxes(form: PoolForm, knobs: Knobs) -> Column:
    """How many boxes of the input are loaded."""
    images, blocks, rows, columns = form.output.shape[:4]
    count: Column = images
    for extent, size in ((blocks, knobs.blocks), (rows, knobs.rows), (columns, knobs.columns),
                         *zip(form.spec.kernel, knobs.window, strict=True)):
        count = count * -(-extent // size)
    return count


def copies(form: PoolForm, knobs: Knobs) -> Column:
    """How many buffers take turns: two if another box follows."""
    return np.where(knobs.doubled & (boxes(form, knobs) > 1), BUFFERS, 1)


def box(form: PoolForm, knobs: Knobs) -> tuple[Column, Column]:
    """Rows and columns of one box."""
    spec = form.spec
    height, width = (np.minimum((outputs - 1) * spec.stride[axis]
                                + (knobs.window[axis] - 1) * spec.dilation[axis] + 1,
                                spec.padded[axis])
                     for axis, outputs in enumerate((knobs.rows, knobs.columns)))
    return height, width


def _loaded_box(form: PoolForm, knobs: Knobs) -> tuple[Column, Column]:
    """Of these, what is loaded in the mean: the border is filled in."""
    spec = form.spec
    height, width = (
        spec.loaded(axis, blocks_of(extent, size), reach=(window - 1) * dilation + 1)
        for axis, extent, size, window, dilation in zip(
            range(2), spec.out_shape, (knobs.rows, knobs.columns), knobs.window, spec.dilation,
            strict=True))
    return height, width


def accumulators(form: PoolForm, knobs: Knobs) -> tuple[Column, Column]:
    """Accumulator tiles: for the results and their parameters, and for a box of input."""
    height, width = box(form, knobs)
    positions: Column = prod(size if extent > 1 else 1 for size, extent in zip(
        (knobs.rows, knobs.columns), form.parameters.shape[:2], strict=True))
    steps = len(form.steps) - (form.factors is not None)        # that is done in place
    own = knobs.blocks * knobs.rows * (knobs.columns * (1 + steps)
                                       + (width if form.columns else 0))
    own = own + factor_tiles(form.factors, knobs)
    if max(form.parameters.shape[:2]) > 1:
        positions = positions * copies(form, knobs)
    sets = form.parameters.shape[2]
    return own + sets * PARAMETER_TILES * positions, knobs.blocks * height * width


def largest(form: PoolForm) -> Knobs:
    _, blocks, rows, columns = form.output.shape[:4]
    return Knobs(blocks=blocks, rows=rows, columns=columns, window=form.spec.kernel)


def grids(form: PoolForm) -> Iterator[Knobs]:
    """Whole windows, then parts of them, which need less room. Double buffers are given up only if
    nothing fits otherwise."""
    spec = form.spec
    windows = [*((size, spec.kernel[1]) for size in even_sizes(spec.kernel[0])),
               *((1, size) for size in even_sizes(spec.kernel[1])[1:])]
    blocks, rows = (some_sizes(extent) for extent in form.output.shape[1:3])
    columns = fair_sizes(form.output.shape[3])
    for doubled, window in product((True, False), windows):
        # Of equals, wide boxes come first: a reader that goes row by row can start earlier.
        yield replace(grid(Knobs, blocks=blocks, columns=columns, rows=rows), window=window,
                      doubled=doubled)


def fits(form: PoolForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room."""
    config = form.config
    number = copies(form, knobs)
    own, loaded = accumulators(form, knobs)
    results = knobs.blocks * knobs.rows * knobs.columns
    return ((own + number * loaded <= config.tiles(Buffer.ACC))
            & (number * results <= config.tiles(Buffer.OUT)))


def estimate(form: PoolForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly: those of the slower of ALU and bus, plus what cannot overlap."""
    config, spec = form.config, form.spec
    count, images = boxes(form, knobs), form.output.shape[0]
    tile = config.tile_bytes(Buffer.OUT)
    results = knobs.blocks * knobs.rows * knobs.columns
    rate = config.bus_bytes / memory.cycles_per_beat
    height, width = _loaded_box(form, knobs)
    is_whole = (knobs.columns >= spec.out_shape[1]) & (spec.border(1) == 0)
    runs, out_runs = (
        runs_of(form.ways(name), knobs.blocks, form.output.shape[1], few, tiles)
        for name, few, tiles in (("data", np.where(is_whole, 1, height), height * width),
                                 ("output", np.where(is_whole, 1, knobs.rows),
                                  knobs.rows * knobs.columns)))
    load = load_cycles(np.maximum(runs, knobs.blocks * height * width * tile / rate), runs, config,
                       memory)
    stored = np.maximum(out_runs, results * tile / rate)
    steps = count / prod(blocks_of(*each) for each in zip(spec.kernel, knobs.window, strict=True))
    outputs = images * form.output.shape[1] * spec.out_shape[0] * spec.out_shape[1]
    passes = alu_cycles(form, knobs)
    alu = outputs * passes
    bus = np.maximum(
        loaded_boxes(form, knobs) * load + steps * stored + _parameter_bytes(form) / rate,
        steps * store_cycles(stored, out_runs, config, memory))
    latency = 2 * memory.read_latency + memory.write_latency + 3 * ROUND_TRIP
    ends = load + results * (passes + tile / rate) + latency
    crowded = np.where(_has_banks(form, knobs), 0, 1)
    cycles: Column = np.maximum(alu, bus) + (steps + count) * STEP_START + (
        ends + crowded * CONTENTION * np.minimum(alu, bus) if knobs.doubled
        else np.minimum(alu, bus))
    return cycles


def is_row_by_row(form: PoolForm, knobs: Knobs) -> Mask:
    """Whether rows of the input come one by one, from top to bottom: those that windows share are
    still in their buffers when the next row of results is computed. Factors and parameters of
    positions are loaded once for all channels instead."""
    spec = form.spec
    if (knobs.window[0] > 1 or knobs.window[1] < spec.kernel[1] or spec.dilation[0] > 1
            or spec.kernel[0] - spec.stride[0] > BUFFERS or form.factors is not None
            or max(form.parameters.shape[:2]) > 1):
        return False
    return (knobs.rows == 1) & (copies(form, knobs) == BUFFERS)


def loaded_boxes(form: PoolForm, knobs: Knobs) -> Column:
    """How many boxes are loaded."""
    count, rows = boxes(form, knobs), form.output.shape[2]
    shared = max(0, form.spec.kernel[0] - form.spec.stride[0])
    again = count / (rows * form.spec.kernel[0]) * shared * (rows - 1)
    return np.where(is_row_by_row(form, knobs), count - again, count)


def _parameter_bytes(form: PoolForm) -> int:
    """Bytes of the parameters and factors of all positions, each loaded once."""
    rows, columns, sets = form.parameters.shape[:3]
    factors = 0 if form.factors is None else prod(form.factors.shape)
    return rows * columns * sets * PARAMETER_TILES * form.config.tile_bytes(
        Buffer.ACC) + factors


def alu_cycles(form: PoolForm, knobs: Knobs) -> Column:
    """Cycles of the ALU for one tile of the output."""
    return _passes(form, knobs, shared=shared_part(form, knobs))


def _passes(form: PoolForm, knobs: Knobs, *, shared: Column) -> Column:
    """Cycles of the ALU for one tile of the output. A vector takes one cycle more where both
    operands share a bank; the first of a window is copied."""
    height, width = form.spec.kernel
    results, vector = knobs.blocks * knobs.rows * knobs.columns, form.config.vector_cycles
    late = np.maximum(1.0, LATENCY / (results * vector))
    ends = vector * (1 + len(form.steps)) + (
        PARAMETER_TILES / knobs.blocks if max(form.parameters.shape[:2]) > 1 else 0)

    def combine(axis: int) -> Column:
        copies, steps = _steps_along(form, knobs, axis)
        return vector * copies + steps * (vector + shared)

    passes: Column
    if form.columns is None:
        narrow = min(height, width) == 1
        passes = late * (combine(int(width > 1)) if narrow else vector + (
            height * width - 1) * (vector + shared)) + ends
    else:
        clipped = is_clipped(form, knobs) & form.leaves_border_out(1)
        seen = np.where(clipped, form.spec.width, box(form, knobs)[1])
        columns = seen * -(-width // knobs.window[1]) / knobs.columns
        passes = columns * combine(0) + np.maximum(late * vector * width, combine(1)) + ends
    return passes


def is_clipped(form: PoolForm, knobs: Knobs) -> Mask:
    """Whether steps take the whole image, so that they know where its border is."""
    spec = form.spec
    if form.columns is None or tuple(knobs.window) != spec.kernel:
        return False
    rows, columns = spec.out_shape
    whole: Mask = np.equal(knobs.rows, rows) & np.equal(knobs.columns, columns)
    return whole


def _steps_along(form: PoolForm, knobs: Knobs, axis: int) -> tuple[Column, Column]:
    """Steps of the ALU for one result along an axis, copies and others."""
    kernel, taps = form.spec.kernel[axis], knobs.window[axis]
    if taps < kernel:
        return -(-kernel // taps), kernel - -(-kernel // taps)
    results, clipped = np.broadcast_arrays((knobs.rows, knobs.columns)[axis],
                                           is_clipped(form, knobs))
    cases, places = np.unique(np.stack([results.ravel(), clipped.ravel()]), axis=1,
                              return_inverse=True)
    found = np.array([form.steps_along(axis, int(count), clipped=bool(whole))
                      for count, whole in cases.T])
    copies, others = (found / cases[0][:, None])[places.ravel()].T.reshape(2, *results.shape)
    return copies, others


def shared_part(form: PoolForm, knobs: Knobs) -> Column:
    """The part of the operands that lie in a bank with what they are combined with: the ALU reads
    two operands in one cycle, and a bank gives one. Combined columns are in both combinations."""
    bank = form.config.acc_bank_tiles
    own, loaded = accumulators(form, knobs)
    columns = _combined_columns(form, knobs)
    apart = is_row_by_row(form, knobs) & (np.asarray(columns) >= bank)  # tile by tile, a row away
    others = copies(form, knobs) * loaded + (0 if form.columns is None else own - columns)
    alone = own if form.columns is None else columns
    room = (form.config.acc_banks - blocks_of(alone, bank)) * bank
    return np.where(apart, 0, np.clip((others - room) / others, 0, 1))


def _has_banks(form: PoolForm, knobs: Knobs) -> Mask:
    """Whether each buffer of the input has banks of its own, so that loads need not wait."""
    bank = form.config.acc_bank_tiles
    own, loaded = accumulators(form, knobs)
    columns = _combined_columns(form, knobs)
    apart = is_row_by_row(form, knobs) & (np.asarray(columns) >= bank)
    groups = (own, loaded, loaded) if form.columns is None else (
        columns, own - columns + copies(form, knobs) * loaded)
    return (sum(blocks_of(each, bank) for each in groups) <= form.config.acc_banks) | apart


def _combined_columns(form: PoolForm, knobs: Knobs) -> Column:
    """Tiles of columns that are combined before rows are."""
    if form.columns is None:
        return 0
    return knobs.blocks * knobs.rows * box(form, knobs)[1]


def forms_of(spec: Pool, config: Config) -> list[PoolForm | AverageForm]:
    """With sums of the ALU, and of the MAC array if it can make them."""
    summed = average.form_of(spec, config)
    alone = [form_of(spec, config, by_factors=False)] if spec.has_factors else []
    return [form_of(spec, config), *alone, *([] if summed is None else [summed])]


def alone_forms(spec: Pool, config: Config) -> list[AverageForm]:
    """With rows that the host has packed, where loads would fill in their border."""
    form = average.form_of(spec, config, rows_first=True) if max(spec.pad[2:]) > 0 else None
    return [] if form is None else [form]


def _by_form(own: Callable[..., Result], summed: Callable[..., Result]) -> Callable[..., Result]:
    """The function of a template that goes with the form."""
    def choose(form: PoolForm | AverageForm, *others: object) -> Result:
        return (summed if isinstance(form, AverageForm) else own)(form, *others)
    return choose


TEMPLATE: Template[PoolForm | AverageForm, Knobs] = Template(knobs=Knobs, compared=GRIDS, **{
    each.__name__: _by_form(each, getattr(average_schedule, each.__name__))
    for each in (largest, grids, fits, estimate, schedule)})
OPERATOR = Operator(description=Pool, forms=forms_of, template=TEMPLATE, alone=alone_forms)
