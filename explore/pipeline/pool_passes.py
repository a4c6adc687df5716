"""Passes of the ALU that combine the windows of a pool: how many instructions they are, and how
long they take.

Hardware has three nested loops, so a combination over more extents is several instructions, and the
tiles that one of them passes over are what it works on before it comes back to the first. A pass
that reads a sum begins no sooner than the pass before it has written it. Windows that overlap share
what they have in common.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, prod
from typing import NamedTuple

from ...compiler.operators.cost_model import Column
from ...compiler.operators.divisions import knob_columns
from ...compiler.operators.pool.knobs import Knobs
from ...compiler.operators.pool.overlapping_windows import fastest_steps
from ...compiler.operators.pool.pool import PoolForm
from ...compiler.operators.pool.pool_schedule import (
    accumulators,
    box,
    copies,
    is_clipped,
    is_row_by_row,
    shared_part,
)
from ...isa.config import Config

LOOPS = 3                   # that an instruction has
LATENCY = 17                # cycles from a step's slot to its write


def even_knobs(form: PoolForm, knobs: Knobs) -> Knobs:
    """Knobs as if all boxes had the same size."""
    _, *extents = form.output.shape[:4]
    sizes = (knobs.blocks, knobs.rows, knobs.columns)
    mean: dict[str, Column] = {name: extent / -(-extent // size) for name, extent, size in zip(
        ("blocks", "rows", "columns"), extents, sizes, strict=True)}
    return replace(knob_columns(Knobs, {**mean, "doubled": knobs.doubled}), window=knobs.window)


def write_latency(config: Config) -> int:
    """Cycles after which a pass may read what another one wrote."""
    return LATENCY + (config.vector_cycles if config.vector_cycles > 1 else 0)


class Combination(NamedTuple):
    """Cycles of the ALU and instructions, for a piece and for the end of a step."""

    piece: float
    piece_count: int
    end: float
    end_count: int


def combination_of(form: PoolForm, knobs: Knobs, whole: Knobs) -> Combination:
    """How windows are combined, one part of them after the other, in boxes of the same size that
    stand for the `whole` ones and the smaller last ones. The first element is copied. Operands that
    share a bank are read one after the other."""
    (height, width), config = knobs.window, form.config
    tiles = (knobs.blocks, knobs.rows, knobs.columns)
    pair = config.vector_cycles + float(shared_part(form, knobs))
    down, across = (parts_of(extent, size) for extent, size in zip(
        form.spec.kernel, knobs.window, strict=True))
    if form.columns is not None:
        passes = [_begin(form, whole, 0, (knobs.blocks, _seen_columns(form, knobs, whole)), pair),
                  *(_passes(config, (knobs.blocks, knobs.rows, box(form, knobs)[1]), (taps,), pair)
                    for taps in down[1:])] * len(across)
        ends = [_begin(form, replace(whole, window=form.spec.kernel), 1,
                       (knobs.blocks, knobs.rows), pair)]
    else:
        first = [_begin(form, whole, int(width > 1), tiles[:2] if width > 1 else tiles[::2], pair)
                 ] if min(height, width) == 1 else [
            _copy(config, tiles), _passes(config, tiles, (width - 1,), pair),
            _passes(config, tiles, (height - 1, width), pair)]
        passes = [*first, *(_passes(config, tiles, taps, pair)
                            for taps in list(product(down, across))[1:])]
        ends = []
    cycles, counts, end, end_counts = (sum(each) for some in (passes, ends) for each in (
        [cycles for cycles, _ in some], [count for _, count in some]))
    pieces = len(down) * len(across)
    return Combination(cycles / pieces, max(1, round(counts / pieces)), end, ceil(end_counts))


def _seen_columns(form: PoolForm, knobs: Knobs, whole: Knobs) -> Column:
    """Columns that are combined before rows are: without a border, if that is known."""
    if is_clipped(form, whole) and form.leaves_border_out(1):
        first, last = form.inside(1)
        return float(last - first + 1)
    return box(form, knobs)[1]


def _begin(form: PoolForm, knobs: Knobs, axis: int, others: tuple[Column, ...],
           pair: float) -> tuple[float, float]:
    """Cycles and instructions that combine the first part of windows along an axis, in the mean of
    all boxes. Windows of a box share what they have in common."""
    config, spec, taps = form.config, form.spec, knobs.window[axis]
    sizes = parts_of(form.output.shape[2 + axis], (knobs.rows, knobs.columns)[axis])
    inside = form.inside(axis) if is_clipped(form, knobs) and form.leaves_border_out(axis) else None
    vectors, cycles, count = prod(float(each) for each in others), 0.0, 0.0
    for size in sizes:
        if min(size, taps) == 1 or spec.stride[axis] % spec.dilation[axis]:
            passes = [_copy(config, (*others, size)),
                      _passes(config, (*others, size), (taps - 1,), pair)]
        else:
            passes = []
            for step in fastest_steps(size, taps, spec.stride[axis] // spec.dilation[axis], inside,
                                      max(1, round(vectors))):
                moving = [walk.extent for walk in step.loops if walk.result]
                still = [walk.extent for walk in step.loops if not walk.result]
                passes.append(_copy(config, (*others, *moving)) if step.source is None else
                              _passes(config, (*others, *moving), tuple(still), pair))
        cycles += sum(each for each, _ in passes)
        count += sum(each for _, each in passes)
    return cycles / len(sizes), count / len(sizes)


def _copy(config: Config, tiles: tuple[Column, ...]) -> tuple[float, float]:
    """Cycles and instructions of the first elements, which are copied."""
    return max(config.vector_cycles * prod(map(float, tiles)), write_latency(config)), 1.0


def parts_of(extent: int, size: int) -> list[int]:
    """The sizes of the parts that an extent is divided into: the last one may be smaller."""
    whole, rest = divmod(extent, size)
    return [size] * whole + [rest] * (rest > 0)


def _passes(config: Config, tiles: tuple[Column, ...], taps: tuple[int, ...],
            pair: float) -> tuple[float, float]:
    """Cycles and instructions of passes over tiles, for each of some taps."""
    if not prod(taps):
        return 0.0, 0.0
    loops = sorted([(float(size), False) for size in tiles if size > 1]
                   + [(float(size), True) for size in taps if size > 1])
    left_out, kept = loops[:max(0, len(loops) - LOOPS)], loops[max(0, len(loops) - LOOPS):]
    inside = prod(size for size, is_tap in kept if not is_tap)
    times = prod(taps) * float(prod(tiles)) / inside
    return times * max(inside * pair, write_latency(config)), float(ceil(
        prod(size for size, _ in left_out)))


def are_apart(form: PoolForm, knobs: Knobs) -> bool:
    """Whether the input lies in other banks than what it is combined with, as the compiler places
    them, so that loads need not wait for the ALU."""
    bank = form.config.acc_bank_tiles
    own, loaded = (float(each) for each in accumulators(form, knobs))
    columns = 0.0 if form.columns is None else knobs.blocks * knobs.rows * float(
        box(form, knobs)[1])
    taken = ceil(own / bank) + ceil(float(copies(form, knobs)) * loaded / bank)
    return taken <= form.config.acc_banks or bool(
        is_row_by_row(form, knobs) and columns >= bank)
