"""Non-max suppression: the best of boxes that overlap."""

from __future__ import annotations

from ....expression.expression import (
    Axis,
    Expression,
    Select,
    both,
    either,
    maximum,
    minimum,
    negate,
)
from ....graph.operations.vision.suppression import NonMaxSuppression
from ....graph.types import TensorType
from ....nest.nest import Buffer, Nest, Statement, make_sequence
from ...registry import BufferOperand, lowers_to_nest
from ..lowering import is_nan, number
from ..nest_builders import assign, at, loop_over, nest_of, place_of, when, with_buffer

WIDE = "float64"                # areas are compared as the graph compares them
NONE = -1


@lowers_to_nest(NonMaxSuppression)
def non_max_suppression(operation: NonMaxSuppression, result: TensorType, target: Buffer,
                        boxes: BufferOperand, scores: BufferOperand) -> Nest:
    """For each class, the best box that is left is kept, and those that overlap it go."""
    batch, classes, size = scores.type.shape
    rows = result.shape[0]

    def everything(row: Buffer, corners: Buffer, left: Buffer) -> Statement:
        def image(axes: tuple[Axis, ...]) -> Statement:
            return make_sequence(
                loop_over((size,), lambda box: _corners(operation, boxes.buffer, corners, axes[0],
                                                        box[0])),
                loop_over((classes,), lambda label: one_class(axes[0], label[0])))

        def one_class(n: Expression, label: Expression) -> Statement:
            def begin(box: tuple[Axis, ...]) -> Statement:
                score = at(scores.buffer, n, label, box[0])
                all_ = number(True, "bool")
                return assign(left, box, all_ if operation.least is None else
                              score.cast(WIDE) > _round_to_type(operation.least, scores.type.dtype))

            def choose(_: tuple[Axis, ...]) -> Statement:
                return with_buffer("best", (1,), "int64", lambda best: make_sequence(
                    assign(best, (0,), NONE),
                    loop_over((size,),
                              lambda box: _better(scores.buffer, left, best, n, label, box[0],
                                                           size)),
                    when(at(best, 0) >= 0, keep(best))))

            def keep(best: Buffer) -> Statement:
                kept, here = place_of(at(best, 0), size), place_of(at(row, 0), rows)
                return make_sequence(
                    assign(target, (here, 0), n.cast("int64")),
                    assign(target, (here, 1), label.cast("int64")),
                    assign(target, (here, 2), at(best, 0)),
                    assign(row, (0,), at(row, 0) + 1),
                    assign(left, (kept,), number(False, "bool")),
                    loop_over((size,), lambda box: when(
                        both(at(left, box[0]),
                             _share(corners, kept, box[0]) > float(operation.overlap)),
                        assign(left, box, number(False, "bool")))))

            return make_sequence(loop_over((size,), begin),
                                 loop_over((min(operation.count, size),), choose))

        return make_sequence(
            loop_over((rows, 3), lambda axes: assign(target, axes, NONE)),
            assign(row, (0,), 0), loop_over((batch,), image))

    body = with_buffer("row", (1,), "int64",
                       lambda row: with_buffer("corners", (size, 4), WIDE, lambda corners:
                 with_buffer("left", (size,), "bool", lambda left: everything(row, corners, left))))
    return nest_of(target, body, boxes, scores)


def _round_to_type(value: float, dtype: str) -> float:
    """A bound that is compared in the precision of what is compared with it."""
    return float(number(value, dtype).value)


def _better(scores: Buffer, left: Buffer, best: Buffer, n: Expression, label: Expression,
            box: Expression, size: int) -> Statement:
    """Note a box that is left if it is better than the best; the first of equal ones is."""
    score = at(scores, n, label, box)
    other = at(scores, n, label, place_of(at(best, 0), size))
    more = either(score > other, both(is_nan(other), negate(is_nan(score))))
    return when(both(at(left, box), either(at(best, 0) < 0, more)),
                assign(best, (0,), box.cast("int64")))


def _corners(operation: NonMaxSuppression, boxes: Buffer, corners: Buffer, n: Expression,
             box: Expression) -> Statement:
    """The least and the largest corner of a box."""
    given = [at(boxes, n, box, place).cast(WIDE) for place in range(4)]
    statements = []
    for axis in range(2):
        one, other = given[axis], given[2 + axis]
        if operation.centred:
            one, other = one - other / 2, one + other / 2
        statements += [assign(corners, (box, axis), minimum(one, other)),
                       assign(corners, (box, 2 + axis), maximum(one, other))]
    return make_sequence(*statements)


def _share(corners: Buffer, first: Expression, second: Expression) -> Expression:
    """What share of the area of two boxes together both have; nothing, if either is empty."""
    one, other = ([at(corners, box, place) for place in range(4)] for box in (first, second))
    sides = [maximum(minimum(one[2 + axis], other[2 + axis]) - maximum(one[axis], other[axis]), 0)
             for axis in range(2)]
    common = sides[0] * sides[1]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (other, one)]
    together = areas[0] + areas[1] - common
    real = both(areas[0] > 0, both(areas[1] > 0, together > 0))
    return Select(real, common / together, number(0, WIDE))
