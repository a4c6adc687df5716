"""Puts hardware intrinsics in the place of loops that compute the same, or says why it cannot.

    for b in 1: for o in 16: for k in 16:
        acc[t, b, o] = acc[t, b, o] + int32(inp[s, b, k]) * int32(wgt[u, o, k])
                    →
    gemm acc[t], inp[s], wgt[u]

The body is unified with the intrinsic's expression: its axes with the loops, its tensors with the
last dimensions of buffers. Dimensions before these say which tile.
"""

from __future__ import annotations

from dataclasses import field, replace

from ....base.classes.dataclass import dataclass
from ...errors import CompileError
from ...expression.affine import ZERO
from ...expression.elements import axes_in
from ...expression.expression import (
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Element,
    Expression,
    Reduction,
    Select,
    both,
)
from ...expression.tensor import Tensor
from ...nest.nest import (
    DMA,
    Access,
    Assign,
    Invoke,
    Marked,
    Nest,
    Region,
    Start,
    Statement,
    with_children,
)
from ...nest.perfect_loops import MismatchError, PerfectLoops, perfect
from .intrinsic import Intrinsic, Intrinsics, find_intrinsic


def tensorize(nest: Nest, intrinsics: Intrinsics) -> Nest:
    """The nest with every marked part as an intrinsic."""
    return replace(nest, body=_tensorize(nest.body, intrinsics))


def _tensorize(statement: Statement, intrinsics: Intrinsics) -> Statement:
    if isinstance(statement, Marked) and statement.intrinsic != DMA:        # for `form_transfers`
        return tensorize_marked(statement, intrinsics)
    children = tuple(_tensorize(child, intrinsics) for child in statement.children())
    return with_children(statement, children) if children else statement


def tensorize_marked(marked: Marked, intrinsics: Intrinsics) -> Statement:
    """The intrinsic that marked loops must be."""
    intrinsic = find_intrinsic(marked.intrinsic, intrinsics)
    try:
        return match(perfect(marked.body), intrinsic, starts=marked.starts)
    except MismatchError as reason:
        raise CompileError(f"these loops are not {marked.intrinsic}: {reason}") from None


@dataclass
class Unifier:
    """What has been found to correspond so far."""

    intrinsic: Intrinsic
    axes: dict[Axis, Axis] = field(default_factory=dict)            # of the intrinsic → loops
    tiles: dict[Tensor, Access] = field(default_factory=dict)


def match(found: PerfectLoops, intrinsic: Intrinsic, *, starts: bool) -> Invoke | Start:
    """Unify marked loops with an intrinsic. Raises MismatchError with the reason."""
    loops, assign = found.axes, found.assign
    if found.conditions:
        raise MismatchError(f"{assign.target} is computed only where {both(*found.conditions)}; "
                            f"split its axes by factors that divide them")
    unifier = Unifier(intrinsic)
    tensor = intrinsic.tensor
    _tile(unifier, Element(tensor, tensor.axes), assign.target)
    if starts:
        first = _first_value(assign)
        _check_all_used(loops, [unifier.axes[axis] for axis in tensor.axes])
        return Start(intrinsic.name, _region(unifier, tensor, loops), first)
    body, value = tensor.body, assign.value
    assert body is not None
    if isinstance(body, Reduction):
        value = _addend(assign, body)
        body = body.value
    _unify(unifier, body, value)
    _check_all_used(loops, list(unifier.axes.values()))
    regions = tuple(_region(unifier, each, loops) for each in intrinsic.operands)
    return Invoke(intrinsic.name, regions)


def _first_value(assign: Assign) -> int:
    if not isinstance(assign.value, Constant):
        raise MismatchError(f"a sum starts from {assign.value}, not from a constant")
    return int(assign.value.value)


def _addend(assign: Assign, body: Reduction) -> Expression:
    """What is added to the target."""
    value = assign.value
    if not isinstance(value, Binary) or value.operator != body.combiner or (
            value.left != assign.target):
        raise MismatchError(f"{assign.target} becomes {value}, but must become "
                       f"{assign.target} {body.combiner} something")
    return value.right


