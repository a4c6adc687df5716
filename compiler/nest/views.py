"""Nests whose buffers in DRAM are parts of larger ones, one after the other in one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...base.classes.dataclass import dataclass
from ..errors import CompileError
from ..expression.expression import Constant, Expression
from .nest import (
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Nest,
    Region,
    Start,
    Statement,
    make_sequence,
    statements_of,
    with_children,
)


@dataclass(frozen=True)
class View:
    """A buffer as a part of another one with more dimensions. Those in `fixed` stay at one index;
    the others are those of the part, in order. The part begins at `offsets` along dimensions of
    the larger buffer, 0 unless given."""

    buffer: Buffer
    fixed: Mapping[int, int] = field(default_factory=dict)
    offsets: Mapping[int, int] = field(default_factory=dict)


Views = Mapping[Buffer, View]


def concatenate(parts: Sequence[tuple[Nest, Views]], inputs: tuple[Buffer, ...],
                outputs: tuple[Buffer, ...]) -> Nest:
    """Several nests in a row, on views of common buffers.

        copy y.out[0 :+ 4] to y0[i :+ 4]    →    copy y.out[0 :+ 4, 0] to y[i :+ 4, 0]

    where y0 is the view of y at {1: 0}. Both sides of a copy have the same dimensions, so a buffer
    on the chip gets a dimension of extent 1 wherever a view has one more.
    """
    bodies = []
    for nest, views in parts:
        bodies.append(_view(nest.body, {**views, **_copied_buffers(nest, views)}))
    return Nest(inputs, outputs, make_sequence(*bodies))


def _copied_buffers(nest: Nest, views: Views) -> dict[Buffer, View]:
    """The other sides of copies from and to views."""
    found: dict[Buffer, View] = {}
    for statement in statements_of(nest.body):
        if isinstance(statement, Copy):
            for here, there in ((statement.source.buffer, statement.target.buffer),
                                (statement.target.buffer, statement.source.buffer)):
                if here in views:
                    fixed = dict.fromkeys(views[here].fixed, 0)
                    wider = replace(there, shape=_insert(there.shape, dict.fromkeys(fixed, 1)))
                    known = found.setdefault(there, View(wider, fixed))
                    if known.fixed != fixed:
                        raise CompileError(f"{there.name} is copied from and to views that have "
                                           f"further dimensions at different places")
    return found


def _insert(values: tuple[int, ...], more: Mapping[int, int]) -> tuple[int, ...]:
    longer = list(values)
    for place in sorted(more):
        longer.insert(place, more[place])
    return tuple(longer)


def _view(statement: Statement, views: Views) -> Statement:
    match statement:
        case Copy():
            return replace(statement, target=_region(statement.target, views),
                           source=_region(statement.source, views))
        case Invoke():
            return replace(statement, regions=tuple(_region(each, views)
                                                    for each in statement.regions))
        case Start():
            return replace(statement, target=_region(statement.target, views))
        case Allocate() if statement.buffer in views:
            statement = replace(statement, buffer=views[statement.buffer].buffer)
    assert not isinstance(statement, Assign), "what touches DRAM is a copy by now"
    children = tuple(_view(child, views) for child in statement.children())
    return with_children(statement, children) if children else statement


def _region(region: Region, views: Views) -> Region:
    view = views.get(region.buffer)
    if view is None:
        return region
    start: list[Expression] = list(region.start)
    for place in sorted(view.fixed):
        start.insert(place, Constant(view.fixed[place]))
    for place, offset in view.offsets.items():
        start[place] = start[place] + offset
    return Region(view.buffer, tuple(start),
                  _insert(region.extents, dict.fromkeys(view.fixed, 1)))
