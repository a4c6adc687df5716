"""Nests become streams that the verifier accepts and that compute what the expression means."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.errors import IsaError
from microtron.compiler.accelerator.emission import emit as module
from microtron.compiler.accelerator.emission.emit import Emitter, emit
from microtron.compiler.accelerator.lower_schedule import build
from microtron.compiler.accelerator.selection.form_transfers import form_transfers
from microtron.compiler.accelerator.selection.instructions import MicroKernels
from microtron.compiler.accelerator.selection.intrinsic import accelerator_intrinsics
from microtron.compiler.accelerator.selection.tensorize import tensorize
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import Axis, Constant, total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
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
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule
from microtron.isa.config import tiny
from microtron.isa.instructions import AluI, Gemm, GemmFlags, Load, MicroOp, Sync
from microtron.isa.instructions import Buffer as Scratchpad
from microtron.isa.program import SEGMENT_BYTES_LIMIT
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run
from microtron.sim.simulate import simulate

BLOCK = tiny.block_in
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "new_intrinsic.py"


class Product:
    """A blocked matrix product: rows of tiles, in steps of some rows, summed in pieces."""

    def __init__(self, rows=12, depth=4, columns=3, step=4, piece=2, *, threads=1, copies=1,
                 kept=1, period=0, config=tiny):
        self.config = config
        self.x = placeholder("x", (rows, depth, 1, BLOCK), "int8")
        self.w = placeholder("w", (columns, depth, BLOCK, BLOCK), "int8")
        c, k = reduce_axis("c", depth), reduce_axis("k", BLOCK)
        self.y = compute("y", (rows, columns, 1, BLOCK), lambda r, o, b, j: total(
            self.x[r, c, b, k].cast("int32") * self.w[o, c, j, k].cast("int32"), c, k))
        plan = self.schedule = Schedule(self.y)
        inside = plan.cache_write(self.y, Scope.ACC)
        x = plan.cache_read(self.x, Scope.INP, inside)
        w = plan.cache_read(self.w, Scope.WGT, plan.replacement_of(inside))
        inside, outside = plan.replacement_of(inside), plan.replacement_of(self.y)
        far, _ = plan[outside].split(plan[outside].leaves[0], step)
        if threads > 1:
            far, thread = plan[outside].split(far, threads)
            plan[outside].bind_threads(thread)
            far = thread
        plan[inside].compute_at(plan[outside], far)
        stage = self.sums = plan[inside]
        r, o, b, j, c, k = stage.leaves
        c_far, c_near = stage.split(c, piece)
        stage.reorder(c_far, r, o, c_near, b, j, k)
        stage.tensorize(b, "gemm")
        for each, number in ((x, copies), (w, kept)):
            plan[each].compute_at(stage, c_far)
            plan[each].keep(number, period if each is w else 0)
        plan[inside].keep(copies)

    def program(self, **options):
        nest = form_transfers(tensorize(lower(self.schedule), accelerator_intrinsics(self.config)))
        program = emit(nest, self.config, **options)
        verify(program)
        return program

    def is_right(self, program):
        rng = np.random.default_rng(0)
        values = {tensor: rng.integers(-128, 128, tensor.shape, dtype=np.int8)
                  for tensor in (self.x, self.w)}
        outputs, _ = run(program, {tensor.name: each for tensor, each in values.items()})
        return (outputs["y"] == evaluate(self.y, values)).all()


def of_kind(program, kind):
    return [each for each in decode(program.code) if isinstance(each, kind)]


@pytest.mark.parametrize("shape", [
    {}, {"rows": 11}, {"rows": 10, "step": 3, "depth": 5}, {"depth": 3, "piece": 3},
    {"threads": 2}, {"threads": 2, "rows": 14, "copies": 2}, {"copies": 2, "kept": 4},
    {"rows": 1, "columns": 1, "depth": 1, "piece": 1, "step": 1},
])
def test_streams_compute_what_the_expression_means(shape):
    product = Product(**shape)
    assert product.is_right(product.program())


@given(period=st.integers(4, 9), kept=st.integers(1, 12), steps=st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_a_part_of_what_comes_again_stays_on_the_chip(period, kept, steps):
    product = Product(rows=2 * steps, step=2, columns=1, depth=period, piece=1, kept=kept,
                      period=period)
    program = product.program()
    assert product.is_right(program)
    staying = period if kept >= period else max(kept - 2, 0)
    weights = [each for each in of_kind(program, Load) if each.buffer == Scratchpad.WGT]
    assert len(weights) == period + (steps - 1) * (period - staying)


def test_what_stays_is_spread_evenly_over_a_period():
    weights = [each for each in decode(Product(
        rows=4, step=2, columns=1, depth=9, piece=1, kept=5, period=9).program().code)
        if isinstance(each, Gemm) or (isinstance(each, Load) and each.buffer == Scratchpad.WGT)]
    loaded = "".join("l" if isinstance(each, Load) else "g" for each in weights)
    assert loaded == "lg" * 9 + "glglg" * 3


def test_sums_begin_with_their_first_product_and_need_no_clearing():
    gemms = of_kind(Product(rows=4, depth=4, piece=2).program(), Gemm)
    assert [bool(gemm.flags & GemmFlags.START) for gemm in gemms] == [True, False]
    assert gemms[0].flags == GemmFlags.START | GemmFlags.FIRST_UOP


def test_sums_begin_with_their_products_where_loops_are_written_out_too():
    product = Product(rows=4, depth=4, piece=2)
    row = product.sums.leaves[1]
    product.sums.unroll(row)
    program = product.program()
    assert product.is_right(program)
    assert of_kind(program, AluI) == []
    gemms = of_kind(program, Gemm)
    assert [bool(gemm.flags & GemmFlags.START) for gemm in gemms] == [True] * 4 + [False] * 4


def test_loops_over_the_output_are_hardware_loops_and_sums_micro_ops():
    gemm, = of_kind(Product(rows=4, depth=4, piece=4).program(), Gemm)
    assert gemm.count == 4
    assert np.prod(gemm.loops) == 4 * 3


@pytest.mark.parametrize(("micro_ops", "count"), [(2, 1), (4, 1), (16, 1), (32, 6)])
def test_sums_are_divided_where_micro_ops_are_few(micro_ops, count):
    product = Product(depth=6, piece=6, config=replace(tiny, uop_bytes=micro_ops * MicroOp.size))
    program = product.program()
    assert product.is_right(program)
    assert {gemm.count for gemm in of_kind(program, Gemm)} == {count}


def test_a_sequence_that_is_longer_than_the_scratchpad_is_refused():
    kernels = MicroKernels(replace(tiny, uop_bytes=4 * MicroOp.size))
    assert kernels.place(((0, 0, 0),) * 4)[0] == 0
    with pytest.raises(CompileError, match="a gemm of 5 micro-ops does not fit in uop, which has "
                                           "room for 4"):
        kernels.place(((0, 0, 0),) * 5)


def test_what_is_kept_is_loaded_once():
    def weight_loads(kept):
        loads = of_kind(Product(kept=kept).program(), Load)
        return sum(load.buffer.name == "WGT" for load in loads)
    assert (weight_loads(1), weight_loads(2)) == (6, 2)


def test_what_lay_where_another_buffer_came_between_is_loaded_again():
    """Two inputs share a place by turns: neither may count on still being there."""
    names = {name: Buffer(name, (1, 1, BLOCK), "int32") for name in ("a", "b")}
    results = {name: Buffer(f"{name}_again", (3, 1, BLOCK), "int32") for name in names}
    i, zero = Axis("i", 3), Constant(0)
    parts = []
    for name, buffer in names.items():
        inside = Buffer(f"{name}.acc", buffer.shape, "int32", Scope.ACC)
        first, there, here = (Region(each, (start, zero, zero), (1, 1, BLOCK)) for each, start in (
            (inside, zero), (buffer, zero), (results[name], i)))
        parts.append(Allocate(inside, make_sequence(Copy(first, there), Copy(here, first))))
    nest = Nest(tuple(names.values()), tuple(results.values()), Loop(i, make_sequence(*parts)))
    program = emit(nest, tiny)
    verify(program)
    outputs, _ = run(program, {"a": np.full((1, 1, BLOCK), 1, np.int32),
                               "b": np.full((1, 1, BLOCK), 2, np.int32)})
    assert (outputs["a_again"] == 1).all()
    assert (outputs["b_again"] == 2).all()


def test_what_was_changed_where_it_lies_is_loaded_again():
    x, i, zero = Buffer("x", (2, 1, BLOCK), "int32"), Axis("i", 3), Constant(0)
    inside = Buffer("inside", x.shape, "int32", Scope.ACC)
    y = Buffer("y", (6, 1, BLOCK), "int32")
    whole, there, here = (Region(each, (start, zero, zero), x.shape) for each, start in (
        (inside, zero), (x, zero), (y, i * 2)))
    t = Axis("t", 2)
    tile = Region(inside, (t, zero, zero), (1, 1, BLOCK))
    nest = Nest((x,), (y,), Loop(i, Allocate(inside, make_sequence(
        Copy(whole, there), Loop(t, Invoke("alu.add", (tile, tile, tile))), Copy(here, whole)))))
    program = emit(nest, tiny)
    verify(program)
    values = np.arange(2 * BLOCK, dtype=np.int32).reshape(x.shape)
    assert np.array_equal(run(program, {"x": values})[0]["y"], np.tile(2 * values, (3, 1, 1)))


def test_micro_kernels_are_loaded_once_and_just_before_they_are_used():
    product = Product(rows=12, copies=1, kept=2)
    kinds = [(type(each), getattr(each, "buffer", None)) for each in decode(product.program().code)]
    loads = [each for each in of_kind(product.program(), Load) if each.buffer.name == "UOP"]
    assert len(loads) == 2
    assert kinds.index((Load, loads[0].buffer)) < kinds.index((Gemm, None))


def test_two_buffers_by_turns_hide_latency():
    cycles = {name: simulate(product.program(**options)).cycles for name, product, options in (
        ("one", Product(rows=48), {}), ("two", Product(rows=48, copies=2, kept=2), {}),
        ("turns", Product(rows=48, copies=2, kept=2), {"hide_latency": False}))}
    assert cycles["two"] < cycles["one"] < cycles["turns"]


def test_threads_hide_latency_too():
    threads = simulate(Product(rows=48, threads=2).program()).cycles
    assert threads < simulate(Product(rows=48).program()).cycles


def test_without_latency_hiding_engines_take_turns():
    program = Product(copies=2).program(hide_latency=False)
    assert len(of_kind(program, Sync)) > len(of_kind(program, Gemm))
    assert Product(copies=2).is_right(program)


def test_what_does_not_fit_is_named_with_how_much_is_too_much():
    with pytest.raises(CompileError, match=r"x.inp does not fit in inp: it takes 2 × 400 tiles, "
                                           r"but there are 512: 288 too many"):
        Product(rows=50, step=50, columns=1, depth=8, piece=8, copies=2).program()


def test_a_segment_that_cannot_be_addressed_is_refused_before_anything_is_emitted(monkeypatch):
    def never(*_):
        raise AssertionError("emitted")
    monkeypatch.setattr(Emitter, "_write", never)
    with pytest.raises(IsaError, match=f"segment x: size is 8589934592, but must be from 1 "
                                       f"to {SEGMENT_BYTES_LIMIT}"):
        Product(rows=1 << 29, depth=4, step=8).program()


@pytest.mark.parametrize("rows", [1 << 20, (1 << 28) - 1])
def test_loops_that_would_never_be_written_out_are_refused_at_once(rows, monkeypatch):
    monkeypatch.delattr(Emitter, "_write")
    with pytest.raises(CompileError, match=r"loops that are written out go through \d{7,} "
                                           r"transfers and intrinsics, but a program has at most "
                                           r"1048576 instructions"):
        Product(rows=rows, columns=1, depth=2, piece=1, step=1).program()


def test_instructions_are_counted_when_a_statement_is_many_of_them(monkeypatch):
    product = Product(rows=12, piece=4, config=replace(tiny, uop_bytes=2 * MicroOp.size))
    needed = len(product.program().code) - 1            # the last one is the sync at the end
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", needed)
    assert product.is_right(product.program())
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", needed - 1)
    with pytest.raises(CompileError, match=f"a program has at most {needed - 1} instructions, and"):
        product.program()


def test_a_sum_over_nothing_that_moves_is_refused_at_once():
    """Loops around one intrinsic can be more than the hardware has: they are written out too."""
    x, w = placeholder("x", (1, 1, BLOCK), "int8"), placeholder("w", (1, BLOCK, BLOCK), "int8")
    c, k = reduce_axis("c", 1 << 60), reduce_axis("k", BLOCK)
    y = compute("y", x.shape, lambda t, b, o: total(
        x[t, b, k].cast("int32") * w[t, o, k].cast("int32"), c, k))
    plan = Schedule(y)
    inside = plan.cache_write(y, Scope.ACC)
    plan.cache_read(x, Scope.INP, inside)
    plan.cache_read(w, Scope.WGT, plan.replacement_of(inside))
    stage = plan[plan.replacement_of(inside)]
    t, b, o, c, k = stage.leaves
    stage.reorder(c, t, b, o, k)
    stage.tensorize(b, "gemm")
    with pytest.raises(CompileError, match="1152921504606846976 iterations around an intrinsic "
                                           "cannot be written out"):
        build(plan, tiny)


def test_what_no_instruction_computes_is_named():
    x = placeholder("x", (4, 1, BLOCK), "int32")
    y = compute("y", x.shape, lambda t, b, o: x[t, b, o] + 1)
    with pytest.raises(CompileError, match=r"^y\[t, b, o\] = x\[t, b, o\] \+ 1: the accelerator "
                                           r"has no instruction for this; tensorize its loops"):
        emit(lower(Schedule(y)), tiny)


def test_a_buffer_that_the_accelerator_does_not_have_is_refused():
    x = placeholder("x", (4, 1, BLOCK), "int8")
    a = compute("a", x.shape, lambda t, b, o: x[t, b, o])
    y = compute("y", x.shape, lambda t, b, o: a[t, b, o])
    with pytest.raises(CompileError, match="use cache_read or cache_write to give it a scratchpad"):
        emit(lower(Schedule(y)), tiny)


def test_an_intrinsic_of_one_s_own_takes_one_file(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "as NumPy says" in capsys.readouterr().out
