"""Comparisons, truth values, and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, broadcast, operand
from ...types import Array, GraphError, TensorType


class CompareKind(Enum):
    EQUAL = "equal"
    NOT_EQUAL = "not_equal"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"


class LogicKind(Enum):
    AND = "and"
    OR = "or"
    XOR = "xor"


COMPARISONS: dict[CompareKind, Callable[..., Array]] = {
    CompareKind.EQUAL: np.equal, CompareKind.NOT_EQUAL: np.not_equal,
    CompareKind.LESS: np.less, CompareKind.LESS_EQUAL: np.less_equal,
    CompareKind.GREATER: np.greater, CompareKind.GREATER_EQUAL: np.greater_equal}
CONNECTIVES: dict[LogicKind, Callable[..., Array]] = {
    LogicKind.AND: np.logical_and, LogicKind.OR: np.logical_or, LogicKind.XOR: np.logical_xor}


def _comparable(left: TensorType, right: TensorType) -> None:
    if (left.dtype, left.quantization) != (right.dtype, right.quantization):
        raise GraphError(f"one side is {left} and the other {right}, but both must be of one type")


@dataclass(frozen=True, kw_only=True)
class Compare(Operation):
    """Whether numbers of two tensors are equal, less, and so on. Both have the same scale and zero
    point, if any: stored numbers are compared."""

    kind: CompareKind
    left: str = operand()
    right: str = operand()

    def infer(self, left: TensorType, right: TensorType) -> TensorType:
        _comparable(left, right)
        return TensorType(broadcast(left.shape, right.shape), "bool")

    def compute(self, result: TensorType, left: Value, right: Value) -> Array:
        return COMPARISONS[self.kind](left.array, right.array)


@dataclass(frozen=True, kw_only=True)
class Logical(Operation):
    """Truth values of two tensors, joined."""

    kind: LogicKind
    left: str = operand()
    right: str = operand()

    def infer(self, left: TensorType, right: TensorType) -> TensorType:
        for each in (left, right):
            _check_truth(each)
        return TensorType(broadcast(left.shape, right.shape), "bool")

    def compute(self, result: TensorType, left: Value, right: Value) -> Array:
        return CONNECTIVES[self.kind](left.array, right.array)


@dataclass(frozen=True, kw_only=True)
class Not(Operation):
    """The opposite of each truth value."""

    x: str = operand()

    def infer(self, x: TensorType) -> TensorType:
        _check_truth(x)
        return x

    def compute(self, result: TensorType, x: Value) -> Array:
        return np.logical_not(x.array)


@dataclass(frozen=True, kw_only=True)
class Where(Operation):
    """Numbers of the one tensor where a condition holds, and of the other where it does not."""

    condition: str = operand()
    left: str = operand()
    right: str = operand()

    def infer(self, condition: TensorType, left: TensorType, right: TensorType) -> TensorType:
        _check_truth(condition)
        _comparable(left, right)
        return TensorType(broadcast(condition.shape, left.shape, right.shape), left.dtype,
                          left.quantization)

    def check(self, result: TensorType, *types: TensorType) -> None:
        if result != self.infer(*types):
            raise GraphError(f"the result is {result}, but must be {self.infer(*types)}")

    def compute(self, result: TensorType, condition: Value, left: Value, right: Value) -> Array:
        return np.where(condition.array, left.array, right.array)


def _check_truth(type_: TensorType) -> None:
    if type_.dtype != "bool":
        raise GraphError(f"an operand is {type_}, but must be bool")
