"""What a loop nest does, literally: one element after the other, in NumPy.

Slow and simple. Statements become generators that pause after each thing they do, so that the
iterations of threads can be interleaved in any way. What nothing has written yet holds a pattern
that no sensible result looks like.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import CompileError
from .evaluate import Array, as_type, numpy_type
from .expression import (
    ARITHMETIC,
    BOOL,
    COMPARISONS,
    INDEX,
    LOGIC,
    Axis,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Select,
)
from .nest import (
    Access,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    LoopKind,
    Marked,
    Nest,
    Region,
    Sequence,
    Statement,
    When,
)

POISON = 0xA5                       # every byte of an undefined integer; undefined floats are NaN
Meaning = Callable[..., None]           # of views of regions, and of attributes as keywords
Intrinsics = Mapping[str, Meaning]
Steps = Iterator[None]
# Python's own operators do to NumPy's scalars what the functions in `expression` do, only faster.
# Indices are plain integers.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **ARITHMETIC, **COMPARISONS, **LOGIC,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, ">>": operator.rshift, "<<": operator.lshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
ON_INDICES: dict[str, Callable[[Any, Any], Any]] = {**OPERATORS, "min": min, "max": max}


@dataclass
class State:
    """What the loops around a statement stand at, and the contents of buffers."""

    axes: dict[Axis, int]
    arrays: dict[Buffer, Array]

    def copy(self) -> State:
        """Another thread: axes and allocations of its own, on the same arrays."""
        return State(dict(self.axes), dict(self.arrays))


Value = Callable[[State], Any]
Run = Callable[[State], Steps]


def interpret(nest: Nest, inputs: Mapping[Buffer, npt.ArrayLike], *,
              intrinsics: Intrinsics | None = None,
              seed: int | None = None) -> dict[Buffer, Array]:
    """The nest's outputs, given its inputs.

    `intrinsics` says what each intrinsic does: a function of views of its regions, in order,
    and of its attributes as keywords. Threads run one after the other, or, with a seed, randomly
    interleaved.
    """
    arrays = {buffer: undefined(buffer) for buffer in nest.outputs}
    for buffer in nest.inputs:
        arrays[buffer] = _given(buffer, inputs)
    order = None if seed is None else random.Random(seed)
    state = State({}, arrays)
    with np.errstate(all="ignore"):
        for _ in _Runner(intrinsics or {}, order).of(nest.body)(state):
            pass
    return {buffer: arrays[buffer] for buffer in nest.outputs}


def undefined(buffer: Buffer) -> Array:
    """The contents of a buffer that nothing has been written to."""
    dtype = numpy_type(buffer.dtype)
    if dtype.kind == "f":
        return np.full(buffer.shape, np.nan, dtype)
    array = np.full((*buffer.shape, dtype.itemsize), POISON, np.uint8).view(dtype)
    return array.reshape(buffer.shape)


def _given(buffer: Buffer, inputs: Mapping[Buffer, npt.ArrayLike]) -> Array:
    if buffer not in inputs:
        raise CompileError(f"{buffer.name} is not given")
    array = np.array(inputs[buffer])            # a copy: a nest may write to what it is given
    if array.shape != buffer.shape or array.dtype != numpy_type(buffer.dtype):
        raise CompileError(f"{buffer.name} is {buffer.dtype} of shape {buffer.shape}, but "
                           f"{array.dtype} of shape {array.shape} is given")
    return array


class _Runner:
    """Turns statements into functions that run them."""

    def __init__(self, intrinsics: Intrinsics, order: random.Random | None):
        self.intrinsics = intrinsics
        self.order = order

    def of(self, statement: Statement) -> Run:
        match statement:
            case Assign():
                return _assign(statement)
            case Copy():
                return _copy(statement)
            case Invoke():
                return self._invoke(statement)
            case Loop():
                return self._loop(statement)
            case When():
                return self._when(statement)
            case Allocate():
                return self._allocate(statement)
            case Marked():
                return self.of(statement.body)
            case Sequence():
                return self._sequence(statement)
        raise AssertionError(f"no meaning for {statement}")

    def _invoke(self, statement: Invoke) -> Run:
        if statement.intrinsic not in self.intrinsics:
            known = ", ".join(self.intrinsics) or "none"
            raise CompileError(f"there is no meaning for intrinsic {statement.intrinsic}; there "
                               f"are {known}")
        function, attributes = self.intrinsics[statement.intrinsic], dict(statement.attributes)
        starts = [_indices(region.start) for region in statement.regions]

        def run(state: State) -> Steps:
            views = [_view(region, start(state), state)
                     for region, start in zip(statement.regions, starts, strict=True)]
            for view in views[1:]:
                view.flags.writeable = False
            function(*views, **attributes)
            yield

        return run

    def _loop(self, loop: Loop) -> Run:
        body, axis = self.of(loop.body), loop.axis

        def in_order(state: State) -> Steps:
            for iteration in range(axis.extent):
                state.axes[axis] = iteration
                yield from body(state)

        def interleaved(state: State) -> Steps:
            assert self.order is not None
            threads = []
            for iteration in range(axis.extent):
                own = state.copy()
                own.axes[axis] = iteration
                threads.append(body(own))
            while threads:
                chosen = self.order.randrange(len(threads))
                try:
                    next(threads[chosen])
                except StopIteration:
                    del threads[chosen]
                    continue
                yield

        return interleaved if loop.kind == LoopKind.THREADS and self.order is not None else in_order

    def _when(self, statement: When) -> Run:
        condition, body = _value(statement.condition), self.of(statement.body)

        def run(state: State) -> Steps:
            if condition(state):
                yield from body(state)

        return run

    def _allocate(self, statement: Allocate) -> Run:
        body, buffer = self.of(statement.body), statement.buffer

        def run(state: State) -> Steps:
            state.arrays[buffer] = undefined(buffer)
            yield from body(state)
            del state.arrays[buffer]

        return run

    def _sequence(self, statement: Sequence) -> Run:
        bodies = [self.of(each) for each in statement.statements]

        def run(state: State) -> Steps:
            for body in bodies:
                yield from body(state)

        return run


def _assign(statement: Assign) -> Run:
    buffer, value = statement.target.buffer, _value(statement.value)
    place = _indices(statement.target.indices)

    def run(state: State) -> Steps:
        indices = place(state)
        _check_inside(buffer, indices)
        state.arrays[buffer][indices] = value(state)
        yield

    return run


def _copy(statement: Copy) -> Run:
    target, source = statement.target, statement.source
    target_start, source_start = _indices(target.start), _indices(source.start)

    def run(state: State) -> Steps:
        there, here = source_start(state), target_start(state)
        inside = _inside(source, there)
        # A copy, because source and target may overlap.
        box = state.arrays[source.buffer][_from(there, inside)].copy()
        if statement.padding is not None:
            _move(state, target, here, statement.padding, _whole(target))
        _move(state, target, here, box, inside)
        yield

    return run


Box = list[tuple[int, int]]         # first and behind the last place in each dimension


def _whole(region: Region) -> Box:
    return [(0, count) for count in region.extents]


def _inside(region: Region, start: tuple[int, ...]) -> Box:
    """The places of a region that lie inside its buffer, counted from its start."""
    places = []
    for first, count, extent in zip(start, region.extents, region.buffer.shape, strict=True):
        low = min(max(-first, 0), count)
        places.append((low, max(low, min(extent - first, count))))
    return places


def _from(start: tuple[int, ...], box: Box) -> tuple[slice, ...]:
    return tuple(slice(first + low, first + high) if low < high else slice(0)
                 for first, (low, high) in zip(start, box, strict=True))


def _move(state: State, target: Region, start: tuple[int, ...], values: Any, box: Box) -> None:
    """Put values in the places of a box, except in those outside the target's buffer."""
    common = [(max(low, least), max(max(low, least), min(high, most)))
              for (low, high), (least, most) in zip(box, _inside(target, start), strict=True)]
    if isinstance(values, np.ndarray):
        values = values[tuple(slice(low - first, high - first)
                              for (low, high), (first, _) in zip(common, box, strict=True))]
    state.arrays[target.buffer][_from(start, common)] = values


