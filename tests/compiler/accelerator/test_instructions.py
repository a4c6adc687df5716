"""Instructions for loops around an intrinsic touch the tiles that the loops say, however many."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.accelerator.emission.emit import emit
from microtron.compiler.accelerator.selection.instructions import (
    PLAIN,
    MicroKernels,
    alus,
    fills,
    gemms,
    immediates,
    requantizes,
)
from microtron.compiler.accelerator.selection.intrinsic import immediate
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.affine import Affine
from microtron.compiler.expression.expression import Axis, Constant
from microtron.compiler.nest.nest import (
    Allocate,
    Buffer,
    Copy,
    Invoke,
    Loop,
    Nest,
    Region,
    Scope,
    make_sequence,
)
from microtron.isa.config import tiny
from microtron.isa.instructions import (
    AluOp,
    Gemm,
    GemmFlags,
    Load,
    MicroOp,
    Requantize,
    RequantizeFlags,
)
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

FEW = replace(tiny, uop_bytes=16 * MicroOp.size)        # sums of more than four are divided


@st.composite
def loops(draw, operands, most=6):
    """Axes, and operands that walk with them in any way: forward, backward, not at all."""
    axes = [Axis(f"i{number}", draw(st.integers(1, 3)))
            for number in range(draw(st.integers(0, most)))]
    return axes, [Affine(900, {axis: step for axis in axes
                               if (step := draw(st.sampled_from((-7, -1, 0, 0, 1, 2, 3, 30))))})
                  for _ in range(operands)]


def iterations(axes, operands):
    """Where the operands are, each time."""
    for place in product(*(range(axis.extent) for axis in axes)):
        values = dict(zip(axes, place, strict=True))
        yield tuple(operand.at(values).constant for operand in operands)


def walk(instruction, *walks):
    """Where operands that start somewhere and step with the loops of an instruction are."""
    for place in product(*map(range, instruction.loops)):
        yield tuple(first + sum(number * step for number, step in zip(place, steps, strict=True))
                    for first, steps in walks)


@given(loops(2))
def test_an_operation_with_a_constant_visits_every_iteration_once(case):
    axes, (dst, src) = case
    code = list(immediates(axes, AluOp.ADD, dst, src, immediate=-9))
    assert {(each.op, each.immediate) for each in code} == {(AluOp.ADD, -9)}
    assert Counter(place for each in code for place in walk(
        each, (each.dst, each.dst_stride), (each.src, each.src_stride))) == Counter(
            iterations(axes, (dst, src)))


@given(loops(2))
def test_an_operation_of_two_tiles_visits_every_iteration_once(case):
    axes, (dst, right) = case
    left = dst + Affine(50)
    code = list(alus(axes, AluOp.SUB, dst, left, right))
    assert {each.op for each in code} == {AluOp.SUB}
    assert Counter(place for each in code for place in walk(
        each, (each.dst, each.dst_stride), (each.lhs, each.dst_stride),
        (each.rhs, each.rhs_stride))) == Counter(iterations(axes, (dst, left, right)))


def test_a_left_operand_that_walks_its_own_way_is_refused():
    i = Axis("i", 4)
    with pytest.raises(CompileError, match=r"alu\.max: the left operand must walk through the "
                                           r"accumulator as the result does"):
        list(alus([i], AluOp.MAX, Affine(0, {i: 1}), Affine(9, {i: 2}), Affine(50, {i: 1})))


@given(loops(1))
def test_a_fill_reaches_every_tile(case):
    axes, (dst,) = case
    code = list(fills(axes, dst, -3))
    assert {(each.op, each.immediate) for each in code} == {(AluOp.MOVE, -3)}
    assert Counter(place for each in code for place in walk(
        each, (each.dst, each.dst_stride))) == Counter(iterations(axes, (dst,)))


@given(loops(2), st.integers(0, 2))
def test_a_requantization_has_the_parameters_of_its_channels(case, channel_axes):
    axes, (out, acc) = case
    bias = Affine(60, {axis: 3 * (number + 1) for number, axis in enumerate(axes[:channel_axes])})
    parameters = [bias, bias + Affine(1), bias + Affine(2)]
    pattern = Requantize(flags=RequantizeFlags.EVEN, zero_point=4, low=-5, high=6)
    code = list(requantizes(axes, out, acc, parameters, pattern))
    assert {(each.flags, each.zero_point, each.low, each.high) for each in code} == {
        (RequantizeFlags.EVEN, 4, -5, 6)}
    assert Counter(place for each in code for place in walk(
        each, (each.dst, each.dst_stride), (each.src, each.src_stride),
        (each.params, (each.params_stride, 0, 0)))) == Counter(iterations(axes, (out, acc, bias)))


@pytest.mark.parametrize("multiplier", [0, 2])
def test_parameters_that_are_not_in_a_row_are_refused(multiplier):
    with pytest.raises(CompileError, match="must be three accumulator tiles in a row"):
        list(requantizes([], Affine(0), Affine(9), [Affine(3), Affine(3 + multiplier), Affine(5)],
                         Requantize()))


class Machine:
    """Micro-ops as loads leave them in their scratchpad, and the products of gemms."""

    def __init__(self, kernels):
        self.kernels, self.scratchpad = kernels, {}

    def products(self, code):
        """Every product: its tiles, and whether it begins a sum."""
        for each in code:
            if isinstance(each, Load):
                first, count = each.offset // MicroOp.size, each.shape[2]
                assert each.shape == (1, 1, count)
                for place in range(count):
                    self.scratchpad[each.sram + place] = self.kernels.micro_ops[first + place]
            else:
                yield from self._gemm(each)

    def _gemm(self, gemm):
        for place in product(*map(range, gemm.loops)):
            for number in range(gemm.count):
                tiles = self.scratchpad[gemm.uop + number]
                moved = tuple(tile + sum(map(int.__mul__, place, steps)) for tile, steps in zip(
                    tiles, (gemm.dst_stride, gemm.src_stride, gemm.wgt_stride), strict=True))
                yield moved, bool(gemm.flags & GemmFlags.START) and (
                    number == 0 or not gemm.flags & GemmFlags.FIRST_UOP)


@st.composite
def sums(draw):
    """Loops around a tile product. Each result has a tile of its own."""
    space, over = ([Axis(f"{name}{number}", draw(st.integers(1, 3)))
                    for number in range(draw(st.integers(0, 5)))] for name in "ik")
    order, step, dst = draw(st.permutations([*space, *over])), 1, Affine(5)
    for axis in draw(st.permutations(space)):
        dst, step = dst + Affine(0, {axis: step}), step * axis.extent + draw(st.integers(0, 2))
    src, wgt = (Affine(400, {axis: each for axis in order if (each := draw(st.integers(-3, 9)))})
                for _ in range(2))
    return order, (dst, src, wgt)


@given(sums(), st.booleans(), st.sampled_from((PLAIN, GemmFlags.DEPTHWISE, GemmFlags.OUT)))
def test_every_product_is_computed_once_and_the_first_begins_its_sum(case, starts, mode):
    axes, operands = case
    kernels = MicroKernels(FEW)
    code = list(gemms(axes, *operands, kernels, starts=starts, mode=mode))
    assert all(each.flags & (GemmFlags.DEPTHWISE | GemmFlags.OUT) == mode
               for each in code if isinstance(each, Gemm))
    products = list(Machine(kernels).products(code))
    assert Counter(tiles for tiles, _ in products) == Counter(iterations(axes, operands))
    begun = set()
    for (dst, _, _), begins in products:
        assert begins == (starts and dst not in begun)
        begun.add(dst)


@given(st.lists(st.integers(1, 16).flatmap(lambda length: st.tuples(
    st.integers(0, 3), st.just(length))), max_size=12))
def test_micro_ops_are_where_a_gemm_is_told_to_find_them(wanted):
    """Sequences of all lengths come and go; each is in the scratchpad when it is used."""
    kernels = MicroKernels(FEW)
    machine = Machine(kernels)
    for start, length in wanted:
        sequence = tuple((start + number, number, start) for number in range(length))
        first, loads = kernels.place(sequence)
        list(machine.products(loads))
        assert first + length <= 16
        assert tuple(machine.scratchpad[first + number] for number in range(length)) == sequence
    assert len(kernels.micro_ops) == sum(length for _, length in set(wanted))


def test_a_constant_is_added_in_more_loops_than_the_hardware_has():
    """Loops of gaps, none of which joins another: two of five are written out."""
    extents, steps, lanes = (2, 3, 2, 3, 2), (129, 42, 17, 5, 2), tiny.block_out
    axes = [Axis(f"i{number}", extent) for number, extent in enumerate(extents)]
    tile = sum((axis * step for axis, step in zip(axes, steps, strict=True)), Constant(0))
    x, y = Buffer("x", (300, 1, lanes), "int32"), Buffer("y", (300, 1, lanes), "int32")
    inside = Buffer("inside", x.shape, "int32", Scope.ACC)
    zero = Constant(0)
    whole, there, back = (Region(each, (zero, zero, zero), x.shape) for each in (inside, x, y))
    region = Region(inside, (tile, zero, zero), (1, 1, lanes))
    add = immediate(tiny, AluOp.ADD, 1000)
    body = Invoke(add.name, (region, region))
    for axis in reversed(axes):
        body = Loop(axis, body)
    nest = Nest((x,), (y,), Allocate(inside, make_sequence(
        Copy(whole, there), body, Copy(back, whole))))
    program = emit(nest, tiny, [add])
    verify(program)
    values = np.random.default_rng(0).integers(-99, 99, x.shape, np.int32)
    outputs, _ = run(program, {"x": values})
    expected = values.copy()
    for place in product(*map(range, extents)):
        expected[sum(map(int.__mul__, place, steps))] += 1000
    assert np.array_equal(outputs["y"], expected)
