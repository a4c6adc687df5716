"""Schedules of convolutions, plain or in groups: the template, its knobs, and their costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...expression.tensor import Tensor
from ...schedule.schedule import Schedule
from ..cost_model import Column, Mask, Steps, all_of, staying_part
from ..divisions import even_sizes, fair_sizes, grid, knob_columns, some_sizes
from ..form import Template, are_whole_tiles, blocks_of, runs_of
from ..kernel import Operator
from . import patches
from .conv2d import Conv2d, Conv2dForm
from .first_layer import forms_of
from .output_tiles import schedule_output_tiles

# Token counters have a limit. Buffers of one kind, and gemms of single blocks in a program, are
# at most these fractions of it.
MOST_KEPT, MOST_PARTS = 0.5, 0.8
MOST_AHEAD = 4              # pieces of the input, if not all stay


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once: output blocks, rows and columns, input blocks, rows and
    columns of the kernel, where 0 is all of them, and groups. Output blocks may be taken one by
    one, so that the first begins before all weights are there, and goes out before the last is
    done. With one buffer for sums, and one for results, more of them fit, but GEMM waits until the
    ALU has taken them."""

    blocks: int
    rows: int
    columns: int
    depth: int
    tap_rows: int = 0
    tap_columns: int = 0
    groups: int = 1
    one_by_one: bool = False
    single_sums: bool = False

    def taps(self, kernel: tuple[int, int]) -> tuple[int, int]:
        return self.tap_rows or kernel[0], self.tap_columns or kernel[1]


def schedule(form: Conv2dForm, knobs: Knobs) -> Schedule:
    """The template: weights of some output blocks stay while the image passes by; every step
    loads input rows, sums, requantizes and stores, each in buffers that are used in turn."""
    plan, weights, sums = schedule_output_tiles(
        form, knobs, one_by_one=knobs.one_by_one, single_sums=knobs.single_sums,
        between=form.between)
    schedule_sums(plan, form, knobs, weights, sums)
    return plan


def schedule_sums(plan: Schedule, form: Conv2dForm, knobs: Knobs, weights: Tensor,
                  sums: Tensor) -> None:
    """Schedule the sums of a step, in pieces that each load what they need."""
    stage = plan[sums]
    *leaves, k = stage.leaves
    planes = [leaves.pop()] if form.spec.planes > 1 else []
    n, *groups, o, y, x, b, j, c, ky, kx = leaves
    tap_rows, tap_columns = knobs.taps(form.spec.kernel)
    c_far, c_near = stage.split(c, knobs.depth)
    ky_far, ky_near = stage.split(ky, tap_rows)
    kx_far, kx_near = stage.split(kx, tap_columns)
    outer = (*groups, o, n) if knobs.one_by_one else (n, *groups, o)
    stage.reorder(c_far, ky_far, kx_far, *outer, y, x, c_near, ky_near, kx_near, *planes, b, j, k)
    stage.tensorize(b, "gemm")
    if knobs.one_by_one:
        for axis in (*groups, o):
            stage.unroll(axis)
    plan[form.padded].compute_at(stage, kx_far)
    plan[form.padded].keep(int(resident_inputs(form, knobs)))
    plan[weights].compute_at(stage, o if knobs.one_by_one else kx_far)
    plan[weights].keep(int(resident_weights(form, knobs)), int(
        _far(form, knobs)[2] * _parts(knobs)) if _waits_for_loads(form, knobs) else 0)
    if _has_room_ahead(form, knobs) or plan[weights].period:
        plan.load_first(weights)         # inputs that wait for their buffers do not delay them


def _far(form: Conv2dForm, knobs: Knobs) -> tuple[Column, Column, Column]:
    """Groups of output blocks, steps in each, and pieces of a step."""
    spec, (groups, outputs, depth) = form.spec, form.extents
    tap_rows, tap_columns = knobs.taps(spec.kernel)
    return (blocks_of(groups, knobs.groups) * blocks_of(outputs, knobs.blocks),
            form.output.shape[0] * blocks_of(spec.out_height, knobs.rows)
            * blocks_of(spec.out_width, knobs.columns),
            blocks_of(depth, knobs.depth) * blocks_of(spec.kernel[0], tap_rows)
            * blocks_of(spec.kernel[1], tap_columns))


