"""Instruction streams as NumPy arrays: encode and decode in bulk.

A stream is an array of `WORD`, 32 bytes an element. All instructions have that size, so
`stream.view(Gemm.dtype())` reads any element as a gemm without copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import IsaError
from .instructions import INSTRUCTION_BYTES, ISA, Instruction, MicroOp, Opcode
from .record import fields_of, reserved_bytes

# Every byte belongs to a field, for NumPy copies fields only: an array with gaps loses them.
WORD = np.dtype([("opcode", "u1"), ("wait", "u1"), ("post", "u1"),
                 ("body", "u1", (INSTRUCTION_BYTES - 3,))])
Stream = npt.NDArray[np.void]
BY_OPCODE = {int(instruction.opcode): instruction for instruction in ISA}
RESERVED = {kind: np.array(reserved_bytes(kind), np.intp) for kind in ISA}
KNOWN = np.isin(np.arange(256), [int(each) for each in Opcode])     # by opcode


def encode(instructions: Iterable[Instruction]) -> Stream:
    """The stream that holds these instructions, in order."""
    instructions = list(instructions)
    stream = np.zeros(len(instructions), WORD)
    groups: dict[type[Instruction], list[int]] = {}
    for position, instruction in enumerate(instructions):
        groups.setdefault(type(instruction), []).append(position)
    for kind, positions in groups.items():
        words = np.zeros(len(positions), kind.dtype())
        words["opcode"] = kind.opcode
        for field in fields_of(kind):
            words[field.name] = [getattr(instructions[each], field.name) for each in positions]
        stream.view(kind.dtype())[positions] = words
    return stream


def join(streams: Iterable[Stream]) -> Stream:
    """Streams one after the other. NumPy would look at all fields of each."""
    return np.frombuffer(bytearray().join([each.tobytes() for each in streams]), WORD)


def decode(stream: Stream) -> list[Instruction]:
    """The instructions of a stream. Raises at the first word that is not one."""
    check(stream)
    decoded: list[Any] = [None] * len(stream)
    for kind in ISA:
        positions, words = positions_of(stream, kind)
        for position, record in zip(positions.tolist(), kind.of_all(words), strict=True):
            decoded[position] = record
    return decoded


def instruction_at(stream: Stream, position: int) -> Instruction:
    """One instruction of a stream whose opcodes and reserved bytes are good."""
    kind = BY_OPCODE[stream["opcode"][position]]
    return kind.of(stream.view(kind.dtype())[position])


def check(stream: Stream) -> None:
    """Refuse a stream that holds a word which is not an instruction."""
    check_words(stream)
    broken: list[int] = []
    for kind in kinds_in(stream):
        positions, words = positions_of(stream, kind)
        broken += positions[kind.find_invalid(words)].tolist()
    for position in sorted(broken):
        try:
            instruction_at(stream, position)
        except IsaError as error:
            raise IsaError(f"instruction {position}: {error}") from None


def check_words(stream: Stream) -> None:
    """Refuse unknown opcodes and reserved bytes that are not zero."""
    unknown = np.flatnonzero(~KNOWN[stream["opcode"]])
    if len(unknown):
        raise IsaError(f"instruction {unknown[0]}: opcode is {stream['opcode'][unknown[0]]}, but "
                       f"must be one of "
                       f"{', '.join(f'{each.value} ({each.name.lower()})' for each in Opcode)}")
    raw = as_bytes(stream)
    for kind in kinds_in(stream):
        reserved = RESERVED[kind]
        rows = np.flatnonzero(stream["opcode"] == kind.opcode)
        bad = np.argwhere(raw[np.ix_(rows, reserved)])
        if len(bad):
            row, column = rows[bad[0][0]], reserved[bad[0][1]]
            raise IsaError(f"instruction {row}: reserved byte {column} of {kind.mnemonic()} is "
                           f"{raw[row, column]}, but must be 0")


def kinds_in(stream: Stream) -> list[type[Instruction]]:
    """The kinds of instructions that a stream has."""
    found = np.bincount(stream["opcode"], minlength=len(KNOWN))
    return [kind for kind in ISA if found[kind.opcode]]


def positions_of(stream: Stream, kind: type[Instruction]) -> tuple[npt.NDArray[np.intp], Stream]:
    """Where a stream has instructions of one kind, and those words as that kind's records."""
    positions = np.flatnonzero(stream["opcode"] == int(kind.opcode))
    return positions, stream.view(kind.dtype())[positions]


def from_bytes(data: bytes | memoryview) -> Stream:
    """The stream in raw memory, without copying."""
    if len(data) % INSTRUCTION_BYTES:
        raise IsaError(f"a stream of {len(data)} bytes is not a multiple of {INSTRUCTION_BYTES}")
    return np.frombuffer(data, WORD)


def as_bytes(stream: Stream) -> npt.NDArray[np.uint8]:
    """The stream as rows of 32 bytes, without copying where it is contiguous."""
    return np.ascontiguousarray(stream).view(np.uint8).reshape(len(stream), INSTRUCTION_BYTES)


def encode_micro_ops(micro_ops: Sequence[MicroOp]) -> Stream:
    words = np.zeros(len(micro_ops), MicroOp.dtype())
    for field in fields_of(MicroOp):
        words[field.name] = [getattr(each, field.name) for each in micro_ops]
    return words


def decode_micro_ops(words: Stream) -> list[MicroOp]:
    return MicroOp.of_all(words)
