"""What each layer of a model costs: its share of the cycles of its program, and how good that is.

Layers overlap in a stream, so none has a time of its own. A layer's cycles are those from the end
of the last instruction of all layers before it to the end of its own last one; the first has what
comes before it, the last what comes after. They add up to the cycles of the program. Of two that
the compiler made run at the same time, the second has the cycles of both.

What the CPU computes has a time, too, and so has each tensor that is handed over: all of them add
up to the time of an inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...base.checked_values import PlainData
from ...base.classes.dataclass import dataclass
from ...base.notebooks.figure import plot_axes
from ...base.notebooks.html_table import html_table
from ...base.notebooks.svg_plot import Series
from ...compiler.network.network import Where
from ...isa.instructions import INSTRUCTION_BYTES
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program
from ...sim.counts import count
from ...sim.report import Report
from ...sim.simulate import simulate
from ..clock import Clock
from ..models.compiled_model import CompiledModel, NodeReport, ProgramStep
from ..times.end_to_end import EndToEnd
from ..times.host_times import HostTimes, Source
from .roofline_plot import RooflinePoint, X, Y, roofline_series
from .units import abbreviate, duration, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TimeHost = Callable[[CompiledModel], HostTimes]     # what the CPU's half takes


@dataclass(frozen=True, kw_only=True)
class LayerCost:
    """A node: on the accelerator what it costs there, and its time wherever it runs."""

    node: NodeReport
    cycles: int | None = None
    bound: float | None = None          # the least cycles on any schedule, alone
    limit: str = ""                     # what sets them: macs, memory or alu
    bytes: int | None = None            # moved to and from DRAM
    instructions: int | None = None
    utilization: float | None = None    # of the MAC array
    with_next: bool = False             # runs at the same time as the next, which has its cycles
    efficiency: float | None = None     # bound / cycles; may be more than 1 inside a stream
    seconds: float | None = None
    time_source: Source | None = None   # None: takes no time of its own
    inside: str = ""                    # of the CPU's nodes, the one that has its time

    def to_dict(self) -> dict[str, object]:
        """Plain data, fit for JSON and for a line of CSV."""
        node = self.node
        return {"name": node.name, "origin": node.origin, "operator": node.operator,
                "shape": "x".join(map(str, node.type.shape)), "dtype": node.type.dtype,
                "where": node.where.value, "reason": node.reason, "step": node.step,
                "macs": node.macs, "bound": self.bound, "limit": self.limit,
                "cycles": self.cycles, "efficiency": self.efficiency,
                "utilization": self.utilization, "bytes": self.bytes,
                "instructions": self.instructions, "with_next": self.with_next,
                "seconds": self.seconds,
                "time_source": self.time_source.value if self.time_source else "",
                "inside": self.inside, "note": node.note}


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The cost of a network, layer by layer and in total."""

    model: CompiledModel
    layers: tuple[LayerCost, ...]       # a line for each node, in the order of the network
    reports: tuple[Report, ...]         # of the programs
    end_to_end: EndToEnd                # the time of an inference, and what it consists of

    @property
    def cycles(self) -> int:
        return sum(each.cycles or 0 for each in self.reports)

    def _repr_html_(self) -> str:
        """In a notebook: the layers as a table."""
        rows = [(cost.node.title, cost.node.operator, cost.node.where.value, cost.node.reason,
                 abbreviate(cost.bound), cost.limit,
                 "↓" if cost.with_next else abbreviate(cost.cycles), percent(cost.efficiency),
                 abbreviate(cost.bytes), duration(cost.seconds))
                for cost in self.layers if cost.node.where in (Where.ACCELERATOR, Where.CPU)]
        return html_table(
            f"{self.model.name}: {self.cycles:,} cycles, {duration(self.end_to_end.seconds)} from "
            f"end to end", ("layer", "operator", "on", "reason", "bound", "limited by", "cycles",
                            "efficiency", "bytes", "time"), rows)

    def plot(self, axes: Axes | None = None) -> Axes:
        """The roofline of the layers on axes of matplotlib, which must be installed."""
        return plot_axes(self.roofline(), x=X, y=Y, title=self.model.name, log_x=True,
                         log_y=True, axes=axes)

    def roofline(self) -> list[Series]:
        """Layers with multiply-adds, under what array and bus allow."""
        memory = next((each.memory for each in self.reports), None) or self.model.memory
        points = [RooflinePoint(each.node.name, each.limit, each.node.macs / each.bytes,
                                each.node.macs / each.cycles)
                  for each in self.layers if each.node.macs and each.bytes and each.cycles]
        return roofline_series(points, self.model.config, memory)

    def totals(self) -> PlainData:
        """Of the whole model. Cycles, bound, efficiency and bytes are the accelerator's alone;
        seconds say what the CPU adds."""
        plans = [step.plan for step in self.model.steps if isinstance(step, ProgramStep)]
        hosted, all_macs = self.model.host_nodes, sum(each.macs for each in self.model.nodes)
        on_host = sum(each.macs for each in hosted)
        working = [each for each in self.model.nodes
                   if each.where in (Where.ACCELERATOR, Where.CPU)]
        bound = sum(each.bound or 0 for each in self.layers)
        instructions = sum(len(each.code) for each in self.model.programs)
        cycles = self.cycles
        return {
            "programs": len(plans), "nodes": len(working), "cpu_nodes": len(hosted),
            "macs": all_macs, "cpu_macs": on_host, "bound": bound, "cycles": cycles,
            "accelerator_efficiency": bound / cycles if cycles else None,
            "bytes": sum(each.bytes for each in self.reports), "instructions": instructions,
            "instruction_bytes": instructions * INSTRUCTION_BYTES,
            "constant_bytes": sum(_constant_bytes(each) for each in self.model.programs),
            "peak_memory": max((each.peak for each in plans), default=0),
            "tensor_memory": sum(each.total for each in plans), **self.end_to_end.to_dict()}

    def to_dict(self) -> dict[str, object]:
        """Plain data, fit for JSON."""
        return {"model": self.model.name, "provenance": dict(self.model.provenance),
                "config": self.model.config.to_dict(),
                "inputs": {name: str(each) for name, each in self.model.inputs.items()},
                "outputs": {name: str(each) for name, each in self.model.outputs.items()},
                "layers": [each.to_dict() for each in self.layers],
                "handovers": [each.to_dict() for each in self.end_to_end.host.handovers],
                "totals": self.totals(),
                "plans": [{"peak": step.plan.peak, "total": step.plan.total,
                           "offsets": dict(step.plan.offsets)}
                          for step in self.model.steps if isinstance(step, ProgramStep)]}


