"""Nodes in topological order, in groups of layers that become one program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from ...base.classes.dataclass import dataclass
from ..errors import CompileError, attributed_to
from ..graph.graph import Graph
from ..operators.kernel import KernelKey
from ..operators.layout import Layout
from .axis_views import MOVES
from .layers import CompiledLayer, LayerCompiler, Misfit
from .network import AcceleratorStep, Decision, Where
from .tensor_views import View, view_of

StreamKey: TypeAlias = tuple[tuple[str, KernelKey, bool, bool], ...]    # node, kernel, how it runs


@dataclass
class Group:
    """Layers that become one program, in order."""

    layers: list[CompiledLayer] = field(default_factory=list)
    made: dict[str, Layout] = field(default_factory=dict)       # by layers, and from their results
    views: list[str] = field(default_factory=list)              # those from results
    inside: dict[str, tuple[str, int]] = field(default_factory=dict)    # what lies in what, where
    step: AcceleratorStep | None = None         # all of them in one stream ...
    cycles: int | None = None                   # ... and its cycles, if known

    def add(self, layer: CompiledLayer) -> None:
        self.layers.append(layer)
        self.made[layer.node] = layer.output

    def add_view(self, name: str, view: View) -> None:
        """Add a tensor that is a view of others."""
        self.views.append(name)
        self.made[name] = view.layout
        self.inside |= view.inside

    @property
    def key(self) -> StreamKey:
        """Identifies the stream of the layers within a network, by value."""
        return tuple((layer.node, layer.kernel.key, layer.with_next, layer.stays)
                     for layer in self.layers)

    def with_layers(self, layers: list[CompiledLayer]) -> Group:
        """The same results, made by other layers."""
        return Group(layers, self.made, self.views, self.inside)

    def section(self, graph: Graph, first: int, last: int) -> Group:
        """Layers from one to before another, as if there were no others. What these make is an
        input of the section."""
        found = Group()
        for layer in self.layers[first:last]:
            found.add(layer)
        for name in self.views:
            sources = [each for each in graph.nodes[name].operation.operands() if each in self.made]
            if all(each in found.made for each in sources):
                found.views.append(name)
                found.made[name] = self.made[name]
        found.inside = {name: place for name, place in self.inside.items()
                        if name in found.made and place[0] in found.made}
        return found

    def places(self) -> dict[str, tuple[str, int]]:
        """For each tensor the one in which it lies, perhaps itself, and from which byte on."""
        found = {}
        for name in self.made:
            tensor, offset = name, 0
            while tensor in self.inside:
                tensor, more = self.inside[tensor]
                offset += more
            found[name] = tensor, offset
        return found


def group_layers(graph: Graph, decisions: dict[str, Decision],
                 layers: LayerCompiler) -> Iterator[Group | list[str]]:
    """Groups of layers, and lists of nodes for the CPU, in topological order."""
    group: Group | None = None
    host: list[str] = []
    for name in _execution_order(graph, decisions):
        if decisions[name].where == Where.VIEW:
            try:
                view = view_of(graph, name, group.made if group else {})
            except CompileError as error:
                decisions[name] = (Decision(Where.ACCELERATOR) if name in layers.tasks else
                                   Decision(Where.CPU, str(error)))
            else:
                assert group is not None, "it has made what lies there"
                group.add_view(name, view)
                continue
        if decisions[name].where == Where.CPU:
            if group is not None:
                yield group
                group = None
            host.append(name)
            continue
        if host:
            yield host
            host = []
        layer, begins = _next_layer(name, layers, group)
        layer = replace(layer, parts=tuple(
            each for each, decision in decisions.items()
            if decision == Decision(Where.FUSED, name)))
        if begins and group is not None:
            yield group
        if begins or group is None:
            group = Group()
        group.add(layer)
    if group is not None:
        yield group
    if host:
        yield host


def _next_layer(name: str, layers: LayerCompiler,
                group: Group | None) -> tuple[CompiledLayer, bool]:
    """A node as the next layer of a group, or as the first of another. In the layouts of the group
    a layer may be larger than alone, or have no form that fits; alone it has one."""
    title = layers.graph.title(name)
    layers.kernels.say(f"finding layouts for {title}")
    with attributed_to(title):
        try:
            return layers.layer(name, group.made if group else {}), False
        except (Misfit, CompileError):
            return layers.layer(name, {}), True


def _execution_order(graph: Graph, decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Topological order with few switches between accelerator and CPU: of the nodes that are
    ready, those for the device of the last one come first. Moves that are views are left out."""
    waiting = {name: _dependencies(graph, name, decisions) for name in graph.nodes
               if decisions[name].where != Where.FUSED}
    done: set[str] = set()
    here = Where.ACCELERATOR
    while waiting:
        ready = [name for name, needs in waiting.items() if needs <= done]
        views = [name for name in ready if decisions[name].where == Where.VIEW]
        mine = [name for name in ready if decisions[name].where == here]
        for name in views or mine:
            if not isinstance(graph.nodes[name].operation, MOVES) or name in mine:
                yield name
            done.add(name)
            del waiting[name]
        if not views and not mine:
            assert ready, "a graph that was verified has no cycle"
            here = Where.CPU if here == Where.ACCELERATOR else Where.ACCELERATOR


def _dependencies(graph: Graph, name: str, decisions: Mapping[str, Decision]) -> set[str]:
    """The nodes whose results a node reads, including those fused into it."""
    found: set[str] = set()
    for each in graph.nodes[name].operation.operands():
        if each in graph.nodes:
            found |= (_dependencies(graph, each, decisions) if decisions[each].where == Where.FUSED
                      else {each})
    return found
