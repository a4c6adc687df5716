"""States that stay in the accelerator's memory, as tiles, from one inference to the next.

A program that reads a state and writes what becomes of it to the same place leaves nothing to be
moved: the next inference finds it there.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from ....base.classes.dataclass import dataclass
from ....compiler.graph.types import Array
from ...devices.device import Bytes
from ..compiled_model import CompiledModel, HostStep, Port, ProgramStep
from ..host import Pack, Unpack


class TileMemory(Protocol):
    """The tensors of a program that a device holds."""

    def read(self, name: str) -> Bytes: ...

    def write(self, name: str, data: Bytes) -> None: ...


def resident_ports(model: CompiledModel) -> dict[str, tuple[int, Port, Port]]:
    """States whose tiles stay where they are: the step, where it reads each and where it writes
    what that becomes."""
    uses = Counter([*model.outputs, *(each.result for each in model.states.values())])
    for step in model.steps:
        uses.update(list(step.part.inputs) if isinstance(step, HostStep)
                    else [each.tensor for each in step.inputs])
    found = {}
    for number, step in enumerate(model.steps):
        if not isinstance(step, ProgramStep):
            continue
        written = {each.tensor: each for each in step.outputs}
        for port in step.inputs:
            state = model.states.get(port.tensor)
            result = written.get(state.result) if state is not None else None
            if result is not None and uses[port.tensor] == uses[result.tensor] == 1 and (
                    _place(step, port) == _place(step, result)):
                found[port.tensor] = number, port, result
    return found


def _place(step: ProgramStep, port: Port) -> tuple[object, ...]:
    tensor = step.program.tensor(port.name)
    return tensor.segment, tensor.offset, tensor.shape, tensor.dtype, port.layout


@dataclass(frozen=True)
class ResidentTiles:
    """A state in the memory of a device that holds a program."""

    loaded: TileMemory
    name: str                   # of the program's tensor
    pack: Pack
    unpack: Unpack

    def read(self) -> Array:
        return self.unpack(self.loaded.read(self.name))

    def write(self, array: Array) -> None:
        self.loaded.write(self.name, self.pack(array))
