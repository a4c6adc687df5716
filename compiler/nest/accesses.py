"""What a statement of a loop nest reads and writes: boxes of buffers, and when."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.classes.dataclass import dataclass
from ..expression.affine import is_simple
from ..expression.expression import INDEX, Binary, Expression, Select, walk
from ..expression.intervals import Interval, Known, conjuncts, implied_intervals
from .nest import Access, Assign, Buffer, Copy, Invoke, Region, Start, Statement, When

Conditions = tuple[Expression, ...]


@dataclass(frozen=True)
class Touch:
    """A box of a buffer that is read or written if all conditions hold."""

    region: Region
    writes: bool
    conditions: Conditions = ()
    clipped: bool = False           # the part outside the buffer is not touched


def touches(statement: Statement, conditions: Conditions = ()) -> Iterator[Touch]:
    """What a statement itself touches, without the statements inside it; reads before writes.

    An intrinsic writes its first region and reads the others. If it adds to the first, it reads
    that too, which is not listed.
    """
    match statement:
        case When():
            yield from _reads(statement.condition, conditions)
        case Assign():
            yield from _reads(statement.value, conditions)
            yield from _box(_element(statement.target), conditions, writes=True)
        case Copy():
            yield from _box(statement.source, conditions, clipped=True)
            yield from _box(statement.target, conditions, writes=True, clipped=True)
        case Invoke():
            for region in statement.regions[1:]:
                yield from _box(region, conditions)
            for region in statement.regions[:1]:
                yield from _box(region, conditions, writes=True)
        case Start():
            yield from _box(statement.target, conditions, writes=True)


def written_by(statement: Statement) -> Buffer | None:
    """The buffer that a statement itself writes to, if it does."""
    match statement:
        case Assign() | Copy() | Start():
            return statement.target.buffer
        case Invoke() if statement.regions:
            return statement.regions[0].buffer
    return None


def _element(access: Access) -> Region:
    return Region(access.buffer, access.indices, (1,) * len(access.indices))


def _box(region: Region, conditions: Conditions, writes: bool = False,
         clipped: bool = False) -> Iterator[Touch]:
    for index in region.start:
        if not is_simple(index):            # as most are
            yield from _reads(index, conditions)
    yield Touch(region, writes, conditions, clipped)


def _reads(expression: Expression, conditions: Conditions,
           seen: set[int] | None = None) -> Iterator[Touch]:
    """Every element that an expression reads. A select reads only the side it chooses. `seen` are
    the nodes that were visited under the same conditions."""
    seen = set() if seen is None else seen
    if id(expression) in seen:
        return
    seen.add(id(expression))
    if isinstance(expression, Access):
        yield from _box(_element(expression), conditions)
    elif isinstance(expression, Select) and _constrains_indices(expression.condition):
        yield from _reads(expression.condition, conditions, seen)
        yield from _reads(expression.then, (*conditions, expression.condition))
        yield from _reads(expression.otherwise, conditions, seen)
    else:
        for operand in expression.operands():
            yield from _reads(operand, conditions, seen)


def _constrains_indices(condition: Expression) -> bool:
    """Whether anything follows for indices where a condition holds."""
    return any(isinstance(each, Binary) and each.left.dtype == INDEX
               for each in conjuncts(condition))


def intervals_under(conditions: Conditions, known: Known) -> Known | None:
    """What is known where some conditions hold, or None if they never do. What is known of data is
    forgotten: somebody may write them."""
    for condition in conditions:
        more = implied_intervals(condition, known)
        if any(_empty(interval) for interval in more.values()):
            return None
        known = {**known, **{each: interval for each, interval in more.items()
                             if is_simple(each) or not any(
                                 isinstance(node, Access) for node in walk(each))}}
    return known


def _empty(interval: Interval) -> bool:
    return interval[0] > interval[1]
