"""Layers of one shape: they differ in numbers that take no time, such as scales and zero points.

Blocks of a network repeat, each with scales of its own. The schedule that is best for one of them
is best for all if their programs do the same, instruction by instruction.
"""

from __future__ import annotations

from dataclasses import fields

from ....isa.instructions import AluI, Load, Requantize
from ....isa.program import Program
from ....isa.stream import Stream
from ...operators.description import Description

VALUES = ("scale", "zero_point")        # how names of fields begin that hold such numbers
UNTIMED = ((AluI, "immediate"), (Load, "pad_value"), (Requantize, "zero_point"))

Shape = tuple[object, ...]


def shape_of(spec: Description) -> Shape:
    """All of a description but for such numbers."""
    return (type(spec), *(getattr(spec, each.name) for each in fields(spec)
                          if not each.name.startswith(VALUES)))


def take_equally_long(one: Program, other: Program) -> bool:
    """Whether two programs differ in nothing that takes time."""
    return (_timed_part(one.code) == _timed_part(other.code)
            and [(each.name, each.size) for each in one.segments]
            == [(each.name, each.size) for each in other.segments]
            and _micro_ops(one) == _micro_ops(other))


def _timed_part(code: Stream) -> bytes:
    copy = code.copy()
    for kind, name in UNTIMED:
        copy.view(kind.dtype())[name][copy["opcode"] == kind.opcode] = 0
    return copy.tobytes()


def _micro_ops(program: Program) -> list[bytes | None]:
    return [None if each.data is None else each.data.tobytes() for each in program.segments]
