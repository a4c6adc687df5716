"""Bytes in groups of terms whose products a processor adds at a time, and what sums of such
products then lack.

Processors differ in what they multiply (`Terms`), so factors move: of x' = x - 128, with a zero
point z' = z - 128 likewise, for unsigned numbers that are to be signed, or the other way round,

    Σ (x' - z')(w' - v')  =  Σ x'w'  -  z' Σ w'  -  v' Σ x'  +  terms × z' × v'
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....base.classes.dataclass import dataclass
from ....base.processor import Target
from ...expression.expression import Expression, select
from ...expression.tensor import Tensor, compute, constant
from ...graph.types import Array, TensorType
from ..code.emit_dot import DOT, SMALL_DOT
from ..registry import Operand
from ..setting import setting

HALF = 128
SATURATES = 1 << 15
AVX2_BYTES = 32         # of a register
SUMS = "int32"
Indices = tuple[Expression, ...]


@dataclass(frozen=True)
class Terms:
    """How many products are added at a time, what the left factors are, and by what."""

    count: int
    left: str
    intrinsic: str = DOT

    @property
    def left_offset(self) -> dict[str, int]:
        """What is added to left factors, by their type."""
        return {"int8": HALF, "uint8": 0} if self.left == "uint8" else {"int8": 0, "uint8": -HALF}


SIGNED = Terms(4, "int8")
UNSIGNED = Terms(4, "uint8")                # times signed ones
SMALL = Terms(4, "uint8", SMALL_DOT)        # likewise, where 16 bits hold a sum of two products
PAIRS = Terms(2, "int16")


def terms_for(target: Target | None, right: Array | None, axis: int) -> Terms:
    """The best terms for signed factors on the right side, as far as these are known. Terms lie
    along an axis of them."""
    if target is None or not target.triple.startswith("x86_64") or not target.vector_bytes:
        return SIGNED
    if target.adds_byte_products:
        return UNSIGNED
    if target.vector_bytes >= AVX2_BYTES and right is not None and _are_small(right, axis):
        return SMALL
    return PAIRS


def _are_small(array: Array, axis: int) -> bool:
    sizes = np.abs(np.moveaxis(array, axis, 0).astype(np.int16))
    pairs = sizes[::2].copy()
    pairs[:len(sizes) // 2] += sizes[1::2]
    return int(pairs.max(initial=0)) * 255 < SATURATES


def round_up(extent: int, factor: int) -> int:
    return -(-extent // factor) * factor


def are_bytes(*types: TensorType) -> bool:
    return all(each.dtype in ("int8", "uint8") for each in types)


def to_signed(value: Expression) -> Expression:
    """A byte minus 128, if it is unsigned."""
    return (value ^ HALF).cast("int8") if value.dtype == "uint8" else value


def to_signed_array(array: Array) -> Array:
    return (array ^ np.uint8(HALF)).view(np.int8) if array.dtype == np.uint8 else array


def zero_points(type_: TensorType, terms: Terms = SIGNED) -> Array:
    """Those of right factors, or of left ones of some terms: one, or one for each index of an
    axis."""
    known = type_.quantization
    zeros = np.array([0] if known is None else known.zero_points, np.int64)
    return zeros + terms.left_offset[type_.dtype]


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


def to_left(value: Expression, terms: Terms) -> Expression:
    """A byte as a left factor of some terms."""
    if terms.left == "uint8":
        return value if value.dtype == "uint8" else (value ^ -HALF).cast("uint8")
    return to_signed(value).cast(terms.left)


def copy_left(x: Operand, terms: Terms) -> Tensor:
    """A tensor as left factors whose last axis has zeros at its end, if it is not that already."""
    extent = x.type.shape[-1]
    last = round_up(extent, terms.count)
    if x.type.dtype == terms.left and extent == last:
        return x.tensor

    def element(*i: Expression) -> Expression:
        value = to_left(x.tensor[i], terms)
        return value if extent == last else select(i[-1] < extent, value, 0)

    return compute("bytes", (*x.type.shape[:-1], last), element)
