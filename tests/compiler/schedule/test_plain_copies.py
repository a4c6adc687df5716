"""Loads of boxes of inputs are copies without loops, and the same as their loops would become."""

from __future__ import annotations

import pytest

from microtron.compiler.accelerator.lower_schedule import lower_to_intrinsics
from microtron.compiler.accelerator.selection.form_transfers import form_marked
from microtron.compiler.expression.expression import both, select
from microtron.compiler.expression.tensor import compute, placeholder
from microtron.compiler.nest.listing import listing
from microtron.compiler.nest.nest import DMA, Copy, Scope, statements_of
from microtron.compiler.operators.catalogue import operator_of
from microtron.compiler.operators.choice import rank_candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.plain_copies import source_of
from microtron.isa.config import tiny

SIZE = 6


@pytest.mark.parametrize("pad", [0, 1])
def test_of_a_convolution_only_the_store_has_loops(pad):
    spec = Conv2d(height=5, width=5, channels_in=9, channels_out=9, pad=pad)
    operator = operator_of(spec)
    best, *_ = rank_candidates(operator.template, operator.forms_of(spec, tiny))
    plan = operator.template.schedule(best.form, best.knobs)
    marked = []

    class Transfers:
        def convert(self, mark):
            marked.append(mark.intrinsic)
            return form_marked(mark) if mark.intrinsic == DMA else mark

        def convert_perfect(self, intrinsic, loops, *, starts):
            return None                     # loops are built

        def convert_stage(self, *_):
            return None

        convert_start = convert_stage

    nest = lower(plan, Transfers())
    assert marked.count(DMA) == 1
    copies = [each for each in statements_of(nest.body) if isinstance(each, Copy)]
    assert len(copies) == 4                 # inputs, weights, parameters and results
    again = lower_to_intrinsics(plan, tiny, best.form.intrinsics)
    lines = {line.strip() for line in listing(again).splitlines() if "copy" in line}
    assert {line.strip() for line in listing(nest).splitlines() if "copy" in line} == lines


def border(low, high, extent=SIZE + 2, offset=1):
    """An image with a border of one, which is padded where `low` and `high` say."""
    x = placeholder("x", (SIZE,), "int8")
    return compute("y", (extent,), lambda i: select(both(low <= i, i < high), x[i - offset], 5))


def test_padding_outside_the_source_is_a_plain_load():
    found = source_of(border(1, SIZE + 1), border(1, SIZE + 1).body, Scope.INP)
    assert found is None                    # a body of other axes is none of this tensor
    y = border(1, SIZE + 1)
    found = source_of(y, y.body, Scope.INP)
    assert found is not None
    assert (found.offsets, found.padding) == ((-1,), 5)


@pytest.mark.parametrize(("low", "high"), [(2, SIZE + 1), (1, SIZE)])
def test_padding_inside_the_source_is_left_to_loops(low, high):
    y = border(low, high)
    assert source_of(y, y.body, Scope.INP) is None


def test_a_tensor_that_ends_before_its_source_is_left_to_loops():
    y = border(1, SIZE + 1, extent=SIZE)
    assert source_of(y, y.body, Scope.INP) is None
