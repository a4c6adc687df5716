"""The schedule template of a depthwise convolution, its knobs, and what each choice costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.config import Config
from ....isa.instructions import INSTRUCTION_BYTES, PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...schedule.schedule import Schedule
from ..convolution.output_tiles import schedule_output_tiles
from ..cost_model import OVERHEAD, Column, Mask, Steps, all_of
from ..divisions import even_sizes, grid
from ..form import ACCUMULATOR_BYTES, Template, blocks_of
from ..kernel import Operator
from . import bordered_rows
from .depthwise import COLUMN, Depthwise, DepthwiseForm, form_of
from .rows_once import is_row_by_row, load_boxes, load_rows_once, row_buffers

FAR_AHEAD = 8                   # parameter buffers


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much one step computes: channel blocks, rows and columns."""

    blocks: int
    rows: int
    columns: int


def schedule(form: DepthwiseForm, knobs: Knobs) -> Schedule:
    """The template: channel blocks are processed one after another. Each step loads input rows,
    sums, requantizes and stores; every buffer is doubled. Where a step has one row of results, rows
    of the input are loaded one by one, and those that windows share stay on the chip."""
    by_row = bool(is_row_by_row(form, knobs.rows))
    plan, weights, sums = schedule_output_tiles(
        form, knobs, parameters_ahead=int(resident_parameters(form, knobs)),
        downwards=by_row)
    plan[weights].address_rows(form.config.block_out)
    plan[form.padded].compute_whole(form.padded.axes[-1])       # some lanes may not be used
    if _is_in_rows(form):
        plan[form.padded].compute_whole(form.padded.axes[COLUMN])
    stage = plan[sums]
    b, _, _, tx = stage.leaves[4:8]
    (load_rows_once if by_row else load_boxes)(plan, form, stage)
    stage.tensorize(b, "depthwise")
    plan[weights].compute_at(stage, tx)
    plan[weights].keep(int(_resident_weights(form, knobs)))
    plan.load_first(weights)             # inputs wait for their buffers
    return plan


def _resident_weights(form: DepthwiseForm, knobs: Knobs) -> Column:
    """All chunks of the current blocks and one more, or as many as fit (at least two)."""
    piece = blocks_of(knobs.blocks * form.chunks.rows(form.config), form.config.block_out)
    most: Column = np.minimum(prod(form.chunks.counts) + 1, form.config.tiles(Buffer.WGT) // piece)
    return most


def resident_parameters(form: DepthwiseForm, knobs: Knobs) -> Column:
    """How many parameter buffers to use. Steps are short, and a load that waits for its buffer
    delays everything behind it; with more than two buffers, parameters are loaded well ahead."""
    results = 0 if form.result_buffer == Buffer.OUT else _vectors(knobs)
    room = (form.config.tiles(Buffer.ACC) * form.config.acc_groups
            - 2 * _count_lane_groups(form, _sums(form, knobs) + results, knobs))
    return np.minimum(FAR_AHEAD, room // _count_lane_groups(
        form, knobs.blocks * PARAMETER_TILES, knobs))


def largest(form: DepthwiseForm) -> Knobs:
    return Knobs(blocks=form.output.shape[1], rows=form.spec.out_height,
                 columns=form.spec.out_width)


def grids(form: DepthwiseForm) -> Iterator[Knobs]:
    columns = [form.spec.out_width] if _is_in_rows(form) else even_sizes(form.spec.out_width)
    yield grid(Knobs, blocks=_sizes(form), columns=columns, rows=even_sizes(form.spec.out_height))


