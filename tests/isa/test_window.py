"""Windows: their encoding, their rules, what they may reach, and what they are ordered against."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from microtron.base.errors import ConfigError, ExecutionError, IsaError
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import (
    Buffer,
    Engines,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Sync,
    Window,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.record import fields_of
from microtron.isa.stream import decode, encode, encode_micro_ops
from microtron.isa.verification.bounds import check
from microtron.isa.verification.verifier import inspect, verify
from microtron.testing.random_programs import random_program

from ..sim.functional.reference import OutsideError, Reference

WINDOWS = replace(tiny, window_taps=3)
# Few tiles of everything, so that random numbers often end just inside or just outside.
FEW = Config(block_in=4, block_out=8, wgt_bits=4, uop_bytes=32, inp_bytes=32, wgt_bytes=64,
             acc_bytes=256, out_bytes=64, acc_banks=1, window_taps=3)
FROM_BIAS = GemmFlags.START | GemmFlags.BIAS
L, G = Engines.LOAD, Engines.GEMM
UOP = MicroOp(dst=8, src=4, wgt=20, bias=20)

loops = st.tuples(*[st.integers(0, 5)] * 3)
triples = st.tuples(*[st.integers(-2, 2)] * 3)
windows = st.builds(
    Window, flags=st.sampled_from((GemmFlags(0), GemmFlags.START, FROM_BIAS,
                                   FROM_BIAS | GemmFlags.FIRST_MIDDLE | GemmFlags.FIRST_OUTER)),
    uop=st.integers(0, 5), loops=loops, dst_stride=triples, src_stride=triples,
    wgt_stride=st.tuples(*[st.sampled_from((-4, 0, 0, 4, 4, 8, 2))] * 3))
uops = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9),
                          st.sampled_from((0, 4, 8, 12, 16, 20, 5, 6)), st.integers(0, 9)),
                min_size=4, max_size=4)


def test_fields_lie_where_those_of_a_gemm_do():
    of_gemm = {field.name: (field.offset, field.scalar) for field in fields_of(Gemm)}
    of_window = {field.name: (field.offset, field.scalar) for field in fields_of(Window)}
    assert of_window == {name: each for name, each in of_gemm.items() if name != "count"}


@pytest.mark.parametrize(("flags", "message"), [
    (GemmFlags.DEPTHWISE, "flags has DEPTHWISE, but a window is depthwise always, and has one "
                          "micro-op whose sums follow the inner loop"),
    (GemmFlags.START | GemmFlags.FIRST_UOP, "flags has FIRST_UOP, but a window is"),
    (GemmFlags.START | GemmFlags.FIRST_INNER, "flags has FIRST_INNER, but a window is"),
    (GemmFlags.FIRST_OUTER, "flags has FIRST_OUTER, which means nothing without START"),
    (GemmFlags.BIAS, "flags has BIAS, which means nothing without START"),
])
def test_flags_that_mean_nothing_are_refused(flags, message):
    with pytest.raises(IsaError, match=r"^window: ") as caught:
        Window(flags=flags)
    assert message in str(caught.value)


@pytest.mark.parametrize(("fields", "message"), [
    ({"window_taps": 2}, "window_taps is 2, but must be 1 or 3"),
    ({"window_taps": 0}, "window_taps is 0, but must be 1 or 3"),
    ({"window_taps": 3, "block_in": 2},
     "window_taps is 3, but block_in is 2: windows need 4 or more; set window_taps = 1 or a larger "
     "block_in"),
    ({"window_taps": 3, "block_out": 2},
     "window_taps is 3, but block_out is 2: windows need 4 or more; set window_taps = 1 or a "
     "larger block_out"),
])
def test_configurations_that_cannot_have_windows_are_refused(fields, message):
    with pytest.raises(ConfigError) as caught:
        replace(tiny, **fields)
    assert str(caught.value) == message


def test_an_accelerator_has_windows_if_its_configuration_says_so():
    assert Window in WINDOWS.instructions
    assert Window not in tiny.instructions


def pad_of(config, *micro_ops):
    pad = np.zeros((config.tiles(Buffer.UOP), 4), np.uint16)
    pad[:len(micro_ops)] = np.array(micro_ops, np.uint16).reshape(-1, 4)
    return pad


@settings(max_examples=600)
@given(window=windows, uops=uops)
def test_a_window_is_refused_exactly_when_some_access_does_not_exist(window, uops):
    reference = Reference(FEW)
    reference.set(Buffer.UOP, np.array(uops))
    try:
        reference.execute(window)
        outside = False
    except OutsideError:
        outside = True
    try:
        check(window, FEW, (), pad_of(FEW, *uops))
        refused = False
    except ExecutionError:
        refused = True
    event("refused" if refused else "accepted")
    assert refused == outside


@pytest.mark.parametrize(("window", "uop", "message"), [
    (Window(loops=(1, 1, 3)), (0, 0, 6, 0),
     "wgt reaches row 6, but must be a multiple of 4 in every iteration"),
    (Window(loops=(1, 2, 3), wgt_stride=(0, 6, 0)), (0, 0, 4, 0),
     "wgt reaches row 10, but must be a multiple of 4 in every iteration"),
    (Window(loops=(1, 1, 5), dst_stride=(0, 0, 1)), (510, 0, 0, 0),
     "dst reaches tile 512, but acc has 512 (0 to 511)"),
    (Window(loops=(1, 1, 5), src_stride=(0, 0, 1)), (0, 508, 0, 0),
     "src reaches tile 512, but inp has 512 (0 to 511)"),
    (Window(loops=(1, 1, 3), wgt_stride=(0, 0, 4)), (0, 0, 1016, 0),
     "wgt reaches row 1024, but wgt has 1024 (0 to 1023)"),
    (Window(flags=FROM_BIAS, loops=(1, 1, 3)), (0, 0, 0, 512),
     "bias reaches tile 512, but acc has 512 (0 to 511)"),
    (Window(uop=256), (0, 0, 0, 0), "uop reaches micro-op 256, but uop has 256 (0 to 255)"),
])
def test_a_message_names_what_is_outside(window, uop, message):
    with pytest.raises(ExecutionError) as caught:
        check(window, WINDOWS, (), pad_of(WINDOWS, uop), position=7)
    assert str(caught.value) == f"instruction 7 (window): {message}"


@pytest.mark.parametrize("window", [
    Window(loops=(1, 1, 4), dst_stride=(0, 0, 1)),          # two sums; the others begin none
    Window(loops=(2, 2, 2), dst_stride=(0, 0, 9), flags=FROM_BIAS),     # no sum at all
    Window(loops=(0, 1, 3), wgt_stride=(0, 0, 1), uop=9999),            # nothing
])
def test_what_no_sum_needs_may_be_anywhere(window):
    check(window, WINDOWS, (), pad_of(WINDOWS, (510, 0, 0, 9999 * (window.loops[2] < 3))))


def test_without_hardware_for_it_a_window_is_refused():
    with pytest.raises(ExecutionError, match=r"^window: window_taps is 1, but windows need 3$"):
        check(Window(), tiny, (), pad_of(tiny))
    assert inspect(program(Window(wait=L), config=tiny)).findings == (
        "instruction 1 (window): window_taps is 1, but windows need 3",)


def test_results_that_no_port_leads_to_are_refused_by_the_verifier_too():
    alone = replace(WINDOWS, out_readers=1)
    for instruction in (Gemm(wait=L, flags=GemmFlags.OUT), Window(wait=L, flags=GemmFlags.OUT)):
        finding, = inspect(program(instruction, config=alone)).findings
        assert "flags has OUT, but GEMM reads out only where" in finding
    verify(program(Gemm(wait=L, flags=GemmFlags.OUT, count=0), config=alone))


def program(*instructions, uop=UOP, config=WINDOWS):
    """The first instruction loads the micro-op."""
    data = np.frombuffer(encode_micro_ops([uop]).tobytes(), np.uint8)
    segments = (Segment("constants", 4096, Access.READ, data),)
    first = Load(buffer=Buffer.UOP, post=G)
    return Program(config, encode([first, *instructions, Sync()]), segments)


WALK = Window(wait=L, flags=FROM_BIAS, loops=(1, 2, 5), dst_stride=(0, 10, 1),
              src_stride=(0, 10, 2), wgt_stride=(0, 8, 0))
TOUCHED = {Buffer.ACC: {8, 9, 10, 18, 19, 20}, Buffer.WGT: {5, 7},
           Buffer.INP: {4, 6, 8, 10, 12, 14, 16, 18, 20, 22}}


@pytest.mark.parametrize("buffer", TOUCHED)
def test_a_window_conflicts_with_those_who_write_what_it_touches_and_no_others(buffer):
    racing = {tile for tile in range(26) if inspect(program(
        Load(buffer=buffer, sram=tile), WALK)).findings}
    assert racing == TOUCHED[buffer]


def test_tiles_of_sums_that_there_are_none_of_are_not_touched():
    short = replace(WALK, loops=(1, 2, 2))
    verify(program(Load(buffer=Buffer.ACC, sram=0, shape=(1, 1, 26)), short))


@pytest.mark.parametrize(("window", "uop", "message"), [
    (WALK, MicroOp(dst=8, src=4, wgt=22), "wgt reaches row 22, but must be a multiple of 4"),
    (replace(WALK, wgt_stride=(0, 6, 0)), MicroOp(dst=8, src=4, wgt=20),
     "wgt reaches row 26, but must be a multiple of 4"),
    (WALK, MicroOp(dst=505, src=4, wgt=20), "dst reaches tile 517, but acc has 512"),
])
def test_the_verifier_refuses_what_bounds_refuse(window, uop, message):
    finding, = inspect(program(window, uop=uop)).findings
    assert message in finding


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_have_windows_that_make_sums_and_are_safe(seed):
    made = random_program(WINDOWS, seed, length=60)
    verify(made)
    found = [each for each in decode(made.code) if isinstance(each, Window)]
    assert any(each.loops[2] >= 3 and 0 not in each.loops for each in found)


def test_random_programs_of_others_are_what_they_were():
    """Seeds stand for the same programs as before there were windows."""
    code = random_program(tiny, 1, length=60).code
    assert not any(isinstance(each, Window) for each in decode(code))
    assert zlib.crc32(code.tobytes()) == 0xbc0141aa
