"""Forms transfers: loops that only copy between DRAM and a scratchpad become one copy of a box.

    for c in 4: for y in 6: for x in 10:                    copy x.inp[0 :+ 4, 0 :+ 6, 0 :+ 10]
        x.inp[c, y, x] = select(1 <= y0 + y and …,     →      from x[0 :+ 4, y0 - 1 :+ 6, -1 :+ 10]
                                x[c, y0 + y - 1, …], 5)        padding 5

A condition that only keeps the copy inside the buffers is what a copy does by itself. Padding is
recognized where the condition says exactly that the source lies inside its buffer.
"""

from __future__ import annotations

from dataclasses import replace

from .affine import Affine, affine
from .expression import Axis, Binary, Cast, Constant, Expression, Select, both, walk
from .intervals import conjuncts
from .nest import (
    Access,
    Assign,
    Copy,
    Loop,
    LoopKind,
    Marked,
    Nest,
    Region,
    Scope,
    Statement,
    When,
    with_children,
)

Bound = tuple[int, frozenset[tuple[Axis, int]]]      # constant + Σ coefficient × axis >= 0
ON_CHIP = (Scope.UOP, Scope.INP, Scope.WGT, Scope.ACC, Scope.OUT)


def form_transfers(nest: Nest) -> Nest:
    """The nest with every loop that is a transfer as a `Copy`."""
    return replace(nest, body=_formed(nest.body))


def _formed(statement: Statement) -> Statement:
    if isinstance(statement, Marked):
        return statement
    copy = _as_copy(statement)
    if copy is not None:
        return copy
    children = tuple(_formed(child) for child in statement.children())
    return with_children(statement, children) if children else statement


def _as_copy(statement: Statement) -> Statement | None:
    """The copy that some loops are, or None."""
    axes: list[Axis] = []
    while isinstance(statement, Loop) and statement.kind != LoopKind.THREADS:
        axes.append(statement.axis)
        statement = statement.body
    conditions: list[Expression] = []
    if isinstance(statement, When):
        conditions = list(conjuncts(statement.condition))
        statement = statement.body
    if not isinstance(statement, Assign) or not axes:
        return None
    source, padding, guard = statement.value, None, None
    if isinstance(source, Select) and isinstance(source.otherwise, Constant):
        padding, guard, source = int(source.otherwise.value), source.condition, source.then
    if (isinstance(source, Cast) and statement.target.buffer.scope == Scope.ACC
            and (source.dtype, source.value.dtype) == ("int32", "int8")):
        source = source.value           # the accumulator widens what it loads
    if not isinstance(source, Access) or not _between(statement.target, source):
        return None
    target_box, source_box = _box(statement.target, axes), _box(source, axes)
    if target_box is None or source_box is None or target_box.extents != source_box.extents:
        return None
    if _order(statement.target, axes) != _order(source, axes):
        return None             # a transposition
    inside = {*_inside(statement.target), *_inside(source)}
    outer = [each for each in conditions if not any(node in axes for node in walk(each)
                                                    if isinstance(node, Axis))]
    bounds = {_bound(each) for each in conditions if each not in outer}
    if not all(_is_implied(bound, inside) for bound in bounds):
        return None
    if guard is not None:
        needed, checked = _relevant(_inside(source)), _needed_bounds(guard)
        if not checked <= needed <= checked | bounds:
            return None
    copy = Copy(target_box, source_box, padding)
    return When(both(*outer), copy) if outer else copy


def _between(target: Access, source: Access) -> bool:
    """Whether one side is on the chip and the other is not."""
    return (target.buffer.scope in ON_CHIP) != (source.buffer.scope in ON_CHIP)


def _box(access: Access, axes: list[Axis]) -> Region | None:
    """The box that an access covers, if every axis steps along one dimension of it."""
    start, extents, used = [], [], set()
    for index in access.indices:
        form = affine(index)
        if form is None:
            return None
        moving = [axis for axis in axes if form.of(axis)]
        if len(moving) > 1 or any(form.of(axis) != 1 or axis in used for axis in moving):
            return None
        used.update(moving)
        start.append(form.without(*moving).expression())
        extents.append(moving[0].extent if moving else 1)
    if any(axis not in used and axis.extent > 1 for axis in axes):
        return None
    return Region(access.buffer, tuple(start), tuple(extents))


def _order(access: Access, axes: list[Axis]) -> list[Axis]:
    """The axes that an access steps along, by dimension."""
    forms = [affine(index) for index in access.indices]
    return [axis for form in forms if form is not None for axis in axes
            if form.of(axis) and axis.extent > 1]


def _is_implied(bound: Bound | None, inside: set[Bound]) -> bool:
    """Whether, where a bound does not hold, one of those does not hold either."""
    return bound is not None and any(terms == bound[1] and constant <= bound[0]
                                     for constant, terms in inside)



def _form(form: Affine) -> Bound:
    return form.constant, frozenset(form.terms.items())


def _inside(access: Access) -> set[Bound]:
    """What must hold for an access to lie inside its buffer."""
    bounds = set()
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        form = affine(index)
        assert form is not None
        bounds |= {_form(form), _form(form.times(-1) + Affine(extent - 1))}
    return bounds


def _relevant(bounds: set[Bound]) -> set[Bound]:
    """Those that do not hold anyway."""
    return {bound for bound in bounds if Affine(bound[0], dict(bound[1])).range()[0] < 0}


def _bound(condition: Expression) -> Bound | None:
    """A comparison as a bound."""
    if not isinstance(condition, Binary) or condition.operator not in ("<", "<="):
        return None
    left, right = affine(condition.left), affine(condition.right)
    if left is None or right is None:
        return None
    return _form(right + left.times(-1) + Affine(-(condition.operator == "<")))


def _needed_bounds(condition: Expression) -> set[Bound | None]:
    bounds = {_bound(each) for each in conjuncts(condition)}
    return {bound for bound in bounds
            if bound is None or Affine(bound[0], dict(bound[1])).range()[0] < 0}

