"""Descriptions: what an operator is to compute, checked field by field where it is written down.

    Conv2d(height=56, width=56, channels_in=64, channels_out=64, kernel=3, pad=1, rounding="even")

A field accepts the natural short forms: one number where all sides are alike, the name of an
enumeration's member, any integer of NumPy's. Whatever else is wrong is refused with the field, the
value and what would be right, so that a slip never gives a plausible answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, field, fields
from enum import Enum
from math import isfinite
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from ...base.checked_values import integer, quote
from ...base.classes.dataclass import dataclass
from ...base.keywords import Declared, KeywordsChecked
from ...isa.instructions import TABLE_ENTRIES, Rounding
from ..accelerator.selection.intrinsic import Requantization, requantize_function, scale_function
from ..errors import CompileError

LARGEST = 1 << 16           # of every extent: what tile indices and loops are made for
LOW, HIGH = -128, 127       # of an activation
SIDES = "top, bottom, left, right"
WIDE_OPERATORS = ("conv2d", "dense", "depthwise", "grouped")
TABLE_OPERATORS = (*WIDE_OPERATORS, "elementwise", "broadcast", "pool")     # that look results up
KINDS: dict[type[object], dict[str, object]] = {}


def setting(doc: str, default: object = MISSING, *, low: float | None = None,
            high: float | None = None) -> Declared:
    """A field of a description: its line of documentation, and the range of its numbers."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


def extent(doc: str, default: object = MISSING) -> Declared:
    """A size, a step or a count: at least 1. Pairs are rows and columns."""
    return setting(doc, default, low=1, high=LARGEST)


def border(doc: str, default: object = MISSING) -> Declared:
    """A number of rows or columns that may be 0."""
    return setting(doc, default, low=0, high=LARGEST)


def activation(doc: str, default: int = 0) -> Declared:
    """A number of 8 bits, such as a zero point."""
    return setting(doc, default, low=LOW, high=HIGH)


