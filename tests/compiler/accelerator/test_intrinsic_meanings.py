"""Declared intrinsics do to arrays what their expressions say, so that a nest with intrinsics can
be compared with the loops that it came from."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.accelerator.selection.form_transfers import form_transfers
from microtron.compiler.accelerator.selection.intrinsic import accelerator_intrinsics
from microtron.compiler.accelerator.selection.intrinsic_meanings import meanings
from microtron.compiler.accelerator.selection.tensorize import tensorize
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import Invoke, Scope, statements_of
from microtron.compiler.nest.run import interpret
from microtron.compiler.nest.verify_nest import verify_nest
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule
from microtron.isa.config import tiny

RNG = np.random.default_rng(3)
INTRINSICS = accelerator_intrinsics(tiny)
MEANINGS = meanings(INTRINSICS.values())
LANES = (tiny.batch, tiny.block_out)


def int32(shape=LANES):
    return RNG.integers(-2**31, 2**31, shape, np.int32)


def int8(shape):
    return RNG.integers(-128, 128, shape, np.int8)


def test_a_gemm_adds_a_product_to_what_is_there_and_wraps():
    acc, inp, wgt = int32(), int8((tiny.batch, tiny.block_in)), int8((tiny.block_out,
                                                                      tiny.block_in))
    expected = acc.astype(np.int64) + inp.astype(np.int64) @ wgt.astype(np.int64).T
    MEANINGS["gemm"](acc, inp, wgt)
    np.testing.assert_array_equal(acc, expected.astype(np.int32))


def test_a_pool_keeps_the_larger():
    acc, source = int32(), int32()
    expected = np.maximum(acc, source)
    MEANINGS["pool"](acc, source)
    np.testing.assert_array_equal(acc, expected)


def test_an_element_wise_operation_replaces_what_is_there():
    acc, left, right = int32(), int32(), int32()
    MEANINGS["alu.sub"](acc, left, right)
    np.testing.assert_array_equal(acc, left - right)


def test_leading_dimensions_only_say_which_tile():
    acc, left, right = (int32((1, 1, *LANES)) for _ in range(3))
    MEANINGS["alu.add"](acc, left, right)
    np.testing.assert_array_equal(acc, left + right)


@pytest.mark.parametrize("seed", [None, 1])
def test_every_pass_keeps_what_a_tiled_matmul_computes(seed):
    rows, outputs, depth = 3, 2, 5
    x = placeholder("x", (rows, depth, tiny.batch, tiny.block_in), "int8")
    w = placeholder("w", (outputs, depth, tiny.block_out, tiny.block_in), "int8")
    c, k = reduce_axis("c", depth), reduce_axis("k", tiny.block_in)
    y = compute("y", (rows, outputs, *LANES), lambda r, o, b, j: total(
        x[r, c, b, k].cast("int32") * w[o, c, j, k].cast("int32"), c, k))
    arrays = {x: int8(x.shape), w: int8(w.shape)}
    expected = evaluate(y, arrays)

    plan = Schedule(y)
    acc = plan.cache_write(y, Scope.ACC)
    plan.cache_read(x, Scope.INP, acc)
    plan.cache_read(w, Scope.WGT, plan.replacement_of(acc))
    acc, last = plan.replacement_of(acc), plan[plan.replacement_of(y)]
    last.bind_threads(last.leaves[0])
    plan[acc].compute_at(last, last.leaves[0])
    stage = plan[acc]
    r, o, b, j, c, k = stage.leaves
    stage.reorder(r, o, c, b, j, k)
    stage.tensorize(b, "gemm")

    nest = lower(plan)
    for change in (lambda nest: nest, lambda nest: tensorize(nest, INTRINSICS), form_transfers):
        nest = change(nest)
        verify_nest(nest)
        given = {buffer: arrays[tensor] for buffer in nest.inputs for tensor in arrays
                 if tensor.name == buffer.name}
        result, = interpret(nest, given, intrinsics=MEANINGS, seed=seed).values()
        np.testing.assert_array_equal(result, expected)
    assert any(isinstance(each, Invoke) and each.intrinsic == "gemm"
               for each in statements_of(nest.body))
