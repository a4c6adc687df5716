"""Numbers as bits: joined, shifted, turned over, and as another type of the same width."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from .....base.classes.dataclass import dataclass
from ...operation import Operation, Value, broadcast, operand, same_types
from ...types import DTYPES, Array, GraphError, TensorType


class BitsKind(Enum):
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHIFT_LEFT = "shift_left"
    SHIFT_RIGHT = "shift_right"     # a negative number stays negative


def _shift(function: Callable[..., Array], x: Array, places: Array) -> Array:
    """What is shifted by its width or more, or by a negative number, is gone: 0, or −1 if it was
    negative and went to the right."""
    width = 8 * x.dtype.itemsize
    inside = (places >= 0) & (places < width)
    gone = np.where(x < 0, -1, 0).astype(x.dtype) if function is np.right_shift else x.dtype.type(0)
    found: Array = np.where(inside, function(x, np.where(inside, places, 0).astype(x.dtype)), gone)
    return found


FUNCTIONS: dict[BitsKind, Callable[[Array, Array], Array]] = {
    BitsKind.AND: np.bitwise_and, BitsKind.OR: np.bitwise_or, BitsKind.XOR: np.bitwise_xor,
    BitsKind.SHIFT_LEFT: lambda x, places: _shift(np.left_shift, x, places),
    BitsKind.SHIFT_RIGHT: lambda x, places: _shift(np.right_shift, x, places)}


def _check_integers(type_: TensorType) -> None:
    if not type_.is_integer or type_.is_quantized:
        raise GraphError(f"an operand is {type_}, but must be plain integers")


@dataclass(frozen=True, kw_only=True)
class Bits(Operation):
    """The bits of two integers, joined, or those of the one moved by as many places as the other
    says."""

    kind: BitsKind
    left: str = operand()
    right: str = operand()

    def infer(self, left: TensorType, right: TensorType) -> TensorType:
        for each in (left, right):
            _check_integers(each)
        dtype = same_types({"one side": left, "the other": right})
        return TensorType(broadcast(left.shape, right.shape), dtype)

    def compute(self, result: TensorType, left: Value, right: Value) -> Array:
        return FUNCTIONS[self.kind](left.array, right.array)


@dataclass(frozen=True, kw_only=True)
class BitNot(Operation):
    """Every bit of each integer turned over."""

    x: str = operand()

    def infer(self, x: TensorType) -> TensorType:
        _check_integers(x)
        return x

    def compute(self, result: TensorType, x: Value) -> Array:
        return np.bitwise_not(x.array)


@dataclass(frozen=True, kw_only=True)
class BitCast(Operation):
    """The same bits as numbers of another type that has as many."""

    x: str = operand()
    dtype: str

    def infer(self, x: TensorType) -> TensorType:
        if self.dtype not in DTYPES or x.is_quantized or (
                np.dtype(self.dtype).itemsize != np.dtype(x.dtype).itemsize) or (
                self.dtype == "bool" != x.dtype):           # numbers may be others than 0 and 1
            raise GraphError(f"the bits of {x} are not those of {self.dtype}")
        return TensorType(x.shape, self.dtype)

    def compute(self, result: TensorType, x: Value) -> Array:
        return np.ascontiguousarray(x.array).view(self.dtype).reshape(x.array.shape)
