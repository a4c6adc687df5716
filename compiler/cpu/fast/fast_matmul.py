"""Products of matrices in blocks. The right one lies in panels of as many columns as a block has,
so that what a block reads next is next in memory:

    right[k, column]    →    panels[column // lanes, k, column % lanes]

Bytes lie in fours, or in pairs, of one column: panels[panel, k // 4, lane, k % 4].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...expression.expression import Expression, as_expression, both, minimum, select, total
from ...expression.tensor import Tensor, compute, constant, reduce_axis
from ...graph.types import Array, Shape
from ..registry import Operand
from .arrange import Blocked, Sums
from .block import Block, Registers, block_of, registers_of
from .bytes import (
    Correction,
    Terms,
    are_bytes,
    copy_left,
    per_column,
    round_up,
    terms_for,
    to_signed,
    to_signed_array,
    zero_points,
)

STRIPE_BYTES = 256 << 10        # of the left matrix: what a cache holds besides a panel
FEWEST_ROWS = 4                 # for which it pays to put a matrix in panels
FLOATS = {"float16": "float32", "float32": "float32"}
Indices = tuple[Expression, ...]


def matrix_sums(left: Operand, right: Operand, shape: Shape) -> Sums | None:
    """Sums of products of rows and columns, without zero points; None, if other ways are as good.
    """
    if right.array is None and shape[-2] < FEWEST_ROWS:
        return None
    if left.type.dtype in FLOATS and right.type.dtype in FLOATS:
        return _float_sums(left, right, shape)
    if are_bytes(left.type, right.type) and _has_one_zero(left) and (
            _has_one_zero(right)
            or right.type.require_quantization().axis in (-1, len(right.type.shape) - 1)):
        return _byte_sums(left, right, shape)
    return None


def _has_one_zero(x: Operand) -> bool:
    return x.type.quantization is None or x.type.quantization.axis is None


def _float_sums(left: Operand, right: Operand, shape: Shape) -> Sums:
    depth = left.type.shape[-1]
    block = _block(shape, depth * 4, registers_of(left.target))
    panels = _panels(right, block.lanes, shape[-1])
    k = reduce_axis("k", depth)

    def product(*i: Expression) -> Expression:
        one = left.tensor[(*batch(i, left.type.shape), _row(i, shape), k)]
        other = panels[(*batch(i, right.type.shape), i[-1] // block.lanes, k, i[-1] % block.lanes)]
        return total(one.cast("float32") * other, k)

    return _sums(product, shape, block)


def _byte_sums(left: Operand, right: Operand, shape: Shape) -> Sums:
    depth = left.type.shape[-1]
    block = _block(shape, depth, registers_of(left.target))
    terms = terms_for(left.target, None if right.array is None else to_signed_array(right.array),
                      len(right.type.shape) - 2)
    panels, rows = _byte_panels(right, block.lanes, shape[-1], terms.count), copy_left(left, terms)
    count = terms.count
    k, t = reduce_axis("k", round_up(depth, count) // count), reduce_axis("t", count)

    def product(*i: Expression) -> Expression:
        one = rows[(*batch(i, left.type.shape), _row(i, shape), k * count + t)]
        other = panels[(*batch(i, right.type.shape), i[-1] // block.lanes, k, i[-1] % block.lanes,
                        t)]
        return total(one.cast("int32") * other.cast("int32"), k, t)

    sums = _sums(product, shape, block, terms.intrinsic)
    more = _correction(left, right, rows, shape, terms)
    return Sums(lambda i: more.of(sums.value(i), i), sums.schedule)


def _block(shape: Shape, row_bytes: int, registers: Registers) -> Block:
    rows, columns = shape[-2:]
    block = block_of(rows, columns, registers=registers)
    return block_of(rows, columns, STRIPE_BYTES // (block.rows * row_bytes), registers=registers)


def batch(axes: Indices, shape: Shape) -> Indices:
    """The axes before those of a matrix, which are repeated to meet the result's."""
    several = len(shape) - 2
    own = axes[len(axes) - 2 - several:len(axes) - 2]
    return tuple(as_expression(0) if size == 1 else axis
                 for axis, size in zip(own, shape, strict=False))


