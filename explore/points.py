"""Points: what a measurement was asked for, as plain JSON whose digest is its key.

A point of one layer has a description, a configuration, a memory and a schedule: the number of a
form, and its knobs. Fields of a description that have their default are left out, so that a field
added later does not change the keys of older points.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING

from ..base.checked_values import near_misses, quote
from ..base.errors import MicrotronError
from ..isa.config import Config
from ..isa.memory_timing import MemoryTiming

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..compiler.operators.description import Description
    from ..compiler.operators.form import TensorForm

Json = Mapping[str, object]
LAYER = "layer"             # the kind of points that are one layer on one schedule, simulated
DEVICE = "device"           # the same on a device: the RTL or a board
AREA = "area"               # the cells that a configuration takes on a family of FPGAs
UNIT = "unit"               # the cells of one unit of it
CLOCK = "clock"             # the clock that a configuration reaches when it is placed and routed
NETWORK = "network"         # a whole network, compiled and simulated
FAMILIES = ("ecp5", "xc7")  # of FPGAs that areas are measured on
CLOCK_FAMILIES = ("ecp5",)  # and clocks: those of others contradict the delays after routing


class PointError(MicrotronError):
    """Something that was asked of another Microtron, and that this one cannot understand."""


@dataclass(frozen=True)
class Schedule:
    """A way to compute a layer: the number of its form, among those that the operator lists, and
    the form's knobs."""

    form: int
    knobs: DataclassInstance

    def to_json(self) -> dict[str, object]:
        return {"form": self.form, "knobs": _plain(self.knobs)}


@dataclass(frozen=True)
class LayerPoint:
    """A layer on a configuration with a schedule and a memory."""

    layer: Description
    config: Config
    memory: MemoryTiming
    schedule: Schedule
    device: str = ""            # rtl, board:ulx3s, …; simulated unless given

    @property
    def kind(self) -> str:
        return DEVICE if self.device else LAYER

    @property
    def form(self) -> TensorForm:
        return form_of(self.layer, self.config, self.schedule.form)

    def to_json(self) -> dict[str, object]:
        device = {"device": self.device} if self.device else {}
        return {"kind": self.kind, "layer": describe(self.layer),
                "config": self.config.explicit_fields(), "memory": _plain(self.memory),
                **self.schedule.to_json(), **device}


def _plain(values: DataclassInstance) -> dict[str, object]:
    """As `asdict`, of what has numbers and tuples alone, in a fraction of the time."""
    return {field.name: getattr(values, field.name) for field in fields(values)}


def point_key(asked: Json) -> str:
    """The digest of what was asked: equal for equal questions, however they are written."""
    return hashlib.sha256(canonical(asked).encode()).hexdigest()


