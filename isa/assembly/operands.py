"""One record as text and back: the mnemonic, its suffixes, and `name=value` for each field.

    load.inp wait=gemm segment=data offset=0x40 shape=1,4,16 post=gemm

Only what differs from the default is written, and the segment where it has a name. `wait` stands
first and `post` last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple, TypeVar

from ...base.checked_values import quote, show_name
from ...base.classes.dataclass import dataclass
from ...base.errors import AssemblyError
from ...base.near_misses import hint, near
from ..program import Segment
from ..record import Field, Record, fields_of, u32
from .lexer import assignments, number

MICRO_OP = "uop"            # the mnemonic of a micro-op
EMPTY_SET = "none"          # an IntFlag field with no flag, where that is not the default
SEGMENT = "segment"         # a field of this name holds a segment's number and shows its name

AnyRecord = TypeVar("AnyRecord", bound=Record)


class Parts(NamedTuple):
    """A record as text, cut where columns are aligned."""

    mnemonic: str
    wait: str
    fields: str
    post: str


@dataclass(frozen=True)
class Operand:
    """A field with what its text form needs, prepared once."""

    field: Field
    values: Mapping[str, int]       # by name, for a field with a kind
    names: Mapping[int, str]
    hexadecimal: bool

    def always(self, value: Any, segments: Sequence[Segment]) -> bool:
        """Whether even the default is written: where there is none, and for a segment's name."""
        return self.field.required or (self.field.name == SEGMENT and value < len(segments))

    def format(self, value: Any, segments: Sequence[Segment] = ()) -> str:
        if self.field.axes:
            return ",".join(self._format_one(each, segments) for each in value)
        return self._format_one(value, segments)

    def _format_one(self, value: int, segments: Sequence[Segment]) -> str:
        kind, name = self.field.kind, self.field.name
        if self.field.is_flags:
            return "|".join(each for bit, each in self.names.items() if value & bit) or EMPTY_SET
        if kind is not None:
            return self.names[value]
        if name == SEGMENT and value < len(segments):
            return segments[int(value)].name
        return f"{value:#x}" if self.hexadecimal else str(value)

    def parse(self, text: str, segments: Sequence[Segment] = ()) -> int | tuple[int, ...]:
        if not self.field.axes:
            return self._parse_one(text, segments)
        elements = text.split(",")
        if len(elements) != self.field.count:
            raise AssemblyError(f"{self.field.name} is {quote(text)}, but needs "
                                f"{self.field.count} numbers: {','.join(self.field.axes)}")
        return tuple(self._parse_one(each, segments) for each in elements)

    def _parse_one(self, text: str, segments: Sequence[Segment]) -> int:
        kind, name = self.field.kind, self.field.name
        if self.field.is_flags:
            return 0 if text == EMPTY_SET else self._parse_flags(text)
        if kind is not None:
            return self._parse_name(text)
        if name == SEGMENT and text[:1].isidentifier():
            return _segment_number(text, segments)
        return self._in_range(text)

    def _in_range(self, text: str) -> int:
        name, scalar = self.field.name, self.field.scalar
        value = number(text, name)
        if not scalar.low <= value <= scalar.high:
            raise AssemblyError(f"{name} is {text}, which does not fit in {scalar.bits} bits "
                                f"({scalar.low} to {scalar.high})")
        return value

    def _parse_flags(self, text: str) -> int:
        value = 0
        for each in text.split("|"):
            bit = self._parse_name(each)
            if value & bit:
                raise AssemblyError(f"{self.field.name} names {show_name(each)} twice")
            value |= bit
        return value

    def _parse_name(self, text: str) -> int:
        if text not in self.values:
            raise AssemblyError(f"{self.field.name} is {quote(text)}, but must be one of "
                                f"{', '.join(self.values)}{near(text, self.values)}")
        return self.values[text]


def _segment_number(name: str, segments: Sequence[Segment]) -> int:
    names = [segment.name for segment in segments]
    if name not in names:
        raise AssemblyError(f"segment {quote(name)} is not declared above{hint(name, names)}")
    return names.index(name)


_operands: dict[type[Record], dict[str, Operand]] = {}      # both are derived once per class
_defaults: dict[type[Record], dict[str, object]] = {}


def operands(kind: type[Record]) -> Mapping[str, Operand]:
    """The fields of a record by name, in declared order."""
    if kind not in _operands:
        _operands[kind] = {field.name: _operand(field) for field in fields_of(kind)}
    return _operands[kind]


def _operand(field: Field) -> Operand:
    members: tuple[IntEnum | IntFlag, ...] = ()
    if field.kind is not None:
        members = field.allowed or tuple(field.kind)
    values = {str(member.name).lower(): int(member) for member in members}
    # Addresses are the only 32-bit unsigned numbers; they read best in hexadecimal.
    return Operand(field, values, {value: name for name, value in values.items()},
                   hexadecimal=field.scalar is u32)


def parts_of(record: Record, segments: Sequence[Segment] = ()) -> Parts:
    """The text of a record."""
    mnemonic, texts = record.mnemonic(), {}
    for name, operand in operands(type(record)).items():
        value = getattr(record, name)
        if operand.field.suffix:
            mnemonic += "." + operand.format(value)
        elif value != operand.field.default or operand.always(value, segments):
            texts[name] = f"{name}={operand.format(value, segments)}"
    wait, post = texts.pop("wait", ""), texts.pop("post", "")
    return Parts(mnemonic, wait, " ".join(texts.values()), post)


def parse_values(kind: type[Record], words: Sequence[str],
                 segments: Sequence[Segment] = ()) -> dict[str, Any]:
    """The fields that a statement sets. Each is in range; rules between them are not checked."""
    known = operands(kind)
    mnemonic, *suffixes = words[0].split(".")
    values = _parse_suffixes(kind, suffixes)
    written = assignments(words[1:], mnemonic, known)
    for name, text in written.items():
        if known[name].field.suffix:
            raise AssemblyError(f"{mnemonic}: {name} is written behind the mnemonic: "
                                f"{mnemonic}.{show_name(text)}")
        try:
            values[name] = known[name].parse(text, segments)
        except AssemblyError as error:
            raise AssemblyError(f"{mnemonic}: {error}") from None
    for name, operand in known.items():
        if operand.field.required and name not in values:
            raise AssemblyError(f"{mnemonic}: {name} is missing; it has no default")
    return values


def _parse_suffixes(kind: type[Record], suffixes: Sequence[str]) -> dict[str, object]:
    behind = [operand for operand in operands(kind).values() if operand.field.suffix]
    mnemonic = kind.mnemonic()
    if len(suffixes) > len(behind):
        raise AssemblyError(f"{mnemonic} takes {len(behind) or 'no'} suffix, but "
                            f"{quote('.'.join(suffixes))} follows it")
    try:
        return {operand.field.name: operand.parse(text)
                for operand, text in zip(behind, suffixes, strict=False)}
    except AssemblyError as error:
        raise AssemblyError(f"{mnemonic}: {error}") from None


def build_unchecked(kind: type[AnyRecord], values: Mapping[str, object]) -> AnyRecord:
    """A record from `parse_values`. Whoever makes many checks the rules on all at once."""
    if kind not in _defaults:
        _defaults[kind] = {field.name: field.default for field in fields_of(kind)}
    record = object.__new__(kind)
    record.__dict__.update(_defaults[kind])
    record.__dict__.update(values)
    return record
