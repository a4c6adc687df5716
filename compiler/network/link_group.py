"""The program of a group of layers: memory layout of its tensors, and one stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from ...base.cache import RESULTS
from ...base.classes.dataclass import dataclass
from ...base.errors import MicrotronError
from ...isa.config import Config
from ...isa.program import Tensor
from ..graph.graph import Graph
from ..operators.choice import Cost, Remembering
from ..operators.kernel import KernelKey
from ..operators.layout import Layout
from .axis_views import MOVES
from .groups import Group, StreamKey
from .linking.dram_places import Grid, Place
from .linking.link import ARENA, INPUTS, NAMES, OUTPUTS, Layer, Sizes, link
from .linking.link_key import parts_of
from .linking.memory_plan import Life, Plan, plan_memory
from .linking.on_chip import plan_on_chip
from .network import AcceleratorStep, LayerReport, Transfer

NOWHERE = Place(ARENA, 0)       # of tensors that stay on chip: never accessed
NEIGHBOURS = 4                  # layers before and after others that show what these change


@dataclass(frozen=True)
class Linker:
    """Links groups of layers, and times the streams."""

    graph: Graph
    config: Config
    cost: Cost | None
    pairs: dict[tuple[KernelKey, KernelKey, tuple[str, ...]], int] = field(default_factory=dict)
    times: dict[StreamKey, int] = field(default_factory=dict)       # searches meet streams again

    def link(self, group: Group) -> AcceleratorStep:
        """The program of a group, which is linked once."""
        if group.step is None:
            group.step = _link_group(self.graph, group, self.config)
        return group.step

    def cycles(self, group: Group) -> int:
        """The cost of a group's program. If it is cached, the program is not linked."""
        assert self.cost is not None, "groups are timed with a cost only"
        if group.cycles is None:
            group.cycles = self.times.get(group.key)
        if group.cycles is None:
            if isinstance(self.cost, Remembering) and RESULTS.is_used():
                linked = _prepare(self.graph, group, self.config)
                group.cycles = self.cost.look_up(
                    parts_of(linked.layers, self.config, linked.sizes),
                    lambda: self.link(group).program)
            else:
                group.cycles = self.cost(self.link(group).program)
            self.times[group.key] = group.cycles
        return group.cycles

    def pair_cycles(self, two: Group) -> int:
        """The cost of two layers at the same time. Each kind of pair is timed once."""
        first, second = two.layers
        shared = tuple(operand for operand, (tensor, _) in second.reads.items()
                       if tensor == first.node)
        kind = first.kernel.key, second.kernel.key, shared
        if kind not in self.pairs:
            self.pairs[kind] = self.cycles(two)
        return self.pairs[kind]

    def faster_section(self, group: Group, trial: Group, first: int, last: int) -> Group:
        """The faster of two groups that differ in a few layers, as far as these and their
        neighbours show: what is far from them in a long stream takes as long as before."""
        first, last = max(0, first - NEIGHBOURS), min(len(group.layers), last + NEIGHBOURS)
        while first and any(each.layers[first - 1].with_next for each in (group, trial)):
            first -= 1
        while last < len(group.layers) and any(each.layers[last - 1].with_next
                                               for each in (group, trial)):
            last += 1
        sections = [each.section(self.graph, first, last) for each in (group, trial)]
        return group if self.fastest(*sections) is sections[0] else trial

    def can_link(self, group: Group) -> bool:
        """Whether there is a program of a group: it may be too large for its segments."""
        try:
            self.link(group)
        except MicrotronError:
            return False
        return True

    def fastest(self, *groups: Group) -> Group:
        """The fastest group; the first, of equals. One that cannot be linked or run loses."""
        return min(groups, key=self._cycles_if_linked)

    def _cycles_if_linked(self, group: Group) -> float:
        try:
            return self.cycles(group)
        except MicrotronError:
            return float("inf")

    def fits(self, group: Group) -> bool:
        """Whether everything that is to stay on chip fits."""
        try:
            plan_on_chip(_prepare(self.graph, group, self.config).layers, self.config)
        except MicrotronError:
            return False
        return True


@dataclass(frozen=True)
class Prepared:
    """A group before its streams are linked: layers with places for all their tensors."""

    layers: list[Layer]
    sizes: Sizes
    tensors: list[Tensor]
    inputs: tuple[Transfer, ...]
    outputs: tuple[Transfer, ...]
    plan: Plan


def _link_group(graph: Graph, group: Group, config: Config) -> AcceleratorStep:
    """Lay out the tensors of a group, and link its layers into one stream."""
    ready = _prepare(graph, group, config)
    program = link(ready.layers, config, ready.sizes, ready.tensors)
    labels = sorted(program.labels, key=lambda name: program.labels[name])
    reports = tuple(LayerReport(layer.node, label, layer.kernel.form.description,
                                layer.kernel.form.work, layer.kernel.form.note)
                    for layer, label in zip(group.layers, labels, strict=True))
    return AcceleratorStep(program, ready.inputs, ready.outputs, reports, ready.plan)


