"""From a float graph and samples to a quantized graph: prepare, calibrate, try what may help, and
insert integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..base.checked_values import list_names, show_name
from ..base.errors import MicrotronError
from ..compiler.graph.graph import Graph
from .evaluation import Evaluator
from .insertion import insert
from .layers import first_weights
from .options import QuantizeOptions
from .parameters import Parameters
from .prepare import PRODUCTS, prepare
from .ranges import BEST, choose_scale
from .rounding import correct_biases, learn_rounding, observe_moments
from .samples import Samples
from .selection import Selection, select
from .simulation import Simulator
from .statistics import Say, Statistics, observe

MOST_LEARNED = 64               # samples that rounding learns from


@dataclass(frozen=True)
class Quantized:
    """A quantized model, and all that was measured on the way."""

    graph: Graph                    # with Quantize and Dequantize
    selection: Selection
    parameters: Parameters
    simulator: Simulator
    evaluator: Evaluator
    steps: tuple[tuple[str, float, float, bool], ...]   # technique, loss before, after, is used
    samples: int
    random: bool


def quantize_graph(graph: Graph, samples: Samples, options: QuantizeOptions,
                   say: Say) -> Quantized:
    """Quantize a float graph with samples of its inputs."""
    say("preparing the float model")
    prepared = prepare(graph)
    left_out = layers_named(prepared, options.keep_float)
    selection = select(prepared, left_out)
    if not selection.layers:
        raise MicrotronError(f"{show_name(graph.name or 'the model')} has no convolution or matrix "
                             f"product to quantize")
    return quantize_selection(selection, samples, options, say)


def quantize_selection(selection: Selection, samples: Samples, options: QuantizeOptions,
                       say: Say) -> Quantized:
    say("compiling the float model for the CPU")
    simulator = Simulator(selection)
    statistics = observe(simulator, samples, say)
    evaluator = Evaluator(simulator)
    evaluator.prepare(samples, options.judged_samples, say)
    trial = _Trial(evaluator, say)
    parameters = _ranges(trial, selection, statistics, options)
    parameters = _weights(trial, samples, parameters, options)
    return Quantized(insert(selection, parameters), selection, parameters, simulator, evaluator,
                     tuple(trial.steps), statistics.samples, samples.random)


def layers_named(graph: Graph, names: Sequence[str]) -> set[str]:
    """Layers by the name of their result, or by what the model calls them."""
    found = set()
    products = {name: node for name, node in graph.nodes.items()
                if isinstance(node.operation, PRODUCTS)}
    for each in names:
        same = {name for name, node in products.items()
                if each in (name, name.removesuffix(".unclamped"), node.origin)}
        if not same:
            raise MicrotronError(f"there is no layer {show_name(each)}; layers are "
                                 f"{list_names([show_name(name) for name in products])}")
        found |= same
    return found


@dataclass
class _Trial:
    """Candidates, compared by the loss that each has."""

    evaluator: Evaluator
    say: Say

    def __post_init__(self) -> None:
        self.steps: list[tuple[str, float, float, bool]] = []
        self.loss = float("inf")

    def start(self, parameters: Parameters) -> Parameters:
        self.loss = self.evaluator.loss(parameters)
        return parameters

    def better(self, technique: str, now: Parameters,
               make: Callable[[], Parameters]) -> Parameters:
        """The candidate, if its loss is smaller."""
        self.say(f"trying: {technique}")
        candidate = make()
        loss = self.evaluator.loss(candidate)
        used = loss < self.loss
        self.steps.append((technique, self.loss, loss, used))
        if not used:
            return now
        self.loss = loss
        return candidate


def _ranges(trial: _Trial, selection: Selection, statistics: Statistics,
            options: QuantizeOptions) -> Parameters:
    """Scales by the method that is asked for. The best of all methods for each tensor must also be
    better for the model than the plain range."""
    def with_method(method: str) -> Parameters:
        return Parameters({group: choose_scale(each, method)[0]
                           for group, each in statistics.histograms.items()}, weights)

    weights = first_weights(selection, options.weight_bits)
    if options.method != BEST:
        return trial.start(with_method(options.method))
    parameters = trial.start(with_method("minmax"))
    for method in (BEST, "percentile"):
        parameters = trial.better(f"ranges: {method}", parameters,
                                  lambda method=method: with_method(method))  # type: ignore[misc]
    return parameters


def _weights(trial: _Trial, samples: Samples, parameters: Parameters,
             options: QuantizeOptions) -> Parameters:
    """Weights and biases that know what the layers read."""
    wanted = [each for each in options.techniques if each in ("round", "correct")]
    if not wanted:
        return parameters
    simulator = trial.evaluator.simulator
    moments = observe_moments(simulator, islice(iter(samples), MOST_LEARNED), parameters,
                              trial.say)
    now = parameters

    def rounded() -> Parameters:
        return now.with_weights(learn_rounding(now, moments, trial.say))

    def corrected(base: Parameters) -> Parameters:
        return base.with_weights(correct_biases(base, moments))

    if "round" in wanted and "correct" in wanted:
        now = trial.better("learned rounding and bias correction", now,
                           lambda: corrected(rounded()))
        if now is not parameters:
            return now
    if "correct" in wanted:
        now = trial.better("bias correction", now, lambda: corrected(now))
    if "round" in wanted:
        now = trial.better("learned rounding", now, rounded)
    return replace(now)
