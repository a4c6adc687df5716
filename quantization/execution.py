"""A graph on the CPU half, with outputs of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..compiler.graph.graph import Graph
from ..runtime.models.compiled_host import CompiledBackend
from .parameters import Array


class GraphRunner:
    """A compiled graph. No kernel makes outputs that are inputs, constants or empty: they are
    handed on."""

    def __init__(self, graph: Graph) -> None:
        self._outputs = graph.outputs
        self._known: dict[str, Array] = {
            name: np.empty(graph.type_of(name).shape, graph.type_of(name).dtype)
            for name in graph.outputs if not graph.type_of(name).size}
        for name in graph.outputs:
            array = graph.array(name)
            if array is not None:
                self._known[name] = array
        made = tuple(name for name in graph.outputs
                     if name in graph.nodes and name not in self._known)
        self._part = CompiledBackend().load(replace(graph, outputs=made))

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        found = {**self._known, **self._part(inputs)}
        return {name: found[name] if name in found else np.asarray(inputs[name])
                for name in self._outputs}
