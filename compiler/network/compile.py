"""From a graph to a network: decide where nodes run, put them in order, and join layers into as few
programs as possible.

    graph ─ tasks ─► order ─ layers ─► groups ─ memory plan, link ─► network
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...isa.config import Config
from ...isa.program import Tensor
from ...isa.timing import MemoryTiming
from ..compile import named
from ..errors import CompileError
from ..graph.graph import Graph
from ..graph.operations.shape import Reshape
from ..graph.types import Shape
from ..operators.choice import Cost
from ..operators.elementwise import Elementwise
from ..operators.layout import Layout
from .fusion import residual_tasks
from .layers import CompiledLayer, LayerCompiler, Misfit, same_bytes
from .link import ARENA, INPUTS, NAMES, OUTPUTS, Layer, Sizes, link
from .network import (
    AcceleratorStep,
    Decision,
    HostStep,
    LayerReport,
    Network,
    Step,
    Transfer,
    Where,
)
from .places import Grid, Place
from .plan import Life, planned
from .task import Task, task_of

WORTH_PAIRING = 0.9         # part of the cycles apart that two layers at once take at best

Progress = Callable[[str, int, int], None]      # a node, its number, and how many there are


def compile_network(graph: Graph, config: Config | str, *, cost: Cost | None = None,
                    memory: MemoryTiming | None = None, require_accelerator: bool = False,
                    provenance: Mapping[str, str] | None = None,
                    progress: Progress | None = None) -> Network:
    """A graph, after its passes, for a configuration. With a `cost`, schedules of layers are the
    fastest of a few that were timed. `require_accelerator` refuses what the CPU would compute."""
    config = named(config)
    compiler = LayerCompiler(config, cost, memory)
    tasks, decisions = _tasks(graph, compiler, progress)
    if require_accelerator:
        _check_all(graph, decisions)
    steps: list[Step] = []
    for group in _groups(graph, tasks, decisions, compiler):
        if isinstance(group, Group):
            paired = _paired(graph, group, tasks, compiler)
            steps.append(_joined(graph, paired, config))
        else:
            steps.append(HostStep(tuple(group)))
    return Network(graph, config, tuple(steps), decisions, dict(provenance or {}))


def _tasks(graph: Graph, compiler: LayerCompiler,
           progress: Progress | None) -> tuple[dict[str, Task], dict[str, Decision]]:
    """What the accelerator takes, perhaps several nodes at once, and why not the rest. Reshapes
    that only the accelerator reads are views."""
    tasks: dict[str, Task] = {}
    decisions: dict[str, Decision] = {}
    for name in graph.nodes:
        try:
            tasks[name] = task_of(graph, name, compiler.config)
        except CompileError as error:
            decisions[name] = Decision(Where.CPU, str(error))
        else:
            decisions[name] = Decision(Where.ACCELERATOR)
    apart = _fuse(graph, compiler, tasks, decisions)
    waiting = list(tasks)
    for number, name in enumerate(waiting):
        if progress is not None:
            progress(graph.nodes[name].origin or name, number, len(waiting))
        try:
            compiler.kernel(_alone(compiler, tasks[name], graph))
        except CompileError as error:
            if name in apart:                   # no room for both: each for itself
                tasks |= apart[name]
                decisions |= dict.fromkeys(apart[name], Decision(Where.ACCELERATOR))
                waiting += apart[name]
            else:
                del tasks[name]
                decisions[name] = Decision(Where.CPU, str(error))
            apart.pop(name, None)
    _see_views(graph, decisions)
    return tasks, decisions


def _fuse(graph: Graph, compiler: LayerCompiler, tasks: dict[str, Task],
          decisions: dict[str, Decision]) -> dict[str, dict[str, Task]]:
    """Make one task of several nodes where it is expected to take fewer cycles than they do apart.
    Returns the tasks that they were, by the node that stands for all."""
    apart: dict[str, dict[str, Task]] = {}
    for name, part, task in list(residual_tasks(graph, tasks)):
        before = {each: tasks[each] for each in (name, part)}
        try:
            together = compiler.estimate(task.spec)
            alone = sum(compiler.estimate(_alone(compiler, each, graph))
                        for each in before.values())
        except CompileError:
            continue                            # does not fit, together or alone
        if together < alone:
            apart[name], tasks[name] = before, task
            del tasks[part]
            decisions[part] = Decision(Where.FUSED, name)
    return apart


def _see_views(graph: Graph, decisions: dict[str, Decision]) -> None:
    """Reshapes that only the accelerator reads, perhaps through others, are nothing to do."""
    for name in reversed(list(graph.nodes)):
        if isinstance(graph.nodes[name].operation, Reshape):
            readers = graph.readers.get(name, ())
            outside = name in graph.outputs or any(
                decisions[each].where == Where.CPU for each in readers)
            decisions[name] = (Decision(Where.CPU, "its result is not the accelerator's to read")
                               if outside else Decision(Where.VIEW))


def _alone(compiler: LayerCompiler, task: Task, graph: Graph) -> Any:
    """The description of a task that reads tensors in layouts of its own."""
    if not isinstance(task.spec, Elementwise):
        return task.spec
    tensor = next(iter(task.reads.values()))
    return compiler.spec_of(task, compiler.natural(graph.type_of(tensor).shape))


def _check_all(graph: Graph, decisions: Mapping[str, Decision]) -> None:
    """Refuse a network of which the CPU computes something."""
    rest = [f"{graph.nodes[name].origin or name} ({graph.nodes[name].operation.title()}: "
            f"{decision.reason})" for name, decision in decisions.items()
            if decision.where == Where.CPU]
    if rest:
        more = f", and {len(rest) - 3} more" if len(rest) > 3 else ""
        raise CompileError(f"the accelerator does not take {'; '.join(rest[:3])}{more}")


@dataclass
class Group:
    """Layers that become one program, in order."""

    layers: list[CompiledLayer] = field(default_factory=list)
    made: dict[str, Layout] = field(default_factory=dict)

    def add(self, layer: CompiledLayer) -> None:
        self.layers.append(layer)
        self.made[layer.node] = layer.output


def _groups(graph: Graph, tasks: Mapping[str, Task], decisions: Mapping[str, Decision],
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
    """A node as the next layer of a group, or as the first of another."""
    try:
        return _compiled(graph, name, task, compiler, group.made if group else {}), False
    except Misfit:
        return _compiled(graph, name, task, compiler, {}), True


def _compiled(graph: Graph, name: str, task: Task, compiler: LayerCompiler,
              made: Mapping[str, Layout], *, half: bool = False) -> CompiledLayer:
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


def _paired(graph: Graph, group: Group, tasks: Mapping[str, Task],
            compiler: LayerCompiler) -> Group:
    """The group with neighbours at the same time where that makes the whole stream faster. Nothing
    is paired without a cost to ask."""
    if compiler.cost is None:
        return group
    best = None
    for number, pair in _pairs(graph, group, tasks, compiler):
        if best is None:
            best = compiler.cost(_joined(graph, group, compiler.config).program)
        layers = [*group.layers[:number - 1], *pair, *group.layers[number + 1:]]
        trial = Group(layers, group.made)
        cycles = compiler.cost(_joined(graph, trial, compiler.config).program)
        if cycles < best:
            best, group = cycles, trial
    return group


def _pairs(graph: Graph, group: Group, tasks: Mapping[str, Task],
           compiler: LayerCompiler) -> Iterator[tuple[int, list[CompiledLayer]]]:
    """Of all ways to pair neighbours the one that promises most, each with its second layer's
    number."""
    best: list[tuple[float, list[tuple[int, list[CompiledLayer]]]]] = [(0, [])]
    for number, layer in enumerate(group.layers):
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
    assert compiler.cost is not None, "whoever asks knows costs"
    made = dict(list(group.made.items())[:number - 1])
    trial = Group()
    try:
        for layer in two:
            compiled = _compiled(graph, layer.node, tasks[layer.node], compiler,
                                 {**made, **trial.made}, half=True)
            if not same_bytes(compiled.output, layer.output):
                return None
            trial.add(replace(compiled, parts=layer.parts, with_next=layer is two[0]))
        return compiler.cost(_joined(graph, trial, compiler.config).program), trial.layers
    except (CompileError, Misfit):
        return None                     # no room for both


def _joined(graph: Graph, group: Group, config: Config) -> AcceleratorStep:
    """The program of a group: places for its tensors, and one stream."""
    lives, inputs, outputs = _lives(graph, group)
    grid = Grid.of(config)
    plan = planned(lives, grid)
    input_places, input_size = grid.row(each.layout.size for each in inputs)
    output_places, output_size = grid.row(each.layout.size for each in outputs)
    places = {name: Place(ARENA, offset) for name, offset in plan.offsets.items()}
    places |= {each.tensor: Place(OUTPUTS, offset)
               for each, offset in zip(outputs, output_places, strict=True)}
    given = {(each.tensor, each.layout): Place(INPUTS, offset)
             for each, offset in zip(inputs, input_places, strict=True)}
    layers = []
    for layer in group.layers:
        mine = {operand: places[tensor] if tensor in group.made else given[tensor, layout]
                for operand, (tensor, layout) in layer.reads.items()}
        layers.append(Layer(layer.node, layer.kernel.program,
                            {**mine, "output": places[layer.node]}, layer.constants,
                            layer.with_next, layer.output.size))
    tensors = [Tensor(each.name, NAMES[segment], offset, each.layout.stages[-1].shape)
               for segment, transfers, offsets in (
                   (INPUTS, inputs, input_places), (OUTPUTS, outputs, output_places))
               for each, offset in zip(transfers, offsets, strict=True)]
    program = link(layers, config, Sizes(input_size, output_size, plan.peak), tensors)
    labels = sorted(program.labels, key=lambda name: program.labels[name])
    reports = tuple(LayerReport(layer.node, label, layer.kernel.form.description,
                                layer.kernel.form.work, layer.kernel.form.note)
                    for layer, label in zip(group.layers, labels, strict=True))
    return AcceleratorStep(program, tuple(inputs), tuple(outputs), reports, plan)


def _lives(graph: Graph, group: Group) -> tuple[dict[str, Life], list[Transfer], list[Transfer]]:
    """How long tensors between layers live, what comes from outside, and what others read."""
    last: dict[str, int] = {}
    inputs: dict[tuple[str, Layout], Transfer] = {}
    turns = _turns(group)
    for number, layer in zip(turns, group.layers, strict=True):
        for tensor, layout in layer.reads.values():
            if tensor in group.made:
                last[tensor] = number
            elif (tensor, layout) not in inputs:
                inputs[tensor, layout] = Transfer(tensor, f"input{len(inputs)}", layout)
    lives: dict[str, Life] = {}
    outputs: list[Transfer] = []
    inner = {name for layer in group.layers for name in (layer.node, *layer.parts)}
    for number, layer in zip(turns, group.layers, strict=True):
        if layer.node in graph.outputs or _read_outside(graph, layer.node, inner):
            outputs.append(Transfer(layer.node, f"output{len(outputs)}", layer.output))
        else:
            lives[layer.node] = Life(layer.output.size, number, last.get(layer.node, number))
    return lives, list(inputs.values()), outputs


def _turns(group: Group) -> list[int]:
    """When each layer runs; those that run at the same time have the same number."""
    turns, now = [], 0
    for layer in group.layers:
        turns.append(now)
        now += not layer.with_next
    return turns


def _read_outside(graph: Graph, tensor: str, own: set[str]) -> bool:
    """Whether somebody reads a tensor who is not in the same program, perhaps in another shape."""
    return any(_read_outside(graph, reader, own) or reader in graph.outputs
               if isinstance(graph.nodes[reader].operation, Reshape) else reader not in own
               for reader in graph.readers.get(tensor, ()))