def _window(form: Conv2dForm, knobs: Knobs) -> tuple[Column, Column]:
    """Rows and columns of the input that a piece needs."""
    height, width = (
        np.minimum((outputs - 1) * step + (taps - 1) * dilation + 1, size)
        for outputs, step, taps, dilation, size in zip(
            (knobs.rows, knobs.columns), form.steps, knobs.taps(form.spec.kernel),
            form.spec.dilation, form.spec.padded, strict=True))
    return height, width + form.later_columns


def _loaded_window(form: Conv2dForm, knobs: Knobs) -> tuple[Column, Column]:
    """Of these, what is loaded in the mean: the border is filled in."""
    spec = form.spec
    height, width = (
        spec.loaded(axis, blocks_of(outputs, count), reach=(taps - 1) * dilation + 1, stride=step)
        for axis, outputs, count, step, taps, dilation in zip(
            range(2), spec.out_shape, (knobs.rows, knobs.columns), form.steps,
            knobs.taps(spec.kernel), spec.dilation, strict=True))
    return height, width + form.later_columns


def _tiles(form: Conv2dForm, knobs: Knobs) -> dict[Buffer, Column]:
    """Tiles of one buffer in each scratchpad: of a piece, or of the sums or results of a step."""
    (height, width), taps = _window(form, knobs), prod(knobs.taps(form.spec.kernel))
    taps = taps * form.spec.planes
    pixels = knobs.groups * knobs.rows * knobs.columns
    _, outputs, every = form.extents
    depth = _occupied_blocks(form.ways("data"), knobs.depth, every)
    blocks = _occupied_blocks(form.ways("output"), knobs.blocks, outputs)
    return {Buffer.INP: knobs.groups * depth * height * width,
            Buffer.WGT: knobs.groups * knobs.blocks * knobs.depth * taps,
            Buffer.ACC: pixels * knobs.blocks, Buffer.OUT: pixels * blocks}


def _parts(knobs: Knobs) -> Column:
    """Gemms and requantizations that a piece is cut into."""
    return np.where(knobs.one_by_one, knobs.groups * knobs.blocks, 1)


def resident_weights(form: Conv2dForm, knobs: Knobs) -> Column:
    """How many pieces of the weights stay on the chip: all of them, or as many as fit."""
    (groups, _, pieces), parts = _far(form, knobs), _parts(knobs)
    room = form.config.tiles(Buffer.WGT) // (_tiles(form, knobs)[Buffer.WGT] // parts)
    most = np.minimum(room, _max_resident(form))
    return np.maximum(1, np.minimum(groups * pieces * parts, most))


def _max_resident(form: Conv2dForm) -> int:
    return max(2, int(MOST_KEPT * form.config.token_limit))


def _has_room_ahead(form: Conv2dForm, knobs: Knobs) -> Mask:
    """Whether weights of the next group can be loaded while those of this one are in use."""
    groups, _, pieces = _far(form, knobs)
    return (resident_weights(form, knobs) > pieces * _parts(knobs)) | (groups == 1)


def resident_inputs(form: Conv2dForm, knobs: Knobs) -> Column:
    """How many pieces of the input stay on the chip: all, for the output blocks that follow, or
    else two. Where weights of some pieces stay and those of others do not, loads run further ahead
    to even that out."""
    _, steps, pieces = _far(form, knobs)
    count = steps * pieces * blocks_of(form.extents[0], knobs.groups)
    room = form.config.tiles(Buffer.INP) // _tiles(form, knobs)[Buffer.INP]
    fit = (count <= room) & (count <= _max_resident(form))
    kept = resident_weights(form, knobs)
    uneven = (kept > 2) & (kept < pieces * _parts(knobs)) & _waits_for_loads(form, knobs)
    return np.where(fit, count, np.where(uneven, np.clip(room, 2, MOST_AHEAD), 2))


