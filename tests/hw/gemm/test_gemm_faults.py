"""GEMM with an index outside a scratchpad: nothing happens from that slot on, and it says so."""

import random
from dataclasses import replace

import numpy as np
import pytest

from microtron.hw.gemm.gemm import STOP, write_stage
from microtron.isa.config import tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import Buffer, Engines, Gemm, GemmFlags, Window
from microtron.sim.functional import datapath

from .gemm_bench import POSITION, expected_acc, random_pads, run

ACC, INP, WGT, UOP = (tiny.tiles(each) for each in (Buffer.ACC, Buffer.INP, Buffer.WGT, Buffer.UOP))
ROWS = WGT * tiny.block_out
START, BIAS, FIRST = GemmFlags.START, GemmFlags.BIAS, GemmFlags.FIRST_UOP
BEFORE = [Gemm(count=3, post=Engines.ALU), Gemm(count=2, post=Engines.ALU)]

# An instruction, its micro-ops as (dst, src, wgt, bias) from number 8 on, and the slot that
# reaches outside. None: there is none.
CASES = {
    "dst above": (Gemm(loops=(1, 1, 4), dst_stride=(0, 0, 1)), [(ACC - 2, 0, 0, 0)], 2),
    "dst far above": (Gemm(loops=(1, 1, 4), dst_stride=(0, 0, 32767)), [(9, 0, 0, 0)], 1),
    "dst below": (Gemm(loops=(1, 4, 1), dst_stride=(0, -1, 0)), [(1, 0, 0, 0)], 2),
    "src above": (Gemm(loops=(2, 2, 1), src_stride=(1, 0, 0)), [(0, INP - 1, 0, 0)], 2),
    "src below": (Gemm(loops=(4, 1, 1), src_stride=(-9, 0, 0)), [(0, 20, 0, 0)], 3),
    "wgt above": (Gemm(count=3), [(0, 0, WGT - 1, 0), (0, 0, WGT, 0), (0, 0, 0, 0)], 1),
    "wgt below": (Gemm(loops=(1, 1, 3), wgt_stride=(0, 0, -32768)), [(0, 0, 5, 0)], 1),
    "row above": (Gemm(loops=(1, 1, 3), wgt_stride=(0, 0, 1), flags=GemmFlags.DEPTHWISE),
                  [(0, 0, ROWS - 1, 0)], 1),
    "row below": (Gemm(loops=(1, 1, 3), wgt_stride=(0, 0, -1), flags=GemmFlags.DEPTHWISE),
                  [(0, 0, 1, 0)], 2),
    "rows inside": (Gemm(loops=(1, 1, 3), wgt_stride=(0, 0, 1), flags=GemmFlags.DEPTHWISE),
                    [(0, 0, ROWS - 3, 0)], None),
    "bias": (Gemm(count=2, flags=START | BIAS), [(0, 0, 0, ACC - 1), (0, 0, 0, ACC)], 1),
    "bias not used": (Gemm(count=2, flags=START | BIAS | FIRST), [(0, 0, 0, 5), (0, 0, 0, ACC)],
                      None),
    "bias without flag": (Gemm(count=2, flags=START), [(0, 0, 0, 65535)] * 2, None),
    "uop": (Gemm(uop=UOP - 1, count=2), [], 1),
    "uop far": (Gemm(uop=65535, count=65535), [], 0),
    "nothing reached": (Gemm(uop=65535, count=65535, loops=(1, 0, 1)), [], None),
}


def slots_of(gemm, uops):
    """(indices, whether a sum starts) of every slot."""
    for outer, middle, inner in np.ndindex(gemm.loops):
        for step in range(min(gemm.count, 8)):
            place = gemm.uop + step
            uop = uops[place].tolist() if place < len(uops) else [0, 0, 0, 0]
            at = (outer, middle, inner)
            for column, stride in enumerate((gemm.dst_stride, gemm.src_stride, gemm.wgt_stride)):
                uop[column] += sum(a * b for a, b in zip(at, stride, strict=True))
            later = {GemmFlags.FIRST_OUTER: outer, GemmFlags.FIRST_MIDDLE: middle,
                     GemmFlags.FIRST_INNER: inner, GemmFlags.FIRST_UOP: step}
            yield uop, not any(gemm.flags & flag and at for flag, at in later.items())


def execute(gemm, pads, most):
    """The first slots of an instruction, one at a time."""
    for number, (uop, starts) in enumerate(slots_of(gemm, pads.uop)):
        if number == most:
            return
        flags = gemm.flags & (GemmFlags.DEPTHWISE | START | BIAS)
        if not starts:
            flags &= ~(START | BIAS)
        datapath.gemm(pads.acc, pads.inp, pads.wgt, np.array([uop]), int(flags), (1, 1, 1),
                      (0, 0, 0), (0, 0, 0), (0, 0, 0))


