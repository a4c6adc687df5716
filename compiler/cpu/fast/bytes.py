"""Bytes as signed ones, four to a term, so that four products at a time can be added, and what
sums of such products then lack.

Of x' = x - 128 for unsigned numbers, with zero points z' likewise,

    Σ (x' - z')(w' - v')  =  Σ x'w'  -  z' Σ w'  -  v' Σ x'  +  terms × z' × v'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...expression.expression import Expression, select
from ...expression.tensor import Tensor, compute, constant
from ...graph.types import Array, TensorType
from ..registry import Operand
from ..setting import setting

TERMS = 4
HALF = 128
SUMS = "int32"
Indices = tuple[Expression, ...]


def round_up(extent: int, factor: int) -> int:
    return -(-extent // factor) * factor


def are_bytes(*types: TensorType) -> bool:
    return all(each.dtype in ("int8", "uint8") for each in types)


def to_signed(value: Expression) -> Expression:
    """A byte minus 128, if it is unsigned."""
    return (value ^ HALF).cast("int8") if value.dtype == "uint8" else value


def to_signed_array(array: Array) -> Array:
    return (array ^ np.uint8(HALF)).view(np.int8) if array.dtype == np.uint8 else array


def zero_points(type_: TensorType) -> Array:
    """Those of signed numbers: one, or one for each index of an axis."""
    known = type_.quantization
    zeros = np.array([0] if known is None else known.zero_points, np.int64)
    return zeros - HALF if type_.dtype == "uint8" else zeros


@dataclass(frozen=True)
class Correction:
    """What has to be added to sums of signed products: functions of the result's axes."""

    left_zero: int
    right_zeros: Callable[[Indices], Expression] | None     # None: all zero
    left_sums: Callable[[Indices], Expression]              # of all terms
    right_sums: Callable[[Indices], Expression]
    terms: int

    def of(self, sums: Expression, i: Indices) -> Expression:
        if self.left_zero:
            sums = sums - self.right_sums(i) * setting("left_zero", self.left_zero, SUMS)
        if self.right_zeros is not None:
            zero = self.right_zeros(i)
            sums = sums - zero * (self.left_sums(i) - setting(
                "left_zeros", self.terms * self.left_zero, SUMS))
        return sums


def per_column(name: str, values: Array, column: int) -> Callable[[Indices], Expression]:
    """A number for each column, or the one that all have."""
    wrapped = values.astype(np.int64).astype(np.int32)
    if (wrapped == wrapped.flat[0]).all():
        number = int(wrapped.flat[0])
        return lambda i: setting(name, number, SUMS)
    table = constant(name, wrapped)
    return lambda i: table[i[column]]


def copy_signed(x: Operand) -> Tensor:
    """A tensor as signed bytes whose last axis has zeros at its end, if it is not that already."""
    extent = x.type.shape[-1]
    last = round_up(extent, TERMS)
    if x.type.dtype == "int8" and extent == last:
        return x.tensor

    def element(*i: Expression) -> Expression:
        value = to_signed(x.tensor[i])
        return value if extent == last else select(i[-1] < extent, value, 0)

    return compute("bytes", (*x.type.shape[:-1], last), element)
