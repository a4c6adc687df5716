"""Intrinsics that take the place of a stage's loops before these are built."""

import pytest

from microtron.compiler.accelerator.lower_schedule import Selection, lower_to_intrinsics
from microtron.compiler.accelerator.selection.intrinsic import accelerator_intrinsics
from microtron.compiler.accelerator.selection.stage_tiles import pairs_of
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import DMA
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.choice import rank_candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.config import tiny


def product(of=lambda one, other: one * other):
    x, w = placeholder("x", (1, 4), "int8"), placeholder("w", (4, 4), "int8")
    k = reduce_axis("k", 4)
    return x, w, compute("y", (1, 4), lambda i, j: total(
        of(x[i, k].cast("int32"), w[j, k].cast("int32")), k))


@pytest.mark.parametrize("pad", [0, 1])
def test_of_a_convolution_no_loops_of_an_intrinsic_are_built(monkeypatch, pad):
    spec = Conv2d(height=5, width=5, channels_in=9, channels_out=9, pad=pad)
    operator = operator_of(spec)
    best, *_ = rank_candidates(operator.template, operator.forms_of(spec, tiny))
    built, usual = [], Selection.convert_perfect

    def convert_perfect(selection, intrinsic, loops, *, starts):
        built.append(intrinsic)
        return usual(selection, intrinsic, loops, starts=starts)

    monkeypatch.setattr(Selection, "convert_perfect", convert_perfect)
    plan = operator.template.schedule(best.form, best.knobs)
    lower_to_intrinsics(plan, tiny, best.form.intrinsics)
    assert set(built) == {DMA}


def test_operands_are_found_in_the_order_of_the_intrinsic():
    gemm = accelerator_intrinsics(tiny)["gemm"]
    x, w, y = product()
    found = pairs_of(gemm, y.body)
    assert [each.element.tensor for each in found] == [x, w]
    assert [each.tensor for each in found] == list(gemm.operands[1:])


@pytest.mark.parametrize("body", [
    product(lambda one, other: one + other)[2].body,            # another operation
    product(lambda one, other: one * 3)[2].body,                # a constant for an operand
    product()[2].body.value,                                    # nothing is summed up
])
def test_a_body_that_is_unlike_the_intrinsic_takes_a_closer_look(body):
    assert pairs_of(accelerator_intrinsics(tiny)["gemm"], body) is None
