"""Random small networks: what every device computes is what the graph means, to the bit, and every
program is proven safe."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtron
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.isa.verification.verifier import verify
from microtron.runtime.reports.layers import inspect_model
from microtron.runtime.times.estimate import FALLBACK, estimate_times
from microtron.sim.simulate import simulate

from ..compiler.graph.random_graphs import networks, random_inputs


def _same(found, right):
    """Integers are the same; real numbers differ in their last places, as sums do."""
    if right.dtype.kind == "f":
        return np.allclose(found, right, rtol=1e-5, atol=1e-7, equal_nan=True)
    return np.array_equal(found, right)


def check(graph, seed, config, devices):
    model = microtron.compile(graph, config)
    for program in model.programs:
        verify(program)
    inputs = random_inputs(graph, seed)
    right = evaluate(graph, inputs)
    for device in devices:
        result = model.run(inputs, device)
        assert list(result.outputs) == list(right)
        for name, array in right.items():
            assert result[name].dtype == array.dtype
            assert _same(result[name], array), f"{name} on {device}\n{graph}"
    found = inspect_model(model, time_host=partial(estimate_times, processor=FALLBACK, mhz=100))
    assert sum(each.cycles or 0 for each in found.layers) == found.cycles == sum(
        simulate(program).cycles for program in model.programs)


@given(networks(), st.integers(0, 99), st.sampled_from(("tiny", "small", "base")))
@settings(max_examples=10)
def test_devices_give_what_a_network_means(graph, seed, config):
    check(graph, seed, config, ("functional", "cycle"))


@pytest.mark.soak
@given(networks(), st.integers(0, 99), st.sampled_from(("tiny", "small", "base", "wide")))
@settings(max_examples=200)
def test_devices_give_what_many_networks_mean(graph, seed, config):
    check(graph, seed, config, ("functional", "cycle"))


@pytest.mark.soak
@given(networks(), st.integers(0, 99))
@settings(max_examples=60)
def test_the_hardware_gives_what_a_network_means(graph, seed):
    check(graph, seed, "tiny", ("rtl",))
