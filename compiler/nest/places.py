"""Where an element of a buffer lies: a number plus terms times factors, in elements.

Loops that were fused give indices f // 5 and f % 5; in an address they are f again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from ...base.classes.dataclass import dataclass
from ..expression.expression import Axis, Binary, Constant, Expression
from .nest import Access

Fixed = Mapping[Axis, int]          # axes whose values are known, as those of unrolled loops are


@dataclass(frozen=True)
class Place:
    """`constant` + Σ factor × term, where a term is an axis or something that is not affine."""

    constant: int
    terms: Mapping[Expression, int]


def place_of(access: Access, fixed: Fixed) -> Place:
    """Where an element lies, counted from the start of its buffer."""
    shape = access.buffer.shape
    return weighted_sum([(index, prod(shape[dimension + 1:]))
                         for dimension, index in enumerate(access.indices)], fixed)


def weighted_sum(indices: Iterable[tuple[Expression, int]], fixed: Fixed) -> Place:
    """Some indices, each times a factor, as one sum."""
    sum_ = _Sum(fixed)
    for index, factor in indices:
        sum_.add(index, factor)
    sum_.join_quotients()
    return Place(sum_.constant, {term: factor for term, factor in sum_.terms.items() if factor})


class _Sum:
    def __init__(self, fixed: Fixed) -> None:
        self.fixed = fixed
        self.constant = 0
        self.terms: dict[Expression, int] = {}

    def add(self, node: Expression, factor: int) -> None:
        match node:
            case Constant():
                self.constant += int(node.value) * factor
            case Axis() if node in self.fixed:
                self.constant += self.fixed[node] * factor
            case Binary(operator="+" | "-"):
                self.add(node.left, factor)
                self.add(node.right, factor if node.operator == "+" else -factor)
            case Binary(operator="*", right=Constant(value=number)):
                self.add(node.left, factor * int(number))
            case Binary(operator="*", left=Constant(value=number)):
                self.add(node.right, factor * int(number))
            case _:
                self.terms[node] = self.terms.get(node, 0) + factor

    def join_quotients(self) -> None:
        """n × (e // n) + e % n is e."""
        for term in list(self.terms):
            match term:
                case Binary(operator="%", left=left, right=Constant(value=number)):
                    quotient = Binary("//", left, term.right)
                    factor = self.terms.get(term, 0)
                    if factor and self.terms.get(quotient, 0) == factor * int(number):
                        del self.terms[term], self.terms[quotient]
                        self.add(left, factor)
                        self.join_quotients()
                        return
