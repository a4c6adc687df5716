"""What the declarations say about themselves: their enums, constants, and the comments beside them.

Python forgets comments, so they are read from the source, where a person wrote them once. Without
the source there are no comments, and everything else is the same.
"""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from types import ModuleType
from typing import NamedTuple

from . import instructions as module
from .instructions import Instruction, MicroOp, Opcode
from .record import Record, fields_of

Names = type[IntEnum | IntFlag]

ASSIGNMENT = re.compile(r"\s*(\w+)\s*(?::[^=]*)?=")


class Constant(NamedTuple):
    """A number that has a name, and what the source says about it."""

    name: str
    value: int
    doc: str


def enums_of(instructions: Sequence[type[Instruction]]) -> list[Names]:
    """Every enum of the instruction set, in declared order; opcodes stand with instructions."""
    kinds: list[Names] = [
        each for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, IntEnum | IntFlag)
        and each.__module__ == module.__name__ and each is not Opcode]
    records: list[type[Record]] = [MicroOp, *instructions]
    kinds += [field.kind for record in records for field in fields_of(record)
              if field.kind is not None]
    return list(dict.fromkeys(kinds))


def members_of(kind: Names) -> list[Constant]:
    docs = _comments(kind)
    return [Constant(str(member.name), int(member), docs.get(str(member.name), ""))
            for member in kind]


def constants() -> list[Constant]:
    """The numbers that isa/instructions.py fixes for every configuration."""
    docs = _comments(module)
    return [Constant(name, value, docs.get(name, "")) for name, value in vars(module).items()
            if name.isupper() and type(value) is int]


def _comments(subject: type | ModuleType) -> dict[str, str]:
    """The comment behind each `NAME = value` in the source of a class or module."""
    try:
        source = inspect.getsource(subject)
    except (OSError, TypeError):
        return {}
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(inspect.cleandoc(source)).readline):
        name = ASSIGNMENT.match(token.line)
        if token.type == tokenize.COMMENT and name:
            comments[name[1]] = token.string.lstrip("#").strip()
    return comments


def doc_of(subject: type) -> str:
    return inspect.getdoc(subject) or ""
