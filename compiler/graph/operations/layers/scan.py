"""One number after the other along an axis: running sums, and the largest in order."""

from __future__ import annotations

from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, normalize_axis, operand
from ...types import Array, GraphError, TensorType


class CumulativeKind(Enum):
    SUM = "sum"
    PROD = "prod"


@dataclass(frozen=True, kw_only=True)
class Cumulative(Operation):
    """The sum, or the product, of all numbers up to each along an axis; without itself if
    `exclusive`, and from the end if `reverse`. Integers wrap; real numbers are summed in 64 bits
    and rounded once."""

    kind: CumulativeKind
    x: str = operand()
    axis: int = 0
    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: TensorType) -> TensorType:
        normalize_axis(self.axis, len(x.shape))
        if x.is_quantized or x.dtype == "bool":
            raise GraphError(f"the input is {x}, but must be plain numbers")
        return x

    def compute(self, result: TensorType, x: Value) -> Array:
        wide = np.float64 if x.type.is_float else x.array.dtype
        values = np.moveaxis(x.array, self.axis, 0).astype(wide)
        if self.reverse:
            values = values[::-1]
        one = self.kind == CumulativeKind.PROD
        if self.exclusive:
            values = np.concatenate([np.full_like(values[:1], one), values[:-1]])
        totals = (np.cumprod if one else np.cumsum)(values, axis=0, dtype=wide)
        return np.moveaxis(totals[::-1] if self.reverse else totals, 0, self.axis)


@dataclass(frozen=True, kw_only=True)
class TopK(Operation):
    """Where the `count` largest numbers along an axis are, or the least: the first of equal ones
    first. In order of the numbers if `sorted`, of their places if not. What is no number counts as
    larger than all. Indices are int64 or int32; GatherElements gives the numbers."""

    x: str = operand()
    count: int
    axis: int = -1
    largest: bool = True
    sorted: bool = True

    def infer(self, x: TensorType) -> TensorType:
        axis = normalize_axis(self.axis, len(x.shape))
        if not 0 <= self.count <= x.shape[axis]:
            raise GraphError(f"the {self.count} largest are wanted of {x.shape[axis]}")
        return TensorType((*x.shape[:axis], self.count, *x.shape[axis + 1:]), "int64")

    def check(self, result: TensorType, *types: TensorType) -> None:
        expected = self.infer(*types)
        if result.shape != expected.shape or result.is_quantized or (
                result.dtype not in ("int32", "int64")):
            raise GraphError(f"the result is {result}, but must be int32 or int64 of shape "
                             f"{expected.shape}")

    def compute(self, result: TensorType, x: Value) -> Array:
        values = np.moveaxis(x.array, self.axis, -1)
        if self.largest:            # backwards, so that the first of equal ones is the last
            order = np.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            order = values.shape[-1] - 1 - order
        else:
            order = np.argsort(values, axis=-1, kind="stable")
        order = order[..., :self.count]
        if not self.sorted:
            order = np.sort(order, axis=-1)
        return np.moveaxis(order, -1, self.axis)
