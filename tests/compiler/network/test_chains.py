"""Results that stay on the chip: the same numbers, nothing stored, and only where it is faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtron
from microtron.compiler.graph.evaluate_graph import evaluate, evaluate_all
from microtron.compiler.network import compile_network as compiler
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.passes.pipeline import run_passes
from microtron.isa.config import base, small, tiny
from microtron.isa.instructions import Gemm, GemmFlags, Opcode, Store, Window
from microtron.isa.verification.verifier import verify

from ..graph.random_graphs import networks, random_inputs
from .networks import Layers, execute
from .test_compile_network import inputs_for

ROOMY = {"tiny": replace(tiny, out_bytes=8 << 10, wgt_bytes=16 << 10),
         "windows": replace(tiny, out_bytes=8 << 10, wgt_bytes=16 << 10, window_taps=3),
         "batch 2": replace(tiny, batch=2, out_bytes=8 << 10), "small": small,
         "4 bits": replace(tiny, wgt_bits=4, out_bytes=8 << 10),
         "more in than out": replace(tiny, block_in=8, inp_bytes=4 << 10, out_bytes=8 << 10,
                                     wgt_bytes=16 << 10, window_taps=3),
         "more out than in": replace(tiny, block_out=16, acc_bytes=32 << 10, out_bytes=16 << 10,
                                     wgt_bytes=16 << 10, window_taps=3)}


def store(program):
    """A cost for which whatever stays on the chip pays: tiles that are stored."""
    words = program.code.view(Store.dtype())[program.code["opcode"] == Opcode.STORE]
    return 1 + int(words["shape"].astype(np.int64).prod(axis=1).sum())


def mobile(channels=12, size=6, blocks=3, stride=2, most=7):
    """Depthwise and pointwise convolutions in turn, the second with a stride, and a plain one."""
    layers = Layers((1, size, size, channels), 3)
    name = "x"
    for number in range(blocks):
        layers.conv(f"deep{number}", name, channels, 3, groups=channels, zero_point=number - 7,
                    most=most, stride=(stride, stride) if number == 1 else (1, 1))
        name = layers.conv(f"wide{number}", f"deep{number}", channels, 1, zero_point=9 * number - 5,
                           most=most)
    layers.conv("last", name, 8, 3, most=most)
    return layers.builder.graph(("last",))


def check(graph, config, seed, cost, *devices):
    """All that comes out is what the graph means; what stays on the chip does not come out."""
    given = random_inputs(graph, seed)
    after = run_passes(graph)
    network = compile_network(after, config, cost=cost)
    right = {**evaluate_all(network.graph, given), **evaluate(graph, given)}
    for program in network.programs:
        verify(program)
    for device in devices:
        for name, values in execute(network, given, device).items():
            np.testing.assert_array_equal(values, right[name], f"{name} on {device}")
    return network


@pytest.mark.parametrize("config", ROOMY.values(), ids=list(ROOMY))
def test_only_the_last_result_of_a_chain_is_stored(config):
    whole = config.block_in == config.block_out         # else tiles that are not full are stored
    graph = mobile() if whole else mobile(16)
    network = check(graph, config, 0, store, "functional", "cycle")
    program, = network.programs
    words = program.code.view(Store.dtype())[program.code["opcode"] == Opcode.STORE]
    assert len({int(each) for each in words["segment"]}) == 1
    assert network.steps[0].plan.peak == 0, "nothing lies between layers in DRAM"
    flags = [int(program.code.view(kind.dtype())["flags"][position])
             for kind in (Gemm, Window)
             for position in np.flatnonzero(program.code["opcode"] == kind.opcode)]
    assert sum(flag & GemmFlags.OUT != 0 for flag in flags) > len(flags) // 2


@given(networks(), st.sampled_from(list(ROOMY.values())), st.integers(0, 9))
@settings(max_examples=12)
def test_any_network_gives_the_same_with_results_on_the_chip(graph, config, seed):
    check(graph, config, seed, store, "functional", "cycle")


@given(st.integers(1, 13), st.integers(2, 7), st.integers(1, 3), st.integers(1, 2),
       st.sampled_from(list(ROOMY.values())), st.integers(0, 9))
@settings(max_examples=8)
def test_any_chain_of_a_mobile_network_gives_the_same(channels, size, blocks, stride, config, seed):
    check(mobile(channels, size, blocks, stride), config, seed, store, "functional", "cycle")


@given(st.integers(3, 9), st.integers(3, 6), st.integers(0, 9))
@settings(max_examples=2)
def test_a_chain_gives_it_on_the_hardware_too(channels, size, seed):
    check(mobile(channels, size), tiny, seed, store, "cycle", "rtl")


@pytest.mark.soak
@given(st.integers(3, 9), st.integers(3, 6), st.integers(0, 9))
@settings(max_examples=50)
def test_chains_with_windows_give_it_on_the_hardware_too(channels, size, seed):
    check(mobile(channels, size), replace(tiny, window_taps=3), seed, store, "cycle", "rtl")


def test_a_chain_is_taken_only_if_the_stream_is_faster(monkeypatch):
    graph = mobile(32, 6)
    with_chains = compile_network(graph, base, cost=microtron.simulated_cost())
    monkeypatch.setattr(compiler, "chain_layers", lambda group, layers, linker: group)
    without = compile_network(graph, base, cost=microtron.simulated_cost())
    cycles = [microtron.simulate(each.programs[0]).cycles for each in (with_chains, without)]
    assert cycles[0] < cycles[1]
    assert compile_network(graph, base, cost=lambda program: 100).steps[0].plan.peak > 0


def test_what_somebody_else_reads_is_stored():
    """An output of the network, a residual, a layer that is not the next."""
    layers = Layers((1, 5, 5, 4), 3)
    layers.conv("first", "x", 4, 3)
    layers.conv("second", "first", 4, 3)
    layers.conv("third", "second", 4, 3)
    layers.add("sum", "third", "first")
    layers.conv("fourth", "sum", 4, 1)
    graph = layers.builder.graph(("fourth", "second"))
    given = inputs_for(graph)
    network = compile_network(graph, small, cost=store)
    found = execute(network, given, "functional")
    right = evaluate_all(graph, given)
    assert set(found) == {"fourth", "second"}
    for name, values in found.items():
        np.testing.assert_array_equal(values, right[name])


def test_results_too_large_for_the_chip_are_stored():
    """Some of a run may find room where all of it does not."""
    graph = mobile(8, 14, 3)
    config = replace(tiny, wgt_bytes=16 << 10)
    network = check(graph, config, 1, store, "functional")
    assert network.steps[0].plan.peak > 0


def test_a_configuration_whose_gemm_does_not_read_results_has_no_chains():
    config = replace(ROOMY["tiny"], out_readers=1)
    assert check(mobile(), config, 0, store, "functional").steps[0].plan.peak > 0
