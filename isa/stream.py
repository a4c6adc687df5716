"""Instruction streams as NumPy arrays: encode and decode in bulk.

A stream is an array of `WORD`, 32 bytes an element. All instructions have that size, so
`stream.view(Gemm.dtype())` reads any element as a gemm without copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .errors import IsaError
from .instructions import INSTRUCTION_BYTES, ISA, Instruction, MicroOp, Opcode
from .record import fields_of, reserved_bytes

WORD = np.dtype({"names": ["opcode", "wait", "post"], "formats": ["u1", "u1", "u1"],
                 "offsets": [0, 1, 2], "itemsize": INSTRUCTION_BYTES})
Stream = npt.NDArray[np.void]
BY_OPCODE = {instruction.opcode: instruction for instruction in ISA}


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


def decode(stream: Stream) -> list[Instruction]:
    """The instructions of a stream. Raises at the first word that is not one."""
    kinds = kinds_of(stream)
    decoded: list[Instruction] = []
    views = {kind: stream.view(kind.dtype()) for kind in ISA}
    for position, kind in enumerate(kinds):
        try:
            decoded.append(kind.of(views[kind][position]))
        except IsaError as error:
            raise IsaError(f"instruction {position}: {error}") from None
    return decoded


def kinds_of(stream: Stream) -> list[type[Instruction]]:
    """What each word is. Raises for an unknown opcode or a reserved byte that is not zero."""
    kinds = []
    for position, opcode in enumerate(stream["opcode"].tolist()):
        if opcode not in BY_OPCODE:
            raise IsaError(f"instruction {position}: opcode is {opcode}, but must be one of "
                           f"{', '.join(f'{each.value} ({each.name.lower()})' for each in Opcode)}")
        kinds.append(BY_OPCODE[opcode])
    raw = as_bytes(stream)
    for kind in ISA:
        reserved = list(reserved_bytes(kind))
        rows = np.flatnonzero(stream["opcode"] == kind.opcode)
        bad = np.argwhere(raw[rows][:, reserved]) if reserved else np.empty((0, 2), int)
        if len(bad):
            row, column = bad[0]
            raise IsaError(f"instruction {rows[row]}: reserved byte {reserved[column]} of "
                           f"{kind.mnemonic()} is {raw[rows[row], reserved[column]]}, "
                           f"but must be 0")
    return kinds


def positions_of(stream: Stream, kind: type[Instruction]) -> tuple[npt.NDArray[np.intp], Stream]:
    """Where a stream has instructions of one kind, and those words as that kind's records."""
    positions = np.flatnonzero(stream["opcode"] == kind.opcode)
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
    return [MicroOp.of(word) for word in words]
