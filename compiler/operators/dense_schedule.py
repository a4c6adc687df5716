"""How a matrix product is computed: the template, its knobs, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ...isa.instructions import PARAMETER_TILES, Buffer
from ..errors import CompileError
from ..expression import Axis
from ..nest import Scope
from ..schedule import Schedule, Stage
from ..tensor import Tensor
from .dense import Correction, Expressions
from .divisions import some_sizes

SCRATCHPADS = (Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.OUT)
GEMM_START, STEP_START = 20, 40     # cycles that one costs beside its work, measured
MICRO_KERNELS = 16          # at most so many sequences of micro-ops: three buffers, whole and rest


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """How much is computed at once, in tiles, and what stays on the chip meanwhile."""

    rows: int
    blocks: int                 # of outputs
    depth: int                  # of inputs
    data_stays: bool = False    # data stay while weights pass by; otherwise weights stay
    resident: bool = False      # all parameters are loaded once
    doubled: bool = True        # two buffers each, so that engines overlap


def schedule(what: Expressions, knobs: Knobs) -> Schedule:
    """The template: one side stays while the other passes by; sums over inputs that do not fit are
    made in steps, for which both sides pass by."""
    plan = Schedule(what.output)
    inside = plan.cache_write(what.output, Scope.OUT)
    parameters = plan.cache_read(what.parameters, Scope.ACC, inside)
    data = plan.cache_read(what.data, Scope.INP, *_readers(plan, what, knobs, what.data))
    weights = plan.cache_read(what.weights, Scope.WGT,
                              *_readers(plan, what, knobs, what.weights))
    own = [_own_caches(plan, what, knobs, each) for each in what.corrections]
    sums, inside, output = (plan.renewed(each) for each in (what.sums, inside, what.output))
    plan[sums].scope = Scope.ACC
    numbers = copies(what, knobs)

    def attach(tensor: Tensor, reader: Stage, axis: Axis, scratchpad: Buffer) -> None:
        plan[tensor].compute_at(reader, axis)
        if numbers[scratchpad] > 1:
            plan[tensor].double_buffer(axis)

    last = plan[output]
    m, n, o, b, j = last.leaves
    n_far, n_near = last.split(n, knobs.rows)
    o_far, o_near = last.split(o, knobs.blocks)
    outer = (n_far, o_far) if knobs.data_stays else (o_far, n_far)
    last.reorder(m, *outer, n_near, o_near, b, j)
    attach(inside, last, outer[1], Buffer.OUT)
    attach(sums, last, outer[1], Buffer.ACC)
    if not knobs.resident:
        attach(parameters, last, o_far, Buffer.ACC)
    plan[inside].tensorize(plan[inside].leaves[-2], what.function.name)

    stage = plan[sums]
    m, n, o, b, j, c, k = stage.leaves
    c_far, c_near = stage.split(c, knobs.depth)
    stage.reorder(c_far, m, n, o, c_near, b, j, k)
    stage.tensorize(b, "gemm")
    if c_far.extent == 1:
        attach(data, last, n_far, Buffer.INP)
        attach(weights, last, o_far, Buffer.WGT)
    else:
        attach(data, stage, c_far, Buffer.INP)
        attach(weights, stage, c_far, Buffer.WGT)
    for correction, side in zip(what.corrections, own, strict=True):
        axis = n_far if correction.side is what.data else o_far
        attach(plan.renewed(correction.sums), last, axis, Buffer.ACC)
        plan[plan.renewed(correction.result)].compute_at(last, outer[1])
        _correct(plan, correction, side, knobs)
    return plan


def _readers(plan: Schedule, what: Expressions, knobs: Knobs, side: Tensor) -> list[Tensor]:
    """Who reads data or weights from one buffer: sums over one side alone do, if it comes whole."""
    whole = pieces(what, knobs)[2] == 1
    return [plan.renewed(what.sums), *(plan.renewed(each.sums) for each in what.corrections
                                       if whole and each.side is side)]


def _own_caches(plan: Schedule, what: Expressions, knobs: Knobs,
                correction: Correction) -> Tensor | None:
    """The zero points of a correction in a scratchpad, and its side, if nothing holds it whole."""
    scopes = (Scope.INP, Scope.WGT) if correction.side is what.data else (Scope.WGT, Scope.INP)
    plan.cache_read(correction.zeros, scopes[1], plan.renewed(correction.sums))
    if pieces(what, knobs)[2] == 1:
        return None
    return plan.cache_read(correction.side, scopes[0], plan.renewed(correction.sums))


def _correct(plan: Schedule, correction: Correction, side: Tensor | None, knobs: Knobs) -> None:
    """Sums over one side, and the ALU that takes them away."""
    result, sums = plan[plan.renewed(correction.result)], plan[plan.renewed(correction.sums)]
    result.scope = sums.scope = Scope.ACC
    result.tensorize(result.leaves[-2], "alu.sub")
    m, other, b, j, c, k = sums.leaves
    far, near = sums.split(c, knobs.depth)
    sums.reorder(far, m, other, near, b, j, k)
    sums.tensorize(b, "gemm")
    if side is not None:
        plan[side].compute_at(sums, far)


def pieces(what: Expressions, knobs: Knobs) -> tuple[int, int, int]:
    """Into how many parts rows, outputs and inputs are divided."""
    _, rows, outputs, depth = what.extents
    return -(-rows // knobs.rows), -(-outputs // knobs.blocks), -(-depth // knobs.depth)


def loads(what: Expressions, knobs: Knobs) -> dict[Buffer, int]:
    """How often each scratchpad is filled; ACC and OUT: with sums and results. What passes by
    comes again and again, unless two buffers hold all of it."""
    n, o, c = pieces(what, knobs)
    matrices, held = what.extents[0], 2 if knobs.doubled else 1
    data_once = n * c <= held or (c == 1 and knobs.data_stays)
    weights_once = o * c <= held or (c == 1 and not knobs.data_stays)
    return {Buffer.INP: matrices * n * c * (1 if data_once else o),
            Buffer.WGT: matrices * o * c * (1 if weights_once else n),
            Buffer.ACC: matrices * n * o, Buffer.OUT: matrices * n * o}


def copies(what: Expressions, knobs: Knobs) -> dict[Buffer, int]:
    """Buffers by turns: two where there is a next time."""
    return {buffer: 2 if knobs.doubled and times > 1 else 1
            for buffer, times in loads(what, knobs).items()}


def tiles(what: Expressions, knobs: Knobs) -> dict[Buffer, int]:
    """Tiles of one buffer in each scratchpad; of ACC the sums alone."""
    return {Buffer.INP: knobs.rows * knobs.depth, Buffer.WGT: knobs.blocks * knobs.depth,
            Buffer.ACC: knobs.rows * knobs.blocks, Buffer.OUT: knobs.rows * knobs.blocks}


def fits(what: Expressions, knobs: Knobs) -> bool:
    """Whether all buffers find room."""
    config = what.config
    need, numbers = tiles(what, knobs), copies(what, knobs)
    need = {buffer: need[buffer] * numbers[buffer] for buffer in SCRATCHPADS}
    need[Buffer.ACC] += PARAMETER_TILES * (what.extents[2] if knobs.resident
                                           else knobs.blocks * numbers[Buffer.ACC])
    for each in what.corrections:
        own, other = ((Buffer.INP, Buffer.WGT) if each.side is what.data
                      else (Buffer.WGT, Buffer.INP))
        size = knobs.rows if each.side is what.data else knobs.blocks
        need[own] += size * knobs.depth if pieces(what, knobs)[2] > 1 else 0
        need[other] += 1
        need[Buffer.ACC] += size * numbers[Buffer.ACC] + knobs.rows * knobs.blocks
    sequences = MICRO_KERNELS if knobs.doubled else 1 + len(what.corrections)
    return (all(need[buffer] <= config.tiles(buffer) for buffer in SCRATCHPADS)
            and sequences * knobs.depth <= config.tiles(Buffer.UOP))


def candidates(what: Expressions) -> Iterator[Knobs]:
    """Knobs whose buffers fit. Without double buffers only if nothing fits with them."""
    _, rows, outputs, depth = what.extents
    for doubled in (True, False):
        found = False
        for n, o, c, stays in product(some_sizes(rows), some_sizes(outputs), some_sizes(depth),
                                      (False, True)):
            resident = outputs > o and (stays or what.extents[0] > 1)
            for knobs in (Knobs(rows=n, blocks=o, depth=c, data_stays=stays, resident=each,
                                doubled=doubled) for each in ((True, False) if resident
                                                              else (False,))):
                if fits(what, knobs):
                    found = True
                    yield knobs
                    break
        if found:
            return


def estimate(what: Expressions, knobs: Knobs) -> float:
    """Cycles, roughly: the larger of products and bytes, and what cannot overlap at both ends."""
    config = what.config
    times, need = loads(what, knobs), tiles(what, knobs)
    size = {buffer: need[buffer] * config.tile_bytes(buffer) for buffer in SCRATCHPADS}
    moved = sum(times[buffer] * size[buffer] for buffer in (Buffer.INP, Buffer.WGT, Buffer.OUT))
    parameters = PARAMETER_TILES * config.tile_bytes(Buffer.ACC) * knobs.blocks
    n, o, c = pieces(what, knobs)
    reloads = o if knobs.resident else what.extents[0] * o * (n if knobs.data_stays else 1)
    matrices, rows, outputs, depth = what.extents
    runs = ((times[Buffer.INP] * knobs.rows + times[Buffer.WGT] * knobs.blocks) * (c > 1)
            + times[Buffer.OUT] * knobs.rows * (o > 1))     # bursts, a cycle each
    bus = (moved + parameters * reloads) / config.bus_bytes + runs
    products = matrices * rows * outputs * depth
    steps = times[Buffer.ACC]
    ends = ((size[Buffer.INP] + size[Buffer.WGT] + size[Buffer.OUT]) / config.bus_bytes
            + need[Buffer.ACC])
    apart = 0 if knobs.doubled else products + bus
    return max(products, bus) + ends + steps * (c * GEMM_START + STEP_START) + apart


def default_knobs(what: Expressions) -> Knobs:
    """The candidate with the best estimate."""
    best = min(candidates(what), key=lambda knobs: estimate(what, knobs), default=None)
    if best is None:
        raise CompileError(f"dense: not even one tile of {what.spec} fits in the scratchpads of "
                           f"this configuration: a requantize needs {PARAMETER_TILES + 1} tiles "
                           f"of the accumulator")
    return best
