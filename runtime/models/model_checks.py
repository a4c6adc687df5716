"""Whether the parts of a compiled model fit together: who loads one from a file can run it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...base.checked_values import show_name
from ...base.errors import ImageError, MicrotronError
from ...compiler.graph.types import TensorType
from ...compiler.network.network import Where
from ...compiler.operators.layout import Layout
from ...isa.program import Access, Program
from .compiled_model import CompiledModel, HostStep, Port, ProgramStep

ROOM = 1 << 20              # elements that a layout may take on the way in any case,
FACTOR = 64                 # and for each element of the tensor or of its tiles
FARTHEST = 1 << 62          # bytes
INT8 = range(-128, 128)
READ, WRITTEN = ("int8",), ("int8", "int32")        # types of what programs read and write


def check_model(model: CompiledModel) -> None:
    """Refuse a model of which a step cannot have what it reads, with the first thing wrong."""
    known: dict[str, TensorType] = dict(model.inputs)
    _add(known, {name: each.type for name, each in model.states.items()}, "states")
    _add(known, {name: each.type for name, each in model.constants.items()}, "constants")
    for number, step in enumerate(model.steps):
        place = f"step {number}"
        if isinstance(step, HostStep):
            part = step.part
            _check_reads(known, part.inputs, place)
            _add(known, {name: part.type_of(name) for name in part.outputs}, place)
        else:
            _check_program(step, known, place)
            if step.program.config != model.config:
                raise ImageError(f"{place}: its program is for another configuration than the "
                                 f"model")
    if not model.outputs and not model.states:
        raise ImageError("the model has no output")
    _check_reads(known, model.outputs, "outputs")
    _check_states(model, known)
    _check_nodes(model)


def _check_states(model: CompiledModel, known: Mapping[str, TensorType]) -> None:
    """States become tensors of their type that steps compute: what is copied last into one is not
    another one, which may have been copied into before."""
    for name, state in model.states.items():
        _check_reads(known, {state.result: state.type}, f"state {show_name(name)}")
        if state.result in model.inputs or state.result in model.states:
            raise ImageError(f"state {show_name(name)} becomes {show_name(state.result)}, which no "
                             f"step computes")


def _add(known: dict[str, TensorType], found: dict[str, TensorType], place: str) -> None:
    for name, type_ in found.items():
        if name in known:
            raise ImageError(f"{place}: {show_name(name)} is computed twice")
        known[name] = type_


def _check_reads(known: Mapping[str, TensorType], needed: Mapping[str, TensorType],
                 place: str) -> None:
    for name, type_ in needed.items():
        if name not in known:
            raise ImageError(f"{place} reads {show_name(name)}, which is not computed before")
        if known[name] != type_:
            raise ImageError(f"{place} reads {show_name(name)} as {type_}, but it is {known[name]}")


def _check_program(step: ProgramStep, known: dict[str, TensorType], place: str) -> None:
    _check_reads(known, {each.tensor: each.type for each in step.inputs}, place)
    for ports, types in ((step.inputs, READ), (step.outputs, WRITTEN)):
        for port in ports:
            _check_port(port, step.program, types, f"{place}: {show_name(port.tensor)}")
    for port in step.outputs:
        tensor = step.program.tensor(port.name)
        if step.program.segment(tensor.segment).access != Access.WRITE:
            raise ImageError(f"{place}: the accelerator may not write {show_name(port.name)}")
        try:
            for stage in port.layout.stages:
                stage.inverse()
        except MicrotronError as error:
            raise ImageError(f"{place}: {show_name(port.tensor)}: {error}") from None
        _add(known, {port.tensor: port.type}, place)


def _check_port(port: Port, program: Program, types: tuple[str, ...], place: str) -> None:
    """A tensor and its tiles fit each other, and neither takes more memory than they need."""
    tensor = program.tensor(port.name)
    if port.type.dtype != tensor.dtype or tensor.dtype not in types:
        raise ImageError(f"{place} is {port.type.dtype} and lies in tiles as {tensor.dtype}, but "
                         f"both must be {' or both '.join(types)}")
    _check_layout(port.layout, port.type.size, prod(tensor.shape), place)


def _check_layout(layout: Layout, elements: int, tiles: int, place: str) -> None:
    size, most = elements, FACTOR * max(elements, tiles) + ROOM
    if not layout.stages:
        raise ImageError(f"{place}: its layout has no stage")
    for stage in layout.stages:
        if prod(stage.source) != size:
            raise ImageError(f"{place}: a stage of its layout takes {prod(stage.source)} elements, "
                             f"but there are {size}")
        before, after = stage.borders()
        size = prod(stage.shape)
        largest = prod(sum(each) for each in zip(before, stage.source, after, strict=True))
        if max(size, largest) > most:
            raise ImageError(f"{place}: a stage of its layout takes {max(size, largest)} elements "
                             f"on the way, which is too much for {max(elements, tiles)}")
        if max((step for _, step in stage.steps), default=0) * largest > FARTHEST:
            raise ImageError(f"{place}: a stage of its layout moves farther than an address goes")
        if stage.fill not in INT8:
            raise ImageError(f"{place}: its layout fills up with {stage.fill}, which is not int8")
    if size != tiles:
        raise ImageError(f"{place}: its layout gives {size} elements, but the program has {tiles}")


def _check_nodes(model: CompiledModel) -> None:
    """Reports name steps and instructions that are there."""
    for node in model.nodes:
        place = f"node {show_name(node.name)}"
        if node.step is None:
            continue
        if not 0 <= node.step < len(model.steps):
            raise ImageError(f"{place}: runs in step {node.step} of {len(model.steps)}")
        step = model.steps[node.step]
        if isinstance(step, HostStep) != (node.where == Where.CPU):
            raise ImageError(f"{place}: runs on the {node.where.value}, but its step does not")
        if isinstance(step, ProgramStep) and node.label not in step.program.labels:
            raise ImageError(f"{place}: begins at {show_name(node.label)}, which its program lacks")
        if node.macs < 0:
            raise ImageError(f"{place}: has {node.macs} multiply-adds")