def _prepare(graph: Graph, group: Group, config: Config) -> Prepared:
    whole = group.places()
    lives, inputs, outputs = _lifetimes(graph, group, whole)
    grid = Grid.of(config)
    plan = plan_memory(lives, grid)
    input_places, input_size = grid.row(each.layout.size for each in inputs)
    written = list(dict.fromkeys(whole[each.tensor][0] for each in outputs))
    offsets, output_size = grid.row(_bytes(graph, name, group.made[name]) for name in written)
    starts = {name: Place(ARENA, offset) for name, offset in plan.offsets.items()}
    starts |= {name: Place(OUTPUTS, offset) for name, offset in zip(written, offsets, strict=True)}
    places = {name: replace(starts[start], offset=starts[start].offset + more)
              for name, (start, more) in whole.items() if start in starts}
    output_places = [places[each.tensor].offset for each in outputs]
    given = {(each.tensor, each.layout): Place(INPUTS, offset)
             for each, offset in zip(inputs, input_places, strict=True)}
    given |= {(each.tensor, each.layout): places[result]
              for each, result in _states_in_place(graph, group, inputs, whole)}
    layers, stays = [], {layer.node for layer in group.layers if layer.stays}
    places |= dict.fromkeys(stays, NOWHERE)
    for layer in group.layers:
        mine = {operand: places[tensor] if tensor in group.made else given[tensor, layout]
                for operand, (tensor, layout) in layer.reads.items()}
        takes = next((operand for operand, (tensor, _) in layer.reads.items() if tensor in stays),
                     "")
        layers.append(Layer(layer.node, layer.kernel.program,
                            {**mine, "output": places[layer.node]}, layer.constants,
                            layer.with_next, _bytes(graph, layer.node, layer.output),
                            layer.stays, takes))
    found = [*((each, given[each.tensor, each.layout]) for each in inputs),
             *((each, Place(OUTPUTS, offset))
               for each, offset in zip(outputs, output_places, strict=True))]
    tensors = [Tensor(each.name, NAMES[place.segment], place.offset, each.layout.stages[-1].shape,
                      graph.type_of(each.tensor).dtype) for each, place in found]
    return Prepared(layers, Sizes(input_size, output_size, plan.peak), tensors, tuple(inputs),
                    tuple(outputs), plan)


def _states_in_place(graph: Graph, group: Group, inputs: list[Transfer],
                     whole: Mapping[str, tuple[str, int]]) -> Iterator[tuple[Transfer, str]]:
    """States that are read and become something else in this program alone: the result may take
    the place of the state, if it lies as the state does and all that read the state run before.
    Then it need not be copied between inferences."""
    turns = dict(zip((layer.node for layer in group.layers), _time_slots(group), strict=True))
    inner = {*group.views, *(name for layer in group.layers for name in (
        layer.node, *layer.parts))}
    for each in inputs:
        state = graph.states.get(each.tensor)
        if state is None or state.result not in turns or (
                whole[state.result] != (state.result, 0)):
            continue
        reads = [turns[layer.node] for layer in group.layers
                 if each.tensor in (tensor for tensor, _ in layer.reads.values())]
        alone = [other for other in inputs if other.tensor == each.tensor] == [each]
        if alone and each.layout == group.made[state.result] and (
                max(reads) < turns[state.result]) and not (
                is_read_outside(graph, each.tensor, inner) or each.tensor in graph.outputs
                or is_read_outside(graph, state.result, inner)):
            yield each, state.result


def _bytes(graph: Graph, tensor: str, layout: Layout) -> int:
    """Of a tensor in tiles: results may have 32 bits."""
    return layout.size * np.dtype(graph.type_of(tensor).dtype).itemsize


def _lifetimes(graph: Graph, group: Group, whole: Mapping[str, tuple[str, int]],
               ) -> tuple[dict[str, Life], list[Transfer], list[Transfer]]:
    """Lifetimes of tensors between layers, inputs of the group, and outputs that others read."""
    last: dict[str, int] = {}
    inputs: dict[tuple[str, Layout], Transfer] = {}
    turns = _time_slots(group)
    for number, layer in zip(turns, group.layers, strict=True):
        for tensor, layout in layer.reads.values():
            if tensor in group.made:
                last[whole[tensor][0]] = number
            elif (tensor, layout) not in inputs:
                inputs[tensor, layout] = Transfer(tensor, f"input{len(inputs)}", layout)
    inner = {*group.views, *(name for layer in group.layers for name in (
        layer.node, *layer.parts))}
    outputs = [Transfer(name, f"output{number}", group.made[name]) for number, name in enumerate(
        name for name in group.made
        if name in graph.outputs or is_read_outside(graph, name, inner))]
    outside = {whole[each.tensor][0] for each in outputs}
    lives: dict[str, Life] = {}
    for number, layer in zip(turns, group.layers, strict=True):
        name, _ = whole[layer.node]
        if name not in outside and not layer.stays:
            life = lives.get(name, Life(_bytes(graph, name, group.made[name]), number, number))
            lives[name] = replace(life, last=max(number, last.get(name, number)))
    return lives, list(inputs.values()), outputs


def _time_slots(group: Group) -> list[int]:
    """The time slot of each layer; layers that run at the same time share one."""
    turns, now = [], 0
    for layer in group.layers:
        turns.append(now)
        now += not layer.with_next
    return turns


def is_read_outside(graph: Graph, tensor: str, own: set[str]) -> bool:
    """Whether a node outside the program reads a tensor, perhaps through reshapes
    and transposes."""
    return any(is_read_outside(graph, reader, own) or reader in graph.outputs
               if isinstance(graph.nodes[reader].operation, MOVES) else reader not in own
               for reader in graph.readers.get(tensor, ()))