def fits(form: DepthwiseForm, knobs: Knobs) -> Mask:
    """Whether all buffers fit when doubled. Some knobs always do, because chunks are cut so that
    one output tile fits."""
    config, (height, width) = form.config, _window(form, knobs)
    need = {Buffer.INP: _inputs(form, knobs) * height * width, Buffer.OUT: _vectors(knobs),
            Buffer.ACC: _sums(form, knobs) + knobs.blocks * PARAMETER_TILES}
    if form.result_buffer == Buffer.ACC:
        need[Buffer.ACC] = need[Buffer.ACC] + need.pop(Buffer.OUT)
    weights = blocks_of(knobs.blocks * form.chunks.rows(config), config.block_out)
    groups = {Buffer.INP: config.inp_groups, Buffer.OUT: config.acc_groups,
              Buffer.ACC: config.acc_groups}
    rows = is_row_by_row(form, knobs.rows)
    copies = {Buffer.INP: np.where(rows, row_buffers(form), 2)}
    need[Buffer.INP] = np.where(rows, _inputs(form, knobs) * width, need[Buffer.INP])
    together = form.chunks.blocks_in_tile(config) if form.chunks.dense else 1
    return all_of((2 * weights <= config.tiles(Buffer.WGT), _can_fill_border(form, knobs),
                   (knobs.blocks % together == 0) | (knobs.blocks == form.output.shape[1]), *(
        copies.get(buffer, 2) * (blocks if buffer == Buffer.INP and _is_packed(form)
             else _count_lane_groups(form, blocks, knobs)) <= config.tiles(buffer) * groups[buffer]
        for buffer, blocks in need.items())))


def _can_fill_border(form: DepthwiseForm, knobs: Knobs) -> Mask:
    """Whether a load can fill in what is below the last row, where all rows are one: the border,
    and what the last step has beyond it."""
    if not form.pitch:
        return True
    spec = form.spec
    below = form.padded.shape[COLUMN] - (spec.pad[0] + spec.height) * form.pitch
    rows, columns = (blocks_of(size, count) * count - size for size, count in (
        (spec.out_height, knobs.rows), (spec.out_width, knobs.columns)))
    more: Mask = (below + rows * spec.stride[0] * form.pitch + columns * spec.stride[1]
                  <= bordered_rows.MOST_BORDER)
    return more


def _is_packed(form: DepthwiseForm) -> bool:
    """Whether several columns of the input share a tile of memory."""
    return form.asked.columns_in > 1


def _is_in_rows(form: DepthwiseForm) -> bool:
    """Whether such columns share a tile on the chip, too, so that rows are loaded whole."""
    return _is_packed(form) and form.config.inp_groups > 1


def _inputs(form: DepthwiseForm, knobs: Knobs) -> Column:
    """Channel blocks of the input that a step needs."""
    return knobs.blocks // form.repeats


def _sizes(form: DepthwiseForm) -> list[int]:
    """Numbers of channel blocks, in whole tiles."""
    blocks, ways = form.output.shape[1], _ways(form)
    return [min(blocks, each * ways) for each in even_sizes(blocks_of(blocks, ways))]


def _ways(form: DepthwiseForm) -> int:
    """Channel blocks in a tile of memory."""
    return max((order.ways for order in form.interleaves.values() if order.dimension < COLUMN),
               default=1)


def _count_lane_groups(form: DepthwiseForm, blocks: Column, knobs: Knobs) -> Column:
    """How many groups of lanes some are if channel blocks are filled up to whole tiles."""
    ways = _ways(form)
    return blocks if ways == 1 else blocks // knobs.blocks * (blocks_of(knobs.blocks, ways) * ways)


def _vectors(knobs: Knobs) -> Column:
    """Tiles of results that one step has."""
    return knobs.blocks * knobs.rows * knobs.columns


def _sums(form: DepthwiseForm, knobs: Knobs) -> Column:
    """Tiles of sums that one step holds."""
    rows, columns = form.chunks.sums(form.spec.stride, knobs.rows, knobs.columns)
    return knobs.blocks * rows * columns


