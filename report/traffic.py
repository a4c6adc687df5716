"""Which tensor each transfer moves: traffic by tensor, and when each tensor lives in the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base.arrays import Array
from ..base.checked_values import PlainData
from ..compiler.network.linking.link import ARENA, CONSTANTS, INPUTS, MICRO_OPS, NAMES, OUTPUTS
from ..isa.instructions import Buffer, Load, Store
from ..isa.program import Program
from ..isa.stream import positions_of
from ..runtime.models.compiled_model import ProgramStep
from ..runtime.reports.inference_timeline import PlacedProgram
from ..runtime.reports.layers import Inspection
from .events import transfer_bytes

MOST_TENSORS = 400          # that a page lists; the rest is summed up
OF_BUFFER = {Buffer.UOP: "micro-ops", Buffer.WGT: "weights", Buffer.INP: "constants",
             Buffer.ACC: "parameters", Buffer.ACC8: "parameters"}


@dataclass
class Tensor:
    """A tensor, as the transfers of a run show it."""

    name: str
    kind: str                   # activation, input, output, weights, …
    offset: int | None = None   # in the arena
    end: int = 0                # of its bytes there
    read: int = 0               # bytes
    written: int = 0
    times: list[float] = field(default_factory=list)    # at which it was first and last touched

    def touch(self, begin: float, end: float) -> None:
        self.times = [min(begin, *self.times), max(end, *self.times)] if self.times else [begin,
                                                                                        end]


def traffic_data(found: Inspection, programs: Sequence[PlacedProgram]) -> PlainData:
    """Traffic of each tensor, those with most bytes first, and the memory plan of each program."""
    tensors: list[Tensor] = []
    plans = []
    for placed in programs:
        step = found.model.steps[placed.step]
        assert isinstance(step, ProgramStep)
        mine = _tensors_of(found, placed, step)
        tensors += mine
        plans.append({
            "step": placed.step, "peak": step.plan.peak, "total": step.plan.total,
            "base": placed.base, "cycles": placed.report.cycles,
            "tensors": [{"name": each.name, "offset": each.offset, "bytes": each.end - each.offset,
                         "first": each.times[0], "last": each.times[1]}
                        for each in mine if each.offset is not None and each.times]})
    tensors.sort(key=lambda each: -(each.read + each.written))
    rest = tensors[MOST_TENSORS:]
    rows = [{"name": each.name, "kind": each.kind, "read": each.read, "written": each.written}
            for each in tensors[:MOST_TENSORS]]
    if rest:
        rows.append({"name": f"{len(rest)} more", "kind": "", "written": sum(
            each.written for each in rest), "read": sum(each.read for each in rest)})
    return {"tensors": rows, "plans": plans}


class _Transfers:
    """The transfers of a program of one kind, in columns."""

    def __init__(self, placed: PlacedProgram, kind: type[Load | Store]) -> None:
        timeline = placed.report.timeline
        assert timeline is not None
        code = placed.program.code
        self.positions, words = positions_of(code, kind)
        self.segment = words["segment"].astype(np.int64)
        self.buffer = words["buffer"].astype(np.int64)
        self.bytes = transfer_bytes(code, placed.program.config)[self.positions]
        tile = np.array([placed.program.config.tile_bytes(each) for each in Buffer], np.int64)
        planes, rows, columns = words["shape"].astype(np.int64).T
        plane, row = words["stride"].astype(np.int64).T
        offset = words["offset"].astype(np.int64)
        far = np.maximum(planes - 1, 0) * plane, np.maximum(rows - 1, 0) * row
        self.low = offset + np.minimum(far[0], 0) + np.minimum(far[1], 0)
        self.high = (offset + np.maximum(far[0], 0) + np.maximum(far[1], 0)
                     + columns * tile[words["buffer"]])
        self.start = timeline.start[self.positions] + placed.base
        self.stop = timeline.end[self.positions] + placed.base

    def within(self, first: int, last: int) -> slice:
        """Those of a range of instructions."""
        begin, end = np.searchsorted(self.positions, [first, last])
        return slice(int(begin), int(end))


def _tensors_of(found: Inspection, placed: PlacedProgram, step: ProgramStep) -> list[Tensor]:
    program = placed.program
    names = [each.name for each in program.segments]
    if names != list(NAMES):                    # a program that no network was linked into
        return _by_segment(program, placed)
    loads, stores = _Transfers(placed, Load), _Transfers(placed, Store)
    ports = {each.name: each.tensor for each in (*step.inputs, *step.outputs)}
    tensors = [Tensor(ports.get(each.name, each.name), each.segment.removesuffix("s"))
               for each in program.tensors if each.segment in (NAMES[INPUTS], NAMES[OUTPUTS])]
    bounds = {each.name: (each.offset, each.offset + each.size) for each in program.tensors}
    for tensor, each in zip(tensors, [each for each in program.tensors if each.segment in (
            NAMES[INPUTS], NAMES[OUTPUTS])], strict=True):
        segment = names.index(each.segment)
        for moves in (loads, stores):
            inside = (moves.segment == segment) & (moves.low >= bounds[each.name][0]) & (
                moves.low < bounds[each.name][1])
            _add(tensor, moves, inside, writes=moves is stores)
    return tensors + _layer_tensors(found, placed, step, loads, stores)


def _layer_tensors(found: Inspection, placed: PlacedProgram, step: ProgramStep,
                   loads: _Transfers, stores: _Transfers) -> list[Tensor]:
    """Constants of each layer, and activations in the arena: what a layer stores there is its
    result, and what it loads is what was stored there last."""
    program = placed.program
    layers: dict[int, list[str]] = {}
    titles = {}
    for cost in found.layers:
        if cost.node.step == placed.step and cost.node.label in program.labels:
            layers.setdefault(program.labels[cost.node.label], []).append(cost.node.name)
            titles[cost.node.name] = cost.node.title
    firsts = sorted(layers)
    live: list[Tensor] = []
    others: list[Tensor] = []
    for first, last in zip(firsts, [*firsts[1:], len(program.code)], strict=True):
        title = titles[layers[first][-1]]
        others += _constants(title, loads, loads.within(first, last))
        fresh = [Tensor(name, "activation", offset=step.plan.offsets[name])
                 for name in layers[first] if name in step.plan.offsets]
        _share_out(fresh, stores, stores.within(first, last), writes=True)
        live = [*fresh, *live]
        _share_out(live, loads, loads.within(first, last), writes=False)
    for each in live:
        each.name = titles.get(each.name, each.name)
    return [*live, *others]


def _constants(title: str, loads: _Transfers, part: slice) -> list[Tensor]:
    found = []
    constant = np.isin(loads.segment[part], (MICRO_OPS, CONSTANTS))
    for buffer in np.unique(loads.buffer[part][constant]).tolist():
        what = OF_BUFFER[Buffer(buffer)]
        tensor = Tensor(f"{title}: {what}", what)
        tensor.read = int(loads.bytes[part][constant & (loads.buffer[part] == buffer)].sum())
        found.append(tensor)
    return found


def _share_out(tensors: list[Tensor], moves: _Transfers, part: slice, *, writes: bool) -> None:
    """Give transfers in the arena to the first tensor in which they begin."""
    left = moves.segment[part] == ARENA
    for each in tensors:
        if not left.any():
            return
        assert each.offset is not None
        mine = left & (moves.low[part] >= each.offset)
        if writes:                  # a second one lies above or below
            for other in tensors:
                if other is not each and (other.offset or 0) > each.offset:
                    mine &= moves.low[part] < (other.offset or 0)
        else:
            mine &= moves.low[part] < each.end
        whole = np.zeros(len(moves.low), np.bool_)
        whole[part] = mine
        _add(each, moves, whole, writes=writes)
        left &= ~mine


def _add(tensor: Tensor, moves: _Transfers, chosen: Array, *, writes: bool) -> None:
    if not chosen.any():
        return
    moved = int(moves.bytes[chosen].sum())
    tensor.read += 0 if writes else moved
    tensor.written += moved if writes else 0
    tensor.touch(float(moves.start[chosen].min()), float(moves.stop[chosen].max()))
    if writes:
        tensor.end = max(tensor.end, int(moves.high[chosen].max()))


def _by_segment(program: Program, placed: PlacedProgram) -> list[Tensor]:
    """Traffic of each segment of a program that is not a network's."""
    tensors = [Tensor(each.name, "segment") for each in program.segments]
    for kind in (Load, Store):
        moves = _Transfers(placed, kind)
        for number, tensor in enumerate(tensors):
            _add(tensor, moves, moves.segment == number, writes=kind is Store)
    return tensors
