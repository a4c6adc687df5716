"""What a model image says in words and numbers: canonical JSON, to a model and back.

Records become objects with all of their fields, as in compiler/graph/records.py; nothing that is
read is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple, NoReturn

from ...base.checked_values import PlainData, integer, quote, show_name
from ...base.errors import ImageError
from ...compiler.graph.graph import Constant, Graph
from ...compiler.graph.records import record, to_plain_data
from ...compiler.graph.saved import load_graph, save_graph
from ...compiler.graph.types import Array, TensorType
from ...compiler.network.linking.memory_plan import Plan
from ...isa.config import Config
from ...isa.image.sections import Octets
from ...isa.memory_timing import MemoryTiming
from ...isa.program import SEGMENT_BYTES_LIMIT, Program
from .compiled_model import (
    CompiledModel,
    HostStep,
    ModelState,
    NodeReport,
    Port,
    ProgramStep,
    Step,
)

TEXT_LIMIT = 16 << 20               # bytes; parsed, they take up to forty times as much
DIGITS_LIMIT = 20                   # of a whole number, its sign included
STEPS_LIMIT = 1 << 16


class Sizes(NamedTuple):
    """Bytes of the pieces of bulk data, in order."""

    programs: list[int]
    arrays: list[int]


def text_of(data: object) -> bytes:
    """The one text that stands for some data."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True,
                          separators=(",", ":")).encode()
    except ValueError as error:             # half a character, or a number that is none
        raise ImageError(f"section model: {error}") from None
    _check_size(len(text))
    return text


def parse(content: Octets) -> dict[str, object]:
    """The data in a text, which must be canonical."""
    _check_size(len(content))
    text = content.tobytes()
    try:
        data = json.loads(text.decode(), parse_int=_number, parse_constant=_no_number)
        canonical = text_of(data) == text
    except RecursionError:
        raise ImageError("section model: nested too deeply") from None
    except ImageError:
        raise
    except ValueError as error:
        raise ImageError(f"section model: {error}") from None
    if not canonical:
        raise ImageError("section model: not in canonical form (keys sorted and unique, no spaces, "
                         "no escapes but the needed ones, numbers as short as they can be)")
    return _object(data, "model", FIELDS)


FIELDS = (*(each.name for each in fields(CompiledModel)), "arrays")


def describe(model: CompiledModel, sizes: Sizes) -> dict[str, object]:
    """A model as plain data; bulk data is told by its sizes."""
    programs = iter(sizes.programs)
    return {
        "name": model.name, "config": to_plain_data(model.config),
        "memory": to_plain_data(model.memory),
        "inputs": _types(model.inputs), "outputs": _types(model.outputs),
        "states": [{"name": name, "result": each.result} for name, each in model.states.items()],
        "constants": save_graph(_constants_graph(model))[0], "arrays": list(sizes.arrays),
        "steps": [_describe_step(step, programs) for step in model.steps],
        "nodes": [to_plain_data(each) for each in model.nodes],
        "provenance": dict(model.provenance)}


def _types(types: Mapping[str, TensorType]) -> list[dict[str, object]]:
    return [{"name": name, "type": to_plain_data(type_)} for name, type_ in types.items()]


def _constants_graph(model: CompiledModel) -> Graph:
    """The constants of a model, and what its states hold first, as a graph of which each is an
    output."""
    constants = {**model.constants, **{name: each.initial for name, each in model.states.items()}}
    return Graph({}, constants, {}, tuple(constants))


def _describe_step(step: Step, programs: Iterator[int]) -> dict[str, object]:
    if isinstance(step, HostStep):
        return {"graph": save_graph(step.part)[0]}
    return {"program": next(programs), "inputs": [to_plain_data(each) for each in step.inputs],
            "outputs": [to_plain_data(each) for each in step.outputs],
            "plan": {"offsets": dict(step.plan.offsets), "peak": step.plan.peak,
                     "total": step.plan.total}}


def arrays_of(model: CompiledModel) -> list[Array]:
    """All constants that are kept apart, in order: those of the model, then of each step."""
    graphs = [_constants_graph(model),
              *(step.part for step in model.steps if isinstance(step, HostStep))]
    return [array for graph in graphs for array in save_graph(graph)[1]]


def sizes_of(data: dict[str, object]) -> Sizes:
    """The sizes of bulk data that a text tells."""
    steps = _list(data["steps"], "steps")
    if len(steps) > STEPS_LIMIT:
        raise ImageError(f"there are {len(steps)} steps, but at most {STEPS_LIMIT} are possible")
    return Sizes([_read_integer(each["program"], f"step {number}: program")
                  for number, each in enumerate(steps)
                  if isinstance(each, dict) and "program" in each],
                 [_read_integer(each, "arrays") for each in _list(data["arrays"], "arrays")])


