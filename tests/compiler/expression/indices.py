"""Hypothesis strategies for indices, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.expression import (
    Axis,
    Constant,
    Expression,
    binary,
    both,
    maximum,
    minimum,
    select,
)
from microtron.compiler.expression.tensor import Tensor

AXES = (Axis("i", 5), Axis("j", 3), Axis("k", 4))
LEAVES = st.sampled_from(AXES) | st.integers(-6, 6).map(Constant)
FACTORS = st.integers(-4, 4).map(Constant)
DIVISORS = st.integers(1, 6).map(Constant)


def _sums(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return (st.builds(binary, st.sampled_from("+-"), parts, parts)
            | st.builds(binary, st.just("*"), parts, FACTORS)
            | st.builds(binary, st.just("*"), FACTORS, parts))


def _comparisons(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.builds(binary, st.sampled_from(["<", "<=", "==", "!="]), parts, parts)


def _others(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return (_sums(parts) | st.builds(binary, st.sampled_from(["//", "%"]), parts, DIVISORS)
            | st.builds(minimum, parts, parts) | st.builds(maximum, parts, parts)
            | st.builds(binary, st.just("*"), parts, parts)
            | st.builds(select, _comparisons(parts), parts, parts))


AFFINE_INDICES = st.recursive(LEAVES, _sums, max_leaves=8)
INDICES = st.recursive(LEAVES, _others, max_leaves=6)
CONDITIONS = st.recursive(_comparisons(INDICES), lambda parts: st.builds(both, parts, parts),
                          max_leaves=3)


def values(*expressions: Expression) -> Iterator[tuple[int, ...]]:
    """What some expressions are worth, for every combination of the axes."""
    tensors = [Tensor("value", tuple(axis.extent for axis in AXES), "int64", AXES, each)
               for each in expressions]
    arrays = [evaluate(tensor, {}) for tensor in tensors]
    for place in product(*(range(axis.extent) for axis in AXES)):
        yield tuple(int(array[place]) for array in arrays)
