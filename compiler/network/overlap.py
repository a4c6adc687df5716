"""Neighbours that run at the same time, or leave each other room, where that makes the whole stream
faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...base.errors import MicrotronError
from ...isa.memory_timing import MemoryTiming
from ..graph.graph import Graph
from .groups import Group, compile_layer
from .layers import CompiledLayer, LayerCompiler, Misfit, same_bytes
from .link_group import stream_cycles
from .task import Task

LONGEST = 1 << 20           # cycles that layers take at least: longer streams gain little

WORTH_PAIRING = 0.9         # part of the cycles apart that two layers at once take at best


def choose_overlap(graph: Graph, group: Group, tasks: Mapping[str, Task],
                   compiler: LayerCompiler) -> Group:
    """The group as its layers suit each other best. Nothing changes without a cost to ask."""
    if compiler.cost is None:
        return group
    ways = [pair_neighbours(graph, group, tasks, compiler)]
    if sum(compiler.lower_bound(layer.kernel) for layer in group.layers) <= LONGEST:
        ways.append(alternating(graph, group, tasks, compiler))
    return min(ways, key=lambda way: _cycles(graph, way, compiler))


def _cycles(graph: Graph, group: Group, compiler: LayerCompiler) -> float:
    """What a group takes; for ever, if it is too much for the accelerator in such a stream."""
    assert compiler.cost is not None, "whoever asks knows costs"
    try:
        return stream_cycles(graph, group, compiler.config, compiler.cost)
    except MicrotronError:
        return float("inf")


def pair_neighbours(graph: Graph, group: Group, tasks: Mapping[str, Task],
                    compiler: LayerCompiler) -> Group:
    """The group with neighbours at the same time where that makes the whole stream faster."""
    assert compiler.cost is not None, "whoever asks knows costs"
    pairs = list(_pairs(graph, group, tasks, compiler))
    for place, (number, pair) in enumerate(pairs, 1):
        compiler.say(f"running neighbours at the same time (pair {place} of {len(pairs)})")
        layers = [*group.layers[:number - 1], *pair, *group.layers[number + 1:]]
        trial = group.with_layers(layers)
        if stream_cycles(graph, trial, compiler.config, compiler.cost) < stream_cycles(
                graph, group, compiler.config, compiler.cost):
            group = trial
    return group


def alternating(graph: Graph, group: Group, tasks: Mapping[str, Task],
                compiler: LayerCompiler) -> Group:
    """The group, not yet paired, with half of every scratchpad for each layer. Alone, a layer
    spreads over all banks of the accumulator, and the next one's parameters wait until it has done:
    loads are in order, so all that follows waits too. Layers that do not fit keep what they have.
    """
    layers = []
    made = {name: group.made[name] for name in group.views}
    for number, layer in enumerate(group.layers, 1):
        compiler.say(f"compiling with half of each scratchpad (layer {number} of "
                     f"{len(group.layers)})")
        try:
            half = compile_layer(graph, layer.node, tasks[layer.node], compiler, made, half=True)
            if same_bytes(half.output, layer.output):
                layer = replace(half, parts=layer.parts)
        except (MicrotronError, Misfit):
            pass                        # no room
        layers.append(layer)
        made[layer.node] = layer.output
    return group.with_layers(layers)


def _pairs(graph: Graph, group: Group, tasks: Mapping[str, Task],
           compiler: LayerCompiler) -> Iterator[tuple[int, list[CompiledLayer]]]:
    """Of all ways to pair neighbours the one that promises most, each with its second layer's
    number."""
    best: list[tuple[float, list[tuple[int, list[CompiledLayer]]]]] = [(0, [])]
    for number, layer in enumerate(group.layers):
        compiler.say(f"looking for neighbours to pair (layer {number + 1} of {len(group.layers)})")
        cycles, pairs = best[-1]
        ways = [(cycles + compiler.cycles(layer.kernel), pairs)]
        pair = _pair(graph, group, number, tasks, compiler) if number else None
        if pair is not None:
            cycles, pairs = best[-2]
            ways.append((cycles + pair[0], [*pairs, (number, pair[1])]))
        best.append(min(ways, key=lambda way: way[0]))
    yield from best[-1][1]


def _pair(graph: Graph, group: Group, number: int, tasks: Mapping[str, Task],
          compiler: LayerCompiler) -> tuple[float, list[CompiledLayer]] | None:
    """A layer together with the one before it, and what both take, if there is something to
    gain."""
    two = group.layers[number - 1:number + 1]
    bounds = [layer.kernel.form.work.bound(compiler.config, compiler.memory or MemoryTiming())
              for layer in two]
    together = max(sum(each.macs for each in bounds), sum(each.memory for each in bounds),
                   sum(each.alu for each in bounds))
    apart = sum(compiler.cycles(layer.kernel) for layer in two)
    if two[0].node not in [tensor for tensor, _ in two[1].reads.values()] or (
            together > WORTH_PAIRING * apart):
        return None
    later = {layer.node for layer in group.layers[number - 1:]}
    made = {name: layout for name, layout in group.made.items() if name not in later}
    trial = Group()
    try:
        for layer in two:
            half = compile_layer(graph, layer.node, tasks[layer.node], compiler,
                                 {**made, **trial.made}, half=True)
            if not same_bytes(half.output, layer.output):
                return None
            trial.add(replace(half, parts=layer.parts, with_next=layer is two[0]))
        return _together(graph, trial, compiler), trial.layers
    except (MicrotronError, Misfit):
        return None                     # no room for both


def _together(graph: Graph, two: Group, compiler: LayerCompiler) -> int:
    """What two layers take at the same time. Networks repeat themselves: each kind of pair is timed
    once."""
    assert compiler.cost is not None, "whoever asks knows costs"
    first, second = two.layers
    shared = tuple(operand for operand, (tensor, _) in second.reads.items()
                   if tensor == first.node)
    kind = first.kernel.key, second.kernel.key, shared
    if kind not in compiler.together:
        compiler.together[kind] = stream_cycles(graph, two, compiler.config, compiler.cost)
    return compiler.together[kind]
