"""Matrix products, of activations with constants or with each other."""

from __future__ import annotations

from ....expression.expression import Expression, as_expression, total
from ....expression.tensor import Tensor, compute, reduce_axis
from ....graph.operations.layers.matmul import MatMul
from ....graph.types import TensorType
from ...fast.fast_matmul import batch, matrix_sums
from ...registry import Operand, Scheduled, lowers
from ..products import correction, factor, finish_sums, product_type, zero_point


@lowers(MatMul)
def matrix_product(operation: MatMul, result: TensorType, left: Operand, right: Operand,
                   *bias: Operand) -> Tensor | Scheduled:
    depth, dtype = left.type.shape[-1], product_type(left.type)
    channel = len(result.shape) - 1
    if not depth:
        return finish_sums(operation, result, lambda i: as_expression(0, dtype), channel, bias)
    fast = matrix_sums(left, right, result.shape)
    if fast is not None:
        return Scheduled(finish_sums(operation, result, fast.value, channel, bias), fast.schedule)
    plain = left.type.quantization is None or left.type.quantization.axis is None
    more = correction(zero_point(left.type), right, (0,)) if (
        plain and len(right.type.shape) == 2) else None
    k = reduce_axis("k", depth)

    def product(*i: Expression) -> Expression:
        one = (*batch(i, left.type.shape), i[-2], k)
        other = (*batch(i, right.type.shape), k, i[-1])
        return total(factor(left, one, stored=more is not None) * factor(right, other), k)

    sums = compute("sums", result.shape, product)
    return finish_sums(operation, result, lambda i: sums[i], channel, bias, more)
