"""The box of a tensor that several reads need together."""

import pytest

from microtron.compiler.expression.affine import Affine, affine
from microtron.compiler.expression.expression import Axis
from microtron.compiler.expression.tensor import placeholder
from microtron.compiler.schedule.regions import covering

Y = Axis("y", 4)
TENSOR = placeholder("x", (10,), "int8")


def move(constant):
    """A start that moves with a loop."""
    return affine(Y * 2 + constant)


@pytest.mark.parametrize(("sides", "start", "extent"), [
    ([(Affine(2), 3)], Affine(2), 3),
    ([(Affine(2), 3), (Affine(4), 3)], Affine(2), 5),           # overlapping
    ([(Affine(7), 1), (Affine(1), 2)], Affine(1), 7),           # apart, the later one first
    ([(Affine(1), 9)], Affine(1), 9),                           # all but one
    ([(Affine(1), 10)], Affine(), 10),                          # as large as the tensor: all of it
    ([(Affine(-3), 40)], Affine(), 10),
    ([(move(0), 3), (move(1), 3)], move(0), 4),
    ([(move(0), 3), (move(8), 2)], Affine(), 10),
    ([(move(0), 3), (Affine(0), 3)], Affine(), 10),            # nothing in common: all of it
    ([(Affine(0), 3), (move(0), 3)], Affine(), 10),
])
def test_the_box_that_covers_several_is_the_smallest_or_all_of_the_tensor(sides, start, extent):
    part = covering(TENSOR, [[side] for side in sides])
    assert part.extents == (extent,)
    assert part.start == (start,)
