"""Frozen records as plain data and back, by their declared fields alone.

Plain data is what JSON knows: objects, lists, text, truth values, numbers and null. An enumeration
is the name of its member, a tuple a list, a record an object with all of its fields; an operation
has its name too, under "operator". Finite floats are numbers, which Python's JSON writes and reads
to the bit; infinities and NaN, which JSON lacks, are text.

What is read may come from strangers: every value is checked against the type that its field
declares, and nothing is looked up by a name in the data but operations and members.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, SupportsFloat, TypeVar, Union, get_args, get_origin, get_type_hints

from ...base.checked_values import integer, list_names, quote
from ...base.errors import MicrotronError
from . import operations  # noqa: F401  (makes all operations known)
from .operation import OPERATIONS, Operation
from .types import GraphError

Record = TypeVar("Record")
KIND = "operator"
INTEGERS = range(-(1 << 63), 1 << 63)
ODD_FLOATS = ("inf", "-inf", "nan")


def to_plain_data(value: object) -> Any:
    """A record, or anything inside one, as plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = {KIND: type(value).__name__} if isinstance(value, Operation) else {}
        return kind | {each.name: to_plain_data(getattr(value, each.name))
                       for each in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple | list):
        return [to_plain_data(each) for each in value]
    if value is None or isinstance(value, bool | str):
        return value
    if (whole := integer(value)) is not None:
        return whole
    assert isinstance(value, SupportsFloat), f"{value!r} cannot be saved"
    number = float(value)
    return number if math.isfinite(number) else str(number)


def record(kind: type[Record], data: object, place: str) -> Record:
    """A record of a kind from plain data. `place` says where, for messages."""
    entries = objects(data, place)
    actual: Any = kind
    if kind is Operation:
        actual = find_operation(entries.pop(KIND, None), place)
    declared = {each.name: each for each in fields(actual)}
    unknown = [name for name in entries if name not in declared]
    if unknown:
        raise GraphError(f"{place}: there is no field {quote(unknown[0])}; fields are "
                         f"{list_names(list(declared))}")
    missing = [name for name, each in declared.items()
               if name not in entries and each.default is MISSING]
    if missing:
        raise GraphError(f"{place}: the field {missing[0]} is missing")
    hints = _hints(actual)
    values = {name: _value(hints[name], each, f"{place}: {name}") for name, each in entries.items()}
    try:
        made: Record = actual(**values)
    except MicrotronError as error:
        raise GraphError(f"{place}: {error}") from None
    return made


def objects(data: object, place: str) -> dict[str, object]:
    """The entries of an object, as a dictionary that may be changed."""
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise GraphError(f"{place}: {quote(data)} must be an object with named fields")
    return dict(data)


def find_operation(name: object, place: str) -> type[Operation]:
    found = OPERATIONS.get(name) if isinstance(name, str) else None
    if found is None:
        raise GraphError(f"{place}: there is no operation {quote(name)}")
    return found


@cache
def _hints(kind: object) -> dict[str, object]:
    """The types of a record's fields, with forward references resolved."""
    return get_type_hints(kind)


def _value(hint: object, data: object, place: str) -> object:
    """A value of a declared type from plain data."""
    if get_origin(hint) in (Union, UnionType):
        return _one_of(get_args(hint), data, place)
    if get_origin(hint) is tuple:
        return _tuple(get_args(hint), data, place)
    if isinstance(hint, type) and is_dataclass(hint):
        return record(hint, data, place)
    if isinstance(hint, type) and issubclass(hint, Enum):
        if not isinstance(data, str) or data not in hint.__members__:
            raise GraphError(f"{place}: {quote(data)} must be one of "
                             f"{list_names(list(hint.__members__))}")
        return hint[data]
    return _scalar(hint, data, place)


def _one_of(hints: tuple[object, ...], data: object, place: str) -> object:
    """A value of the first of several types that fits. None fits nothing else."""
    if data is None and NoneType in hints:
        return None
    *others, last = [each for each in hints if each is not NoneType]
    for each in others:
        try:
            return _value(each, data, place)
        except GraphError:
            continue
    return _value(last, data, place)


def _tuple(hints: tuple[object, ...], data: object, place: str) -> tuple[object, ...]:
    if not isinstance(data, list):
        raise GraphError(f"{place}: {quote(data)} must be a list")
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(data)
    if len(data) != len(hints):
        raise GraphError(f"{place}: a list of {len(data)} must have {len(hints)} entries")
    return tuple(_value(hint, each, place) for hint, each in zip(hints, data, strict=True))


def _scalar(hint: object, data: object, place: str) -> object:
    if hint is float:
        if isinstance(data, float):
            return data
        if isinstance(data, str) and data in ODD_FLOATS:
            return float(data)
    if hint in (int, float) and (whole := integer(data)) is not None and whole in INTEGERS:
        return whole
    if hint in (str, bool) and isinstance(data, hint):
        return data
    assert hint in (int, float, str, bool), f"{place}: fields of {hint} cannot be saved"
    raise GraphError(f"{place}: {quote(data)} must be {_words(hint)}")


def _words(hint: type[object]) -> str:
    return {int: "a whole number of 64 bits", float: "a number", str: "text",
            bool: "true or false"}[hint]