def _constant_bytes(program: Program) -> int:
    return sum(each.data.nbytes for each in program.segments if each.data is not None)


def inspect_model(model: CompiledModel, memory: MemoryTiming | None = None, *,
                  limit: int | None = None, clock: Clock | None = None,
                  time_host: TimeHost | None = None,
                  progress: Callable[[str], None] | None = None) -> Inspection:
    """Simulate all programs of a model, without data, and share out their cycles. The accelerator
    runs at a clock of 100 MHz unless another is given; the CPU's half is measured on this machine
    unless `time_host` says what it takes."""
    timing = memory or model.memory
    costs: dict[str, LayerCost] = {}
    reports: list[Report] = []
    for number, step in enumerate(model.steps):
        if isinstance(step, ProgramStep):
            if progress is not None:
                progress(f"simulating program {len(reports) + 1} of {len(model.programs)}")
            reports.append(simulate(step.program, memory=timing, limit=limit))
            nodes = [each for each in model.nodes if each.step == number]
            costs |= {each.node.name: each for each
                      in _costs(step.program, nodes, reports[-1], timing)}
    total = end_to_end(model, sum(each.cycles or 0 for each in reports), clock, time_host)
    return Inspection(model=model, reports=tuple(reports), end_to_end=total, layers=tuple(
        _with_time(costs.get(each.name, LayerCost(node=each)), total) for each in model.nodes))


def end_to_end(model: CompiledModel, cycles: int | None, clock: Clock | None = None,
               time_host: TimeHost | None = None) -> EndToEnd:
    """The time of an inference in which the accelerator took so many cycles."""
    host = (time_host or _measure_host)(model)
    return EndToEnd(
        clock=clock or Clock(), cycles=cycles, host=host,
        macs=sum(each.macs for each in model.nodes if each.where == Where.ACCELERATOR),
        macs_per_cycle=model.config.macs_per_cycle)


def _measure_host(model: CompiledModel) -> HostTimes:
    from ..times.measure import measure_times  # which loads LLVM

    return measure_times(model)


def _with_time(cost: LayerCost, total: EndToEnd) -> LayerCost:
    """A layer with its time."""
    if cost.cycles is not None:
        return replace(cost, seconds=total.clock.seconds(cost.cycles),
                       time_source=Source.SIMULATED)
    found = total.host.nodes.get(cost.node.name)
    if found is None:
        return cost
    return replace(cost, seconds=found.seconds, time_source=found.source, inside=found.inside)


def _costs(program: Program, nodes: Sequence[NodeReport], report: Report,
           timing: MemoryTiming) -> list[LayerCost]:
    """Of the layers of one program."""
    starts = sorted({program.labels[each.label] for each in nodes})
    shares = attribute_cycles(starts, report)
    ranges = zip([0, *starts[1:]], [*starts[1:], len(program.code)], strict=True)
    found = []
    for first, cycles, (start, stop) in zip(starts, shares, ranges, strict=True):
        together = [each for each in nodes if program.labels[each.label] == first]
        bounds = [each.work.bound(program.config, timing) if each.work else None
                  for each in together]
        alone = [LayerCost(node=each, bound=bound.cycles if bound else None,
                           limit=bound.limit if bound else "", with_next=True)
                 for each, bound in zip(together, bounds, strict=True)]
        counts = count(program.code[start:stop], program.config, {})
        macs = sum(each.macs for each in together)
        least = sum(each.cycles for each in bounds if each)
        found += [*alone[:-1], replace(
            alone[-1], cycles=cycles, with_next=False, instructions=stop - start,
            bytes=sum(counts.bytes_loaded.values()) + sum(counts.bytes_stored.values()),
            efficiency=least / cycles if cycles and least else None,
            utilization=macs / (cycles * program.config.macs_per_cycle) if cycles else None)]
    return found


def attribute_cycles(starts: Sequence[int], report: Report) -> list[int]:
    """The cycles of a run, for parts of a program that begin at these instructions, in order."""
    assert report.timeline is not None, "the simulator keeps a timeline"
    assert report.cycles is not None, "and a clock"
    ended = np.maximum.accumulate(np.maximum(report.timeline.end, 0))   # of all so far
    ends = [int(ended[start - 1]) if start else 0 for start in starts[1:]]
    times = [0, *ends, report.cycles]
    return [after - before for before, after in pairwise(times)]
