"""Ranges, rounding and equalization: each does what it promises."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.quantization.calibration.levels import Levels
from microtron.quantization.calibration.ranges import METHODS, choose_scale, squared_error
from microtron.quantization.calibration.statistics import Histogram
from microtron.quantization.options import QuantizeOptions
from microtron.quantization.parameters import Scale, Weights
from microtron.quantization.prepare import prepare
from microtron.quantization.selection import select
from microtron.quantization.simulation import Simulator
from microtron.quantization.techniques.equalization import equalize, find_pairs, observe_channels
from microtron.quantization.techniques.rounding import descend

from .float_graphs import random_network, samples_for


def histogram_of(values):
    found = Histogram(min(0.0, float(values.min())), max(0.0, float(values.max())))
    found.add(values)
    return found


def test_the_best_method_has_the_smallest_true_error():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 50000), [40.0, -25.0]]).astype(np.float32)
    histogram = histogram_of(values)
    errors = {}
    for method in (*METHODS, "best"):
        scale, _ = choose_scale(histogram, method)
        errors[method] = float(np.mean(np.square(values - scale.fake_quantize(values))))
    assert errors["best"] <= 1.02 * min(errors.values())
    assert errors["mse"] < 0.95 * errors["minmax"]


def test_the_error_of_a_histogram_is_that_of_its_numbers():
    values = np.random.default_rng(1).normal(0, 1, 40000).astype(np.float32)
    histogram = histogram_of(values)
    for low, high in ((-4, 4), (-2, 3), (-1, 1)):
        scale = Scale.from_range(low, high)
        true = float(np.mean(np.square(values - scale.fake_quantize(values))))
        assert squared_error(histogram, low, high) == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize(("step", "low", "high"), [
    (1.0, 0, 255), (1 / 255, 3, 250), (0.584703, -128, 127), (0.584703, -90, 40), (2.0, 0, 1),
    (0.25, -200, 0), (1e-6, -1, 1), (3e4, -7, 12)])
def test_multiples_of_a_step_are_exact(step, low, high):
    values = (np.float32(step) * np.arange(low, high + 1)).astype(np.float32)
    levels = Levels()
    for part in np.array_split(np.random.default_rng(0).permutation(np.tile(values, 40)), 7):
        levels.add(part)
    scale = levels.scale
    assert scale is not None
    assert -128 <= scale.zero <= 127
    np.testing.assert_allclose(scale.fake_quantize(values), values, rtol=1e-5, atol=1e-5 * step)
    below = round(min(values.min(), 0) / scale.scale) + scale.zero + 128
    above = 127 - scale.zero - round(max(values.max(), 0) / scale.scale)
    assert min(below, above) >= 0
    assert abs(below - above) <= 1 if low < 0 < high else 0 in (below, above)
    within = Scale.from_range(values.min(), values.max()).scale
    assert scale.scale <= 2.1 * within          # no range is wasted on few levels


@pytest.mark.parametrize("values", [
    np.random.default_rng(0).normal(0, 1, 5000), np.random.default_rng(0).normal(0, 1, 20),
    np.arange(257), np.arange(256) + 0.5, np.zeros(9), np.array([1e-12]), np.arange(-200, 56) / 7
    + np.where(np.arange(256) == 9, 0.02, 0)])
def test_other_numbers_have_no_step(values):
    levels = Levels()
    levels.add(values.astype(np.float32))
    assert levels.scale is None


def test_the_larger_a_model_the_fewer_samples_judge_candidates():
    counts = [QuantizeOptions().count_judged(macs, random=False)
              for macs in (0, 10 ** 6, 10 ** 8, 10 ** 10)]
    assert counts == [64, 64, 40, 16]
    assert QuantizeOptions().count_judged(0, random=True) == 16
    assert QuantizeOptions(judged_samples=3).count_judged(10 ** 6, random=False) == 3


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1e-30), (-3, -1), (2, 5), (-1, 2)])
def test_zero_is_exact_at_every_scale(low, high):
    scale = Scale.from_range(low, high)
    assert scale.scale > 0
    assert -128 <= scale.zero <= 127
    assert scale.fake_quantize(np.zeros(1, np.float32))[0] == 0
    for end in (low, high):
        assert abs(scale.fake_quantize(np.array([end], np.float32))[0] - end) <= scale.scale


def test_learned_rounding_is_never_worse_than_the_nearest_and_often_the_best():
    rng = np.random.default_rng(2)
    better = 0
    for _ in range(20):
        x = rng.normal(0, 1, (50, 4)) @ rng.normal(0, 1, (4, 4))
        matrix = (x.T @ x / 50).astype(np.float32)
        steps = rng.uniform(-5, 5, (1, 4)).astype(np.float32)

        def loss(stored, steps=steps, matrix=matrix):
            error = steps - stored
            return float((error @ matrix * error).sum())

        found = descend(steps[None], np.rint(steps)[None], matrix[None], 127)[0]
        everything = [np.floor(steps) + np.array([each]) for each in product((0, 1), repeat=4)]
        assert loss(found) <= loss(np.rint(steps)) + 1e-6
        assert any(np.array_equal(found, each) for each in everything)
        better += loss(found) < 1.3 * min(map(loss, everything)) + 1e-6
    assert better >= 14


def test_groups_of_channels_round_as_each_would_alone():
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (7, 50, 9))
    matrices = (x.transpose(0, 2, 1) @ x / 50).astype(np.float32)
    steps = rng.uniform(-5, 5, (7, 3, 9)).astype(np.float32)
    together = descend(steps, np.rint(steps), matrices, 4)
    alone = [descend(steps[each:each + 1], np.rint(steps[each:each + 1]),
                     matrices[each:each + 1], 4)[0] for each in range(7)]
    np.testing.assert_array_equal(together, np.stack(alone))
    assert (together != np.rint(steps)).any()


def test_weights_keep_to_their_bits_and_channels():
    real = np.random.default_rng(3).normal(0, 1, (3, 2, 3, 3)).astype(np.float32)
    real[1] = 0                                         # a dead channel
    for bits, largest in ((8, 127), (4, 7)):
        weights = Weights(real, np.zeros(3, np.float32), 0, bits).round_to_nearest()
        assert np.abs(weights.stored).max() == largest
        error = np.abs(weights.dequantized - real).max(axis=(1, 2, 3))
        assert (error <= weights.scales / 2 + 1e-7).all()


def test_an_equalized_model_computes_the_same():
    graph = prepare(next(each for each in map(random_network, range(50))
                         if find_pairs(select(prepare(each)))))
    simulator = Simulator(select(graph))
    samples = samples_for(graph, 3)
    pairs = find_pairs(simulator.selection)
    channels = observe_channels(simulator, {pair.tensor: 1 for pair in pairs}, samples,
                                lambda doing: None)
    before = [simulator.run(each)["scores"] for each in samples]
    plain = simulator.float_arrays
    for scale, absorb in ((True, False), (False, True), (True, True)):
        simulator.float_arrays = plain
        simulator.float_arrays = equalize(simulator, pairs, channels, scale=scale, absorb=absorb)
        for sample, right in zip(samples, before, strict=True):
            np.testing.assert_allclose(simulator.run(sample)["scores"], right, 1e-3, 1e-4)


@pytest.mark.parametrize(("options", "message"), [
    ({"method": "mean"}, "method is 'mean', but must be one of best, minmax"),
    ({"techniques": "round"}, "techniques is 'round', but must be a list of names"),
    ({"techniques": ["rounds"]}, "techniques have 'rounds', but must be among"),
    ({"weight_bits": 5}, "weight_bits is 5, but must be 4 or 8"),
    ({"max_loss": -1}, "max_loss is -1, but must be a number from 0 on"),
    ({"max_loss": float("nan")}, "max_loss is nan"),
    ({"judged_samples": 0}, "judged_samples is 0"),
])
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(MicrotronError, match=message):
        QuantizeOptions(**options)


def test_results_of_the_float_model_are_those_of_its_present_weights(monkeypatch):
    graph = prepare(random_network(0))
    simulator, sample = Simulator(select(graph)), samples_for(graph, 1)[0]
    before = simulator.run(sample)
    assert simulator.run(sample) is before
    plain = simulator.float_arrays
    simulator.float_arrays = {name: 2 * array for name, array in plain.items()}
    assert any((simulator.run(sample)[name] != array).any() for name, array in before.items())
    simulator.float_arrays = plain
    for name, array in simulator.run(sample).items():
        np.testing.assert_array_equal(array, before[name])
    monkeypatch.setattr("microtron.quantization.simulation.REMEMBERED", 0)
    simulator.float_arrays = plain
    assert simulator.run(sample) is not simulator.run(sample)
