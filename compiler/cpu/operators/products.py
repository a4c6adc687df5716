"""Sums of products, and what becomes of them: a bias is added, integers are scaled back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...expression.expression import Expression
from ...expression.tensor import Tensor, constant
from ...graph.operations.scaled import SUMS, Scaled
from ...graph.types import TensorType
from ..registry import Operand
from .lowering import Axes, clamp_result, each, table, working
from .rescaling import per_channel, scale_and_round, single, store_result


def product_type(x: TensorType) -> str:
    """The type of products and their sums."""
    return working(x.dtype) if x.is_float else SUMS


def factor(x: Operand, indices: Axes, *, stored: bool = False) -> Expression:
    """What is multiplied: an element without its zero point, or with it, if `stored`."""
    value = x.tensor[indices].cast(product_type(x.type))
    known = x.type.quantization
    if stored or known is None or not any(known.zero_points):
        return value
    zeros = np.asarray(known.zero_points, SUMS)
    if len(zeros) == 1:
        return value - int(zeros[0])
    assert known.axis is not None
    return value - table("zero_points", zeros, indices[known.axis % len(indices)])


def zero_point(x: TensorType) -> int:
    """That of a whole tensor; 0 of what has none."""
    return x.require_quantization().zero_point if x.is_quantized else 0


def has_no_zero_points(x: TensorType) -> bool:
    return x.quantization is None or not any(x.quantization.zero_points)


def finish_sums(operation: Scaled, result: TensorType, sums: Callable[[Axes], Expression],
                channel: int, bias: tuple[Operand, ...],
                correction: Tensor | None = None) -> Tensor:
    """Results of sums whose channels are an axis of the result."""
    def element(i: Axes) -> Expression:
        value = sums(i)
        for other in bias:
            value = value + other.tensor[i[channel]].cast(value.dtype)
        if correction is not None:
            value = value + correction[i[channel]]
        if operation.scales:
            lane = single if len(operation.scales) == 1 else per_channel(i[channel])
            return store_result(operation, result,
                                scale_and_round(value, operation.scales, operation.rounding,
                                                                   lane))
        return clamp_result(operation, result, value)

    return each(operation, result, element)


def correction(zero: int, weights: Operand, axes: tuple[int, ...]) -> Tensor | None:
    """What sums of products have too much if the zero point of the one factor is not subtracted,
    for constant weights: −zero × the sum of weights over some axes."""
    if not zero or weights.array is None or not has_no_zero_points(weights.type):
        return None
    sums = weights.array.astype(np.int64).sum(axis=axes) * -zero
    return constant("correction", sums.astype(np.int32))
