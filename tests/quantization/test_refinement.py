"""Scales that are moved where that helps the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.quantization import pipeline
from microtron.quantization.calibration.statistics import observe
from microtron.quantization.evaluation import Evaluator
from microtron.quantization.layers import LARGEST_BIAS, initial_weights
from microtron.quantization.options import QuantizeOptions
from microtron.quantization.parameters import Parameters, Scale
from microtron.quantization.prepare import prepare
from microtron.quantization.selection import data_of, select
from microtron.quantization.simulation import Simulator
from microtron.quantization.techniques import refinement
from microtron.quantization.techniques.refinement import (
    FACTORS,
    is_gain,
    neighbours,
    refine_scales,
    samples_to_refine,
    with_scale,
)

from .float_graphs import random_network, samples_for


def quiet(doing):
    pass


def calibrated(seed, count=24, *, wider=1.0):
    """A network with scales by min–max, times a factor."""
    graph = prepare(random_network(seed))
    simulator, samples = Simulator(select(graph)), samples_for(graph, count)
    ranges = observe(simulator, samples, quiet).ranges
    scales = {group: Scale.from_range(wider * each.low, wider * each.high)
              for group, each in ranges.items()}
    weights = initial_weights(simulator.selection, simulator.float_arrays, scales, 8)
    return simulator, samples, Parameters(scales, weights)


def evaluator(simulator, samples):
    found = Evaluator(simulator)
    found.prepare(samples, len(samples), quiet)
    return found


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_ranges_that_clip_too_much_become_wider(seed):
    simulator, samples, parameters = calibrated(seed, wider=0.6)
    chosen_by, judged_by = evaluator(simulator, samples[8:]), evaluator(simulator, samples[:8])
    found = refine_scales(parameters, chosen_by, judged_by, quiet)
    assert judged_by.loss(found) < 0.9 * judged_by.loss(parameters)
    assert chosen_by.loss(found) < 0.9 * chosen_by.loss(parameters)
    assert max(found.scales[group].scale / each.scale
               for group, each in parameters.scales.items()) > 1.1


def test_a_change_that_only_one_half_of_the_samples_likes_is_dropped():
    simulator, samples, parameters = calibrated(4, wider=0.6)
    chosen_by = evaluator(simulator, samples[8:])
    judged_by = evaluator(simulator, samples[:8])
    for sample, expected in zip(samples, judged_by.expected, strict=False):     # no error at all
        now = simulator.run(sample, parameters)
        expected.update({name: now[name].copy() for name in expected})
    found = refine_scales(parameters, chosen_by, judged_by, quiet)
    assert found is parameters


def test_a_gain_is_more_than_chance():
    noise = np.random.default_rng(0).normal(0, 1, 32)
    before = 5 + noise - noise.mean()
    after = np.full(32, 5.0)
    assert not is_gain(before, after)
    assert not is_gain(before, after - 0.2)
    assert is_gain(before, after - 1)
    assert not is_gain(before, after + 1)
    assert not is_gain(after, after)
    assert not is_gain(before, np.append(after[:8] - 1, np.full(24, np.inf)))


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


def test_each_side_of_a_range_moves_alone_and_zero_stays_exact():
    found = list(neighbours(Scale.from_range(-1, 2)))
    assert len(found) == 2 * len(FACTORS)
    assert len(list(neighbours(Scale.from_range(0, 2)))) == len(FACTORS)
    for each in found:
        assert each.fake_quantize(np.zeros(1, np.float32))[0] == 0


def test_biases_fit_at_the_scale_that_is_chosen():
    simulator, _, parameters = calibrated(0)
    layer = next(iter(parameters.weights))
    group = simulator.selection.groups[data_of(simulator.selection.graph.nodes[layer].operation)]
    large = replace(parameters.weights[layer], bias=np.full_like(
        parameters.weights[layer].bias, 1e6))
    tiny = Scale(1e-7, 0)
    found = with_scale(simulator.selection, parameters.with_weights({layer: large}), group, tiny)
    assert found.scales[group] == tiny
    stored = 1e6 / (tiny.scale * found.weights[layer].scales.astype(np.float64))
    assert stored.max() <= LARGEST_BIAS * 1.001
    others = [each for each in parameters.weights if each != layer]
    assert all(found.weights[each] is parameters.weights[each] for each in others)


@pytest.mark.parametrize(("count", "largest", "right"), [
    (40, 3e11, 24), (100, 3e11, 32), (31, 3e11, 0), (32, 3e11, 16), (100, 1, 0)])
def test_samples_must_be_enough_and_the_model_small(monkeypatch, count, largest, right):
    monkeypatch.setattr(refinement, "MOST_MACS", largest)
    simulator, samples, parameters = calibrated(0, count)
    found = samples_to_refine(simulator.selection, parameters, samples, 16)
    assert len(found) == right
    assert all(one is other for one, other in zip(found, samples[16:], strict=False))


def test_refinement_is_tried_where_results_are_far_and_ranges_are_free(monkeypatch):
    graph = random_network(3)
    samples = samples_for(graph, 40)

    def tried(**options):
        report = microtron.quantize(graph, samples, **options).report
        return any(step[0] == "refined scales" for step in report.techniques)

    monkeypatch.setattr(pipeline, "LEAST_LOSS", 0.0)
    assert tried()
    assert not tried(method="minmax")
    assert not tried(techniques=["round"])
    monkeypatch.setattr(pipeline, "LEAST_LOSS", 1.0)
    assert not tried()
    assert "refine" in QuantizeOptions().techniques
