"""What a loop nest does, literally: one element after the other, in NumPy.

This is slow and simple. Statements become generators that pause after each step, so that the
iterations of threads can be interleaved in any way. Memory that nothing has written yet holds a
pattern that no sensible result looks like.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ..errors import CompileError
from ..expression.evaluate import Array, numpy_type
from .nest import (
    INDEPENDENT,
    Allocate,
    Assign,
    Buffer,
    Copy,
    Invoke,
    Loop,
    Marked,
    Nest,
    Region,
    Sequence,
    Start,
    Statement,
    When,
)
from .values import State, check_inside, indices_of, value_of

POISON = 0xA5                       # every byte of an undefined integer; undefined floats are NaN
Meaning = Callable[..., None]       # of views of regions, the first of which it writes
Intrinsics = Mapping[str, Meaning]
Steps = Iterator[None]
Run = Callable[[State], Steps]


def interpret(nest: Nest, inputs: Mapping[Buffer, npt.ArrayLike], *,
              intrinsics: Intrinsics | None = None,
              seed: int | None = None) -> dict[Buffer, Array]:
    """The nest's outputs, given its inputs.

    `intrinsics` says what each intrinsic does: a function of views of its regions, in order.
    Independent iterations run one after the other, or, with a seed, randomly interleaved.
    """
    arrays = {buffer: uninitialized_array(buffer) for buffer in nest.outputs}
    for buffer in nest.inputs:
        arrays[buffer] = _input_array(buffer, inputs)
    order = None if seed is None else random.Random(seed)
    state = State({}, arrays)
    with np.errstate(all="ignore"):
        for _ in _Runner(intrinsics or {}, order).of(nest.body)(state):
            pass
    return {buffer: arrays[buffer] for buffer in nest.outputs}


def uninitialized_array(buffer: Buffer) -> Array:
    """The contents of a buffer that nothing has been written to."""
    dtype = numpy_type(buffer.dtype)
    if dtype.kind == "f":
        return np.full(buffer.shape, np.nan, dtype)
    array = np.full((*buffer.shape, dtype.itemsize), POISON, np.uint8).view(dtype)
    return array.reshape(buffer.shape)


def _input_array(buffer: Buffer, inputs: Mapping[Buffer, npt.ArrayLike]) -> Array:
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
            case Start():
                return _start(statement)
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
        function = self.intrinsics[statement.intrinsic]
        starts = [indices_of(region.start) for region in statement.regions]

        def run(state: State) -> Steps:
            views = [_view(region, start(state), state)
                     for region, start in zip(statement.regions, starts, strict=True)]
            for view in views[1:]:
                view.flags.writeable = False
            function(*views)
            yield

        return run

    def _loop(self, loop: Loop) -> Run:
        body, axis = self.of(loop.body), loop.axis

        def in_order(state: State) -> Steps:
            for iteration in range(axis.extent):
                state.axes[axis] = iteration
                yield from body(state)

        def interleave_threads(state: State) -> Steps:
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

        independent = loop.kind in INDEPENDENT and self.order is not None
        return interleave_threads if independent else in_order

    def _when(self, statement: When) -> Run:
        condition, body = value_of(statement.condition), self.of(statement.body)

        def run(state: State) -> Steps:
            if condition(state):
                yield from body(state)

        return run

    def _allocate(self, statement: Allocate) -> Run:
        body, buffer = self.of(statement.body), statement.buffer
        last: list[Array] = []          # what it held the last time, if it slides

        def run(state: State) -> Steps:
            state.arrays[buffer] = uninitialized_array(buffer)
            if statement.slide is not None and last:
                dimension, step = statement.slide.dimension, statement.slide.step
                kept = np.moveaxis(last.pop(), dimension, 0)[step:]
                np.moveaxis(state.arrays[buffer], dimension, 0)[:len(kept)] = kept
            yield from body(state)
            array = state.arrays.pop(buffer)
            if statement.slide is not None:
                last[:] = [array]

        return run

    def _sequence(self, statement: Sequence) -> Run:
        bodies = [self.of(each) for each in statement.statements]

        def run(state: State) -> Steps:
            for body in bodies:
                yield from body(state)

        return run


def _assign(statement: Assign) -> Run:
    buffer, value = statement.target.buffer, value_of(statement.value)
    place = indices_of(statement.target.indices)

    def run(state: State) -> Steps:
        indices = place(state)
        check_inside(buffer, indices)
        state.arrays[buffer][indices] = value(state)
        yield

    return run


def _copy(statement: Copy) -> Run:
    target, source = statement.target, statement.source
    target_start, source_start = indices_of(target.start), indices_of(source.start)

    def run(state: State) -> Steps:
        there, here = source_start(state), target_start(state)
        inside = _clip_region(source, there)
        # A copy, because source and target may overlap.
        box = state.arrays[source.buffer][_shifted_slices(there, inside)].copy()
        if statement.padding is not None:
            _move(state, target, here, statement.padding, _full_box(target))
        _move(state, target, here, box, inside)
        yield

    return run


def _start(statement: Start) -> Run:
    region, start = statement.target, indices_of(statement.target.start)

    def run(state: State) -> Steps:
        _view(region, start(state), state)[...] = statement.value
        yield

    return run


Box = list[tuple[int, int]]         # the first place in each dimension, and the one past the last


def _full_box(region: Region) -> Box:
    return [(0, count) for count in region.extents]


def _clip_region(region: Region, start: tuple[int, ...]) -> Box:
    """The places of a region that lie inside its buffer, counted from its start."""
    places = []
    for first, count, extent in zip(start, region.extents, region.buffer.shape, strict=True):
        low = min(max(-first, 0), count)
        places.append((low, max(low, min(extent - first, count))))
    return places


def _shifted_slices(start: tuple[int, ...], box: Box) -> tuple[slice, ...]:
    return tuple(slice(first + low, first + high) if low < high else slice(0)
                 for first, (low, high) in zip(start, box, strict=True))


def _move(state: State, target: Region, start: tuple[int, ...], values: object, box: Box) -> None:
    """Put values into the places of a box, except those outside the target's buffer."""
    common = [(max(low, least), max(max(low, least), min(high, most)))
              for (low, high), (least, most) in zip(box, _clip_region(target, start), strict=True)]
    if isinstance(values, np.ndarray):
        values = values[tuple(slice(low - first, high - first)
                              for (low, high), (first, _) in zip(common, box, strict=True))]
    state.arrays[target.buffer][_shifted_slices(start, common)] = values


def _view(region: Region, start: tuple[int, ...], state: State) -> Array:
    last = tuple(first + count - 1 for first, count in zip(start, region.extents, strict=True))
    check_inside(region.buffer, start)
    check_inside(region.buffer, last)
    return state.arrays[region.buffer][tuple(
        slice(first, first + count) for first, count in zip(start, region.extents, strict=True))]
