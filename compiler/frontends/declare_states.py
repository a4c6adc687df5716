"""States that a model file has as inputs and outputs: what goes out of one inference goes into the
next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...base.checked_values import list_names, near_misses, show_name
from ..graph.graph import Graph, Node, State
from ..graph.operations.data_movement.shape import Reshape
from ..graph.types import Array, GraphError, TensorType
from ..graph.verify_graph import verify_graph


def declare_states(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """The graph with states: an output and the input that it becomes, by names. They begin with
    zeros, as real numbers, and are no inputs and outputs for users any more."""
    states, nodes = dict(graph.states), dict(graph.nodes)
    for output, name in pairs.items():
        _check_names(graph, output, name)
        if name in states:
            raise GraphError(f"the input {show_name(name)} is the state of two outputs")
        type_ = graph.inputs[name]
        if graph.type_of(output) != type_:
            raise GraphError(f"the output {show_name(output)} is {graph.type_of(output)}, but the "
                             f"input {show_name(name)}, which it becomes, is {type_}")
        states[name] = State(output, _zeros(type_))
    outputs = [name for name in graph.outputs if name not in pairs]
    for name, state in states.items():
        if name in graph.states:
            continue
        if state.result not in nodes:           # an input or a constant that is an output
            result = _fresh(f"{name}.next", graph, nodes)
            nodes[result] = Node(Reshape(x=state.result, shape=graph.inputs[name].shape),
                                 graph.inputs[name])
            states[name] = replace(state, result=result)
        outputs.append(states[name].result)
    found = replace(graph, nodes=nodes, outputs=tuple(outputs), states=states)
    if not found.user_outputs:
        raise GraphError("all outputs are states, so that nothing is computed for anybody")
    verify_graph(found)
    return found


def _check_names(graph: Graph, output: str, name: str) -> None:
    for kind, given, known in (("output", output, graph.user_outputs),
                               ("input", name, tuple(graph.user_inputs))):
        if given not in known:
            raise GraphError(f"there is no {kind} {show_name(given)}"
                             f"{near_misses(given, list(known))} that could be a state; {kind}s "
                             f"are {list_names([show_name(each) for each in known])}")


def _zeros(type_: TensorType) -> Array:
    """What stands for zero."""
    known = type_.quantization
    zero = 0 if known is None else known.along(known.zero_points, len(type_.shape))
    return np.broadcast_to(np.asarray(zero, type_.dtype), type_.shape)


def _fresh(name: str, graph: Graph, nodes: Mapping[str, Node]) -> str:
    number, found = 1, name
    while found in graph.types or found in nodes:
        number, found = number + 1, f"{name}.{number + 1}"
    return found