def _view(region: Region, start: tuple[int, ...], state: State) -> Array:
    last = tuple(first + count - 1 for first, count in zip(start, region.extents, strict=True))
    _check_inside(region.buffer, start)
    _check_inside(region.buffer, last)
    return state.arrays[region.buffer][tuple(
        slice(first, first + count) for first, count in zip(start, region.extents, strict=True))]


def _check_inside(buffer: Buffer, indices: tuple[int, ...]) -> None:
    """NumPy would count a negative index from the end."""
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not 0 <= index < extent:
            raise CompileError(f"{buffer.name} of shape {buffer.shape} has no element "
                               f"{list(indices)}")


def _indices(expressions: tuple[Expression, ...]) -> Callable[[State], tuple[int, ...]]:
    values = [_value(each) for each in expressions]
    return lambda state: tuple([value(state) for value in values])


def _value(node: Expression) -> Value:
    """A function that gives the value of an expression: of an index a plain int."""
    match node:
        case Constant():
            plain, kind = node.value, numpy_type(node.dtype).type
            constant = plain if node.dtype == INDEX else kind(plain)
            return lambda state: constant
        case Axis():
            return lambda state: state.axes[node]
        case Binary():
            function = (ON_INDICES if node.left.dtype == INDEX else OPERATORS)[node.operator]
            left, right = _value(node.left), _value(node.right)
            return lambda state: function(left(state), right(state))
        case Select():
            condition, then, otherwise = map(_value, node.operands())
            return lambda state: then(state) if condition(state) else otherwise(state)
        case Cast():
            return _cast(node)
        case Call():
            return _call(node)
        case Access():
            return _element(node)
    raise AssertionError(f"no meaning for {node}")


def _number(node: Expression) -> Value:
    """Like `_value`, but an index is a NumPy scalar too."""
    value, kind = _value(node), numpy_type(node.dtype).type
    return (lambda state: kind(value(state))) if node.dtype in (INDEX, BOOL) else value


def _cast(node: Cast) -> Value:
    value, dtype = _number(node.value), node.dtype
    if dtype == INDEX:
        return lambda state: int(as_type(value(state), dtype))
    return lambda state: as_type(value(state), dtype)


def _call(node: Call) -> Value:
    function, dtype = node.function.evaluate, numpy_type(node.dtype)
    arguments = [_number(each) for each in node.arguments]
    return lambda state: np.asarray(function(*(each(state) for each in arguments)), dtype)[()]


def _element(node: Access) -> Value:
    buffer, place = node.buffer, _indices(node.indices)

    def value(state: State) -> Any:
        indices = place(state)
        _check_inside(buffer, indices)
        return state.arrays[buffer][indices]

    return value
