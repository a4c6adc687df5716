"""Schedules tried again where they are: a layer that is best alone need not be best in a stream,
where the layers before and after it hide what it waits for, and its instructions take their turn
on the bus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...isa.errors import MicrotronError
from ..graph.graph import Graph
from ..operators.kernel import Kernel
from .groups import Group
from .join import timed
from .layers import CompiledLayer, LayerCompiler

MOST_TRIALS = 12            # streams that are timed
LONGEST = 1 << 20           # that layers take at least: longer streams gain little by it


def refined(graph: Graph, group: Group, compiler: LayerCompiler) -> Group:
    """The group with other schedules for some layers, where the whole stream is faster with them.
    Layers of one kind change together; those that take longest are tried first."""
    if compiler.cost is None:
        return group
    if sum(compiler.bound(layer.kernel) for layer in group.layers) > LONGEST:
        return group
    best, trials = timed(graph, group, compiler.config, compiler.cost), 0
    for kernel in _kinds(group, compiler):
        for other in compiler.alternatives(kernel):
            if trials == MOST_TRIALS:
                return group
            trials += 1
            trial = Group([_with(layer, kernel, other) for layer in group.layers], group.made)
            try:
                cycles = timed(graph, trial, compiler.config, compiler.cost)
            except MicrotronError:
                continue                # too much for this accelerator in such a stream
            if cycles < best:
                best, group, kernel = cycles, trial, other
    return group


def _kinds(group: Group, compiler: LayerCompiler) -> list[Kernel]:
    """The kernels of layers that run alone, those that take most cycles together first."""
    total: dict[int, float] = {}
    kernels: dict[int, Kernel] = {}
    for layer in _alone(group):
        key = id(layer.kernel)
        kernels[key] = layer.kernel
        total[key] = total.get(key, 0) + compiler.cycles(layer.kernel)
    return [kernels[key] for key in sorted(total, key=lambda key: -total[key])]


def _alone(group: Group) -> Iterator[CompiledLayer]:
    """Layers that do not run at the same time as another, which have half of the scratchpads."""
    before = False
    for layer in group.layers:
        if not layer.with_next and not before:
            yield layer
        before = layer.with_next


def _with(layer: CompiledLayer, kernel: Kernel, other: Kernel) -> CompiledLayer:
    return replace(layer, kernel=other) if layer.kernel is kernel else layer
