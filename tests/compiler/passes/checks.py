"""What every pass must keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.graph import Graph
from microtron.compiler.graph.verify_graph import verify_graph

from ..graph.random_graphs import random_inputs


def changed(run: Callable[[Graph], Graph], graph: Graph, *, tolerance: float = 0) -> Graph:
    """The graph after a pass: verified, called as before, and equal to it on random numbers; to
    the bit, unless real numbers may round differently."""
    found = run(graph)
    verify_graph(found)
    assert (found.outputs, found.inputs) == (graph.outputs, graph.inputs)
    assert [found.type_of(each) for each in found.outputs] == [
        graph.type_of(each) for each in graph.outputs]
    for seed in range(3):
        inputs = random_inputs(graph, seed)
        right, values = evaluate(graph, inputs), evaluate(found, inputs)
        for name in graph.outputs:
            if tolerance:
                np.testing.assert_allclose(values[name], right[name], tolerance, tolerance)
            else:
                np.testing.assert_array_equal(values[name], right[name])
    return found


def kinds(graph: Graph) -> list[str]:
    """The operations of a graph, in order."""
    return [type(node.operation).__name__ for node in graph.nodes.values()]
