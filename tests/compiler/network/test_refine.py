"""Schedules that are tried again inside their stream: never slower, and the same numbers."""

from __future__ import annotations

import numpy as np

import microtron
from microtron.compiler.graph.evaluate_graph import evaluate_all
from microtron.compiler.network import kernel_search
from microtron.compiler.network.compile_network import compile_network
from microtron.compiler.network.kernel_search import KernelSearch
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
