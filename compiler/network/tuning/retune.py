"""Schedules tried again where they are: a layer that is best alone need not be best in a stream,
where the layers before and after it hide what it waits for, and its instructions take their turn
on the bus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from ...operators.kernel import Kernel, KernelKey
from ..groups import Group
from ..kernel_search import KernelSearch
from ..layers import CompiledLayer
from ..link_group import Linker

MOST_TRIALS = 16            # streams that are timed,
PATIENCE = 4                # or as many more after the last that was faster
ROUNDS = (3, 4)             # schedules of each kind of layer, as long as trials are left


def retune(group: Group, kernels: KernelSearch, linker: Linker) -> Group:
    """The group with other schedules for some layers, where the whole stream is faster with them.
    Layers of one kind change together; those that take longest are tried first.
    Last, layers with half of every scratchpad get all of it."""
    if not kernels.can_tune(layer.kernel for layer in group.layers):
        return group
    trials, most, tried = 0, MOST_TRIALS, {layer.kernel.key for layer in group.layers}
    ways: list[Callable[[Kernel], Iterator[Kernel]]] = [
        *(partial(kernels.alternatives, most=most) for most in ROUNDS),
        kernels.whole_kernel]
    for others_of in ways:
        for kernel in _kernels_by_cycles(group, kernels):
            for other in others_of(kernel):
                if other.key in tried or (other.form.config != kernel.form.config
                                          and _shares_scratchpads(group, kernel)):
                    continue
                if trials == most:
                    return group
                trials += 1
                kernels.say(f"trying other schedules in a stream of {len(group.layers)} layers "
                            f"({trials} of at most {most})")
                tried.add(other.key)
                trial = group.with_layers([_replace_kernel(layer, kernel, other)
                                           for layer in group.layers])
                if linker.fastest(group, trial) is trial:
                    group, kernel, most = trial, other, max(most, trials + PATIENCE)
    return group


def _shares_scratchpads(group: Group, kernel: Kernel) -> bool:
    """Whether a layer with this kernel runs at the same time as another."""
    return any(first.with_next and kernel.key in (first.kernel.key, second.kernel.key)
               for first, second in pairwise(group.layers))


def _kernels_by_cycles(group: Group, kernels: KernelSearch) -> list[Kernel]:
    """The kernels of layers, those that take most cycles together first. What is on the chip
    suits one kernel only."""
    total: dict[KernelKey, float] = {}
    found: dict[KernelKey, Kernel] = {}
    for before, layer in zip((None, *group.layers), group.layers, strict=False):
        if before is not None and before.stays:
            continue
        key = layer.kernel.key
        found[key] = layer.kernel
        total[key] = total.get(key, 0) + kernels.cycles(layer.kernel)
    return [found[key] for key in sorted(total, key=lambda key: -total[key])]


def _replace_kernel(layer: CompiledLayer, kernel: Kernel, other: Kernel) -> CompiledLayer:
    return replace(layer, kernel=other) if layer.kernel.key == kernel.key else layer
