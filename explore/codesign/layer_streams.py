"""What networks take at least and by estimate, as streams of layers. The bus, the MAC array and the
ALU work on different layers at the same time, and a result that stays on the chip for the next
layer is neither stored nor loaded. A sum of what layers take alone does not see either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from ...compiler.compile import work_of
from ...compiler.network.network import AcceleratorStep, LayerReport, Network, Where
from ...compiler.operators.description import Description
from ...compiler.operators.work import Work
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming

REMEMBERED = 64             # streams on a configuration


@dataclass(frozen=True)
class StreamLayer:
    """A layer, and whether it multiplies the result of the layer before it, which no other layer
    reads: this may stay on the chip."""

    spec: Description
    chained: bool = False


Stream = tuple[StreamLayer, ...]


def streams_of(network: Network) -> tuple[Stream, ...]:
    """The layers of each program of a network, in order."""
    return tuple(tuple(_stream(network, step.layers)) for step in network.steps
                 if isinstance(step, AcceleratorStep))


def _stream(network: Network, layers: Sequence[LayerReport]) -> Iterator[StreamLayer]:
    fused: dict[str, set[str]] = {}             # nodes that are computed as part of another
    for name, decision in network.decisions.items():
        if decision.where == Where.FUSED:
            fused.setdefault(decision.reason, set()).add(name)
    for before, layer in zip([None, *layers], layers, strict=False):
        if before is None or before.node in network.graph.outputs or not layer.work.macs:
            yield StreamLayer(layer.spec)
            continue
        # What is added to a product is read by the last of its nodes, what is multiplied by another
        # one.
        entries = fused.get(layer.node, {layer.node})
        yield StreamLayer(layer.spec, {*network.graph.readers.get(before.node, ())} <= entries)


def least_stream_cycles(stream: Stream, config: Config, memory: MemoryTiming) -> float:
    """A bound: no program for these layers takes fewer. Every result that the out scratchpad holds
    may stay there."""
    works = _works(stream, config, memory)
    size = config.out_bytes if config.gemm_out_tiles else 0
    stays = {number for number, layer in enumerate(stream)
             if layer.chained and works[stream[number - 1].spec].written <= size}
    left = [*_left_over(stream, works, stays)]
    total = replace(left[0], **{each.name: sum(getattr(work, each.name) for work in left)
                                for each in fields(Work)})
    return total.bound(config, memory).cycles


def estimated_stream_cycles(stream: Stream, config: Config, memory: MemoryTiming,
                            estimate: Callable[[Description], float]) -> float:
    """Estimates of the layers, each less what its bound falls by where results stay on the chip:
    the largest ones first, as far as there is room for those of two layers at the same time."""
    works = _works(stream, config, memory)
    cycles = {spec: estimate(spec) for spec in works}
    left = _left_over(stream, works, _staying(stream, works, config))
    return sum(cycles[layer.spec] * _cycles(work, config, memory)
               / max(1.0, _cycles(works[layer.spec], config, memory))
               for layer, work in zip(stream, left, strict=True))


@lru_cache(REMEMBERED)
def _works(stream: Stream, config: Config, memory: MemoryTiming) -> Mapping[Description, Work]:
    return {layer.spec: work_of(layer.spec, config, memory) for layer in stream}


def _cycles(work: Work, config: Config, memory: MemoryTiming) -> float:
    return work.bound(config, memory).cycles


def _staying(stream: Stream, works: Mapping[Description, Work], config: Config) -> set[int]:
    """Layers whose input is expected to stay on the chip."""
    if not config.gemm_out_tiles:
        return set()
    found: dict[int, int] = {}
    sizes = {number: works[stream[number - 1].spec].written
             for number, layer in enumerate(stream) if layer.chained}
    for number, size in sorted(sizes.items(), key=lambda each: -each[1]):
        beside = max(found.get(number - 1, 0), found.get(number + 1, 0))
        if size + beside <= config.out_bytes:
            found[number] = size
    return set(found)


def _left_over(stream: Stream, works: Mapping[Description, Work],
               stays: set[int]) -> Iterator[Work]:
    """The work of each layer without transfers of what stays on the chip."""
    for number, layer in enumerate(stream):
        work = works[layer.spec]
        if number in stays:
            loaded = work.bytes - work.written
            taken = min(loaded, works[stream[number - 1].spec].written)
            work = replace(work, bytes=work.bytes - taken)
        if number + 1 in stays:
            work = replace(work, bytes=work.bytes - work.written, written=0)
        yield work
