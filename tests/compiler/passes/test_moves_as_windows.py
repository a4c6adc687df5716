"""Moves of pixels and channels become windows, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.data_movement.blocks import (
    DepthOrder,
    DepthToSpace,
    SpaceToDepth,
)
from microtron.compiler.graph.operations.data_movement.indexing import Expand, Tile
from microtron.compiler.graph.operations.data_movement.shape import (
    Pad,
    PadMode,
    Reshape,
    Slice,
    Transpose,
)
from microtron.compiler.graph.operations.layers.window import Pool, PoolKind
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.operations.pointwise.quantize import Rescale
from microtron.compiler.graph.operations.vision.resize import (
    Coordinates,
    Nearest,
    Resize,
    ResizeKind,
)
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.passes.remove_dead import remove_dead
from microtron.compiler.passes.windows.moves_as_windows import moves_as_windows
from microtron.isa.instructions import Rounding

from .checks import changed, kinds

KNOWN = Quantization((0.5,), (-7,))
AFTER = Quantization((0.3,), (12,))


def images(shape, axis, dtype="int8"):
    """A graph that has images with channels on an axis: a pool says so."""
    builder = Builder()
    known = KNOWN if dtype == "int8" else None
    builder.input("x", TensorType(shape, dtype, known))
    builder.add("pool", Pool(x="x", kind=PoolKind.MAX, kernel=(1, 1), channel_axis=axis, low=-100),
                quantization=known)
    return builder


def shortcut(axis, *, padded=None, rescale=False, value=-7, outputs=("y",),
             mode=PadMode.CONSTANT):
    """Every second pixel with more channels, and perhaps another scale."""
    shape = (2, 5, 7, 6)
    builder = images(shape, axis)
    steps = tuple(1 if each in (0, axis) else 2 for each in range(4))
    before, after = ([0] * 4 for _ in range(2))
    before[padded or axis], after[padded or axis] = 2, 1
    builder.add("s", Slice(x="pool", starts=(0,) * 4, stops=shape, steps=steps),
                quantization=KNOWN)
    builder.add("p" if rescale else "y", Pad(x="s", before=tuple(before), after=tuple(after),
                                             value=value, mode=mode), quantization=KNOWN)
    if rescale:
        builder.add("y", Rescale(x="p", rounding=Rounding.EVEN, high=100), dtype="int8",
                    quantization=AFTER)
    return builder.graph(outputs)


@pytest.mark.parametrize("bounds", [{}, {"high": 5}])
@pytest.mark.parametrize("first", [KNOWN, AFTER])
def test_of_two_changes_of_scale_the_convolution_takes_one(first, bounds):
    builder = images((2, 5, 7, 6), 1)
    builder.add("s", Slice(x="pool", starts=(0, 1, 0, 0), stops=(2, 4, 7, 6), steps=(1,) * 4),
                quantization=KNOWN)
    for x, name, known, more in (("s", "r", first, bounds),
                                 ("r", "y", Quantization((0.11,), (3,)), {})):
        builder.add(name, Rescale(x=x, rounding=Rounding.EVEN, **more), dtype="int8",
                    quantization=known)
    changed(moves_as_windows, builder.graph(("y",)))


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("rescale", [False, True])
def test_a_shortcut_is_a_convolution(axis, rescale):
    found = remove_dead(changed(moves_as_windows, shortcut(axis, rescale=rescale)))
    assert kinds(found) == ["Pool", "Conv"]
    conv = found.nodes["y"].operation
    assert (conv.x, conv.stride, conv.channel_axis) == ("pool", (2, 2), axis)
    assert found.constants[conv.weights].array.sum() == (5, 6)[axis == 3]


def test_what_others_read_stays():
    found = remove_dead(changed(moves_as_windows, shortcut(1, rescale=True,
                                                           outputs=("y", "p", "s"))))
    assert kinds(found) == ["Pool", "Pool", "Conv", "Rescale"]


@pytest.mark.parametrize(("options", "kind"), [
    ({"value": 0}, "Pad"), ({"mode": PadMode.EDGE}, "Pad"), ({"padded": 2}, "Conv"),
    ({"padded": 3}, "Conv")])
def test_a_border_of_something_else_stays(options, kind):
    """Rows and columns of zero points are those of a convolution."""
    assert kinds(changed(moves_as_windows, shortcut(1, **options)))[-1] == kind


@pytest.mark.parametrize(("starts", "stops", "steps", "kind"), [
    ((0, 0, 0, 0), (2, 5, 7, 6), (1, 1, 3, 2), "Pool"),
    ((0, 1, 0, 0), (2, 4, 7, 6), (1, 1, 1, 1), "Conv"),             # some channels
    ((0, 4, 0, 0), (2, -1, 7, 6), (1, -1, 1, 1), "Conv"),           # in another order
    ((0, 1, 0, 0), (2, 5, 7, 6), (1, 3, 2, 3), "Conv"),             # and fewer pixels
    ((0, 0, 1, 0), (2, 5, 7, 6), (1, 1, 2, 1), "Conv"),             # not from the first on
    ((0, 0, 0, 0), (2, 5, 5, 6), (1, 1, 2, 1), "Conv"),             # not to the last
    ((0, 0, 1, 1), (2, 5, 6, 6), (1, 1, 1, 1), "Slice"),            # all in a row
    ((0, 0, 6, 0), (2, 5, -1, 6), (1, 1, -1, 1), "Slice"),          # backwards
    ((0, 0, 0, 0), (2, 5, 7, 6), (2, 1, 2, 1), "Slice"),            # some images
    ((1, 0, 0, 0), (-1, 5, 7, 6), (-1, 1, 2, 1), "Slice")])         # images backwards
def test_slices_of_pixels_and_channels_are_windows(starts, stops, steps, kind):
    builder = images((2, 5, 7, 6), 1)
    builder.add("y", Slice(x="pool", starts=starts, stops=stops, steps=steps), quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", kind]


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize(("operation", "kind"), [
    (SpaceToDepth, "Conv"), (DepthToSpace, "TransposedConv")])
def test_blocks_are_windows(axis, operation, kind):
    shape = (2, 8, 4, 6) if axis == 1 else (2, 4, 6, 8)
    for order in DepthOrder:
        builder = images(shape, axis)
        more = {"order": order} if operation is DepthToSpace else {}
        builder.add("y", operation(x="pool", block=2, channel_axis=axis, **more),
                    quantization=KNOWN)
        assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", kind]


@pytest.mark.parametrize(("coordinates", "nearest", "size", "kind"), [
    (Coordinates.ASYMMETRIC, Nearest.FLOOR, (12, 8), "TransposedConv"),
    (Coordinates.HALF_PIXEL, Nearest.ROUND_PREFER_FLOOR, (8, 8), "TransposedConv"),
    (Coordinates.ASYMMETRIC, Nearest.CEIL, (8, 8), "Resize"),
    (Coordinates.ASYMMETRIC, Nearest.FLOOR, (6, 8), "Resize"),
    (Coordinates.ASYMMETRIC, Nearest.FLOOR, (2, 4), "Pool"),
    (Coordinates.ASYMMETRIC, Nearest.CEIL, (3, 4), "Resize")])
def test_repeated_pixels_are_a_window(coordinates, nearest, size, kind):
    builder = images((1, 3, 4, 4), 1)
    builder.add("y", Resize(x="pool", shape=(1, 3, *size), kind=ResizeKind.NEAREST,
                            coordinates=coordinates, nearest=nearest), quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", kind]


def resize(shape, axis, times):
    builder = images(shape, axis)
    rows = 2 if axis == 1 else 1
    size = tuple(each * times if place in (rows, rows + 1) else each
                 for place, each in enumerate(shape))
    builder.add("y", Resize(x="pool", shape=size, coordinates=Coordinates.ASYMMETRIC,
                            nearest=Nearest.FLOOR), quantization=KNOWN)
    return builder.graph(("y",))


@pytest.mark.parametrize(("channels", "axis", "parts"), [(64, 1, 1), (65, 1, 2), (192, 3, 3)])
def test_many_channels_are_repeated_some_at_a_time(channels, axis, parts):
    shape = (1, channels, 2, 3) if axis == 1 else (1, 2, 3, channels)
    found = kinds(changed(moves_as_windows, resize(shape, axis, 2)))
    assert found == (["Pool", "TransposedConv"] if parts == 1 else
                     ["Pool", *["Conv", "TransposedConv"] * parts, "Concat"])


@pytest.mark.parametrize(("shape", "times"), [
    ((1, 1 << 26, 1, 1), 2), ((1, 4000, 1, 1), 2), ((1, 4, 1 << 12, 1 << 12), 2),
    ((1, 3, 2, 2), 65)])
def test_what_would_be_too_many_products_is_not_repeated(shape, times):
    graph = resize(shape, 1, times)
    assert moves_as_windows(graph).nodes == graph.nodes


@pytest.mark.parametrize(("before", "after", "windows"), [
    ((1, 1), (6, 8), 1), ((1, 1), (9, 8), 2), ((5, 1), (5, 9), 1), ((5, 2), (5, 4), 0)])
@pytest.mark.parametrize("axis", [1, 3])
def test_a_row_or_a_column_is_repeated(before, after, windows, axis):
    """Large blocks are columns first; what is no row and no column is not the array's to repeat."""
    first, last = ((2, 3, *each) if axis == 1 else (2, *each, 3) for each in (before, after))
    builder = images(first, axis)
    if windows:
        builder.add("y", Expand(x="pool", shape=last), quantization=KNOWN)
    else:
        times = tuple(one // other for one, other in zip(last, first, strict=True))
        builder.add("y", Tile(x="pool", repeats=times), quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == [
        "Pool", *["TransposedConv"] * windows, *["Tile"] * (not windows)]


@pytest.mark.parametrize("axis", [1, 3])
def test_reshapes_that_make_blocks_are_a_window(axis):
    shape = (2, 3, 4, 6) if axis == 1 else (2, 4, 6, 3)
    builder = images(shape, axis)
    split, order, last = (((2, 3, 2, 2, 3, 2), (0, 3, 5, 1, 2, 4), (2, 12, 2, 3)) if axis == 1 else
                          ((2, 2, 2, 3, 2, 3), (0, 1, 3, 2, 4, 5), (2, 2, 3, 12)))
    builder.add("split", Reshape(x="pool", shape=split), quantization=KNOWN)
    builder.add("moved", Transpose(x="split", order=order), quantization=KNOWN)
    builder.add("y", Reshape(x="moved", shape=last), quantization=KNOWN)
    after = remove_dead(changed(moves_as_windows, builder.graph(("y",))))
    assert kinds(after) == ["Pool", "Conv"]
    assert after.nodes["y"].operation.stride == (2, 2)


@pytest.mark.parametrize(("order", "kind"), [
    ((0, 1, 4, 2, 5, 3), "TransposedConv"), ((0, 1, 5, 2, 4, 3), "Reshape")])   # rows as columns
def test_reshapes_of_channels_into_blocks_are_a_transposed_window(order, kind):
    builder = images((2, 12, 4, 6), 1)
    builder.add("split", Reshape(x="pool", shape=(2, 3, 2, 2, 4, 6)), quantization=KNOWN)
    builder.add("moved", Transpose(x="split", order=order), quantization=KNOWN)
    shape = (2, 3, 8, 12) if kind != "Reshape" else (2, 3, 12, 8)
    builder.add("y", Reshape(x="moved", shape=shape), quantization=KNOWN)
    after = remove_dead(changed(moves_as_windows, builder.graph(("y",))))
    assert kinds(after)[-1] == kind


def test_averages_of_pixels_stay():
    builder = images((1, 3, 4, 4), 1)
    builder.add("y", Resize(x="pool", shape=(1, 3, 8, 8), kind=ResizeKind.LINEAR),
                quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", "Resize"]


@pytest.mark.parametrize("channels", [600, 1 << 26])        # the matrix alone has 4 PiB
def test_many_products_cost_more_than_the_way_to_the_cpu(channels):
    builder = images((1, channels, 8, 4), 1)
    builder.add("s", Slice(x="pool", starts=(0,) * 4, stops=(1, 575, 8, 4), steps=(1,) * 4),
                quantization=KNOWN)
    builder.add("d", DepthToSpace(x="s", block=5, channel_axis=1), quantization=KNOWN)
    builder.add("y", SpaceToDepth(x="pool", block=4, channel_axis=1), quantization=KNOWN)
    builder.add("p", Pad(x="s", before=(0, 9, 0, 0), after=(0,) * 4, value=-7),
                quantization=KNOWN)
    graph = builder.graph(("y", "d", "p"))
    assert moves_as_windows(graph).nodes == graph.nodes


@pytest.mark.parametrize(("axis", "shapes", "order"), [
    (1, ((2, 3, 2, 4, 5), (2, 6, 4, 5)), (0, 2, 1, 3, 4)),
    (3, ((2, 4, 5, 2, 3), (2, 4, 5, 6)), (0, 1, 2, 4, 3))])
def test_shuffled_channels_are_a_window(axis, shapes, order):
    builder = images(shapes[1], axis)
    builder.add("groups", Reshape(x="pool", shape=shapes[0]), quantization=KNOWN)
    builder.add("exchanged", Transpose(x="groups", order=order), quantization=KNOWN)
    builder.add("y", Reshape(x="exchanged", shape=shapes[1]), quantization=KNOWN)
    after = changed(moves_as_windows, builder.graph(("y",)))
    assert kinds(remove_dead(after)) == ["Pool", "Conv"]


def test_channels_that_stay_are_nothing():
    builder = images((2, 6, 4, 5), 1)
    builder.add("groups", Reshape(x="pool", shape=(2, 1, 6, 4, 5)), quantization=KNOWN)
    builder.add("exchanged", Transpose(x="groups", order=(0, 2, 1, 3, 4)), quantization=KNOWN)
    builder.add("y", Reshape(x="exchanged", shape=(2, 6, 4, 5)), quantization=KNOWN)
    after = changed(moves_as_windows, builder.graph(("y",)))
    assert kinds(remove_dead(after)) == ["Pool"]


@pytest.mark.parametrize(("shape", "order", "last"), [
    ((2, 3, 2, 4, 5), (0, 1, 2, 4, 3), (2, 6, 5, 4)),               # pixels move
    ((2, 3, 2, 4, 5), (0, 1, 2, 4, 3), (2, 6, 4, 5))])
def test_other_exchanges_stay(shape, order, last):
    builder = images((2, 6, 4, 5), 1)
    builder.add("groups", Reshape(x="pool", shape=shape), quantization=KNOWN)
    builder.add("exchanged", Transpose(x="groups", order=order), quantization=KNOWN)
    builder.add("y", Reshape(x="exchanged", shape=last), quantization=KNOWN)
    assert "Conv" not in kinds(changed(moves_as_windows, builder.graph(("y",))))


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_for_each_pixel_gets_channels(axis, swapped):
    shape = [2, 4, 5, 6]
    builder = images(tuple(shape), axis)
    first = [0] * 4
    stops = [1 if each == axis else size for each, size in enumerate(shape)]
    builder.add("one", Slice(x="pool", starts=tuple(first), stops=tuple(stops), steps=(1,) * 4),
                quantization=KNOWN)
    left, right = ("one", "pool") if swapped else ("pool", "one")
    builder.add("y", Binary(kind=BinaryKind.SUB, left=left, right=right), quantization=AFTER)
    after = changed(moves_as_windows, builder.graph(("y",)))
    assert kinds(after) == ["Pool", "Conv", "Conv", "Binary"]
    assert {after.type_of(each).shape for each in after.nodes["y"].operation.operands()} == {
        tuple(shape)}


def test_real_numbers_and_graphs_without_one_axis_of_channels_stay():
    builder = images((2, 5, 7, 6), 1, "float32")
    builder.add("s", Slice(x="pool", starts=(0,) * 4, stops=(2, 5, 7, 6), steps=(1, 1, 2, 2)))
    builder.add("y", Pad(x="s", before=(0, 1, 0, 0), after=(0, 0, 0, 0)))
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", "Slice", "Pad"]
    builder = images((2, 5, 7, 6), 1)
    builder.add("q", Pool(x="pool", kind=PoolKind.MAX, kernel=(2, 2), channel_axis=3),
                quantization=KNOWN)
    builder.add("y", Slice(x="q", starts=(0,) * 4, stops=(2, 4, 6, 6), steps=(1, 1, 2, 2)),
                quantization=KNOWN)
    assert kinds(changed(moves_as_windows, builder.graph(("y",)))) == ["Pool", "Pool", "Slice"]


def test_weights_are_ones():
    found = moves_as_windows(shortcut(1))
    weights = found.constants[found.nodes["y"].operation.weights].array
    assert (weights.shape, set(np.unique(weights))) == ((8, 5, 1, 1), {0, 1})