def _waits_for_loads(form: Conv2dForm, knobs: Knobs) -> Mask:
    """Whether inputs and weights of a piece, one of several in each of several steps, take longer
    to load than its sums take."""
    sizes, config, taps = _tiles(form, knobs), form.config, prod(knobs.taps(form.spec.kernel))
    moved = sum(sizes[buffer] * config.tile_bytes(buffer) for buffer in (Buffer.INP, Buffer.WGT))
    sums = sizes[Buffer.ACC] * knobs.depth * taps * form.spec.planes
    _, steps, pieces = _far(form, knobs)
    return (steps > 1) & (pieces > 1) & (moved > sums * config.bus_bytes)


def largest(form: Conv2dForm) -> Knobs:
    groups, outputs, depth = form.extents
    return Knobs(groups=groups, blocks=outputs, rows=form.spec.out_height,
                 columns=form.spec.out_width, depth=depth, tap_rows=form.spec.kernel[0],
                 tap_columns=form.spec.kernel[1])


def grids(form: Conv2dForm) -> Iterator[Knobs]:
    """The kernel is taken apart only if it does not fit."""
    groups, outputs, depth = form.extents
    for tap_rows, tap_columns in ((0, 0), (1, 0), (0, 1), (1, 1)):
        every = grid(Knobs, groups=even_sizes(groups), blocks=even_sizes(outputs),
                     depth=some_sizes(depth), columns=fair_sizes(form.spec.out_width),
                     rows=fair_sizes(form.spec.out_height), one_by_one=[False, True],
                     single_sums=[False, True])
        yield replace(every, tap_rows=tap_rows, tap_columns=tap_columns)


