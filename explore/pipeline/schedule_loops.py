"""The loops of a point's schedule, with what each step takes of the bus and of each engine."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from ...compiler.operators.convolution import conv2d_schedule
from ...compiler.operators.convolution.conv2d import Conv2dForm
from ...compiler.operators.convolution.conv2d_schedule import Knobs as Conv2dKnobs
from ...compiler.operators.cost_model import BURST, Steps
from ...compiler.operators.dense.dense_schedule import Knobs as DenseKnobs
from ...compiler.operators.depthwise import depthwise_schedule
from ...compiler.operators.depthwise.depthwise import DepthwiseForm
from ...compiler.operators.depthwise.depthwise_schedule import Knobs as DepthwiseKnobs
from ...compiler.operators.depthwise.rows_once import is_row_by_row, row_buffers
from ...compiler.operators.elementwise.lanewise import LanewiseForm
from ...compiler.operators.form import TensorForm, blocks_of
from ...compiler.operators.pool.knobs import Knobs as PoolKnobs
from ...compiler.operators.pool.pool import PoolForm
from ...compiler.operators.pool.pool_schedule import box
from ...isa.config import Config
from ...isa.instructions import INSTRUCTION_BYTES, PARAMETER_TILES, Buffer, MicroOp
from .pool_passes import are_apart, combination_of, even_knobs, write_latency
from .recorded_steps import are_whole_tiles, image_shares, knob_of
from .step_records import IN_A_BURST, Loops

SEQUENCES = 4               # of micro-ops that their scratchpad has room for, at least
MOST_PARTS = 16
MOST_QUEUED = 32            # instructions; more make no difference


@dataclass
class Facts:
    """What is collected for `Loops`: fields with the same names mean the same."""

    steps: dict[str, float]     # as they were recorded
    vectors: float
    parts: int
    sum_vectors: float = 0.0
    sum_alus: int = 0
    alus: int = 1
    stores: int = 1
    gemms: int = 1
    clears: float = 0.0
    load_vectors: float = 0.0
    piece_alus: int = 1
    load_blocked: float = 0.0
    blocked: float = 0.0
    single: bool = False
    single_results: bool = False
    late: float = 0.0
    piece_vectors: float = 0.0
    inp_rate: float = 1.0
    fill: float = 0.0
    inp_loads: int = 1
    share: float = 0.0
    par_copies: int = 2
    par_once: bool = False
    par_every: bool = False
    uops: float = 0.0
    src_copies: int = 2
    wgt_copies: int = 2
    rows: int = 0
    rows_step: int = 0


def loops_of(form: TensorForm, knobs: object, recorded: Steps) -> Loops:
    """The loops of a schedule whose steps have been recorded."""
    config = form.config
    steps = {name: float(np.max(each)) for name, each in vars(recorded).items()}
    parts = max(1, round(steps["parts"]))
    facts = Facts(steps, steps["vectors"] * config.vector_cycles,
                  parts if parts <= MOST_PARTS else 1)
    if isinstance(form, LanewiseForm):
        _add_lanewise(facts, form, knobs)
    elif isinstance(form, PoolForm) and isinstance(knobs, PoolKnobs):
        _add_pool(facts, form, knobs)
    else:
        _add_products(facts, form, knobs)
    return _loops(facts, config, doubled=bool(getattr(knobs, "doubled", True)))


def _add_lanewise(facts: Facts, form: LanewiseForm, knobs: object) -> None:
    """Passes, each an instruction: those of one operand follow its load, the others come last. Two
    operands in one bank take a cycle more, and a pass begins no sooner than what it reads has been
    written; loads into the bank that a pass writes wait for it."""
    config, wide, count = form.config, len(form.wide), len(form.steps) + 1
    size = form.output.shape[0] / facts.steps["steps"]
    scaled = count > wide + 1                   # each operand apart
    buffers = 2 if knob_of(knobs, "doubled") else 1
    begin = PARAMETER_TILES * form.parameters.shape[0]
    places = [begin + size * (each * (buffers + scaled) + buffers * scaled)
              for each in range(wide)]          # of what is combined
    apart = (buffers + scaled) * size / config.acc_bank_tiles
    together = 1.0 if config.acc_banks == 1 else max(0.0, 1 - apart)
    plain, both = config.vector_cycles * size, (config.vector_cycles + together) * size
    latency = write_latency(config)
    facts.inp_loads, facts.inp_rate = wide, 0.0
    if scaled:
        facts.load_vectors = plain + PARAMETER_TILES
        count -= wide
        facts.sum_vectors = max(0.0, latency - plain)
        facts.load_blocked = size / facts.load_vectors * float(np.mean([_share_of_banks(
            config, size, begin, place) for place in places]))
    # The first of them reads both; the last waits for STORE, and nothing else for it.
    first = both if wide > 1 else plain
    if count > 1:
        facts.sum_vectors += max(first, latency) + (count - 2) * max(plain, latency)
        facts.sum_alus, first = count - 1, plain
    facts.vectors = first + PARAMETER_TILES
    if config.acc_banks == 1:
        facts.blocked = size / max(both, latency)
    facts.late = 1 - (both if wide > 1 else plain) / (facts.sum_vectors + facts.vectors)


def _share_of_banks(config: Config, size: float, one: float, other: float) -> float:
    """The share of tiles of two buffers that lie in the same bank, tile by tile."""
    offsets = np.arange(max(1, round(size)))
    return float(np.mean((one + offsets) // config.acc_bank_tiles
                         == (other + offsets) // config.acc_bank_tiles))


def _add_pool(facts: Facts, form: PoolForm, knobs: PoolKnobs) -> None:
    """Each piece is combined by itself, and the end of all of them is for the step."""
    config, even = form.config, even_knobs(form, knobs)
    results = float(even.blocks * even.rows * even.columns)
    passes = combination_of(form, even, knobs)
    facts.piece_vectors, facts.piece_alus = passes.piece, passes.piece_count
    scaled = max(results * (config.vector_cycles + 1), write_latency(config))
    positions = knobs.rows * knobs.columns
    parts = 1 if positions == 1 else ceil(
        knobs.blocks / _blocks_a_store(form, knobs.blocks, form.output.shape[1]))
    facts.sum_vectors = passes.end + scaled * len(form.steps)
    facts.sum_alus = passes.end_count + len(form.steps)
    facts.vectors, facts.alus = config.vector_cycles * results + PARAMETER_TILES * parts, parts
    if not are_apart(form, knobs):
        facts.blocked = facts.load_blocked = min(1.0, results * prod(knobs.window)
                                                 / max(1.0, passes.piece))
    facts.single_results = not knobs.doubled
    images, blocks = form.output.shape[:2]
    if form.factors is not None:
        # Those of a position have one buffer, and come before the input.
        facts.single = facts.steps["pieces"] * images * blocks_of(blocks, knobs.blocks) == 1
    height, width = box(form, even)
    rows, columns = image_shares(form.spec, knobs, knobs.window)
    tile = config.tile_bytes(Buffer.OUT)
    loaded = facts.steps["inp"] / max(1.0, even.blocks * float(height * width) * tile)
    facts.fill = even.blocks * float(height * width) * min(
        1.0, loaded / (rows * columns)) * (1 - rows * columns)
    # Blocks that are parts of tiles move one by one, unless rows and columns are one run.
    is_a_run = width >= form.spec.width and form.spec.border(1) == 0
    if not is_a_run and not are_whole_tiles(form, "data", knobs.blocks, form.output.shape[1]):
        facts.inp_loads = knobs.blocks
    if knobs.rows > 1 and 1 < knobs.columns < form.output.shape[3] and not are_whole_tiles(
            form, "output", knobs.blocks, form.output.shape[1]):
        facts.stores = knobs.blocks
    facts.inp_rate = 0.0


def _blocks_a_store(form: TensorForm, blocks: int, every: int) -> int:
    """Blocks that are written by one instruction where they are parts of wider tiles of memory."""
    order = form.interleaves.get("output")
    if order is None or "parameters" in form.interleaves or not are_whole_tiles(
            form, "output", blocks, every):
        return max(1, blocks)
    return min(order.ways, blocks)


def _add_products(facts: Facts, form: TensorForm, knobs: object) -> None:
    """Layers with products of tiles."""
    config, steps = form.config, facts.steps
    blocks = int(getattr(knobs, "blocks", 1)) * int(getattr(knobs, "groups", 1))
    if facts.parts == 1:
        _count_instructions(facts, form, knobs)
    facts.vectors += PARAMETER_TILES * blocks           # they are fetched for each block
    room = max(1, config.tiles(Buffer.UOP) // SEQUENCES)
    if isinstance(form, Conv2dForm) and isinstance(knobs, Conv2dKnobs):
        taps = knobs.taps(form.spec.kernel)
        rows, columns = image_shares(form.spec, knobs, taps)
        facts.fill = steps["inp"] / config.tile_bytes(Buffer.INP) * (
            1 / max(rows * columns, 1e-3) - 1)
        facts.uops = min(knobs.depth * taps[0] * taps[1], room)
        facts.src_copies = int(conv2d_schedule.resident_inputs(form, knobs))
        if form.extents[0] == 1 and facts.src_copies >= steps["steps"] * steps["pieces"]:
            steps["inp_stays"] = 1.0            # also where weights do not
        facts.wgt_copies = int(conv2d_schedule.resident_weights(form, knobs))
    elif isinstance(form, DepthwiseForm) and isinstance(knobs, DepthwiseKnobs):
        _add_depthwise(facts, form, knobs)
    elif isinstance(knobs, DenseKnobs):
        facts.uops = min(knobs.depth, room)
        _add_dense(facts, knobs)
    if config.acc_banks == 1 and steps["products"] > 0:
        # GEMM does not read a sum that it begins, and the ALU need not read in every cycle.
        reads = steps["products"] * steps["pieces"] / max(steps["vectors"], 1)
        facts.share = max(0.0, 1 - config.vector_cycles / max(reads, 1))


def _count_instructions(facts: Facts, form: TensorForm, knobs: object) -> None:
    """Of the ALU, for each group of blocks that share a tile of memory, and of STORE, for each
    block that does not lie in whole tiles."""
    facts.single_results = bool(getattr(knobs, "single_sums", False))
    if not isinstance(form, (Conv2dForm, DepthwiseForm)) or not isinstance(
            knobs, (Conv2dKnobs, DepthwiseKnobs)):
        return
    every = form.output.shape[1]
    order = form.interleaves.get("output")
    if order is None or knobs.blocks == 1:
        return
    if are_whole_tiles(form, "output", knobs.blocks, every):
        facts.alus = -(-knobs.blocks // _blocks_a_store(form, knobs.blocks, every))
    elif 1 < knobs.columns < form.output.shape[-3] and knobs.rows > 1:
        facts.stores = knobs.blocks


def _add_depthwise(facts: Facts, form: DepthwiseForm, knobs: DepthwiseKnobs) -> None:
    """The estimate spreads what groups of channels load over all steps."""
    steps, groups = facts.steps, blocks_of(form.output.shape[1], knobs.blocks)
    chunks, config = form.chunks, form.config
    facts.uops = 1 if chunks.slide is not None else min(
        prod(chunks.taps) * chunks.planes, max(1, config.tiles(Buffer.UOP) // SEQUENCES))
    if is_row_by_row(form, knobs.rows):
        facts.rows, facts.rows_step = row_buffers(form), form.spec.stride[0]
        facts.uops = max(1, facts.uops // chunks.taps[0])
        facts.gemms, facts.inp_loads = chunks.taps[0], max(
            1, round(form.spec.height / form.spec.out_height))
        # The estimate counts these instructions among what is stored; here they are fetched.
        steps["out"] -= INSTRUCTION_BYTES * (form.spec.kernel[0] + form.spec.stride[0] - 2)
    order = form.interleaves.get("data")
    if order is not None and 1 < order.ways < knobs.blocks:
        groups_of_ways = -(-knobs.blocks // order.ways)
        if knobs.blocks % order.ways:
            # Sums of the last tile are begun apart, so the ALU clears all of them before.
            facts.clears = config.vector_cycles * prod(chunks.sums(
                form.spec.stride, knobs.rows, knobs.columns)) * knobs.blocks
            facts.gemms *= 2
        elif min(knobs.rows, knobs.columns) > 1 and "parameters" not in form.interleaves:
            facts.gemms *= min(order.ways, groups_of_ways)
    facts.par_copies = max(1, min(depthwise_schedule.FAR_AHEAD, int(
        depthwise_schedule.resident_parameters(form, knobs))))
    if steps["steps"] % groups == 0:
        inner = steps["steps"] / groups
        steps |= {"groups": groups, "steps": inner, "fresh": groups, "wgt": steps["wgt"] * inner,
                  "wgt_stays": 1.0, "wgt_ahead": 1.0,
                  "out": steps["out"] - steps["parameters"] / inner}


def _add_dense(facts: Facts, knobs: DenseKnobs) -> None:
    """Parameters of all outputs are loaded once if they stay, or are all that there are."""
    steps, stays = facts.steps, knobs.data_stays
    if steps["pieces"] <= 2 and knobs.doubled:
        steps["wgt_stays"] = 1.0
    if stays and not knobs.resident:        # the estimate counts them among what passes by
        steps["inp"] -= steps["parameters"] / steps["pieces"]
    facts.par_once = knobs.resident or steps["steps" if stays else "groups"] == 1
    facts.par_every = stays and not facts.par_once


def _loops(facts: Facts, config: Config, *, doubled: bool) -> Loops:
    steps = facts.steps
    bus, out, acc, inp = config.bus_bytes, *(
        config.tile_bytes(each) for each in (Buffer.OUT, Buffer.ACC, Buffer.INP))
    inp_bursts, inp_beats = _bursts(steps["inp"], steps["runs"], min(inp, out), bus)
    wgt_bursts, wgt_beats = _bursts(steps["wgt"], steps["wgt_runs"], bus, bus)
    par_bursts, par_beats = _bursts(steps["parameters"], 1, bus, bus)
    out_bursts, out_beats = _bursts(steps["out"], steps["out_runs"], out, bus)
    groups, inner, pieces = (max(1, round(steps[name])) for name in ("groups", "steps", "pieces"))
    return Loops(
        groups=groups, steps=inner, pieces=pieces, parts=facts.parts,
        fresh=min(groups, round(steps["fresh"])) if steps["inp_stays"] else groups,
        inp_loads=facts.inp_loads, inp_bursts=inp_bursts, inp_beats=inp_beats,
        inp_rate=facts.inp_rate or _tiles_in_a_beat(steps["inp"] / out, inp_bursts * inp_beats),
        fill=facts.fill, wgt_bursts=wgt_bursts, wgt_beats=wgt_beats,
        wgt_stays=bool(steps["wgt_stays"]), wgt_ahead=bool(steps["wgt_ahead"]),
        par_bursts=par_bursts, par_beats=par_beats, par_rate=max(1.0, bus / acc),
        par_copies=facts.par_copies, par_once=facts.par_once, par_every=facts.par_every,
        par_blocked=float(config.acc_banks == 1 and steps["products"] > 0),
        out_bursts=out_bursts, out_beats=out_beats, products=steps["products"],
        vectors=facts.vectors, piece_vectors=facts.piece_vectors,
        sum_vectors=facts.sum_vectors, sum_alus=facts.sum_alus, alus=facts.alus,
        stores=facts.stores, gemms=facts.gemms, clears=facts.clears,
        load_vectors=facts.load_vectors, piece_alus=facts.piece_alus, late=facts.late,
        share=facts.share, load_blocked=facts.load_blocked,
        blocked=facts.blocked, buffers=2 if doubled and not facts.single else 1,
        sums=1 if steps["waits"] or not doubled else 2,
        results=1 if facts.single_results else 2, uops=float(facts.uops),
        uop_room=float(config.tiles(Buffer.UOP)), src_copies=max(1, facts.src_copies),
        wgt_copies=max(1, facts.wgt_copies),
        uop_beats=max(1.0, facts.uops * MicroOp.size / bus),
        code_beats=max(1.0, IN_A_BURST * INSTRUCTION_BYTES / bus),
        queue=min(config.queue_depth, MOST_QUEUED), rows=facts.rows, rows_step=facts.rows_step)


def _tiles_in_a_beat(tiles: float, beats: float) -> float:
    """Of those that are widened on their way to the accumulator, one is written in a cycle."""
    return max(1.0, tiles / beats) if beats else 1.0


def _bursts(size: float, runs: float, tile: int, bus: int) -> tuple[float, float]:
    """Bursts of a transfer, and beats of each. A run takes whole beats, and bursts end at multiples
    of 64 of them: where it begins is known if its size divides these, or they divide it."""
    if size <= 0:
        return 0.0, 0.0
    count = max(runs, 1.0)
    run, grid = size / count, BURST * bus
    beats = run / bus
    if run < bus or abs(beats - round(beats)) > 1e-6:
        beats = max(1.0, (run + bus - min(tile, bus)) / bus)
    if count <= 1:
        bursts = float(max(1, ceil(beats / BURST)))
    elif run <= grid and grid % run == 0:
        bursts = count
    elif run > grid and run % grid == 0:
        bursts = count * run / grid
    else:
        bursts = count * (1 + (beats - 1) / BURST)
    return bursts, count * beats / bursts
