"""Instructions as bytes: one by one and in bulk, there and back, and what is refused."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import IsaError
from microtron.isa.instructions import (
    INSTRUCTION_BYTES,
    ISA,
    Alu,
    AluI,
    AluOp,
    Buffer,
    Engines,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Opcode,
    Requantize,
    RequantizeFlags,
    Rounding,
    Store,
    Sync,
    SyncAction,
    Table,
    lookup_flags,
)
from microtron.isa.record import fields_of, reserved_bytes
from microtron.isa.stream import (
    as_bytes,
    check,
    decode,
    decode_micro_ops,
    encode,
    encode_micro_ops,
    from_bytes,
    positions_of,
)

from .strategies import instructions, micro_ops, records

KINDS = pytest.mark.parametrize("kind", ISA, ids=lambda kind: kind.mnemonic())


def refuses(message):
    return pytest.raises(IsaError, match=f"^{re.escape(message)}$")


# The bytes of version 1, spelt out once: images written today must read the same tomorrow.
@pytest.mark.parametrize(("instruction", "text"), [
    (Load(wait=Engines.GEMM, post=Engines.STORE, buffer=Buffer.ACC8, segment=7, pad_value=-128,
          sram=0x0102, offset=0x03040506, shape=(0x11, 0x12, 0x13), sram_pitch=0x14,
          stride=(-1, 0x15), pad=(1, 2, 3, 4)),
     "01020804 07800201 06050403 11001200 13001400 ffffffff 15000000 01020304"),
    (Gemm(wait=Engines.ALU, flags=GemmFlags.START | GemmFlags.FIRST_OUTER, uop=1, count=2,
          loops=(3, 4, 5), dst_stride=(6, 7, 8), src_stride=(-1, -2, 9), wgt_stride=(10, 11, 12)),
     "02040082 01000200 03000400 05000600 07000800 fffffeff 09000a00 0b000c00"),
    (Alu(op=AluOp.SHL, dst=1, lhs=2, rhs=3, loops=(4, 5, 6), dst_stride=(7, 8, 9),
         rhs_stride=(10, 11, 12), target=Buffer.OUT),
     "03000006 01000200 03000400 05000600 07000800 09000a00 0b000c00 05000000"),
    (AluI(op=AluOp.MIN, dst=1, src=2, loops=(4, 5, 6), dst_stride=(7, 8, 9),
          src_stride=(10, 11, 12), immediate=-2),
     "04000003 01000200 04000500 06000700 08000900 0a000b00 0c000300 feffffff"),
    (Requantize(flags=RequantizeFlags.ACC | RequantizeFlags.AWAY, dst=1, src=2, params=3,
                loops=(4, 5, 6), dst_stride=(7, 8, 9), src_stride=(10, 11, 12), params_stride=3,
                zero_point=-1, low=-2, high=2),
     "05000009 01000200 03000400 05000600 07000800 09000a00 0b000c00 03fffe02"),
    (Requantize(flags=RequantizeFlags.EVEN | lookup_flags(5)),
     "050000b4 00000000 00000100 01000100 00000000 00000000 00000000 0000807f"),
    (Table(wait=Engines.LOAD, table=5, src=0x1234),
     "09010005 34120000 00000000 00000000 00000000 00000000 00000000 00000000"),
    (Store(post=Engines.LOAD, buffer=Buffer.ACC, segment=2, sram=3, offset=4, shape=(5, 6, 7),
           stride=(8, -8), sram_pitch=(9, 10)),
     "06000103 02000300 04000000 05000600 07000000 08000000 f8ffffff 09000a00"),
    (Sync(action=SyncAction.END), "07000001" + " 00000000" * 7),
], ids=lambda each: each.mnemonic() if not isinstance(each, str) else "")
def test_the_bytes_of_each_instruction_are_settled(instruction, text):
    assert instruction.encode() == bytes.fromhex(text)


def test_the_bytes_of_a_micro_op_are_settled():
    micro_op = MicroOp(dst=0x0102, src=0x0304, wgt=0x0506, bias=0x0708)
    assert micro_op.encode() == bytes.fromhex("02010403 06050807")


@KINDS
def test_fields_are_aligned_and_apart_and_fill_the_word_with_the_reserved_bytes(kind):
    used = list(range(kind.lead)) + list(reserved_bytes(kind))
    for field in fields_of(kind):
        assert field.offset % field.scalar.bytes == 0
        used += range(field.offset, field.offset + field.bytes)
    assert sorted(used) == list(range(INSTRUCTION_BYTES))
    assert kind.dtype().itemsize == INSTRUCTION_BYTES


def test_every_instruction_has_its_own_opcode_and_none_is_zero():
    assert sorted(kind.opcode for kind in ISA) == sorted(Opcode)
    assert 0 not in list(Opcode)


@given(instructions())
def test_an_instruction_comes_back_from_its_bytes(instruction):
    data = instruction.encode()
    assert len(data) == INSTRUCTION_BYTES
    assert decode(from_bytes(data)) == [instruction]


@given(st.lists(instructions(), max_size=20))
def test_in_bulk_is_the_same_as_one_by_one(code):
    stream = encode(code)
    assert stream.tobytes() == b"".join(each.encode() for each in code)
    decoded = decode(stream)
    assert decoded == code
    for left, right in zip(decoded, code, strict=True):     # the same types too: names print
        assert repr(left) == repr(right)


@given(st.lists(instructions(), min_size=1, max_size=10))
def test_a_stream_is_an_array_of_records_without_copying(code):
    stream = encode(code)
    for kind in ISA:
        positions, words = positions_of(stream, kind)
        assert [type(code[each]) for each in positions] == [kind] * len(positions)
        for position, word in zip(positions, words, strict=True):
            for field in fields_of(kind):
                value = getattr(code[position], field.name)
                assert np.array_equal(word[field.name], value)
                raw = as_bytes(stream)[position, field.offset:field.offset + field.bytes]
                assert np.array_equal(raw.view(field.scalar.numpy).reshape(np.shape(value)), value)
    assert np.shares_memory(stream, as_bytes(stream))


@given(st.lists(micro_ops(), max_size=20))
def test_micro_ops_come_back_from_their_bytes(sequence):
    words = encode_micro_ops(sequence)
    assert words.tobytes() == b"".join(each.encode() for each in sequence)
    assert decode_micro_ops(words) == sequence


@KINDS
def test_a_reserved_byte_must_be_zero(kind):
    for byte in reserved_bytes(kind):
        stream = encode([Sync(action=SyncAction.BARRIER), kind()])
        as_bytes(stream)[1, byte] = 5
        with refuses(f"instruction 1: reserved byte {byte} of {kind.mnemonic()} is 5, "
                     f"but must be 0"):
            decode(stream)


def test_an_opcode_without_an_instruction_is_refused():
    for opcode in set(range(256)) - set(Opcode):
        stream = encode([Sync(action=SyncAction.BARRIER), Sync()])
        stream["opcode"][1] = opcode
        with refuses(f"instruction 1: opcode is {opcode}, but must be one of 1 (load), 2 (gemm), "
                     f"3 (alu), 4 (alui), 5 (requantize), 6 (store), 7 (sync), 8 (window), "
                     f"9 (table)"):
            decode(stream)


@given(st.sampled_from(ISA), st.lists(st.binary(min_size=31, max_size=31), min_size=1, max_size=8))
def test_any_word_is_refused_in_bulk_exactly_if_it_is_refused_alone(kind, bodies):
    """Random bytes in the fields; zeros in the reserved bytes, which have their own test."""
    stream = from_bytes(b"".join(bytes([kind.opcode]) + body for body in bodies)).copy()
    as_bytes(stream)[:, list(reserved_bytes(kind))] = 0
    alone = []
    for position, word in enumerate(positions_of(stream, kind)[1]):
        try:
            kind.of(word)
        except IsaError as error:
            alone.append(f"instruction {position}: {error}")
    if alone:
        with refuses(alone[0]):
            check(stream)
    else:
        assert [each.encode() for each in decode(stream)] == [
            word.tobytes() for word in as_bytes(stream)]


@given(st.sampled_from(ISA).flatmap(records), st.data())
def test_a_single_field_changed_in_place_is_the_changed_instruction(instruction, data):
    """Writing a field of the NumPy record is the same as replacing it in the instruction."""
    field = data.draw(st.sampled_from(fields_of(type(instruction))))
    value = data.draw(records(type(instruction)).map(lambda each: getattr(each, field.name)))
    try:
        changed = dataclasses.replace(instruction, **{field.name: value})
    except IsaError:
        return
    stream = encode([instruction])
    stream.view(type(instruction).dtype())[field.name] = value
    assert decode(stream) == [changed]


def test_a_stream_is_whole_instructions():
    with refuses("a stream of 33 bytes is not a multiple of 32"):
        from_bytes(bytes(33))
    assert decode(from_bytes(b"")) == []


@pytest.mark.parametrize(("build", "message"), [
    (lambda: Load(sram=65536), "load: sram is 65536, which does not fit in 16 bits (0 to 65535)"),
    (lambda: Load(sram=-1), "load: sram is -1, which does not fit in 16 bits (0 to 65535)"),
    (lambda: Load(pad_value=128),
     "load: pad_value is 128, which does not fit in 8 bits (-128 to 127)"),
    (lambda: Load(offset=1 << 32),
     "load: offset is 4294967296, which does not fit in 32 bits (0 to 4294967295)"),
    (lambda: Load(shape=(1, 65536, 1)),
     "load: shape[y] is 65536, which does not fit in 16 bits (0 to 65535)"),
    (lambda: Load(shape=(1, 2)), "load: shape is (1, 2), but needs 3 numbers: z, y, x"),
    (lambda: Load(shape=3), "load: shape is 3, but needs 3 numbers: z, y, x"),
    (lambda: Load(sram=1.0), "load: sram is 1.0, but must be an integer"),
    (lambda: Load(sram=True), "load: sram is True, but must be an integer"),
    (lambda: Load(sram="1"), "load: sram is '1', but must be an integer"),
    (lambda: Load(segment=8), "load: segment is 8, but there are 8 (0 to 7)"),
    (lambda: Store(segment=255), "store: segment is 255, but there are 8 (0 to 7)"),
    (lambda: Load(buffer=Buffer.OUT),
     "load: buffer is 5, but must be one of uop (0), inp (1), wgt (2), acc (3), acc8 (4)"),
    (lambda: Store(buffer=Buffer.INP), "store: buffer is 1, but must be one of out (5), acc (3)"),
    (lambda: Alu(target=Buffer.WGT), "alu: target is 2, but must be one of acc (3), out (5)"),
    (lambda: Load(buffer=Buffer.UOP, pad=(0, 0, 0, 1)),
     "load: pad is (0, 0, 0, 1), but micro-ops cannot be padded"),
    (lambda: Requantize(flags=64),
     "requantize: flags has a table, which means nothing without LOOKUP"),
    (lambda: Gemm(flags=GemmFlags.FIRST_UOP),
     "gemm: flags has FIRST_UOP, which means nothing without START"),
    (lambda: Gemm(wait=Engines.GEMM), "gemm: wait and post must not name gemm, its own engine, "
                                      "which runs in order already"),
    (lambda: Requantize(post=Engines.ALU), "requantize: wait and post must not name alu, its own "
                                           "engine, which runs in order already"),
    (lambda: Sync(wait=Engines.LOAD),
     "sync: wait and post must be empty, for FETCH has no tokens"),
    (lambda: Requantize(flags=RequantizeFlags.WIDE),
     "requantize: flags has WIDE without ACC, but out holds 8 bits only"),
    (lambda: Requantize(flags=RequantizeFlags.EVEN | RequantizeFlags.AWAY),
     "requantize: flags has both EVEN and AWAY, but rounds one way only"),
    (lambda: Requantize(low=1, high=0), "requantize: low is 1, above high, which is 0"),
    (lambda: Requantize(flags=RequantizeFlags.ACC | RequantizeFlags.LOOKUP),
     "requantize: flags has LOOKUP and ACC, but only results for out are looked up"),
    (lambda: Table(table=8), "table: table is 8, but there are 8 (0 to 7)"),
    (lambda: MicroOp(wgt=65536),
     "microop: wgt is 65536, which does not fit in 16 bits (0 to 65535)"),
])
def test_a_value_that_cannot_be_is_refused_with_the_reason(build, message):
    with refuses(message):
        build()


def test_numbers_of_numpy_become_plain_ones():
    load = Load(sram=np.uint16(7), shape=[np.int64(1), 2, 3], buffer=np.int8(2))
    assert load == Load(sram=7, shape=(1, 2, 3), buffer=Buffer.WGT)
    assert type(load.sram) is int


@pytest.mark.parametrize(("flags", "rounding"), [
    (RequantizeFlags(0), Rounding.TWICE), (RequantizeFlags.EVEN, Rounding.EVEN),
    (RequantizeFlags.AWAY, Rounding.AWAY),
    (RequantizeFlags.ACC | RequantizeFlags.WIDE | RequantizeFlags.EVEN, Rounding.EVEN)])
def test_the_rounding_is_in_the_flags(flags, rounding):
    assert Requantize(flags=flags).rounding is rounding