def build(data: PlainData, programs: Sequence[Program],
          arrays: Sequence[Octets]) -> CompiledModel:
    """The model that these make. Each part of it is sound; whether they fit is another question."""
    left, streams = list(arrays), iter(programs)
    constants = dict(_graph(data["constants"], left, "constants").constants)
    states = dict(_states(data["states"], constants))
    steps = tuple(_step(each, f"step {number}", streams, left)
                  for number, each in enumerate(data["steps"]))
    if left:
        raise ImageError(f"{len(left)} of {len(arrays)} arrays belong to no graph")
    return CompiledModel(
        name=_text(data["name"], "name"), config=record(Config, data["config"], "config"),
        memory=record(MemoryTiming, data["memory"], "memory"),
        inputs=_read_types(data["inputs"], "inputs"),
        outputs=_read_types(data["outputs"], "outputs"), constants=constants, steps=steps,
        nodes=tuple(record(NodeReport, each, f"node {number}")
                    for number, each in enumerate(_list(data["nodes"], "nodes"))),
        provenance={name: _text(each, f"provenance {show_name(name)}")
                    for name, each in _object(data["provenance"], "provenance").items()},
        states=states)


def _states(data: object, constants: dict[str, Constant]) -> Iterator[tuple[str, ModelState]]:
    """States, with what they hold first, which is taken away from the constants."""
    for each in _list(data, "states"):
        entries = _object(each, "states", ("name", "result"))
        name = _text(entries["name"], "states: name")
        if name not in constants:
            raise ImageError(f"state {show_name(name)}: there is no constant of that name that it "
                             f"holds first")
        yield name, ModelState(constants.pop(name), _text(entries["result"], "states: result"))


def _step(data: object, place: str, programs: Iterator[Program], arrays: list[Octets]) -> Step:
    if isinstance(data, dict) and "graph" in data:
        return HostStep(_graph(_object(data, place, ("graph",))["graph"], arrays, place))
    entries = _object(data, place, ("program", "inputs", "outputs", "plan"))
    plan = _object(entries["plan"], f"{place}: plan", ("offsets", "peak", "total"))
    offsets = _object(plan["offsets"], f"{place}: offsets")
    return ProgramStep(
        next(programs), _ports(entries["inputs"], f"{place}: inputs"),
        _ports(entries["outputs"], f"{place}: outputs"),
        Plan({name: _read_integer(each, f"{place}: offset") for name, each in offsets.items()},
             _read_integer(plan["peak"], f"{place}: peak"),
             _read_integer(plan["total"], f"{place}: total")))


def _graph(data: object, arrays: list[Octets], place: str) -> Graph:
    """A graph, which takes its arrays from those that are left."""
    entries = _object(data, place)
    constants = _list(entries.get("constants"), f"{place}: constants")
    indices = [integer(each.get("array")) for each in constants if isinstance(each, dict)]
    count = max((each + 1 for each in indices if each is not None), default=0)
    if count > len(arrays):
        raise ImageError(f"{place}: there are {count} arrays or more, but {len(arrays)} are left")
    mine, arrays[:count] = arrays[:count], []
    if not constants and not entries.get("nodes") and place == "constants":
        return Graph({}, {}, {}, ())        # a graph has an output, but a model may lack constants
    return load_graph(entries, [each.data for each in mine])


def _ports(data: object, place: str) -> tuple[Port, ...]:
    return tuple(record(Port, each, place) for each in _list(data, place))


def _read_types(data: object, place: str) -> dict[str, TensorType]:
    found: dict[str, TensorType] = {}
    for each in _list(data, place):
        entries = _object(each, place, ("name", "type"))
        name = _text(entries["name"], f"{place}: name")
        if name in found:
            raise ImageError(f"{place}: there are two of the name {show_name(name)}")
        found[name] = record(TensorType, entries["type"], f"{place}: {show_name(name)}")
    return found


def _object(value: object, place: str, keys: Sequence[str] | None = None) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ImageError(f"{place}: {quote(value)} must be an object")
    if keys is not None and set(value) != set(keys):
        raise ImageError(f"{place}: fields are {quote(list(value))}, but must be "
                         f"{', '.join(sorted(keys))}")
    return value


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise ImageError(f"{place}: {quote(value)} must be a list")
    return value


def _read_integer(value: object, place: str) -> int:
    number = integer(value)
    if number is None or not 0 <= number <= SEGMENT_BYTES_LIMIT:
        raise ImageError(f"{place} is {quote(value)}, but must be a whole number from 0 to "
                         f"{SEGMENT_BYTES_LIMIT}")
    return number


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise ImageError(f"{place}: {quote(value)} must be text")
    return value


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= DIGITS_LIMIT else _no_number(digits)


def _no_number(digits: str) -> NoReturn:
    raise ValueError(f"{quote(digits)} is no number of 64 bits")


def _check_size(size: int) -> None:
    if size > TEXT_LIMIT:
        raise ImageError(f"section model has {size} bytes, but at most {TEXT_LIMIT} are possible")
