"""Cycles of a schedule by a recurrence over its steps: a load waits for a buffer that is free, GEMM
for its operands, the ALU for sums, and a store for results, as tokens make them wait.

The compiler's estimate, which ranks thousands of candidates at once, takes the slowest engine for
all steps instead. This is slower, and closer where engines wait for each other in turns: few steps,
few bursts in flight, long latency. What the hardware does besides is left to a cost model, which
learns the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.convolution.conv2d import Conv2dForm
from ..compiler.operators.cost_model import BURST, ROUND_TRIP, Column, Steps, record_steps
from ..compiler.operators.depthwise.depthwise import DepthwiseForm
from ..compiler.operators.elementwise.lanewise import LanewiseForm
from ..compiler.operators.form import TensorForm
from ..compiler.operators.pool.knobs import Knobs as PoolKnobs
from ..compiler.operators.pool.pool import PoolForm
from ..compiler.operators.pool.pool_schedule import (
    accumulators,
    alu_cycles,
    box,
    boxes,
    loaded_boxes,
)
from ..compiler.operators.sliding_window import Windowed
from ..isa.config import Config
from ..isa.instructions import INSTRUCTION_BYTES, PARAMETER_TILES, Buffer
from ..isa.memory_timing import MemoryTiming
from .points import LayerPoint

MOST_GROUPS, MOST_STEPS, MOST_PIECES = 4, 48, 24    # longer loops only repeat what is in these
RUN = 0.5                   # cycles that the bus loses between bursts
TOKEN = 6                   # cycles from the end of one engine's work to the begin of another's
GEMM_START, ALU_START = 4, 8        # cycles of an instruction before its first product or vector
BEGIN = 20                  # cycles before the first request
# Cycles in all, of the bus and of each engine; then those in all if memory were near, if nothing
# were loaded ahead, with half as many reads in flight, if the bus turned at once, and if GEMM and
# the ALU took turns.
PARTS = ("cycles", "bus", "load", "gemm", "alu", "store", "near", "serial", "crowded", "smooth",
         "turns")
PROGRAM = 3                 # instructions for a piece, and two for a step
FETCHED = 8                 # instructions of a burst


@dataclass(frozen=True)
class Loops:
    """A schedule for the recurrence: loops, and cycles that each engine takes."""

    groups: int
    steps: int                  # of a group
    pieces: int                 # of a step
    inp: float                  # cycles of a load of inputs, for a piece
    wgt: float
    out: float                  # of a store, for a step
    products: float             # of GEMM for a piece; 0 if it has nothing to do
    vectors: float              # of the ALU for a step
    inp_beats: float            # of the bus
    wgt_beats: float
    out_beats: float
    first: float                # after the first piece of a group: its parameters
    first_beats: float
    fresh: int                  # groups that load their inputs
    wgt_stays: bool
    wgt_ahead: bool             # those of the next group come while these are in use
    buffers: int                # of inputs
    sums: int                   # buffers of sums
    one_bank: bool              # of the accumulator

    @property
    def loads(self) -> tuple[int, int]:
        """How often inputs and weights are loaded."""
        piece = self.steps * self.pieces
        return self.fresh * piece, self.groups * (self.pieces if self.wgt_stays else piece)


def pipeline_of(point: LayerPoint) -> dict[str, float]:
    """Cycles of a point, roughly, those in which each engine and the bus are busy, and how many it
    would be otherwise: what they react to tells a cost model where the recurrence may err."""
    template, form, knobs = operator_of(point.layer).template, point.form, point.schedule.knobs
    with record_steps() as recorded:
        estimate = float(template.estimate(form, knobs, point.memory))
    steps = _merge_runs(form, knobs, recorded[0]) if recorded else _own_steps(form, knobs)
    if steps is None:
        return dict.fromkeys(PARTS, float("nan")) | {"cycles": estimate}
    config, memory, doubled = point.config, point.memory, bool(getattr(knobs, "doubled", True))
    loops = _loops(steps, config, memory, doubled=doubled)
    inputs, weights = loops.loads
    count = loops.groups * loops.steps
    read = inputs * loops.inp_beats + weights * loops.wgt_beats + (
        loops.groups * loops.first_beats
        + count * (2 + PROGRAM * loops.pieces) * INSTRUCTION_BYTES / config.bus_bytes)
    bus = _bus_cycles(read, count * loops.out_beats, memory)
    cycles = max(_run(loops, memory), bus + memory.read_latency)
    turns = count * (loops.pieces * loops.products + loops.vectors / config.vector_cycles)
    if config.acc_banks == 1:                   # GEMM and the ALU take turns to read it
        cycles = max(cycles, turns)
    return {"cycles": cycles, "bus": bus, "load": inputs * loops.inp + weights * loops.wgt,
            "gemm": count * loops.pieces * loops.products, "alu": count * loops.vectors,
            "store": count * loops.out,
            "near": _run(loops, replace(memory, read_latency=1, write_latency=1)),
            "serial": _run(replace(loops, buffers=1, sums=1), memory),
            "crowded": _run(_loops(steps, replace(config, reads_in_flight=max(
                1, config.reads_in_flight // 2)), memory, doubled=doubled), memory),
            "smooth": max(_run(loops, memory), _bus_cycles(
                read, count * loops.out_beats, replace(memory, turn=0))),
            "turns": turns}


def _run(loops: Loops, memory: MemoryTiming) -> float:
    """The recurrence, on loops that are cut where they only repeat themselves."""
    read, write = memory.read_latency + ROUND_TRIP, memory.write_latency + ROUND_TRIP
    groups, steps, pieces = (min(each, most) for each, most in (
        (loops.groups, MOST_GROUPS), (loops.steps, MOST_STEPS), (loops.pieces, MOST_PIECES)))
    data = float(read + BEGIN)
    consumed, sums, stored = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]      # the last two ends
    gemm = alu = store = 0.0
    ends = [data]
    for group in range(groups):
        if group and not loops.wgt_ahead:
            data = max(data, gemm + TOKEN + read)
        for step in range(steps):
            for piece in range(pieces):
                taken = loops.inp if group < loops.fresh else 0.0
                if step == 0 or not loops.wgt_stays:
                    taken += loops.wgt
                if taken:
                    data = max(data, consumed[-loops.buffers] + TOKEN + read) + taken
                gemm = max(gemm, data + TOKEN)
                if loops.products:
                    if piece == 0:
                        gemm = max(gemm, sums[-loops.sums] + TOKEN)
                    gemm += loops.products + GEMM_START
                    consumed = [consumed[1], gemm]
                if step == piece == 0:
                    # In the only bank, GEMM writes in every cycle and parameters wait for it.
                    data = (max(data, gemm) if loops.one_bank else data) + loops.first
            alu = max(alu, gemm + TOKEN, stored[0]) + loops.vectors + ALU_START
            sums = [sums[1], alu]
            if not loops.products:
                consumed = [consumed[1], alu]
            store = max(store, alu + TOKEN) + loops.out
            stored = [stored[1], store + write]
        ends.append(store)
    longer = loops.steps * loops.pieces / (steps * pieces)
    inside = ends[-1] - ends[0] + (loops.groups - groups) * (ends[-1] - ends[-2])
    return ends[0] + longer * inside + write + read


def _bus_cycles(loaded: float, stored: float, memory: MemoryTiming) -> float:
    """Cycles of beats in both directions. Where both wait for a shared bus, they take turns with
    every beat."""
    if not memory.shared:
        return max(loaded, stored) * memory.cycles_per_beat
    return (loaded + stored) * memory.cycles_per_beat + 2 * memory.turn * min(loaded, stored)


def _loops(steps: Steps, config: Config, memory: MemoryTiming, *, doubled: bool) -> Loops:
    """Steps as loops, with the cycles that transfers take."""
    read, write = memory.read_latency + ROUND_TRIP, memory.write_latency + ROUND_TRIP

    def transfer(size: float, runs: float, latency: int, in_flight: int,
                 fetched: float = 0.0) -> float:
        if not size:
            return 0.0
        bursts = max(runs, 1.0, size / config.bus_bytes / BURST)
        beats = _beats(size, runs, config) * memory.cycles_per_beat + RUN * bursts
        bursts += fetched / FETCHED
        return max(beats, (bursts * latency + beats) / in_flight)

    value = {name: float(np.max(each)) for name, each in vars(steps).items()}
    groups, inner, pieces = (max(1, round(value[name])) for name in ("groups", "steps", "pieces"))
    reads = min(config.reads_in_flight, memory.reads)
    return Loops(
        groups, inner, pieces, inp=transfer(value["inp"], value["runs"], read, reads,
                                       fetched=PROGRAM + 2 / pieces),
        wgt=transfer(value["wgt"], value["wgt_runs"], read, reads),
        out=transfer(value["out"], value["out_runs"], write,
                     min(config.writes_in_flight, memory.writes)),
        products=value["products"], vectors=value["vectors"] * config.vector_cycles,
        inp_beats=_beats(value["inp"], value["runs"], config),
        wgt_beats=_beats(value["wgt"], value["wgt_runs"], config),
        out_beats=_beats(value["out"], value["out_runs"], config),
        first=transfer(value["parameters"], 1, read, reads),
        first_beats=value["parameters"] / config.bus_bytes,
        fresh=min(groups, round(value["fresh"])) if value["inp_stays"] else groups,
        wgt_stays=bool(value["wgt_stays"]), wgt_ahead=bool(value["wgt_ahead"]),
        buffers=2 if doubled else 1,
        sums=1 if value["waits"] or not doubled else 2, one_bank=config.acc_banks == 1)


def _beats(size: float, runs: float, config: Config) -> float:
    """Beats of a transfer: a run takes whole ones."""
    count = max(runs, 1.0)
    return max(size / config.bus_bytes, min(count, size))


def _merge_runs(form: TensorForm, knobs: object, steps: Steps) -> Steps:
    """Steps with runs as they are in memory: blocks of channels that lie side by side in wider
    tiles are one run, which the compiler's estimate counts one by one."""
    if isinstance(form, Conv2dForm):
        _, outputs, inputs = form.extents
        together = 1 if _knob(knobs, "one_by_one") else _knob(knobs, "blocks")
        read = _blocks_in_a_run(form, "data", _knob(knobs, "depth"), inputs)
        written = _blocks_in_a_run(form, "output", together, outputs)
    elif isinstance(form, DepthwiseForm):
        blocks, config = _knob(knobs, "blocks"), form.config
        read, written = (min(_ways(form, name), blocks) for name in ("data", "output"))
        if config.inp_groups == 1 and blocks < _ways(form, "data"):
            # Channels that do not fill a tile of memory: those of the chip are loaded one by one.
            positions = steps.inp / (_ways(form, "data") * config.batch * config.depthwise_lanes)
            steps, read = replace(steps, runs=blocks * positions), 1
    else:
        return steps
    return replace(steps, runs=np.maximum(1, steps.runs / read),
                   out_runs=np.maximum(1, steps.out_runs / written))


