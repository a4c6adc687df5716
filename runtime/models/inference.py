"""One inference, in stages: what the CPU does and what the accelerator does, in turns.

    pack (CPU) ─► run a program (accelerator) ─► unpack (CPU) ─► nodes (CPU) ─► pack (CPU) ─► …

Devices keep their programs; between inferences only inputs change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from time import thread_time
from typing import Any

from ...base.classes.dataclass import dataclass
from ...compiler.graph.types import Array
from ...isa.program import Program
from ...sim.report import Report
from ..devices.device import Address, Bytes, Device, open_device
from .compiled_model import CompiledModel, HostStep, ProgramStep
from .host import HostBackend
from .state.resident import ResidentTiles, resident_ports

TIMED = ("cycle", "rtl")        # devices whose memory takes time


class Unit(Enum):
    """Who works on a stage. Each works on one at a time."""

    CPU = "cpu"
    ACCELERATOR = "accelerator"


@dataclass
class Inference:
    """The tensors that are known so far, and what the accelerator's runs did."""

    values: dict[str, Array]
    tiles: dict[str, Bytes] = field(default_factory=dict)       # of the program that comes next
    reports: list[Report] = field(default_factory=list)
    cpu_seconds: float = 0.0            # for nodes
    changes_device: bool = False        # states there may be new ones
    repack_seconds: float = 0.0         # for moving tensors in and out of tiles


@dataclass(frozen=True)
class Stage:
    unit: Unit
    work: Callable[[Inference], None]
    repacks: bool = False

    def run(self, inference: Inference) -> None:
        """Do the work, and note the time of this thread that the CPU's takes. Waiting does not
        count: a kernel may have to be compiled before it runs for the first time."""
        start = thread_time()
        self.work(inference)
        if self.unit == Unit.CPU:
            seconds = thread_time() - start
            if self.repacks:
                inference.repack_seconds += seconds
            else:
                inference.cpu_seconds += seconds


class LoadedProgram:
    """A device that holds one program. After an error it is loaded anew."""

    def __init__(self, program: Program, device: Device) -> None:
        self.program = program
        self.device = device
        self.is_loaded = False
        self.load()

    def load(self) -> None:
        self.device.load(self.program)
        self.is_loaded = True

    def run(self, tiles: Mapping[str, Bytes],
            outputs: list[str]) -> tuple[dict[str, Bytes], Report]:
        if not self.is_loaded:
            self.load()
        self.is_loaded = False
        for name, data in tiles.items():
            self.device.write(self._address(name), data)
        report = self.device.run()
        found = {name: self.device.read(self._address(name), self.program.tensor(name).size)
                 for name in outputs}
        self.is_loaded = True
        return found, report

    def read(self, name: str) -> Bytes:
        """A tensor of the program, between two runs."""
        return self.device.read(self._address(name), self.program.tensor(name).size)

    def write(self, name: str, data: Bytes) -> None:
        if not self.is_loaded:
            self.load()
        self.device.write(self._address(name), data)

    def _address(self, name: str) -> Address:
        tensor = self.program.tensor(name)
        return Address(tensor.segment, tensor.offset)


def stages_of(model: CompiledModel, device: str, backend: HostBackend,
              options: Mapping[str, Any]) -> tuple[tuple[Stage, ...], dict[str, ResidentTiles]]:
    """The stages of a model, with devices that hold its programs, and states that stay there."""
    if device in TIMED and options.get("memory") is None:
        options = {**options, "memory": model.memory}
    stages: list[Stage] = []
    staying = resident_ports(model)
    residents: dict[str, ResidentTiles] = {}
    for number, step in enumerate(model.steps):
        if isinstance(step, HostStep):
            stages.append(_nodes(step, backend))
        else:
            loaded = LoadedProgram(step.program, open_device(device, model.config, **options))
            mine = {name: ports for name, (place, *ports) in staying.items() if place == number}
            residents |= {name: ResidentTiles(loaded, port.name,
                                              backend.pack(port.layout, port.type),
                                              backend.unpack(port.layout, port.type))
                          for name, (port, _) in mine.items()}
            stages += _program(step, loaded, backend,
                               {each.name for ports in mine.values() for each in ports})
    if not model.programs:              # so that a wrong name is wrong for every model
        open_device(device, model.config, **options)
    return tuple(stages), residents


def _nodes(step: HostStep, backend: HostBackend) -> Stage:
    run = backend.nodes(step.part)
    needed = tuple(step.part.inputs)

    def compute(inference: Inference) -> None:
        inference.values |= run({name: inference.values[name] for name in needed})
    return Stage(Unit.CPU, compute)


def _program(step: ProgramStep, loaded: LoadedProgram, backend: HostBackend,
             staying: set[str]) -> list[Stage]:
    """The stages of a program. Tensors that stay on the device are not moved."""
    packs = [(each.name, each.tensor, backend.pack(each.layout, each.type))
             for each in step.inputs if each.name not in staying]
    unpacks = [(each.name, each.tensor, backend.unpack(each.layout, each.type))
               for each in step.outputs if each.name not in staying]
    outputs = [name for name, _, _ in unpacks]

    def pack(inference: Inference) -> None:
        inference.tiles = {name: work(inference.values[tensor]) for name, tensor, work in packs}

    def run(inference: Inference) -> None:
        inference.changes_device |= bool(staying)
        inference.tiles, report = loaded.run(inference.tiles, outputs)
        inference.reports.append(report)

    def unpack(inference: Inference) -> None:
        inference.values |= {tensor: work(inference.tiles[name])
                             for name, tensor, work in unpacks}
    return [Stage(Unit.CPU, pack, repacks=True), Stage(Unit.ACCELERATOR, run),
            Stage(Unit.CPU, unpack, repacks=True)]
