"""Matrix products."""

from __future__ import annotations

from ....graph.operation import Operation
from ....graph.operations.data_movement.shape import Reshape, Transpose
from ....graph.operations.layers.matmul import MatMul
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.types import GraphError
from ..call import Call
from ..operator_table import MICROSOFT, operator
from .weights import rearrange


@operator("Gemm", "alpha beta transA transB", since=7)
def gemm(call: Call) -> None:
    left, right = call.plain_operand(0), call.plain_operand(1)
    if len(call.type_of(left).shape) != 2 or len(call.type_of(right).shape) != 2:
        raise GraphError("both sides must be matrices")
    if call.flag("transA"):
        left = call.add(Transpose(x=left, order=(1, 0)))
    if call.flag("transB"):
        right = rearrange(call, right, lambda array: array.T, {0: 1, 1: 0},
                          Transpose(x=right, order=(1, 0)))
    alpha, beta = call.real("alpha", 1), call.real("beta", 1)
    added = call.plain_operand(2) if call.has(2) and beta else None
    dtype, columns = call.type_of(left).dtype, call.type_of(right).shape[1]
    if added is not None and beta != 1:
        added = call.add(Binary(kind=BinaryKind.MUL, left=added, right=call.scalar(beta, dtype)))
    bias = None
    if added is not None and alpha == 1 and call.type_of(added).shape in ((columns,), (1, columns)):
        bias, added = call.reshape(added, (columns,)), None
    operation = MatMul(left=left, right=right, bias=bias)
    if alpha == 1 and added is None:
        call.give(operation)
        return
    total = call.add(operation)
    times = Binary(kind=BinaryKind.MUL, left=total, right=call.scalar(alpha, dtype))
    if added is None:
        call.give(times)
    else:
        total = total if alpha == 1 else call.add(times)
        call.give(Binary(kind=BinaryKind.ADD, left=total, right=added))


@operator("MatMul")
def product(call: Call) -> None:
    call.give(product_of(call, call.plain_operand(0), call.plain_operand(1)))


def product_of(call: Call, left: str, right: str) -> Operation:
    """The last operation of a product in which either side may be a vector."""
    first, second = call.type_of(left).shape, call.type_of(right).shape
    if not first or not second:
        raise GraphError(f"matrices of shapes {first} and {second} cannot be multiplied")
    if len(first) > 1 and len(second) > 1:
        return MatMul(left=left, right=right)
    left = call.reshape(left, (1, *first)) if len(first) == 1 else left
    right = call.reshape(right, (*second, 1)) if len(second) == 1 else right
    whole = call.add(MatMul(left=left, right=right))
    shape = list(call.type_of(whole).shape)
    if len(second) == 1:
        del shape[-1]
    if len(first) == 1:
        del shape[-1 if len(second) == 1 else -2]
    return Reshape(x=whole, shape=tuple(shape))


@operator("FusedMatMul", "alpha transA transB transBatchA transBatchB", domain=MICROSOFT)
def fused_product(call: Call) -> None:
    if call.flag("transBatchA") or call.flag("transBatchB"):
        raise GraphError("transBatchA and transBatchB are not supported")
    sides = [call.plain_operand(0), call.plain_operand(1)]
    for each, flag in enumerate(("transA", "transB")):
        rank = len(call.type_of(sides[each]).shape)
        if call.flag(flag) and rank > 1:
            order = (*range(rank - 2), rank - 1, rank - 2)
            sides[each] = call.add(Transpose(x=sides[each], order=order))
    whole = call.add(MatMul(left=sides[0], right=sides[1]))
    alpha = call.scalar(call.real("alpha", 1), call.type_of(whole).dtype)
    call.give(Binary(kind=BinaryKind.MUL, left=whole, right=alpha))
