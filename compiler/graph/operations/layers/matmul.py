"""Matrix products, of activations with constants or with each other."""

from __future__ import annotations

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Value, broadcast, operand
from ...types import Array, GraphError, TensorType
from ..scaled import SUMS, Scaled, subtract_zero_point
from .window import check_bias


@dataclass(frozen=True, kw_only=True)
class MatMul(Scaled):
    """left (…, row, k) × right (…, k, column) + bias (column). A fully connected layer has its
    weights on the right, transposed if the model keeps them by rows."""

    left: str = operand()
    right: str = operand()
    bias: str | None = operand(None)

    def infer(self, left: TensorType, right: TensorType, *bias: TensorType) -> TensorType:
        if min(len(left.shape), len(right.shape)) < 2 or left.shape[-1] != right.shape[-2]:
            raise GraphError(f"matrices of shapes {left.shape} and {right.shape} cannot be "
                             f"multiplied")
        check_bias(right.shape[-1], *bias)
        shape = (*broadcast(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
        return TensorType(shape, left.dtype if left.is_float else SUMS)

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result.shape != expected.shape:
            raise GraphError(f"the result has shape {result.shape}, but must have "
                             f"{expected.shape}")
        self.check_scaled(result, types[1].shape[-1], *types[:2])

    def compute(self, result: TensorType, left: Value, right: Value, *bias: Value) -> Array:
        sums = np.matmul(subtract_zero_point(left.array, left.type),
                         subtract_zero_point(right.array, right.type))
        return self.scale_sums(sums + sum(each.array for each in bias), result)
