"""Chains: consecutive layers that pass tensors on chip, where that makes the stream faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....base.classes.dataclass import dataclass
from ...graph.graph import Graph
from ...operators.kernel import Kernel, KernelKey
from ..groups import Group
from ..kernel_search import KernelSearch
from ..layers import LayerCompiler
from ..link_group import Linker, is_read_outside
from ..linking.on_chip import can_stay
from ..linking.on_chip_analysis import is_multiplied, result_of
from .overlap import NEARLY


@dataclass(frozen=True)
class Link:
    """A layer whose input may stay on chip, and kernels that read it in one piece."""

    number: int
    size: int                   # of the input
    kernels: Sequence[Kernel]


@dataclass(frozen=True)
class Chains:
    """Tries groups in which results stay on chip."""

    layers: LayerCompiler
    linker: Linker

    def with_kernels(self, group: Group, chosen: Mapping[int, Kernel]) -> Group:
        """The group with these kernels, whose inputs stay on chip."""
        layers = list(group.layers)
        for number, kernel in chosen.items():
            layers[number] = self.layers.with_kernel(layers[number], kernel)
            layers[number - 1] = replace(layers[number - 1], stays=True)
        return group.with_layers(layers)

    def link(self, group: Group, run: Sequence[Link]) -> Group:
        """The group with as much of a run on the chip as finds room there, if that is faster; else
        with parts of it, each if it is."""
        trial = self.with_kernels(group, {link.number: link.kernels[0] for link in run})
        if not self.linker.fits(trial):
            trial = group
            for link in sorted(run, key=lambda link: -link.size):
                more = self.with_kernels(trial, {link.number: link.kernels[0]})
                trial = more if self.linker.fits(more) else trial
        found = self.linker.fastest(group, trial)
        if (found is group and trial is not group and trial.cycles is not None
                and trial.cycles <= NEARLY * self.linker.cycles(group)):
            found = self.linker.fastest(group, self.retune(trial, run))
        if found is group and len(run) > 1:
            for part in (run[:len(run) // 2], run[len(run) // 2:]):
                found = self.link(found, part)
        return found

    def retune(self, group: Group, links: Sequence[Link]) -> Group:
        """The group with other kernels for layers whose input is on chip, all of a kind at once."""
        kinds: dict[KernelKey, list[Link]] = {}
        for link in links:
            if group.layers[link.number - 1].stays:
                kinds.setdefault(link.kernels[0].key, []).append(link)
        trials = [(kind, other) for kind in kinds.values() for other in kind[0].kernels[1:]]
        for number, (kind, other) in enumerate(trials, 1):
            self.layers.kernels.say(f"trying other schedules with results on the chip ({number} of "
                              f"{len(trials)})")
            group = self.linker.fastest(group, self.with_kernels(
                    group, {link.number: other for link in kind}))
        return group


def chain_layers(group: Group, layers: LayerCompiler, linker: Linker) -> Group:
    """The group with results that stay on chip. Without a cost function, nothing changes."""
    kernels = layers.kernels
    if not kernels.config.gemm_out_tiles or not kernels.can_tune(
            layer.kernel for layer in group.layers):
        return group
    chains, runs = Chains(layers, linker), list(_runs(layers.graph, group, kernels))
    for place, run in enumerate(runs, 1):
        kernels.say(f"keeping results on the chip ({place} of {len(runs)} runs of layers)")
        group = chains.link(group, run)
    return chains.retune(group, [link for run in runs for link in run])


def _runs(graph: Graph, group: Group, kernels: KernelSearch) -> Iterator[list[Link]]:
    """Runs of layers in which each could read the result of the one before it on chip."""
    run: list[Link] = []
    for number in range(1, len(group.layers)):
        kernels.say(f"looking for results that can stay on the chip (layer {number + 1} of "
                     f"{len(group.layers)})")
        link = _link(graph, group, number, kernels)
        if link is not None:
            run.append(link)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _link(graph: Graph, group: Group, number: int, kernels: KernelSearch) -> Link | None:
    """A layer whose input could stay on chip: no other layer reads it."""
    before, layer = group.layers[number - 1:number + 1]
    readers = [operand for each in group.layers
               for operand, (tensor, _) in each.reads.items() if tensor == before.node]
    inner = {name for each in group.layers for name in (each.node, *each.parts)}
    at_the_same_time = any(each.with_next for each in group.layers[max(0, number - 2):number + 1])
    config = kernels.config
    if layer.reads.get("data", ("",))[0] != before.node or len(readers) > 1 or at_the_same_time or (
            before.node in graph.outputs or is_read_outside(graph, before.node, inner)):
        return None
    if before.output.size > config.out_bytes or (
            not is_multiplied(layer.kernel.program, "data")
            or result_of(before.kernel.program, "output") is None):
        return None
    found = kernels.at_once(layer.kernel)
    if not found or not can_stay(before.kernel.program, found[0].program):
        return None
    return Link(number, before.output.size, found)
