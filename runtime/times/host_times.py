"""What the CPU's half of one inference takes, node by node, and how each figure was found."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ...base.classes.dataclass import dataclass
from ..models.compiled_model import CompiledModel, Port, ProgramStep
from ..models.state.resident import resident_ports


class Source(Enum):
    """Where a time comes from."""

    SIMULATED = "simulated"     # exact cycles at a stated clock
    MEASURED = "measured"       # on the machine that runs this
    ESTIMATED = "estimated"     # operations × cycles per operation of a processor


@dataclass(frozen=True)
class NodeTime:
    """A node of the CPU. A node that is computed inside another node's loop has no time of its
    own; `inside` names the other, whose time includes both."""

    seconds: float | None
    source: Source
    inside: str = ""


@dataclass(frozen=True)
class Handover:
    """A tensor that goes from the CPU to the accelerator or back: the CPU repacks it."""

    tensor: str
    step: int                   # of the program
    to_accelerator: bool
    bytes: int                  # of its tiles
    seconds: float
    source: Source

    def to_dict(self) -> dict[str, object]:
        """Plain data, fit for JSON."""
        return {"tensor": self.tensor, "step": self.step,
                "direction": "to accelerator" if self.to_accelerator else "to cpu",
                "bytes": self.bytes, "seconds": self.seconds, "time_source": self.source.value}


@dataclass(frozen=True, kw_only=True)
class HostTimes:
    """All of the CPU's half. `processor` says in words whose time it is."""

    processor: str
    nodes: Mapping[str, NodeTime]       # by name, of all nodes that the CPU computes
    handovers: tuple[Handover, ...]

    @property
    def node_seconds(self) -> float:
        return sum(each.seconds or 0 for each in self.nodes.values())

    @property
    def repack_seconds(self) -> float:
        return sum(each.seconds for each in self.handovers)

    @property
    def source(self) -> Source:
        """Estimated, if any part of it is."""
        return Source.ESTIMATED if Source.ESTIMATED in self.sources else Source.MEASURED

    @property
    def sources(self) -> set[Source]:
        """Where any part of it comes from."""
        return {*(each.source for each in self.nodes.values()),
                *(each.source for each in self.handovers)}


def ports_of(model: CompiledModel) -> list[tuple[int, Port, bool, int]]:
    """Every tensor that is handed over: the step of its program, its port, whether it goes to the
    accelerator, and the bytes of its tiles."""
    staying = {(number, port.name) for number, *ports in resident_ports(model).values()
               for port in ports}
    return [(number, port, to_accelerator, step.program.tensor(port.name).size)
            for number, step in enumerate(model.steps) if isinstance(step, ProgramStep)
            for to_accelerator, ports in ((True, step.inputs), (False, step.outputs))
            for port in ports if (number, port.name) not in staying]
