"""Random networks, through all passes, on every device: every tensor that comes out of a step is
what the graph means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.graph.evaluate_graph import evaluate, evaluate_all
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import tiny
from microtron.isa.verification.verifier import verify
from microtron.testing.campaign import SMALL

from ..graph.random_graphs import networks, random_inputs
from .networks import execute
from .test_compile_network import CONFIGS

BUILT = SMALL["batch"]          # has windows, and other tests build its hardware anyway


def check(graph, config, seed, *devices):
    """Outputs are the model's own; what lies between is that of the graph that is compiled."""
    given = random_inputs(graph, seed)
    after = run_passes(graph)
    network = compile_network(after, config)
    right = {**evaluate_all(network.graph, given), **evaluate(graph, given)}
    for program in network.programs:
        verify(program)
    for device in devices:
        for name, values in execute(network, given, device).items():
            np.testing.assert_array_equal(values, right[name], f"{name} on {device}")


@given(networks(), st.sampled_from(list(CONFIGS.values())), st.integers(0, 9))
@settings(max_examples=25)
def test_a_network_gives_what_its_graph_means(graph, config, seed):
    check(graph, config, seed, "functional", "cycle")


@given(networks(), st.integers(0, 9))
@settings(max_examples=3)
def test_a_network_gives_it_on_the_hardware_too(graph, seed):
    check(graph, BUILT, seed, "cycle", "rtl")


@pytest.mark.soak
@given(networks(), st.sampled_from(list(CONFIGS.values())), st.integers(0, 9))
@settings(max_examples=200)
def test_many_networks_give_what_their_graphs_mean(graph, config, seed):
    check(graph, config, seed, "functional", "cycle")


@pytest.mark.soak
@given(networks(), st.integers(0, 9))
@settings(max_examples=200)
def test_many_networks_give_it_on_the_hardware_too(graph, seed):
    check(graph, tiny, seed, "cycle", "rtl")
