"""Passes of the ALU that combine the windows of a pool: how many instructions they are, and how
long they take.

Hardware has three nested loops, so a combination over more extents is several instructions, and the
tiles that one of them passes over are what it works on before it comes back to the first. A pass
that reads a sum begins no sooner than the pass before it has written it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, prod
from typing import NamedTuple

from ...compiler.operators.cost_model import Column
from ...compiler.operators.divisions import knob_columns
from ...compiler.operators.pool.knobs import Knobs
from ...compiler.operators.pool.pool import PoolForm
from ...compiler.operators.pool.pool_schedule import (
    accumulators,
    box,
    copies,
    is_row_by_row,
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


def combination_of(form: PoolForm, knobs: Knobs) -> Combination:
    """How windows are combined, one part of them after the other. The first element is copied."""
    (height, width), config = knobs.window, form.config
    tiles = (knobs.blocks, knobs.rows, knobs.columns)
    pair = config.vector_cycles + (0 if are_apart(form, knobs) else 1)
    copied = max(config.vector_cycles * float(prod(tiles)), write_latency(config)), 1
    down, across = (parts_of(extent, size) for extent, size in zip(
        form.spec.kernel, knobs.window, strict=True))
    if form.columns is not None:
        columns = (knobs.blocks, knobs.rows, box(form, knobs)[1])
        first = config.vector_cycles * float(prod(columns)), 1
        passes = [first, *(_passes(config, columns, (taps,), pair)
                           for taps in (height - 1, *down[1:]))] * len(across)
        apart = are_apart(form, knobs, columns_too=True)
        ends = [copied, _passes(config, tiles, (form.spec.kernel[1] - 1,),
                                config.vector_cycles + (0 if apart else 1))]
    else:
        passes = [copied, _passes(config, tiles, (width - 1,), pair),
                  _passes(config, tiles, (height - 1, width), pair),
                  *(_passes(config, tiles, taps, pair)
                    for taps in list(product(down, across))[1:])]
        ends = []
    cycles, counts, end, end_counts = (sum(each) for some in (passes, ends) for each in (
        [cycles for cycles, _ in some], [count for _, count in some]))
    pieces = len(down) * len(across)
    return Combination(cycles / pieces, max(1, round(counts / pieces)), end, int(end_counts))


def parts_of(extent: int, size: int) -> list[int]:
    """The sizes of the parts that an extent is divided into: the last one may be smaller."""
    whole, rest = divmod(extent, size)
    return [size] * whole + [rest] * (rest > 0)


def _passes(config: Config, tiles: tuple[Column, ...], taps: tuple[int, ...],
            pair: int) -> tuple[float, int]:
    """Cycles and instructions of passes over tiles, for each of some taps."""
    if not prod(taps):
        return 0.0, 0
    loops = sorted([(float(size), False) for size in tiles if size > 1]
                   + [(float(size), True) for size in taps if size > 1])
    left_out, kept = loops[:max(0, len(loops) - LOOPS)], loops[max(0, len(loops) - LOOPS):]
    inside = prod(size for size, is_tap in kept if not is_tap)
    times = prod(taps) * float(prod(tiles)) / inside
    return times * max(inside * pair, write_latency(config)), ceil(
        prod(size for size, _ in left_out))


def are_apart(form: PoolForm, knobs: Knobs, *, columns_too: bool = False) -> bool:
    """Whether the input lies in other banks than what it is combined with, as the compiler places
    them, and combined columns in others than results: the ALU reads two operands in one cycle, and
    a bank gives one."""
    bank = form.config.acc_bank_tiles
    own, loaded = (float(each) for each in accumulators(form, knobs))
    columns = 0.0 if form.columns is None else knobs.blocks * knobs.rows * float(
        box(form, knobs)[1])
    sums = ceil((own - columns) / bank) + ceil(columns / bank) if columns_too else ceil(own / bank)
    taken = sums + ceil(float(copies(form, knobs)) * loaded / bank)
    return taken <= form.config.acc_banks or bool(
        is_row_by_row(form, knobs) and columns >= bank)
