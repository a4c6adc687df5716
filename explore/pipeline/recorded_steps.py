"""Steps of a schedule, as the compiler's estimate writes them down, with transfers as they are in
memory; and those of layers that the ALU alone computes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ...compiler.operators.convolution.conv2d import Conv2dForm
from ...compiler.operators.cost_model import Column, Steps
from ...compiler.operators.dense.dense import DenseForm
from ...compiler.operators.depthwise.depthwise import DepthwiseForm
from ...compiler.operators.elementwise.lanewise import LanewiseForm
from ...compiler.operators.form import TensorForm
from ...compiler.operators.pool.knobs import Knobs as PoolKnobs
from ...compiler.operators.pool.pool import PoolForm
from ...compiler.operators.pool.pool_schedule import (
    BUFFERS,
    accumulators,
    alu_cycles,
    box,
    boxes,
    loaded_boxes,
)
from ...compiler.operators.sliding_window import Windowed
from ...isa.instructions import PARAMETER_TILES, Buffer
from .pool_passes import even_knobs


def merge_runs(form: TensorForm, knobs: object, steps: Steps) -> Steps:
    """Steps with runs as they are in memory: blocks of channels that lie side by side in wider
    tiles are one run, which the compiler's estimate counts one by one."""
    if isinstance(form, DenseForm):
        return _dense_runs(form, knobs, steps)
    if isinstance(form, Conv2dForm):
        _, outputs, inputs = form.extents
        together = 1 if knob_of(knobs, "one_by_one") else knob_of(knobs, "blocks")
        read = _blocks_in_a_run(form, "data", knob_of(knobs, "depth"), inputs)
        written = _blocks_in_a_run(form, "output", together, outputs)
    elif isinstance(form, DepthwiseForm):
        blocks, config = knob_of(knobs, "blocks"), form.config
        read, written = (max(1, min(_ways(form, name), blocks)) for name in ("data", "output"))
        if config.inp_groups == 1 and blocks < _ways(form, "data"):
            # Channels that do not fill a tile of memory: those of the chip are loaded one by one.
            positions = steps.inp / (_ways(form, "data") * config.batch * config.depthwise_lanes)
            steps, read = replace(steps, runs=blocks * positions), 1
    else:
        return steps
    return replace(steps, runs=np.maximum(1, steps.runs / read),
                   out_runs=np.maximum(1, steps.out_runs / written))