def _window(form: DepthwiseForm, knobs: Knobs) -> tuple[Column, Column]:
    """Rows and columns of input that one step needs for each chunk; if rows have a border between
    them, one long row."""
    if form.pitch:
        height, width = ((count - 1) * stride + (taps - 1) * dilation + 1
                         for count, stride, taps, dilation in zip(
                             (knobs.rows, knobs.columns), form.spec.stride, form.chunks.taps,
                             form.spec.dilation, strict=True))
        return 1, (height - 1) * form.pitch + width
    height, width = (np.minimum((count - 1) * stride + (taps - 1) * dilation + 1, size)
                     for count, stride, taps, dilation, size in zip(
                         (knobs.rows, knobs.columns), form.spec.stride, form.chunks.taps,
                         form.spec.dilation, form.padded.shape[2:4], strict=True))
    if _is_in_rows(form):
        return height, form.padded.shape[COLUMN]
    more = (form.repeats - 1) * form.asked.stride[1]            # columns of a tile of results
    return height, np.minimum(width + more, form.padded.shape[COLUMN])


def _loaded_window(form: DepthwiseForm, knobs: Knobs) -> tuple[Column, Column]:
    """Of these, what a step loads in the mean: the border is filled in."""
    if _is_packed(form) or form.repeats > 1:
        return _window(form, knobs)
    height, width = (
        form.spec.loaded(axis, blocks_of(outputs, count), reach=(taps - 1) * dilation + 1)
        for axis, outputs, count, taps, dilation in zip(
            range(2), form.spec.out_shape, (knobs.rows, knobs.columns), form.chunks.taps,
            form.spec.dilation, strict=True))
    return (1, height * form.pitch) if form.pitch else (height, width)


def estimate(form: DepthwiseForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """A rough number of cycles. Weights and parameters are small and loaded well ahead, so their
    cost is spread over all steps."""
    spec, config, chunks = form.spec, form.config, form.chunks
    images, blocks = form.output.shape[:2]
    groups = blocks_of(blocks, knobs.blocks)
    steps = images * blocks_of(spec.out_height, knobs.rows) * blocks_of(
        spec.out_width, knobs.columns)
    (height, width), vectors = _loaded_window(form, knobs), _vectors(knobs)
    rows = is_row_by_row(form, knobs.rows)
    height = np.where(rows, spec.height / spec.out_height, height)
    more = np.where(rows, spec.kernel[0] + spec.stride[0] - 2, 0)       # instructions of a step
    tile = config.batch * config.depthwise_lanes
    parameters = knobs.blocks * PARAMETER_TILES * tile * ACCUMULATOR_BYTES
    products = images * blocks * _cycles(form, knobs)
    weights = blocks_of(knobs.blocks * chunks.rows(config), config.block_out)   # whole tiles
    return Steps(
        groups=1, steps=groups * steps, pieces=prod(chunks.counts),
        products=products / (groups * steps) + OVERHEAD * more, vectors=vectors / config.acc_groups,
        inp=(_inputs(form, knobs) if _is_packed(form) else _count_lane_groups(
            form, _inputs(form, knobs), knobs)) * height * width * tile,
        runs=_inputs(form, knobs) * height, out_runs=knobs.blocks * knobs.rows,
        wgt=weights * config.tile_bytes(Buffer.WGT) / steps,
        out=(_count_lane_groups(form, vectors, knobs) * tile * form.result_bytes
             + parameters / steps + more * INSTRUCTION_BYTES),
        parameters=parameters, wgt_stays=False).cycles(config, memory)


def _cycles(form: DepthwiseForm, knobs: Knobs) -> Column:
    """MAC array cycles for one channel block and chunk of an image. Each step slides on its own."""
    rows, columns = form.spec.out_shape
    across, down = blocks_of(rows, knobs.rows), blocks_of(columns, knobs.columns)
    return across * down * form.chunks.cycles(form.spec.stride, rows / across, columns / down)


def forms_of(spec: Depthwise, config: Config) -> list[DepthwiseForm]:
    """With tiles of weights for each channel block, and for as many as share them where lanes are
    many: then a step takes all of these."""
    plain = form_of(spec, config)
    dense = replace(plain.chunks, dense=True)
    if (dense.rows(config) == plain.chunks.rows(config) or plain.repeats > 1
            or plain.output.shape[1] == 1):
        return [plain]
    return [plain, form_of(spec, config, chunks=dense)]


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(
    description=Depthwise, forms=forms_of, template=TEMPLATE,
    alone=lambda spec, config: bordered_rows.forms_of(spec, config, form_of(spec, config)))
