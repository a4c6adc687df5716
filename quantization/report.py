"""What quantization did to a model: errors by layer, accuracy, and what runs on the accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..compiler.graph.graph import Graph
from ..compiler.passes.pipeline import run_passes
from ..isa.config import Config
from ..runtime.models.compiled_model import ProgramStep
from .calibration.samples import Samples
from .calibration.statistics import Say
from .evaluation import Errors, layer_errors
from .execution import GraphRunner
from .parameters import Array
from .pipeline import Quantized

RANDOM = "random data: these figures are for timing only, and say nothing of accuracy"


@dataclass(frozen=True)
class LayerReport:
    """One stored tensor: how far it is from the float model's, and how it is stored."""

    name: str
    operator: str
    sqnr: float                     # decibels
    scale: float | None             # None if it stays float
    zero_point: int | None

    def to_dict(self) -> dict[str, object]:
        return vars(self)


@dataclass(frozen=True)
class Placement:
    """What a compiled model does where."""

    config: str
    macs: int
    accelerator_macs: int
    handovers: int                  # tensors that go into programs or come out of them
    programs: int
    cycles: int

    @property
    def percent(self) -> float:
        return 100 * self.accelerator_macs / self.macs if self.macs else 0.0

    def to_dict(self) -> dict[str, object]:
        return {**vars(self), "accelerator_percent": self.percent}


@dataclass(frozen=True, kw_only=True)
class QuantizationReport:
    """Everything measured."""

    model: str
    samples: int
    random: bool
    layers: tuple[LayerReport, ...]
    outputs: dict[str, float]               # SQNR of the integer model's outputs, decibels
    techniques: tuple[tuple[str, float, float, bool], ...]
    kept_float: tuple[str, ...] = ()
    accuracy: tuple[float, float] | None = None     # percent, before and after
    placement: Placement | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def worst(self) -> list[LayerReport]:
        """Layers, those that hurt most first."""
        return sorted(self.layers, key=lambda each: each.sqnr)

    def to_dict(self) -> dict[str, object]:
        return {
            "model": self.model, "samples": self.samples, "random_data": self.random,
            "warning": RANDOM if self.random else None,
            "layers": [each.to_dict() for each in self.layers], "output_sqnr": self.outputs,
            "hurts_most": [each.name for each in self.worst[:5]],
            "techniques": [{"name": name, "loss_before": before, "loss_after": after,
                            "used": used} for name, before, after, used in self.techniques],
            "kept_float": list(self.kept_float),
            "accuracy": None if self.accuracy is None else dict(
                zip(("float", "quantized"), self.accuracy, strict=True)),
            "placement": None if self.placement is None else self.placement.to_dict()}


class IntegerModel:
    """A quantized graph as the accelerator computes it, to the bit, on the CPU half."""

    def __init__(self, graph: Graph) -> None:
        self._part = GraphRunner(run_passes(graph))

    def run(self, sample: dict[str, Array]) -> dict[str, Array]:
        return self._part(sample)


def measure(found: Quantized, samples: Samples, labels: Array | None, model: str,
            kept_float: Sequence[str], say: Say) -> QuantizationReport:
    """Run the float and the integer model side by side."""
    say("measuring the error of each layer")
    errors = layer_errors(found.simulator, found.evaluator.samples, found.parameters)
    say("compiling the integer model for the CPU")
    integer = IntegerModel(found.graph)
    float_outputs = found.selection.graph.outputs
    totals = {name: Errors() for name in float_outputs
              if found.selection.graph.type_of(name).is_float}
    hits = [0, 0]
    count = 0
    name = float_outputs[0]             # what labels are compared with; there is no other then
    for number, sample in enumerate(samples if labels is not None else found.evaluator.samples):
        say(f"measuring the integer model, sample {number + 1}")
        right, got = found.simulator.run(sample), integer.run(sample)
        for each, total in totals.items():
            total.add(right[each], got[each])
        if labels is not None:
            hits = [hit + int(np.argmax(each[name]) == labels[number])
                    for hit, each in zip(hits, (right, got), strict=True)]
        count += 1
    return QuantizationReport(
        model=model, samples=found.samples, random=found.random,
        layers=tuple(_layers(found, errors)),
        outputs={each: total.decibels for each, total in totals.items()},
        techniques=found.steps, kept_float=tuple(kept_float),
        accuracy=None if labels is None else (100 * hits[0] / count, 100 * hits[1] / count))


def _layers(found: Quantized, errors: dict[str, Errors]) -> Iterator[LayerReport]:
    graph = found.selection.graph
    for name in graph.nodes:
        if name in errors and name in found.selection.nodes:
            scale = found.parameters.scales.get(found.selection.groups.get(name, ""))
            yield LayerReport(name, graph.nodes[name].operation.title(), errors[name].decibels,
                              None if scale is None else scale.scale,
                              None if scale is None else scale.zero)


def place(graph: Graph, config: Config | str, say: Say) -> Placement:
    """Compile a quantized graph, and count what runs where."""
    from ..runtime.api import compile as compile_model
    from ..sim.simulate import simulate

    model = compile_model(graph, config, progress=say)
    macs = sum(each.macs for each in model.nodes)
    hosted = sum(each.macs for each in model.host_nodes)
    ports = sum(len(step.inputs) + len(step.outputs) for step in model.steps
                if isinstance(step, ProgramStep))
    say("simulating")
    cycles = sum(simulate(each, memory=model.memory).cycles or 0 for each in model.programs)
    name = config if isinstance(config, str) else "given"
    return Placement(name, macs, macs - hosted, ports, len(model.programs), cycles)
