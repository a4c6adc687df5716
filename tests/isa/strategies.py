"""Hypothesis strategies for everything `isa` declares, derived from the declarations."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from microtron.base.errors import IsaError
from microtron.isa.config import Config
from microtron.isa.instructions import ISA, SEGMENTS, Buffer, Instruction, Load, MicroOp
from microtron.isa.program import TENSOR_TYPES, Access, Program, Segment, Tensor
from microtron.isa.record import Field, Record, fields_of
from microtron.isa.stream import encode

INT32 = st.one_of(
    st.sampled_from([0, 1, -1, 2, 127, 128, -128, -129, (1 << 31) - 1, -(1 << 31), 1 << 30]),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.builds(lambda power, near, sign: max(-(1 << 31), min((1 << 31) - 1,
                                                            sign * (1 << power) + near)),
              st.integers(0, 31), st.integers(-2, 2), st.sampled_from([1, -1])))


def _accepted(kind: type[Record], values: dict[str, Any]) -> bool:
    try:
        kind(**values)
    except IsaError:
        return False
    return True


def elements(kind: type[Record], field: Field) -> st.SearchStrategy[int]:
    """Values of one element of a field, leaning on corners."""
    low, high = field.scalar.low, field.scalar.high
    if field.scalar.bits == 8 and not field.axes:
        # Few enough to ask which ones a record takes when all its other fields have defaults.
        taken = [value for value in range(low, high + 1) if _accepted(kind, {field.name: value})]
        return st.sampled_from(sorted({taken[0], taken[-1]})) | st.sampled_from(taken)
    corners = [value for value in (low, low + 1, -1, 0, 1, 2, high - 1, high) if value >= low]
    return st.sampled_from(corners) | st.integers(low, high)


@cache
def values_of(kind: type[Record]) -> st.SearchStrategy[dict[str, Any]]:
    """A value for each field, in range by itself."""
    return st.fixed_dictionaries({
        field.name: st.tuples(*[elements(kind, field)] * field.count) if field.axes
        else elements(kind, field) for field in fields_of(kind)})


def agreeing(kind: type[Record], values: dict[str, Any]) -> Any:
    """The record with these values, where one that breaks a rule gives way to the default.

    So nothing is thrown away, and no rule between fields is written here a second time.
    """
    if _accepted(kind, values):
        return kind(**values)
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if _accepted(kind, kept | {name: value}):
            kept[name] = value
    return kind(**kept)


@cache
def records(kind: type[Record]) -> st.SearchStrategy[Any]:
    """Records of one kind over all their fields."""
    return values_of(kind).map(lambda values: agreeing(kind, values))


@cache
def instructions(kinds: tuple[type[Instruction], ...] = ISA) -> st.SearchStrategy[Instruction]:
    return st.one_of(*(records(kind) for kind in kinds))


def micro_ops() -> st.SearchStrategy[MicroOp]:
    return records(MicroOp)


@cache
def powers(low: int, high: int) -> st.SearchStrategy[int]:
    """Powers of two from `low` to `high`, both of which are."""
    return st.integers(low.bit_length() - 1, high.bit_length() - 1).map(lambda power: 1 << power)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Valid configurations of all shapes: batches, uneven blocks, 4-bit weights."""
    batch = draw(powers(1, 16))
    block_out = draw(powers(1, min(64, 1024 // batch)))         # an acc tile has a page at most
    wgt_bits = draw(st.sampled_from([4, 8]))
    block_in = draw(powers(2 if wgt_bits == 4 and block_out == 1 else 1, 64))
    tile_bytes = {"uop": MicroOp.size, "inp": batch * block_in, "acc": batch * block_out * 4,
                  "wgt": block_out * block_in * wgt_bits // 8, "out": batch * block_out}
    acc_banks = draw(st.sampled_from([1, 2, 4, 8]))
    sizes = {f"{name}_bytes": tile * draw(powers(2 * acc_banks if name == "acc" else 2, 1 << 16))
             for name, tile in tile_bytes.items()}
    tables = st.sampled_from([0, 8]) if sizes["acc_bytes"] >= 256 else st.just(0)
    return Config(batch=batch, block_in=block_in, block_out=block_out, wgt_bits=wgt_bits,
                  acc_banks=acc_banks, **sizes,
                  bus_bits=draw(st.sampled_from([64, 128, 256])),
                  address_bits=draw(st.integers(24, 64)),
                  queue_depth=draw(st.integers(2, 1024)), token_bits=draw(st.integers(2, 16)),
                  vector_cycles=draw(powers(1, min(16, batch * block_out))),
                  cycles_only=draw(st.integers(0, 1)), tables=draw(tables),
                  window_taps=draw(st.sampled_from([1, 3])) if min(block_in, block_out) >= 4 else 1)


IDENTIFIERS = st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True).filter(str.isidentifier)
VISIBLE = st.characters(exclude_categories=["Cc", "Cs"])     # no control, no lone surrogate
NAMES, TEXTS = st.text(VISIBLE, min_size=1, max_size=12), st.text(VISIBLE, max_size=12)


CONTENTS = st.lists(max_size=6, elements=st.binary(max_size=40) | st.builds(
    lambda byte, count: bytes([byte]) * count, st.sampled_from([0, 0, 1, 255]),
    st.integers(1, 300))).map(b"".join)     # with runs in them, as weights and tables have


@st.composite
def segments(draw: st.DrawFn, name: str) -> Segment:
    size = draw(st.sampled_from([1, 7, 64, 4096, (1 << 32) - 1]) | st.integers(1, 2000))
    data = draw(st.none() | CONTENTS)
    return Segment(name, size, draw(st.sampled_from(Access)),
                   None if data is None else np.frombuffer(data[:size], np.uint8))


@st.composite
def tensors(draw: st.DrawFn, name: str, segment: Segment) -> Tensor:
    dtype = draw(st.sampled_from(TENSOR_TYPES))
    shape = draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    size = Tensor(name, segment.name, 0, shape, dtype).size
    if size > segment.size:
        shape, size = (0,), 0
    return Tensor(name, segment.name, draw(st.integers(0, segment.size - size)), shape, dtype)


@st.composite
def micro_op_loads(draw: st.DrawFn, segment: int) -> Load:
    """Loads that read micro-ops near the start of a segment, most of them aligned."""
    offset = draw(st.integers(0, 40)) * draw(st.sampled_from([8, 8, 8, 1]))
    return dataclasses.replace(
        draw(records(Load)), buffer=Buffer.UOP, pad=(0, 0, 0, 0), segment=segment, offset=offset,
        shape=(draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(st.integers(0, 5))),
        stride=(draw(st.sampled_from([0, 64, -16])), draw(st.sampled_from([0, 16, 40, 7]))))


@st.composite
def programs(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> Program:
    """Whole programs, well formed but not meant to run. `names` are of all but segments."""
    segment_names = draw(st.lists(IDENTIFIERS, max_size=SEGMENTS, unique=True))
    parts = tuple(draw(segments(name)) for name in segment_names)
    code = draw(st.lists(instructions(), max_size=6))
    if parts:
        code += draw(st.lists(micro_op_loads(0), max_size=3))
    tensor_names = draw(st.lists(names, max_size=3, unique=True)) if parts else []
    return Program(
        config=draw(configs()), code=encode(code), segments=parts,
        tensors=tuple(draw(tensors(name, draw(st.sampled_from(parts)))) for name in tensor_names),
        labels=draw(st.dictionaries(names, st.integers(0, len(code)), max_size=4)),
        provenance=draw(st.dictionaries(names, TEXTS, max_size=3)))


def same(left: Program, right: Program) -> bool:
    """Whether two programs are equal in everything; arrays make `==` useless for that."""
    def key(program: Program) -> tuple[Any, ...]:
        data = [(each.name, each.size, each.access,
                 None if each.data is None else each.data.tobytes()) for each in program.segments]
        return (program.config, program.code.tobytes(), data, program.tensors,
                dict(program.labels), dict(program.provenance))
    return key(left) == key(right)
