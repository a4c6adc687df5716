"""A network as it runs: steps of the accelerator and of the host, and why each node is where."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ...base.classes.dataclass import dataclass
from ...isa.config import Config
from ...isa.program import Program
from ..graph.graph import Graph
from ..operators.description import Description
from ..operators.layout import Layout
from ..operators.work import Work
from .linking.memory_plan import Plan


class Where(Enum):
    ACCELERATOR = "accelerator"
    CPU = "cpu"
    FUSED = "fused"             # on the accelerator, as part of another node, which is the reason
    VIEW = "view"               # nothing to do: the same bytes under another name


@dataclass(frozen=True)
class Decision:
    """Where a node runs; for the CPU, why."""

    where: Where
    reason: str = ""


@dataclass(frozen=True)
class Transfer:
    """A tensor of the graph that goes into a program, or comes out of it, in tiles."""

    tensor: str
    name: str                   # of the program's tensor
    layout: Layout


@dataclass(frozen=True)
class LayerReport:
    """A node in a program: what is computed, and what that takes at least."""

    node: str
    label: str                  # of its first instruction
    spec: Description
    work: Work
    note: str = ""


@dataclass(frozen=True, eq=False)
class AcceleratorStep:
    """Consecutive layers in one stream."""

    program: Program
    inputs: tuple[Transfer, ...]
    outputs: tuple[Transfer, ...]
    layers: tuple[LayerReport, ...]
    plan: Plan


@dataclass(frozen=True)
class HostStep:
    """Nodes that the CPU computes, in order."""

    nodes: tuple[str, ...]


Step = AcceleratorStep | HostStep


@dataclass(frozen=True, eq=False)
class Network:
    """A compiled network. Its graph has what the CPU computes, types, and names."""

    graph: Graph
    config: Config
    steps: tuple[Step, ...]
    decisions: Mapping[str, Decision]
    provenance: Mapping[str, str]

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(step.program for step in self.steps if isinstance(step, AcceleratorStep))
