"""Schedules of matrix products: the template, its knobs, and how to choose them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ....base.classes.dataclass import dataclass
from ....isa.instructions import PARAMETER_TILES, Buffer
from ....isa.memory_timing import MemoryTiming
from ...expression.expression import Axis
from ...expression.tensor import Tensor
from ...nest.nest import Scope
from ...schedule.schedule import Schedule, Stage
from ..cost_model import Column, Mask, Steps, all_of, staying_part
from ..divisions import grid, knob_columns, some_sizes
from ..form import Template, blocks_of
from ..kernel import Operator
from .dense import Dense, DenseForm, Layout, blocks_first, form_of
from .zero_points import Correction

SCRATCHPADS = (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
MOST_BLOCKS = 4             # where rows fill the accumulator
MOST_AHEAD = 4              # pieces of the side that passes by
MICRO_KERNELS = 16          # sequences of micro-ops to keep: three buffers, whole and rest


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once, in tiles, and what stays on the chip meanwhile."""

    rows: int
    blocks: int                 # of outputs
    depth: int                  # of inputs
    data_stays: bool = False    # data stay while weights pass by; otherwise weights stay
    resident: bool = False      # all parameters are loaded once
    doubled: bool = True        # two buffers each, so that engines overlap
    single_sums: bool = False   # but one for sums and results: more of them fit


def schedule(form: DenseForm, knobs: Knobs) -> Schedule:
    """The template: one side stays while the other passes by; sums over inputs that do not fit are
    made in steps, for which both sides pass by."""
    plan = Schedule(form.output)
    inside = plan.cache_write(form.output, form.result_scope)
    parameters = plan.cache_read(form.parameters, Scope.ACC, *_parameter_readers(form, inside))
    data = plan.cache_read(form.data, Scope.INP, *_readers(plan, form, knobs, form.data))
    weights = plan.cache_read(form.weights, Scope.WGT,
                              *_readers(plan, form, knobs, form.weights))
    own = [_own_caches(plan, form, knobs, each) for each in form.corrections]
    sums, inside, output = (plan.replacement_of(each) for each in (form.sums, inside, form.output))
    plan[sums].scope = Scope.ACC
    numbers = copies(form, knobs)

    def attach(tensor: Tensor, reader: Stage, axis: Axis, count: Column) -> None:
        plan[tensor].compute_at(reader, axis)
        if count > 1:
            plan[tensor].double_buffer(axis)

    last = plan[output]
    m, n, o, b, j = last.leaves
    if form.spec.layout == Layout.BLOCKS:
        n, o = o, n
    n_far, n_near = last.split(n, knobs.rows)
    o_far, o_near = last.split(o, knobs.blocks)
    outer = (n_far, o_far) if knobs.data_stays else (o_far, n_far)
    last.reorder(m, *outer, n_near, o_near, b, j)
    attach(inside, last, outer[1], numbers[Buffer.OUT])
    attach(sums, last, outer[1], numbers[Buffer.ACC])
    if not knobs.resident:
        attach(parameters, last, o_far, _parameter_copies(form, knobs))
    plan[inside].tensorize(plan[inside].leaves[-2], form.function.name)

    stage = plan[sums]
    m, n, o, b, j, c, k = stage.leaves
    c_far, c_near = stage.split(c, knobs.depth)
    stage.reorder(c_far, m, n, o, c_near, b, j, k)
    stage.tensorize(b, "gemm")
    if c_far.extent == 1:
        attach(data, last, n_far, numbers[Buffer.INP])
        attach(weights, last, o_far, numbers[Buffer.WGT])
    else:
        attach(data, stage, c_far, numbers[Buffer.INP])
        attach(weights, stage, c_far, numbers[Buffer.WGT])
        _keep_pieces(plan, form, knobs, data, weights)
    for correction, side in zip(form.corrections, own, strict=True):
        alone, result = (plan.replacement_of(each) for each in (correction.sums, correction.result))
        if correction.side is form.data:
            attach(alone, last, n_far, turns(form, knobs, Buffer.ACC))
            plan[result].compute_at(last, outer[1])
            plan[result].compute_in_place(sums)
        else:                   # used at once, or by the ALU alone: one buffer each
            plan[alone].compute_at(last, o_far)
            plan[result].compute_at(last, o_far)
        _correct(plan, correction, side, knobs)
    return plan


