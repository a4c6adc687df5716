"""Schedules that are tried again inside their stream: never slower, and the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import microtron
from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.network import compile_network as compile_module
from microtron.compiler.network import kernel_search
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.kernel_search import KernelSearch
from microtron.compiler.network.link_group import Linker
from microtron.compiler.network.tuning import overlap, retune
from microtron.isa.config import small

from .networks import Layers, execute


def chain():
    layers = Layers((1, 6, 6, 8), 3)
    for number in range(4):
        layers.conv(f"conv{number}", "x" if not number else f"conv{number - 1}", 24 if number < 3
                    else 8, 1 + 2 * (number % 2))
    return layers.builder.graph(("conv3",))


def test_other_schedules_are_taken_only_if_the_stream_is_faster(monkeypatch):
    graph = chain()
    again = compile_network(graph, small, cost=microtron.simulated_cost())
    monkeypatch.setattr(retune, "MOST_TRIALS", 0)
    once = compile_network(graph, small, cost=microtron.simulated_cost())
    cycles = [microtron.simulate(each.programs[0]).cycles for each in (again, once)]
    assert cycles[0] <= cycles[1]
    given = {"x": np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 8)).astype(np.int8)}
    right = evaluate_all(graph, given)["conv3"]
    assert (execute(again, given, "cycle")["conv3"] == right).all()


def test_whatever_is_tried_gives_the_same():
    """Even if every trial is taken."""
    graph, costs = chain(), iter(range(1 << 19, 0, -1))
    network = compile_network(graph, small, cost=lambda program: next(costs))
    given = {"x": np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 8)).astype(np.int8)}
    right = evaluate_all(graph, given)["conv3"]
    assert (execute(network, given, "functional")["conv3"] == right).all()


def test_long_streams_are_not_tried_again(monkeypatch):
    monkeypatch.setattr(kernel_search, "MOST_TIMED", 0)
    tried = []
    monkeypatch.setattr(KernelSearch, "alternatives",
                        lambda self, kernel, most: tried.append(kernel) or ())
    compile_network(chain(), small, cost=lambda program: 1000)
    assert not tried
    monkeypatch.setattr(kernel_search, "MOST_TIMED", 1 << 20)
    compile_network(chain(), small, cost=lambda program: 1000)
    assert tried


def test_layers_that_run_at_the_same_time_are_tried_too(monkeypatch):
    """With every pair taken, the kernels that are tried have halves of the scratchpads."""
    tried = []
    monkeypatch.setattr(KernelSearch, "alternatives",
                        lambda self, kernel, most: tried.append(kernel) or ())
    monkeypatch.setattr(overlap, "halve_layers", lambda group, layers: group)
    monkeypatch.setattr(overlap, "NEARLY", 0)
    costs = iter(range(1 << 19, 0, -1))
    network = compile_network(chain(), small, cost=lambda program: next(costs))
    places = list(network.programs[0].labels.values())
    assert len(set(places)) < len(places), "two labels at one place: layers at the same time"
    halves = [each for each in tried if each.form.config.acc_bytes < small.acc_bytes]
    assert halves
    assert all(each.program.config == small for each in tried)


def test_layers_alone_get_all_of_the_scratchpads_again(monkeypatch):
    """Kernels with halves are tried whole, but for those that run at the same time as another."""
    found = []
    whole_kernel = KernelSearch.whole_kernel

    def watch(self, kernel):
        for each in whole_kernel(self, kernel):
            found.append((kernel, each))
            yield each

    monkeypatch.setattr(KernelSearch, "alternatives", lambda self, kernel, most: ())
    monkeypatch.setattr(KernelSearch, "whole_kernel", watch)
    monkeypatch.setattr(overlap, "pair_neighbours", lambda group, layers, linker: group)
    monkeypatch.setattr(overlap, "NEARLY", 0)
    costs = iter(range(1 << 19, 0, -1))
    graph = chain()
    network = compile_network(graph, small, cost=lambda program: next(costs))
    assert found
    assert all(half.form.config.acc_bytes < whole.form.config.acc_bytes for half, whole in found)
    given = {"x": np.random.default_rng(2).integers(-128, 128, (1, 6, 6, 8)).astype(np.int8)}
    right = evaluate_all(graph, given)["conv3"]
    assert (execute(network, given, "functional")["conv3"] == right).all()


def timed_streams(graph, cost):
    """How many streams of all layers were timed with other schedules."""
    said = []
    compile_network(graph, small, cost=cost, progress=said.append)
    return sum("trying other schedules in a stream" in each for each in said)


def test_trials_go_on_while_they_make_the_stream_faster(monkeypatch):
    monkeypatch.setattr(retune, "MOST_TRIALS", 2)
    assert timed_streams(chain(), lambda program: 1000) == 2
    costs = iter(range(1 << 19, 0, -1))
    assert timed_streams(chain(), lambda program: next(costs)) > 2


def test_a_stream_that_is_met_again_is_not_timed_again(monkeypatch):
    found, asked = [], []
    monkeypatch.setattr(compile_module, "retune", lambda group, kernels, linker: (
        found.append((group, linker)) or group))
    compile_network(chain(), small, cost=lambda program: asked.append(program) or 1000)
    group, linker = found[0]
    count = len(asked)
    assert linker.cycles(group.with_layers([*group.layers])) == 1000
    assert len(asked) == count
    first, *others = group.layers
    for changed in (replace(first, with_next=True), replace(first, stays=True)):
        assert group.with_layers([changed, *others]).key != group.key


def unequal():
    """A convolution, and before it a depthwise one that takes less time."""
    layers = Layers((1, 24, 24, 16), 3)
    layers.conv("depthwise", "x", 16, 3, groups=16)
    layers.conv("conv", "depthwise", 32, 5)
    return layers.builder.graph(("conv",))


def test_beside_a_layer_that_takes_longer_long_steps_are_tried(monkeypatch):
    tried = []
    long_steps = KernelSearch.with_long_steps

    def watch(self, kernel):
        for each in long_steps(self, kernel):
            tried.append((kernel, each))
            yield each

    monkeypatch.setattr(KernelSearch, "with_long_steps", watch)
    monkeypatch.setattr(overlap, "WORTH_PAIRING", 2.0)
    compile_network(unequal(), small, cost=microtron.simulated_cost())
    (kernel, other), = tried
    assert type(kernel.form.spec).__name__ == "Depthwise"
    assert len(other.program.code) < len(kernel.program.code)


def test_a_pair_that_is_much_faster_is_not_timed_in_a_long_stream(monkeypatch):
    sections = []
    monkeypatch.setattr(Linker, "faster_section", lambda self, group, trial, first, last: (
        sections.append(trial) or group))
    monkeypatch.setattr(overlap, "LONG", 0)
    monkeypatch.setattr(overlap, "WORTH_PAIRING", 2.0)
    monkeypatch.setattr(kernel_search, "MOST_TIMED", 0)
    found = []
    monkeypatch.setattr(compile_module, "retune", lambda group, kernels, linker: (
        found.append(group) or group))
    costs = iter(range(1 << 19, 0, -1))
    for sure, timed in ((2.0, 0), (0.0, 1)):
        monkeypatch.setattr(overlap, "SURE", sure)
        compile_network(unequal(), small, cost=lambda program: next(costs))
        assert len(sections) == timed
        assert found[-1].layers[0].with_next == (not timed)