def _row(i: Indices, shape: Shape) -> Expression:
    """Blocks reach below the last row, and read it again there."""
    return minimum(i[-2], shape[-2] - 1)


def _sums(product: Callable[..., Expression], shape: Shape, block: Block,
          dot: str = "") -> Sums:
    *others, rows, columns = shape
    whole = (*others, max(rows, block.height), round_up(columns, block.lanes))
    blocked = Blocked(compute("sums", whole, product), len(others), len(others) + 1, block,
                      before=range(len(others)), dot=dot)
    stored = blocked.sums if columns % block.lanes == 0 and not dot else blocked.store()
    return Sums(lambda i: stored[i], blocked)


def _panels(right: Operand, lanes: int, columns: int) -> Tensor:
    *others, depth, _ = right.type.shape
    width = round_up(columns, lanes)
    if right.array is not None:
        return constant("panels", _pack_panels(right.array.astype(np.float32), lanes, width))

    def element(*i: Expression) -> Expression:
        *several, panel, k, lane = i
        column = panel * lanes + lane
        value = right.tensor[(*several, k, column)].cast("float32")
        return value if width == columns else select(column < columns, value, 0.0)

    return compute("panels", (*others, width // lanes, depth, lanes), element)


def _pack_panels(array: Array, lanes: int, width: int) -> Array:
    *others, depth, columns = array.shape
    wide = np.zeros((*others, depth, width), array.dtype)
    wide[..., :columns] = array
    parts = wide.reshape(*others, depth, width // lanes, lanes)
    return np.ascontiguousarray(np.moveaxis(parts, -2, -3))


def _byte_panels(right: Operand, lanes: int, columns: int, count: int) -> Tensor:
    """Panels of so many terms at a time."""
    *others, depth, _ = right.type.shape
    width, terms = round_up(columns, lanes), round_up(depth, count)
    if right.array is not None:
        deep = np.zeros((*others, terms, columns), np.int8)
        deep[..., :depth, :] = to_signed_array(right.array)
        parts = _pack_panels(deep, lanes, width)                      # panel, k, lane
        groups = parts.reshape(*parts.shape[:-2], terms // count, count, lanes)
        return constant("panels", np.ascontiguousarray(np.swapaxes(groups, -1, -2)))

    def element(*i: Expression) -> Expression:
        *several, panel, k, lane, t = i
        row, column = k * count + t, panel * lanes + lane
        value = to_signed(right.tensor[(*several, row, column)])
        inside = [index < extent for index, extent, whole in (
            (row, depth, terms), (column, columns, width)) if extent != whole]
        return select(both(*inside), value, 0) if inside else value

    return compute("panels", (*others, width // lanes, terms // count, lanes, count), element)


def _correction(left: Operand, right: Operand, rows: Tensor, shape: Shape,
                terms: Terms) -> Correction:
    depth, column = left.type.shape[-1], len(shape) - 1
    zeros = zero_points(right.type)
    return Correction(
        int(zero_points(left.type, terms)[0]),
        per_column("right_zeros", zeros, column) if zeros.any() else None,
        _row_sums(left, rows, depth), _column_sums(right, column), depth)


def _row_sums(left: Operand, rows: Tensor, depth: int) -> Callable[[Indices], Expression]:
    k = reduce_axis("k", depth)
    sums = compute("row_sums", left.type.shape[:-1], lambda *i: total(
        rows[(*i, k)].cast("int32"), k))
    return lambda i: sums[(*batch(i, left.type.shape), i[-2])]


def _column_sums(right: Operand, column: int) -> Callable[[Indices], Expression]:
    if right.array is not None and right.array.ndim == 2:
        return per_column("column_sums", to_signed_array(right.array).sum(axis=-2, dtype=np.int64),
                          column)
    k = reduce_axis("k", right.type.shape[-2])
    *others, _, columns = right.type.shape
    sums = compute("column_sums", (*others, columns), lambda *i: total(
        to_signed(right.tensor[(*i[:-1], k, i[-1])]).cast("int32"), k))
    return lambda i: sums[(*batch(i, right.type.shape), i[-1])]
