"""Words that compiled code fills in: a record is made, and checked, once for each kind."""

from __future__ import annotations

from functools import lru_cache

from .....isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    Load,
    Store,
)
from ...selection.hardware_loops import REMEMBERED
from ...selection.instruction_rules import (
    ElementWise,
    Fill,
    Immediate,
    OwnRule,
    Products,
    Scaling,
)
from ...selection.instructions import MICRO_OPS
from ...selection.intrinsic import Intrinsic
from . import nest_arrays as tables


class UnsupportedError(Exception):
    """What only `emit.Emitter` can emit, or refuses to and says why."""


@lru_cache(REMEMBERED)
def load_word(buffer: Buffer, segment: int, pad_value: int) -> bytes:
    """A load that starts at the beginning of scratchpad and segment."""
    return Load(buffer=buffer, segment=segment, pad_value=pad_value).encode()


@lru_cache(REMEMBERED)
def store_word(buffer: Buffer, segment: int) -> bytes:
    return Store(buffer=buffer, segment=segment).encode()


@lru_cache(REMEMBERED)
def fill_word(value: int, target: Buffer = Buffer.ACC) -> bytes:
    return AluI(op=AluOp.MOVE, immediate=value, target=target).encode()


UOP_WORD = load_word(Buffer.UOP, MICRO_OPS, 0)


@lru_cache(REMEMBERED)
def word_of(intrinsic: Intrinsic) -> tuple[int, bytes]:
    """How compiled code writes what an intrinsic's rule says, and the word that it begins with.
    There is none if it cannot: the rule is asked then."""
    match intrinsic.rule:
        case Products(mode):
            return tables.PRODUCT, Gemm(flags=mode).encode()
        case Scaling(pattern):
            return tables.REQUANTIZATION, pattern.encode()
        case ElementWise(op):
            return tables.PAIRS, Alu(op=op).encode()
        case Immediate(op, value):
            return tables.IMMEDIATE, AluI(op=op, immediate=value).encode()
        case Fill(value):
            return tables.FILL, fill_word(value, Buffer.OUT)
    return tables.BY_PLAN, b""


def is_known(intrinsic: Intrinsic) -> bool:
    """Whether its rule is the accelerator's."""
    return isinstance(intrinsic.rule, OwnRule)
