"""Bounds: exactly what a plain walk over every access finds, and messages that name the limit."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from microtron.base.errors import ExecutionError
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import (
    Alu,
    AluI,
    AluOp,
    Buffer,
    Gemm,
    GemmFlags,
    Load,
    Requantize,
    RequantizeFlags,
    Store,
    Sync,
    SyncAction,
)
from microtron.isa.program import Access, Segment
from microtron.isa.stream import encode
from microtron.isa.verification.bounds import check, check_end, index_range, place_of

from ...sim.functional.reference import OutsideError, Reference

# Few tiles of everything, so that random numbers often end just inside or just outside.
CONFIG = Config(block_in=4, block_out=2, wgt_bits=4, uop_bytes=64, inp_bytes=32, wgt_bytes=32,
                acc_bytes=64, out_bytes=16, acc_banks=1)
SEGMENTS = (Segment("constants", 96, Access.READ), Segment("work", 90, Access.WRITE))
NO_UOPS = np.zeros((0, 4), np.uint16)

triples = st.tuples(*[st.integers(-3, 3)] * 3)
loops = st.tuples(*[st.integers(0, 3)] * 3)
index = st.integers(0, 9)
ops = st.sampled_from((AluOp.ADD, AluOp.MOVE))
targets = st.sampled_from((Buffer.ACC, Buffer.OUT))
# Multiples of every tile's bytes, and a few that are not.
places = st.sampled_from([*range(0, 96, 8)] * 4 + [1, 4, 6, 90])
steps = st.sampled_from([*range(-24, 25, 8)] * 4 + [-4, 2, 3])
gemms = st.builds(
    Gemm, flags=st.sampled_from((GemmFlags(0), GemmFlags.DEPTHWISE, GemmFlags.START
                                 | GemmFlags.BIAS, GemmFlags.START | GemmFlags.BIAS
                                 | GemmFlags.FIRST_UOP | GemmFlags.FIRST_INNER)),
    uop=index, count=st.integers(0, 3), loops=loops, dst_stride=triples, src_stride=triples,
    wgt_stride=triples)
alus = st.one_of(
    st.builds(Alu, op=ops, dst=index, lhs=index, rhs=index, loops=loops, dst_stride=triples,
              rhs_stride=triples, target=targets),
    st.builds(AluI, op=ops, dst=index, src=index, loops=loops, dst_stride=triples,
              src_stride=triples, target=targets),
    st.builds(Requantize, flags=st.sampled_from((RequantizeFlags(0), RequantizeFlags.ACC)),
              dst=index, src=index, params=index, loops=loops, dst_stride=triples,
              src_stride=triples, params_stride=st.integers(0, 3)))
loads = st.builds(
    lambda buffer, pad, **fields: Load(buffer=buffer, pad=(0,) * 4 if buffer == Buffer.UOP else pad,
                                       **fields),
    buffer=st.sampled_from(list(Buffer)[:5]), segment=st.integers(0, 2), sram=index,
    offset=places, shape=loops, stride=st.tuples(steps, steps), sram_pitch=st.integers(0, 4),
    pad=st.tuples(*[st.integers(0, 1)] * 4), pad_value=st.sampled_from((-9, -8, 0, 7, 8)))
stores = st.builds(Store, buffer=st.sampled_from((Buffer.OUT, Buffer.ACC)),
                   segment=st.integers(1, 2), sram=index, offset=places, shape=loops,
                   stride=st.tuples(steps, steps), sram_pitch=st.tuples(*[st.integers(0, 4)] * 2))


@settings(max_examples=600)
@given(instruction=st.one_of(gemms, alus, loads, stores),
       uops=st.lists(st.tuples(index, index, index, index), min_size=8, max_size=8))
def test_an_instruction_is_refused_exactly_when_some_access_does_not_exist(instruction, uops):
    reference = Reference(CONFIG, SEGMENTS)
    reference.set(Buffer.UOP, np.array(uops))
    try:
        reference.execute(instruction)
        outside = False
    except OutsideError:
        outside = True
    try:
        check(instruction, CONFIG, SEGMENTS, np.array(uops, np.uint16))
        refused = False
    except ExecutionError:
        refused = True
    event(f"{instruction.mnemonic()} {'refused' if refused else 'accepted'}")
    assert refused == outside


@pytest.mark.parametrize(("base", "extents", "strides", "expected"), [
    (5, (), (), (5, 5)), (5, (1, 1, 1), (7, -7, 9), (5, 5)), (5, (3, 2, 1), (2, -4, 9), (1, 9)),
    (5, (3, 0, 1), (2, -4, 9), None), (0, (65535,) * 3, (-32768,) * 3, (-32768 * 65534 * 3, 0))])
def test_an_index_range_holds_the_first_and_the_last(base, extents, strides, expected):
    assert index_range(base, extents, strides) == expected


def refusal(instruction, *uops, config=tiny, segments=SEGMENTS):
    pad = np.zeros((config.tiles(Buffer.UOP), 4), np.uint16)
    pad[:len(uops)] = np.array(uops, np.uint16).reshape(-1, 4)
    with pytest.raises(ExecutionError) as caught:
        check(instruction, config, segments, pad, position=12)
    return str(caught.value)


WALK = {"loops": (1, 1, 3)}


@pytest.mark.parametrize(("instruction", "uop", "message"), [
    (Gemm(src_stride=(0, 0, 5), **WALK), (0, 510, 0, 0),
     "(gemm): src reaches tile 520, but inp has 512 (0 to 511)"),
    (Gemm(dst_stride=(0, 0, -1), **WALK), (1, 0, 0, 0),
     "(gemm): dst reaches tile -1, but acc has 512 (0 to 511)"),
    (Gemm(), (0, 0, 256, 0), "(gemm): wgt reaches tile 256, but wgt has 256 (0 to 255)"),
    (Gemm(flags=GemmFlags.DEPTHWISE), (0, 0, 1024, 0),
     "(gemm): wgt reaches row 1024, but wgt has 1024 (0 to 1023)"),
    (Gemm(flags=GemmFlags.START | GemmFlags.BIAS), (0, 0, 0, 512),
     "(gemm): bias reaches tile 512, but acc has 512 (0 to 511)"),
    (Gemm(uop=255, count=2), (0, 0, 0, 0),
     "(gemm): uop reaches micro-op 256, but uop has 256 (0 to 255)"),
])
def test_a_gemm_is_refused_by_field_value_and_limit(instruction, uop, message):
    assert refusal(instruction, uop) == f"instruction 12 {message}"


@pytest.mark.parametrize(("instruction", "message"), [
    (Alu(lhs=512), "(alu.add): lhs reaches tile 512, but acc has 512 (0 to 511)"),
    (Alu(rhs=511, rhs_stride=(0, 0, 1), **WALK),
     "(alu.add): rhs reaches tile 513, but acc has 512 (0 to 511)"),
    (Alu(op=AluOp.MAX, dst=512, target=Buffer.OUT),
     "(alu.max): dst reaches tile 512, but out has 512 (0 to 511)"),
    (AluI(src=600), "(alui.add): src reaches tile 600, but acc has 512 (0 to 511)"),
    (AluI(op=AluOp.MOVE, src=600, dst=600),
     "(alui.move): dst reaches tile 600, but acc has 512 (0 to 511)"),
    (Requantize(params=510), "(requantize): params reaches tile 512, but acc has 512 (0 to 511)"),
    (Requantize(params_stride=255, loops=(3, 1, 1)),
     "(requantize): params reaches tile 512, but acc has 512 (0 to 511)"),
    (Requantize(src=512), "(requantize): src reaches tile 512, but acc has 512 (0 to 511)"),
    (Requantize(dst=0, dst_stride=(0, 0, -4), **WALK),
     "(requantize): dst reaches tile -8, but out has 512 (0 to 511)"),
])
def test_the_alu_s_instructions_are_refused_by_field_value_and_limit(instruction, message):
    assert refusal(instruction) == f"instruction 12 {message}"


@pytest.mark.parametrize(("instruction", "message"), [
    (Load(sram=510, shape=(1, 1, 2), pad=(0, 0, 0, 1)),
     "(load.inp): sram reaches tile 512, but inp has 512 (0 to 511)"),
    (Load(sram=511, pad=(0, 1, 0, 0)),
     "(load.inp): sram reaches tile 512, but inp has 512 (0 to 511)"),
    (Load(sram=510, shape=(1, 0, 1), pad=(3, 0, 0, 0)),
     "(load.inp): sram reaches tile 512, but inp has 512 (0 to 511)"),
    (Load(shape=(3, 1, 1), sram_pitch=300, buffer=Buffer.ACC8),
     "(load.acc8): sram reaches tile 600, but acc8 has 512 (0 to 511)"),
    (Load(offset=92, shape=(1, 1, 2)),
     "(load.inp): offset reaches byte 99, but segment constants has 96 (0 to 95)"),
    (Load(offset=8, shape=(1, 3, 1), stride=(0, -8)),
     "(load.inp): offset reaches byte -8, but segment constants has 96 (0 to 95)"),
    (Load(offset=6), "(load.inp): offset is 6, but must be a multiple of 4, the bytes of one inp "
                     "tile in DRAM"),
    (Load(stride=(0, -6), shape=(0, 0, 0)), "(load.inp): stride[y] is -6, but must be a multiple "
                                            "of 4, the bytes of one inp tile in DRAM"),
    (Store(segment=1, buffer=Buffer.ACC, stride=(8, 0)),
     "(store.acc): stride[z] is 8, but must be a multiple of 16, the bytes of one acc tile in "
     "DRAM"),
    (Load(segment=2), "(load.inp): segment is 2, but the program has 2"),
    (Store(segment=0), "(store.out): segment is 0 (constants), which is for reading only"),
    (Store(segment=1, offset=88),
     "(store.out): offset reaches byte 91, but segment work has 90 (0 to 89)"),
    (Store(segment=1, sram=500, sram_pitch=(0, 4), shape=(1, 4, 1)),
     "(store.out): sram reaches tile 512, but out has 512 (0 to 511)"),
])
def test_a_transfer_is_refused_by_field_value_and_limit(instruction, message):
    assert refusal(instruction) == f"instruction 12 {message}"


@pytest.mark.parametrize("value", [-9, 8])
def test_padding_must_fit_in_a_weight(value):
    load = Load(buffer=Buffer.WGT, pad_value=value)
    assert refusal(load, config=CONFIG) == (
        f"instruction 12 (load.wgt): pad_value is {value}, which does not fit in a weight of "
        f"4 bits (-8 to 7)")
    check(Load(buffer=Buffer.INP, pad_value=value), CONFIG, SEGMENTS, NO_UOPS)


def test_only_biases_that_are_read_count():
    uops = np.zeros((8, 4), np.uint16)
    uops[1, 3] = 60000
    starts = GemmFlags.START | GemmFlags.BIAS
    check(Gemm(flags=GemmFlags.START, count=2), CONFIG, SEGMENTS, uops)
    check(Gemm(flags=starts | GemmFlags.FIRST_UOP, count=2), CONFIG, SEGMENTS, uops)
    with pytest.raises(ExecutionError, match="bias reaches tile 60000"):
        check(Gemm(flags=starts, count=2), CONFIG, SEGMENTS, uops)


def test_a_place_has_the_number_where_there_is_one():
    assert place_of(Load(buffer=Buffer.WGT), 3) == "instruction 3 (load.wgt)"
    assert place_of(Gemm()) == "gemm"
    with pytest.raises(ExecutionError, match=r"^alu\.add: lhs reaches"):
        check(Alu(lhs=65535), CONFIG, SEGMENTS, NO_UOPS)


@pytest.mark.parametrize(("code", "message"), [
    ([], "the program is empty, but its last instruction must be sync.end"),
    ([Load(), Sync(), Gemm(), Sync()],
     "instruction 1 (sync.end) ends the program, but must be its last, which is instruction 3"),
    ([Sync(), Sync()],
     "instruction 0 (sync.end) ends the program, but must be its last, which is instruction 1"),
    ([Load(), Store()],
     "instruction 1 (store) is the last, but a program's last instruction must be sync.end"),
    ([Sync(action=SyncAction.BARRIER)],
     "instruction 0 (sync) is the last, but a program's last instruction must be sync.end"),
])
def test_a_program_ends_once_and_at_its_end(code, message):
    with pytest.raises(ExecutionError) as caught:
        check_end(encode(code))
    assert str(caught.value) == message
    check_end(encode([Sync(action=SyncAction.BARRIER), Load(), Sync()]))
