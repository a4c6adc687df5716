"""Schedules of averages whose sums the MAC array makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ....isa.instructions import INSTRUCTION_BYTES, PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...expression.expression import Axis
from ...expression.tensor import Tensor
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage
from ..cost_model import OVERHEAD, ROUND_TRIP, Column, Mask, Steps, all_of
from ..depthwise.rows_once import is_row_by_row, load_boxes, load_rows_once, row_buffers
from ..divisions import even_sizes, grid, some_sizes
from ..form import blocks_of
from .average import AverageForm
from .knobs import Knobs


def schedule(form: AverageForm, knobs: Knobs) -> Schedule:
    """The template: boxes of all channels one after the other, so that the factors of a box are
    loaded once. Each step loads a box of the input, chunk by chunk, sums, scales and stores. Where
    a step has one row of results, rows of the input are loaded one by one, those that windows share
    stay on the chip, and so do the factors of all positions."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, Scope.OUT)
    readers = [step for step in reversed(form.steps) if form.parameters in step.inputs()]
    parameters = plan.cache_read(form.parameters, Scope.ACC, inside, *readers)
    weights = plan.cache_read(form.weights, Scope.WGT, form.sums)
    sums, inside, output = (plan.replacement_of(each) for each in (form.sums, inside, form.output))
    plan[form.padded].scope, plan[sums].scope = Scope.INP, Scope.ACC

    last = plan[output]
    n, o, y, x, b, j = last.leaves
    o_far, o_near = last.split(o, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    by_row = bool(is_row_by_row(form, knobs.rows))
    far = (n, o_far, x_far, y_far) if by_row else (y_far, x_far, n, o_far)
    step = far[-1]
    last.reorder(*far, o_near, y_near, x_near, b, j)
    for tensor in (sums, inside):
        plan[tensor].compute_at(last, step)
        plan[tensor].double_buffer(step)
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)
    for tensor, intrinsic in form.steps.items():
        stage = plan[plan.replacement_of(tensor)]
        stage.scope = Scope.ACC
        stage.compute_at(last, step)
        stage.tensorize(stage.leaves[-2], intrinsic.name)
        if form.factors in tensor.inputs():
            stage.compute_in_place(sums)
    load_factors(plan, form.factors, None if by_row else (last, x_far))

    plan[weights].address_rows(form.config.block_out)
    stage = plan[sums]
    (load_rows_once if by_row else load_boxes)(plan, form, stage)
    stage.tensorize(stage.tensor.axes[-2], "depthwise")
    for loaded in (form.padded, weights, parameters):
        plan[loaded].dma(plan[loaded].leaves[0])
    last.dma(o_near)
    return plan


def largest(form: AverageForm) -> Knobs:
    _, blocks, rows, columns = form.output.shape[:4]
    return Knobs(blocks=blocks, rows=rows, columns=columns, window=form.pool.kernel)


def grids(form: AverageForm) -> Iterator[Knobs]:
    _, blocks, rows, columns = form.output.shape[:4]
    yield replace(grid(Knobs, blocks=some_sizes(blocks), columns=even_sizes(columns),
                       rows=even_sizes(rows)), window=form.pool.kernel)


def _box(form: AverageForm, knobs: Knobs) -> tuple[Column, Column]:
    """Rows and columns of the input that one step needs for each chunk."""
    size = form.padded.shape
    height, width = (np.minimum((count - 1) * stride + (taps - 1) * dilation + 1, size)
                     for count, stride, taps, dilation, size in zip(
                         (knobs.rows, knobs.columns), form.spec.stride, form.chunks.taps,
                         form.spec.dilation, (size[1 if form.rows_first else 2], size[3]),
                         strict=True))
    return height, width