def _keep_pieces(plan: Schedule, form: DenseForm, knobs: Knobs, data: Tensor,
                 weights: Tensor) -> None:
    """Keep as much as fits of the pieces of the side that stays. If that is a part of them, loads
    of the other side run further ahead, to even that out."""
    sides = [(weights, Buffer.WGT), (data, Buffer.INP)]
    (staying, _), (passing, buffer) = reversed(sides) if knobs.data_stays else sides
    count, every = int(resident_pieces(form, knobs)), int(pieces(form, knobs)[2])
    plan[staying].keep(count, every)
    if plan[staying].period:
        plan.load_first(staying)       # data that wait for their buffers do not delay them
        plan[passing].keep(max(2, min(MOST_AHEAD, int(_room(form, knobs, buffer)))))


def _parameter_readers(form: DenseForm, inside: Tensor) -> list[Tensor]:
    """Who reads parameters: the subtraction that makes those of each matrix, or requantization."""
    return [each.result for each in form.corrections if each.side is form.weights] or [inside]


def _readers(plan: Schedule, form: DenseForm, knobs: Knobs, side: Tensor) -> list[Tensor]:
    """Who reads data or weights from one buffer: sums over one side alone do, if it comes whole."""
    whole = pieces(form, knobs)[2] == 1
    return [plan.replacement_of(form.sums),
            *(plan.replacement_of(each.sums) for each in form.corrections
                                              if whole and each.side is side)]


def _own_caches(plan: Schedule, form: DenseForm, knobs: Knobs,
                correction: Correction) -> Tensor | None:
    """Caches for the zero points of a correction, and for its side if no cache holds that whole."""
    scopes = (Scope.INP, Scope.WGT) if correction.side is form.data else (Scope.WGT, Scope.INP)
    plan.cache_read(correction.zeros, scopes[1], plan.replacement_of(correction.sums))
    if pieces(form, knobs)[2] == 1:
        return None
    return plan.cache_read(correction.side, scopes[0], plan.replacement_of(correction.sums))


def _correct(plan: Schedule, correction: Correction, side: Tensor | None, knobs: Knobs) -> None:
    """Schedule the sums over one side, and their subtraction by the ALU."""
    result, sums = (plan[plan.replacement_of(each)]
                    for each in (correction.result, correction.sums))
    result.scope = sums.scope = Scope.ACC
    result.tensorize(result.leaves[-2], "alu.sub")
    m, *others, b, j, c, k = sums.leaves
    far, near = sums.split(c, knobs.depth)
    sums.reorder(far, m, *others, near, b, j, k)
    sums.tensorize(b, "gemm")
    if side is not None:
        plan[side].compute_at(sums, far)


