"""Operations in which one number follows from the last, and images read at given places."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.compiler.graph.operations.data_movement.scatter import (
    ScatterElements,
    ScatterKind,
    ScatterNd,
)
from microtron.compiler.graph.operations.layers.recurrent import Activation, Gru, Lstm, Recurrent
from microtron.compiler.graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from microtron.compiler.graph.operations.vision.resize import ResizeKind
from microtron.compiler.graph.operations.vision.sampling import GridSample, Outside
from microtron.compiler.graph.operations.vision.suppression import NonMaxSuppression
from microtron.compiler.graph.types import TensorType

from .draws import ALL, FLOATS, INTEGERS, numbers, seeds, shapes, value
from .lowered import check, typed

PLAIN = (*INTEGERS, *FLOATS)
floats = st.sampled_from(FLOATS)


@given(shapes(1, 3), st.sampled_from(CumulativeKind), st.sampled_from(PLAIN), seeds, st.booleans(),
       st.booleans())
def test_running_sums(shape, kind, dtype, seed, exclusive, reverse):
    check(Cumulative(x="x", kind=kind, axis=seed % len(shape) - len(shape) * (seed // 5 % 2),
                     exclusive=exclusive, reverse=reverse), value(shape, dtype, seed))


@given(shapes(1, 3, 1, 6), st.sampled_from(ALL), seeds, st.booleans(), st.booleans(),
       st.sampled_from(["int32", "int64"]))
def test_the_largest_in_order(shape, dtype, seed, largest, in_order, after):
    axis = seed % len(shape)
    operation = TopK(x="x", count=seed // 3 % (shape[axis] + 1), axis=axis - len(shape),
                     largest=largest, sorted=in_order)
    x = value(shape, dtype, seed)
    check(operation, x, result=TensorType(operation.infer(x.type).shape, after))


@settings(max_examples=8)
@given(st.integers(70, 300), st.integers(1, 60), st.sampled_from(["float32", "int8"]), seeds,
       st.booleans())
def test_the_largest_of_many(size, count, dtype, seed, largest):
    """More than are compared at a time, with equal ones and without."""
    x = value((2, size), dtype, seed)
    check(TopK(x="x", count=count, axis=-1, largest=largest, sorted=True), x)


def join(kind, dtype):
    return kind if dtype != "bool" or kind not in (ScatterKind.ADD, ScatterKind.MUL) else (
        ScatterKind.REPLACE)


@given(shapes(1, 3, 1), st.sampled_from(ALL), seeds, st.sampled_from(ScatterKind))
def test_scatter_elements(shape, dtype, seed, kind):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(0, len(shape)))
    some = [int(rng.integers(0, size + 1)) for size in shape]
    some[axis] = int(rng.integers(0, 6))
    indices = rng.integers(-shape[axis], shape[axis], some).astype(rng.choice(["int32", "int64"]))
    check(ScatterElements(x="x", indices="i", updates="u", axis=axis, kind=join(kind, dtype)),
          value(shape, dtype, seed), typed(indices), value(tuple(some), dtype, seed + 1))


@given(shapes(1, 3, 1), shapes(0, 2), st.sampled_from(ALL), seeds, st.sampled_from(ScatterKind))
def test_scatter_nd(shape, places, dtype, seed, kind):
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, len(shape) + 1))
    indices = np.stack([rng.integers(-size, size, places) for size in shape[:depth]], axis=-1)
    check(ScatterNd(x="x", indices="i", updates="u", kind=join(kind, dtype)),
          value(shape, dtype, seed), typed(indices),
          value((*places, *shape[depth:]), dtype, seed + 1))


def layer(gates, steps, batch, hidden, dtype, seed):
    """What all recurrent layers read."""
    rng = np.random.default_rng(seed)
    values = [numbers(shape, dtype, seed + place, special=False, scale=0.7) for place, shape in
              enumerate(((steps, batch, gates * hidden), (gates * hidden, hidden),
                         (batch, hidden)))]
    return [*map(typed, values), typed(rng.integers(0, steps + 2, batch))]


SIZES = (st.integers(0, 3), st.integers(0, 2), st.integers(1, 11))
NAMES = {"x": "x", "weights": "w", "state": "s", "lengths": "l"}
kinds = st.sampled_from(Activation)


def clipped(seed):
    return 0.4 if seed % 3 == 0 else None


@settings(max_examples=25)
@given(*SIZES, floats, seeds, st.booleans(), kinds)
def test_plain_recurrent_layers(steps, batch, hidden, dtype, seed, reverse, kind):
    check(Recurrent(**NAMES, reverse=reverse, clip=clipped(seed), activation=kind),
          *layer(1, steps, batch, hidden, dtype, seed), relative=1e-5)


@settings(max_examples=25)
@given(*SIZES, floats, seeds, st.booleans(), kinds, kinds, st.booleans())
def test_gated_recurrent_layers(steps, batch, hidden, dtype, seed, reverse, one, other, after):
    bias = [value((hidden,), dtype, seed + 7, special=False)] if after and seed % 2 else []
    check(Gru(**NAMES, reverse=reverse, clip=clipped(seed), activations=(one, other),
              reset_after=after, bias="b" if bias else None),
          *layer(3, steps, batch, hidden, dtype, seed), *bias, relative=1e-5)


@settings(max_examples=25)
@given(*SIZES, floats, seeds, st.booleans(), st.tuples(kinds, kinds, kinds), st.booleans())
def test_layers_with_a_memory(steps, batch, hidden, dtype, seed, reverse, activations, peep):
    memory = value((batch, hidden), dtype, seed + 6, special=False, scale=0.7)
    peepholes = [value((3 * hidden,), dtype, seed + 7, special=False, scale=0.5)] if peep else []
    check(Lstm(**NAMES, memory="m", peepholes="p" if peep else None, reverse=reverse,
               clip=clipped(seed), activations=activations),
          *layer(4, steps, batch, hidden, dtype, seed), memory, *peepholes, relative=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9), floats, seeds, st.booleans(),
       st.booleans())
def test_non_max_suppression(batch, classes, size, dtype, seed, centred, special):
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0, 1, (batch, size, 4)).round(1).astype(dtype)
    scores = numbers((batch, classes, size), dtype, seed, special=special).round(1)
    check(NonMaxSuppression(boxes="b", scores="s", count=int(rng.integers(0, 6)), centred=centred,
                            overlap=float(rng.uniform(0, 0.6)),
                            least=float(rng.normal()) if rng.random() < 0.5 else None),
          typed(boxes), typed(scores))


@given(st.integers(0, 2), st.integers(0, 2), shapes(1, 3, 1, 4), shapes(3, 3, 0, 3), floats, floats,
       seeds, st.sampled_from(ResizeKind), st.sampled_from(Outside), st.booleans())
def test_images_at_places(n, channels, sides, after, dtype, grid_dtype, seed, kind, outside, align):
    grid = numbers((n, *after[:len(sides)], len(sides)), grid_dtype, seed, scale=1)
    check(GridSample(x="x", grid="g", kind=kind, outside=outside, align_corners=align),
          value((n, channels, *sides), dtype, seed + 1, special=False), typed(grid), relative=1e-5)
