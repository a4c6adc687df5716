"""Sums of products over named axes, as matrix products."""

from __future__ import annotations

import re
from collections.abc import Collection
from math import prod

import numpy as np

from .....base.checked_values import quote
from .....base.classes.dataclass import dataclass
from ....graph.operations.data_movement.indexing import Gather
from ....graph.operations.data_movement.shape import Transpose
from ....graph.operations.layers.matmul import MatMul
from ....graph.operations.layers.reduction import Reduce, ReduceKind
from ....graph.operations.pointwise.binary import Binary, BinaryKind
from ....graph.types import GraphError
from ..call import Call
from ..operator_table import operator

TERM = re.compile(r"([A-Za-z]*)(?:(\.\.\.)([A-Za-z]*))?")


@dataclass
class Term:
    """A tensor whose axes have names."""

    call: Call
    tensor: str
    names: list[str]

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.call.type_of(self.tensor).shape, strict=True))

    def transpose(self, names: list[str]) -> Term:
        """The same with its axes in another order."""
        order = tuple(map(self.names.index, names))
        if order == tuple(range(len(order))):
            return self
        return Term(self.call, self.call.add(Transpose(x=self.tensor, order=order)), names)

    def sum_out(self, kept: Collection[str]) -> Term:
        """Without the axes that nobody needs."""
        gone = [axis for axis, name in enumerate(self.names) if name not in kept]
        if not gone:
            return self
        return Term(self.call, self.call.add(Reduce(kind=ReduceKind.SUM, x=self.tensor,
                                                    axes=tuple(gone))),
                    [name for name in self.names if name in kept])

    def diagonals(self) -> Term:
        """With every name once: of two axes of one name, where both have the same index."""
        for name in self.names:
            if self.names.count(name) > 1:
                return self._diagonal(name).diagonals()
        return self

    def _diagonal(self, name: str) -> Term:
        one, other = [axis for axis, each in enumerate(self.names) if each == name][:2]
        rest = [axis for axis in range(len(self.names)) if axis not in (one, other)]
        shape = self.call.type_of(self.tensor).shape
        size = shape[one]
        if shape[other] != size:
            raise GraphError(f"axis {name} has {size} indices and {shape[other]}")
        turned = self.call.add(Transpose(x=self.tensor, order=(*rest, one, other)))
        flat = self.call.reshape(turned, (*(shape[axis] for axis in rest), size * size))
        places = self.call.constant(np.arange(size, dtype=np.int64) * (size + 1))
        return Term(self.call, self.call.add(Gather(x=flat, indices=places, axis=len(rest))),
                    [*(self.names[axis] for axis in rest), name])

    def drop_unit_axes(self, other: Term) -> Term:
        """Without axes of one index that another has with more: they are repeated."""
        sizes = self.sizes
        kept = [name for name in self.names
                if not (sizes[name] == 1 and other.sizes.get(name, 1) != 1)]
        return Term(self.call, self.call.reshape(
            self.tensor, tuple(sizes[name] for name in kept)), kept)


@operator("Einsum", "equation", since=12)
def einsum(call: Call) -> None:
    terms, wanted = _terms(call)
    terms = [each.diagonals() for each in terms]
    while len(terms) > 1:
        left, right, *rest = terms
        kept = {*wanted, *(name for each in rest for name in each.names)}
        terms = [_product(left, right, kept), *rest]
    total = terms[0].sum_out(wanted)
    missing = [name for name in wanted if name not in total.names]
    if missing:
        raise GraphError(f"the result has an axis {missing[0]}, but no operand does")
    call.give_existing(total.transpose(wanted).tensor)


def _terms(call: Call) -> tuple[list[Term], list[str]]:
    """The operands with the names of their axes, and the names of the result's."""
    equation = "".join(call.text("equation", "").split())
    left, arrow, right = equation.partition("->")
    words = left.split(",")
    if len(words) != len(call) or not all(map(TERM.fullmatch, (*words, right))):
        raise GraphError(f"equation is {quote(equation)}, but must have letters for each of "
                         f"{len(call)} operands")
    terms, longest = [], 0
    for number, word in enumerate(words):
        tensor = call.plain_operand(number)
        hidden = len(call.type_of(tensor).shape) - len(word.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in word):
            raise GraphError(f"{quote(word)} does not name the axes of "
                             f"{call.type_of(tensor).plain()}")
        longest = max(longest, hidden)
        terms.append(Term(call, tensor, _names(word, hidden)))
    if not arrow:
        letters = sorted(set(left) - set(".,"))
        right = "..." * ("..." in left) + "".join(each for each in letters
                                                  if left.count(each) == 1)
    wanted = _names(right, longest if "..." in right else 0)
    if len(set(wanted)) != len(wanted):
        raise GraphError(f"equation is {quote(equation)}, but its result names an axis twice")
    _check_sizes(terms)
    return terms, wanted


def _names(word: str, hidden: int) -> list[str]:
    """Letters, and numbers, counted from the last, for axes without one."""
    before, _, after = word.partition("...")
    return [*before, *(str(hidden - each) for each in range(hidden)), *after]


def _check_sizes(terms: list[Term]) -> None:
    """An axis has as many indices in all operands, but for one, which is repeated."""
    known: dict[str, int] = {}
    for each in terms:
        for name, size in each.sizes.items():
            if 1 not in (size, known.get(name, size)) and known.get(name, size) != size:
                raise GraphError(f"axis {name} has {known[name]} indices and {size}")
            known[name] = max(size, known.get(name, 1)) if size else 0


def _product(left: Term, right: Term, kept: set[str]) -> Term:
    """Two terms as one, summed over what nobody needs any more."""
    left, right = left.drop_unit_axes(right), right.drop_unit_axes(left)
    left, right = left.sum_out(kept | set(right.names)), right.sum_out(kept | set(left.names))
    common = [name for name in left.names if name in right.names and name in kept]
    inner = [name for name in left.names if name in right.names and name not in kept]
    ours = [name for name in left.names if name not in right.names]
    theirs = [name for name in right.names if name not in left.names]
    sizes = {**left.sizes, **right.sizes}
    call = left.call

    def flat(term: Term, *groups: list[str]) -> str:
        turned = term.transpose([name for group in groups for name in group])
        return call.reshape(turned.tensor, tuple(prod(sizes[name] for name in group)
                                                 for group in groups))

    if call.type_of(left.tensor).is_float:
        total = call.add(MatMul(left=flat(left, common, ours, inner),
                                right=flat(right, common, inner, theirs)))
    else:       # matrix products of integers are of 32 bits
        products = call.add(Binary(kind=BinaryKind.MUL, left=flat(left, common, ours, [], inner),
                                   right=flat(right, common, [], theirs, inner)))
        total = call.add(Reduce(kind=ReduceKind.SUM, x=products, axes=(3,)))
    names = [*common, *ours, *theirs]
    return Term(call, call.reshape(total, tuple(sizes[name] for name in names)), names)
