"""A model as a sequence of stages over one block of memory.

    pack (CPU) ─► program (accelerator) ─► unpack (CPU) ─► nodes (CPU) ─► …

Every tensor between stages has a place in that block, shared by those that never live together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from ...base.classes.dataclass import dataclass
from ...compiler.graph.graph import Graph
from ...compiler.graph.types import TensorType
from ...compiler.network.linking.dram_places import Grid
from ...compiler.network.linking.memory_plan import Life, Plan, plan_memory
from ..models.compiled_model import CompiledModel, Port, ProgramStep

ALIGNMENT = 64              # bytes; as long as a line of a cache, and any vector


@dataclass(frozen=True)
class Constants:
    """Numbers that are known, and that programs read or that are results."""

    writes: tuple[str, ...]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Nodes:
    """What the CPU computes."""

    part: Graph

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(self.part.inputs)

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(self.part.outputs)


@dataclass(frozen=True)
class Move:
    """A tensor that the CPU packs into tiles, or unpacks from them."""

    port: Port
    tiles: str              # the name of the tiles
    packs: bool

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.port.tensor if self.packs else self.tiles,)

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.tiles if self.packs else self.port.tensor,)


@dataclass(frozen=True, eq=False)
class Run:
    """A program for the accelerator, with the names of the tiles of its inputs and outputs."""

    number: int             # of the program
    step: ProgramStep
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Remember:
    """The last stage: what states become, copied to where the next inference looks for them."""

    pairs: tuple[tuple[str, str], ...]      # a state, and the tensor that it becomes
    writes: tuple[str, ...] = ()            # nothing that an inference reads later

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(result for _, result in self.pairs)


Stage = Constants | Nodes | Move | Run | Remember


def stages_of(model: CompiledModel) -> tuple[Stage, ...]:
    """What happens in one inference, in order."""
    return tuple(_stages(model))


def _stages(model: CompiledModel) -> Iterator[Stage]:
    if model.constants:
        yield Constants(tuple(model.constants))
    number = 0
    for step in model.steps:
        if not isinstance(step, ProgramStep):
            yield Nodes(step.part)
            continue
        into = {f"program {number} {each.name}": each for each in step.inputs}
        out = {f"program {number} {each.name}": each for each in step.outputs}
        yield from (Move(each, tiles, packs=True) for tiles, each in into.items())
        yield Run(number, step, tuple(into), tuple(out))
        yield from (Move(each, tiles, packs=False) for tiles, each in out.items())
        number += 1
    if model.states:
        yield Remember(tuple((name, each.result) for name, each in model.states.items()))


def bytes_of(type_: TensorType) -> int:
    return prod(type_.shape) * np.dtype(type_.dtype).itemsize


def memory_plan(model: CompiledModel, stages: tuple[Stage, ...],
                workspaces: Mapping[int, int]) -> Plan:
    """Places for inputs, outputs, everything between stages, and the workspace that some stages
    have, by number (`workspace 3`). States live for ever."""
    sizes = {name: bytes_of(type_) for name, type_ in model.inputs.items()}
    first, last = dict.fromkeys(model.inputs, 0), dict.fromkeys(model.inputs, 0)
    for number, stage in enumerate(stages):
        sizes |= _output_sizes(model, stage)
        for name in stage.writes:
            first.setdefault(name, number)
            last.setdefault(name, number)
        for name in stage.reads:
            last[name] = number
    for name, state in model.states.items():
        sizes[name], first[name] = bytes_of(state.type), 0
    for name in (*model.outputs, *model.states):
        last[name] = len(stages)
    lives = {name: Life(max(1, size), first[name], last[name]) for name, size in sizes.items()}
    lives |= {f"workspace {number}": Life(size, number, number)
              for number, size in workspaces.items() if size}
    return plan_memory(lives, Grid(ALIGNMENT, page=ALIGNMENT))


def _output_sizes(model: CompiledModel, stage: Stage) -> dict[str, int]:
    """The bytes of what a stage writes."""
    match stage:
        case Constants():
            return {name: bytes_of(model.constants[name].type) for name in stage.writes}
        case Nodes():
            return {name: bytes_of(stage.part.type_of(name)) for name in stage.writes}
        case Move(packs=True):
            return {stage.tiles: _tiles(stage.port)}
        case Move():
            return {stage.port.tensor: bytes_of(stage.port.type)}
        case Run():
            return {name: _tiles(each)
                    for name, each in zip(stage.writes, stage.step.outputs, strict=True)}
        case Remember():
            return {}


def _tiles(port: Port) -> int:
    return port.layout.size * np.dtype(port.type.dtype).itemsize
