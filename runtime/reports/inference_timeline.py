"""One inference on one axis: the programs of the accelerator and the work of the CPU.

The axis counts cycles of the accelerator's clock from the start of the inference. Steps follow one
another; the CPU's times are turned into cycles, and programs start at whole ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from ...base.classes.dataclass import dataclass
from ...compiler.network.network import Where
from ...isa.program import Program
from ...sim.report import Report
from ..models.compiled_model import CompiledModel, NodeReport, ProgramStep
from ..times.end_to_end import EndToEnd
from ..times.host_times import Handover
from .layers import attribute_cycles


@dataclass(frozen=True)
class PlacedProgram:
    """A program of a network, and the cycle of the inference at which it starts."""

    step: int
    program: Program
    report: Report
    base: int


@dataclass(frozen=True)
class CpuSpan:
    """What the CPU does for some time: a node, or a tensor that it repacks."""

    name: str
    what: str
    start: float
    end: float
    seconds: float


@dataclass(frozen=True)
class LayerSpan:
    """Layers that begin at the same instruction, and their share of the program's cycles, counted
    from its start."""

    first: int                  # instruction
    nodes: tuple[NodeReport, ...]
    start: int
    end: int


@dataclass(frozen=True)
class InferenceTimeline:
    """Everything that an inference does, in order, and the cycle at which it ends."""

    programs: tuple[PlacedProgram, ...]
    cpu: tuple[CpuSpan, ...]
    cycles: float


def place_steps(model: CompiledModel, reports: Sequence[Report],
                time: EndToEnd) -> InferenceTimeline:
    """The steps of a model one after the other; reports are those of its programs."""
    axis = _Axis(time)
    programs: list[PlacedProgram] = []
    remaining = iter(reports)
    for number, step in enumerate(model.steps):
        if not isinstance(step, ProgramStep):
            axis.add_nodes(model, number)
            continue
        handed = [each for each in time.host.handovers if each.step == number]
        axis.add_handovers(handed, to_accelerator=True)
        report = next(remaining)
        base = math.ceil(axis.now)
        programs.append(PlacedProgram(number, step.program, report, base))
        axis.now = base + (report.cycles or 0)
        axis.add_handovers(handed, to_accelerator=False)
    return InferenceTimeline(tuple(programs), tuple(axis.cpu), axis.now)


class _Axis:
    """The CPU's work so far, and the time."""

    def __init__(self, time: EndToEnd) -> None:
        self.time = time
        self.cpu: list[CpuSpan] = []
        self.now = 0.0

    def add_nodes(self, model: CompiledModel, step: int) -> None:
        for node in model.nodes:
            found = self.time.host.nodes.get(node.name)
            if node.where == Where.CPU and node.step == step and found is not None:
                self._add(node.title, node.operator, found.seconds)

    def add_handovers(self, handed: Sequence[Handover], *, to_accelerator: bool) -> None:
        for each in handed:
            if each.to_accelerator == to_accelerator:
                self._add(each.tensor, "pack into tiles" if to_accelerator else "unpack from tiles",
                          each.seconds)

    def _add(self, name: str, what: str, seconds: float | None) -> None:
        if seconds:
            end = self.now + seconds * self.time.clock.mhz * 1e6
            self.cpu.append(CpuSpan(name, what, self.now, end, seconds))
            self.now = end


def layer_spans(model: CompiledModel, placed: PlacedProgram) -> list[LayerSpan]:
    """The layers of a program, in the order of their instructions."""
    labels = placed.program.labels
    nodes: dict[int, list[NodeReport]] = {}
    for node in model.nodes:
        if node.step == placed.step and node.label in labels:
            nodes.setdefault(labels[node.label], []).append(node)
    starts = sorted(nodes)
    ends = [0, *accumulate(attribute_cycles(starts, placed.report))] if starts else [0]
    return [LayerSpan(first, tuple(nodes[first]), start, end)
            for first, start, end in zip(starts, ends[:-1], ends[1:], strict=True)]