@dataclass(frozen=True, kw_only=True)
class Description(KeywordsChecked):
    """How every description checks and converts its fields."""

    operator: ClassVar[str] = "operator"        # what messages and the command line call it

    def __post_init__(self) -> None:
        for name, kind in kinds_of(type(self)).items():
            object.__setattr__(self, name, self._convert_field(name, kind, getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Refuse fields that are valid one by one, but not together."""

    def _convert_field(self, name: str, kind: Any, value: object) -> object:
        """A field's value in its proper type."""
        if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
            return self._entries(name, value)
        if get_origin(kind) is tuple:
            return self._numbers(name, len(get_args(kind)), value)
        if kind is int:
            return self._integer(name, value)
        if kind is float:
            return self._real(name, value)
        if kind is bool:
            if value is True or value is False or type(value).__name__ == "bool":  # NumPy's too
                return bool(value)
            raise self.wrong(name, value, "True or False")
        assert issubclass(kind, Enum), f"{name}: descriptions have no fields of type {kind}"
        return self._member(name, kind, value)

    def _integer(self, name: str, value: object, whole: object = None) -> int:
        low, high = self._range(name)
        number = integer(value)
        if number is None or not low <= number <= high:
            raise self.wrong(name, value if whole is None else whole,
                             f"a whole number from {low} to {high}" if whole is None
                             else f"whole numbers from {low} to {high}")
        return number

    def _real(self, name: str, value: object) -> float:
        if isinstance(value, bool | str) or not hasattr(value, "__float__"):
            raise self.wrong(name, value, "a number")
        number = float(value)
        if not (isfinite(number) and number > 0):
            raise self.wrong(name, value, "a positive number")
        return number

    def _numbers(self, name: str, count: int, value: object) -> tuple[int, ...]:
        """One number for all sides, or one for each."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            value = value.tolist() if hasattr(value, "tolist") else value
        parts = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else (
            [value] * count)
        if len(parts) != count:
            each = "rows and columns" if count == 2 else SIDES
            raise self.wrong(name, value, f"one number or {count}: {each}")
        return tuple(self._integer(name, part, None if parts == [value] * count else value)
                     for part in parts)

    def _entries(self, name: str, value: object) -> tuple[int, ...]:
        """A table: as many numbers as there are results, or none."""
        value = value.tolist() if hasattr(value, "tolist") else value
        if value == "":
            return ()               # as a command line has it
        if not isinstance(value, Sequence) or isinstance(value, str) or (
                len(value) not in (0, TABLE_ENTRIES)):
            low, high = self._range(name)
            raise self.wrong(name, value, f"{TABLE_ENTRIES} whole numbers from {low} to {high}, "
                                          f"or none")
        return tuple(self._integer(name, each, value) for each in value)

    def _member(self, name: str, kind: type[Enum], value: object) -> Enum:
        names = {str(key).lower(): member for member in kind
                 for key in (member.name, *([member.value] if isinstance(member.value, str)
                                            else []))}
        if isinstance(value, kind):
            return value
        if isinstance(value, str) and value.lower() in names:
            return names[value.lower()]
        raise self.wrong(name, value, f"one of {', '.join(each.name.lower() for each in kind)}")

    def _range(self, name: str) -> tuple[int, int]:
        metadata = self.__dataclass_fields__[name].metadata
        return metadata["low"], metadata["high"]

    def check_bounds(self, low: str, high: str) -> None:
        """Refuse a field that is above the one that bounds it."""
        least, largest = getattr(self, low), getattr(self, high)
        if least > largest:
            raise self.wrong(low, least, f"at most {high}, which is {largest}")

    def wrong(self, name: str, value: object, right: str) -> CompileError:
        """The error for a field with a wrong value."""
        return CompileError(f"{self.operator}: {name} is {quote(value)}, but must be {right}")


def kinds_of(description: type[Description]) -> dict[str, object]:
    """The types of a description's fields, by name and in order; looked up once."""
    if description not in KINDS:
        hints = get_type_hints(description)
        KINDS[description] = {each.name: hints[each.name] for each in fields(description)}
    return KINDS[description]


@dataclass(frozen=True, kw_only=True)
class Epilogue(Description):
    """The part of a description that says how sums of 32 bits become results of 8, or that they
    stay as wide as they are."""

    zero_point_out: int = activation("zero point of the result")
    low: int = activation("least result, as for ReLU", LOW)
    high: int = activation("largest result, as for ReLU6", HIGH)
    rounding: Rounding = setting("how results are rounded: twice, even or away",
                                 Rounding.TWICE)
    wide: bool = setting("results keep 32 bits: scaled, but neither clamped nor narrowed", False)
    lookup: tuple[int, ...] = setting(
        "a table that has another number for each result, that of -128 first; none if empty", (),
        low=LOW, high=HIGH)

    def check(self) -> None:
        self.check_bounds("low", "high")
        if self.lookup and (self.wide or self.operator not in TABLE_OPERATORS):
            raise self.wrong("lookup", self.lookup, (
                "empty if results are wide" if self.wide else
                f"empty: only {', '.join(TABLE_OPERATORS)} look results up"))
        if not self.wide:
            return
        if self.operator not in WIDE_OPERATORS:
            raise self.wrong("wide", True, f"False: only {', '.join(WIDE_OPERATORS)} have results "
                                           f"of 32 bits")
        for name, plain in (("zero_point_out", 0), ("low", LOW), ("high", HIGH)):
            if getattr(self, name) != plain:
                raise self.wrong(name, getattr(self, name), f"{plain} if results are wide")

    def requantization(self) -> Requantization:
        """The last step of the operator, as a function of a sum and a channel's parameters."""
        if self.wide:
            return scale_function(self.rounding)
        return requantize_function(rounding=self.rounding, zero_point=self.zero_point_out,
                                   low=self.low, high=self.high, lookup=self.lookup)
