"""Chains: layers of which each finds on the chip what the one before has left there, where that
makes the whole stream faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...base.errors import MicrotronError
from ..graph.graph import Graph
from ..operators.kernel import Kernel, KernelKey
from .groups import Group
from .layers import LayerCompiler
from .link_group import check_on_chip, is_read_outside, stream_cycles
from .linking.on_chip import can_stay
from .linking.on_chip_analysis import is_multiplied, result_of
from .overlap import LONGEST
from .task import Task


@dataclass(frozen=True)
class Link:
    """A layer that may find its input on the chip, and kernels that take it at once."""

    number: int
    size: int                   # of the input
    kernels: Sequence[Kernel]


@dataclass(frozen=True)
class Chains:
    """What is needed to try groups in which results stay on the chip."""

    graph: Graph
    tasks: Mapping[str, Task]
    compiler: LayerCompiler

    def with_kernels(self, group: Group, chosen: Mapping[int, Kernel]) -> Group:
        """The group with these layers computed so, and their inputs on the chip."""
        layers = list(group.layers)
        for number, kernel in chosen.items():
            layers[number] = self.compiler.with_kernel(
                layers[number], self.tasks[layers[number].node], kernel)
            layers[number - 1] = replace(layers[number - 1], stays=True)
        return group.with_layers(layers)

    def faster(self, group: Group, trial: Group) -> Group:
        """The faster one of two; the first, if the second does not fit."""
        assert self.compiler.cost is not None, "whoever asks knows costs"
        config, cost = self.compiler.config, self.compiler.cost
        try:
            return min((group, trial),
                       key=lambda each: stream_cycles(self.graph, each, config, cost))
        except MicrotronError:
            return group

    def fits(self, group: Group) -> bool:
        """Whether all that is to stay on the chip finds room there."""
        try:
            check_on_chip(self.graph, group, self.compiler.config)
        except MicrotronError:
            return False
        return True

    def link(self, group: Group, run: Sequence[Link]) -> Group:
        """The group with as much of a run on the chip as finds room there, if that is faster; else
        with parts of it, each if it is."""
        trial = self.with_kernels(group, {link.number: link.kernels[0] for link in run})
        if not self.fits(trial):
            trial = group
            for link in sorted(run, key=lambda link: -link.size):
                more = self.with_kernels(trial, {link.number: link.kernels[0]})
                trial = more if self.fits(more) else trial
        found = self.faster(group, trial)
        if found is group and len(run) > 1:
            for part in (run[:len(run) // 2], run[len(run) // 2:]):
                found = self.link(found, part)
        return found

    def retune(self, group: Group, links: Sequence[Link]) -> Group:
        """The group with other kernels for layers that find their input on the chip, all of a kind
        at once."""
        kinds: dict[KernelKey, list[Link]] = {}
        for link in links:
            if group.layers[link.number - 1].stays:
                kinds.setdefault(link.kernels[0].key, []).append(link)
        trials = [(kind, other) for kind in kinds.values() for other in kind[0].kernels[1:]]
        for number, (kind, other) in enumerate(trials, 1):
            self.compiler.say(f"trying other schedules with results on the chip ({number} of "
                              f"{len(trials)})")
            group = self.faster(group, self.with_kernels(
                    group, {link.number: other for link in kind}))
        return group


def chain_layers(graph: Graph, group: Group, tasks: Mapping[str, Task],
                 compiler: LayerCompiler) -> Group:
    """The group with results that stay on the chip. Nothing changes without a cost to ask."""
    if compiler.cost is None or not compiler.config.gemm_out_tiles or (
            sum(compiler.lower_bound(layer.kernel) for layer in group.layers) > LONGEST):
        return group
    chains, runs = Chains(graph, tasks, compiler), list(_runs(graph, group, compiler))
    for place, run in enumerate(runs, 1):
        compiler.say(f"keeping results on the chip ({place} of {len(runs)} runs of layers)")
        group = chains.link(group, run)
    return chains.retune(group, [link for run in runs for link in run])


def _runs(graph: Graph, group: Group, compiler: LayerCompiler) -> Iterator[list[Link]]:
    """Neighbours that could all share results on the chip, as far as each two are concerned."""
    run: list[Link] = []
    for number in range(1, len(group.layers)):
        compiler.say(f"looking for results that can stay on the chip (layer {number + 1} of "
                     f"{len(group.layers)})")
        link = _link(graph, group, number, compiler)
        if link is not None:
            run.append(link)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _link(graph: Graph, group: Group, number: int, compiler: LayerCompiler) -> Link | None:
    """A layer whose input could stay on the chip, if there is nobody else who reads it."""
    before, layer = group.layers[number - 1:number + 1]
    readers = [operand for each in group.layers
               for operand, (tensor, _) in each.reads.items() if tensor == before.node]
    inner = {name for each in group.layers for name in (each.node, *each.parts)}
    at_the_same_time = any(each.with_next for each in group.layers[max(0, number - 2):number + 1])
    config = compiler.config
    if layer.reads.get("data", ("",))[0] != before.node or len(readers) > 1 or at_the_same_time or (
            before.node in graph.outputs or is_read_outside(graph, before.node, inner)):
        return None
    if before.output.size > config.out_bytes or (
            not is_multiplied(layer.kernel.program, "data")
            or result_of(before.kernel.program, "output") is None):
        return None
    kernels = compiler.at_once(layer.kernel)
    if not kernels or not can_stay(before.kernel.program, kernels[0].program):
        return None
    return Link(number, before.output.size, kernels)
