"""The innermost statement of a stage: one element becomes what the body says."""

from __future__ import annotations

from collections.abc import Mapping

from ..expression.affine import Affine, affine, simplify_index
from ..expression.expression import (
    INTEGERS,
    LIMITS,
    Axis,
    Binary,
    Constant,
    Element,
    Expression,
    Reduction,
    binary,
)
from ..expression.functions import fused_multiply_add
from ..expression.rewrite import rewrite, substitute
from ..nest.nest import Access, Assign
from .located import Located, element_index
from .lowering_state import Lowering
from .stage_loops import Frame


def assign_element(state: Lowering, frame: Frame) -> Assign:
    body = frame.body
    target = _target(state, frame)
    value = body.value if isinstance(body, Reduction) else body
    result = _read(state, value, frame.values)
    if isinstance(body, Reduction):
        result = (_multiply_add(result, target) if frame.stage.multiplies_and_adds
                  else binary(body.combiner, target, result))
    return Assign(target, result)


def _multiply_add(product: Expression, target: Access) -> Expression:
    assert isinstance(product, Binary), "the stage has checked that it is a product"
    return fused_multiply_add(product.left, product.right, target)


def _read(state: Lowering, expression: Expression,
          values: Mapping[Axis, Expression]) -> Expression:
    """The expression with buffers in place of tensors, for these values of axes."""
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Axis):
            return values.get(node)
        if not isinstance(node, Element):
            return None
        part = state.parts[node.tensor]
        starts = zip(node.indices, part.start, strict=True)
        return Access(state.buffers[node.tensor], tuple([locate(*each) for each in starts]))

    def locate(index: Expression, start: Affine) -> Expression:
        form = element_index(index, start, values)
        return (simplify_index(rewrite(index, change) - start.expression()) if form is None
                else form.expression())
    return rewrite(expression, change)


def assign_first_value(state: Lowering, frame: Frame, renamed: Mapping[Axis, Axis],
                       body: Reduction) -> Assign:
    """The first value of a sum, by loops of its own."""
    target = substitute(_target(state, frame), dict(renamed))
    assert isinstance(target, Access)
    return Assign(target, first_value_of(body))


def first_value_of(body: Reduction) -> Constant:
    """What a reduction starts from."""
    if body.combiner in ("+", "*"):
        return Constant(int(body.combiner == "*"), body.dtype)
    if body.dtype not in INTEGERS:
        return Constant(float("-inf" if body.combiner == "max" else "inf"), body.dtype)
    low, high = LIMITS[body.dtype]
    return Constant(low if body.combiner == "max" else high, body.dtype)


def _target(state: Lowering, frame: Frame) -> Access:
    tensor = frame.stage.tensor
    indices = [frame.local[axis] for axis in tensor.axes]
    if tensor in state.slides:
        slide = state.slides[tensor]
        indices[slide.dimension] = indices[slide.dimension] + slide.first
    return Access(state.buffers[tensor], tuple(map(simplify_index, indices)))


def locate_target(state: Lowering, frame: Frame) -> Located | None:
    """Which element of its buffer a stage computes, if its indices are sums."""
    tensor = frame.stage.tensor
    forms = [affine(frame.local[axis]) for axis in tensor.axes]
    if tensor in state.slides or None in forms:
        return None
    return Located(state.buffers[tensor], [form for form in forms if form is not None])
