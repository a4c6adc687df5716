"""Writes a model as object files, C tables and a header, for another processor.

    NAME.h, NAME.c              the network: tensors, stages, programs, and where they lie
    NAME_kernels_N.o            what the CPU computes in stage N
    NAME_data.o                 constants, instructions and weights
    microtron_network.h, .c     what a network is, and one inference
    microtron_math.c            functions that not every C library has
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from ...base.atomic_files import write_atomically
from ...base.errors import MicrotronError
from ...base.machine_code import object_file
from ...base.processor import Target
from ...compiler.cpu.lower_node import NotLoweredError
from ...isa.config import PAGE_BYTES
from ..models.compiled_model import CompiledModel
from .data import data_module
from .names import compute_symbol, constant_symbol, program_symbol, state_symbol, symbol_of
from .overwrite import check_overwrites, update_ledger
from .parts import StageParts, module_of, parts_of
from .stages import Constants, Remember, Run, Stage, memory_plan, stages_of
from .table import header_text, table_text

COMMON = ("microtron_network.h", "microtron_network.c", "microtron_math.c")


def write_objects(model: CompiledModel, target: Target, folder: Path, *,
                  force: bool = True) -> tuple[Path, ...]:
    """Write all files of a model for a processor into a folder, which is made; their paths.
    Without `force`, files that somebody else has put there are not written over."""
    contents = objects(model, target)
    if not force:
        check_overwrites(folder, contents)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MicrotronError(f"{folder}: no such folder, and none can be made: "
                             f"{error.strerror or error}") from None
    for name, content in contents.items():
        write_atomically(folder / name, content)
    update_ledger(folder, contents)
    return tuple(folder / name for name in contents)


def objects(model: CompiledModel, target: Target) -> dict[str, bytes]:
    """The files by name. The same model always gives the same bytes."""
    stages = stages_of(model)
    try:
        parts = parts_of(stages, target)
    except NotLoweredError as error:
        raise MicrotronError(f"{model.name}: the CPU has no code for {error.node}: "
                             f"{error.why}") from None
    plan = memory_plan(model, stages, {number: part.scratch_bytes
                                       for number, part in parts.items()})
    symbol = symbol_of(model.name)
    found = {name: (files(__package__) / name).read_bytes() for name in COMMON}
    found[f"{symbol}.h"] = header_text(model, plan).encode()
    found[f"{symbol}.c"] = table_text(model, stages, parts, plan).encode()
    for number, part in parts.items():
        found[f"{symbol}_kernels_{number}.o"] = object_file(
            module_of(part, compute_symbol(model, number)), target)
    data = _data(model, stages, parts)
    programs = tuple(program_symbol(model, stage.number) for stage in stages
                     if isinstance(stage, Run))
    pages = [name for name, block in data.items()
             if name.startswith(programs) and len(block) >= PAGE_BYTES]
    found[f"{symbol}_data.o"] = object_file(data_module(data, pages), target)
    return found


def _data(model: CompiledModel, stages: Sequence[Stage], parts: StageParts) -> Mapping[str, bytes]:
    """Every block of known bytes, by symbol."""
    blocks: dict[str, bytes] = {}
    for number, stage in enumerate(stages):
        if isinstance(stage, Constants):
            blocks |= {constant_symbol(model, number, place):
                       np.ascontiguousarray(model.constants[name].array).tobytes()
                       for place, name in enumerate(stage.writes)}
        elif isinstance(stage, Run):
            symbol, program = program_symbol(model, stage.number), stage.step.program
            words = program.code.view(f"V{program.code.dtype.itemsize}")
            blocks[f"{symbol}_instructions"] = words.tobytes()
            blocks |= {f"{symbol}_segment_{place}": segment.data.tobytes()
                       for place, segment in enumerate(program.segments)
                       if segment.data is not None}
        elif not isinstance(stage, Remember):
            blocks |= {constant_symbol(model, number, place): array.tobytes()
                       for place, array in parts[number].constants.items()}
    blocks |= {state_symbol(model, number): np.ascontiguousarray(each.initial.array).tobytes()
               for number, each in enumerate(model.states.values())}
    return blocks
