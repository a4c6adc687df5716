"""Numbers that move: shapes, slices, borders, indices, blocks."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.compiler.cpu.operators.data_movement.lower_shape import reshape_indices
from microtron.compiler.errors import CompileError
from microtron.compiler.expression.affine import affine
from microtron.compiler.expression.expression import Axis
from microtron.compiler.graph.operations.data_movement.blocks import (
    BatchToSpace,
    DepthOrder,
    DepthToSpace,
    SpaceToBatch,
    SpaceToDepth,
)
from microtron.compiler.graph.operations.data_movement.indexing import (
    Expand,
    Gather,
    GatherElements,
    GatherNd,
    OneHot,
    Tile,
)
from microtron.compiler.graph.operations.data_movement.shape import (
    Concat,
    Pad,
    PadMode,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.types import TensorType

from .draws import ALL, numbers, repeated, seeds, shapes, value
from .lowered import check, lowered, typed

dtypes = st.sampled_from(ALL)


def factors(count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A shape of so many elements."""
    found = []
    while count > 1:
        divisors = [each for each in range(2, count + 1) if count % each == 0]
        found.append(int(rng.choice(divisors)))
        count //= found[-1]
    for _ in range(rng.integers(0, 3)):
        found.insert(rng.integers(0, len(found) + 1), 1)
    return tuple(found)


@given(st.integers(1, 72), dtypes, seeds)
def test_reshape(count, dtype, seed):
    rng = np.random.default_rng(seed)
    before, after = factors(count, rng), factors(count, rng)
    check(Reshape(x="x", shape=after), value(before, dtype, seed))


@pytest.mark.parametrize(("before", "after"), [
    ((6, 4), (2, 3, 4)), ((6, 4), (6, 2, 2)), ((1, 6, 4), (6, 4)), ((6, 4), (2, 1, 3, 4)),
    ((6, 4), (1, 6, 1, 4, 1)), ((12,), (3, 2, 2))])
def test_axes_that_are_only_split_stay_sums(before, after):
    axes = tuple(Axis(f"i{place}", size) for place, size in enumerate(after))
    assert all(affine(index) is not None for index in reshape_indices(axes, after, before))


@given(shapes(), dtypes, seeds)
def test_transpose(shape, dtype, seed):
    order = tuple(map(int, np.random.default_rng(seed).permutation(len(shape))))
    check(Transpose(x="x", order=order), value(shape, dtype, seed))


@given(shapes(1), dtypes, seeds, st.integers(1, 4))
def test_concat(shape, dtype, seed, count):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(-len(shape), len(shape)))
    place = axis % len(shape)
    sizes = rng.integers(0, 4, count)
    parts = [value((*shape[:place], int(size), *shape[place + 1:]), dtype, seed + number)
             for number, size in enumerate(sizes)]
    check(Concat(parts=("x",) * count, axis=axis), *parts)


@given(shapes(smallest=1), dtypes, seeds)
def test_slice(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    starts, stops, steps = [], [], []
    for size in shape:
        start, stop = sorted(map(int, rng.integers(0, size, 2)))
        step = int(rng.choice([1, 2, 3]))
        forward = rng.random() < 0.5
        starts.append(start if forward else stop)
        stops.append(stop + 1 if forward else start - 1)
        steps.append(step if forward else -step)
    check(Slice(x="x", starts=tuple(starts), stops=tuple(stops), steps=tuple(steps)),
          value(shape, dtype, seed))


@given(shapes(), dtypes, seeds, st.sampled_from(PadMode))
def test_pad(shape, dtype, seed, mode):
    rng = np.random.default_rng(seed)
    if mode != PadMode.CONSTANT:
        shape = tuple(max(size, 1) for size in shape)
    before, after = (tuple(map(int, rng.integers(0, 12, len(shape)) * (rng.random(len(shape)) < 0.6)
                               )) for _ in range(2))
    if prod(size + 12 for size in shape) > 40_000:
        before = after = (1,) * len(shape)
    check(Pad(x="x", before=before, after=after, value=float(rng.integers(0, 100)), mode=mode),
          value(shape, dtype, seed))


@given(shapes(1, 4), shapes(0, 2), dtypes, seeds)
def test_gather(shape, places, dtype, seed):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(0, len(shape)))
    size = max(shape[axis], 1)
    shape = (*shape[:axis], size, *shape[axis + 1:])
    batch = int(rng.integers(0, axis + 1))
    indices = rng.integers(-size, size, (*shape[:batch], *places)).astype(
        rng.choice(["int32", "int64"]))
    check(Gather(x="x", indices="i", axis=axis - len(shape) * int(rng.integers(0, 2)), batch=batch),
          value(shape, dtype, seed), typed(indices))


