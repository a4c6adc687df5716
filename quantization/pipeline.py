"""From a float graph and samples to a quantized graph: prepare, calibrate, try what may help, and
insert integers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from ..base.checked_values import list_names, show_name
from ..base.errors import MicrotronError
from ..compiler.graph.graph import Graph
from .calibration.ranges import BEST, choose_scale
from .calibration.samples import Samples
from .calibration.statistics import Say, Statistics, observe
from .evaluation import Evaluator
from .insertion import insert
from .layers import initial_weights
from .options import QuantizeOptions
from .parameters import Array, Parameters, Scale
from .prepare import PRODUCTS, prepare
from .selection import Selection, count_macs, select
from .simulation import Simulator
from .techniques.equalization import equalize, find_pairs, observe_channels
from .techniques.refinement import LEAST_LOSS, refine_ranges, samples_to_refine
from .techniques.rounding import correct_biases, learn_rounding, observe_moments
from .techniques.sensitivity import LossMeter, layers_to_keep
from .techniques.smoothing import find_smoothed, smooth

MOST_LEARNED = 64               # samples that rounding learns from
MOST_ROUNDS = 4                 # of keeping more layers float


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
    loss: float                     # noise to signal of all that is judged
    judged: int                     # samples, at most
    kept_float: tuple[str, ...] = ()        # layers that max_loss keeps


def quantize_graph(graph: Graph, samples: Samples, options: QuantizeOptions, say: Say,
                   labels: Array | None = None) -> Quantized:
    """Quantize a float graph with samples of its inputs."""
    say("preparing the float model")
    prepared = prepare(graph)
    left_out = layers_named(prepared, options.keep_float)
    selection = select(prepared, left_out)
    if not selection.layers:
        raise MicrotronError(_explain_nothing(prepared, left_out))
    _check_finite(selection)
    found = quantize_selection(selection, samples, options, say)
    if options.max_loss is None:
        return found
    kept = set(left_out)
    for _ in range(MOST_ROUNDS):            # scales change with what is left out
        meter = LossMeter(found.simulator, samples, labels, found.judged)
        more = layers_to_keep(meter, found.parameters, options.max_loss, say)
        if not more:
            return replace(found, kept_float=tuple(sorted(kept - set(left_out))))
        kept |= set(more)
        found = quantize_selection(select(prepared, kept), samples, options, say)
    raise MicrotronError(f"max_loss is {options.max_loss}, and the loss is above it with "
                         f"{len(kept)} layers in float; give more samples, or a larger loss")


def quantize_selection(selection: Selection, samples: Samples, options: QuantizeOptions,
                       say: Say) -> Quantized:
    """Quantize what is selected; once more with smoothed activations, if there are any and that is
    better."""
    say("compiling the float model for the CPU")
    simulator = Simulator(selection)
    found = _calibrate(simulator, samples, options, say)
    if "smooth" not in options.techniques or not find_smoothed(selection):
        return found
    say("trying: smoothed activations")
    graph = smooth(simulator, islice(iter(samples), found.judged), say)
    left_out = [name for name, node in selection.graph.nodes.items()
                if isinstance(node.operation, PRODUCTS) and name not in selection.layers]
    other = _calibrate(Simulator(select(graph, left_out)), samples, options, say)
    used = other.loss < found.loss
    step = ("smoothed activations", found.loss, other.loss, used)
    chosen = other if used else found
    return replace(chosen, steps=(*chosen.steps, step))


def _calibrate(simulator: Simulator, samples: Samples, options: QuantizeOptions,
               say: Say) -> Quantized:
    selection = simulator.selection
    statistics = observe(simulator, samples, say)
    evaluator = Evaluator(simulator)
    judged = options.count_judged(count_macs(selection), random=samples.random)
    evaluator.prepare(samples, judged, say)
    trial = _Trial(evaluator, say, judged)
    parameters = _ranges(trial, statistics, options)
    parameters = _equal_models(trial, samples, parameters, options)
    parameters = _refine(trial, samples, parameters, options)
    parameters = _weights(trial, samples, parameters, options)
    return Quantized(insert(selection, parameters), selection, parameters, simulator, evaluator,
                     tuple(trial.steps), statistics.samples, samples.random, trial.loss, judged)


def _equal_models(trial: _Trial, samples: Samples, parameters: Parameters,
                  options: QuantizeOptions) -> Parameters:
    """Equalized layers and absorbed biases, each if it helps: float models that are equal, but
    easier to quantize."""
    simulator = trial.evaluator.simulator
    wanted = [each for each in ("equalize", "absorb") if each in options.techniques]
    pairs = find_pairs(simulator.selection) if wanted else []
    axes = {pair.tensor: 1 if len(simulator.selection.graph.type_of(pair.tensor).shape) == 4 else -1
            for pair in pairs}
    channels = observe_channels(simulator, axes, islice(iter(samples), trial.judged),
                                trial.say) if pairs else {}
    if not any((each.low > 0).any() for each in channels.values()):
        wanted = [each for each in wanted if each != "absorb"]
    for technique in wanted if pairs else []:
        before, now = simulator.float_arrays, parameters
        simulator.float_arrays = equalize(simulator, pairs, channels,
                                          scale=technique == "equalize",
                                          absorb=technique == "absorb")
        parameters = trial.better(
            {"equalize": "cross-layer equalization", "absorb": "bias absorption"}[technique], now,
            lambda: _ranges_of(simulator, observe(simulator, samples, trial.say), options,
                               trial.method))
        if parameters is now:
            simulator.float_arrays = before
        elif technique != wanted[-1]:
            channels = observe_channels(simulator, axes,
                                        islice(iter(samples), trial.judged), trial.say)
    return parameters


def _refine(trial: _Trial, samples: Samples, parameters: Parameters,
            options: QuantizeOptions) -> Parameters:
    """Ranges chosen by what they do to the results, if these are not close already. Random
    samples say nothing about that."""
    if "refine" not in options.techniques or options.method != BEST or samples.random or (
            trial.loss < LEAST_LOSS):
        return parameters
    simulator = trial.evaluator.simulator
    others = samples_to_refine(simulator.selection, samples)
    if not others:
        return parameters
    chosen_by = Evaluator(simulator)
    chosen_by.prepare(others, len(others), trial.say)
    statistics = observe(simulator, samples, trial.say)         # of equalized tensors, too

    def refine() -> Parameters:
        return _parameters_with(simulator, options, refine_ranges(
            statistics.histograms, chosen_by, trial.say))

    return trial.better("refined ranges", parameters, refine)


def _explain_nothing(graph: Graph, left_out: Collection[str]) -> str:
    """Why there is nothing to quantize."""
    name = show_name(graph.name or "the model")
    for layer, node in graph.nodes.items():
        if isinstance(node.operation, PRODUCTS) and node.type.dtype == "float64":
            return (f"{name}: {show_name(layer)} has numbers of 64 bits; export the model with "
                    f"float32, which is what is quantized")
    besides = " besides those that stay float" * bool(left_out)
    return f"{name} has no convolution or matrix product to quantize{besides}"


def _check_finite(selection: Selection) -> None:
    """Weights and biases must be numbers: no scale holds others."""
    for layer in selection.layers:
        for name in selection.graph.nodes[layer].operation.operands():
            array = selection.graph.array(name)
            if array is not None and not np.isfinite(array).all():
                where = tuple(int(each) for each in np.argwhere(~np.isfinite(array))[0])
                raise MicrotronError(f"{show_name(name)}, which {show_name(layer)} reads, is "
                                     f"{array[where]} at {where}; keep that layer in float")


def layers_named(graph: Graph, names: Sequence[str]) -> set[str]:
    """Layers by the name of their result, or by what the model calls them."""
    found = set()
    products = {name: node for name, node in graph.nodes.items()
                if isinstance(node.operation, PRODUCTS)}
    for each in names:
        same = {name for name, node in products.items()
                if each in (name, name.removesuffix(".unclamped"), node.origin)}
        if not same:
            known = [show_name(name.removesuffix(".unclamped")) for name in products]
            raise MicrotronError(f"there is no layer {show_name(each)}; layers are "
                                 f"{list_names(known)}")
        found |= same
    return found


@dataclass
class _Trial:
    """Candidates, compared by the loss that each has."""

    evaluator: Evaluator
    say: Say
    judged: int                             # samples

    def __post_init__(self) -> None:
        self.steps: list[tuple[str, float, float, bool]] = []
        self.loss = float("inf")
        self.method = "minmax"              # by which ranges are chosen so far

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


def _ranges(trial: _Trial, statistics: Statistics, options: QuantizeOptions) -> Parameters:
    """Scales by the method that is asked for. The best of all methods for each tensor must also be
    better for the model than one method for all."""
    simulator = trial.evaluator.simulator
    if options.method != BEST:
        trial.method = options.method
        return trial.start(_ranges_of(simulator, statistics, options, options.method))
    parameters = trial.start(_ranges_of(simulator, statistics, options, trial.method))
    for method in (BEST, "percentile"):
        now = parameters
        parameters = trial.better(f"ranges: {method}", now, partial(
            _ranges_of, simulator, statistics, options, method))
        if parameters is not now:
            trial.method = method
    return parameters


def _ranges_of(simulator: Simulator, statistics: Statistics, options: QuantizeOptions,
               method: str) -> Parameters:
    """The scales that a method chooses, with weights rounded to the nearest. Where a scale is exact
    there is nothing to choose, unless a method is asked for."""
    return _parameters_with(simulator, options, {
        group: each.exact if each.exact is not None and options.method == BEST
        else choose_scale(each, method)[0] for group, each in statistics.histograms.items()})


def _parameters_with(simulator: Simulator, options: QuantizeOptions,
                     scales: dict[str, Scale]) -> Parameters:
    """Scales, and weights rounded to the nearest."""
    return Parameters(scales, initial_weights(simulator.selection, simulator.float_arrays, scales,
                                              options.weight_bits))


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

    def round_weights() -> Parameters:
        return now.with_weights(learn_rounding(now, moments, trial.say))

    def correct_bias(base: Parameters) -> Parameters:
        return base.with_weights(correct_biases(base, moments))

    if "round" in wanted and "correct" in wanted:
        now = trial.better("learned rounding and bias correction", now,
                           lambda: correct_bias(round_weights()))
        if now is not parameters:
            return now
    if "correct" in wanted:
        now = trial.better("bias correction", now, lambda: correct_bias(now))
    if "round" in wanted:
        now = trial.better("learned rounding", now, round_weights)
    return replace(now)
