"""The CPU's stages as kernels for a processor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...base.processor import Target
from ...compiler.cpu.cpu_part import RUN, Part, compile_function, compile_part
from ...compiler.cpu.tiles import PLAIN, TILES, pack_tensor, unpack_tensor
from .stages import Move, Nodes, Stage

StageParts = Mapping[int, Part]         # by number of the stage
DEFINED = re.compile(r"^define (?:internal )?i32 @([\w.]+)\(", re.MULTILINE)


def parts_of(stages: Sequence[Stage], target: Target) -> StageParts:
    """Kernels for each stage that needs any."""
    found: dict[int, Part] = {}
    for number, stage in enumerate(stages):
        match stage:
            case Nodes():
                found[number] = compile_part(stage.part, target)
            case Move(packs=True):
                found[number] = compile_function(
                    pack_tensor(stage.port.layout, stage.port.type.dtype), target)
            case Move():
                found[number] = compile_function(
                    unpack_tensor(stage.port.layout, stage.port.type.dtype), target)
    return found


def tensors_of(stage: Stage, part: Part) -> dict[int, str]:
    """Which tensor each place of the table of a stage's kernels holds."""
    own = {**part.inputs, **part.outputs}
    if isinstance(stage, Move):
        plain, tiles = stage.port.tensor, stage.tiles
        return {own[PLAIN]: plain, own[TILES]: tiles}
    return {place: name for name, place in own.items()}


def module_of(part: Part, symbol: str) -> str:
    """The module of a part, whose functions are called after a stage: symbol_run runs all."""
    names = {name: f"{symbol}_{name}" for name in DEFINED.findall(part.text)}
    assert RUN in names
    return re.sub(r"@([\w.]+)", lambda found: f"@{names.get(found[1], found[1])}", part.text)
