"""Affine indices: a constant plus axes times constants, the only kind that hardware loops walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from .elements import AXES
from .expression import INDEX, Axis, Binary, Constant, Expression
from .nodes import SUMS

# What a node remembers: its form, that it is the shortest, whether it is a sum, and its margin.
FORM, SIMPLE, SUM, MARGIN = "affine", "simple", "sum", "margin"


@dataclass(slots=True)
class Affine:
    """`constant` + Σ coefficient × axis. Axes with coefficient zero are left out. Nobody changes
    one: it is not frozen because that makes it twice as slow to build, and there are very many."""

    constant: int = 0
    terms: Mapping[Axis, int] = field(default_factory=dict)

    def __add__(self, other: Affine) -> Affine:
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms)
        if not self.terms:
            return Affine(self.constant + other.constant, other.terms)
        terms = dict(self.terms)
        for axis, coefficient in other.terms.items():
            terms[axis] = terms.get(axis, 0) + coefficient
        return Affine(self.constant + other.constant,
                      {axis: each for axis, each in terms.items() if each})

    def times(self, factor: int) -> Affine:
        if factor == 0:
            return Affine()
        return Affine(self.constant * factor,
                      {axis: each * factor for axis, each in self.terms.items()})

    def of(self, axis: Axis) -> int:
        """The coefficient of an axis."""
        return self.terms.get(axis, 0)

    def drop_axes(self, *axes: Axis) -> Affine:
        """The same form with these axes at zero."""
        return Affine(self.constant, {axis: each for axis, each in self.terms.items()
                                      if axis not in axes})

    def at(self, values: Mapping[Axis, int], more: int = 0) -> Affine:
        """The same form with some axes at known values, plus a number."""
        constant, terms = self.constant + more, {}
        for axis, coefficient in self.terms.items():
            if axis in values:
                constant += coefficient * values[axis]
            else:
                terms[axis] = coefficient
        return Affine(constant, terms)

    def value(self, values: Mapping[Axis, int]) -> int:
        """The value where all axes are known."""
        try:
            return self.constant + sum([each * values[axis] for axis, each in self.terms.items()])
        except KeyError:
            unknown = ", ".join(axis.name for axis in self.terms if axis not in values)
            raise CompileError(f"{self.expression()} depends on {unknown}, whose value is not "
                               f"known here") from None

    def range(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        low = high = self.constant
        for axis, coefficient in self.terms.items():
            if coefficient < 0:
                low += coefficient * (axis.extent - 1)
            else:
                high += coefficient * (axis.extent - 1)
        return low, high

    def expression(self) -> Expression:
        """The form as an index. It is what `simplify_index` gives, and remembers its form."""
        if not self.terms:
            return Constant(self.constant) if self.constant else ZERO
        result: Expression | None = Constant(self.constant) if self.constant else None
        for axis, coefficient in self.terms.items():
            term = axis if coefficient == 1 else Binary("*", axis, Constant(coefficient))
            result = term if result is None else Binary("+", result, term)
        assert result is not None, "there are terms"
        if isinstance(result, Binary):
            result.__dict__[FORM] = self
            result.__dict__[SIMPLE] = True
            result.__dict__[AXES] = tuple(self.terms)
        return result


ZERO = Constant(0)


def affine(expression: Expression) -> Affine | None:
    """An index in affine form, or None if it is not affine."""
    # Asked again and again, of nodes that never change: each remembers its form.
    known: dict[str, Affine | None] = expression.__dict__
    if FORM in known:
        return known[FORM]
    form = None
    if isinstance(expression, Binary):
        form = _combine(expression)
    elif isinstance(expression, Axis):
        form = Affine(0, {expression: 1})
    elif isinstance(expression, Constant) and expression.dtype == INDEX:
        form = Affine(int(expression.value))
    known[FORM] = form
    return form


def affine_at(index: Expression, values: Mapping[Axis, Expression]) -> Affine | None:
    """The affine form of an index whose axes have values, without building the index. None if it
    is not a sum of axes times constants, or a value is not affine."""
    if isinstance(index, Axis):             # as most indices are
        return affine(values.get(index, index))
    if not _is_sum(index):
        return None
    form = affine(index)
    if form is None:
        return None
    constant = form.constant
    terms: dict[Axis, int] = {}
    for axis, coefficient in form.terms.items():
        inner = affine(values.get(axis, axis))
        if inner is None:
            return None
        constant += coefficient * inner.constant
        for each, factor in inner.terms.items():
            terms[each] = terms.get(each, 0) + coefficient * factor
    return Affine(constant, {axis: each for axis, each in terms.items() if each})


def _is_sum(index: Expression) -> bool:
    """Whether an index consists of nothing but sums, differences and products."""
    if isinstance(index, Binary):
        known: dict[str, bool] = index.__dict__
        if SUM not in known:
            known[SUM] = index.operator in SUMS and _is_sum(index.left) and _is_sum(index.right)
        return known[SUM]
    return isinstance(index, Axis | Constant)


def _combine(expression: Binary) -> Affine | None:
    if expression.operator not in ("+", "-", "*", "//", "%"):
        return None
    left, right = affine(expression.left), affine(expression.right)
    if left is None or right is None:
        return None
    if expression.operator in ("//", "%"):
        return _divide(expression.operator, left, right)
    if expression.operator == "+":
        return left + right
    if expression.operator == "-":
        return left + right.times(-1)
    if not right.terms:
        return left.times(right.constant)
    if not left.terms:
        return right.times(left.constant)
    return None


def _divide(operator: str, left: Affine, right: Affine) -> Affine | None:
    """(8 × i + j) // 8 is i, and the rest is j, if j is one of 0 … 7."""
    divisor = right.constant
    if right.terms or divisor <= 0:
        return None
    whole = {axis: each // divisor for axis, each in left.terms.items() if each % divisor == 0}
    rest = Affine(left.constant % divisor, left.drop_axes(*whole).terms)
    low, high = rest.range()
    if low < 0 or high >= divisor:
        return None
    return Affine(left.constant // divisor, whole) if operator == "//" else rest


def margin(condition: Expression) -> Affine | None:
    """By how much a comparison holds: it does where this is not negative. None for anything but
    < and <= between affine indices."""
    known: dict[str, Affine | None] = condition.__dict__
    if MARGIN not in known:
        known[MARGIN] = _margin(condition)
    return known[MARGIN]


def _margin(condition: Expression) -> Affine | None:
    match condition:
        case Binary(operator="<" | "<="):
            left, right = affine(condition.left), affine(condition.right)
            if left is not None and right is not None:
                return Affine(-(condition.operator == "<")) + right + left.times(-1)
    return None


def opposite(condition: Expression) -> Expression:
    """The comparison that holds where one with < or <= does not."""
    assert isinstance(condition, Binary), "a comparison has two sides"
    operator = {"<": "<=", "<=": "<"}[condition.operator]
    return Binary(operator, condition.right, condition.left)


def is_simple(index: Expression) -> bool:
    """Whether an index is an affine form as `simplify_index` writes it."""
    return SIMPLE in index.__dict__ or (
        isinstance(index, Axis | Constant) and index.dtype == INDEX)


def simplify_index(index: Expression) -> Expression:
    """An affine index in its shortest form; any other index unchanged."""
    if SIMPLE in index.__dict__ or isinstance(index, Axis):
        return index
    form = affine(index)
    return index if form is None else form.expression()
