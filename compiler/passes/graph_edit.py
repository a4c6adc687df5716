"""What passes do to graphs: leave nodes out, and put nodes and constants in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from ...base.classes.dataclass import dataclass
from ..graph.builder import Builder
from ..graph.graph import Constant, Graph, Node, with_nodes
from ..graph.operation import Operation
from ..graph.types import Array, Quantization, TensorType


def remove_nodes(graph: Graph, same: Mapping[str, str]) -> Graph:
    """The graph without some nodes, each of which equals another tensor.

    Outputs keep their names: the node that computes one takes its name over. Where that is not
    possible, because the other tensor is an input, a constant or an output too, the node stays.
    """
    if not same:
        return graph
    known: dict[str, str] = {}

    def resolve(name: str) -> str:
        way = []
        while name in same and name not in known:
            way.append(name)
            name = same[name]
        name = known.get(name, name)
        known.update(dict.fromkeys(way, name))          # long chains are walked once
        return name

    outputs = dict.fromkeys(graph.outputs)
    taken: dict[str, str] = {}          # a node and the output whose name it takes over
    for name in outputs:
        target = resolve(name)
        if target != name and target in graph.nodes and target not in outputs:
            taken.setdefault(target, name)
    staying = {name for name in outputs if name in same and taken.get(resolve(name)) != name}

    def final_name(name: str) -> str:
        return taken.get(resolve(name), resolve(name))

    nodes = {}
    for name, node in graph.nodes.items():
        if name not in same or name in staying:
            nodes[taken.get(name, name)] = replace(node,
                                                   operation=node.operation.rename_operands(final_name))
    return with_nodes(graph, nodes)


@dataclass
class Edit:
    """A graph while its nodes are replaced, in order. What is new gets a name of its own."""

    graph: Graph
    constants: dict[str, Constant] = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    _names: set[str] = field(init=False)
    _numbers: Counter[str] = field(default_factory=Counter)     # given to names so far

    def __post_init__(self) -> None:
        self.constants = dict(self.graph.constants)
        self._names = set(self.graph.types)

    def keep(self, name: str) -> None:
        """Take over a node as it is."""
        self.nodes[name] = self.graph.nodes[name]

    def rewrite(self, substitute: Callable[[str, Node], bool]) -> Graph:
        """The graph in which every node is kept that a function, which is asked for each in order,
        has put nothing in place of."""
        for name, node in self.graph.nodes.items():
            if not substitute(name, node):
                self.keep(name)
        return self.finish()

    def put(self, name: str, operation: Operation, type_: TensorType, origin: str = "") -> None:
        """A node under a name that the graph has, or under a fresh one."""
        self.nodes[name] = Node(operation, type_, origin)

    def constant(self, name: str, array: Array, quantization: Quantization | None = None) -> str:
        """A new constant; its name is returned."""
        builder = Builder()
        made = builder.constant("made", array, quantization)
        name = self.fresh(name)
        self.constants[name] = builder.constants[made]
        return name

    def fresh(self, name: str) -> str:
        """A name that no tensor has."""
        found = name
        while found in self._names:
            self._numbers[name] += 1
            found = f"{name}.{self._numbers[name] + 1}"
        self._names.add(found)
        return found

    def finish(self) -> Graph:
        return with_nodes(self.graph, self.nodes, self.constants)
