"""Twin of hw.gemm: the first bad index, found without trying every slot."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microtron.isa.config import tiny
from microtron.isa.instructions import Gemm, GemmFlags, Window
from microtron.isa.stream import encode
from microtron.sim.cycle.decode_program import decode_rows
from microtron.sim.twins.gemm import gemm
from microtron.sim.twins.top import settings

from ...llvm.interpreted import Checked, Fields

CONFIG = replace(tiny, inp_bytes=64, wgt_bytes=256, acc_bytes=512)        # 16, 16 and 32 tiles
UOPS = 6
LONG = Gemm(count=1, loops=(65535, 65535, 65535), dst_stride=(0, 0, 0), src_stride=(0, 0, 0))


def first_bad(instruction, uops):
    code, _ = decode_rows(encode([instruction]), CONFIG, (), ())
    return gemm._first_bad(Fields(code), Fields(settings(CONFIG, 1, 0)),
                           Checked(np.array(uops, np.uint16)))


def by_trial(instruction, uops):
    """Slot by slot, as the hardware meets them."""
    flags, slot = instruction.flags, 0
    limits = (32, 16, 16 * (CONFIG.block_out if flags & GemmFlags.DEPTHWISE else 1))
    strides = instruction.dst_stride, instruction.src_stride, instruction.wgt_stride
    loops = np.ndindex(instruction.loops)
    for at in loops:
        for step in range(instruction.count):
            number = instruction.uop + step
            if number >= len(uops):
                return slot
            for index, limit, stride in zip(uops[number], limits, strides, strict=False):
                if not 0 <= index + np.dot(stride, at) < limit:
                    return slot
            first = not any(flags & flag and count for flag, count in zip(
                (GemmFlags.FIRST_UOP, GemmFlags.FIRST_INNER, GemmFlags.FIRST_MIDDLE,
                 GemmFlags.FIRST_OUTER), (step, *at[::-1]), strict=True))
            if (flags & GemmFlags.BIAS and flags & GemmFlags.START and first
                    and uops[number][3] >= limits[0]):
                return slot
            slot += 1
    return -1


def legal(bits):
    """Flags that say where sums start mean something only if they do."""
    flags = GemmFlags(bits & 0xF7)
    return flags if flags & GemmFlags.START else flags & GemmFlags.DEPTHWISE


small = st.integers(-4, 4)
walks = st.tuples(small, small, small)


@given(uop=st.integers(0, 3), count=st.integers(1, 4),
       loops=st.tuples(*[st.integers(1, 4)] * 3), dst=walks, src=walks, wgt=walks,
       flags=st.integers(0, 255).map(legal),
       uops=st.lists(st.tuples(st.integers(0, 33), st.integers(0, 17), st.integers(0, 17),
                               st.integers(0, 33)), min_size=UOPS, max_size=UOPS))
def test_the_first_bad_slot_is_that_of_the_definition(uop, count, loops, dst, src, wgt, flags,
                                                      uops):
    instruction = Gemm(uop=uop, count=count, loops=loops, dst_stride=dst, src_stride=src,
                       wgt_stride=wgt, flags=flags)
    assert first_bad(instruction, uops) == by_trial(instruction, uops)


WINDOWS = replace(CONFIG, window_taps=3)


def first_bad_of_window(window, uops):
    code, _ = decode_rows(encode([window]), WINDOWS, (), ())
    return gemm._first_bad_of_window(Fields(code), Fields(settings(WINDOWS, 1, 0)),
                                     Checked(np.array(uops, np.uint16)))


def by_trial_of_window(window, uops):
    """Slot by slot: operands first, then the sum that began two slots before."""
    for slot, at in enumerate(np.ndindex(window.loops)):
        if window.uop >= len(uops):
            return slot
        dst, src, wgt, bias = uops[window.uop]
        row = wgt + np.dot(window.wgt_stride, at)
        if not (0 <= src + np.dot(window.src_stride, at) < 16 and 0 <= row < 64 and row % 4 == 0):
            return slot
        begun = dst + np.dot(window.dst_stride, (*at[:2], at[2] - 2))
        if at[2] >= 2 and not (0 <= begun < 32 and (
                bias < 32 or GemmFlags.BIAS not in window.flags)):
            return slot
    return -1


@given(uop=st.integers(0, 6), loops=st.tuples(*[st.integers(1, 5)] * 3), dst=walks, src=walks,
       wgt=st.tuples(*[st.sampled_from((-8, -4, 0, 4, 4, 8, 6))] * 3),
       flags=st.sampled_from((GemmFlags(0), GemmFlags.START | GemmFlags.BIAS)),
       uops=st.lists(st.tuples(st.integers(0, 33), st.integers(0, 17), st.sampled_from(
           (0, 4, 16, 32, 60, 64, 63)), st.integers(28, 33)), min_size=UOPS, max_size=UOPS))
def test_the_first_bad_slot_of_a_window_is_that_of_the_definition(uop, loops, dst, src, wgt, flags,
                                                                  uops):
    window = Window(uop=uop, loops=loops, dst_stride=dst, src_stride=src, wgt_stride=wgt,
                    flags=flags)
    assert first_bad_of_window(window, uops) == by_trial_of_window(window, uops)


def test_it_is_found_behind_more_slots_than_anyone_can_try():
    far = replace(LONG, dst_stride=(0, 0, 0), wgt_stride=(0, 0, 0), src_stride=(1, 0, 0),
                  loops=(17, 65535, 65535))
    assert first_bad(far, [(0, 0, 0, 0)] * UOPS) == 16 * 65535**2
    assert first_bad(LONG, [(0, 0, 0, 0)] * UOPS) == -1