def fits(form: Conv2dForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room, twice, or sums and results once where they do not twice.
    Several groups are computed at once only if each is computed as a whole, and blocks one by one
    only if there are several, in few enough pieces."""
    need, blocks = _tiles(form, knobs), knobs.groups * knobs.blocks
    parameters = 2 * blocks * PARAMETER_TILES
    if form.result_buffer == Buffer.ACC:
        need[Buffer.ACC] = need[Buffer.ACC] + need.pop(Buffer.OUT)
    room = {buffer: form.config.tiles(buffer) for buffer in need}
    room[Buffer.ACC] = room[Buffer.ACC] - parameters
    results = [buffer for buffer in need if buffer in (Buffer.ACC, Buffer.OUT)]
    twice = all_of(2 * need[buffer] <= room[buffer] for buffer in results)
    once = all_of(need[buffer] <= room[buffer] for buffer in results)
    fit = all_of(2 * need[buffer] <= room[buffer] for buffer in (Buffer.INP, Buffer.WGT))
    single = np.asarray(knobs.single_sums, bool)
    whole = (knobs.blocks == form.extents[1]) & (knobs.depth == form.extents[2])
    groups, steps, pieces = _far(form, knobs)
    most = MOST_PARTS * form.config.token_limit
    parts = (blocks > 1) & (groups * steps * pieces * blocks <= most) & ~single
    return all_of((fit, np.where(single, once & ~np.asarray(twice, bool), twice),
                   (knobs.groups == 1) | whole, parts | np.logical_not(knobs.one_by_one)))


def estimate(form: Conv2dForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly."""
    return steps_of(form, knobs).cycles(form.config, memory)


def steps_of(form: Conv2dForm, knobs: Knobs) -> Steps:
    """What the engines do in each step."""
    config, spec = form.config, form.spec
    groups, steps, pieces = _far(form, knobs)
    even, last = _even_knobs(form, knobs)
    (height, width), window = _loaded_window(form, knobs), _window(form, even)
    tiles, parts = _tiles(form, even), _parts(knobs)
    size = {buffer: count * config.tile_bytes(buffer) for buffer, count in tiles.items()}
    size[Buffer.INP] = size[Buffer.INP] * (height * width / prod(window))
    is_whole = (knobs.columns >= spec.out_width) & (spec.border(1) == 0)
    runs = height * width if form.skips_columns else np.where(is_whole, 1, height)
    out_runs = np.where(knobs.columns >= spec.out_width, 1, even.rows)  # whole rows are one run
    _, outputs, depth = form.extents
    together = np.where(knobs.one_by_one, 1, knobs.blocks)
    runs = even.groups * even.depth / knobs.depth * runs_of(
        form.ways("data"), knobs.depth, depth, runs, height * width)
    out_runs = even.groups * even.blocks / together * runs_of(
        form.ways("output"), together, outputs, out_runs, even.rows * even.columns)
    kept, every = resident_weights(form, knobs), pieces * parts
    inputs_kept = resident_inputs(form, knobs) >= steps * pieces
    return Steps(
        groups=groups, steps=steps, pieces=pieces, parts=parts, last=last,
        products=tiles[Buffer.ACC] * even.depth * even.tap_rows * even.tap_columns * spec.planes,
        vectors=tiles[Buffer.ACC], inp=size[Buffer.INP], runs=runs,
        wgt=size[Buffer.WGT], wgt_runs=_weight_runs(form, knobs, even),
        out=form.result_bytes * size[Buffer.OUT], out_runs=out_runs,
        parameters=even.groups * even.blocks * PARAMETER_TILES * config.tile_bytes(Buffer.ACC),
        inp_stays=inputs_kept & (kept >= every) & (form.extents[0] == 1),
        wgt_stays=kept >= every,
        wgt_kept=np.where(_waits_for_loads(form, knobs), staying_part(kept, every), 0),
        waits=np.asarray(knobs.single_sums, bool) | _fills_queue(form, knobs),
        wgt_ahead=_has_room_ahead(form, knobs))


def _fills_queue(form: Conv2dForm, knobs: Knobs) -> Mask:
    """Whether the ALU's instructions of a step do not fit in its queue, so that no other engine
    gets any until it has begun the last: one for each tile of memory that its blocks are."""
    ways = form.ways("output")
    return (ways > 1) & (blocks_of(knobs.blocks, ways) > form.config.queue_depth)


def _weight_runs(form: Conv2dForm, knobs: Knobs, even: Knobs) -> Column:
    """Runs in which the weights of a piece are loaded: one if it has all of each output block."""
    kernel, blocks = form.spec.kernel, even.groups * even.blocks
    rows, columns = knobs.taps(kernel)
    tap_runs = np.where(columns < kernel[1], even.depth * even.tap_rows,
                        np.where(rows < kernel[0], even.depth, 1))
    whole = (knobs.depth >= form.extents[2]) & (rows >= kernel[0]) & (columns >= kernel[1])
    return np.where(whole, _parts(knobs), blocks * tap_runs)


def _occupied_blocks(ways: int, blocks: Column, every: int) -> Column:
    """The blocks that take room on the chip: those of whole tiles of memory, if they are moved
    so."""
    return blocks if ways == 1 else np.where(are_whole_tiles(ways, blocks, every),
                                             -(-blocks // ways) * ways, blocks)


def _even_knobs(form: Conv2dForm, knobs: Knobs) -> tuple[Knobs, Column]:
    """Knobs as if all parts of an extent had the same size, and the size of the last step relative
    to the others."""
    tap_rows, tap_columns = knobs.taps(form.spec.kernel)
    groups, outputs, depth = form.extents
    extents: dict[str, tuple[int, Column]] = {
        "groups": (groups, knobs.groups), "blocks": (outputs, knobs.blocks),
        "rows": (form.spec.out_height, knobs.rows), "columns": (form.spec.out_width, knobs.columns),
        "depth": (depth, knobs.depth), "tap_rows": (form.spec.kernel[0], tap_rows),
        "tap_columns": (form.spec.kernel[1], tap_columns)}
    mean: dict[str, Column] = {name: extent / blocks_of(extent, size)
                            for name, (extent, size) in extents.items()}
    last: Column = 1.0
    for name in ("groups", "blocks", "rows", "columns"):
        extent, size = extents[name]
        last = last * ((extent - 1) % size + 1) / mean[name]
    return knob_columns(Knobs, mean), last


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(description=Conv2d, forms=forms_of, template=TEMPLATE,
                    alone=patches.forms_of)