def load_factors(plan: Schedule, factors: Tensor | None, at: tuple[Stage, Axis] | None) -> None:
    """Load the factors of a box, if there are any, for all its channels, or those of all positions.
    They have one buffer: boxes are few."""
    if factors is not None:
        plan[factors].scope = Scope.ACC
        if at is not None:
            plan[factors].compute_at(*at)
        plan[factors].dma(plan[factors].leaves[0])


def factor_tiles(factors: Tensor | None, knobs: Knobs) -> Column:
    """Tiles of factors for one box."""
    if factors is None:
        return 0
    return prod(size if extent > 1 else 1 for size, extent in zip(
        (knobs.rows, knobs.columns), factors.shape[:2], strict=True))


def _all_factors(form: AverageForm) -> int:
    return 0 if form.factors is None else prod(form.factors.shape[:2])


def _further_steps(form: AverageForm) -> int:
    """Steps of the ALU that do not write where they read."""
    return len(form.steps) - (form.factors is not None)


def fits(form: AverageForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room, twice; what the ALU alone uses once."""
    config, (height, width) = form.config, _box(form, knobs)
    rows = is_row_by_row(form, knobs.rows)
    loaded = np.where(rows, row_buffers(form), 2 * height) * width
    factors = np.where(rows, _all_factors(form), factor_tiles(form.factors, knobs))
    results = knobs.blocks * knobs.rows * knobs.columns
    sums = knobs.blocks * prod(form.chunks.sums(form.spec.stride, knobs.rows, knobs.columns))
    own = PARAMETER_TILES * form.parameters.shape[2]
    return all_of((
        knobs.blocks * loaded <= config.tiles(Buffer.INP),
        2 * results <= config.tiles(Buffer.OUT),
        2 * sums + factors + _further_steps(form) * results + own
        <= config.tiles(Buffer.ACC),
        form.weights.shape[2] // config.block_out <= config.tiles(Buffer.WGT)))


def estimate(form: AverageForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly."""
    config, spec, chunks = form.config, form.spec, form.chunks
    images, blocks = form.output.shape[:2]
    down, across, groups = (blocks_of(extent, size) for extent, size in (
        (spec.out_height, knobs.rows), (spec.out_width, knobs.columns), (blocks, knobs.blocks)))
    steps = images * groups * down * across
    height, width = (form.pool.loaded(axis, parts, reach=(taps - 1) * step + 1)
                     for axis, parts, taps, step in zip(
                         range(2), (down, across), chunks.taps, spec.dilation, strict=True))
    rows = is_row_by_row(form, knobs.rows)
    height = np.where(rows, spec.height / spec.out_height, height)
    more = np.where(rows, spec.kernel[0] + spec.stride[0] - 2, 0)       # instructions of a step
    tile, results = config.tile_bytes(Buffer.OUT), knobs.blocks * knobs.rows * knobs.columns
    even = blocks / groups
    runs = np.where((across == 1) & (spec.border(1) == 0), 1, height)
    products = chunks.cycles(spec.stride, spec.out_height / down, spec.out_width / across)
    vectors = results * (1 + len(form.steps))
    # The factors of a box have one buffer, and what LOAD has to do after them waits with it.
    waits = np.where(rows, 1, images * down * across) * (
        vectors * config.vector_cycles + memory.read_latency
        + ROUND_TRIP) if form.factors is not None else 0
    factors = np.where(rows, _all_factors(form) / steps,
                       factor_tiles(form.factors, knobs) / (images * groups))
    return waits + Steps(
        groups=1, steps=steps, pieces=prod(chunks.counts), products=even * products
        + OVERHEAD * more, vectors=vectors, inp=even * height * width * tile,
        runs=height if form.rows_first else even * runs, out_runs=even * np.where(
            knobs.columns >= spec.out_width, 1, spec.out_height / down),
        wgt=0, out=(results + factors) * tile + more * INSTRUCTION_BYTES,
        parameters=PARAMETER_TILES * config.tile_bytes(Buffer.ACC)
        + form.weights.shape[2] * config.block_in).cycles(config, memory)