@given(shapes(1, 4, 1), shapes(0, 2), dtypes, seeds)
def test_gather_nd(shape, places, dtype, seed):
    rng = np.random.default_rng(seed)
    batch = int(rng.integers(0, len(shape)))
    depth = int(rng.integers(1, len(shape) - batch + 1))
    sizes = shape[batch:batch + depth]
    indices = np.stack([rng.integers(-size, size, (*shape[:batch], *places)) for size in sizes],
                       axis=-1)
    check(GatherNd(x="x", indices="i", batch=batch), value(shape, dtype, seed), typed(indices))


@given(shapes(1, 4, 1), dtypes, seeds)
def test_gather_elements(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(0, len(shape)))
    some = [int(rng.integers(0, size + 1)) for size in shape]
    some[axis] = int(rng.integers(0, 6))
    indices = rng.integers(-shape[axis], shape[axis], some)
    check(GatherElements(x="x", indices="i", axis=axis), value(shape, dtype, seed), typed(indices))


def test_an_axis_of_nothing_has_no_index():
    with pytest.raises(CompileError, match="an axis of no indices is indexed"):
        lowered(Gather(x="x", indices="i"), TensorType((1, 3), "int8"),
                [value((0, 3), "int8", 0), typed(np.zeros(1, np.int64))])


@given(shapes(), dtypes, seeds)
def test_tile(shape, dtype, seed):
    repeats = tuple(map(int, np.random.default_rng(seed).integers(0, 4, len(shape))))
    check(Tile(x="x", repeats=repeats), value(shape, dtype, seed))


@given(shapes(), dtypes, seeds)
def test_expand(shape, dtype, seed):
    check(Expand(x="x", shape=shape), value(repeated(shape, seed), dtype, seed))


@given(shapes(0, 3), dtypes, seeds, st.booleans())
def test_one_hot(shape, dtype, seed, wrap):
    rng = np.random.default_rng(seed)
    depth, axis = int(rng.integers(0, 6)), int(rng.integers(-len(shape) - 1, len(shape) + 1))
    indices = rng.integers(-8, 9, shape).astype(rng.choice(["int32", "int64"]))
    operation = OneHot(indices="i", depth=depth, axis=axis, on=float(rng.integers(1, 100)),
                       off=float(rng.integers(0, 3)), wrap=wrap)
    check(operation, typed(indices),
          result=TensorType(operation.infer(typed(indices).type).shape, dtype))


@given(st.integers(1, 3), shapes(4, 4, 0, 3), dtypes, seeds, st.sampled_from(DepthOrder),
       st.sampled_from([1, 3]))
def test_depth_and_space(block, shape, dtype, seed, order, channel_axis):
    deep = list(shape)
    deep[channel_axis] *= block * block
    check(DepthToSpace(x="x", block=block, order=order, channel_axis=channel_axis),
          value(tuple(deep), dtype, seed))
    broad = [size * block if axis not in (0, channel_axis) else size
             for axis, size in enumerate(shape)]
    check(SpaceToDepth(x="x", block=block, order=order, channel_axis=channel_axis),
          value(tuple(broad), dtype, seed))


@given(shapes(2, 4, 0, 3), dtypes, seeds)
def test_batches_and_space(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, len(shape)))
    block = tuple(map(int, rng.integers(1, 4, axes)))
    before = tuple(map(int, rng.integers(0, 3, axes)))
    after = tuple(-(size + first) % each for size, first, each in zip(shape[1:], before, block,
                                                                      strict=False))
    check(SpaceToBatch(x="x", block=block, before=before, after=after, value=7),
          value(shape, dtype, seed))
    cut = tuple(int(rng.integers(0, size * each + 1)) // 2 for size, each in zip(
        shape[1:], block, strict=False))
    check(BatchToSpace(x="x", block=block, before=cut, after=cut),
          value((shape[0] * prod(block), *shape[1:]), dtype, seed))


def test_numbers_of_draws_are_of_their_type():
    assert {numbers((3,), dtype, 0).dtype.name for dtype in ALL} == set(ALL)
