"""Loops become intrinsics where they are the same, and a reason is given where they are not."""

import pytest

from microtron.compiler.accelerator.selection.intrinsic import accelerator_intrinsics
from microtron.compiler.accelerator.selection.tensorize import tensorize
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.expression import total
from microtron.compiler.expression.tensor import compute, placeholder, reduce_axis
from microtron.compiler.nest.nest import Invoke, Scope, Start, statements_of
from microtron.compiler.schedule.lower import lower
from microtron.compiler.schedule.schedule import Schedule
from microtron.isa.config import tiny

BLOCK = tiny.block_in


def product(depth=2, columns=3, *, lanes=BLOCK, swapped=False, dtype="int8", scope=Scope.ACC,
            inner=None):
    """A blocked matrix product, tensorized at its tile."""
    x = placeholder("x", (5, depth, 1, lanes), dtype)
    w = placeholder("w", (columns, depth, BLOCK, lanes), dtype)
    c, k = reduce_axis("c", depth), reduce_axis("k", lanes)

    def value(r, o, b, j):
        left, right = x[r, c, b, k].cast("int32"), w[o, c, j, k].cast("int32")
        return total(right * left if swapped else left * right, c, k)

    y = compute("y", (5, columns, 1, BLOCK), value)
    schedule = Schedule(y)
    inside = schedule.cache_write(y, scope)
    schedule.cache_read(x, Scope.INP, inside)
    schedule.cache_read(w, Scope.WGT, schedule.replacement_of(inside))
    stage = schedule[schedule.replacement_of(inside)]
    r, o, b, j, c, k = stage.leaves
    stage.reorder(c, r, o, b, j, k)
    stage.tensorize(inner(stage) if inner else b, "gemm")
    return schedule


def invokes(schedule):
    nest = tensorize(lower(schedule), accelerator_intrinsics(tiny))
    return [each for each in statements_of(nest.body) if isinstance(each, Invoke | Start)]


def test_a_tile_product_is_a_gemm_and_the_start_of_its_sums():
    start, gemm = invokes(product())
    assert isinstance(start, Start)
    assert (start.intrinsic, gemm.intrinsic) == ("gemm", "gemm")
    assert (str(start.target), start.value) == ("y.acc[r, o, 0, 0 :+ 4]", 0)
    assert [str(region) for region in gemm.regions] == [
        "y.acc[r, o, 0, 0 :+ 4]", "x.inp[r, c, 0, 0 :+ 4]", "w.wgt[o, c, 0 :+ 4, 0 :+ 4]"]


@pytest.mark.parametrize(("change", "reason"), [
    ({"lanes": 2}, r"the last dimensions of x.inp are \(1, 2\), but a tile of inp has \(1, 4\)"),
    ({"swapped": True}, "w.wgt lies in wgt, but must lie in inp"),
    ({"dtype": "int16"}, "x.inp is int16, but must be int8"),
    ({"scope": Scope.OUT}, "y.out lies in out, but must lie in acc"),
    ({"inner": lambda stage: stage.leaves[0]}, "has no part in it; tensorize the loop inside"),
    ({"inner": lambda stage: stage.split(stage.leaves[-2], 3)[0]},
     r"y.acc\[.*\] is computed only where .* < 4\); split its axes by factors that divide them"),
    ({"inner": lambda stage: stage.leaves[-1]}, "the loop over j is a part of it, but stands"),
])
def test_what_does_not_match_is_explained(change, reason):
    with pytest.raises(CompileError, match=f"these loops are not gemm: .*({reason})"):
        invokes(product(**change))


def test_an_unknown_intrinsic_is_named():
    schedule = product()
    for stage in schedule.stages.values():
        if stage.intrinsic:
            stage.intrinsic = stage.intrinsic[0], "gem"
    with pytest.raises(CompileError, match="there is no intrinsic 'gem'; there are gemm, "):
        invokes(schedule)