def canonical(value: object) -> str:
    """JSON with one spelling for each value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def describe(layer: Description) -> dict[str, object]:
    """A description as JSON: its operator, and the fields that differ from their defaults."""
    found: dict[str, object] = {"operator": layer.operator}
    for field in fields(layer):
        value = getattr(layer, field.name)
        if value != field.default:
            found[field.name] = value.name.lower() if isinstance(value, Enum) else (
                list(value) if isinstance(value, tuple) else value)
    return found


def parse_layer(given: object, place: str = "layer") -> Description:
    """The description that JSON stands for. What is wrong with it is one line."""
    from ..compiler.operators.catalogue import OPERATORS

    values = dict(_object(place, given))
    name = values.pop("operator", None)
    known = {each.name: each.description for each in OPERATORS.values()}
    if not isinstance(name, str) or name not in known:
        raise PointError(f"{place}: operator is {quote(name)}, but must be one of "
                         f"{', '.join(known)}{near_misses(str(name), known)}")
    try:
        layer: Description = known[name](**values)
    except MicrotronError as error:
        raise PointError(f"{place}: {error}") from None
    except TypeError as error:          # a field is missing
        raise PointError(f"{place}: {name}: {str(error).rpartition('__init__() ')[2]}") from None
    return layer


def parse_config(given: object, place: str = "config") -> Config:
    values = _integers(place, given)
    try:
        return Config(**values)
    except MicrotronError as error:
        raise PointError(f"{place}: {error}") from None


def parse_memory(given: object, place: str = "memory") -> MemoryTiming:
    values = dict(_object(place, given))
    try:
        return MemoryTiming(**values)       # type: ignore[arg-type]    # it checks every one
    except MicrotronError as error:
        raise PointError(f"{place}: {error}") from None


def parse_schedule(given: Json, layer: Description, config: Config,
                   place: str = "schedule") -> Schedule:
    """A schedule that belongs to a layer on a configuration: its knobs are checked against the
    form."""
    from ..compiler.operators.catalogue import operator_of
    from ..compiler.operators.knob_checks import check_knobs

    number = given.get("form")
    if not isinstance(number, int) or isinstance(number, bool):
        raise PointError(f"{place}: form is {quote(number)}, but must be the number of a form")
    template = operator_of(layer).template
    values = {name: tuple(value) if isinstance(value, list) else value
              for name, value in _object(f"{place}: knobs", given.get("knobs")).items()}
    names = [field.name for field in fields(template.knobs)]
    for name in values:
        if name not in names:
            raise PointError(f"{place}: {layer.operator} has no knob {quote(name)}; there are "
                             f"{', '.join(names)}")
    try:
        knobs = check_knobs(template, form_of(layer, config, number), template.knobs(**values))
    except MicrotronError as error:
        raise PointError(f"{place}: {error}") from None
    except TypeError as error:
        raise PointError(f"{place}: knobs: {str(error).rpartition('__init__() ')[2]}") from None
    return Schedule(number, knobs)


def parse_point(asked: Json) -> LayerPoint:
    """The point that a record was asked for. Raises PointError if this Microtron has no such."""
    kind, device = asked.get("kind"), asked.get("device", "")
    if kind not in (LAYER, DEVICE):
        raise PointError(f"kind is {quote(kind)}, but must be {LAYER!r} or {DEVICE!r}")
    if not isinstance(device, str) or bool(device) != (kind == DEVICE):
        raise PointError(f"device is {quote(device)}, but must be the name of one for points of "
                         f"kind {DEVICE!r}, and is of no others")
    layer, config = parse_layer(asked.get("layer")), parse_config(asked.get("config"))
    return LayerPoint(layer, config, parse_memory(asked.get("memory")),
                      parse_schedule(asked, layer, config), device)


def check_point(asked: Json) -> None:
    """Raise PointError if this Microtron has no such point, of any kind."""
    kind = asked.get("kind")
    if kind == NETWORK:
        parse_config(asked.get("config"))
        parse_memory(asked.get("memory"))
        return
    if kind not in (AREA, UNIT, CLOCK):
        parse_point(asked)
        return
    families = CLOCK_FAMILIES if kind == CLOCK else FAMILIES
    if asked.get("family") not in families:
        raise PointError(f"family is {quote(asked.get('family'))}, but must be one of "
                         f"{', '.join(families)}")
    if kind != UNIT:
        parse_config(asked.get("config"))


def form_of(layer: Description, config: Config, number: int) -> TensorForm:
    """A form by its number."""
    from ..compiler.operators.catalogue import operator_of

    operator = operator_of(layer)
    if operator.compile is not None:        # of several parts, each with a schedule
        raise PointError(f"{layer.operator}: has no schedule of its own to choose")
    forms = operator.forms_of(layer, config, alone=True)
    if not 0 <= number < len(forms):
        raise PointError(f"{layer.operator}: form is {number}, but must be from 0 to "
                         f"{len(forms) - 1} on this configuration")
    form: TensorForm = forms[number]
    return form


def _object(place: str, given: object) -> dict[str, object]:
    if not isinstance(given, dict):
        raise PointError(f"{place} is {quote(given)}, but must be an object")
    return given


def _integers(place: str, given: object) -> dict[str, int]:
    values = _object(place, given)
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise PointError(f"{place}: {name} is {quote(value)}, but must be an integer")
    return values                           # type: ignore[return-value]    # just checked
