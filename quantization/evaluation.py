"""How far a quantized model is from its float model, measured on samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..compiler.graph.operations.layers.normalization import LogSoftmax, Softmax
from ..compiler.graph.operations.pointwise.unary import Unary
from .calibration.statistics import Say
from .parameters import Array, Parameters
from .selection import Selection
from .simulation import Simulator

MOST_BYTES = 1 << 28            # of float results that are kept in memory
SQUASHED = (Softmax, LogSoftmax, Unary)         # outputs that hide errors of what they read
FEWEST = 8                      # samples by which parameters can be dropped
PERFECT = 200.0                 # decibels: what rounding in float leaves of no error at all


@dataclass
class Errors:
    """Sums of squares of one tensor, and of its error."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, right: Array, found: Array) -> None:
        """Numbers that are not finite in the float model, such as masks of minus infinity, do not
        count."""
        wide, known = right.astype(np.float64), np.isfinite(right)
        if not known.all():
            wide, found = wide[known], found[known]
        noise = float(np.sum(np.square(wide - found)))
        self.signal += float(np.sum(np.square(wide)))
        self.noise += noise if np.isfinite(noise) else float("inf")

    @staticmethod
    def of(right: Array, found: Array) -> Errors:
        """Of one array."""
        errors = Errors()
        errors.add(right, found)
        return errors

    @property
    def ratio(self) -> float:
        """Noise to signal; of a signal that is nothing but zeros, 0 if there is no noise."""
        if not self.signal:
            return float(self.noise > 0)
        return self.noise / self.signal

    @property
    def decibels(self) -> float:
        """Signal to quantization noise (SQNR)."""
        return float(np.clip(-10 * np.log10(max(self.ratio, 1e-30)), -PERFECT, PERFECT))


@dataclass
class Evaluator:
    """Compares parameters with the float model on a few samples, whose float results it keeps."""

    simulator: Simulator
    samples: list[dict[str, Array]] = field(default_factory=list)
    expected: list[dict[str, Array]] = field(default_factory=list)
    signals: dict[str, float] = field(default_factory=dict)     # of all samples

    @property
    def compared(self) -> tuple[str, ...]:
        """What counts: the last tensors that integer nodes make, and float outputs but for
        probabilities."""
        return compared_tensors(self.simulator.selection)

    def prepare(self, samples: Iterable[dict[str, Array]], most: int, say: Say) -> None:
        taken = 0
        for number, sample in enumerate(samples):
            if number >= most or taken > MOST_BYTES:
                break
            say(f"computing the float model, sample {number + 1}")
            values = self.simulator.run(sample)
            kept = {name: values[name] for name in self.compared}
            taken += sum(array.nbytes for array in (*kept.values(), *sample.values()))
            self.samples.append(sample)
            self.expected.append(kept)
            for name, array in kept.items():
                self.signals[name] = self.signals.get(name, 0.0) + Errors.of(array, array).signal

    def loss(self, parameters: Parameters) -> float:
        """Noise to signal of all that is judged, in the mean."""
        return float(self.losses(parameters).sum())

    def losses(self, parameters: Parameters, others: Array | None = None) -> Array:
        """What each sample adds to the loss. Given the losses of others, samples that are left do
        not run once the first eight or more are worse than theirs, and the rest is infinite."""
        losses = np.full(len(self.samples), np.inf)
        for number, (sample, right) in enumerate(zip(self.samples, self.expected, strict=True)):
            found = self.simulator.run(sample, parameters)
            losses[number] = np.mean([
                Errors(signal, Errors.of(right[name], found[name]).noise).ratio
                for name, signal in self.signals.items()])
            done = number + 1
            if others is not None and done >= FEWEST and losses[:done].sum() > others[:done].sum():
                break
        return losses


def compared_tensors(selection: Selection) -> tuple[str, ...]:
    graph = selection.graph
    last = [name for name in graph.nodes if name in selection.ends or (
        name in selection.nodes and name in selection.groups
        and not any(each in selection.nodes for each in graph.readers.get(name, ())))]
    outputs = [name for name in graph.outputs if name in graph.nodes
               and graph.type_of(name).is_float
               and not isinstance(graph.nodes[name].operation, SQUASHED)]
    return tuple(dict.fromkeys([*last, *outputs]))


def layer_errors(simulator: Simulator, samples: Iterable[dict[str, Array]],
                 parameters: Parameters) -> dict[str, Errors]:
    """The error of every point that a node computes, and of every float output."""
    selection = simulator.selection
    names = [name for name in (*selection.groups, *selection.ends, *selection.graph.outputs)
             if name in selection.graph.nodes and selection.graph.type_of(name).is_float]
    errors = {name: Errors() for name in names}
    for sample in samples:
        right, found = simulator.run(sample), simulator.run(sample, parameters)
        for name, each in errors.items():
            each.add(right[name], found[name])
    return errors

