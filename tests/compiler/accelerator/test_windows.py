"""Depthwise sums as windows: the same products, started in the same places, in fewer cycles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.accelerator.selection.depthwise_windows import depthwise_sums, plan_windows
from microtron.compiler.accelerator.selection.instructions import MicroKernels
from microtron.compiler.expression.affine import Affine
from microtron.compiler.expression.expression import Axis
from microtron.isa.config import tiny
from microtron.isa.instructions import Gemm, GemmFlags, Load, MicroOp, Window

WINDOWS = replace(tiny, window_taps=3)
FEW = replace(WINDOWS, uop_bytes=8 * MicroOp.size)
# Those that share an instruction with a window's taps are long, too; every iteration is counted.
EXTENTS = {"x": (1, 2, 3, 5), "y": (1, 2, 3), "o": (1, 2), "ky": (1, 2, 3, 5), "group": (1, 2, 3),
           "plane": (1, 2)}
FIRST = {GemmFlags.FIRST_OUTER: 0, GemmFlags.FIRST_MIDDLE: 1, GemmFlags.FIRST_INNER: 2}


def sums_of(code, kernels):
    """What accumulators hold after some instructions: the products that were added up."""
    held, micro_ops = {}, {}
    for each in code:
        if isinstance(each, Load):
            first = each.offset // MicroOp.size
            for number in range(each.shape[2]):
                micro_ops[each.sram + number] = kernels.micro_ops[first + number]
            continue
        taps, count, more = (3, 1, 2) if isinstance(each, Window) else (1, each.count, 0)
        outer, middle, inner = each.loops
        for place in product(range(outer), range(middle), range(inner - more)):
            for number in range(count):
                begins = each.flags & GemmFlags.START and all(
                    place[loop] == 0 for flag, loop in FIRST.items() if each.flags & flag) and (
                    number == 0 or not each.flags & GemmFlags.FIRST_UOP)
                strides = each.dst_stride, each.src_stride, each.wgt_stride
                dst, src, wgt = (first + sum(map(int.__mul__, place, steps)) for first, steps
                                 in zip(micro_ops[each.uop + number], strides, strict=True))
                assert not isinstance(each, Window) or wgt % 4 == 0
                added = Counter((src + tap * each.src_stride[2],
                                 wgt + tap * each.wgt_stride[2] + tap) for tap in range(taps))
                held[dst] = added if begins else held.get(dst, Counter()) + added
    return held


@st.composite
def depthwise_loops(draw):
    """Loops as a convolution has them, in any order: some slide, some add up, some repeat."""
    x, y, o, ky, group, plane = (Axis(name, draw(st.sampled_from(extents)))
                                 for name, extents in EXTENTS.items())
    kx = Axis("kx", draw(st.sampled_from((3, 3, 3, 2))))
    across = draw(st.sampled_from((1, 2)))          # activations from one column to the next
    dst = Affine(100, {x: draw(st.sampled_from((1, 2, -1))), y: 20, o: 200})
    src = Affine(50, {x: across, kx: across, y: 30, ky: 30, o: 300, group: 3 * across})
    wgt = Affine(draw(st.sampled_from((0, 8, 8, 5))),
                 {kx: 1, ky: 4 * 25, group: 4 * 5, plane: draw(st.sampled_from((4, 4, 3))), o: 600})
    return draw(st.permutations([x, y, o, ky, group, plane, kx])), (dst, src, wgt)


@given(depthwise_loops(), st.booleans(), st.sampled_from((WINDOWS, FEW)))
def test_windows_add_up_what_loops_say(case, starts, config):
    axes, operands = case
    right = {}
    for place in product(*(range(axis.extent) for axis in axes)):
        dst, src, wgt = (each.at(dict(zip(axes, place, strict=True))).constant
                         for each in operands)
        right.setdefault(dst, Counter())[src, wgt] += 1
    kernels = MicroKernels(config)
    code = list(depthwise_sums(axes, *operands, kernels, starts=starts))
    assert sums_of(code, kernels) == right
    flags = {each.flags & GemmFlags.START for each in code if not isinstance(each, Load)}
    assert (GemmFlags.START in flags) == starts


@given(depthwise_loops())
def test_windows_are_never_slower(case):
    axes, operands = case
    products = 1
    for axis in axes:
        products *= axis.extent
    code = list(depthwise_sums(axes, *operands, MicroKernels(WINDOWS), starts=True))
    cycles = sum(each.loops[0] * each.loops[1] * each.loops[2] * getattr(each, "count", 1)
                 for each in code if isinstance(each, Gemm | Window))
    assert cycles <= products
    if any(isinstance(each, Window) for each in code):
        assert cycles < products


def test_a_3_by_3_kernel_is_one_window_for_each_block():
    o, y, x, ky, kx = (Axis(name, extent) for name, extent in (
        ("o", 2), ("y", 6), ("x", 7), ("ky", 3), ("kx", 3)))
    kernels = MicroKernels(WINDOWS)
    load, *windows = depthwise_sums(
        [o, y, x, ky, kx], Affine(0, {o: 42, y: 7, x: 1}), Affine(5, {o: 72, y: 9, x: 1, ky: 9,
                                                                      kx: 1}),
        Affine(16, {o: 16, ky: 4, kx: 1}), kernels, starts=True)
    assert load.shape == (1, 1, 2)                      # the micro-ops of both at once
    assert kernels.micro_ops == [(0, 5, 16), (42, 77, 32)]
    assert windows == [Window(
        flags=GemmFlags.START | GemmFlags.FIRST_MIDDLE, uop=number, loops=(6, 3, 9),
        dst_stride=(7, 0, 1), src_stride=(9, 9, 1), wgt_stride=(0, 4, 0)) for number in range(2)]


@pytest.mark.parametrize(("config", "rows", "row", "columns"), [
    (tiny, 4, 0, 7), (WINDOWS, 3, 0, 7), (WINDOWS, 4, 2, 7), (WINDOWS, 4, 0, 1)],
    ids=["no windows", "rows side by side", "not the first of four", "one column"])
def test_gemms_are_taken_where_windows_are_impossible_or_no_better(config, rows, row, columns):
    x, ky, kx = Axis("x", columns), Axis("ky", 3), Axis("kx", 3)
    _, *code = depthwise_sums([x, ky, kx], Affine(0, {x: 1}), Affine(0, {x: 1, ky: 9, kx: 1}),
                              Affine(row, {ky: rows, kx: 1}), MicroKernels(config), starts=True)
    assert all(isinstance(each, Gemm) and each.flags & GemmFlags.DEPTHWISE for each in code)


def test_no_window_is_planned_without_taps_that_walk_through_rows():
    assert plan_windows(()) is None
