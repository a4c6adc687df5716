"""Forms transfers: loops that only copy between DRAM and a scratchpad become one copy of a box.

    for c in 4: for y in 6: for x in 10:                    copy x.inp[0 :+ 4, 0 :+ 6, 0 :+ 10]
        x.inp[c, y, x] = select(1 <= y0 + y and …,     →      from x[0 :+ 4, y0 - 1 :+ 6, -1 :+ 10]
                                x[c, y0 + y - 1, …], 5)        padding 5

A condition that only keeps the copy inside the buffers is what a copy does by itself. Padding is
recognized where the condition says exactly that the source lies inside its buffer. Where loops are
not one copy, those inside them may be, and the others stay. Of loops that the schedule marks
(`Stage.dma`) none may stay that is not around a copy, and it is said why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...errors import CompileError
from ...expression.affine import Affine, affine, margin, simplify_index
from ...expression.elements import axes_in
from ...expression.expression import Axis, Cast, Constant, Expression, Select, both
from ...expression.intervals import conjuncts
from ...nest.nest import (
    DMA,
    LOADED,
    ON_CHIP,
    STORED,
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
    statements_of,
    with_children,
)
from ...nest.perfect_loops import MismatchError, PerfectLoops, perfect

Bound = tuple[int, frozenset[tuple[Axis, int]]]      # constant + Σ coefficient × axis >= 0
Bounds = dict[Bound, int]       # with the least value of each


def form_transfers(nest: Nest) -> Nest:
    """The nest with every loop that is a transfer as a `Copy`."""
    if not any(isinstance(each, Marked | Assign) for each in statements_of(nest.body)):
        return nest
    return replace(nest, body=_rewrite_statement(nest.body))


def _rewrite_statement(statement: Statement) -> Statement:
    if isinstance(statement, Marked):
        return form_marked(statement) if statement.intrinsic == DMA else statement
    try:
        return _transfer(perfect(statement))
    except MismatchError:
        children = tuple(_rewrite_statement(child) for child in statement.children())
        return with_children(statement, children) if children else statement


def form_marked(marked: Marked) -> Statement:
    """The transfers that marked loops must be: one, or one for each iteration of outer loops."""
    assigns = [each for each in statements_of(marked.body) if isinstance(each, Assign)]
    formed = _rewrite_statement(marked.body)
    try:
        if not all(isinstance(each, Loop | When | Copy) for each in statements_of(formed)):
            _transfer(perfect(_thread_body(marked.body)))        # says why not
        for each in statements_of(formed):
            if isinstance(each, Copy):
                _check_way(each.target.buffer.scope, each.source.buffer.scope)
    except MismatchError as reason:
        which = f" to {assigns[-1].target.buffer}" if assigns else ""   # the others come before
        raise CompileError(f"the copy{which} cannot be a transfer: {reason}") from None
    return formed


def _thread_body(statement: Statement) -> Statement:
    """What each thread of some loops does."""
    inner = statement
    while isinstance(inner, Loop):
        statement, inner = (inner.body if inner.kind == LoopKind.THREADS else statement), inner.body
    return statement


def _check_way(target: Scope, source: Scope) -> None:
    """Refuse a copy that the hardware cannot make out of or into a scratchpad."""
    loads = target in ON_CHIP
    here, ways = (target, LOADED) if loads else (source, STORED)
    if here not in ways:
        raise MismatchError(f"{here.value} cannot be {'loaded' if loads else 'stored'}; "
                            f"{', '.join(scope.value for scope in ways)} can")


def form_perfect(loops: PerfectLoops) -> Statement:
    """The transfer that loops around one assignment are. Raises MismatchError with the reason if
    they are not one that there is."""
    formed = _transfer(loops)
    copy = formed.body if isinstance(formed, When) else formed
    assert isinstance(copy, Copy), "loops around one assignment have nothing else inside"
    _check_way(copy.target.buffer.scope, copy.source.buffer.scope)
    return formed


def _transfer(found: PerfectLoops) -> Statement:
    """The copy that some loops are. Raises MismatchError with the reason if they are not one."""
    if found.threads:
        raise MismatchError(f"iterations of {found.threads[0]} are virtual threads, which make a "
                            f"transfer each")
    axes, conditions, assign = found.axes, found.conditions, found.assign
    if not axes:
        raise MismatchError(f"{assign.target} is one element; a transfer moves whole tiles")
    source, padding, guard = _source(assign)
    target_box, source_box = _box(assign.target, axes), _box(source, axes)
    if _order(assign.target, axes) != _order(source, axes):
        raise MismatchError(f"{source} becomes {assign.target}, which is a transposition; "
                            f"dimensions must keep their order")
    if target_box.extents != source_box.extents:
        raise MismatchError(f"it takes a box of {source_box.extents} out of {source.buffer} to one "
                            f"of {target_box.extents}; they must be the same")
    copy = Copy(target_box, source_box, padding)
    if not conditions and guard is None and _is_inside(assign.target) and _is_inside(source):
        return copy
    in_target, in_source = _bounds_of_access(assign.target), _bounds_of_access(source)
    axes_inside = set(axes)
    inside = in_target | in_source
    outer = [each for each in conditions if axes_inside.isdisjoint(axes_in(each))]
    bounds = set()
    for each in conditions:
        if each not in outer:
            bound = _bound_of(each)
            bounds.add(bound)
            if not _is_implied(bound, inside):
                raise MismatchError(f"it is done only where {each}; a transfer leaves out only "
                                    f"what lies outside {assign.target.buffer} or {source.buffer}")
    if guard is not None:
        needed, checked = _conditional_bounds(in_source), _required_bounds(guard)
        if not checked <= needed <= checked | bounds:
            raise MismatchError(f"it pads where not {guard}; a transfer pads exactly where "
                                f"{source} lies outside {source.buffer}")
    if assign.target.buffer.scope in ON_CHIP:
        _check_reach(in_target, in_source, assign.target, source, padded=padding is not None)
    else:
        _check_reach(in_source, in_target, source, assign.target, padded=padding is not None)
    return When(both(*outer), copy) if outer else copy


def _check_reach(on_chip: Bounds, in_dram: Bounds, chip: Access, dram: Access, *,
                 padded: bool) -> None:
    """Refuse a copy that would reach beyond its buffer on the chip: it is cut only where its buffer
    in DRAM ends, and not even there if what lies outside is padded."""
    for bound in _conditional_bounds(on_chip):
        if padded or not _is_implied(bound, in_dram):
            raise MismatchError(f"it may reach beyond {chip.buffer}, but a transfer is cut only "
                                f"where {dram.buffer} ends; divide {chip.buffer} evenly")


def _source(assign: Assign) -> tuple[Access, int | None, Expression | None]:
    """What is copied; the padding, and the condition under which there is none."""
    source, padding, guard = assign.value, None, None
    if isinstance(source, Select) and isinstance(source.otherwise, Constant):
        padding, guard, source = int(source.otherwise.value), source.condition, source.then
    if (isinstance(source, Cast) and assign.target.buffer.scope == Scope.ACC
            and (source.dtype, source.value.dtype) == ("int32", "int8")):
        source = source.value           # the accumulator widens what it loads
    if not isinstance(source, Access):
        raise MismatchError(f"{source} is computed; a transfer moves elements as they are, or "
                            f"widens int8 to int32 in acc")
    target, origin = assign.target.buffer, source.buffer
    if (target.scope in ON_CHIP) == (origin.scope in ON_CHIP):
        raise MismatchError(f"{origin} lies in {origin.scope.value} and {target} in "
                            f"{target.scope.value}; one must lie in dram, one in a scratchpad")
    return source, padding, guard


def _box(access: Access, axes: list[Axis]) -> Region:
    """The box that an access covers, where every axis steps along one dimension of it."""
    start, extents = [], []
    used: set[Axis] = set()
    for index in access.indices:
        form = affine(index)
        if form is None:
            raise MismatchError(f"{index} in {access.buffer} is not a sum of loops times constants")
        moving = [axis for axis in form.terms if axis in axes]
        if not moving:
            start.append(simplify_index(index))
            extents.append(1)
            continue
        if len(moving) > 1:
            raise MismatchError(f"{index} in {access.buffer} moves with {len(moving)} loops, "
                                f"{' and '.join(map(str, moving))}; a transfer has one loop a "
                                f"dimension")
        axis, = moving
        if form.terms[axis] != 1:
            raise MismatchError(f"{index} in {access.buffer} goes {form.terms[axis]} elements "
                                f"further each time; a transfer takes one after the other")
        if axis in used:
            raise MismatchError(f"{access} moves along two dimensions with {axis}")
        used.add(axis)
        start.append(form.drop_axes(axis).expression())
        extents.append(axis.extent)
    for axis in axes:
        if axis not in used and axis.extent > 1:
            raise MismatchError(f"{access} is the same for all {axis.extent} of {axis}; mark a "
                                f"loop inside it")
    return Region(access.buffer, tuple(start), tuple(extents))


def _order(access: Access, axes: list[Axis]) -> list[Axis]:
    """The axes that an access steps along, by dimension."""
    forms = [affine(index) for index in access.indices]
    return [axis for form in forms if form is not None for axis in form.terms
            if axis in axes and axis.extent > 1]


def _is_implied(bound: Bound | None, inside: Iterable[Bound]) -> bool:
    """Whether one of those `inside` fails wherever a bound fails."""
    return bound is not None and any(terms == bound[1] and constant <= bound[0]
                                     for constant, terms in inside)


def _form(form: Affine) -> Bound:
    return form.constant, frozenset(form.terms.items())


def _is_inside(access: Access) -> bool:
    """Whether an access never leaves its buffer."""
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        form = affine(index)
        assert form is not None, "a box has been made of it"
        low, high = form.range()
        if low < 0 or high >= extent:
            return False
    return True


def _bounds_of_access(access: Access) -> Bounds:
    """What must hold for an access to lie inside its buffer."""
    bounds: Bounds = {}
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        form = affine(index)
        assert form is not None
        low, high = form.range()
        bounds[_form(form)] = low
        bounds[extent - 1 - form.constant,
               frozenset([(axis, -each) for axis, each in form.terms.items()])] = extent - 1 - high
    return bounds


def _conditional_bounds(bounds: Bounds) -> set[Bound]:
    """Those that do not always hold."""
    return {bound for bound, least in bounds.items() if least < 0}


def _bound_of(condition: Expression) -> Bound | None:
    """A comparison as a bound."""
    form = margin(condition)
    return None if form is None else _form(form)


def _required_bounds(condition: Expression) -> set[Bound | None]:
    bounds = {_bound_of(each) for each in conjuncts(condition)}
    return {bound for bound in bounds
            if bound is None or Affine(bound[0], dict(bound[1])).range()[0] < 0}
