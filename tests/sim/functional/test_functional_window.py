"""Windows: against the reference, against the gemm that each of them equals, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ExecutionError
from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Gemm, GemmFlags, Sync, Window
from microtron.isa.program import Program
from microtron.isa.stream import encode
from microtron.sim.counts import count
from microtron.sim.functional import datapath
from microtron.sim.functional.simulator import Functional

from .support import SMALL, fill, program, same_as_reference, seeds

CONFIGS = {
    "tiny": replace(tiny, window_taps=3),
    "batch": Config(batch=2, block_in=8, block_out=8, window_taps=3, **SMALL),
    "int4": Config(block_in=8, block_out=4, wgt_bits=4, window_taps=3, **SMALL),
    "more_out_than_in": Config(block_in=4, block_out=16, window_taps=3, **SMALL),
}
configs = st.sampled_from(list(CONFIGS.values()))
indices = st.integers(14, 16)
triples = st.tuples(*[st.integers(-2, 2)] * 3)
counts = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 6))


@st.composite
def window_flags(draw):
    flags = draw(st.sampled_from((GemmFlags(0), GemmFlags.OUT)))
    if draw(st.booleans()):
        flags |= GemmFlags.START
        for each in (GemmFlags.BIAS, GemmFlags.FIRST_MIDDLE, GemmFlags.FIRST_OUTER):
            flags |= each if draw(st.booleans()) else GemmFlags(0)
    return flags


@given(config=configs, seed=seeds, flags=window_flags(), loops=counts, dst=triples, src=triples,
       wgt=triples, uop=st.tuples(indices, indices, indices, indices))
def test_equals_the_reference_and_a_depthwise_gemm(config, seed, flags, loops, dst, src, wgt, uop):
    flags &= ~(GemmFlags.OUT if config.gemm_out_tiles == 0 else GemmFlags(0))
    uop = (*uop[:2], 4 * uop[2], uop[3])
    window = Window(flags=flags, uop=1, loops=loops, dst_stride=dst, src_stride=src,
                    wgt_stride=tuple(4 * each for each in wgt))
    same_as_reference(config, window, seed, [(0, 0, 0, 0), uop])
    assert np.array_equal(acc_after(config, window, [(0, 0, 0, 0), uop], seed),
                          acc_after(config, *equal_gemm(window, uop), seed))


def equal_gemm(window, uop):
    """The gemm that a window with this micro-op equals, and its micro-ops."""
    outer, middle, inner = window.loops
    dst, src, wgt, bias = uop
    uops = [(dst, src + tap * window.src_stride[2], wgt + tap * window.wgt_stride[2] + tap, bias)
            for tap in range(3)]
    start = GemmFlags.FIRST_UOP if GemmFlags.START in window.flags else GemmFlags(0)
    gemm = Gemm(flags=window.flags | GemmFlags.DEPTHWISE | start, count=3,
                loops=(outer, middle, max(0, inner - 2)), dst_stride=window.dst_stride,
                src_stride=window.src_stride, wgt_stride=window.wgt_stride)
    return gemm, uops


def acc_after(config, instruction, uops, seed):
    machine = Functional(program(config, instruction))
    fill(machine, seed)
    machine.scratchpads.uop[:len(uops)] = uops
    machine.execute(0)
    return machine.scratchpads.acc


def test_a_row_of_an_image_is_convolved_with_three_taps():
    image = np.arange(1, 7)
    config = CONFIGS["tiny"]
    machine = Functional(program(config, Window(
        flags=GemmFlags.START, loops=(1, 1, 6), dst_stride=(0, 0, 1), src_stride=(0, 0, 1))))
    machine.scratchpads.inp[:6] = image[:, None, None]
    machine.scratchpads.wgt[0] = np.array([100, 10, 1, 77])[:, None]        # the last is not taken
    machine.execute(0)
    assert machine.scratchpads.acc[:5, 0, 0].tolist() == [123, 234, 345, 456, 0]


@pytest.mark.parametrize(("flags", "sums"), [
    (GemmFlags(0), 100 + 2 * 3 * 3), (GemmFlags.START, 3), (GemmFlags.START | GemmFlags.BIAS, 203),
    (GemmFlags.START | GemmFlags.FIRST_MIDDLE, 3 * 3),
    (GemmFlags.START | GemmFlags.FIRST_OUTER, 3 * 4),
    (GemmFlags.START | GemmFlags.FIRST_OUTER | GemmFlags.FIRST_MIDDLE, 2 * 3 * 3)])
def test_sums_start_by_the_counters_of_the_other_loops(flags, sums):
    config = CONFIGS["tiny"]
    machine = Functional(program(config, Window(
        flags=flags, loops=(2, 3, 4), dst_stride=(0, 0, 1), src_stride=(0, 0, 1))))
    machine.scratchpads.uop[0] = 0, 0, 0, 9
    machine.scratchpads.inp[:] = machine.scratchpads.wgt[:] = 1
    machine.scratchpads.acc[:2], machine.scratchpads.acc[9] = 100, 200
    machine.execute(0)
    assert (machine.scratchpads.acc[:2] == sums).all()
    assert (machine.scratchpads.acc[2] == 0).all()


@pytest.mark.parametrize("inner", [0, 1, 2])
def test_fewer_iterations_than_taps_make_no_sum(inner):
    config = CONFIGS["tiny"]
    window = Window(flags=GemmFlags.START, loops=(2, 2, inner))
    assert (acc_after(config, window, [(9999, 0, 0, 0)], 1)
            == acc_after(config, Window(loops=(0, 1, 1)), [(0, 0, 0, 0)], 1)).all()


def test_rows_beyond_what_a_micro_op_can_name_are_reached_by_strides():
    """The gemm that it equals would need micro-ops of more than 16 bits."""
    config = Config(block_in=4, block_out=4, wgt_bytes=512 << 10, acc_bytes=8 << 10, window_taps=3)
    window = Window(loops=(1, 1, 3), wgt_stride=(0, 0, 32764))
    machine = Functional(program(config, window))
    machine.scratchpads.uop[0] = 0, 0, 65532, 0
    machine.scratchpads.inp[:] = 1
    for tap, row in enumerate((65532, 65532 + 32764, 65532 + 2 * 32764)):
        machine.scratchpads.wgt[row // 4, tap] = 10 ** tap
    machine.execute(0)
    assert (machine.scratchpads.acc[0] == 111).all()


@pytest.mark.parametrize(("window", "uop", "message"), [
    (Window(loops=(1, 1, 3)), (0, 0, 2, 0), "wgt reaches row 2, but must be a multiple of 4"),
    (Window(loops=(1, 1, 3), wgt_stride=(0, 0, 2)), (0, 0, 0, 0),
     "wgt reaches row 2, but must be a multiple of 4"),
    (Window(loops=(1, 1, 3), src_stride=(0, 0, -1)), (0, 1, 0, 0), "src reaches tile -1"),
    (Window(loops=(1, 1, 2), src_stride=(0, 0, -1)), (0, 0, 0, 0), "src reaches tile -1"),
    (Window(loops=(1, 1, 5), dst_stride=(0, 0, 1)), (510, 0, 0, 0), "dst reaches tile 512"),
    (Window(loops=(1, 1, 5), uop=999), (0, 0, 0, 0), "uop reaches micro-op 999"),
])
def test_what_reaches_outside_is_refused_before_it_has_an_effect(window, uop, message):
    machine = Functional(program(CONFIGS["tiny"], window))
    machine.scratchpads.uop[0] = uop
    machine.scratchpads.acc[:] = 5
    with pytest.raises(ExecutionError, match=message):
        machine.execute(0)
    assert (machine.scratchpads.acc == 5).all()


def test_without_windows_a_window_is_refused():
    machine = Functional(program(tiny, Window(loops=(1, 1, 3))))
    with pytest.raises(ExecutionError, match="window_taps is 1, but windows need 3"):
        machine.execute(0)


def test_the_literal_meaning_is_the_planned_one():
    rng = np.random.default_rng(3)
    inp, wgt = (rng.integers(-128, 128, (32, *shape)).astype(np.int8) for shape in ((1, 8), (8, 8)))
    acc = rng.integers(-2**31, 2**31, (64, 1, 8)).astype(np.int32)
    arguments = (inp, wgt, np.array([[2, 3, 8, 40]], np.uint16), int(GemmFlags.START
                 | GemmFlags.BIAS | GemmFlags.FIRST_MIDDLE), (2, 3, 7), (10, 0, 1), (0, 5, 1),
                 (32, 8, 0))
    planned, literal = acc.copy(), acc.copy()
    datapath.window(planned, *arguments)
    datapath.window_by_sums(literal, *arguments, datapath.NEVER.address)
    assert np.array_equal(planned, literal)
    assert not np.array_equal(planned, acc)


def test_its_work_is_counted_in_iterations_and_its_multiplications_in_sums():
    config = CONFIGS["batch"]
    made = Program(config, encode([Window(loops=(2, 3, 7)), Window(loops=(2, 3, 2)), Sync()]))
    counted = count(made.code, config, {})
    assert counted.instructions["window"] == 2
    assert counted.tile_products == 2 * 3 * 7 + 2 * 3 * 2
    assert counted.macs == 2 * 3 * (7 - 2) * 3 * 8 * 2
