"""The loops of a point's schedule, with what each step takes of the bus and of each engine."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from ...compiler.operators.convolution import conv2d_schedule
from ...compiler.operators.convolution.conv2d import Conv2dForm
from ...compiler.operators.convolution.conv2d_schedule import Knobs as Conv2dKnobs
from ...compiler.operators.cost_model import BURST, Steps
from ...compiler.operators.dense.dense_schedule import Knobs as DenseKnobs
from ...compiler.operators.depthwise import depthwise_schedule
from ...compiler.operators.depthwise.depthwise import DepthwiseForm
from ...compiler.operators.depthwise.depthwise_schedule import Knobs as DepthwiseKnobs
from ...compiler.operators.elementwise.lanewise import LanewiseForm
from ...compiler.operators.form import TensorForm, blocks_of
from ...compiler.operators.pool.knobs import Knobs as PoolKnobs
from ...compiler.operators.pool.pool import PoolForm
from ...compiler.operators.pool.pool_schedule import box
from ...isa.config import Config
from ...isa.instructions import INSTRUCTION_BYTES, PARAMETER_TILES, Buffer, MicroOp
from .recorded_steps import image_shares, knob_of
from .step_engines import ALU_LATENCY, IN_A_BURST, Loops

SEQUENCES = 4               # of micro-ops that their scratchpad has room for, at least
MOST_PARTS = 16
MOST_QUEUED = 32            # instructions; more make no difference


@dataclass
class Facts:
    """What is collected for `Loops`: fields with the same names mean the same."""

    steps: dict[str, float]     # as they were recorded
    vectors: float
    parts: int
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
    """Passes wait for one another; two operands in one bank take a cycle more. Inputs have been
    read when half of them are done."""
    config, wide, passes = form.config, len(form.wide), len(form.steps) + 1
    size = min(form.output.shape[0], knob_of(knobs, "tiles"))
    apart = (2 if knob_of(knobs, "doubled") else 1) * size / config.acc_bank_tiles
    together = 1.0 if config.acc_banks == 1 else max(0.0, 1 - apart)
    plain, both = config.vector_cycles * size, (config.vector_cycles + together) * size
    facts.vectors = ((passes - wide + 1) * max(plain, ALU_LATENCY)
                     + (wide - 1) * max(both, ALU_LATENCY) + PARAMETER_TILES * passes)
    facts.late, facts.inp_loads, facts.inp_rate = 0.5, wide, _tiles_in_a_beat(config)


def _add_pool(facts: Facts, form: PoolForm, knobs: PoolKnobs) -> None:
    """Each piece is combined by itself, and the end of all of them is for the step."""
    config, pieces = form.config, facts.steps["pieces"]
    results = knobs.blocks * knobs.rows * knobs.columns
    end = config.vector_cycles * (1 + len(form.steps)) * results
    facts.piece_vectors = (facts.vectors - end) / pieces
    facts.vectors = end + PARAMETER_TILES * knobs.blocks
    height, width = box(form, knobs)
    rows, columns = image_shares(form.spec, knobs, knobs.window)
    tile = config.tile_bytes(Buffer.OUT)
    loaded = facts.steps["inp"] / max(1.0, knobs.blocks * float(height * width) * tile)
    facts.fill = knobs.blocks * float(height * width) * min(
        1.0, loaded / (rows * columns)) * (1 - rows * columns)
    facts.inp_rate = _tiles_in_a_beat(config)


def _tiles_in_a_beat(config: Config) -> float:
    """Of those that are widened on their way to the accumulator, one is written in a cycle."""
    return max(1.0, config.bus_bytes / config.tile_bytes(Buffer.OUT))


def _add_products(facts: Facts, form: TensorForm, knobs: object) -> None:
    """Layers with products of tiles."""
    config, steps = form.config, facts.steps
    blocks = int(getattr(knobs, "blocks", 1)) * int(getattr(knobs, "groups", 1))
    facts.vectors += PARAMETER_TILES * blocks           # they are fetched for each block
    room = max(1, config.tiles(Buffer.UOP) // SEQUENCES)
    if isinstance(form, Conv2dForm) and isinstance(knobs, Conv2dKnobs):
        taps = knobs.taps(form.spec.kernel)
        rows, columns = image_shares(form.spec, knobs, taps)
        facts.fill = steps["inp"] / config.tile_bytes(Buffer.INP) * (
            1 / max(rows * columns, 1e-3) - 1)
        facts.uops = min(knobs.depth * taps[0] * taps[1], room)
        facts.src_copies = int(conv2d_schedule.resident_inputs(form, knobs))
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


def _add_depthwise(facts: Facts, form: DepthwiseForm, knobs: DepthwiseKnobs) -> None:
    """The estimate spreads what groups of channels load over all steps."""
    steps, groups = facts.steps, blocks_of(form.output.shape[1], knobs.blocks)
    facts.uops = 1
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
        inp_rate=facts.inp_rate, fill=facts.fill, wgt_bursts=wgt_bursts, wgt_beats=wgt_beats,
        wgt_stays=bool(steps["wgt_stays"]), wgt_ahead=bool(steps["wgt_ahead"]),
        par_bursts=par_bursts, par_beats=par_beats, par_rate=max(1.0, bus / acc),
        par_copies=facts.par_copies, par_once=facts.par_once, par_every=facts.par_every,
        out_bursts=out_bursts, out_beats=out_beats, products=steps["products"],
        vectors=facts.vectors, piece_vectors=facts.piece_vectors, late=facts.late,
        share=facts.share, buffers=2 if doubled else 1,
        sums=1 if steps["waits"] or not doubled else 2, uops=float(facts.uops),
        uop_room=float(config.tiles(Buffer.UOP)), src_copies=max(1, facts.src_copies),
        wgt_copies=max(1, facts.wgt_copies),
        uop_beats=max(1.0, facts.uops * MicroOp.size / bus),
        code_beats=max(1.0, IN_A_BURST * INSTRUCTION_BYTES / bus),
        queue=min(config.queue_depth, MOST_QUEUED))


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
