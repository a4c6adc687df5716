"""What is left of a network when it has been compiled: steps to run, and reports on its nodes.

A model needs no graph to run: its programs hold weights and layers, and for what the CPU computes
there are small graphs of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from math import prod

from ...base.classes.dataclass import dataclass
from ...compiler.graph.graph import Constant, Graph, Node
from ...compiler.graph.operations.layers.matmul import MatMul
from ...compiler.graph.operations.layers.window import Conv, TransposedConv
from ...compiler.graph.subgraph import extract_subgraph
from ...compiler.graph.types import TensorType
from ...compiler.network.linking.memory_plan import Plan
from ...compiler.network.network import AcceleratorStep, Network, Transfer, Where
from ...compiler.network.network import HostStep as NetworkHostStep
from ...compiler.operators.layout import Layout
from ...compiler.operators.work import Work
from ...isa.config import Config
from ...isa.memory_timing import MemoryTiming
from ...isa.program import Program


@dataclass(frozen=True)
class Port:
    """A tensor of the network that goes into a program, or comes out of it, in tiles."""

    tensor: str
    type: TensorType
    name: str                   # of the program's tensor
    layout: Layout


@dataclass(frozen=True, eq=False)
class ProgramStep:
    """Layers in one stream, and where the tensors between them lie."""

    program: Program
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    plan: Plan


@dataclass(frozen=True, eq=False)
class HostStep:
    """Nodes that the CPU computes, as a graph of their own."""

    part: Graph


Step = ProgramStep | HostStep


@dataclass(frozen=True)
class NodeReport:
    """A node of the network: where it runs, and why there if it is the CPU, or as part of which."""

    name: str                   # of the tensor that it computes
    origin: str                 # what the model calls it
    operator: str               # of the accelerator, or in words
    type: TensorType            # of its result
    where: Where
    reason: str = ""
    macs: int = 0               # also of nodes that are part of it
    step: int | None = None     # in which it runs; none, if there is nothing to do
    label: str = ""             # of its first instruction
    work: Work | None = None    # what it takes at least on the accelerator
    note: str = ""
    inputs: tuple[str, ...] = ()            # tensors that it reads and other nodes or users give

    @property
    def title(self) -> str:
        """What people call it."""
        return self.origin or self.name


@dataclass(frozen=True, eq=False)
class ModelState:
    """A tensor that is remembered from one inference to the next: `initial` before the first, and
    then what `result`, which a step computes, was in the inference before."""

    initial: Constant
    result: str

    @property
    def type(self) -> TensorType:
        return self.initial.type


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """Everything about a compiled network that runtimes and reports need."""

    name: str
    config: Config
    memory: MemoryTiming        # that it was compiled for
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    constants: Mapping[str, Constant]       # that are outputs, or go into programs
    steps: tuple[Step, ...]
    nodes: tuple[NodeReport, ...]
    provenance: Mapping[str, str]           # where it came from, in words
    states: Mapping[str, ModelState] = field(default_factory=dict)  # by name, beside the inputs

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(step.program for step in self.steps if isinstance(step, ProgramStep))

    @property
    def host_nodes(self) -> tuple[NodeReport, ...]:
        """What the CPU computes."""
        return tuple(each for each in self.nodes if each.where == Where.CPU)


def to_compiled_model(network: Network, memory: MemoryTiming) -> CompiledModel:
    """What is to be kept of a network."""
    graph = network.graph
    read = {each.tensor for step in network.steps if isinstance(step, AcceleratorStep)
            for each in step.inputs}
    steps = tuple(_step(graph, step, read) for step in network.steps)
    return CompiledModel(
        name=graph.name, config=network.config, memory=memory, inputs=graph.user_inputs,
        outputs={name: graph.type_of(name) for name in graph.user_outputs},
        constants={name: each for name, each in graph.constants.items()
                   if name in read or name in graph.outputs},
        steps=steps, nodes=tuple(_reports(network)), provenance=dict(network.provenance),
        states={name: ModelState(Constant(graph.inputs[name], each.initial), each.result)
                for name, each in graph.states.items()})


def _step(graph: Graph, step: AcceleratorStep | NetworkHostStep, read: AbstractSet[str]) -> Step:
    """A step. What programs read of the CPU's is an output, also if in the graph they read it after
    a reshape that is the CPU's too."""
    if isinstance(step, NetworkHostStep):
        mine = extract_subgraph(graph, step.nodes)
        more = tuple(name for name in mine.nodes if name in read and name not in mine.outputs)
        return HostStep(replace(mine, outputs=mine.outputs + more))
    return ProgramStep(step.program, _ports(graph, step.inputs), _ports(graph, step.outputs),
                       step.plan)


def _ports(graph: Graph, transfers: Iterable[Transfer]) -> tuple[Port, ...]:
    return tuple(Port(each.tensor, graph.type_of(each.tensor), each.name, each.layout)
                 for each in transfers)


def _reports(network: Network) -> Iterable[NodeReport]:
    graph = network.graph
    layers = {layer.node: (number, layer) for number, step in enumerate(network.steps)
              if isinstance(step, AcceleratorStep) for layer in step.layers}
    hosted = {name: number for number, step in enumerate(network.steps)
              if isinstance(step, NetworkHostStep) for name in step.nodes}
    macs: dict[str, int] = {}
    for name, node in graph.nodes.items():
        decision = network.decisions[name]
        whole = decision.reason if decision.where == Where.FUSED else name
        macs[whole] = macs.get(whole, 0) + macs_of(graph, node)
    for name, node in graph.nodes.items():
        decision = network.decisions[name]
        number, layer = layers.get(name, (hosted.get(name), None))
        yield NodeReport(
            name=name, origin=node.origin, type=node.type,
            operator=layer.spec.operator if layer else node.operation.title(), where=decision.where,
            reason=decision.reason, macs=macs.get(name, 0), step=number,
            label=layer.label if layer else "", work=layer.work if layer else None,
            note=layer.note if layer else "", inputs=tuple(
                each for each in node.operation.operands() if each not in graph.constants))


def macs_of(graph: Graph, node: Node) -> int:
    """Products of two numbers that a node sums up, wherever it runs."""
    match node.operation:
        case Conv(weights=weights):
            return node.type.size * prod(graph.type_of(weights).shape[1:])
        case TransposedConv(x=x, weights=weights):
            shape = graph.type_of(weights).shape
            return graph.type_of(x).size * shape[0] // node.operation.groups * prod(shape[2:])
        case MatMul(left=left):
            return node.type.size * graph.type_of(left).shape[-1]
        case _:
            return 0
