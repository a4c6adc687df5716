"""Graphs that strangers made, which pass the verifier and make little sense otherwise."""

from __future__ import annotations

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.graph.saved import load_graph, save_graph
from microtron.compiler.graph.types import GraphError
from microtron.compiler.passes.pipeline import run_passes

from ..graph.random_graphs import networks
from ..graph.test_saved import mutate


@given(networks(), st.data())
@settings(max_examples=150)
def test_passes_take_any_graph_that_the_verifier_takes(graph, data):
    """Or refuse it in one line: when something constant cannot be computed."""
    saved, arrays = save_graph(graph)
    saved = copy.deepcopy(json.loads(json.dumps(saved)))
    for _ in range(data.draw(st.integers(1, 2))):
        mutate(saved["nodes"], data)
    message = ""
    try:
        run_passes(load_graph(saved, arrays))
    except GraphError as error:
        message = str(error)
    assert "\n" not in message