def _image_shares(spec: Windowed, knobs: object, taps: tuple[int, int]) -> tuple[float, float]:
    """Of the rows and columns that all steps read, the share that is not padded."""
    sizes, before = (spec.height, spec.width), (spec.pad[0], spec.pad[2])
    shares = []
    for axis, name in enumerate(("rows", "columns")):
        out = spec.out_shape[axis]
        count = -(-out // max(1, min(out, _knob(knobs, name) or out)))
        tile = out / count
        reach = (tile - 1) * spec.stride[axis] + (
            (taps[axis] - 1) * spec.dilation[axis] + 1 if taps[axis] else spec.reach(axis))
        begins = [number * tile * spec.stride[axis] - before[axis] for number in range(count)]
        inside = sum(max(0.0, min(begin + reach, sizes[axis]) - max(begin, 0.0))
                     for begin in begins)
        shares.append(min(1.0, max(inside, 1.0) / (count * reach)))
    return shares[0], shares[1]


def _are_whole_tiles(form: TensorForm, name: str, moved: int, all_of_them: int) -> bool:
    """Whether blocks that are moved at once are whole tiles of memory."""
    ways = _ways(form, name)
    return moved >= ways and (moved % ways == 0 or moved == all_of_them)


def _blocks_in_a_run(form: TensorForm, name: str, moved: int, all_of_them: int) -> int:
    whole = _are_whole_tiles(form, name, moved, all_of_them)
    return min(_ways(form, name), moved) if whole else 1


def _ways(form: TensorForm, name: str) -> int:
    order = form.interleaves.get(name)
    return 1 if order is None else order.ways


def _own_steps(form: TensorForm, knobs: object) -> Steps | None:
    """Steps of layers whose estimate has none: those of the ALU alone."""
    tile = form.config.tile_bytes(Buffer.OUT)
    parameters = PARAMETER_TILES * form.config.tile_bytes(Buffer.ACC)
    if isinstance(form, LanewiseForm):
        tiles = form.output.shape[0]
        size = min(tiles, _knob(knobs, "tiles"))
        return Steps(groups=1, steps=-(-tiles // size), pieces=1, products=0, out_runs=1,
                     vectors=size * (len(form.steps) + 1), inp=len(form.wide) * size * tile,
                     runs=len(form.wide), wgt=0, out=size * tile,
                     parameters=(len(form.wide) + 1) * parameters)
    if isinstance(form, PoolForm) and isinstance(knobs, PoolKnobs):
        return _pool_steps(form, knobs)
    return None


def _pool_steps(form: PoolForm, knobs: PoolKnobs) -> Steps:
    """A step for each box of a pool's input. A window that is combined part by part has a box for
    each part, and its results go out once."""
    tile = form.config.tile_bytes(Buffer.OUT)
    (height, width), taken = box(form, knobs), _image_shares(form.spec, knobs, knobs.window)
    blocks, results = knobs.blocks, knobs.blocks * knobs.rows * knobs.columns
    ways = min(_ways(form, "data"), blocks)
    runs: Column = blocks / ways * max(1.0, 1 if width >= form.spec.width else taken[0] * height)
    out_runs = blocks / ways * knobs.rows
    if not _are_whole_tiles(form, "data", blocks, form.output.shape[1]):    # they move one by one
        runs, out_runs = blocks * height * width * taken[0] * taken[1], results
    parts = prod(-(-extent // size)
                 for extent, size in zip(form.spec.kernel, knobs.window, strict=True))
    count = boxes(form, knobs)
    fresh = loaded_boxes(form, knobs) / count       # rows that windows share are not loaded again
    return Steps(
        groups=1, pieces=1, products=0, steps=count, wgt=0,
        vectors=results * alu_cycles(form, knobs) / form.config.vector_cycles / parts,
        inp=fresh * accumulators(form, knobs)[1] * tile * taken[0] * taken[1], runs=fresh * runs,
        out=results * tile / parts, out_runs=out_runs / parts,
        parameters=PARAMETER_TILES * form.config.tile_bytes(Buffer.ACC))


def _knob(knobs: object, name: str) -> int:
    return int(getattr(knobs, name))
