"""The range of an index: the smallest and the largest value that it can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..errors import CompileError
from .affine import Affine, affine
from .expression import (
    INDEX,
    INTEGERS,
    LIMITS,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Function,
    Reduction,
    Select,
)

Interval = tuple[int, int]          # both ends included
Known = Mapping[Expression, Interval]


def interval_of(expression: Expression, known: Known) -> Interval:
    """The range of an index, given what is known about parts of it. It is exact for an affine
    index about which nothing is known."""
    form = affine(expression)
    if form is not None and not form.terms:         # as most indices of a tile are
        return form.constant, form.constant
    if form is not None and not known:
        return form.range()
    if form is not None:
        return _affine_interval(form, list(_facts(known)), known)
    result = _interval_of(expression, known)
    return _meet(result, known[expression]) if expression in known else result


def _meet(one: Interval, other: Interval) -> Interval:
    return max(one[0], other[0]), min(one[1], other[1])


def _times(interval: Interval, factor: int) -> Interval:
    ends = interval[0] * factor, interval[1] * factor
    return min(ends), max(ends)


def _sum(one: Interval, other: Interval) -> Interval:
    return one[0] + other[0], one[1] + other[1]


Fact = tuple[Affine, Interval]


def _facts(known: Known) -> Iterator[Fact]:
    """What is known about sums beyond what follows from their axes."""
    for expression, interval in known.items():
        form = affine(expression) if isinstance(expression, Binary) else None
        if form is not None and _meet(interval, form.range()) != form.range():
            yield form, interval


def _affine_interval(form: Affine, facts: Sequence[Fact], known: Known) -> Interval:
    """Each axis is counted once, so that i + 4 - i is 4, however it is written. If the form has a
    multiple of a sum about which something is known, the range is also limited by that multiple
    plus the rest: i + j < 8 says something about i * 2 + j * 2 + k."""
    result = form.constant, form.constant
    for axis, coefficient in form.terms.items():
        everything = 0, axis.extent - 1
        result = _sum(result, _times(_meet(everything, known.get(axis, everything)), coefficient))
    for place, (fact, interval) in enumerate(facts):
        for factor in {form.of(axis) // each for axis, each in fact.terms.items()}:
            rest = form + fact.times(-factor)
            if factor and len(rest.terms) < len(form.terms):
                others = _affine_interval(rest, facts[place + 1:], known)
                result = _meet(result, _sum(_times(interval, factor), others))
    return result


def _interval_of(expression: Expression, known: Known) -> Interval:
    match expression:
        case Binary(operator="+" | "-" | "*" | "min" | "max" | "//" | "%"):
            return _combine(expression, known)
        case Select():
            then = interval_of(expression.then,
                               {**known, **implied_intervals(expression.condition, known)})
            otherwise = interval_of(expression.otherwise, known)
            return min(then[0], otherwise[0]), max(then[1], otherwise[1])
        case Cast(dtype="index", value=Expression(dtype=dtype)) if dtype in INTEGERS:
            # Data: whatever its type holds, in the 64 bits of an index.
            return LIMITS["int64" if dtype == "uint64" else dtype]
        case Call(function=Function(name="checked"), arguments=(_, Constant(value=extent))):
            return 0, int(extent) - 1
    raise CompileError(f"{expression} is not an index: only +, -, *, //, %, min, max and select of "
                       f"axes and whole numbers are")


def _combine(expression: Binary, known: Known) -> Interval:
    left, right = interval_of(expression.left, known), interval_of(expression.right, known)
    match expression.operator:
        case "+":
            return left[0] + right[0], left[1] + right[1]
        case "-":
            return left[0] - right[1], left[1] - right[0]
        case "min":
            return min(left[0], right[0]), min(left[1], right[1])
        case "max":
            return max(left[0], right[0]), max(left[1], right[1])
        case "*":
            corners = [one * other for one in left for other in right]
            return min(corners), max(corners)
    if right[0] != right[1] or right[0] < 1:
        raise CompileError(f"{expression}: an index is divided by positive constants only")
    divisor = right[0]
    if expression.operator == "//":
        return left[0] // divisor, left[1] // divisor
    if left[0] // divisor == left[1] // divisor:
        return left[0] % divisor, left[1] % divisor
    return 0, divisor - 1


def implied_intervals(condition: Expression, known: Known) -> dict[Expression, Interval]:
    """What follows for the sides of a condition's comparisons if the condition holds."""
    found: dict[Expression, Interval] = {}
    for comparison in conjuncts(condition):
        if not isinstance(comparison, Binary) or comparison.left.dtype != INDEX:
            continue
        strict = comparison.operator == "<"
        left = interval_of(comparison.left, {**known, **found})
        right = interval_of(comparison.right, {**known, **found})
        if comparison.operator in ("<", "<="):
            _narrow(found, comparison.left, (left[0], min(left[1], right[1] - strict)))
            _narrow(found, comparison.right, (max(right[0], left[0] + strict), right[1]))
        elif comparison.operator == "==":
            _narrow(found, comparison.left, _meet(left, right))
            _narrow(found, comparison.right, _meet(left, right))
    return found


def _narrow(found: dict[Expression, Interval], expression: Expression, to: Interval) -> None:
    """Note a range. An empty range stays empty: the condition never holds."""
    low, high = found.get(expression, to)
    found[expression] = max(low, to[0]), min(high, to[1])


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions, most of them comparisons, that must all hold."""
    if isinstance(condition, Binary) and condition.operator == "and":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def children(expression: Expression, known: Known) -> Iterator[tuple[Expression, Known]]:
    """The operands of an expression, each with what is known where it is evaluated."""
    if isinstance(expression, Select):
        yield expression.condition, known
        more = implied_intervals(expression.condition, known)
        yield expression.then, {**known, **more} if more else known
        yield expression.otherwise, known
    elif isinstance(expression, Reduction):
        yield expression.value, known
    else:
        yield from ((operand, known) for operand in expression.operands())
