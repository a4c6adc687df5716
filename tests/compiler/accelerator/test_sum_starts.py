"""Sums begin with their first product, and are cleared only where something else comes first."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.accelerator.emission.emit import emit
from microtron.compiler.accelerator.emission.sum_starts import Starts, Tiles, copied_tiles
from microtron.compiler.accelerator.selection.hardware_loops import Walk
from microtron.compiler.errors import CompileError
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
    Start,
    make_sequence,
)
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, AluOp, Gemm, GemmFlags
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

LANES = tiny.block_out
ZERO = Constant(0)


def box(first, *walks):
    return Tiles(first, tuple(Walk(count, (step,)) for count, step in walks))


def clears(code):
    return [(each.dst, each.loops, each.dst_stride) for each in code if isinstance(each, AluI)
            and each.op == AluOp.MOVE]


@pytest.mark.parametrize(("one", "other", "meet"), [
    (box(0, (8, 1)), box(8, (8, 1)), False), (box(0, (8, 1)), box(7, (8, 1)), True),
    (box(0, (4, 2)), box(1, (4, 2)), False), (box(0, (4, 2)), box(6), True),
    (box(9, (3, -4)), box(0, (5, 1)), True), (box(9, (3, -4)), box(2, (3, 1)), False),
], ids=("neighbours", "overlap", "between", "last", "backwards", "in a gap"))
def test_tiles_meet_where_one_is_in_both(one, other, meet):
    assert one.meets(other) == other.meets(one) == meet


def test_products_to_just_the_noted_tiles_begin_their_sums_once():
    starts = Starts()
    assert list(starts.note(box(4, (6, 1)), 0)) == []
    assert not starts.begin_sums(box(4, (5, 1)))
    assert starts.begin_sums(box(4, (6, 1)))
    assert not starts.begin_sums(box(4, (6, 1)))


def test_what_is_touched_before_is_cleared_in_one_instruction_and_nothing_else_is():
    starts = Starts()
    for first in (0, 32, 64):
        assert list(starts.note(box(first, (4, 8), (6, 1)), 0)) == []
    assert clears(starts.clear_touched([box(40)])) == [(32, (1, 4, 6), (0, 8, 1))]
    assert clears(starts.clear_touched([box(40), box(7)])) == []
    assert starts.begin_sums(box(0, (4, 8), (6, 1)))
    assert starts.begin_sums(box(64, (4, 8), (6, 1)))


def test_sums_that_begin_anew_elsewhere_leave_no_tile_uncleared():
    starts = Starts()
    assert list(starts.note(box(0, (8, 1)), 0)) == []
    assert clears(starts.note(box(4, (8, 1)), 0)) == [(0, (1, 1, 8), (0, 0, 1))]
    assert list(starts.note(box(4, (8, 1)), 0)) == []


def test_the_tiles_of_a_copy_are_those_of_its_box():
    buffer = Buffer("b", (3, 5, 1, LANES), "int32", Scope.ACC)
    region = Region(buffer, (ZERO,) * 4, (2, 3, 1, LANES))
    assert copied_tiles(7, region).each() == {7, 8, 9, 12, 13, 14}


class Rows:
    """Products of rows of x with w, in two accumulators."""

    def __init__(self, rows=4):
        self.rows = rows
        self.x = Buffer("x", (rows, 1, LANES), "int8")
        self.w = Buffer("w", (1, LANES, LANES), "int8")
        self.inp = Buffer("x.inp", self.x.shape, "int8", Scope.INP)
        self.wgt = Buffer("w.wgt", self.w.shape, "int8", Scope.WGT)
        self.sums = [Buffer(f"sums{each}", (rows, 1, LANES), "int32", Scope.ACC)
                     for each in range(2)]
        self.results = [Buffer(f"y{each}", (rows, 1, LANES), "int32") for each in range(2)]

    def whole(self, buffer):
        return Region(buffer, (ZERO,) * len(buffer.shape), buffer.shape)

    def tile(self, buffer, axis):
        return Region(buffer, (axis if buffer.shape[0] > 1 else ZERO, ZERO, ZERO),
                      (1, *buffer.shape[1:]))

    def start(self, which, value=0):
        row = Axis("row", self.rows)
        return Loop(row, Start("gemm", self.tile(self.sums[which], row), value))

    def multiply(self, which):
        row = Axis("row", self.rows)
        operands = tuple(self.tile(each, row) for each in (self.sums[which], self.inp, self.wgt))
        return Loop(row, Invoke("gemm", operands))

    def add_itself(self, which):
        row = Axis("row", self.rows)
        tile = self.tile(self.sums[which], row)
        return Loop(row, Invoke("alu.add", (tile, tile, tile)))

    def store(self, which):
        return Copy(self.whole(self.results[which]), self.whole(self.sums[which]))

    def program(self, *statements):
        body = make_sequence(Copy(self.whole(self.inp), self.whole(self.x)),
                             Copy(self.whole(self.wgt), self.whole(self.w)), *statements)
        for buffer in (self.inp, self.wgt, *self.sums):
            body = Allocate(buffer, body)
        program = emit(Nest((self.x, self.w), tuple(self.results), body), tiny)
        verify(program)
        return program

    def computed(self, program):
        rng = np.random.default_rng(0)
        x, w = (rng.integers(-128, 128, each.shape, np.int8) for each in (self.x, self.w))
        outputs, _ = run(program, {"x": x, "w": w})
        product = x[:, 0].astype(np.int64) @ w[0].astype(np.int64).T
        return [outputs[each.name][:, 0] for each in self.results], product


def test_other_sums_that_have_not_begun_are_left_alone():
    rows = Rows()
    program = rows.program(rows.start(0), rows.start(1), rows.multiply(0), rows.add_itself(0),
                           rows.store(0), rows.multiply(1), rows.store(1))
    code = decode(program.code)
    assert clears(code) == []
    assert all(each.flags & GemmFlags.START for each in code if isinstance(each, Gemm))
    (one, other), product = rows.computed(program)
    assert np.array_equal(one, 2 * product)
    assert np.array_equal(other, product)


def test_sums_of_nothing_are_zero():
    rows = Rows()
    program = rows.program(rows.start(0), rows.start(1), rows.add_itself(0), rows.multiply(0),
                           rows.store(0), rows.store(1))
    assert len(clears(decode(program.code))) == 2
    (one, other), product = rows.computed(program)
    assert np.array_equal(one, product)
    assert not other.any()


def test_sums_of_nothing_are_the_value_that_they_start_from():
    rows = Rows()
    program = rows.program(rows.start(0, 7), rows.start(1, -5), rows.add_itself(0), rows.store(0),
                           rows.store(1))
    (one, other), _ = rows.computed(program)
    assert (one == 14).all()
    assert (other == -5).all()


@pytest.mark.parametrize("kind", [Invoke, Start])
def test_an_intrinsic_that_nobody_knows_is_refused(kind):
    rows = Rows()
    region = rows.whole(rows.sums[0])
    statement = Start("odd", region, 0) if kind is Start else Invoke("odd", (region,))
    with pytest.raises(CompileError, match=r"there is no intrinsic 'odd'; there are gemm, .*alu"):
        rows.program(statement)
