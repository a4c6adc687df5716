"""Operations that scatter, sort, repeat, sample and shift: what they refuse, and that they can be
saved. What they compute, ONNX's evaluators judge (tests/runtime/reference)."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operation import Value
from microtron.compiler.graph.operations.data_movement.indexing import GatherElements
from microtron.compiler.graph.operations.data_movement.scatter import (
    ScatterElements,
    ScatterKind,
    ScatterNd,
)
from microtron.compiler.graph.operations.layers.recurrent import Activation, Gru, Lstm, Recurrent
from microtron.compiler.graph.operations.layers.scan import Cumulative, CumulativeKind, TopK
from microtron.compiler.graph.operations.layers.window_places import MaxPlace
from microtron.compiler.graph.operations.pointwise.bits import BitCast, BitNot, Bits, BitsKind
from microtron.compiler.graph.operations.vision.sampling import GridSample, Outside
from microtron.compiler.graph.operations.vision.suppression import MOST_BOXES, NonMaxSuppression
from microtron.compiler.graph.saved import load_graph, save_graph
from microtron.compiler.graph.types import GraphError, Quantization, TensorType

REAL, WHOLE = "float32", "int64"
LAYER = {"x": "a", "weights": "b", "state": "c", "lengths": "d"}
KEPT = dict(LAYER, memory="e")
BOXES = {"boxes": "a", "scores": "b", "count": 3}


def types(*pairs):
    return [each if isinstance(each, TensorType) else TensorType(*each) for each in pairs]


def layer(gates, hidden=2, steps=4, batch=3, dtype=REAL):
    return types(((steps, batch, gates * hidden), dtype), ((gates * hidden, hidden), dtype),
                 ((batch, hidden), dtype), ((batch,), "int32"))


QUANTIZED = TensorType((3, 4), "int8", Quantization((0.5,)))
GOOD = [
    (Bits(kind=BitsKind.SHIFT_LEFT, left="a", right="b"), types(((2, 3), "int8"), ((3,), "int8"))),
    (BitNot(x="a"), types(((0, 3), "uint64"))),
    (BitCast(x="a", dtype="uint8"), types(((2,), "bool"))),
    (ScatterElements(x="a", indices="b", updates="c", axis=-1, kind=ScatterKind.MAX),
     types(QUANTIZED, ((2, 9), WHOLE), TensorType((2, 9), "int8", QUANTIZED.quantization))),
    (ScatterNd(x="a", indices="b", updates="c"), types(((3, 4), REAL), ((5, 1), "int32"),
                                                       ((5, 4), REAL))),
    (GatherElements(x="a", indices="b", axis=1), types(QUANTIZED, ((3, 9), WHOLE))),
    (Cumulative(kind=CumulativeKind.PROD, x="a", axis=-1, reverse=True), types(((3, 0), REAL))),
    (TopK(x="a", count=0, axis=0, largest=False), types(QUANTIZED)),
    (Recurrent(**LAYER, activation=Activation.RELU, reverse=True), layer(1)),
    (Gru(**LAYER, bias="e", reset_after=True, clip=2.0), [*layer(3), *types(((2,), REAL))]),
    (Lstm(**KEPT, peepholes="f"), [*layer(4), *types(((3, 2), REAL), ((6,), REAL))]),
    (NonMaxSuppression(**BOXES, least=0.5), types(((1, 7, 4), REAL), ((1, 2, 7), REAL))),
    (GridSample(x="a", grid="b", outside=Outside.BORDER), types(((2, 3, 4, 5), REAL),
                                                               ((2, 0, 7, 2), REAL))),
    (MaxPlace(x="a", kernel=(2, 2), channel_axis=1, pad=(1, 0, 0, 1)), types(((1, 2, 3, 4), REAL))),
]
BAD = [
    (Bits(kind=BitsKind.AND, left="a", right="b"), types(((2,), REAL), ((2,), REAL)),
     "must be plain integers"),
    (Bits(kind=BitsKind.AND, left="a", right="b"), types(((2,), "int8"), ((2,), "uint8")),
     "must be of one type"),
    (Bits(kind=BitsKind.AND, left="a", right="b"), types(QUANTIZED, QUANTIZED),
     "must be plain integers"),
    (BitCast(x="a", dtype="bool"), types(((2,), "uint8")), "are not those of bool"),
    (BitCast(x="a", dtype="int16"), types(((2,), REAL)), "are not those of int16"),
    (BitCast(x="a", dtype="int5"), types(((2,), REAL)), "are not those of int5"),
    (ScatterElements(x="a", indices="b", updates="c", kind=ScatterKind.ADD),
     types(QUANTIZED, ((2, 4), WHOLE), TensorType((2, 4), "int8", QUANTIZED.quantization)),
     "only plain numbers are added"),
    (ScatterElements(x="a", indices="b", updates="c"),
     types(((3, 4), REAL), ((2, 5), WHOLE), ((2, 5), REAL)), "fit into"),
    (ScatterElements(x="a", indices="b", updates="c"),
     types(((3, 4), REAL), ((2, 4), REAL), ((2, 4), REAL)), "must be int32 or int64"),
    (ScatterElements(x="a", indices="b", updates="c", axis=2),
     types(((3, 4), REAL), ((2, 4), WHOLE), ((2, 4), REAL)), "axis is 2"),
    (ScatterNd(x="a", indices="b", updates="c"),
     types(((3, 4), REAL), ((5, 3), WHOLE), ((5,), REAL)), "name no places"),
    (ScatterNd(x="a", indices="b", updates="c"),
     types(((3, 4), REAL), ((), WHOLE), ((3, 4), REAL)), "name no places"),
    (GatherElements(x="a", indices="b"), types(((3, 4), REAL), ((3,), WHOLE)), "do not fit"),
    (Cumulative(kind=CumulativeKind.SUM, x="a"), types(((3,), "bool")), "must be plain numbers"),
    (Cumulative(kind=CumulativeKind.SUM, x="a"), types(((), REAL)), "axis is 0"),
    (TopK(x="a", count=5, axis=1), types(((3, 4), REAL)), "the 5 largest are wanted of 4"),
    (TopK(x="a", count=-1), types(((3, 4), REAL)), "the -1 largest"),
    (Recurrent(**LAYER), layer(3), "but must have"),
    (Recurrent(**LAYER, clip=-1.0), layer(1), "clip is -1"),
    (Recurrent(**LAYER), layer(1, dtype="int32"), "must be real"),
    (Recurrent(**LAYER), [*layer(1)[:3], TensorType((3,), "int8")], "must be real"),
    (Gru(**LAYER, bias="e"), [*layer(3), *types(((2,), REAL))], "reset_after"),
    (Lstm(**KEPT), [*layer(4), *types(((2, 3), REAL))], "the memory is"),
    (Lstm(**KEPT, peepholes="f"), [*layer(4), *types(((3, 2), REAL), ((8,), REAL))], "peepholes"),
    (NonMaxSuppression(**BOXES), types(((1, 7, 4), REAL), ((2, 2, 7), REAL)), "boxes are"),
    (NonMaxSuppression(**BOXES), types(((1, MOST_BOXES + 1, 4), REAL),
                                       ((1, 1, MOST_BOXES + 1), REAL)), "nor more than"),
    (GridSample(x="a", grid="b"), types(((2, 3, 4, 5), REAL), ((2, 6, 7, 3), REAL)),
     "does not belong"),
    (GridSample(x="a", grid="b"), types(((2, 3, 0, 5), REAL), ((2, 6, 7, 2), REAL)),
     "does not belong"),
    (GridSample(x="a", grid="b"), types(((2, 3, 2, 2, 2, 2), REAL), ((2, 1, 1, 1, 1, 4), REAL)),
     "does not belong"),
    (MaxPlace(x="a", kernel=(2, 2), pad=(2, 0, 0, 0)), types(((1, 3, 4, 2), REAL)),
     "windows outside the image"),
    (MaxPlace(x="a", kernel=(2, 1), pad=(1, 1, 0, 0), dilation=(2, 1)), types(((1, 1, 1, 2), REAL)),
     "windows outside the image"),
    (MaxPlace(x="a", kernel=(2, 2), scales=(2.0,)), types(((1, 3, 4, 2), REAL)), "neither scales"),
]


def build(operation, operands):
    builder = Builder("graph")
    for name, each in zip("abcdef", operands, strict=False):
        builder.input(name, each)
    builder.add("result", operation)
    return builder.graph(("result",))


@pytest.mark.parametrize(("operation", "operands"), GOOD, ids=lambda each: type(each).__name__)
def test_they_can_be_saved_and_loaded(operation, operands):
    graph = build(operation, operands)
    data, arrays = save_graph(graph)
    assert load_graph(json.loads(json.dumps(data)), arrays) == graph


@pytest.mark.parametrize(("operation", "operands", "words"), BAD,
                         ids=lambda each: type(each).__name__)
def test_what_makes_no_sense_is_refused(operation, operands, words):
    with pytest.raises(GraphError, match=words):
        build(operation, operands)


@pytest.mark.parametrize(("dtype", "kind", "expected"), [
    ("int8", BitsKind.SHIFT_LEFT, [0, 0, 0, -128]), ("int8", BitsKind.SHIFT_RIGHT, [-1, 0, -1, 0]),
    ("uint8", BitsKind.SHIFT_RIGHT, [0, 0, 0, 0])])
def test_what_is_shifted_too_far_is_gone(dtype, kind, expected):
    x, places = (np.array(each).astype(dtype) for each in ([-3, 3, -3, 1], [8, 100, -1, 7]))
    with np.errstate(over="ignore"):
        found = Bits(kind=kind, left="", right="").compute(
            TensorType((4,), dtype), *[_value(each) for each in (x, places)])
    assert found.tolist() == expected


def _value(array):
    return Value(TensorType(array.shape, str(array.dtype)), array)


def test_nothing_takes_long_that_has_nothing_in_it():
    """Steps of empty sequences, and boxes of none, are not counted one by one."""
    steps = 1 << 40
    empty = [np.zeros(shape, dtype) for shape, dtype in (
        ((steps, 0, 2), REAL), ((2, 2), REAL), ((0, 2), REAL), ((0,), "int32"))]
    found = Recurrent(**LAYER).compute(TensorType((steps, 0, 2), REAL), *map(_value, empty))
    assert found.shape == (steps, 0, 2)
    boxes = NonMaxSuppression(boxes="a", scores="b", count=0)
    found = boxes.compute(TensorType((0, 3), WHOLE), _value(np.zeros((steps, 0, 4), REAL)),
                          _value(np.zeros((steps, 1, 0), REAL)))
    assert found.shape == (0, 3)