def _dense_runs(form: DenseForm, knobs: object, steps: Steps) -> Steps:
    """Rows whose blocks are parts of wider tiles are runs of their own."""
    _, rows, outputs, depth = form.extents
    each = rows / -(-rows // knob_of(knobs, "rows"))
    if not are_whole_tiles(form, "data", knob_of(knobs, "depth"), depth):
        steps = (replace(steps, wgt_runs=each) if knob_of(knobs, "data_stays")
                 else replace(steps, runs=each))
    if not are_whole_tiles(form, "output", knob_of(knobs, "blocks"), outputs):
        steps = replace(steps, out_runs=each)
    return steps


def image_shares(spec: Windowed, knobs: object, taps: tuple[int, int]) -> tuple[float, float]:
    """Of the rows and columns that all steps read, the share that is not padded."""
    sizes, before = (spec.height, spec.width), (spec.pad[0], spec.pad[2])
    shares = []
    for axis, name in enumerate(("rows", "columns")):
        out = spec.out_shape[axis]
        count = -(-out // max(1, min(out, knob_of(knobs, name) or out)))
        tile = out / count
        reach = (tile - 1) * spec.stride[axis] + (
            (taps[axis] - 1) * spec.dilation[axis] + 1 if taps[axis] else spec.reach(axis))
        begins = [number * tile * spec.stride[axis] - before[axis] for number in range(count)]
        inside = sum(max(0.0, min(begin + reach, sizes[axis]) - max(begin, 0.0))
                     for begin in begins)
        shares.append(min(1.0, max(inside, 1.0) / (count * reach)))
    return shares[0], shares[1]


def are_whole_tiles(form: TensorForm, name: str, moved: int, all_of_them: int) -> bool:
    """Whether blocks that are moved at once are whole tiles of memory."""
    ways = _ways(form, name)
    return moved >= ways and (moved % ways == 0 or moved == all_of_them)


def _blocks_in_a_run(form: TensorForm, name: str, moved: int, all_of_them: int) -> int:
    whole = are_whole_tiles(form, name, moved, all_of_them)
    return max(1, min(_ways(form, name), moved)) if whole else 1


def _ways(form: TensorForm, name: str) -> int:
    order = form.interleaves.get(name)
    return 1 if order is None else order.ways


def own_steps(form: TensorForm, knobs: object) -> Steps | None:
    """Steps of layers whose estimate has none: those of the ALU alone."""
    tile = form.config.tile_bytes(Buffer.OUT)
    parameters = PARAMETER_TILES * form.config.tile_bytes(Buffer.ACC)
    if isinstance(form, LanewiseForm):
        tiles = form.output.shape[0]
        steps = -(-tiles // min(tiles, knob_of(knobs, "tiles")))
        size = tiles / steps
        return Steps(groups=1, steps=steps, pieces=1, products=0, out_runs=1,
                     vectors=size * (len(form.steps) + 1), inp=len(form.wide) * size * tile,
                     runs=len(form.wide), wgt=0, out=size * tile,
                     parameters=(len(form.wide) + 1) * parameters)
    if isinstance(form, PoolForm) and isinstance(knobs, PoolKnobs):
        return _pool_steps(form, even_knobs(form, knobs), knobs)
    return None


def _pool_steps(form: PoolForm, knobs: PoolKnobs, whole: PoolKnobs) -> Steps:
    """A step for each box of a pool's input. A window that is combined part by part has a box for
    each part, and its results go out once."""
    tile = form.config.tile_bytes(Buffer.OUT)
    (height, width), taken = box(form, knobs), image_shares(form.spec, whole, knobs.window)
    blocks, results = knobs.blocks, knobs.blocks * knobs.rows * knobs.columns
    ways = min(_ways(form, "data"), blocks)
    runs: Column = blocks / ways * max(1.0, 1 if width >= form.spec.width else taken[0] * height)
    out_runs = blocks / ways * knobs.rows
    if not are_whole_tiles(form, "data", whole.blocks, form.output.shape[1]):
        # Tiles move one by one.
        runs, out_runs = blocks * height * width * taken[0] * taken[1], results
    parts = prod(-(-extent // size)
                 for extent, size in zip(form.spec.kernel, knobs.window, strict=True))
    count = boxes(form, whole)
    # Rows that windows share are not loaded again.
    fresh = (loaded_boxes(form, whole) - _boxes_kept(form, whole)) / count
    groups, positions = 1, 1
    for size, extent, outputs in zip((whole.rows, whole.columns), form.parameters.shape[:2],
                                     form.spec.out_shape, strict=True):
        if max(form.parameters.shape[:2]) > 1:      # each position has its own, for all channels
            groups *= -(-outputs // size)
            positions *= size if extent > 1 else 1
    return Steps(
        groups=groups, pieces=parts, products=0, steps=count / parts / groups, wgt=0,
        vectors=results * alu_cycles(form, knobs) / form.config.vector_cycles,
        inp=fresh * accumulators(form, knobs)[1] * tile * taken[0] * taken[1], runs=fresh * runs,
        out=results * tile, out_runs=out_runs,
        parameters=(positions * form.parameters.shape[2] * PARAMETER_TILES
                    * form.config.tile_bytes(Buffer.ACC)))


def _boxes_kept(form: PoolForm, knobs: PoolKnobs) -> int:
    """Boxes of several rows that are still there for the next row of results, besides those that
    the schedule keeps by intent: if nothing else is loaded between, and the step from one row to
    the next is a whole number of boxes."""
    spec, (_, blocks, rows, columns) = form.spec, form.output.shape[:4]
    (height, width), stride = knobs.window, spec.stride[0]
    others = form.output.shape[0] * -(-blocks // knobs.blocks) * -(-columns // knobs.columns)
    if (height == 1 or knobs.rows > 1 or others > 1 or width < spec.kernel[1] or stride % height
            or spec.dilation[0] > 1 or not knobs.doubled or form.factors is not None):
        return 0
    shared = -(-spec.kernel[0] // height) - stride // height
    return shared * (rows - 1) if 0 < shared <= BUFFERS else 0


def knob_of(knobs: object, name: str) -> int:
    return int(getattr(knobs, name))
