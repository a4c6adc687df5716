"""Checks that a graph makes sense: every tensor is computed before it is read, and every operation
gets what it can work with."""

from __future__ import annotations

import numpy as np

from ...base.checked_values import show_name
from .graph import Graph
from .types import GraphError


def verify_graph(graph: Graph) -> None:
    """Refuse a graph with the first thing that is wrong with it."""
    known = dict(graph.inputs)
    for name, constant in graph.constants.items():
        if name in known:
            raise GraphError(f"{show_name(name)} is both an input and a constant")
        known[name] = constant.type
    for name, node in graph.nodes.items():
        place, operation = node.origin or name, node.operation
        if name in known:
            raise GraphError(f"{show_name(name)} is computed twice")
        for each in operation.operands():
            if each not in known:
                raise GraphError(f"{show_name(place)} reads {show_name(each)}, which is not "
                                 "computed before")
        try:
            operation.check(node.type, *(known[each] for each in operation.operands()))
        except GraphError as error:
            raise GraphError(f"{show_name(place)}: {operation.title()}: {error}") from None
        known[name] = node.type
    if not graph.outputs:
        raise GraphError("the graph has no output")
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"the output {show_name(name)} is not computed")
    _verify_states(graph)


def _verify_states(graph: Graph) -> None:
    results = [each.result for each in graph.states.values()]
    for name, state in graph.states.items():
        type_ = graph.inputs.get(name)
        if type_ is None:
            raise GraphError(f"the state {show_name(name)} is no input of the graph")
        if state.initial.shape != type_.shape or state.initial.dtype != np.dtype(type_.dtype):
            raise GraphError(f"the state {show_name(name)} is {type_.plain()}, but begins with "
                             f"{state.initial.dtype} of shape {state.initial.shape}")
        if state.result not in graph.nodes or graph.outputs.count(state.result) != 1 or (
                results.count(state.result) != 1):
            raise GraphError(f"the state {show_name(name)} becomes {show_name(state.result)}, but "
                             f"must become a node that is one output, and nothing else's state")
        if graph.nodes[state.result].type != type_:
            raise GraphError(f"the state {show_name(name)} is {type_}, but becomes "
                             f"{graph.nodes[state.result].type}")
