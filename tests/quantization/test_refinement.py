"""Ranges that are chosen by what they do to the results."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.quantization import pipeline
from microtron.quantization.calibration.statistics import observe
from microtron.quantization.evaluation import Evaluator
from microtron.quantization.layers import initial_weights
from microtron.quantization.options import QuantizeOptions
from microtron.quantization.parameters import Parameters, Scale
from microtron.quantization.prepare import prepare
from microtron.quantization.selection import select
from microtron.quantization.simulation import Simulator
from microtron.quantization.techniques import refinement
from microtron.quantization.techniques.refinement import (
    alone,
    refine_ranges,
    samples_to_refine,
)

from .float_graphs import random_network, samples_for


def quiet(doing):
    pass


def calibrated(seed, count=24):
    """A network with scales by min–max."""
    graph = prepare(random_network(seed))
    simulator, samples = Simulator(select(graph)), samples_for(graph, count)
    ranges = observe(simulator, samples, quiet).ranges
    scales = {group: Scale.from_range(each.low, each.high) for group, each in ranges.items()}
    weights = initial_weights(simulator.selection, simulator.float_arrays, scales, 8)
    return simulator, samples, Parameters(scales, weights)


def evaluator(simulator, samples):
    found = Evaluator(simulator)
    found.prepare(samples, len(samples), quiet)
    return found


def outliers_in(samples):
    """Some numbers of the first input that are far larger than all others."""
    rng = np.random.default_rng(1)
    for sample in samples:
        array = next(iter(sample.values()))
        array.reshape(-1)[rng.integers(array.size)] *= 40
    return samples


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_ranges_are_the_best_for_the_results_of_each_tensor_alone(seed):
    graph = prepare(random_network(seed))
    simulator, samples = Simulator(select(graph)), outliers_in(samples_for(graph, 12))
    histograms, judge = observe(simulator, samples, quiet).histograms, evaluator(simulator, samples)
    found = refine_ranges(histograms, judge, quiet)
    assert found.keys() == histograms.keys()
    narrower = 0
    for group, each in histograms.items():
        whole = Scale.from_range(each.low, each.high)
        losses = [judge.loss(alone(group, scale)) for scale in (whole, found[group])]
        assert losses[1] <= losses[0]
        assert found[group] == whole or losses[1] < losses[0]
        margin = whole.scale                    # zero is one of the levels
        assert whole.low - margin <= found[group].low <= 0 <= found[group].high
        assert found[group].high <= whole.high + margin
        narrower += found[group] != whole
    assert narrower


def test_a_model_with_ranges_that_suit_its_results_is_closer():
    graph = prepare(random_network(3))
    simulator, samples = Simulator(select(graph)), outliers_in(samples_for(graph, 12))
    histograms, judge = observe(simulator, samples, quiet).histograms, evaluator(simulator, samples)

    def loss(scales):
        return judge.loss(Parameters(scales, initial_weights(
            simulator.selection, simulator.float_arrays, scales, 8)))

    whole = {group: Scale.from_range(each.low, each.high) for group, each in histograms.items()}
    assert loss(refine_ranges(histograms, judge, quiet)) < 0.9 * loss(whole)


def test_what_is_exact_stays_so():
    graph = prepare(random_network(0))
    simulator, samples = Simulator(select(graph)), samples_for(graph, 8)
    for sample in samples:
        for array in sample.values():
            array[:] = np.rint(20 * np.tanh(array)) / 8
    histograms = observe(simulator, samples, quiet).histograms
    exact = {group: each.exact for group, each in histograms.items() if each.exact is not None}
    assert exact
    found = refine_ranges(histograms, evaluator(simulator, samples), quiet)
    assert {group: found[group] for group in exact} == exact


def test_samples_add_up_to_the_loss_and_stop_where_others_are_better():
    simulator, samples, parameters = calibrated(2, count=12)
    judge = evaluator(simulator, samples)
    losses = judge.losses(parameters)
    assert judge.loss(parameters) == pytest.approx(losses.sum())
    assert (losses > 0).all()
    np.testing.assert_array_equal(judge.losses(parameters, 1.1 * losses), losses)
    better = losses.copy()
    better[9] = 0
    stopped = judge.losses(parameters, better)
    np.testing.assert_array_equal(stopped[:10], losses[:10])
    assert np.isinf(stopped[10:]).all()


@pytest.mark.parametrize(("count", "largest", "right"), [
    (40, 3e11, 40), (100, 3e11, 64), (7, 3e11, 0), (8, 3e11, 8), (100, 1, 0)])
def test_samples_must_be_enough_and_the_model_small(monkeypatch, count, largest, right):
    monkeypatch.setattr(refinement, "MOST_MACS", largest)
    simulator, samples, _ = calibrated(0, count)
    found = samples_to_refine(simulator.selection, samples)
    assert len(found) == right
    assert all(one is other for one, other in zip(found, samples, strict=False))


def test_refinement_is_tried_where_results_are_far_and_ranges_are_free(monkeypatch):
    graph = random_network(3)
    samples = samples_for(graph, 40)

    def tried(**options):
        report = microtron.quantize(graph, samples, **options).report
        return any(step[0] == "refined ranges" for step in report.techniques)

    monkeypatch.setattr(pipeline, "LEAST_LOSS", 0.0)
    assert tried()
    assert not tried(method="minmax")
    assert not tried(techniques=["round"])
    monkeypatch.setattr(pipeline, "LEAST_LOSS", 1.0)
    assert not tried()
    assert "refine" in QuantizeOptions().techniques
