"""Nodes in an order in which each has what it reads, in runs of layers that become one program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...base.checked_values import named
from ..errors import CompileError, attributed_to
from ..graph.graph import Graph
from ..graph.types import Shape
from ..operators.layout import Layout
from .layers import CompiledLayer, LayerCompiler, Misfit
from .network import AcceleratorStep, Decision, Where
from .task import Task


@dataclass
class Group:
    """Layers that become one program, in order."""

    layers: list[CompiledLayer] = field(default_factory=list)
    made: dict[str, Layout] = field(default_factory=dict)
    step: AcceleratorStep | None = None         # all of them in one stream ...
    cycles: int | None = None                   # ... and what it takes, once somebody has asked

    def add(self, layer: CompiledLayer) -> None:
        self.layers.append(layer)
        self.made[layer.node] = layer.output


def groups_of(graph: Graph, tasks: Mapping[str, Task], decisions: Mapping[str, Decision],
              compiler: LayerCompiler) -> Iterator[Group | list[str]]:
    """Runs of layers and of the CPU's nodes, in an order in which each has what it reads."""
    group: Group | None = None
    host: list[str] = []
    for name in _in_order(graph, decisions):
        if decisions[name].where == Where.CPU:
            if group is not None:
                yield group
                group = None
            host.append(name)
            continue
        if host:
            yield host
            host = []
        compiler.say(f"finding layouts for {named(graph.nodes[name].origin or name)}")
        with attributed_to(named(graph.nodes[name].origin or name)):
            layer, begins = _layer(graph, name, tasks[name], compiler, group)
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


def _layer(graph: Graph, name: str, task: Task, compiler: LayerCompiler,
           group: Group | None) -> tuple[CompiledLayer, bool]:
    """A node as the next layer of a group, or as the first of another. Over tensors as they lie, a
    layer may be larger than alone, or have no form that fits; alone it does."""
    try:
        return compiled(graph, name, task, compiler, group.made if group else {}), False
    except (Misfit, CompileError):
        return compiled(graph, name, task, compiler, {}), True


def compiled(graph: Graph, name: str, task: Task, compiler: LayerCompiler,
             made: Mapping[str, Layout], *, half: bool = False) -> CompiledLayer:
    """The layer of a node, where some tensors are in its program already."""
    shapes: dict[str, Shape] = {tensor: task.shapes.get(operand, graph.type_of(tensor).shape)
                                for operand, tensor in task.reads.items()}
    return compiler.layer(name, task, shapes, graph.nodes[name].type.shape, made, half=half)


def _in_order(graph: Graph, decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Nodes so that turns between accelerator and CPU are few: what is ready goes on where the
    last one ran. Views are left out."""
    waiting = {name: _needs(graph, name, decisions) for name in graph.nodes
               if decisions[name].where != Where.FUSED}
    done: set[str] = set()
    here = Where.ACCELERATOR
    while waiting:
        ready = [name for name, needs in waiting.items() if needs <= done]
        views = [name for name in ready if decisions[name].where == Where.VIEW]
        mine = [name for name in ready if decisions[name].where == here]
        for name in views or mine:
            if name in mine:
                yield name
            done.add(name)
            del waiting[name]
        if not views and not mine:
            assert ready, "a graph that was verified has no cycle"
            here = Where.CPU if here == Where.ACCELERATOR else Where.ACCELERATOR


def _needs(graph: Graph, name: str, decisions: Mapping[str, Decision]) -> set[str]:
    """The nodes whose results a node reads, with what is computed together with it."""
    found: set[str] = set()
    for each in graph.nodes[name].operation.operands():
        if each in graph.nodes:
            found |= (_needs(graph, each, decisions) if decisions[each].where == Where.FUSED
                      else {each})
    return found
