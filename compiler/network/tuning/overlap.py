"""Neighbours that run at the same time, or leave each other room, where that makes the whole stream
faster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from ....base.classes.dataclass import dataclass
from ....base.errors import MicrotronError
from ...operators.layout import Layout
from ..groups import Group
from ..layers import CompiledLayer, LayerCompiler, Misfit
from ..link_group import Linker
from ..tile_layouts import same_bytes

WORTH_PAIRING = 0.9         # part of the cycles apart that two layers at once take at best
SURE = 0.95                 # if they take less alone, they do so in a long stream
NEARLY = 1.02               # of the cycles of the fastest way: what follows may change that
MOST_PAIRS = 8              # that are tried in the whole stream, if it does not take longer than
LONG = 4 << 20              # cycles; then a pair is tried among its neighbours


@dataclass(frozen=True)
class Pair:
    """Two neighbours that may run at the same time."""

    number: int                 # of the second
    layers: list[CompiledLayer]
    cycles: int                 # of both at once,
    apart: float                # and one after the other


def overlap_layers(group: Group, layers: LayerCompiler, linker: Linker) -> list[Group]:
    """The group with layers that overlap, the fastest way first; another follows if it takes little
    longer, since results of layers at the same time cannot stay on the chip. Without a cost
    function, nothing changes."""
    if linker.cost is None:
        return [group]
    paired = pair_neighbours(group, layers, linker)
    if layers.kernels.can_tune(layer.kernel for layer in group.layers):
        halved = halve_layers(group, layers)
        first = linker.fastest(paired, halved)
        other = halved if first is paired else paired
        is_close = other.cycles is not None and other.cycles <= NEARLY * linker.cycles(first)
        return [first, other] if is_close else [first]
    return [paired if paired is group or linker.can_link(paired) else group]


def pair_neighbours(group: Group, layers: LayerCompiler, linker: Linker) -> Group:
    """The group with neighbours at the same time where that makes the whole stream faster."""
    pairs, kernels = _find_pairs(group, layers, linker), layers.kernels
    is_long = len(pairs) > MOST_PAIRS or sum(
        kernels.lower_bound(layer.kernel) for layer in group.layers) > LONG
    for place, pair in enumerate(pairs, 1):
        kernels.say(f"running neighbours at the same time (pair {place} of {len(pairs)})")
        first, end = pair.number - 1, pair.number + 1
        trial = group.with_layers([*group.layers[:first], *pair.layers, *group.layers[end:]])
        if not is_long:
            group = linker.fastest(group, trial)
        elif pair.cycles <= SURE * pair.apart:
            group = trial
        else:
            group = linker.faster_section(group, trial, first, end)
    return group


def halve_layers(group: Group, layers: LayerCompiler) -> Group:
    """The group, not yet paired, with half of every scratchpad for each layer. Alone, a layer
    spreads over all banks of the accumulator, and the next one's parameters wait until it has done:
    loads are in order, so all that follows waits too. Layers that do not fit keep what they have.
    """
    found = []
    made = {name: group.made[name] for name in group.views}
    for number, layer in enumerate(group.layers, 1):
        layers.kernels.say(f"compiling with half of each scratchpad (layer {number} of "
                           f"{len(group.layers)})")
        found.append(_halve_layer(layer, layers, made) or layer)
        made[layer.node] = found[-1].output
    return group.with_layers(found)


def _halve_layer(layer: CompiledLayer, layers: LayerCompiler,
                 made: Mapping[str, Layout]) -> CompiledLayer | None:
    """A layer with half of every scratchpad, if there is room and its result is the same bytes."""
    try:
        half = layers.layer(layer.node, made, half=True)
    except (MicrotronError, Misfit):
        return None
    return replace(half, parts=layer.parts) if same_bytes(half.output, layer.output) else None


def _find_pairs(group: Group, layers: LayerCompiler, linker: Linker) -> list[Pair]:
    """Of all ways to pair neighbours the one that promises most."""
    kernels = layers.kernels
    best: list[tuple[float, list[Pair]]] = [(0, [])]
    for number, layer in enumerate(group.layers):
        kernels.say(f"looking for neighbours to pair (layer {number + 1} of {len(group.layers)})")
        cycles, pairs = best[-1]
        ways = [(cycles + kernels.cycles(layer.kernel), pairs)]
        pair = _pair(group, number, layers, linker) if number else None
        if pair is not None:
            cycles, pairs = best[-2]
            ways.append((cycles + pair.cycles, [*pairs, pair]))
        best.append(min(ways, key=lambda way: way[0]))
    return best[-1][1]


def _pair(group: Group, number: int, layers: LayerCompiler, linker: Linker) -> Pair | None:
    """A layer together with the one before it, if there is something to gain."""
    two, kernels = group.layers[number - 1:number + 1], layers.kernels
    bounds = [layer.kernel.form.work.bound(kernels.config, kernels.timing) for layer in two]
    together = max(sum(each.macs for each in bounds), sum(each.memory for each in bounds),
                   sum(each.alu for each in bounds))
    apart = sum(kernels.cycles(layer.kernel) for layer in two)
    if two[0].node not in [tensor for tensor, _ in two[1].reads.values()] or (
            together > WORTH_PAIRING * apart):
        return None
    later = {layer.node for layer in group.layers[number - 1:]}
    made = {name: layout for name, layout in group.made.items() if name not in later}
    trial = Group()
    for layer in two:
        half = _halve_layer(layer, layers, {**made, **trial.made})
        if half is None:
            return None
        trial.add(replace(half, with_next=layer is two[0]))
    first, second = trial.layers
    ways = [trial]
    if bounds[0].cycles < bounds[1].cycles:
        ways += [trial.with_layers([replace(first, kernel=other), second])
                 for other in kernels.with_long_steps(first.kernel)]
    found: list[Pair] = []
    for way in ways:
        with suppress(MicrotronError):          # no room for both
            found.append(Pair(number, way.layers, linker.pair_cycles(way), apart))
    return min(found, key=lambda pair: pair.cycles, default=None)
