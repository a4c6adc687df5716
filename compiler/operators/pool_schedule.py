"""How a pool is computed: the template, its knobs, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ...isa.config import Config
from ...isa.instructions import PARAMETER_TILES, Buffer
from ...isa.timing import MemoryTiming
from ..expression.expression import Axis
from ..nest.nest import Scope
from ..schedule.schedule import Schedule, Stage
from .divisions import even_sizes, grid, some_sizes
from .pool import LATENCY, Expressions, Kind

STEP_START = 40             # cycles that a step costs beside its work, measured


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: channel blocks, rows and columns, and of the window."""

    blocks: int
    rows: int
    columns: int
    window: tuple[int, int] = (1, 1)
    doubled: bool = True        # two buffers each, so that engines overlap


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: a box of the input comes in, is combined shift by shift, and goes out. A
    window that does not fit is combined part by part."""
    plan = Schedule(what.output)
    inside = plan.cache_write(what.output, Scope.OUT)
    parameters = plan.cache_read(what.parameters, Scope.ACC, inside)
    inside, output = plan.renewed(inside), plan.renewed(what.output)

    last = plan[output]
    n, c, y, x, b, j = last.leaves
    c_far, c_near = last.split(c, knobs.blocks)
    y_far, y_near = last.split(y, knobs.rows)
    x_far, x_near = last.split(x, knobs.columns)
    last.reorder(y_far, x_far, n, c_far, c_near, y_near, x_near, b, j)
    if max(what.parameters.shape[:2]) > 1:
        plan[parameters].compute_at(last, x_far)
        if copies(what, knobs) > 1:
            plan[parameters].double_buffer(x_far)
    plan[inside].compute_at(last, c_far)
    plan[inside].tensorize(plan[inside].leaves[4], what.function.name)
    plan[what.sums].compute_at(last, c_far)     # one buffer: the ALU alone uses it

    stage, axis = _combined(plan, what, knobs)
    plan[what.padded].scope = Scope.ACC
    plan[what.padded].compute_at(stage, axis)
    if copies(what, knobs) > 1:
        plan[what.padded].double_buffer(axis)
        plan[inside].double_buffer(c_far)
    return plan


def _combined(plan: Schedule, what: Expressions, knobs: Knobs) -> tuple[Stage, Axis]:
    """Schedules what combines elements. Returns the loop that needs one box of the input."""
    intrinsic = "pool" if what.spec.kind == Kind.MAX else "pool_sum"
    stage = plan[what.sums]
    stage.scope = Scope.ACC
    n, c, y, x, b, j, *window = stage.leaves
    sizes = knobs.window if what.columns is None else knobs.window[1:]
    parts = [stage.split(axis, size) for axis, size in zip(window, sizes, strict=True)]
    # Shifts outside, so that the ALU need not wait for what it has just computed.
    stage.reorder(*(far for far, _ in parts), *(near for _, near in parts), n, y, x, c, b, j)
    stage.tensorize(b, intrinsic)
    if what.columns is None:
        return stage, parts[-1][0]
    column = plan[what.columns]
    column.scope = Scope.ACC
    column.compute_at(stage, parts[-1][0])
    n, c, y, x, b, j, ky = column.leaves
    far, near = column.split(ky, knobs.window[0])
    column.reorder(far, near, n, y, x, c, b, j)
    column.tensorize(b, intrinsic)
    return column, far


def boxes(what: Expressions, knobs: Knobs) -> Any:
    """How many boxes of the input are loaded."""
    images, blocks, rows, columns = what.output.shape[:4]
    count: Any = images
    for extent, size in ((blocks, knobs.blocks), (rows, knobs.rows), (columns, knobs.columns),
                         *zip(what.spec.kernel, knobs.window, strict=True)):
        count = count * -(-extent // size)
    return count


def copies(what: Expressions, knobs: Knobs) -> Any:
    """Buffers by turns: two if there is a next box."""
    return np.where(knobs.doubled & (boxes(what, knobs) > 1), 2, 1)


def box(what: Expressions, knobs: Knobs) -> tuple[Any, Any]:
    """Rows and columns of one of them."""
    spec = what.spec
    height, width = (np.minimum((outputs - 1) * spec.stride[axis]
                                + (knobs.window[axis] - 1) * spec.dilation[axis] + 1,
                                spec.padded[axis])
                     for axis, outputs in enumerate((knobs.rows, knobs.columns)))
    return height, width


def accumulators(what: Expressions, knobs: Knobs) -> tuple[Any, Any]:
    """Tiles of the accumulator: for what is computed, with parameters, and for a box of input."""
    height, width = box(what, knobs)
    rows, columns = (size if extent > 1 else 1 for size, extent in zip(
        (knobs.rows, knobs.columns), what.parameters.shape[:2], strict=True))
    own = knobs.blocks * knobs.rows * (knobs.columns + (width if what.columns else 0))
    if max(what.parameters.shape[:2]) > 1:
        rows = rows * copies(what, knobs)
    return own + PARAMETER_TILES * rows * columns, knobs.blocks * height * width


def grids(what: Expressions) -> Iterator[Knobs]:
    """A window is divided, and double buffers are given up, only if nothing fits otherwise."""
    spec = what.spec
    windows = [*((size, spec.kernel[1]) for size in even_sizes(spec.kernel[0])),
               *((1, size) for size in even_sizes(spec.kernel[1])[1:])]
    blocks, rows, columns = (some_sizes(extent) for extent in what.output.shape[1:4])
    for doubled, window in product((True, False), windows):
        yield replace(grid(Knobs, blocks=blocks, rows=rows, columns=columns), window=window,
                      doubled=doubled)


def fits(what: Expressions, knobs: Knobs) -> Any:
    """Whether all buffers find room."""
    config = what.config
    number = copies(what, knobs)
    own, loaded = accumulators(what, knobs)
    results = knobs.blocks * knobs.rows * knobs.columns
    return ((own + number * loaded <= config.tiles(Buffer.ACC))
            & (number * results <= config.tiles(Buffer.OUT)))


def estimate(what: Expressions, knobs: Knobs, memory: MemoryTiming) -> Any:
    """Cycles, roughly: the larger of what the ALU and the bus do, and what cannot overlap."""
    config, spec = what.config, what.spec
    count, images = boxes(what, knobs), what.output.shape[0]
    tile = config.tile_bytes(Buffer.OUT)
    results = knobs.blocks * knobs.rows * knobs.columns
    own, loaded = accumulators(what, knobs)
    rate = config.bus_bytes / memory.cycles_per_beat
    load = loaded * tile / rate
    outputs = images * what.output.shape[1] * spec.out_shape[0] * spec.out_shape[1]
    passes = _passes(what, knobs, slow=np.where(_apart(config, own, loaded), 1, 2))
    alu, bus = outputs * passes, count * load + outputs * tile / rate
    ends = load + results * (passes + tile / rate)
    return np.maximum(alu, bus) + count * STEP_START + (
        ends if knobs.doubled else np.minimum(alu, bus))


def _passes(what: Expressions, knobs: Knobs, *, slow: Any) -> Any:
    """Cycles of the ALU for one tile of the output."""
    height, width = what.spec.kernel
    results = knobs.blocks * knobs.rows * knobs.columns
    late = np.maximum(1.0, LATENCY / results)
    ends = 2 + (PARAMETER_TILES / knobs.blocks if max(what.parameters.shape[:2]) > 1 else 0)
    if what.columns is None:
        return height * width * late * slow + ends
    columns = box(what, knobs)[1] * -(-width // knobs.window[1]) / knobs.columns
    return columns * (height * slow + 1) + width * np.maximum(late, 2) + ends


def _apart(config: Config, own: Any, loaded: Any) -> Any:
    """Whether input lies in other banks than what it is combined with: a bank is read once a
    cycle, and the ALU wants both."""
    bank = config.acc_bank_tiles
    first = -(-own // bank) * bank
    return (config.tiles(Buffer.ACC) - first) // 2 // bank * bank >= loaded
