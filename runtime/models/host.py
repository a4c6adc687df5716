"""What the CPU does for a model: its own nodes, and moving tensors in and out of tiles.

A backend is told once what there is to do and gives functions that do it, so that it may compile
them, as `compiled_host` does. This one computes what the graph means, in NumPy: the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from ...compiler.graph.evaluate_graph import compute_node
from ...compiler.graph.graph import Graph
from ...compiler.graph.operation import Value
from ...compiler.graph.types import Array, TensorType
from ...compiler.operators.layout import Layout
from ..devices.device import Bytes

Nodes = Callable[[Mapping[str, Array]], dict[str, Array]]
Pack = Callable[[Array], Bytes]
Unpack = Callable[[Bytes], Array]


class HostBackend(Protocol):
    """Makes functions for the CPU's part of a model. They may be called from any thread, one at a
    time."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def nodes(self, part: Graph) -> Nodes:
        """A function from the inputs of a graph, by name, to its outputs. Types and constants are
        the graph's; arrays are as its types say, and not to be changed."""

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        """A function from a tensor of a type to the bytes of its tiles."""

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        """A function from the bytes of tiles to a tensor of a type."""


class NumpyBackend:
    """The graph's own meaning."""

    name = "numpy"

    def nodes(self, part: Graph) -> Nodes:
        constants = {name: each.array for name, each in part.constants.items()}

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            values = {**inputs, **constants}
            for name, node in part.nodes.items():
                values[name] = compute_node(node, [Value(part.type_of(each), values[each])
                                                   for each in node.operation.operands()])
            return {name: values[name] for name in part.outputs}
        return run

    def pack(self, layout: Layout, type_: TensorType) -> Pack:
        return lambda tensor: np.ascontiguousarray(layout.pack(tensor)).view(np.uint8).reshape(-1)

    def unpack(self, layout: Layout, type_: TensorType) -> Unpack:
        return lambda tiles: layout.unpack(tiles.view(type_.dtype)).reshape(type_.shape)