def _unify(unifier: Unifier, pattern: Expression, value: Expression) -> None:
    match pattern, value:
        case Element(), Access():
            _tile(unifier, pattern, value)
        case Cast(), Cast() if pattern.dtype == value.dtype:
            _unify(unifier, pattern.value, value.value)
        case Binary(), Binary() if pattern.operator == value.operator:
            _unify(unifier, pattern.left, value.left)
            _unify(unifier, pattern.right, value.right)
        case Call(), Call() if pattern.function == value.function:
            for one, other in zip(pattern.arguments, value.arguments, strict=True):
                _unify(unifier, one, other)
        case Select(), Select():
            for one, other in zip(pattern.operands(), value.operands(), strict=True):
                _unify(unifier, one, other)
        case Axis(), Axis():
            _index(unifier, pattern, value)
        case Constant(), Constant() if pattern == value:
            pass
        case _:
            raise MismatchError(f"{value} stands where {pattern} should")


def _tile(unifier: Unifier, pattern: Element, access: Access) -> None:
    """Unify an element of an intrinsic's tensor with an access: the last dimensions are those of
    the tile, the ones before say which tile."""
    tensor = pattern.tensor
    scope = unifier.intrinsic.scopes[tensor]
    if access.buffer.scope != scope:
        raise MismatchError(f"{access.buffer} lies in {access.buffer.scope.value}, but must lie in "
                       f"{scope.value}")
    if access.dtype != tensor.dtype:
        raise MismatchError(f"{access.buffer} is {access.dtype}, but must be {tensor.dtype}")
    dimensions = len(tensor.shape)
    if access.buffer.shape[-dimensions:] != tensor.shape:
        raise MismatchError(f"the last dimensions of {access.buffer} are "
                       f"{access.buffer.shape[-dimensions:]}, but a tile of {tensor.name} has "
                       f"{tensor.shape}")
    for one, other in zip(pattern.indices, access.indices[-dimensions:], strict=True):
        _index(unifier, one, other)
    known = unifier.tiles.setdefault(tensor, access)
    if known.indices[:-dimensions] != access.indices[:-dimensions]:
        raise MismatchError(f"{tensor.name} is {known} in one place and {access} in another")


def _index(unifier: Unifier, pattern: Expression, value: Expression) -> None:
    axes = [axis for axis in axes_in(pattern) if axis.extent > 1]
    if not axes:
        if isinstance(value, Axis) and value.extent == 1:
            for axis in axes_in(pattern):
                unifier.axes.setdefault(axis, value)
        elif value != Constant(0):
            raise MismatchError(f"{value} stands where only 0 can be")
        return
    axis, = axes
    if not isinstance(value, Axis) or value.extent != axis.extent:
        extent = f", which runs to {value.extent}" if isinstance(value, Axis) else ""
        raise MismatchError(f"{value}{extent} stands where a loop of {axis.extent} should")
    if unifier.axes.setdefault(axis, value) is not value:
        raise MismatchError(f"{value} stands where {unifier.axes[axis]} should")


def _check_all_used(loops: list[Axis], used: list[Axis]) -> None:
    for axis in used:
        if axis not in loops and axis.extent > 1:
            raise MismatchError(f"the loop over {axis} is a part of it, but stands outside; "
                                f"tensorize that loop")
    for axis in loops:
        if axis not in used and axis.extent > 1:
            raise MismatchError(f"the loop over {axis} has no part in it; tensorize the loop "
                                f"inside it")


def _region(unifier: Unifier, tensor: Tensor, loops: list[Axis]) -> Region:
    """The tile that an operand is. Which one must not depend on the loops inside."""
    access = unifier.tiles[tensor]
    dimensions = len(tensor.shape)
    outer = access.indices[:-dimensions]
    for index in outer:
        for axis in axes_in(index):
            if axis in loops:
                raise MismatchError(f"which tile of {access.buffer} it is changes with {axis}, "
                                    f"a loop inside")
    zeros = (ZERO,) * dimensions
    return Region(access.buffer, (*outer, *zeros), (*(1,) * len(outer), *tensor.shape))