def pieces(form: DenseForm, knobs: Knobs) -> tuple[Column, Column, Column]:
    """Into how many parts rows, outputs and inputs are divided."""
    _, rows, outputs, depth = form.extents
    return -(-rows // knobs.rows), -(-outputs // knobs.blocks), -(-depth // knobs.depth)


def loads(form: DenseForm, knobs: Knobs) -> dict[Buffer, Column]:
    """How often each scratchpad is filled; ACC and OUT: with sums and results. What passes by
    comes again and again, unless two buffers hold all of it."""
    n, o, c = pieces(form, knobs)
    matrices, held = form.extents[0], 2 if knobs.doubled else 1
    whole, stays = c == 1, np.asarray(knobs.data_stays, bool)
    data_once = (n * c <= held) | (whole & stays)
    weights_once = (o * c <= held) | (whole & ~stays)
    return {Buffer.INP: matrices * n * c * np.where(data_once, 1, o),
            Buffer.WGT: matrices * o * c * np.where(weights_once, 1, n),
            Buffer.ACC: matrices * n * o, Buffer.OUT: matrices * n * o}


def turns(form: DenseForm, knobs: Knobs, buffer: Buffer) -> Column:
    """How many buffers take turns: two where there is something to load next."""
    return np.where(knobs.doubled & (loads(form, knobs)[buffer] > 1), 2, 1)


def _parameter_copies(form: DenseForm, knobs: Knobs) -> Column:
    """The same for parameters: one where few sums fit, unless each step has others."""
    few = (pieces(form, knobs)[0] > 1) & np.logical_and(
        knobs.single_sums, np.logical_not(knobs.data_stays))
    return np.where(few, 1, turns(form, knobs, Buffer.ACC))


def copies(form: DenseForm, knobs: Knobs) -> dict[Buffer, Column]:
    """The same for data, weights, sums and results. With one buffer for sums, GEMM waits until the
    ALU has taken them."""
    one = np.asarray(knobs.single_sums, bool)
    return {buffer: turns(form, knobs, buffer) if buffer in (Buffer.INP, Buffer.WGT)
            else np.where(one, 1, turns(form, knobs, buffer)) for buffer in SCRATCHPADS}


def resident_pieces(form: DenseForm, knobs: Knobs) -> Column:
    """How many pieces of the side that stays are on the chip: as many of those of a sum as fit,
    where sums fill the accumulator and the MAC array would wait for loads even so."""
    least, (n, o, every), sizes = copies(form, knobs), pieces(form, knobs), tiles(form, knobs)
    config, stays = form.config, np.asarray(knobs.data_stays, bool)
    data, weights = (sizes[each] * config.tile_bytes(each) for each in (Buffer.INP, Buffer.WGT))
    waits = np.asarray(knobs.single_sums, bool) & (np.where(stays, o, n) > 1) & (
        data + weights > knobs.rows * knobs.blocks * knobs.depth * config.bus_bytes)
    data, weights = (np.where(waits, np.maximum(least[buffer], np.minimum(
        _room(form, knobs, buffer), every)), least[buffer]) for buffer in (Buffer.INP, Buffer.WGT))
    return np.where(stays, data, weights)


def _room(form: DenseForm, knobs: Knobs, buffer: Buffer) -> Column:
    """For how many pieces of a side there is room, if there is nothing else."""
    return 0 if form.corrections else form.config.tiles(buffer) // tiles(form, knobs)[buffer]


def tiles(form: DenseForm, knobs: Knobs) -> dict[Buffer, Column]:
    """Tiles of one buffer in each scratchpad; of ACC the sums alone."""
    return {Buffer.INP: knobs.rows * knobs.depth, Buffer.WGT: knobs.blocks * knobs.depth,
            Buffer.ACC: knobs.rows * knobs.blocks, Buffer.OUT: knobs.rows * knobs.blocks}


def largest(form: DenseForm) -> Knobs:
    _, rows, outputs, depth = form.extents
    return Knobs(rows=rows, blocks=outputs, depth=depth)


def grids(form: DenseForm) -> Iterator[Knobs]:
    """Double buffers are given up only if nothing fits with them."""
    _, rows, outputs, depth = form.extents
    for doubled in (True, False):
        yield replace(grid(Knobs, rows=_row_sizes(form, rows), blocks=some_sizes(outputs),
                           depth=some_sizes(depth), data_stays=[False, True],
                           resident=[True, False], single_sums=[False, True][:1 + doubled]),
                      doubled=doubled)


def _row_sizes(form: DenseForm, rows: int) -> list[int]:
    """Some sizes, and where few rows fit, the most whose sums fill the accumulator together with
    so many blocks."""
    sums = [form.config.tiles(Buffer.ACC) // blocks - PARAMETER_TILES
            for blocks in range(1, MOST_BLOCKS + 1)]
    most = [blocks_of(rows, blocks_of(rows, size)) for size in sums if 0 < size < rows]
    return sorted({*some_sizes(rows), *most}, reverse=True)


def fits(form: DenseForm, knobs: Knobs) -> Mask:
    """Whether all buffers find room, and micro-ops stay in their scratchpad unless it is smaller
    than any sum. Parameters are resident only where they would be loaded again. Sums have one
    buffer only where two do not fit."""
    config, whole, sizes = form.config, pieces(form, knobs)[2] == 1, tiles(form, knobs)
    numbers, both = copies(form, knobs), turns(form, knobs, Buffer.ACC)
    need = {buffer: sizes[buffer] * numbers[buffer] for buffer in SCRATCHPADS}
    need[Buffer.ACC] = need[Buffer.ACC] + PARAMETER_TILES * np.where(
        knobs.resident, form.extents[2], knobs.blocks * _parameter_copies(form, knobs))
    for each in form.corrections:
        own, other = ((Buffer.INP, Buffer.WGT) if each.side is form.data
                      else (Buffer.WGT, Buffer.INP))
        size = knobs.rows if each.side is form.data else knobs.blocks
        need[own] = need[own] + np.where(whole, 0, size * knobs.depth)
        need[other] = need[other] + each.zeros.shape[0]
        need[Buffer.ACC] = need[Buffer.ACC] + (
            size * both if each.side is form.data else 2 * PARAMETER_TILES * size)
    if form.result_buffer == Buffer.ACC:
        need[Buffer.ACC] = need[Buffer.ACC] + need.pop(Buffer.OUT)
    again = (form.extents[2] > knobs.blocks) & (
        np.asarray(knobs.data_stays, bool) | (form.extents[0] > 1))
    least = both * sizes[Buffer.ACC]
    large = (least > config.tiles(Buffer.ACC)) | (least > config.tiles(Buffer.OUT))
    return all_of((*(count <= config.tiles(buffer) for buffer, count in need.items()),
                   np.logical_not(knobs.single_sums) | (large & (both > 1)),
                   knobs.depth <= max(1, config.tiles(Buffer.UOP) // MICRO_KERNELS),
                   np.logical_not(knobs.resident) | again))


def estimate(form: DenseForm, knobs: Knobs, memory: MemoryTiming) -> Column:
    """Cycles, roughly, as if all parts of an extent had the same size. The side that stays is what
    weights are to a convolution; without double buffers, nothing overlaps."""
    config, (matrices, rows, outputs, depth) = form.config, form.extents
    n, o, c = pieces(form, knobs)
    even = knob_columns(Knobs, vars(knobs) | {"rows": rows / n, "blocks": outputs / o,
                                              "depth": depth / c})
    size = {buffer: count * config.tile_bytes(buffer)
            for buffer, count in tiles(form, even).items()}
    stays = np.asarray(knobs.data_stays, bool)
    runs = {Buffer.INP: np.where(c > 1, even.rows, 1), Buffer.WGT: np.where(c > 1, even.blocks, 1)}
    out_runs = np.where(o > 1, even.rows, 1)
    if form.asked is not None:
        runs[Buffer.INP], out_runs = (np.where(n > 1, each, 1)
                                      for each in (even.depth, even.blocks))
    (passing, passing_runs), (staying, staying_runs) = (
        [np.where(stays, table[Buffer.WGT], table[Buffer.INP]) for table in (size, runs)],
        [np.where(stays, table[Buffer.INP], table[Buffer.WGT]) for table in (size, runs)])
    parameters = PARAMETER_TILES * config.tile_bytes(Buffer.ACC) * even.blocks
    kept = resident_pieces(form, knobs)
    again = np.where(knobs.resident, 0, np.where(stays, parameters, 0))     # with each step
    steps = Steps(
        groups=matrices * np.where(stays, n, o), steps=np.where(stays, o, n), pieces=c,
        products=even.rows * even.blocks * even.depth,
        vectors=even.rows * even.blocks * (2 if form.spec.zeros_weights else 1),
        inp=passing + again / c, runs=passing_runs, wgt=staying,
        wgt_runs=staying_runs, wgt_stays=(c == 1) | (kept >= np.maximum(c, 3)),
        wgt_kept=staying_part(kept, c), wgt_with=kept > 2,
        inp_stays=(np.where(stays, o, n) * c <= 2) & (stays | (matrices == 1)), fresh=matrices,
        out=form.result_bytes * size[Buffer.OUT], out_runs=out_runs,
        parameters=np.where(knobs.resident, o, 1) * parameters,
        waits=np.asarray(knobs.single_sums, bool)).cycles(config, memory)
    if knobs.doubled:
        return steps
    size[Buffer.OUT] *= form.result_bytes
    moved = sum(times * size[buffer] for buffer, times in loads(form, knobs).items()
                if buffer != Buffer.ACC)
    return steps + moved * memory.cycles_per_beat / config.bus_bytes


TEMPLATE = Template(knobs=Knobs, largest=largest, grids=grids, fits=fits, estimate=estimate,
                    schedule=schedule)
OPERATOR = Operator(description=Dense, forms=lambda spec, config: [form_of(spec, config)],
                    template=TEMPLATE, alone=blocks_first)