@pytest.mark.parametrize("case", CASES)
def test_nothing_happens_from_the_slot_that_reaches_outside(case):
    gemm, uops, slot = CASES[case]
    pads = random_pads(random.Random(case), tiny)
    for number in range(3):
        pads.uop[number] = (number, number, number, 0)
    for number, uop in enumerate(uops):
        pads.uop[8 + number] = uop
    if uops:
        gemm = replace(gemm, uop=8)
    gemms = [*BEFORE, gemm, Gemm(count=3, post=Engines.ALU)]
    result = run(tiny, gemms, pads, cycles=60)

    expected = pads.with_copy_of(Buffer.ACC)
    for each in (*BEFORE, *([gemm, gemms[-1]] if slot is None else [])):
        execute(each, expected, None)
    if slot is not None:
        execute(gemm, expected, slot)
        assert result.ends == [write_stage(tiny) + 3, write_stage(tiny) + 5]
        issued = 1 + 5 + slot                   # the fifth slot is the last of those before
        assert result.fault == (issued + STOP, Fault.INDEX, POSITION + 2)
        assert len(result.writes) == 5 + slot
    else:
        assert result.fault is None
        assert len(result.ends) == 4
    np.testing.assert_array_equal(result.acc, expected.acc)


WINDOWS = replace(tiny, window_taps=3)
SLIDE = Window(loops=(1, 1, 8), dst_stride=(0, 0, 1), src_stride=(0, 0, 1))
# A window of one inner loop, its micro-op, and the slot that something is wrong with.
WINDOW_CASES = {
    "dst of the fourth sum": (SLIDE, (ACC - 3, 0, 0, 0), 5),
    "dst of the first sum": (SLIDE, (ACC, 0, 0, 0), 2),
    "dst where no sum begins": (SLIDE, (ACC - 6, 0, 0, 0), None),
    "dst of no sum": (replace(SLIDE, loops=(1, 1, 2)), (ACC, 0, 0, 0), None),
    "src": (SLIDE, (0, INP - 1, 0, 0), 1),
    "row above": (replace(SLIDE, wgt_stride=(0, 0, 4)), (0, 0, ROWS - 12, 0), 3),
    "row below": (replace(SLIDE, wgt_stride=(0, 0, -4)), (0, 0, 8, 0), 3),
    "beside a group": (SLIDE, (0, 0, 6, 0), 0),
    "a step beside a group": (replace(SLIDE, wgt_stride=(0, 0, 2)), (0, 0, 8, 0), 1),
    "bias": (replace(SLIDE, flags=START | BIAS), (0, 0, 0, ACC), 2),
    "bias of no sum": (replace(SLIDE, flags=START | BIAS, loops=(1, 1, 1)), (0, 0, 0, ACC), None),
    "bias without flag": (replace(SLIDE, flags=START), (0, 0, 0, 65535), None),
}


@pytest.mark.parametrize("case", WINDOW_CASES)
def test_sums_of_a_window_end_up_to_the_slot_that_is_wrong(case):
    window, uop, slot = WINDOW_CASES[case]
    pads = random_pads(random.Random(case), WINDOWS)
    pads.uop[0] = uop
    result = run(WINDOWS, [window], pads, cycles=40)
    if slot is None:
        assert result.fault is None
        assert len(result.ends) == 1
        right = [window]
    else:
        assert result.fault == (1 + slot + STOP, Fault.INDEX, POSITION)
        assert result.ends == []
        right = [replace(window, loops=(1, 1, slot))] if slot > 2 else []
    np.testing.assert_array_equal(result.acc, expected_acc(right, pads))


def test_the_first_fault_stays_and_no_command_is_taken_after_it():
    pads = random_pads(random.Random(0), tiny)
    pads.uop[0], pads.uop[1] = (ACC, 0, 0, 0), (0, 0, 0, 0)
    result = run(tiny, [Gemm(), Gemm(), *[Gemm(uop=1)] * 20], pads, cycles=40)
    assert result.starts == [0, 1, 2, 3, 4]     # while the fault was on its way to stage 4
    assert result.ends == result.writes == []
    assert result.fault == (1 + STOP, Fault.INDEX, POSITION)
    np.testing.assert_array_equal(result.acc, pads.acc)
    idle = run(tiny, [Gemm(), *[Gemm(uop=1)] * 20], pads, cycles=60, offered=0.2, seed=1)
    assert max(idle.starts) < idle.fault[0]
